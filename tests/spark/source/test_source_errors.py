"""Errors of the data source ``hudi``, and tables on stores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import hudi_core as hudi
from hudi_core.engine.choice import connected_scheme
from hudi_core.engine.spark import SparkEngine
from hudi_core.errors import DataFileError
from hudi_core.storage.hadoop import hadoop_schemes
from tests.foreign import by_hudi_rs
from tests.spark.source.source_tables import OPTIONS, frame, load, save

pytestmark = pytest.mark.spark

# --- errors ---------------------------------------------------------------------------------------


def only_ours(message: str) -> bool:
    """Whether an error says what is wrong, without pages of Python or Java around it."""
    return len(message) < 1000 and "Traceback" not in message and "\tat " not in message


def test_errors_of_the_source_come_without_tracebacks(
    spark: SparkSession, shared: str, tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged"
    save(frame(spark, 1), str(damaged))
    for file in damaged.glob("rome/*.parquet"):
        file.write_bytes(b"no such file")
    rows = frame(spark, 2)
    no_key = rows.selectExpr("cast(null as string) id", "city", "ts", "price")
    merge = {"hoodie.datasource.write.operation": "merge"}
    for kind, ask in (
        ("NotATableError", lambda: load(spark, str(tmp_path / "nothing"))),
        ("UnknownPartitionError", lambda: load(spark, f"{shared}/paris").collect()),
        (
            "TimeOutOfRangeError",
            lambda: load(spark, shared, **{"as.of.instant": "2001-01-01"}).collect(),
        ),
        ("DataFileError", lambda: load(spark, str(damaged)).collect()),
        ("InvalidOptionError", lambda: save(rows, str(damaged), more=merge)),
        ("RecordKeyError", lambda: save(no_key, shared)),
    ):
        with pytest.raises(PySparkException, match=f"hudi_core.errors.{kind}: ") as caught:
            ask()
        assert only_ours(str(caught.value)), str(caught.value)


def test_errors_of_tasks_keep_their_type(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    hudi.write(frame(spark, 6), path, options=OPTIONS)
    for file in (tmp_path / "t").glob("rome/*.parquet"):
        file.write_bytes(b"no such file")
    on_executors = SparkEngine(spark, tasks_on_driver=False)
    with pytest.raises(DataFileError) as caught:
        hudi.write(frame(spark, 6), path, options=OPTIONS, engine=on_executors)
    assert only_ours(str(caught.value))
    [left] = hudi.Table.open(path).timeline.completed_writes()
    assert left.is_completed


# --- S3: no connector in the JVM ------------------------------------------------------------------


def test_the_source_opens_tables_on_s3(spark: SparkSession, s3: Any) -> None:
    path = s3.new_root()
    save(frame(spark, 9), path, more=s3.given)
    save(frame(spark, 12, ts=2), path, more=s3.given)
    delete = {**s3.given, "hoodie.datasource.write.operation": "delete"}
    save(frame(spark, 3), path, more=delete)
    found = load(spark, path, **s3.given).orderBy("id").collect()
    assert [row.id for row in found] == [f"k{n:03d}" for n in range(3, 12)]
    assert {row.ts for row in found} == {2}
    first = hudi.Table.open(path, s3.given).timeline.completed_writes()[0]
    past = load(spark, path, **s3.given, **{"as.of.instant": first.requested_time})
    assert past.count() == 9
    save(frame(spark, 2), path, "overwrite", more=s3.given)
    assert load(spark, path, **s3.given).count() == 2
    assert load(spark, f"{path}/rom*", **s3.given).count() == 1
    assert load(spark, f"{path}/oslo/*", **s3.given).count() == 1
    left = s3.objects(path)
    assert not [name for name in left if name.endswith(".arrow")]
    assert not [name for name, data in left.items() if b"test-secret-key" in data]


def test_the_engine_on_spark_writes_and_reads_s3(spark: SparkSession, s3: Any) -> None:
    path = s3.new_root()
    options = {**OPTIONS, **s3.given}
    for operation, count in (("bulk_insert", 6), ("upsert", 9), ("delete", 2)):
        given = {**options, "hoodie.datasource.write.operation": operation}
        hudi.write(frame(spark, count, ts=count), path, "append", given)
    table = hudi.Table.open(path, s3.given)
    here = table.to_arrow().sort_by("id")
    assert here.column("id").to_pylist() == [f"k{n:03d}" for n in range(2, 9)]
    assert table.read(spark).orderBy("id").toArrow().to_pylist() == here.to_pylist()
    some = table.read(spark, columns=["id"], filter=[("city", "=", "rome")])
    assert some.columns == ["id"]
    assert sorted(row.id for row in some.collect()) == ["k003", "k006"]
    instants = table.timeline.completed_writes()
    assert table.read(spark, as_of=instants[0]).count() == 6
    assert table.incremental(instants[0], instants[1], spark).count() == 9
    assert len(by_hudi_rs(path, storage=s3.rust)) == 7


def test_changes_are_read_by_tasks(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    logs = {"hoodie.table.cdc.enabled": "true"}
    for operation, count in (("upsert", 9), ("delete", 2)):
        given = {**OPTIONS, **logs, "hoodie.datasource.write.operation": operation}
        hudi.write(frame(spark, count, ts=count), path, "append", given)
    table = hudi.Table.open(path)
    last = table.timeline.completed_writes()[-1]
    stats = table._session.opened.client.read_commit(last).stats
    named = [one for stat in stats for one in stat.cdc_stats or ()]
    assert named
    assert all(Path(table.path, one).exists() for one in named)
    first, _ = table.timeline.completed_writes()
    here = table.incremental(first, columns=["id"], deletes=True)
    there = table.incremental(first, spark=spark, columns=["id"], deletes=True)
    assert there.toArrow().sort_by("id").to_pylist() == here.sort_by("id").to_pylist()
    assert {row["_change_type"] for row in here.to_pylist()} == {"delete"}

    feed = table.changes().sort_by([("op", "ascending"), ("after", "ascending")])
    options = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.query.incremental.format": "cdc",
        "hoodie.datasource.read.begin.instanttime": "earliest",
    }
    for found in (table.changes(spark=spark), load(spark, path, **options)):
        assert found.columns == feed.column_names
        assert set(found.toArrow().to_pylist()[0]) == set(feed.column_names)
        assert sorted(map(tuple, found.collect()), key=repr) == sorted(
            (tuple(row.values()) for row in feed.to_pylist()), key=repr
        )
    assert load(spark, path, **options).where("op = 'd'").count() == 2


def test_spark_reads_by_itself_where_its_jvm_can(spark: SparkSession) -> None:
    assert connected_scheme(spark, hadoop_schemes("/lake/t")) == "file"
    assert connected_scheme(spark, hadoop_schemes("s3://lake/t")) is None
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    conf.set("fs.s3a.impl", "org.apache.hadoop.fs.LocalFileSystem")
    try:
        assert connected_scheme(spark, hadoop_schemes("s3://lake/t")) == "s3a"
    finally:
        conf.unset("fs.s3a.impl")
    conf.set("fs.s3a.impl", "org.example.NoSuchClass")
    try:
        assert connected_scheme(spark, hadoop_schemes("s3a://lake/t")) is None
    finally:
        conf.unset("fs.s3a.impl")
