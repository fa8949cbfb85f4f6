"""Partitions that are periods of a moment leave a Delta table unpartitioned, where statistics tell
what to leave out: Delta's partition columns are columns with their own values."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable

import hudi_core as hudi
from tests.formats.two_steps import FAST

PREFIX = "hoodie.keygen.timebased."
UTC = dt.UTC
MICROS = pa.timestamp("us", "UTC")
START = dt.datetime(2024, 1, 15, 9, 30, tzinfo=UTC)


def create(path: Path, kind: pa.DataType = MICROS, by: Any = "ts", **options: str) -> hudi.Table:
    given = {"timestamp_type": "EPOCHMICROSECONDS", "output_dateformat": "yyyy/MM/dd", **options}
    named = {f"{PREFIX}{name.replace('_', '.')}": given[name] for name in given}
    named["hoodie.datasource.write.keygenerator.type"] = "TIMESTAMP" if by == "ts" else "CUSTOM"
    schema = pa.schema(
        [("id", pa.string()), ("ts", kind), ("city", pa.string()), ("n", pa.int64())]
    )
    return hudi.Table.create(
        str(path), schema, record_key="id", partition_by=by, format="delta",
        options={**FAST, **named},
    )  # fmt: skip


def rows(table: hudi.Table, n: int, timestamps: dict[str, Any]) -> pa.Table:
    schema = pa.schema([field.remove_metadata() for field in table.schema])
    given = [{"id": key, "ts": timestamps[key], "city": key[0], "n": n} for key in timestamps]
    return pa.Table.from_pylist(given, schema)


def agree(path: Path) -> list[dict[str, Any]]:
    """Return the rows that all readers find."""
    names = ["id", "ts", "n"]
    found = hudi.Table.open(str(path)).to_arrow(columns=names)
    ours: list[dict[str, Any]] = found.sort_by("id").to_pylist()
    delta = pa.table(DeltaTable(str(path)).to_pyarrow_table()).select(names)
    assert delta.sort_by("id").to_pylist() == ours
    frame = pl.scan_delta(str(path)).select(names).collect()
    assert frame.sort("id").to_dicts() == ours
    return ours


def ids(path: Path, condition: pl.Expr) -> list[str]:
    return sorted(pl.scan_delta(str(path)).filter(condition).collect()["id"].to_list())


@pytest.mark.parametrize(
    ("kind", "options", "values"),
    [
        (MICROS, {}, [START, START + dt.timedelta(days=1), None]),
        (
            pa.date32(),
            {"timestamp_type": "SCALAR", "timestamp_scalar_time_unit": "DAYS"},
            [START.date(), dt.date(1960, 2, 29), None],
        ),
        (pa.int64(), {"timestamp_type": "UNIX_TIMESTAMP"}, [1_705_311_000, -1, None]),
        (
            pa.string(),
            {"timestamp_type": "MIXED", "input_dateformat": "yyyy-MM-dd,yyyyMMdd"},
            ["2024-01-15", "20240116", None],
        ),
    ],
    ids=str,
)
def test_the_column_is_an_ordinary_one_with_its_own_values(
    tmp_path: Path, kind: pa.DataType, options: dict[str, str], values: list[Any]
) -> None:
    table = create(tmp_path, kind, **options)
    table.insert(rows(table, 1, dict(zip("abc", values, strict=True))))

    delta = DeltaTable(str(tmp_path))
    assert delta.metadata().partition_columns == []
    assert len(delta.file_uris()) == 3
    assert [row["ts"] for row in agree(tmp_path)] == values


def test_statistics_tell_what_to_leave_out(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.insert(rows(table, 1, {f"k{n}": START + dt.timedelta(days=n) for n in range(5)}))

    late = START + dt.timedelta(days=3)
    stated = pa.table(DeltaTable(str(tmp_path)).get_add_actions(flatten=True))
    newest = [value for value in stated["max.ts"].to_pylist() if value >= late]
    assert len(newest) == 2
    assert ids(tmp_path, pl.col("ts") >= late) == ["k3", "k4"]
    for old in ("15", "16", "17"):
        for file in (tmp_path / "2024" / "01" / old).glob("*.parquet"):
            file.unlink()  # a reader that looked there would fail
    assert ids(tmp_path, pl.col("ts") >= late) == ["k3", "k4"]
    ours = table.to_arrow(filter=[("ts", ">=", late)])
    assert sorted(ours["id"].to_pylist()) == ["k3", "k4"]


def test_all_writes_keep_the_rows_right(tmp_path: Path) -> None:
    table = create(tmp_path)
    days = {f"k{n}": START + dt.timedelta(days=n) for n in range(5)}
    table.insert(rows(table, 1, {**days, "none": None}))
    table.upsert(rows(table, 2, {"k1": days["k1"].replace(hour=20), "x": days["k4"]}))
    agree(tmp_path)
    table.delete(rows(table, 3, {"k2": days["k2"]}))
    table.insert_overwrite(rows(table, 4, {"y": days["k3"]}))
    table.delete_partitions(["2024/01/15"])
    assert [row["id"] for row in agree(tmp_path)] == ["k1", "k4", "none", "x", "y"]
    table.insert_overwrite_table(rows(table, 5, {"z": START}))
    assert [row["id"] for row in agree(tmp_path)] == ["z"]


@pytest.mark.parametrize(
    ("fields", "columns"),
    [(["city:SIMPLE", "ts:TIMESTAMP"], []), (["city:SIMPLE", "n:SIMPLE"], ["city", "n"])],
)
def test_columns_are_partitions_where_all_fields_are_columns(
    tmp_path: Path, fields: list[str], columns: list[str]
) -> None:
    table = create(tmp_path, by=fields)
    table.insert(rows(table, 1, {"a1": START, "a2": START + dt.timedelta(days=1), "b": START}))
    assert DeltaTable(str(tmp_path)).metadata().partition_columns == columns
    assert len(agree(tmp_path)) == 3


def test_a_table_becomes_one_of_delta_and_goes_back(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.insert(rows(table, 1, {"a": START, "none": None}))
    table.convert("native")
    table = hudi.Table.open(str(tmp_path))
    table.upsert(rows(table, 2, {"a": START}))
    table.convert("delta", options=FAST)
    assert [row["n"] for row in agree(tmp_path)] == [2, 1]
    adds = pa.table(DeltaTable(str(tmp_path)).get_add_actions(flatten=True))
    assert len(adds) == 2
    assert not [name for name in adds.column_names if name.startswith("partition")]
