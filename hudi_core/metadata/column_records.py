"""Ranges of columns as records: of files from what writers collected, of partitions from those."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

import pyarrow as pa

from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.metadata.bounds import bound_type, wrap_bound
from hudi_core.metadata.keys import column_stats_key, partition_name, partition_stats_key
from hudi_core.metadata.merging import merge
from hudi_core.metadata.partition_types import RecordType
from hudi_core.metadata.records import ColumnRange, MetadataRecord
from hudi_core.model.files import PartitionPath
from hudi_core.model.schema import COMMIT_TIME, PARTITION_PATH, RECORD_KEY, TableSchema
from hudi_core.model.stats import ColumnStats

META_INDEXED: Final = (COMMIT_TIME, PARTITION_PATH, RECORD_KEY)
"""The meta columns whose ranges are kept."""


@dataclass(frozen=True, slots=True)
class IndexedColumns:
    """The columns whose ranges are kept.

    Attributes
    ----------
    types
        Their types by dotted path, in the order in which they are listed.
    has_value_types
        Whether ranges say the type of their bounds.
    """

    types: Mapping[str, pa.DataType]
    has_value_types: bool


def indexed_columns(
    config: MetadataConfig, schema: TableSchema, has_value_types: bool, known: Sequence[str] = ()
) -> IndexedColumns:
    """Return the columns whose ranges a table keeps.

    Three meta columns, and the columns that the options name or else the first ones of a type that
    has ranges. What is inside of other columns is kept where it is named.

    Parameters
    ----------
    known
        The columns that have been kept so far.
    """
    wanted = list(config.stats_columns)
    if not wanted:
        first = [field.name for field in schema.arrow if bound_type(field.type) is not None]
        wanted = [*first[: config.max_stats_columns], *known]
    types: dict[str, pa.DataType] = dict.fromkeys(META_INDEXED, pa.string())
    for path in wanted:
        field = schema.field(path)
        if field is not None and bound_type(field.type) is not None:
            types.setdefault(path, field.type)
    return IndexedColumns(types, has_value_types)


def file_ranges(
    file_name: str, found: Mapping[str, ColumnStats], columns: IndexedColumns
) -> dict[str, ColumnRange]:
    """Return the ranges of a file's columns by path; columns that it lacks are left out."""
    return {
        path: _range(file_name, path, found[path], kind, columns.has_value_types)
        for path, kind in columns.types.items()
        if path in found
    }


def _range(
    file_name: str, path: str, stats: ColumnStats, kind: pa.DataType, has_value_types: bool
) -> ColumnRange:
    low = high = None
    if stats.min_value is not None and stats.max_value is not None:
        low = wrap_bound(stats.min_value, kind, has_value_types)
        high = wrap_bound(stats.max_value, kind, has_value_types)
    return ColumnRange(
        file_name=file_name,
        column_name=path,
        min_value=low if high is not None else None,
        max_value=high if low is not None else None,
        value_count=stats.value_count,
        null_count=stats.null_count,
        total_size=stats.compressed_size,
        total_uncompressed_size=stats.uncompressed_size,
        value_type=bound_type(kind) if has_value_types else None,
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
    partition: PartitionPath, path: str, ranges: Sequence[ColumnRange | None]
) -> MetadataRecord:
    """Return what holds of a column in a partition.

    Parameters
    ----------
    ranges
        Of the column, for each file that readers see; ``None`` where a file tells none. Then, and
        without any file, nothing is known of the partition.
    """
    key, name = partition_stats_key(path, partition), partition_name(partition)
    known = [one for one in ranges if one is not None]
    if not known or len(known) < len(ranges):
        unknown = ColumnRange(name, path, is_deleted=True)
        return MetadataRecord(key, RecordType.PARTITION_STATS, unknown)
    parts = [
        MetadataRecord(
            key,
            RecordType.PARTITION_STATS,
            replace(one, file_name=name, is_tight_bound=False),
        )
        for one in known
    ]
    whole = reduce(_merged, parts)
    if isinstance(whole.payload, ColumnRange):
        return replace(whole, payload=replace(whole.payload, is_tight_bound=True))
    return whole


def _merged(older: MetadataRecord, newer: MetadataRecord) -> MetadataRecord:
    return merge(older, newer) or newer
