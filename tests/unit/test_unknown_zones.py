"""Tables of Hudi that do not tell in which zone their partitions were made of timestamps."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_core as hudi
from hudi_core.config.stored_table import new_table_config, properties_of, stored_config
from hudi_core.config.table import TableConfig
from hudi_core.config.time_zone import time_zone
from hudi_core.config.timebased import TimeUnit
from hudi_core.errors import InvalidOptionError, OptionConflictError, UnsupportedTableError
from hudi_core.keygen.timestamp import counts_of
from hudi_core.model.files import PartitionPath
from hudi_core.read.filters import to_filter
from hudi_core.read.partition_pruning import PartitionPruner
from tests.tables import new_table

PREFIX = "hoodie.keygen.timebased."
ZONE = f"{PREFIX}output.timezone"
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("n", pa.int64())])
BY_DAY = {
    "hoodie.datasource.write.keygenerator.type": "TIMESTAMP",
    f"{PREFIX}timestamp.type": "EPOCHMILLISECONDS",
    f"{PREFIX}output.dateformat": "yyyy/MM/dd",
}
EVENING = 1_704_121_200_000
"""2024-01-01T15:00:00Z, when it is the 2nd in Tokyo."""


def rows(n: int) -> pa.Table:
    return pa.table({"id": ["k"], "ts": [EVENING], "n": [n]}, schema=SCHEMA)


def of_tokyo(path: Path) -> None:
    """Make a table as Hudi does in a process in Tokyo, which stores no zone."""
    options = {**BY_DAY, ZONE: "Asia/Tokyo"}
    new_table(path, rows(1), options, partition_by="ts", ordering_field=None)
    properties = path / ".hoodie" / "hoodie.properties"
    lines = properties.read_text().splitlines(keepends=True)
    kept = [line for line in lines if not (PREFIX in line and "timezone" in line)]
    assert len(kept) == len(lines) - 2
    properties.write_text("".join(kept))


def test_rows_are_not_written_in_a_zone_that_nobody_told(tmp_path: Path) -> None:
    of_tokyo(tmp_path)
    unknown = hudi.Table.open(str(tmp_path))
    for write in (unknown.upsert, unknown.insert, unknown.delete):
        with pytest.raises(UnsupportedTableError, match=rf"time zone.*Set {ZONE} to the zone"):
            write(rows(2))
    assert unknown.to_arrow()["n"].to_pylist() == [1]


@pytest.mark.parametrize("key", [ZONE, f"{PREFIX}timezone"])
def test_the_zone_is_told_with_the_write(tmp_path: Path, key: str) -> None:
    of_tokyo(tmp_path)
    table = hudi.Table.open(str(tmp_path), options={key: "Asia/Tokyo"})
    for n in (2, 3):
        table.upsert(rows(n))
    found = hudi.Table.open(str(tmp_path)).to_arrow()
    assert found["n"].to_pylist() == [3]
    assert found["_hoodie_partition_path"].to_pylist() == ["2024/01/02"]
    with pytest.raises(OptionConflictError, match="dateformat"):
        hudi.Table.open(str(tmp_path), options={f"{PREFIX}output.dateformat": "yyyy"})


def unknown_config(kind: str, **more: str) -> TableConfig:
    given = {
        **BY_DAY,
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "ts",
        f"{PREFIX}timestamp.type": kind,
        **{f"{PREFIX}{name.replace('_', '.')}": more[name] for name in more},
    }
    stored = properties_of(new_table_config(given))
    return stored_config(
        {name: stored[name] for name in stored if PREFIX not in name or "timezone" not in name}
    )


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("UNIX_TIMESTAMP", ["1969/12/31", "1970/01/01"]),
        ("EPOCHMILLISECONDS", ["1969/12/31", "1970/01/01"]),
        ("EPOCHMICROSECONDS", ["1969/12/31", "1970/01/01"]),
        ("SCALAR", ["1970/01/01", "1970/01/02"]),
    ],
)
def test_nulls_may_be_in_the_partition_of_any_zone(kind: str, expected: list[str]) -> None:
    """Hudi has them on the last day of 1969 where it runs in New York."""
    config = unknown_config(kind, timestamp_scalar_time_unit="DAYS")
    schema = pa.schema([("ts", pa.int64())])
    pruner = PartitionPruner(config, schema)
    paths = [f"19{day}" for day in ("69/12/30", "69/12/31", "70/01/01", "70/01/02", "70/01/03")]
    found = pruner.keep(
        [PartitionPath(path) for path in paths], to_filter(pc.field("ts").is_null(), schema)
    )
    assert set(expected) <= set(found) < set(paths)
    assert paths[0] not in found
    assert paths[4] not in found


def test_texts_that_all_have_an_offset_need_no_zone() -> None:
    needed = {
        formats: how.needs_zone.key if how.needs_zone else None
        for formats in ("yyyy-MM-dd HH Z", "yyyy-MM-dd HH Z,yyyy-MM-dd")
        if (how := unknown_config("DATE_STRING", input_dateformat=formats).time_based)
    }
    assert list(needed.values()) == [None, f"{PREFIX}input.timezone"]


@pytest.mark.parametrize(
    "name", ["localtime", "posixrules", "Factory", "posix/Europe/Paris", "right/Europe/Paris"]
)
def test_names_that_mean_no_zone_of_their_own(name: str) -> None:
    with pytest.raises(ValueError, match="no such time zone"):
        time_zone(name)
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "ts",
        **BY_DAY,
        ZONE: name,
    }
    with pytest.raises(InvalidOptionError, match=r"output\.timezone.*no such time zone"):
        new_table_config(options)
    assert time_zone("Europe/Paris") == "Europe/Paris"


@pytest.mark.parametrize(("unit", "parts"), [("MICROSECONDS", 1000), ("NANOSECONDS", 1_000_000)])
@pytest.mark.parametrize("milli", [-86_400_000, -1, 0, 1, 86_400_000])
def test_bounds_hold_for_writers_that_floor_and_that_truncate(
    unit: str, parts: int, milli: int
) -> None:
    one = pa.array([milli]).to_numpy()
    (low,), (high,) = counts_of(one, one + 1, TimeUnit(unit))
    near = range(milli * parts - parts, milli * parts + parts + 1, max(parts // 1000, 1))
    ends = (milli * parts + sign * (parts - 1) for sign in (-1, 1))
    for number in (*near, *ends):
        truncated = -(-number // parts) if number < 0 else number // parts
        if milli in (number // parts, truncated):
            assert low <= number <= high
