"""Merge-on-read tables of Apache Hudi in Spark: the rows that Hudi-Spark reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import hudi_core as hudi
from tests.hudi_tables import BUCKETS, LOGS_6, OWN, PARQUET_LOGS, PARTIAL, TRIPS

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
