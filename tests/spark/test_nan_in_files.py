"""Spark reads our Parquet files by itself, and finds the rows with NaN that it finds in its own."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import hudi_core as hudi
from hudi_core.base_file import statistics, writer
from hudi_core.services.mending.differences import Source
from tests.tables import TABLES, new_table

pytestmark = pytest.mark.spark

ROWS = pa.table(
    {
        "id": [1, 2, 3, 4],
        "city": ["A", "A", "B", "B"],
        "x": [math.nan, 5.0, 1.0, math.nan],
        "inner": [{"f": 1.5}, {"f": math.nan}, None, {"f": 2.0}],
    }
)
FOUND = {
    "x > 4": [1, 2, 4],
    "x = double('NaN')": [1, 4],
    "x >= double('NaN')": [1, 4],
    "isnan(x)": [1, 4],
    "not x < 4": [1, 2, 4],
    "x in (1.0, double('NaN'))": [1, 3, 4],
    "inner.f > 2.5": [2],
}
FAST = {"hoodie.fs.fsync": "false", "hoodie.parquet.small.file.limit": "0"}


def create(path: Path, table_format: str) -> hudi.Table:
    return new_table(path, ROWS.schema, FAST, format=table_format)


def found(spark: SparkSession, table: hudi.Table) -> dict[str, list[int]]:
    """What Spark finds in the table's present files by itself."""
    files = [file.base_file.path for file in table.file_slices() if file.base_file is not None]
    frame = spark.read.parquet(*(f"{table.path}/{file}" for file in files))
    return {
        condition: sorted(row.id for row in frame.where(condition).select("id").collect())
        for condition in FOUND
    }


@pytest.fixture
def older(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Let files be written as by a release that left NaN out of bounds."""
    monkeypatch.setattr(statistics, "_count_nan", lambda values: 0)
    monkeypatch.setattr(writer, "BOUNDS_OF_ALL", "")
    return monkeypatch


@pytest.mark.parametrize("rows_a_group", [1, 4], ids=["later row groups", "one row group"])
def test_spark_finds_nan_in_our_files(
    spark: SparkSession, tmp_path: Path, rows_a_group: int
) -> None:
    table = create(tmp_path / "t", "native")
    limit = ROWS.nbytes // ROWS.num_rows * rows_a_group
    table.insert(ROWS, options={"hoodie.parquet.block.size": str(limit)})
    assert found(spark, table) == FOUND
    assert table.validate().differences == ()


@pytest.mark.parametrize("table_format", TABLES)
def test_files_of_earlier_releases_are_named_and_clustering_heals_them(
    spark: SparkSession, tmp_path: Path, older: pytest.MonkeyPatch, table_format: str
) -> None:
    table = create(tmp_path / "t", table_format)
    table.insert(ROWS)
    lost = found(spark, table)
    assert (lost["x > 4"], lost["x = double('NaN')"]) == ([1, 2], [])
    older.undo()
    names = [str(one) for one in table.validate().of(Source.FOOTER)]
    assert len(names) == 3
    assert sum("column x of" in one for one in names) == 2
    assert sum("column inner.f of A/" in one for one in names) == 1
    assert "hudi cluster" in names[0]
    # nothing else is wrong, and a repair has nothing to do about it
    assert len(table.validate().differences) == 3
    repaired = hudi.Table.open(table.path).repair()
    assert (len(repaired.found), len(repaired.left)) == (3, 3)
    clustered = hudi.Table.open(table.path).cluster(sort_by="id")
    assert clustered.files == 2
    after = hudi.Table.open(table.path)
    assert after.validate().differences == ()
    assert found(spark, after) == FOUND


def test_any_write_of_a_file_heals_it(
    spark: SparkSession, tmp_path: Path, older: pytest.MonkeyPatch
) -> None:
    table = create(tmp_path / "t", "native")
    table.insert(ROWS)
    older.undo()
    table.upsert(ROWS.slice(2, 1))
    assert [one.subject.split("/")[0] for one in table.validate().of(Source.FOOTER)] == [
        "column inner.f of A",
        "column x of A",
    ]
    table.upsert(ROWS.slice(1, 1))
    assert table.validate().differences == ()
    assert found(spark, table) == FOUND
