"""Columns that rows bring or lack, ids that are given out once, and writers that meet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.config.schema import SchemaConfig
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import CommitConflictError, InvalidOptionError, SchemaError
from hudi_core.schema.arrow_types import field_id
from hudi_core.storage.posix import PosixStorage
from hudi_core.storage.properties_file import read_properties
from tests.tables import new_table

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        ("n", pa.int32()),
        pa.field("must", pa.int32(), nullable=False),
        ("s", pa.struct([("x", pa.int32()), ("y", pa.string())])),
    ]
)
ROW = {"id": "1", "n": 1, "must": 1, "s": {"x": 1, "y": "y"}}
OCC = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}


def rows(*records: dict[str, Any], **columns: pa.DataType) -> pa.Table:
    """Return rows of the table's columns and further ones."""
    known = [field for field in SCHEMA if field.name in records[0]]
    return pa.Table.from_pylist(list(records), pa.schema([*known, *columns.items()]))


def contents(table: hudi.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (
        table.to_arrow(columns=table.schema.names).sort_by("id").to_pylist()
    )
    return found


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    return new_table(tmp_path / "t", rows(ROW), OCC)


def last_id(table: hudi.Table) -> int:
    """Return what the table itself keeps, whatever the handle has read before."""
    return int(read_properties(PosixStorage(table.path))["hoodie.table.schema.last-column-id"])


class Meddling(LocalEngine):
    """Lets somebody else write between the plan of a write and its commit."""

    def __init__(self, meddle: Callable[[], object]) -> None:
        super().__init__(1)
        self._meddle = meddle

    def map_input(self, *arguments: Any) -> Any:
        self._meddle()
        return super().map_input(*arguments)


# --- columns that rows lack ------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "upsert"])
@pytest.mark.parametrize("key", ["set.null", "reconcile"])
def test_missing_columns_become_null_when_asked_to(
    operation: str, key: str, table: hudi.Table
) -> None:
    lacking = rows({"id": "2", "must": 2})
    with pytest.raises(SchemaError, match=r"hoodie\.write\.set\.null\.for\.missing\.columns"):
        getattr(table, operation)(lacking)
    name = {
        "set.null": "hoodie.write.set.null.for.missing.columns",
        "reconcile": "hoodie.datasource.write.reconcile.schema",
    }[key]
    getattr(table, operation)(lacking, options={name: True})
    assert contents(table) == [ROW, {"id": "2", "n": None, "must": 2, "s": None}]


def test_a_required_column_must_be_there(table: hudi.Table) -> None:
    fill = {"hoodie.write.set.null.for.missing.columns": True}
    with pytest.raises(SchemaError, match="'must'"):
        table.insert(rows({"id": "2", "n": 1}), options=fill)


def test_missing_nested_columns(table: hudi.Table) -> None:
    half = pa.Table.from_pylist(
        [{**ROW, "s": {"x": 2}}], SCHEMA.set(3, pa.field("s", pa.struct([("x", pa.int32())])))
    )
    with pytest.raises(SchemaError, match=r"s\.y") as caught:
        table.upsert(half)
    assert "hoodie.write.set.null.for.missing.columns" in str(caught.value)
    assert contents(table) == [ROW]
    table.upsert(half, options={"hoodie.write.set.null.for.missing.columns": True})
    assert contents(table) == [{**ROW, "s": {"x": 2, "y": None}}]


def test_columns_are_never_dropped_by_what_rows_lack(table: hudi.Table) -> None:
    key = "hoodie.datasource.write.schema.allow.auto.evolution.column.drop"
    with pytest.raises(InvalidOptionError, match=r"column\.drop"):
        table.insert(rows(ROW), options={key: True})


def test_the_view_of_the_options() -> None:
    assert SchemaConfig.from_options({}) == SchemaConfig()
    given = {"hoodie.write.truncate.nanoseconds": "true", "hoodie.avro.schema.validate": "false"}
    assert SchemaConfig.from_options(given) == SchemaConfig(truncate_nanoseconds=True)


# --- columns that rows bring -----------------------------------------------------------------


def test_new_columns_may_be_null_whatever_the_rows_say(table: hudi.Table) -> None:
    more = rows({**ROW, "id": "2", "new": 5}, new=pa.int8())
    required = more.cast(more.schema.set(4, pa.field("new", pa.int8(), nullable=False)))
    table.insert(required)
    assert table.schema.field("new") == pa.field("new", pa.int32())
    assert contents(table)[0] == {**ROW, "new": None}


def test_a_dry_run_and_a_refused_write_add_no_column(table: hudi.Table) -> None:
    more = rows({**ROW, "new": 5}, new=pa.int8())
    ids = last_id(table)
    table.plan("upsert", more)
    with pytest.raises(SchemaError):
        table.upsert(rows({**ROW, "must": None, "new": 5}, new=pa.int8()))
    assert "new" not in hudi.Table.open(table.path).schema.names
    assert last_id(table) == ids


def test_types_of_keys_stay(tmp_path: Path) -> None:
    schema = pa.schema({name: pa.int32() for name in ("id", "p", "ts", "n")})
    table = new_table(tmp_path / "k", schema, partition_by="p", ordering_field="ts")
    longs = pa.table({name: pa.array([1], pa.int64()) for name in schema.names})
    table.insert(longs)
    assert table.schema.types == [pa.int32(), pa.int32(), pa.int32(), pa.int64()]
    with pytest.raises(SchemaError, match="ts"):
        table.insert(longs.set_column(2, "ts", pa.array([2**40])))


def test_texts_do_not_retype_numbers(table: hudi.Table) -> None:
    with pytest.raises(SchemaError, match=r"n has the type string.*int32"):
        table.insert(pa.table({**rows(ROW).to_pydict(), "n": ["one"]}, None))


def test_every_operation_takes_new_columns(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("p", pa.string())])
    operations = ("insert", "bulk_insert", "upsert", "insert_overwrite", "insert_overwrite_table")
    for operation in operations:
        table = new_table(tmp_path / operation, schema, partition_by="p")
        table.insert(pa.table({"id": ["old"], "p": ["a"]}))
        getattr(table, operation)(pa.table({"id": ["new"], "p": ["b"], "c": [1]}))
        kept = [] if operation == "insert_overwrite_table" else [{"id": "old", "p": "a", "c": None}]
        assert contents(table) == [{"id": "new", "p": "b", "c": 1}, *kept]
        table.delete(pa.table({"id": ["new"], "p": ["b"]}))
        assert table.schema.names == ["id", "p", "c"]


