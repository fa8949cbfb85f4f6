"""Tables in DuckDB and polars by one call."""

from __future__ import annotations

from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import NotATableError

ROWS = pa.table({"id": [1, 2, 3], "fare": [0.5, 1.5, 2.5]})


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    made = hudi.Table.create(tmp_path / "trips", ROWS, record_key="id")
    made.insert(ROWS)
    return made


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


def test_no_table(tmp_path: Path) -> None:
    with pytest.raises(NotATableError):
        hudi.polars(tmp_path / "nothing")
