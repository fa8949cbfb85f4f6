"""Writes and filtered reads through the data source ``hudi``."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import hudi_core as hudi
from hudi_core.errors import InvalidOptionError
from tests.spark.source.source_tables import OPTIONS, frame, load, save

pytestmark = pytest.mark.spark


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


def test_a_write_is_done_once_and_keeps_what_it_is_given(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    once = {"txnAppId": "job", "txnVersion": "7"}
    kept = {"hoodie.datasource.write.commitmeta.key.prefix": "Ingest.", "Ingest.source": "kafka"}
    save(frame(spark, 6), path, more={**once, **kept})
    before = files(tmp_path)
    save(frame(spark, 9), path, more={**once, "mode": "errorifexists"})
    assert files(tmp_path) == before
    again = hudi.write(frame(spark, 9), path, options=OPTIONS, idempotency=("job", 6))
    assert again is not None
    assert (again.is_repetition, again.inserted) == (True, 6)
    # Spark hands names over in lower case
    assert again.metadata.extra_metadata["ingest.source"] == "kafka"
    first = hudi.write(frame(spark, 9), path, options=OPTIONS, idempotency=("job", 8))
    assert first is not None
    assert (first.is_repetition, first.inserted) == (False, 3)
    assert load(spark, path).count() == 9


def test_a_session_that_encrypts_is_not_answered_with_plain_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    conf.set("parquet.crypto.factory.class", "org.apache.parquet.crypto.keytools.X")
    try:
        with pytest.raises(InvalidOptionError, match="files are not encrypted"):
            hudi.write(frame(spark, 2), str(tmp_path / "t"), options=OPTIONS)
    finally:
        conf.unset("parquet.crypto.factory.class")
    assert not (tmp_path / "t").exists()


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
