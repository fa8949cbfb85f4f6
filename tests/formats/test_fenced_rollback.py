"""Writes that the format cannot take any more, and writers that sleep before step 2."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hudi_core as hudi
import hudi_core.actions.rollback
import hudi_core.txn.recovery.roll_forward
import hudi_core.txn.recovery.rollback
from hudi_core.errors import CommitConflictError, HudiError, IncompleteCommitError
from hudi_core.model.commit import CommitMetadata
from hudi_core.model.instant import Action, Instant, State
from hudi_core.plugin.host import FormatHost
from hudi_core.timeline.serde import decode_rollback
from hudi_core.txn.publication import PublicationRejectedError, publish_once, with_parent_version
from hudi_core.txn.recovery import roll_forward
from hudi_core.txn.transaction import Transaction
from tests.formats.two_steps import (
    READABLE,
    SHARED,
    Died,
    batch,
    blind,
    die_at,
    files_of,
    ignorant,
    last_write,
    left_between,
    opened,
    read,
    read_at_rest,
    small_table,
)


@pytest.fixture(params=READABLE)
def table(path: Path, request: pytest.FixtureRequest) -> hudi.Table:
    return small_table(path, str(request.param))


@pytest.fixture
def overtaken(table: hudi.Table, monkeypatch: pytest.MonkeyPatch) -> Instant:
    """A write that is pending publication, and overtaken by one of another file group."""
    instant = left_between(monkeypatch, table, lambda: table.upsert(batch(2, "a")))
    with blind(monkeypatch):
        table.upsert(batch(3, "x"))
    return instant


def rolled_back(table: hudi.Table) -> list[str]:
    """The writes that completed rollbacks of the fenced timeline name."""
    found: list[str] = []
    for one in hudi.Table.open(table.path).timeline.instants:
        if one.action is Action.ROLLBACK and one.is_completed:
            active = opened(table).client.active
            found += decode_rollback(active.read(one), active.path(one)).commits_rollback
    return found


def publish(table: hudi.Table, instant: Instant) -> Any:
    """Send the request that the writer of an instant had on its way."""
    here = opened(table)
    return publish_once(here, here.client.read_commit(instant), instant)


def test_a_write_behind_a_later_one_is_taken_back(table: hudi.Table, overtaken: Instant) -> None:
    assert files_of(table, overtaken)
    table.upsert(batch(4, "b"))
    assert read_at_rest(table) == {"a": 1, "b": 4, "x": 3}
    assert rolled_back(table) == [overtaken.requested_time]
    assert not files_of(table, overtaken)
    listed = table.metadata("files").to_pylist()
    assert not any(overtaken.requested_time in repr(row) for row in listed)


def test_no_request_and_no_replay_gets_it_in(table: hudi.Table, overtaken: Instant) -> None:
    here = opened(table)
    metadata = here.client.read_commit(overtaken)
    table.upsert(batch(4, "b"))
    before = read_at_rest(table)
    plain = CommitMetadata(metadata.partition_to_write_stats, operation_type="UPSERT")
    for sent in (metadata, plain):
        with pytest.raises(HudiError):
            publish_once(here, sent, overtaken)
        assert here.host.find_publication(here.client, overtaken) is None
    assert read_at_rest(table) == before


def test_a_request_that_lands_before_the_fence_makes_the_write_complete(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    instant = left_between(monkeypatch, table, lambda: table.upsert(batch(2, "a")))
    real = FormatHost.before_rollback

    def just_after(self: FormatHost, client: Any, target: Instant) -> None:
        publish(table, instant)
        real(self, client, target)

    def refuse(*_: object) -> None:
        raise PublicationRejectedError("it was said to be so", "Run it again.")

    with monkeypatch.context() as patched:
        patched.setattr(FormatHost, "before_rollback", just_after)
        patched.setattr(roll_forward, "require_publishable", refuse)
        table.upsert(batch(4, "b"))
    assert read_at_rest(table) == {"a": 2, "b": 4, "x": 1}
    assert rolled_back(table) == []


def test_whoever_is_overtaken_himself_hears_of_it_once_nothing_is_left(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = FormatHost.complete_write
    mine: list[Instant] = []

    def overtake(self: FormatHost, client: Any, metadata: Any, instant: Instant, *more: Any) -> Any:
        if not mine:
            mine.append(instant)
            with blind(monkeypatch):
                # its lock has run out: another writer gets one
                other = {"hoodie.write.lock.provider": "in_process"}
                hudi.Table.open(table.path, other).upsert(batch(3, "a"))
        return real(self, client, metadata, instant, *more)

    monkeypatch.setattr(FormatHost, "complete_write", overtake)
    with pytest.raises(CommitConflictError, match="was rolled back"):
        table.upsert(batch(2, "a"))
    assert rolled_back(table) == [mine[0].requested_time]
    assert not files_of(table, mine[0])
    assert read_at_rest(table) == {"a": 3, "b": 1, "x": 1}


STEPS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "the fence": lambda patched: die_at(patched, "before_rollback"),
    "the plan": lambda patched: patched.setattr(hudi_core.txn.recovery.rollback, "roll_back", dies),
    "the rollback begins": lambda patched: patched.setattr(
        hudi_core.txn.recovery.rollback, "run", dies
    ),
    "the deletion": lambda patched: patched.setattr(
        hudi_core.actions.rollback, "delete_files", dies
    ),
    "the format hears of it": lambda patched: die_at(patched, "complete_rollback"),
    "the last files go": lambda patched: patched.setattr(
        hudi_core.actions.rollback, "remove_from_timeline", dies
    ),
}


def dies(*_: object) -> None:
    raise Died


@pytest.mark.parametrize("step", STEPS)
def test_a_writer_that_dies_while_it_takes_back_is_followed_by_one_that_goes_on(
    table: hudi.Table, overtaken: Instant, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        STEPS[step](patched)
        with pytest.raises(Died):
            table.upsert(batch(4, "b"))
    assert read(table) == {"a": 1, "b": 1, "x": 3}
    table.upsert(batch(5, "b"))
    assert read_at_rest(table) == {"a": 1, "b": 5, "x": 3}
    assert rolled_back(table) == [overtaken.requested_time]
    assert not files_of(table, overtaken)


def test_what_the_format_names_is_deleted_by_nobody(
    table: hudi.Table, overtaken: Instant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FormatHost, "before_rollback", lambda *_: None)
    real = FormatHost.find_publication
    asked: list[Instant] = []

    def late(self: FormatHost, client: Any, instant: Instant) -> Any:
        if instant.requested_time == overtaken.requested_time:
            asked.append(instant)
            if len(asked) > 2:  # it landed after the last look before the files go
                return real(self, client, last_write(table))
        return real(self, client, instant)

    monkeypatch.setattr(FormatHost, "find_publication", late)
    with pytest.raises(HudiError, match="still holds"):
        table.upsert(batch(4, "b"))
    assert files_of(table, overtaken)


def test_a_commit_of_a_writer_that_ignored_the_format_is_published(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ignorant(monkeypatch):
        table.upsert(batch(2, "a", "y"))
        table.upsert(batch(3, "a"))  # builds on the one before, which no fenced reader sees
    assert read(table) == {"a": 1, "b": 1, "x": 1}
    table.upsert(batch(4, "b"))
    assert read_at_rest(table)["b"] == 4
    assert rolled_back(table) == []


def test_one_that_cannot_be_published_is_refused_by_its_name(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ignorant(monkeypatch):
        ignored = table.upsert(batch(2, "a")).instant
    with blind(monkeypatch):
        table.upsert(batch(3, "x"))
    before = files_of(table, ignored)
    with pytest.raises(IncompleteCommitError, match=ignored.requested_time) as caught:
        table.upsert(batch(4, "b"))
    assert "knows nothing of the" in caught.value.what
    assert f"hudi table repair {table.path}" in caught.value.hint
    assert files_of(table, ignored) == before
    hudi.Table.open(table.path).repair()  # the way out that the error names
    assert read_at_rest(table) == {"a": 2, "b": 1, "x": 3}
    table.upsert(batch(4, "b"))
    assert read_at_rest(table) == {"a": 2, "b": 4, "x": 3}


def test_a_write_that_others_build_on_is_not_taken_back(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    instant = left_between(monkeypatch, table, lambda: table.upsert(batch(2, "a")))
    with blind(monkeypatch):
        table.upsert(batch(3, "x"))
    here = opened(table)
    after = here.client.timeline().completed_writes()[-1]
    stats = here.client.read_commit(after).partition_to_write_stats
    (stat,) = stats["oslo"]
    real = type(here.client).read_commit

    def building(client: Any, one: Instant) -> Any:
        found = real(client, one)
        if one != after:
            return found
        changed = replace(stat, prev_commit=instant.requested_time)
        return replace(found, partition_to_write_stats={"oslo": (changed,)})

    monkeypatch.setattr(type(here.client), "read_commit", building)
    with pytest.raises(IncompleteCommitError, match="builds on files of it"):
        table.upsert(batch(4, "b"))
    assert files_of(table, instant)


@pytest.mark.parametrize("mine", ["a", "x"])
def test_of_two_that_did_not_see_each_other_the_later_one_is_taken_back_where_they_conflict(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch, mine: str
) -> None:
    real = Transaction.commit
    first: list[Instant] = []

    def commit(self: Transaction, *arguments: Any) -> Any:
        if not first:
            first.append(self.instant)
            other = hudi.Table.open(table.path, SHARED)
            first[0] = left_between(monkeypatch, table, lambda: other.upsert(batch(2, "b")))
        return real(self, *arguments)

    with monkeypatch.context() as patched, blind(monkeypatch):
        patched.setattr(Transaction, "commit", commit)
        die_at(patched, "complete_write")
        with pytest.raises(Died):
            hudi.Table.open(table.path, SHARED).upsert(batch(3, mine))
    second = last_write(table)
    assert second.requested_time < first[0].requested_time
    assert second.effective_completion_time > first[0].effective_completion_time
    assert read(table) == {"a": 1, "b": 1, "x": 1}
    table.upsert(batch(4, "c"))
    if mine == "a":  # of the file group that the other one changed
        assert read_at_rest(table) == {"a": 1, "b": 2, "c": 4, "x": 1}
        assert rolled_back(table) == [second.requested_time]
    else:
        assert read_at_rest(table) == {"a": 1, "b": 2, "c": 4, "x": 3}
        assert rolled_back(table) == []


def test_what_is_fenced_off_is_never_taken_though_its_files_are_there(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    instant = left_between(monkeypatch, table, lambda: table.upsert(batch(2, "a")))
    here = opened(table)
    here.host.before_rollback(here.client, replace(instant, state=State.INFLIGHT))
    head = here.host.open(here.client).version
    late = with_parent_version(here.client.read_commit(instant), head)
    with pytest.raises(IncompleteCommitError, match="taken out"):
        publish_once(here, late, instant)
    assert read(table) == {"a": 1, "b": 1, "x": 1}
    table.upsert(batch(4, "b"))
    assert read_at_rest(table) == {"a": 1, "b": 4, "x": 1}
    assert rolled_back(table) == [instant.requested_time]


# the lock of the writer that sleeps has run out: another writer gets one
OTHERS = {**SHARED, "hoodie.write.lock.provider": "in_process"}
ONE_STATE = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
SHORT = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", **ONE_STATE}


def asleep(
    monkeypatch: pytest.MonkeyPatch, table: hudi.Table, meanwhile: Callable[[], object]
) -> Instant:
    """Upsert ``a``, by a writer that wakes up to a conflict; return the instant."""
    real, mine = FormatHost.complete_write, list[Instant]()

    def late(self: FormatHost, client: Any, metadata: Any, instant: Instant, *more: Any) -> Any:
        if not mine:
            mine.append(instant)
            meanwhile()
        return real(self, client, metadata, instant, *more)

    with monkeypatch.context() as patched:
        patched.setattr(FormatHost, "complete_write", late)
        with pytest.raises(CommitConflictError, match="no longer on the Hudi timeline"):
            table.upsert(batch(2, "a"))
    return mine[0]


def upserted(table: hudi.Table, ts: int, *keys: str) -> None:
    hudi.Table.open(table.path, OTHERS).upsert(batch(ts, *keys), options=ONE_STATE)


@pytest.mark.parametrize("forgets", ["nothing", "clean", "archive"])
def test_whoever_was_rolled_back_hears_of_it_whatever_the_watermark_covers(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch, forgets: str
) -> None:
    def meanwhile() -> None:
        with blind(monkeypatch):
            upserted(table, 3, "a")
        for ts in range(4, 9):
            upserted(table, ts, "b", "x")
        if forgets != "nothing":
            hudi.Table.open(table.path, OTHERS).clean(options=ONE_STATE)
        if forgets == "archive":
            hudi.Table.open(table.path, OTHERS).archive(options=SHORT)

    mine = asleep(monkeypatch, table, meanwhile)
    assert read_at_rest(table) == {"a": 3, "b": 8, "x": 8}
    assert not files_of(table, mine)


def test_what_a_restore_took_out_is_not_published_again(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = last_write(table)

    def meanwhile() -> None:
        for beat in (Path(table.path) / ".hoodie" / ".heartbeat").iterdir():
            beat.unlink()
        upserted(table, 3, "b", "x")  # publishes the other one first
        hudi.Table.open(table.path, OTHERS).restore(first)

    mine = asleep(monkeypatch, table, meanwhile)
    assert read_at_rest(table) == {"a": 1, "b": 1, "x": 1}
    assert not files_of(table, mine)
    table.upsert(batch(4, "a"))
    assert read_at_rest(table) == {"a": 4, "b": 1, "x": 1}
