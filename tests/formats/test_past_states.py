"""A past state is whole, or is refused by name, whatever has cleaned and archived the table."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import hudi_core as hudi
from hudi_core.actions.clean import request_clean
from hudi_core.errors import CorruptMetadataError, HistoryExpiredError, InstantNotFoundError
from hudi_core.model.actions import CleanerPlan, InstantInfo, RestorePlan, RollbackPlan
from hudi_core.model.instant import Action, Instant, State
from hudi_core.services.opening import open_table
from hudi_core.storage.posix import PosixStorage
from hudi_core.timeline.serde import encode
from tests.foreign_services import VERSIONS, foreign_archive, foreign_clean, without_own_keys
from tests.formats.service_tables import SCHEMA, bag, batch
from tests.samples import IS_WHOLE

FEW = {
    "hoodie.fs.fsync": "false",
    "hoodie.cleaner.commits.retained": "3",
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "5",
}
ONE_VERSION = {
    "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.cleaner.fileversions.retained": "1",
}

States = dict[str, Counter[str]]


def new_table(path: Path, table_format: str, **options: str) -> tuple[hudi.Table, States]:
    """A table whose every write touches one file group of two; and its states by instant."""
    table = hudi.Table.create(
        str(path),
        SCHEMA,
        record_key="id",
        partition_by="city",
        ordering_field="ts",
        format=table_format,
        options={**FEW, **options},
    )
    states: States = {}
    for ts in range(4):
        upsert(table, states, ts)
    return table, states


def upsert(table: hudi.Table, states: States, ts: int) -> None:
    """Update one partition; every third write the other one."""
    done = table.upsert(batch(ts, "x" if ts % 3 else "a", f"{'n' if ts % 3 else 'b'}{ts}"))
    states[done.instant.requested_time] = bag(table.to_arrow(), SCHEMA.names)


def seen(table: hudi.Table, states: States) -> list[str]:
    """The instants that can be read; each as it was, and the others are refused by name."""
    now, found, gone = hudi.Table.open(table.path), [], []
    for number, (time, rows) in enumerate(states.items()):
        try:
            then = now.to_arrow(as_of=time)
        except HistoryExpiredError:
            gone.append(time)
        else:
            assert bag(then, SCHEMA.names) == rows, f"as of write {number}"
            found.append(time)
    assert bag(now.to_arrow(), SCHEMA.names) == states[max(states)]
    for time in gone[-1:]:
        require_refused(now, time, max(states))
    return found


def require_refused(table: hudi.Table, time: str, last: str) -> None:
    """No door leads to a state that is gone, and none changes the table."""
    doors: list[Callable[[], Any]] = [
        lambda: table.count(as_of=time),
        lambda: table.diff(time),
        lambda: table.diff(last, time),
        lambda: table.scan(as_of=time).to_table(),
        lambda: table.savepoint(time),
        lambda: table.restore(time, dry_run=True),
        lambda: table.restore(time),
    ]
    for door in doors:
        with pytest.raises((HistoryExpiredError, InstantNotFoundError)):
            door()
    assert table.savepoints == ()


def follow(table: hudi.Table, states: States) -> None:
    """Apply the changes since each state to it: they lead to the present, or are refused."""
    now = hudi.Table.open(table.path)
    for time, rows in states.items():
        try:
            changes = now.incremental(time, deletes=True).to_pylist()
        except HistoryExpiredError:
            continue
        held = Counter(rows)
        keys = {(one["city"], one["id"]) for one in changes}
        gone = [row for row in held if any(f"'{id_}'" in row for _, id_ in keys)]
        for row in gone:
            del held[row]
        names = sorted(SCHEMA.names)
        kept = [one for one in changes if one["_change_type"] != "delete"]
        held += Counter(repr([one[name] for name in names]) for one in kept)
        assert held == states[max(states)]


SERVICES: Mapping[str, Callable[[hudi.Table], Any]] = {
    "purge": lambda table: table.purge(),
    "one version": lambda table: table.clean(options=ONE_VERSION),
    "one commit": lambda table: table.clean(options={"hoodie.cleaner.commits.retained": "1"}),
    "foreign version": lambda table: foreign_clean(table, VERSIONS),
    "foreign commit": foreign_clean,
}


@pytest.mark.parametrize(
    ("table_format", "service"),
    [
        *(("native", one) for one in SERVICES),
        *(("iceberg,delta", one) for one in (SERVICES if IS_WHOLE else ("one version",))),
    ],
)
def test_a_clean_that_keeps_less_is_not_forgotten(
    tmp_path: Path, table_format: str, service: str
) -> None:
    table, states = new_table(tmp_path / "t", table_format)
    assert seen(table, states) == list(states)
    SERVICES[service](table)
    kept = set(seen(table, states))
    assert max(states) in kept
    assert not kept >= states.keys()
    before = set(states)
    for ts in range(4, 10):  # each cleans, with the table's own limits
        upsert(table, states, ts)
        if ts in (4, 9):
            found = seen(table, states)
            assert set(found) & before <= kept
            assert set(found) >= set(list(states)[-min(3, ts - 3) :])
    follow(table, states)
    assert table.timeline.completed_writes()[0].requested_time > min(states)
    shutil.rmtree(tmp_path / "t/.hoodie/metadata")
    table.repair(force=True)
    assert seen(table, states) == found


@pytest.mark.parametrize("kept", [1, 3])
def test_cleans_that_are_archived_count(tmp_path: Path, kept: int) -> None:
    table, states = new_table(tmp_path / "t", "native", **{"hoodie.clean.automatic": "false"})
    for ts in range(4, 8):
        upsert(table, states, ts)
    foreign_clean(table)
    upsert(table, states, 8)
    upsert(table, states, 9)
    archived = foreign_archive(table, kept)
    assert any(one.action is Action.CLEAN for one in archived) == (kept == 1)
    found = seen(table, states)
    assert found == list(states)[-len(found) :]
    assert 3 <= len(found) < 6
    follow(table, states)


def test_an_earlier_release_told_less(tmp_path: Path) -> None:
    table, states = new_table(tmp_path / "t", "native")
    table.clean(options=ONE_VERSION)
    without_own_keys(table)
    kept = seen(table, states)
    for ts in range(4, 7):
        upsert(table, states, ts)
        assert seen(table, states) == [one for one in states if one in kept or one > max(kept)]


def test_files_that_a_dead_clean_deleted_are_missed_by_name(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table, states = new_table(path, "native", **{"hoodie.clean.automatic": "false"})
    client = open_table(str(path), {}).client
    going = table.clean(options=ONE_VERSION, dry_run=True).files
    named = {
        city: tuple(one.partition("/")[2] for one in going if one.startswith(city))
        for city in ("oslo", "rome")
    }
    plan = CleanerPlan(None, "", "KEEP_LATEST_FILE_VERSIONS", named)
    request_clean(client, client.clock.next_time(client.timeline()), plan)
    assert seen(table, states) == list(states)  # it has deleted nothing yet
    oldest = min(going, key=lambda one: one.rpartition("_")[2])
    (path / oldest).unlink()
    for options in ({}, {"hoodie.metadata.enable": "false"}):
        now = hudi.Table.open(str(path), options)
        with pytest.raises(HistoryExpiredError, match=oldest):
            now.count(as_of=min(states))
        assert bag(now.to_arrow(as_of=max(states)), SCHEMA.names) == states[max(states)]
    require_refused(table, min(states), max(states))  # whoever saves or restores finishes it first


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths of the files that are read through a storage."""
    read, paths = PosixStorage.read, list[str]()

    def noting(storage: PosixStorage, path: str, max_bytes: int | None = None) -> bytes:
        paths.append(path)
        return read(storage, path, max_bytes)

    monkeypatch.setattr(PosixStorage, "read", noting)
    return paths


