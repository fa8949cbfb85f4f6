"""Strings as timestamps, parsed by patterns.

Fields may have fewer digits than the pattern where something else than a digit follows, and what a
pattern lacks is the first of its kind: January, the 1st, midnight. ``datetime`` knows which days
there are, and is called once for each. Source: Joda-Time's parsers, as
``HoodieDateTimeParser`` puts them together. Neither Python's ``strptime`` nor Arrow's has Joda's
letters, or its rule for digits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.errors import PartitionValueError
from hudi_core.keygen.zones import Millis, to_local_millis, to_utc_millis
from hudi_core.model.date_pattern import DateField, DatePattern

# --- local times formatted by a pattern, and the periods of such strings --------------------------


_EPOCH_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)
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
    moved = _EPOCH_TIME + timedelta(milliseconds=local - cycles * _CYCLE)
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
    return _offset_text(local.tzinfo, ":" if width > 1 else "")


def _offset_text(zone: tzinfo | None, between: str) -> str:
    offset = (zone.utcoffset(None) if zone else None) or timedelta(0)
    minutes = abs(offset) // timedelta(minutes=1)
    return f"{'-' if offset < timedelta(0) else '+'}{minutes // 60:02}{between}{minutes % 60:02}"


# --- strings as timestamps ------------------------------------------------------------------------


Mask = npt.NDArray[np.bool_]
_HOUR: Final = 3_600_000
_OF_DAYS: Final = frozenset("yYMdD")
_LEAST_AND_MOST: Final = {
    "H": (0, 23),
    "k": (1, 24),
    "K": (0, 11),
    "h": (1, 12),
    "m": (0, 59),
    "s": (0, 59),
}
_DIGITS: Final = {"y": 9, "Y": 9, "D": 3}
"""How many digits are read, where it is not two."""
_DAYS_OF_YEAR: Final = 366
_SHORT_NAMES: Final = [name[:3].lower() for name in MONTHS]
_EPOCH: Final = date(1970, 1, 1).toordinal()


class ParsedStrings(NamedTuple):
    """Strings that were parsed.

    ``offsets`` say how many milliseconds the clocks of the strings are ahead of UTC.
    """

    utc_millis: Millis
    offsets: Millis


def parse_strings(
    strings: pa.StringArray, patterns: Sequence[DatePattern], zone: str | None, column: str
) -> ParsedStrings:
    """Parse non-null strings, each by the first pattern that matches.

    ``zone`` is that of strings without an offset, ``None`` for UTC. A time that the clocks of its
    zone skip is an error.
    """
    count = len(strings)
    found = ParsedStrings(np.zeros(count, np.int64), np.zeros(count, np.int64))
    is_open = np.ones(count, np.bool_)
    for pattern in patterns:
        if not is_open.any():
            break
        parts = pc.extract_regex(strings.filter(pa.array(is_open)), _expression(pattern))
        fits = parts.is_valid().to_numpy(zero_copy_only=False)
        if not fits.any():
            continue
        rows = np.flatnonzero(is_open)[fits]
        is_open[rows] = False
        chosen = strings.take(pa.array(rows))
        parts = parts.filter(pa.array(fits))
        local, is_date = _local_times(parts, pattern)
        _refuse(chosen, ~is_date, column, "which is no date")
        own = _own_offsets(parts, pattern)
        if own is not None:
            found.utc_millis[rows], found.offsets[rows] = local - own, own
            continue
        utc_millis = to_utc_millis(local, zone or "UTC")
        clock = to_local_millis(utc_millis, zone or "UTC")
        _refuse(chosen, clock != local, column, f"which clocks of {zone} skip")
        found.utc_millis[rows], found.offsets[rows] = utc_millis, local - utc_millis
    given = " or ".join(repr(pattern.text) for pattern in patterns)
    _refuse(strings, is_open, column, f"which is not of the format {given}")
    return found


def starts_of_periods(strings: pa.StringArray, pattern: DatePattern) -> tuple[Millis, Mask]:
    """Return each string's first local millisecond, and whether it matches.

    The millisecond is the first that the pattern formats as that string.

    ``pattern`` must be one by which each string means one period (:attr:`DatePattern.is_whole`).
    """
    parts, seen = [], set()
    for token in pattern.tokens:
        if isinstance(token, str):
            parts.append(re.escape(token))
            continue
        group = f"?P<{token.letter}>" if token.letter not in seen else "?:"
        parts.append(f"({group}[0-9]{{{token.width}}})")
        seen.add(token.letter)
    found = pc.extract_regex(strings, f"^{''.join(parts)}$")
    known: Mask = found.is_valid().to_numpy(zero_copy_only=False).copy()
    rows = np.flatnonzero(known)
    starts = np.zeros(len(strings), np.int64)
    starts[rows], known[rows] = _local_times(found.take(pa.array(rows)), pattern)
    return starts, known


def _expression(pattern: DatePattern) -> str:
    """Regular expression of a pattern, with a group per field.

    A group is named by the field's letter.
    """
    parts = []
    for number, token in enumerate(pattern.tokens):
        if isinstance(token, str):
            parts.append(f"(?i:{re.escape(token)})")
            continue
        before_digits = _begins_with_digit(pattern.tokens[number + 1 : number + 2])
        parts.append(f"(?P<{token.letter}>{_form(token, before_digits)})")
    return f"^{''.join(parts)}$"


def _begins_with_digit(after: Sequence[DateField | str]) -> bool:
    for token in after:
        return token[0].isdigit() if isinstance(token, str) else token.is_number
    return False


def _form(field: DateField, before_digits: bool) -> str:
    match field.letter:
        case "a":
            return "(?i:AM|PM)"
        case "Z":
            return "(?i:Z)|[+-][0-9]{2}(?::?[0-9]{2}(?::?[0-9]{2})?)?"
        case "M" if not field.is_number:
            names = "|".join(f"{name}|{name[:3]}" for name in MONTHS)
            return f"(?i:{names})"
        case "S":
            return f"[0-9]{{{field.width if before_digits else 1},{field.width}}}"
    if before_digits:
        return f"[0-9]{{{field.width}}}"
    return f"[0-9]{{1,{max(field.width, _DIGITS.get(field.letter, 2))}}}"


def _local_times(parts: pa.StructArray, pattern: DatePattern) -> tuple[Millis, Mask]:
    """What clocks show, and where that is a date."""
    days, is_date = _days(parts, pattern)
    numbers: dict[str, Millis] = {}
    for letter, (low, high) in _LEAST_AND_MOST.items():
        if any(field.letter == letter for field in pattern.fields):
            numbers[letter] = np.asarray(parts.field(letter).cast(pa.int64()).to_numpy())
            is_date &= (numbers[letter] >= low) & (numbers[letter] <= high)
    nothing = np.zeros(len(parts), np.int64)
    seconds = numbers.get("m", nothing) * 60 + numbers.get("s", nothing)
    local: Millis = days * 24 * _HOUR + _hours(parts, numbers, nothing) * _HOUR + seconds * 1000
    if any(field.letter == "S" for field in pattern.fields):
        digits = pc.utf8_rpad(pc.utf8_slice_codeunits(parts.field("S"), 0, 3), 3, "0")
        local = local + digits.cast(pa.int64()).to_numpy()
    return local, is_date


def _days(parts: pa.StructArray, pattern: DatePattern) -> tuple[Millis, Mask]:
    """Days since 1970 of date strings, and whether each exists."""
    letters = [field.letter for field in pattern.fields if field.letter in _OF_DAYS]
    joined = pc.binary_join_element_wise(*map(parts.field, letters), "-")
    coded = joined.dictionary_encode()
    found = [
        _day(dict(zip(letters, text.split("-"), strict=True)))
        for text in coded.dictionary.to_pylist()
    ]
    places = coded.indices.to_numpy()
    days = np.array([day or 0 for day in found], np.int64)
    return days[places], np.array([day is not None for day in found], np.bool_)[places]


def _day(strings: Mapping[str, str]) -> int | None:
    """Days since 1970 of a date's parts; ``None`` for an impossible date."""
    year, month = int(strings.get("y") or strings["Y"]), strings.get("M", "1")
    day_of_year = int(strings.get("D", 1))
    try:
        if "M" not in strings and "D" in strings:
            found = date(year, 1, 1) + timedelta(days=day_of_year - 1)
        else:
            number = int(month) if month.isdecimal() else _SHORT_NAMES.index(month[:3].lower()) + 1
            found = date(year, number, int(strings.get("d", 1)))
    except (ValueError, OverflowError):
        return None
    is_right = found.year == year and 1 <= day_of_year <= _DAYS_OF_YEAR
    return found.toordinal() - _EPOCH if is_right else None


