"""A past state is whole, or is refused by name, whatever has cleaned and archived the table."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import hudi_core as hudi
from hudi_core import errors
from hudi_core.actions.archive import archive
from hudi_core.actions.clean import request_clean
from hudi_core.model.actions import CleanerPlan, InstantInfo, RestorePlan, RollbackPlan
from hudi_core.model.instant import Action, Instant, State
from hudi_core.services.opening import open_table
from hudi_core.timeline.serde import encode
from tests import tables
from tests.calls import disk_requests
from tests.foreign_services import VERSIONS, foreign_archive, foreign_clean, without_own_keys
from tests.formats.foreign_writers import append
from tests.formats.service_tables import TAGGED, agree, bag, batch, by_hudi_rs
from tests.operators import operator
from tests.samples import IS_WHOLE
from tests.tables import new_table

THREE_COMMITS = {
    "hoodie.cleaner.commits.retained": "3",
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "5",
}
ONE_VERSION = {
    "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.cleaner.fileversions.retained": "1",
}

States = dict[str, Counter[str]]


def with_states(path: Path, table_format: str, **options: str) -> tuple[hudi.Table, States]:
    """A table whose every write touches one file group of two; and its states by instant."""
    table = tables.new_table(path, TAGGED, {**THREE_COMMITS, **options}, format=table_format)
    states: States = {}
    for ts in range(4):
        upsert(table, states, ts)
    return table, states


def upsert(table: hudi.Table, states: States, ts: int) -> None:
    """Update one partition; every third write the other one."""
    done = table.upsert(batch(ts, "x" if ts % 3 else "a", f"{'n' if ts % 3 else 'b'}{ts}"))
    states[done.instant.requested_time] = bag(table.to_arrow(), TAGGED.names)


def seen(table: hudi.Table, states: States) -> list[str]:
    """The instants that can be read; each as it was, and the others are refused by name."""
    now, found, gone = hudi.Table.open(table.path), [], []
    for number, (time, rows) in enumerate(states.items()):
        try:
            then = now.to_arrow(as_of=time)
        except errors.HistoryExpiredError:
            gone.append(time)
        else:
            assert bag(then, TAGGED.names) == rows, f"as of write {number}"
            found.append(time)
    assert bag(now.to_arrow(), TAGGED.names) == states[max(states)]
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
        with pytest.raises((errors.HistoryExpiredError, errors.InstantNotFoundError)):
            door()
    assert table.savepoints == ()


def follow(table: hudi.Table, states: States) -> None:
    """Apply the changes since each state to it: they lead to the present, or are refused."""
    now = hudi.Table.open(table.path)
    for time, rows in states.items():
        try:
            changes = now.incremental(time, deletes=True).to_pylist()
        except errors.HistoryExpiredError:
            continue
        held = Counter(rows)
        keys = {(one["city"], one["id"]) for one in changes}
        gone = [row for row in held if any(f"'{id_}'" in row for _, id_ in keys)]
        for row in gone:
            del held[row]
        names = sorted(TAGGED.names)
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
def test_a_clean_that_kept_less_is_known(path: Path, table_format: str, service: str) -> None:
    table, states = with_states(path, table_format)
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
    shutil.rmtree(path / ".hoodie/metadata")
    table.repair(force=True)
    assert seen(table, states) == found


@pytest.mark.parametrize("kept", [1, 3])
def test_cleans_that_are_archived_count(path: Path, kept: int) -> None:
    table, states = with_states(path, "native", **{"hoodie.clean.automatic": "false"})
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


def test_an_earlier_release_told_less(path: Path) -> None:
    table, states = with_states(path, "native")
    table.clean(options=ONE_VERSION)
    without_own_keys(table)
    kept = seen(table, states)
    for ts in range(4, 7):
        upsert(table, states, ts)
        assert seen(table, states) == [one for one in states if one in kept or one > max(kept)]


def test_files_that_a_dead_clean_deleted_are_missed_by_name(path: Path) -> None:
    table, states = with_states(path, "native", **{"hoodie.clean.automatic": "false"})
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
        now = hudi.Table.open(path, options)
        with pytest.raises(errors.HistoryExpiredError, match=oldest):
            now.count(as_of=min(states))
        assert bag(now.to_arrow(as_of=max(states)), TAGGED.names) == states[max(states)]
    require_refused(table, min(states), max(states))  # whoever saves or restores finishes it first


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    return disk_requests(monkeypatch, "read")


def test_the_last_clean_tells_of_a_retained_state(path: Path, reads: list[tuple[str, str]]) -> None:
    table, states = with_states(path, "native")
    for ts in range(4, 14):
        upsert(table, states, ts)
    kept, cleans = seen(table, states), []
    for time in states:
        reads.clear()
        now = hudi.Table.open(table.path)
        if time in kept:
            now.to_arrow(as_of=time)
        else:
            with pytest.raises(errors.HistoryExpiredError):
                now.to_arrow(as_of=time)
        found = [one for _, one in reads if "clean" in one.rpartition("/")[2]]
        cleans.append((len(found), any("history" in one for _, one in reads)))
    assert cleans[-3:] == [(1, False)] * 3
    # beyond them no more are read than came after
    after = sum(one.action is Action.CLEAN for one in table.timeline.instants)
    assert max(number for number, _ in cleans) <= after


def files_of(path: Path) -> set[str]:
    return {str(one.relative_to(path)) for one in path.glob("[or]*/*.parquet")}


@pytest.mark.parametrize("table_format", tables.TABLES)
@pytest.mark.parametrize("lost", ["present", "before"])
def test_a_restore_deletes_nothing_too_early(path: Path, table_format: str, lost: str) -> None:
    table, states = with_states(path, table_format)
    upsert(table, states, 6)  # of rome, as the write before
    to = list(states)[3]
    # of the state to go back to, a file that is in the present one too, or is not
    [gone] = path.glob(f"oslo/*_{list(states)[2]}.parquet" if lost == "present" else f"*/*_{to}.*")
    whole = gone.read_bytes()
    gone.unlink()
    before, instants = files_of(path), table.timeline.instants
    for dry_run in (True, False):
        with pytest.raises(errors.HistoryExpiredError, match=gone.name):
            table.restore(to, dry_run=dry_run)
    assert (files_of(path), hudi.Table.open(path).timeline.instants) == (before, instants)
    gone.write_bytes(whole)
    table.restore(to)
    assert bag(table.to_arrow(), TAGGED.names) == states[to]


def forged_restore(table: hudi.Table, *undone: str, state: State = State.REQUESTED) -> Instant:
    """The plan of a restore that nobody has made."""
    client = open_table(table.path, {}).client
    plan = RestorePlan(tuple(InstantInfo(one, "commit") for one in undone))
    asked = Instant(client.clock.next_time(client.timeline()), Action.RESTORE, State.REQUESTED)
    client.active.create_requested(asked, encode(plan))
    return client.active.to_inflight(asked) if state is State.INFLIGHT else asked


def test_a_restore_that_leaves_a_commit_out_is_not_carried_out(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table, states = with_states(path, "native")
    before = files_of(path)
    asked = forged_restore(table, list(states)[1])
    upsert(table, states, 4)
    assert "is dropped: it leaves" in caplog.text
    assert hudi.Table.open(path).timeline.find(asked.requested_time) is None
    assert before < files_of(path)
    assert seen(table, states)[-4:] == list(states)[-4:]
    table.savepoint()
    forged_restore(table, max(states))
    upsert(table, states, 5)
    assert "which must stay" in caplog.text
    begun = forged_restore(table, list(states)[2], state=State.INFLIGHT)
    before = files_of(path)
    with pytest.raises(errors.CorruptMetadataError, match=begun.requested_time):
        table.upsert(batch(6, "a"))
    assert (files_of(path), bag(table.to_arrow(), TAGGED.names)) == (before, states[max(states)])


@pytest.mark.parametrize(("time", "action"), [("yesterday", "commit"), ("20261128", "commit")])
def test_a_plan_that_names_no_instant_is_named(path: Path, time: str, action: str) -> None:
    table, _ = with_states(path, "native")
    asked = forged_restore(table, time)
    with pytest.raises(
        errors.CorruptMetadataError, match=rf"{asked.requested_time}\.restore.*{time}"
    ):
        table.upsert(batch(4, "a"))
    client = open_table(table.path, {}).client
    client.active.delete_pending(asked)
    plan = RollbackPlan(InstantInfo(time, action), ())
    asked = Instant(client.clock.next_time(client.timeline()), Action.ROLLBACK, State.REQUESTED)
    client.active.create_requested(asked, encode(plan))
    with pytest.raises(
        errors.CorruptMetadataError, match=rf"{asked.requested_time}\.rollback.*{time}"
    ):
        table.upsert(batch(4, "a"))


def test_a_rollback_does_not_go_back_to_an_older_version(path: Path) -> None:
    table, states = with_states(path, "native")
    table.savepoint(min(states))
    replaced = table.insert_overwrite(batch(9, "a")).instant
    # of the file group that was replaced, the savepoint keeps the first version alone
    table.clean(options=ONE_VERSION)
    with pytest.raises(errors.HistoryExpiredError, match=list(states)[3]):
        table.rollback(replaced)
    with pytest.raises(errors.HistoryExpiredError, match=list(states)[3]):
        table.changes(list(states)[3])
    assert bag(batch(9, "a")) <= bag(table.to_arrow(), TAGGED.names)


FEW = {
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
}
BY_HAND = {**FEW, "hoodie.clean.automatic": "false"}
ALONE = {"hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true"}


def replace(table: hudi.Table, by: str) -> None:
    if by == "cluster":
        table.cluster(sort_by="ts", options=ALONE)
    else:
        table.insert_overwrite(batch(2, "c"))


def go_on(table: hudi.Table, writes: int, since: int = 10) -> None:
    """Write to the other partition; what is there must stay as it is."""
    before = Counter(row["id"] for row in table.to_arrow(["id"]).to_pylist())
    before["x"] = 1
    for ts in range(since, since + writes):
        table.upsert(batch(ts, "x"))
        now = hudi.Table.open(table.path).to_arrow(["id"]).to_pylist()
        assert Counter(row["id"] for row in now) == before


def archived(table: hudi.Table) -> set[Action]:
    client = open_table(table.path, {}).client
    return {one.instant.action for one in client.archived.load()}


@pytest.mark.parametrize(
    ("table_format", "by"),
    [
        ("native", "cluster"),
        ("native", "insert_overwrite"),
        ("iceberg,delta", "cluster"),
        *([("iceberg,delta", "insert_overwrite")] if IS_WHOLE else []),
    ],
)
def test_replaced_rows_stay_out_of_the_table(path: Path, table_format: str, by: str) -> None:
    table = new_table(path, batch(1, "a", "b"), format=table_format, options=BY_HAND)
    saved = table.savepoint()
    replace(table, by)
    go_on(table, 2)
    table.clean()  # which leaves what the savepoint keeps
    table.delete_savepoint(saved.instant)
    go_on(table, 6)
    assert bag(by_hudi_rs(path), TAGGED.names) == bag(table.to_arrow(), TAGGED.names)
    assert archived(table) == {Action.COMMIT}
    assert table.clean().files  # of all partitions, as a savepoint is gone
    go_on(table, 3)
    assert Action.REPLACECOMMIT in archived(table)
    agree(path)
    assert hudi.Table.open(path).validate(keys=True).differences == ()


def test_cleans_look_again_where_replaced_files_keep_the_archive(path: Path) -> None:
    table = new_table(path, batch(1, "a", "b"), format="native", options=FEW)
    saved = table.savepoint()
    replace(table, "cluster")
    go_on(table, 2)
    table.delete_savepoint(saved.instant)
    # a clean of another engine, which does not look again, is the last one
    table.upsert(batch(12, "x"), options={"hoodie.clean.automatic": "false"})
    blind_clean(table)
    go_on(table, 5, since=13)
    assert Action.REPLACECOMMIT in archived(table)
    assert len(table.timeline.completed_writes()) <= 4
    assert len(list(path.glob("rome/*.parquet"))) == 1


def blind_clean(table: hudi.Table) -> None:
    """A clean that knows of no savepoint, and looked at one partition only."""
    before = {one: one.read_bytes() for one in Path(table.path).glob("rome/*.parquet")}
    assert foreign_clean(table) is not None
    for one, content in before.items():
        one.write_bytes(content)


def test_a_table_that_is_clustered_for_long_keeps_a_short_timeline(tmp_path: Path) -> None:
    path, chance = tmp_path / "t", random.Random(3)
    table = new_table(
        path,
        batch(1, "a", "b"),
        format="native",
        options={**FEW, "hoodie.cleaner.commits.retained": "2"},
    )
    saved = None
    for ts in range(2, 1000 if IS_WHOLE else 28):
        table.upsert(batch(ts, chance.choice("abcnop")))
        if not ts % 3:
            table.cluster(sort_by="ts", options=ALONE)
        if not ts % 5:
            if saved is not None:
                table.delete_savepoint(saved.instant)
            saved = table.savepoint()
        if not ts % 13:
            keys = [row["id"] for row in hudi.Table.open(path).to_arrow(["id"]).to_pylist()]
            assert len(keys) == len(set(keys))
            # what a savepoint holds back, and as much again
            assert len(table.timeline.completed_writes()) <= 4 + 2 * 7 + 3
    agree(path)
    assert table.validate(keys=True).differences == ()


def test_a_savepoint_whose_commit_replaced_files_that_are_there_stays(path: Path) -> None:
    beyond = {**BY_HAND, "hoodie.archive.beyond.savepoint": "true"}
    table = new_table(path, batch(1, "a", "b"), format="native", options=beyond)
    replaced = table.insert_overwrite(batch(2, "c")).instant
    saved = table.savepoint(replaced)
    go_on(table, 3)
    # another engine archives what came later
    client = open_table(str(path), {}).client
    archive(client, [one for one in table.timeline.completed_writes() if one != replaced][:3])
    table = hudi.Table.open(path, beyond)
    with pytest.raises(errors.TableServiceError, match="files that it replaced"):
        table.delete_savepoint(saved.instant)
    assert [one.instant for one in table.savepoints] == [saved.instant]
    before = bag(table.to_arrow(), TAGGED.names)
    table.clean(options={"hoodie.cleaner.incremental.mode": "false"})
    table.delete_savepoint(saved.instant)
    assert bag(hudi.Table.open(path).to_arrow(), TAGGED.names) == before


@pytest.mark.parametrize("undone", ["rollback", "restore"])
def test_late_files_of_undone_writes_never_count(
    tmp_path: Path, path: Path, undone: str, caplog: pytest.LogCaptureFixture
) -> None:
    table = new_table(
        path,
        batch(1, "a", "b"),
        format="native",
        options={**FEW, "hoodie.metadata.enable": "false"},
    )
    kept = table.timeline.completed_writes()[-1]
    gone = table.upsert(batch(2, "a", "e")).instant
    [file] = path.glob(f"rome/*_{gone.requested_time}.parquet")
    copy = tmp_path / "late"
    shutil.copy(file, copy)
    if undone == "rollback":
        table.rollback(gone)
    else:
        table.restore(kept)
    shutil.copy(copy, file)  # by a task that outlived its write
    go_on(table, 7)
    assert gone.requested_time < table.timeline.completed_writes()[0].requested_time
    assert not file.exists()
    assert f"{file.name} is left" in caplog.text
    agree(path)


def damaged(path: Path, table_format: str, by: str) -> hudi.Table:
    """A table whose replaced rows are back: what replaced them was archived too early."""
    table = new_table(
        path,
        batch(1, "a", "b"),
        format=table_format,
        options={**BY_HAND, "hoodie.archive.automatic": "false"},
    )
    replace(table, by)
    go_on(table, 3)
    expected = bag(table.to_arrow(), TAGGED.names)
    assert any(
        one.action is Action.REPLACECOMMIT for one in foreign_archive(table, with_replacing=True)
    )
    table = hudi.Table.open(path, {**BY_HAND, "hoodie.archive.automatic": "false"})
    assert bag(table.to_arrow(), TAGGED.names) != expected
    return table


DAMAGED = [
    *[("native", "cluster"), ("native", "insert_overwrite"), ("iceberg,delta", "cluster")],
    *([("iceberg,delta", "insert_overwrite")] if IS_WHOLE else []),
]


@pytest.mark.parametrize(("table_format", "by"), DAMAGED)
def test_a_repair_takes_out_what_has_come_back(path: Path, table_format: str, by: str) -> None:
    table = damaged(path, table_format, by)
    found = table.validate().differences
    assert any("is the table's again" in str(one) for one in found)
    before = sorted(path.rglob("*.parquet"))
    planned = table.repair(dry_run=True)
    assert (len(planned.returned), sorted(path.rglob("*.parquet"))) == (1, before)
    done = table.repair()
    assert (done.returned, done.left) == (planned.returned, ())
    table = hudi.Table.open(path, FEW)
    want = ["a", "b", "x"] if by == "cluster" else ["c", "x"]
    assert sorted(table.to_arrow(["id"])["id"].to_pylist()) == want
    agree(path)
    assert table.validate(keys=True).differences == ()
    assert not table.repair().is_needed
    go_on(table, 6, since=20)
    agree(path)


BESIDE = [
    *[("iceberg", "cluster"), ("delta", "insert_overwrite")],
    *([("iceberg", "insert_overwrite"), ("delta", "cluster")] if IS_WHOLE else []),
]


@pytest.mark.parametrize(("table_format", "by"), BESIDE)
@pytest.mark.parametrize("way", ["take_in", "discard"])
def test_a_repair_takes_them_out_alone(path: Path, table_format: str, by: str, way: str) -> None:
    """The format names no file of theirs, which is nobody's deletion; a key is in one of them."""
    damaged(path, table_format, by)
    append(path, table_format, batch(50, "a", "e", "z"))
    table = hudi.Table.open(path)
    (counted,) = table.repair(dry_run=True).foreign
    assert (counted.added_rows, counted.removed) == (3, ())
    with pytest.raises(errors.ForeignCommitError, match=r"3 rows in 2 files added\."):
        table.repair()
    done = table.repair(take_in=True) if way == "take_in" else table.repair(discard=True)
    assert (len(done.returned), done.left) == (1, ())
    want = {"a", "b", "x"} if by == "cluster" else {"c", "x"}
    want |= {"a", "e", "z"} if way == "take_in" else set()
    table = hudi.Table.open(path, FEW)
    assert sorted(table.to_arrow(["id"])["id"].to_pylist()) == sorted(want)
    agree(path)
    assert table.validate(keys=True).differences == ()
    go_on(table, 5, since=60)
    agree(path)


