"""After any error of step 2 the format is asked; what it says is the truth, whatever the error."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException

import hudi_core as hudi
import hudi_core.actions.rollback
import hudi_core.txn.publication
import hudi_core.txn.transaction
from hudi_core import errors
from hudi_core.model.format import PARENT_KEY
from hudi_core.model.instant import Action
from hudi_core.plugin.host import FormatHost
from hudi_core.storage.posix import PosixStorage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.txn.publication import PublicationRejectedError
from hudi_core.txn.recovery import roll_forward, rollback
from hudi_core.txn.state import TableState
from hudi_core.txn.table_lock import Hold, TableLock
from hudi_core.txn.transaction import Transaction
from tests.calls import after, before, calls_of, failing
from tests.cli_runs import run
from tests.formats.test_format_locks import sql
from tests.formats.two_steps import (
    READ,
    READABLE,
    SHARED,
    batch,
    blind,
    files_of,
    last_write,
    left_between,
    newest_iceberg,
    opened,
    ours,
    read,
    read_at_rest,
    small_table,
)

__all__ = ["sql"]

GONE = errors.StorageError("The store is gone", "Wait for it.")
ERRORS: dict[str, errors.HudiError] = {
    "the store failed": GONE,
    "a bug of the plugin": errors.PluginHookError("toy", "complete_write", "KeyError: 'x'"),
    "said to be lost": errors.CommitConflictError("Somebody was first", "Run it again."),
    "said to be open": errors.CommitStateUnknownError("Who knows", "Look."),
    "said to be wrong": errors.TableServiceError("It cannot be", "Do something else."),
}
ROLLBACK = FormatHost.complete_rollback


@dataclass
class Faults:
    """What the next calls of a hook do, before or after the hook itself, or instead of it."""

    before: list[errors.HudiError] = field(default_factory=list)
    after: list[errors.HudiError] = field(default_factory=list)
    always: errors.HudiError | None = None
    parents: list[str | None] = field(default_factory=list)

    def around(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            commit = getattr(arguments[2], "extra_metadata", {})
            self.parents.append(commit.get(PARENT_KEY))
            if self.always is not None:
                raise self.always
            if self.before:
                raise self.before.pop(0)
            result = hook(*arguments)
            if self.after:
                raise self.after.pop(0)
            return result

        return call


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hudi_core.txn.publication, "_PAUSE_S", 0)


@pytest.fixture(params=READABLE)
def table(path: Path, request: pytest.FixtureRequest) -> hudi.Table:
    return small_table(path, str(request.param))


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    made = Faults()
    for hook in ("complete_write", "complete_rollback", "complete_schema_change"):
        monkeypatch.setattr(FormatHost, hook, made.around(getattr(FormatHost, hook)))
    return made


def require_held(table: hudi.Table, result: hudi.CommitResult) -> None:
    """The format holds a write at the version that its receipt names."""
    here = opened(table)
    found = here.host.find_publication(here.client, result.instant)
    assert found is not None
    assert result.receipt.version == found.version


@pytest.mark.parametrize("error", ERRORS)
def test_what_the_format_holds_is_done_whatever_the_error_says(
    table: hudi.Table, faults: Faults, error: str
) -> None:
    faults.after.append(ERRORS[error])
    result = table.upsert(batch(2, "a"))
    assert read_at_rest(table) == {"a": 2, "b": 1, "x": 1}
    require_held(table, result)


@pytest.mark.parametrize("error", ERRORS)
def test_what_the_format_does_not_hold_is_tried_again_on_the_same_parent(
    table: hudi.Table, faults: Faults, error: str
) -> None:
    faults.before += [ERRORS[error]] * 2
    table.upsert(batch(2, "a"))
    assert read_at_rest(table) == {"a": 2, "b": 1, "x": 1}
    assert len(faults.parents) == 3
    assert len(set(faults.parents)) == 1
    assert faults.parents[0]


@pytest.mark.parametrize("error", ERRORS)
def test_what_stays_open_is_said_to_be_open_and_nothing_is_deleted(
    table: hudi.Table, faults: Faults, error: str
) -> None:
    faults.always = ERRORS[error]
    with pytest.raises(errors.CommitStateUnknownError) as caught:
        table.upsert(batch(2, "a", "n"))
    instant = last_write(table)
    assert caught.value.facts["instant"] == instant.requested_time
    assert instant.requested_time in caught.value.what
    assert caught.value.__cause__ is faults.always
    assert len(faults.parents) == 3
    assert len(files_of(table, instant)) == 2
    assert read(table) == {"a": 1, "b": 1, "x": 1}
    faults.always = None
    table.upsert(batch(3, "b"))
    assert read_at_rest(table) == {"a": 2, "b": 3, "n": 2, "x": 1}


def test_a_format_that_cannot_be_asked_leaves_the_outcome_open(
    table: hudi.Table, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults.after.append(errors.StorageError("The answer was lost", "Look."))
    with monkeypatch.context() as patched:
        patched.setattr(FormatHost, "find_publication", failing(GONE))
        asked = calls_of(patched, FormatHost, "find_publication")
        with pytest.raises(errors.CommitStateUnknownError):
            table.upsert(batch(2, "a"))
    assert len(asked) == 1
    assert read_at_rest(table) == {"a": 2, "b": 1, "x": 1}


def test_an_instant_that_the_format_was_told_never_to_take_is_taken_back(
    table: hudi.Table, faults: Faults
) -> None:
    faults.before.append(errors.IncompleteCommitError("It was taken out", "Run it again."))
    with pytest.raises(errors.CommitConflictError, match="was rolled back"):
        table.upsert(batch(2, "a"))
    assert read_at_rest(table) == {"a": 1, "b": 1, "x": 1}


def test_a_lock_that_is_lost_before_step_2_leaves_it_to_the_next_writer(
    table: hudi.Table, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[object] = []

    def require(self: TableLock) -> None:
        held.append(self)
        if len(held) > 2:  # it was there when step 1 was taken
            raise errors.LockError("The table's lock was lost", "Run it again.")

    with monkeypatch.context() as patched:
        patched.setattr(TableLock, "require_lease", require)
        with pytest.raises(errors.CommitStateUnknownError, match="lock was lost"):
            table.upsert(batch(2, "a"))
    assert faults.parents == []
    table.upsert(batch(3, "b"))
    assert read_at_rest(table) == {"a": 2, "b": 3, "x": 1}


def test_who_cannot_publish_what_another_one_left_undoes_his_own_write(
    table: hudi.Table, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine: list[Any] = []

    def another(transaction: Transaction, *_: object) -> None:
        mine.append(transaction.instant)
        other = hudi.Table.open(table.path, SHARED)
        mine.append(left_between(monkeypatch, table, lambda: other.upsert(batch(2, "x"))))
        faults.always = GONE

    with monkeypatch.context() as patched:
        before(patched, Transaction, "commit", another)
        patched.setattr(FormatHost, "complete_rollback", ROLLBACK)
        with pytest.raises(errors.CommitStateUnknownError, match=r"The store is gone") as caught:
            hudi.Table.open(table.path, SHARED).upsert(batch(3, "a"))
    assert caught.value.facts["instant"] == mine[1].requested_time
    assert not files_of(table, mine[0])
    faults.always = None
    table.upsert(batch(4, "b"))
    assert read_at_rest(table) == {"a": 1, "b": 4, "x": 2}


def test_of_two_writes_that_died_the_first_is_published_first(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    for ts in (2, 3):  # the second dies while it publishes the first
        left_between(monkeypatch, table, partial(table.upsert, batch(ts, "a")))
    table.upsert(batch(4, "z"))
    assert read_at_rest(table) == {"a": 2, "b": 1, "x": 1, "z": 4}


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_rollback_without_answer_is_done(table: hudi.Table, faults: Faults, when: str) -> None:
    undone = table.upsert(batch(2, "a"))
    getattr(faults, when).append(errors.StorageError("The answer was lost", "Look."))
    table.rollback(undone.instant)
    assert read_at_rest(table) == {"a": 1, "b": 1, "x": 1}


def test_a_rollback_that_stays_open_ends_the_command_with_the_code_for_it(
    table: hudi.Table, faults: Faults
) -> None:
    undone = table.upsert(batch(2, "a"))
    faults.always = GONE
    arguments = ["rollback", table.path, undone.instant.requested_time]
    ended = run(*arguments)
    assert ended.exit_code == 3
    assert "does not hold it yet: The store is gone" in ended.stderr
    assert "Nothing was deleted" not in ended.stdout
    assert run(*arguments).exit_code == 3
    faults.always = None
    assert run(*arguments).exit_code == 0
    assert all(one.is_completed for one in hudi.Table.open(table.path).timeline.instants)
    table.upsert(batch(3, "b"))
    assert read_at_rest(table) == {"a": 1, "b": 3, "x": 1}


@pytest.fixture
def first(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """The first commit of the test, to be called again."""
    commits = calls_of(monkeypatch, Transaction, "commit")
    return lambda: Transaction.commit(*commits[0])


def test_a_complete_commit_that_is_repeated_returns_what_it_did(
    table: hudi.Table, first: Callable[[], Any]
) -> None:
    result = table.upsert(batch(2, "a"))
    rows = read_at_rest(table)
    for ts in (None, None, 3):
        if ts is not None:
            table.upsert(batch(ts, "b"))
        again = first()
        assert (again.instant, again.receipt) == (result.instant, result.receipt)
    assert read_at_rest(table) == {**rows, "b": 3}


@pytest.mark.parametrize("by", ["itself", "the next writer"])
def test_a_commit_that_was_left_open_is_repeated(
    table: hudi.Table, faults: Faults, first: Callable[[], Any], by: str
) -> None:
    faults.always = GONE
    for write in (lambda: table.upsert(batch(2, "a")), first):
        with pytest.raises(errors.CommitStateUnknownError):
            write()
    faults.always = None
    if by == "the next writer":
        table.upsert(batch(3, "b"))
    require_held(table, first())
    assert read_at_rest(table)["a"] == 2


def test_a_commit_that_was_taken_back_says_so_when_it_is_repeated(
    table: hudi.Table, faults: Faults, first: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    faults.always = GONE
    with pytest.raises(errors.CommitStateUnknownError):
        table.upsert(batch(2, "a"))
    faults.always = None
    with blind(monkeypatch):
        table.upsert(batch(3, "x"))
    with pytest.raises(errors.CommitConflictError, match="was rolled back"):
        first()
    with pytest.raises(errors.IncompleteCommitError, match="was, rolled back"):
        first()
    assert read_at_rest(table) == {"a": 1, "b": 1, "x": 3}


@pytest.mark.parametrize("format_name", ["native", *READABLE])
def test_a_step_1_that_nobody_can_tell_of_is_said_to_be_open(
    tmp_path: Path, format_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = small_table(tmp_path / "t", format_name)
    gone: list[str] = []

    def lost(_: object, path: str = "", *more: object) -> None:
        if path.startswith(".hoodie/timeline") and path.endswith(".commit"):
            gone.append(path)
        if gone:
            raise errors.StorageError("The connection broke", "Try again.")

    with monkeypatch.context() as patched:
        after(patched, PosixStorage, "put_if_absent", lost, each=True)
        before(patched, ActiveTimeline, "load", lost, each=True)
        with pytest.raises(errors.CommitStateUnknownError):
            table.upsert(batch(2, "a"))
    table.upsert(batch(3, "b"))
    found = hudi.Table.open(table.path).to_arrow(columns=["id", "ts"]).to_pydict()
    assert dict(zip(found["id"], found["ts"], strict=True)) == {"a": 2, "b": 3, "x": 1}


def test_delta_tries_each_version_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    puts = calls_of(monkeypatch, PosixStorage, "put_if_absent")
    table = small_table(tmp_path / "t", "delta")
    table.alter(add_columns={"note": pa.string()})
    wide = batch(2, "a").append_column("note", pa.array(["n"])).append_column("m", pa.array(["m"]))
    table.upsert(wide)
    table.rollback(last_write(table))
    # created, inserted, altered, upserted with a column, restored, rolled back
    asked = [path for _, path, *_ in puts if path.startswith("_delta_log/")]
    assert asked == [f"_delta_log/{number:020}.json" for number in range(6)]
    assert DeltaTable(str(tmp_path / "t")).version() == 5


def test_iceberg_asks_a_catalog_once_for_each_commit(
    tmp_path: Path, sql: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small_table(tmp_path / "folder", "iceberg")
    metadata = newest_iceberg(tmp_path / "folder").metadata
    assert metadata.properties["commit.retry.num-retries"] == "0"
    table = small_table(tmp_path / "t", "iceberg", **sql)
    lose = failing(CommitFailedException("somebody was first"))
    with monkeypatch.context() as patched:
        patched.setattr(SqlCatalog, "commit_table", lose)
        calls = calls_of(patched, SqlCatalog, "commit_table")
        here = table._session.opened
        done = last_write(table)
        with pytest.raises(errors.CommitConflictError, match="somebody was first"):
            here.host.before_rollback(here.client, done)
    assert len(calls) == 1


def lose_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lose every answer of the hook of a write, and all but the first to whether it is held."""
    after(monkeypatch, FormatHost, "complete_write", failing(GONE), each=True)
    asked = calls_of(monkeypatch, FormatHost, "find_publication")
    again = lambda *_: asked and failing(GONE)()  # noqa: E731
    before(monkeypatch, FormatHost, "find_publication", again, each=True)


