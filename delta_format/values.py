"""Values in the Delta log: partition values as strings, bounds as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from hudi_core.spi import Scalar

Json = Mapping[str, "Json"] | str | bool | int | float | Decimal
"""What statistics are made of; a ``Decimal`` means its exact literal."""

_EPOCH_DAY: Final = date(1970, 1, 1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MILLI: Final = 253_402_300_799_999
"""The last millisecond of the year 9999."""
_MAX_TEXT: Final = 32
_LAST_CHARACTER: Final = "\U0010ffff"


def encode(value: Json) -> str:
    """Return compact JSON with all digits of decimals.

    The readers of some engines compare with them, and a number that went through a float is another
    one.
    """
    if isinstance(value, Mapping):
        inside = (f"{json.dumps(key)}:{encode(member)}" for key, member in value.items())
        return "{" + ",".join(inside) + "}"
    if isinstance(value, Decimal):
        return format(value, "f")
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def partition_text(value: Scalar, kind: pa.DataType) -> str:
    """Return a partition value as the log keeps it.

    ``value`` is in internal form (:class:`~hudi_core.spi.ColumnStats`); ``kind`` is one of
    :func:`~delta_format.partition.is_partition_type`.
    """
    if pt.is_date(kind) and isinstance(value, int):
        return (_EPOCH_DAY + timedelta(days=value)).isoformat()
    if isinstance(value, bool):
        return str(value).lower()
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def bounds(low: Scalar, high: Scalar, kind: pa.DataType) -> tuple[Json, Json | None] | None:
    """Return lower and upper bound as statistics have them.

    Bounds are given in internal form. ``None`` where the type has no bounds in Delta, or one cannot
    be written; the upper bound alone is ``None`` for a string that has no short successor.
    """
    match low, high:
        case str(), str() if pt.is_string(kind):
            return low[:_MAX_TEXT], _short_successor(high)
        case Decimal(), Decimal() if pt.is_decimal(kind):
            return low, high
        case float(), float() if pt.is_floating(kind):
            return (low, high) if math.isfinite(low) and math.isfinite(high) else None
        case int(), int():
            return _of_integers(low, high, kind)
    return None


def _of_integers(low: int, high: int, kind: pa.DataType) -> tuple[Json, Json] | None:
    if pt.is_integer(kind):
        return low, high
    if pt.is_date(kind):
        return _both(_day(low), _day(high))
    # without a zone they would be of a form of their own, on which readers disagree
    if pt.is_timestamp(kind) and kind.tz is not None:
        # an upper bound is that of its millisecond, all of which readers allow for; so there is one
        # for the last millisecond of the year 9999, too
        last = high // 1000 if high // 1000 == _LAST_MILLI else -(-high // 1000)
        return _both(_iso_utc(low // 1000), _iso_utc(last))
    return None


def _both(low: str | None, high: str | None) -> tuple[Json, Json] | None:
    return None if low is None or high is None else (low, high)


def _short_successor(text: str) -> str | None:
    # one that was made so stays
    if len(text) <= _MAX_TEXT or text[_MAX_TEXT:] == _LAST_CHARACTER:
        return text
    # a string that goes on with the last character would lie above
    return None if text[_MAX_TEXT] == _LAST_CHARACTER else text[:_MAX_TEXT] + _LAST_CHARACTER


def _day(days: int) -> str | None:
    try:
        return (_EPOCH_DAY + timedelta(days=days)).isoformat()
    except OverflowError:
        return None


def _iso_utc(millis: int) -> str | None:
    try:
        timestamp = _EPOCH + timedelta(milliseconds=millis)
    except OverflowError:
        return None
    return timestamp.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
