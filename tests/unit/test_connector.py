"""Connectors: what they ask a Hive metastore, load of splits, and leave of themselves."""

from __future__ import annotations

import gc
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

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
    ResourceLimitError,
    ScanClosedError,
    StorageError,
)
from hudi_core.metastore.hive import HiveMetastore
from hudi_core.model.files import FileId, PartitionPath
from hudi_core.model.instant_time import InstantTime
from hudi_core.read.connector.handles import QueryKind, TableName
from hudi_core.read.connector.listing import FileListing, SnapshotListing
from hudi_core.read.connector.loader import Channel, LoadLimits, LoadState, SplitLoad
from hudi_core.read.connector.partitions import BatchSizes, PartitionInfo
from hudi_core.read.connector.predicate import ALL
from hudi_core.read.connector.split_source import SplitSource
from hudi_core.read.connector.splits import Split, SplitFactory
from hudi_core.read.plan import PlannedSlice
from tests.hudi_tables import TRIPS
from tests.metastore_calls import recorded
from tests.moto_s3 import Ending, S3Service, serving
from tests.open_files import open_files
from tests.tables import new_table, pairs, rows
from tests.unit.test_write_attempts import no_threads

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
    days = [f"d{n:03d}" for n in range(260)]
    _, name = database.of_days(tmp_path / "t", *days)
    with recorded(database.service) as recorder:

        def sizes() -> list[int]:
            asked = [count for method, count in recorder.asked if method == BY_NAMES]
            recorder.asked.clear()
            return asked

        connector = database.connector(recorder.uri)
        assert found(connector, name) == [(n, day) for n, day in enumerate(days)]
        assert sizes() == [10, 20, 40, 80, 100, 10]
        wanted = [("Day", "in", days[5:30])]
        assert found(connector, name, wanted) == [(n, days[n]) for n in range(5, 30)]
        assert sizes() == [10, 15], "only partitions that may match"
        batches = {"hudi.min-partition-batch-size": 100, "hudi.max-partition-batch-size": 300}
        assert len(found(database.connector(recorder.uri, batches), name)) == 260
        assert sizes() == [100, 160]
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
        gc.collect()  # garbage of py4j opens a connection to Java, which stays
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


# --- the background load of splits: batches, bounds, errors, and that nothing of it remains
MB = 1 << 20
ID_ONLY = pa.schema([pa.field("id", pa.int64())])
INSTANT = InstantTime("20260101000000000")
FACTORY = SplitFactory("/t", ID_ONLY, ALL, "a mark", 128 * MB, 128 * MB, 0.05)
Action = Callable[[str], None]


def nothing(_: str) -> None:
    """What most partitions do."""


@dataclass
class Partitions:
    """Some partitions, and what happens when they are asked for."""

    count: int
    on_batch: Action = nothing
    ended: threading.Event = field(default_factory=threading.Event)
    interrupted: threading.Event = field(default_factory=threading.Event)

    def batches(self) -> Iterator[Sequence[PartitionInfo]]:
        names = [f"p{n:04d}" for n in range(self.count)]
        for cut in BatchSizes(10, 100).cut(len(names)):
            self.on_batch(names[cut][0])
            yield [PartitionInfo(PartitionPath(name), name) for name in names[cut]]

    def interrupt(self) -> None:
        self.interrupted.set()

    def close(self) -> None:
        self.ended.set()


class Files(FileListing):
    """So many files in each partition."""

    def __init__(self, count: int, size: int, on_list: Action = nothing) -> None:
        self.schema, self.predicate = ID_ONLY, ALL
        self._count, self._size, self._on_list = count, size, on_list

    def partitions(self) -> Sequence[PartitionPath]:
        return []

    def list_files(self, partitions: Sequence[PartitionPath]) -> Sequence[PlannedSlice]:
        for path in partitions:
            self._on_list(path)
        return [
            PlannedSlice(
                f"{path}/{n}", f"/t/{path}/{n}", self._size, path, FileId(str(n)), {}, INSTANT
            )
            for path in partitions
            for n in range(self._count)
        ]


def source(
    partitions: Partitions, files: Files, outstanding: int = 10_000, **options: Any
) -> SplitSource:
    load = SplitLoad(partitions, files, FACTORY, LoadLimits(4, 2, outstanding, 100))
    return SplitSource(load, "/t", options.pop("per_second", 1 << 30), **options)


def loaders() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name.startswith("hudi-splits")]


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    assert not loaders()


