"""The lock between threads of a process, and the base of others."""

from __future__ import annotations

import math
import os
import threading
import time
import weakref
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Final, Generic, TypeVar

from hudi_core.storage.location import parse_location

H = TypeVar("H")


class _Mutex:
    """A lock that a weak dictionary can hold."""

    __slots__ = ("__weakref__", "lock")

    def __init__(self) -> None:
        self.lock = threading.Lock()


class _Mutexes:
    """One mutex per key, while anybody holds or awaits it."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._guard = threading.Lock()
        self._by_key: weakref.WeakValueDictionary[str, _Mutex] = weakref.WeakValueDictionary()

    def get(self, key: str) -> _Mutex:
        with self._guard:
            mutex = self._by_key.get(key)
            if mutex is None:
                mutex = self._by_key[key] = _Mutex()
            return mutex


_mutexes: Final = _Mutexes()
# the threads that hold the parent's mutexes do not exist in a forked child
os.register_at_fork(after_in_child=_mutexes.reset)


class InProcessLock:
    """Excludes the other threads of this process, whatever provider objects they use.

    The owner is the thread that took the lock through this very object. It cannot take it twice,
    and no other thread can give it back.

    Parameters
    ----------
    base_path
        The table. Different spellings of one local path are one lock.
    """

    def __init__(self, base_path: str) -> None:
        self._key = canonical_path(base_path)
        self._held: _Mutex | None = None
        self._owner: tuple[int, int] | None = None

    def try_lock(self, timeout_s: float) -> bool:
        """Take the lock within ``timeout_s`` seconds, else return ``False``.

        ``False`` as well if this lock is held already.
        """
        if self.is_held:
            return False
        mutex = _mutexes.get(self._key)
        if not mutex.lock.acquire(timeout=min(max(timeout_s, 0.0), threading.TIMEOUT_MAX)):
            return False
        self._held, self._owner = mutex, _me()
        return True

    def unlock(self) -> None:
        """Release the lock, if the calling thread holds it."""
        if self._held is None or not self.is_held:
            return
        mutex, self._held, self._owner = self._held, None, None
        mutex.lock.release()

    @property
    def is_held(self) -> bool:
        """Whether the calling thread holds the lock through this object."""
        return self._owner == _me()

    def lease_left(self) -> float:
        """Return infinity: the lock ends when it is given back."""
        return math.inf

    def owner(self) -> str | None:
        """Another thread, whatever it is."""
        return "another thread of this process"

    @property
    def excludes_processes(self) -> bool:
        """False: other processes do not see the lock."""
        return False


class HeldLock(ABC, Generic[H]):
    """A lock that excludes other processes, and is held by one thread.

    A :class:`~hudi_core.model.protocols.LockProvider`. ``threads`` is taken first: threads are
    served by it without asking the file system or a server for each.

    A subclass has ``_take``, one attempt, or ``_wait`` with a way of its own to wait, and
    ``_give_back``; a lock with a lease has ``_left`` as well. What these take or wait for is what
    ``_give_back`` and ``_left`` get.
    """

    first_pause_s: ClassVar[float] = 0.05
    longest_pause_s: ClassVar[float] = 1.0

    def __init__(self, threads: InProcessLock | HeldLock[Any]) -> None:
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
        if not self.is_held:
            return
        held, self._held = self._held, None
        try:
            if held is not None:
                self._give_back(held)
        finally:
            self._threads.unlock()

    @property
    def is_held(self) -> bool:
        """Whether the calling thread holds the lock through this object."""
        return self._threads.is_held

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


def canonical_path(base_path: str) -> str:
    """Return one string for all spellings of a table's path.

    As far as this machine can know them.
    """
    location = parse_location(base_path)
    if location.is_local:
        return os.path.realpath(location.key)
    return f"{location.kind}://{location.account or ''}@{location.bucket}/{location.key}"


def _me() -> tuple[int, int]:
    return os.getpid(), threading.get_ident()