@pytest.mark.parametrize("by", ["cluster", "insert_overwrite"])
@pytest.mark.parametrize("indexed", ["true", "false"])
def test_what_was_written_to_them_since_is_kept(path: Path, by: str, indexed: str) -> None:
    table = damaged(path, "native", by)
    if indexed == "true":
        operator(path).index("record_index")
    # of the rows that are back one is updated, one deleted; a new one may be put beside them
    table.upsert(batch(30, "a", "d"))
    table.delete(batch(31, "b"))
    assert any("written to since" in str(one) for one in table.validate().differences)
    done = table.repair()
    assert (len(done.returned), done.left) == (1, ())
    table = hudi.Table.open(path, FEW)
    want = [("a", 30), ("d", 30), ("x", 12)] + ([("c", 2)] if by != "cluster" else [])
    rows = table.to_arrow(["id", "ts"]).to_pylist()
    assert sorted((row["id"], row["ts"]) for row in rows) == sorted(want)
    assert table.validate(keys=True).differences == ()
    agree(path)
    table.upsert(batch(40, "a", "d"))
    assert table.count() == len(want)
    go_on(table, 5, since=41)


def test_a_savepoint_that_keeps_them_is_kept(path: Path) -> None:
    table = new_table(
        path,
        batch(1, "a", "b"),
        format="native",
        options={**BY_HAND, "hoodie.archive.automatic": "false"},
    )
    saved, first = table.savepoint(), bag(table.to_arrow(), TAGGED.names)
    replace(table, "insert_overwrite")
    go_on(table, 3)
    expected = bag(table.to_arrow(), TAGGED.names)
    client = open_table(str(path), {}).client
    archive(client, table.timeline.completed_writes()[1:-1])
    assert bag(hudi.Table.open(path).to_arrow(), TAGGED.names) != expected
    done = table.repair()
    assert (len(done.returned), done.left) == (1, ())
    assert bag(hudi.Table.open(path).to_arrow(), TAGGED.names) == expected
    assert bag(table.to_arrow(as_of=saved.instant), TAGGED.names) == first


def test_a_clean_finishes_a_dead_repair(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = damaged(path, "native", "cluster")

    def die(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr("hudi_core.txn.clean.delete_cleaned", die)
        with pytest.raises(SystemExit):
            table.repair()
    table.clean()
    assert table.validate(keys=True).differences == ()
    agree(path)
