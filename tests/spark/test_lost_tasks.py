"""Tasks whose processes die: what Spark gives up on, and what becomes of the commit before it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from hudi_core.engine.base import TaskContext
from hudi_core.engine.spark import SparkEngine
from hudi_core.engine.spark.engine import _typed_failures
from hudi_core.errors import TaskFailedError
from hudi_core.write.clustering import cluster_group
from tests.foreign import by_hudi_rs
from tests.tables import new_table

pytestmark = pytest.mark.spark
KEYS_AND_TIMES = pa.schema([("id", pa.string()), ("ts", pa.int64())])


def die(task: TaskContext, item: Any) -> None:
    os._exit(3)


def break_down(task: TaskContext, item: Any) -> None:
    raise MemoryError("no more")


class DyingInClusterings(SparkEngine):
    """Spark on executors, where whoever clusters dies."""

    def map_tasks(
        self, tasks: Sequence[Any], function: Any, stage: int, weights: Sequence[int] | None = None
    ) -> list[Any]:
        is_clustering = getattr(function, "func", None) is cluster_group
        return super().map_tasks(tasks, die if is_clustering else function, stage, weights)


@pytest.mark.parametrize(("task", "reason"), [(die, "crashed"), (break_down, "MemoryError")])
def test_a_task_that_spark_gives_up_has_an_error_of_ours(
    spark: SparkSession, task: Any, reason: str
) -> None:
    engine = SparkEngine(spark, tasks_on_driver=False)
    with pytest.raises(TaskFailedError, match=reason) as caught:
        engine.map_tasks([1, 2], task, 0)
    assert caught.value.retryable
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("message", "reason"), [("", "Py4JJavaError"), ("one\ntwo", "one")])
def test_an_error_of_java_needs_no_message(spark: SparkSession, message: str, reason: str) -> None:
    java = spark.sparkContext._jvm.java  # type: ignore[union-attr]
    with pytest.raises(TaskFailedError, match=f": {reason}\\."), _typed_failures():
        raise Py4JJavaError("", java.lang.RuntimeException(message))


def test_a_clustering_whose_tasks_die_leaves_the_commit_before_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    due = {
        "hoodie.clustering.inline": "true",
        "hoodie.clustering.inline.max.commits": "2",
        "hoodie.fs.fsync": "false",
    }
    path = str(tmp_path / "t")
    table = new_table(path, KEYS_AND_TIMES, due, ordering_field=None)
    table.bulk_insert(pa.table({"id": ["a"], "ts": [1]}, KEYS_AND_TIMES))
    more = spark.createDataFrame([("b", 2)], "id string, ts long")

    engine = DyingInClusterings(spark, tasks_on_driver=False)
    assert table.bulk_insert(more, engine=engine).inserted == 1
    assert {row["id"] for row in by_hudi_rs(path)} == {"a", "b"}
    assert all(one.is_completed for one in table.timeline.instants)

    table.bulk_insert(pa.table({"id": ["c"], "ts": [3]}, KEYS_AND_TIMES))
    assert table.history().column("operation")[0].as_py() == "CLUSTER"
    assert {row["id"] for row in by_hudi_rs(path)} == {"a", "b", "c"}
