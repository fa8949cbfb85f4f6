"""The data source ``hudi``: modes, failures, filters, columns, and stores.

That it gives what the Python API gives for every operation is shown where only the wheel is
installed, in ``tests/packaging/test_wheels.py``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hudi as hudi_rs
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import hudi_core as hudi
from hudi_core.engine.choice import connected_scheme
from hudi_core.storage.hadoop import hadoop_schemes

pytestmark = pytest.mark.spark

OPTIONS = {
    "hoodie.table.name": "doors",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.table.ordering.fields": "ts",
}
CITIES = ("rome", "oslo", "lima")


def frame(spark: SparkSession, count: int, ts: int = 1) -> DataFrame:
    made = [
        {"id": f"k{n:03d}", "city": CITIES[n % 3], "ts": ts, "price": float(n)}
        for n in range(count)
    ]
    return spark.createDataFrame(pa.Table.from_pylist(made)).repartition(2)


def save(
    data: DataFrame, path: str, told: str = "append", more: Mapping[str, str] | None = None
) -> None:
    data.write.format("hudi").options(**{**OPTIONS, **(more or {})}).mode(told).save(path)


def load(spark: SparkSession, path: str, **options: str) -> DataFrame:
    return spark.read.format("hudi").options(**options).load(path)


def files(path: Path) -> set[str]:
    return {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}


def staged(path: Path) -> list[Path]:
    return list((path / ".hoodie/.temp").rglob("*.arrow"))


def test_save_modes(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")

    def count() -> int:
        return int(hudi.read(None, path).num_rows)

    save(frame(spark, 6), path, more={"mode": "errorifexists"})
    save(frame(spark, 9), path, more={"mode": "ignore"})
    assert count() == 6
    with pytest.raises(PySparkException, match="holds a table already"):
        save(frame(spark, 9), path, more={"mode": "errorifexists"})
    save(frame(spark, 9, ts=2), path)
    assert count() == 9
    save(frame(spark, 2), path, "overwrite")
    assert count() == 2
    assert len(hudi.Table.open(path).timeline.completed_writes()) == 1
    save(frame(spark, 3), path, more={"mode": "overwrite"})
    assert count() == 3
    with pytest.raises(PySparkException, match="mode='ignore'"):
        save(frame(spark, 9), path, "overwrite", more={"mode": "ignore"})
    with pytest.raises(PySparkException, match="no such mode"):
        save(frame(spark, 9), path, more={"mode": "upsert"})
    assert staged(tmp_path / "t") == []


@pytest.mark.parametrize("mode", [None, "errorifexists", "ignore"])
def test_spark_itself_refuses_the_other_modes(
    spark: SparkSession, tmp_path: Path, mode: str | None
) -> None:
    """When this fails, Spark has learnt them, and the option ``mode`` has had its day."""
    writer = frame(spark, 1).write.format("hudi").options(**OPTIONS)
    with pytest.raises(PySparkException, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
        (writer.mode(mode) if mode else writer).save(str(tmp_path / "t"))


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_task_that_fails_leaves_the_table_as_it_was(
    spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    path = tmp_path / "t"
    save(frame(spark, 6), str(path))
    before = files(path)

    fails = "if(id = 'k004', raise_error('a row that cannot be made'), id) id"
    # one task: another may end after its job was given up, and what it leaves a later job removes
    rows = frame(spark, 6).coalesce(1).selectExpr(fails, "city", "ts", "price")
    with pytest.raises(PySparkException, match="a row that cannot be made"):
        save(rows, str(path), mode)
    assert files(path) == before
    new = tmp_path / "new"
    with pytest.raises(PySparkException, match="a row that cannot be made"):
        save(rows, str(new), mode)
    assert files(new) == set()


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_rows_that_do_not_fit_are_refused_in_the_commit(
    spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    path = tmp_path / "t"
    save(frame(spark, 6), str(path))
    before = hudi.read(None, str(path))
    null_key = frame(spark, 3).selectExpr("nullif(id, 'k001') id", "city", "ts", "price")
    with pytest.raises(PySparkException, match="RecordKeyError"):
        save(null_key, str(path), mode)
    assert hudi.read(None, str(path)) == before
    assert staged(path) == []


def test_options_are_refused_before_a_row_is_made(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    rows = spark.sql(
        "select cast(raise_error('too late') as string) as id, 'rome' as city, 1 as ts"
    )
    for wrong, message in (
        ({"hoodie.datasource.write.operation": "merge"}, "'merge' cannot be used"),
        ({"hoodie.datasource.write.recordkey.field": "nothing"}, "is no column"),
        ({"hoodie.table.format": "strange"}, "No installed plugin"),
    ):
        with pytest.raises(PySparkException, match=message):
            save(rows, str(path), more=wrong)
    save(frame(spark, 2), str(path))
    with pytest.raises(PySparkException, match="OptionConflictError"):
        save(rows, str(path), more={"hoodie.datasource.write.recordkey.field": "ts"})
    with pytest.raises(PySparkException, match="path is missing"):
        rows.write.format("hudi").options(**OPTIONS).mode("append").save()


def test_no_rows_at_all(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    save(frame(spark, 4).where("id = 'none'"), path)
    assert load(spark, path).count() == 0
    assert load(spark, path).columns[5:] == ["id", "city", "ts", "price"]


def test_what_a_dead_job_left_is_removed_in_time(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    save(frame(spark, 4), str(path))
    for name, days in (("dead", 8), ("slow", 6)):
        file = path / f".hoodie/.temp/.incoming/{name}/0.arrow"
        file.parent.mkdir(parents=True)
        file.write_bytes(b"")
        then = time.time() - days * 86_400
        os.utime(file, (then, then))
    save(frame(spark, 5), str(path))
    assert [file.parent.name for file in staged(path)] == ["slow"]
    save(frame(spark, 6), str(path), "overwrite")
    assert [file.parent.name for file in staged(path)] == ["slow"]


CONDITIONS = [
    "city = 'rome'",
    "city in ('rome', 'oslo')",
    "city <> 'rome' and ts >= 1",
    "not (city in ('rome'))",
    "city > 'lima' and id like 'k%'",
    "price > 3",
    "price = double('NaN')",
    "city <=> 'rome'",
    "not (city <=> 'rome')",
    "city is null",
    "ts is not null and city = 'rome' or id = 'k001'",
]


@pytest.mark.parametrize("pushdown", ["true", "false"])
def test_filters_find_the_same_rows_whether_pushed_down_or_not(
    spark: SparkSession, tmp_path: Path, pushdown: str
) -> None:
    path = str(tmp_path / "t")
    data = frame(spark, 12).selectExpr(
        "id", "city", "ts", "if(id = 'k005', double('NaN'), price) price"
    )
    save(data, path)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", pushdown)
    try:
        for condition in CONDITIONS:
            expected = sorted(row.id for row in data.where(condition).collect())
            found = load(spark, path).where(condition)
            assert sorted(row.id for row in found.collect()) == expected, condition
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_only_the_columns_that_are_named_are_read(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    save(frame(spark, 5), path)
    few = spark.read.format("hudi").schema("price double, id string").load(path)
    assert few.columns == ["price", "id"]
    assert sorted(row.id for row in few.collect()) == [f"k{n:03d}" for n in range(5)]
    with pytest.raises(PySparkException, match="SchemaError"):
        spark.read.format("hudi").schema("nothing int").load(path).collect()


# --- S3: no connector in the JVM ------------------------------------------------------------------


def test_the_doors_open_tables_on_s3(spark: SparkSession, s3: Any) -> None:
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
    theirs = hudi_rs.HudiTableBuilder.from_base_uri(path).with_storage_options(
        {
            "aws_access_key_id": "test-access-key",
            "aws_secret_access_key": "test-secret-key",
            "aws_endpoint": s3.endpoint,
            "aws_region": "us-east-1",
            "aws_allow_http": "true",
        }
    )
    assert sum(batch.num_rows for batch in theirs.build().read()) == 7


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