def test_what_is_held_is_told_done(table: hudi.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        lose_answers(patched)
        done = table.upsert(batch(2, "a"))
    assert read(table) == {"a": 2, "b": 1, "x": 1}
    require_held(table, done)


def test_a_commit_that_is_repeated_is_done_whatever_the_format_answers(
    table: hudi.Table, first: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def repeat(*_: object) -> None:
        lose_answers(patched)
        first()

    with monkeypatch.context() as patched:
        after(patched, Transaction, "commit", repeat)
        table.upsert(batch(2, "a"))
    assert read(table) == {"a": 2, "b": 1, "x": 1}


def test_what_cannot_be_fenced_off_is_not_told_failed(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = PublicationRejectedError("something else came first", "Run the write again.")
    with monkeypatch.context() as patched:
        patched.setattr(roll_forward, "require_publishable", failing(refused))
        patched.setattr(FormatHost, "complete_write", failing(GONE))
        patched.setattr(FormatHost, "before_rollback", failing(GONE))
        with pytest.raises(errors.CommitStateUnknownError) as told:
            table.upsert(batch(2, "a"))
    assert told.value.__cause__ is GONE
    table.upsert(batch(3, "b"))  # nothing stands against it any more, and it comes in
    assert read_at_rest(table) == {"a": 2, "b": 3, "x": 1}


def test_what_was_published_after_the_look_for_conflicts_is_not_built_upon(
    path: Path, table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = hudi.Table.open(path, options=SHARED)

    def overtake(*_: object) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(TableLock, "held", lambda self: nullcontext(Hold()))
            patched.setattr(TableLock, "require_lease", lambda self: None)
            other.upsert(batch(5, "a"))

    after(monkeypatch, hudi_core.txn.transaction, "require_no_conflicts", overtake)
    with pytest.raises(errors.CommitConflictError):
        hudi.Table.open(path, options=SHARED).upsert(batch(4, "a", "c"))
    assert READ[table.format](path) == ours(str(path)) == {"a": 5, "b": 1, "x": 1}


@pytest.mark.parametrize("format_name", ["native", *READABLE])
def test_a_write_that_completes_while_its_rollback_is_planned_stays(
    path: Path, monkeypatch: pytest.MonkeyPatch, format_name: str
) -> None:
    small_table(path, format_name)
    complete, refused = Transaction._complete, list[errors.ConcurrentWriterError]()

    def taken_for_dead(self: Transaction, *arguments: Any) -> Any:
        """Roll the write back from elsewhere; it completes while the plan is made."""
        done: list[Any] = []
        with monkeypatch.context() as patched:
            end = lambda *_: done.append(complete(self, *arguments))  # noqa: E731
            after(patched, hudi_core.actions.rollback, "make_plan", end)
            with pytest.raises(errors.ConcurrentWriterError) as caught:
                rollback.roll_back(TableState.load(self.table), self.instant)
        refused.append(caught.value)
        return done[0]

    with monkeypatch.context() as patched:
        patched.setattr(Transaction, "_complete", taken_for_dead)
        hudi.Table.open(path, options=SHARED).upsert(batch(4, "a"))
    assert refused
    assert ours(str(path)) == {"a": 4, "b": 1, "x": 1}
    instants = hudi.Table.open(path).timeline.instants
    assert not [one for one in instants if one.action is Action.ROLLBACK]
