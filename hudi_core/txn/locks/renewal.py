"""Leases, and the threads that renew them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from hudi_core.engine.base import start_thread
from hudi_core.errors import LockError, StorageError


class Renewal:
    """A lease that a thread renews.

    ``every_s`` is much less than ``lease_s``, so that some renewals may fail. ``renew`` returns
    ``False`` when another holder has the lock by now, and raises an error of the lock, or of a
    store, when that cannot be known.
    """

    def __init__(self, lease_s: float, every_s: float, renew: Callable[[], bool]) -> None:
        self._lease_s, self._every_s, self._renew = lease_s, every_s, renew
        self._ends = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="table-lock", daemon=True)

    def start(self, since: float) -> None:
        """Begin; the lease lasts since then, by the monotonic clock."""
        self._ends = since + self._lease_s
        start_thread(self._thread)

    def stop(self) -> None:
        """End the thread, and with it the lease."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def left(self) -> float:
        """Seconds until another may take the lock."""
        return max(0.0, self._ends - time.monotonic())

    def _run(self) -> None:
        while not self._stop.wait(self._every_s):
            # from before the call, which may take its time
            asked = time.monotonic()
            try:
                is_mine = self._renew()
            except (LockError, StorageError, OSError):
                continue  # the lease is long enough for a few of these
            self._ends = asked + self._lease_s if is_mine else 0.0
            if not is_mine:
                return
