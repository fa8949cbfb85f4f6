"""Writes one log file: rows, and keys of deleted rows.

A log is written whole, under the instant of its write: nothing is appended to it later. Its rows
have all of the table's columns, for readers disagree on what a missing one means; but those in
blocks that say to be of partial updates. Source:
``hudi-format`` section 4.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from hudi_core.base_file.writer import parquet_content
from hudi_core.config.kinds import LogBlockFormat
from hudi_core.file_slice.log_rows import wrapped_numbers, wrapped_orders
from hudi_core.log_format.block import (
    BlockType,
    DeletedRecord,
    HeaderKey,
    encode_delete_content,
    encode_deletes,
    encode_log_block,
)
from hudi_core.log_format.data_block import avro_content
from hudi_core.log_format.positions import Positions, encode_positions
from hudi_core.model.commit import WriteStat
from hudi_core.model.files import (
    BaseFile,
    FileGroupId,
    FileId,
    LogFileName,
    PartitionPath,
    WriteToken,
)
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.stats import FileStats, joined_stats
from hudi_core.rows.context import WriteContext
from hudi_core.rows.deciding import Mask
from hudi_core.rows.gathering import take
from hudi_core.schema.alignment import ids_of, with_ids
from hudi_core.schema.arrow_types import children
from hudi_core.schema.table_schema import META_COLUMNS, TableSchema
from hudi_core.txn.markers import MarkerKind
from hudi_core.write.file_output import file_options, keep_file, mark

Header: TypeAlias = Mapping[HeaderKey, str]
_FIRST_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class LogDeletes:
    """Stored rows that a log deletes.

    ``order`` has the columns of the table's ordering, and is empty for deletes that hold whatever
    the stored value is, as one without a value does. ``positions`` are those in the base file,
    ``None`` where they are not known.
    """

    keys: pa.StringArray
    order: Sequence[pa.Array]
    positions: Positions | None


@dataclass(frozen=True, slots=True)
class LogPart:
    """Rows and deletes that have blocks of their own in a log.

    ``rows`` are new versions of rows, with the meta columns in front, of which the first
    ``updates`` take the place of others; ``positions`` are those of the versions that they replace
    in the base file, ``None`` where some have none. With ``assigned`` these go into blocks of
    partial updates, with those columns alone. The others have blocks of their own: readers find no
    columns for new rows.
    """

    rows: pa.Table | None = None
    positions: Positions | None = None
    deletes: LogDeletes | None = None
    updates: int = 0
    assigned: Collection[str] | None = None


@dataclass(frozen=True, slots=True)
class LogResult:
    """What is known of a complete log file.

    ``path`` is relative to the table; ``stats`` is of the rows alone, by leaf path, and empty where
    there are only deletes.
    """

    name: str
    path: str
    version: int
    size: int
    stats: FileStats
    rows: int
    updates: int
    deletes: int

    def stat(self, group: FileGroupId, base: BaseFile | None, before: InstantTime) -> WriteStat:
        """What a commit says of it.

        ``base`` and ``before`` are the base file of the slice, and the commit before.
        """
        return WriteStat(
            file_id=group.file_id,
            path=self.path,
            prev_commit=before,
            num_writes=self.rows,
            num_deletes=self.deletes,
            num_update_writes=self.updates,
            num_inserts=self.rows - self.updates,
            total_write_bytes=self.size,
            file_size_in_bytes=self.size,
            partition_path=group.partition_path,
            log_version=self.version,
            log_offset=0,
            base_file=None if base is None else base.status.name,
            log_files=(self.name,),
        )


@dataclass(frozen=True, slots=True)
class _Block:
    """An encoded block; of its rows some update others."""

    data: bytes
    stats: FileStats | None = None
    rows: int = 0
    updates: int = 0
    deletes: int = 0


def write_log(
    context: WriteContext,
    partition_path: PartitionPath,
    file_id: FileId,
    base: BaseFile | None,
    token: WriteToken,
    *,
    parts: Iterable[LogPart],
    compacted: Sequence[InstantTime] = (),
) -> list[LogResult]:
    """Write the log of one file group: its marker, then the file.

    There are several files where it is large, and replaces no others.

    ``base`` is the base file of the slice. No key is in two parts, nor among both rows and deletes:
    of the two, the latter would count. ``compacted`` are the instants whose blocks it replaces.
    """
    header = {HeaderKey.COMPACTED_BLOCK_TIMES: ",".join(compacted)} if compacted else {}
    blocks: list[_Block] = []
    for part in parts:
        for rows in _rows_of(part):
            blocks += _data_blocks(context, base, rows, header)
        if part.deletes is not None and len(part.deletes.keys):
            blocks.append(_delete_block(context, partition_path, base, part.deletes, header))
    limit = None if compacted else context.write.log_file_bytes
    return [
        _write_file(context, partition_path, LogFileName(file_id, context.instant, *of), some)
        for some, of in _files(blocks, limit, token)
    ]


def log_of_deletes(
    context: WriteContext,
    partition_path: PartitionPath,
    name: LogFileName,
    base: BaseFile,
    deletes: LogDeletes,
) -> tuple[bytes, LogResult]:
    """A log that deletes stored rows, for a writer without markers."""
    block = _delete_block(context, partition_path, base, deletes, {})
    return _file(context.data_path(partition_path, str(name)), name, [block])


def _rows_of(part: LogPart) -> Iterator[_Rows]:
    """Rows of blocks of partial updates, and those of others."""
    if part.rows is None or not part.rows.num_rows:
        return
    are_updates = np.arange(part.rows.num_rows) < part.updates
    end = part.updates if part.assigned is not None else 0
    for some, columns in ((slice(0, end), part.assigned), (slice(end, len(are_updates)), None)):
        if some.start == some.stop:
            continue
        rows = part.rows.slice(some.start, some.stop - some.start)
        places = None if part.positions is None else part.positions[some]
        yield _Rows(rows, places, are_updates[some], columns)


def _files(
    blocks: Iterable[_Block], limit: int | None, token: WriteToken
) -> Iterator[tuple[list[_Block], tuple[int, str]]]:
    """The blocks of each file, with its version and token."""
    version, held = _FIRST_VERSION, list[_Block]()
    for block in blocks:
        if limit is not None and sum(len(one.data) for one in held) >= limit:
            yield held, (version, str(token))
            version, held = version + 1, []
        held.append(block)
    yield held, (version, str(token))


def _write_file(
    context: WriteContext,
    partition_path: PartitionPath,
    name: LogFileName,
    blocks: Sequence[_Block],
) -> LogResult:
    path = context.data_path(partition_path, str(name))
    data, written = _file(path, name, blocks)
    mark(context, partition_path, str(name), MarkerKind.APPEND)
    # in this process, files are flushed while others are written
    storage = context.files.storage(fsync=context.write.fsync and context.attempts is None)
    storage.put_if_absent(path, data)
    keep_file(context, path)
    context.files.keep(path, data)
    return written


def _file(path: str, name: LogFileName, blocks: Sequence[_Block]) -> tuple[bytes, LogResult]:
    data = b"".join(block.data for block in blocks)
    return data, LogResult(
        str(name),
        path,
        name.version,
        len(data),
        joined_stats([block.stats for block in blocks if block.stats is not None]),
        *(
            sum(counts)
            for counts in zip(*((b.rows, b.updates, b.deletes) for b in blocks), strict=True)
        ),
    )


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of data blocks; ``columns`` are those of partial updates."""

    rows: pa.Table
    positions: Positions | None
    are_updates: Mask
    columns: Collection[str] | None


