"""The lock of one table, held by one thread at a time and entered again only by that thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from hudi_core.errors import LockError
from hudi_core.model.protocols import LockProvider


class TableLock:
    """Wraps a provider so that a transaction can nest what it does under the lock.

    Parameters
    ----------
    provider
        Excludes other threads and, where it can, other processes.
    timeout_s
        How long to wait for the lock, in seconds.
    """

    def __init__(self, provider: LockProvider, timeout_s: float) -> None:
        self._provider = provider
        self._timeout_s = timeout_s
        self._owner: int | None = None

    @property
    def excludes_processes(self) -> bool:
        """Whether writers of other processes are kept out as well."""
        return self._provider.excludes_processes

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock for the length of the block.

        Raises
        ------
        LockError
            Another writer kept the lock for longer than the timeout.
        """
        if self._owner == threading.get_ident():
            yield
            return
        if not self._provider.try_lock(self._timeout_s):
            raise LockError(
                f"The table's lock was not free within {self._timeout_s:g} s",
                "Another writer holds it; try again, or raise "
                "hoodie.write.lock.wait_time_ms.",
                timeout_s=self._timeout_s,
            )
        self._owner = threading.get_ident()
        try:
            yield
        finally:
            self._owner = None
            self._provider.unlock()


def table_lock(table: OpenTable, config: WriteConfig) -> TableLock:
    from hudi_core.txn.locks import DummyLock
    return TableLock(DummyLock(), 10)
