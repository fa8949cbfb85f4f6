"""Partitions that are periods of a moment are transforms to Iceberg, where that is exact."""

from __future__ import annotations

import datetime as dt
import warnings
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import DataScan, StaticTable

import hudi_core as hudi
from hudi_core.errors import SchemaError
from tests.formats.two_steps import FAST, newest_iceberg

PREFIX = "hoodie.keygen.timebased."
MICROS = pa.timestamp("us", "UTC")
PLAIN = pa.timestamp("us")
UTC = dt.UTC
START = dt.datetime(2024, 1, 15, 9, 30, tzinfo=UTC)


def create(path: Path, kind: pa.DataType = MICROS, by: Any = "ts", **options: str) -> hudi.Table:
    """Make a table by days; ``output_dateformat`` stands for ``output.dateformat``, and so on.

    Options that begin with ``hoodie.`` are taken as they are.
    """
    given = {"timestamp_type": "EPOCHMICROSECONDS", "output_dateformat": "yyyy/MM/dd", **options}
    named = {
        name if name.startswith("hoodie.") else f"{PREFIX}{name.replace('_', '.')}": value
        for name, value in given.items()
    }
    named["hoodie.datasource.write.keygenerator.type"] = "TIMESTAMP" if by == "ts" else "CUSTOM"
    schema = pa.schema(
        [("id", pa.string()), ("ts", kind), ("city", pa.string()), ("n", pa.int64())]
    )
    return hudi.Table.create(
        str(path),
        schema,
        record_key="id",
        partition_by=by,
        format="iceberg",
        options={**FAST, **named},
    )


def rows(table: hudi.Table, n: int, timestamps: dict[str, Any]) -> pa.Table:
    schema = pa.schema([field.remove_metadata() for field in table.schema])
    given = [{"id": key, "ts": timestamps[key], "city": key[0], "n": n} for key in timestamps]
    return pa.Table.from_pylist(given, schema)


def scan(path: Path, row_filter: str = "true") -> DataScan:
    return newest_iceberg(path).scan(row_filter=row_filter)


def planned(path: Path, row_filter: str = "true") -> list[str]:
    """Return the folders of the files that pyiceberg would read, below the table."""
    found = [task.file.file_path for task in scan(path, row_filter).plan_files()]
    return sorted(one.split(f"{path}/")[1].rpartition("/")[0] for one in found)


def partitions(path: Path) -> dict[str, Any]:
    """Return the partition value of the file in each folder; absent where the file claims none."""
    found: dict[str, Any] = {}
    for task in scan(path).plan_files():
        folder = task.file.file_path.split(f"{path}/")[1].rpartition("/")[0]
        if task.file.spec_id == 0:
            (found[folder],) = [task.file.partition[at] for at in range(len(task.file.partition))]
    return found


def agree(path: Path) -> list[dict[str, Any]]:
    """Return the rows that all readers find."""
    names = ["id", "ts", "n"]
    found = hudi.Table.open(str(path)).to_arrow(columns=names)
    ours: list[dict[str, Any]] = found.sort_by("id").to_pylist()
    assert scan(path).to_arrow().select(names).sort_by("id").to_pylist() == ours
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it tells which of its planners it prefers
        frame = pl.scan_iceberg(newest_iceberg(path).metadata_location).select(names).collect()
    assert frame.sort("id").to_dicts() == ours
    return ours


def keys(path: Path, row_filter: str) -> list[str]:
    return sorted(scan(path, row_filter).to_arrow()["id"].to_pylist())


# --- which transform ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "transform", "value"),
    [
        ("yyyy/MM/dd", "day", 19_737),
        ("yyyy-MM-dd", "day", 19_737),
        ("yyyyMMdd", "day", 19_737),
        ("dd.MM.yyyy", "day", 19_737),
        ("yyyy/DDD", "day", 19_737),
        ("'year='yyyy/'month='MM/'day='dd", "day", 19_737),
        ("yyyy-MM-dd-HH", "hour", 473_697),
        ("yyyy/MM/dd/HH", "hour", 473_697),
        ("yyyy-MM", "month", 648),
        ("yyyyMM", "month", 648),
        ("yyyy", "year", 54),
    ],
)
def test_periods_are_transforms(tmp_path: Path, output: str, transform: str, value: int) -> None:
    table = create(tmp_path, output_dateformat=output)
    year_later, next_hour = START.replace(year=2025, month=3), START + dt.timedelta(hours=1)
    table.insert(rows(table, 1, {"a": START, "b": year_later, "c": next_hour}))

    (field,) = newest_iceberg(tmp_path).spec().fields
    assert (field.name, str(field.transform)) == (f"ts_{transform}", transform)
    assert value in partitions(tmp_path).values()
    assert len(partitions(tmp_path)) == (3 if transform == "hour" else 2)
    agree(tmp_path)
    late = "ts >= '2025-01-01T00:00:00+00:00'"
    assert len(planned(tmp_path, late)) == 1
    assert keys(tmp_path, late) == ["b"]
    assert keys(tmp_path, "ts = '2024-01-15T10:30:00+00:00'") == ["c"]


