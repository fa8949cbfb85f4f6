"""Attempts at tasks that end when nobody waits for them any more leave nothing behind."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.base_file.writer import BaseFileWriter
from hudi_core.engine.base import TaskContext
from hudi_core.errors import ConfigError, IncompleteCommitError
from hudi_core.services.opening import open_table
from hudi_core.txn import rollback
from hudi_core.txn.markers import Marker, Markers
from hudi_core.txn.state import TableState
from hudi_core.txn.transaction import Transaction
from hudi_core.write import merge_handle
from tests.foreign import by_hudi_rs
from tests.tables import new_table

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64())])


def rows(*keys: str) -> pa.Table:
    return pa.table({"id": list(keys), "ts": [1] * len(keys)}, SCHEMA)


class Speculative(hudi.LocalEngine):
    """Runs every task over files twice: the second attempt only when it is told to.

    Its file is marked and half way when the first attempt is counted and the write commits.
    """

    def __init__(self, fails: bool = False) -> None:
        super().__init__(1)
        self.late: list[Any] = []
        self.fails = fails

    def map_tasks(self, tasks: Any, function: Any, stage: int, weights: Any = None) -> Any:
        if getattr(function, "func", None) is not merge_handle.write_group:
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
    table = new_table(tmp_path / "t", SCHEMA, ordering_field=None)
    engine = Speculative()
    table.upsert(rows("a", "b"), engine=engine)
    engine.finish_late()
    assert data_files(table) == 1
    assert foreign_keys(table) == ["a", "b"]
    table.upsert(rows("c"))
    assert foreign_keys(table) == ["a", "b", "c"]
    temp = Path(table.path, ".hoodie", ".temp")
    assert not temp.exists() or not list(temp.rglob("*.marker.*"))


def test_an_attempt_that_outlives_a_failed_write_removes_its_file(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", SCHEMA, ordering_field=None)
    engine = Speculative(fails=True)
    with pytest.raises(OSError, match="a task failed"):
        table.upsert(rows("a", "b"), engine=engine)
    engine.finish_late()
    assert data_files(table) == 0
    table.insert(rows("c"))
    assert foreign_keys(table) == ["c"]
    assert [row["id"] for row in table.to_arrow().to_pylist()] == ["c"]


def test_the_next_writer_deletes_what_a_killed_attempt_left(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", SCHEMA, ordering_field=None)
    engine = Speculative(fails=True)
    with pytest.raises(OSError, match="a task failed"):
        table.upsert(rows("a", "b"), engine=engine)
    # killed between closing its file and looking for the seal: the marker and the file stay
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hudi_core.txn.attempts.LocalAttempts.is_open", lambda *_: True)
        function, context, task = engine.late[0]
        function(context, task)
    assert data_files(table) == 1
    table.insert(rows("c"))
    assert data_files(table) == 1
    assert foreign_keys(table) == ["c"]


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
    table = new_table(tmp_path / "t", SCHEMA, ordering_field=None)
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
    table.upsert(rows("a", "b"), engine=engine)
    monkeypatch.undo()
    table.upsert(rows("c"))
    assert foreign_keys(table) == ["a", "b", "c"]
    assert {path.name for path in Path(table.path).glob("*.parquet")} == named(table)


@pytest.mark.parametrize("fails", [False, True])
def test_a_write_stays_closed_when_its_markers_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    table = new_table(tmp_path / "t", SCHEMA, ordering_field=None)
    plain, closed = Markers.delete_all, list[bool]()

    def delete_all(markers: Markers) -> None:
        plain(markers)
        closed.append(not markers.is_open())

    monkeypatch.setattr(Markers, "delete_all", delete_all)
    if fails:
        monkeypatch.setattr(Transaction, "commit", interrupted)
    with pytest.raises(KeyboardInterrupt) if fails else contextlib.nullcontext():
        table.upsert(rows("a", "b"), engine=Elsewhere())
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
    table = new_table(tmp_path / "t", SCHEMA, ordering_field=None)
    table.upsert(rows("a"))
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
        table.upsert(rows("a", "b"), engine=engine)
    assert late
    assert data_files(table) == 1
    table.upsert(rows("c"))
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
    table = new_table(tmp_path / "t", SCHEMA, ordering_field=None)
    with pytest.raises(ConfigError, match="all executors find it under one path"):
        getattr(table, operation)(rows("a"), engine=OnAnotherMachine())
    assert not (tmp_path / "t-there").exists()
    table.insert(rows("c"))
    assert foreign_keys(table) == ["c"]


class RolledBack(hudi.LocalEngine):
    """Another writer rolls this one back before its files are written."""

    def __init__(self, path: str) -> None:
        super().__init__(1)
        self.path = path

    def map_tasks(self, tasks: Any, function: Any, stage: int, weights: Any = None) -> Any:
        if getattr(function, "func", None) is merge_handle.write_group:
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
        if getattr(function, "func", None) is merge_handle.write_group:
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
        if getattr(function, "func", None) is merge_handle.write_group:
            raise KeyboardInterrupt
        return done


@pytest.mark.parametrize(
    ("engine", "error"),
    [(RolledBackAndFailing, KeyboardInterrupt), (RolledBack, IncompleteCommitError)],
)
def test_a_writer_that_was_taken_for_dead_removes_its_files(
    tmp_path: Path, engine: type[RolledBack], error: type[BaseException]
) -> None:
    table = new_table(tmp_path / "t", rows("a"))
    with pytest.raises(error, match="rolled back" if engine is RolledBack else None):
        table.upsert(rows("a", "b"), engine=engine(table.path))
    assert data_files(table) == 1
    assert foreign_keys(table) == ["a"]
    table.upsert(rows("c"))
    assert foreign_keys(table) == ["a", "c"]
