"""Services beside services and writers, of this process and of others."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import hudi_core as hudi
from hudi_core import errors
from hudi_core.model.instant import Instant
from hudi_core.txn import heartbeat
from hudi_core.txn.transaction import Transaction
from tests import tables
from tests.forked_commands import ForkedCommands
from tests.formats.dying_writers import death_in
from tests.formats.two_steps import SHARED, batch, ours, small_table
from tests.tables import TABLES, rows

ONE_VERSION = {
    "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.cleaner.fileversions.retained": "1",
    "hoodie.clean.automatic": "false",
}
BEYOND = {
    "hoodie.archive.beyond.savepoint": "true",
    "hoodie.archive.automatic": "false",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.automatic": "false",
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.metadata.enable": "false",
}


@pytest.fixture(params=TABLES)
def format_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def left_clean(table: hudi.Table, step: str) -> None:
    """Let a clean die with its plan on the timeline."""
    with death_in(f"hudi_core.txn.clean.{step}"):
        hudi.Table.open(table.path, {**SHARED, **ONE_VERSION}).clean()


@pytest.mark.parametrize("step", ["start_clean", "delete_cleaned"])
@pytest.mark.parametrize("service", ["savepoint", "restore", "rollback"])
def test_what_a_begun_clean_deletes_is_not_gone_back_to(
    format_name: str, service: str, step: str, path: Path
) -> None:
    table = small_table(path, format_name, **ONE_VERSION)
    first = table.timeline.completed_writes()[-1]
    second = table.upsert(batch(2, "a")).instant
    left_clean(table, step)
    services: dict[str, Callable[[], Any]] = {
        "savepoint": lambda: table.savepoint(first),
        "restore": lambda: table.restore(first),
        "rollback": lambda: table.rollback(second),
    }
    with pytest.raises((errors.HistoryExpiredError, errors.TableServiceError)):
        services[service]()
    assert ours(table.path) == {"a": 2, "b": 1, "x": 1}
    assert all(one.is_completed for one in table.timeline.instants)
    table.clean()
    assert ours(table.path) == {"a": 2, "b": 1, "x": 1}
    table.upsert(batch(3, "a"))
    assert ours(table.path) == {"a": 3, "b": 1, "x": 1}


def test_a_savepoint_of_what_a_begun_clean_leaves_is_made(format_name: str, path: Path) -> None:
    table = small_table(path, format_name, **ONE_VERSION)
    second = table.upsert(batch(2, "a")).instant
    assert second is not None
    left_clean(table, "start_clean")
    table.savepoint(second)
    table.upsert(batch(3, "a"))
    assert table.clean().files == ()
    table.restore(second)
    assert ours(table.path) == {"a": 2, "b": 1, "x": 1}


ONE_FILE = {
    "hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true",
    "hoodie.clustering.plan.strategy.sort.columns": "ts",
}
BUILDS: dict[str, Callable[[hudi.Table], Any]] = {
    "upsert": lambda table: table.upsert(batch(3, "b")),
    "insert": lambda table: table.insert(batch(3, "z")),
    "clustering": lambda table: table.cluster(),
}


@pytest.mark.parametrize("name", BUILDS)
def test_what_builds_on_a_write_that_was_rolled_back_fails(
    format_name: str, name: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = small_table(path, format_name)
    second = table.upsert(batch(2, "a")).instant
    assert second is not None
    commit = Transaction.commit

    def slow(self: Transaction, *arguments: Any) -> Any:
        monkeypatch.undo()
        with monkeypatch.context() as patched:
            patched.setattr(heartbeat, "is_alive", lambda *_: False)
            hudi.Table.open(table.path, SHARED).rollback(second)
        return commit(self, *arguments)

    monkeypatch.setattr(Transaction, "commit", slow)
    with pytest.raises(
        errors.CommitConflictError, match=f"{second.requested_time}.*was rolled back"
    ):
        BUILDS[name](hudi.Table.open(table.path, {**SHARED, **ONE_FILE}))
    assert ours(table.path) == {"a": 1, "b": 1, "x": 1}
    BUILDS[name](hudi.Table.open(table.path, {**SHARED, **ONE_FILE}))
    assert ours(table.path)["a"] == 1


def test_what_builds_on_a_write_that_was_archived_meanwhile_commits(
    format_name: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = small_table(path, format_name, **BEYOND)
    for ts in (2, 3, 4, 5):
        table.upsert(batch(ts, "a"))
    commit = Transaction.commit
    archived: list[object] = []

    def slow(self: Transaction, *arguments: Any) -> Any:
        monkeypatch.undo()
        archived.extend(hudi.Table.open(table.path, {**SHARED, **BEYOND}).archive().instants)
        return commit(self, *arguments)

    monkeypatch.setattr(Transaction, "commit", slow)
    hudi.Table.open(table.path, {**SHARED, **BEYOND}).upsert(batch(6, "b"))
    assert len(archived) == 3
    assert ours(table.path) == {"a": 5, "b": 6, "x": 1}


def beyond_savepoint(path: Path, format_name: str) -> tuple[hudi.Table, Instant]:
    """Give a table whose first commit has a savepoint, and later ones that are archived."""
    table = small_table(path, format_name, **BEYOND)
    first = table.timeline.completed_writes()[-1]
    table.savepoint(first)
    for ts in range(2, 7):
        table.upsert(batch(ts, "a", f"y{ts}"))
    assert len(table.archive().instants) == 4
    return table, first


def test_a_restore_takes_archived_commits_out(format_name: str, path: Path) -> None:
    table, first = beyond_savepoint(path, format_name)
    assert len(table.restore(first, dry_run=True).undone) == 5
    assert len(table.restore(first).undone) == 5
    assert ours(table.path) == {"a": 1, "b": 1, "x": 1}
    table.upsert(batch(9, "b"))  # now the active timeline begins after them
    table.upsert(batch(9, "z"))
    assert ours(table.path) == {"a": 1, "b": 9, "x": 1, "z": 9}
    assert table.validate().differences == ()


@pytest.mark.parametrize("dies", [False, True])
def test_archived_commits_count_when_the_savepoint_before_them_is_deleted(
    format_name: str, dies: bool, path: Path
) -> None:
    table, first = beyond_savepoint(path, format_name)
    present = {"a": 6, "b": 1, "x": 1} | {f"y{ts}": ts for ts in range(2, 7)}
    if dies:
        with death_in("hudi_core.plugin.host.FormatHost.complete_delete_savepoint"):
            table.delete_savepoint(first)
        assert ours(table.path) == present
        table.upsert(batch(6, "a"))
        assert ours(table.path) == present
    else:
        table.delete_savepoint(first)
    assert first not in table.timeline.instants
    assert ours(table.path) == present
    table.upsert(batch(9, "b"))
    assert ours(table.path) == {**present, "b": 9}
    assert table.validate().differences == ()


@pytest.mark.parametrize("is_saved", [False, True])
def test_the_write_that_tells_that_others_are_archived_stays(
    format_name: str, is_saved: bool, path: Path
) -> None:
    table = small_table(path, format_name, **BEYOND)
    first = table.timeline.completed_writes()[-1].requested_time
    if is_saved:
        table.savepoint(first)
    for ts in range(2, 7):
        table.upsert(batch(ts, "a", "y"))
    table.archive()
    there = [one for one in table.timeline.completed_writes() if one.requested_time != first]
    for one in there[:0:-1]:
        with suppress(errors.TableServiceError):  # a format may have expired the state before
            table.rollback(one)
    with pytest.raises(errors.TableServiceError):
        table.rollback(there[0])
    assert ours(table.path).keys() == {"a", "b", "x", "y"}
    table.upsert(batch(9, "b"))
    assert ours(table.path).keys() == {"a", "b", "x", "y"}
    assert ours(table.path)["b"] == 9


def test_savepoints_of_all_active_commits_hide_no_others(format_name: str, path: Path) -> None:
    table = small_table(path, format_name, **BEYOND)
    table.savepoint(table.timeline.completed_writes()[-1])
    for ts in range(2, 7):
        table.upsert(batch(ts, "a", "y" if ts < 4 else "b"))
    table.archive()
    for one in table.timeline.completed_writes():
        table.savepoint(one)
    assert ours(table.path) == {"a": 6, "b": 6, "x": 1, "y": 3}
    assert table.archive().instants == ()
    assert ours(table.path) == {"a": 6, "b": 6, "x": 1, "y": 3}


OPTIONS = {"hoodie.write.lock.provider": "in_process", "hoodie.write.lock.wait_time_ms": "20000"}


def with_rows(path: Path, format_name: str = "native") -> hudi.Table:
    table = tables.new_table(path, rows(1, 2), OPTIONS, format=format_name)
    table.upsert(rows(2, 3))
    return table


PURGE = f"""
import sys, time
from pathlib import Path
from typing import Any
import hudi_core as hudi
from hudi_core.services import purge

