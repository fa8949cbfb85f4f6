"""Reads below a local folder; symbolic links must stay in it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from typing import Final

from hudi_core.errors import PathNotFoundError, UnsafePathError
from hudi_core.model.files import FileStatus, join_path
from hudi_core.model.protocols import Paths
from hudi_core.storage.disk import has_link, open_descriptor, translated
from hudi_core.storage.safe_path import (
    require_range,
    require_safe_folder,
    require_safe_path,
    require_size,
)

TEMPORARY_PREFIX: Final = ".hudi-tmp-"
"""Names that begin so are files half written; no listing shows them."""
# a named pipe in a table must not keep its reader waiting
_READ: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK


class PosixReader:
    """The part of a :class:`~hudi_core.model.protocols.Storage` that changes nothing."""

    def __init__(self, root: str) -> None:
        self._root = os.path.abspath(root)

    @property
    def root(self) -> str:
        """Absolute path of the folder."""
        return self._root

    def read(self, path: str, max_bytes: int | None = None) -> bytes:
        """Return a file's bytes.

        A file of more than ``max_bytes`` raises ``CorruptMetadataError``.
        """
        return self._read(require_safe_path(path), max_bytes)[0]

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return ``length`` bytes from ``offset`` on, or up to the end."""
        require_range(path, offset, length)
        with self._opened(require_safe_path(path)) as (descriptor, _):
            parts: list[bytes] = []
            while length and (part := os.pread(descriptor, length, offset)):
                parts.append(part)
                offset, length = offset + len(part), length - len(part)
            return b"".join(parts)

    def head(self, path: str) -> FileStatus | None:
        """Return size and time of a file; ``None`` when there is none."""
        full = self._below_root(require_safe_path(path))
        with translated(full):
            try:
                status = os.stat(full)
            except (FileNotFoundError, NotADirectoryError):
                return None
        return _file_status(path, status) if stat.S_ISREG(status.st_mode) else None

    def version(self, path: str) -> tuple[bytes, str]:
        """Return a file's bytes and the tag that :meth:`compare_and_set` takes."""
        data, status = self._read(require_safe_path(path), None)
        return data, tag_of(data, status)

    def list(
        self, prefix: str = "", recursive: bool = False, others: Paths | None = None
    ) -> Iterator[FileStatus]:
        """Yield the files below a folder by name.

        Temporary files are left out.

        With ``recursive``, links to folders are not followed, for they may lead in circles.

        A symbolic link that leaves the root raises ``UnsafePathError``.
        """
        return self._list(require_safe_folder(prefix), recursive, others)

    def list_names(self, folder: str, others: Paths | None = None) -> Sequence[str]:
        """Names of the files directly in a folder, sorted."""
        folder = require_safe_folder(folder)
        with translated(full := self._full(folder)):
            entries = self._scanned(folder, full)
            plain = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
            if len(plain) == len(entries):
                return sorted(plain)
            for entry in entries:
                if entry.is_symlink():
                    self._below_root(join_path(folder, entry.name))
            if others is not None:
                strays = sorted(entry.name for entry in entries if not entry.is_file())
                others += [join_path(folder, name) for name in strays]
            return sorted([entry.name for entry in entries if entry.is_file()])

    def list_folders(self, prefix: str = "") -> Sequence[str]:
        """Return the paths of the folders directly below a folder, sorted."""
        folder = require_safe_folder(prefix)
        with translated(self._full(folder)):
            return [path for path, entry in self._entries(folder) if self._is_folder(path, entry)]

    def _full(self, path: str) -> str:
        return os.path.join(self._root, path) if path else self._root

    def _below_root(self, path: str, full: str = "") -> str:
        """Return the full path; refuse one that symbolic links lead out."""
        full = full or self._full(path)
        if has_link(self._root, path):
            real = os.path.realpath(full)
            if not _is_below(real, os.path.realpath(self._root)):
                raise UnsafePathError(
                    full,
                    f"a symbolic link leads it to {real}, out of the table",
                    "Remove the link, or move what it points to into the table.",
                )
        return full

    def _read(self, path: str, max_bytes: int | None) -> tuple[bytes, os.stat_result]:
        with self._opened(path) as (descriptor, status):
            require_size(self._full(path), status.st_size, max_bytes)
            with open(descriptor, "rb", closefd=False) as file:
                return file.read(), status

    @contextlib.contextmanager
    def _opened(self, path: str) -> Iterator[tuple[int, os.stat_result]]:
        full = self._below_root(path)
        with translated(full):
            try:
                with open_descriptor(full, _READ) as descriptor:
                    status = os.fstat(descriptor)
                    if not stat.S_ISREG(status.st_mode):
                        raise PathNotFoundError(full)
                    yield descriptor, status
            except NotADirectoryError as error:
                raise PathNotFoundError(full) from error

    def _list(self, folder: str, recursive: bool, others: Paths | None) -> Iterator[FileStatus]:
        pending = [folder]
        while pending:
            current = pending.pop()
            found: list[FileStatus] = []
            below: list[str] = []
            strays: list[str] = []
            with translated(self._full(current)):
                for path, entry in self._entries(current):
                    is_plain = entry.is_file(follow_symlinks=False)
                    if not is_plain and self._is_folder(path, entry):
                        strays.append(path)
                        if not entry.is_symlink():
                            below.append(path)
                        continue
                    try:
                        status = entry.stat()
                    except FileNotFoundError:  # deleted since, if it is no link
                        strays += [path] * entry.is_symlink()
                        continue
                    if is_plain or stat.S_ISREG(status.st_mode):
                        found.append(_file_status(path, status))
                    else:
                        strays.append(path)
            if others is not None:
                others += strays
            yield from found
            if recursive:
                pending += reversed(below)

    def _entries(self, folder: str) -> Sequence[tuple[str, os.DirEntry[str]]]:
        start = f"{folder}/" if folder else ""
        return sorted([(start + entry.name, entry) for entry in self._scanned(folder)])

    def _scanned(self, folder: str, full: str = "") -> Sequence[os.DirEntry[str]]:
        full = self._below_root(folder, full)
        try:
            with os.scandir(full) as entries:
                return [one for one in entries if not one.name.startswith(TEMPORARY_PREFIX)]
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _is_folder(self, path: str, entry: os.DirEntry[str]) -> bool:
        if entry.is_symlink():
            self._below_root(path)
        return entry.is_dir()


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _file_status(path: str, status: os.stat_result) -> FileStatus:
    return FileStatus(path, status.st_size, status.st_mtime_ns // 1_000_000)


def tag_of(data: bytes, status: os.stat_result) -> str:
    """Identity of this version of a file."""
    # the file's identity too: bytes that came, went and came back are another version
    digest = hashlib.sha256(data).hexdigest()[:32]
    return f"{status.st_ino:x}.{status.st_mtime_ns:x}.{digest}"
