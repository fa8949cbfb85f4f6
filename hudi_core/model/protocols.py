"""What a lower room needs from a higher one, as protocols."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

from hudi_core.model.files import FileStatus
from hudi_core.model.instant import Action, Instant
from hudi_core.model.instant_time import InstantTime

Paths = list[str]
"""Paths, where a class has a method of the name ``list``."""


@runtime_checkable
class TimelineView(Protocol):
    """A table's instants as readers see them (fenced by the format)."""

    @property
    def instants(self) -> tuple[Instant, ...]:
        """All instants in time order, each in its highest state."""
        ...

    def completed_writes(self) -> tuple[Instant, ...]:
        """Completed instants that change rows, in time order."""
        ...

    def is_committed(self, time: InstantTime) -> bool:
        """Whether a completed write has this requested time, archived ones included."""
        ...

    def find(self, time: InstantTime, action: Action | None = None) -> Instant | None:
        """Return the instant of that requested time."""
        ...


@runtime_checkable
class LockProvider(Protocol):
    """A lock on one table; see RFC-93, `getLockProvider`."""

    def try_lock(self, timeout_s: float) -> bool:
        """Take the lock within ``timeout_s`` seconds; ``False`` when it stays taken."""
        ...

    def unlock(self) -> None:
        """Give the lock back; no effect when it is not held."""
        ...

    def lease_left(self) -> float:
        """Seconds until another may take the lock; ``inf`` without a lease."""
        ...

    @property
    def excludes_processes(self) -> bool:
        """Whether the lock excludes other processes, not just threads."""
        ...


@runtime_checkable
class NamesOwner(Protocol):
    """A lock that says who holds it; a lock may do without."""

    def owner(self) -> str | None:
        """Who held the lock when it was last waited for.

        ``None`` if that is not known. Completes the sentence "It is held by ...". Names no secret.
        """
        ...


class Storage(Protocol):
    """Small metadata files of one root, with a timeline's atomic operations.

    Paths are relative to the root, with ``/``, and never leave it. Data files do not pass through
    here but for existence, listing and deletion; see :mod:`hudi_core.storage.data_files`.
    """

    @property
    def root(self) -> str:
        """Absolute path or URI of the root, without a trailing slash."""
        ...

    def read(self, path: str, max_bytes: int | None = None) -> bytes:
        """Return a file's bytes; at most ``max_bytes`` are accepted.

        Raises
        ------
        PathNotFoundError
            Nothing is stored there.
        """
        ...

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return ``length`` bytes from ``offset`` on, or up to the end.

        Raises
        ------
        PathNotFoundError
            Nothing is stored there.
        """
        ...

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create a file atomically.

        Raises
        ------
        AlreadyExistsError
            Something is stored there already; it is left as it is.
        """
        ...

    def put(self, path: str, data: bytes) -> None:
        """Create or replace a file atomically.

        Readers see the old or the new bytes, never a part.
        """
        ...

    def head(self, path: str) -> FileStatus | None:
        """Return size and time of a file; ``None`` when there is none."""
        ...

    def version(self, path: str) -> tuple[bytes, str]:
        """Return a file's bytes and their version tag.

        The tag is opaque and changes whenever the bytes do.
        """
        ...

    def compare_and_set(self, path: str, data: bytes, expected: str | None) -> str:
        """Replace a file if its tag is ``expected``; return the new tag.

        ``None`` expects that the file is absent.

        Raises
        ------
        PreconditionFailedError
            The file has changed, or exists although it was expected to be absent.
        """
        ...

    def list(
        self, prefix: str = "", recursive: bool = False, others: Paths | None = None
    ) -> Iterator[FileStatus]:
        """Yield the files below a folder, which need not exist.

        Temporary files are left out.

        Parameters
        ----------
        others
            Gets the paths of entries that are no files: folders, pipes, links that lead nowhere.
            A recursive listing of an object store finds none.
        """
        ...

    def list_names(self, folder: str, others: Paths | None = None) -> Sequence[str]:
        """Names of the files directly in a folder, sorted.

        As :meth:`list` gives them, without their sizes, each of which costs a local disk a call.

        Parameters
        ----------
        others
            See :meth:`list`.
        """
        ...

    def list_folders(self, prefix: str = "") -> Sequence[str]:
        """Return the paths of the folders directly below a folder, sorted."""
        ...

    def delete(self, path: str) -> bool:
        """Delete a file; ``False`` when there was none."""
        ...

    def discard(self, paths: Sequence[str]) -> None:
        """Delete files, existing or not.

        An object store gets one request.
        """
        ...

    def delete_tree(self, prefix: str) -> int:
        """Delete a folder and everything in it; return the file count."""
        ...
