"""Columns that a format cannot hold are refused before a file is written; others change in it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import SchemaError, UnsupportedCapabilityError
from hudi_core.plugin.host import FormatHost
from hudi_core.plugin.registry import FormatRegistry
from hudi_core.schema.table_schema import TableSchema
from tests.formats.two_steps import READ, newest_iceberg
from tests.tables import new_table, rows

NARROW = pa.schema(
    [
        *(("id", pa.string()), ("ts", pa.int64()), ("count", pa.int32()), ("ratio", pa.float32())),
        ("price", pa.decimal128(7, 2)),
        ("inner", pa.struct([("n", pa.int32()), ("note", pa.string())])),
    ]
)
LACKS = {
    "time": (pa.field("noon", pa.time64("us")), "noon", "time64[us]"),
    "time in a struct": (
        pa.field("noon", pa.struct([pa.field("t", pa.time64("us"))])),
        "noon.t",
        "time64[us]",
    ),
    "time in a list": (pa.field("noon", pa.list_(pa.time64("us"))), "noon.element", "time64[us]"),
}
"""What Delta does not have, with the path and the type that errors name."""


def counted(ts: int, *keys: str, schema: pa.Schema = NARROW, count: int = 1) -> pa.Table:
    fixed = {"count": count, "ratio": 0.5, "price": Decimal("1.25")}
    inner = [{"n": count, "note": key} for key in keys]
    return rows(*keys, schema=schema, ts=ts, inner=inner, **fixed)


def by_polars(path: Path, count: int) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it tells which of its planners it prefers
        frame = pl.scan_iceberg(newest_iceberg(path).metadata_location)
        return list(frame.filter(pl.col("count") == count).collect()["id"])


def everything(path: Path) -> list[Path]:
    return sorted(path.rglob("*"))


@pytest.mark.parametrize("lack", LACKS)
@pytest.mark.parametrize("way", ["create", "alter", "write"])
def test_a_column_that_delta_lacks_is_not_made(path: Path, lack: str, way: str) -> None:
    field, where, kind = LACKS[lack]
    if way == "create":
        make: Callable[[], object] = partial(new_table, path, NARROW.append(field), format="delta")
    else:
        table = new_table(path, counted(1, "a"), format="delta")
        new = counted(2, "b").append_column(field, pa.nulls(1, field.type))
        alter: Callable[[], object] = partial(table.alter, add_columns=[field])
        make = alter if way == "alter" else partial(table.upsert, new)
    before = everything(path)
    with pytest.raises(SchemaError) as caught:
        make()
    assert where in caught.value.what
    assert kind in caught.value.what
    assert everything(path) == before
    if way == "create":
        new_table(path, NARROW.append(field), format="iceberg")
    else:
        table.upsert(counted(3, "b"))
        assert READ["delta"](path) == {"a": 1, "b": 3}


CHANGES: dict[str, tuple[str, dict[str, Any], str]] = {
    "drop": ("delta", {"drop": "ratio"}, r"drop column \(ratio\), because without column mapping"),
    "rename": ("delta", {"rename": {"inner.note": "x"}}, r"rename column \(inner.note\), because"),
    "promote": (
        "delta",
        {"promote": {"inner.n": pa.int64()}},
        r"promote type \(inner.n, int32 to int64\), because types that can be widened need",
    ),
    **{
        f"{column} to {kind}": (
            "iceberg",
            {"promote": {column: kind}},
            rf"promote type \({column}, .* to ",
        )
        for column, kind in (
            *(("count", pa.float64()), ("count", pa.string())),
            ("price", pa.decimal128(20, 4)),
        )
    },
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_a_format_cannot_change_is_refused_with_the_reason(path: Path, change: str) -> None:
    name, asked, message = CHANGES[change]
    table = new_table(path, counted(1, "a"), format=name)
    before = everything(path)
    with pytest.raises(UnsupportedCapabilityError, match=message):
        table.alter(**asked)
    assert everything(path) == before


def test_rows_of_a_wider_type_are_refused_where_the_format_cannot_follow(tmp_path: Path) -> None:
    wider = NARROW.set(2, pa.field("count", pa.int64()))
    table = new_table(tmp_path / "t", NARROW, format="delta")
    table.insert(counted(1, "a"))
    before = everything(tmp_path)
    with pytest.raises(UnsupportedCapabilityError, match=r"\(count, int32 to int64\)"):
        table.upsert(counted(2, "b", schema=wider))
    assert everything(tmp_path) == before


WIDER = {
    "count": pa.int64(),
    "ratio": pa.float64(),
    "price": pa.decimal128(20, 2),
    "inner.n": pa.int64(),
}


@pytest.mark.parametrize("way", ["alter", "write"])
def test_wider_types_reach_iceberg_with_its_old_files(path: Path, way: str) -> None:
    table = new_table(path, counted(1, "a", count=2**31 - 1), format="iceberg")
    big = 2**40
    inner = pa.struct([pa.field("n", pa.int64()), pa.field("note", pa.string())])
    schema = NARROW
    for name, kind in {**WIDER, "inner": inner}.items():
        if name in schema.names:
            schema = schema.set(schema.get_field_index(name), pa.field(name, kind))
    if way == "alter":
        table.alter(promote=WIDER)
    table.insert(counted(2, "b", schema=schema, count=big))
    found = newest_iceberg(path).scan().to_arrow().sort_by("id")
    assert found.column("count").to_pylist() == [2**31 - 1, big]
    assert [each["n"] for each in found.column("inner").to_pylist()] == [2**31 - 1, big]
    assert found.column("price").type == pa.decimal128(20, 2)
    assert found.column("ratio").to_pylist() == [0.5, 0.5]
    # bounds of before the change have the width of then
    for wanted, key in ((2**31 - 1, "a"), (big, "b")):
        scan = newest_iceberg(path).scan(row_filter=f"count == {wanted}")
        assert scan.to_arrow().column("id").to_pylist() == [key]
        assert by_polars(path, wanted) == [key]
        ours = hudi.Table.open(path).to_arrow(filter=[("count", "=", wanted)], columns=["id"])
        assert ours.column("id").to_pylist() == [key]
    table.upsert(counted(3, "a", schema=schema))
    assert READ["iceberg"](path) == {"a": 3, "b": 2}


def test_a_type_that_iceberg_lacks_is_named_with_its_path() -> None:
    host = FormatHost.load(FormatRegistry(), "iceberg")
    known = TableSchema.create(pa.schema([pa.field("inner", pa.struct([("n", pa.int32())]))]))
    inner = known.arrow.field(0)
    odd = inner.with_type(pa.struct([inner.type.field(0).with_type(pa.uint8())]))
    with pytest.raises(SchemaError, match=r"inner\.n has the type uint8"):
        host.check_schema(None, replace(known, arrow=pa.schema([odd])), None)  # type: ignore[arg-type]


@pytest.mark.parametrize("format_name", ["native", "iceberg"])
def test_a_clean_takes_the_ranges_of_former_names_along(path: Path, format_name: str) -> None:
    schema = pa.schema([("id", pa.string()), ("w", pa.string())])
    table = new_table(path, schema, format=format_name)
    for _ in range(3):
        table.upsert(pa.table({"id": ["a"], "w": ["x"]}, schema))
    for before, after in (("w", "r"), ("r", "q")):
        table.alter(rename={before: after})
        table.upsert(pa.table({"id": ["a"], after: ["x"]}))
        assert table.clean(options={"hoodie.clean.commits.retained": "1"}).files
        assert table.validate().differences == ()
