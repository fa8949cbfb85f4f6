"""Instant times: the clock readings that name everything on a timeline.

An instant time is 17 digits, ``yyyyMMddHHmmssSSS``, in the timeline's time zone: UTC for every
table this project creates, see :class:`TimelineZone` for others. Text order is time order. Tables
of earlier Hudi releases hold 14-digit times (whole seconds). Their metadata tables
hold times of 20 and 23 digits: that of the table's instant, with a suffix for a compaction, a clean
or a rollback. They are read, never written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Final, NewType
from zoneinfo import ZoneInfo

from hudi_core.errors import InvalidInstantTimeError

InstantTime = NewType("InstantTime", str)
"""A validated instant time."""

DIGITS: Final = r"[0-9]{14}(?:[0-9]{3}){0,3}"
"""Pattern of the digits of an instant time."""
_DIGITS: Final = re.compile(DIGITS)
_LENGTH: Final = 17
SOLO_PREFIX: Final = "00000000000000"
"""First 14 digits of the metadata table's bootstrap instants, which are not dates."""

EARLIEST: Final = InstantTime(SOLO_PREFIX + "000")
"""A time before that of any write."""
_MAX_KNOWN: Final = 8192
_WHOLE_SECONDS: Final = re.compile(r"[T ][0-9]{2}:?[0-9]{2}:?[0-9]{2}(Z|[+-][0-9:]+)?$", re.ASCII)


# a table has far fewer instants than files, each of which is named after one
@lru_cache(_MAX_KNOWN)
def parse_instant_time(text: str) -> InstantTime:
    """Return ``text`` as an instant time.

    Parameters
    ----------
    text
        ASCII digits that spell a real date and time, and in metadata tables a suffix, or a
        bootstrap instant of one.

    Raises
    ------
    InvalidInstantTimeError
        Anything else, with the reason.
    """
    if not _DIGITS.fullmatch(text):
        raise InvalidInstantTimeError(text, "it is not 14, 17, 20 or 23 digits")
    if not text.startswith(SOLO_PREFIX):
        _to_datetime(text)
    return InstantTime(text)


def has_suffix(text: str) -> bool:
    """Whether Hudi derived an instant time, before table version 8."""
    return len(text) > _LENGTH


def instant_time_of(when: datetime) -> InstantTime:
    """Return the instant time of an aware datetime, in UTC milliseconds.

    Fractions of a millisecond are cut off.
    """
    when = when.astimezone(UTC)
    return InstantTime(when.strftime("%Y%m%d%H%M%S") + f"{when.microsecond // 1000:03d}")


def to_datetime(time: InstantTime) -> datetime:
    """Return an instant time of a UTC timeline as a datetime."""
    return _to_datetime(time)


def _to_datetime(text: str) -> datetime:
    try:
        whole = datetime.strptime(text[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError as error:
        raise InvalidInstantTimeError(text, "its digits are not a date and time") from error
    return whole + timedelta(milliseconds=int(text[14:17] or 0))


def just_before(time: InstantTime) -> InstantTime:
    """Return a bound that ``time`` is after, and nothing earlier."""
    return InstantTime(f"{int(time) - 1:0{len(time)}}")


def to_epoch_millis(time: InstantTime) -> int:
    """Return an instant time as milliseconds since the epoch, in UTC."""
    return round(to_datetime(time).timestamp() * 1000)


def next_instant_time(after: InstantTime | None, now: InstantTime) -> InstantTime:
    """Return the earliest instant time from ``now`` on that follows ``after``."""
    if after is None or now > after:
        return now
    return instant_time_of(to_datetime(after) + timedelta(milliseconds=1))


def parse_query_time(text: str, *, end_of_second: bool = False) -> InstantTime | datetime:
    """The instant time or the aware datetime in a string.

    A datetime is an RFC 3339 date and time with a zone, or seconds or milliseconds since the epoch
    (10 or 13 digits). All else is in the timeline's zone, whichever that is: 17 or 14 digits, a
    date ``yyyy-MM-dd`` (its begin), a date and time without a zone; 14 digits come before all times
    of 17 that begin with them.

    Parameters
    ----------
    end_of_second
        Whether a date and time of whole seconds means the last millisecond of that second, as in
        Hudi where a time is the end of a range.

    Raises
    ------
    InvalidInstantTimeError
        The text is none of these.
    """
    text = text.strip()
    if _DIGITS.fullmatch(text):
        return parse_instant_time(text)
    if re.fullmatch(r"[0-9]{10}|[0-9]{13}", text):
        seconds = int(text) / (1000 if len(text) == 13 else 1)
        return datetime.fromtimestamp(seconds, UTC)
    try:
        when = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInstantTimeError(text, "no known form of a time") from error
    if end_of_second and _WHOLE_SECONDS.search(text):
        when += timedelta(milliseconds=999)
    return when if when.tzinfo else instant_time_of(when.replace(tzinfo=UTC))


# --- the time zone of a timeline ------------------------------------------------------------------
# It turns digits of instants into timestamps, and back.
#
# Apache Hudi writes the digits of an instant in UTC where the table says so, and else in the zone
# of the writer's process, which the table does not name. Its classes convert as Java does: of an
# hour that clocks show twice the first counts, and an hour that they skip is read by the offset
# before.


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
