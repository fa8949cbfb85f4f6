"""The clock that names instants.

Readers order instants by their times, so times must grow over all writers of a table: each new one
is greater than every requested and completion time on the timeline. Clocks of machines differ; what
makes the times grow is the table's lock, held from asking for a time until the file that carries it
exists.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from hudi_core.errors import TimelineError
from hudi_core.model.instant_time import InstantTime, instant_time_of, next_instant_time
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.timeline import Timeline

MAX_AHEAD: Final = timedelta(days=1)
"""How far the newest time of a timeline may be ahead of this machine's clock.

Half of it covers timelines in local time (of other writers) that are ahead of UTC."""

_handed_out: Final[dict[str, InstantTime]] = {}
"""Newest time given to anybody in this process, by table timeline."""
_guard: Final = threading.Lock()


def _utc_now() -> datetime:
    return datetime.now(UTC)


class TimelineClock:
    """Hands out instant times for one timeline.

    Parameters
    ----------
    active
        The timeline.
    now
        Reads the machine's clock; returns an aware datetime.
    """

    def __init__(self, active: ActiveTimeline, now: Callable[[], datetime] = _utc_now) -> None:
        self._active = active
        self._now = now
        self._table = f"{active.storage.root}/{active.folder}"

    def next_time(self, timeline: Timeline | None = None) -> InstantTime:
        """Return a time greater than any on the timeline and any handed out by this process.

        **The caller holds the table's lock**, and keeps it until the file that carries the time
        exists; nothing else keeps another process from being handed the same time.

        Parameters
        ----------
        timeline
            The timeline, loaded under the same hold of the lock; by default it is loaded now.

        Raises
        ------
        TimelineError
            The newest time is more than a day ahead of this machine's clock: one of the two is
            wrong.
        """
        newest = (self._active.load() if timeline is None else timeline).latest_time()
        now = self._now()
        with _guard:
            given = _handed_out.get(self._table)
            after = max((time for time in (newest, given) if time is not None), default=None)
            if after is not None and after > instant_time_of(now + MAX_AHEAD):
                raise TimelineError(
                    f"The newest time of {self._table} is {after}, more than a day ahead of this "
                    f"machine's clock ({instant_time_of(now)})",
                    "Set the machine's clock right, or find the writer whose clock is wrong.",
                    newest=after,
                    now=instant_time_of(now),
                )
            time = next_instant_time(after, now)
            _handed_out[self._table] = time
            return time
