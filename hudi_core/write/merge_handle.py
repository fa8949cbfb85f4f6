"""Writes the next base file of one file group.

From stored rows, updates, deletes and new rows.

The handle takes whole columns: stored rows that stay are filtered, incoming rows are appended. Rows
that stay keep their commit time and sequence number; every row gets the new file's name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.base_file.encoded_columns import plain
from hudi_core.base_file.key_footer import KeyFooter
from hudi_core.base_file.reader import StoredFile, read_base_file
from hudi_core.base_file.writer import BaseFileResult
from hudi_core.engine.base import TaskContext
from hudi_core.file_slice.stored_slice import stored_slice
from hudi_core.index.base import Matches, join_keys
from hudi_core.index.collisions import ambiguity_of, require_same_stored
from hudi_core.index.incoming import Sources, key_names, record_keys
from hudi_core.index.tagging import Tagged, located_rows, new_rows
from hudi_core.keygen.ambiguity import Ambiguity
from hudi_core.model.commit import WriteStat, WriteStatus
from hudi_core.model.files import BaseFile, BaseFileName, PartitionPath, WriteToken
from hudi_core.model.operation import Operation
from hudi_core.model.ranges import Mask
from hudi_core.rows.combine import Positions, ranked, winners
from hudi_core.rows.context import WriteContext
from hudi_core.rows.deciding import deciding_names, deleted, order_values
from hudi_core.rows.filling import filled
from hudi_core.rows.gathering import take
from hudi_core.rows.merging import Located, Merged, merge
from hudi_core.rows.meta_columns import RowOrigin, with_meta_columns
from hudi_core.rows.staging import SpillRef, StagedPart, load
from hudi_core.schema.table_schema import RECORD_KEY, TableSchema
from hudi_core.txn.markers import MarkerKind
from hudi_core.write.change_log import open_change_log
from hudi_core.write.file_output import (
    bloom_for_index,
    decides_encodings,
    mark,
    open_base_file,
    renamed,
)
from hudi_core.write.key_changes import leave_changes
from hudi_core.write.partial_rows import completed
from hudi_core.write.planning import GroupWrite

# --- the incoming rows of one file ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class IncomingRows:
    """Incoming rows of one file group, by number, read lazily.

    Rows are numbered through ``sources``. ``located`` also has stored rows that go, and is ``None``
    where no row meets a stored one; ``inserts`` is in the order in which new rows are written.
    """

    context: WriteContext
    parts: tuple[StagedPart, ...]
    staged: TableSchema
    partition_path: PartitionPath
    sources: Sources
    located: Located | None
    inserts: Positions

    def take(self, numbers: Positions, columns: Sequence[str] | None = None) -> pa.Table:
        """Return some of the rows, in the order of ``numbers``.

        All columns, or some.
        """
        schema = self.staged.arrow
        if columns is not None:
            schema = pa.schema([schema.field(name) for name in columns])
        if len(numbers) <= 1 or bool(np.all(numbers[1:] > numbers[:-1])):
            return self.sources.take(self.context, self.parts, numbers, schema)
        wanted, places = ranked(numbers)
        rows = self.sources.take(self.context, self.parts, wanted, schema)
        return take(rows, places)

    def keys(self, numbers: Positions) -> pa.ChunkedArray:
        """Return the record keys of some rows."""
        wanted = key_names(self.context)
        names = [name for name in self.staged.arrow.names if name in wanted]
        return record_keys(self.take(numbers, names), self.context, self.staged)

    def from_other_partition(self, numbers: Positions) -> Mask:
        """Return which of some rows were staged for another partition."""
        paths = self.sources.paths
        own = [ordinal for ordinal, path in enumerate(paths) if path == self.partition_path]
        return ~np.isin(self.sources.partition_of(numbers), own)


def arrivals(
    context: WriteContext,
    group: GroupWrite,
    parts: Sequence[StagedPart],
    tagged: Tagged | None,
    staged: TableSchema,
) -> IncomingRows:
    """Return the incoming rows of a file group.

    ``tagged`` is ``None`` when nothing was looked up and every staged row is new.
    """
    own = group.partition_path
    end = group.first_insert + group.inserts
    located = None
    if tagged is None:
        sources = Sources.of(parts, [own])
        inserts = np.arange(group.first_insert, min(end, sum(sources.rows)))
    else:
        sources = tagged.sources
        inserts = new_rows(context, tagged)[group.first_insert : end]
        if group.candidate is not None:
            located = located_rows(context, tagged, group.candidate)
    return IncomingRows(context, tuple(parts), staged, own, sources, located, inserts)


def with_stored_keys(keys: pa.ChunkedArray, merged: Merged, stored: pa.Table) -> pa.ChunkedArray:
    """Return the keys of rows to write; updates keep the stored ones.

    They need not come with them: some are generated.
    """
    kept = plain(stored.column(RECORD_KEY).take(pa.array(merged.replaced))).cast(pa.string())
    return pa.chunked_array([*kept.chunks, *keys.slice(len(merged.updates)).chunks], pa.string())


def keep_stored_partition_columns(
    rows: pa.Table,
    from_other_partition: Mask,
    met: Positions,
    stored: pa.Table,
    partition_fields: Sequence[str],
) -> pa.Table:
    """Return incoming rows with stored partition columns where these stay.

    A row that came for another partition and stays in this one takes the partition columns of the
    row it replaces.

    A reader prunes by folder and filters by column: both have to say the same.

    In ``rows`` those that update come first; ``from_other_partition`` and ``met`` (positions of the
    stored rows) are for these alone.
    """
    if not from_other_partition.any():
        return rows
    stays = np.flatnonzero(from_other_partition)
    origin = np.arange(rows.num_rows) + len(stays)
    origin[stays] = np.arange(len(stays))
    for name in partition_fields:
        top, *below = name.split(".")
        position = rows.schema.get_field_index(top)
        replaced = plain(stored.column(top).take(pa.array(met[stays])))
        both = pa.chunked_array([*replaced.chunks, *rows.column(top).chunks])
        kept = both.take(pa.array(origin)).combine_chunks()
        column = _with_kept(rows.column(top).combine_chunks(), kept, below)
        rows = rows.set_column(position, rows.schema.field(position), column)
    return rows


def _with_kept(values: pa.Array, kept: pa.Array, below: Sequence[str]) -> pa.Array:
    """Return ``values`` with one nested field taken from ``kept``."""
    if not below:
        return kept
    fields = list(values.type)
    children = [
        _with_kept(own, other, below[1:]) if field.name == below[0] else own
        for field, own, other in zip(fields, values.flatten(), kept.flatten(), strict=True)
    ]
    is_null = pc.and_(values.is_null(), kept.is_null())
    return pa.StructArray.from_arrays(children, fields=fields, mask=is_null)


# --- the merge -----------------------------------------------------------------------------------


_LARGE_BYTES: Final = 16 << 20
"""Bytes of a chunk of rows, on average, from which on to copy them costs more than it saves."""
_NO_ROWS: Final = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class MovedRows:
    """Rows that a file group gives up to another of its partition.

    They are those from ``begin`` to ``end`` of all that it gives up, whole, with their record keys
    in front; the first ``updates`` of all take the place of rows, the others are new.
    """

    rows: SpillRef
    begin: int
    end: int
    updates: int


@dataclass(frozen=True, slots=True)
class GroupTask:
    """One file group to write, with the staged rows of its partition.

    ``tagged`` is ``None`` when nothing was looked up and every staged row is new. A deleting
    ``operation`` removes every located row, whatever its ordering value. ``moved`` are rows that
    other groups have given up, in a split table.
    """

    group: GroupWrite
    parts: tuple[StagedPart, ...]
    tagged: Tagged | None
    operation: Operation
    moved: tuple[MovedRows, ...] = ()

    def updates_on_insert(self, context: WriteContext) -> bool:
        """Whether inserts update stored rows of the same key."""
        return (
            self.operation.has_duplicate_policy
            and self.group.base_file is not None
            and context.write.updates(self.operation)
        )

    def keeps_last(self, context: WriteContext) -> bool:
        """Whether the last of new rows with one key wins."""
        return (
            self.operation.updates
            and self.group.base_file is not None
            and not context.write.combine_before_upsert
        )


def write_group(
    task: TaskContext, item: GroupTask, context: WriteContext, staged_schema: TableSchema
) -> WriteStatus | None:
    """Write the next base file of a file group.

    ``None`` when no incoming row changes the group, as when all are late: the group keeps its file.
    """
    group = item.group
    stored = _stored(context, item)
    arrived = arrivals(context, group, item.parts, item.tagged, staged_schema)
    if group.base_file is not None and group.base_file.logs:
        stored, arrived = _with_logs(context, item, group.base_file, stored, arrived)
    if item.updates_on_insert(context):
        arrived = _located_inserts(context, stored.rows, arrived)
    elif item.keeps_last(context):
        arrived = _last_inserts(arrived)
    inserts = arrived.inserts
    merged = merged_rows(context, item, arrived, stored.rows)
    moved, changed = _moved_rows(context, item)
    if merged.changes_nothing and not len(inserts) and not moved.num_rows:
        return None
    token = WriteToken(task.task, task.stage, task.attempt)
    name = BaseFileName(group.file_id, str(token), context.instant)
    kind = MarkerKind.MERGE if group.stored_base else MarkerKind.CREATE
    mark(context, group.partition_path, str(name), kind)
    updates = len(merged.updates)
    with (
        open_change_log(context, group.partition_path, name) as log,
        open_base_file(context, group.partition_path, str(name)) as output,
    ):
        if item.operation.deletes:
            # a delete stages no more than keys, and writes no incoming row
            ready = context.schema.with_meta().empty_table()
        else:
            whole = incoming_rows(context, arrived, merged, stored.rows)
            keys = record_keys(whole, context, staged_schema)
            if context.assigns:
                keys = with_stored_keys(keys, merged, stored.rows)
            if moved.num_rows:
                names, came = context.schema.names, moved.column(RECORD_KEY).chunks
                whole = pa.concat_tables([whole.select(names), moved.select(names)])
                keys = pa.chunked_array([*keys.chunks, *came], pa.string())
            origin = RowOrigin(group.partition_path, str(name), task.task)
            ready = with_meta_columns(whole, keys, context, origin)
        new_keys = ready.column(RECORD_KEY).slice(updates)
        stay = [merged.kept.column(RECORD_KEY), ready.column(RECORD_KEY).slice(0, updates)]
        output.inherit(
            stored.keys,
            new_keys,
            stored.dictionaries if decides_encodings(merged.kept, ready.num_rows) else None,
            stay if merged.deletes else None,
        )
        output.write(renamed(merged.kept, str(name)), stays=True)
        output.write(ready.slice(0, updates), stays=True)
        output.write(ready.slice(updates))
        if context.table.logs_changes and group.base_file is not None:
            log.write(merged, stored.rows, ready)
        result = output.close()
    changes = leave_changes(context, task, merged, stored.rows, ready)
    path = context.data_path(group.partition_path, str(name))
    rows = len(inserts) + moved.num_rows - changed, updates + changed
    status = _status(group, path, merged, rows, result)
    status = replace(status, bloom=bloom_for_index(context, result))
    if log.sizes:
        status = replace(status, stat=replace(status.stat, cdc_stats=log.sizes))
    return replace(status, changed_keys=changes)


def _moved_rows(context: WriteContext, item: GroupTask) -> tuple[pa.Table, int]:
    """Rows that come from other groups; how many are updates."""
    schema = pa.schema([pa.field(RECORD_KEY, pa.string()), *context.schema.arrow])
    found, updates = [schema.empty_table()], 0
    for one in item.moved:
        rows = load(context, one.rows).slice(one.begin, one.end - one.begin)
        found.append(rows.cast(schema))
        updates += max(0, min(one.end, one.updates) - one.begin)
    return pa.concat_tables(found), updates


def _stored(context: WriteContext, item: GroupTask) -> StoredFile:
    base_file = item.group.stored_base
    if base_file is None:
        return StoredFile(context.schema.with_meta().empty_table(), KeyFooter(None, None, None, 0))
    return read_base_file(context, base_file.path, item.group.partition_path, base_file.size)


def _with_logs(
    context: WriteContext,
    item: GroupTask,
    base_file: BaseFile,
    stored: StoredFile,
    arrived: IncomingRows,
) -> tuple[StoredFile, IncomingRows]:
    """Merge the logs of a slice into its stored rows.

    Incoming rows that met rows of the base file meet what there is now; those whose row was deleted
    are new.
    """
    slice_ = stored_slice(context, base_file, stored.rows.column_names, stored.rows)
    rows = slice_.merged_into(stored.rows)
    located = arrived.located
    if located is not None:
        places, gone = slice_.places(located.stored), slice_.places(located.gone)
        stays = places >= 0
        own = Located(located.incoming[stays], places[stays], gone[gone >= 0])
        again = located.incoming[~stays]
        again = again[~deleting(context, item, arrived, again)]
        inserts = np.concatenate([arrived.inserts, again])
        arrived = replace(arrived, located=own, inserts=inserts)
    return StoredFile(rows, KeyFooter(None, None, None, 0)), arrived


def deleting(
    context: WriteContext, item: GroupTask, arrived: IncomingRows, numbers: Positions
) -> Mask:
    """Which of some incoming rows delete."""
    names = [name for name in arrived.staged.arrow.names if name in deciding_names(context.rules)]
    if item.operation.deletes or not len(numbers) or not names:
        return np.full(len(numbers), item.operation.deletes)
    return deleted(arrived.take(numbers, names), context.rules)


def merged_rows(
    context: WriteContext, item: GroupTask, arrived: IncomingRows, stored: pa.Table
) -> Merged:
    """Merge the rows that meet stored ones."""
    located = arrived.located
    if located is None:
        return Merged.nothing(stored)
    delete_all = item.operation.deletes
    rules = context.rules
    numbers, places = ranked(located.incoming)
    wanted = set() if delete_all else deciding_names(rules)
    names = arrived.staged.arrow.names
    # where nothing decides, one column still counts the rows
    columns = [name for name in names if name in wanted] or names[:1]
    deciding = arrived.take(numbers, columns)
    met = replace(located, incoming=places)
    merged = merge(stored, deciding, met, rules, delete_all)
    return replace(merged, updates=numbers[merged.updates])


def incoming_rows(
    context: WriteContext, arrived: IncomingRows, merged: Merged, stored: pa.Table
) -> pa.Table:
    """Return incoming rows to write: updates, then new rows.

    In the columns of the table.
    """
    met = merged.replaced
    rows = pa.concat_tables([arrived.take(merged.updates), arrived.take(arrived.inserts)])
    if rows.nbytes < _LARGE_BYTES * len(rows.column(0).chunks):
        rows = rows.combine_chunks()  # what is done per column below is done per chunk of it
    if len(met):
        fields = context.table.partition_fields
        rows = keep_stored_partition_columns(
            rows, arrived.from_other_partition(merged.updates), met, stored, fields
        )
    rows = completed(rows, met, stored, context.schema)
    return filled(rows, met, merged.late, stored, context.rules)


def _located_inserts(
    context: WriteContext,
    stored: pa.Table,
    arrived: IncomingRows,
) -> IncomingRows:
    """Find the rows to insert whose keys the file holds already.

    Of several incoming rows with one key one is left.
    """
    inserts = arrived.inserts
    incoming = arrived.take(inserts)
    keys = record_keys(incoming, context, arrived.staged)
    rules = context.rules
    chosen = winners(keys, order_values(incoming, rules.batch_order, rules))
    if chosen is not None:
        inserts, keys = inserts[chosen], keys.take(pa.array(chosen))
    is_new = np.ones(len(inserts), dtype=bool)
    met, positions = [_NO_ROWS], [_NO_ROWS]
    own = keys.combine_chunks()
    is_ambiguous = ambiguity_of(arrived.parts) is not Ambiguity.NONE
    for match in join_keys(0, stored.column(RECORD_KEY).cast(pa.string()), own):
        if is_ambiguous:
            _require_same(replace(arrived, inserts=inserts), own, stored, match)
        met.append(inserts[match.incoming].astype(np.int64))
        positions.append(match.stored.astype(np.int64))
        is_new[match.incoming] = False
    located = Located(np.concatenate(met), np.concatenate(positions), _NO_ROWS)
    return replace(arrived, located=located, inserts=inserts[is_new])


def _require_same(
    arrived: IncomingRows, keys: pa.StringArray, stored: pa.Table, match: Matches
) -> None:
    """Refuse inserts whose stored row has other key columns."""
    context, inserts = arrived.context, arrived.inserts
    names = [name for name in context.schema.names if name in key_names(context)]
    require_same_stored(
        context,
        keys.take(pa.array(match.incoming)),
        lambda pairs: arrived.take(inserts[match.incoming[pairs]], names),
        lambda pairs: stored.select(names).take(pa.array(match.stored[pairs])),
        arrived.partition_path,
    )


def _last_inserts(arrived: IncomingRows) -> IncomingRows:
    """Leave the last of several new rows with one key."""
    inserts = arrived.inserts
    chosen = winners(arrived.keys(inserts), ())
    return arrived if chosen is None else replace(arrived, inserts=inserts[chosen])


def _status(
    group: GroupWrite,
    path: str,
    merged: Merged,
    rows: tuple[int, int],
    result: BaseFileResult,
) -> WriteStatus:
    """The status of a base file; ``rows`` counts new and changed ones."""
    inserts, updates = rows
    stat = WriteStat(
        file_id=group.file_id,
        path=path,
        prev_commit=group.prev_commit,
        num_writes=result.rows,
        num_deletes=merged.deletes,
        num_update_writes=updates,
        num_inserts=inserts,
        total_write_bytes=result.size,
        file_size_in_bytes=result.size,
        partition_path=group.partition_path,
    )
    if group.stored_base is not None:
        stat = replace(stat, prev_base_file=group.stored_base.status.name)
    return WriteStatus(group.partition_path, group.file_id, stat, result.stats)
