"""Ranges of columns from the metadata table: of files, and of partitions.

A column is asked for at a time, and of the statistics only the blocks are read that hold the column
in the partitions in question.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.avro.columns import Columns, decode_columns
from hudi_core.avro.datum import parse_writer_schema
from hudi_core.errors import CorruptMetadataError
from hudi_core.metadata.damage import REBUILD, with_rebuild_hint
from hudi_core.metadata.keys import ID64_LETTERS, NO_PARTITION, id64, id64_of_many
from hudi_core.metadata.log.layers import BaseLayer, Entry, GroupReader, Layer
from hudi_core.metadata.log.record_codec import schema_incompatibility
from hudi_core.metadata.log.records import ColumnRange
from hudi_core.metadata.merging import present
from hudi_core.metadata.partition_types import COLUMN_STATS, PARTITION_STATS
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.metadata.statistics.bounds import WRAPPERS, bound_arrays, in_one
from hudi_core.metadata.statistics.column_records import doubtful
from hudi_core.metadata.statistics.range_cache import SHARED
from hudi_core.model.file_columns import FileColumns
from hudi_core.model.files import PartitionPath
from hudi_core.model.ranges import Mask, ValueRanges

# --- ranges as columns ---------------------------------------------------------------------------

# For readers that compare the bounds of many files with a filter.


_STATS: Final = "ColumnStatsMetadata"
_CELLS: Final = {"int": pa.int64(), "float": pa.float64(), "bytes": pa.binary()}
"""Columns that values of bounds are in, by their wrappers."""
_COUNTS: Final = {
    "value_count": "valueCount",
    "null_count": "nullCount",
    "total_size": "totalSize",
    "total_uncompressed_size": "totalUncompressedSize",
}


def decode_ranges(
    entries: Iterable[tuple[bytes, bytes]], schema: str, path: str, has_bounds: bool = True
) -> pa.Table:
    """Return the statistics that entries of one HFile hold, in their order.

    Columns, null where a record does not say: ``key``, ``file_name``, ``column_name`` (strings);
    for ``min`` and ``max`` each ``_wrapper`` (name of the wrapper), ``_int`` (booleans, whole
    numbers, dates, times), ``_float`` and ``_bytes`` (strings, bytes, unscaled decimals), of which
    at most one is not null; ``value_count``, ``null_count``, ``total_size``,
    ``total_uncompressed_size``; ``is_deleted``, ``is_tight_bound``; ``type_ordinal``,
    ``type_info``. See :class:`~hudi_core.metadata.log.records.ColumnRange`. An entry that deletes
    its key has ``is_deleted`` true and nothing else. Without ``has_bounds`` these columns are left
    out.
    """
    pairs = list(entries)
    values = [value for _, value in pairs]
    sizes = np.fromiter(map(len, values), np.int64, len(values))
    full = np.flatnonzero(sizes)
    with with_rebuild_hint():
        parsed = parse_writer_schema(schema, path).parsed
        wrong = schema_incompatibility(schema)
        if wrong is not None:
            raise CorruptMetadataError(path, f"its schema is not right at {wrong}", REBUILD)
        ends = np.cumsum(sizes)[full]
        found = decode_columns(b"".join(values), ends - sizes[full], ends, parsed, path)
        deleted = found.numbers(f"{_STATS}.isDeleted", pa.bool_())
        if deleted.null_count:
            raise CorruptMetadataError(path, "a value holds no column statistics")
        table = pa.table(_columns(found, deleted, path, has_bounds))
    if len(full) < len(sizes):
        places = np.full(len(sizes), -1)
        places[full] = np.arange(len(full))
        table = table.take(pa.array(places, mask=places < 0))
        filled = pc.fill_null(table["is_deleted"], True)
        table = table.set_column(table.schema.get_field_index("is_deleted"), "is_deleted", filled)
    try:
        keys = pa.array([key for key, _ in pairs], pa.binary()).cast(pa.string())
    except pa.ArrowInvalid as error:
        raise CorruptMetadataError(path, "a key is not UTF-8", REBUILD) from error
    return table.add_column(0, "key", keys)


def _columns(found: Columns, deleted: pa.Array, path: str, has_bounds: bool) -> dict[str, pa.Array]:
    columns = {
        "file_name": found.texts(f"{_STATS}.fileName", pa.string(), path),
        "column_name": found.texts(f"{_STATS}.columnName", pa.string(), path),
    }
    for side in ("min", "max") if has_bounds else ():
        columns |= _bound(found, side, path)
    for name, field in _COUNTS.items():
        columns[name] = found.numbers(f"{_STATS}.{field}", pa.int64())
    columns["is_deleted"] = deleted
    tight = found.numbers(f"{_STATS}.isTightBound", pa.bool_())
    columns["is_tight_bound"] = pc.fill_null(tight, False)
    columns["type_ordinal"] = found.numbers(f"{_STATS}.valueType.typeOrdinal", pa.int32())
    columns["type_info"] = found.texts(f"{_STATS}.valueType.additionalInfo", pa.string(), path)
    return columns


def _bound(found: Columns, side: str, path: str) -> dict[str, pa.Array]:
    wrapper = np.full(len(found), None, object)
    cells: dict[str, list[pa.Array]] = {cell: [] for cell in _CELLS}
    for name, (cell, _) in WRAPPERS.items():
        where = f"{_STATS}.{side}Value:{name}.value"
        column = found.find(where)
        if column is None:
            continue
        wrapper[column.rows] = name
        kind = _CELLS[cell]
        is_text = cell == "bytes"
        values = found.texts(where, kind, path) if is_text else found.numbers(where, kind)
        cells[cell].append(values)
    return {
        f"{side}_wrapper": pa.array(wrapper, pa.string()),
        **{
            f"{side}_{cell}": pc.coalesce(*some) if some else pa.nulls(len(found), _CELLS[cell])
            for cell, some in cells.items()
        },
    }


# --- ranges of files -----------------------------------------------------------------------------


_COUNTED = ["null_count", "value_count", "total_uncompressed_size", "is_deleted"]
_STATED = ["minimum", "maximum", *_COUNTED]
_FEW_PARTITIONS = 16
"""For more partitions the whole column is decoded, and kept, where most of it is read anyway."""


def file_ranges(
    snapshot: MetadataSnapshot, files: FileColumns, column: str, kind: pa.DataType
) -> ValueRanges | None:
    """Ranges of a column in files; see :class:`~hudi_core.model.file_index.FileIndex`."""
    if COLUMN_STATS not in snapshot.partitions:
        return None
    table = _of_files(snapshot, COLUMN_STATS, files, column, kind)
    if table is None:
        return ValueRanges.unknown(kind, len(files))
    return _ranges(table, kind, of_files=True, are_logs=files.are_logs)


def value_ranges(
    snapshot: MetadataSnapshot, index: str, files: FileColumns, column: str, kind: pa.DataType
) -> ValueRanges:
    """Ranges of a function's values in files, by an index.

    Nulls are not counted with the values there.
    """
    table = _of_files(snapshot, index, files, column, kind)
    if table is None:
        return ValueRanges.unknown(kind, len(files))
    known = pc.invert(pc.fill_null(table["is_deleted"], True))
    low, high = _bounds(table, known)
    has_none = pc.and_(known, pc.fill_null(pc.equal(table["value_count"], 0), False))
    has_none = pc.and_(has_none, pc.and_(pc.is_null(low), pc.is_null(high)))
    anything = np.ones(len(files), np.bool_)
    return ValueRanges(low, high, anything, ~np.asarray(has_none, np.bool_))


def _of_files(
    snapshot: MetadataSnapshot, index: str, files: FileColumns, column: str, kind: pa.DataType
) -> pa.Table | None:
    """What is stated of a column in files, if anything."""
    hashes = _ids(files.partitions)
    prefix = id64(column)
    prefixes = [prefix + one for one in hashes.to_pylist()]
    tables = list(_tables(snapshot.groups(index), _Column(prefix, kind, of_files=True), prefixes))
    if not tables:
        return None
    # newer statistics come first, and of several the first is found
    table = pa.concat_tables(tables)
    wanted = pc.binary_join_element_wise(hashes.take(pa.array(files.owners)), files.names, "")
    places = pc.index_in(wanted, value_set=table["place"].combine_chunks())
    return table.select(_STATED).take(places)


def partition_ranges(
    snapshot: MetadataSnapshot,
    partitions: Sequence[PartitionPath],
    column: str,
    kind: pa.DataType,
    counting: str | None,
) -> ValueRanges | None:
    """Return ranges of a column in partitions; see above.

    Files that lack a column have nulls in it and no statistics, so that a partition may have nulls
    in any column. They may also have the column under an earlier name: nothing is concluded for a
    partition that does not count all its rows.
    """
    if PARTITION_STATS not in snapshot.partitions:
        return None
    ids = _ids(pa.array(partitions, pa.string()))
    table = _of_partitions(snapshot, ids, column, kind)
    if counting is None:
        rows = pa.nulls(len(partitions), pa.int64())
    elif counting == column:
        rows = table["value_count"]
    else:
        rows = _of_partitions(snapshot, ids, counting, None)["value_count"]
    reported = pc.fill_null(pc.equal(table["value_count"], rows), False)
    gone = pc.or_kleene(table["is_deleted"], pc.invert(reported))
    place = table.schema.get_field_index("is_deleted")
    ranges = _ranges(table.set_column(place, "is_deleted", gone), kind, of_files=False)
    anything = np.ones(len(partitions), np.bool_)
    return ValueRanges(ranges.minimum, ranges.maximum, anything, ranges.may_have_value)


def _of_partitions(
    snapshot: MetadataSnapshot, ids: pa.StringArray, column: str, kind: pa.DataType | None
) -> pa.Table:
    """What is stated of a column, by ids of partitions."""
    path = f"{snapshot.root}/{PARTITION_STATS}"
    wanted = _Column(id64(column), kind, of_files=False)
    keys = pc.binary_join_element_wise(wanted.prefix, ids, "")
    some = keys.to_pylist()
    tables: list[pa.Table] = []
    for group in snapshot.groups(PARTITION_STATS):
        # records of the log are merged with those of the base file; what it does not mention is
        # taken from there as it is
        is_few = len(some) <= _FEW_PARTITIONS
        changes = group.changed(some) if is_few else group.changed_below(wanted.prefix)
        reported = {key: present(record) for key, record in changes.items()}
        payloads = [record.payload if record is not None else None for record in reported.values()]
        stored = as_table([one if isinstance(one, ColumnRange) else None for one in payloads])
        changed = pa.table({"key": pa.array(reported, pa.string()), **_typed(stored, kind, path)})
        tables.append(changed)
        if group.base is not None:
            rest = [key for key in some if key not in reported] if reported else some
            found = _of_base(group.base, wanted, rest, group.base.reader.schema) if rest else None
            if found is not None:
                tables.append(found.select(changed.column_names))
    table = pa.concat_tables(tables)
    # of several records of a key the first counts
    places = pc.index_in(keys, value_set=table["key"].combine_chunks())
    stated = _STATED if kind is not None else _COUNTED
    return table.select(stated).take(places)


def _ids(partitions: pa.StringArray) -> pa.StringArray:
    """The ids of partitions in keys."""
    return id64_of_many(pc.if_else(pc.equal(partitions, ""), NO_PARTITION, partitions))


class _Column(NamedTuple):
    """A column that is asked for.

    ``prefix`` is what the keys of its statistics begin with; ``kind`` is ``None`` where bounds do
    not matter; ``of_files`` is false for statistics of partitions.
    """

    prefix: str
    kind: pa.DataType | None
    of_files: bool


def _tables(
    groups: Iterable[GroupReader], column: _Column, prefixes: Sequence[str]
) -> Iterator[pa.Table]:
    """Yield statistics by key prefix, each group's newest first.

    Columns: ``key``; ``place``, which is the id of the partition and the file's name; ``minimum``
    and ``maximum``, of the column's type; ``null_count``, ``value_count``,
    ``total_uncompressed_size`` and ``is_deleted``.
    """
    for group in groups:
        gone: set[str] = set()
        base = group.base
        # neighbours of one schema are decoded at once
        few = prefixes if len(prefixes) <= _FEW_PARTITIONS else [column.prefix]
        for schema, run in groupby(reversed(group.logs), key=_schema):
            some = list(run)
            gone.update(*(layer.deleted for layer in some))
            if schema is not None:
                yield from _without(gone, _scanned(some, column, few, schema))
        if base is not None:
            yield from _without(gone, _of_base(base, column, prefixes, base.reader.schema))


def _of_base(
    layer: BaseLayer, column: _Column, prefixes: Sequence[str], schema: str
) -> pa.Table | None:
    """Return a base file's statistics, of some partitions or all."""
    key = (layer.identity, column.prefix, str(column.kind))
    texts, whole = [prefix.encode() for prefix in prefixes], column.prefix.encode()
    is_part = len(texts) <= _FEW_PARTITIONS or not layer.reader.is_most(texts, whole)
    if is_part and not SHARED.holds(key):
        return _scanned([layer], column, prefixes, schema)

    def decode() -> pa.Table:
        return _decoded([(_entries(layer, [column.prefix]), layer.path)], column, schema)

    return SHARED.get(key, decode)


