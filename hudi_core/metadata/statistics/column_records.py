"""Column ranges as records: of files, and of partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from hudi_core.metadata.keys import NO_PARTITION, column_stats_key, partition_stats_key
from hudi_core.metadata.log.records import ColumnRange, MetadataRecord, RecordType
from hudi_core.metadata.statistics.bound_forms import BoundForm, wrapped_bounds
from hudi_core.metadata.statistics.indexed_columns import IndexedColumns
from hudi_core.metadata.statistics.merged_ranges import merged_range
from hudi_core.model.files import PartitionPath
from hudi_core.model.stats import ColumnStats


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
