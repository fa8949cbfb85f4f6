"""Reads on a cluster, changes, and Spark's own words; and where tasks run."""

from __future__ import annotations

import os

import pytest
from pyspark.sql import SparkSession

import hudi_core as hudi
from hudi_core.engine.base import TaskContext
from hudi_core.engine.spark import SparkEngine
from tests.cluster.standalone import Cluster
from tests.cluster.written import STORES, frame, made, require_right
from tests.crash.check_table import ACKED, Tried
from tests.crash.place import Place, S3Place
from tests.crash.rows import BASE, CHANGED, as_rows, as_table, putting
from tests.crash.tables import OPTIONS
from tests.tables import FORMATS

COLUMNS = ["id", "part", "ts"]


def process_of(task: TaskContext, number: int) -> tuple[int, int]:
    return number, os.getpid()


def test_tasks_run_in_processes_of_both_executors(spark: SparkSession, standalone: Cluster) -> None:
    found = SparkEngine(spark).map_tasks(list(range(16)), process_of, 0)
    assert [number for number, _ in found] == list(range(16))
    executors = standalone.executors()
    below = [{one.pid for one in standalone.python_workers(each)} for each in executors]
    assert len(below) == 2
    ran = {process for _, process in found}
    assert ran <= below[0] | below[1]
    assert ran & below[0]
    assert ran & below[1]
    assert os.getpid() not in ran


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("place", STORES, indirect=True)
def test_executors_read_what_there_is(format_name: str, place: Place, spark: SparkSession) -> None:
    table = made(place, format_name)
    before = table.timeline.completed_writes()[-1]
    table.upsert(frame(spark, CHANGED))
    expected = as_rows({**BASE, **CHANGED})
    given = place.given if isinstance(place, S3Place) else {}

    assert {tuple(row) for row in table.read(spark).select(COLUMNS).collect()} == expected
    past = hudi.read(spark, place.root, {**given, "as.of.instant": before.requested_time})
    assert {tuple(row) for row in past.select(COLUMNS).collect()} == as_rows(BASE)
    some = table.read(spark, columns=COLUMNS, filter=[("part", "=", "x")])
    assert {tuple(row) for row in some.collect()} == {one for one in expected if one[1] == "x"}
    changed = table.incremental(before, spark=spark, columns=COLUMNS, deletes=True)
    assert {tuple(row)[:3] for row in changed.collect()} == as_rows(CHANGED)
    assert table.changes(before, spark=spark).count() == len(CHANGED)
    source = spark.read.format("hudi").options(**given).load(place.root)
    assert {tuple(row) for row in source.select(COLUMNS).collect()} == expected


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("place", STORES, indirect=True)
def test_the_data_source_writes(format_name: str, place: Place, spark: SparkSession) -> None:
    given = place.given if isinstance(place, S3Place) else {}
    made(place, format_name)
    rows = frame(spark, CHANGED).write.format("hudi").options(**{**OPTIONS, **given})
    rows.mode("append").save(place.root)
    place.open().upsert(as_table({"last": ("y", 8)}))
    last = Tried("last", putting({"last": ("y", 8)}), ACKED)
    require_right(place, [Tried("save", putting(CHANGED), ACKED), last])
