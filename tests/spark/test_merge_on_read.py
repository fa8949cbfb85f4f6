"""Merge-on-read tables of Apache Hudi in Spark: the rows that Hudi-Spark reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import hudi_core as hudi
from tests.foreign import by_hudi_rs
from tests.hudi_tables import BUCKETS, LOGS_6, OWN, PARQUET_LOGS, PARTIAL, TRIPS
from tests.tables import SCHEMA, new_table

pytestmark = pytest.mark.spark
KEY = "_hoodie_record_key"
OPTIONS = {
    "hoodie.datasource.query.type": "read_optimized",
    "hoodie.datasource.merge.type": "skip_merge",
}


def fetched(frame: DataFrame, *names: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.select(*names).collect())


@pytest.mark.parametrize("name", [TRIPS, LOGS_6, PARQUET_LOGS, PARTIAL, BUCKETS])
def test_rows_and_states(spark: SparkSession, name: str, tmp_path: Path) -> None:
    path = OWN.unpack(name, tmp_path / "t")
    table, expected = hudi.Table.open(path), OWN.expected(name)
    names = [KEY, "_hoodie_commit_seqno"]
    wanted = table.to_arrow(names)
    pairs = sorted(zip(*(one.to_pylist() for one in wanted.columns), strict=True))
    by_source = spark.read.format("hudi").load(str(path))
    for frame in (hudi.read(spark, path), by_source):
        assert [row[0] for row in fetched(frame, KEY)] == expected["record_keys"]
        assert fetched(frame, *names) == pairs
        assert frame.count() == expected["rows"]
    first = table.timeline.completed_writes()[0].requested_time
    past = hudi.read(spark, path, {"as.of.instant": first})
    assert past.count() == table.count(as_of=first)
    for key, value in OPTIONS.items():
        here = hudi.read(None, path, {key: value}).column(KEY).to_pylist()
        there = hudi.read(spark, path, {key: value})
        assert [row[0] for row in fetched(there, KEY)] == sorted(here)
    some = expected["record_keys"][0]
    assert by_source.filter(by_source[KEY] == some).count() == expected["record_keys"].count(some)


def test_streams_and_statements(spark: SparkSession, tmp_path: Path) -> None:
    path = OWN.unpack(PARTIAL, tmp_path / "t")
    expected = OWN.expected(PARTIAL)["record_keys"]
    batches: list[list[str]] = []

    def keep(batch: DataFrame, _: int) -> None:
        batches.append(sorted(row[0] for row in batch.select(KEY).collect()))

    source = spark.readStream.format("hudi").load(str(path))
    writer = source.writeStream.foreachBatch(keep).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    query.awaitTermination()
    assert batches == [expected]
    session = hudi.sql_session(spark)
    for rows in (f"hudi.`{path}`", f"hudi_table_changes('{path}', 'latest_state', 'earliest')"):
        assert fetched(session.sql(f"SELECT * FROM {rows}"), KEY) == [(key,) for key in expected]


def test_a_split_table(spark: SparkSession, tmp_path: Path) -> None:
    """Tasks leave rows of one file group for those that write another one."""
    options = {
        "hoodie.table.merge-on-read.mode": "split",
        "hoodie.compact.inline": "false",
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.index.type": "RECORD_INDEX",
    }
    table = new_table(tmp_path / "t", SCHEMA, options, table_type="MERGE_ON_READ")
    columns = "id string, part string, ts long"
    first = [(f"k{number}", "xy"[number % 2], 1) for number in range(20)]
    assert table.insert(spark.createDataFrame(first, columns)).inserted == 20
    changed = [(key, part, 2) for key, part, _ in first[:5]] + [("new", "x", 2), ("k9", "y", 0)]
    done = table.upsert(spark.createDataFrame(changed, columns))
    assert (done.inserted, done.updated, done.deleted) == (1, 5, 0)
    merger = table.merge(spark.createDataFrame([("k7", "y", 3)], columns), on="id")
    merger.when_matched_update_all().execute()
    assert table.delete(spark.createDataFrame([("k8", "x", 9)], columns)).deleted == 1
    expected = {key: (part, ts) for key, part, ts in first} | {"new": ("x", 2), "k7": ("y", 3)}
    expected |= {key: (part, 2) for key, part, _ in first[:5]}
    del expected["k8"]
    frame = hudi.read(spark, table.path)
    assert {row["id"]: (row["part"], row["ts"]) for row in frame.collect()} == expected
    assert {row["id"]: (row["part"], row["ts"]) for row in by_hudi_rs(table.path)} == expected
    assert frame.count() == hudi.Table.open(table.path).count() == len(expected)
    begin = table.timeline.completed_writes()[0].requested_time
    feed = table.changes(begin, spark=spark)
    assert sorted(row["op"] for row in feed.collect()) == ["d", "i", *["u"] * 6]
    assert hudi.Table.open(table.path).validate(keys=True).is_valid
