"""Column ranges as records: of files, and of partitions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_core.avro.wrappers import Wrapped
from hudi_core.metadata.keys import NO_PARTITION, column_stats_key, partition_stats_key
from hudi_core.metadata.log.records import ColumnRange, MetadataRecord, RecordType
from hudi_core.metadata.statistics.bound_forms import (
    BoundForm,
    bound_order,
    covers,
    has_values,
    in_form,
    is_in_form,
    outermost,
    wrapped_bounds,
)
from hudi_core.metadata.statistics.indexed_columns import IndexedColumns
from hudi_core.model.files import PartitionPath
from hudi_core.model.ranges import Mask
from hudi_core.model.stats import ColumnStats
from hudi_core.schema.arrow_types import is_bytes, is_text


def file_ranges(
    file_name: str, found: Mapping[str, ColumnStats], columns: IndexedColumns
) -> dict[str, ColumnRange]:
    """Return the ranges of a file's columns by path.

    Columns that it lacks are left out, and all of a file without rows.
    """
    return {
        path: _range(file_name, path, found[path], form)
        for path, form in columns.items()
        if path in found and found[path].value_count
    }


def _range(file_name: str, path: str, stats: ColumnStats, form: BoundForm) -> ColumnRange:
    low, high = wrapped_bounds(stats, form)
    return ColumnRange(
        file_name=file_name,
        column_name=path,
        min_value=low,
        max_value=high,
        value_count=stats.value_count,
        null_count=stats.null_count,
        total_size=stats.compressed_size,
        total_uncompressed_size=stats.uncompressed_size,
        value_type=form.value_type,
    )


def range_records(
    partition: PartitionPath, file_name: str, ranges: Iterable[ColumnRange]
) -> list[MetadataRecord]:
    """Return the records of a file's ranges."""
    return [
        MetadataRecord(
            column_stats_key(one.column_name or "", partition, file_name),
            RecordType.COLUMN_STATS,
            one,
        )
        for one in ranges
    ]


def removed_ranges(
    partition: PartitionPath, file_name: str, columns: Iterable[str]
) -> list[MetadataRecord]:
    """Return the records that take a file's ranges out."""
    gone = [ColumnRange(file_name, path, is_deleted=True) for path in columns]
    return range_records(partition, file_name, gone)


def partition_record(
    partition: PartitionPath,
    path: str,
    ranges: Iterable[ColumnRange | None],
    form: BoundForm,
) -> MetadataRecord:
    """Statistics of a column in a partition.

    Where no file has the column, the record takes its range out.

    ``ranges`` has one for each file that readers see, ``None`` where a file lacks the column: other
    engines do not count its nulls either. ``form`` is the current one; files may have an older.
    """
    whole = merged_range(ranges, form)
    if whole is None:
        return removed_partition_range(partition, path)
    return partition_range_record(partition, path, whole)


def partition_range_record(
    partition: PartitionPath, path: str, whole: ColumnRange
) -> MetadataRecord:
    """The record of the range of a column in a partition."""
    key, named = partition_stats_key(path, partition), partition or NO_PARTITION
    return MetadataRecord(key, RecordType.PARTITION_STATS, replace(whole, file_name=named))


def removed_partition_range(partition: PartitionPath, path: str) -> MetadataRecord:
    """The record that removes the range of a column in a partition."""
    gone = ColumnRange(None, path, is_deleted=True)
    return partition_range_record(partition, path, gone)


# --- ranges of partitions from those of their files; pure -----------------------------------------


# --- unreliable ranges that Hudi's own writers make ----------------------------------------------

# Measured with Hudi-Spark 1.2.0: a row group with a NaN gets bounds of 0.0 and 0.0, and one whose
# strings are so long that the footer has no bounds counts as nothing but nulls. What is made of
# such ranges, those of files with several row groups and those of partitions, looks like any other.
# They are merged in Java's order, too: strings by UTF-16 units, bytes as signed numbers. Those of
# log files are made in it.


_LONG: Final = 2048
"""Bytes of the shortest value that may be too long: parquet-mr leaves out bounds that have 4096
together."""
_ONE_ROW_GROUP: Final = 100
"""Values of the largest file that is taken to have one row group: parquet-mr does not look at the
size of a row group before so many rows."""
_ELSEWHERE_IN_UTF16: Final = "[\ue000-\U0010ffff]"
"""Characters whose order differs between UTF-8 and UTF-16. A bound without them bounds the same
strings in both."""


def doubtful(
    table: pa.Table, kind: pa.DataType, *, of_files: bool, are_logs: Mask | None = None
) -> Mask:
    """Which ranges may be such.

    ``table`` has ``minimum`` and ``maximum`` in the column's type, ``null_count``, ``value_count``
    and ``total_uncompressed_size``; ``are_logs`` says which are of log files.
    """
    merged = _merged(table, of_files)
    if pt.is_floating(kind):
        return _floats(table, merged)
    in_java_order = merged if are_logs is None else merged | are_logs
    if is_text(kind):
        return _long(table, merged) | (in_java_order & _in_java_order(table))
    if is_bytes(kind):
        return _long(table, merged) | in_java_order
    return np.zeros(len(table), np.bool_)


