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
import pyarrow.types as pt

from hudi_core.config.time_zone import UTC
from hudi_core.config.timebased import TimeBased
from hudi_core.errors import SchemaError
from hudi_core.keygen.base import KeyColumn
from hudi_core.keygen.calendar import ends_of_periods, spell, spell_all
from hudi_core.keygen.date_strings import Mask, parse_strings, starts_of_periods
from hudi_core.keygen.partitions import Indices
from hudi_core.keygen.timestamps import OF_NULL, counted_unit, counts_of, require_unit, utc_millis
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
