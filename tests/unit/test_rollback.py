"""Rollbacks: what they take back, and what they leave when they die."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.actions.rollback import make_plan
from hudi_core.errors import (
    CommitStateUnknownError,
    HistoryExpiredError,
    IncompleteCommitError,
    StorageError,
    TableServiceError,
)
from hudi_core.model.commit import CommitMetadata
from hudi_core.model.files import PartitionPath
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.services.opening import open_table
from hudi_core.storage.posix import PosixStorage
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.active import ActiveTimeline, late_writes
from hudi_core.timeline.clock import TimelineClock
from hudi_core.timeline.serde import encode
from hudi_core.txn.recovery import rollback
from hudi_core.txn.state import TableState
from hudi_core.txn.table_lock import TableLock
from tests.foreign import by_hudi_rs
from tests.tables import SCHEMA, copied, new_table


def x_rows(*ids: str, ts: int = 1) -> pa.Table:
    return pa.table({"id": list(ids), "part": ["x"] * len(ids), "ts": [ts] * len(ids)}, SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    """Give a table with two rows."""
    return copied(tmp_path / "t", new_table, x_rows("a", "b"), ordering_field=None)


def opened(table: hudi.Table) -> OpenTable:
    return open_table(table.path, {})


def content(table: hudi.Table) -> list[tuple[str, int]]:
    found = table.to_arrow()
    return sorted(zip(found["id"].to_pylist(), found["ts"].to_pylist(), strict=True))


def x_files(table: hudi.Table) -> set[Path]:
    return set(Path(table.path).glob("x/*.parquet"))


# --- savepoints
# -----------------------------------------------------------------------------------


def test_a_savepoint_holds_its_write(table: hudi.Table) -> None:
    result = table.upsert(x_rows("a", ts=2))
    assert result.instant is not None
    active = opened(table).client.active
    saved = Instant(result.instant.requested_time, Action.SAVEPOINT, State.INFLIGHT)
    active.to_inflight(saved)
    completed = active.complete(saved, TimelineClock(active).next_time(), b"x")
    before = x_files(table)
    with pytest.raises(TableServiceError, match=r"savepoint holds it.*Delete the savepoint"):
        table.rollback(result.instant)
    assert x_files(table) == before
    assert content(table) == [("a", 2), ("b", 1)]

    for state in (State.COMPLETED, State.INFLIGHT):
        assert active.delete(replace(completed, state=state))
    table.rollback(result.instant)
    assert content(table) == [("a", 1), ("b", 1)]


# --- progress
def test_progress_counts_the_files_that_go(table: hudi.Table) -> None:
    many = pa.concat_tables(
        pa.table({"id": [part], "part": [part], "ts": [1]}, SCHEMA) for part in "xyz"
    )
    written = table.upsert(many).instant
    seen: list[tuple[int, int]] = []

    def report(done: int, total: int) -> None:
        seen.append((done, total))

    planned = table.rollback(written, dry_run=True, progress=report)
    assert seen[-1] == (3, 3), "the folders that are looked into"
    assert [len(names) for names in planned.files.values()] == [1, 1, 1]
    seen.clear()
    table.rollback(written, progress=report)
    assert [one for one in seen if one[1] == 3][-3:] == [(1, 3), (2, 3), (3, 3)]
    seen.clear()
    assert content(table) == [("a", 1), ("b", 1)]
    assert seen == [], "what comes later is not counted"


# --- files that a clean removed
# -------------------------------------------------------------------


def without_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commits name the time of the previous base file only, as some writers do."""
    read = ActiveTimeline.read_commit

    def nameless(self: ActiveTimeline, instant: Instant) -> CommitMetadata:
        metadata = read(self, instant)
        stats = {
            path: tuple(replace(stat, prev_base_file=None) for stat in found)
            for path, found in metadata.partition_to_write_stats.items()
        }
        return replace(metadata, partition_to_write_stats=stats)

    monkeypatch.setattr(ActiveTimeline, "read_commit", nameless)