def may_be_narrow(whole: ColumnRange, kind: pa.DataType) -> bool:
    """Whether a partition's bounds may exclude values of its files.

    What is made of the ranges of the files then includes them.
    """
    if whole.min_value is None or whole.max_value is None:
        return False
    low, high = whole.min_value.value, whole.max_value.value
    if pt.is_floating(kind):
        return not (low > 0 or high < 0)
    if is_text(kind):
        return re.search(_ELSEWHERE_IN_UTF16, low + high) is not None
    return is_bytes(kind)


def is_in_java_order(whole: ColumnRange, kind: pa.DataType) -> bool:
    """Whether strings or bytes may have been compared in Java's order.

    Of partitions and log files; readers leave nothing out by such a range.
    """
    return not pt.is_floating(kind) and may_be_narrow(whole, kind)


def _merged(table: pa.Table, of_files: bool) -> Mask:
    """Which ranges may be merged from several ones."""
    if not of_files:
        return np.ones(len(table), np.bool_)
    several: Mask = pc.fill_null(table["value_count"], 0).to_numpy() > _ONE_ROW_GROUP
    return several


def _floats(table: pa.Table, merged: Mask) -> Mask:
    low, high = (
        pc.fill_null(table[side], np.nan).to_numpy().astype(np.float64)
        for side in ("minimum", "maximum")
    )
    with_zero: Mask = (low <= 0) & (high >= 0)
    # bounds that are zeros are negative below and positive above, whichever engine writes the file
    positive: Mask = (low == 0) & (high == 0) & ~np.signbit(low)
    found: Mask = np.where(merged, with_zero, positive)
    return found


def _long(table: pa.Table, merged: Mask) -> Mask:
    nulls, values, size = (
        pc.fill_null(table[name], 0).to_numpy()
        for name in ("null_count", "value_count", "total_uncompressed_size")
    )
    some: Mask = np.where(merged, nulls > 0, nulls == values)
    long: Mask = size >= _LONG
    return some & long


def _in_java_order(table: pa.Table) -> Mask:
    """Which bounds of strings exclude other strings in UTF-8 than in UTF-16."""
    sides = (
        pc.fill_null(pc.match_substring_regex(table[side], _ELSEWHERE_IN_UTF16), False)
        for side in ("minimum", "maximum")
    )
    low, high = (side.to_numpy() for side in sides)
    found: Mask = low | high
    return found


# --- ranges of partitions from those of their files ----------------------------------------------


COUNTS: Final = ("value_count", "null_count", "total_size", "total_uncompressed_size")
"""What is added up of ranges."""


def merged_range(ranges: Iterable[ColumnRange | None], form: BoundForm) -> ColumnRange | None:
    """The range of a column in several files.

    ``None`` where no file has the column.

    ``ranges`` has ``None`` for each file without the column. ``form`` is the current one; files may
    have an older.
    """
    parts = [in_form(one, form) for one in ranges if one is not None]
    if not parts:
        return None
    if len(parts) == 1:  # of most partitions that one commit touches
        return parts[0] if parts[0].is_tight_bound else replace(parts[0], is_tight_bound=True)
    return _around(parts, sums_of(parts))


def updated_range(
    stored: ColumnRange, gone: Sequence[ColumnRange], came: Sequence[ColumnRange], form: BoundForm
) -> ColumnRange | None:
    """The range of a partition after some of its files were replaced.

    ``None`` where it takes the files that stay: a bound may have gone with its file, or what is
    stored is not exact, of another form, or may be one of those that Hudi's writers make too
    narrow.
    """
    is_usable = stored.is_tight_bound and is_in_form(stored, form)
    if not is_usable or may_be_narrow(stored, form.kind):
        return None
    old, new = ([in_form(one, form) for one in some] for some in (gone, came))
    parts = [stored, *new]
    sums: dict[str, int] = {}
    for name in COUNTS:
        added, taken = _sum(parts, name), _sum(old, name)
        if added is None or taken is None or added < taken:
            return None
        sums[name] = added - taken
    found = _around(parts, sums)
    is_bounded = found.min_value is not None
    agrees = is_bounded is has_values(found) and sums["null_count"] <= sums["value_count"]
    return found if agrees and _holds(found, old, new) else None


def _holds(found: ColumnRange, old: Sequence[ColumnRange], new: Sequence[ColumnRange]) -> bool:
    """Whether no bound has gone with a replaced file."""
    if not all(covers(found, one) for one in old):
        return False
    for side in ("min_value", "max_value"):
        held, kept = ({_place(one, side) for one in some} for some in (old, new))
        if _place(found, side) in held - kept - {None}:
            return False
    return True


def _place(one: ColumnRange, side: str) -> Any:
    bound: Wrapped | None = getattr(one, side)
    return None if bound is None else bound_order(one)(bound)


def _around(parts: Sequence[ColumnRange], sums: Mapping[str, Any]) -> ColumnRange:
    """The first of some ranges, with the outermost bounds of all."""
    bounded = [one for one in parts if has_values(one)]
    low, high = outermost(bounded) if bounded else (None, None)
    return replace(parts[0], min_value=low, max_value=high, is_tight_bound=True, **sums)


def sums_of(ranges: Sequence[ColumnRange]) -> dict[str, Any]:
    """Sums of the counts of ranges; ``None`` where one is unknown."""
    return {name: _sum(ranges, name) for name in COUNTS}


def _sum(ranges: Sequence[ColumnRange], name: str) -> int | None:
    found = [getattr(one, name) for one in ranges]
    return None if None in found else sum(found)
