"""Partitions that are periods of a moment: their paths, writes, reads and refusals."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_core as hudi
from hudi_core.config.stored_table import new_table_config, properties_of, stored_config
from hudi_core.config.support import require_readable_table, require_writable_table
from hudi_core.config.table import TableConfig
from hudi_core.errors import (
    HudiError,
    InvalidOptionError,
    OptionConflictError,
    PartitionValueError,
    SchemaError,
    UnknownPartitionError,
    UnsupportedTableError,
)
from hudi_core.keygen import bare_key_field, key_generator, require_key_columns
from hudi_core.keygen.zones import to_local_millis, to_utc_millis
from hudi_core.model.files import PartitionPath
from hudi_core.read.filters import to_filter
from hudi_core.read.partition_pruning import PartitionPruner
from hudi_core.schema.table_schema import TableSchema
from tests.tables import new_table, pairs, rows
from tests.unit.timestamp_tables import (
    DAYS,
    ISO,
    PREFIX,
    UTC,
    generator,
    made,
    of_config,
    options,
    paths,
)

BY_DAY = {
    "hoodie.datasource.write.keygenerator.type": "TIMESTAMP",
    f"{PREFIX}timestamp.type": "EPOCHMICROSECONDS",
    f"{PREFIX}output.dateformat": "yyyy/MM/dd",
}
MOMENTS = pa.schema([("id", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("n", pa.int64())])


def at(day: int, hour: int = 0) -> dt.datetime:
    return dt.datetime(2024, 1, day, hour, tzinfo=dt.UTC)


def at_moments(n: int, timestamps: Mapping[str, dt.datetime | None]) -> pa.Table:
    return rows(*timestamps, schema=MOMENTS, ts=list(timestamps.values()), n=n)


def new(path: Path, **options: str) -> hudi.Table:
    return new_table(path, MOMENTS, {**BY_DAY, **options}, partition_by="ts", ordering_field=None)


def content(table: hudi.Table) -> dict[str, tuple[str, dt.datetime | None, int]]:
    """Return partition path, moment and number of every row."""
    found = pairs(table.to_arrow(), "id", "_hoodie_partition_path", "ts", "n")
    assert len({row[0] for row in found}) == len(found)
    return {key: (path, moment, n) for key, path, moment, n in found}


def folders(path: Path) -> list[str]:
    found = {file.parent for file in path.rglob("*.parquet") if ".hoodie" not in file.parts}
    return sorted(str(one.relative_to(path)) for one in found)


INDEXES: dict[str, dict[str, str]] = {
    "SIMPLE": {},
    "BLOOM": {},
    "BUCKET": {"hoodie.bucket.index.num.buckets": "2"},
    "RECORD_LEVEL_INDEX": {"hoodie.metadata.record.level.index.enable": "true"},
}
GLOBAL_INDEXES: dict[str, dict[str, str]] = {
    "GLOBAL_SIMPLE": {},
    "GLOBAL_BLOOM": {},
    "GLOBAL_RECORD_LEVEL_INDEX": {"hoodie.metadata.global.record.level.index.enable": "true"},
}


@pytest.mark.parametrize("index", INDEXES)
def test_rows_are_found_in_the_partition_of_their_moment(tmp_path: Path, index: str) -> None:
    table = new(tmp_path, **{"hoodie.index.type": index}, **INDEXES[index])
    table.insert(at_moments(1, {"a": at(15), "b": at(15, 23), "c": at(16), "none": None}))
    assert folders(tmp_path) == ["1970/01/01", "2024/01/15", "2024/01/16"]

    # another moment of the same day is an update, and the column takes it
    table.upsert(at_moments(2, {"a": at(15, 7), "d": at(17), "none": None}))

    assert content(table) == {
        "a": ("2024/01/15", at(15, 7), 2),
        "b": ("2024/01/15", at(15, 23), 1),
        "c": ("2024/01/16", at(16), 1),
        "d": ("2024/01/17", at(17), 2),
        "none": ("1970/01/01", None, 2),
    }
    table.delete(at_moments(3, {"b": at(15, 1), "none": None}))
    assert sorted(content(table)) == ["a", "c", "d"]


@pytest.mark.parametrize("index", GLOBAL_INDEXES)
@pytest.mark.parametrize("moves", [True, False])
def test_a_row_moves_or_stays_where_its_key_is(tmp_path: Path, index: str, moves: bool) -> None:
    kinds, flag = ("simple.index", "bloom.index", "record.index"), str(moves).lower()
    options = {f"hoodie.{kind}.update.partition.path": flag for kind in kinds}
    table = new(tmp_path, **options, **GLOBAL_INDEXES[index], **{"hoodie.index.type": index})
    table.insert(at_moments(1, {"a": at(15), "b": at(16)}))
    table.upsert(at_moments(2, {"a": at(17, 5), "b": at(16, 5)}))
    # where it stays, it keeps the moment too, by which readers look for its partition
    moved = ("2024/01/17", at(17, 5), 2) if moves else ("2024/01/15", at(15), 2)
    assert content(table) == {"a": moved, "b": ("2024/01/16", at(16, 5), 2)}
    day = moved[1].day
    of_day = table.to_arrow("id", [("ts", ">=", at(day)), ("ts", "<", at(day + 1))])
    assert of_day.to_pydict() == {"id": ["a"]}


@pytest.mark.parametrize(
    "mode",
    [
        *("NONE", "PARTITION_SORT", "GLOBAL_SORT"),
        *("PARTITION_PATH_REPARTITION", "PARTITION_PATH_REPARTITION_AND_SORT"),
    ],
)
def test_bulk_inserts_in_any_order(tmp_path: Path, mode: str) -> None:
    table = new(tmp_path, **{"hoodie.bulkinsert.sort.mode": mode})
    given = {f"k{n:02}": at(10 + n % 3, n % 24) for n in range(48)}
    table.bulk_insert(at_moments(1, given))
    assert {key: row[1] for key, row in content(table).items()} == given
    assert folders(tmp_path) == ["2024/01/10", "2024/01/11", "2024/01/12"]


def test_overwriting_and_deleting_partitions(tmp_path: Path) -> None:
    table = new(tmp_path)
    table.insert(at_moments(1, {"a": at(15), "b": at(15, 2), "c": at(16), "d": at(17)}))
    table.insert_overwrite(at_moments(2, {"e": at(15, 9)}))
    assert sorted(content(table)) == ["c", "d", "e"]

    table.delete_partitions(["2024/01/16"])
    assert sorted(content(table)) == ["d", "e"]

    with pytest.raises(UnknownPartitionError, match="2024/01/16"):
        table.delete_partitions(["2024/01/16"])
    with pytest.raises(PartitionValueError, match=r"given by values.* path"):
        table.delete_partitions([{"ts": at(17)}])

    table.insert_overwrite_table(at_moments(3, {"f": at(18)}))
    assert content(table) == {"f": ("2024/01/18", at(18), 3)}


def test_a_file_group_holds_rows_of_one_period(tmp_path: Path) -> None:
    table = new(tmp_path, **{f"{PREFIX}output.dateformat": "yyyy-MM-dd-HH"})
    table.insert(at_moments(1, {f"{hour}": at(15, hour) for hour in range(24)}))
    slices = table.file_slices()
    assert len({one.partition_path for one in slices}) == len(slices) == 24


def test_fields_of_their_own_kinds(tmp_path: Path) -> None:
    given = at_moments(1, {"a": at(15), "b": at(15, 5), "c": at(16), "d": None})
    given = given.append_column("city", pa.array(["Oslo", "Rome", "Rome", None]))
    options = {key: BY_DAY[key] for key in BY_DAY if "keygenerator" not in key}
    kinds = ["city:SIMPLE", "ts:TIMESTAMP"]
    table = new_table(tmp_path, given, options, partition_by=kinds, ordering_field=None)
    days = ["Oslo/2024/01/15", "Rome/2024/01/15", "Rome/2024/01/16"]
    assert folders(tmp_path) == [*days, "__HIVE_DEFAULT_PARTITION__/1970/01/01"]
    table = hudi.Table.open(tmp_path)
    table.upsert(given.slice(1, 1).set_column(2, "n", pa.array([2])))
    table.delete_partitions(days[2:])
    assert {key: row[2] for key, row in content(table).items()} == {"a": 1, "b": 2, "d": 1}
    late = pc.field("ts") >= pa.scalar(at(15, 1), MOMENTS.field("ts").type)
    assert table.to_arrow(filter=late)["id"].to_pylist() == ["b"]


# --- options
@pytest.mark.parametrize(
    "options",
    [
        {},
        BY_DAY,
        {f"{PREFIX}output.timezone": "GMT"},
        {"hoodie.deltastreamer.keygen.timebased.output.dateformat": "yyyy/MM/dd"},
        {"hoodie.datasource.write.partitionpath.field": "ts"},
        {f"{PREFIX}timezone": "UTC"},
    ],
)
def test_a_table_is_opened_with_what_it_has(tmp_path: Path, options: dict[str, str]) -> None:
    new(tmp_path)
    table = hudi.Table.open(tmp_path, options=options)
    table.upsert(at_moments(1, {"a": at(15)}))
    assert folders(tmp_path) == ["2024/01/15"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("output.dateformat", "yyyy-MM-dd"),
        ("output.timezone", "Asia/Tokyo"),
        ("timezone", "Asia/Tokyo"),
        ("timestamp.type", "UNIX_TIMESTAMP"),
        ("timestamp.type", "SCALAR"),
    ],
)
def test_a_table_is_not_opened_with_anything_else(tmp_path: Path, key: str, value: str) -> None:
    new(tmp_path)
    with pytest.raises(OptionConflictError, match=key):
        hudi.Table.open(tmp_path, options={f"{PREFIX}{key}": value})


def test_a_table_that_does_not_say_how_is_told_by_the_options(tmp_path: Path) -> None:
    """Early releases of Hudi did not store it."""
    new(tmp_path).insert(at_moments(1, {"a": at(15)}))
    properties = tmp_path / ".hoodie" / "hoodie.properties"
    lines = properties.read_text().splitlines(keepends=True)
    properties.write_text("".join(line for line in lines if PREFIX not in line))

    with pytest.raises(HudiError, match=r"timestamp\.type.*missing"):
        hudi.Table.open(tmp_path).upsert(at_moments(2, {"a": at(15)}))
    assert hudi.Table.open(tmp_path).to_arrow().num_rows == 1
    with pytest.raises(UnsupportedTableError, match=r"time zone.*output\.timezone"):
        hudi.Table.open(tmp_path, options=BY_DAY).upsert(at_moments(2, {"a": at(15, 3)}))
    told = {**BY_DAY, f"{PREFIX}timezone": "UTC"}
    hudi.Table.open(tmp_path, options=told).upsert(at_moments(2, {"a": at(15, 3)}))
    assert content(hudi.Table.open(tmp_path)) == {"a": ("2024/01/15", at(15, 3), 2)}


def test_columns_that_are_no_moments_make_no_table(tmp_path: Path) -> None:
    for kind in ("UNIX_TIMESTAMP", "DATE_STRING"):
        wrong = {f"{PREFIX}timestamp.type": kind, f"{PREFIX}input.dateformat": "yyyy"}
        with pytest.raises(SchemaError, match="ts"):
            new(tmp_path / "t", **wrong)
    assert not (tmp_path / "t").exists()


# --- reading
def pruner(
    schema: pa.Schema, output: str, kind: str, **more: str
) -> tuple[PartitionPruner, pa.Schema]:
    return PartitionPruner(config(output, kind, **more), schema), schema


def config(output: str, kind: str, **more: str) -> TableConfig:
    changes = {"timestamp.type": kind, "output.dateformat": output}
    changes |= {key.replace("_", "."): more[key] for key in more}
    named = {"hoodie.table.name": "t", "hoodie.datasource.write.partitionpath.field": "ts"}
    return new_table_config(BY_DAY | named | {f"{PREFIX}{key}": changes[key] for key in changes})


def kept(
    found: tuple[PartitionPruner, pa.Schema], expression: pc.Expression, *paths: str
) -> list[str]:
    one, schema = found
    return list(one.keep([PartitionPath(path) for path in paths], to_filter(expression, schema)))


FOLDERS = ("1970/01/01", "2024/01/14", "2024/01/15", "2024/01/16")
NOON = round(at(15, 12).timestamp())


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (pc.field("ts") == NOON, FOLDERS[2:3]),
        (pc.field("ts") > NOON, FOLDERS[2:]),
        (pc.field("ts") >= NOON + 43_200, FOLDERS[3:]),
        (pc.field("ts") < NOON - 43_200, FOLDERS[:2]),
        (pc.field("ts") <= NOON - 43_200, FOLDERS[:3]),
        (pc.field("ts") != NOON, FOLDERS),
        (pc.field("ts").isin([NOON, 5]), (FOLDERS[0], FOLDERS[2])),
        (pc.field("ts").is_null(), FOLDERS[:1]),
        (~(pc.field("ts") >= NOON), FOLDERS[:3]),
        ((pc.field("ts") < 0) | (pc.field("ts") == NOON), FOLDERS[2:3]),
    ],
)
def test_days_outside_of_a_filter_go(expression: pc.Expression, expected: tuple[str, ...]) -> None:
    schema = pa.schema([("ts", pa.int64())])
    found = kept(pruner(schema, "yyyy/MM/dd", "UNIX_TIMESTAMP"), expression, *FOLDERS)
    assert found == list(expected)


@pytest.mark.parametrize(
    ("output", "paths", "expected"),
    [
        ("yyyy-MM-dd-HH", ("2024-01-15-11", "2024-01-15-12"), 1),
        ("yyyy-MM", ("2023-12", "2024-01"), 1),
        ("yyyy", ("2023", "2024"), 1),
        ("yyyy/DDD", ("2024/014", "2024/015"), 1),
        ("yyyyMMddHHmmss", ("20240115115959", "20240115120000"), 1),
        # what does not stand for one period, or is no path of the table, tells nothing
        ("yy-MM-dd", ("24-01-14", "24-01-15"), 2),
        ("MM-dd", ("01-14", "01-15"), 2),
        ("yyyy-M-d", ("2024-1-14", "2024-1-15"), 2),
        ("yyyy/MM/dd", ("2024/01/14x", "__HIVE_DEFAULT_PARTITION__"), 2),
        ("yyyy/MM/dd", ("2024/02/30", "55840/01/01"), 2),
    ],
)
def test_formats_that_tell_a_period(output: str, paths: tuple[str, str], expected: int) -> None:
    found = pruner(pa.schema([("ts", pa.int64())]), output, "UNIX_TIMESTAMP")
    assert len(kept(found, pc.field("ts") == NOON, *paths)) == expected


@pytest.mark.parametrize(
    ("arrow", "kind", "value", "expected"),
    [
        (pa.int32(), "UNIX_TIMESTAMP", NOON, 1),
        (pa.int64(), "EPOCHMILLISECONDS", NOON * 1000, 1),
        (pa.timestamp("us", "UTC"), "EPOCHMICROSECONDS", at(15, 12), 1),
        (pa.timestamp("us"), "EPOCHMICROSECONDS", at(15, 12).replace(tzinfo=None), 1),
        # the generator takes these, and a path tells nothing of them
        (pa.float64(), "UNIX_TIMESTAMP", float(NOON), 3),
        (pa.string(), "DATE_STRING", "2024-01-15", 3),
        # no writer of this project makes such paths
        (pa.timestamp("us", "UTC"), "UNIX_TIMESTAMP", at(15, 12), 3),
    ],
)
def test_types_of_which_paths_tell(
    arrow: pa.DataType, kind: str, value: Any, expected: int
) -> None:
    found = pruner(pa.schema([("ts", arrow)]), "yyyy/MM/dd", kind, input_dateformat="yyyy-MM-dd")
    assert len(kept(found, pc.field("ts") == pa.scalar(value, arrow), *FOLDERS[1:])) == expected


def test_a_date_column_is_of_one_day() -> None:
    schema = pa.schema([("ts", pa.date32())])
    found = pruner(schema, "yyyy-MM-dd", "SCALAR", timestamp_scalar_time_unit="DAYS")
    day = pa.scalar(dt.date(2024, 1, 15))
    days = ("2024-01-14", "2024-01-15", "2024-01-16")
    assert kept(found, pc.field("ts") == day, *days) == [days[1]]


def test_an_hour_that_is_there_twice() -> None:
    """Clocks of Berlin show it before and after they are set back."""
    berlin, schema = {"output_timezone": "Europe/Berlin"}, pa.schema([("ts", pa.int64())])
    found = pruner(schema, "yyyy-MM-dd-HH", "UNIX_TIMESTAMP", **berlin)
    hours = ("2024-10-27-01", "2024-10-27-02", "2024-10-27-03")
    for moment, hour in ((1729983600, 0), (1729987200, 1), (1729990800, 1), (1729994400, 2)):
        assert hours[hour] in kept(found, pc.field("ts") == moment, *hours)
    assert kept(found, pc.field("ts") < 1729980000, *hours) == []
    assert kept(found, pc.field("ts") >= 1729994400, *hours) == [hours[2]]


def test_many_partitions_of_a_table_are_left_out_before_they_are_listed(tmp_path: Path) -> None:
    table = new(tmp_path, **{"hoodie.metadata.enable": "false"})
    table.bulk_insert(at_moments(1, {f"{day}": at(day, 12) for day in range(1, 31)}))
    for gone in folders(tmp_path)[:20]:
        for file in (tmp_path / gone).glob("*.parquet"):
            file.unlink()  # a reader that looked there would fail

    found = table.to_arrow(filter=[("ts", ">", at(25))])
    assert sorted(found["id"].to_pylist()) == ["25", "26", "27", "28", "29", "30"]


# --- partition paths that are made of timestamps, and what their tables refuse and store
# --- numbers
BERLIN, TOKYO = {"output_zone": "Europe/Berlin"}, {"zone": "Asia/Tokyo"}
EAST = {"zone": "GMT+8:00"}
HOURS, GMT_DAYS = "yyyy-MM-dd-HH", {"zone": "GMT", "unit": "days"}
NUMBERS: dict[str, list[tuple[dict[str, str], str, int | None, str]]] = {
    "EPOCHMILLISECONDS": [
        # what Hudi's own tests expect
        (EAST, "yyyy-MM-dd hh", 1578283932000, "2020-01-06 12"),
        ({"zone": "GMT"}, "yyyy-MM-dd hh", 1578283932000, "2020-01-06 04"),
        (EAST, "yyyy-MM-dd hh", None, "1970-01-01 08"),
        ({}, "yyyy/MM/dd", -62_135_596_800_000, "0001/01/01"),
    ],
    "EPOCHMICROSECONDS": [
        (EAST, "yyyy-MM-dd hh", 1578283932123456, "2020-01-06 12"),
        # before 1970, where parts of a millisecond are dropped towards it
        ({}, "yyyy/MM/dd", -999, "1970/01/01"),
        ({}, "yyyy/MM/dd", -1000, "1969/12/31"),
        ({}, "yyyy-MM-dd HH.mm.ss.SSS", -1001, "1969-12-31 23.59.59.999"),
        # the last of the years 1 to 9999
        ({}, "yyyy-MM-dd HH", 253_402_300_799_999_999, "9999-12-31 23"),
    ],
    "SCALAR": [
        (GMT_DAYS, "yyyy-MM-dd hh", 20000, "2024-10-04 12"),
        (GMT_DAYS, "yyyy-MM-dd hh", None, "1970-01-02 12"),
        ({"zone": "GMT", **DAYS}, "yyyy-MM-dd", 18736, "2021-04-19"),
        ({}, "yyyy/MM/dd", 1705311000, "2024/01/15"),
        ({"unit": "NANOSECONDS"}, "ss.SSS", 1_999_999_999, "01.999"),
        ({"unit": "NANOSECONDS"}, "yyyy", -999_999, "1970"),
        ({"unit": "MINUTES"}, "yyyy/MM/dd/HH/mm", 61, "1970/01/01/01/01"),
        ({"unit": "hours"}, "yyyy/MM/dd/HH/mm", 25, "1970/01/02/01/00"),
        ({"unit": "HOURS"}, "yyyy-MM-dd HH", 70_389_527, "9999-12-31 23"),
        (DAYS, "yyyy-MM", 2_932_896, "9999-12"),
        (DAYS, "yyyy-DDD", -719_162, "0001-001"),
    ],
    "UNIX_TIMESTAMP": [
        ({}, "yyyy/MM/dd", 1705311000, "2024/01/15"),
        ({}, "yyyy/MM/dd/HH", -1, "1969/12/31/23"),
        ({}, "yyyy/MM/dd", -11_676_096_000, "1600/01/01"),
        # what clocks of a zone show at the ends of the years
        ({"zone": "GMT+9:00"}, "yyyy/MM/dd", 253_402_300_799, "10000/01/01"),
        (TOKYO, "EEE e DDD MMM yy xxxx-ww", 253_402_300_799, "Sat 6 001 Jan 00 9999-52"),
        ({"zone": "GMT-5:00"}, "yyyy/MM/dd", -62_135_596_800, "0000/12/31"),
        ({"zone": "GMT-5:00"}, "YYYY EEE", -62_135_596_800, "0001 Sun"),
        # zones with rules: an hour is there twice in Berlin's autumn
        (BERLIN, HOURS, 1729988999, "2024-10-27-02"),
        (BERLIN, HOURS, 1729992599, "2024-10-27-02"),
        (BERLIN, HOURS, 1711846800, "2024-03-31-03"),
        ({"output_zone": "GMT+05:30"}, "yyyy-MM-dd", 1705257000, "2024-01-15"),
        ({"output_zone": "GMT-0330"}, "yyyy-MM-dd", 1705289399, "2024-01-14"),
        ({"output_zone": "EST"}, "yyyy-MM-dd HH", 1719800000, "2024-06-30 22"),
        ({"input_zone": "Asia/Tokyo"}, "yyyy/MM/dd", 1705330800, "2024/01/15"),
    ],
}


@pytest.mark.parametrize(
    ("kind", "more", "output", "value", "path"),
    [(kind, *one) for kind, cases in NUMBERS.items() for one in cases],
)
def test_numbers(
    kind: str, more: dict[str, str], output: str, value: int | None, path: str
) -> None:
    assert paths(kind, output, [value], **more) == [path]


@pytest.mark.parametrize(
    ("output", "path"),
    [
        ("yyyyMMdd", "20240106"),
        ("yyyy-MM", "2024-01"),
        ("yyyy", "2024"),
        ("y/M/d", "2024/1/6"),
        ("YYYY", "2024"),
        ("yy", "24"),
        ("yyyyy", "02024"),
        ("'year='yyyy/'month='MM", "year=2024/month=01"),
        ("MMM yyyy", "Jan 2024"),
        ("MMMM", "January"),
        ("EEE", "Sat"),
        ("EEEE", "Saturday"),
        ("e", "6"),
        ("DDD", "006"),
        ("xxxx-'W'ww", "2024-W01"),
        ("HH kk KK hh a", "15 15 03 03 PM"),
        ("HH:mm:ss.S", "15:04:05.6"),
        ("SSSSS", "67800"),
        ("yyyy'T'", "2024T"),
        ("yyyy''MM", "2024'01"),
        ("yyyy'''x'", "2024'x"),
    ],
)
def test_letters_of_formats(output: str, path: str) -> None:
    moment = dt.datetime(2024, 1, 6, 15, 4, 5, 678_000, UTC)
    millis = round(moment.timestamp() * 1000)
    assert paths("EPOCHMILLISECONDS", output, [millis]) == [path]


def test_hours_at_midnight_and_noon() -> None:
    found = paths("UNIX_TIMESTAMP", "HH kk KK hh a", [0, 43_200])
    assert found == ["00 24 00 12 AM", "12 12 00 12 PM"]


MICROS, LAST = pa.timestamp("us", "UTC"), dt.datetime(2024, 1, 15, 23, 59, 59, 999_999, UTC)
NINE_IN_TOKYO = dt.datetime(2024, 1, 15, 15, tzinfo=UTC)
MONEY, LARGE = pa.decimal128(20, 4), Decimal("1578283932123456.9999")


@pytest.mark.parametrize(
    ("arrow", "kind", "more", "value", "path"),
    [
        (pa.int32(), "UNIX_TIMESTAMP", {}, 1705311000, "2024/01/15"),
        (pa.float64(), "UNIX_TIMESTAMP", {}, 1705311000.9, "2024/01/15"),
        (pa.float64(), "UNIX_TIMESTAMP", {}, -0.9, "1970/01/01"),
        (pa.float64(), "UNIX_TIMESTAMP", {}, float("nan"), "1970/01/01"),
        (pa.float32(), "SCALAR", DAYS, 19737.5, "2024/01/15"),
        (pa.float64(), "SCALAR", DAYS, None, "1970/01/02"),
        (MONEY, "EPOCHMICROSECONDS", {}, LARGE, "2020/01/06"),
        (MONEY, "SCALAR", DAYS, Decimal("-0.9999"), "1970/01/01"),
        (MONEY, "SCALAR", DAYS, None, "1970/01/02"),
        (pa.date32(), "SCALAR", DAYS, dt.date(1969, 12, 31), "1969/12/31"),
        (pa.date32(), "SCALAR", DAYS, dt.date(2024, 2, 29), "2024/02/29"),
        (pa.date32(), "SCALAR", DAYS, None, "1970/01/02"),
        (MICROS, "EPOCHMICROSECONDS", {}, LAST, "2024/01/15"),
        (pa.timestamp("us"), "EPOCHMICROSECONDS", {}, dt.datetime(2024, 1, 15), "2024/01/15"),  # noqa: DTZ001
        (pa.timestamp("us"), "SCALAR", {"unit": "MICROSECONDS"}, None, "1970/01/01"),
        (MICROS, "EPOCHMICROSECONDS", TOKYO, NINE_IN_TOKYO, "2024/01/16"),
    ],
)
def test_columns_of_other_types(
    arrow: pa.DataType, kind: str, more: dict[str, str], value: Any, path: str
) -> None:
    assert paths(kind, "yyyy/MM/dd", [value], arrow=arrow, **more) == [path]


# --- texts
IN_UTC, TO_MINUTES, TWELVE = {"output_zone": "UTC"}, "yyyy-MM-dd HH:mm", "yyyy-MM-dd hh:mm:ss"


@pytest.mark.parametrize(
    ("inputs", "more", "output", "value", "path"),
    [
        # what Hudi's own tests expect
        (TWELVE, EAST, "yyyy-MM-dd hh", "2020-01-06 12:12:12", "2020-01-06 12"),
        (TWELVE, {"zone": "GMT"}, TWELVE, None, "1970-01-01 12:00:00"),
        (ISO, IN_UTC, "yyyyMMddHH", "2020-04-01T13:01:33.428Z", "2020040113"),
        (ISO, IN_UTC, "yyyyMMddHH", "2020-04-01T13:01:33Z", "2020040113"),
        (ISO, IN_UTC, "yyyyMMddHH", "2020-04-01T13:01:33-05:00", "2020040118"),
        (ISO, IN_UTC, "yyyyMMddHH", "2020-04-01T13:01:33.123-05:00", "2020040118"),
        (ISO, {"output_zone": "EST"}, "yyyyMMddHH", "2020-04-01T13:01:33.123Z", "2020040109"),
        (f"{ISO},yyyyMMdd", {"input_zone": "UTC"}, "MM/dd/yyyy", "20200401", "04/01/2020"),
        # offsets, in all their forms
        (ISO, {}, "HH:mm", "2020-04-01T13:01:33+0530", "07:31"),
        (ISO, {}, "HH:mm", "2020-04-01T13:01:33+05", "08:01"),
        (ISO, {}, "HH:mm", "2020-04-01T13:01:33z", "13:01"),
        (ISO, {}, "HH:mm", "2020-04-01t13:01:33Z", "13:01"),
        (ISO, {"input_zone": "Asia/Tokyo"}, "HH:mm", "2020-04-01T13:01:33Z", "13:01"),
        # zones of what has no offset
        (TO_MINUTES, {"input_zone": "Asia/Tokyo"}, HOURS, "2024-01-15 08:30", "2024-01-14-23"),
        (TO_MINUTES, TOKYO, HOURS, "2024-01-15 08:30", "2024-01-15-08"),
        (TO_MINUTES, {"input_zone": "Europe/Berlin"}, "HH", "2024-10-27 02:30", "00"),
        # fields with fewer digits, and fields that are not there
        ("yyyy-MM-dd", {}, "yyyy/MM/dd", "2024-1-5", "2024/01/05"),
        ("yyyy-MM", {}, "yyyy/MM/dd", "2024-03", "2024/03/01"),
        ("yyyy", {}, "yyyy/MM/dd HH:mm", "2024", "2024/01/01 00:00"),
        ("yyyyDDD", {}, "yyyy/MM/dd", "2024060", "2024/02/29"),
        ("d MMM yyyy", {}, "yyyy/MM/dd", "5 sep 2024", "2024/09/05"),
        ("d MMMM yyyy", {}, "yyyy/MM/dd", "5 September 2024", "2024/09/05"),
        ("yyyy-MM-dd hh:mm a", {}, "HH:mm", "2024-01-05 12:30 pm", "12:30"),
        ("yyyy-MM-dd hh:mm a", {}, "HH:mm", "2024-01-05 12:30 AM", "00:30"),
        ("yyyy-MM-dd KK a", {}, "HH", "2024-01-05 00 PM", "12"),
        ("yyyy-MM-dd kk", {}, "HH", "2024-01-05 24", "00"),
        ("yyyy-MM-dd HH:mm:ss.SSSSSS", {}, "SSS", "2024-01-05 01:02:03.9876", "987"),
        ("yyyy-MM-dd HH:mm:ss.S", {}, "SSS", "2024-01-05 01:02:03.9", "900"),
        # the first that fits
        ("yyyy-MM-dd;dd.MM.yyyy", {"delimiter": ";"}, "yyyy/MM/dd", "05.01.2024", "2024/01/05"),
        ("yyyy-MM-dd|dd.MM.yyyy", {"delimiter": "\\|"}, "yyyy/MM/dd", "05.01.2024", "2024/01/05"),
        ("yyyy-MM-dd, dd.MM.yyyy", {}, "yyyy/MM/dd", "05.01.2024", "2024/01/05"),
        # the ends of the years that dates have, also where clocks elsewhere show others
        ("yyyy-MM-dd", {}, "yyyy/MM/dd", "9999-12-31", "9999/12/31"),
        ("yyyy-MM-dd", {}, "yyyy", "0001-01-01", "0001"),
        ("yyyy-MM-dd", TOKYO, "yyyy/MM/dd", "0001-01-01", "0001/01/01"),
        (HOURS, {"zone": "America/New_York"}, "yyyy/MM/dd", "9999-12-31-23", "9999/12/31"),
        (ISO, IN_UTC, "yyyy/MM/dd", "9999-12-31T23:59:59-05:00", "10000/01/01"),
        # no text
        ("yyyy-MM-dd", {}, "yyyy/MM/dd", None, "1970/01/01"),
        ("yyyy-MM-dd'T'HH:mmZ", {"output_zone": "Asia/Tokyo"}, HOURS, None, "1970-01-01-09"),
    ],
)
def test_texts(
    inputs: str, more: dict[str, str], output: str, value: str | None, path: str
) -> None:
    assert paths("DATE_STRING", output, [value], inputs=inputs, **more) == [path]
    assert paths("MIXED", output, [value], inputs=inputs, **more) == [path]


def test_texts_of_several_forms_in_one_batch() -> None:
    values = ["2024-01-05", None, "20240105", "2024-01-05T23:00:00-05:00", "2024-01-05"]
    found = paths("MIXED", "dd", values, inputs=f"yyyyMMdd,yyyy-MM-dd,{ISO}")
    assert found == ["05", "01", "05", "06", "05"]


def test_without_any_zone_a_text_keeps_its_own_offset() -> None:
    """As Hudi has it for the tables that it made; new tables store their zones."""
    given = options("DATE_STRING", "yyyy-MM-dd HH", inputs=ISO)
    config = stored_config({**properties_of(new_table_config(given))})
    stored = {
        name: value
        for name, value in properties_of(config).items()
        if not name.endswith("timezone") or name == "hoodie.table.timeline.timezone"
    }

    old = of_config(stored_config(stored), pa.string())
    value = "2020-04-01T23:01:33-05:00"
    assert made(old, [value], pa.string()) == ["2020-04-01 23"]
    assert made(of_config(config, pa.string()), [value], pa.string()) == ["2020-04-02 04"]


# --- paths
def test_hive_style_and_escaped_paths() -> None:
    hive = {"hoodie.datasource.write.hive_style_partitioning": "true"}
    escaped = {"hoodie.datasource.write.partitionpath.urlencode": "true"}

    assert paths("SCALAR", "yyyy/MM/dd", [19737], **DAYS, **hive) == ["ts=2024/01/15"]
    assert paths("SCALAR", "yyyy/MM/dd", [19737], **DAYS, **escaped) == ["2024%2F01%2F15"]
    both = paths("SCALAR", "yyyy/MM/dd", [19737], **DAYS, **hive, **escaped)
    assert both == ["ts=2024%2F01%2F15"]


def test_each_path_is_in_the_dictionary_once() -> None:
    keygen = generator(options("UNIX_TIMESTAMP", "EEE"), pa.int64())
    days = range(0, 15 * 86_400, 86_400)
    batch = pa.record_batch({"id": ["a"] * 15, "ts": days, "city": [None] * 15})
    found = keygen.partition_paths(batch)
    assert len(found.dictionary) == 7
    assert found.to_pylist()[:7] == found.to_pylist()[7:14]
    assert keygen.record_keys(batch).to_pylist() == ["a"] * 15


def test_a_batch_without_rows() -> None:
    for kind, more in (("UNIX_TIMESTAMP", {}), ("DATE_STRING", {"inputs": "yyyy"})):
        assert paths(kind, "yyyy", [], **more) == []


def custom(fields: str, keys: str = "id", **more: str) -> TableConfig:

    changes = {"keygenerator.type": "CUSTOM", "partitionpath.field": fields}
    named = {f"{WRITE}{name}": text for name, text in (changes | {"recordkey.field": keys}).items()}
    return new_table_config({**options("UNIX_TIMESTAMP", "yyyy/MM/dd", **more), **named})


@pytest.mark.parametrize(
    ("fields", "hive", "path"),
    [
        ("city:SIMPLE,ts:TIMESTAMP", "false", "Oslo/2024/01/15"),
        ("ts:timestamp,city:simple", "false", "2024/01/15/Oslo"),
        ("city:SIMPLE,ts:TIMESTAMP", "true", "city=Oslo/ts=2024/01/15"),
        ("ts:TIMESTAMP", "false", "2024/01/15"),
        ("city:SIMPLE", "false", "Oslo"),
        ("city:SIMPLE,ts:SIMPLE", "false", "Oslo/1705311000"),
    ],
)
def test_paths_of_fields_of_their_own_kinds(fields: str, hive: str, path: str) -> None:
    config = custom(fields, **{"hoodie.datasource.write.hive_style_partitioning": hive})
    assert made(of_config(config, pa.int64()), [1705311000], pa.int64()) == [path]


def test_a_field_without_a_value_has_its_own_folder_or_that_of_1970() -> None:
    some = {"id": ["a"], "ts": pa.nulls(1, pa.int64()), "city": pa.nulls(1, "str")}
    keygen = of_config(custom("city:SIMPLE,ts:TIMESTAMP"), pa.int64())
    found = keygen.partition_paths(pa.record_batch(some))
    assert found.to_pylist() == ["__HIVE_DEFAULT_PARTITION__/1970/01/01"]


def test_keys_of_a_custom_generator() -> None:
    batch = pa.record_batch({"id": ["a"], "ts": [0], "city": ["Oslo"]})
    one = custom("ts:TIMESTAMP")
    two = custom("ts:TIMESTAMP", keys="id,city")

    assert of_config(one, pa.int64()).record_keys(batch).to_pylist() == ["a"]
    assert of_config(two, pa.int64()).record_keys(batch).to_pylist() == ["id:a,city:Oslo"]
    assert (bare_key_field(one), bare_key_field(two)) == ("id", None)


# --- what is refused
FLOAT_DAYS, TO_DAYS = {"unit": "DAYS", "arrow": pa.float64()}, {"inputs": "yyyy-MM-dd"}
IN_BERLIN = {"inputs": TO_MINUTES, "input_zone": "Europe/Berlin"}
SKIPPED = "'2024-03-31 02:30', which clocks of Europe/Berlin skip"


@pytest.mark.parametrize(
    ("kind", "more", "value", "words"),
    [
        ("UNIX_TIMESTAMP", {}, 1_705_311_000_000, "1705311000000.*ts.*1 to 9999.*seconds"),
        ("UNIX_TIMESTAMP", {}, 2**63 - 1, "years 1 to 9999"),
        ("EPOCHMILLISECONDS", {}, -62_135_596_800_001, "years 1 to 9999"),
        ("SCALAR", DAYS, 3_000_000, "counted in days"),
        ("SCALAR", FLOAT_DAYS, 1e300, "years 1 to 9999"),
        ("SCALAR", FLOAT_DAYS, float("inf"), "years 1 to 9999"),
        ("SCALAR", {"arrow": pa.decimal128(38, 0)}, Decimal(10**30), "too large for a timestamp"),
        ("DATE_STRING", TO_DAYS, "", "''.*not of the format 'yyyy-MM-dd'"),
        ("DATE_STRING", TO_DAYS, "2024-01-05 ", "not of the format"),
        ("DATE_STRING", TO_DAYS, "2024-02-30", "'2024-02-30', which is no date"),
        ("DATE_STRING", TO_DAYS, "2024-13-01", "which is no date"),
        ("DATE_STRING", TO_DAYS, "0-01-01", "which is no date"),
        ("DATE_STRING", {"inputs": "yyyyDDD"}, "2023366", "which is no date"),
        ("DATE_STRING", {"inputs": "yyyyMMdd"}, "202410", "not of the format"),
        ("DATE_STRING", {"inputs": "yyyy HH"}, "2024 24", "which is no date"),
        ("EPOCHMICROSECONDS", {}, 253_402_300_800_000_000, "years 1 to 9999"),
        ("EPOCHMICROSECONDS", {}, -62_135_596_800_000_001, "years 1 to 9999"),
        ("SCALAR", DAYS, 2_932_897, "years 1 to 9999"),
        ("SCALAR", DAYS, -719_163, "years 1 to 9999"),
        ("DATE_STRING", IN_BERLIN, "2024-03-31 02:30", SKIPPED),
    ],
)
def test_values_that_are_no_time(kind: str, more: dict[str, Any], value: Any, words: str) -> None:
    with pytest.raises(PartitionValueError, match=words):
        paths(kind, "yyyy/MM/dd", [None, value], **more)


@pytest.mark.parametrize(
    ("kind", "arrow", "words"),
    [
        ("UNIX_TIMESTAMP", pa.string(), r"ts \(string\) are no numbers.*type=DATE_STRING"),
        ("UNIX_TIMESTAMP", pa.bool_(), r"ts \(bool\) are no numbers"),
        ("UNIX_TIMESTAMP", pa.time64("us"), r"ts \(time64\[us\]\) are no numbers"),
        ("UNIX_TIMESTAMP", pa.timestamp("us", "UTC"), "count MICROSECONDS, not SECONDS.*SCALAR"),
        ("EPOCHMILLISECONDS", pa.timestamp("us"), "time.unit=MICROSECONDS"),
        ("UNIX_TIMESTAMP", pa.date32(), "count DAYS, not SECONDS"),
        ("DATE_STRING", pa.int64(), r"ts \(int64\) are no strings"),
        ("MIXED", pa.date32(), r"ts \(date32\[day\]\) are no strings"),
    ],
)
def test_columns_that_do_not_fit_the_kind(kind: str, arrow: pa.DataType, words: str) -> None:
    config = new_table_config(options(kind, "yyyy", inputs="yyyy"))
    schema = TableSchema.create(pa.schema([("id", pa.string()), ("ts", arrow)]))
    with pytest.raises(SchemaError, match=words):
        require_key_columns(config, schema)
    if not pa.types.is_string(arrow):
        with pytest.raises(SchemaError, match=words):
            key_generator(config, schema)


def test_numbers_that_became_texts_are_taken_in_tables_that_are_there() -> None:
    """Spark SQL turns the column into texts when it updates rows of such a table."""
    values = ["1705311000", None, "-1"]
    found = paths("UNIX_TIMESTAMP", "yyyy/MM/dd", values, arrow=pa.string())
    assert found == ["2024/01/15", "1970/01/01", "1969/12/31"]
    for wrong in ("2024-01-15", "", "1.5", "9" * 19):
        with pytest.raises(PartitionValueError, match=f"'{wrong}'.*is no number"):
            paths("UNIX_TIMESTAMP", "yyyy", [None, wrong], arrow=pa.string())


WRITE = "hoodie.datasource.write."


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        *(
            ({f"{PREFIX}output.dateformat": text}, words)
            for text, words in (
                ("", "output.dateformat=None .*missing"),
                ("yyyy/QQ", "letter 'Q'"),
                ("yyyyZ", "letter 'Z'"),
                ("yyyy'T", "quote .* not closed"),
                ("--", "has no field"),
                ("y" * 257, "at most 256"),
            )
        ),
        *(
            ({f"{PREFIX}output.timezone": text}, "no such time zone")
            for text in ("Mars/Base", "../../etc/passwd", "America", "+08:00")
        ),
        ({f"{PREFIX}timestamp.type": "NANOS"}, "none of UNIX_TIMESTAMP, "),
        ({f"{PREFIX}timestamp.type": "DATE_STRING"}, "input.dateformat=None .*missing"),
        ({f"{PREFIX}timezone": "GMT+24:00"}, "less than a day"),
        ({"hoodie.keygen.datetime.parser.class": "com.example.Parser"}, "no class is loaded"),
        ({f"{WRITE}recordkey.field": "id,city"}, "2 record key"),
        ({f"{WRITE}partitionpath.field": "ts,city"}, "2 partition fields"),
    ],
)
def test_settings_that_cannot_be_used(changes: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidOptionError, match=words):
        new_table_config({**options("UNIX_TIMESTAMP", "yyyy"), **changes})


def test_units_and_delimiters_that_cannot_be_used() -> None:
    with pytest.raises(InvalidOptionError, match="Supported: NANOSECONDS"):
        new_table_config(options("SCALAR", "yyyy", unit="WEEKS"))
    with pytest.raises(InvalidOptionError, match="single character"):
        new_table_config(options("DATE_STRING", "yyyy", delimiter="(a+)+$"))


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        *(("MM-dd", "no year"), ("yy-MM-dd", "two digits"), ("yyyy yyyy", "twice")),
        *(("yyyy ZZZ", "names of zones"), ("yyyy EEE", "letter 'E'")),
        ("yyyy-MM-dd,", "has no field"),
    ],
)
def test_formats_that_cannot_be_read(inputs: str, words: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"input.dateformat.*{words}"):
        new_table_config(options("DATE_STRING", "yyyy", inputs=inputs))


# --- what is stored
def test_a_table_stores_what_hudi_stores_and_its_zones() -> None:
    given = options("SCALAR", "yyyy/MM/dd", unit="days", output_zone="GMT+8")
    old = "hoodie.deltastreamer.keygen"
    for each in (given, {name.replace("hoodie.keygen", old): given[name] for name in given}):
        stored = properties_of(new_table_config(each))
        assert {name: stored[name] for name in stored if name.startswith(PREFIX)} == {
            f"{PREFIX}timestamp.type": "SCALAR",
            f"{PREFIX}timestamp.scalar.time.unit": "days",
            f"{PREFIX}output.dateformat": "yyyy/MM/dd",
            f"{PREFIX}output.timezone": "Etc/GMT-8",
            f"{PREFIX}input.timezone": "UTC",
        }
        assert stored["hoodie.table.keygenerator.type"] == "TIMESTAMP"
        again = stored_config(stored)
        assert again.time_based == new_table_config(each).time_based
        assert properties_of(again) == stored


def test_a_custom_generator_stores_its_fields_with_their_types() -> None:
    stored = properties_of(custom("city:simple, ts:Timestamp"))
    assert stored["hoodie.table.partition.fields"] == "city:SIMPLE,ts:TIMESTAMP"
    again = stored_config(stored)
    assert again.partition_fields == ("city", "ts")
    assert again.partition_types == ("SIMPLE", "TIMESTAMP")
    assert again == custom("city:SIMPLE,ts:TIMESTAMP")


def test_a_table_that_is_not_understood_is_read_and_not_written() -> None:
    stored = properties_of(new_table_config(options("UNIX_TIMESTAMP", "yyyy/MM/dd")))
    stored[f"{PREFIX}output.dateformat"] = "yyyy/QQ"
    config = stored_config(stored)

    assert config.time_based is None
    require_readable_table(config, "t")
    with pytest.raises(HudiError, match="letter 'Q'"):
        require_writable_table(config, "t")
    with pytest.raises(InvalidOptionError, match="does not record how"):
        of_config(config, pa.int64())


EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MILLI = dt.timedelta(milliseconds=1)
DAY = 86_400_000
ZONES = (
    "UTC",
    "America/New_York",
    "America/St_Johns",  # at one minute past midnight
    "America/Sao_Paulo",  # at midnight
    "Africa/Monrovia",  # 44 minutes and 30 seconds behind until 1972
    "Asia/Kolkata",
    "Australia/Lord_Howe",  # half an hour of summer time
    "Pacific/Apia",  # skipped a day
    "Africa/Casablanca",  # four changes a year
)


def offset(moment: dt.datetime) -> int:
    return (moment.utcoffset() or dt.timedelta(0)) // MILLI


@pytest.mark.takes_turns
@pytest.mark.parametrize("name", ZONES)
def test_days_on_which_clocks_are_changed(name: str) -> None:
    zone = ZoneInfo(name)
    days = [EPOCH + dt.timedelta(days=each) for each in range(-5_000, 29_000)]
    offsets = [offset(day.astimezone(zone)) for day in days]
    changed = [days[at] for at in range(len(days) - 1) if offsets[at] != offsets[at + 1]]
    steps = [dt.timedelta(minutes=40 * each) for each in range(-36, 72)]
    some = [day + step for day in changed for step in steps]
    timestamps = np.array([(each - EPOCH) // MILLI for each in some], np.int64)

    assert to_local_millis(timestamps, name).tolist() == [
        int(moment) + offset(each.astimezone(zone))
        for each, moment in zip(some, timestamps, strict=True)
    ]
    for last, choose in ((False, max), (True, min)):
        shifts = [
            choose(offset(each.replace(tzinfo=zone, fold=fold)) for fold in (0, 1)) for each in some
        ]
        assert to_utc_millis(timestamps, name, last=last).tolist() == (timestamps - shifts).tolist()


@pytest.mark.parametrize(("name", "hours"), [("Etc/GMT-5", 5), ("+05:00", 5), ("-03:00", -3)])
def test_zones_without_rules(name: str, hours: int) -> None:
    timestamps = np.array([-(2**53), -1, 0, 2**53], np.int64)
    assert (to_local_millis(timestamps, name) - timestamps).tolist() == [hours * 3_600_000] * 4
    assert (timestamps - to_utc_millis(timestamps, name)).tolist() == [hours * 3_600_000] * 4


@pytest.mark.parametrize("year", [-20_000, 0, 12_000])
def test_years_that_datetime_does_not_know(year: int) -> None:
    """Record keys of timestamps have no bound."""
    summer = np.datetime64(f"{year:05}-07-01", "ms").astype(np.int64)
    (shown,) = to_local_millis(np.array([summer]), "Europe/Berlin")
    assert abs(shown - summer) < DAY
