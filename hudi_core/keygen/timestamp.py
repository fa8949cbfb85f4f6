"""Partition paths by periods of a timestamp; keys are bare values.

The column keeps its values in the files; only the path is derived. Rows without a value share the
partition of the number 1, which is one on 1 January 1970. Source: Hudi's
``TimestampBasedAvroKeyGenerator``.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC as UTC_ZONE
from datetime import datetime
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_core.config.time_zone import UTC
from hudi_core.config.timebased import TimeBased, TimeUnit
from hudi_core.errors import PartitionValueError, SchemaError
from hudi_core.keygen.base import Indices, KeyColumn
from hudi_core.keygen.date_strings import (
    FIRST,
    LAST,
    Mask,
    ends_of_periods,
    parse_strings,
    spell,
    spell_all,
    starts_of_periods,
)
from hudi_core.keygen.zones import Millis, to_local_millis, to_utc_millis, zone_of

_HOUR: Final = 3_600_000
_AHEAD, _BEHIND = 14 * _HOUR, 12 * _HOUR
"""How far clocks are ahead of UTC, or behind it, at most."""


class TimeStrings:
    """The strings of the timestamps of one partition column."""

    def __init__(
        self, column: KeyColumn, kind: pa.DataType, how: TimeBased, *, new: bool = False
    ) -> None:
        self._column, self._how = column, how
        if how.unit is not None:
            require_unit(column.name, kind, how.unit, new=new)
        elif not pt.is_string(kind):
            raise SchemaError(
                f"The values of the partition column {column.name} ({kind}) are no strings",
                "For numbers, timestamps and dates set hoodie.keygen.timebased.timestamp.type to "
                "what they count.",
                column=column.name,
                type=str(kind),
            )

    def distinct(self, batch: pa.RecordBatch) -> tuple[Indices, list[str]]:
        """Return each row's string index, and the strings.

        Some of the strings may be equal.
        """
        return self.of(self._column.of(batch))

    def of(self, values: pa.Array) -> tuple[Indices, list[str]]:
        """Return the same of values of the column."""
        how = self._how
        if how.unit is not None:
            found = utc_millis(values, how.unit, self._column.name)
            return spell_all(to_local_millis(found, how.output_zone or UTC), how.output)
        coded = values.dictionary_encode(null_encoding="encode")
        strings = coded.dictionary.fill_null(self._text_of_null())
        read = parse_strings(strings, how.inputs, how.input_zone, self._column.name)
        zone = how.output_zone or how.input_zone
        local = (
            read.utc_millis + read.offsets
            if zone is None
            else to_local_millis(read.utc_millis, zone)
        )
        rows, spelled = spell_all(local, how.output)
        return rows[coded.indices.to_numpy()], spelled

    def _text_of_null(self) -> str:
        zone = zone_of(self._how.input_zone or self._how.output_zone or UTC)
        first = datetime(1970, 1, 1, 0, 0, 0, 1000, UTC_ZONE)
        return spell(first.astimezone(zone), self._how.inputs[0])


class Bounds(NamedTuple):
    """Between which numbers the values of a column lie; both inclusive."""

    lows: Millis
    highs: Millis
    known: Mask


def bounds_of_strings(
    strings: Sequence[str | None], kind: pa.DataType, how: TimeBased
) -> Bounds | None:
    """Return the bounds of column values behind partition strings.

    Rows without a value are not covered.

    Timestamps and dates count as the numbers that they are kept as. ``None`` where the strings
    bound nothing, as those of a string column.
    """
    unit = how.unit
    own = counted_unit(kind)
    if unit is None or own not in (unit, None) or (own is None and not pt.is_integer(kind)):
        return None
    if not how.output.is_whole:
        return None
    starts, known = starts_of_periods(pa.array(strings, pa.string()), how.output)
    ends = ends_of_periods(starts, how.output.grain)
    if how.output_zone is None:
        # another writer may have taken the zone of its process, which the table does not record
        return Bounds(*counts_of(starts - _AHEAD, ends + _BEHIND, unit), known)
    first = to_utc_millis(starts, how.output_zone)
    after = to_utc_millis(ends, how.output_zone, last=True)
    return Bounds(*counts_of(first, after, unit), known)


def may_be_of_nulls(
    bounds: Bounds, strings: Sequence[str | None], kind: pa.DataType, how: TimeBased
) -> Mask:
    """Mask of the strings that rows without a number may have.

    ``bounds`` must come from :func:`bounds_of_strings` with the same strings.
    """
    column = KeyColumn("", "", ())
    _, (of_null,) = TimeStrings(column, kind, how).of(pa.nulls(1, kind))
    found = np.array([text == of_null for text in strings], np.bool_)
    if how.output_zone is None:
        # the text is of any zone, which the bounds allow for
        found |= bounds.known & (bounds.lows <= OF_NULL) & (bounds.highs >= OF_NULL)
    return found


# --- numbers as timestamps ------------------------------------------------------------------------

# Hudi makes them with Java's ``TimeUnit.convert``, which divides towards zero: a microsecond before
# 1970 is in 1970. Source: ``TimestampBasedAvroKeyGenerator``.


_DAY: Final = 86_400_000
_TIMES: Final = {
    TimeUnit.NANOSECONDS: 1,
    TimeUnit.MICROSECONDS: 1,
    TimeUnit.MILLISECONDS: 1,
    TimeUnit.SECONDS: 1_000,
    TimeUnit.MINUTES: 60_000,
    TimeUnit.HOURS: 3_600_000,
    TimeUnit.DAYS: _DAY,
}
_PARTS: Final = {TimeUnit.NANOSECONDS: 1_000_000, TimeUnit.MICROSECONDS: 1_000}
"""How many of a unit make a millisecond."""
_OF_TIMESTAMPS: Final = {
    "s": TimeUnit.SECONDS,
    "ms": TimeUnit.MILLISECONDS,
    "us": TimeUnit.MICROSECONDS,
    "ns": TimeUnit.NANOSECONDS,
}
_LONG: Final = 2**63 - 1
OF_NULL: Final = 1
"""The number that Hudi takes for a value that is not there."""


def require_unit(name: str, kind: pa.DataType, unit: TimeUnit, *, new: bool = False) -> None:
    """Refuse a column whose values do not count this unit.

    An existing table (not ``new``) may also have numbers as strings: Spark SQL has turned columns
    into such.
    """
    own = counted_unit(kind)
    if own not in (unit, None):
        raise SchemaError(
            f"The values of the partition column {name} ({kind}) count {own}, not {unit}",
            "Set hoodie.keygen.timebased.timestamp.type=SCALAR and "
            f"hoodie.keygen.timebased.timestamp.scalar.time.unit={own}.",
            column=name,
            type=str(kind),
        )
    is_number = pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind)
    if own is None and not is_number and (new or not pt.is_string(kind)):
        raise SchemaError(
            f"The values of the partition column {name} ({kind}) are no numbers that could count "
            f"{unit}",
            "For strings set hoodie.keygen.timebased.timestamp.type=DATE_STRING; otherwise use "
            "another column.",
            column=name,
            type=str(kind),
        )


def counted_unit(kind: pa.DataType) -> TimeUnit | None:
    """Unit of a column's type; ``None`` for plain numbers."""
    if pt.is_date(kind):
        return TimeUnit.DAYS
    return _OF_TIMESTAMPS[kind.unit] if pt.is_timestamp(kind) else None