def _scanned(
    layers: Sequence[Layer], column: _Column, prefixes: Sequence[str], schema: str
) -> pa.Table | None:
    parts = [(_entries(layer, prefixes), layer.path) for layer in layers]
    return _decoded(parts, column, schema) if any(entries for entries, _ in parts) else None


def _entries(layer: Layer, prefixes: Sequence[str]) -> Sequence[Entry]:
    if layer.reader is None:
        return ()
    return list(layer.reader.scan_prefixes(prefix.encode() for prefix in prefixes))


def _without(gone: Collection[str], table: pa.Table | None) -> Iterator[pa.Table]:
    if table is None:
        return
    if gone:
        removed = pa.array(sorted(gone), pa.string())
        table = table.filter(pc.invert(pc.is_in(table["key"], value_set=removed)))
    yield table


def _decoded(
    parts: Sequence[tuple[Sequence[Entry], str]], column: _Column, schema: str
) -> pa.Table:
    try:
        together = list(chain.from_iterable(entries for entries, _ in parts))
        found = decode_ranges(together, schema, parts[0][1], column.kind is not None)
        return _placed(found, column, parts[0][1])
    except CorruptMetadataError:
        # one of the files is damaged, and has to be named
        for entries, path in parts:
            has_bounds = column.kind is not None
            _placed(decode_ranges(entries, schema, path, has_bounds), column, path)
        raise


