"""Who is taken for alive, and what a write asks of a store."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import hudi_core as hudi
from hudi_core.errors import AlreadyExistsError, StorageError
from hudi_core.metadata.lister import table_lister
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import Storage
from hudi_core.plugin.host import FormatHost
from hudi_core.services.opening import open_table
from hudi_core.storage.object_store import ObjectStorage
from hudi_core.storage.posix import PosixStorage
from hudi_core.timeline.active import ActiveTimeline, TimelineListing
from hudi_core.txn import heartbeat as heartbeat_module
from hudi_core.txn.heartbeat import Heartbeat, boot_id, heartbeat_path, is_alive, remove_heartbeat
from hudi_core.txn.state import TableState
from hudi_core.txn.transaction import Transaction
from tests.calls import disk_requests
from tests.operators import operator
from tests.tables import FORMATS, new_table

INSTANT = InstantTime("20260301120000000")
PATH = heartbeat_path(INSTANT)
HOUR_MS = 3_600_000

WRITER = """
import os, sys, time
from hudi_core.model.instant_time import InstantTime
from hudi_core.storage.posix import PosixStorage
from hudi_core.txn.heartbeat import Heartbeat
heart = Heartbeat(PosixStorage(sys.argv[1]), InstantTime(sys.argv[2]), 60_000)
heart.start()
child = 0
if len(sys.argv) > 3:
    child = os.fork()
    if child == 0:
        heart.stop()  # the parent's: without effect here
