"""Calls that change a local disk, one method each.

A store on a disk is made of these steps. Tests put a disk of their own in the place of this one, to
count the steps, to stop between two of them, or to leave one half done.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Final

from hudi_core.engine.base import thread_pool
from hudi_core.errors import PathNotFoundError, StorageError

FILE_MODE: Final = 0o666
"""Permissions of new files before the process's umask takes its share."""
FLUSHES_AT_A_TIME: Final = 8


class Disk:
    """The disk of this machine: absolute paths in, ``OSError`` out."""

    def make_folder(self, path: str) -> None:
        """Make one folder."""
        os.mkdir(path)

    def write_new(self, path: str, data: bytes, *, sync: bool) -> None:
        """Write a file that must not exist; ``sync`` flushes it."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with open_descriptor(path, flags) as descriptor:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            if sync:
                os.fsync(descriptor)

    def link(self, source: str, target: str) -> None:
        """Give a file a second name, which must not exist."""
        os.link(source, target)

    def replace(self, source: str, target: str) -> None:
        """Rename a file, over another one if there is one."""
        os.replace(source, target)

    def remove(self, path: str) -> None:
        """Remove a file or a symbolic link."""
        os.unlink(path)

    def remove_folder(self, path: str) -> None:
        """Remove an empty folder."""
        os.rmdir(path)

    def sync_folder(self, path: str) -> None:
        """Put a folder's entries on the disk."""
        with open_descriptor(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) as descriptor:
            try:
                os.fsync(descriptor)
            except OSError as error:
                # some network file systems cannot: their folders have nothing to lose
                if error.errno != errno.EINVAL:
                    raise

    def sync_all(self, paths: Collection[str]) -> None:
        """Flush files and folders, all at the same time."""

        def sync(path: str) -> None:
            return self.sync_folder(path) if os.path.isdir(path) else _sync(path)

        if len(paths) < 2:
            list(map(sync, paths))
            return
        # this thread takes one of them
        own, *others = paths
        with thread_pool(min(len(others), FLUSHES_AT_A_TIME)) as pool:
            flushed = pool.map(sync, others)
            sync(own)
            list(flushed)


def sync_file(path: str) -> None:
    """Flush a file that another library wrote, and its name."""
    _sync(path)
    Disk().sync_folder(os.path.dirname(path))


def _sync(path: str) -> None:
    with open_descriptor(path, os.O_RDONLY | os.O_CLOEXEC) as descriptor:
        os.fsync(descriptor)


@contextlib.contextmanager
def open_descriptor(path: str, flags: int) -> Iterator[int]:
    """Open a file for the length of the block."""
    descriptor = os.open(path, flags, FILE_MODE)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


# --- errors of the operating system as errors of the project --------------------------------------


_HINTS: Final = {
    errno.ENOSPC: "Free space on the disk and try again.",
    errno.EDQUOT: "The quota is used up: free space and try again.",
    errno.EACCES: "Check the permissions of the file and its folders.",
    errno.EPERM: "Check the permissions; a file system without hard links cannot hold a table.",
    errno.EROFS: "The file system is read-only: mount it for writing.",
    errno.ENOTDIR: "There is a file where a folder is needed: move it away.",
    errno.EIO: "The disk may be failing: check the system log.",
    errno.ENAMETOOLONG: "Use a shorter name.",
    errno.EMFILE: "Raise the limit on open files.",
    errno.ENOTSUP: "The file system cannot do this: use another one for tables.",
}
_DEFAULT_HINT: Final = "Check the disk and try again."


@contextmanager
def translated(location: str) -> Iterator[None]:
    """Translate OS errors of the block into the project's, for ``location``."""
    try:
        yield
    except FileNotFoundError as error:
        raise PathNotFoundError(location) from error
    except OSError as error:
        raise as_storage_error(location, error) from error


def as_storage_error(location: str, error: OSError) -> StorageError:
    """An error of the operating system about a file or folder."""
    number = error.errno or 0
    return StorageError(
        f"{location}: {error.strerror or error}",
        _HINTS.get(number, _DEFAULT_HINT),
        path=location,
        errno=number,
    )


# --- symbolic links on the way to a file ----------------------------------------------------------


def has_link(root: str, path: str) -> bool:
    """Whether a path below a folder is absolute or goes through links.

    A segment ``..`` counts as well.

    Only then the path can lead out of the folder, wherever that itself is. What is not there is no
    link.
    """
    if path.startswith("/"):
        return True
    full = root
    for segment in path.split("/"):
        if segment == "..":
            return True
        full = f"{full}/{segment}"
        try:
            if stat.S_ISLNK(os.lstat(full).st_mode):
                return True
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise as_storage_error(full, error) from error
        except UnicodeEncodeError as error:
            raise StorageError(
                f"{full!a} cannot be looked at: this process encodes names of files in "
                f"{sys.getfilesystemencoding()}",
                "Set PYTHONUTF8=1, or a locale with UTF-8, such as LC_ALL=C.UTF-8.",
                path=full,
            ) from error
    return False
