"""The compaction task: a slice's logs go into its next base file.

Rows keep their commit time, sequence number and key, so that no reader of changes sees them again;
only the name of their file is new.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.base_file.writer import BaseFileResult, BaseFileWriter
from hudi_core.engine.base import TaskContext
from hudi_core.file_slice.blocks import CommittedInstants
from hudi_core.file_slice.merged_slice import MergedSlice, merged_slice
from hudi_core.file_slice.spilling import MergeMemory
from hudi_core.model.commit import NO_PREVIOUS_COMMIT, WriteStat, WriteStatus
from hudi_core.model.files import BaseFileName, FileSlice, WriteToken
from hudi_core.rows.context import WriteContext
from hudi_core.schema.table_schema import RECORD_KEY
from hudi_core.txn.markers import MarkerKind
from hudi_core.write.file_output import (
    bloom_for_index,
    decides_encodings,
    mark,
    open_base_file,
    renamed,
)


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
        rows = [*tail]
        count = sum(one.num_rows for one in rows)
        added = [chunk for one in rows for chunk in one.column(RECORD_KEY).chunks]
        output.inherit(
            merged.base.keys,
            pa.chunked_array(added, pa.string()),
            merged.base.dictionaries if decides_encodings(kept, count) else None,
            [kept.column(RECORD_KEY)] if len(gone) else None,
        )
        tail = iter(rows)
    updates = came = 0
    for rows, stays in _both(kept, tail):
        output.write(renamed(rows, name), stays=stays)
        if not stays:
            came += rows.num_rows
            keys = rows.column(RECORD_KEY)
            updates += pc.sum(pc.is_in(keys, value_set=gone)).as_py() or 0
    return updates, came


def _both(kept: pa.Table, tail: Iterator[pa.Table]) -> Iterator[tuple[pa.Table, bool]]:
    yield kept, True
    for rows in tail:
        yield rows, False