def _placed(table: pa.Table, column: _Column, path: str) -> pa.Table:
    reported = {"key": table["key"], **_typed(table, column.kind, path)}
    if not column.of_files:
        return pa.table(reported)
    begin = len(column.prefix)
    partitions = pc.utf8_slice_codeunits(table["key"], begin, begin + ID64_LETTERS)
    place = pc.binary_join_element_wise(partitions, table["file_name"], "")
    return pa.table({**reported, "place": place})


def _schema(layer: Layer) -> str | None:
    return None if layer.reader is None else layer.reader.schema


def _typed(table: pa.Table, kind: pa.DataType | None, path: str) -> dict[str, pa.Array]:
    counts = {name: table[name] for name in _COUNTED}
    if kind is None:
        return counts
    return {
        "minimum": bound_arrays(table, "min", kind, path),
        "maximum": bound_arrays(table, "max", kind, path),
        **counts,
    }


def _ranges(
    table: pa.Table, kind: pa.DataType, *, of_files: bool, are_logs: Mask | None = None
) -> ValueRanges:
    known = pc.invert(pc.fill_null(table["is_deleted"], True))
    unsure = doubtful(table, kind, of_files=of_files, are_logs=are_logs)
    known = pc.and_(known, pa.array(~unsure))
    nulls = pc.if_else(known, table["null_count"], None)
    values = pc.if_else(known, table["value_count"], None)
    may_be_null = pc.fill_null(pc.not_equal(nulls, 0), True)
    may_have_value = pc.fill_null(pc.not_equal(nulls, values), True)
    return ValueRanges(*_bounds(table, known), may_be_null.to_numpy(), may_have_value.to_numpy())