def test_every_split_comes_once() -> None:
    partitions = Partitions(137)
    with source(partitions, Files(9, MB)) as splits:
        found = [split.path for split in splits]
        progress = splits.progress
        assert splits.get_next_batch().is_last, "it says so again"
    assert len(found) == len(set(found)) == 137 * 9
    assert (progress.partitions, progress.partitions_listed) == (137, 137)
    assert (progress.files, progress.splits) == (137 * 9, 137 * 9)
    assert splits.progress.state is LoadState.FINISHED
    assert partitions.ended.is_set()


def test_it_loads_before_anybody_asks() -> None:
    with source(Partitions(0), Files(1, MB)) as splits:
        batch = splits.get_next_batch()
        assert (batch.splits, batch.is_last) == ((), True)
    with source(Partitions(20), Files(3, MB)) as splits:
        until(lambda: splits.progress.state is LoadState.FINISHED)
        assert splits.progress.splits == 60
        with pytest.raises(InvalidOptionError):
            splits.get_next_batch(0)


@pytest.mark.parametrize(
    ("size", "quota", "count"),
    [(128 * MB, 100, 100), (MB, 100, 2000), (64 * MB, 100, 200), (64 * MB, 1, 2), (128 * MB, 1, 1)],
)
def test_a_batch_has_as_many_splits_as_its_quota_takes(size: int, quota: int, count: int) -> None:
    with source(Partitions(60), Files(50, size), linger_s=60) as splits:
        assert len(splits.get_next_batch(quota).splits) == count


def test_a_split_above_the_quota_comes_alone() -> None:
    heavy = SplitFactory("/t", ID_ONLY, ALL, "a mark", 128 * MB, 128 * MB, 0.05)
    load = SplitLoad(Partitions(1), Files(3, 128 * MB), heavy, LoadLimits(1, 1, 10, 100))
    with SplitSource(load, "/t", 1 << 30) as splits:
        taken = splits._load.splits.take_while(lambda _: False, 5)
        assert taken == []
        assert [len(splits.get_next_batch(1).splits) for _ in range(3)] == [1, 1, 1]


def test_a_batch_waits_a_little_for_more() -> None:
    gate = threading.Event()

    def second_waits(name: str) -> None:
        if name > "p0001":
            gate.wait(30)

    with source(Partitions(4), Files(1, MB, second_waits), linger_s=30) as splits:
        until(lambda: splits.progress.splits == 2)
        threading.Timer(0.05, gate.set).start()
        batch = splits.get_next_batch()
        assert (len(batch.splits), batch.is_last) == (4, True)


def test_no_more_wait_than_the_bound() -> None:
    with source(Partitions(40), Files(10, MB), outstanding=7) as splits:
        until(lambda: len(splits._load.splits) == 7)
        found = 0
        for _ in splits:
            assert len(splits._load.splits) <= 7
            found += 1
        assert found == 400
        assert splits._load.progress.partitions == 40


def test_a_slow_taker_stops_the_listing() -> None:
    with source(Partitions(1000), Files(10, MB), outstanding=20) as splits:
        until(lambda: len(splits._load.splits) == 20 and len(splits._load._files) == 20)
        assert splits.progress.partitions_listed < 400
        assert splits.progress.partitions < 700, "the metastore is not asked for all"


def test_splits_are_handed_out_no_faster_than_is_allowed() -> None:
    began = time.monotonic()
    with source(Partitions(1), Files(30, MB), per_second=100) as splits:
        assert len(list(splits)) == 30
    # the last of three batches of ten at the soonest 0.2 seconds after the first
    with source(Partitions(1), Files(30, MB), per_second=10) as splits:
        assert [len(splits.get_next_batch().splits) for _ in range(2)] == [10, 10]
    assert time.monotonic() - began > 0.9


def fails(at: str) -> Action:
    def action(name: str) -> None:
        if name == at:
            raise OSError(f"no {at}")

    return action


@pytest.mark.parametrize(
    ("on_batch", "on_list"), [(fails("p0010"), nothing), (nothing, fails("p0005"))]
)
def test_an_error_comes_out_where_splits_are_taken(on_batch: Action, on_list: Action) -> None:
    partitions = Partitions(500, on_batch)
    splits = source(partitions, Files(3, MB, on_list))
    for _ in range(2):  # again and again
        with pytest.raises(OSError, match="no p00"):
            list(splits)
    until(lambda: not loaders())  # without a close
    assert splits.progress.state is LoadState.FAILED
    assert partitions.ended.is_set()
    splits.close()
    with pytest.raises(OSError, match="no p00"):
        splits.get_next_batch()