path, folder = sys.argv[1], Path(sys.argv[2])
rebuild = purge.rebuild_metadata_table

def paused(*arguments):
    folder.joinpath("amid").touch()
    while not folder.joinpath("go").exists():
        time.sleep(0.01)
    return rebuild(*arguments)

purge.rebuild_metadata_table = paused
hudi.Table.open(path, {OPTIONS}).purge()
"""
Purging = Callable[..., AbstractContextManager[int]]


@pytest.fixture
def purging(commands: ForkedCommands, tmp_path: Path) -> Purging:
    """Purge a table in a process of its own, amid whose work the test goes on."""

    @contextmanager
    def begin(table: hudi.Table, ends_with: int = 0) -> Iterator[int]:
        process = commands.start(PURGE, table.path, str(tmp_path))
        deadline = time.monotonic() + 60
        try:
            while not tmp_path.joinpath("amid").exists():
                assert time.monotonic() < deadline
                time.sleep(0.01)
            yield process
        finally:
            tmp_path.joinpath("go").touch()
            ended = commands.wait(process)
        assert ended == ends_with

    return begin


@pytest.mark.parametrize("format_name", TABLES)
def test_a_writer_waits_for_another_s_purge(
    tmp_path: Path, path: Path, format_name: str, purging: Purging
) -> None:
    table = with_rows(path, format_name)
    with purging(table), ThreadPoolExecutor(1) as threads:
        write = threads.submit(table.upsert, rows(9))
        time.sleep(1.5)
        assert not write.done()
        tmp_path.joinpath("go").touch()
        write.result(60)
    assert sorted(table.to_arrow().column("id").to_pylist()) == [1, 2, 3, 9]
    assert table.validate().is_valid
    table.upsert(rows(10))
    assert sorted(table.to_arrow().column("id").to_pylist()) == [1, 2, 3, 9, 10]


def test_a_writer_that_waits_for_too_long_says_for_what(path: Path, purging: Purging) -> None:
    table = with_rows(path)
    hasty = hudi.Table.open(table.path, OPTIONS | {"hoodie.write.lock.wait_time_ms": "300"})
    with purging(table), pytest.raises(errors.LockError) as caught:
        hasty.upsert(rows(9))
    assert "a table service is at work" in str(caught.value)
    assert "hoodie.write.lock.provider" in str(caught.value)
    hasty.upsert(rows(9))


def test_nobody_waits_for_a_service_that_was_killed(path: Path, purging: Purging) -> None:
    table = with_rows(path)
    with purging(table, -signal.SIGKILL) as process:
        os.kill(process, signal.SIGKILL)
    table.upsert(rows(9))
    assert sorted(table.to_arrow().column("id").to_pylist()) == [1, 2, 3, 9]
    assert not list(path.joinpath(heartbeat.FOLDER).iterdir())


def test_a_table_is_not_dropped_beside_a_service(path: Path, purging: Purging) -> None:
    table = with_rows(path)
    with purging(table), pytest.raises(errors.ConcurrentWriterError):
        table.drop()
    assert sorted(table.to_arrow().column("id").to_pylist()) == [1, 2, 3]


def test_services_take_turns(tmp_path: Path, path: Path, purging: Purging) -> None:
    table = with_rows(path)
    with purging(table), ThreadPoolExecutor(1) as threads:
        other = threads.submit(table.clean)
        time.sleep(1.0)
        assert not other.done()
        tmp_path.joinpath("go").touch()
        other.result(60)


def test_a_service_waits_for_a_writer_that_is_about_to_end(path: Path) -> None:
    """Its commit is on the timeline, its heartbeat still there: its own services run."""
    table = with_rows(path)
    last = table.history().column("instant").to_pylist()[-1]
    storage = table._session.opened.client.storage
    ending = heartbeat.Heartbeat(storage, last, 60_000)
    ending.start()
    with ThreadPoolExecutor(1) as threads:
        service = threads.submit(table.clean)
        time.sleep(1.0)
        assert not service.done()
        ending.stop()
        service.result(60)


def test_an_excluding_lock_leaves_no_sign(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_rows(path)
    begun: list[bool] = []
    started = heartbeat.Heartbeat.start

    def start(self: heartbeat.Heartbeat) -> None:
        begun.append(self._path.endswith(".service"))
        started(self)

    monkeypatch.setattr(heartbeat.Heartbeat, "start", start)
    hudi.Table.open(path).clean()
    assert begun == []
    hudi.Table.open(path, OPTIONS).clean()
    assert begun == [True]
