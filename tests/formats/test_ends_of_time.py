"""The first and the last day that dates have: the values that history tables keep for "ever"."""

from __future__ import annotations

import datetime as dt
import warnings
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

import hudi_core as hudi
from tests.foreign import by_hudi_rs
from tests.formats.two_steps import FAST, newest_iceberg

_TIME = "hoodie.keygen.timebased."
MICROS = pa.timestamp("us", "UTC")
UTC = dt.UTC
ENDS = [
    dt.datetime(1, 1, 1, tzinfo=UTC),
    dt.datetime(1, 1, 2, tzinfo=UTC),
    dt.datetime(2026, 11, 20, 5, tzinfo=UTC),
    dt.datetime(9999, 12, 30, tzinfo=UTC),
    dt.datetime(9999, 12, 31, tzinfo=UTC),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
]
KINDS: dict[str, tuple[pa.DataType, list[Any], dict[str, str]]] = {
    "timestamp": (MICROS, ENDS, {"timestamp.type": "EPOCHMICROSECONDS"}),
    "date": (
        pa.date32(),
        sorted({one.date() for one in ENDS}),
        {"timestamp.type": "SCALAR", "timestamp.scalar.time.unit": "DAYS"},
    ),
    "seconds": (
        pa.int64(),
        [-62_135_596_800, 0, 253_402_300_799],
        {"timestamp.type": "UNIX_TIMESTAMP"},
    ),
    "text": (
        pa.string(),
        ["0001-01-01", "9999-12-31T23:59:59-05:00", "9999-12-31"],
        {"timestamp.type": "MIXED", "input.dateformat": "yyyy-MM-dd,yyyy-MM-dd'T'HH:mm:ssZ"},
    ),
}


def create(path: Path, kind: str, output: str, table_format: str, **more: str) -> hudi.Table:
    schema = pa.schema([("id", pa.int64()), ("till", KINDS[kind][0])])
    given = {**KINDS[kind][2], "output.dateformat": output, **more}
    return hudi.Table.create(
        str(path),
        schema,
        record_key="id",
        partition_by="till",
        format=table_format,
        options={
            **FAST,
            "hoodie.datasource.write.keygenerator.type": "TIMESTAMP",
            **{f"{_TIME}{name}": value for name, value in given.items()},
        },
    )


def data(kind: str) -> pa.Table:
    arrow, values, _ = KINDS[kind]
    numbers = list(range(len(values) + 1))
    return pa.table({"id": pa.array(numbers), "till": pa.array([*values, None], arrow)})


def ids(rows: pa.Table) -> list[int]:
    return sorted(rows.column("id").to_pylist())


@pytest.mark.parametrize(
    ("kind", "output", "table_format"),
    [
        ("timestamp", "yyyy-MM", "native"),
        ("timestamp", "yyyy/MM/dd", "iceberg,delta"),
        ("date", "yyyy/MM/dd", "iceberg,delta"),
        ("date", "yyyy", "native"),
        ("seconds", "yyyy-MM-dd-HH", "iceberg,delta"),
        ("text", "yyyy-MM-dd", "native"),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_rows_are_stored_found_and_changed(
    tmp_path: Path, kind: str, output: str, table_format: str, zone: str
) -> None:
    rows = data(kind)
    table = create(tmp_path / "t", kind, output, table_format, **{"output.timezone": zone})
    table.insert(rows)
    assert sorted(row["id"] for row in by_hudi_rs(table.path)) == ids(rows)
    table = hudi.Table.open(table.path)
    for value in rows.column("till").drop_null():
        for compare in (pc.equal, pc.less, pc.greater_equal):
            condition = compare(pc.field("till"), value)
            assert ids(table.to_arrow(filter=condition)) == ids(rows.filter(condition))
    assert ids(table.to_arrow(filter=pc.field("till").is_null())) == [rows.num_rows - 1]
    assert table.upsert(rows).updated == rows.num_rows
    assert table.delete(rows.slice(0, 1)).deleted == 1
    assert table.validate(keys=True).is_valid


@pytest.mark.parametrize(
    ("kind", "output"), [("timestamp", "yyyy/MM/dd"), ("timestamp", "yyyy-MM"), ("date", "yyyy")]
)
def test_readers_of_iceberg_and_delta_find_them(tmp_path: Path, kind: str, output: str) -> None:
    rows = data(kind)
    table = create(tmp_path / "t", kind, output, "iceberg,delta")
    table.insert(rows)
    path = Path(table.path)
    delta, iceberg = DeltaTable(str(path)), newest_iceberg(path)
    frame = pl.scan_delta(str(path))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # polars tells which of its planners it prefers
        other = pl.scan_iceberg(iceberg.metadata_location).collect()
    assert ids(other.to_arrow()) == ids(rows)
    assert sorted(other["till"].to_list(), key=str) == sorted(rows["till"].to_pylist(), key=str)
    for value in KINDS[kind][1]:
        equal = ids(rows.filter(pc.field("till") == value))
        later = ids(rows.filter(pc.field("till") >= value))
        assert ids(iceberg.scan(row_filter=f"till == '{value.isoformat()}'").to_arrow()) == equal
        # pyiceberg takes one from the first day itself, and its dates end there
        if value != KINDS[kind][1][0]:
            found_later = iceberg.scan(row_filter=f"till >= '{value.isoformat()}'").to_arrow()
            assert ids(found_later) == later
        assert sorted(frame.filter(pl.col("till") == value).collect()["id"]) == equal
        assert sorted(frame.filter(pl.col("till") >= value).collect()["id"]) == later
    dataset = delta.to_pyarrow_dataset()  # noqa: F841 - DuckDB finds it by its name
    last = KINDS[kind][1][-1]
    found = duckdb.execute("SELECT id FROM dataset WHERE till >= ?", [last]).fetchall()
    assert sorted(one for (one,) in found) == ids(rows.filter(pc.field("till") >= last))