@pytest.mark.parametrize("named", [True, False])
def test_a_write_over_cleaned_files_stays(
    named: bool, table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not named:
        without_names(monkeypatch)
    (first,) = x_files(table)
    result = table.upsert(x_rows("a", ts=2))
    assert result.instant is not None
    whole = first.read_bytes()
    first.unlink()
    word = f"x/{first.name}" if named else first.name.split("_")[0]
    with pytest.raises(HistoryExpiredError, match="would be lost") as refused:
        table.rollback(result.instant)
    assert word in str(refused.value)
    assert content(table) == [("a", 2), ("b", 1)]

    first.write_bytes(whole)
    table.rollback(result.instant)
    assert content(table) == [("a", 1), ("b", 1)]


@pytest.mark.parametrize(
    "replacing",
    [
        lambda table: table.delete_partitions(["x"]),
        lambda table: table.insert_overwrite(x_rows("c")),
    ],
)
def test_replaced_groups_must_be_there(
    replacing: Callable[[hudi.Table], hudi.CommitResult], table: hudi.Table
) -> None:
    (first,) = x_files(table)
    result = replacing(table)
    assert result.instant is not None
    whole, now = first.read_bytes(), content(table)
    first.unlink()
    with pytest.raises(HistoryExpiredError, match=first.name.split("_")[0]):
        table.rollback(result.instant)
    assert content(table) == now

    first.write_bytes(whole)
    table.rollback(result.instant)
    assert content(table) == [("a", 1), ("b", 1)]


# --- rollbacks under way
# --------------------------------------------------------------------------


def half_done(table: hudi.Table, target: Instant, state: State) -> InstantTime:
    """Leave what a rollback leaves that died before it deleted a file."""
    client = opened(table).client
    names = [path.name for path in x_files(table) if target.requested_time in path.name]
    plan = make_plan(client.storage.root, target, {PartitionPath("x"): names})
    requested = Instant(TimelineClock(client.active).next_time(), Action.ROLLBACK, State.REQUESTED)
    client.active.create_requested(requested, encode(plan))
    if state is State.INFLIGHT:
        client.active.to_inflight(requested)
        client.active.delete(target)
    return requested.requested_time


def rollbacks(table: hudi.Table) -> list[tuple[str, State]]:
    found = opened(table).client.timeline()
    return [(one.requested_time, one.state) for one in found if one.action is Action.ROLLBACK]


@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
def test_a_rollback_of_the_same_write_is_finished(state: State, table: hudi.Table) -> None:
    result = table.upsert(x_rows("a", ts=2))
    assert result.instant is not None
    begun = half_done(table, result.instant, state)
    done = table.rollback(result.instant)
    assert (done.requested_time, done.state) == (begun, State.COMPLETED)
    assert rollbacks(table) == [(begun, State.COMPLETED)]
    assert content(table) == [("a", 1), ("b", 1)]
    assert len(x_files(table)) == 1


def test_a_rollback_of_another_write_is_finished_first(table: hudi.Table) -> None:
    middle = table.upsert(x_rows("a", ts=2)).instant
    last = table.upsert(x_rows("a", ts=3)).instant
    assert middle is not None
    assert last is not None
    begun = half_done(table, last, State.REQUESTED)
    done = table.rollback(middle)
    assert done.requested_time > begun
    assert rollbacks(table) == [(begun, State.COMPLETED), (done.requested_time, State.COMPLETED)]
    assert content(table) == [("a", 1), ("b", 1)]


def test_a_rollback_that_is_complete_is_not_made_again(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = table.upsert(x_rows("a", ts=2))
    assert result.instant is not None

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(rollback, "_remove_signs_of_life", killed)
        with pytest.raises(KeyboardInterrupt):
            table.rollback(result.instant)
    ((begun, _),) = rollbacks(table)
    assert opened(table).client.timeline().find(result.instant.requested_time) is not None

    assert table.rollback(result.instant).requested_time == begun
    assert rollbacks(table) == [(begun, State.COMPLETED)]
    assert opened(table).client.timeline().find(result.instant.requested_time) is None
    assert content(table) == [("a", 1), ("b", 1)]


def save(table: hudi.Table, instant: Instant, _: Path) -> None:
    active = opened(table).client.active
    saved = Instant(instant.requested_time, Action.SAVEPOINT, State.INFLIGHT)
    active.complete(active.to_inflight(saved), TimelineClock(active).next_time(), b"x")


def clean(_: hudi.Table, __: Instant, first: Path) -> None:
    first.unlink()


@pytest.mark.parametrize("meanwhile", [save, clean])
@pytest.mark.parametrize("by", ["writer", "operator"])
def test_a_rollback_is_given_up_when_it_may_not_be_any_more(
    by: str, meanwhile: Callable[[hudi.Table, Instant, Path], None], table: hudi.Table
) -> None:
    (first,) = x_files(table)
    written = table.upsert(x_rows("a", ts=2)).instant
    assert written is not None
    half_done(table, written, State.REQUESTED)
    meanwhile(table, written, first)

    if by == "operator":
        with pytest.raises((HistoryExpiredError, TableServiceError), match="cannot be rolled back"):
            table.rollback(written)
    table.upsert(x_rows("b", ts=5))

    assert rollbacks(table) == []
    assert content(table) == [("a", 2), ("b", 5)]


def test_a_rollback_that_has_deleted_goes_on_whatever_came_since(table: hudi.Table) -> None:
    written = table.upsert(x_rows("a", ts=2)).instant
    assert written is not None
    begun = half_done(table, written, State.REQUESTED)
    (newest,) = (path for path in x_files(table) if written.requested_time in path.name)
    newest.unlink()
    save(table, written, newest)

    table.upsert(x_rows("b", ts=5))

    assert rollbacks(table) == [(begun, State.COMPLETED)]
    assert content(table) == [("a", 1), ("b", 5)]


# --- A completed file that lands after its write was rolled back counts for nobody, and goes
LATE_SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64())])
FAST = {"hoodie.fs.fsync": "false", "hoodie.metadata.enable": "false"}
put_if_absent = PosixStorage.put_if_absent
Write = Callable[[hudi.Table], object]