def utc_millis(values: pa.Array, unit: TimeUnit, column: str) -> Millis:
    """Return the timestamp of each value; nulls count as 1.

    So it is in Hudi.

    Values outside the years 1 to 9999 are refused.
    """
    counted = pc.fill_null(_whole_numbers(values, column), OF_NULL).to_numpy(zero_copy_only=False)
    times, parts = _TIMES[unit], _PARTS.get(unit, 1)
    low, high = FIRST * parts // times, ((LAST + 1) * parts - 1) // times
    outside = (counted < max(low, -_LONG)) | (counted > min(high, _LONG))
    if outside.any():
        value = values[int(np.argmax(outside))].as_py()
        raise PartitionValueError(
            f"The value {value!r} of the partition column {column} is not of the years 1 to 9999, "
            f"counted in {unit.lower()}",
            "See whether hoodie.keygen.timebased.timestamp.type fits the column, or change the "
            "value.",
            field=column,
            value=value,
        )
    if parts == 1:
        return np.asarray(counted * times)
    towards_zero = counted // parts
    return np.asarray(towards_zero + ((counted < 0) & (counted % parts != 0)))


def counts_of(starts: Millis, ends: Millis, unit: TimeUnit) -> tuple[Millis, Millis]:
    """Least and greatest numbers whose timestamps are from ``starts`` until before ``ends``."""
    times, parts = _TIMES[unit], _PARTS.get(unit, 1)
    limit = _LONG // parts - 1
    first, last = np.clip(starts, -limit, limit), np.clip(ends - 1, -limit, limit)
    if parts == 1:
        return -(-first // times), last // times
    # most writers drop parts towards 1970, and some towards the past: before 1970 these differ
    return first * parts - (parts - 1), last * parts + (parts - 1)


def _whole_numbers(values: pa.Array, column: str) -> pa.Array:
    """Return values as integers, without fractions, as Java does."""
    kind = values.type
    if pt.is_floating(kind):
        numbers = np.trunc(pc.fill_null(values, 1).to_numpy().astype(np.float64))
        # what is no number is 0 in Java; and what is too much is refused as such
        numbers = np.clip(np.nan_to_num(numbers), -(2.0**62), 2.0**62).astype(np.int64)
        return pc.if_else(values.is_valid(), pa.array(numbers), None)
    if pt.is_string(kind):
        return _numbers_of_strings(values, column)
    if pt.is_date32(kind):
        return values.cast(pa.int32()).cast(pa.int64())
    if not pt.is_decimal(kind):
        return values.cast(pa.int64())
    options = pc.CastOptions(pa.int64(), allow_decimal_truncate=True)
    try:
        return pc.cast(values, options=options)
    except pa.ArrowInvalid as error:
        raise PartitionValueError(
            f"A value of the partition column {column} is too large for a timestamp",
            "Change the value.",
            field=column,
        ) from error


def _numbers_of_strings(values: pa.StringArray, column: str) -> pa.Array:
    wrong = pc.invert(pc.match_substring_regex(values, "^-?[0-9]{1,18}$"))
    if pc.any(wrong, min_count=0).as_py():
        value = values.filter(wrong)[0].as_py()
        raise PartitionValueError(
            f"The value {value!r} of the partition column {column} is no number",
            "Change the value.",
            field=column,
            value=value,
        )
    return values.cast(pa.int64())
