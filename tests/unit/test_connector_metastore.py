"""Tables that a Hive metastore knows: what it is asked, and what a connector makes of it."""

from __future__ import annotations

import gc
import socket
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hive_metastore import ttypes
from hudi_conformance.hive_metastore import HiveMetastore as Service

import hudi_core as hudi
from hudi_core.connector import Connector
from hudi_core.errors import (
    InvalidOptionError,
    MetastoreEntryError,
    MetastoreError,
    UnsupportedTableError,
)
from hudi_core.metastore.hive import HiveMetastore
from hudi_core.read.connector.handles import QueryKind, TableName
from hudi_core.read.connector.split_source import SplitSource
from tests.hudi_tables import TRIPS
from tests.metastore_calls import recorded
from tests.open_files import open_files
from tests.unit.test_connector_loading import loaders

BASE_FILES = "org.apache.hudi.hadoop.HoodieParquetInputFormat"
REAL_TIME = "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat"
SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("Day", pa.string())])


@dataclass
class Database:
    """A database of its own in the metastore of the run."""

    service: Service
    name: str

    def register(
        self,
        name: str,
        location: str,
        keys: Sequence[str] = (),
        partitions: Sequence[tuple[Sequence[str], str]] = (),
        input_format: str = BASE_FILES,
        **entry: Any,
    ) -> TableName:
        columns = [ttypes.FieldSchema(name="id", type="bigint")]

        def place(path: str) -> ttypes.StorageDescriptor:
            return ttypes.StorageDescriptor(
                cols=columns,
                location=path,
                inputFormat=input_format,
                serdeInfo=ttypes.SerDeInfo(parameters=entry.pop("serde", {})),
            )

        with self.service.client() as client:
            client.create_table(
                ttypes.Table(
                    tableName=name,
                    dbName=self.name,
                    sd=place(location),
                    partitionKeys=[ttypes.FieldSchema(name=key, type="string") for key in keys],
                    tableType=entry.get("table_type", "EXTERNAL_TABLE"),
                    parameters={"EXTERNAL": "TRUE", **entry.get("parameters", {})},
                )
            )
            if partitions:
                client.add_partitions(
                    [
                        ttypes.Partition(
                            values=list(values), dbName=self.name, tableName=name, sd=place(path)
                        )
                        for values, path in partitions
                    ]
                )
        return TableName(self.name, name)

    def connector(
        self, uri: str | None = None, options: Mapping[str, object] | None = None
    ) -> Connector:
        return Connector({"hive.metastore.uri": uri or self.service.uri, **(options or {})})


@pytest.fixture
def database(metastore: Service) -> Database:
    name = f"c{uuid.uuid4().hex}"
    with metastore.client() as client:
        client.create_database(
            ttypes.Database(name=name, locationUri=f"file://{metastore.warehouse}/{name}")
        )
    return Database(metastore, name)


def new_table(path: Path, days: Sequence[str], **options: Any) -> hudi.Table:
    table = hudi.Table.create(
        path,
        SCHEMA,
        record_key="id",
        partition_by="Day",
        options={"hoodie.fs.fsync": False, **options},
    )
    table.bulk_insert(pa.table({"id": range(len(days)), "Day": list(days)}, SCHEMA))
    return table


def rows(connector: Connector, table: Any, *args: Any, **options: Any) -> list[tuple[int, str]]:
    with connector.scan(table, *args, **options) as source:
        parts = [connector.read(split, ["id", "Day"]).read_all() for split in source]
    return sorted((row["id"], row["Day"]) for part in parts for row in part.to_pylist())


# --- what is asked -------------------------------------------------------------------------------


