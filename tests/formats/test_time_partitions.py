"""Partitions that are periods of a moment: transforms of Iceberg, plain columns of Delta."""

from __future__ import annotations

import datetime as dt
import warnings
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyiceberg.table import DataScan, StaticTable

import hudi_core as hudi
from hudi_core.errors import SchemaError
from tests.foreign import by_hudi_rs
from tests.formats.two_steps import newest_iceberg
from tests.tables import new_table

PREFIX = "hoodie.keygen.timebased."
MICROS = pa.timestamp("us", "UTC")
PLAIN = pa.timestamp("us")
UTC = dt.UTC
START = dt.datetime(2024, 1, 15, 9, 30, tzinfo=UTC)


def create(
    path: Path,
    kind: pa.DataType = MICROS,
    by: Any = "ts",
    *,
    table_format: str = "iceberg",
    **options: str,
) -> hudi.Table:
    """Make a table by days; ``output_dateformat`` stands for ``output.dateformat``, and so on."""
    given = {"timestamp_type": "EPOCHMICROSECONDS", "output_dateformat": "yyyy/MM/dd", **options}
    named = {
        name if name.startswith("hoodie.") else f"{PREFIX}{name.replace('_', '.')}": value
        for name, value in given.items()
    }
    named["hoodie.datasource.write.keygenerator.type"] = "TIMESTAMP" if by == "ts" else "CUSTOM"
    schema = pa.schema(
        [("id", pa.string()), ("ts", kind), ("city", pa.string()), ("n", pa.int64())]
    )
    settings = {"partition_by": by, "format": table_format, "ordering_field": None}
    return new_table(path, schema, named, **settings)


def timed(table: hudi.Table, n: int, timestamps: dict[str, Any]) -> pa.Table:
    schema = pa.schema([field.remove_metadata() for field in table.schema])
    given = [{"id": key, "ts": at, "city": key[0], "n": n} for key, at in timestamps.items()]
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
    """Return the rows that all readers of the table's format find."""
    names = ["id", "ts", "n"]
    table = hudi.Table.open(path)
    ours: list[dict[str, Any]] = table.to_arrow(columns=names).sort_by("id").to_pylist()
    if table.format == "delta":
        theirs, frame = pa.table(DeltaTable(str(path)).to_pyarrow_table()), pl.scan_delta(str(path))
        assert frame.select(names).collect().sort("id").to_dicts() == ours
    else:
        theirs = scan(path).to_arrow()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it tells which of its planners it prefers
            frame = pl.scan_iceberg(newest_iceberg(path).metadata_location)
            assert frame.select(names).collect().sort("id").to_dicts() == ours
    assert theirs.select(names).sort_by("id").to_pylist() == ours
    return ours


def keys(path: Path, row_filter: str) -> list[str]:
    return sorted(scan(path, row_filter).to_arrow()["id"].to_pylist())


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
    table.insert(timed(table, 1, {"a": START, "b": year_later, "c": next_hour}))
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
    table.insert(timed(table, 1, dict(zip("ab", values, strict=True))))
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
    table.insert(timed(table, 1, {"a": values[0], "b": values[1], "c": None}))
    assert newest_iceberg(tmp_path).spec().is_unpartitioned()
    assert [row["ts"] for row in agree(tmp_path)] == [*values, None]
    shown = values[1].isoformat() if isinstance(values[1], dt.datetime) else values[1]
    last = f"ts >= {shown!r}"
    assert keys(tmp_path, last) == ["b"]
    assert len(planned(tmp_path, last)) == 1


def test_fields_of_their_own_kinds(tmp_path: Path) -> None:
    table = create(tmp_path, by=["city:SIMPLE", "ts:TIMESTAMP"])
    table.insert(timed(table, 1, {"a1": START, "a2": START + dt.timedelta(days=1), "b": START}))
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
    table.insert(timed(table, 1, {"a": START}))
    assert newest_iceberg(tmp_path).spec().is_unpartitioned()
    agree(tmp_path)


def test_the_name_of_a_field_is_no_columns(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("ts", MICROS), ("ts_day", pa.string())])
    options = {
        "hoodie.datasource.write.keygenerator.type": "TIMESTAMP",
        f"{PREFIX}timestamp.type": "EPOCHMICROSECONDS",
        f"{PREFIX}output.dateformat": "yyyy/MM/dd",
    }
    hudi.Table.create(
        tmp_path, schema, record_key="id", partition_by="ts", format="iceberg", options=options
    )
    (field,) = newest_iceberg(tmp_path).spec().fields
    assert field.name == "ts_day_"


