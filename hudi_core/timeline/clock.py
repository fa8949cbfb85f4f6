"""The clock that names instants.

Readers order instants by their times, so times must grow over all writers of a table: each new one
is greater than every requested and completion time on the timeline. Clocks of machines differ, and
those of most zones go back an hour in autumn; what makes the times grow is the table's lock, held
from asking for a time until the file that carries it exists.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from hudi_core.config.table_keys import TableKeys
from hudi_core.errors import TimelineError
from hudi_core.model.instant_time import UTC_TIMELINE, InstantTime, TimelineZone, next_instant_time
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.timeline import Timeline

MAX_AHEAD: Final = timedelta(days=1)
"""How far the newest time of a timeline may be ahead of this machine's clock."""
LOCAL_MAX_AHEAD: Final = timedelta(hours=2)
"""The same of a timeline in local time: no change of clocks is greater, and what is further ahead
was made in a zone further east."""

_handed_out: Final[dict[str, InstantTime]] = {}
"""Newest time given to anybody in this process, by table timeline."""
_guard: Final = threading.Lock()


def _utc_now() -> datetime:
    return datetime.now(UTC)


class TimelineClock:
    """Hands out instant times for one timeline.

    ``now`` returns an aware datetime.
    """

    def __init__(
        self,
        active: ActiveTimeline,
        now: Callable[[], datetime] = _utc_now,
        zone: TimelineZone = UTC_TIMELINE,
    ) -> None:
        self._active = active
        self._now = now
        self._zone = zone
        self._table = f"{active.storage.root}/{active.folder}"

    def next_time(self, *timelines: Timeline) -> InstantTime:
        """Return a time greater than all used so far.

        Greater than any on the timeline and any that this process has handed out.

        **The caller holds the table's lock**, and keeps it until the file that carries the time
        exists; nothing else keeps another process from being handed the same time.

        ``timelines`` are loaded under the same hold of the lock, by default now; further ones may
        be given whose times count. A newest time more than a day ahead of this machine's clock (two
        hours for a timeline in local time) is refused: one of the two is wrong.
        """
        used = [one.latest_time() for one in timelines or (self._active.load(),)]
        now, zone = self._now(), self._zone
        with _guard:
            given = _handed_out.get(self._table)
            after = max((time for time in (*used, given) if time is not None), default=None)
            ahead = LOCAL_MAX_AHEAD if zone.is_local else MAX_AHEAD
            if after is not None and after > zone.digits(now + ahead):
                raise self._too_far_ahead(after, now)
            time = next_instant_time(after, zone.digits(now))
            _handed_out[self._table] = time
            return time

    def _too_far_ahead(self, newest: InstantTime, now: datetime) -> TimelineError:
        shown = self._zone.digits(now)
        far, hint = "more than a day", ""
        if self._zone.is_local:
            far = "more than two hours"
            hint = f"Name the zone of its other writers in {TableKeys.local_zone.key}; or else s"
        return TimelineError(
            f"The newest time of {self._table} is {newest}, {far} ahead of this machine's clock "
            f"({shown} in {self._zone})",
            f"{hint or 'S'}et the machine's clock right, or find the writer whose clock is wrong.",
            newest=newest,
            now=shown,
        )