def _data_blocks(
    context: WriteContext, base: BaseFile | None, of: _Rows, header: Header
) -> Iterator[_Block]:
    """The blocks of the rows, which readers hold one by one."""
    rows, positions, are_updates = of.rows, of.positions, of.are_updates
    if positions is not None:
        order = np.argsort(positions)
        rows, positions = take(rows, order), positions[order]
        are_updates = are_updates[order]
    schema = context.schema
    if of.columns is not None:
        schema = replace(schema, arrow=_selected(schema.arrow, of.columns))
        header = {**header, HeaderKey.IS_PARTIAL: "true"}
    count = max(1, context.write.log_block_bytes * rows.num_rows // max(1, rows.nbytes))
    for start in range(0, rows.num_rows, count):
        places = None if positions is None else positions[start : start + count]
        some = rows.slice(start, count)
        own = {**_header(context, base, places, schema), **header}
        data, stats = _data_block(context, some, own, of.columns)
        updates = int(are_updates[start : start + count].sum())
        yield _Block(data, stats, some.num_rows, updates)


def _data_block(
    context: WriteContext, rows: pa.Table, header: Header, columns: Collection[str] | None
) -> tuple[bytes, FileStats]:
    schema, stored = context.schema.with_meta(), context.table.stored_meta_columns
    left_out = [one for one in META_COLUMNS if one not in stored]
    for one in left_out:
        at = rows.schema.get_field_index(one)
        rows = rows.set_column(at, schema.field(one), pa.nulls(rows.num_rows, pa.string()))
    left: FileStats = {}
    if columns is not None:
        # a row that meets a filter may do so by values that it keeps: readers look at all of them
        names = [name for name in schema.names if name in columns or name in META_COLUMNS]
        others = [name for name in schema.names if name not in names]
        _, left = parquet_content(
            rows.select(others), _selected(schema, others), file_options(context)
        )
        rows, schema = rows.select(names), _selected(schema, names)
    content, stats = parquet_content(rows, _without_nested_ids(schema), file_options(context))
    stats = {path: of for path, of in stats.items() if path not in left_out}
    stats |= _without_sizes(left)
    if context.write.log_block_format is LogBlockFormat.PARQUET:
        return encode_log_block(BlockType.PARQUET, header, content.to_pybytes()), stats
    # sizes of another encoding would be compared with those of Parquet
    stats = _without_sizes(stats)
    avro = avro_content(rows, header[HeaderKey.SCHEMA])
    return encode_log_block(BlockType.AVRO, header, avro), stats


def _without_nested_ids(schema: pa.Schema) -> pa.Schema:
    """The schema of Parquet blocks, without ids of nested fields.

    hudi-rs compares nested types with those of the table's Avro schema, in which it sees no ids;
    the block's Avro schema has them.
    """
    if not any(map(children, schema.types)):
        return schema.remove_metadata()
    return pa.schema(with_ids(schema, ids_of([field.with_type(pa.null()) for field in schema])))


def _selected(schema: pa.Schema, names: Collection[str]) -> pa.Schema:
    return pa.schema([field for field in schema if field.name in names])


def _without_sizes(stats: FileStats) -> FileStats:
    return {path: replace(of, compressed_size=0, uncompressed_size=0) for path, of in stats.items()}


def _delete_block(
    context: WriteContext,
    partition_path: PartitionPath,
    base: BaseFile | None,
    deletes: LogDeletes,
    header: Header,
) -> _Block:
    keys, positions, order = deletes.keys, deletes.positions, deletes.order
    if positions is not None:
        places = np.argsort(positions)
        keys, positions = keys.take(pa.array(places)), positions[places]
        order = [column.take(pa.array(places)) for column in order]
    numbers = wrapped_numbers(order)
    if numbers is not None:
        content = encode_deletes(keys, partition_path, *numbers)
    else:
        pairs = zip(keys.to_pylist(), wrapped_orders(order), strict=True)
        content = encode_delete_content(
            [DeletedRecord(key, partition_path, value) for key, value in pairs]
        )
    own = {**_header(context, base, positions, context.schema), **header}
    return _Block(encode_log_block(BlockType.DELETE, own, content), deletes=len(keys))


def _header(
    context: WriteContext,
    base: BaseFile | None,
    positions: Positions | None,
    schema: TableSchema,
) -> dict[HeaderKey, str]:
    header = {
        HeaderKey.INSTANT_TIME: str(context.instant),
        HeaderKey.SCHEMA: schema.to_avro(context.table.name, with_meta=True),
    }
    asks = context.write.record_positions or context.table.is_split
    if base is not None and positions is not None and asks:
        header |= {
            HeaderKey.RECORD_POSITIONS: encode_positions(positions),
            HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS: str(base.instant),
        }
    return header
