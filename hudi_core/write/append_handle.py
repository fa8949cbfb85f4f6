"""Writes the changes of one file group into a log.

What is decided is decided here, as where a base file is written: late rows are left out, and rows
take from the stored version what they lack. So a log holds rows that count, and its slice is read
as the base file that a rewrite would have made. Where a log could not say that, the slice is
rewritten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.base_file.encoded_columns import plain
from hudi_core.config.kinds import MergeMode
from hudi_core.config.merge_rules import MergeRules, merge_rules
from hudi_core.engine.base import TaskContext
from hudi_core.file_slice.stored_slice import BEYOND, StoredSlice, has_deletes, stored_slice
from hudi_core.index.incoming import record_keys
from hudi_core.model.commit import WriteStatus
from hudi_core.model.files import BaseFile, FileGroupId, WriteToken
from hudi_core.rows.combine import Positions, distinct, existing_is_newer
from hudi_core.rows.context import WriteContext
from hudi_core.rows.deciding import column_of, marks_deletes, order_values
from hudi_core.rows.filling import lacks_values
from hudi_core.rows.merging import Located, Merged
from hudi_core.rows.meta_columns import RowOrigin, with_meta_columns
from hudi_core.rows.staging import SpillRef, spill, true_mask
from hudi_core.schema.absence import ABSENT
from hudi_core.schema.table_schema import RECORD_KEY, TableSchema
from hudi_core.write.key_changes import leave_changes
from hudi_core.write.log_output import LogDeletes, LogPart, write_log
from hudi_core.write.merge_handle import (
    GroupTask,
    IncomingRows,
    arrivals,
    deleting,
    incoming_rows,
    merged_rows,
    with_stored_keys,
    write_group,
)

_NONE: Final = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class _Met:
    """Incoming rows of a group, and the present rows that they meet.

    ``rows`` are of the ascending ``positions`` in the base file; ``arrived`` counts by these. Its
    new rows are those that logs delete and that come again, ``again`` being their positions, and
    behind them ``added`` rows that the slice does not have.
    """

    arrived: IncomingRows
    rows: pa.Table
    positions: Positions
    again: Positions
    added: int

    def of_written(self, merged: Merged) -> Positions | None:
        """The positions that rows to write have; ``None`` where some have none."""
        if self.added:
            return None
        return _in_base(np.concatenate([self.positions[merged.replaced], self.again]))


def _in_base(positions: Positions) -> Positions | None:
    """Positions, if the base file has all of them."""
    return None if (positions >= BEYOND).any() else positions


def append_group(
    task: TaskContext, item: GroupTask, context: WriteContext, staged_schema: TableSchema
) -> list[WriteStatus]:
    """Write a group's changes into a log, or its next base file.

    There is no status when no incoming row changes the group, and one for each log file.
    """
    group, base = item.group, item.group.base_file
    if group.appends and base is not None:
        found = _appended(task, item, base, context, staged_schema)
        if found is not None:
            return found
    status = write_group(task, item, context, staged_schema)
    return [] if status is None else [status]


def _appended(
    task: TaskContext,
    item: GroupTask,
    base: BaseFile,
    context: WriteContext,
    staged_schema: TableSchema,
) -> list[WriteStatus] | None:
    """Write changes into a log; ``None`` where it cannot hold the outcome."""
    group = item.group
    arrived = arrivals(context, group, item.parts, item.tagged, staged_schema)
    rules = merge_rules(context.table)
    asks = item.updates_on_insert(context) or item.keeps_last(context)
    met = None if asks and len(arrived.inserts) else _met(context, item, arrived, base, rules)
    if met is None:
        return None
    merged = merged_rows(context, item, met.arrived, met.rows)
    if merged.changes_nothing and not len(met.arrived.inserts):
        return []
    whole, keys = _whole_rows(context, item, met, merged, staged_schema)
    if item.operation.deletes:
        ready = context.schema.with_meta().empty_table()
    else:
        origin = RowOrigin(group.partition_path, group.file_id, task.task)
        ready = with_meta_columns(whole, keys, context, origin)
    if _loses(context, ready, merged, met.rows, rules):
        return None
    gone = np.setdiff1d(merged.removed, merged.replaced, assume_unique=True)
    deletes = LogDeletes(
        _stored_keys(met, gone),
        _ordering(context, item, met, gone, rules),
        _in_base(met.positions[gone]),
    )
    assigned, updates = _assigned(context, met.arrived, rules), len(merged.updates)
    part = LogPart(ready, met.of_written(merged), deletes, updates, assigned)
    first, *rest = _log(task, item, context, part)
    changes = leave_changes(context, task, merged, met.rows, ready)
    return [replace(first, changed_keys=changes), *rest]


def _whole_rows(
    context: WriteContext, item: GroupTask, met: _Met, merged: Merged, staged_schema: TableSchema
) -> tuple[pa.Table, pa.ChunkedArray]:
    """Rows to write, updates first, and their record keys; none for deletes."""
    if item.operation.deletes:
        return context.schema.arrow.empty_table(), pa.chunked_array([], pa.string())
    whole = incoming_rows(context, met.arrived, merged, met.rows)
    keys = record_keys(whole, context, staged_schema)
    if context.assigns:
        keys = with_stored_keys(keys, merged, met.rows)
    return whole, keys


def _stored_keys(met: _Met, rows: Positions) -> pa.StringArray:
    return plain(met.rows.column(RECORD_KEY)).take(pa.array(rows)).combine_chunks()


def _log(
    task: TaskContext, item: GroupTask, context: WriteContext, part: LogPart
) -> list[WriteStatus]:
    path, file_id, base = item.group.partition_path, item.group.file_id, item.group.stored_base
    token = WriteToken(task.task, task.stage, task.attempt)
    group = FileGroupId(path, file_id)
    return [
        WriteStatus(path, file_id, log.stat(group, base, context.instant), log.stats)
        for log in write_log(context, path, file_id, base, token, parts=[part])
    ]


@dataclass(frozen=True, slots=True)
class GivenUpRows:
    """What a file group of a split table gave up.

    ``status`` is of the log that deletes rows, ``None`` where none is; ``rows`` are those that take
    their place, ``None`` for none, of which the first ``updates`` do and the others are new.
    """

    status: WriteStatus | None = None
    rows: SpillRef | None = None
    count: int = 0
    updates: int = 0


def give_up_rows(
    task: TaskContext,
    item: GroupTask,
    context: WriteContext,
    staged_schema: TableSchema,
    in_memory: bool,
) -> GivenUpRows | None:
    """Delete the rows of a group that change; leave new versions.

    ``None`` where the group has to be rewritten: it has rows of one key, or no base file.
    """
    group, base, rules = item.group, item.group.base_file, merge_rules(context.table)
    if base is None:
        return None
    arrived = arrivals(context, group, item.parts, item.tagged, staged_schema)
    met = _met(context, item, arrived, base, rules)
    if met is None:
        return None
    merged = merged_rows(context, item, met.arrived, met.rows)
    whole, keys = _whole_rows(context, item, met, merged, staged_schema)
    status = None
    if len(merged.removed):
        # no later version of the row comes into this group: a delete holds whatever its order is
        positions = _in_base(met.positions[merged.removed])
        deletes = LogDeletes(_stored_keys(met, merged.removed), (), positions)
        [status] = _log(task, item, context, LogPart(deletes=deletes))
        gone = replace(merged, updates=_NONE, replaced=_NONE, deletes=len(merged.removed))
        none = context.schema.with_meta().empty_table()
        status = replace(
            status,
            stat=replace(status.stat, num_deletes=merged.deletes),
            changed_keys=leave_changes(context, task, gone, met.rows, none),
        )
    if not whole.num_rows:
        return GivenUpRows(status)
    moved = whole.select(context.schema.names).add_column(
        0, pa.field(RECORD_KEY, pa.string()), keys
    )
    rows = spill(context, task, "moved", moved, in_memory)
    return GivenUpRows(status, rows, moved.num_rows, len(merged.updates))


def _assigned(
    context: WriteContext, arrived: IncomingRows, rules: MergeRules
) -> frozenset[str] | None:
    """Columns of blocks of partial updates; ``None`` for whole rows.

    The others keep their stored values. Those that order versions are always there.
    """
    table = context.table
    if not context.write.partial_blocks or rules.fill is not None or table.makes_keys:
        return None
    names = context.schema.names
    # Hudi-Spark reads no updated rows of partial blocks where a column marks deletes
    if table.merge_mode is MergeMode.CUSTOM or marks_deletes(names, context.rules):
        return None
    given = arrived.staged.arrow.names if context.assigned is None else context.assigned
    order = {name.partition(".")[0] for name in (*table.ordering_fields, *rules.order)}
    found = frozenset(name for name in names if name in order or name in given)
    return found if 0 < len(found) < len(names) else None


def _met(
    context: WriteContext,
    item: GroupTask,
    arrived: IncomingRows,
    base: BaseFile,
    rules: MergeRules,
) -> _Met | None:
    """What incoming rows meet; ``None`` where a log cannot hold the outcome."""
    located = arrived.located or Located(_NONE, _NONE)
    if len(np.unique(located.incoming)) < len(located.incoming):
        # keys that a file holds several times: readers that go by keys would change one row of each
        return None
    names = _needed(context, item, arrived, rules)
    come_along = RECORD_KEY in names and not (context.assigns or len(located.gone))
    if come_along:
        names.remove(RECORD_KEY)
    slice_ = stored_slice(context, base, names)
    deleted = slice_.are_deleted(located.stored)
    again = located.incoming[deleted]
    comes = ~deleting(context, item, arrived, again)
    if not context.table.is_split and (rules.stored_order or rules.fill is not None):
        # of a key that comes again, a delete with a greater ordering value would go on holding
        # against the new row, and what that lacks would come from the row that was deleted
        if comes.any():
            return None
        if len(arrived.inserts) and base.logs and has_deletes(context, base):
            return None
    gone = located.gone[~slice_.are_deleted(located.gone)]
    alive = located.stored[~deleted]
    positions = distinct(np.concatenate([alive, gone]))
    keys = None
    if come_along:
        # rows were found by their keys, so that the column is not read of the file
        _, first = np.unique(alive, return_index=True)
        keys = arrived.keys(located.incoming[~deleted][first])
    rows = _stored_rows(slice_, positions, names, keys)
    own = Located(
        located.incoming[~deleted],
        np.searchsorted(positions, alive),
        np.searchsorted(positions, gone),
    )
    added = len(arrived.inserts)
    inserts = np.concatenate([again[comes], arrived.inserts])
    arrived = replace(arrived, located=own, inserts=inserts)
    return _Met(arrived, rows, positions, located.stored[deleted][comes], added)


def _stored_rows(
    slice_: StoredSlice, positions: Positions, names: Sequence[str], keys: pa.ChunkedArray | None
) -> pa.Table:
    """Present rows with record keys.

    These are given, read, or null where nobody needs them.
    """
    if RECORD_KEY in names:
        return slice_.rows(positions, names)
    if keys is None:
        keys = pa.nulls(len(positions), pa.string())
    if not names:
        return pa.table({RECORD_KEY: keys})
    return slice_.rows(positions, names).append_column(RECORD_KEY, keys)


def _needed(
    context: WriteContext, item: GroupTask, arrived: IncomingRows, rules: MergeRules
) -> list[str]:
    """Columns of stored rows that the outcome depends on."""
    every = context.schema.with_meta().names
    staged = set(arrived.staged.arrow.names)
    completes = ABSENT in staged or not staged.issuperset(context.schema.arrow.names)
    if not item.operation.deletes and (completes or rules.fill is not None):
        return list(every)
    needed = {name.partition(".")[0] for name in rules.stored_order}
    located = arrived.located
    goes = context.table.is_split or item.operation.deletes
    goes = goes or marks_deletes(arrived.staged.arrow.names, context.rules)
    if goes or context.assigns or (located is not None and len(located.gone)):
        needed.add(RECORD_KEY)
    if context.tracked is not None and context.tracked.columns:
        needed |= {RECORD_KEY, *context.tracked.columns}
    if located is not None and arrived.from_other_partition(located.incoming).any():
        needed |= {name.partition(".")[0] for name in context.table.partition_fields}
    return [name for name in every if name in needed]


def _loses(
    context: WriteContext, ready: pa.Table, merged: Merged, stored: pa.Table, rules: MergeRules
) -> bool:
    """Whether readers would take a stored row for the later version.

    Or values of it.

    SQL statements assign values whatever their order is, and nulls that are to be. Where only one
    of two versions has an ordering value, hudi-rs takes it, and Hudi-Spark fails.
    """
    updates = ready.slice(0, len(merged.updates))
    if not updates.num_rows:
        return False
    if context.assigns and rules.fill is not None and lacks_values(updates, rules).any():
        return True
    if not rules.stored_order:
        return False
    had = order_values(stored.take(pa.array(merged.replaced)), rules.stored_order, rules)
    given = order_values(updates, rules.stored_order, rules)
    pairs = zip(had, given, strict=True)
    is_odd = [pc.any(pc.xor(one.is_null(), other.is_null())).as_py() for one, other in pairs]
    return any(is_odd) or bool(pc.any(existing_is_newer(had, given)).as_py())


def _ordering(
    context: WriteContext, item: GroupTask, met: _Met, gone: Positions, rules: MergeRules
) -> Sequence[pa.Array]:
    """Ordering values of deletes, else those of the deleted rows."""
    order = () if not len(gone) else rules.stored_order
    had = [column_of(met.rows, name).take(pa.array(gone)).combine_chunks() for name in order]
    located = met.arrived.located
    if not order or located is None or item.operation.deletes or context.assigns:
        return had
    pair = np.full(met.rows.num_rows, -1)
    pair[located.stored] = np.arange(len(located.stored))
    by = np.flatnonzero(pair[gone] >= 0)
    if not len(by):
        return had
    tops = list(dict.fromkeys(name.partition(".")[0] for name in order))
    own = located.incoming[pair[gone[by]]]
    incoming = met.arrived.take(own, tops)
    stored = met.rows.select(tops).take(pa.array(gone[by]))
    later = ~true_mask(
        existing_is_newer(order_values(stored, order, rules), order_values(incoming, order, rules))
    )
    chosen = np.arange(len(gone))
    chosen[by[later]] = len(gone) + np.flatnonzero(later)
    given = [column_of(incoming, name).combine_chunks() for name in order]
    places = pa.array(chosen)
    return [
        # readers cannot compare a value with none: a delete without one holds
        pc.if_else(old.is_valid(), pa.concat_arrays([old, new.cast(old.type)]).take(places), None)
        for old, new in zip(had, given, strict=True)
    ]
