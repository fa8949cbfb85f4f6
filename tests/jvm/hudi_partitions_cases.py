"""Hudi-Spark: keys, partitions and indexes.

Every key generator and every index of the metadata table: rows, and filters on partitions, keys and
indexed columns, which find the same rows every way.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

import hudi_core as hudi
from tests.jvm.commands import is_sound, succeed
from tests.jvm.engines import Engine
from tests.jvm.filters import Filter, among, compare, is_null
from tests.jvm.report import own_failure
from tests.jvm.skipping import Found, differences, filtered, judge_filters, judged, wanted
from tests.jvm.writers import HudiSpark, Shape, Writer, insert_all, name_of, ours

VERSIONS: Final = ("8", "9")
HIVE: Final = {"hoodie.datasource.write.hive_style_partitioning": "true"}
ENCODED: Final = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
TEXT, LONG = pa.string(), pa.int64()
DAYS: Final = [dt.date(2026, 1, 1), dt.date(2026, 2, 3), dt.date(2026, 11, 20)]

# --- partitions that are values ---------------------------------------------------------------

PLAIN: Final = Shape("8", partition="city")
VALUES: Final[Mapping[str, Shape]] = {
    "one": PLAIN,
    "hive": replace(PLAIN, options=HIVE),
    "encoded": replace(PLAIN, options=ENCODED),
    "hive, encoded": replace(PLAIN, options={**HIVE, **ENCODED}),
    "number": replace(PLAIN, partition="line"),
    "number, hive": replace(PLAIN, partition="line", options=HIVE),
    "date, hive": replace(PLAIN, partition="day", options=HIVE),
    "two, hive": replace(PLAIN, partition="city,day", options=HIVE),
    "two": replace(PLAIN, partition="city,line"),
    "two keys, hive": replace(PLAIN, key="id,line", partition="city", options=HIVE),
    "two keys": replace(PLAIN, key="id,line"),
    "no partition": Shape("8"),
}


def twelve_rows(cities: Sequence[str | None]) -> list[dict[str, Any]]:
    return [
        {
            "id": number,
            "line": number % 3,
            "city": cities[number % len(cities)],
            "day": DAYS[number % len(DAYS)],
            "x": number * 10,
        }
        for number in range(12)
    ]


def batches_of(rows: Sequence[Mapping[str, Any]]) -> list[pa.Table]:
    schema = pa.schema(
        [("id", LONG), ("line", LONG), ("city", TEXT), ("day", pa.date32()), ("x", LONG)]
    )
    return [pa.Table.from_pylist(list(part), schema) for part in (rows[:7], rows[7:])]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("layout", VALUES)
def test_partitions_of_values(
    hudi_spark: Engine, tmp_path: Path, layout: str, version: str
) -> None:
    """Filters on the columns of keys and partitions, and on another one beside them."""
    shape = replace(VALUES[layout], version=version)
    escaped = "encoded" in layout
    rows = twelve_rows(["Oslo", "a b", "x/y=z" if escaped else "S-2", "50% #" if escaped else "T"])
    filters = [
        *(compare("city", "=", "a b", TEXT), compare("city", ">", "a b", TEXT)),
        compare("line", "=", 1, LONG),
        *(compare("day", "=", DAYS[1], pa.date32()), compare("day", "<", DAYS[2], pa.date32())),
        among("city", [rows[2]["city"], rows[3]["city"]], TEXT),
        compare("city", "=", "Oslo", TEXT) & compare("x", ">", 30, LONG),
        compare("city", "=", "Oslo", TEXT) | compare("x", "=", 30, LONG),
        compare("id", "=", 5, LONG),
    ]
    path = tmp_path / "ours"
    found = filtered(hudi_spark, insert_all(ours, path, shape, batches_of(rows)), filters)
    unequal = differences(found.found, wanted(filters, rows))
    assert not unequal, unequal


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("layout", ["one", "hive", "hive, encoded"])
def test_partitions_of_nulls(hudi_spark: Engine, tmp_path: Path, layout: str, version: str) -> None:
    """Rows without a value of the partition column."""
    shape = replace(VALUES[layout], version=version)
    rows = twelve_rows(["Oslo", None, "T"])
    filters = [
        *(is_null("city"), compare("city", "=", "Oslo", TEXT), compare("x", "=", 10, LONG)),
        is_null("city") & compare("x", ">", 50, LONG),
    ]
    judged(hudi_spark, tmp_path, shape, batches_of(rows), filters)


# --- partitions that are periods ------------------------------------------------------------------

PREFIX: Final = "hoodie.keygen.timebased."
EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MOMENTS: Final = [dt.datetime(2026, month, 20, 5, 30, tzinfo=dt.UTC) for month in (1, 1, 6, 11)]


def since_epoch(moment: dt.datetime, unit: dt.timedelta) -> int:
    return (moment - EPOCH) // unit


def periods(kind: str, **more: str) -> dict[str, str]:
    named = {f"{PREFIX}{name.replace('_', '.')}": value for name, value in more.items()}
    return {
        "hoodie.datasource.write.keygenerator.type": "TIMESTAMP",
        f"{PREFIX}timestamp.type": kind,
        f"{PREFIX}output.dateformat": "yyyy/MM/dd",
        f"{PREFIX}timezone": "UTC",
        **named,
    }


MILLIS: Final = [since_epoch(one, dt.timedelta(milliseconds=1)) for one in MOMENTS]
SECONDS: Final = [since_epoch(one, dt.timedelta(seconds=1)) for one in MOMENTS]
PERIODS: Final[Mapping[str, tuple[dict[str, str], pa.DataType, Sequence[Any]]]] = {
    "milliseconds": (periods("EPOCHMILLISECONDS"), LONG, MILLIS),
    "milliseconds, hive": ({**periods("EPOCHMILLISECONDS"), **HIVE}, LONG, MILLIS),
    "seconds": (periods("UNIX_TIMESTAMP", output_dateformat="yyyy-MM"), LONG, SECONDS),
    "timestamp": (periods("EPOCHMICROSECONDS"), pa.timestamp("us", "UTC"), MOMENTS),
    "date": (
        periods("SCALAR", timestamp_scalar_time_unit="DAYS"),
        pa.date32(),
        [one.date() for one in MOMENTS],
    ),
    "text": (
        periods("DATE_STRING", input_dateformat="yyyy-MM-dd"),
        TEXT,
        [f"{one:%Y-%m-%d}" for one in MOMENTS],
    ),
}


def of_periods(kind: pa.DataType, values: Sequence[Any]) -> tuple[list[dict[str, Any]], pa.Table]:
    rows = [
        {"id": number, "city": "AB"[number % 2], "at": value, "x": number * 10}
        for number, value in enumerate(values)
    ]
    schema = pa.schema([("id", LONG), ("city", TEXT), ("at", kind), ("x", LONG)])
    return rows, pa.Table.from_pylist(rows, schema)


def filters_on_periods(kind: pa.DataType, values: Sequence[Any]) -> list[Filter]:
    return [
        compare("at", "=", values[2], kind),
        compare("at", ">", values[0], kind),
        compare("at", "<=", values[1], kind),
    ]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("periods_of", PERIODS)
def test_partitions_of_periods(
    hudi_spark: Engine, tmp_path: Path, periods_of: str, version: str
) -> None:
    """The TIMESTAMP generator: filters on columns that partitions are not made of."""
    options, kind, values = PERIODS[periods_of]
    rows, data = of_periods(kind, values)
    shape = Shape(version, partition="at", options=options)
    path = insert_all(ours, tmp_path / "table", shape, [data.slice(0, 2), data.slice(2)])
    filters = [
        *(compare("x", "=", 20, LONG), compare("x", "<", 20, LONG)),
        *(compare("city", "=", "B", TEXT), compare("id", ">=", 0, LONG)),
    ]
    found = filtered(hudi_spark, path, filters)
    unequal = differences(found.found, wanted(filters, rows))
    assert not unequal, unequal


NAMES: Final = own_failure("Hudi-Spark compares the column with the names of the partitions")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    # days as texts have the order of their partitions
    "periods_of",
    [pytest.param(one, marks=() if one == "text" else NAMES) for one in PERIODS],
)
def test_filters_on_periods(
    hudi_spark: Engine, tmp_path: Path, periods_of: str, version: str
) -> None:
    """The TIMESTAMP generator: filters on the column that partitions are made of."""
    options, kind, values = PERIODS[periods_of]
    rows, data = of_periods(kind, values)
    shape = Shape(version, partition="at", options=options)
    filters = filters_on_periods(kind, values)

    def asked(write: Writer) -> Found:
        batches = [data.slice(0, 2), data.slice(2)]
        path = insert_all(write, tmp_path / name_of(write), shape, batches)
        return filtered(hudi_spark, path, filters).found

    judge_filters(hudi_spark, wanted(filters, rows), asked)


CUSTOM: Final = {
    "with slashes": periods("EPOCHMILLISECONDS"),
    "with slashes, hive": {**periods("EPOCHMILLISECONDS"), **HIVE},
    "without slashes": periods("EPOCHMILLISECONDS", output_dateformat="yyyy-MM-dd"),
    "without slashes, hive": {
        **periods("EPOCHMILLISECONDS", output_dateformat="yyyy-MM-dd"),
        **HIVE,
    },
}


@own_failure("Hudi-Spark takes a period for a value of the column, or a slash for a further field")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("layout", CUSTOM)
def test_partitions_of_values_and_periods(
    hudi_spark: Engine, tmp_path: Path, layout: str, version: str
) -> None:
    """The CUSTOM generator: partitions of a value and a period."""
    rows, data = of_periods(LONG, MILLIS)
    options = {**CUSTOM[layout], "hoodie.datasource.write.keygenerator.type": "CUSTOM"}
    shape = Shape(version, partition="city:SIMPLE,at:TIMESTAMP", options=options)
    filters = [
        *(compare("x", "=", 20, LONG), compare("city", "=", "B", TEXT)),
        *filters_on_periods(LONG, MILLIS),
    ]

    def asked(write: Writer) -> Found:
        path = insert_all(write, tmp_path / name_of(write), shape, [data])
        answers = filtered(hudi_spark, path, filters).found
        return {each: _of_any_period(answer) for each, answer in answers.items()}

    judge_filters(hudi_spark, wanted(filters, rows), asked)


def _of_any_period(answer: Any) -> Any:
    """An answer; its error names one of the partitions, whichever it meets first."""
    return re.sub(r"`2026-\d\d-20`", "`a period`", answer) if isinstance(answer, str) else answer


def made_by_hudi() -> dict[str, tuple[Shape, pa.DataType, Sequence[Any]]]:
    found: dict[str, tuple[Shape, pa.DataType, Sequence[Any]]] = {
        name: (Shape("8", partition="at", options=options), kind, values)
        for name, (options, kind, values) in PERIODS.items()
    }
    for name, given in CUSTOM.items():
        options = {**given, "hoodie.datasource.write.keygenerator.type": "CUSTOM"}
        shape = Shape("8", partition="city:SIMPLE,at:TIMESTAMP", options=options)
        found[f"value and period, {name}"] = (shape, LONG, MILLIS)
    return found


MADE: Final = made_by_hudi()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("table", MADE)
def test_periods_of_hudi_spark(
    hudi_spark: Engine, tmp_path: Path, table: str, version: str
) -> None:
    """TIMESTAMP and CUSTOM, made by Hudi-Spark: we read its rows and write on, and so does it."""
    shape, column, values = MADE[table]
    shape = replace(shape, version=version)
    rows, data = of_periods(column, values)
    path = tmp_path / "table"
    insert_all(HudiSpark(hudi_spark), path, shape, [data.slice(0, 2), data.slice(2)])
    opened = hudi.Table.open(str(path))
    kind = shape.given["hoodie.datasource.write.keygenerator.type"]
    properties = (path / ".hoodie" / "hoodie.properties").read_text(encoding="utf-8")
    assert f"hoodie.table.keygenerator.type={kind}" in properties.splitlines()
    assert of_ours(opened) == rows
    rows[1]["x"], rows[3]["x"] = 100, 300
    # of CUSTOM generators Hudi-Spark does not store how periods are made
    named = {name: value for name, value in shape.options.items() if name.startswith(PREFIX)}
    opened = hudi.Table.open(str(path), named)
    opened.upsert(pa.Table.from_pylist([rows[1]], data.schema))
    assert of_ours(opened) == [*rows[:3], {**rows[3], "x": 30}]
    HudiSpark(hudi_spark)("upsert", pa.Table.from_pylist([rows[3]], data.schema), path, shape)
    assert of_ours(hudi.Table.open(str(path))) == rows
    is_sound(path)
    if shape.generator != "CUSTOM":  # which Hudi-Spark cannot read
        wanted_rows = [(row["id"], row["city"], row["x"]) for row in rows]
        assert hudi_spark.values(path, ["id", "city", "x"]) == wanted_rows


def of_ours(table: hudi.Table) -> list[dict[str, Any]]:
    found = table.to_arrow(columns=["id", "city", "at", "x"]).to_pylist()
    return sorted(found, key=lambda row: int(row["id"]))


# --- indexes -----------------------------------------------------------------------------------

GLOBAL: Final = {"hoodie.metadata.global.record.level.index.enable": "true"}
INDEXES: Final[Mapping[str, Mapping[str, str]]] = {
    "record index": GLOBAL,
    "record index by partitions": {"hoodie.metadata.record.level.index.enable": "true"},
    "bloom filters": {"hoodie.metadata.index.bloom.filter.enable": "true"},
    "files alone": {"hoodie.metadata.index.column.stats.enable": "false"},
}


@pytest.mark.parametrize("partition", ["", "city"], ids=["one folder", "partitioned"])
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("index", INDEXES)
def test_keys(hudi_spark: Engine, tmp_path: Path, index: str, version: str, partition: str) -> None:
    """Filters on the record key, by its column and by the meta column."""
    if index == "record index by partitions" and not partition:
        partition = "line"
    rows = [{**row, "id": f"k{row['id']:02d}"} for row in twelve_rows(["A", "B", "C"])]
    data = pa.Table.from_pylist(rows)
    shape = Shape(version, partition=partition, options=INDEXES[index])
    path = insert_all(ours, tmp_path / "table", shape, [data.slice(0, 5), data.slice(5)])
    moved = {**rows[3], "x": 1000}
    ours("upsert", pa.Table.from_pylist([moved], data.schema), path, shape)
    ours("delete", data.slice(4, 1), path, shape)
    keyed = [{**row, "_hoodie_record_key": row["id"]} for row in rows]
    keyed[3]["x"] = 1000
    del keyed[4]
    filters = [
        *(compare(name, "=", "k03", TEXT) for name in ("id", "_hoodie_record_key")),
        *(among(name, ["k04", "k05", "k99"], TEXT) for name in ("id", "_hoodie_record_key")),
        compare("id", "=", "k03", TEXT) & compare("x", "=", 30, LONG),
        compare("id", "=", "k06", TEXT) & compare("city", "=", "A", TEXT),
        compare("id", "=", "k06", TEXT) | compare("id", ">", "k10", TEXT),
        ~among("id", ["k01", "k02"], TEXT),
    ]
    found = filtered(hudi_spark, path, filters)
    unequal = differences(found.found, wanted(filters, keyed))
    assert not unequal, unequal


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("key", ["id", "id,line"], ids=["one key", "two keys"])
def test_buckets(hudi_spark: Engine, tmp_path: Path, key: str, version: str) -> None:
    """Filters on the key of a bucket table, whose buckets Hudi-Spark computes."""
    rows = [{**row, "id": f"k{row['id']:02d}"} for row in twelve_rows(["A", "B", "C"])]
    data = pa.Table.from_pylist(rows)
    index = {
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "3",
        "hoodie.bucket.index.hash.field": key,
    }
    shape = Shape(version, key=key, partition="city", options=index)
    path = insert_all(ours, tmp_path / "table", shape, [data.slice(0, 5), data.slice(5)])
    filters = [
        compare("id", "=", "k03", TEXT),
        compare("id", "=", "k07", TEXT) & compare("line", "=", 1, LONG),
        compare("id", "=", "k08", TEXT) & compare("city", "=", "C", TEXT),
        among("id", ["k04", "k05", "k99"], TEXT),
        *(compare("id", ">", "k09", TEXT), compare("x", "=", 30, LONG)),
    ]
    found = filtered(hudi_spark, path, filters, more=index)
    unequal = differences(found.found, wanted(filters, rows))
    assert not unequal, unequal
    if key == "id":
        assert found.files["skipping"] < found.files["listing"]


@pytest.mark.parametrize("version", VERSIONS)
def test_secondary_index(hudi_spark: Engine, tmp_path: Path, version: str) -> None:
    """Filters on a column with a secondary index, after updates of it."""
    rows = twelve_rows(["A", "B", "$", "x\\y", None])
    data = pa.Table.from_pylist(rows)
    shape = Shape(version, partition="line", options=GLOBAL)
    path = insert_all(ours, tmp_path / "table", shape, [data.slice(0, 6), data.slice(6)])
    succeed("metadata index", path, "secondary_index_by_city", "--column", "city")
    moved = {**rows[0], "city": "B"}
    ours("upsert", pa.Table.from_pylist([moved], data.schema), path, shape)
    rows[0]["city"] = "B"
    filters = [
        *(compare("city", "=", one, TEXT) for one in ("A", "B", "$", "x\\y", "nowhere")),
        *(among("city", ["A", "$"], TEXT), compare("city", "=", "B", TEXT) & is_null("x")),
        *(is_null("city"), compare("city", ">", "A", TEXT)),
    ]
    found = filtered(hudi_spark, path, filters)
    unequal = differences(found.found, wanted(filters, rows))
    assert not unequal, unequal
