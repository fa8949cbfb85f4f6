"""Partitions that are periods of a moment, through Spark's doors: the same tables as in this
process, and the column keeps its values whatever the folders are called."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import hudi_core as hudi
from tests.foreign import by_hudi_rs

pytestmark = pytest.mark.spark

PREFIX = "hoodie.keygen.timebased."
OPTIONS = {
    "hoodie.table.name": "events",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "ts",
    "hoodie.datasource.write.keygenerator.class": (
        "org.apache.hudi.keygen.TimestampBasedKeyGenerator"
    ),
    f"{PREFIX}timestamp.type": "EPOCHMICROSECONDS",
    f"{PREFIX}output.dateformat": "yyyy/MM/dd",
    f"{PREFIX}output.timezone": "America/New_York",
}
HOURLY = pa.schema([("id", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("n", pa.int64())])
START = dt.datetime(2024, 1, 15, 3, tzinfo=dt.UTC)
"""Still the 14th in New York."""
Row = tuple[Any, ...]


def hourly_rows(n: int, *hours: int) -> pa.Table:
    return pa.Table.from_pylist(
        [{"id": f"k{at}", "ts": START + dt.timedelta(hours=at), "n": n} for at in hours], HOURLY
    )


def content(found: pa.Table) -> list[Row]:
    names = ("id", "_hoodie_partition_path", "ts", "n")
    return sorted(tuple(row[name] for name in names) for row in found.to_pylist())


def of_frame(frame: DataFrame) -> list[Row]:
    return content(frame.toArrow().cast(_utc(frame.toArrow().schema)))


def _utc(schema: pa.Schema) -> pa.Schema:
    place = schema.get_field_index("ts")
    return schema.set(place, pa.field("ts", HOURLY.field("ts").type))


@pytest.mark.parametrize("mode", ["NONE", "GLOBAL_SORT", "PARTITION_PATH_REPARTITION"])
def test_both_doors_write_what_this_process_writes(
    spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    bulk = {
        "hoodie.datasource.write.operation": "bulk_insert",
        "hoodie.bulkinsert.sort.mode": mode,
        **OPTIONS,
    }
    first, second = hourly_rows(1, 0, 1, 2, 24, 48), hourly_rows(2, 1, 25)
    places = {name: str(tmp_path / name) for name in ("here", "call", "source")}

    hudi.write(first, places["here"], mode="append", options=bulk)
    hudi.write(spark.createDataFrame(first), places["call"], mode="append", options=bulk)
    source = spark.createDataFrame(first).write.format("hudi").options(**bulk)
    source.mode("append").save(places["source"])
    hudi.write(second, places["here"], mode="append", options=OPTIONS)
    hudi.write(spark.createDataFrame(second), places["call"], mode="append", options=OPTIONS)
    source = spark.createDataFrame(second).write.format("hudi").options(**OPTIONS)
    source.mode("append").save(places["source"])

    expected = content(hudi.read(None, places["here"]))
    assert {row[1] for row in expected} == {"2024/01/14", "2024/01/15", "2024/01/16"}
    assert {row[0]: row[3] for row in expected} == {
        "k0": 1, "k1": 2, "k2": 1, "k24": 1, "k25": 2, "k48": 1,
    }  # fmt: skip
    for path in places.values():
        assert content(hudi.read(None, path)) == expected
        assert of_frame(hudi.read(spark, path)) == expected
        assert of_frame(spark.read.format("hudi").load(path)) == expected
        assert content(pa.Table.from_pylist(by_hudi_rs(path))) == expected


def test_filters_on_the_column_leave_out_partitions(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    hudi.write(
        spark.createDataFrame(hourly_rows(1, 0, 24, 48)), path, mode="append", options=OPTIONS
    )
    # a reader that looked there would fail
    next((tmp_path / "t/2024/01/14").glob("*.parquet")).write_bytes(b"no Parquet")

    since = START + dt.timedelta(hours=20)
    found = hudi.Table.open(path).read(spark, filter=[("ts", ">=", since)])
    assert [row[0] for row in of_frame(found)] == ["k24", "k48"]


def test_the_first_and_the_last_day_that_dates_have(spark: SparkSession, tmp_path: Path) -> None:
    ends = [
        "TIMESTAMP '0001-01-02 00:00:00'",
        "TIMESTAMP '9999-12-31 00:00:00'",
        "TIMESTAMP '9999-12-31 23:59:59.999999'",
    ]
    union = " UNION ALL ".join(
        f"SELECT 'k{number}' AS id, {text} AS ts, {number}L AS n"
        for number, text in enumerate(ends)
    )
    frame = spark.sql(union)
    path = str(tmp_path / "ends")
    hudi.write(frame, path, mode="append", options=OPTIONS)
    hudi.write(frame, path, mode="append", options=OPTIONS)

    found = hudi.read(spark, path)
    assert found.count() == 3
    for number, text in enumerate(ends):
        assert [row["n"] for row in found.where(f"ts = {text}").collect()] == [number]
    assert found.where("ts >= TIMESTAMP '9999-12-31'").count() == 2
    rows_of_rs = by_hudi_rs(path)
    assert len(rows_of_rs) == 3
    paths = {row["_hoodie_partition_path"] for row in rows_of_rs}
    assert paths <= {"0001/01/01", "0001/01/02", "9999/12/30", "9999/12/31"}