def late_rows(*ids: str, ts: int = 1) -> pa.Table:
    return pa.table({"id": list(ids), "ts": [ts] * len(ids)}, LATE_SCHEMA)


WRITES: list[Write] = [
    lambda table: table.insert_overwrite_table(late_rows("z")),
    lambda table: table.upsert(late_rows("a", ts=9)),
]


@pytest.fixture
def late_table(tmp_path: Path) -> hudi.Table:
    return copied(tmp_path / "t", new_table, late_rows("a", "b"), FAST)


def seen_rows(table: hudi.Table) -> list[tuple[str, int]]:
    found = hudi.Table.open(table.path).to_arrow()
    return sorted(zip(found["id"].to_pylist(), found["ts"].to_pylist(), strict=True))


def foreign_content(table: hudi.Table) -> list[tuple[str, int]]:
    return sorted((row["id"], row["ts"]) for row in by_hudi_rs(table.path))


def is_completion(path: str) -> bool:
    folder, _, name = path.rpartition("/")
    return folder.endswith("timeline") and name.endswith(("commit", ".rollback"))


@contextmanager
def kept_back(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Callable[[], None]]]:
    """Let the store hold back what completes a write, and tell its writer nothing but a failure."""
    late: list[Callable[[], None]] = []

    def slow(self: PosixStorage, path: str, data: bytes) -> None:
        if not is_completion(path):
            return put_if_absent(self, path, data)
        late.append(lambda: put_if_absent(self, path, data))
        raise StorageError("The connection broke", "Try again.")

    with monkeypatch.context() as patched:
        patched.setattr(PosixStorage, "put_if_absent", slow)
        yield late


def completed(table: hudi.Table) -> list[Path]:
    folder = Path(table.path) / ".hoodie/timeline"
    return sorted(path for path in folder.iterdir() if path.name.endswith("commit"))