def test_the_metastore_is_asked_in_growing_batches(database: Database, tmp_path: Path) -> None:
    days = [f"d{n:03d}" for n in range(400)]
    table = new_table(tmp_path / "t", days)
    name = database.register(
        "t", table.path, ["day"], [([day], f"{table.path}/{day}") for day in days]
    )
    with recorded(database.service) as recorder:
        connector = database.connector(recorder.uri)
        assert rows(connector, name) == [(n, day) for n, day in enumerate(days)]
        sizes = [count for method, count in recorder.asked if method == "get_partitions_by_names"]
        assert sizes == [10, 20, 40, 80, 100, 100, 50]
        recorder.asked.clear()
        wanted = [("Day", "in", days[5:30])]
        assert rows(connector, name, wanted) == [(n, days[n]) for n in range(5, 30)]
        sizes = [count for method, count in recorder.asked if method == "get_partitions_by_names"]
        assert sizes == [10, 15], "only partitions that may match"
        recorder.asked.clear()
        smaller = database.connector(
            recorder.uri,
            {"hudi.min-partition-batch-size": 100, "hudi.max-partition-batch-size": 300},
        )
        assert len(rows(smaller, name)) == 400
        sizes = [count for method, count in recorder.asked if method == "get_partitions_by_names"]
        assert sizes == [100, 200, 100]
        _until(lambda: not recorder.open)


def test_close_ends_calls_and_connections(database: Database, tmp_path: Path) -> None:
    days = [f"d{n:03d}" for n in range(40)]
    table = new_table(tmp_path / "t", days)
    name = database.register(
        "t", table.path, ["day"], [([day], f"{table.path}/{day}") for day in days]
    )
    called, gate = threading.Event(), threading.Event()

    def hang(method: str) -> None:
        if method == "get_partitions_by_names":
            called.set()
            gate.wait(60)

    with recorded(database.service, hang) as recorder:
        source = database.connector(recorder.uri).scan(name)
        assert called.wait(30)
        source.close()
        assert not loaders()
        assert not gate.is_set(), "it did not wait for the metastore"
        gate.set()
        _until(lambda: not recorder.open)


@pytest.mark.parametrize("end", ["read", "refused", "given up"])
def test_no_connection_is_left_without_a_close(
    database: Database, tmp_path: Path, end: str
) -> None:
    table = new_table(tmp_path / "t", ["a"])
    name = database.register("t", table.path, ["day"], [(["a"], f"{table.path}/a")])
    called, gate = threading.Event(), threading.Event()

    def hang(method: str) -> None:
        if method == "get_partition_names":
            called.set()
            gate.wait(60)

    with recorded(database.service, hang) as recorder:
        before = open_files()
        source: SplitSource | None = database.connector(recorder.uri).scan(name)
        assert source is not None
        assert called.wait(30)
        assert recorder.open
        if end == "read":
            gate.set()
            assert len(list(source)) == 1
        elif end == "refused":
            with database.service.client() as client:
                client.drop_table(database.name, "t", False)
            gate.set()
            with pytest.raises(MetastoreError):
                list(source)
        else:
            source = None
            gc.collect()
            _until(lambda: not loaders())
            assert not gate.is_set(), "it did not wait for the metastore"
            gate.set()
        _until(lambda: not loaders())
        _until(lambda: not open_files() - before)


