"""Texts in SQL over Arrow rows: one locked database for a write, closed at its end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import SchemaError
from hudi_core.write.duckdb_text import DuckDb

ROWS = pa.table({"id": [1, 2, 3, 4], "city": ["a", "b", "c", "d"], "v": [1.0, 2.0, 3.0, 4.0]})


class Opened(list[Any]):
    """The connections that were opened, and which of them are closed."""

    def none_is_open(self) -> bool:
        for one in self:
            try:
                one.execute("SELECT 1")
            except duckdb.Error:
                continue
            return False
        return True


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    connect, found = duckdb.connect, Opened()

    def counted() -> Any:
        found.append(connect())
        return found[-1]

    monkeypatch.setattr(duckdb, "connect", counted)
    return found


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    made = hudi.Table.create(
        tmp_path / "t",
        ROWS.schema,
        record_key="id",
        partition_by="city",
        options={"hoodie.fs.fsync": "false"},
    )
    made.insert(ROWS)
    return made


def merged(table: hudi.Table) -> None:
    source = pa.table({"id": [1, 9], "city": ["a", "z"], "v": [10.0, 90.0]})
    (
        table.merge(source, on="source.id = target.id")
        .when_matched_update({"v": "source.v + target.v"})
        .when_not_matched_by_source_update({"v": "-1"}, "target.v > 2")
        .execute()
    )


def updated(table: hudi.Table) -> None:
    table.update({"v": "v + 1"}, where="id % 2 = 0")


def deleted(table: hudi.Table) -> None:
    table.delete(where="v * 2 > 5")


@pytest.mark.parametrize(
    ("change", "left"),
    [(merged, [-1.0, -1.0, 2.0, 11.0]), (updated, [1.0, 3.0, 3.0, 5.0]), (deleted, [1.0, 2.0])],
)
def test_a_write_opens_one_database_for_all_files(
    change: Callable[[hudi.Table], None], left: list[float], table: hudi.Table, opened: Opened
) -> None:
    change(table)
    assert sorted(table.to_arrow("v")["v"].to_pylist()) == left
    assert len(opened) == 1
    assert opened.none_is_open()


def test_it_is_closed_where_a_text_fails(table: hudi.Table, opened: Opened) -> None:
    with pytest.raises(SchemaError, match="cannot be computed"):
        table.update({"v": "9223372036854775807 + id"}, where="id = 3")
    assert len(opened) == 1
    assert opened.none_is_open()


def test_what_no_text_computes_opens_none(table: hudi.Table, opened: Opened) -> None:
    table.update({"v": 5.0}, where=[("id", "=", 1)])
    with DuckDb() as database:
        assert database.computed(ROWS, {}) is ROWS
    assert not opened


def test_it_sees_the_rows_of_the_text_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a\n1\n")
    outside = ROWS  # what a text of another connection would find by its name
    with DuckDb() as database:
        found = database.query("SELECT sum(v) AS s FROM rows", {"rows": outside})
        assert found.to_pylist() == [{"s": 10.0}]
        for text in (
            "SELECT * FROM outside",
            "SELECT * FROM rows",  # those of the text before
            f"SELECT * FROM '{tmp_path}/rows.csv'",
            "SET enable_external_access = true",
            "INSTALL httpfs",
        ):
            with pytest.raises(SchemaError, match="cannot be computed"):
                database.query(text, {})
        # one that failed leaves it as it was
        found = database.computed(ROWS, {"w": "v + 1", "zone": "current_setting('TimeZone')"})
        assert found["w"].to_pylist() == [2.0, 3.0, 4.0, 5.0]
        assert set(found["zone"].to_pylist()) == {"UTC"}