@pytest.mark.parametrize(
    ("kind", "options", "values"),
    [
        (PLAIN, {}, [START.replace(tzinfo=None), dt.datetime(1960, 2, 29, 1)]),  # noqa: DTZ001
        (
            pa.date32(),
            {"timestamp_type": "SCALAR", "timestamp_scalar_time_unit": "DAYS"},
            [START.date(), dt.date(1960, 2, 29)],
        ),
        (MICROS, {"output_timezone": "GMT"}, [START, dt.datetime(1960, 2, 29, 1, tzinfo=UTC)]),
        (
            MICROS,
            {"timestamp_type": "SCALAR", "timestamp_scalar_time_unit": "MICROSECONDS"},
            [START, dt.datetime(1960, 2, 29, 1, tzinfo=UTC)],
        ),
    ],
    ids=str,
)
def test_dates_and_timestamps_have_transforms(
    tmp_path: Path, kind: pa.DataType, options: dict[str, str], values: list[Any]
) -> None:
    table = create(tmp_path, kind, **options)
    table.insert(rows(table, 1, dict(zip("ab", values, strict=True))))

    assert partitions(tmp_path) == {"2024/01/15": 19_737, "1960/02/29": -3_594}
    assert [row["ts"] for row in agree(tmp_path)] == values


@pytest.mark.parametrize(
    ("kind", "options", "values"),
    [
        (MICROS, {"output_timezone": "Asia/Tokyo"}, [START, START + dt.timedelta(days=9)]),
        (MICROS, {"output_dateformat": "yyyy-MM-dd-HH-mm"}, [START, START + dt.timedelta(days=9)]),
        (MICROS, {"output_dateformat": "yy-MM-dd"}, [START, START + dt.timedelta(days=9)]),
        (MICROS, {"output_dateformat": "yyyyMd"}, [START, START + dt.timedelta(days=9)]),
        (MICROS, {"output_dateformat": "MM-dd"}, [START, START + dt.timedelta(days=9)]),
        (MICROS, {"output_dateformat": "EEE"}, [START, START + dt.timedelta(days=9)]),
        (pa.int64(), {"timestamp_type": "UNIX_TIMESTAMP"}, [1_705_311_000, 1_706_088_600]),
        (
            pa.string(),
            {"timestamp_type": "DATE_STRING", "input_dateformat": "yyyy-MM-dd"},
            ["2024-01-15", "2024-01-24"],
        ),
    ],
    ids=str,
)
def test_all_else_is_unpartitioned_and_pruned_by_statistics(
    tmp_path: Path, kind: pa.DataType, options: dict[str, str], values: list[Any]
) -> None:
    table = create(tmp_path, kind, **options)
    table.insert(rows(table, 1, {"a": values[0], "b": values[1], "c": None}))

    assert newest_iceberg(tmp_path).spec().is_unpartitioned()
    assert [row["ts"] for row in agree(tmp_path)] == [*values, None]
    shown = values[1].isoformat() if isinstance(values[1], dt.datetime) else values[1]
    last = f"ts >= {shown!r}"
    assert keys(tmp_path, last) == ["b"]
    assert len(planned(tmp_path, last)) == 1


def test_fields_of_their_own_kinds(tmp_path: Path) -> None:
    table = create(tmp_path, by=["city:SIMPLE", "ts:TIMESTAMP"])
    table.insert(rows(table, 1, {"a1": START, "a2": START + dt.timedelta(days=1), "b": START}))

    spec = newest_iceberg(tmp_path).spec()
    assert [(one.name, str(one.transform)) for one in spec.fields] == [
        ("city", "identity"),
        ("ts_day", "day"),
    ]
    agree(tmp_path)
    both = "city = 'a' and ts < '2024-01-16T00:00:00+00:00'"
    assert planned(tmp_path, both) == ["a/2024/01/15"]
    assert keys(tmp_path, both) == ["a1"]


