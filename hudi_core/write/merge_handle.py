"""Writing the next base file of one file group: stored rows, updates, deletes and new rows.

The handle takes whole columns: stored rows that stay are filtered, incoming rows are appended. Rows that stay
keep their commit time and sequence number; every row gets the new file's name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from hudi_core.engine.base import TaskContext
from hudi_core.model.commit import WriteOperation, WriteStat, WriteStatus
from hudi_core.model.files import BaseFileName, WriteToken, join_path
from hudi_core.model.schema import TableSchema
from hudi_core.txn.markers import MarkerKind
from hudi_core.write.base_file import BaseFileResult
from hudi_core.write.combine import stored_wins
from hudi_core.model.schema import IS_DELETED
from hudi_core.write.context import WriteContext
from hudi_core.write.file_output import mark, open_base_file
from hudi_core.write.meta_columns import with_meta_columns
from hudi_core.write.planning import GroupWrite
from hudi_core.write.staging import StagedPart, StagedRows, true_mask
from hudi_core.write.stored_file import read_base_file
from hudi_core.write.tagging import Tagged, located_rows, new_rows, record_keys


@dataclass(frozen=True, slots=True)
class GroupTask:
    """One file group to write, with the staged rows of its partition.

    Attributes
    ----------
    tagged
        Where the partition's rows go; ``None`` when nothing was looked up and every staged row is new.
    operation
        ``DELETE`` removes every located row, whatever its ordering value.
    """

    group: GroupWrite
    parts: tuple[StagedPart, ...]
    tagged: Tagged | None
    operation: WriteOperation


@dataclass(slots=True)
class _Counts:
    inserts: int = 0
    updates: int = 0
    deletes: int = 0


def write_group(
    task: TaskContext, item: GroupTask, context: WriteContext, staged_schema: TableSchema
) -> WriteStatus | None:
    """Write the next base file of a file group.

    Returns
    -------
    WriteStatus or None
        ``None`` when no incoming row changes the group, as when all of them are late: the group keeps its file.
    """
    group = item.group
    counts = _Counts()
    rows = StagedRows(context, item.parts, group.partition_path).table()
    stored = read_base_file(context, group.base_file.path) if group.base_file else None
    appended = np.empty(0, dtype=np.int64)
    if group.candidate is not None and stored is not None and item.tagged is not None:
        stored, appended = _merge(context, item, rows, stored, counts)
    inserts = _inserted(context, item, rows.num_rows)
    counts.inserts = len(inserts)
    if not (counts.inserts or counts.updates or counts.deletes):
        return None
    name = BaseFileName(
        group.file_id, str(WriteToken(task.task, task.stage, task.attempt)), context.instant
    )
    kind = MarkerKind.MERGE if group.base_file else MarkerKind.CREATE
    mark(context, group.partition_path, str(name), kind)
    result = None
    incoming = rows.take(pa.array(np.concatenate([appended, inserts])))
    with open_base_file(context, group.partition_path, str(name)) as output:
        if stored is not None and stored.num_rows:
            position = stored.schema.get_field_index("_hoodie_file_name")
            names = pa.repeat(pa.scalar(str(name), pa.string()), stored.num_rows)
            output.write(stored.set_column(position, stored.schema.field(position), names))
        if incoming.num_rows:
            keys = record_keys(incoming, context, staged_schema)
            if IS_DELETED not in context.schema.arrow.names:
                incoming = incoming.drop_columns(
                    [IS_DELETED] if IS_DELETED in incoming.column_names else []
                )
            output.write(
                with_meta_columns(
                    incoming, keys, context, group.partition_path, str(name), task.task, 0
                )
            )
        result = output.close()
    return _status(context, group, name, counts, result)


def _merge(
    context: WriteContext, item: GroupTask, rows: pa.Table, stored: pa.Table, counts: _Counts
) -> tuple[pa.Table, np.ndarray]:
    """Take the rows that updates replace out of ``stored``; return it and the updates that win."""
    assert item.tagged is not None
    assert item.group.candidate is not None
    incoming, positions = located_rows(context, item.tagged, item.group.candidate)
    replaced = np.ones(len(positions), dtype=bool)
    ordering = context.event_time_field
    if (
        ordering is not None
        and item.operation is not WriteOperation.DELETE
        and ordering in rows.column_names
    ):
        late = stored_wins(
            stored.column(ordering).take(pa.array(positions)),
            rows.column(ordering).take(pa.array(incoming)),
        )
        replaced = ~true_mask(pa.chunked_array(late))
    beaten = np.unique(incoming[~replaced])
    winning = np.setdiff1d(incoming[replaced], beaten)
    if item.operation is WriteOperation.DELETE:
        deleted = np.ones(len(winning), dtype=bool)
    elif IS_DELETED in rows.column_names:
        deleted = true_mask(rows.column(IS_DELETED).take(pa.array(winning)))
    else:
        deleted = np.zeros(len(winning), dtype=bool)
    counts.deletes = int(np.isin(incoming[replaced], winning[deleted]).sum())
    counts.updates = int((~deleted).sum())
    keep = np.ones(stored.num_rows, dtype=bool)
    keep[positions[replaced]] = False
    return stored.filter(pa.array(keep)), winning[~deleted]


def _inserted(context: WriteContext, item: GroupTask, staged_rows: int) -> np.ndarray:
    first, count = item.group.first_insert, item.group.inserts
    if item.tagged is None:
        return np.arange(first, min(first + count, staged_rows))
    return new_rows(context, item.tagged)[first : first + count]


def _status(
    context: WriteContext,
    group: GroupWrite,
    name: BaseFileName,
    counts: _Counts,
    result: BaseFileResult,
) -> WriteStatus:
    stat = WriteStat(
        file_id=group.file_id,
        path=join_path(group.partition_path, str(name)),
        prev_commit=group.prev_commit,
        num_writes=result.rows,
        num_deletes=counts.deletes,
        num_update_writes=counts.updates,
        num_inserts=counts.inserts,
        total_write_bytes=result.size,
        file_size_in_bytes=result.size,
        partition_path=group.partition_path,
    )
    if group.base_file is not None:
        stat = replace(stat, prev_base_file=group.base_file.status.name)
    return WriteStatus(group.partition_path, group.file_id, stat, result.stats)
