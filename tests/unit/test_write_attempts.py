"""Attempts and threads of a write that end badly leave nothing behind; its markers."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.base_file.writer import BaseFileWriter
from hudi_core.engine.base import TaskContext, thread_pool
from hudi_core.errors import (
    CommitValidationError,
    ConfigError,
    CorruptMetadataError,
    IncompleteCommitError,
    ResourceLimitError,
)
from hudi_core.meta_client import run_in_threads
from hudi_core.model.files import PartitionPath
from hudi_core.model.instant_time import InstantTime
from hudi_core.services.opening import open_table
from hudi_core.storage.object_store import ObjectStorage
from hudi_core.storage.posix import PosixStorage
from hudi_core.storage.temp_folders import temp_folder
from hudi_core.txn.locks.lock_file import HudiFileLock
from hudi_core.txn.markers import Marker, MarkerKind, Markers
from hudi_core.txn.recovery import rollback
from hudi_core.txn.state import TableState
from hudi_core.txn.transaction import Transaction
from hudi_core.write import append_handle
from tests.foreign import by_hudi_rs
from tests.tables import new_table
from tests.unit.refusals import files

# --- attempts at tasks
KEYS_AND_TIMES = pa.schema([("id", pa.string()), ("ts", pa.int64())])


def keyed_rows(*keys: str) -> pa.Table:
    return pa.table({"id": list(keys), "ts": [1] * len(keys)}, KEYS_AND_TIMES)


class Speculative(hudi.LocalEngine):
    """Runs every task over files twice: the second attempt only where a test asks for it.

    Its file is marked and half way when the first attempt is counted and the write commits.
    """

    def __init__(self, fails: bool = False) -> None:
        super().__init__(1)
        self.late: list[Any] = []
        self.fails = fails

    def map_tasks(self, tasks: Any, function: Any, stage: int, weights: Any = None) -> Any:
        if getattr(function, "func", None) is not append_handle.append_group:
            return super().map_tasks(tasks, function, stage, weights)
        for number, task in enumerate(tasks):
            self.late.append((function, TaskContext(number, stage, 7), task))
        if self.fails:
            raise OSError("a task failed")
        return super().map_tasks(tasks, function, stage, weights)

    def finish_late(self) -> None:
        for function, context, task in self.late:
            with pytest.raises(IncompleteCommitError, match="takes no further files"):
                function(context, task)


def foreign_keys(table: hudi.Table) -> list[str]:
    return sorted(row["id"] for row in by_hudi_rs(table.path))


def data_files(table: hudi.Table) -> int:
    return len(list(Path(table.path).glob("*.parquet")))


def test_an_attempt_that_ends_after_the_commit_removes_its_file(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", KEYS_AND_TIMES, ordering_field=None)
    engine = Speculative()
    table.upsert(keyed_rows("a", "b"), engine=engine)
    engine.finish_late()
    assert data_files(table) == 1
    assert foreign_keys(table) == ["a", "b"]
    table.upsert(keyed_rows("c"))
    assert foreign_keys(table) == ["a", "b", "c"]
    temp = Path(table.path, ".hoodie", ".temp")
    assert not temp.exists() or not list(temp.rglob("*.marker.*"))


def test_an_attempt_that_outlives_a_failed_write_removes_its_file(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", KEYS_AND_TIMES, ordering_field=None)
    engine = Speculative(fails=True)
    with pytest.raises(OSError, match="a task failed"):
        table.upsert(keyed_rows("a", "b"), engine=engine)
    engine.finish_late()
    assert data_files(table) == 0
    table.insert(keyed_rows("c"))
    assert foreign_keys(table) == ["c"]
    assert [row["id"] for row in table.to_arrow().to_pylist()] == ["c"]


def test_the_next_writer_deletes_what_a_killed_attempt_left(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", KEYS_AND_TIMES, ordering_field=None)
    engine = Speculative(fails=True)
    with pytest.raises(OSError, match="a task failed"):
        table.upsert(keyed_rows("a", "b"), engine=engine)
    # killed between closing its file and looking for the seal: the marker and the file stay
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hudi_core.txn.markers.LocalAttempts.is_open", lambda *_: True)
        function, context, task = engine.late[0]
        function(context, task)
    assert data_files(table) == 1
    table.insert(keyed_rows("c"))
    assert data_files(table) == 1
    assert foreign_keys(table) == ["c"]


def test_what_another_write_left_meanwhile_and_took_back_is_no_file_of_the_next_write(
    tmp_path: Path,
) -> None:
    options = {
        "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
        "hoodie.metadata.enable": "false",
        "hoodie.parquet.small.file.limit": 0,
        "hoodie.keep.min.commits": 3,
        "hoodie.keep.max.commits": 4,
        "hoodie.cleaner.commits.retained": 1,
    }
    table = new_table(tmp_path / "t", keyed_rows("a"), options, ordering_field=None)
    other = hudi.Table.open(table.path, options)
    is_there, may_end = threading.Event(), threading.Event()

    def refuse(*_: Any) -> None:
        is_there.set()
        may_end.wait(60)
        raise ValueError

    def fail() -> None:
        with pytest.raises(CommitValidationError):
            other.upsert(keyed_rows("b"), validators=[refuse])

    with thread_pool(1) as pool:
        failed = pool.submit(fail)
        assert is_there.wait(60)

        def end_the_other(*_: Any) -> None:
            may_end.set()
            failed.result()

        table.upsert(keyed_rows("a"), validators=[end_the_other])
    for _ in range(6):  # until the rollback is archived
        table.upsert(keyed_rows("a"))
    assert [row["id"] for row in table.to_arrow().to_pylist()] == ["a"]


def test_what_archival_deletes_of_an_undone_write_is_no_file_of_the_next_one(
    tmp_path: Path,
) -> None:
    options = {
        "hoodie.metadata.enable": "false",
        "hoodie.parquet.small.file.limit": 0,
        "hoodie.keep.min.commits": 3,
        "hoodie.keep.max.commits": 4,
        "hoodie.cleaner.commits.retained": 1,
    }
    table = new_table(tmp_path / "t", keyed_rows("a"), options, ordering_field=None)
    stored = set(Path(table.path).glob("*.parquet"))
    undone: dict[Path, bytes] = {}

    def refuse(*_: Any) -> None:
        new = set(Path(table.path).glob("*.parquet")) - stored
        undone.update({path: path.read_bytes() for path in new})
        raise ValueError

    with pytest.raises(CommitValidationError):
        table.upsert(keyed_rows("b"), validators=[refuse])
    for path, data in undone.items():
        path.write_bytes(data)  # as a store does that was late
    for _ in range(8):
        table.upsert(keyed_rows("a"))
    assert not any(path.exists() for path in undone)
    assert [row["id"] for row in table.to_arrow().to_pylist()] == ["a"]


def test_a_write_flushes_as_its_own_options_say_whatever_those_of_the_last_one_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(tmp_path / "t", keyed_rows("a"), ordering_field=None)
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))

    def flushed(fsync: str) -> list[str]:
        synced.clear()
        table.upsert(keyed_rows("a"), options={"hoodie.fs.fsync": fsync})
        return [path for path in synced if "/.hoodie/metadata/files/" in path]

    assert flushed("true")
    assert not flushed("false")
    table = hudi.Table.open(table.path)
    assert not flushed("false")
    assert flushed("true")


def test_a_write_that_fails_ends_the_threads_that_flush_its_files(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", keyed_rows("a"), ordering_field=None)
    before = set(threading.enumerate())
    flushing: set[threading.Thread] = set()

    def refuse(*_: Any) -> None:
        flushing.update(set(threading.enumerate()) - before)
        raise ValueError

    with pytest.raises(CommitValidationError) as caught:
        table.upsert(keyed_rows("b"), validators=[refuse])
    for thread in [one for one in flushing if one.name.startswith("ThreadPoolExecutor")]:
        thread.join(10)
        assert not thread.is_alive()
    assert caught.value.__traceback__ is not None  # which has the write
    assert any(one.name.startswith("ThreadPoolExecutor") for one in flushing)


class Elsewhere(Speculative):
    """Keeps its tasks apart, as one does whose tasks run in other processes."""

    shares_memory = False


class KilledError(Exception):
    """The process of a task is gone."""


@pytest.fixture
def killed_amid_files(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Have attempts die when their file is there, before they look for the seal; from a call on."""

    plain = BaseFileWriter.close

    def die(writer: BaseFileWriter) -> None:
        plain(writer)
        raise KilledError

    def begin() -> None:
        monkeypatch.setattr(BaseFileWriter, "close", die)
        monkeypatch.setattr(BaseFileWriter, "abort", lambda _: None)

    return begin