def _hours(parts: pa.StructArray, numbers: dict[str, Millis], nothing: Millis) -> Millis:
    if "H" in numbers:
        return numbers["H"]
    if "k" in numbers:
        return numbers["k"] % 24
    half = numbers["h"] % 12 if "h" in numbers else numbers.get("K", nothing)
    if parts.type.get_field_index("a") < 0:
        return half
    is_second = pc.equal(pc.ascii_upper(parts.field("a")), "PM")
    return np.asarray(half + 12 * is_second.to_numpy(zero_copy_only=False))


def _own_offsets(parts: pa.StructArray, pattern: DatePattern) -> Millis | None:
    """Return the offsets that strings name."""
    if not any(field.letter == "Z" for field in pattern.fields):
        return None
    coded = parts.field("Z").dictionary_encode()
    millis = [_offset(text) for text in coded.dictionary.to_pylist()]
    return np.asarray(np.array(millis, np.int64)[coded.indices.to_numpy()])


def _offset(text: str) -> int:
    if text in "zZ":
        return 0
    digits = text[1:].replace(":", "").ljust(6, "0")
    hours, minutes, seconds = (int(digits[at : at + 2]) for at in (0, 2, 4))
    millis = hours * _HOUR + minutes * 60_000 + seconds * 1000
    return -millis if text[0] == "-" else millis


def _refuse(strings: pa.StringArray, wrong: Mask, column: str, reason: str) -> None:
    if not wrong.any():
        return
    value = strings[int(np.argmax(wrong))].as_py()
    raise PartitionValueError(
        f"The partition column {column} has the value {value!r}, {reason}",
        "Change the value, or see whether hoodie.keygen.timebased.input.dateformat fits the "
        "column.",
        field=column,
        value=value,
    )
