"""Conditional writes that are refused before anything is written."""

from __future__ import annotations

import importlib
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_core as hudi
from hudi_core.errors import InvalidOptionError, RecordKeyError, SchemaError
from tests.formats.conditional_writes.conditional_tables import held, new_table, some, untouched

# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "where", "error", "said"),
    [
        ({"id": 5}, None, SchemaError, "'id' is part of the record key"),
        ({"nope": 5}, None, SchemaError, "'nope' cannot be set: the table has none"),
        ({"_hoodie_commit_time": "'x'"}, None, SchemaError, "Hudi keeps it"),
        ({"v": "other"}, None, SchemaError, "'other' in 'other' is in no table"),
        ({"v": "'text'"}, None, SchemaError, "has the type string, and the column is double"),
        ({"v": True}, None, SchemaError, "has the type bool"),
        ({"ts": 1.5}, None, SchemaError, "does not fit its type int32"),
        ({"ts": 3_000_000_000}, None, SchemaError, "does not fit"),
        ({"ts": "ts + 3000000000"}, None, SchemaError, "does not fit"),
        ({"name": 5}, None, SchemaError, "has the type int64, and the column is string"),
        ({"v": pc.field("gone") + 1}, None, SchemaError, "gone"),
        ({"v": "max(v)"}, None, SchemaError, "an aggregate"),
        ({"v": "(SELECT 1)"}, None, SchemaError, "a subquery"),
        ({"v": "sum(v) OVER ()"}, None, SchemaError, "an aggregate|a window"),
        ({"v": "no_such_function(v)"}, None, SchemaError, "no_such_function"),
        ({"v": "v +"}, None, SchemaError, "no expression in Spark's SQL"),
        ({"v": 1}, "v", SchemaError, "neither true nor false"),
        ({"v": 1}, pc.field("v") + 1, SchemaError, "filter"),
        ({"v": 1}, [("v", "like", 1)], SchemaError, "not an operator"),
        ({"v": 1}, [], SchemaError, "condition is empty"),
        ({}, None, SchemaError, "sets no column"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_written(
    tmp_path: Path, values: Any, where: Any, error: type[Exception], said: str
) -> None:
    table = new_table(tmp_path / "t")
    table.upsert(some((1, "rome", 1, 1.0, "a")))
    rows = held(table)
    with pytest.raises(error, match=said):
        table.update(values, where)
    untouched(table, rows, 1)


def test_merges_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    table.upsert(some((1, "rome", 1, 1.0, "a")))
    rows, source = held(table), some((1, "oslo", 2, 2.0, "b"))
    insert = {"id": "source.id"}
    with pytest.raises(InvalidOptionError, match="no clause"):
        table.merge(source, "id").execute()
    for merger, error, said in (
        (table.merge(source, "nope").when_matched_delete(), SchemaError, "'nope'"),
        (table.merge(source, ["nope"]).when_matched_delete(), SchemaError, "no column 'nope'"),
        (table.merge(source, []).when_matched_delete(), SchemaError, "no condition that matches"),
        (table.merge(source, "v = 1").when_matched_delete(), SchemaError, "'v'.*both tables"),
        (
            table.merge(source, "id").when_matched_update({"id": "source.id + 1"}),
            SchemaError,
            "key",
        ),
        (
            table.merge(source, "name").when_matched_update_all(),
            SchemaError,
            "record key.*except_cols",
        ),
        (table.merge(source, "id").when_not_matched_insert({"v": "1"}), RecordKeyError, "'id'"),
        (
            table.merge(source, "id").when_not_matched_insert({**insert, "v": "target.v"}),
            SchemaError,
            "target.v",
        ),
        (
            table.merge(source, "id").when_not_matched_by_source_update({"v": "source.v"}),
            SchemaError,
            "source.v",
        ),
        (
            table.merge(source.append_column("w", pa.array([1])), "id").when_matched_update_all(),
            SchemaError,
            "no column 'w'",
        ),
        (
            table.merge(source, "id", source_alias="target").when_matched_delete(),
            SchemaError,
            "alias",
        ),
    ):
        with pytest.raises(error, match=said):
            merger.execute()
    untouched(table, rows, 1)
    table.merge(source.append_column("w", pa.array([1])), "id").when_matched_update_all(
        except_cols=["w", "city"]
    ).execute()
    assert held(table) == [(1, "rome", 2, 2.0, "b")]


def test_a_delete_takes_rows_or_a_condition(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    rows = some((1, "rome", 1, 1.0, "a"), (2, "rome", 1, 1.0, "a"))
    table.upsert(rows)
    for arguments in ({}, {"data": rows, "where": "true"}):
        with pytest.raises(InvalidOptionError, match="either rows or a condition"):
            table.delete(**arguments)
    assert table.delete(rows.slice(0, 1)).deleted == 1
    assert table.delete(where=pc.field("id") == 2).deleted == 1


@pytest.mark.parametrize("missing", ["sqlglot", "duckdb"])
def test_texts_name_the_extra_that_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    table = new_table(tmp_path / "t")
    table.upsert(some((1, "rome", 1, 1.0, "a")))
    real = importlib.import_module

    def without(name: str, *more: Any) -> Any:
        if name.partition(".")[0] == missing:
            raise ModuleNotFoundError(name)
        return real(name, *more)

    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(InvalidOptionError, match=rf"{missing}, which is not.*hudi-core\[sql\]"):
        table.delete(where="id = 1")
    assert table.delete(where=pc.field("id") == 1).deleted == 1


def test_texts_see_no_files(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    table.upsert(some((1, "rome", 1, 1.0, "a")))
    with pytest.raises(SchemaError):
        table.update({"name": "(SELECT content FROM read_text('/etc/hostname'))"})
    with pytest.raises(SchemaError):
        table.update({"name": "getenv('HOME')"})


def test_values_are_assigned_as_sql_does(tmp_path: Path) -> None:
    schema = pa.schema(
        [
            ("id", pa.int64()), ("small", pa.int16()), ("price", pa.decimal128(9, 2)),
            ("day", pa.date32()), ("at", pa.timestamp("us", "UTC")), ("f", pa.float32()),
            ("tags", pa.list_(pa.string())), ("s", pa.struct([("a", pa.int32())])),
        ]
    )  # fmt: skip
    table = hudi.Table.create(str(tmp_path / "t"), schema, name="t", record_key="id")
    table.upsert(pa.Table.from_pylist([{"id": 1}], schema))
    table.update(
        {
            "small": "1 + 1",
            "price": "12.5",
            "day": "DATE '2026-01-31'",
            "f": 0.1,
            "tags": ["x", None],
            "s": {"a": 3},
        }
    )
    table.update({"price": pc.field("small") * 2, "small": Decimal(7), "at": date(2026, 1, 1)})
    table.update({"day": "date_add(day, 1)"}, "s.a = 3 AND size(tags) = 2")
    [row] = table.to_arrow(schema.names).to_pylist()
    assert (row["small"], row["price"], row["day"]) == (7, Decimal("4.00"), date(2026, 2, 1))
    assert (row["tags"], row["s"]) == (["x", None], {"a": 3})
    assert str(row["at"]) == "2026-01-01 00:00:00+00:00"
    assert row["f"] == pytest.approx(0.1)
    with pytest.raises(SchemaError, match="price"):
        table.update({"price": "0.001"})
    with pytest.raises(SchemaError, match=r"'s\.a' cannot be set"):
        table.update({"s.a": 1})