def test_the_last_clean_tells_of_a_retained_state(tmp_path: Path, reads: list[str]) -> None:
    table, states = new_table(tmp_path / "t", "native")
    for ts in range(4, 14):
        upsert(table, states, ts)
    kept, cleans = seen(table, states), []
    for time in states:
        reads.clear()
        now = hudi.Table.open(table.path)
        if time in kept:
            now.to_arrow(as_of=time)
        else:
            with pytest.raises(HistoryExpiredError):
                now.to_arrow(as_of=time)
        found = [one for one in reads if "clean" in one.rpartition("/")[2]]
        cleans.append((len(found), any("history" in one for one in reads)))
    assert cleans[-3:] == [(1, False)] * 3
    # beyond them no more are read than came after
    after = sum(one.action is Action.CLEAN for one in table.timeline.instants)
    assert max(number for number, _ in cleans) <= after


def files_of(path: Path) -> set[str]:
    return {str(one.relative_to(path)) for one in path.glob("[or]*/*.parquet")}


@pytest.mark.parametrize("table_format", ["native", "iceberg,delta"])
@pytest.mark.parametrize("lost", ["present", "before"])
def test_a_restore_deletes_nothing_before_all_files_are_found(
    tmp_path: Path, table_format: str, lost: str
) -> None:
    path = tmp_path / "t"
    table, states = new_table(path, table_format)
    upsert(table, states, 6)  # of rome, as the write before
    to = list(states)[3]
    # of the state to go back to, a file that is in the present one too, or is not
    [gone] = path.glob(f"oslo/*_{list(states)[2]}.parquet" if lost == "present" else f"*/*_{to}.*")
    whole = gone.read_bytes()
    gone.unlink()
    before, instants = files_of(path), table.timeline.instants
    for dry_run in (True, False):
        with pytest.raises(HistoryExpiredError, match=gone.name):
            table.restore(to, dry_run=dry_run)
    assert (files_of(path), hudi.Table.open(str(path)).timeline.instants) == (before, instants)
    gone.write_bytes(whole)
    table.restore(to)
    assert bag(table.to_arrow(), SCHEMA.names) == states[to]


