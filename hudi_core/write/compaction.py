"""Compaction tasks: logs become a base file, or one log.

Rows keep their commit time, sequence number and key, so that no reader of changes sees them again;
only the name of their file is new, and that only in a base file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.base_file.writer import BaseFileResult, BaseFileWriter
from hudi_core.engine.base import TaskContext
from hudi_core.file_slice.blocks import CommittedInstants, SliceBlock, blocks_of_slice
from hudi_core.file_slice.log_rows import is_partial
from hudi_core.file_slice.merged_logs import FoldedLogs
from hudi_core.file_slice.merged_slice import MergedSlice, merged_slice, merging_of_logs
from hudi_core.file_slice.spilling import MergeMemory
from hudi_core.log_format.block import HeaderKey
from hudi_core.model.commit import NO_PREVIOUS_COMMIT, WriteStat, WriteStatus
from hudi_core.model.files import BaseFileName, FileSlice, WriteToken
from hudi_core.rows.context import WriteContext
from hudi_core.rows.deciding import column_of
from hudi_core.schema.table_schema import RECORD_KEY
from hudi_core.txn.markers import MarkerKind
from hudi_core.write.file_output import (
    bloom_for_index,
    decides_encodings,
    mark,
    open_base_file,
    renamed,
)
from hudi_core.write.log_output import LogDeletes, LogPart, write_log

_FEW_ROWS: Final = 1 << 17
"""Rows of which a copy costs less than to write them piece by piece."""


@dataclass(frozen=True, slots=True)
class CompactionTask:
    """One file slice to compact, in so much memory.

    ``committed`` has the instants whose blocks count, by default those that the logs are named by.
    """

    slice: FileSlice
    memory: MergeMemory
    committed: CommittedInstants | None = None

    @property
    def weight(self) -> int:
        """Bytes this task is expected to cost."""
        return self.slice.total_size


def compact_slice(task: TaskContext, item: CompactionTask, context: WriteContext) -> WriteStatus:
    """Write the next base file of a slice.

    Where its logs delete every row, the file is empty, so that there are no logs after it.
    """
    found = item.slice
    path, base = found.partition_path, found.base_file
    logs = [log.status for log in found.log_files]
    token = WriteToken(task.task, task.stage, task.attempt)
    name = BaseFileName(found.file_id, str(token), context.instant)
    mark(context, path, str(name), MarkerKind.MERGE if base else MarkerKind.CREATE)
    with (
        merged_slice(context, path, base, logs, item.memory, committed=item.committed) as merged,
        open_base_file(context, path, str(name)) as output,
    ):
        updates, came = _write(merged, output, str(name))
        result = output.close()
    gone = len(merged.logs.dead) - updates
    stat = WriteStat(
        file_id=found.file_id,
        path=context.data_path(path, str(name)),
        prev_commit=base.instant if base else NO_PREVIOUS_COMMIT,
        prev_base_file=base.status.name if base else None,
        num_deletes=gone,
        num_update_writes=updates,
        num_inserts=came - updates,
        total_log_records=merged.logs.records,
        total_log_files=len(found.log_files),
        total_log_blocks=merged.logs.blocks,
        total_updated_records_compacted=came + gone,
        total_log_files_compacted=len(found.log_files),
        total_log_size_compacted=sum(log.status.size for log in found.log_files),
        partition_path=path,
    )
    return _status(found, stat, result, context)


def compact_logs(
    task: TaskContext, item: CompactionTask, context: WriteContext
) -> WriteStatus | None:
    """Merge the logs of a slice into one.

    Later logs are merged over it as over these. The base file is not read. ``None`` for logs that
    stay as they are; see :func:`mergeable`.
    """
    found = item.slice
    path, base, logs = (
        found.partition_path,
        found.base_file,
        [one.status for one in found.log_files],
    )
    merging = merging_of_logs(context, logs, item.memory)
    blocks = blocks_of_slice(merging.files, logs, merging.timeline, None)
    if not mergeable(blocks):
        return None
    order = merging.rules.stored_order
    folded = merging.folded(blocks, None if base is None else base.instant)
    (written,) = write_log(
        context,
        path,
        found.file_id,
        base,
        WriteToken(task.task, task.stage, task.attempt),
        parts=(_part(one, order) for one in folded),
        compacted=list(dict.fromkeys(block.instant for block in blocks)),
    )
    stat = replace(
        written.stat(found.group, base, found.base_instant),
        num_update_writes=written.rows,
        num_inserts=0,
        total_log_blocks=len(blocks),
        total_updated_records_compacted=written.rows,
        total_log_files_compacted=len(logs),
        total_log_size_compacted=sum(log.size for log in logs),
    )
    return WriteStatus(path, found.file_id, stat, written.stats)


def mergeable(blocks: Sequence[SliceBlock], least: int = 1) -> bool:
    """Whether blocks of several logs can be merged into one.

    ``least`` is how many there must be; those of an earlier log compaction count as one. Partial
    updates that lack different columns have no block in common.
    """
    originals = [one for one in blocks if not one.header(HeaderKey.COMPACTED_BLOCK_TIMES)]
    count = len(originals) + (len(originals) < len(blocks))
    instants = {block.instant for block in blocks}
    return len(instants) > 1 and count >= least and not any(map(is_partial, blocks))


def _part(found: FoldedLogs, order: Sequence[str]) -> LogPart:
    """What log rows come to, as a part of a log."""
    deletes, positions = found.deletes, found.positions
    gone = found.rows.filter(pa.array(deletes))
    return LogPart(
        found.rows.filter(pa.array(~deletes)),
        None if positions is None else positions[~deletes],
        LogDeletes(
            gone.column(RECORD_KEY).combine_chunks(),
            # null of those that hold whatever is stored
            [column_of(gone, name).combine_chunks() for name in order],
            None if positions is None else positions[deletes],
        ),
    )


def _status(
    found: FileSlice, stat: WriteStat, result: BaseFileResult, context: WriteContext
) -> WriteStatus:
    stat = replace(
        stat,
        num_writes=result.rows,
        total_write_bytes=result.size,
        file_size_in_bytes=result.size,
    )
    bloom = bloom_for_index(context, result)
    return WriteStatus(found.partition_path, found.file_id, stat, result.stats, bloom=bloom)


def _write(merged: MergedSlice, output: BaseFileWriter, name: str) -> tuple[int, int]:
    """Write the rows of a slice.

    Returns how many came in place of others, and how many came.
    """
    kept, gone, tail = merged.kept, merged.gone_keys, merged.tail()
    if merged.logs.held:
        parts = [*tail]
        came = _joined(parts) if parts else kept.slice(0, 0)
        updated, new = _parted(came, pc.is_in(came.column(RECORD_KEY), value_set=gone))
        updates = updated.num_rows
        # as in every write, the filter of the keys grows by new ones alone
        output.inherit(
            merged.base.keys,
            new.column(RECORD_KEY),
            merged.base.dictionaries if decides_encodings(kept, came.num_rows) else None,
            [one.column(RECORD_KEY) for one in (kept, updated)] if len(gone) > updates else None,
        )
        output.write(renamed(kept, name), stays=True)
        for rows, stays in ((updated, True), (new, False)):
            if rows.num_rows:
                output.write(renamed(rows, name), stays=stays)
        return updates, came.num_rows
    updates = count = 0
    output.write(renamed(kept, name))
    for rows in tail:
        output.write(renamed(rows, name))
        count += rows.num_rows
        keys = rows.column(RECORD_KEY)
        updates += pc.sum(pc.is_in(keys, value_set=gone)).as_py() or 0
    return updates, count


def _joined(parts: Sequence[pa.Table]) -> pa.Table:
    """Rows of several logs, few of them in one piece."""
    rows = pa.concat_tables(parts)
    return rows.combine_chunks() if rows.num_rows < _FEW_ROWS else rows


def _parted(rows: pa.Table, first: pa.ChunkedArray) -> tuple[pa.Table, pa.Table]:
    """The rows that a mask names, and the others."""
    count = pc.sum(first).as_py() or 0
    if count in (0, rows.num_rows):
        return rows.slice(0, count), rows.slice(count)
    return rows.filter(first), rows.filter(pc.invert(first))
