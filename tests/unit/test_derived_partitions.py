"""Tables whose partitions are periods of a moment: what writes do to them, and what reads leave
out."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_core as hudi
from hudi_core.config.stored_table import new_table_config
from hudi_core.config.table import TableConfig
from hudi_core.errors import (
    HudiError,
    OptionConflictError,
    PartitionValueError,
    SchemaError,
    UnknownPartitionError,
    UnsupportedTableError,
)
from hudi_core.model.files import PartitionPath
from hudi_core.read.filters import to_filter
from hudi_core.read.partition_pruning import PartitionPruner
from tests.tables import new_table, pairs, rows

PREFIX = "hoodie.keygen.timebased."
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


DAYS = ("1970/01/01", "2024/01/14", "2024/01/15", "2024/01/16")
NOON = round(at(15, 12).timestamp())


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (pc.field("ts") == NOON, DAYS[2:3]),
        (pc.field("ts") > NOON, DAYS[2:]),
        (pc.field("ts") >= NOON + 43_200, DAYS[3:]),
        (pc.field("ts") < NOON - 43_200, DAYS[:2]),
        (pc.field("ts") <= NOON - 43_200, DAYS[:3]),
        (pc.field("ts") != NOON, DAYS),
        (pc.field("ts").isin([NOON, 5]), (DAYS[0], DAYS[2])),
        (pc.field("ts").is_null(), DAYS[:1]),
        (~(pc.field("ts") >= NOON), DAYS[:3]),
        ((pc.field("ts") < 0) | (pc.field("ts") == NOON), DAYS[2:3]),
    ],
)
def test_days_outside_of_a_filter_go(expression: pc.Expression, expected: tuple[str, ...]) -> None:
    schema = pa.schema([("ts", pa.int64())])
    found = kept(pruner(schema, "yyyy/MM/dd", "UNIX_TIMESTAMP"), expression, *DAYS)
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
    assert len(kept(found, pc.field("ts") == pa.scalar(value, arrow), *DAYS[1:])) == expected


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
