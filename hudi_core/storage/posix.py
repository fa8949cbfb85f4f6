"""Metadata files on local paths: atomic by link and rename, flushed.

A new file is written under a hidden name in its own folder, flushed, and given its name by ``link``
(which refuses a name that is taken) or ``rename`` (which replaces). Readers see all of it or
nothing.

Where Java has written the file before, its checksum lies beside it: see
:mod:`hudi_core.storage.hadoop_checksums`.
"""

from __future__ import annotations

import contextlib
import copy
import errno
import fcntl
import os
import uuid
from collections.abc import Iterator, Sequence
from typing import Final, Self

from hudi_core.errors import (
    AlreadyExistsError,
    PathNotFoundError,
    PreconditionFailedError,
    StorageError,
)
from hudi_core.storage.disk import Disk, open_descriptor, translated
from hudi_core.storage.hadoop_checksums import checksum_path
from hudi_core.storage.posix_reader import TEMPORARY_PREFIX, PosixReader, tag_of
from hudi_core.storage.safe_path import require_safe_path

_ATTEMPTS: Final = 8
_NO_FOLDER_LOCKS: Final = frozenset(
    {errno.EBADF, errno.ENOLCK, errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}
)


class PosixStorage(PosixReader):
    """The :class:`~hudi_core.model.protocols.Storage` of a local folder.

    Cheap to make and picklable: executors make their own. Symbolic links are followed only where
    they stay below the root.

    The folder need not exist. ``fsync``: what is written survives a power failure; it survives a
    crash of the process in any case. ``disk`` does every change; see :mod:`hudi_core.storage.disk`.
    """

    def __init__(self, root: str, fsync: bool = True, disk: Disk | None = None) -> None:
        super().__init__(root)
        self._fsync = fsync
        self._disk = disk or Disk()
        self._later: dict[str, None] | None = None

    @contextlib.contextmanager
    def flushed_together(self) -> Iterator[Self]:
        """Flush what the block puts if absent at its end; see :mod:`hudi_core.storage.flushing`."""
        later = copy.copy(self)
        unflushed: dict[str, None] = {}
        later._later = unflushed
        yield later
        if self._fsync:
            with translated(self.root):
                self._disk.sync_all(unflushed)

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create a file atomically; AlreadyExistsError when there is one."""
        full = self._for_change(path)
        # of an empty file there is nothing to flush but its name
        sync = bool(data) and self._later is None
        with translated(full), self._written(full, data, sync=sync) as temporary:
            self._name(temporary, full)
        if data and self._later is not None:
            self._later[full] = None

    def put(self, path: str, data: bytes) -> None:
        """Create or replace a file atomically."""
        full = self._for_change(path)
        with (
            translated(full),
            self._written(full, data) as temporary,
            self._folder_locked(full, must=False),
        ):
            self._replace(temporary, full)

    def compare_and_set(self, path: str, data: bytes, expected: str | None) -> str:
        """Replace a file if its tag is still ``expected``, atomically.

        ``expected`` is ``None`` where the file must not exist. A file system without locks raises
        ``StorageError``.
        """
        full = self._for_change(path)
        with (
            translated(full),
            self._written(full, data) as temporary,
            self._folder_locked(full, must=True),
        ):
            tag = tag_of(data, os.stat(temporary))
            if expected is None:
                try:
                    self._name(temporary, full)
                except AlreadyExistsError as error:
                    raise PreconditionFailedError(full) from error
                return tag
            try:
                found = self.version(path)[1]
            except PathNotFoundError as error:
                raise PreconditionFailedError(full) from error
            if found != expected:
                raise PreconditionFailedError(full)
            self._replace(temporary, full)
            return tag

    def link(self, source: str, target: str) -> None:
        """Give a file a second name, unless it has that already.

        Disks alone have this: a store of objects has one name for each.
        """
        old, new = self._for_change(source), self._for_change(target)
        with translated(old):
            self._make_folders(os.path.dirname(new))
            self._forget_lost_checksum(new)
            try:
                self._disk.link(old, new)
            except FileExistsError as error:
                if not os.path.samefile(old, new):
                    raise AlreadyExistsError(new) from error
            self._sync(os.path.dirname(new))

    def delete(self, path: str) -> bool:
        """Delete a file or symbolic link; ``False`` without one."""
        full = self._for_change(path)
        with translated(full):
            try:
                with self._folder_locked(full, must=False):
                    self._forget_checksum(full)
                    self._disk.remove(full)
                    self._sync(os.path.dirname(full))
            except (FileNotFoundError, NotADirectoryError):
                return False
        return True

    def discard(self, paths: Sequence[str]) -> None:
        """Delete files, whether they are there or not."""
        for path in paths:
            self.delete(path)

    def delete_tree(self, prefix: str) -> int:
        """Delete a folder and everything in it; return the file count.

        Symbolic links are removed, never followed. What others delete meanwhile does not matter; a
        folder that others keep filling is an error.
        """
        full = self._for_change(prefix)
        removed: set[str] = set()
        with translated(full):
            if not os.path.isdir(full) or os.path.islink(full):
                return 0
            for _ in range(_ATTEMPTS):
                try:
                    self._empty(full, removed)
                    self._disk.remove_folder(full)
                    self._sync(os.path.dirname(full))
                except FileNotFoundError:
                    return len(removed)  # another process deleted it too
                except OSError as error:
                    if error.errno != errno.ENOTEMPTY:
                        raise
                else:
                    return len(removed)
        raise StorageError(
            f"{full} could not be emptied, because files keep being written to it",
            "Stop the process that writes them and try again.",
            path=full,
        )

    def _for_change(self, path: str) -> str:
        # the last segment may be a link: it is replaced or removed itself, never followed
        path = require_safe_path(path)
        self._below_root(path.rpartition("/")[0])
        return self._full(path)

    @contextlib.contextmanager
    def _written(self, full: str, data: bytes, *, sync: bool = True) -> Iterator[str]:
        """Write a temporary file beside ``full``; it is gone after the block."""
        folder = os.path.dirname(full)
        temporary = f"{folder}/{TEMPORARY_PREFIX}{uuid.uuid4().hex}"
        try:
            for attempt in range(_ATTEMPTS):
                try:
                    self._disk.write_new(temporary, data, sync=sync and self._fsync)
                    break
                except FileNotFoundError:
                    # the folder is not there yet, or was deleted since it was made
                    if attempt == _ATTEMPTS - 1:
                        raise
                    self._make_folders(folder)
            yield temporary
        finally:
            # what is left of it when this fails no reader sees; the put itself has happened or not
            if os.path.lexists(temporary):
                with contextlib.suppress(OSError):
                    self._disk.remove(temporary)

    def _make_folders(self, folder: str) -> None:
        missing = []
        while not os.path.isdir(folder):
            missing.append(folder)
            folder = os.path.dirname(folder)
        for path in reversed(missing):
            with contextlib.suppress(FileExistsError):
                self._disk.make_folder(path)
            self._sync(os.path.dirname(path))

    def _name(self, temporary: str, full: str) -> None:
        """Give a temporary file a name that must not be taken."""
        self._forget_lost_checksum(full)
        try:
            self._disk.link(temporary, full)
        except FileExistsError as error:
            # over NFS the answer to a link that succeeded may be lost, and its repetition find the
            # name taken: two names of the temporary file show that it is ours
            if os.stat(temporary).st_nlink != 2:
                raise AlreadyExistsError(full) from error
        self._sync(os.path.dirname(full))

    def _replace(self, temporary: str, full: str) -> None:
        self._forget_checksum(full)
        self._disk.replace(temporary, full)
        self._sync(os.path.dirname(full))

    def _forget_checksum(self, full: str) -> None:
        """Remove what Hadoop checks a file by that is about to change.

        Before the change, and for good: Hadoop reads a file without a checksum, and none that is
        not as its checksum says. It opens the file first, so that a reader meanwhile has the old
        file with its checksum, or a file without.
        """
        checksum = checksum_path(full)
        if os.path.lexists(checksum):
            with contextlib.suppress(FileNotFoundError):
                self._disk.remove(checksum)
            if self._fsync:
                self._disk.sync_folder(os.path.dirname(full))

    def _forget_lost_checksum(self, full: str) -> None:
        """Delete an orphaned checksum file before its name is used again."""
        if not os.path.lexists(full):
            self._forget_checksum(full)

    def _sync(self, folder: str) -> None:
        if self._later is not None:
            self._later[folder] = None
        elif self._fsync:
            self._disk.sync_folder(folder)

    @contextlib.contextmanager
    def _folder_locked(self, full: str, *, must: bool) -> Iterator[None]:
        """Keep others from replacing or deleting files of the folder of ``full``.

        ``compare_and_set`` cannot do without; for the others it only keeps a compare_and_set
        atomic.
        """
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        with open_descriptor(os.path.dirname(full), flags) as descriptor:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            except OSError as error:
                if must or error.errno not in _NO_FOLDER_LOCKS:
                    raise
            try:
                yield
            finally:
                # not by closing alone: a process forked meanwhile has a copy of the descriptor
                with contextlib.suppress(OSError):
                    fcntl.flock(descriptor, fcntl.LOCK_UN)

    def _empty(self, top: str, removed: set[str]) -> None:
        """Remove everything below a folder; note the files in ``removed``."""
        folders, pending = [], [top]
        while pending:
            current = pending.pop()
            folders.append(current)
            with os.scandir(current) as entries:
                # in one order everywhere, so a death at one step finds the same files gone
                found = sorted(entries, key=lambda entry: entry.name)
            for entry in found:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                    continue
                with contextlib.suppress(FileNotFoundError):
                    self._disk.remove(entry.path)
                    if not entry.name.startswith(TEMPORARY_PREFIX):
                        removed.add(entry.path)
        for folder in reversed(folders[1:]):
            with contextlib.suppress(FileNotFoundError):
                self._disk.remove_folder(folder)
