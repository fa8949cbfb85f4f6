"""Tables in a Hive metastore and in AWS Glue, as their own clients see them after syncs."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pytest
from hive_metastore import ttypes
from hudi_conformance.hive_metastore import HiveMetastore as Service

import hudi_core as hudi
from hudi_core.config.lock_servers import DynamoLockConfig
from hudi_core.config.sync import GlueConfig, SyncConfig, SyncTool
from hudi_core.doors.connector import Connector
from hudi_core.errors import (
    InvalidOptionError,
    MetastoreEntryError,
    MetastoreError,
    MetastoreRefusalError,
    MetaSyncError,
    MetaSyncWarning,
    PartitionValueError,
    SchemaError,
    UnsupportedTableError,
)
from hudi_core.metastore.glue import GlueWriter
from hudi_core.read.connector.handles import QueryKind, TableName
from hudi_core.sync.result import EntryChange, SyncResult
from tests.cli_runs import run, run_json
from tests.hudi_tables import TRIPS
from tests.metastore_calls import recorded
from tests.moto_s3 import S3Service
from tests.tables import SCHEMA, copied, new_table, rows

HIVE = "hoodie.datasource.hive_sync."


META_TYPES = [
    (f"_hoodie_{name}", "string")
    for name in ("commit_time", "commit_seqno", "record_key", "partition_path", "file_name")
]


FARES = pa.schema([("id", pa.int64()), ("Fare", pa.float32()), ("day", pa.string())])


@dataclass
class Lake:
    """A database of its own in the metastore of the run."""

    service: Service
    name: str

    @property
    def options(self) -> dict[str, str]:
        return {f"{HIVE}metastore.uris": self.service.uri, f"{HIVE}database": self.name}

    def sync(self, table: hudi.Table, /, *, dry_run: bool = False, **options: Any) -> SyncResult:
        given = {f"{HIVE}{name}": value for name, value in options.items()}
        return table.sync(options={**self.options, **given}, dry_run=dry_run)

    def entry(self, name: str) -> Any:
        with self.service.client() as client:
            return client.get_table(self.name, name)

    def partitions(self, name: str) -> dict[str, Any]:
        with self.service.client() as client:
            names = client.get_partition_names(self.name, name, -1)
            found = client.get_partitions_by_names(self.name, name, names) if names else []
        keys = [key.name for key in self.entry(name).partitionKeys]
        return {
            "/".join(f"{key}={value}" for key, value in zip(keys, one.values, strict=True)): one
            for one in found
        }

    def connector(self, uri: str | None = None) -> Connector:
        return Connector({"hive.metastore.uri": uri or self.service.uri})

    def ids(self, name: str, uri: str | None = None, **query: Any) -> list[int]:
        connector = self.connector(uri)
        with connector.scan(TableName(self.name, name), **query) as source:
            parts = [connector.read(split, ["id"]).read_all() for split in source]
        return sorted(value for part in parts for value in part["id"].to_pylist())


def new_trips(path: Path, days: Sequence[str | None] = ("a", "b"), **options: Any) -> hudi.Table:
    return copied(path / "trips", filled_trips, days, {"hoodie.fs.fsync": False, **options})


def filled_trips(path: Path, days: Sequence[str | None], options: Mapping[str, Any]) -> hudi.Table:
    table = new_table(path, FARES, options)
    table.bulk_insert(trips(range(len(days)), days))
    return table


def trips(ids: Sequence[int], days: Sequence[str | None]) -> pa.Table:
    return rows(*ids, schema=FARES, Fare=1.5, day=days)


def types(columns: Sequence[Any]) -> list[tuple[str, str]]:
    return [(one.name, one.type) for one in columns]


@pytest.fixture
def lake(metastore: Service) -> Lake:
    return Lake(metastore, f"s{uuid.uuid4().hex}")


BASE_FILES = "org.apache.hudi.hadoop.HoodieParquetInputFormat"


REAL_TIME = "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat"


# --- entries
@pytest.fixture
def table(lake: Lake, tmp_path: Path) -> hudi.Table:
    """A table that was synced with its two partitions."""
    made = new_trips(tmp_path)
    lake.sync(made)
    return made


def test_an_entry_is_what_hudis_readers_look_for(lake: Lake, tmp_path: Path) -> None:
    table = new_trips(tmp_path)
    done = lake.sync(table)
    assert done.creates_database
    [entry] = done.entries
    assert (entry.database, entry.name, entry.change) == (lake.name, "trips", EntryChange.CREATED)
    assert entry.added == ("a", "b")
    found = lake.entry("trips")
    assert found.sd.inputFormat == BASE_FILES
    parquet, serde = "org.apache.hadoop.hive.ql.io.parquet.", found.sd.serdeInfo
    assert found.sd.outputFormat == f"{parquet}MapredParquetOutputFormat"
    assert serde.serializationLib == f"{parquet}serde.ParquetHiveSerDe"
    place = f"file://{tmp_path}/trips"
    parameters = {"serialization.format": "1", "hoodie.query.as.ro.table": "false"}
    assert serde.parameters == {"path": place, **parameters}
    assert (found.tableType, found.parameters["EXTERNAL"]) == ("EXTERNAL_TABLE", "TRUE")
    assert types(found.sd.cols) == [*META_TYPES, ("id", "bigint"), ("fare", "float")]
    assert types(found.partitionKeys) == [("day", "string")]
    assert found.parameters["last_commit_time_sync"] == done.last_commit
    partitions = lake.partitions("trips")
    assert sorted(partitions) == ["day=a", "day=b"]
    for value, one in zip("ab", partitions.values(), strict=True):
        location = one.sd.location.replace("file:/", "file:///").replace("////", "//")
        assert location == f"{place}/{value}"
        assert one.sd.inputFormat == BASE_FILES
    assert lake.ids("trips") == [0, 1]


def test_an_entry_says_what_spark_needs(lake: Lake, tmp_path: Path) -> None:
    table = new_trips(tmp_path)
    lake.sync(table, schema_string_length_thresh=100)
    found = lake.entry("trips").parameters
    assert found["spark.sql.sources.provider"] == "hudi"
    assert found["spark.sql.sources.schema.numPartCols"] == "1"
    assert found["spark.sql.sources.schema.partCol.0"] == "day"
    count = int(found["spark.sql.sources.schema.numParts"])
    parts = [found[f"spark.sql.sources.schema.part.{number}"] for number in range(count)]
    assert [len(part) for part in parts[:-1]] == [100] * (count - 1)
    fields = json.loads("".join(parts))["fields"]
    assert [one["name"] for one in fields] == [*(n for n, _ in META_TYPES), "id", "Fare", "day"]
    assert fields[0]["metadata"] == {"hudi.read": {"path": str(tmp_path / "trips")}}
    # fewer parts next time: none of the former ones stays
    lake.sync(table, schema_string_length_thresh=100_000)
    found = lake.entry("trips").parameters
    assert [key for key in found if ".part." in key] == ["spark.sql.sources.schema.part.0"]


def test_a_table_without_partitions(lake: Lake, tmp_path: Path) -> None:
    table = new_table(tmp_path / "trips", trips([1], ["a"]), partition_by=None)
    lake.sync(table)
    found = lake.entry("trips")
    assert found.partitionKeys == []
    assert types(found.sd.cols)[5:] == [("id", "bigint"), ("fare", "float"), ("day", "string")]
    assert "spark.sql.sources.schema.numPartCols" not in found.parameters
    assert lake.ids("trips") == [1]


def test_options_shape_an_entry(lake: Lake, tmp_path: Path) -> None:
    table = new_trips(tmp_path)
    lake.sync(
        table,
        table="Rides",
        omit_metadata_fields=True,
        sync_as_datasource=False,
        create_managed_table=True,
        use_pre_apache_input_format=True,
        table_properties="owner team=a\nkind = fact",
        serde_properties="x=1",
    )
    found = lake.entry("rides")
    assert found.tableType == "MANAGED_TABLE"
    assert "EXTERNAL" not in found.parameters
    assert found.sd.inputFormat == "com.uber.hoodie.hadoop.HoodieInputFormat"
    assert types(found.sd.cols) == [("id", "bigint"), ("fare", "float")]
    assert (found.parameters["owner team"], found.parameters["kind"]) == ("a", "fact")
    assert found.sd.serdeInfo.parameters == {"serialization.format": "1", "x": "1"}
    assert not [key for key in found.parameters if key.startswith("spark.")]


def test_types_and_comments(lake: Lake, tmp_path: Path) -> None:
    kinds: dict[str, tuple[pa.DataType, str]] = {
        "at": (pa.timestamp("us", "UTC"), "timestamp"),
        "local": (pa.timestamp("us"), "timestamp"),
        "price": (pa.decimal128(12, 2), "decimal(12,2)"),
        "tags": (pa.list_(pa.string()), "array<string>"),
        "props": (pa.map_(pa.string(), pa.int32()), "map<string,int>"),
        "home": (pa.struct({"city": "str", "Zip": "int32"}), "struct<city:string,Zip:int>"),
        "raw": (pa.binary(), "binary"),
        "born": (pa.date32(), "date"),
        "ok": (pa.bool_(), "boolean"),
        "x": (pa.float64(), "double"),
    }
    key = pa.field("id", pa.int64(), metadata={"doc": "who"})
    schema = pa.schema([key, *((name, kind) for name, (kind, _) in kinds.items())])
    table = new_table(tmp_path / "typed", schema)
    lake.sync(table, sync_comment=True)
    columns = lake.entry("typed").sd.cols
    told = [(name, word) for name, (_, word) in kinds.items()]
    assert types(columns)[5:] == [("id", "bigint"), *told]
    assert columns[5].comment == "who"
    # known by other types now, which readers of the former cannot take them for
    with pytest.raises(SchemaError, match="column at of the type timestamp"):
        lake.sync(table, support_timestamp=False)
    again = lake.sync(table, support_timestamp=False, recreate_table_on_error=True)
    assert again.entries[0].change is EntryChange.RECREATED
    assert ("at", "bigint") in types(lake.entry("typed").sd.cols)


SNAPSHOT_NAMED = "hoodie.meta.sync.sync_snapshot_with_table_name"
WITH_LOGS = pytest.mark.parametrize(
    ("options", "entries"),
    [
        ({}, {"t_ro": BASE_FILES, "t_rt": REAL_TIME, "t": REAL_TIME}),
        ({SNAPSHOT_NAMED: False}, {"t_ro": BASE_FILES, "t_rt": REAL_TIME}),
        ({f"{HIVE}skip_ro_suffix": True}, {"t": BASE_FILES, "t_rt": REAL_TIME}),
        ({f"{HIVE}table.strategy": "RO"}, {"t": BASE_FILES}),
        ({f"{HIVE}table.strategy": "rt"}, {"t": REAL_TIME}),
    ],
)
"""The entries of a table with logs, by the options of the sync."""


def cities_of(table: hudi.Table) -> list[str]:
    return sorted(set(table.to_arrow(["city"])["city"].to_pylist()))


def rows_by_name(lake: Lake, name: str) -> list[dict[str, Any]]:
    connector = lake.connector()
    with connector.scan(TableName(lake.name, name)) as source:
        found = pa.concat_tables(connector.read(split).read_all() for split in source)
    return sorted(found.to_pylist(), key=str)


@WITH_LOGS
def test_a_table_with_logs_has_an_entry_for_each_query(
    lake: Lake, real_tables: Any, options: dict[str, Any], entries: Mapping[str, str]
) -> None:
    table = hudi.Table.open(real_tables(TRIPS))
    options = {**lake.options, f"{HIVE}table": "t", **options}
    done = table.sync(options=options)
    assert {one.name for one in done.entries} == set(entries)
    with lake.service.client() as client:
        assert set(client.get_all_tables(lake.name)) == set(entries)
    for name, input_format in entries.items():
        found = lake.entry(name)
        assert found.sd.inputFormat == input_format
        partitions = lake.partitions(name)
        assert sorted(partitions) == [f"city={one}" for one in cities_of(table)]
        assert {one.sd.inputFormat for one in partitions.values()} == {input_format}
        as_base_files = found.sd.serdeInfo.parameters["hoodie.query.as.ro.table"]
        assert as_base_files == str(input_format == BASE_FILES).lower()
        kind = lake.connector().table(TableName(lake.name, name)).kind
        assert (kind is QueryKind.READ_OPTIMIZED) is (input_format == BASE_FILES)
        query = {"hoodie.datasource.query.type": kind.value}
        seen = hudi.read(None, table.path, query).to_pylist()
        assert rows_by_name(lake, name) == sorted(seen, key=str)
    assert table.sync(options=options).is_up_to_date


def test_a_split_table_has_one_entry(lake: Lake, tmp_path: Path) -> None:
    """Its base files alone are no state of it."""
    options = {"hoodie.table.merge-on-read.mode": "split", "hoodie.compact.inline": "false"}
    table = new_table(tmp_path / "t", SCHEMA, options, table_type="MERGE_ON_READ")
    table.insert(rows("a", "b", part="x", ts=1))
    table.upsert(rows("a", part="x", ts=2))
    done = table.sync(options={**lake.options, f"{HIVE}table": "t"})
    assert [one.name for one in done.entries] == ["t"]
    assert lake.entry("t").sd.inputFormat == REAL_TIME
    assert {row["id"]: row["ts"] for row in rows_by_name(lake, "t")} == {"a": 2, "b": 1}
    with pytest.raises(UnsupportedTableError, match="former versions of rows"):
        table.sync(options={**lake.options, f"{HIVE}table.strategy": "RO"})


# --- entries that are there
def test_columns_change_as_readers_can_follow(lake: Lake, table: hudi.Table) -> None:
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


def test_what_others_put_into_an_entry_stays(lake: Lake, table: hudi.Table) -> None:
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
    one, other = new_trips(tmp_path / "one"), new_trips(tmp_path / "other")
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


def test_a_later_sync_is_not_taken_back(lake: Lake, table: hudi.Table) -> None:
    with lake.service.client() as client:
        entry = client.get_table(lake.name, "trips")
        entry.parameters["hudi.sync.completion.time"] = "29990101000000000"
        client.alter_table(lake.name, "trips", entry)
    table.alter(add_columns={"tip": pa.int32()})
    assert lake.sync(table).entries[0].change is EntryChange.AHEAD
    assert "tip" not in dict(types(lake.entry("trips").sd.cols))


def test_a_dry_run_changes_nothing(lake: Lake, tmp_path: Path) -> None:
    table = new_trips(tmp_path)
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
    table = new_trips(tmp_path)
    first = lake.sync(table).last_commit
    table.upsert(trips([0], ["a"]))
    options = {**lake.options, "hoodie.datasource.meta_sync.condition.sync": True}
    table.sync(options=options)
    assert lake.entry("trips").parameters["last_commit_time_sync"] == first
    lake.sync(table)
    assert lake.entry("trips").parameters["last_commit_time_sync"] != first


def test_a_missing_database_may_be_an_error(lake: Lake, tmp_path: Path) -> None:
    with pytest.raises(MetastoreEntryError, match="is no database"):
        lake.sync(new_trips(tmp_path), auto_create_database=False)


def test_a_metastore_that_does_not_answer(tmp_path: Path) -> None:
    table, nowhere = new_trips(tmp_path), "thrift://127.0.0.1:1"
    with pytest.raises(MetastoreError, match="did not answer"):
        table.sync(options={f"{HIVE}metastore.uris": nowhere})
    done = run("sync", "hive", table.path, "--uri", nowhere)
    assert done.exit_code == 1
    assert "did not answer" in done.output


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
def test_what_cannot_be_done(lake: Lake, tmp_path: Path, name: str, value: str, said: str) -> None:
    table = new_trips(tmp_path)
    with pytest.raises(InvalidOptionError, match=said):
        table.sync(options={**lake.options, name: value})
    enabled = {**lake.options, SyncConfig.enabled.key: True, name: value}
    with pytest.raises(InvalidOptionError, match=said):
        table.insert(trips([9], ["a"]), options=enabled)
    assert len(table.history()) == 1, "refused before anything was written"


def test_hidden_data_files_are_registered_on_request_only(lake: Lake, tmp_path: Path) -> None:
    hidden = {"strategy.class": "object_store", "path": str(tmp_path / "store")}
    table = new_trips(tmp_path, **{f"hoodie.storage.{key}": hidden[key] for key in hidden})
    with pytest.raises(UnsupportedTableError, match=r"hudi\.sync\.object_store=true"):
        lake.sync(table)
    with pytest.raises(UnsupportedTableError, match="keeps its data files elsewhere"):
        table.insert(trips([9], ["a"]), options={**lake.options, f"{HIVE}enable": True})
    table.sync(options={**lake.options, "hudi.sync.object_store": True})
    assert lake.entry("trips").parameters["hudi.storage.strategy"] == "object_store"
    assert lake.ids("trips") == [0, 1]


# --- after commits
@pytest.mark.parametrize("switch", [SyncConfig.enabled.key, SyncConfig.hive_enabled.key])
def test_commits_are_followed_by_syncs(lake: Lake, tmp_path: Path, switch: str) -> None:
    options: dict[str, Any] = {**lake.options, switch: True}
    table = new_trips(tmp_path, **options)
    assert sorted(lake.partitions("trips")) == ["day=a", "day=b"]
    later = table.insert(trips([5], ["c"]))
    assert sorted(lake.partitions("trips")) == ["day=a", "day=b", "day=c"]
    assert lake.entry("trips").parameters["last_commit_time_sync"] == later.instant.requested_time
    table.alter(add_columns={"tip": pa.int32()})
    assert "tip" in dict(types(lake.entry("trips").sd.cols))
    table.delete_partitions(["a"])
    assert sorted(lake.partitions("trips")) == ["day=b", "day=c"]


def test_a_failed_sync_loses_no_commit(lake: Lake, tmp_path: Path) -> None:
    table = new_trips(tmp_path)
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
    table = new_trips(tmp_path)
    first = table.timeline.instants[-1]
    later = table.insert(trips([5], ["c"]))
    before = table.timeline.instants
    refused = {**lake.options, f"{HIVE}enable": True, f"{HIVE}bucket_sync": True}
    asking = hudi.Table.open(table.path, refused)
    calls = (("rollback", later.instant), ("restore", first), ("clean",), ("purge",))
    for name, *target in calls:
        with pytest.raises(InvalidOptionError, match="Supported: false"):
            getattr(asking, name)(*target)
    assert table.timeline.instants == before
    assert asking.restore(first, dry_run=True)


def test_a_rollback_is_synced_by_the_tables_options(lake: Lake, tmp_path: Path) -> None:
    table = new_trips(tmp_path)
    later = table.insert(trips([5], ["c"]), options={**lake.options, f"{HIVE}enable": True})
    table.rollback(later.instant)
    assert sorted(lake.partitions("trips")) == ["day=a", "day=b", "day=c"]
    asking = hudi.Table.open(table.path, {**lake.options, f"{HIVE}enable": True})
    other = asking.insert(trips([6], ["d"]), options={f"{HIVE}enable": False})
    asking.rollback(other.instant)
    assert sorted(lake.partitions("trips")) == ["day=a", "day=b"]


# --- partitions
def test_many_partitions(lake: Lake, tmp_path: Path) -> None:
    count = 260
    days = [f"d{number:04d}" for number in range(count)]
    table = new_trips(tmp_path, days)
    with recorded(lake.service) as recorder:
        uri: dict[str, Any] = {"metastore.uris": recorder.uri}
        done = lake.sync(table, batch_num=90, **uri)
        assert done.entries[0].added == tuple(days)
        added = [n for method, n in recorder.asked if method == "add_partitions_req"]
        assert added == [*[90] * (count // 90), count % 90]
        recorder.asked.clear()
        assert lake.ids("trips", recorder.uri) == list(range(count))
        asked_for = [n for method, n in recorder.asked if method == "get_partitions_by_names"]
        assert asked_for == [10, 20, 40, 80, 100, 10]

        # later syncs cost what changed
        table.insert(trips([2000], ["new"]))
        table.delete_partitions(["d0001", "d0002"])
        recorder.asked.clear()
        [entry] = lake.sync(table, **uri).entries
        assert (entry.added, entry.changed, entry.dropped) == (("new",), (), ("d0001", "d0002"))
        assert not entry.compares_all
        asked = {"get_partitions_by_names": 3, "add_partitions_req": 1, "drop_partitions_req": 2}
        assert [call for call in recorder.asked if call[1]] == list(asked.items())
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
    table = new_trips(tmp_path)
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
def test_a_rollback_brings_partitions_back(lake: Lake, table: hudi.Table, operation: str) -> None:
    if operation == "delete_partitions":
        later = table.delete_partitions(["a"])
    else:
        later = table.insert_overwrite_table(trips([7], ["b"]))
    lake.sync(table)
    assert sorted(lake.partitions("trips")) == ["day=b"]
    table.rollback(later.instant)
    assert lake.sync(table).entries[0].added == ("a",)
    assert lake.ids("trips") == [0, 1]


def test_a_partition_that_came_and_went_between_two_syncs(lake: Lake, table: hudi.Table) -> None:
    table.insert(trips([5], ["c"]))
    table.delete_partitions(["c"])
    [entry] = lake.sync(table).entries
    assert (entry.added, entry.changed, entry.dropped) == ((), (), ())
    assert sorted(lake.partitions("trips")) == ["day=a", "day=b"]


def test_all_partitions_are_compared_where_the_timeline_moved(lake: Lake, tmp_path: Path) -> None:
    keeps: dict[str, Any] = {"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3}
    keeps |= {"hoodie.cleaner.commits.retained": 1}
    table = new_trips(tmp_path, **keeps)
    lake.sync(table)
    for number in range(10):
        table.insert(trips([10 + number], [f"n{number}"]))
    [entry] = lake.sync(table).entries
    assert entry.compares_all
    assert len(entry.added) == 10
    assert len(lake.partitions("trips")) == 12


def test_entries_that_others_changed_are_set_right_by_full_sync(lake: Lake, tmp_path: Path) -> None:
    table = new_trips(tmp_path)
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


def test_touched_partitions_show_when(lake: Lake, table: hudi.Table) -> None:
    table.upsert(trips([0], ["a"]))
    options = {**lake.options, "hoodie.meta.sync.touch.partitions.enabled": True}
    assert table.sync(options=options).entries[0].changed == ("a",)


VALUES: dict[str, tuple[str, str, str | None, str]] = {
    # how paths are written, how they are read, the value of a row, and that in the metastore
    "hive style": ("hive_style_partitioning", "", "x", "x"),
    "slashes": ("", "", "2026/01/31", "2026/01/31"),
    "day": ("", "org.apache.hudi.hive.SlashEncodedDay", "2026/01/31", "2026-01-31"),
    "hour": ("", "SlashEncodedHour", "2026/01/31/7", "2026-01-31-07"),
    "escaped": ("partitionpath.urlencode", "", "a/b=c d%", "a/b=c d%"),
    "null": ("", "", None, "__HIVE_DEFAULT_PARTITION__"),
}


@pytest.mark.parametrize(("created", "given", "day", "value"), VALUES.values(), ids=VALUES)
def test_values_come_from_paths(
    lake: Lake, tmp_path: Path, created: str, given: str, day: str | None, value: str
) -> None:
    style = {f"hoodie.datasource.write.{created}": True} if created else {}
    table = new_trips(tmp_path, [day], **style)
    extractor = f"{given}PartitionValueExtractor"
    options: dict[str, Any] = {"partition_extractor_class": extractor} if given else {}
    lake.sync(table, **options)
    assert list(lake.partitions("trips")) == [f"day={value}"]
    assert lake.ids("trips") == [0]
    table.delete_partitions([{"day": day}])
    lake.sync(table, **options)
    assert lake.partitions("trips") == {}


def test_two_partitions_of_the_same_values(lake: Lake, tmp_path: Path) -> None:
    table = new_trips(tmp_path, ["2026/01/31", "2026/1/31"])
    with pytest.raises(PartitionValueError, match="have the same values 2026-01-31"):
        lake.sync(table, partition_extractor_class="SlashEncodedDayPartitionValueExtractor")


def test_a_partition_without_values_costs_no_entry(lake: Lake, tmp_path: Path) -> None:
    table = new_trips(tmp_path, ["2026/01/31"])
    extractor = "SlashEncodedDayPartitionValueExtractor"
    given: dict[str, Any] = {
        "partition_extractor_class": extractor,
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
    table = new_trips(tmp_path)
    table.savepoint()
    lake.sync(table)
    table.delete_savepoint(table.savepoints[0].instant)
    assert lake.sync(table).entries[0].change is EntryChange.UNCHANGED


def test_several_partition_columns(lake: Lake, tmp_path: Path) -> None:
    years = rows(1, 2, city=["Ulm", "Bern"], year=pa.array([2025, 2026], pa.int32()))
    table = new_table(tmp_path / "trips", years, partition_by=["city", "year"])
    lake.sync(table)
    assert types(lake.entry("trips").partitionKeys) == [("city", "string"), ("year", "int")]
    assert sorted(lake.partitions("trips")) == ["city=Bern/year=2026", "city=Ulm/year=2025"]
    assert lake.ids("trips", filter=[("year", ">", 2025)]) == [2]
    extractor = "HiveStylePartitionValueExtractor"
    with pytest.raises(PartitionValueError, match="city, year"):
        lake.sync(table, table="other", partition_extractor_class=extractor)


def test_the_command_line_registers_a_table(lake: Lake, tmp_path: Path) -> None:
    table = new_table(tmp_path / "trips", rows(1, 2, day=["a", "b"]))
    given = ["sync", "hive", table.path, "--uri", lake.service.uri]
    given += ["--database", lake.name, "--table", "rides"]
    planned = run(*given, "--dry-run")
    assert planned.exit_code == 0, planned.output
    assert "Nothing was changed" in planned.output
    done = run_json(*given)
    assert (done["tool"], done["address"], done["dry_run"]) == ("hive", lake.service.uri, False)
    assert done["entries"] == [
        {
            "database": lake.name,
            "name": "rides",
            "change": "created",
            "columns": [],
            "partitions_added": ["a", "b"],
            "partitions_changed": [],
            "partitions_dropped": [],
            "compared_all_partitions": True,
        }
    ]
    table.alter(add_columns={"tip": pa.int32()})
    assert "rides: tip int added" in run(*given).output
    table.insert(rows(3, schema=table.schema, day="c"))
    options = {**lake.options, f"{HIVE}enable": "true", f"{HIVE}table": "rides"}
    asked = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
    assert run_json("table", "validate", table.path, *asked, code=4)["differences"] == [
        {
            "source": "metastore",
            "subject": f"partition c of {lake.name}.rides",
            "expected": "there",
            "found": "not there",
        }
    ]


# --- tables in AWS Glue, as moto serves it, and as its own client sees them
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
    table.bulk_insert(glue_trips(range(len(days)), days))
    return table


def glue_trips(ids: Any, days: list[str]) -> pa.Table:
    return pa.table({"id": list(ids), "day": days}, DAYS)


def names(columns: Any) -> list[tuple[str, str]]:
    return [(one["Name"], one["Type"]) for one in columns]


def test_hundreds_of_partitions(
    catalog: Catalog, tmp_path: Path, calls: list[tuple[str, int]]
) -> None:
    days = [f"d{number:04d}" for number in range(130)]
    table = made_table(tmp_path / "trips", days, catalog.options)
    done = table.sync("glue")
    assert (done.tool, done.creates_database) == (SyncTool.GLUE, True)
    assert calls == [("batch_create_partition", 100), ("batch_create_partition", 30)]
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

    table.insert(glue_trips([2000], ["new"]))
    table.delete_partitions([f"d{number:04d}" for number in range(26)])
    [entry] = table.sync("glue").entries
    assert (entry.added, len(entry.dropped), entry.compares_all) == (("new",), 26, False)
    assert calls == [
        ("batch_create_partition", 1),
        ("batch_delete_partition", 25),
        ("batch_delete_partition", 1),
    ]
    calls.clear()
    version = catalog.entry("trips")["VersionId"]
    assert table.sync("glue").is_up_to_date
    assert calls == []
    assert catalog.entry("trips")["VersionId"] == version

    table.alter(add_columns={"tip": pa.int32()})
    [entry] = table.sync("glue").entries
    assert entry.columns == ("tip int added",)
    assert Counter(calls) == {("batch_update_partition", 100): 1, ("batch_update_partition", 5): 1}
    assert len(catalog.partitions("trips")) == 105
    assert names(catalog.entry("trips")["StorageDescriptor"]["Columns"])[-1] == ("tip", "int")


@WITH_LOGS
def test_a_table_with_logs_in_glue(
    catalog: Catalog, real_tables: Any, options: dict[str, Any], entries: Mapping[str, str]
) -> None:
    table = hudi.Table.open(real_tables(TRIPS))
    named = {"hoodie.datasource.meta.sync.glue.table_name": "t"}
    options = {**catalog.options, **named, **options}
    assert {one.name for one in table.sync("glue", options=options).entries} == set(entries)
    stored = catalog.client.get_tables(DatabaseName=catalog.name)["TableList"]
    assert {one["Name"] for one in stored} == set(entries)
    for name, input_format in entries.items():
        place = catalog.entry(name)["StorageDescriptor"]
        assert place["InputFormat"] == input_format
        as_base_files = place["SerdeInfo"]["Parameters"]["hoodie.query.as.ro.table"]
        assert as_base_files == str(input_format == BASE_FILES).lower()
        assert sorted(catalog.partitions(name)) == cities_of(table)
    assert table.sync("glue", options=options).is_up_to_date


def test_commits_are_followed_by_syncs_to_glue(catalog: Catalog, tmp_path: Path) -> None:
    options = {
        **catalog.options,
        SyncConfig.enabled.key: True,
        SyncConfig.tools.key: GLUE_TOOL,
        # alone it names no tool
        "hoodie.datasource.hive_sync.mode": "hms",
        "hoodie.datasource.meta.sync.glue.table_name": "rides",
    }
    table = made_table(tmp_path / "trips", ["a"], options)
    table.insert(glue_trips([5], ["b"]))
    assert sorted(catalog.partitions("rides")) == ["a", "b"]
    nowhere = {**options, "hoodie.aws.glue.endpoint": "http://127.0.0.1:1"}
    with pytest.raises(MetaSyncError, match="sync with glue") as raised:
        table.insert(glue_trips([6], ["c"]), options=nowhere)
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
        table.insert(glue_trips([5], ["b"]), options=enabled)