def test_no_new_column_is_called_as_a_field(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.insert(timed(table, 1, {"a": START}))
    before = newest_iceberg(tmp_path).metadata
    for name in ("ts_day", "ts_day_"):
        with pytest.raises(SchemaError, match=f"Column {name} would be called as the field"):
            table.alter(add_columns={name: pa.string()})
        with pytest.raises(SchemaError, match=f"Column {name} would be called as the field"):
            table.alter(rename={"n": name})
    more = timed(table, 2, {"b": START}).append_column("ts_day", pa.array(["x"]))
    evolving = hudi.Table.open(tmp_path, {"hoodie.datasource.write.reconcile.schema": "true"})
    with pytest.raises(SchemaError, match="ts_day"):
        evolving.upsert(more)
    assert newest_iceberg(tmp_path).metadata == before
    table.alter(add_columns={"ts_da": pa.string(), "ts_hour": pa.string()})
    assert set(newest_iceberg(tmp_path).schema().column_names) >= {"ts_da", "ts_hour"}
    agree(tmp_path)


def test_a_file_claims_only_what_all_of_its_rows_have(tmp_path: Path) -> None:
    """Hudi puts rows without a moment into 1970, and what is just before it."""
    table = create(tmp_path)
    table.insert(timed(table, 1, {"none": None, "day": START}))
    assert partitions(tmp_path) == {"1970/01/01": None, "2024/01/15": 19_737}
    assert planned(tmp_path, "ts is null") == ["1970/01/01"]
    epoch = dt.datetime(1970, 1, 1, tzinfo=UTC)
    table.upsert(timed(table, 2, {"first": epoch}))
    assert partitions(tmp_path) == {"2024/01/15": 19_737}
    assert keys(tmp_path, "ts is null") == ["none"]
    table.upsert(timed(table, 2, {"late": epoch - dt.timedelta(microseconds=1)}))
    assert partitions(tmp_path) == {"2024/01/15": 19_737}
    agree(tmp_path)
    assert keys(tmp_path, "ts is null") == ["none"]
    assert keys(tmp_path, "ts < '1970-01-01T00:00:00+00:00'") == ["late"]
    assert keys(tmp_path, "ts >= '1970-01-01T00:00:00+00:00'") == ["day", "first"]
    table.delete(timed(table, 3, {"none": None}))
    assert partitions(tmp_path) == {"2024/01/15": 19_737}
    table.delete(timed(table, 3, {"late": epoch}))
    assert partitions(tmp_path) == {"1970/01/01": 0, "2024/01/15": 19_737}


def test_every_file_has_the_value_that_iceberg_makes_of_its_rows(tmp_path: Path) -> None:
    table = create(tmp_path, output_dateformat="yyyy-MM-dd-HH")
    given = {f"k{n:02}": START + dt.timedelta(minutes=37 * n) for n in range(40)}
    table.bulk_insert(timed(table, 1, given))
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


@pytest.mark.parametrize("table_format", ["iceberg", "delta"])
def test_all_writes_keep_the_values_right(tmp_path: Path, table_format: str) -> None:
    table = create(tmp_path, table_format=table_format)
    days = {f"k{n}": START + dt.timedelta(days=n) for n in range(5)}
    table.insert(timed(table, 1, {**days, "none": None}))
    table.upsert(timed(table, 2, {"k1": days["k1"].replace(hour=20), "x": days["k4"]}))
    agree(tmp_path)
    table.delete(timed(table, 3, {"k2": days["k2"]}))
    table.insert_overwrite(timed(table, 4, {"y": days["k3"]}))
    table.delete_partitions(["2024/01/15"])
    assert [row["id"] for row in agree(tmp_path)] == ["k1", "k4", "none", "x", "y"]
    if table_format == "iceberg":
        expected = {"2024/01/16": 19_738, "2024/01/18": 19_740, "2024/01/19": 19_741}
        assert partitions(tmp_path) == {**expected, "1970/01/01": None}
    table.alter(add_columns={"more": pa.int64()})
    table.insert_overwrite_table(timed(table, 5, {"z": START}))
    assert [row["id"] for row in agree(tmp_path)] == ["z"]
    if table_format == "iceberg":
        assert partitions(tmp_path) == {"2024/01/15": 19_737}


def test_a_commit_to_one_day_rewrites_the_manifests_of_that_day(tmp_path: Path) -> None:
    table = create(tmp_path)
    for n in range(4):
        table.insert(timed(table, 1, {f"k{n}": START + dt.timedelta(days=n)}))

    def manifests() -> set[str]:
        found: StaticTable = newest_iceberg(tmp_path)
        snapshot = found.current_snapshot()
        assert snapshot is not None
        return {one.manifest_path for one in snapshot.manifests(found.io)}

    before = manifests()
    table.upsert(timed(table, 2, {"k1": START + dt.timedelta(days=1)}))
    assert len(before - manifests()) == 1
    agree(tmp_path)


def test_a_table_becomes_one_of_iceberg_and_goes_back(path: Path) -> None:
    table = create(path, table_format="native")
    table.insert(timed(table, 1, {"a": START, "b": START + dt.timedelta(days=1), "none": None}))
    table.convert("iceberg")
    assert partitions(path) == {"1970/01/01": None, "2024/01/15": 19_737, "2024/01/16": 19_738}
    table = hudi.Table.open(path)
    table.upsert(timed(table, 2, {"a": START}))
    agree(path)
    table.convert("native")
    assert hudi.Table.open(path).to_arrow().num_rows == 3


def test_our_own_reader_plans_from_the_manifests(tmp_path: Path) -> None:
    """By a column that no path tells of, and without a metadata table."""
    table = create(tmp_path, **{"hoodie.metadata.enable": "false"})
    for n in range(5):
        table.insert(timed(table, n, {f"k{n}": START + dt.timedelta(days=n)}))
    assert not (tmp_path / ".hoodie/metadata").exists()
    late = [("n", ">=", 3)]
    assert sorted(table.to_arrow(filter=late)["id"].to_pylist()) == ["k3", "k4"]
    for day in (15, 16, 17):  # who opens one of these files fails
        for file in (tmp_path / f"2024/01/{day}").glob("*.parquet"):
            file.unlink()
    assert sorted(table.to_arrow(filter=late)["id"].to_pylist()) == ["k3", "k4"]
    with pytest.raises(hudi.HudiError):
        table.to_arrow(filter=[("n", ">=", 2)])


def delta_ids(path: Path, condition: pl.Expr) -> list[str]:
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
    table = create(tmp_path, kind, table_format="delta", **options)
    table.insert(timed(table, 1, dict(zip("abc", values, strict=True))))
    delta = DeltaTable(str(tmp_path))
    assert delta.metadata().partition_columns == []
    assert len(delta.file_uris()) == 3
    assert [row["ts"] for row in agree(tmp_path)] == values


def test_statistics_tell_what_to_leave_out(tmp_path: Path) -> None:
    table = create(tmp_path, table_format="delta")
    table.insert(timed(table, 1, {f"k{n}": START + dt.timedelta(days=n) for n in range(5)}))
    late = START + dt.timedelta(days=3)
    stated = pa.table(DeltaTable(str(tmp_path)).get_add_actions(flatten=True))
    newest = [value for value in stated["max.ts"].to_pylist() if value >= late]
    assert len(newest) == 2
    assert delta_ids(tmp_path, pl.col("ts") >= late) == ["k3", "k4"]
    for old in ("15", "16", "17"):
        for file in (tmp_path / "2024" / "01" / old).glob("*.parquet"):
            file.unlink()  # a reader that looked there would fail
    assert delta_ids(tmp_path, pl.col("ts") >= late) == ["k3", "k4"]
    ours = table.to_arrow(filter=[("ts", ">=", late)])
    assert sorted(ours["id"].to_pylist()) == ["k3", "k4"]


@pytest.mark.parametrize(
    ("fields", "columns"),
    [(["city:SIMPLE", "ts:TIMESTAMP"], []), (["city:SIMPLE", "n:SIMPLE"], ["city", "n"])],
)
def test_columns_are_partitions_where_all_fields_are_columns(
    tmp_path: Path, fields: list[str], columns: list[str]
) -> None:
    table = create(tmp_path, by=fields, table_format="delta")
    table.insert(timed(table, 1, {"a1": START, "a2": START + dt.timedelta(days=1), "b": START}))
    assert DeltaTable(str(tmp_path)).metadata().partition_columns == columns
    assert len(agree(tmp_path)) == 3


def test_a_table_becomes_one_of_delta_and_goes_back(tmp_path: Path) -> None:
    table = create(tmp_path, table_format="delta")
    table.insert(timed(table, 1, {"a": START, "none": None}))
    table.convert("native")
    table = hudi.Table.open(tmp_path)
    table.upsert(timed(table, 2, {"a": START}))
    table.convert("delta")
    assert [row["n"] for row in agree(tmp_path)] == [2, 1]
    adds = pa.table(DeltaTable(str(tmp_path)).get_add_actions(flatten=True))
    assert len(adds) == 2
    assert not [name for name in adds.column_names if name.startswith("partition")]


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


def by_end(path: Path, kind: str, output: str, table_format: str, **more: str) -> hudi.Table:
    schema = pa.schema([("id", pa.int64()), ("till", KINDS[kind][0])])
    given = {**KINDS[kind][2], "output.dateformat": output, **more}
    options = {
        "hoodie.datasource.write.keygenerator.type": "TIMESTAMP",
        **{f"{PREFIX}{name}": value for name, value in given.items()},
    }
    return new_table(path, schema, options, partition_by="till", format=table_format)


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
    path: Path, kind: str, output: str, table_format: str, zone: str
) -> None:
    rows = data(kind)
    table = by_end(path, kind, output, table_format, **{"output.timezone": zone})
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
    table = by_end(tmp_path / "t", kind, output, "iceberg,delta")
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
