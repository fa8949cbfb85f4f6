"""The clustering task: rows of several files go to new files.

Rows keep their commit time, sequence number and key, so that no reader of changes sees them again;
only the name of their file is new. File ids derive from the task, as in a bulk insert.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from hudi_core.base_file.encoded_columns import constant, is_encoded
from hudi_core.engine.base import TaskContext
from hudi_core.model.commit import NO_PREVIOUS_COMMIT, WriteStat, WriteStatus
from hudi_core.model.files import BaseFileName, WriteToken, derive_file_id, join_path
from hudi_core.rows.context import WriteContext
from hudi_core.schema.table_schema import FILE_NAME
from hudi_core.txn.markers import MarkerKind
from hudi_core.write.clustered_rows import ClusterTask, count_rows, rows_in_order
from hudi_core.write.file_output import bloom_for_index, mark, open_base_file
from hudi_core.write.key_changes import leave_insertions, tracked_columns


def cluster_group(
    task: TaskContext, item: ClusterTask, context: WriteContext
) -> tuple[WriteStatus, ...]:
    """Write the files that take the place of a group of files."""
    if item.left_out:
        rows = list(rows_in_order(task, item, context))
        total, tables = sum(one.num_rows for one in rows), iter(rows)
    else:
        total = count_rows(item, context)
        tables = rows_in_order(task, item, context)
    each = max(1, -(-total // item.outputs))
    pieces = _Pieces(tables)
    return tuple(
        _write(task, item, context, number, pieces.take(each))
        for number in range(-(-total // each))
    )


class _Pieces:
    """Rows that are taken a number at a time."""

    def __init__(self, tables: Iterator[pa.Table]) -> None:
        self._tables = tables
        self._held: pa.Table | None = None

    def take(self, number: int) -> Iterator[pa.Table]:
        """Yield the next rows, that many."""
        while number > 0:
            rows = self._held if self._held is not None else next(self._tables, None)
            if rows is None:
                return
            part = rows.slice(0, number)
            rest = rows.slice(part.num_rows)
            self._held = rest if rest.num_rows else None
            number -= part.num_rows
            if part.num_rows:
                yield part


def _write(
    task: TaskContext,
    item: ClusterTask,
    context: WriteContext,
    number: int,
    pieces: Iterator[pa.Table],
) -> WriteStatus:
    path = item.partition_path
    file_id = derive_file_id(context.instant, task.task, number)
    token = WriteToken(task.task, task.stage, task.attempt)
    name = BaseFileName(file_id, str(token), context.instant)
    mark(context, path, str(name), MarkerKind.CREATE)
    schema, tracked = context.schema.with_meta(), []
    with open_base_file(context, path, str(name)) as output:
        for rows in pieces:
            ready = _ready(rows, schema, str(name))
            output.write(ready)
            keys = tracked_columns(context, ready)
            if keys is not None:
                tracked.append(keys)
        result = output.close()
    stat = WriteStat(
        file_id=file_id,
        path=join_path(path, str(name)),
        prev_commit=NO_PREVIOUS_COMMIT,
        num_writes=result.rows,
        total_write_bytes=result.size,
        file_size_in_bytes=result.size,
        partition_path=path,
    )
    changes = leave_insertions(context, task, number, tracked)
    bloom = bloom_for_index(context, result)
    return WriteStatus(path, file_id, stat, result.stats, changes, bloom)


def _ready(rows: pa.Table, schema: pa.Schema, file_name: str) -> pa.Table:
    """Rows in the table's types, with their new file's name."""
    position = rows.schema.get_field_index(FILE_NAME)
    columns = list(rows.columns)
    columns[position] = constant(file_name, rows.num_rows)
    columns = [
        column if is_encoded(column.type) else column.cast(field.type)
        for column, field in zip(columns, schema, strict=True)
    ]
    columns = [pa.chunked_array([one]) if isinstance(one, pa.Array) else one for one in columns]
    return pa.table(columns, names=schema.names)