def test_close_stops_everything_at_once() -> None:
    partitions = Partitions(100_000)
    splits = source(partitions, Files(10, MB), outstanding=50)
    splits.get_next_batch()
    splits.close()
    assert not loaders()
    assert partitions.ended.is_set()
    assert partitions.interrupted.is_set()
    assert splits.progress.state is LoadState.CLOSED
    with pytest.raises(ScanClosedError, match="not all"):
        splits.get_next_batch()
    splits.close()


def test_close_interrupts_a_call_to_the_metastore() -> None:
    partitions = Partitions(100)

    def waits(_: str) -> None:
        assert partitions.interrupted.wait(30)
        raise OSError("interrupted")

    partitions.on_batch = waits
    splits = source(partitions, Files(1, MB))
    splits.close()
    with pytest.raises(ScanClosedError):
        splits.get_next_batch()


def test_close_wakes_who_waits() -> None:
    gate = threading.Event()

    def waits(_: str) -> None:
        gate.wait(30)

    splits = source(Partitions(1), Files(1, MB, waits))
    failed: list[BaseException] = []

    def take() -> None:
        try:
            splits.get_next_batch()
        except ScanClosedError as error:
            failed.append(error)

    taker = threading.Thread(target=take)
    taker.start()
    closer = threading.Thread(target=splits.close)
    closer.start()
    taker.join(30)
    assert len(failed) == 1
    gate.set()
    closer.join(30)


def test_a_source_that_is_given_up_ends_its_threads() -> None:
    splits: SplitSource | None = source(Partitions(100_000), Files(10, MB), outstanding=50)
    assert splits is not None
    splits.get_next_batch()
    assert loaders()
    splits = None
    gc.collect()
    until(lambda: not loaders())


def test_several_threads_take_each_split_once() -> None:
    found: list[Split] = []
    with source(Partitions(200), Files(10, MB)) as splits:
        takers = [threading.Thread(target=lambda: found.extend(splits)) for _ in range(4)]
        for one in takers:
            one.start()
        for one in takers:
            one.join()
    assert len(found) == len({split.path for split in found}) == 2000


def test_without_threads_it_says_so() -> None:
    partitions = Partitions(1)
    with no_threads(), pytest.raises(ResourceLimitError):
        source(partitions, Files(1, MB))
    assert partitions.ended.is_set()


def test_a_channel_that_is_stopped_takes_nothing() -> None:
    channel = Channel[int](2, 1)
    assert channel.put([1, 2])
    channel.stop()
    assert not channel.put([3])
    assert channel.take(5) == []
    assert channel.is_drained


@pytest.mark.parametrize(
    ("count", "expected"),
    [(0, []), (5, [5]), (10, [10]), (31, [10, 20, 1]), (400, [10, 20, 40, 80, 100, 100, 50])],
)
def test_batches_of_partitions_grow(count: int, expected: list[int]) -> None:
    names = range(count)
    assert [len(names[cut]) for cut in BatchSizes(10, 100).cut(count)] == expected


# --- what a scan leaves of itself, whichever way it ends
CITIES = [f"city-{number:02}" for number in range(40)]
ROWS = pa.table({"id": range(40), "city": CITIES})
# folders are listed, and most of the splits wait to be taken
OPTIONS = {"hoodie.metadata.enable": "false"}
SLOW = {"hudi.max-outstanding-splits": "2", "hudi.max-partition-batch-size": "10"}
Held = set[str]


@dataclass
class Gate:
    """Stands before an S3 service: holds listings of partitions back, or refuses them."""

    open: threading.Event = field(default_factory=threading.Event)
    asked: threading.Event = field(default_factory=threading.Event)
    refuses: bool = False

    def before(self, application: Any) -> Any:
        def answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
            if "/city-" in unquote_plus(environ["QUERY_STRING"]):
                self.asked.set()
                self.open.wait(30)
                if self.refuses:
                    start_response("403 Forbidden", [("Content-Type", "application/xml")])
                    return [b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>"]
            found: Iterable[bytes] = application(environ, start_response)
            return found

        return answer


@dataclass(frozen=True)
class Place:
    """A table, and how it is reached."""

    path: str
    given: dict[str, str]
    port: int | None = None

    def scan(self, **options: str) -> SplitSource:
        return Connector({**OPTIONS, **self.given, **options}).scan(self.path)

    def held(self) -> Held:
        """Threads, files and connections of this process, without those of the S3 service."""
        threads = {
            f"thread {one.ident} {one.name}"
            for one in threading.enumerate()
            if "process_request" not in one.name
        }
        of_service = _sockets_of(self.port)
        return threads | {one for one in open_files() if one.split()[-1] not in of_service}


def _sockets_of(port: int | None) -> set[str]:
    """The ends of connections that are the service's own, for it runs in this process."""
    lines = Path("/proc/self/net/tcp").read_text().splitlines()[1:]
    rows = [line.split() for line in lines]
    return {f"socket:[{row[9]}]" for row in rows if int(row[1].rpartition(":")[2], 16) == port}


@pytest.fixture(scope="module")
def gate() -> Gate:
    return Gate()


@pytest.fixture(scope="module")
def service(gate: Gate) -> Iterator[S3Service]:
    with serving(gate.before, Ending) as found:  # else clients keep connections
        yield found


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory, service: S3Service) -> dict[str, Place]:
    """The same table on a disk and in an object store."""
    disk = Place(str(tmp_path_factory.mktemp("leftovers") / "t"), {})
    store = Place(service.new_root(), service.given, int(service.endpoint.rpartition(":")[2]))
    return {"disk": disk, "s3": store}


