"""Tables by name in Spark's SQL, their metadata as DataFrames, and reads that list folders."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import hudi_core as hudi
from hudi_core.engine.spark import engine
from tests.tables import TABLES

pytestmark = pytest.mark.spark

OPTIONS = {
    "hoodie.table.name": "n",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
}


def put(path: Path, *rows: tuple[int, str, float], **options: str) -> None:
    ids, cities, fares = zip(*rows, strict=True)
    named = pa.table({"id": ids, "city": cities, "fare": fares})
    hudi.write(named, path, options={**OPTIONS, **options})


@pytest.fixture(params=TABLES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    where = tmp_path / "n"
    put(where, (1, "rome", 1.0), (2, "oslo", 2.0), **{"hoodie.table.format": request.param})
    put(where, (2, "oslo", 2.5), (3, "oslo", 3.0))
    return where


def ids(spark: SparkSession, query: str) -> list[int]:
    return sorted(row[0] for row in spark.sql(query).collect())


def test_options_of_reads_in_sql(spark: SparkSession, path: Path) -> None:
    first, second = hudi.Table.open(path).timeline.completed_writes()
    window = (
        "hoodie.datasource.query.type 'incremental', "
        f"hoodie.datasource.read.begin.instanttime '{first.completion_time}', "
        f"hoodie.datasource.read.end.instanttime '{second.completion_time}'"
    )
    given = {
        "now": "",
        "before": f", as.of.instant '{first.requested_time}'",
        "changed": f", {window}",
        "feed": f", {window}, hoodie.datasource.query.incremental.format 'cdc'",
    }
    views = {
        name: f"CREATE TEMPORARY VIEW {name} USING hudi OPTIONS (path '{path}'{more})"
        for name, more in given.items()
    }
    tables = {
        f"{name}_table": f"CREATE TABLE {name}_table USING hudi OPTIONS (path '{path}'{more})"
        for name, more in given.items()
    }
    for statement in (*views.values(), *tables.values()):
        spark.sql(statement)
    try:
        for kind in ("", "_table"):
            assert ids(spark, f"SELECT id FROM now{kind}") == [1, 2, 3]
            assert ids(spark, f"SELECT id FROM now{kind} WHERE city = 'oslo'") == [2, 3]
            assert ids(spark, f"SELECT id FROM before{kind}") == [1, 2]
            assert ids(spark, f"SELECT id FROM changed{kind}") == [2, 3]
            changes = spark.table(f"feed{kind}").select("op").collect()
            assert sorted(row.op for row in changes) == ["i", "u"]
        joined = "SELECT a.id FROM now a JOIN before_table b ON a.id = b.id WHERE a.fare > b.fare"
        assert ids(spark, joined) == [2]
    finally:
        for name in views:
            spark.catalog.dropTempView(name)
        for name in tables:
            spark.sql(f"DROP TABLE {name}")


def test_a_name_and_a_table_see_what_is_written_later(spark: SparkSession, path: Path) -> None:
    table = hudi.Table.open(path)
    spark.sql(f"CREATE TABLE lasting USING hudi LOCATION '{path}'")
    try:
        frame = spark.table("lasting")
        assert (frame.count(), table.read(spark).count()) == (3, 3)
        put(path, (4, "lima", 4.0))
        assert ids(spark, "SELECT id FROM lasting") == [1, 2, 3, 4]
        # a DataFrame stays at what it has read once
        assert frame.count() == 3
        assert spark.table("lasting").count() == 4
        assert table.read(spark).count() == 4
    finally:
        spark.sql("DROP TABLE lasting")


@pytest.mark.parametrize("pushdown", ["false", "true"])
def test_queries_of_one_frame_have_filters_of_their_own(
    spark: SparkSession, path: Path, pushdown: str
) -> None:
    key = "spark.sql.python.filterPushdown.enabled"
    before = spark.conf.get(key) or "false"
    spark.sql(f"CREATE TEMPORARY VIEW several USING hudi OPTIONS (path '{path}')")
    spark.conf.set(key, pushdown)
    try:
        frame = spark.table("several")
        every = [row.id for row in hudi.Table.open(path).read(spark, "id").collect()]
        first, rest = frame.where(f"id = {every[0]}"), frame.where(f"id <> {every[0]}")
        assert [row.id for row in first.collect()] == every[:1]
        assert frame.count() == len(every) > 1
        assert first.unionAll(rest).count() == len(every)
        assert first.crossJoin(rest).count() == len(every) - 1
        [counts] = spark.sql(
            "SELECT (SELECT count(*) FROM several WHERE city = 'rome'), "
            "(SELECT count(*) FROM several WHERE city <> 'rome'), count(*) FROM several"
        ).collect()
        assert counts[0] + counts[1] == counts[2] == len(every)
    finally:
        spark.conf.set(key, before)
        spark.catalog.dropTempView("several")


def test_the_metadata_table_is_a_frame(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "n", (1, "rome", 1.0), (2, "oslo", 2.0))
    frame = hudi.read_metadata(spark, tmp_path / "n")
    arrow = hudi.read_metadata(None, tmp_path / "n")
    assert arrow.num_rows == frame.count() > 0
    assert frame.columns == arrow.column_names
    assert arrow.equals(hudi.Table.open(tmp_path / "n").metadata("files"))
    key = arrow.column_names[0]
    assert {row[0] for row in frame.select(key).collect()} == set(arrow[key].to_pylist())


@pytest.mark.parametrize("has_metadata", [True, False])
def test_tasks_list_folders_where_there_is_no_metadata_table(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_metadata: bool
) -> None:
    # executors on this machine are none to the engine, which would list by itself
    monkeypatch.setattr(engine, "_ON_THIS_MACHINE", re.compile("none"))
    rows = [(n, f"c{n:02d}", float(n)) for n in range(40)]
    put(tmp_path / "n", *rows, **{"hoodie.metadata.enable": str(has_metadata).lower()})
    context = spark.sparkContext
    reads: tuple[Callable[[], DataFrame], ...] = (
        lambda: hudi.read(spark, tmp_path / "n"),
        lambda: hudi.Table.open(tmp_path / "n").read(spark),
    )
    for number, read in enumerate(reads):
        group = f"listing-{has_metadata}-{number}"
        context.setJobGroup(group, "plans a read")
        try:
            frame = read()
            jobs = context.statusTracker().getJobIdsForGroup(group)
        finally:
            context.setLocalProperty("spark.jobGroup.id", "")
        assert bool(jobs) is not has_metadata
        assert sorted(row.id for row in frame.select("id").collect()) == list(range(40))
