"""Tables that a Hive metastore knows: what it is asked, and what a connector makes of it."""

from __future__ import annotations

import gc
import socket
import threading
import uuid
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hive_metastore import ttypes
from hudi_conformance.hive_metastore import HiveMetastore as Service

import hudi_core as hudi
from hudi_core.doors.connector import Connector
from hudi_core.errors import (
    InvalidOptionError,
    MetastoreEntryError,
    MetastoreError,
)
from hudi_core.metastore.hive import HiveMetastore
from hudi_core.read.connector.handles import QueryKind, TableName
from hudi_core.read.connector.split_source import SplitSource
from tests.hudi_tables import TRIPS
from tests.metastore_calls import recorded
from tests.open_files import open_files
from tests.tables import new_table, pairs, rows
from tests.unit.test_connector_loading import loaders, until

BASE_FILES = "org.apache.hudi.hadoop.HoodieParquetInputFormat"
REAL_TIME = "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat"
DAYS = pa.schema([pa.field("id", pa.int64()), pa.field("Day", pa.string())])
BY_NAMES = "get_partitions_by_names"


@dataclass
class Database:
    """A database of its own in the metastore of the run."""

    service: Service
    name: str

    def register(
        self,
        name: str,
        location: str,
        partitions: Mapping[str, str] | None = None,
        input_format: str = BASE_FILES,
        **entry: Any,
    ) -> TableName:
        """Enter a table, with partitions by day at some places."""
        serde = ttypes.SerDeInfo(parameters=entry.pop("serde", {}))

        def place(path: str) -> ttypes.StorageDescriptor:
            columns = [ttypes.FieldSchema(name="id", type="bigint")]
            return ttypes.StorageDescriptor(
                cols=columns, location=path, inputFormat=input_format, serdeInfo=serde
            )

        day = ttypes.FieldSchema(name="day", type="string")
        made = ttypes.Table(
            tableName=name,
            dbName=self.name,
            sd=place(location),
            partitionKeys=[day] if partitions else [],
            tableType=entry.get("table_type", "EXTERNAL_TABLE"),
            parameters={"EXTERNAL": "TRUE", **entry.get("parameters", {})},
        )
        parts = [
            ttypes.Partition(values=[key], dbName=self.name, tableName=name, sd=place(path))
            for key, path in (partitions or {}).items()
        ]
        with self.service.client() as client:
            client.create_table(made)
            if parts:
                client.add_partitions(parts)
        return TableName(self.name, name)

    def of_days(self, path: Path, *days: str) -> tuple[hudi.Table, TableName]:
        """A table with a row of each day, and its name."""
        table = days_table(path, *days)
        return table, self.register("t", table.path, {day: f"{table.path}/{day}" for day in days})

    def connector(
        self, uri: str | None = None, options: Mapping[str, object] | None = None
    ) -> Connector:
        return Connector({"hive.metastore.uri": uri or self.service.uri, **(options or {})})


@pytest.fixture
def database(metastore: Service) -> Database:
    name = f"c{uuid.uuid4().hex}"
    with metastore.client() as client:
        place = f"file://{metastore.warehouse}/{name}"
        client.create_database(ttypes.Database(name=name, locationUri=place))
    return Database(metastore, name)


def days_table(path: Path, *days: str | None, **settings: Any) -> hudi.Table:
    some = rows(*range(len(days)), schema=DAYS, Day=list(days))
    return new_table(path, some, partition_by="Day", **settings)


def found(connector: Connector, table: Any, *args: Any, **options: Any) -> list[tuple[int, str]]:
    with connector.scan(table, *args, **options) as source:
        parts = [connector.read(split, ["id", "Day"]).read_all() for split in source]
    return pairs(pa.concat_tables(parts))


# --- what is asked
def test_the_metastore_is_asked_in_growing_batches(database: Database, tmp_path: Path) -> None:
    days = [f"d{n:03d}" for n in range(400)]
    _, name = database.of_days(tmp_path / "t", *days)
    with recorded(database.service) as recorder:

        def sizes() -> list[int]:
            asked = [count for method, count in recorder.asked if method == BY_NAMES]
            recorder.asked.clear()
            return asked

        connector = database.connector(recorder.uri)
        assert found(connector, name) == [(n, day) for n, day in enumerate(days)]
        assert sizes() == [10, 20, 40, 80, 100, 100, 50]
        wanted = [("Day", "in", days[5:30])]
        assert found(connector, name, wanted) == [(n, days[n]) for n in range(5, 30)]
        assert sizes() == [10, 15], "only partitions that may match"
        batches = {"hudi.min-partition-batch-size": 100, "hudi.max-partition-batch-size": 300}
        assert len(found(database.connector(recorder.uri, batches), name)) == 400
        assert sizes() == [100, 200, 100]
        until(lambda: not recorder.open)


