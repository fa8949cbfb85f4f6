"""Partitions in a Hive metastore follow those of the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import (
    PartitionValueError,
)
from hudi_core.sync.result import EntryChange
from tests.metastore_calls import recorded
from tests.samples import IS_WHOLE, sampled
from tests.unit.sync_hive.hive_tables import Lake, new_table, trips, types

MANY = 1000 if IS_WHOLE else 500

# --- partitions ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "sizes"),
    sampled(
        [
            (260, [10, 20, 40, 80, 100, 10]),
            (MANY, [10, 20, 40, 80, *[100] * ((MANY - 200) // 100), 50]),
        ],
        2,
    ),
)
def test_many_partitions(lake: Lake, tmp_path: Path, count: int, sizes: list[int]) -> None:
    days = [f"d{number:04d}" for number in range(count)]
    table = new_table(tmp_path, days)
    with recorded(lake.service) as recorder:
        uri: dict[str, Any] = {"metastore.uris": recorder.uri}
        done = lake.sync(table, batch_num=90, **uri)
        assert done.entries[0].added == tuple(days)
        added = [n for method, n in recorder.asked if method == "add_partitions_req"]
        assert added == [*[90] * (count // 90), count % 90]
        recorder.asked.clear()
        assert lake.ids("trips", recorder.uri) == list(range(count))
        asked_for = [n for method, n in recorder.asked if method == "get_partitions_by_names"]
        assert asked_for == sizes

        # later syncs cost what changed
        table.insert(trips([2000], ["new"]))
        table.delete_partitions(["d0001", "d0002"])
        recorder.asked.clear()
        [entry] = lake.sync(table, **uri).entries
        assert (entry.added, entry.changed, entry.dropped) == (("new",), (), ("d0001", "d0002"))
        assert not entry.compares_all
        asked = [call for call in recorder.asked if call[1]]
        assert asked == [
            ("get_partitions_by_names", 3),
            ("add_partitions_req", 1),
            ("drop_partitions_req", 2),
        ]
        recorder.asked.clear()
        assert lake.sync(table, **uri).is_up_to_date
        assert not [call for call in recorder.asked if call[1]]
        assert "alter_table_with_environment_context" not in dict(recorder.asked)

        # a column more is one of every partition
        table.alter(add_columns={"tip": pa.int32()})
        [entry] = lake.sync(table, **uri).entries
        assert entry.columns == ("tip int added",)
    partitions = lake.partitions("trips")
    assert len(partitions) == count - 1
    assert types(partitions["day=new"].sd.cols)[-1] == ("tip", "int")
    assert types(lake.entry("trips").sd.cols)[-1] == ("tip", "int")
    wanted = [*range(count), 2000]
    assert lake.ids("trips") == [one for one in wanted if one not in (1, 2)]


def test_a_rollback_and_a_restore_take_partitions_back(lake: Lake, tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.savepoint()
    lake.sync(table)
    later = table.insert(trips([5], ["c"]))
    lake.sync(table)
    assert sorted(lake.partitions("trips")) == ["day=a", "day=b", "day=c"]
    table.rollback(later.instant)
    [entry] = lake.sync(table).entries
    assert (entry.dropped, entry.compares_all) == (("c",), False)
    table.insert(trips([6], ["d"]))
    table.delete_partitions(["a"])
    lake.sync(table)
    assert sorted(lake.partitions("trips")) == ["day=b", "day=d"]
    table.restore(table.savepoints[0].instant)
    [entry] = lake.sync(table).entries
    assert (entry.added, entry.dropped, entry.compares_all) == (("a",), ("d",), True)
    assert lake.ids("trips") == [0, 1]


@pytest.mark.parametrize("operation", ["delete_partitions", "insert_overwrite_table"])
def test_a_rollback_of_a_replacement_brings_partitions_back(
    lake: Lake, tmp_path: Path, operation: str
) -> None:
    table = new_table(tmp_path)
    lake.sync(table)
    if operation == "delete_partitions":
        later = table.delete_partitions(["a"])
    else:
        later = table.insert_overwrite_table(trips([7], ["b"]))
    lake.sync(table)
    assert sorted(lake.partitions("trips")) == ["day=b"]
    table.rollback(later.instant)
    assert lake.sync(table).entries[0].added == ("a",)
    assert lake.ids("trips") == [0, 1]


def test_a_partition_that_came_and_went_between_two_syncs(lake: Lake, tmp_path: Path) -> None:
    table = new_table(tmp_path)
    lake.sync(table)
    table.insert(trips([5], ["c"]))
    table.delete_partitions(["c"])
    [entry] = lake.sync(table).entries
    assert (entry.added, entry.changed, entry.dropped) == ((), (), ())
    assert sorted(lake.partitions("trips")) == ["day=a", "day=b"]


def test_all_partitions_are_compared_where_the_timeline_has_moved_on(
    lake: Lake, tmp_path: Path
) -> None:
    keeps: dict[str, Any] = {"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3}
    keeps |= {"hoodie.cleaner.commits.retained": 1}
    table = new_table(tmp_path, **keeps)
    lake.sync(table)
    for number in range(10):
        table.insert(trips([10 + number], [f"n{number}"]))
    [entry] = lake.sync(table).entries
    assert entry.compares_all
    assert len(entry.added) == 10
    assert len(lake.partitions("trips")) == 12


def test_entries_that_others_changed_are_set_right_by_a_full_sync(
    lake: Lake, tmp_path: Path
) -> None:
    table = new_table(tmp_path)
    lake.sync(table)
    with lake.service.client() as client:
        client.drop_partition(lake.name, "trips", ["a"], False)
        [moved] = client.get_partitions_by_names(lake.name, "trips", ["day=b"])
        moved.sd.location = f"file://{tmp_path}/elsewhere"
        client.alter_partition(lake.name, "trips", moved)
        moved.values = ["zz"]
        client.add_partition(moved)
    assert lake.sync(table).entries[0].added == ()
    again = table.sync(options={**lake.options, "hoodie.meta.sync.incremental": False})
    [entry] = again.entries
    assert (entry.added, entry.changed, entry.dropped) == (("a",), ("b",), ("zz",))
    assert lake.partitions("trips")["day=b"].sd.location.endswith("/trips/b")


def test_touched_partitions_show_when(lake: Lake, tmp_path: Path) -> None:
    table = new_table(tmp_path)
    lake.sync(table)
    table.upsert(trips([0], ["a"]))
    options = {**lake.options, "hoodie.meta.sync.touch.partitions.enabled": True}
    assert table.sync(options=options).entries[0].changed == ("a",)


@pytest.mark.parametrize(
    ("created", "given", "days", "values"),
    [
        ({"hoodie.datasource.write.hive_style_partitioning": True}, {}, ["x"], ["x"]),
        ({}, {}, ["2026/01/31"], ["2026/01/31"]),
        (
            {},
            {"partition_extractor_class": "org.apache.hudi.hive.SlashEncodedDay"},
            ["2026/01/31"],
            ["2026-01-31"],
        ),
        (
            {},
            {"partition_extractor_class": "SlashEncodedHour"},
            ["2026/01/31/7"],
            ["2026-01-31-07"],
        ),
        (
            {"hoodie.datasource.write.partitionpath.urlencode": True},
            {},
            ["a/b=c d%"],
            ["a/b=c d%"],
        ),
        ({}, {}, [None], ["__HIVE_DEFAULT_PARTITION__"]),
    ],
    ids=["hive style", "slashes", "day", "hour", "escaped", "null"],
)
def test_values_come_from_paths(
    lake: Lake,
    tmp_path: Path,
    created: dict[str, Any],
    given: dict[str, str],
    days: list[str | None],
    values: list[str],
) -> None:
    suffix = "PartitionValueExtractor"
    table = new_table(tmp_path, days, **created)
    options: dict[str, Any] = {name: value + suffix for name, value in given.items()}
    lake.sync(table, **options)
    assert list(lake.partitions("trips")) == [f"day={value}" for value in values]
    assert lake.ids("trips") == [0]
    table.delete_partitions([{"day": days[0]}])
    lake.sync(table, **options)
    assert lake.partitions("trips") == {}


def test_two_partitions_of_the_same_values(lake: Lake, tmp_path: Path) -> None:
    table = new_table(tmp_path, ["2026/01/31", "2026/1/31"])
    with pytest.raises(PartitionValueError, match="have the same values 2026-01-31"):
        lake.sync(table, partition_extractor_class="SlashEncodedDayPartitionValueExtractor")


def test_a_partition_without_values_costs_no_entry(lake: Lake, tmp_path: Path) -> None:
    table = new_table(tmp_path, ["2026/01/31"])
    given: dict[str, Any] = {
        "partition_extractor_class": "SlashEncodedDayPartitionValueExtractor",
        "recreate_table_on_error": True,
    }
    lake.sync(table, **given)
    table.insert(trips([1], ["odd"]))
    with pytest.raises(PartitionValueError, match="odd"):
        lake.sync(table, **given)
    assert list(lake.partitions("trips")) == ["day=2026-01-31"]
    # nor does an entry go that would be made again for another reason
    with pytest.raises(PartitionValueError, match="odd"):
        lake.sync(table, partition_fields="hour", **given)
    assert list(lake.partitions("trips")) == ["day=2026-01-31"]


def test_a_savepoint_that_is_gone_holds_up_no_sync(lake: Lake, tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.savepoint()
    lake.sync(table)
    table.delete_savepoint(table.savepoints[0].instant)
    assert lake.sync(table).entries[0].change is EntryChange.UNCHANGED


def test_several_partition_columns(lake: Lake, tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("city", pa.string()), ("year", pa.int32())])
    table = hudi.Table.create(
        tmp_path / "trips", schema, record_key="id", partition_by=["city", "year"]
    )
    table.insert(pa.table({"id": [1, 2], "city": ["Ulm", "Bern"], "year": [2025, 2026]}, schema))
    lake.sync(table)
    assert types(lake.entry("trips").partitionKeys) == [("city", "string"), ("year", "int")]
    assert sorted(lake.partitions("trips")) == ["city=Bern/year=2026", "city=Ulm/year=2025"]
    assert lake.ids("trips", filter=[("year", ">", 2025)]) == [2]
    with pytest.raises(PartitionValueError, match="city, year"):
        lake.sync(
            table, table="other", partition_extractor_class="HiveStylePartitionValueExtractor"
        )
