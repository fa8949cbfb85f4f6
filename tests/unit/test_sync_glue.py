"""Tables registered in AWS Glue, as moto serves it, and as its own client sees them."""

from __future__ import annotations

import uuid
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.config.lock_servers import DynamoLockConfig
from hudi_core.config.sync import GlueConfig, SyncConfig, SyncTool
from hudi_core.errors import (
    InvalidOptionError,
    MetastoreError,
    MetastoreRefusalError,
    MetaSyncError,
    SchemaError,
)
from hudi_core.metastore.glue import GlueWriter
from hudi_core.sync.result import EntryChange
from tests.moto_s3 import S3Service
from tests.tables import new_table

GLUE_TOOL = "org.apache.hudi.aws.sync.AwsGlueCatalogSyncTool"
DAYS = pa.schema([("id", pa.int64()), ("day", pa.string())])


@dataclass
class Catalog:
    """A database of its own in the service of the run."""

    endpoint: str
    name: str

    @property
    def options(self) -> dict[str, str]:
        return {
            "hoodie.aws.glue.endpoint": self.endpoint,
            "hoodie.aws.glue.region": "us-east-1",
            "hoodie.aws.access.key": "an-id",
            "hoodie.aws.secret.key": f"glue-secret-{self.name}",
            "hoodie.datasource.meta.sync.glue.database_name": self.name,
        }

    @property
    def client(self) -> Any:
        return boto3.client(
            "glue",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id="an-id",
            aws_secret_access_key="a-secret",
        )

    def entry(self, name: str) -> Any:
        return self.client.get_table(DatabaseName=self.name, Name=name)["Table"]

    def partitions(self, name: str) -> dict[str, str]:
        pages = self.client.get_paginator("get_partitions").paginate(
            DatabaseName=self.name, TableName=name
        )
        return {
            "/".join(one["Values"]): one["StorageDescriptor"]["Location"]
            for page in pages
            for one in page["Partitions"]
        }