class Hanging:
    """Holds a method of the metastore back until a gate is opened."""

    def __init__(self, method: str) -> None:
        self.called, self.gate, self._method = threading.Event(), threading.Event(), method

    def __call__(self, method: str) -> None:
        if method == self._method:
            self.called.set()
            self.gate.wait(60)


def test_close_ends_calls_and_connections(database: Database, tmp_path: Path) -> None:
    _, name = database.of_days(tmp_path / "t", *(f"d{n:03d}" for n in range(40)))
    hang = Hanging(BY_NAMES)
    with recorded(database.service, hang) as recorder:
        source = database.connector(recorder.uri).scan(name)
        assert hang.called.wait(30)
        source.close()
        assert not loaders()
        assert not hang.gate.is_set(), "it did not wait for the metastore"
        hang.gate.set()
        until(lambda: not recorder.open)


@pytest.mark.parametrize("end", ["read", "refused", "given up"])
def test_no_connection_stays_without_a_close(database: Database, tmp_path: Path, end: str) -> None:
    _, name = database.of_days(tmp_path / "t", "a")
    hang = Hanging("get_partition_names")
    with recorded(database.service, hang) as recorder:
        before = open_files()
        source: SplitSource | None = database.connector(recorder.uri).scan(name)
        assert source is not None
        assert hang.called.wait(30)
        assert recorder.open
        if end == "read":
            hang.gate.set()
            assert len(list(source)) == 1
        elif end == "refused":
            with database.service.client() as client:
                client.drop_table(database.name, "t", False)
            hang.gate.set()
            with pytest.raises(MetastoreError):
                list(source)
        else:
            source = None
            gc.collect()
            until(lambda: not loaders())
            assert not hang.gate.is_set(), "it did not wait for the metastore"
            hang.gate.set()
        until(lambda: not loaders())
        until(lambda: not open_files() - before)


def test_an_error_of_the_metastore_comes_out(database: Database, tmp_path: Path) -> None:
    _, name = database.of_days(tmp_path / "t", "a")
    connector = database.connector()
    handle = connector.table(name)
    with database.service.client() as client:
        client.drop_table(database.name, "t", False)
    with connector.scan(handle) as source, pytest.raises(MetastoreError):
        list(source)
    broken = database.connector("thrift://127.0.0.1:1")
    with broken.scan(handle) as source, pytest.raises(MetastoreError, match="did not answer"):
        list(source)
    with pytest.raises(MetastoreError):
        broken.metadata.list_schemas()
    assert not loaders()


# --- what there is
def test_schemas_tables_and_no_views(database: Database, tmp_path: Path) -> None:
    table = days_table(tmp_path / "t", "a")
    database.register("b", table.path)
    name = database.register("a", table.path)
    metadata = database.connector().metadata
    assert {database.name, "default"} <= set(metadata.list_schemas())
    assert metadata.list_tables(database.name) == [(database.name, "a"), (database.name, "b")]
    assert name in metadata.list_tables()
    assert metadata.list_tables("nothing") == []
    assert metadata.list_views() == metadata.list_views(database.name) == []
    assert metadata.table(database.name, "nothing") is None
    assert metadata.table("nothing", "a") is None
    handle = metadata.table(*name)
    assert handle is not None
    assert (handle.base_path, handle.format) == (table.path, "native")
    assert handle.partition_columns == ("Day",)
    with pytest.raises(MetastoreEntryError, match="not in the metastore"):
        database.connector().scan(TableName(database.name, "nothing"))


def test_what_no_sync_brought_is_read_where_asked_for(database: Database, tmp_path: Path) -> None:
    table = days_table(tmp_path / "t", "a", "b", "c")
    name = database.register("t", table.path, {"b": f"file:{table.path}/b"})
    assert found(database.connector(), name) == [(1, "b")]
    own = database.connector(options={"hudi.metadata.partition-listing.enabled": True})
    assert len(found(own, name)) == 3
    unpartitioned = database.register("u", table.path)
    assert len(found(database.connector(), unpartitioned)) == 3
    elsewhere = database.register("v", table.path, {"a": f"{tmp_path}/other/a"})
    with database.connector().scan(elsewhere) as source, pytest.raises(MetastoreEntryError):
        list(source)


