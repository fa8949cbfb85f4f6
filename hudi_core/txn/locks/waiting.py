"""Waiting for a lock, and two locks held as one."""

from __future__ import annotations

import logging
import threading
import time
from types import TracebackType
from typing import Final, Self

from hudi_core.engine.base import start_thread
from hudi_core.model.protocols import LockProvider, NamesOwner

_FIRST_WORD_S: Final = 2.0
_LONGEST_SILENCE_S: Final = 60.0
_MAX_OWNER: Final = 300
_log = logging.getLogger(__name__)


class Waiting:
    """The wait for a lock, warned of now and then."""

    def __init__(self, provider: LockProvider) -> None:
        self._provider = provider
        self._started = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._warn, name="lock-wait", daemon=True)
        self.seconds = 0.0

    def __enter__(self) -> Self:
        start_thread(self._thread)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()
        self.seconds = time.monotonic() - self._started

    def _warn(self) -> None:
        pause = _FIRST_WORD_S
        while not self._ended.wait(pause):
            waited = time.monotonic() - self._started
            owner = owner_of(self._provider) or "another writer"
            _log.warning("waiting for the table's lock since %.0f s; held by %s", waited, owner)
            pause = min(2 * pause, _LONGEST_SILENCE_S)


def owner_of(provider: LockProvider) -> str | None:
    """Who holds a lock, where the lock says so.

    As text for a terminal: the holder of a lock may have written anything.
    """
    owner = provider.owner() if isinstance(provider, NamesOwner) else None
    if not owner:
        return None
    return "".join(one if one.isprintable() else "?" for one in owner[:_MAX_OWNER])


# --- two locks as one -----------------------------------------------------------------------------


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
