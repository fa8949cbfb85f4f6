"""What a writer says that waits for a lock."""

from __future__ import annotations

import logging
import threading
import time
from types import TracebackType
from typing import Final, Self

from hudi_core.engine.threads import start_thread
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
