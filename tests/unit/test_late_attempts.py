"""Attempts at tasks that end when nobody waits for them any more leave nothing behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.engine.base import TaskContext
from hudi_core.errors import IncompleteCommitError
from hudi_core.services.opening import open_table
from hudi_core.txn import rollback
from hudi_core.txn.state import TableState
from hudi_core.write import merge_handle
from tests.foreign import by_hudi_rs

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
    table = hudi.Table.create(str(tmp_path / "t"), SCHEMA, record_key="id")
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
    table = hudi.Table.create(str(tmp_path / "t"), SCHEMA, record_key="id")
    engine = Speculative(fails=True)
    with pytest.raises(OSError, match="a task failed"):
        table.upsert(rows("a", "b"), engine=engine)
    engine.finish_late()
    assert data_files(table) == 0
    table.insert(rows("c"))
    assert foreign_keys(table) == ["c"]
    assert [row["id"] for row in table.to_arrow().to_pylist()] == ["c"]


def test_the_next_writer_deletes_what_a_killed_attempt_left(tmp_path: Path) -> None:
    table = hudi.Table.create(str(tmp_path / "t"), SCHEMA, record_key="id")
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


class RolledBackAndFailing(RolledBack):
    """The write then fails by itself, before it comes to its commit."""

    def map_tasks(self, tasks: Any, function: Any, stage: int, weights: Any = None) -> Any:
        done = super().map_tasks(tasks, function, stage, weights)
        if getattr(function, "func", None) is merge_handle.write_group:
            raise KeyboardInterrupt
        return done


def test_a_failing_writer_that_was_taken_for_dead_removes_its_files(tmp_path: Path) -> None:
    table = hudi.Table.create(str(tmp_path / "t"), SCHEMA, record_key="id")
    table.upsert(rows("a"))
    with pytest.raises(KeyboardInterrupt):
        table.upsert(rows("a", "b"), engine=RolledBackAndFailing(table.path))
    assert data_files(table) == 1
    table.upsert(rows("c"))
    assert foreign_keys(table) == ["a", "c"]


def test_a_writer_that_was_taken_for_dead_removes_its_files(tmp_path: Path) -> None:
    table = hudi.Table.create(str(tmp_path / "t"), SCHEMA, record_key="id")
    table.upsert(rows("a"))
    with pytest.raises(IncompleteCommitError, match="rolled back"):
        table.upsert(rows("a", "b"), engine=RolledBack(table.path))
    assert data_files(table) == 1
    assert foreign_keys(table) == ["a"]
    table.upsert(rows("c"))
    assert foreign_keys(table) == ["a", "c"]
