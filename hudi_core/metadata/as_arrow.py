"""A partition of the metadata table as an Arrow table, for people and tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt

from hudi_core.errors import CorruptMetadataError, UnsupportedTableError
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.bound_arrays import bound_arrays
from hudi_core.metadata.column_ranges import as_table
from hudi_core.metadata.keys import ALL_PARTITIONS, partition_path, split_secondary_key
from hudi_core.metadata.partition_types import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX,
)
from hudi_core.metadata.records import (
    BloomFilterEntry,
    ColumnRange,
    FileList,
    MetadataRecord,
    RecordLocation,
)
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.metadata.table import StoredPartitions
from hudi_core.model.protocols import TimelineView
from hudi_core.schema.arrow_types import walk

_FILES: Final = pa.schema(
    [("partition_path", pa.string()), ("file_name", pa.string()), ("size", pa.int64())]
)
_RANGES: Final = pa.schema(
    [
        ("file_name", pa.string()),
        ("column_name", pa.string()),
        ("min_value", pa.string()),
        ("max_value", pa.string()),
        ("value_count", pa.int64()),
        ("null_count", pa.int64()),
        ("total_size", pa.int64()),
        ("total_uncompressed_size", pa.int64()),
        ("is_tight_bound", pa.bool_()),
    ]
)
_BLOOMS: Final = pa.schema(
    [
        ("key", pa.string()),
        ("type", pa.string()),
        ("instant_time", pa.string()),
        ("bloom_filter", pa.binary()),
    ]
)
_LOCATIONS: Final = pa.schema(
    [
        ("record_key", pa.string()),
        ("partition_path", pa.string()),
        ("file_id", pa.string()),
        ("instant", pa.timestamp("ms", "UTC")),
        ("position", pa.int64()),
    ]
)
_SECONDARY: Final = pa.schema([("value", pa.string()), ("record_key", pa.string())])


def metadata_partition(client: TableMetaClient, timeline: TimelineView, partition: str) -> pa.Table:
    """Return a partition of the metadata table.

    ====================================== =====================================================
    partition                              columns
    ====================================== =====================================================
    ``files``                              partition_path, file_name, size
    ``column_stats``, ``partition_stats``  file_name (of a partition, its name), column_name,
                                           min_value and max_value (as texts, bytes in hex; null
                                           where none is known), value_count, null_count,
                                           total_size, total_uncompressed_size, is_tight_bound
    ``bloom_filters``                      key, type, instant_time, bloom_filter
    ``record_index``                       record_key, partition_path, file_id, instant (when it
                                           was requested), position
    ``secondary_index_<name>``             value, record_key
    ====================================== =====================================================

    Parameters
    ----------
    client
        The table.
    timeline
        Its timeline, as its reader is meant to see it.
    partition
        Name of the partition.

    Raises
    ------
    UnsupportedTableError
        The table has no such partition.
    CorruptMetadataError
        The metadata table is missing, damaged or stale.
    """
    _require(client, partition, StoredPartitions.of(client.config).complete)
    try:
        snapshot = MetadataSnapshot.open(client, timeline)
        records = list(snapshot.scan(partition))
    except CorruptMetadataError:
        # it may have been dropped since the table was opened
        _require(client, partition, StoredPartitions.of(client.as_stored().config).complete)
        raise
    if partition in (COLUMN_STATS, PARTITION_STATS):
        schema = client.schema_at(timeline).with_meta()
        return _ranges(records, {path: field.type for path, field in walk(schema)}, snapshot.root)
    named = next((rows for prefix, rows in _ROWS.items() if partition.startswith(prefix)), None)
    if named is None:
        raise UnsupportedTableError(
            client.base_path, f"keeps {partition}, whose records are not known", "Ask Apache Hudi."
        )
    rows_of, columns = named
    rows = [row for record in records for row in rows_of(record, snapshot.root)]
    return pa.Table.from_pylist(rows, schema=columns)


def _require(client: TableMetaClient, partition: str, known: Sequence[str]) -> None:
    if partition not in known:
        raise UnsupportedTableError(
            client.base_path,
            f"keeps no {partition!r} in its metadata table",
            f"It keeps {', '.join(known)}." if known else "It has no metadata table.",
        )


def _file_rows(record: MetadataRecord, _: str) -> Iterable[Mapping[str, Any]]:
    if record.key != ALL_PARTITIONS and isinstance(record.payload, FileList):
        for name, entry in sorted(record.payload.files.items()):
            path = partition_path(record.key)
            yield {"partition_path": path, "file_name": name, "size": entry.size}


def _bloom_rows(record: MetadataRecord, _: str) -> Iterable[Mapping[str, Any]]:
    found = record.payload
    if isinstance(found, BloomFilterEntry):
        yield {
            "key": record.key,
            "type": found.type_code,
            "instant_time": found.instant_time,
            "bloom_filter": found.bloom,
        }


def _location_rows(record: MetadataRecord, _: str) -> Iterable[Mapping[str, Any]]:
    found = record.payload
    if isinstance(found, RecordLocation):
        yield {
            "record_key": record.key,
            "partition_path": found.partition_name,
            "file_id": found.file_id,
            "instant": found.instant_ms,
            "position": found.position,
        }


def _secondary_rows(record: MetadataRecord, root: str) -> Iterable[Mapping[str, Any]]:
    value, key = split_secondary_key(record.key, root)
    yield {"value": value, "record_key": key}


def _ranges(
    records: Sequence[MetadataRecord], types: Mapping[str, pa.DataType], path: str
) -> pa.Table:
    by_column: dict[str, list[ColumnRange]] = {}
    for record in records:
        if isinstance(record.payload, ColumnRange):
            by_column.setdefault(record.payload.column_name or "", []).append(record.payload)
    tables = [_RANGES.empty_table()]
    for column, ranges in sorted(by_column.items()):
        stored = as_table(ranges)
        # of a column that the table has no more, the type is not known
        kind = types.get(column, pa.null())
        low, high = (_texts(stored, side, kind, path) for side in ("min", "max"))
        columns: dict[str, Any] = {
            "file_name": [one.file_name for one in ranges],
            "column_name": [column] * len(ranges),
            "min_value": low,
            "max_value": high,
            "value_count": [one.value_count for one in ranges],
            "null_count": [one.null_count for one in ranges],
            "total_size": [one.total_size for one in ranges],
            "total_uncompressed_size": [one.total_uncompressed_size for one in ranges],
            "is_tight_bound": [one.is_tight_bound for one in ranges],
        }
        tables.append(pa.table(columns, schema=_RANGES))
    return pa.concat_tables(tables).sort_by(
        [("column_name", "ascending"), ("file_name", "ascending")]
    )


def _texts(stored: pa.Table, side: str, kind: pa.DataType, path: str) -> pa.Array:
    if pt.is_null(kind) or pt.is_nested(kind):
        return pa.nulls(len(stored), pa.string())
    bounds = bound_arrays(stored, side, kind, path)
    if pt.is_binary(kind):
        texts = [None if value is None else value.hex() for value in bounds.to_pylist()]
        return pa.array(texts, pa.string())
    return bounds.cast(pa.string())


_Rows = Callable[[MetadataRecord, str], Iterable[Mapping[str, Any]]]
_ROWS: Final[Mapping[str, tuple[_Rows, pa.Schema]]] = {
    FILES: (_file_rows, _FILES),
    BLOOM_FILTERS: (_bloom_rows, _BLOOMS),
    RECORD_INDEX: (_location_rows, _LOCATIONS),
    SECONDARY_INDEX: (_secondary_rows, _SECONDARY),
}
"""By what the names of partitions begin with."""
