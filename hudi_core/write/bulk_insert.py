"""The bulk insert task: rows go straight to new files.

Partition by partition, in one pass.

A task holds rows per partition until there are enough for a row group, or until all of it together
is too much, and then writes the fullest partition. Files roll over at the target size. File ids
derive from the task, so an attempt made again writes the same file groups under other file names;
the commit names one attempt's files and the rest are deleted by their markers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from hudi_core.base_file.writer import BaseFileWriter
from hudi_core.engine.base import TaskContext
from hudi_core.keygen import KeyGenerator, key_generator
from hudi_core.model.commit import NO_PREVIOUS_COMMIT, WriteStat, WriteStatus
from hudi_core.model.files import (
    BaseFileName,
    PartitionPath,
    WriteToken,
    derive_file_id,
)
from hudi_core.rows.context import WriteContext
from hudi_core.rows.deciding import deleted, marks_deletes
from hudi_core.rows.meta_columns import RowOrigin, with_meta_columns
from hudi_core.rows.sorting import in_order
from hudi_core.rows.staging import normalised, scatter
from hudi_core.schema.table_schema import RECORD_KEY, TableSchema
from hudi_core.txn.markers import MarkerKind
from hudi_core.write.file_output import bloom_for_index, mark, open_base_file
from hudi_core.write.key_changes import leave_insertions, tracked_columns

_ROW_GROUP_BYTES: Final = 32 << 20
_TASK_BYTES: Final = 256 << 20


@dataclass(slots=True)
class _OpenFile:
    name: BaseFileName
    writer: BaseFileWriter
    tracked: list[pa.Table] = field(default_factory=list)


@dataclass(slots=True)
class _Held:
    batches: list[pa.RecordBatch] = field(default_factory=list)
    keys: list[pa.Array] = field(default_factory=list)
    size: int = 0


def bulk_insert_rows(
    task: TaskContext, batches: Iterator[pa.RecordBatch], context: WriteContext, staged: TableSchema
) -> Iterator[WriteStatus]:
    """Write one input task's rows; yields a status per file.

    ``staged`` are the table's columns, and the delete flag where the input has one.
    """
    with ExitStack() as files:
        keys = key_generator(context.table, staged)
        writer = _TaskWriter(task, context, keys, files)
        how = context.write.schema
        for batch in in_order(normalised(batches, staged, how), context, keys):
            live = _live(batch, context)
            if live.num_rows:
                writer.add(live)
        writer.finish()
        yield from writer.statuses


def _live(batch: pa.RecordBatch, context: WriteContext) -> pa.RecordBatch:
    if not marks_deletes(batch.schema.names, context.rules):
        return batch
    live = batch.filter(pa.array(~deleted(batch, context.rules)))
    return live.select(context.schema.arrow.names)


class _TaskWriter:
    def __init__(
        self, task: TaskContext, context: WriteContext, keys: KeyGenerator, files: ExitStack
    ) -> None:
        self.statuses: list[WriteStatus] = []
        self._task = task
        self._context = context
        self._keys = keys
        self._files = files
        self._held: dict[PartitionPath, _Held] = {}
        self._total = 0
        self._open: dict[PartitionPath, _OpenFile] = {}
        self._groups = 0
        self._row = 0

    def add(self, batch: pa.RecordBatch) -> None:
        # here, and not when they are written: rows without a key are refused before the first file
        keyed = batch.append_column(RECORD_KEY, self._keys.record_keys(batch))
        for path, rows in scatter(keyed, self._keys.partition_paths(batch)):
            piece = rows.select(batch.schema.names)
            held = self._held.setdefault(path, _Held())
            held.keys.append(rows.column(RECORD_KEY))
            held.batches.append(piece)
            size = batch.nbytes * piece.num_rows // batch.num_rows
            held.size += size
            self._total += size
            if held.size >= _ROW_GROUP_BYTES:
                self._flush(path)
        while self._total >= _TASK_BYTES:
            self._flush(max(self._held, key=lambda path: self._held[path].size))

    def finish(self) -> None:
        for path in sorted(self._held):
            self._flush(path)
            if path in self._open:
                self._close(path)

    def _flush(self, path: PartitionPath) -> None:
        held = self._held[path]
        if not held.batches:
            return
        # one chunk: what is done per column below is done per chunk of it
        rows = pa.Table.from_batches(held.batches).combine_chunks()
        self._total -= held.size
        self._held[path] = _Held()
        keys = pa.chunked_array([pa.concat_arrays(held.keys)])
        file = self._open.get(path) or self._start(path)
        name = str(file.name)
        origin = RowOrigin(path, name, self._task.task, self._row)
        ready = with_meta_columns(rows, keys, self._context, origin)
        file.writer.write(ready)
        tracked = tracked_columns(self._context, ready)
        if tracked is not None:
            file.tracked.append(tracked)
        self._row += rows.num_rows
        if file.writer.bytes_written >= self._context.write.max_file_size:
            self._close(path)

    def _start(self, path: PartitionPath) -> _OpenFile:
        token = WriteToken(self._task.task, self._task.stage, self._task.attempt)
        file_id = derive_file_id(self._context.instant, self._task.task, self._groups)
        self._groups += 1
        name = BaseFileName(file_id, str(token), self._context.instant)
        mark(self._context, path, str(name), MarkerKind.CREATE)
        writer = self._files.enter_context(open_base_file(self._context, path, str(name)))
        self._open[path] = _OpenFile(name, writer)
        return self._open[path]

    def _close(self, path: PartitionPath) -> None:
        file = self._open.pop(path)
        result = file.writer.close()
        stat = WriteStat(
            file_id=file.name.file_id,
            path=self._context.data_path(path, str(file.name)),
            prev_commit=NO_PREVIOUS_COMMIT,
            num_writes=result.rows,
            num_inserts=result.rows,
            total_write_bytes=result.size,
            file_size_in_bytes=result.size,
            partition_path=path,
        )
        changes = leave_insertions(self._context, self._task, len(self.statuses), file.tracked)
        bloom = bloom_for_index(self._context, result)
        self.statuses.append(
            WriteStatus(path, file.name.file_id, stat, result.stats, changes, bloom)
        )
