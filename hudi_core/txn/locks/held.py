"""The base of locks that are held by something: a file, a session, a lease."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from typing import ClassVar, Generic, Protocol, TypeVar

H = TypeVar("H")


class ThreadLock(Protocol):
    """The lock between threads that comes before the other one."""

    @property
    def is_held(self) -> bool: ...
    def try_lock(self, timeout_s: float) -> bool: ...
    def unlock(self) -> None: ...
    def owner(self) -> str | None: ...


class HeldLock(ABC, Generic[H]):
    """A lock that excludes other processes, and is held by one thread.

    A :class:`~hudi_core.model.protocols.LockProvider`. ``threads`` is taken first: threads are
    served by it without asking the file system or a server for each.
    """

    first_pause_s: ClassVar[float] = 0.05
    longest_pause_s: ClassVar[float] = 1.0

    def __init__(self, threads: ThreadLock) -> None:
        self._threads = threads
        self._held: H | None = None
        self._owner: str | None = None

    def try_lock(self, timeout_s: float) -> bool:
        """Take the lock within ``timeout_s`` seconds, else return ``False``.

        ``False`` as well if this lock is held already.
        """
        deadline = time.monotonic() + max(timeout_s, 0.0)
        if not self._threads.try_lock(timeout_s):
            self._owner = self._threads.owner()
            return False
        try:
            self._held = self._wait(deadline, timeout_s)
        finally:
            if self._held is None:
                self._threads.unlock()
        return self._held is not None

    def unlock(self) -> None:
        """Release the lock, if the calling thread holds it."""
        if not self._threads.is_held:
            return
        held, self._held = self._held, None
        try:
            if held is not None:
                self._give_back(held)
        finally:
            self._threads.unlock()

    def lease_left(self) -> float:
        """Seconds until another may take the lock; 0 when not held."""
        held = self._held
        return self._left(held) if held is not None else 0.0

    def owner(self) -> str | None:
        """Who held the lock when it was last waited for."""
        return self._owner

    @property
    def excludes_processes(self) -> bool:
        """True."""
        return True

    def _wait(self, deadline: float, _: float) -> H | None:
        """Try again and again, by default; ``None`` when the lock stays taken."""
        pause = self.first_pause_s
        while True:
            held = self._take()
            left = deadline - time.monotonic()
            if held is not None or left <= 0:
                return held
            time.sleep(min(pause, left))
            pause = min(2 * pause, self.longest_pause_s)

    def _take(self) -> H | None:
        """Take the lock if it is free now."""
        raise NotImplementedError

    @abstractmethod
    def _give_back(self, held: H) -> None: ...

    def _left(self, _: H) -> float:
        return math.inf
