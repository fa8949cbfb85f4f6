"""Signs of table services, where the lock keeps no process out.

A single writer on an object store holds a lock between its threads alone. A service of another
process (``hudi clean PATH``, ``Table.purge``) would change the timeline and the metadata table
beside it: so it shows a heartbeat of a kind of its own, and who takes the lock waits for that
to end. The service looks for writers after it has put its sign, and a writer for services after its
heartbeat began; so one of the two sees the other.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from hudi_core.errors import LockError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.instant_time import InstantTime
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn import heartbeat
from hudi_core.txn.heartbeat import SERVICE_SIGN

_PAUSE_S: Final = 0.5
_FIRST_WORD_S: Final = 2.0
_log = logging.getLogger(__name__)


class ServiceSigns:
    """Shows the sign of a service, and waits for those of others."""

    def __init__(self, client: TableMetaClient, interval_ms: int, misses: int) -> None:
        self._client = client
        self._interval_ms = interval_ms
        self._misses = misses

    def wait(self, timeout_s: float) -> None:
        """Wait until no service is at work."""
        self._wait(self._services, "a table service", time.monotonic() + timeout_s)

    @contextmanager
    def shown(self, timeout_s: float) -> Iterator[None]:
        """Show a sign for the length of the block."""
        deadline = time.monotonic() + timeout_s
        sign = self._alone(deadline)
        try:
            self._wait(self._ending_writers, "a writer", deadline)
            yield
        finally:
            sign.stop()

    def _alone(self, deadline: float) -> heartbeat.Heartbeat:
        """Show a sign when no other service has one."""
        while True:
            name = InstantTime(f"{self._client.clock.next_time(Timeline.of(()))}{SERVICE_SIGN}")
            sign = heartbeat.Heartbeat(self._client.scratch, name, self._interval_ms)
            sign.start()
            try:
                others = [one for one in self._services() if one != name]
            except BaseException:
                sign.stop()
                raise
            if not others:
                return sign
            # two came at once: both withdraw, and one is the first to come again
            sign.stop()
            time.sleep(random.uniform(0, _PAUSE_S))  # noqa: S311 - no secret
            self._wait(self._services, "a table service", deadline)

    def _wait(self, at_work: Callable[[], list[InstantTime]], who: str, deadline: float) -> None:
        started, has_warned = time.monotonic(), False
        while found := at_work():
            now = time.monotonic()
            if now >= deadline:
                begun = found[0].removesuffix(SERVICE_SIGN)
                raise LockError(
                    f"In another process {who} is at work on {self._client.base_path}, begun at "
                    f"{begun}, and the lock of this one does not keep other processes out",
                    "Run it again when that has ended, or give both the same "
                    "hoodie.write.lock.provider: they take turns then.",
                    instant=begun,
                    waited_s=round(now - started, 3),
                )
            if not has_warned and now - started > _FIRST_WORD_S:
                has_warned = True
                _log.warning("waiting for %s of another process, begun at %s", who, found[0])
            time.sleep(min(_PAUSE_S, max(deadline - now, 0.01)))

    def _services(self) -> list[InstantTime]:
        found = [InstantTime(one) for one in self._beating() if one.endswith(SERVICE_SIGN)]
        alive = [one for one in found if self._is_alive(one)]
        for dead in set(found).difference(alive):
            heartbeat.remove_heartbeat(self._client.storage, dead)
        return alive

    def _ending_writers(self) -> list[InstantTime]:
        """Writers that end: their instant is complete.

        Recovery knows the others.
        """
        found = [InstantTime(one) for one in self._beating() if not one.endswith(SERVICE_SIGN)]
        if not found:
            return []
        pending = {one.requested_time for one in self._client.timeline().pending()}
        return [one for one in found if one not in pending and self._is_alive(one)]

    def _is_alive(self, name: InstantTime) -> bool:
        return heartbeat.is_alive(self._client.storage, name, self._interval_ms, self._misses)

    def _beating(self) -> list[str]:
        return [one.name for one in self._client.storage.list(heartbeat.FOLDER)]
