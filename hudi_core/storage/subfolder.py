"""A subfolder as a storage: a table within a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from hudi_core.model.files import FileStatus, join_path
from hudi_core.model.protocols import Paths, Storage
from hudi_core.storage.safe_path import require_safe_path

_NO_FOLDER: Final = ""


@dataclass(frozen=True)
class SubfolderStorage:
    """The :class:`~hudi_core.model.protocols.Storage` of a folder of another one.

    Paths are relative to the folder and never leave it.
    """

    whole: Storage
    folder: str

    @property
    def root(self) -> str:
        """Path or URI of the folder."""
        return f"{self.whole.root}/{self.folder}"

    def read(self, path: str, max_bytes: int | None = None) -> bytes:
        """Return a file's bytes."""
        return self.whole.read(self._in_whole(path), max_bytes)

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return a part of a file's bytes."""
        return self.whole.read_range(self._in_whole(path), offset, length)

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create a file atomically; AlreadyExistsError when there is one."""
        self.whole.put_if_absent(self._in_whole(path), data)

    def put(self, path: str, data: bytes) -> None:
        """Create or replace a file atomically."""
        self.whole.put(self._in_whole(path), data)

    def head(self, path: str) -> FileStatus | None:
        """Return size and time of a file; ``None`` when there is none."""
        status = self.whole.head(self._in_whole(path))
        return None if status is None else self._own(status)

    def version(self, path: str) -> tuple[bytes, str]:
        """Return a file's bytes and the tag that changes whenever they do."""
        return self.whole.version(self._in_whole(path))

    def compare_and_set(self, path: str, data: bytes, expected: str | None) -> str:
        """Replace a file if its tag is still ``expected``."""
        return self.whole.compare_and_set(self._in_whole(path), data, expected)

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

    def delete(self, path: str) -> bool:
        """Delete a file; ``False`` when there was none."""
        return self.whole.delete(self._in_whole(path))

    def discard(self, paths: Sequence[str]) -> None:
        """Delete files, whether they are there or not."""
        self.whole.discard([self._in_whole(path) for path in paths])

    def delete_tree(self, prefix: str) -> int:
        """Delete everything below a folder; return the number of files deleted."""
        return self.whole.delete_tree(self._in_whole(prefix))

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

    def _own(self, status: FileStatus) -> FileStatus:
        return FileStatus(status.path[len(self.folder) + 1 :], status.size, status.modified_ms)
