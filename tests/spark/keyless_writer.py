"""Writes tables without a record key while every Spark task fails once.

Every attempt of a task notes the keys in the files it wrote.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import hudi_core as hudi
from hudi_core.engine.base import TaskContext
from hudi_core.model.commit import WriteStatus
from tests.spark.retrying_writer import FailingOnce

KEYLESS = pa.schema([("n", pa.int64()), ("part", pa.string())])
ROWS = 60


class Noting(FailingOnce):
    """Lets every task do its work twice, and note the keys it wrote each time."""

    def __init__(self, spark: SparkSession, table: str, folder: str) -> None:
        super().__init__(spark, folder)
        self._table = table

    def map_input(self, data: DataFrame, function: Any, stage: int) -> list[Any]:
        table, folder = self._table, self._folder

        def noting(task: TaskContext, batches: Iterator[pa.RecordBatch]) -> Iterator[Any]:
            results = list(function(task, batches))
            note(table, folder, task, results)
            yield from results

        return super().map_input(data, noting, stage)

    def map_tasks(
        self,
        tasks: Sequence[Any],
        function: Callable[[TaskContext, Any], Any],
        stage: int,
        weights: Sequence[int] | None = None,
    ) -> list[Any]:
        table, folder = self._table, self._folder

        def noting(task: TaskContext, item: Any) -> Any:
            result = function(task, item)
            note(table, folder, task, result if isinstance(result, list) else [result])
            return result

        return super().map_tasks(tasks, noting, stage, weights)


def note(table: str, folder: str, task: TaskContext, results: list[Any]) -> None:
    """Leave the keys of the files that an attempt wrote beside the mark of its failure."""
    written = [result for result in results if isinstance(result, WriteStatus)]
    if not written:
        return
    keys: list[str] = []
    for status in written:
        file = pq.ParquetFile(f"{table}/{status.stat.path}").read(["_hoodie_record_key"])
        keys += file.column(0).to_pylist()
    text = json.dumps(keys)
    Path(f"{folder}/keys-{task.stage}-{task.task}-{task.attempt}").write_text(text)


def alike_rows() -> pa.Table:
    # many rows are alike
    return pa.table(
        [pa.array([n % 7 for n in range(ROWS)], pa.int64()), [f"p{n % 2}" for n in range(ROWS)]],
        schema=KEYLESS,
    )


def report(
    spark: SparkSession, folder: str, operations: Sequence[str]
) -> dict[str, dict[str, list[list[str]]]]:
    """Write the tables; by operation and by task, the keys of the attempts of the task."""
    report: dict[str, dict[str, list[list[str]]]] = {}
    for operation in operations:
        path, noted = f"{folder}/keyless_{operation}", Path(f"{folder}/keyless_{operation}.failed")
        table = hudi.Table.create(
            path, KEYLESS, partition_by="part", options={"hoodie.fs.fsync": "false"}
        )
        table.bulk_insert(alike_rows())
        noted.mkdir()
        frame = spark.createDataFrame(alike_rows())
        getattr(table, operation)(frame, engine=Noting(spark, path, str(noted)))
        by_task: dict[str, list[list[str]]] = {}
        for file in sorted(noted.glob("keys-*")):
            task = file.name.rpartition("-")[0]
            by_task.setdefault(task, []).append(json.loads(file.read_text()))
        report[operation] = by_task
    return report
