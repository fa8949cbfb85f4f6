"""Tables in DuckDB and polars by one call."""

from __future__ import annotations

import math
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import DataFileError, NotATableError
from tests.tables import new_table

ROWS = pa.table({"id": [1, 2, 3], "fare": [0.5, 1.5, 2.5]})


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    return new_table(tmp_path / "trips", ROWS)


def test_duckdb_knows_the_table_by_name(table: hudi.Table) -> None:
    first = table.timeline.completed_writes()[0]
    with duckdb.connect() as connection:
        view = hudi.duckdb(connection, table.path)
        assert view.filter("fare > 1").aggregate("sum(id)").fetchall() == [(5,)]
        assert connection.sql("SELECT max(fare) FROM trips").fetchall() == [(2.5,)]
        table.delete(ROWS.slice(2))
        assert connection.sql("SELECT count(*) FROM trips").fetchall() == [(3,)]
        hudi.duckdb(connection, table.path)
        assert connection.sql("SELECT count(*) FROM trips").fetchall() == [(2,)]
        past = hudi.duckdb(connection, table.path, 'an "old" one', as_of=first)
        assert past.aggregate("count(*)").fetchall() == [(3,)]


def test_polars_scans_it(table: hudi.Table) -> None:
    found = hudi.polars(table.path).filter(pl.col("fare") < 2).select("id").collect()
    assert sorted(found["id"].to_list()) == [1, 2]
    assert table.timeline.completed_writes()


SEVERAL = pa.table(
    {
        "id": pa.array(range(40)),
        "part": pa.array([f"p{n // 10}" for n in range(40)]),
        "f": pa.array([[0.0, -0.0, math.nan, None, 5.0][n % 5] for n in range(40)]),
        "s": pa.array([["Oslo", None, "Rome"][n % 3] for n in range(40)]),
    }
)


@pytest.fixture
def several(tmp_path: Path) -> hudi.Table:
    """Four files, one for each partition."""
    return new_table(tmp_path / "several", SEVERAL)


@pytest.mark.parametrize(
    "predicate",
    [
        ~pl.col("s").is_in(["Oslo"]),
        pl.col("s") != "Oslo",
        pl.col("f") > 1,
        ~(pl.col("f") > 1),
        pl.col("f").eq(math.nan),
        pl.col("f").is_in([0.0]),
        pl.col("f").is_in([math.nan, 5.0]),
        pl.col("f").is_between(-0.0, 1.0),
        pl.col("f").is_null() | (pl.col("id") % 7 == 0),
        pl.sql_expr("s NOT IN ('Oslo', 'Paris') AND id BETWEEN 3 AND 30"),
        pl.col("id") == pl.col("id").max(),
    ],
    ids=str,
)
def test_a_filter_of_polars_means_what_it_means_in_its_own_frames(
    several: hudi.Table, predicate: pl.Expr
) -> None:
    expected = pl.DataFrame(SEVERAL).filter(predicate)["id"].to_list()
    for engine in ("in-memory", "streaming"):
        lazy = hudi.polars(several.path).filter(predicate).select("id")
        found = lazy.collect(engine=engine)
        assert sorted(found["id"].to_list()) == expected


def test_polars_reads_the_files_that_it_needs(several: hudi.Table) -> None:
    lazy = hudi.polars(several.path)
    names = [file.name for file in Path(several.path).glob("p[123]/*.parquet")]
    for partition in ("p1", "p2", "p3"):
        for file in (Path(several.path) / partition).glob("*.parquet"):
            file.unlink()
    assert len(names) == 3
    wanted = lazy.filter((pl.col("id") < 5) & (pl.col("f") >= 0)).select("s", "id")
    assert wanted.collect()["id"].to_list() == [0, 1, 2, 4]
    assert lazy.filter(pl.col("part").is_in(["p0", "p9"])).select(pl.len()).collect().item() == 10
    assert lazy.head(7).filter(pl.col("id") > 4).collect()["id"].to_list() == [5, 6]
    assert lazy.collect_schema().names() == several.to_arrow(filter=[("id", "<", 1)]).column_names
    with pytest.raises(DataFileError):
        lazy.filter(pl.col("f") > 4).collect()


def test_a_dataset_is_a_frame_of_polars_as_well(several: hudi.Table) -> None:
    first = several.timeline.completed_writes()[0]
    several.delete(SEVERAL.slice(0, 10))
    then = several.scan([("part", "<", "p2")], as_of=first).polars()
    assert then.select(pl.len()).collect().item() == 20
    assert then.filter(pl.col("f").is_nan()).collect()["id"].to_list() == [2, 7, 12, 17]
    assert several.scan().polars().select(pl.len()).collect().item() == 30


def test_no_table(tmp_path: Path) -> None:
    with pytest.raises(NotATableError):
        hudi.polars(tmp_path / "nothing")
