"""A rollback that an operator asks for: what it finishes first, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.actions.rollback import make_plan
from hudi_core.errors import HistoryExpiredError, TableServiceError
from hudi_core.model.commit import CommitMetadata
from hudi_core.model.files import PartitionPath
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.services.opening import open_table
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.clock import TimelineClock
from hudi_core.timeline.serde import encode
from hudi_core.txn import rollback
from tests.tables import new_table

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64())])


def rows(*ids: str, ts: int = 1) -> pa.Table:
    return pa.table({"id": list(ids), "part": ["x"] * len(ids), "ts": [ts] * len(ids)}, SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    """Give a table with two rows."""
    return new_table(tmp_path / "t", rows("a", "b"), ordering_field=None)


def opened(table: hudi.Table) -> OpenTable:
    return open_table(table.path, {})


def content(table: hudi.Table) -> list[tuple[str, int]]:
    found = table.to_arrow()
    return sorted(zip(found["id"].to_pylist(), found["ts"].to_pylist(), strict=True))


def base_files(table: hudi.Table) -> set[Path]:
    return set(Path(table.path).glob("x/*.parquet"))


# --- savepoints
# -----------------------------------------------------------------------------------


def test_a_savepoint_holds_its_write(table: hudi.Table) -> None:
    result = table.upsert(rows("a", ts=2))
    assert result.instant is not None
    active = opened(table).client.active
    saved = Instant(result.instant.requested_time, Action.SAVEPOINT, State.INFLIGHT)
    active.to_inflight(saved)
    completed = active.complete(saved, TimelineClock(active).next_time(), b"x")
    before = base_files(table)
    with pytest.raises(TableServiceError, match=r"savepoint holds it.*Delete the savepoint"):
        table.rollback(result.instant)
    assert base_files(table) == before
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
    (first,) = base_files(table)
    result = table.upsert(rows("a", ts=2))
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
    [lambda table: table.delete_partitions(["x"]), lambda table: table.insert_overwrite(rows("c"))],
)
def test_replaced_groups_must_be_there(
    replacing: Callable[[hudi.Table], hudi.CommitResult], table: hudi.Table
) -> None:
    (first,) = base_files(table)
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
    names = [path.name for path in base_files(table) if target.requested_time in path.name]
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
    result = table.upsert(rows("a", ts=2))
    assert result.instant is not None
    begun = half_done(table, result.instant, state)
    done = table.rollback(result.instant)
    assert (done.requested_time, done.state) == (begun, State.COMPLETED)
    assert rollbacks(table) == [(begun, State.COMPLETED)]
    assert content(table) == [("a", 1), ("b", 1)]
    assert len(base_files(table)) == 1


def test_a_rollback_of_another_write_is_finished_first(table: hudi.Table) -> None:
    middle = table.upsert(rows("a", ts=2)).instant
    last = table.upsert(rows("a", ts=3)).instant
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
    result = table.upsert(rows("a", ts=2))
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
    (first,) = base_files(table)
    written = table.upsert(rows("a", ts=2)).instant
    assert written is not None
    half_done(table, written, State.REQUESTED)
    meanwhile(table, written, first)

    if by == "operator":
        with pytest.raises((HistoryExpiredError, TableServiceError), match="cannot be rolled back"):
            table.rollback(written)
    table.upsert(rows("b", ts=5))

    assert rollbacks(table) == []
    assert content(table) == [("a", 2), ("b", 5)]


def test_a_rollback_that_has_deleted_goes_on_whatever_came_since(table: hudi.Table) -> None:
    written = table.upsert(rows("a", ts=2)).instant
    assert written is not None
    begun = half_done(table, written, State.REQUESTED)
    (newest,) = (path for path in base_files(table) if written.requested_time in path.name)
    newest.unlink()
    save(table, written, newest)

    table.upsert(rows("b", ts=5))

    assert rollbacks(table) == [(begun, State.COMPLETED)]
    assert content(table) == [("a", 1), ("b", 5)]
