"""A lock between the processes that share a file system."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import time
from typing import Final

import filelock

from hudi_core.errors import LockError
from hudi_core.storage.location import parse_location
from hudi_core.txn.locks.in_process import HeldLock, InProcessLock, canonical_path

_POLL_S: Final = 0.02


class FileLock(HeldLock[filelock.BaseFileLock]):
    """Excludes other processes by an OS lock on a file.

    The system gives the lock back when its holder ends, however it ends. The file itself stays: a
    lock file that is removed can be locked twice.

    ``folder`` is by default ``.hoodie/.locks`` of the table. It may serve many tables, as the name
    of the file is made from the table's path.
    """

    def __init__(self, base_path: str, folder: str | None = None) -> None:
        table = canonical_path(base_path)
        if folder is None:
            self._path = os.path.join(table, ".hoodie", ".locks", "table.lock")
        else:
            name = hashlib.sha256(table.encode("utf-8", "surrogateescape")).hexdigest()[:32]
            self._path = os.path.join(parse_location(folder).key, f"table-{name}.lock")
        # the system's lock alone would do, but threads are served faster without polling
        super().__init__(InProcessLock(self._path))

    @property
    def path(self) -> str:
        """Path of the lock file."""
        return self._path

    def lease_left(self) -> float:
        """Return infinity: the lock lasts as long as its holder."""
        return math.inf

    def owner(self) -> str | None:
        """The process that has the file locked; the file names none."""
        return f"the process of this machine that has {self._path} locked"

    def _give_back(self, held: filelock.BaseFileLock) -> None:
        held.release()

    def _wait(self, deadline: float, _: float) -> filelock.BaseFileLock | None:
        try:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            lock = filelock.FileLock(
                self._path,
                thread_local=False,
                poll_interval=_POLL_S,
                fallback_to_soft=False,
                preserve_lock_file=True,
            )
            with contextlib.suppress(filelock.Timeout):
                lock.acquire(timeout=max(deadline - time.monotonic(), 0.0))
                return lock
        except (OSError, NotImplementedError) as error:
            raise LockError(
                f"{self._path} cannot be locked: {error}",
                "Check the permissions. On a file system without locks, name a local folder that "
                "all writers share in hoodie.write.lock.filesystem.path.",
                path=self._path,
            ) from error
        return None