@pytest.mark.parametrize("write", WRITES)
def test_a_put_that_lands_after_the_rollback_is_undone(
    write: Write, late_table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    with kept_back(monkeypatch) as late, pytest.raises(CommitStateUnknownError):
        write(late_table)
    late_table.insert(late_rows("c"))
    before = completed(late_table)
    (land,) = late
    land()

    assert len(completed(late_table)) == len(before) + 1
    assert seen_rows(late_table) == [("a", 1), ("b", 1), ("c", 1)]
    opened = open_table(late_table.path, FAST)
    assert len(opened.timeline().completed_writes()) == 2

    # the next writer takes it away, so that readers of other projects are not misled either
    late_table.insert(late_rows("d"))
    assert set(before) < set(completed(late_table))
    assert len(completed(late_table)) == len(before) + 1
    assert (
        seen_rows(late_table)
        == foreign_content(late_table)
        == [("a", 1), ("b", 1), ("c", 1), ("d", 1)]
    )


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("mends", ["writer", "operator"])
def test_a_put_that_lands_while_a_rollback_ends_is_undone(
    write: Write, mends: str, late_table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    with kept_back(monkeypatch) as late, pytest.raises(CommitStateUnknownError):
        write(late_table)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(rollback, "_remove_signs_of_life", killed)
        with pytest.raises(KeyboardInterrupt):
            late_table.insert(late_rows("c"))
    (land,) = late
    land()
    assert seen_rows(late_table) == [("a", 1), ("b", 1)]

    if mends == "writer":
        late_table.insert(late_rows("c"))
        expected = [("a", 1), ("b", 1), ("c", 1)]
    else:
        (instant,) = open_table(late_table.path, FAST).client.timeline().pending()
        late_table.rollback(instant)
        expected = [("a", 1), ("b", 1)]
    assert seen_rows(late_table) == foreign_content(late_table) == expected
    instants = open_table(late_table.path, FAST).client.timeline().instants
    assert [one.action for one in instants].count(Action.ROLLBACK) == 1
    assert all(one.is_completed for one in instants)


def test_a_writer_learns_that_it_was_rolled_back_meanwhile(
    late_table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(self: PosixStorage, path: str, data: bytes) -> None:
        if is_completion(path) and not path.endswith(".rollback"):
            opened = open_table(late_table.path, FAST)
            (mine,) = opened.client.timeline().pending()
            rollback.roll_back(TableState.load(opened), mine)
            time.sleep(0.02)
        put_if_absent(self, path, data)

    monkeypatch.setattr(TableLock, "is_exclusive", False)
    options = {"hoodie.client.heartbeat.interval_in_ms": "10"}
    with monkeypatch.context() as patched:
        patched.setattr(PosixStorage, "put_if_absent", slow)
        with pytest.raises(IncompleteCommitError, match="was, rolled back"):
            late_table.upsert(late_rows("a", ts=9), options=options)

    assert seen_rows(late_table) == foreign_content(late_table) == [("a", 1), ("b", 1)]


# --- which rollbacks are read
# -------------------------------------------------------------------


def at(n: int) -> InstantTime:
    return InstantTime(f"2026030112000{n:04d}")


def whole(n: int, done: int, action: Action = Action.COMMIT) -> list[Instant]:
    pending = [Instant(at(n), action, state) for state in (State.REQUESTED, State.INFLIGHT)]
    return [*pending, pending[0].to(State.COMPLETED, at(done))]


@pytest.mark.parametrize(
    ("files", "read", "late"),
    [
        ([*whole(1, 2), *whole(3, 4)], 0, 0),
        # others began since the rollback: every file is there, so it is not about this write
        ([*whole(1, 9), *whole(3, 4, Action.ROLLBACK), *whole(5, 6)], 0, 0),
        # nobody did: its target may have landed
        ([*whole(1, 9), *whole(3, 4, Action.ROLLBACK)], 1, 1),
        ([*whole(1, 9)[2:], *whole(3, 4, Action.ROLLBACK), *whole(5, 6)], 1, 1),
        # a rollback never names what comes after it
        ([*whole(3, 4, Action.ROLLBACK), *whole(5, 6)[2:]], 0, 0),
        # what is not complete did not land, a rollback that is not complete has not the last word
        ([*whole(1, 9)[:2], *whole(3, 4, Action.ROLLBACK)], 0, 0),
        ([*whole(1, 9), *whole(3, 4, Action.ROLLBACK)[:2]], 0, 0),
        # a plan that was tried again after its first attempt was rolled back
        ([*whole(1, 9, Action.COMPACTION), *whole(3, 4, Action.ROLLBACK)], 0, 0),
        ([*whole(1, 9, Action.CLUSTERING), *whole(3, 4, Action.ROLLBACK)], 0, 0),
        ([*whole(1, 9, Action.DELTACOMMIT), *whole(3, 4, Action.ROLLBACK)], 1, 1),
        # one that was tried again would have left its earlier files, too
        ([*whole(1, 9, Action.DELTACOMMIT)[2:], *whole(3, 4, Action.ROLLBACK)], 1, 1),
    ],
)
def test_few_rollbacks_are_read(files: list[Instant], read: int, late: int) -> None:
    asked = []

    def targets(one: Instant) -> tuple[str, ...]:
        asked.append(one)
        return (at(1),)

    assert len(late_writes(files, targets)) == late
    assert len(asked) == read


def test_deltacommits_of_a_metadata_table_may_be_tried_again() -> None:
    files = [*whole(1, 9, Action.DELTACOMMIT), *whole(3, 4, Action.ROLLBACK)]
    once = {Action.COMMIT, Action.REPLACECOMMIT}
    assert not late_writes(files, lambda _: (at(1),), once)