def test_null_partitions_and_paths_that_are_no_names(database: Database, tmp_path: Path) -> None:
    table = days_table(tmp_path / "t", "2026-01-31", None)
    names = ("2026-01-31", "__HIVE_DEFAULT_PARTITION__")
    name = database.register("t", table.path, {one: f"{table.path}/{one}" for one in names})
    connector = database.connector()
    with connector.scan(name) as source:
        keys = {tuple(split.partition_keys) for split in source}
    assert keys == {(("Day", "2026-01-31"),), (("Day", None),)}
    with connector.scan(name, [("Day", "is null", None)]) as source:
        [split] = list(source)
    assert connector.read(split, "id").read_all().to_pylist() == [{"id": 1}]


@pytest.mark.parametrize("format_name", ["iceberg", "delta"])
@pytest.mark.parametrize("key", ["table_type", "spark.sql.sources.provider"])
def test_tables_of_formats(database: Database, tmp_path: Path, format_name: str, key: str) -> None:
    table = days_table(tmp_path / "t", "a", "b", format=format_name)
    entry: dict[str, Any] = {"input_format": "", "parameters": {key: format_name.upper()}}
    name = database.register("t", table.path, **entry)
    connector = database.connector()
    assert connector.table(name).format == format_name
    assert found(connector, name) == [(0, "a"), (1, "b")]
    alone = database.register("alone", str(tmp_path / "alone"), **entry)
    with pytest.raises(MetastoreEntryError, match=f"of the format {format_name}"):
        connector.table(alone)
    wrong = database.register("wrong", days_table(tmp_path / "n", "a").path, **entry)
    with pytest.raises(MetastoreEntryError, match="has the format native"):
        connector.table(wrong)
    entry["parameters"] = {key: format_name, "hudi.base.path": table.path}
    moved = database.register("moved", str(tmp_path / "elsewhere"), **entry)
    assert found(connector, moved) == [(0, "a"), (1, "b")]


def test_entries_of_other_things(database: Database, tmp_path: Path) -> None:
    text = {"input_format": "org.apache.hadoop.mapred.TextInputFormat"}
    view = {"input_format": "", "table_type": "VIRTUAL_VIEW"}
    entries: dict[str, dict[str, Any]]
    entries = {"TextInputFormat": text, "VIRTUAL_VIEW": view, "no timeline": {}}
    for number, (reason, entry) in enumerate(entries.items()):
        name = database.register(f"n{number}", str(tmp_path / "nothing"), **entry)
        with pytest.raises(MetastoreEntryError, match=reason):
            database.connector().table(name)


def test_entries_of_tables_with_logs(
    database: Database, real_tables: Callable[[str], Path]
) -> None:
    path = str(real_tables(TRIPS))
    connector = database.connector()
    kinds = {
        database.register("ro", path): QueryKind.READ_OPTIMIZED,
        database.register("rt", path, input_format=REAL_TIME): QueryKind.SNAPSHOT,
        database.register(
            "as_ro", path, input_format=REAL_TIME, serde={"hoodie.query.as.ro.table": "true"}
        ): QueryKind.READ_OPTIMIZED,
    }
    for name, kind in kinds.items():
        assert connector.table(name).kind is kind
    with connector.scan(TableName(database.name, "ro")) as source:
        assert list(source)
    with connector.scan(TableName(database.name, "rt")) as source:
        assert any(split.log_files for split in source)


def test_without_a_metastore_tables_have_no_names() -> None:
    connector = Connector()
    for ask in (
        connector.metadata.list_schemas,
        connector.metadata.list_tables,
        lambda: connector.table(TableName("a", "b")),
    ):
        with pytest.raises(InvalidOptionError, match=r"hive\.metastore\.uri"):
            ask()


def test_a_connection_that_broke_is_opened_again(database: Database) -> None:
    with (
        recorded(database.service) as recorder,
        closing(HiveMetastore([recorder.uri])) as metastore,
    ):
        assert metastore.databases()
        recorder.open[0].shutdown(socket.SHUT_RDWR)
        with pytest.raises(MetastoreError):
            metastore.databases()
        assert metastore.databases()
        metastore.interrupt()
        with pytest.raises(MetastoreError, match=r"interrupted|closed|read 0"):
            metastore.databases()
