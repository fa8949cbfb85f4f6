"""Markers: names of files before these exist, for rollbacks.

Hudi's direct markers, ``.hoodie/.temp/<instant>/<partition>/<file>.marker.<kind>``, each an empty
file.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from hudi_core.errors import AlreadyExistsError, CorruptMetadataError, UnsafePathError
from hudi_core.model.files import BaseFileName, LogFileName, PartitionPath, join_path
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import Storage
from hudi_core.storage.flushing import Flushes
from hudi_core.storage.safe_path import require_safe_path
from hudi_core.storage.temp_folders import temp_folder
from hudi_core.txn.heartbeat import Heartbeat, heartbeat_path

_SIGN: Final = ".marker."


class MarkerKind(StrEnum):
    """What is about to happen to the marked file."""

    CREATE = "CREATE"
    """A base file of a new file group."""
    MERGE = "MERGE"
    """A new base file of an existing file group."""
    APPEND = "APPEND"
    """A log file."""


@dataclass(frozen=True, slots=True, order=True)
class Marker:
    """A marked file."""

    partition_path: PartitionPath
    file_name: str
    kind: MarkerKind


class Markers:
    """The markers of one write, cheap to make in tasks."""

    def __init__(self, storage: Storage, instant: InstantTime) -> None:
        self._storage = storage
        self._instant = instant
        self._folder = temp_folder(instant)
        self._seal = f"{self._folder}/.sealed"

    def create(self, partition_path: PartitionPath, file_name: str, kind: MarkerKind) -> None:
        """Mark a file before writing it; it may be marked twice."""
        with contextlib.suppress(AlreadyExistsError):
            self._storage.put_if_absent(self.path(partition_path, file_name, kind), b"")

    def path(self, partition_path: PartitionPath, file_name: str, kind: MarkerKind) -> str:
        """Where the marker of a file is."""
        name = f"{file_name}{_SIGN}{kind}"
        return join_path(self._folder, join_path(partition_path, name))

    def list(self) -> set[Marker]:
        """Return all markers of the write.

        A marker of a file that this write cannot have made is refused: markers decide what is
        deleted, and anybody who can write the table can leave one.
        """
        found = self._storage.list(self._folder, recursive=True)
        marked = (
            self._parse(status.path)
            for status in found
            if _SIGN in status.name  # other temporary files of the write lie here too
        )
        return {one for one in marked if one is not None}

    def seal(self) -> None:
        """Seal the write: no further file counts.

        A task looks for the seal after it has closed a file (:meth:`is_open`). So whichever comes
        first, the file of a lost attempt is deleted: by the committer, who lists the markers after
        the seal, or by the attempt itself.
        """
        with contextlib.suppress(AlreadyExistsError):
            self._storage.put_if_absent(self._seal, b"")

    def is_open(self) -> bool:
        """Whether files of the write may still count.

        It is neither sealed nor over.
        """
        alive = self._storage.head(heartbeat_path(self._instant)) is not None
        return alive and self._storage.head(self._seal) is None

    def delete_all(self) -> None:
        """Delete the markers and everything else in the write's temporary folder."""
        self._storage.delete_tree(self._folder)

    def _parse(self, path: str) -> Marker | None:
        """The marker of a path.

        ``None`` for one of a log of version 6, which has the name of its slice: its block counts
        for nothing, and blocks of others may be in it.
        """
        inner = path.removeprefix(f"{self._folder}/")
        partition_path, _, name = inner.rpartition("/")
        file_name, _, kind = name.rpartition(_SIGN)
        parsed = BaseFileName.parse(file_name) or LogFileName.parse(file_name)
        try:
            require_safe_path(inner)
            known = MarkerKind(kind)
        except (UnsafePathError, ValueError) as error:
            raise self._forged(path, "is not a marker") from error
        if isinstance(parsed, LogFileName) and parsed.instant < self._instant:
            return None
        if parsed is None or parsed.instant != self._instant:
            raise self._forged(path, f"marks a file that instant {self._instant} did not write")
        if partition_path.split("/", 1)[0] == ".hoodie":
            raise self._forged(path, "marks a file outside the table's data")
        return Marker(PartitionPath(partition_path), file_name, known)

    def _forged(self, path: str, reason: str) -> CorruptMetadataError:
        return CorruptMetadataError(
            f"{self._storage.root}/{path}",
            f"it {reason}",
            "Nothing was deleted. Remove the marker if it is not from a writer you trust.",
        )


# --- files of a write that count, for tasks in one process ----------------------------------------
# Tasks elsewhere ask the store after each file (:meth:`~hudi_core.txn.markers.Markers.is_open`): a
# seal says that the write takes no more files, and a missing heartbeat that another writer has
# rolled it back. Here memory says the former. The latter cannot have happened before the heart has
# missed a beat; then the store is asked as well.


class LocalAttempts:
    """The files that tasks of this process have marked."""

    def __init__(self, heartbeat: Heartbeat) -> None:
        self._heartbeat = heartbeat
        self._lock = threading.Lock()
        self._marked: dict[str, str] = {}
        self._flushes = Flushes()
        self._is_sealed = False

    def mark(self, path: str, marker: str) -> None:
        """Note a file whose marker is about to be put."""
        with self._lock:
            self._marked[path] = marker

    def seal(self) -> Mapping[str, str]:
        """Take no further file.

        Returns the markers of all files by the files' paths.

        A task asks :meth:`is_open` after it has closed a file. So whichever comes first, the file
        of a lost attempt is deleted: by the committer, or by the attempt itself.
        """
        with self._lock:
            self._is_sealed = True
            return dict(self._marked)

    def is_open(self, ask_store: Callable[[], bool]) -> bool:
        """Whether files of the write may still count."""
        with self._lock:
            if self._is_sealed:
                return False
        return self._heartbeat.is_fresh or ask_store()

    def flush(self, file: str) -> None:
        """Have a complete local file flushed while others are written."""
        with self._lock:
            if not self._is_sealed:  # else it is no file of the write
                self._flushes.add(file)

    def wait_for_flushes(self) -> None:
        """Wait until the files are on the disk."""
        self._flushes.wait()

    def end(self) -> None:
        """Take no further file, and flush none, as the write has failed."""
        self.seal()
        self._flushes.end()