@pytest.fixture(scope="module")
def tables(places: dict[str, Place], gate: Gate) -> dict[str, Place]:
    gate.open.set()
    for place in places.values():
        new_table(place.path, ROWS, {**OPTIONS, **place.given})
        with place.scan() as source:  # what the process keeps for all scans is there from now on
            assert len(list(source)) == len(CITIES)
    gc.collect()
    return places


@pytest.fixture(params=["disk", "s3"])
def place(request: pytest.FixtureRequest, tables: dict[str, Place]) -> Place:
    return tables[request.param]


@pytest.fixture
def store(tables: dict[str, Place], gate: Gate) -> Iterator[Place]:
    """The table in the store, whose partitions are not listed until the gate is opened."""
    gate.open.clear()
    gate.asked.clear()
    yield tables["s3"]
    gate.refuses = False
    gate.open.set()


def nothing_is_left(place: Place, before: Held) -> None:
    until(lambda: not place.held() - before)


def test_nothing_is_left_of_a_scan_that_is_read_to_its_end(place: Place) -> None:
    before = place.held()
    source = place.scan()
    assert len(list(source)) == len(CITIES)
    nothing_is_left(place, before)  # without a close
    source.close()


def test_nothing_is_left_after_a_close(place: Place) -> None:
    before = place.held()
    source = place.scan(**SLOW)
    assert source.get_next_batch(1).splits
    assert place.held() - before
    source.close()
    assert not {one for one in place.held() - before if one.startswith("thread")}
    nothing_is_left(place, before)


def test_nothing_is_left_after_an_error(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    real = SnapshotListing.list_files

    def fails(
        listing: SnapshotListing, partitions: Sequence[PartitionPath]
    ) -> Sequence[PlannedSlice]:
        found = real(listing, partitions)
        if CITIES[20] in partitions:
            raise OSError("no city")
        return found

    before = place.held()
    monkeypatch.setattr(SnapshotListing, "list_files", fails)
    source = place.scan()
    with pytest.raises(OSError, match="no city"):
        list(source)
    nothing_is_left(place, before)  # without a close
    assert source.progress.state is LoadState.FAILED


def test_nothing_is_left_of_what_is_given_up(place: Place) -> None:
    before = place.held()
    source: SplitSource | None = place.scan(**SLOW)
    assert source is not None
    assert source.get_next_batch(1).splits
    assert place.held() - before
    source = None
    gc.collect()
    nothing_is_left(place, before)


# --- while the store is asked
def connections(held: Held) -> Held:
    return {one for one in held if "socket:" in one}


@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "given up"])
def test_no_connection_is_left_of_a_scan_that_lists(
    store: Place, gate: Gate, is_closed: bool
) -> None:
    before = store.held()
    source: SplitSource | None = store.scan()
    assert gate.asked.wait(30)
    assert connections(store.held() - before), "it is asking"
    if is_closed and source is not None:
        closing = threading.Thread(target=source.close)
        closing.start()
        gate.open.set()
        closing.join(30)
        assert not closing.is_alive()
    source = None
    gc.collect()
    gate.open.set()
    nothing_is_left(store, before)


def test_no_connection_is_left_of_a_listing_that_is_refused(store: Place, gate: Gate) -> None:
    before = store.held()
    gate.refuses = True
    source = store.scan()
    assert gate.asked.wait(30)
    assert connections(store.held() - before), "it is asking"
    gate.open.set()
    with pytest.raises(StorageError, match=r"403|denied|permission"):
        list(source)
    nothing_is_left(store, before)  # without a close
