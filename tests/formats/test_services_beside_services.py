"""Services that another one left half-done, or that is asked for beside a writer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import hudi_core as hudi
import hudi_core.txn.clean
from hudi_core.errors import CommitConflictError, HistoryExpiredError, TableServiceError
from hudi_core.model.instant import Instant
from hudi_core.plugin.host import FormatHost
from hudi_core.txn import heartbeat
from hudi_core.txn.transaction import Transaction
from tests.formats.two_steps import FORMATS, SHARED, Died, batch, new_table

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


@pytest.fixture(params=["native", *FORMATS])
def format_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def rows(table: hudi.Table) -> dict[str, int]:
    found = hudi.Table.open(table.path, SHARED).to_arrow()
    return dict(zip(found["id"].to_pylist(), found["ts"].to_pylist(), strict=True))


# --- a clean that died ----------------------------------------------------------------------------


def left_clean(table: hudi.Table, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """Let a clean die with its plan on the timeline."""

    def die(*_: Any) -> None:
        raise Died

    mine = hudi.Table.open(table.path, {**SHARED, **ONE_VERSION})
    with monkeypatch.context() as patched:
        patched.setattr(hudi_core.txn.clean, step, die)
        with pytest.raises(Died):
            mine.clean()


@pytest.mark.parametrize("step", ["start_clean", "delete_cleaned"])
@pytest.mark.parametrize("service", ["savepoint", "restore", "rollback"])
def test_what_a_begun_clean_deletes_is_not_gone_back_to(
    format_name: str, service: str, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(tmp_path / "t", format_name, **ONE_VERSION)
    first = table.timeline.completed_writes()[-1]
    second = table.upsert(batch(2, "a")).instant
    left_clean(table, monkeypatch, step)
    services: dict[str, Callable[[], Any]] = {
        "savepoint": lambda: table.savepoint(first),
        "restore": lambda: table.restore(first),
        "rollback": lambda: table.rollback(second),
    }
    with pytest.raises((HistoryExpiredError, TableServiceError)):
        services[service]()
    assert rows(table) == {"a": 2, "b": 1, "x": 1}
    assert all(one.is_completed for one in table.timeline.instants)
    table.clean()
    assert rows(table) == {"a": 2, "b": 1, "x": 1}
    table.upsert(batch(3, "a"))
    assert rows(table) == {"a": 3, "b": 1, "x": 1}


def test_a_savepoint_of_what_a_begun_clean_leaves_is_made(
    format_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(tmp_path / "t", format_name, **ONE_VERSION)
    second = table.upsert(batch(2, "a")).instant
    assert second is not None
    left_clean(table, monkeypatch, "start_clean")
    table.savepoint(second)
    table.upsert(batch(3, "a"))
    assert table.clean().files == ()
    table.restore(second)
    assert rows(table) == {"a": 2, "b": 1, "x": 1}


# --- a rollback beside a writer that is taken for dead --------------------------------------------

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
    format_name: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(tmp_path / "t", format_name)
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
    with pytest.raises(CommitConflictError, match=f"{second.requested_time}.*was rolled back"):
        BUILDS[name](hudi.Table.open(table.path, {**SHARED, **ONE_FILE}))
    assert rows(table) == {"a": 1, "b": 1, "x": 1}
    BUILDS[name](hudi.Table.open(table.path, {**SHARED, **ONE_FILE}))
    assert rows(table)["a"] == 1


def test_what_builds_on_a_write_that_was_archived_meanwhile_commits(
    format_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(tmp_path / "t", format_name, **BEYOND)
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
    assert rows(table) == {"a": 5, "b": 6, "x": 1}


# --- archived commits -----------------------------------------------------------------------------


def beyond_savepoint(path: Path, format_name: str) -> tuple[hudi.Table, Instant]:
    """Give a table whose first commit has a savepoint, and later ones that are archived."""
    table = new_table(path, format_name, **BEYOND)
    first = table.timeline.completed_writes()[-1]
    table.savepoint(first)
    for ts in range(2, 7):
        table.upsert(batch(ts, "a", f"y{ts}"))
    assert len(table.archive().instants) == 4
    return table, first


def test_a_restore_takes_archived_commits_out(format_name: str, tmp_path: Path) -> None:
    table, first = beyond_savepoint(tmp_path / "t", format_name)
    assert len(table.restore(first, dry_run=True).undone) == 5
    assert len(table.restore(first).undone) == 5
    assert rows(table) == {"a": 1, "b": 1, "x": 1}
    table.upsert(batch(9, "b"))  # now the active timeline begins after them
    table.upsert(batch(9, "z"))
    assert rows(table) == {"a": 1, "b": 9, "x": 1, "z": 9}
    assert table.validate().differences == ()


@pytest.mark.parametrize("dies", [False, True])
def test_archived_commits_count_when_the_savepoint_before_them_is_deleted(
    format_name: str, dies: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, first = beyond_savepoint(tmp_path / "t", format_name)
    present = {"a": 6, "b": 1, "x": 1} | {f"y{ts}": ts for ts in range(2, 7)}
    if dies:

        def die(*_: Any) -> None:
            raise Died

        with monkeypatch.context() as patched:
            patched.setattr(FormatHost, "complete_delete_savepoint", die)
            with pytest.raises(Died):
                table.delete_savepoint(first)
        assert rows(table) == present
        table.upsert(batch(6, "a"))
        assert rows(table) == present
    table.delete_savepoint(first)
    assert first not in table.timeline.instants
    assert rows(table) == present
    table.upsert(batch(9, "b"))
    assert rows(table) == {**present, "b": 9}
    assert table.validate().differences == ()


@pytest.mark.parametrize("is_saved", [False, True])
def test_the_write_that_tells_that_others_are_archived_stays(
    format_name: str, is_saved: bool, tmp_path: Path
) -> None:
    table = new_table(tmp_path / "t", format_name, **BEYOND)
    first = table.timeline.completed_writes()[-1].requested_time
    if is_saved:
        table.savepoint(first)
    for ts in range(2, 7):
        table.upsert(batch(ts, "a", "y"))
    table.archive()
    there = [one for one in table.timeline.completed_writes() if one.requested_time != first]
    for one in there[:0:-1]:
        with suppress(TableServiceError):  # a format may have expired the state before
            table.rollback(one)
    with pytest.raises(TableServiceError):
        table.rollback(there[0])
    assert rows(table).keys() == {"a", "b", "x", "y"}
    table.upsert(batch(9, "b"))
    assert rows(table).keys() == {"a", "b", "x", "y"}
    assert rows(table)["b"] == 9


def test_savepoints_of_all_active_commits_do_not_hide_archived_ones(
    format_name: str, tmp_path: Path
) -> None:
    table = new_table(tmp_path / "t", format_name, **BEYOND)
    table.savepoint(table.timeline.completed_writes()[-1])
    for ts in range(2, 7):
        table.upsert(batch(ts, "a", "y" if ts < 4 else "b"))
    table.archive()
    for one in table.timeline.completed_writes():
        table.savepoint(one)
    assert rows(table) == {"a": 6, "b": 6, "x": 1, "y": 3}
    assert table.archive().instants == ()
    assert rows(table) == {"a": 6, "b": 6, "x": 1, "y": 3}