os.write(1, f"beating {child}\\n".encode())  # in one piece
time.sleep(60)
"""


@pytest.fixture
def local(tmp_path: Path) -> PosixStorage:
    return PosixStorage(str(tmp_path))


@pytest.fixture(params=["local", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "local":
        return PosixStorage(str(tmp_path))
    return ObjectStorage(f"memory://{uuid.uuid4().hex}/table")


@pytest.fixture
def beating(storage: Storage) -> Iterator[Callable[[int], Heartbeat]]:
    hearts: list[Heartbeat] = []

    def begin(interval_ms: int) -> Heartbeat:
        hearts.append(Heartbeat(storage, INSTANT, interval_ms))
        hearts[-1].start()
        return hearts[-1]

    yield begin
    for heart in hearts:
        heart.stop()


def hearts() -> int:
    """Threads of heartbeats: servers of other tests have threads in this process, too."""
    return sum(one.name.startswith("heartbeat-") for one in threading.enumerate())


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def content(storage: Storage) -> dict[str, object]:
    found: dict[str, object] = json.loads(storage.read(PATH))
    return found


def grow_old(tmp_path: Path, age_s: float) -> None:
    then = time.time() - age_s
    os.utime(tmp_path / PATH, (then, then))


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Callable[..., tuple[subprocess.Popen[str], int]]]:
    processes: list[subprocess.Popen[str]] = []
    children: list[int] = []

    def start(*more: str) -> tuple[subprocess.Popen[str], int]:
        command = [sys.executable, "-c", WRITER, str(tmp_path), INSTANT, *more]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        processes.append(process)
        assert process.stdout is not None
        told = [process.stdout.readline().split() for _ in range(2 if more else 1)]
        child = max(int(words[1]) for words in told)
        if child:
            children.append(child)
        return process, child

    yield start
    for child in children:
        os.kill(child, signal.SIGKILL)
    for process in processes:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def test_a_beating_heart_is_alive_and_a_stopped_one_is_not(
    storage: Storage, beating: Callable[[int], Heartbeat]
) -> None:
    assert not is_alive(storage, INSTANT, 60_000, 2)
    threads = hearts()
    heart = beating(60_000)
    assert is_alive(storage, INSTANT, 60_000, 2)
    assert hearts() == threads + 1
    heart.stop()
    assert not is_alive(storage, INSTANT, 60_000, 2)
    assert hearts() == threads
    assert list(storage.list(recursive=True)) == []
    heart.stop()


def test_it_beats(storage: Storage, beating: Callable[[int], Heartbeat]) -> None:
    heart = beating(10)
    first = storage.head(PATH)
    wait_until(lambda: int(str(content(storage)["number"])) >= 3)
    later = storage.head(PATH)
    assert first is not None
    assert later is not None
    assert later.modified_ms > first.modified_ms
    assert later.size == first.size
    assert not heart.is_lost


def test_nothing_in_it_names_a_person_or_machine(local: PosixStorage) -> None:
    heart = Heartbeat(local, INSTANT, 60_000)
    heart.start()
    told = content(local)
    heart.stop()
    assert set(told) == {"writer", "interval_ms", "host", "number"}
    assert told["host"] == boot_id()
    told_text = json.dumps(told)
    machine_id = Path("/etc/machine-id")
    names = [os.uname().nodename]
    names += [machine_id.read_text().strip()] if machine_id.exists() else []  # containers lack it
    for name in names:
        assert name not in told_text


def test_an_instant_has_one_heart(storage: Storage, beating: Callable[[int], Heartbeat]) -> None:
    beating(60_000)
    with pytest.raises(AlreadyExistsError):
        Heartbeat(storage, INSTANT, 60_000).start()
    Heartbeat(storage, INSTANT, 60_000).stop()  # it never began
    assert is_alive(storage, INSTANT, 60_000, 2)


@pytest.mark.parametrize("forks", [(), ("fork",)], ids=["alone", "its child lives on"])
def test_a_killed_writer_of_this_machine_is_dead_at_once(
    local: PosixStorage,
    writer: Callable[..., tuple[subprocess.Popen[str], int]],
    forks: tuple[str, ...],
) -> None:
    process, child = writer(*forks)
    assert is_alive(local, INSTANT, 60_000, 2)  # though a child has called stop
    process.kill()
    process.wait()
    if forks:
        os.kill(child, 0)
    assert (Path(local.root) / PATH).exists()
    assert not is_alive(local, INSTANT, 60_000, 2)


def test_a_stopped_writer_of_this_machine_is_never_dead(
    local: PosixStorage, writer: Callable[..., tuple[subprocess.Popen[str], int]], tmp_path: Path
) -> None:
    process, _ = writer()
    process.send_signal(signal.SIGSTOP)
    grow_old(tmp_path, 1_000_000)
    assert is_alive(local, INSTANT, 10, 1)


@pytest.mark.parametrize(
    ("age_s", "alive"), [(0, True), (170, True), (190, False), (100_000, False)]
)
@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"{", b"[]", b'{"host": 7, "interval_ms": "x"}'),
        json.dumps({"host": "another", "interval_ms": 60_000}).encode(),
    ],
)
def test_of_other_writers_the_age_decides(
    local: PosixStorage, tmp_path: Path, data: bytes, age_s: int, alive: bool
) -> None:
    local.put(PATH, data)
    grow_old(tmp_path, age_s)
    assert is_alive(local, INSTANT, 60_000, 2) is alive
    assert [status.path for status in local.list(recursive=True)] == [PATH]


@pytest.mark.parametrize(("promised", "alive"), [(60_000, True), (1_000, False), (10**15, True)])
def test_a_writer_is_given_the_time_it_asked_for(
    local: PosixStorage, tmp_path: Path, promised: int, alive: bool
) -> None:
    local.put(PATH, json.dumps({"interval_ms": promised}).encode())
    grow_old(tmp_path, 100)
    assert is_alive(local, INSTANT, 1_000, 2) is alive
    grow_old(tmp_path, 4 * HOUR_MS / 1000)
    assert not is_alive(local, INSTANT, 1_000, 2)  # but not for ever


def test_the_clock_is_the_stores(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    storage.put(PATH, b"")
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert is_alive(storage, INSTANT, 60_000, 2)
    monkeypatch.setattr(heartbeat_module, "store_now_ms", lambda _: 10**15)
    assert not is_alive(storage, INSTANT, 60_000, 2)


def test_without_locks_of_the_system_the_age_decides(
    local: PosixStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", no_locks)
        heart = Heartbeat(local, INSTANT, 20)
        heart.start()
        assert content(local)["host"] is None
        wait_until(lambda: int(str(content(local)["number"])) >= 2)
        assert is_alive(local, INSTANT, 60_000, 2)
        heart.stop()
    # locks or not for the one who looks: no lock was promised
    local.put(PATH, json.dumps({"host": None, "interval_ms": 60_000}).encode())
    assert is_alive(local, INSTANT, 60_000, 2)
    grow_old(tmp_path, 190)
    assert not is_alive(local, INSTANT, 60_000, 2)


def test_who_cannot_ask_for_the_lock_does_not_call_its_holder_dead(
    local: PosixStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    heart = Heartbeat(local, INSTANT, 60_000)
    heart.start()

    def no_locks(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", no_locks)
        assert is_alive(local, INSTANT, 60_000, 2)
    heart.stop()


def test_a_heart_whose_file_is_removed_does_not_bring_it_back(
    storage: Storage, beating: Callable[[int], Heartbeat]
) -> None:
    heart = beating(20)
    remove_heartbeat(storage, INSTANT)
    wait_until(lambda: heart.is_lost)
    time.sleep(0.1)
    assert storage.head(PATH) is None
    storage.put(PATH, b"of another writer")
    heart.stop()
    assert storage.read(PATH) == b"of another writer"
    remove_heartbeat(storage, INSTANT)
    remove_heartbeat(storage, INSTANT)


def test_a_sign_whose_answer_was_lost_is_no_loss() -> None:
    class Forgetful(ObjectStorage):
        forgets = 1

        def compare_and_set(self, path: str, data: bytes, expected: str | None) -> str:
            tag = super().compare_and_set(path, data, expected)
            if self.forgets:
                self.forgets -= 1
                raise StorageError("The connection broke", "Try again.")
            return tag

    storage = Forgetful(f"memory://{uuid.uuid4().hex}/table")
    heart = Heartbeat(storage, INSTANT, 10)
    heart.start()
    wait_until(lambda: int(str(content(storage)["number"])) >= 5)
    assert not heart.is_lost
    heart.stop()
    assert storage.head(PATH) is None


def test_a_store_that_fails_once_in_a_while_is_forgiven() -> None:
    class Failing(ObjectStorage):
        calls = 0

        def compare_and_set(self, path: str, data: bytes, expected: str | None) -> str:
            self.calls += 1
            if self.calls % 2:
                raise StorageError("The store is busy", "Try again.")
            return super().compare_and_set(path, data, expected)

    storage = Failing(f"memory://{uuid.uuid4().hex}/table")
    heart = Heartbeat(storage, INSTANT, 10)
    heart.start()
    wait_until(lambda: int(str(content(storage)["number"])) >= 6)
    heart.stop()


def test_a_file_that_cannot_be_removed_does_not_fail_the_writer(tmp_path: Path) -> None:
    class Stubborn(PosixStorage):
        def delete(self, path: str) -> bool:
            raise StorageError("The disk is read-only", "Mount it for writing.")

    storage = Stubborn(str(tmp_path))
    threads = hearts()
    heart = Heartbeat(storage, INSTANT, 60_000)
    heart.start()
    heart.stop()
    assert hearts() == threads
    assert not is_alive(PosixStorage(str(tmp_path)), INSTANT, 60_000, 2)


def test_a_heart_that_cannot_start_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(path: str) -> None:
        raise OSError(errno.EIO, "the disk is failing", path)

    monkeypatch.setattr(heartbeat_module, "hold", broken)
    storage = PosixStorage(str(tmp_path))
    with pytest.raises(StorageError, match="failing"):
        Heartbeat(storage, INSTANT, 60_000).start()
    assert list(storage.list(recursive=True)) == []


def test_a_link_in_place_of_the_file_is_not_followed(local: PosixStorage, tmp_path: Path) -> None:
    outside = tmp_path.parent / "outside"
    outside.write_bytes(b"x" * 300)
    (tmp_path / PATH).parent.mkdir(parents=True)
    (tmp_path / PATH).symlink_to(outside)
    with pytest.raises(AlreadyExistsError):
        Heartbeat(local, INSTANT, 60_000).start()
    assert outside.read_bytes() == b"x" * 300


# --- what the protocol of a write asks of a store, request by request
CITIES = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64())])
FAST = {"hoodie.fs.fsync": "false", "hoodie.metadata.enable": "false"}
METHODS = (
    *("read", "head", "version", "put", "put_if_absent", "compare_and_set"),
    *("list", "list_names", "list_folders", "delete", "delete_tree"),
)


def in_rome(*ids: str, ts: int = 1) -> pa.Table:
    return pa.table({"id": list(ids), "city": ["rome"] * len(ids), "ts": [ts] * len(ids)}, CITIES)


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    made = new_table(tmp_path / "t", in_rome("a", "b"), FAST)
    made.upsert(in_rome("a", ts=2))
    return made


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    return disk_requests(monkeypatch, *METHODS)


def place(path: str) -> str:
    for folder in ("timeline", ".heartbeat", ".temp"):
        if path.startswith(f".hoodie/{folder}"):
            return folder
    return path.rpartition("/")[2]


def lists(requests: list[tuple[str, str]]) -> dict[str, int]:
    return Counter(place(path) for method, path in requests if method.startswith("list"))


@pytest.mark.parametrize(
    "write",
    [
        lambda table: table.upsert(in_rome("a", ts=9)),
        lambda table: table.insert_overwrite(in_rome("z")),
        lambda table: table.delete(in_rome("b")),
    ],
)
@pytest.mark.parametrize("is_opened_again", [False, True])
def test_a_write_lists_the_timeline_to_begin_and_to_commit(
    write: Callable[[hudi.Table], object],
    is_opened_again: bool,
    table: hudi.Table,
    requests: list[tuple[str, str]],
) -> None:
    write(hudi.Table.open(table.path, FAST) if is_opened_again else table)

    # the other two: who is alive, and what the dead left; files of the partition are those that the
    # last write of the table has left
    partitions = {"rome": 1} if is_opened_again else {}
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
    return new_table(path, in_rome("a", "b"), options, ordering_field=None)


@pytest.mark.parametrize("row_filter", [None, [("ts", ">", 0)], [("city", "=", "rome")]], ids=str)
@pytest.mark.parametrize("format_", FORMATS)
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
            table.upsert(in_rome("b", ts=3))


@pytest.mark.parametrize(
    ("format_", "owner", "step"),
    [
        *((format_, None, "") for format_ in FORMATS),
        *((format_, Transaction, "_complete") for format_ in FORMATS),
        *((format_, FormatHost, "complete_write") for format_ in FORMATS[1:]),
    ],
)
def test_an_upsert_loads_each_fact_once_per_hold_of_the_lock(
    format_: str,
    owner: type[Any] | None,
    step: str,
    tmp_path: Path,
    loads: Loads,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = indexed_table(tmp_path / "t", format_)
    if owner is not None:
        die_in(monkeypatch, table, owner, step)
    loads.properties = loads.timelines = 0
    table.upsert(in_rome("a", "c", ts=9))
    if owner is None:
        # of the metadata table, the properties are those that the last write has left
        assert loads == Loads(properties=2, timelines=4)
    # after a dead writer at most twice as much
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

    table.upsert(in_rome("a", ts=9).append_column("word", pa.array(["new"])))

    assert table.config.table_format == "delta"
    assert DeltaTable(table.path).to_pyarrow_table().num_rows == 2
    assert sorted(table.to_arrow()["word"].to_pylist(), key=str) == [None, "new"]


def test_an_upsert_changes_the_store_so_often(
    table: hudi.Table, requests: list[tuple[str, str]]
) -> None:
    table.upsert(in_rome("a", ts=9))

    places = Counter((method, place(path)) for method, path in requests)
    looks = ("read", "head", "version", "list", "list_names", "list_folders")
    assert {key: number for key, number in places.items() if key[0] not in looks} == {
        ("put_if_absent", ".heartbeat"): 1,
        ("put_if_absent", "timeline"): 3,
        ("put_if_absent", ".temp"): 1,
        ("delete_tree", ".temp"): 1,
        ("delete", ".heartbeat"): 1,
    }
    assert ("version", ".heartbeat") not in places


def test_the_long_way_sees_what_the_timeline_at_hand_cannot(table: hudi.Table) -> None:
    client = open_table(table.path, FAST).client
    before = client.timeline()
    seeing = client.seeing(before)

    result = table.upsert(in_rome("a", ts=3))

    assert result.instant is not None
    assert seeing.timeline() is before
    assert client.timeline().find(result.instant.requested_time) == result.instant
    with pytest.raises(AlreadyExistsError):
        client.active.complete(result.instant, result.instant.completion_time, b"x")  # type: ignore[arg-type]


def test_only_what_must_outlive_a_power_failure_is_flushed(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: Counter[str] = Counter()
    sync = os.fsync

    def fsync(descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if ".hoodie" in path.parts:
            flushed[path.name if path.is_dir() else path.parent.name] += 1
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    table.upsert(in_rome("a", ts=9), options={"hoodie.fs.fsync": "true"})

    # what the write is about and the names of both files, then its completion and the name of that;
    # neither heartbeat nor markers
    assert +flushed == {"timeline": 4}


def test_files_are_listed_while_others_make_the_metadata_table_anew(tmp_path: Path) -> None:
    table = indexed_table(tmp_path / "t", "native")
    table.insert(in_rome("c"))
    opened = open_table(table.path, {})
    tables = TableState.load(opened).metadata
    assert tables is not None
    lister = table_lister(tables.client)

    operator(table.path).delete()
    operator(table.path).create()

    (rome,) = lister.list_partitions()
    assert len(lister.list_files([rome])[rome]) == len(
        list((tmp_path / "t/rome").glob("*.parquet"))
    )
