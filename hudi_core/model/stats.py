"""Column statistics of one data file, from which formats derive theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def joined_stats(parts: Sequence[FileStats]) -> FileStats:
    """Statistics of a file from those of its parts."""
    if len(parts) == 1:
        return parts[0]
    return {path: _joined([one[path] for one in parts]) for path in parts[0]} if parts else {}


def _joined(parts: Sequence[ColumnStats]) -> ColumnStats:
    """Of one column; unbounded where a part with values has no bound."""
    valued = [one for one in parts if one.has_values]
    lower = [one.min_value for one in valued if one.min_value is not None]
    upper = [one.max_value for one in valued if one.max_value is not None]
    nulls = [one.null_count for one in parts if one.null_count is not None]
    return ColumnStats(
        min(lower) if lower and len(lower) == len(valued) else None,
        max(upper) if upper and len(upper) == len(valued) else None,
        sum(one.value_count for one in parts),
        sum(nulls) if len(nulls) == len(parts) else None,
        sum(one.nan_count for one in parts),
        sum(one.compressed_size for one in parts),
        sum(one.uncompressed_size for one in parts),
        any(one.has_unbounded for one in parts),
    )
