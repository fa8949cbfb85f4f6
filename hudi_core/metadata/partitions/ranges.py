"""Ranges of columns, of files and of the table's partitions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from hudi_core.base_file.footer import opened_file
from hudi_core.base_file.footer_statistics import footer_statistics
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.key_index.key_records import DataFile
from hudi_core.metadata.keys import id64, id128, partition_stats_key
from hudi_core.metadata.log.records import ColumnRange, MetadataRecord
from hudi_core.metadata.partition_types import COLUMN_STATS, PARTITION_STATS
from hudi_core.metadata.partitions.base import MetadataPartition, Reading
from hudi_core.metadata.partitions.listed import ListedTable, RecordComparison
from hudi_core.metadata.partitions.work import Work
from hudi_core.metadata.statistics.bound_forms import (
    covers,
    has_type,
    in_form,
)
from hudi_core.metadata.statistics.bounds import bound_arrays
from hudi_core.metadata.statistics.column_ranges import as_table
from hudi_core.metadata.statistics.column_records import (
    file_ranges,
    is_in_java_order,
    partition_record,
)
from hudi_core.metadata.statistics.indexed_columns import IndexableColumns, IndexedColumns
from hudi_core.model.files import FileStatus, PartitionPath
from hudi_core.model.promoted_bounds import promoted_bounds
from hudi_core.model.stats import ColumnStats
from hudi_core.schema.arrow_types import leaves, walk
from hudi_core.schema.avro_types import local_timestamps

# --- statistics of existing data files, in present column types ----------------------------------


def stored_statistics(
    client: TableMetaClient, path: str, wanted: Mapping[str, pa.DataType]
) -> dict[str, ColumnStats]:
    """Statistics of a data file by leaf path, without columns it lacks."""
    with opened_file(client, path) as file:
        return _of_footer(file.metadata, wanted)


def _of_footer(
    footer: pq.FileMetaData, wanted: Mapping[str, pa.DataType]
) -> dict[str, ColumnStats]:
    own = leaves(footer.schema.to_arrow_schema())
    if len(own) != len(footer.schema):
        return {}
    found = footer_statistics(own, footer)
    return {
        name: _as_of_now(found[name], field.type, wanted[name])
        for name, field in own
        if name in wanted
    }


def _of_rows(rows: pa.Table, wanted: Mapping[str, pa.DataType]) -> dict[str, ColumnStats]:
    """Statistics of rows, as those of a data file that holds them."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    return _of_footer(pq.read_metadata(pa.BufferReader(sink.getvalue())), wanted)


def _as_of_now(found: ColumnStats, stored: pa.DataType, wanted: pa.DataType) -> ColumnStats:
    low, high = found.min_value, found.max_value
    if low is None or high is None:
        return found
    if (pt.is_timestamp(stored) or pt.is_time(stored)) and stored.unit == "ns":
        low, high = int(low) // 1000, -(-int(high) // 1000)
    low, high = promoted_bounds(low, high, stored, wanted)
    return replace(found, min_value=low, max_value=high)


