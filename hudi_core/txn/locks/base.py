"""The base of locks that other distributions provide."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping

from hudi_core.txn.locks.place import LockPlace


class BaseLockProvider(ABC):
    """A lock on one table.

    A :class:`~hudi_core.model.protocols.LockProvider`. One is made for each writer, in its process;
    it need not be reentrant, the table's own lock counts holds.

    Parameters
    ----------
    place
        The table: its path, its store and, if known, its name.
    options
        Options that begin with ``hoodie.write.lock.<name>.``, without that.
    """

    def __init__(self, place: LockPlace, options: Mapping[str, str]) -> None:
        self.place, self.options = place, options

    @abstractmethod
    def try_lock(self, timeout_s: float) -> bool:
        """Take the lock within ``timeout_s`` seconds; ``False`` when it stays taken.

        With 0 seconds it is tried once.
        """

    @abstractmethod
    def unlock(self) -> None:
        """Give the lock back; no effect when it is not held."""

    @property
    @abstractmethod
    def excludes_processes(self) -> bool:
        """Whether the lock excludes other processes, not just threads."""

    def lease_left(self) -> float:
        """Seconds until another may take the lock; ``inf`` without a lease.

        A write whose lease is about to expire is given up before it is completed.
        """
        return math.inf

    def owner(self) -> str | None:
        """Who held the lock when it was last waited for.

        ``None`` if not known. Completes the sentence "It is held by ...". Names no secret.
        """
        return None