# --- ids -------------------------------------------------------------------------------------


def test_an_id_is_never_given_out_again(table: hudi.Table) -> None:
    def add(name: str) -> int:
        table.alter(add_columns={name: pa.int64()})
        return field_id(table.schema.field(name)) or 0

    first = add("a")
    assert first == last_id(table)
    table.alter(drop="a")
    second = add("a")
    table.rollback(table.timeline.completed_writes()[-1])
    third = add("a")
    assert 0 < first < second < third == last_id(table)
    assert table.config.field_ids["a"] == third


def test_another_handle_does_not_give_out_ids_again(table: hudi.Table) -> None:
    stale = hudi.Table.open(table.path, OCC)
    table.alter(add_columns={"a": pa.int64()})
    table.alter(drop="a")
    stale.insert(rows({**ROW, "id": "2", "b": 1}, b=pa.int64()))
    assert field_id(stale.schema.field("b")) == last_id(table)
    assert last_id(table) == (table.config.last_column_id or 0) + 1


# --- writers that meet -----------------------------------------------------------------------


def test_a_write_gives_up_when_columns_changed_meanwhile(table: hudi.Table) -> None:
    other = hudi.Table.open(table.path, OCC)
    for change in (
        {"add_columns": {"a": pa.int64()}},
        {"rename": {"a": "b"}},
        {"promote": {"n": pa.int64()}},
        {"drop": "b"},
    ):
        before = contents(table)
        with pytest.raises(CommitConflictError, match="columns"):
            table.bulk_insert(
                rows({**ROW, "id": "2"}, **_further(table)),
                options={"hoodie.write.set.null.for.missing.columns": True},
                engine=Meddling(lambda change=change: other.alter(**change)),  # type: ignore[misc]
            )
        assert len(contents(table)) == len(before)
        assert all(instant.is_completed for instant in table.timeline.instants)


def _further(table: hudi.Table) -> dict[str, pa.DataType]:
    return {name: table.schema.field(name).type for name in table.schema.names[4:]}


def test_two_writers_with_one_new_column(table: hudi.Table) -> None:
    other = hudi.Table.open(table.path, OCC)
    both = rows({**ROW, "id": "2", "a": 1}, a=pa.int64())
    third = rows({**ROW, "id": "3", "a": 1}, a=pa.int64())
    # the same column with the same id: nothing to give up for
    table.bulk_insert(both, engine=Meddling(lambda: other.bulk_insert(third)))
    assert [row["a"] for row in contents(table)] == [None, 1, 1]
    ids = [field_id(field) for field in table.schema]
    assert len(set(ids)) == len(ids)


def test_two_writers_with_two_new_columns(table: hudi.Table) -> None:
    other = hudi.Table.open(table.path, OCC)
    mine = rows({**ROW, "id": "2", "a": 1}, a=pa.int64())
    theirs = rows({**ROW, "id": "3", "b": 1}, b=pa.int64())
    with pytest.raises(CommitConflictError, match="columns"):
        table.bulk_insert(mine, engine=Meddling(lambda: other.bulk_insert(theirs)))
    assert [row["id"] for row in contents(table)] == ["1", "3"]


def test_a_write_goes_on_when_others_wrote_only_rows(table: hudi.Table) -> None:
    other = hudi.Table.open(table.path, OCC)
    theirs = rows({**ROW, "id": "3"})
    table.bulk_insert(
        rows({**ROW, "id": "2", "a": 1}, a=pa.int64()),
        engine=Meddling(lambda: other.bulk_insert(theirs)),
    )
    assert [row["a"] for row in contents(table)] == [None, 1, None]
