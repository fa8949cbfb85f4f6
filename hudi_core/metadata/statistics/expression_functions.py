"""Functions that expression indexes are kept of, each as Spark computes it.

Values are in internal form; see :data:`hudi_core.model.stats.Scalar`. Wherever Spark's value is
not certain, a function gives none, and bounds are those of any value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt

from hudi_core.model.stats import Scalar
from hudi_core.schema.arrow_types import is_text

Options = Mapping[str, str]
_Bounds = tuple[Scalar, Scalar]
_DAY: Final = 86_400_000_000
_SECOND: Final = 1_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LEAST, _GREATEST = -719_162 * _DAY, 2_932_897 * _DAY - 1
"""Microseconds of the years 1 to 9999, which formats and calendars agree on."""
_INT_TEXT: Final = re.compile(r"[+-]?[0-9]{1,9}")
EXPR: Final = "expr"
"""Option that names the function itself."""


@dataclass(frozen=True)
class Function:
    """One function.

    ``compute`` takes a value, the column's type and the options, and returns ``None`` where the
    result is not certain. Options have a pattern that they must match. ``is_monotone``: a greater
    value has no smaller result; ``ordered_if`` is whether that holds for some options. ``zones`` is
    whether the session's time zone makes a difference. ``cycle``, of a part of a date, is its least
    and greatest value, and the format of what two dates must have in common for it to have them in
    order.
    """

    compute: Callable[[Any, pa.DataType, Options], Any]
    takes: Callable[[pa.DataType], bool]
    result: Callable[[pa.DataType], pa.DataType]
    required: Mapping[str, re.Pattern[str]] = field(default_factory=dict)
    optional: Mapping[str, re.Pattern[str]] = field(default_factory=dict)
    is_monotone: bool = True
    ordered_if: Callable[[Options], bool] = lambda _: True
    zones: Callable[[pa.DataType, Options], bool] = lambda _, __: False
    cycle: tuple[int, int, str] | None = None

    def why_not(self, options: Options) -> str | None:
        """What is wrong with its options; ``None`` where nothing is."""
        known = {EXPR: re.compile(".*"), **self.required, **self.optional}
        missing = [name for name in self.required if name not in options]
        if missing:
            return f"needs the option {missing[0]}"
        for name, text in options.items():
            if name.startswith("hudi.core."):
                continue
            if name not in known:
                return f"has no option {name}"
            if not known[name].fullmatch(text):
                return f"with {name}={text!r} is not computed"
        return None

    def is_ordered(self, options: Options) -> bool:
        """Whether bounds of the column give bounds of its values."""
        return (self.is_monotone and self.ordered_if(options)) or self.cycle is not None

    def of(self, value: Any, kind: pa.DataType, options: Options) -> Any:
        """Its value; ``None`` where it is not certain."""
        return None if value is None else self.compute(value, kind, options)

    def moved(self, value: Scalar, kind: pa.DataType, micros: int) -> Scalar:
        """A value of the column, moved by a time."""
        found = _micros(value, kind)
        if pt.is_date(kind):
            return _Moved(found + micros)
        return int(value) + micros // (1 if pt.is_timestamp(kind) else _SECOND)

    def between(
        self, low: Scalar, high: Scalar, kind: pa.DataType, options: Options
    ) -> _Bounds | None:
        """Bounds of its values, of all values between two; ``None``: any."""
        first, last = self.of(low, kind, options), self.of(high, kind, options)
        if first is None or last is None:
            return None
        if self.cycle is None:
            return first, last
        least, greatest, unit = self.cycle
        begin, end = (_datetime(_micros(one, kind)) for one in (low, high))
        if begin is None or end is None or f"{begin:{unit}}" != f"{end:{unit}}":
            return least, greatest
        return first, last


class _Moved(int):
    """Microseconds of a date that a time zone has moved."""


def _micros(value: Any, kind: pa.DataType) -> int:
    """Microseconds since the epoch, of a time, a date or seconds."""
    if isinstance(value, _Moved) or pt.is_timestamp(kind):
        return int(value)
    return int(value) * (_DAY if pt.is_date(kind) else _SECOND)


def _datetime(micros: int) -> datetime | None:
    if not _LEAST <= micros <= _GREATEST:
        return None
    return _EPOCH + timedelta(microseconds=micros)


# --- of times and dates -----------------------------------------------------


def _is_time_or_date(kind: pa.DataType) -> bool:
    return bool(pt.is_timestamp(kind) or pt.is_date32(kind))


def _of_calendar(kind: pa.DataType, options: Options) -> bool:  # noqa: ARG001 - none
    return not pt.is_date(kind)


def _of_format(kind: pa.DataType, options: Options) -> bool:
    # in some zones there are days without a midnight, and their dates begin later
    return _of_calendar(kind, options) or "HH" in options.get("format", "")


def _of_point(kind: pa.DataType, options: Options) -> bool:  # noqa: ARG001 - none
    return not (pt.is_timestamp(kind) and kind.tz)


def _is_long(kind: pa.DataType) -> bool:
    return bool(pt.is_int64(kind) or pt.is_int32(kind))


def _part(name: str) -> Callable[[Any, pa.DataType, Options], Any]:
    def compute(value: Any, kind: pa.DataType, options: Options) -> Any:  # noqa: ARG001 - none
        found = _datetime(_micros(value, kind))
        return None if found is None else getattr(found, name)

    return compute


_PATTERNS: Final = {
    "yyyy": "%Y",
    "MM": "%m",
    "dd": "%d",
    "HH": "%H",
    "mm": "%M",
    "ss": "%S",
}
_SEPARATOR: Final = r"[-/: _.,]?"
_FORMAT: Final = re.compile(
    "yyyy" + "".join(f"(?:{_SEPARATOR}{one}" for one in [*_PATTERNS][1:]) + ")?" * 5
)
"""From years down to seconds, so that the order of strings is that of times."""
_DEFAULT_FORMAT: Final = "yyyy-MM-dd HH:mm:ss"
_TOKEN: Final = re.compile("|".join(_PATTERNS))


def _formatted(value: Any, kind: pa.DataType, options: Options) -> Any:
    found = _datetime(_micros(value, kind))
    if found is None:
        return None
    text = options.get("format", _DEFAULT_FORMAT)
    # Python's own %Y has no leading zeros everywhere
    year = f"{found.year:04d}"
    return _TOKEN.sub(
        lambda one: year if one[0] == "yyyy" else f"{found:{_PATTERNS[one[0]]}}", text
    )


def _day(value: Any, kind: pa.DataType, options: Options) -> Any:
    return _micros(value, kind) // _DAY + int(options.get("days", "0"))


def _day_before(value: Any, kind: pa.DataType, options: Options) -> Any:
    return _day(value, kind, {"days": str(-int(options.get("days", "0")))})


def _instant(value: Any, kind: pa.DataType, options: Options) -> Any:  # noqa: ARG001 - none
    return _micros(value, kind)


def _seconds(value: Any, kind: pa.DataType, options: Options) -> Any:  # noqa: ARG001 - none
    found = _micros(value, kind)
    # as Java divides, towards zero
    return found // _SECOND if found >= 0 else -(-found // _SECOND)


# --- of strings -------------------------------------------------------------


_CASED: Final = re.compile(
    "[\x00-\u012f\u0132-\u017f\u01a0\u01a1\u01af\u01b0\u0300-\u030f\u0386-\u03a2\u03a4-\u03ce"
    "\u0400-\u045f\u0490-\u04ff\u05d0-\u06ff\u0900-\u0dff\u0e00-\u0eff\u1e00-\u1e95\u1ea0-\u1ef9"
    "\u2010-\u2044\u20a0-\u20bf\u3000-\u9fff\uac00-\ud7a3]*"
)
"""Strings whose lower and upper case every Java of Spark's and every Python here agree on, whatever
their releases of Unicode: no script whose cases came late, and no sigma, which has two of them."""


def _lower(value: Any, kind: pa.DataType, options: Options) -> Any:  # noqa: ARG001 - none
    return value.lower() if _CASED.fullmatch(value) else None


def _upper(value: Any, kind: pa.DataType, options: Options) -> Any:  # noqa: ARG001 - none
    return value.upper() if _CASED.fullmatch(value) else None


def _length(value: Any, kind: pa.DataType, options: Options) -> Any:  # noqa: ARG001 - none
    return len(value)


def _trimmed(strip: Callable[[str, str], str]) -> Function:
    def compute(value: Any, kind: pa.DataType, options: Options) -> Any:  # noqa: ARG001 - none
        return strip(value, options.get("trimString", " "))

    return Function(compute, is_text, _TEXT, optional=_TRIMMED, is_monotone=False)


def _substring(value: Any, kind: pa.DataType, options: Options) -> Any:  # noqa: ARG001 - none
    place, length = int(options["pos"]), int(options["len"])
    begin = place - 1 if place > 0 else len(value) + place if place < 0 else 0
    return value[max(0, begin) : max(0, begin + length)]


def _begins(options: Options) -> bool:
    """Whether a substring is the beginning of the text."""
    return int(options["pos"]) in (0, 1)


def _always(kind: pa.DataType) -> Callable[[pa.DataType], pa.DataType]:
    return lambda _: kind


_TRIMMED: Final = {"trimString": re.compile(".+", re.DOTALL)}
_FORMATTED: Final = {"format": _FORMAT}
_DAYS: Final = {"days": _INT_TEXT}
_TEXT, _INT, _DATE = (_always(kind) for kind in (pa.string(), pa.int32(), pa.date32()))


def _cyclic(
    name: str,
    cycle: tuple[int, int, str],
    takes: Callable[[pa.DataType], bool] = _is_time_or_date,
) -> Function:
    """A part of a date that the next larger part resets."""
    return Function(_part(name), takes, _INT, is_monotone=False, zones=_of_calendar, cycle=cycle)


FUNCTIONS: Final[Mapping[str, Function]] = {
    "year": Function(_part("year"), _is_time_or_date, _INT, zones=_of_calendar),
    "month": _cyclic("month", (1, 12, "%Y")),
    "day": _cyclic("day", (1, 31, "%Y-%m")),
    "hour": _cyclic("hour", (0, 23, "%Y-%m-%d"), lambda kind: bool(pt.is_timestamp(kind))),
    "date_format": Function(
        _formatted, _is_time_or_date, _TEXT, required=_FORMATTED, zones=_of_format
    ),
    "from_unixtime": Function(_formatted, _is_long, _TEXT, optional=_FORMATTED, zones=_of_calendar),
    "unix_timestamp": Function(_seconds, _is_time_or_date, _always(pa.int64()), zones=_of_point),
    "to_timestamp": Function(
        _instant, _is_time_or_date, _always(pa.timestamp("us", "UTC")), zones=_of_point
    ),
    "to_date": Function(_day, _is_time_or_date, _DATE, zones=_of_calendar),
    "date_add": Function(_day, _is_time_or_date, _DATE, required=_DAYS, zones=_of_calendar),
    "date_sub": Function(_day_before, _is_time_or_date, _DATE, required=_DAYS, zones=_of_calendar),
    "lower": Function(_lower, is_text, _TEXT, is_monotone=False),
    "upper": Function(_upper, is_text, _TEXT, is_monotone=False),
    "length": Function(_length, is_text, _INT, is_monotone=False),
    "trim": _trimmed(str.strip),
    "ltrim": _trimmed(str.lstrip),
    "rtrim": _trimmed(str.rstrip),
    "substring": Function(
        _substring,
        is_text,
        _TEXT,
        required={"pos": _INT_TEXT, "len": _INT_TEXT},
        ordered_if=_begins,
    ),
}
"""By the names that Spark and Hudi have for them."""
