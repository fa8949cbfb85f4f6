"""The engine without a JVM: Arrow data and threads of this process."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from hudi_core.engine.arrangement import Arrangement, Splits, arranged
from hudi_core.engine.base import (
    InputFunction,
    TaskContext,
    TaskFunction,
    heaviest_first,
    thread_pool,
)
from hudi_core.engine.python_rows import (
    Columns,
    table_of_pandas,
    table_of_rows,
    without_row_numbers,
)
from hudi_core.errors import SchemaError
from hudi_core.schema.absence import visible_schema

T = TypeVar("T")
R = TypeVar("R")
S = TypeVar("S")

_BATCH_ROWS = 65_536
"""Rows are gathered by partition batch by batch, within what a processor keeps close."""
_ROWS_PER_SPLIT = 250_000
"""A table is split among threads only when each gets at least this many rows: smaller splits make
small files."""


class LocalEngine:
    """Runs on threads of this process.

    pyarrow releases the interpreter lock where the work is.

    Parameters
    ----------
    parallelism
        Number of threads; by default the number of processors this process may use.
    """

    name = "local"
    shares_memory = True
    tasks_here = True

    def __init__(self, parallelism: int | None = None) -> None:
        self.parallelism = parallelism or _processors()

    def take(self, data: Any, columns: Columns | None = None) -> pa.Table | pa.RecordBatchReader:
        return as_arrow(data, columns)

    def schema_of(self, data: Any) -> pa.Schema:
        if isinstance(data, Iterator) and not isinstance(data, pa.RecordBatchReader):
            raise SchemaError(
                "An iterator does not say its columns before it has been read",
                "Give a schema, or the rows as a list.",
            )
        source = as_arrow(data.limit(0) if is_lazy_frame(data) else data)
        return visible_schema(source)

    def source_files(self, data: Any) -> list[str]:  # noqa: ARG002 - rows are here already
        return []

    def arrange(self, data: Any, arrangement: Arrangement) -> Any:
        source = as_arrow(data)
        if isinstance(source, pa.RecordBatchReader):
            return source  # a stream has one task, which gets every row
        return arranged(source, arrangement, self._split_count(source))

    def map_input(self, data: Any, function: InputFunction[R], stage: int) -> list[R]:
        source = data if isinstance(data, Splits) else as_arrow(data)
        if isinstance(source, pa.RecordBatchReader):
            return list(function(TaskContext(0, stage, 0), iter(source)))
        splits = source.tables if isinstance(source, Splits) else self._split(source)

        def run(task: int) -> list[R]:
            return list(
                function(TaskContext(task, stage, 0), iter(splits[task].to_batches(_BATCH_ROWS)))
            )

        return [result for results in self._each(run, range(len(splits))) for result in results]

    def map_tasks(
        self,
        tasks: Sequence[T],
        function: TaskFunction[T, R],
        stage: int,
        weights: Sequence[int] | None = None,
    ) -> list[R]:
        def run(task: int) -> tuple[int, R]:
            return task, function(TaskContext(task, stage, 0), tasks[task])

        done = dict(self._each(run, heaviest_first(len(tasks), weights)))
        return [done[task] for task in range(len(tasks))]

    def _split_count(self, table: pa.Table) -> int:
        return max(1, min(self.parallelism, int(table.num_rows) // _ROWS_PER_SPLIT))

    def _split(self, table: pa.Table) -> list[pa.Table]:
        count = self._split_count(table)
        step = -(-table.num_rows // count)
        return [table.slice(task * step, step) for task in range(count)]

    def _each(self, run: Callable[[int], S], tasks: Sequence[int]) -> Iterator[S]:
        if len(tasks) <= 1 or self.parallelism == 1:
            return map(run, tasks)
        with thread_pool(min(self.parallelism, len(tasks))) as pool:
            return iter(list(pool.map(run, tasks)))


def _processors() -> int:
    """Return the number of processors this process may use.

    Of all processors where the system does not know.
    """
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def as_arrow(data: Any, columns: Columns | None = None) -> pa.Table | pa.RecordBatchReader:
    """Return the rows as an Arrow table, a stream as a reader."""
    if isinstance(data, pa.Table | pa.RecordBatchReader):
        return without_row_numbers(data)
    if isinstance(data, pa.RecordBatch):
        return without_row_numbers(pa.Table.from_batches([data]))
    if is_pandas_frame(data):
        return table_of_pandas(data, columns)
    if is_lazy_frame(data):
        return pa.table(data.collect(engine="streaming"))
    if hasattr(data, "__arrow_c_stream__"):
        return pa.table(data)
    found = table_of_rows(data, columns) if _may_be_rows(data) else None
    if found is not None:
        return found
    raise SchemaError(
        f"Rows of type {type(data).__module__}.{type(data).__qualname__} cannot be read",
        "Give a Spark DataFrame, an Arrow table or reader, a pandas or polars frame, or a list of "
        "dictionaries.",
    )


def _may_be_rows(data: Any) -> bool:
    return isinstance(data, Iterable) and not isinstance(data, str | bytes | Mapping)


def is_pandas_frame(data: Any) -> bool:
    """Whether the rows are a frame of pandas, without importing pandas."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.DataFrame)


def is_lazy_frame(data: Any) -> bool:
    """Whether the rows are a polars lazy frame, without importing polars."""
    polars = sys.modules.get("polars")
    return polars is not None and isinstance(data, polars.LazyFrame)