@pytest.fixture
def catalog(glue: str) -> Catalog:
    return Catalog(glue, f"s{uuid.uuid4().hex}")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Give the methods that change partitions, with how many each was given."""
    made: list[tuple[str, int]] = []
    batched = GlueWriter._batched

    def noted(writer: GlueWriter, method: Any, passes: str, **arguments: Any) -> None:
        items = [value for value in arguments.values() if isinstance(value, list)]
        made.append((method.__name__, len(items[0])))
        batched(writer, method, passes, **arguments)

    monkeypatch.setattr(GlueWriter, "_batched", noted)
    return made


def made_table(path: str | Path, days: list[str], options: dict[str, Any]) -> hudi.Table:
    table = new_table(path, DAYS, options)
    table.bulk_insert(trips(range(len(days)), days))
    return table


def trips(ids: Any, days: list[str]) -> pa.Table:
    return pa.table({"id": list(ids), "day": days}, DAYS)


def names(columns: Any) -> list[tuple[str, str]]:
    return [(one["Name"], one["Type"]) for one in columns]


def test_hundreds_of_partitions(
    catalog: Catalog, tmp_path: Path, calls: list[tuple[str, int]]
) -> None:
    days = [f"d{number:04d}" for number in range(160)]
    table = made_table(tmp_path / "trips", days, catalog.options)
    done = table.sync("glue")
    assert (done.tool, done.creates_database) == (SyncTool.GLUE, True)
    assert calls == [("batch_create_partition", 100), ("batch_create_partition", 60)]
    found = catalog.entry("trips")
    assert found["TableType"] == "EXTERNAL_TABLE"
    assert found["Parameters"]["hudi.metadata-listing-enabled"] == "FALSE"
    assert found["Parameters"]["last_commit_time_sync"] == done.last_commit
    place = found["StorageDescriptor"]
    assert place["InputFormat"] == "org.apache.hudi.hadoop.HoodieParquetInputFormat"
    assert place["Location"] == f"file://{tmp_path}/trips"
    assert names(place["Columns"])[5:] == [("id", "bigint")]
    assert names(found["PartitionKeys"]) == [("day", "string")]
    assert catalog.partitions("trips") == {day: f"file://{tmp_path}/trips/{day}" for day in days}
    calls.clear()

    table.insert(trips([2000], ["new"]))
    table.delete_partitions([f"d{number:04d}" for number in range(30)])
    [entry] = table.sync("glue").entries
    assert (entry.added, len(entry.dropped), entry.compares_all) == (("new",), 30, False)
    assert calls == [
        ("batch_create_partition", 1),
        ("batch_delete_partition", 25),
        ("batch_delete_partition", 5),
    ]
    calls.clear()
    version = catalog.entry("trips")["VersionId"]
    assert table.sync("glue").is_up_to_date
    assert calls == []
    assert catalog.entry("trips")["VersionId"] == version

    table.alter(add_columns={"tip": pa.int32()})
    [entry] = table.sync("glue").entries
    assert entry.columns == ("tip int added",)
    assert Counter(calls) == {("batch_update_partition", 100): 1, ("batch_update_partition", 31): 1}
    assert len(catalog.partitions("trips")) == 131
    assert names(catalog.entry("trips")["StorageDescriptor"]["Columns"])[-1] == ("tip", "int")


def test_commits_are_followed_by_syncs(catalog: Catalog, tmp_path: Path) -> None:
    options = {
        **catalog.options,
        SyncConfig.enabled.key: True,
        SyncConfig.tools.key: GLUE_TOOL,
        # alone it names no tool
        "hoodie.datasource.hive_sync.mode": "hms",
        "hoodie.datasource.meta.sync.glue.table_name": "rides",
    }
    table = made_table(tmp_path / "trips", ["a"], options)
    table.insert(trips([5], ["b"]))
    assert sorted(catalog.partitions("rides")) == ["a", "b"]
    nowhere = {**options, "hoodie.aws.glue.endpoint": "http://127.0.0.1:1"}
    with pytest.raises(MetaSyncError, match="sync with glue") as raised:
        table.insert(trips([6], ["c"]), options=nowhere)
    assert "glue-secret" not in str(raised.value)
    assert table.to_arrow(columns=["id"]).num_rows == 3


def test_places_are_spelled_as_readers_of_glue_know_them(catalog: Catalog, s3: S3Service) -> None:
    root = s3.new_root("trips").replace("s3://", "s3a://")
    table = made_table(root, ["a"], {**s3.given, **catalog.options})
    table.sync("glue")
    place = root.replace("s3a://", "s3://")
    found = catalog.entry("trips")["StorageDescriptor"]
    assert found["Location"] == place
    assert found["SerdeInfo"]["Parameters"]["path"] == place
    assert catalog.partitions("trips") == {"a": f"{place}/a"}
    assert table.sync("glue").is_up_to_date


def test_columns_that_readers_cannot_follow(catalog: Catalog, tmp_path: Path) -> None:
    table = made_table(tmp_path / "trips", ["a"], catalog.options)
    table.sync("glue")
    entry = catalog.entry("trips")
    changed = {
        "Name": "trips",
        "StorageDescriptor": {
            **entry["StorageDescriptor"],
            "Columns": [*entry["StorageDescriptor"]["Columns"][:5], {"Name": "id", "Type": "date"}],
        },
        "PartitionKeys": entry["PartitionKeys"],
        "TableType": entry["TableType"],
        "Parameters": entry["Parameters"],
    }
    catalog.client.update_table(
        DatabaseName=catalog.name, TableInput=changed, VersionId=entry["VersionId"]
    )
    with pytest.raises(SchemaError, match="column id of the type date"):
        table.sync("glue")
    recreate = {"hoodie.datasource.meta.sync.glue.recreate_table_on_error": True}
    [done] = table.sync("glue", options=recreate).entries
    assert (done.change, done.added) == (EntryChange.RECREATED, ("a",))


def test_two_syncs_at_a_time(catalog: Catalog, tmp_path: Path) -> None:
    made_table(tmp_path / "trips", ["a"], catalog.options).sync("glue")
    keys = DynamoLockConfig.from_options(catalog.options)
    glue = GlueWriter(GlueConfig.from_options(catalog.options), keys, 1000)
    with closing(glue):
        seen = glue.table(catalog.name, "trips")
        assert seen is not None
        glue.change_table(seen, seen)
        with pytest.raises(MetastoreRefusalError, match="another version"):
            glue.change_table(seen, seen)


def test_columns_reach_all_partitions_after_a_sync_that_died(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made_table(tmp_path / "trips", ["a", "b"], catalog.options)
    table.sync("glue")
    table.alter(add_columns={"tip": pa.int32()})

    def fail(*_: Any) -> None:
        raise MetastoreError((catalog.endpoint,), "gone")

    with monkeypatch.context() as dying:
        dying.setattr(GlueWriter, "change_partitions", fail)
        with pytest.raises(MetastoreError, match="gone"):
            table.sync("glue")
    assert table.sync("glue").entries[0].columns == ("tip int added",)
    found = catalog.client.get_partitions(DatabaseName=catalog.name, TableName="trips")
    last = [names(one["StorageDescriptor"]["Columns"])[-1] for one in found["Partitions"]]
    assert last == [("tip", "int")] * 2


def test_an_address_that_boto3_does_not_take(catalog: Catalog, tmp_path: Path) -> None:
    table = made_table(tmp_path / "trips", ["a"], catalog.options)
    given = {"hoodie.aws.glue.endpoint": "http://local_stack:4566"}
    with pytest.raises(InvalidOptionError, match=r"hoodie\.aws\.glue\.endpoint.*local_stack"):
        table.sync("glue", options=given)
    enabled = {**given, SyncConfig.enabled.key: True, SyncConfig.tools.key: "glue"}
    with pytest.raises(MetaSyncError, match="is complete"):
        table.insert(trips([5], ["b"]), options=enabled)
