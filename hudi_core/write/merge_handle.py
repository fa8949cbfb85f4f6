"""Writes the next base file of one file group.

From stored rows, updates, deletes and new rows.

The handle takes whole columns: stored rows that stay are filtered, incoming rows are appended. Rows
that stay keep their commit time and sequence number; every row gets the new file's name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from hudi_core.base_file.encoded_columns import constant
from hudi_core.base_file.key_footer import KeyFooter
from hudi_core.base_file.reader import StoredFile, read_base_file
from hudi_core.base_file.writer import BaseFileResult
from hudi_core.engine.base import TaskContext
from hudi_core.index.base import Matches, join_keys
from hudi_core.index.collisions import ambiguity_of, require_same_stored
from hudi_core.index.incoming import key_names, record_keys
from hudi_core.index.tagging import Tagged
from hudi_core.keygen.ambiguity import Ambiguity
from hudi_core.model.commit import WriteStat, WriteStatus
from hudi_core.model.files import BaseFileName, WriteToken
from hudi_core.model.operation import Operation
from hudi_core.rows.combine import distinct, winners
from hudi_core.rows.context import WriteContext
from hudi_core.rows.deciding import deciding_names, order_values
from hudi_core.rows.filling import filled
from hudi_core.rows.merging import Located, Merged, merge
from hudi_core.rows.meta_columns import RowOrigin, with_meta_columns
from hudi_core.rows.staging import StagedPart
from hudi_core.schema.table_schema import FILE_NAME, RECORD_KEY, TableSchema
from hudi_core.txn.markers import MarkerKind
from hudi_core.write.change_log import open_change_log
from hudi_core.write.file_output import bloom_for_index, mark, open_base_file
from hudi_core.write.incoming_rows import (
    IncomingRows,
    arrivals,
    keep_stored_partition_columns,
    with_stored_keys,
)
from hudi_core.write.key_changes import leave_changes
from hudi_core.write.partial_rows import completed
from hudi_core.write.planning import GroupWrite

_NO_ROWS: Final = np.empty(0, dtype=np.int64)
_TELLING_ROWS: Final = 4096
"""Rows of a file from which on its next version encodes columns as it did, as long as most rows
stay; smaller ones are asked again which columns repeat themselves."""


@dataclass(frozen=True, slots=True)
class GroupTask:
    """One file group to write, with the staged rows of its partition.

    ``tagged`` is ``None`` when nothing was looked up and every staged row is new. A deleting
    ``operation`` removes every located row, whatever its ordering value.
    """

    group: GroupWrite
    parts: tuple[StagedPart, ...]
    tagged: Tagged | None
    operation: Operation

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
    if item.updates_on_insert(context):
        arrived = _located_inserts(context, stored.rows, arrived)
    elif item.keeps_last(context):
        arrived = _last_inserts(context, arrived)
    inserts = arrived.inserts
    merged = _merged(context, item, arrived, stored.rows)
    if merged.changes_nothing and not len(inserts):
        return None
    token = WriteToken(task.task, task.stage, task.attempt)
    name = BaseFileName(group.file_id, str(token), context.instant)
    kind = MarkerKind.MERGE if group.base_file else MarkerKind.CREATE
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
            whole = _incoming(context, arrived, merged, stored.rows)
            keys = record_keys(whole, context, staged_schema)
            if context.assigns:
                keys = with_stored_keys(keys, merged, stored.rows)
            origin = RowOrigin(group.partition_path, str(name), task.task)
            ready = with_meta_columns(whole, keys, context, origin)
        new_keys = ready.column(RECORD_KEY).slice(updates)
        decides = merged.kept.num_rows >= max(_TELLING_ROWS, ready.num_rows)
        stay = [merged.kept.column(RECORD_KEY), ready.column(RECORD_KEY).slice(0, updates)]
        output.inherit(
            stored.keys,
            new_keys,
            stored.dictionaries if decides else None,
            stay if merged.deletes else None,
        )
        output.write(_renamed(merged.kept, str(name)), stays=True)
        output.write(ready.slice(0, updates), stays=True)
        output.write(ready.slice(updates))
        if context.table.logs_changes and group.base_file is not None:
            log.write(merged, stored.rows, ready)
        result = output.close()
    changes = leave_changes(context, task, merged, stored.rows, ready)
    path = context.data_path(group.partition_path, str(name))
    status = _status(group, path, merged, len(inserts), result)
    status = replace(status, bloom=bloom_for_index(context, result))
    if log.sizes:
        status = replace(status, stat=replace(status.stat, cdc_stats=log.sizes))
    return replace(status, changed_keys=changes)


def _stored(context: WriteContext, item: GroupTask) -> StoredFile:
    base_file = item.group.base_file
    if base_file is None:
        return StoredFile(context.schema.with_meta().empty_table(), KeyFooter(None, None, None, 0))
    return read_base_file(context, base_file.path, item.group.partition_path, base_file.size)


def _merged(
    context: WriteContext, item: GroupTask, arrived: IncomingRows, stored: pa.Table
) -> Merged:
    """Merge the rows that meet stored ones."""
    located = arrived.located
    if located is None:
        return Merged.nothing(stored)
    delete_all = item.operation.deletes
    rules = context.rules
    numbers = distinct(located.incoming)
    wanted = set() if delete_all else deciding_names(rules)
    names = arrived.staged.arrow.names
    # where nothing decides, one column still counts the rows
    columns = [name for name in names if name in wanted] or names[:1]
    deciding = arrived.take(numbers, columns)
    met = replace(located, incoming=np.searchsorted(numbers, located.incoming))
    merged = merge(stored, deciding, met, rules, delete_all)
    return replace(merged, updates=numbers[merged.updates])


def _incoming(
    context: WriteContext, arrived: IncomingRows, merged: Merged, stored: pa.Table
) -> pa.Table:
    """Return incoming rows to write: updates, then new rows.

    In the columns of the table.
    """
    met = merged.replaced
    rows = pa.concat_tables([arrived.take(merged.updates), arrived.take(arrived.inserts)])
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


def _last_inserts(context: WriteContext, arrived: IncomingRows) -> IncomingRows:
    """Leave the last of several new rows with one key."""
    inserts = arrived.inserts
    wanted = key_names(context)
    names = [name for name in arrived.staged.arrow.names if name in wanted]
    keys = record_keys(arrived.take(inserts, names), context, arrived.staged)
    chosen = winners(keys, ())
    return arrived if chosen is None else replace(arrived, inserts=inserts[chosen])


def _renamed(stored: pa.Table, file_name: str) -> pa.Table:
    """Return stored rows with their new file name."""
    position = stored.schema.get_field_index(FILE_NAME)
    return stored.set_column(position, FILE_NAME, constant(file_name, stored.num_rows))


def _status(
    group: GroupWrite,
    path: str,
    merged: Merged,
    inserts: int,
    result: BaseFileResult,
) -> WriteStatus:
    stat = WriteStat(
        file_id=group.file_id,
        path=path,
        prev_commit=group.prev_commit,
        num_writes=result.rows,
        num_deletes=merged.deletes,
        num_update_writes=len(merged.updates),
        num_inserts=inserts,
        total_write_bytes=result.size,
        file_size_in_bytes=result.size,
        partition_path=group.partition_path,
    )
    if group.base_file is not None:
        stat = replace(stat, prev_base_file=group.base_file.status.name)
    return WriteStatus(group.partition_path, group.file_id, stat, result.stats)
