"""Spark reads the files that Arrow reads: those whose ranges a filter does not exclude."""

from __future__ import annotations

import math
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import input_file_name

import hudi_core as hudi
from tests.tables import new_table

pytestmark = pytest.mark.spark

OPTIONS = {"hoodie.metadata.enable": "true"}
SKIPPED = pa.schema(
    [("id", pa.int64()), ("p", pa.string()), ("x", pa.float64()), ("day", pa.date32())]
)
FILTERS: list[Any] = [
    [("id", "=", 21)],
    [("id", ">", 20), ("x", "<", 4.0)],
    [("x", ">", 2.5)],
    [("x", "<=", 1.0)],
    [("x", "!=", 2.0)],
    [("x", "=", 3.0)],
    [("x", "!=", math.nan)],
    [("x", ">=", math.nan)],
    [("x", "not in", [2.0])],
    [("x", "is null", None)],
    [("day", ">=", "2026-01-03")],
    [("id", ">", 1000)],
    (pc.field("x") > 2.5) | (pc.field("id") == 1),
]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> hudi.Table:
    path = str(tmp_path_factory.mktemp("skipping") / "t")
    made = new_table(path, SKIPPED, OPTIONS, partition_by="p")
    rows = [
        {
            "id": 10 * partition + n,
            "p": f"p{partition}",
            "x": (math.nan, float(partition), None)[n],
            "day": date(2026, 1, 1 + partition),
        }
        for partition in range(5)
        for n in range(3)
    ]
    made.insert(pa.Table.from_pylist(rows, schema=SKIPPED))
    return hudi.Table.open(path, OPTIONS)


@pytest.mark.parametrize("row_filter", FILTERS, ids=str)
def test_the_rows_are_those_that_arrow_reads(
    spark: SparkSession, table: hudi.Table, row_filter: Any
) -> None:
    plan = table._session.snapshot().plan(None, row_filter)
    expected = sorted(table.to_arrow(["id"], row_filter)["id"].to_pylist())
    frame = table.read(spark, filter=row_filter)

    assert sorted(row.id for row in frame.select("id").collect()) == expected
    if not isinstance(row_filter, pc.Expression):
        read = {unquote(urlparse(file).path) for file in frame.inputFiles()}
        # of a filter that no row can meet Spark itself reads nothing
        assert read == set(plan.uris) or (not read and not expected)


def test_every_row_is_in_a_planned_file(spark: SparkSession, table: hudi.Table) -> None:
    row_filter = [("id", ">=", 30)]
    planned = set(table._session.snapshot().plan(None, row_filter).uris)
    rows = table.read(spark).where("id >= 30").select(input_file_name().alias("file")).distinct()
    assert {unquote(urlparse(row.file).path) for row in rows.collect()} == planned


def test_spark_reads_the_files_of_a_record_key(spark: SparkSession, tmp_path: Path) -> None:
    options = {
        **OPTIONS,
        "hoodie.metadata.global.record.level.index.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "false",
    }
    made = new_table(tmp_path / "t", SKIPPED, options, partition_by="p")
    rows = [{"id": n, "p": f"p{n % 5}", "x": float(n)} for n in range(20)]
    made.insert(pa.Table.from_pylist(rows, schema=SKIPPED))
    read = made.read(spark, filter=[("id", "=", 7)])
    assert len(read.inputFiles()) == 1
    assert [row["x"] for row in read.collect()] == [7.0]


@pytest.mark.parametrize("stored", [-0.0, 0.0])
def test_the_zeros_are_one_number(spark: SparkSession, tmp_path: Path, stored: float) -> None:
    schema = pa.schema([("id", pa.int64()), ("x", pa.float64()), ("y", pa.float32())])
    made = hudi.Table.create(str(tmp_path / "t"), schema, record_key="id")
    made.insert(pa.Table.from_pylist([{"id": n, "x": stored, "y": stored} for n in range(3)]))
    frames = [
        made.read(spark, filter=[(name, op, [zero, 7.0] if op == "in" else zero)])
        for name in ("x", "y")
        for op in ("=", "<=", ">=", "in")
        for zero in (0.0, -0.0)
    ]
    assert [frame.count() for frame in frames] == [3] * len(frames)
