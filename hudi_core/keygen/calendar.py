"""Local times formatted by a pattern, and the periods of such strings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_core.keygen.zones import Millis
from hudi_core.model.date_pattern import DateField, DatePattern

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_SHORT: Final = 3
"""Letters of a short name."""
_NUMBERS: Final[Mapping[str, Callable[[datetime], int]]] = {
    "y": lambda local: local.year,
    "Y": lambda local: local.year,
    "x": lambda local: local.isocalendar().year,
    "M": lambda local: local.month,
    "d": lambda local: local.day,
    "D": lambda local: local.timetuple().tm_yday,
    "e": lambda local: local.isoweekday(),
    "w": lambda local: local.isocalendar().week,
    "H": lambda local: local.hour,
    "k": lambda local: local.hour or 24,
    "K": lambda local: local.hour % 12,
    "h": lambda local: local.hour % 12 or 12,
    "m": lambda local: local.minute,
    "s": lambda local: local.second,
}
FIRST: Final = -62_135_596_800_000
"""Milliseconds of the first moment of the year 1."""
LAST: Final = 253_402_300_799_999
"""And of the last one of the year 9999."""


_CYCLE_YEARS: Final = 400
_CYCLE: Final = 146_097 * 86_400_000
"""Milliseconds after which the calendar, with its weeks, begins again."""


def spell(local: datetime, pattern: DatePattern, later: int = 0) -> str:
    """A local time as a string; its ``tzinfo`` is the printed offset.

    The year is ``later`` years later, a multiple of 400, so that the calendar is the same.
    """
    return "".join(
        token if isinstance(token, str) else _field(local, token, later) for token in pattern.tokens
    )


def spell_all(local: Millis, pattern: DatePattern) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Return the string index of each timestamp, and the strings.

    Some of the strings may be equal.

    Only timestamps that the pattern distinguishes are formatted.
    """
    coded = pa.array(_periods(local, pattern.grain)).dictionary_encode()
    starts = _starts(coded.dictionary.to_numpy(), pattern.grain).tolist()
    strings = [_spell_millis(each, pattern) for each in starts]
    return coded.indices.to_numpy().astype(np.int64), strings


def _spell_millis(local: int, pattern: DatePattern) -> str:
    # clocks of a zone show the years 0 and 10000 at the ends of those that ``datetime`` has
    cycles = (local > LAST) - (local < FIRST)
    moved = _EPOCH + timedelta(milliseconds=local - cycles * _CYCLE)
    return spell(moved, pattern, cycles * _CYCLE_YEARS)


def ends_of_periods(local: Millis, grain: str) -> Millis:
    """Return the first millisecond after the period of each timestamp."""
    return _starts(_periods(local, grain) + 1, grain)


def _periods(local: Millis, grain: str) -> npt.NDArray[np.int64]:
    """Return the period of each timestamp, counted from that of 1970."""
    return local.astype("datetime64[ms]").astype(f"datetime64[{grain}]").astype(np.int64)


def _starts(periods: npt.NDArray[np.int64], grain: str) -> Millis:
    """Return the first millisecond of periods given by their numbers."""
    return periods.astype(f"datetime64[{grain}]").astype("datetime64[ms]").astype(np.int64)


def _field(local: datetime, field: DateField, later: int) -> str:
    letter, width = field.letter, field.width
    if letter in _NUMBERS and field.is_number:
        number = _NUMBERS[letter](local) + (later if letter in "yYx" else 0)
        if letter == "Y" and number < 1:
            number = 1 - number  # the year of its era: 0 is 1 before Christ
        return f"{number % 100:02}" if letter in "yYx" and width == 2 else f"{number:0{width}}"
    names = {"M": MONTHS[local.month - 1], "E": _DAYS[local.weekday()]}
    if letter in names:
        return names[letter] if width > _SHORT else names[letter][:_SHORT]
    if letter == "a":
        return "AM" if local.hour < 12 else "PM"
    if letter == "S":
        return f"{local.microsecond // 1000:03}".ljust(width, "0")[:width]
    return _offset(local.tzinfo, ":" if width > 1 else "")


def _offset(zone: tzinfo | None, between: str) -> str:
    offset = (zone.utcoffset(None) if zone else None) or timedelta(0)
    minutes = abs(offset) // timedelta(minutes=1)
    return f"{'-' if offset < timedelta(0) else '+'}{minutes // 60:02}{between}{minutes % 60:02}"