def test_an_attempt_begins_no_file_once_the_commit_has_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed_amid_files: Callable[[], None]
) -> None:
    table = new_table(tmp_path / "t", KEYS_AND_TIMES, ordering_field=None)
    engine = Elsewhere()
    plain = Markers.list

    def look(markers: Markers) -> set[Marker]:
        found = plain(markers)
        killed_amid_files()
        for function, context, task in engine.late:
            with contextlib.suppress(IncompleteCommitError, KilledError):
                function(context, task)
        return found

    monkeypatch.setattr(Markers, "list", look)
    table.upsert(keyed_rows("a", "b"), engine=engine)
    monkeypatch.undo()
    table.upsert(keyed_rows("c"))
    assert foreign_keys(table) == ["a", "b", "c"]
    assert {path.name for path in Path(table.path).glob("*.parquet")} == named(table)


@pytest.mark.parametrize("fails", [False, True])
def test_a_write_stays_closed_when_its_markers_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    table = new_table(tmp_path / "t", KEYS_AND_TIMES, ordering_field=None)
    plain, closed = Markers.delete_all, list[bool]()

    def delete_all(markers: Markers) -> None:
        plain(markers)
        closed.append(not markers.is_open())

    monkeypatch.setattr(Markers, "delete_all", delete_all)
    if fails:
        monkeypatch.setattr(Transaction, "commit", interrupted)
    with pytest.raises(KeyboardInterrupt) if fails else contextlib.nullcontext():
        table.upsert(keyed_rows("a", "b"), engine=Elsewhere())
    assert closed
    assert all(closed)
    assert data_files(table) == (0 if fails else 1)


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def named(table: hudi.Table) -> set[str]:
    commits = table.timeline.completed_writes()
    return {
        Path(stat.path or "").name
        for one in commits
        for stat in open_table(table.path, {}).client.read_commit(one).stats
    }