# --- ranges --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RangePartition(MetadataPartition):
    """What both have in common.

    As an Arrow table, bounds are strings, bytes in hex, and null where none is known; ``file_name``
    is the name of a partition where the range is of one.
    """

    arrow_schema: ClassVar[pa.Schema] = pa.schema(
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

    is_wide: ClassVar[bool] = False
    """Whether ranges may allow more than there is."""

    def to_arrow(self, records: Sequence[MetadataRecord], reading: Reading) -> pa.Table:
        types = self.types(reading)
        by_column: dict[str, list[ColumnRange]] = {}
        for record in records:
            if isinstance(record.payload, ColumnRange):
                by_column.setdefault(record.payload.column_name or "", []).append(record.payload)
        tables = [self.arrow_schema.empty_table()]
        for column, ranges in sorted(by_column.items()):
            stored = as_table(ranges)
            # of a column that the table has no more, the type is not known
            kind = types.get(column, pa.null())
            low, high = (_texts(stored, side, kind, reading.path) for side in ("min", "max"))
            names = self.arrow_schema.names
            columns: dict[str, Any] = {
                **{name: [getattr(one, name) for one in ranges] for name in names},
                "column_name": [column] * len(ranges),
                "min_value": low,
                "max_value": high,
            }
            tables.append(pa.table(columns, schema=self.arrow_schema))
        return pa.concat_tables(tables).sort_by(
            [("column_name", "ascending"), ("file_name", "ascending")]
        )

    def types(self, reading: Reading) -> Mapping[str, pa.DataType]:
        """Types of the bounds, by column."""
        schema = reading.client.schema_at(reading.timeline).with_meta()
        return {name: field.type for name, field in walk(schema)}

    def misleads(
        self,
        listed: MetadataRecord | None,
        expected: MetadataRecord | None,
        comparison: RecordComparison,
    ) -> bool:
        ours = None if listed is None else listed.payload
        theirs = None if expected is None else expected.payload
        if not isinstance(ours, ColumnRange) or not isinstance(theirs, ColumnRange):
            return super().misleads(listed, expected, comparison)
        column = theirs.column_name or ""
        form = comparison.table.shared(indexed_columns).get(column)
        if ours.min_value is not None and has_type(ours) is not has_type(theirs):
            return True  # Hudi does not merge it with those of its index's version
        # zeros in footers of other engines may mean no bounds, here as there
        if form is not None and ours.min_value is not None and ours != theirs:
            ours = in_form(ours, form)
        # a name may once have stood for another column, and a file's column may be that one
        if self.is_wide or column in comparison.table.client.config.former_names:
            is_ignored = form is not None and is_in_java_order(ours, form.kind)
            return not (covers(ours, theirs) or is_ignored)
        counts = (ours.value_count, ours.null_count) == (theirs.value_count, theirs.null_count)
        return not (counts and covers(ours, theirs) and covers(theirs, ours))

    def subject(self, record: MetadataRecord) -> str:
        found = record.payload
        if not isinstance(found, ColumnRange):
            return super().subject(record)
        return f"column {found.column_name} of {found.file_name}"

    def describe(self, record: MetadataRecord) -> str:
        found = record.payload
        if not isinstance(found, ColumnRange):
            return super().describe(record)
        bounds = found.min_value, found.max_value
        low, high = (None if one is None else one.value for one in bounds)
        counts = f"{found.value_count} values, {found.null_count} of them null"
        return f"{low!r} to {high!r}, {counts}{', with its type' if has_type(found) else ''}"


def _texts(stored: pa.Table, side: str, kind: pa.DataType, path: str) -> pa.Array:
    if pt.is_null(kind) or pt.is_nested(kind):
        return pa.nulls(len(stored), pa.string())
    bounds = bound_arrays(stored, side, kind, path)
    if pt.is_binary(kind):
        texts = [None if value is None else value.hex() for value in bounds.to_pylist()]
        return pa.array(texts, pa.string())
    return bounds.cast(pa.string())


# --- which columns, and their ranges ----------------------------------------


def indexable_columns(work: Work) -> IndexableColumns:
    """The columns of a table that may have ranges."""
    client = work.client
    timeline = client.timeline()
    local = local_timestamps(client.schema_text_at(timeline))
    schema = client.schema_at(timeline)
    return IndexableColumns.of(schema, client.config, work.definitions, local=local)


def indexed_columns(table: ListedTable) -> IndexedColumns:
    """The columns that have ranges under the options of a build."""
    known = table.definitions.columns(COLUMN_STATS)
    return table.shared(indexable_columns).wanted(table.config, known)


def footer_ranges(table: ListedTable) -> dict[str, dict[str, ColumnRange]]:
    """Ranges of every file by its path and column, from the footers."""
    client, columns = table.client, table.shared(indexed_columns)
    kinds = {path: form.kind for path, form in columns.items()}
    paths = [file.path for file in table.all]
    read = partial(stored_statistics, client.for_tasks, wanted=kinds)
    return {
        file.path: file_ranges(file.name, found, columns)
        for file, found in zip(table.all, client.map_files(read, paths), strict=True)
    }


class BlockRanges(NamedTuple):
    """Ranges of the rows of one log block, by column."""

    partition_path: PartitionPath
    file_name: str
    ranges: Mapping[str, ColumnRange]


def log_ranges(table: ListedTable) -> list[BlockRanges]:
    """Ranges of the values in present logs, block by block.

    As of base files, a value under the former name of a column is none of the present one.
    """
    reader, columns = table.stored_slices, table.shared(indexed_columns)
    kinds = {path: form.kind for path, form in columns.items()}

    def ranges(log: tuple[PartitionPath, FileStatus]) -> list[BlockRanges]:
        partition, file = log
        return [
            BlockRanges(
                partition, file.name, file_ranges(file.name, _of_rows(rows, of_block), columns)
            )
            for rows, paths in reader.written(file)
            for of_block in [{path: kinds[path] for path in kinds.keys() & paths}]
        ]

    return list(chain.from_iterable(table.client.run_map(ranges, table.logs)))


def stored_ranges(
    work: Work, partition: str, columns: Collection[str]
) -> Iterator[tuple[MetadataRecord, ColumnRange]]:
    """Yield the stored ranges of some columns in a partition."""
    if not columns or partition not in work.stored.complete:
        return
    found = work.snapshot.scan_many(partition, [id64(one) for one in columns])
    for record in found.values():
        if isinstance(record.payload, ColumnRange) and record.payload.column_name in columns:
            yield record, record.payload


def ranges_of_files(
    work: Work, wanted: Iterable[tuple[DataFile, Iterable[str]]]
) -> dict[tuple[str, str], ColumnRange]:
    """The stored ranges of files, by path and column."""
    if COLUMN_STATS not in work.stored.complete:
        return {}
    begins: dict[tuple[str, PartitionPath], str] = {}
    keys: dict[str, tuple[str, str]] = {}
    for file, columns in wanted:
        end = id128(file.name)
        for column in columns:
            place = column, file.partition_path
            if place not in begins:
                begins[place] = partition_stats_key(*place)
            keys[begins[place] + end] = file.path, column
    if not keys:
        return {}
    return {
        keys[key]: record.payload
        for key, record in work.snapshot.lookup(COLUMN_STATS, keys).items()
        if isinstance(record.payload, ColumnRange)
    }


def ranges_of_partitions(
    work: Work,
    wanted: Mapping[PartitionPath, IndexedColumns],
    files: Iterable[DataFile],
    fresh: Mapping[str, Mapping[str, ColumnRange]],
) -> list[MetadataRecord]:
    """Ranges of partitions of the table, from those of their files.

    ``files`` are those that readers see; ``fresh`` has ranges that the metadata table does not have
    yet, by file path and column. A log without a stored range may have any values that its
    partition had.
    """
    by_partition: dict[PartitionPath, dict[str, DataFile]] = {one: {} for one in wanted}
    for file in files:
        if file.partition_path in by_partition:
            by_partition[file.partition_path][file.path] = file
    stored = ranges_of_files(
        work,
        (
            (file, wanted[partition])
            for partition, held in by_partition.items()
            for path, file in held.items()
            if path not in fresh
        ),
    )
    unknown = {
        (partition, column)
        for partition, held in by_partition.items()
        for path, file in held.items()
        if file.is_log and path not in fresh
        for column in wanted[partition]
        if (path, column) not in stored
    }
    former = _of_partitions(work, unknown)
    return [
        partition_record(
            partition,
            column,
            [
                *(
                    fresh[path].get(column) if path in fresh else stored.get((path, column))
                    for path in held
                ),
                former.get((partition, column)),
            ],
            form,
        )
        for partition, held in by_partition.items()
        for column, form in wanted[partition].items()
    ]


def _of_partitions(
    work: Work, places: Collection[tuple[PartitionPath, str]]
) -> dict[tuple[PartitionPath, str], ColumnRange]:
    """The stored ranges of columns in partitions."""
    if not places or PARTITION_STATS not in work.stored.complete:
        return {}
    keys = {partition_stats_key(path, partition): (partition, path) for partition, path in places}
    return {
        keys[key]: record.payload
        for key, record in work.snapshot.lookup(PARTITION_STATS, keys).items()
        if isinstance(record.payload, ColumnRange)
    }