def forged_restore(table: hudi.Table, *undone: str, state: State = State.REQUESTED) -> Instant:
    """The plan of a restore that nobody has made."""
    client = open_table(table.path, {}).client
    plan = RestorePlan(tuple(InstantInfo(one, "commit") for one in undone))
    asked = Instant(client.clock.next_time(client.timeline()), Action.RESTORE, State.REQUESTED)
    client.active.create_requested(asked, encode(plan))
    return client.active.to_inflight(asked) if state is State.INFLIGHT else asked


def test_a_restore_that_leaves_a_commit_out_is_not_carried_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "t"
    table, states = new_table(path, "native")
    before = files_of(path)
    asked = forged_restore(table, list(states)[1])
    upsert(table, states, 4)
    assert "is dropped: it leaves" in caplog.text
    assert hudi.Table.open(str(path)).timeline.find(asked.requested_time) is None
    assert before < files_of(path)
    assert seen(table, states)[-4:] == list(states)[-4:]

    table.savepoint()
    forged_restore(table, max(states))
    upsert(table, states, 5)
    assert "which must stay" in caplog.text
    begun = forged_restore(table, list(states)[2], state=State.INFLIGHT)
    before = files_of(path)
    with pytest.raises(CorruptMetadataError, match=begun.requested_time):
        table.upsert(batch(6, "a"))
    assert (files_of(path), bag(table.to_arrow(), SCHEMA.names)) == (before, states[max(states)])


@pytest.mark.parametrize(("time", "action"), [("yesterday", "commit"), ("20261128", "commit")])
def test_a_plan_that_names_no_instant_is_named(tmp_path: Path, time: str, action: str) -> None:
    table, _ = new_table(tmp_path / "t", "native")
    asked = forged_restore(table, time)
    with pytest.raises(CorruptMetadataError, match=rf"{asked.requested_time}\.restore.*{time}"):
        table.upsert(batch(4, "a"))
    client = open_table(table.path, {}).client
    client.active.delete_pending(asked)
    plan = RollbackPlan(InstantInfo(time, action), ())
    asked = Instant(client.clock.next_time(client.timeline()), Action.ROLLBACK, State.REQUESTED)
    client.active.create_requested(asked, encode(plan))
    with pytest.raises(CorruptMetadataError, match=rf"{asked.requested_time}\.rollback.*{time}"):
        table.upsert(batch(4, "a"))


def test_a_rollback_does_not_go_back_to_an_older_version(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table, states = new_table(path, "native")
    table.savepoint(min(states))
    replaced = table.insert_overwrite(batch(9, "a")).instant
    # of the file group that was replaced, the savepoint keeps the first version alone
    table.clean(options=ONE_VERSION)
    with pytest.raises(HistoryExpiredError, match=list(states)[3]):
        table.rollback(replaced)
    with pytest.raises(HistoryExpiredError, match=list(states)[3]):
        table.changes(list(states)[3])
    assert bag(batch(9, "a")) <= bag(table.to_arrow(), SCHEMA.names)
