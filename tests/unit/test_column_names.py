"""Columns that a table does not take, or that change while a write is planned."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import SchemaError
from hudi_core.schema.evolution import SchemaChange, altered_schema, merged_schema
from hudi_core.schema.table_schema import TableSchema
from hudi_core.txn.begin import begin
from hudi_core.txn.transaction import Transaction
from hudi_core.write.client import WriteClient
from tests.tables import new_table, rows

INT = pa.int64()


def struct(*names: str) -> pa.DataType:
    return pa.struct([(name, INT) for name in names])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"ID": INT}, "columns id and ID, which differ in case only"),
        ({"Fare": INT, "fAre": INT, "fare": INT}, "Fare and fAre and fare"),
        ({"s": struct("x", "X")}, "struct s would have the columns x and X"),
        ({"l": pa.list_(struct("x", "X"))}, "x and X"),
        ({"m": pa.map_(pa.string(), struct("x", "X"))}, "x and X"),
        ({"_hoodie_foo": INT}, "_hoodie_foo has a name that Hudi keeps"),
        ({"_hoodie_operation": pa.string()}, "_hoodie_operation has a name"),
        ({"_HOODIE_record_key": pa.string()}, "_HOODIE_record_key has a name"),
    ],
)
def test_new_tables(tmp_path: Path, fields: dict[str, pa.DataType], message: str) -> None:
    schema = pa.schema({"id": INT, **fields})
    with pytest.raises(SchemaError, match=message):
        new_table(tmp_path / "t", schema)
    with pytest.raises(SchemaError):
        hudi.write(schema.empty_table(), tmp_path / "t")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> hudi.Table:
    return new_table(tmp_path_factory.mktemp("names") / "t", brought())


def brought(**more: Any) -> pa.Table:
    return rows(1, fare=2, **{"s": [{"x": 1, "y": 1}], **more})


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (brought(FARE=[1]), "fare and FARE, which differ in case only"),
        (brought(new=[1], NEW=[2]), "new and NEW"),
        (brought(s=[{"x": 1, "y": 1, "Y": 2}]), "struct s would have the columns y and Y"),
        (brought(new=[{"a": 1, "A": 1}]), "struct new would have the columns a and A"),
        (brought(_hoodie_foo=[1]), "_hoodie_foo has a name that Hudi keeps"),
    ],
)
def test_rows_that_bring_them(table: hudi.Table, batch: pa.Table, message: str) -> None:
    before = table.timeline.instants
    for operation in (table.insert, table.upsert, table.bulk_insert):
        with pytest.raises(SchemaError, match=message):
            operation(batch)
    assert table.timeline.instants == before


def test_a_column_in_another_case_is_no_substitute(table: hudi.Table) -> None:
    with pytest.raises(SchemaError, match="fare and Fare"):
        table.upsert(brought().rename_columns(["id", "Fare", "s"]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"add_columns": {"FARE": INT}}, "fare and FARE"),
        ({"add_columns": {"s.X": INT}}, "struct s would have the columns x and X"),
        ({"add_columns": {"a": INT, "A": INT}}, "a and A"),
        ({"rename": {"fare": "ID"}}, "id and ID"),
        ({"add_columns": {"_hoodie_foo": INT}}, "_hoodie_foo has a name"),
        ({"rename": {"fare": "_hoodie_fare"}}, "_hoodie_fare has a name"),
    ],
)
def test_changes_that_one_asks_for(table: hudi.Table, change: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        table.alter(**change)


def test_the_case_of_a_name_can_be_changed(tmp_path: Path) -> None:
    made = new_table(tmp_path / "t", rows(1, fare=2))
    made.alter(rename={"fare": "Fare"})
    assert made.to_arrow("Fare").column(0).to_pylist() == [2]


def test_meta_columns_of_rows_that_were_read_are_dropped(table: hudi.Table) -> None:
    before = table.count()
    assert table.upsert(table.to_arrow()).updated == before
    assert table.schema.names == ["id", "fare", "s"]


def test_the_delete_flag_is_a_column_of_users(tmp_path: Path) -> None:
    made = new_table(tmp_path / "t", rows(1, 2, _hoodie_is_deleted=False))
    made.upsert(rows(1, _hoodie_is_deleted=True))
    assert made.to_arrow("id").column(0).to_pylist() == [2]


def test_tables_that_have_such_names_already_go_on() -> None:
    """Made by other writers: what is there is not judged, only what is new."""
    fields = [{"name": name, "type": "long"} for name in ("id", "ID", "_hoodie_foo")]
    text = f'{{"type": "record", "name": "r", "fields": {fields}}}'.replace("'", '"')
    schema = TableSchema.from_avro(text)
    incoming = pa.schema([(name, INT) for name in ("id", "ID", "_hoodie_foo", "new")])
    merged = merged_schema(schema, incoming, (), fill_missing=False)
    assert merged.names == ["id", "ID", "_hoodie_foo", "new"]
    with pytest.raises(SchemaError, match="new and New"):
        merged_schema(merged, pa.schema([*incoming, ("New", INT)]), (), fill_missing=False)
    changed = altered_schema(merged, SchemaChange(rename={"new": "newer"}), {})
    assert changed.names == ["id", "ID", "_hoodie_foo", "newer"]


MORE = rows("b", part="x", n=pa.array([2], pa.int32()))


@pytest.fixture
def numbered(tmp_path: Path) -> hudi.Table:
    return new_table(tmp_path / "table", rows("a", part="x", n=pa.array([1], pa.int32())))


def alter_first(monkeypatch: pytest.MonkeyPatch, path: str, **change: object) -> None:
    """Let somebody change the columns before the next write has the lock."""

    def begun(*arguments: Any, **named: Any) -> Transaction:
        monkeypatch.undo()
        hudi.Table.open(path).alter(**change)  # type: ignore[arg-type]
        return begin(*arguments, **named)

    monkeypatch.setattr(sys.modules[WriteClient.__module__], "begin", begun)


def test_rows_get_the_new_types(numbered: hudi.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    alter_first(monkeypatch, numbered.path, promote={"n": pa.int64()})
    numbered.insert(MORE)
    found = hudi.Table.open(numbered.path).to_arrow(columns=["id", "n"]).sort_by("id")
    assert found.schema.field("n").type == pa.int64()
    assert found.to_pydict() == {"id": ["a", "b"], "n": [1, 2]}


def test_rows_that_lack_a_new_column_are_refused_before_a_file_is_written(
    numbered: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = sorted(Path(numbered.path).rglob("*.parquet"))
    alter_first(monkeypatch, numbered.path, add_columns={"word": pa.string()})
    with pytest.raises(SchemaError, match="word"):
        numbered.insert(MORE)
    assert sorted(Path(numbered.path).rglob("*.parquet")) == files
    again = hudi.Table.open(numbered.path)
    assert not [one for one in again.timeline.instants if not one.is_completed]
    assert again.to_arrow().num_rows == 1
