"""A subfolder as a storage: a table within a table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from hudi_core.model.files import FileStatus, join_path
from hudi_core.model.protocols import Paths, Storage
from hudi_core.storage.safe_path import require_safe_path

_NO_FOLDER: Final = ""


class FilesElsewhere(ABC):
    """Operations on one file of a storage that passes them on."""

    @abstractmethod
    def at(self, path: str) -> tuple[Storage, str]:
        """Where a file is: its storage, and its path there."""

    def read(self, path: str, max_bytes: int | None = None) -> bytes:
        """Return a file's bytes."""
        storage, own = self.at(path)
        return storage.read(own, max_bytes)

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return a part of a file's bytes."""
        storage, own = self.at(path)
        return storage.read_range(own, offset, length)

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create a file atomically; AlreadyExistsError when there is one."""
        storage, own = self.at(path)
        storage.put_if_absent(own, data)

    def put(self, path: str, data: bytes) -> None:
        """Create or replace a file atomically."""
        storage, own = self.at(path)
        storage.put(own, data)

    def head(self, path: str) -> FileStatus | None:
        """Return size and time of a file; ``None`` when there is none."""
        storage, own = self.at(path)
        found = storage.head(own)
        return None if found is None else FileStatus(path, found.size, found.modified_ms)

    def version(self, path: str) -> tuple[bytes, str]:
        """Return a file's bytes and the tag that changes whenever they do."""
        storage, own = self.at(path)
        return storage.version(own)

    def compare_and_set(self, path: str, data: bytes, expected: str | None) -> str:
        """Replace a file if its tag is still ``expected``."""
        storage, own = self.at(path)
        return storage.compare_and_set(own, data, expected)

    def delete(self, path: str) -> bool:
        """Delete a file; ``False`` when there was none."""
        storage, own = self.at(path)
        return storage.delete(own)


@dataclass(frozen=True)
class SubfolderStorage(FilesElsewhere):
    """The :class:`~hudi_core.model.protocols.Storage` of a folder of another one.

    Paths are relative to the folder and never leave it.
    """

    whole: Storage
    folder: str

    @property
    def root(self) -> str:
        """Path or URI of the folder."""
        return f"{self.whole.root}/{self.folder}"

    def list(
        self, prefix: str = "", recursive: bool = False, others: Paths | None = None
    ) -> Iterator[FileStatus]:
        """Yield the files below a folder of this one."""
        strays: Paths = []
        found = self.whole.list(self._in_whole(prefix), recursive, strays)
        return self._own_files(found, strays, others)

    def list_names(self, folder: str, others: Paths | None = None) -> Sequence[str]:
        """Names of the files directly in a folder of this one, sorted."""
        strays: Paths = []
        names = self.whole.list_names(self._in_whole(folder), strays)
        if others is not None:
            others += [path[len(self.folder) + 1 :] for path in strays]
        return names

    def list_folders(self, prefix: str = "") -> Sequence[str]:
        """Return the paths of the folders directly below a folder, sorted."""
        cut = len(self.folder) + 1
        return [path[cut:] for path in self.whole.list_folders(self._in_whole(prefix))]

    def discard(self, paths: Sequence[str]) -> None:
        """Delete files, whether they are there or not."""
        self.whole.discard([self._in_whole(path) for path in paths])

    def delete_tree(self, prefix: str) -> int:
        """Delete everything below a folder; return the number of files deleted."""
        return self.whole.delete_tree(self._in_whole(prefix))

    def at(self, path: str) -> tuple[Storage, str]:
        """Where a file is: its storage, and its path there."""
        return self.whole, self._in_whole(path)

    def _in_whole(self, path: str) -> str:
        if path == _NO_FOLDER:
            return self.folder
        require_safe_path(path)
        return join_path(self.folder, path)

    def _own_files(
        self, found: Iterator[FileStatus], strays: Paths, others: Paths | None
    ) -> Iterator[FileStatus]:
        cut = len(self.folder) + 1
        for status in found:
            yield FileStatus(status.path[cut:], status.size, status.modified_ms)
        if others is not None:
            others += [path[len(self.folder) + 1 :] for path in strays]
