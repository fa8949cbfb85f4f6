"""Flushes of a local disk, together or in the background.

Every flush waits for the journal of the file system, and those that wait together share one entry
of it: four data files and their folders take 35 ms one after the other, and 9 ms together.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace

from hudi_core.engine.base import translated as threads_translated
from hudi_core.model.protocols import Storage
from hudi_core.storage.disk import FLUSHES_AT_A_TIME, sync_file, translated
from hudi_core.storage.posix import PosixStorage
from hudi_core.storage.subfolder import SubfolderStorage


@contextmanager
def flushed_together(storage: Storage) -> Iterator[Storage]:
    """Flush at its end what the block puts, all together.

    The block gets the storage to put them in. After a power failure within the block a file may be
    there without its bytes: it is for files that nothing counts before a later one is there.
    """
    if isinstance(storage, PosixStorage):
        with storage.flushed_together() as later:
            yield later
    elif isinstance(storage, SubfolderStorage):
        with flushed_together(storage.whole) as whole:
            yield replace(storage, whole=whole)
    else:
        yield storage  # what an object store has taken it keeps


class Flushes:
    """Files that go to the disk while their writer goes on."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(FLUSHES_AT_A_TIME)
        self._running: dict[str, Future[None]] = {}

    def add(self, path: str) -> None:
        """Flush a file that is complete, and its name."""
        with threads_translated():
            self._running[path] = self._pool.submit(sync_file, path)

    def wait(self) -> None:
        """Wait until all of them are on the disk."""
        for path, flushed in self._running.items():
            # one that was deleted since is not needed
            with translated(path), suppress(FileNotFoundError):
                flushed.result()
        self._pool.shutdown()

    def end(self) -> None:
        """Give up flushes that have not begun, and end the threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)
