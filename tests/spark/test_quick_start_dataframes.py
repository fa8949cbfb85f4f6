"""Hudi's quick start for PySpark, step by step, in a session of Spark's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

import hudi_core as hudi
from tests.foreign import by_hudi_rs

pytestmark = pytest.mark.spark

COLUMNS = ["ts", "uuid", "rider", "driver", "fare", "city"]
DATA = [
    (1695159649087, "334e26e9", "rider-A", "driver-K", 19.10, "san_francisco"),
    (1695091554788, "e96c4396", "rider-C", "driver-M", 27.70, "san_francisco"),
    (1695046462179, "9909a8b1", "rider-D", "driver-L", 33.90, "san_francisco"),
    (1695516137016, "e3cf430c", "rider-F", "driver-P", 34.15, "sao_paulo"),
    (1695115999911, "c8abbe79", "rider-J", "driver-T", 17.85, "chennai"),
]
OPTIONS = {
    "hoodie.table.name": "trips_table",
    "hoodie.datasource.write.partitionpath.field": "city",
}


def save(data: DataFrame, path: str, mode: str, **options: str) -> None:
    data.write.format("hudi").options(**OPTIONS).options(**options).mode(mode).save(path)


def fares(spark: SparkSession, path: str, **options: Any) -> dict[str, float]:
    found = spark.read.format("hudi").options(**options).load(path)
    return {row.rider: row.fare for row in found.select("rider", "fare").collect()}


def test_step_by_step(spark: SparkSession, tmp_path: Path) -> None:
    path = f"file://{tmp_path}/trips_table"
    # insert data: the first commit makes the table
    inserts = spark.createDataFrame(DATA).toDF(*COLUMNS)
    inserts.write.format("hudi").options(**OPTIONS).mode("overwrite").save(path)
    first = hudi.Table.open(path).timeline.completed_writes()[-1]

    # query data
    spark.read.format("hudi").load(path).createOrReplaceTempView("trips_table")
    query = "SELECT uuid, fare, ts, rider, driver, city FROM trips_table WHERE fare > 20.0"
    assert sorted(row.rider for row in spark.sql(query).collect()) == [
        "rider-C",
        "rider-D",
        "rider-F",
    ]
    meta = spark.sql(
        "SELECT _hoodie_commit_time, _hoodie_record_key, _hoodie_partition_path, rider, driver, "
        "fare FROM trips_table"
    )
    assert meta.select("_hoodie_commit_time").distinct().collect()[0][0] == first.requested_time

    # update data
    updates = spark.read.format("hudi").load(path).filter("rider == 'rider-D'")
    save(updates.withColumn("fare", col("fare") * 10), path, "append")
    assert fares(spark, path)["rider-D"] == 339.0

    # merging data by a payload class of one's own: no Java class is loaded
    adjusted = spark.read.format("hudi").load(path).limit(2).withColumn("fare", col("fare") * 100)
    custom = "com.payloads.CustomMergeIntoConnector"
    with pytest.raises(PySparkException, match=r"no Java class is loaded.*MERGE INTO"):
        adjusted.write.format("hudi").option("hoodie.datasource.write.payload.class", custom).mode(
            "append"
        ).save(path)

    # delete data
    gone = spark.read.format("hudi").load(path).filter("rider == 'rider-F'")
    save(gone, path, "append", **{"hoodie.datasource.write.operation": "delete"})
    now = {"rider-A": 19.1, "rider-C": 27.7, "rider-D": 339.0, "rider-J": 17.85}
    assert fares(spark, path) == now
    assert {row["rider"]: row["fare"] for row in by_hudi_rs(tmp_path / "trips_table")} == now

    # time travel query, by a commit and by a time
    time = first.requested_time
    assert len(fares(spark, path, **{"as.of.instant": time})) == 5
    words = f"{time[:4]}-{time[4:6]}-{time[6:8]} {time[8:10]}:{time[10:12]}:{time[12:14]}"
    assert fares(spark, path, **{"as.of.instant": f"{words}.{time[14:]}"})["rider-D"] == 33.9

    # incremental query
    spark.read.format("hudi").load(path).createOrReplaceTempView("trips_table")
    distinct = "SELECT DISTINCT(_hoodie_commit_time) AS t FROM trips_table ORDER BY t"
    commits = [row[0] for row in spark.sql(distinct).limit(50).collect()]
    incremental = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": commits[-2],
    }
    spark.read.format("hudi").options(**incremental).load(path).createOrReplaceTempView("changes")
    query = "SELECT `_hoodie_commit_time`, fare, rider, uuid, ts FROM changes WHERE fare > 20.0"
    assert [row.rider for row in spark.sql(query).collect()] == ["rider-D"]
    spark.catalog.dropTempView("trips_table")
    spark.catalog.dropTempView("changes")


def test_changes_and_keys_step_by_step(spark: SparkSession, tmp_path: Path) -> None:
    # change data capture query
    path = str(tmp_path / "cdc")
    inserts = spark.createDataFrame(DATA).toDF(*COLUMNS)
    save(inserts, path, "overwrite", **{"hoodie.table.cdc.enabled": "true"})
    chosen = spark.read.format("hudi").load(path).filter("rider == 'rider-A' or rider == 'rider-C'")
    # without an option: the table has them
    chosen.withColumn("fare", col("fare") * 10).write.format("hudi").mode("append").save(path)
    cdc: dict[str, str | int] = {
        "hoodie.datasource.query.incremental.format": "cdc",
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": 0,
    }
    feed = spark.read.format("hudi").options(**cdc).load(path)
    assert sorted(row.op for row in feed.collect()) == ["i"] * 5 + ["u"] * 2

    # table types: an update goes into a log file, which a snapshot merges
    mor = str(tmp_path / "mor")
    save(inserts, mor, "overwrite", **{"hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    chosen = spark.read.format("hudi").load(mor).filter("rider == 'rider-D'")
    save(chosen.withColumn("fare", col("fare") * 10), mor, "append")
    assert sum(len(one.log_files) for one in hudi.Table.open(mor).file_slices()) == 1
    assert fares(spark, mor)["rider-D"] == 339.0
    optimized = {"hoodie.datasource.query.type": "read_optimized"}
    assert fares(spark, mor, **optimized)["rider-D"] == 33.9
    assert {row["rider"]: row["fare"] for row in by_hudi_rs(mor)} == fares(spark, mor)

    # keys, and an ordering field
    keyed = str(tmp_path / "keyed")
    options = {
        "hoodie.datasource.write.recordkey.field": "uuid",
        "hoodie.datasource.write.precombine.field": "ts",
    }
    save(inserts, keyed, "overwrite", **options)
    older = inserts.withColumn("ts", col("ts") - 1).withColumn("fare", col("fare") * 0)
    save(older, keyed, "append", **options)
    assert 0.0 not in fares(spark, keyed).values()
    save(older.withColumn("ts", col("ts") + 2), keyed, "append", **options)
    assert set(fares(spark, keyed).values()) == {0.0}
