"""Writes tables on Spark with every task failing once after its work is done; run by a test.

In a process of its own, as the number of attempts is fixed when a context starts:
``retrying_session.py``.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, concat, lit, udf

import hudi_core as hudi
from hudi_core.engine.base import TaskContext
from hudi_core.engine.spark import SparkEngine

ROWS = 200
TWINS = pa.schema([("id", pa.string()), ("twin", pa.string()), ("part", pa.string())])


class FailingOnce(SparkEngine):
    """Lets every task do all of its work twice: the first attempt fails at its end."""

    def __init__(self, session: SparkSession, folder: str) -> None:
        super().__init__(session, tasks_on_driver=False)
        self._folder = folder

    def map_input(self, data: DataFrame, function: Any, stage: int) -> list[Any]:
        failed = self._folder

        def twice(task: TaskContext, batches: Iterator[pa.RecordBatch]) -> Iterator[Any]:
            results = list(function(task, batches))
            fail_once(failed, task)
            yield from results

        return super().map_input(data, twice, stage)

    def map_tasks(
        self,
        tasks: Sequence[Any],
        function: Callable[[TaskContext, Any], Any],
        stage: int,
        weights: Sequence[int] | None = None,
    ) -> list[Any]:
        failed = self._folder

        def twice(task: TaskContext, item: Any) -> Any:
            result = function(task, item)
            fail_once(failed, task)
            return result

        return super().map_tasks(tasks, twice, stage, weights)


def fail_once(folder: str, task: TaskContext) -> None:
    try:
        with open(f"{folder}/{task.stage}-{task.task}", "x"):
            pass
    except FileExistsError:
        return
    raise RuntimeError("lost after its work was done")


def never_the_same(spark: SparkSession) -> DataFrame:
    """Give rows that are others whenever they are computed."""
    fresh = udf(lambda: uuid.uuid4().hex).asNondeterministic()
    frame = spark.range(ROWS, numPartitions=2).select(fresh().alias("id"), col("id").alias("n"))
    # of one evaluation, so that a row put together from two would show
    return frame.select("id", col("id").alias("twin"), concat(lit("p"), col("n") % 2).alias("part"))


def steady(spark: SparkSession) -> DataFrame:
    key = concat(lit("k"), col("id"))
    part = concat(lit("p"), col("id") % 2)
    return spark.range(ROWS, numPartitions=2).select(
        key.alias("id"), lit("new").alias("twin"), part.alias("part")
    )


def stored() -> pa.Table:
    rows = [{"id": f"k{n}", "twin": "old", "part": f"p{n % 2}"} for n in range(2 * ROWS)]
    return pa.Table.from_pylist(rows, TWINS)


def report(spark: SparkSession, folder: str) -> dict[str, dict[str, Any]]:
    """Write the tables with keys; by table, what came of it."""
    report = {}
    for name, operation, rows in (
        ("fresh", "bulk_insert", steady(spark)),
        ("updated", "upsert", steady(spark)),
        ("shifting", "upsert", never_the_same(spark)),
    ):
        table = hudi.Table.create(
            f"{folder}/{name}",
            TWINS,
            record_key="id",
            partition_by="part",
            options={"hoodie.fs.fsync": "false"},
        )
        if operation == "upsert":
            table.insert(stored())
        failures = f"{folder}/{name}.failed"
        os.mkdir(failures)
        result = getattr(table, operation)(rows, engine=FailingOnce(spark, failures))
        report[name] = {
            "instant": result.instant.requested_time,
            "counts": [result.inserted, result.updated, result.deleted],
            "failures": sorted(os.listdir(failures)),
            "paths": sorted(stat.path for stat in result.metadata.stats),
        }
    return report
