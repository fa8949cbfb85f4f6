"""The time zone of a timeline.

It turns digits of instants into timestamps, and back.

Apache Hudi writes the digits of an instant in UTC where the table says so, and else in the zone of
the writer's process, which the table does not name. Its classes convert as Java does: of an hour
that clocks show twice the first counts, and an hour that they skip is read by the offset before.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from hudi_core.model.instant_time import InstantTime, instant_time_of, to_datetime

_MILLI: Final = timedelta(milliseconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class TimelineZone:
    """The zone of one timeline.

    Attributes
    ----------
    name
        ``UTC``, a name of the tz database, or an offset such as ``+05:30``; ``None`` for the zone
        of this process where it has no such name.
    is_local
        Whether options declare it: the table stores none.
    """

    name: str | None
    is_local: bool = True

    def digits(self, when: datetime) -> InstantTime:
        """The instant time of a datetime, in the zone's local time.

        The datetime is aware; it is cut to milliseconds.
        """
        return instant_time_of(when.astimezone(self._rules()).replace(tzinfo=UTC))

    def utc_datetime(self, time: InstantTime) -> datetime:
        """The datetime, in UTC, of an instant time in local time."""
        shown = to_datetime(time).replace(tzinfo=None)
        return shown.replace(tzinfo=self._rules()).astimezone(UTC)

    def epoch_millis(self, time: InstantTime) -> int:
        """The milliseconds since the epoch of an instant time."""
        return (self.utc_datetime(time) - _EPOCH) // _MILLI

    def offset_at(self, when: datetime) -> timedelta:
        """The offset from UTC at an aware datetime."""
        return when.astimezone(self._rules()).utcoffset() or timedelta(0)

    def __str__(self) -> str:
        return self.name or "the zone of this process"

    def _rules(self) -> tzinfo | None:
        """Python's zone; ``None`` means that of the process."""
        if self.name is None:
            return None
        if self.name == "UTC":
            return UTC
        if self.name[0] not in "+-":
            return ZoneInfo(self.name)
        hours, minutes = int(self.name[1:3]), int(self.name[4:6])
        offset = timedelta(hours=hours, minutes=minutes)
        return timezone(-offset if self.name[0] == "-" else offset)


UTC_TIMELINE: Final = TimelineZone("UTC", is_local=False)
"""The zone of every table that this project creates."""
