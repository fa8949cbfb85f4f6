"""Entries that are in the metastore already, and syncs after commits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hive_metastore import ttypes

import hudi_core as hudi
from hudi_core.config.sync import SyncConfig
from hudi_core.errors import (
    InvalidOptionError,
    MetastoreEntryError,
    MetastoreError,
    MetaSyncError,
    MetaSyncWarning,
    SchemaError,
    UnsupportedTableError,
)
from hudi_core.sync.result import EntryChange
from tests.unit.sync_hive.hive_tables import HIVE, Lake, new_table, trips, types

# --- entries that are there ----------------------------------------------------------------------


def test_columns_change_as_readers_can_follow(lake: Lake, tmp_path: Path) -> None:
    table = new_table(tmp_path)
    lake.sync(table)
    table.alter(promote={"Fare": pa.float64()})
    assert lake.sync(table).entries[0].columns == ("fare float becomes double",)
    assert ("fare", "double") in types(lake.entry("trips").sd.cols)
    table.alter(rename={"Fare": "price"})
    assert lake.sync(table).entries[0].columns == ("price double added", "fare dropped")
    # Hive compares columns by their places
    table.alter(add_columns={"note": pa.string(), "tip": pa.int64()})
    lake.sync(table)
    table.alter(drop="note")
    with pytest.raises(SchemaError, match="refuses the new columns"):
        lake.sync(table)
    [entry] = lake.sync(table, recreate_table_on_error=True).entries
    assert entry.change is EntryChange.RECREATED
    assert types(lake.entry("trips").sd.cols)[6:] == [("price", "double"), ("tip", "bigint")]
    assert lake.ids("trips") == [0, 1]


def test_what_others_put_into_an_entry_stays(lake: Lake, tmp_path: Path) -> None:
    table = new_table(tmp_path)
    lake.sync(table)
    with lake.service.client() as client:
        entry = client.get_table(lake.name, "trips")
        entry.parameters["team"] = "blue"
        entry.owner, entry.retention = "someone", 7
        entry.sd.cols[5].comment = "who"
        client.alter_table(lake.name, "trips", entry)
    table.alter(add_columns={"tip": pa.int32()})
    lake.sync(table)
    found = lake.entry("trips")
    assert (found.parameters["team"], found.owner, found.retention) == ("blue", "someone", 7)
    assert found.sd.cols[5].comment == "who"


def test_entries_of_others_are_left_alone(lake: Lake, tmp_path: Path) -> None:
    one, other = new_table(tmp_path / "one"), new_table(tmp_path / "other")
    lake.sync(one)
    with pytest.raises(MetastoreEntryError, match=r"another table, at .*/one/trips"):
        lake.sync(other)
    view = ttypes.Table(
        tableName="v",
        dbName=lake.name,
        tableType="VIRTUAL_VIEW",
        sd=ttypes.StorageDescriptor(cols=[], serdeInfo=ttypes.SerDeInfo(parameters={})),
        parameters={},
        partitionKeys=[],
    )
    with lake.service.client() as client:
        client.create_table(view)
    with pytest.raises(MetastoreEntryError):
        lake.sync(one, table="v", recreate_table_on_error=True)
    with pytest.raises(MetastoreEntryError, match="partition columns day string"):
        lake.sync(one, partition_fields="hour", partition_extractor_class="")


def test_a_later_sync_is_not_taken_back(lake: Lake, tmp_path: Path) -> None:
    table = new_table(tmp_path)
    lake.sync(table)
    with lake.service.client() as client:
        entry = client.get_table(lake.name, "trips")
        entry.parameters["hudi.sync.completion.time"] = "29990101000000000"
        client.alter_table(lake.name, "trips", entry)
    table.alter(add_columns={"tip": pa.int32()})
    assert lake.sync(table).entries[0].change is EntryChange.AHEAD
    assert "tip" not in dict(types(lake.entry("trips").sd.cols))


def test_a_dry_run_changes_nothing(lake: Lake, tmp_path: Path) -> None:
    table = new_table(tmp_path)
    done = lake.sync(table, dry_run=True)
    assert done.creates_database
    assert done.entries[0].added == ("a", "b")
    with lake.service.client() as client:
        assert lake.name not in client.get_all_databases()
    lake.sync(table)
    table.alter(add_columns={"tip": pa.int32()})
    done = lake.sync(table, dry_run=True)
    assert done.entries[0].columns == ("tip int added",)
    assert "tip" not in dict(types(lake.entry("trips").sd.cols))


def test_a_conditional_sync_keeps_its_time(lake: Lake, tmp_path: Path) -> None:
    table = new_table(tmp_path)
    first = lake.sync(table).last_commit
    table.upsert(trips([0], ["a"]))
    options = {**lake.options, "hoodie.datasource.meta_sync.condition.sync": True}
    table.sync(options=options)
    assert lake.entry("trips").parameters["last_commit_time_sync"] == first
    lake.sync(table)
    assert lake.entry("trips").parameters["last_commit_time_sync"] != first


def test_a_missing_database_may_be_an_error(lake: Lake, tmp_path: Path) -> None:
    with pytest.raises(MetastoreEntryError, match="is no database"):
        lake.sync(new_table(tmp_path), auto_create_database=False)


def test_a_metastore_that_does_not_answer(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    with pytest.raises(MetastoreError, match="did not answer"):
        table.sync(options={f"{HIVE}metastore.uris": "thrift://127.0.0.1:1"})


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("hoodie.datasource.meta.sync.base.path", "/elsewhere", "the table that is synced is at"),
        (f"{HIVE}mode", "jdbc", "Supported: hms"),
        (f"{HIVE}use_jdbc", "true", "no way to a Hive server"),
        (f"{HIVE}bucket_sync", "true", "Supported: false"),
        (f"{HIVE}base_file_format", "HFILE", "Supported: PARQUET"),
        (f"{HIVE}partition_extractor_class", "com.acme.Mine", "it is none of"),
        (f"{HIVE}table_properties", "no equals sign", "not of the form key=value"),
        ("hoodie.meta.sync.client.tool.class", "org.apache.hudi.gcp.BigQuery", "is none of"),
    ],
)
def test_what_cannot_be_done_is_refused(
    lake: Lake, tmp_path: Path, name: str, value: str, said: str
) -> None:
    table = new_table(tmp_path)
    with pytest.raises(InvalidOptionError, match=said):
        table.sync(options={**lake.options, name: value})
    enabled = {**lake.options, SyncConfig.enabled.key: True, name: value}
    with pytest.raises(InvalidOptionError, match=said):
        table.insert(trips([9], ["a"]), options=enabled)
    assert len(table.history()) == 1, "refused before anything was written"


def test_hidden_data_files_are_registered_on_request_only(lake: Lake, tmp_path: Path) -> None:
    table = new_table(
        tmp_path,
        **{
            "hoodie.storage.strategy.class": "object_store",
            "hoodie.storage.path": str(tmp_path / "store"),
        },
    )
    with pytest.raises(UnsupportedTableError, match=r"hudi\.sync\.object_store=true"):
        lake.sync(table)
    with pytest.raises(UnsupportedTableError, match="keeps its data files elsewhere"):
        table.insert(trips([9], ["a"]), options={**lake.options, f"{HIVE}enable": True})
    table.sync(options={**lake.options, "hudi.sync.object_store": True})
    assert lake.entry("trips").parameters["hudi.storage.strategy"] == "object_store"
    assert lake.ids("trips") == [0, 1]


# --- after commits -------------------------------------------------------------------------------


@pytest.mark.parametrize("switch", [SyncConfig.enabled.key, SyncConfig.hive_enabled.key])
def test_commits_are_followed_by_syncs(lake: Lake, tmp_path: Path, switch: str) -> None:
    options: dict[str, Any] = {**lake.options, switch: True}
    table = new_table(tmp_path, **options)
    assert sorted(lake.partitions("trips")) == ["day=a", "day=b"]
    later = table.insert(trips([5], ["c"]))
    assert sorted(lake.partitions("trips")) == ["day=a", "day=b", "day=c"]
    assert lake.entry("trips").parameters["last_commit_time_sync"] == later.instant.requested_time
    table.alter(add_columns={"tip": pa.int32()})
    assert "tip" in dict(types(lake.entry("trips").sd.cols))
    table.delete_partitions(["a"])
    assert sorted(lake.partitions("trips")) == ["day=b", "day=c"]


def test_a_failed_sync_loses_no_commit(lake: Lake, tmp_path: Path) -> None:
    table = new_table(tmp_path)
    broken = {f"{HIVE}enable": True, f"{HIVE}metastore.uris": "thrift://127.0.0.1:1"}
    with pytest.raises(MetaSyncError, match="is complete, but the sync with hive") as raised:
        table.insert(trips([5], ["c"]), options=broken)
    assert isinstance(raised.value.result, hudi.CommitResult)
    assert isinstance(raised.value.__cause__, MetastoreError)
    assert table.to_arrow(columns=["id"]).num_rows == 3
    with pytest.warns(MetaSyncWarning, match="is complete"):
        done = table.insert(trips([6], ["d"]), options={**broken, f"{HIVE}ignore_exceptions": True})
    assert done.inserted == 1
    lake.sync(table)
    assert lake.ids("trips") == [0, 1, 5, 6]


def test_nothing_is_undone_or_deleted_where_the_sync_is_refused(lake: Lake, tmp_path: Path) -> None:
    table = new_table(tmp_path)
    first = table.timeline.instants[-1]
    later = table.insert(trips([5], ["c"]))
    before = table.timeline.instants
    refused = {**lake.options, f"{HIVE}enable": True, f"{HIVE}bucket_sync": True}
    asking = hudi.Table.open(table.path, refused)
    actions: list[Callable[[], object]] = [
        lambda: asking.rollback(later.instant),
        lambda: asking.restore(first),
        asking.clean,
        asking.purge,
    ]
    for action in actions:
        with pytest.raises(InvalidOptionError, match="Supported: false"):
            action()
    assert table.timeline.instants == before
    assert asking.restore(first, dry_run=True)


def test_a_rollback_is_synced_by_the_tables_options(lake: Lake, tmp_path: Path) -> None:
    table = new_table(tmp_path)
    later = table.insert(trips([5], ["c"]), options={**lake.options, f"{HIVE}enable": True})
    table.rollback(later.instant)
    assert sorted(lake.partitions("trips")) == ["day=a", "day=b", "day=c"]
    asking = hudi.Table.open(table.path, {**lake.options, f"{HIVE}enable": True})
    other = asking.insert(trips([6], ["d"]), options={f"{HIVE}enable": False})
    asking.rollback(other.instant)
    assert sorted(lake.partitions("trips")) == ["day=a", "day=b"]
