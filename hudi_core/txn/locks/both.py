"""Two locks held as one: the storage's and the catalog's."""

from __future__ import annotations

import time

from hudi_core.model.protocols import LockProvider
from hudi_core.txn.locks.waiting import owner_of


class BothLocks:
    """Held when both locks are.

    The holder of one of them excludes the holder of both.

    ``first`` is taken first and released last.
    """

    def __init__(self, first: LockProvider, second: LockProvider) -> None:
        self._first, self._second = first, second
        self._awaited = first

    def try_lock(self, timeout_s: float) -> bool:
        """Take both within ``timeout_s`` seconds, or none.

        ``False``, with none held, when one stays taken.
        """
        deadline = time.monotonic() + max(timeout_s, 0.0)
        self._awaited = self._first
        if not self._first.try_lock(timeout_s):
            return False
        taken = False
        self._awaited = self._second
        try:
            taken = self._second.try_lock(max(deadline - time.monotonic(), 0.0))
        finally:
            if not taken:
                self._first.unlock()
        return taken

    def unlock(self) -> None:
        """Give both back; no effect when they are not held."""
        try:
            self._second.unlock()
        finally:
            self._first.unlock()

    def owner(self) -> str | None:
        """Who held the one that was waited for last."""
        return owner_of(self._awaited)

    def lease_left(self) -> float:
        """Return the seconds until one of them may be taken by another."""
        return min(self._first.lease_left(), self._second.lease_left())

    @property
    def excludes_processes(self) -> bool:
        """Whether one of them excludes other processes."""
        return self._first.excludes_processes or self._second.excludes_processes
