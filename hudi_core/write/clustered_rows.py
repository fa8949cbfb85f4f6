"""The rows of a group of files, in a clustering's order.

Files are read merged with the logs of their slices. Small groups are sorted in memory. Of large
ones only the sort columns are read at first; then each file is read once and its rows are spilled
by the part of the order that they belong to, so that memory holds one file, or one part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.base_file.encoded_columns import is_encoded, joined, plain
from hudi_core.base_file.reader import read_columns
from hudi_core.config.clustering import ClusteringOrder
from hudi_core.engine.base import TaskContext
from hudi_core.file_slice.merged_slice import merged_slice
from hudi_core.file_slice.spilling import MergeMemory
from hudi_core.file_slice.stored_slice import stored_slice
from hudi_core.model.files import BaseFile, PartitionPath
from hudi_core.rows.context import WriteContext
from hudi_core.rows.gathering import take
from hudi_core.rows.layout import row_order
from hudi_core.rows.staging import load, spill
from hudi_core.schema.table_schema import RECORD_KEY

_BATCH_ROWS: Final = 1 << 18
"""Rows that are put into order at a time."""
_PART_BYTES: Final = 256 << 20
"""Bytes of files whose rows are sorted in memory; of more, so many at a time."""
"""Bytes of a column of strings from which on its offsets may not fit into 32 bits."""
_PLACE: Final = "_hoodie_place"


@dataclass(frozen=True, slots=True)
class ClusterTask:
    """Files of a partition that one task rewrites.

    ``files`` are in the order in which their rows are taken where nothing sorts them. Each of the
    ``outputs`` files gets as many rows as the others. No ``sort_columns``: the rows keep their
    order. Of each slice log rows take so much ``memory``. ``left_out`` are keys of rows not taken
    over, few enough to be in memory.
    """

    partition_path: PartitionPath
    files: tuple[BaseFile, ...]
    outputs: int
    sort_columns: tuple[str, ...]
    layout: ClusteringOrder
    memory: MergeMemory
    left_out: frozenset[str] = frozenset()

    @property
    def weight(self) -> int:
        """Bytes that it reads, to spread tasks evenly."""
        return sum(file.total_size for file in self.files)


def rows_in_order(
    task: TaskContext, item: ClusterTask, context: WriteContext
) -> Iterator[pa.Table]:
    """Yield a group's rows in the order of the new files."""
    tables = (
        _taken_over(rows, item) for file in item.files for rows in _rows_of(file, item, context)
    )
    if not item.sort_columns:
        yield from tables
    elif item.weight <= _PART_BYTES:
        rows = _joined(list(tables), context)
        yield from _ordered(rows, row_order(rows, item.sort_columns, item.layout))
    else:
        yield from _in_parts(task, item, context, tables)


def count_rows(item: ClusterTask, context: WriteContext) -> int:
    """Number of a group's rows, without those that logs delete."""
    return sum(stored_slice(context, file, ()).row_count for file in item.files)


def _rows_of(file: BaseFile, item: ClusterTask, context: WriteContext) -> Iterator[pa.Table]:
    """Yield the rows of a slice, those of its base file first."""
    with merged_slice(context, item.partition_path, file, file.logs, item.memory) as merged:
        yield merged.kept
        yield from merged.tail()


def _taken_over(rows: pa.Table, item: ClusterTask) -> pa.Table:
    if not item.left_out:
        return rows
    left_out = pa.array(item.left_out, pa.string())
    keys = rows.column(RECORD_KEY).cast(pa.string())
    return rows.filter(pc.invert(pc.is_in(keys, value_set=left_out)))


def _in_parts(
    task: TaskContext, item: ClusterTask, context: WriteContext, tables: Iterator[pa.Table]
) -> Iterator[pa.Table]:
    """Yield the rows of a large group, part by part."""
    order = row_order(_sort_columns(item, context), item.sort_columns, item.layout)
    places = np.empty(len(order), np.int64)
    places[order.to_numpy()] = np.arange(len(order))
    number = -(-item.weight // _PART_BYTES)
    each = -(-len(places) // number)
    spilled: list[list[str]] = [[] for _ in range(number)]
    begin = 0
    for ordinal, rows in enumerate(tables):
        own = places[begin : begin + rows.num_rows]
        begin += rows.num_rows
        for part in range(number):
            chosen = np.flatnonzero(own // each == part)
            if len(chosen):
                some = _placed(take(rows, chosen), own[chosen])
                left = spill(context, task, f"cluster{ordinal}-{part}", some, in_memory=False)
                spilled[part].append(str(left))
    for names in spilled:
        if names:
            rows = _joined([load(context, name) for name in names], context)
            yield from _ordered(
                rows.drop_columns(_PLACE), pa.array(np.argsort(rows.column(_PLACE).to_numpy()))
            )


def _sort_columns(item: ClusterTask, context: WriteContext) -> pa.Table:
    """The columns that decide the order, of all files."""
    tops = list(dict.fromkeys(name.partition(".")[0] for name in item.sort_columns))
    schema = pa.schema([context.schema.arrow.field(name) for name in tops])
    found = [schema.empty_table()]
    for file in item.files:
        if not file.logs:
            found.append(read_columns(context, file, tops))
            continue
        # in the order of all columns: which rows are in memory decides that of the others
        for rows in _rows_of(file, item, context):
            columns = [plain(rows.column(name)) for name in tops]
            found.append(pa.table(columns, names=tops).cast(schema))
    return pa.concat_tables(found)


def _placed(rows: pa.Table, places: npt.NDArray[np.int64]) -> pa.Table:
    return rows.append_column(_PLACE, pa.array(places))


def _joined(tables: Sequence[pa.Table], context: WriteContext) -> pa.Table:
    """The rows of several files.

    Strings are encoded where they are in each of them.
    """
    if len(tables) == 1:
        return tables[0]
    encoded = [{one.name for one in table.schema if is_encoded(one.type)} for table in tables]
    schema = context.schema.with_meta()
    if _PLACE in tables[0].column_names:
        schema = schema.append(pa.field(_PLACE, pa.int64()))
    return joined(tables, schema, set.intersection(*encoded))


def _ordered(rows: pa.Table, order: pa.Array) -> Iterator[pa.Table]:
    """Yield rows in an order of their positions."""
    rows = rows.combine_chunks()  # a batch has rows of all files
    for start in range(0, len(order), _BATCH_ROWS):
        yield take(rows, order.slice(start, _BATCH_ROWS).to_numpy())
