"""Calls that change a local disk, one method each.

A store on a disk is made of these steps. Tests put a disk of their own in the place of this one, to
count the steps, to stop between two of them, or to leave one half done.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Collection, Iterator
from typing import Final

from hudi_core.engine.threads import thread_pool

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
        """Flush files, and put entries of folders on the disk, all at the same time."""

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
    for each in (path, os.path.dirname(path)):
        _sync(each)


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
