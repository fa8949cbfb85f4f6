"""What the protocol of a write asks of a store, request by request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import hudi_core as hudi
from hudi_core.config.write import WriteConfig
from hudi_core.errors import AlreadyExistsError
from hudi_core.metadata.lister import table_lister
from hudi_core.plugin.host import FormatHost
from hudi_core.services.metadata import MetadataOperator
from hudi_core.services.opening import open_table
from hudi_core.storage.disk import Disk
from hudi_core.storage.posix import PosixStorage
from hudi_core.timeline.active import ActiveTimeline, TimelineListing
from hudi_core.txn.state import TableState
from hudi_core.txn.table_lock import table_lock
from hudi_core.txn.transaction import Transaction
from tests.tables import new_table

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64())])
FAST = {"hoodie.fs.fsync": "false", "hoodie.metadata.enable": "false"}
METHODS = (
    *("read", "head", "version", "put", "put_if_absent", "compare_and_set"),
    *("list", "list_names", "list_folders", "delete", "delete_tree"),
)


def rows(*ids: str, ts: int = 1) -> pa.Table:
    return pa.table({"id": list(ids), "city": ["rome"] * len(ids), "ts": [ts] * len(ids)}, SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    made = new_table(tmp_path / "t", rows("a", "b"), FAST)
    made.upsert(rows("a", ts=2))
    return made


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, str]]:
    """Count requests by method and by the folder, or the path, of what they ask for."""
    counted: Counter[tuple[str, str]] = Counter()

    def count(name: str) -> None:
        method = getattr(PosixStorage, name)

        def counting(storage: PosixStorage, path: str = "", *more: Any, **named: Any) -> Any:
            counted[name, place(path)] += 1
            return method(storage, path, *more, **named)

        monkeypatch.setattr(PosixStorage, name, counting)

    for name in METHODS:
        count(name)
    return counted


def place(path: str) -> str:
    for folder in ("timeline", ".heartbeat", ".temp"):
        if path.startswith(f".hoodie/{folder}"):
            return folder
    return path.rpartition("/")[2]


def lists(requests: Counter[tuple[str, str]]) -> dict[str, int]:
    counted: Counter[str] = Counter()
    for (method, where), number in requests.items():
        if method in ("list", "list_names", "list_folders"):
            counted[where] += number
    return dict(counted)


@pytest.mark.parametrize(
    ("write", "partitions"),
    [
        (lambda table: table.upsert(rows("a", ts=9)), {"rome": 1}),
        (lambda table: table.insert_overwrite(rows("z")), {"rome": 1}),
        (lambda table: table.delete(rows("b")), {"rome": 1}),
    ],
)
def test_a_write_lists_the_timeline_to_begin_and_to_commit(
    write: Callable[[hudi.Table], object],
    partitions: dict[str, int],
    table: hudi.Table,
    requests: Counter[tuple[str, str]],
) -> None:
    write(table)

    # the other two: who is alive, and what the dead left
    assert lists(requests) == {"timeline": 2, ".heartbeat": 1, ".temp": 1, **partitions}


@dataclass
class Loads:
    """How often the properties and timelines of a table and its metadata table are loaded."""

    properties: int = 0
    timelines: int = 0


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Loads:
    counted = Loads()
    read, scan = PosixStorage.read, ActiveTimeline.scan

    def reading(storage: PosixStorage, path: str, max_bytes: int | None = None) -> bytes:
        counted.properties += path.endswith("hoodie.properties")
        return read(storage, path, max_bytes)

    def scanning(active: ActiveTimeline) -> TimelineListing:
        counted.timelines += 1
        return scan(active)

    monkeypatch.setattr(PosixStorage, "read", reading)
    monkeypatch.setattr(ActiveTimeline, "scan", scanning)
    return counted


def indexed_table(path: Path, format_: str) -> hudi.Table:
    options = {"hoodie.fs.fsync": "false", "hoodie.table.format": format_}
    return new_table(path, rows("a", "b"), options, ordering_field=None)


@pytest.mark.parametrize("row_filter", [None, [("ts", ">", 0)], [("city", "=", "rome")]], ids=str)
@pytest.mark.parametrize("format_", ["native", "iceberg", "delta"])
def test_a_read_loads_each_table_once(
    format_: str, row_filter: Any, tmp_path: Path, loads: Loads
) -> None:
    path = indexed_table(tmp_path / "t", format_).path
    # the metadata table has properties and a timeline of its own; manifests need neither
    tables = 1 if format_ == "iceberg" else 2
    for read in (hudi.Table.to_arrow, hudi.Table.count, hudi.Table.head, hudi.Table.file_slices):
        loads.properties = loads.timelines = 0
        table = hudi.Table.open(path)
        assert loads == Loads(properties=1)
        loads.properties = 0
        # those of the table again: somebody may have moved it since it was opened
        assert read(table, filter=row_filter)
        assert (loads.properties, loads.timelines) == (tables, tables), read.__name__


def die_in(monkeypatch: pytest.MonkeyPatch, table: hudi.Table, owner: type[Any], step: str) -> None:
    """Let a writer die at a step of its commit."""

    def die(*_: Any, **__: Any) -> NoReturn:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(owner, step, die)
        patched.setattr(Transaction, "abort", lambda self: self.heartbeat.stop())
        with pytest.raises(KeyboardInterrupt):
            table.upsert(rows("b", ts=3))


@pytest.mark.parametrize("format_", ["native", "iceberg", "delta"])
def test_an_upsert_loads_each_fact_once_per_hold_of_the_lock(
    format_: str, tmp_path: Path, loads: Loads
) -> None:
    table = indexed_table(tmp_path / "t", format_)
    loads.properties = loads.timelines = 0

    table.upsert(rows("a", "c", ts=9))

    # of the metadata table, the properties are those of the first hold
    assert loads == Loads(properties=3, timelines=4)
    assert sorted(table.to_arrow()["id"].to_pylist()) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("format_", "owner", "step"),
    [
        ("native", Transaction, "_complete"),
        ("iceberg", Transaction, "_complete"),
        ("delta", Transaction, "_complete"),
        ("iceberg", FormatHost, "complete_write"),
        ("delta", FormatHost, "complete_write"),
    ],
)
def test_after_a_dead_writer_an_upsert_loads_at_most_twice_as_much(
    format_: str,
    owner: type[Any],
    step: str,
    tmp_path: Path,
    loads: Loads,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = indexed_table(tmp_path / "t", format_)
    die_in(monkeypatch, table, owner, step)
    loads.properties = loads.timelines = 0

    table.upsert(rows("a", "c", ts=9))

    assert loads.properties <= 6
    assert loads.timelines <= 8
    assert sorted(table.to_arrow()["id"].to_pylist()) == ["a", "b", "c"]


def test_a_table_that_is_open_is_written_with_what_its_properties_say_by_then(
    tmp_path: Path,
) -> None:
    table = hudi.Table.open(indexed_table(tmp_path / "t", "native").path)
    other = hudi.Table.open(table.path)
    other.alter(add_columns={"word": pa.string()})
    other.convert("delta")

    table.upsert(rows("a", ts=9).append_column("word", pa.array(["new"])))

    assert table.config.table_format == "delta"
    assert DeltaTable(table.path).to_pyarrow_table().num_rows == 2
    assert sorted(table.to_arrow()["word"].to_pylist(), key=str) == [None, "new"]


def test_an_upsert_changes_the_store_so_often(
    table: hudi.Table, requests: Counter[tuple[str, str]]
) -> None:
    table.upsert(rows("a", ts=9))

    changes = {
        key: number
        for key, number in requests.items()
        if key[0] not in ("read", "head", "version", "list", "list_names", "list_folders")
    }
    assert changes == {
        ("put_if_absent", ".heartbeat"): 1,
        ("put_if_absent", "timeline"): 3,
        ("put_if_absent", ".temp"): 1,
        ("delete_tree", ".temp"): 1,
        ("delete", ".heartbeat"): 1,
    }
    assert ("version", ".heartbeat") not in requests


def test_the_long_way_sees_what_the_timeline_at_hand_cannot(table: hudi.Table) -> None:
    client = open_table(table.path, FAST).client
    before = client.timeline()
    seeing = client.seeing(before)

    result = table.upsert(rows("a", ts=3))

    assert result.instant is not None
    assert seeing.timeline() is before
    assert client.timeline().find(result.instant.requested_time) == result.instant
    with pytest.raises(AlreadyExistsError):
        client.active.complete(result.instant, result.instant.completion_time, b"x")  # type: ignore[arg-type]


def test_only_what_must_outlive_a_power_failure_is_flushed(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: Counter[str] = Counter()
    sync, write = Disk.sync_folder, Disk.write_new

    def sync_folder(disk: Disk, folder: str) -> None:
        flushed[Path(folder).name] += 1
        sync(disk, folder)

    def write_new(disk: Disk, path: str, data: bytes, *, sync: bool) -> None:
        flushed[Path(path).parent.name] += sync
        write(disk, path, data, sync=sync)

    monkeypatch.setattr(Disk, "sync_folder", sync_folder)
    monkeypatch.setattr(Disk, "write_new", write_new)
    table.upsert(rows("a", ts=9), options={"hoodie.fs.fsync": "true"})

    # each state of the instant and its name; neither heartbeat nor markers
    assert +flushed == {"timeline": 6}


def test_files_are_listed_while_others_make_the_metadata_table_anew(tmp_path: Path) -> None:
    table = indexed_table(tmp_path / "t", "native")
    table.insert(rows("c"))
    opened = open_table(table.path, {})
    tables = TableState.load(opened).metadata
    assert tables is not None
    lister = table_lister(tables.client)

    config = WriteConfig.from_options({})
    operator = MetadataOperator(opened, table_lock(opened, config), config)
    operator.delete()
    operator.create()

    (rome,) = lister.list_partitions()
    assert len(lister.list_files([rome])[rome]) == len(
        list((tmp_path / "t/rome").glob("*.parquet"))
    )
