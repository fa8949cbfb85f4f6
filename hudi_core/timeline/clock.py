"""The clock that names instants.

Readers order instants by their times, so times must grow over all writers of a table: each new one
is greater than every requested and completion time on the timeline. Clocks of machines differ, and
those of most zones go back an hour in autumn; what makes the times grow is the table's lock, held
from asking for a time until the file that carries it exists.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from hudi_core.config.table_keys import TableKeys
from hudi_core.errors import TimelineError
from hudi_core.model.files import FileStatus
from hudi_core.model.instant import State
from hudi_core.model.instant_time import (
    SOLO_PREFIX,
    UTC_TIMELINE,
    InstantTime,
    TimelineZone,
    next_instant_time,
    to_epoch_millis,
)
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


class TimelineClock:
    """Hands out instant times for one timeline.

    ``now`` returns an aware datetime.
    """

    def __init__(
        self,
        active: ActiveTimeline,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
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


# --- the time zone that a timeline's files show ---------------------------------------------------
# A file of the timeline is stored right after its time was read off a clock. So the digits of its
# name, taken for UTC, are ahead of the store's own date of it by the offset of the writer's zone,
# less some seconds. Offsets are multiples of a quarter of an hour.
#
# Copies have later dates than their names, by whatever has passed. Two files distinguish them from
# originals, which were stored as far apart as their names are; copies were not.


_QUARTER: Final = 15 * 60_000
_EARLY, _LATE = 60_000, 300_000
"""Milliseconds by which a file may be stored before or after its name says: clocks of writer and
store differ, and writers are slow."""
_MOST: Final = 14 * 3_600_000 + _QUARTER
"""No zone is further from UTC."""
_APART: Final = 1_500
"""Milliseconds that must lie between two files which distinguish copies from originals."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLI: Final = timedelta(milliseconds=1)


def require_same_zone(active: ActiveTimeline, zone: TimelineZone) -> None:
    """Refuse a timeline whose newest files are of another zone.

    Times made in two zones are in the wrong order for hours: rows of the later write are lost to
    readers. A table that is declared to be in UTC is not checked; any other costs one listing.
    """
    if not zone.is_local:
        return
    evidence = newest_evidence(_stamps(active, active.storage.list(active.folder)))
    if evidence is None:
        return
    declared = zone.offset_at(evidence.made_at) // _MILLI
    if evidence.offset == declared:
        return
    where = f"{active.storage.root}/{active.folder}"
    raise TimelineError(
        f"The newest files of {where} were made by clocks at {_text(evidence.offset)}, such as "
        f"{evidence.name}, stored at {evidence.stored:%Y-%m-%d %H:%M:%S} UTC; the zone declared "
        f"for its instants is {zone}, then at {_text(declared)}",
        f"Name the zone of the table's other writers in {TableKeys.local_zone.key}, such as "
        "Asia/Tokyo; or let all of them run in this one. Where the files were copied with "
        "wrong dates, give all files of that folder the present date.",
        table=where,
        zone=str(zone),
        declared=_text(declared),
        found=_text(evidence.offset),
    )


@dataclass(frozen=True, slots=True)
class Stamp:
    """One file of a timeline.

    ``shown`` is the time of the digits of its name if they are UTC; both times are in milliseconds
    since the epoch.
    """

    shown: int
    stored_ms: int
    name: str
    is_completed: bool = True

    @property
    def offset(self) -> int | None:
        """Milliseconds that the writer's clock was ahead of UTC, if possible."""
        ahead = self.shown - self.stored_ms
        offset = (ahead + _LATE) // _QUARTER * _QUARTER
        return offset if offset - ahead >= -_EARLY and abs(offset) <= _MOST else None

    def confirms(self, other: Stamp) -> bool:
        """Whether names and dates of the two are equally far apart."""
        apart, stored_apart = self.shown - other.shown, self.stored_ms - other.stored_ms
        far_enough = abs(apart) >= _APART and abs(apart - stored_apart) <= abs(apart) // 2
        return far_enough and self.offset == other.offset


@dataclass(frozen=True, slots=True)
class Evidence:
    """The zone that a file shows of its writer.

    ``offset`` is the milliseconds that the zone was ahead of UTC, at ``made_at``.
    """

    offset: int
    made_at: datetime
    name: str
    stored: datetime


def newest_evidence(stamps: Sequence[Stamp]) -> Evidence | None:
    """The zone that the newest completed and confirmed file shows."""
    for one in sorted(stamps, key=lambda stamp: stamp.stored_ms, reverse=True):
        offset = one.offset
        if offset is not None and one.is_completed and any(map(one.confirms, stamps)):
            made_at, stored = one.shown - offset, one.stored_ms
            return Evidence(offset, _EPOCH + made_at * _MILLI, one.name, _EPOCH + stored * _MILLI)
    return None


def _stamps(active: ActiveTimeline, files: Iterable[FileStatus]) -> list[Stamp]:
    found = []
    for file in files:
        instant = active.parse(file.name)
        if instant is None or instant.state is State.INFLIGHT:
            continue  # an inflight file has no time of its own
        time = instant.completion_time or instant.requested_time
        if not time.startswith(SOLO_PREFIX):
            shown = to_epoch_millis(time)
            found.append(Stamp(shown, file.modified_ms, file.name, instant.is_completed))
    return found


def _text(offset: int) -> str:
    minutes = abs(offset) // 60_000
    return f"UTC{'-' if offset < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}"
