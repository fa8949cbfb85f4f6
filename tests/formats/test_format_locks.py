"""The lock that a format offers, and what a table is locked with where it offers none."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog
from sqlalchemy import create_engine, text

import hudi_core as hudi
from hudi_core.config.write import WriteConfig
from hudi_core.errors import LockError, StorageError
from hudi_core.plugin.host import FormatHost
from hudi_core.services.opening import open_table
from hudi_core.txn.locks.in_process import InProcessLock
from hudi_core.txn.locks.lock_file import FileLock
from hudi_core.txn.locks.waiting import BothLocks
from hudi_core.txn.table_lock import TableLock, table_lock
from iceberg_format.locks import SqlLease
from tests.formats.two_steps import CITIES, batch
from tests.lock_contract import LockProviderContract, NewLock, ProcessLockContract
from tests.tables import new_table

PREFIX = "hoodie.table.format.iceberg.catalog."


class TestSqlLease(ProcessLockContract):
    lease_s = 60
    rivals, turns_of_threads = 2, 5

    @pytest.fixture
    def uri(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path}/catalog.db"

    @pytest.fixture
    def new(self, uri: str) -> NewLock:
        return lambda: SqlLease(create_engine(uri), "default.t")

    @pytest.fixture
    def brief(self, uri: str) -> NewLock:
        return lambda: SqlLease(create_engine(uri), "default.t", 2)

    @pytest.fixture
    def code(self, uri: str) -> str:
        return (
            "from sqlalchemy import create_engine\n"
            "from iceberg_format.locks import SqlLease\n"
            f"lock = SqlLease(create_engine({uri!r}), 'default.t', 60)"
        )

    @pytest.fixture
    def brief_code(self, code: str) -> str:
        return code.replace(", 60)", ", 2)")

    def test_a_database_in_memory_excludes_none(self) -> None:
        assert not SqlLease(create_engine("sqlite://"), "default.t").excludes_processes

    def test_tables_do_not_wait_for_each_other(self, new: NewLock, uri: str) -> None:
        one, other = new(), SqlLease(create_engine(uri), "default.u")
        assert one.try_lock(0)
        assert other.try_lock(0)

    def test_a_holder_that_is_gone_loses_it_after_a_lease(self, uri: str) -> None:
        gone = SqlLease(create_engine(uri), "default.t", 1)
        assert gone.try_lock(0)
        hold = gone._held
        assert hold is not None
        time.sleep(1.2)
        assert gone.lease_left() > 0.5  # renewed
        hold.renewal.stop()
        gone._threads.unlock()  # its process is no more
        other = SqlLease(create_engine(uri), "default.t", 1)
        started = time.monotonic()
        assert not other.try_lock(0)
        assert other.try_lock(10)
        assert 1 < time.monotonic() - started < 8
        assert gone.lease_left() == 0
        assert not gone.beat(hold.owner)
        other.unlock()

    def test_a_holder_finds_out_that_it_was_robbed(self, uri: str) -> None:
        engine = create_engine(uri)
        lock = SqlLease(engine, "default.t", 1)
        assert lock.try_lock(0)
        with engine.begin() as connection:
            connection.execute(text("UPDATE hudi_table_locks SET owner = 'somebody'"))
        deadline = time.monotonic() + 60
        while lock.lease_left() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert lock.lease_left() == 0
        with pytest.raises(LockError, match="lost"):
            TableLock(lock, 0).require_lease()
        lock.unlock()
        assert not SqlLease(engine, "default.t").try_lock(0)

    def test_a_database_that_does_not_answer_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(StorageError, match="does not answer"):
            SqlLease(create_engine(f"sqlite:///{tmp_path}/no/such.db"), "default.t").try_lock(0)


class TestBothLocks(LockProviderContract):
    @pytest.fixture
    def new(self, tmp_path: Path) -> NewLock:
        return lambda: BothLocks(FileLock(str(tmp_path)), InProcessLock(f"{tmp_path}/other"))

    @pytest.mark.parametrize("which", [0, 1])
    def test_a_holder_of_one_keeps_the_holder_of_both_out(
        self, which: int, new: NewLock, tmp_path: Path
    ) -> None:
        one = (FileLock(str(tmp_path)), InProcessLock(f"{tmp_path}/other"))[which]
        assert one.try_lock(0)
        both = new()
        assert not both.try_lock(0.05)
        one.unlock()
        assert both.try_lock(0)

    def test_it_excludes_processes_when_one_does(self, new: NewLock, tmp_path: Path) -> None:
        assert new().excludes_processes
        threads = InProcessLock(str(tmp_path)), InProcessLock(f"{tmp_path}/other")
        assert not BothLocks(*threads).excludes_processes


@pytest.fixture
def sql(tmp_path: Path) -> dict[str, str]:
    return {
        "hoodie.table.format": "iceberg",
        f"{PREFIX}type": "sql",
        f"{PREFIX}uri": f"sqlite:///{tmp_path}/catalog.db",
        f"{PREFIX}warehouse": str(tmp_path),
        f"{PREFIX}create-namespace": "true",
    }


def lock_of(path: Path, options: dict[str, str]) -> TableLock:
    return table_lock(open_table(str(path), options), WriteConfig.from_options(options))


def owner(options: dict[str, str]) -> str:
    engine = create_engine(options[f"{PREFIX}uri"])
    with engine.begin() as connection:
        return str(connection.execute(text("SELECT owner FROM hudi_table_locks")).scalar_one())


def test_a_sql_catalog_s_table_is_locked_there_too(path: Path, sql: dict[str, str]) -> None:
    new_table(path, batch(1, "a"), sql, name="t")
    assert owner(sql) == ""
    with lock_of(path, sql).held():
        assert owner(sql)
        # who takes only the lock of the place is kept out as well
        assert not FileLock(str(path)).try_lock(0)
    assert owner(sql) == ""
    found = load_catalog("hudi", type="sql", uri=sql[f"{PREFIX}uri"]).load_table("default.t")
    assert found.scan().to_arrow().num_rows == 1


def test_the_lock_that_a_user_names_is_taken_alone(path: Path, sql: dict[str, str]) -> None:
    new_table(path, batch(1, "a"), sql, name="t")
    named = {**sql, "hoodie.write.lock.provider": "file_system"}
    with lock_of(path, named).held():
        assert owner(sql) == ""


def test_a_writer_waits_for_the_lock_in_the_database(path: Path, sql: dict[str, str]) -> None:
    new_table(path, batch(1, "a"), sql, name="t")
    holder = SqlLease(create_engine(sql[f"{PREFIX}uri"]), "default.t")
    assert holder.try_lock(0)
    impatient = {**sql, "hoodie.write.lock.wait_time_ms": "100"}
    with pytest.raises(LockError, match="not free"):
        hudi.Table.open(path, impatient).insert(batch(2, "b"))
    holder.unlock()
    hudi.Table.open(path, impatient).insert(batch(2, "b"))


@pytest.mark.parametrize("offered", [InProcessLock, None])
def test_a_format_without_a_lock_that_excludes_leaves_the_table_with_that_of_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offered: Callable[[str], Any] | None
) -> None:
    options = {"hoodie.table.format": "iceberg"}
    new_table(tmp_path / "t", CITIES, options, name="t")
    asked: list[object] = []

    def offer(self: FormatHost, client: Any, given: object) -> Any:
        asked.append(given)
        return offered(f"{tmp_path}/its") if offered else None

    monkeypatch.setattr(FormatHost, "get_lock_provider", offer)
    lock = lock_of(tmp_path / "t", {**options, "hoodie.write.lock.wait_time_ms": "1000"})
    assert asked == [{"wait_time_ms": "1000"}]
    assert isinstance(lock._provider, FileLock)
    holder = threading.Thread(target=InProcessLock(f"{tmp_path}/its").try_lock, args=(0,))
    holder.start()
    holder.join()
    with lock.held():
        pass