def _bounds(table: pa.Table, known: pa.Array | pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    """The bounds of known ranges, null for the others."""
    low, high = (
        in_one(pc.if_else(known, table[side], pa.scalar(None, table.schema.field(side).type)))
        for side in ("minimum", "maximum")
    )
    return low, high


def as_table(ranges: Sequence[ColumnRange | None]) -> pa.Table:
    """Return statistics as :func:`decode_ranges` does."""
    columns: dict[str, pa.Array] = {}
    for side in ("min", "max"):
        bounds = [None if one is None else getattr(one, f"{side}_value") for one in ranges]
        wrappers = [None if bound is None else bound.wrapper for bound in bounds]
        columns[f"{side}_wrapper"] = pa.array(wrappers, pa.string())
        values: dict[str, list[Any]] = {cell: [None] * len(ranges) for cell in _CELLS}
        for place, bound in enumerate(bounds):
            if bound is not None and bound.wrapper in WRAPPERS:
                cell, _ = WRAPPERS[bound.wrapper]
                values[cell][place] = int(bound.value) if cell == "int" else bound.value
        for cell, kind in _CELLS.items():
            columns[f"{side}_{cell}"] = pa.array(values[cell], kind)
    kinds = [None if one is None else one.value_type for one in ranges]
    return pa.table(
        {
            **columns,
            "null_count": pa.array([one and one.null_count for one in ranges], pa.int64()),
            "value_count": pa.array([one and one.value_count for one in ranges], pa.int64()),
            "total_uncompressed_size": pa.array(
                [one and one.total_uncompressed_size for one in ranges], pa.int64()
            ),
            "is_deleted": pa.array([one is None or one.is_deleted for one in ranges], pa.bool_()),
            "type_ordinal": pa.array([kind and kind.ordinal for kind in kinds], pa.int32()),
            "type_info": pa.array([kind and kind.info for kind in kinds], pa.string()),
        }
    )
