"""Upserts of rows that lack columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.base_file.encoded_columns import constant
from hudi_core.errors import SchemaError
from hudi_core.schema.table_schema import TableSchema
from hudi_core.write.partial_rows import completed
from tests.tables import new_table

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("ts", pa.int64()),
        ("value", pa.float64()),
        ("tags", pa.list_(pa.string())),
        ("size", pa.struct([("w", pa.int32())])),
    ]
)
KEEP = {"hoodie.table.partial.update.mode": "KEEP_VALUES"}


def full(key: str, ts: int) -> dict[str, Any]:
    size = {"w": ts}
    return {"id": key, "city": "rome", "ts": ts, "value": ts / 2, "tags": [key], "size": size}


def some(*made: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(
        list(made), pa.schema([field for field in SCHEMA if field.name in made[0]])
    )


def make(path: Path, ordering_field: str | None = "ts", schema: pa.Schema = SCHEMA) -> hudi.Table:
    table = new_table(path / "t", schema, partition_by="city", ordering_field=ordering_field)
    table.insert(pa.Table.from_pylist([full("a", 5), full("b", 5), full("c", 5)], schema))
    return table


def held(table: hudi.Table) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in table.to_arrow(SCHEMA.names).to_pylist()}


def test_what_is_stored_stays_and_new_rows_have_nulls(tmp_path: Path) -> None:
    table = make(tmp_path)
    batch = some(
        {"id": "new", "city": "rome", "ts": 1, "value": 9.0},
        {"id": "c", "city": "rome", "ts": 9, "value": None},
        {"id": "b", "city": "rome", "ts": 1, "value": 9.0},
        {"id": "a", "city": "rome", "ts": 8, "value": 8.0},
        {"id": "a", "city": "rome", "ts": 7, "value": 7.0},
        {"id": "z", "city": "oslo", "ts": 1, "value": 9.0},
    )

    dry = table.plan("upsert", batch, options=KEEP)
    result = table.upsert(batch, options=KEEP)

    assert (result.inserted, result.updated, result.deleted) == (2, 2, 0)
    assert (dry.inserted, dry.updated) == (2, 3)  # one of them is late
    nothing = {"tags": None, "size": None}
    assert held(table) == {
        "a": {**full("a", 5), "ts": 8, "value": 8.0},
        "b": full("b", 5),
        "c": {**full("c", 5), "ts": 9, "value": None},  # a null that is given is a value
        "new": {"id": "new", "city": "rome", "ts": 1, "value": 9.0, **nothing},
        "z": {"id": "z", "city": "oslo", "ts": 1, "value": 9.0, **nothing},
    }


def test_rows_flagged_as_deleted_go_although_they_lack_columns(tmp_path: Path) -> None:
    table = make(tmp_path)
    flags = pa.array([True, False])
    batch = some({"id": "a", "city": "rome", "ts": 6}, {"id": "b", "city": "rome", "ts": 6})

    result = table.upsert(batch.append_column("_hoodie_is_deleted", flags), options=KEEP)

    assert (result.updated, result.deleted) == (1, 1)
    assert held(table) == {"b": {**full("b", 5), "ts": 6}, "c": full("c", 5)}


def test_without_an_ordering_field_the_later_row_wins(tmp_path: Path) -> None:
    table = make(tmp_path, None)

    table.upsert(some({"id": "a", "city": "rome", "value": 1.0}), options=KEEP)

    assert held(table)["a"] == {**full("a", 5), "value": 1.0}


def test_rows_that_lack_columns_are_refused_without_the_option(tmp_path: Path) -> None:
    table = make(tmp_path)
    batch = some({"id": "a", "city": "rome", "ts": 6})

    for options in ({}, {"hoodie.table.partial.update.mode": "NONE"}):
        with pytest.raises(SchemaError, match="lack the column 'value', 'tags', 'size'"):
            table.upsert(batch, options=options)
    for operation in ("insert", "bulk_insert", "insert_overwrite"):
        with pytest.raises(SchemaError, match="lack the column"):
            getattr(table, operation)(batch, options=KEEP)


@pytest.mark.parametrize(
    ("column", "reason"),
    [("id", "record key"), ("city", "part of the partition"), ("ts", "orders the versions")],
)
def test_columns_that_every_row_needs_are_never_left_out(
    tmp_path: Path, column: str, reason: str
) -> None:
    row = {name: value for name, value in full("a", 6).items() if name != column}

    with pytest.raises(SchemaError, match=reason):
        make(tmp_path).upsert(some(row), options=KEEP)


def test_columns_without_nulls_are_never_left_out(tmp_path: Path) -> None:
    strict = SCHEMA.set(3, pa.field("value", pa.float64(), nullable=False))
    table = make(tmp_path, schema=strict)

    with pytest.raises(SchemaError, match="lack the column 'value', and it has no nulls"):
        table.upsert(some({"id": "a", "city": "rome", "ts": 6}), options=KEEP)


def test_each_of_several_stored_rows_of_one_key_keeps_its_own_values(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.insert(some(full("x", 3), full("x", 4)))

    table.upsert(some({"id": "x", "city": "rome", "ts": 6}), options=KEEP)

    rows = [row for row in table.to_arrow().to_pylist() if row["id"] == "x"]
    assert sorted((row["ts"], row["value"]) for row in rows) == [(6, 1.5), (6, 2.0)]


def test_of_encoded_texts_only_those_that_stay_are_decoded() -> None:
    schema = TableSchema.create(pa.schema([("k", pa.string()), ("v", pa.string())]))
    count = (2 << 30) // 5000 + 1  # as texts they would be more than Arrow holds in one array
    stored = pa.table({"v": constant("x" * 5000, count)})

    rows = completed(pa.table({"k": ["a", "new"]}), np.array([count - 1]), stored, schema)

    assert rows.to_pydict() == {"k": ["a", "new"], "v": ["x" * 5000, None]}