def test_an_attempt_ends_no_file_once_a_rollback_has_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(tmp_path / "t", KEYS_AND_TIMES, ordering_field=None)
    table.upsert(keyed_rows("a"))
    engine = RolledBackElsewhere(table.path)
    plain, late = rollback.files_written, list[bool]()

    def look(*given: Any) -> Any:
        found = plain(*given)
        for function, context, task in engine.late:
            with pytest.raises(IncompleteCommitError, match="takes no further files"):
                function(context, task)
            late.append(True)
        return found

    monkeypatch.setattr(rollback, "files_written", look)
    # or what was staged for it is gone already
    with pytest.raises((IncompleteCommitError, FileNotFoundError)):
        table.upsert(keyed_rows("a", "b"), engine=engine)
    assert late
    assert data_files(table) == 1
    table.upsert(keyed_rows("c"))
    assert foreign_keys(table) == ["a", "c"]


class OnAnotherMachine(Elsewhere):
    """Its tasks have another disk, where nothing is at the table's path."""

    def map_input(self, data: Any, function: Any, stage: int) -> Any:
        return super().map_input(data, self.moved(function), stage)

    def map_tasks(self, tasks: Any, function: Any, stage: int, weights: Any = None) -> Any:
        return super().map_tasks(tasks, self.moved(function), stage, weights)

    def moved(self, function: Any) -> Any:
        context = function.keywords["context"]
        there = replace(context, base_path=f"{context.base_path}-there")
        return partial(function.func, **{**function.keywords, "context": there})


