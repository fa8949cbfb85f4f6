"""Savepoints, restores and rollbacks in every format, judged by its readers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import hudi_core as hudi
from hudi_core import errors
from hudi_core.actions.rollback import begin
from hudi_core.config.table_parsers import NATIVE
from hudi_core.config.write import WriteConfig
from hudi_core.model.actions import InstantInfo, RestorePlan
from hudi_core.model.instant import Action, Instant, State
from hudi_core.services.convert import load_format
from hudi_core.services.opening import open_table
from hudi_core.services.rollback import create_savepoint
from hudi_core.spi.testing import CommitResult
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.serde import decode_restore, encode
from hudi_core.txn.recovery.restore import restore
from hudi_core.txn.recovery.rollback import files_written
from hudi_core.txn.state import TableState
from hudi_core.txn.table_lock import table_lock
from tests.formats.dying_writers import death_in
from tests.formats.foreign_writers import append
from tests.formats.iceberg_tables import Iceberg, summary
from tests.formats.service_tables import (
    READERS,
    TAGGED,
    TWO_STEP,
    agree,
    bag,
    batch,
    instants,
    sound,
    two_writes,
)
from tests.tables import FORMATS, TABLES

KEPT = {"hoodie.cleaner.commits.retained": "1"}
DELETION = (
    "hudi_core.timeline.active.ActiveTimeline.delete",
    "hudi_core.plugin.host.FormatHost.complete_delete_savepoint",
    "hudi_core.timeline.active.ActiveTimeline.delete_pending",
)
"""The steps of the deletion of a savepoint."""
INDEXED = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.compact.max.delta.commits": "2",
}


def filled(path: Path, table_format: str, **options: str) -> hudi.Table:
    """A table whose first two writes a savepoint keeps, and five writes after it."""
    table = two_writes(path, table_format, **options)
    table.savepoint(user="ann", comment="before the load")
    for ts in (3, 4, 5, 6):
        table.upsert(batch(ts, "a", "y", "q"), options=KEPT)
    table.delete_partitions(["oslo"])
    return table


@pytest.mark.parametrize("table_format", TABLES)
def test_a_savepoint_keeps_earlier_times_that_come_later(path: Path, table_format: str) -> None:
    """A clustering that was scheduled before belongs to the state, and to no list of it."""
    table = two_writes(path, table_format, **{"hoodie.parquet.small.file.limit": "0"})
    table.cluster(schedule_only=True)
    saved = table.insert(batch(3, "c")).instant.requested_time
    then = bag(table.to_arrow(as_of=saved), TAGGED.names)
    table.savepoint()
    table.run_clusterings()
    for ts in (4, 5):
        table.upsert(batch(ts, "a", "b", "c", "x", "y"))
    versions = {
        "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
        "hoodie.cleaner.fileversions.retained": "1",
    }
    assert table.clean(options=versions).files
    assert bag(table.to_arrow(as_of=saved), TAGGED.names) == then
    agree(path)
    table.delete_savepoint(saved)
    table.clean(options={**versions, "hoodie.cleaner.incremental.mode": "false"})
    with pytest.raises(errors.HistoryExpiredError):
        table.to_arrow(as_of=saved)


@pytest.mark.parametrize("table_format", TABLES)
def test_a_table_goes_back_to_its_savepoint(path: Path, table_format: str) -> None:
    table = filled(path, table_format)
    (saved,) = table.savepoints
    assert (saved.user, saved.comment, saved.files) == ("ann", "before the load", 2)
    time = saved.instant.requested_time
    then = bag(table.to_arrow(as_of=time), TAGGED.names)
    planned = table.restore(time, dry_run=True)
    assert planned.undone[0].action is Action.REPLACECOMMIT
    assert len(planned.undone) == 5
    assert bag(table.to_arrow(), TAGGED.names) != then
    done = table.restore(time)
    assert (done.undone, done.to) == (planned.undone, planned.to)
    assert done.instant is not None
    assert agree(path) == then
    slices = table.file_slices()
    names = {one.base_file.status.name for one in slices if one.base_file is not None}
    left = {one.name for one in path.rglob("*.parquet") if ".hoodie" not in one.parts}
    before = {one for one in left if one.split("_")[-1].split(".")[0] <= time}
    assert names <= left == before, "files of what was undone are gone"
    body = decode_restore(open_table(str(path), {}).client.active.read(done.instant), "restore")
    assert body.instants_to_rollback == tuple(one.requested_time for one in done.undone)
    assert hudi.Table.open(path).validate().differences == ()
    if "iceberg" in table_format:
        assert list(open_table(str(path), {}).lister().leftovers()) == []
    assert table.restore(time).instant is None, "there is nothing to undo any more"
    table.upsert(batch(9, "a", "n"))
    sound(path)


def test_progress_of_a_restore_counts_the_files_that_go(path: Path, table: hudi.Table) -> None:
    saved = table.timeline.completed_writes()[-1]
    for ts in (3, 4, 5):
        table.upsert(batch(ts, "a", "y"))
    before = set(path.rglob("*.parquet"))
    told: list[tuple[int, int]] = []
    table.restore(saved, progress=lambda *one: told.append(one))
    gone = [one for one in before - set(path.rglob("*.parquet")) if ".hoodie" not in one.parts]
    assert len(gone) == 6
    assert [one for one in told if one[1] == 6] == [(number, 6) for number in range(1, 7)]


def test_a_dead_restore_past_cleaned_states_shows_one(path: Path, table: hudi.Table) -> None:
    saved = table.savepoint().instant.requested_time
    for ts in range(3, 9):
        table.upsert(batch(ts, "a", "y"))
    assert table.clean(options={"hoodie.cleaner.commits.retained": "2"}).files
    states = [bag(table.to_arrow(as_of=one), TAGGED.names) for one in (saved, None)]
    with death_in("hudi_core.txn.recovery.restore._targets"):
        table.restore(saved)
    seen = bag(hudi.Table.open(path).to_arrow(), TAGGED.names)
    assert seen in states
    # hudi-rs does not know which instants the format holds
    for read in READERS[table.format][1:]:
        assert bag(read(path), TAGGED.names) == seen, read.__name__
    hudi.Table.open(path).upsert(batch(20, "zz"))
    assert agree(path) == states[0] + bag(batch(20, "zz"))


@pytest.mark.parametrize("table_format", TABLES)
def test_an_index_that_cannot_go_back_is_rebuilt(path: Path, table_format: str) -> None:
    table = filled(path, table_format, **INDEXED)
    (saved,) = table.savepoints
    table.restore(saved.instant.requested_time)
    agree(path)
    now = hudi.Table.open(path, INDEXED)
    assert "record_index" in now.config.raw["hoodie.table.metadata.partitions"]
    assert now.metadata("record_index").num_rows == now.count()
    assert now.validate(keys=True).differences == ()


@pytest.mark.parametrize("table_format", TABLES)
def test_a_savepoint_comes_and_goes(path: Path, table_format: str) -> None:
    table = filled(path, table_format)
    (saved,) = table.savepoints
    time = saved.instant.requested_time
    assert table.savepoint(time) == saved
    with pytest.raises(errors.TableServiceError, match=time):
        table.restore(table.timeline.completed_writes()[0])
    for _ in range(2):
        table.delete_savepoint(time)
        assert table.savepoints == ()
        table.savepoint(time)
        if "iceberg" in table_format:
            assert len(Iceberg(path).table.metadata.refs) == 2
    table.delete_savepoint(time)
    with pytest.raises(errors.InstantNotFoundError):
        table.delete_savepoint(time)
    # a clean after it looks at every partition, as the savepoint kept files of any
    table.upsert(batch(7, "a"), options=KEPT)
    with pytest.raises(errors.HistoryExpiredError):
        table.restore(time)
    with pytest.raises(errors.HistoryExpiredError):
        table.savepoint(time)
    agree(path)


@pytest.mark.parametrize("place", DELETION, ids=lambda one: one.rpartition(".")[2])
@pytest.mark.parametrize("table_format", dict.fromkeys((*FORMATS, *TABLES)))
def test_a_savepoint_is_there_wholly_or_goes_wholly(
    path: Path, table_format: str, place: str
) -> None:
    """The format forgets it once the timeline has, and has all of a state that is still listed."""
    table = two_writes(path, table_format)
    saved = table.savepoint().instant
    then = agree(path)
    for ts in (3, 4, 5):  # what the format has expired shows savepoints of before as complete
        table.upsert(batch(ts, "a", "y", "q"), options=KEPT)
    now = agree(path)
    with death_in(place):
        table.delete_savepoint(saved)
    assert agree(path) == now
    kept = [one.instant for one in hudi.Table.open(path).savepoints]
    assert kept == ([saved] if place == DELETION[0] else [])
    table = hudi.Table.open(path)
    for ts in (6, 7):
        table.upsert(batch(ts, "a", "b", "x", "y", "q"), options=KEPT)
    sound(path)
    assert [one.instant for one in table.savepoints] == kept
    if kept:
        table.restore(saved)
        assert sound(path) == then
        return
    opened = open_table(str(path), {})
    assert opened.host.holders(opened.client, saved.to(State.INFLIGHT)) == ()
    assert opened.client.timeline().pending().instants == ()
    if "iceberg" in table_format:
        assert len(Iceberg(path).table.metadata.refs) == 1
    with pytest.raises(errors.HistoryExpiredError):
        table.to_arrow(as_of=saved.requested_time)


@pytest.mark.parametrize("discard", [False, True], ids=["taken in", "discarded"])
@pytest.mark.parametrize("table_format", TWO_STEP)
def test_a_deletion_waits_for_rows_of_others(path: Path, table_format: str, discard: bool) -> None:
    table = two_writes(path, table_format)
    saved = table.savepoint().instant
    with death_in(DELETION[1]):
        table.delete_savepoint(saved)
    append(path, table_format, batch(3, "m"))
    table = hudi.Table.open(path)
    with pytest.raises(errors.ForeignCommitError):
        table.upsert(batch(4, "a"))
    table.repair(take_in=not discard, discard=discard)
    table.upsert(batch(5, "a"))
    assert ("m" in table.to_arrow().column("id").to_pylist()) != discard
    opened = open_table(str(path), {})
    assert opened.host.holders(opened.client, saved.to(State.INFLIGHT)) == ()
    assert opened.client.timeline().pending().instants == ()
    sound(path)


def test_a_rollback_finishes_a_deletion(path: Path, table: hudi.Table) -> None:
    before = agree(path)
    done = table.upsert(batch(3, "a", "n")).instant
    saved = table.savepoint().instant
    with death_in(DELETION[1]):
        table.delete_savepoint(saved)
    table = hudi.Table.open(path)
    table.rollback(done)
    assert sound(path) == before
    assert table.savepoints == ()


def test_what_cannot_be_saved_or_restored_is_refused(native: hudi.Table) -> None:
    for call in (native.savepoint, native.restore):
        with pytest.raises(errors.InstantNotFoundError):
            call("20200101000000000")
    begun = Instant(
        native.timeline.completed_writes()[0].requested_time, Action.SAVEPOINT, State.INFLIGHT
    )
    client = open_table(native.path, {}).client
    client.active.to_inflight(begun)
    native.upsert(batch(3, "a"))
    assert native.timeline.find(begun.requested_time, Action.SAVEPOINT) is None


@pytest.mark.parametrize("table_format", TABLES)
def test_a_restore_that_died_is_finished_by_the_next_write(path: Path, table_format: str) -> None:
    table = filled(path, table_format)
    (saved,) = table.savepoints
    planned = table.restore(saved.instant, dry_run=True)
    client = open_table(table.path, {}).client
    empty = Instant(client.clock.next_time(client.timeline()), Action.RESTORE, State.REQUESTED)
    client.active.create_requested(empty, b"")
    infos = tuple(InstantInfo(one.requested_time, one.action.value) for one in planned.undone)
    begun = Instant(client.clock.next_time(client.timeline()), Action.RESTORE, State.REQUESTED)
    client.active.create_requested(begun, encode(RestorePlan(infos)))
    table.upsert(batch(8, "a"))
    then = {one.requested_time for one in table.timeline.completed_writes()}
    assert not then & {one.requested_time for one in planned.undone}
    assert table.timeline.find(empty.requested_time) is None
    found = table.timeline.find(begun.requested_time)
    assert found is not None
    assert found.is_completed
    sound(path)


def test_a_state_that_the_format_has_forgotten_is_no_savepoint(path: Path) -> None:
    table = two_writes(path, "iceberg")
    first, *_ = table.timeline.completed_writes()
    iceberg = open_table(table.path, {})
    iceberg.host.archive_instants(iceberg.client, [first])
    before = table.timeline.instants
    with pytest.raises(errors.TableServiceError, match="does not keep the state"):
        table.savepoint(first)
    assert table.timeline.instants == before
    table.savepoint()
    table.upsert(batch(3, "a"))
    agree(path)


def test_an_archive_after_a_rollback_forgets_only_what_it_archives(path: Path) -> None:
    options = {
        "hoodie.cleaner.commits.retained": "4",
        "hoodie.keep.min.commits": "6",
        "hoodie.keep.max.commits": "7",
        "hoodie.clean.automatic": "false",
        "hoodie.archive.automatic": "false",
    }
    table = two_writes(path, "iceberg")
    last = ""
    for ts in range(3, 12):
        last = table.upsert(batch(ts, "a")).instant.requested_time
    table.clean(options=options)
    table.rollback(last)
    table.upsert(batch(12, "a"))
    assert table.archive(options=options)
    *_, saved, _ = table.timeline.completed_writes()
    kept = {summary(one).get("hudi.instant") for one in Iceberg(path).lineage}
    retained = table.timeline.completed_writes()[-4:]
    assert kept >= {one.requested_time for one in retained}
    then = bag(table.to_arrow(as_of=saved), TAGGED.names)
    table.savepoint(saved)
    table.restore(saved)
    assert agree(path) == then


def without_past(path: Path) -> hudi.Table:
    """An Iceberg table that has forgotten all but its present state."""
    table = two_writes(path, "iceberg")
    table.upsert(batch(3, "a"))
    iceberg = open_table(table.path, {})
    iceberg.host.archive_instants(iceberg.client, table.timeline.completed_writes()[:-1])
    return table


def test_what_the_format_refuses_leaves_no_plan(path: Path) -> None:
    table = without_past(path)
    before = instants(path)
    _, second, last = table.timeline.completed_writes()
    for dry_run in (True, False):
        with pytest.raises(errors.TableServiceError, match=r"does not keep|no state to go back to"):
            table.restore(second, dry_run=dry_run)
        assert instants(path) == before
    with pytest.raises(
        errors.TableServiceError, match=r"the state before it|no state to go back to"
    ):
        table.rollback(last)
    assert instants(path) == before
    table.upsert(batch(4, "a"))
    agree(path)


def test_a_dead_writer_s_refused_plan_goes(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = without_past(path)
    asked = requested_restore(table)
    table.upsert(batch(4, "a"))
    assert hudi.Table.open(path).timeline.find(asked.requested_time) is None
    assert f"restore {asked.requested_time}" in caplog.text
    assert bag(batch(4, "a")) <= agree(path), "the write after it is there"
    assert hudi.Table.open(path).validate().differences == ()


def requested_restore(table: hudi.Table) -> Instant:
    """The plan of a writer that died before it did anything: to take the last write out."""
    last = table.timeline.completed_writes()[-1]
    client = open_table(table.path, {}).client
    asked = Instant(client.clock.next_time(client.timeline()), Action.RESTORE, State.REQUESTED)
    plan = RestorePlan((InstantInfo(last.requested_time, last.action.value),))
    client.active.create_requested(asked, encode(plan))
    return asked


@pytest.mark.parametrize("begun", ["restore", "rollback", "restore, done"])
def test_a_refused_plan_of_another_writer_goes_with_a_forced_repair(path: Path, begun: str) -> None:
    table = without_past(path)
    _, second, last = table.timeline.completed_writes()
    then = bag(table.to_arrow(as_of=second), TAGGED.names)
    opened = open_table(table.path, {})
    client, time = opened.client, opened.client.clock.next_time(opened.client.timeline())
    plan = RestorePlan((InstantInfo(last.requested_time, last.action.value),))
    if begun == "rollback":
        begin(client, last, files_written(opened, last), time)
    elif begun == "restore":
        client.active.to_inflight(requested_restore(table))
    else:  # by an engine that knows nothing of the format
        restore(TableState.load(OpenTable(client.as_stored(), load_format(NATIVE))), plan)
    with pytest.raises(errors.HudiError, match=rf"{begun[:7]}.*table repair .* --force"):
        table.upsert(batch(4, "a"))
    table = hudi.Table.open(path)
    assert table.repair(force=True).left == ()
    assert agree(path) == then
    table.upsert(batch(5, "a"))
    sound(path)


@pytest.mark.parametrize("table_format", ["iceberg", "delta"])
def test_a_converted_table_goes_back_to_its_conversion(path: Path, table_format: str) -> None:
    two_writes(path).convert(table_format)
    table = hudi.Table.open(path)
    first, present = table.timeline.completed_writes()
    then = agree(path)
    with pytest.raises(errors.TableServiceError):
        table.restore(first)
    before = table.timeline.instants
    with pytest.raises(errors.TableServiceError, match="does not keep the state"):
        table.savepoint(first)
    assert table.timeline.instants == before
    assert agree(path) == then
    table.savepoint(present)
    table.upsert(batch(3, "a"))
    with pytest.raises(errors.TableServiceError, match="later commits"):
        table.restore(first)
    table.restore(present)
    assert agree(path) == then
    table.delete_savepoint(present.requested_time)
    table.upsert(batch(4, "a"))
    sound(path)


@pytest.mark.parametrize("table_format", ["iceberg", "delta", "iceberg,delta", "sql"])
def test_a_dry_run_is_refused_as_the_restore_is(path: Path, table_format: str) -> None:
    two_writes(path).convert(table_format)
    table = hudi.Table.open(path)
    first, present = table.timeline.completed_writes()
    then = bag(table.to_arrow())

    def files() -> dict[Path, bytes]:
        return {one: one.read_bytes() for one in path.rglob("*") if one.is_file()}

    before, refusals = files(), []
    for dry_run in (True, False):
        with pytest.raises(errors.TableServiceError) as refused:
            table.restore(first, dry_run=dry_run)
        refusals.append(str(refused.value))
        if dry_run:
            assert files() == before
    assert refusals[0] == refusals[1]
    table.upsert(batch(3, "a"))
    before = files()
    planned = table.restore(present, dry_run=True)
    assert files() == before
    assert table.restore(present).undone == planned.undone
    assert bag(hudi.Table.open(path).to_arrow()) == then


def test_a_refused_savepoint_of_another_engine_goes_with_a_forced_repair(path: Path) -> None:
    table = without_past(path)
    first, *_ = table.timeline.completed_writes()
    then = agree(path)
    blind, config = open_table(table.path, {}), WriteConfig.from_options({})
    blind = OpenTable(blind.client.as_stored(), load_format(NATIVE))
    create_savepoint(blind, table_lock(blind, config), config, of=first.requested_time)
    with pytest.raises(errors.CommitStateUnknownError, match=r"savepoint.*table repair .* --force"):
        table.upsert(batch(4, "a"))
    table = hudi.Table.open(path)
    table.repair(force=True)
    assert agree(path) == then
    table.upsert(batch(5, "a"))
    assert len(table.savepoints) == 1
    table.delete_savepoint(first.requested_time)
    table.upsert(batch(6, "a"))
    sound(path)


# every commit of the table is compacted into base files of the metadata table at once
COMPACTED = {"hoodie.metadata.compact.max.delta.commits": "1"}
REPLACING: dict[str, Callable[[hudi.Table], CommitResult]] = {
    "insert_overwrite_table": lambda table: table.insert_overwrite_table(batch(9, "a")),
    "delete_partitions": lambda table: table.delete_partitions([{"city": "rome"}]),
    "insert_overwrite": lambda table: table.insert_overwrite(batch(9, "a")),
}


def filtered(path: Path) -> list[str]:
    """Keys by a filter on each city, which leaves out partitions by their ranges."""
    table = hudi.Table.open(path)
    cities = {row["city"] for row in table.to_arrow().to_pylist()}
    found = [table.to_arrow(filter=[("city", "=", city), ("ts", ">=", 0)]) for city in cities]
    return sorted(key for rows in found for key in rows["id"].to_pylist())


@pytest.mark.parametrize("undo", ["rollback", "restore"])
@pytest.mark.parametrize("name", REPLACING)
@pytest.mark.parametrize("table_format", TABLES)
def test_partitions_come_back_with_ranges(
    path: Path, table_format: str, name: str, undo: str
) -> None:
    table = two_writes(path, table_format, **COMPACTED)
    before, keys = bag(table.to_arrow()), filtered(path)
    first = table.timeline.completed_writes()[-1].requested_time
    table.savepoint(first)
    instant = REPLACING[name](table).instant
    if undo == "rollback":
        table.rollback(instant.requested_time)
    else:
        table.restore(first)
    assert bag(hudi.Table.open(path).to_arrow()) == before
    assert filtered(path) == keys
    sound(path)


def test_a_completion_too_late_goes_with_the_next_write(path: Path, table: hudi.Table) -> None:
    table.rollback(table.timeline.completed_writes()[-1].requested_time)
    (done,) = [
        one for one in hudi.Table.open(path).timeline.instants if one.action is Action.ROLLBACK
    ]
    timeline = path / ".hoodie/timeline"
    counted = timeline / f"{done.requested_time}_{done.completion_time}.rollback"
    late = timeline / f"{done.requested_time}_{int(done.completion_time or 0) - 1}.rollback"
    late.write_bytes(counted.read_bytes())
    before = agree(path)
    found = [
        one for one in hudi.Table.open(path).timeline.instants if one.action is Action.ROLLBACK
    ]
    assert found == [done]
    hudi.Table.open(path).upsert(batch(3, "c"))
    assert not late.exists()
    assert counted.exists()
    assert sum(agree(path).values()) == sum(before.values()) + 1
    assert hudi.Table.open(path).validate().is_valid
