"""Column statistics of one data file, from which formats derive theirs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

Scalar = bool | int | float | str | bytes | Decimal
"""A bound in internal form: date = days, time and timestamp = microseconds, since the epoch (or
midnight)."""


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """What is known of one leaf column of one file.

    Attributes
    ----------
    min_value, max_value
        Exact bounds in internal form; ``None`` when no bound is known (all null, or a type without
        order). Floating-point bounds leave NaN out; zeros compare as equal, whatever their sign.
        Strings are ordered by their UTF-8 bytes.
    value_count
        Number of values, nulls included; below a list or map, null and empty ones count as one.
    null_count
        Number of nulls; ``None`` where it was not counted.
    nan_count
        Number of NaN; 0 for types without NaN.
    compressed_size, uncompressed_size
        Bytes of the column's chunks in the file.
    has_unbounded
        Of floating-point values: whether some are NaN, or the footer has no bounds of a row group
        with values, because they are NaN. Such a file holds any value, to readers who go by
        footers or take NaN for a number.
    """

    min_value: Scalar | None
    max_value: Scalar | None
    value_count: int
    null_count: int | None
    nan_count: int
    compressed_size: int
    uncompressed_size: int
    has_unbounded: bool = field(default=False, compare=False)

    @property
    def has_values(self) -> bool:
        """Whether there may be anything but nulls."""
        return self.null_count is None or self.null_count < self.value_count


FileStats = Mapping[str, ColumnStats]
"""Statistics of a file by leaf path, as :mod:`hudi_core.schema.arrow_types` spells paths
(``address.city``, ``tags.list.element``, ``props.key_value.value``)."""