@pytest.mark.parametrize("operation", ["upsert", "bulk_insert"])
def test_a_disk_that_only_the_driver_has_is_refused(tmp_path: Path, operation: str) -> None:
    table = new_table(tmp_path / "t", KEYS_AND_TIMES, ordering_field=None)
    with pytest.raises(ConfigError, match="all executors find it under one path"):
        getattr(table, operation)(keyed_rows("a"), engine=OnAnotherMachine())
    assert not (tmp_path / "t-there").exists()
    table.insert(keyed_rows("c"))
    assert foreign_keys(table) == ["c"]


class RolledBack(hudi.LocalEngine):
    """Another writer rolls this one back before its files are written."""

    def __init__(self, path: str) -> None:
        super().__init__(1)
        self.path = path

    def map_tasks(self, tasks: Any, function: Any, stage: int, weights: Any = None) -> Any:
        if getattr(function, "func", None) is append_handle.append_group:
            other = open_table(self.path, {})
            (pending,) = other.client.timeline().pending()
            rollback.roll_back(TableState.load(other), pending)
        return super().map_tasks(tasks, function, stage, weights)


class RolledBackElsewhere(Elsewhere):
    """Another writer takes this one for dead while its tasks are at work in other processes."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path

    def map_tasks(self, tasks: Any, function: Any, stage: int, weights: Any = None) -> Any:
        if getattr(function, "func", None) is append_handle.append_group:
            self.late = [
                (function, TaskContext(at, stage, 7), task) for at, task in enumerate(tasks)
            ]
            other = open_table(self.path, {})
            (pending,) = other.client.timeline().pending()
            rollback.roll_back(TableState.load(other), pending)
        return super().map_tasks(tasks, function, stage, weights)


class RolledBackAndFailing(RolledBack):
    """The write then fails by itself, before it comes to its commit."""

    def map_tasks(self, tasks: Any, function: Any, stage: int, weights: Any = None) -> Any:
        done = super().map_tasks(tasks, function, stage, weights)
        if getattr(function, "func", None) is append_handle.append_group:
            raise KeyboardInterrupt
        return done


@pytest.mark.parametrize(
    ("engine", "error"),
    [(RolledBackAndFailing, KeyboardInterrupt), (RolledBack, IncompleteCommitError)],
)
def test_a_writer_that_was_taken_for_dead_removes_its_files(
    tmp_path: Path, engine: type[RolledBack], error: type[BaseException]
) -> None:
    table = new_table(tmp_path / "t", keyed_rows("a"))
    with pytest.raises(error, match="rolled back" if engine is RolledBack else None):
        table.upsert(keyed_rows("a", "b"), engine=engine(table.path))
    assert data_files(table) == 1
    assert foreign_keys(table) == ["a"]
    table.upsert(keyed_rows("c"))
    assert foreign_keys(table) == ["a", "c"]


# --- threads that the system refuses: a typed error, and nothing of the write remains
ROWS = pa.table({"id": [1]})


@contextmanager
def no_threads() -> Iterator[None]:
    """No thread can be started, as where the process has no memory left for its stack."""

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(threading.Thread, "start", start)
        yield


def test_a_pool_without_threads_says_so() -> None:
    with no_threads(), pytest.raises(ResourceLimitError, match="another thread"):
        run_in_threads(str, [1, 2])


def test_other_errors_pass() -> None:
    with pytest.raises(RuntimeError, match="mine"), thread_pool(1):
        raise RuntimeError("mine")


def test_a_lock_file_that_nobody_can_renew_is_nobodys(tmp_path: Path) -> None:
    lock = HudiFileLock(str(tmp_path), expire_s=60)
    with no_threads(), pytest.raises(ResourceLimitError, match="another thread"):
        lock.try_lock(0)
    assert lock.try_lock(0)
    lock.unlock()


def test_a_write_without_a_heart_leaves_nothing(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", ROWS.schema)
    before = files(tmp_path)
    with no_threads(), pytest.raises(ResourceLimitError, match="another thread"):
        table.upsert(ROWS)
    left = files(tmp_path).keys() - before.keys()
    assert not [path for path in left if "metadata" not in path]
    table.upsert(ROWS)
    assert table.to_arrow().num_rows == 1


# --- markers name the files of one write, and no others whatever lies in their folder
INSTANT, OTHER = InstantTime("20260301120000000"), InstantTime("20260301120000001")
BASE = f"7f3c-0_1-2-3_{INSTANT}.parquet"
LOG = f".7f3c-0_{INSTANT}.log.1_1-2-3"


@pytest.fixture
def storage(tmp_path: Path) -> PosixStorage:
    return PosixStorage(str(tmp_path))


def marker(partition: str, name: str, kind: MarkerKind) -> Marker:
    return Marker(PartitionPath(partition), name, kind)


def test_they_lie_where_hudi_looks_for_them(storage: PosixStorage, tmp_path: Path) -> None:
    markers = Markers(storage, INSTANT)
    expected = {
        marker("", BASE, MarkerKind.CREATE),
        marker("a=1/b=2", BASE, MarkerKind.MERGE),
        marker("a=1", LOG, MarkerKind.APPEND),
    }
    for one in expected:
        markers.create(one.partition_path, one.file_name, one.kind)
    assert markers.list() == expected
    folder = tmp_path / ".hoodie/.temp" / INSTANT
    assert sorted(
        os.path.relpath(path, folder) for path in folder.rglob("*") if path.is_file()
    ) == [f"{BASE}.marker.CREATE", f"a=1/{LOG}.marker.APPEND", f"a=1/b=2/{BASE}.marker.MERGE"]
    assert all(path.stat().st_size == 0 for path in folder.rglob("*.marker.*"))


def test_a_retried_task_marks_again(storage: PosixStorage) -> None:
    for _ in range(2):
        Markers(storage, INSTANT).create(PartitionPath("p"), BASE, MarkerKind.CREATE)
    assert len(Markers(storage, INSTANT).list()) == 1


def test_other_temporary_files_are_no_markers_but_go_with_them(storage: PosixStorage) -> None:
    storage.put(f"{temp_folder(INSTANT)}/.stage/0-1-0.arrow", b"rows")
    markers = Markers(storage, INSTANT)
    assert markers.list() == set()
    markers.create(PartitionPath("p"), BASE, MarkerKind.CREATE)
    Markers(storage, OTHER).create(
        PartitionPath("p"), BASE.replace(INSTANT, OTHER), MarkerKind.CREATE
    )
    markers.delete_all()
    assert markers.list() == set()
    assert list(storage.list(temp_folder(INSTANT), recursive=True)) == []
    assert len(Markers(storage, OTHER).list()) == 1
    markers.delete_all()


@pytest.mark.parametrize(
    "path",
    [
        f"p/{BASE.replace(INSTANT, OTHER)}.marker.CREATE",  # a file of somebody else's write
        f"p/{LOG.replace(INSTANT, OTHER)}.marker.APPEND",
        f".hoodie/{BASE}.marker.CREATE",
        f"p/{BASE}.marker.DELETE",
        f"p/{BASE}.marker.",
        "p/hoodie.properties.marker.CREATE",
        "p/.marker.CREATE",
        f"p/{BASE}.marker.CREATE.marker.CREATE",
    ],
)
def test_a_forged_marker_is_an_error(storage: PosixStorage, path: str) -> None:
    full = f"{temp_folder(INSTANT)}/{path}"
    storage.put(full, b"")
    with pytest.raises(CorruptMetadataError, match="Nothing was deleted") as caught:
        Markers(storage, INSTANT).list()
    assert caught.value.path == f"{storage.root}/{full}"


def test_they_work_without_folders() -> None:
    storage = ObjectStorage("memory://markers/table")
    markers = Markers(storage, INSTANT)
    markers.create(PartitionPath("a=1"), BASE, MarkerKind.CREATE)
    assert markers.list() == {marker("a=1", BASE, MarkerKind.CREATE)}
    markers.delete_all()
    assert markers.list() == set()