def test_one_field_that_is_not_exact_leaves_none(tmp_path: Path) -> None:
    zone = {"output_timezone": "Asia/Tokyo"}
    table = create(tmp_path, by=["city:SIMPLE", "ts:TIMESTAMP"], **zone)
    table.insert(rows(table, 1, {"a": START}))
    assert newest_iceberg(tmp_path).spec().is_unpartitioned()
    agree(tmp_path)


def test_the_name_of_a_field_is_no_columns(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("ts", MICROS), ("ts_day", pa.string())])
    options = {
        **FAST,
        "hoodie.datasource.write.keygenerator.type": "TIMESTAMP",
        f"{PREFIX}timestamp.type": "EPOCHMICROSECONDS",
        f"{PREFIX}output.dateformat": "yyyy/MM/dd",
    }
    hudi.Table.create(
        str(tmp_path), schema, record_key="id", partition_by="ts", format="iceberg", options=options
    )
    (field,) = newest_iceberg(tmp_path).spec().fields
    assert field.name == "ts_day_"


def test_no_new_column_is_called_as_a_field(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.insert(rows(table, 1, {"a": START}))
    before = newest_iceberg(tmp_path).metadata
    for name in ("ts_day", "ts_day_"):
        with pytest.raises(SchemaError, match=f"Column {name} would be called as the field"):
            table.alter(add_columns={name: pa.string()})
        with pytest.raises(SchemaError, match=f"Column {name} would be called as the field"):
            table.alter(rename={"n": name})
    more = rows(table, 2, {"b": START}).append_column("ts_day", pa.array(["x"]))
    evolving = hudi.Table.open(str(tmp_path), {"hoodie.datasource.write.reconcile.schema": "true"})
    with pytest.raises(SchemaError, match="ts_day"):
        evolving.upsert(more)
    assert newest_iceberg(tmp_path).metadata == before
    table.alter(add_columns={"ts_da": pa.string(), "ts_hour": pa.string()})
    assert set(newest_iceberg(tmp_path).schema().column_names) >= {"ts_da", "ts_hour"}
    agree(tmp_path)


# --- which values ------------------------------------------------------------------------------


def test_a_file_claims_only_what_all_of_its_rows_have(tmp_path: Path) -> None:
    """Hudi puts rows without a moment into 1970, and what is just before it."""
    table = create(tmp_path)
    table.insert(rows(table, 1, {"none": None, "day": START}))
    assert partitions(tmp_path) == {"1970/01/01": None, "2024/01/15": 19_737}
    assert planned(tmp_path, "ts is null") == ["1970/01/01"]

    epoch = dt.datetime(1970, 1, 1, tzinfo=UTC)
    table.upsert(rows(table, 2, {"first": epoch}))
    assert partitions(tmp_path) == {"2024/01/15": 19_737}
    assert keys(tmp_path, "ts is null") == ["none"]
    table.upsert(rows(table, 2, {"late": epoch - dt.timedelta(microseconds=1)}))
    assert partitions(tmp_path) == {"2024/01/15": 19_737}
    agree(tmp_path)
    assert keys(tmp_path, "ts is null") == ["none"]
    assert keys(tmp_path, "ts < '1970-01-01T00:00:00+00:00'") == ["late"]
    assert keys(tmp_path, "ts >= '1970-01-01T00:00:00+00:00'") == ["day", "first"]

    table.delete(rows(table, 3, {"none": None}))
    assert partitions(tmp_path) == {"2024/01/15": 19_737}
    table.delete(rows(table, 3, {"late": epoch}))
    assert partitions(tmp_path) == {"1970/01/01": 0, "2024/01/15": 19_737}


def test_every_file_has_the_value_that_iceberg_makes_of_its_rows(tmp_path: Path) -> None:
    table = create(tmp_path, output_dateformat="yyyy-MM-dd-HH")
    given = {f"k{n:02}": START + dt.timedelta(minutes=37 * n) for n in range(40)}
    table.bulk_insert(rows(table, 1, given))
    iceberg = newest_iceberg(tmp_path)
    schema, spec = iceberg.schema(), iceberg.spec()
    make = spec.fields[0].transform.transform(schema.find_type("ts"))
    seen = 0
    for task in iceberg.scan().plan_files():
        found = pq.read_table(task.file.file_path.removeprefix("file://"), partitioning=None)
        assert {make(value) for value in found["ts"].to_pylist()} == {task.file.partition[0]}
        assert task.file.spec_id == 0
        seen += found.num_rows
    assert seen == len(given)


# --- in the course of time ---------------------------------------------------------------------


def test_all_writes_keep_the_values_right(tmp_path: Path) -> None:
    table = create(tmp_path)
    days = {f"k{n}": START + dt.timedelta(days=n) for n in range(5)}
    table.insert(rows(table, 1, days))
    table.upsert(rows(table, 2, {"k1": days["k1"].replace(hour=20), "x": days["k4"]}))
    agree(tmp_path)
    table.delete(rows(table, 3, {"k2": days["k2"]}))
    table.insert_overwrite(rows(table, 4, {"y": days["k3"]}))
    table.delete_partitions(["2024/01/15"])
    assert [row["id"] for row in agree(tmp_path)] == ["k1", "k4", "x", "y"]
    assert partitions(tmp_path) == {
        "2024/01/16": 19_738,
        "2024/01/18": 19_740,
        "2024/01/19": 19_741,
    }
    table.alter(add_columns={"more": pa.int64()})
    table.insert_overwrite_table(rows(hudi.Table.open(str(tmp_path)), 5, {"z": START}))
    assert [row["id"] for row in agree(tmp_path)] == ["z"]
    assert partitions(tmp_path) == {"2024/01/15": 19_737}


def test_a_commit_to_one_day_rewrites_the_manifests_of_that_day(tmp_path: Path) -> None:
    table = create(tmp_path)
    for n in range(4):
        table.insert(rows(table, 1, {f"k{n}": START + dt.timedelta(days=n)}))

    def manifests() -> set[str]:
        found: StaticTable = newest_iceberg(tmp_path)
        snapshot = found.current_snapshot()
        assert snapshot is not None
        return {one.manifest_path for one in snapshot.manifests(found.io)}

    before = manifests()
    table.upsert(rows(table, 2, {"k1": START + dt.timedelta(days=1)}))
    assert len(before - manifests()) == 1
    agree(tmp_path)


def test_a_table_becomes_one_of_iceberg_and_goes_back(tmp_path: Path) -> None:
    native = create(tmp_path / "x")  # for its columns
    schema = pa.schema([field.remove_metadata() for field in native.schema])
    path = tmp_path / "t"
    options = {
        **FAST,
        "hoodie.datasource.write.keygenerator.type": "TIMESTAMP",
        f"{PREFIX}timestamp.type": "EPOCHMICROSECONDS",
        f"{PREFIX}output.dateformat": "yyyy/MM/dd",
    }
    table = hudi.Table.create(
        str(path), schema, record_key="id", partition_by="ts", options=options
    )
    table.insert(rows(table, 1, {"a": START, "b": START + dt.timedelta(days=1), "none": None}))
    table.convert("iceberg", options=FAST)
    assert partitions(path) == {"1970/01/01": None, "2024/01/15": 19_737, "2024/01/16": 19_738}
    table = hudi.Table.open(str(path))
    table.upsert(rows(table, 2, {"a": START}))
    agree(path)
    table.convert("native")
    assert hudi.Table.open(str(path)).to_arrow().num_rows == 3


def test_our_own_reader_plans_from_the_manifests(tmp_path: Path) -> None:
    """By a column that no path tells of, and without a metadata table."""
    table = create(tmp_path, **{"hoodie.metadata.enable": "false"})
    for n in range(5):
        table.insert(rows(table, n, {f"k{n}": START + dt.timedelta(days=n)}))
    assert not (tmp_path / ".hoodie/metadata").exists()
    late = [("n", ">=", 3)]
    assert sorted(table.to_arrow(filter=late)["id"].to_pylist()) == ["k3", "k4"]
    for day in (15, 16, 17):  # who opens one of these files fails
        for file in (tmp_path / f"2024/01/{day}").glob("*.parquet"):
            file.unlink()
    assert sorted(table.to_arrow(filter=late)["id"].to_pylist()) == ["k3", "k4"]
    with pytest.raises(hudi.HudiError):
        table.to_arrow(filter=[("n", ">=", 2)])