def test_an_error_of_the_metastore_comes_out(database: Database, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", ["a"])
    name = database.register("t", table.path, ["day"], [(["a"], f"{table.path}/a")])
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


def _until(is_so: Callable[[], bool]) -> None:
    for _ in range(6000):
        if is_so():
            return
        threading.Event().wait(0.005)
    raise AssertionError("it never came")


# --- what there is -------------------------------------------------------------------------------


def test_schemas_tables_and_no_views(database: Database, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", ["a"])
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


def test_what_no_sync_has_brought_is_read_where_asked_for(
    database: Database, tmp_path: Path
) -> None:
    table = new_table(tmp_path / "t", ["a", "b", "c"])
    name = database.register("t", table.path, ["day"], [(["b"], f"file:{table.path}/b")])
    assert rows(database.connector(), name) == [(1, "b")]
    own = database.connector(options={"hudi.metadata.partition-listing.enabled": True})
    assert len(rows(own, name)) == 3
    unpartitioned = database.register("u", table.path)
    assert len(rows(database.connector(), unpartitioned)) == 3


def test_a_partition_elsewhere_is_refused(database: Database, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", ["a"])
    name = database.register("t", table.path, ["day"], [(["a"], f"{tmp_path}/other/a")])
    with database.connector().scan(name) as source, pytest.raises(MetastoreEntryError):
        list(source)


def test_null_partitions_and_paths_that_are_no_names(database: Database, tmp_path: Path) -> None:
    table = hudi.Table.create(tmp_path / "t", SCHEMA, record_key="id", partition_by="Day")
    table.insert(pa.table({"id": [1, 2], "Day": ["2026-01-31", None]}, SCHEMA))
    null = "__HIVE_DEFAULT_PARTITION__"
    name = database.register(
        "t",
        table.path,
        ["day"],
        [(["2026-01-31"], f"{table.path}/2026-01-31"), ([null], f"{table.path}/{null}")],
    )
    connector = database.connector()
    with connector.scan(name) as source:
        keys = {tuple(split.partition_keys) for split in source}
    assert keys == {(("Day", "2026-01-31"),), (("Day", None),)}
    with connector.scan(name, [("Day", "is null", None)]) as source:
        [split] = list(source)
    assert connector.read(split, "id").read_all().to_pylist() == [{"id": 2}]


@pytest.mark.parametrize("format_name", ["iceberg", "delta"])
@pytest.mark.parametrize("key", ["table_type", "spark.sql.sources.provider"])
def test_tables_registered_as_what_they_are(
    database: Database, tmp_path: Path, format_name: str, key: str
) -> None:
    table = hudi.Table.create(
        tmp_path / "t", SCHEMA, record_key="id", partition_by="Day", format=format_name
    )
    table.insert(pa.table({"id": [1, 2], "Day": ["a", "b"]}, SCHEMA))
    entry: dict[str, Any] = {"input_format": "", "parameters": {key: format_name.upper()}}
    name = database.register("t", table.path, **entry)
    connector = database.connector()
    assert connector.table(name).format == format_name
    assert rows(connector, name) == [(1, "a"), (2, "b")]
    alone = database.register("alone", str(tmp_path / "alone"), **entry)
    with pytest.raises(MetastoreEntryError, match=f"of the format {format_name}"):
        connector.table(alone)
    native = new_table(tmp_path / "n", ["a"])
    wrong = database.register("wrong", native.path, **entry)
    with pytest.raises(MetastoreEntryError, match="has the format native"):
        connector.table(wrong)
    elsewhere: dict[str, Any] = {
        **entry,
        "parameters": {key: format_name, "hudi.base.path": table.path},
    }
    moved = database.register("moved", str(tmp_path / "elsewhere"), **elsewhere)
    assert rows(connector, moved) == [(1, "a"), (2, "b")]


def test_entries_of_other_things(database: Database, tmp_path: Path) -> None:
    connector = database.connector()
    text = "org.apache.hadoop.mapred.TextInputFormat"
    name = database.register("plain", str(tmp_path / "p"), input_format=text)
    with pytest.raises(MetastoreEntryError, match="TextInputFormat"):
        connector.table(name)
    view = database.register(
        "view", str(tmp_path / "v"), input_format="", table_type="VIRTUAL_VIEW"
    )
    with pytest.raises(MetastoreEntryError, match="VIRTUAL_VIEW"):
        connector.table(view)
    nothing = database.register("nothing", str(tmp_path / "nothing"))
    with pytest.raises(MetastoreEntryError, match="no timeline"):
        connector.table(nothing)


def test_entries_of_a_table_with_logs(
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
    with pytest.raises(UnsupportedTableError, match="MERGE_ON_READ"):
        connector.scan(TableName(database.name, "rt"))


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
