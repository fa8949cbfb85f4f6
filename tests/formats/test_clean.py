"""Clean and archive of tables in every format, and plans on the timeline, whoever made them."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import hudi_core as hudi
from hudi_core import errors
from hudi_core.actions.clean import request_clean
from hudi_core.actions.rollback import make_plan
from hudi_core.config.kinds import CleanPolicy
from hudi_core.config.write import WriteConfig
from hudi_core.model.actions import ActionInstant, CleanerPlan, CleanFileInfo
from hudi_core.model.commit import WriteOperation
from hudi_core.model.files import BaseFileName, PartitionPath
from hudi_core.model.instant import Action, Instant, State
from hudi_core.services.convert import load_format
from hudi_core.services.opening import open_table
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.serde import decode_clean, encode
from hudi_core.txn.begin import begin
from hudi_core.txn.recovery import rollback
from hudi_core.txn.state import TableState
from hudi_core.txn.table_lock import table_lock
from tests.crash.readers import foreign_reader
from tests.crash.rows import as_table
from tests.formats.service_tables import TAGGED, agree, bag, batch, sound, two_writes
from tests.tables import SCHEMA, TABLES, new_table

KEPT = {"hoodie.cleaner.commits.retained": "2"}
SMALL = {
    **KEPT,
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "6",
    "hoodie.metadata.compact.max.delta.commits": "3",
}
OFF = {"hoodie.table.services.enabled": "false"}


def names_of_files(path: Path) -> list[str]:
    found = (one for one in path.rglob("*.parquet") if ".hoodie" not in one.parts)
    return sorted(one.name for one in found if BaseFileName.parse(one.name))


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("table_format", ["iceberg", "delta"])
def test_states_of_before_a_plan_that_waited_was_run_stay_readable(
    tmp_path: Path, table_format: str, table_type: str
) -> None:
    """What it has replaced is theirs, though it was requested before them."""
    path = tmp_path / "t"
    options = {
        "hoodie.cleaner.commits.retained": "3",
        "hoodie.parquet.small.file.limit": "0",
        **OFF,
    }
    table = new_table(path, SCHEMA, options, format=table_format, table_type=table_type)

    def write(name: str, *keys: str) -> str:
        rows = {key: ("x", len(table.timeline.instants)) for key in keys}
        return str(getattr(table, name)(as_table(rows)).instant.requested_time)

    write("insert", "a", "b")
    write("insert", "c")
    write("upsert", "a")
    is_split = table_type == "MERGE_ON_READ"
    planned = table.compact(schedule_only=True) if is_split else table.cluster(schedule_only=True)
    assert planned.instant is not None
    times = [write("insert", key) for key in "def"]
    assert table.run_compactions() if is_split else table.run_clusterings()

    def counts() -> dict[str, int]:
        reader = foreign_reader(path, table_format)
        assert reader is not None
        return {one.requested: len(reader.rows_at(one.version)) for one in reader.states()[-4:]}

    table.clean()
    assert {time: counts()[time] for time in times} == dict(zip(times, (4, 5, 6), strict=True))
    later = [write("insert", key) for key in "ghi"]
    assert table.clean().files
    assert {time: counts()[time] for time in later} == dict(zip(later, (7, 8, 9), strict=True))
    assert not hudi.Table.open(path).validate().differences


def cleans(table: hudi.Table) -> list[hudi.Instant]:
    return [one for one in table.timeline.instants if one.action is Action.CLEAN]


def test_a_table_that_is_written_for_long_stays_small(path: Path, table: hudi.Table) -> None:
    seen: dict[str, object] = {}
    for ts in range(3, 17):
        done = table.upsert(batch(ts, "a", "y"), options=SMALL)
        seen[done.instant.requested_time] = bag(table.to_arrow(), TAGGED.names)
    rows = agree(path)
    assert rows == list(seen.values())[-1]
    live = len(table.file_slices())
    assert len(names_of_files(path)) <= live * 3
    active = [one for one in table.timeline.instants if one.is_completed]
    assert len(active) <= 6 + 10
    kept = [one.requested_time for one in table.timeline.completed_writes()]
    everything = [one.instant for one in open_table(str(path), {}).client.archived.load()]
    assert {one.requested_time for one in (*everything, *active)} >= set(seen)
    for time in kept[-2:]:
        assert bag(table.to_arrow(as_of=time), TAGGED.names) == seen[time]
    for past in list(seen)[:-3]:
        with pytest.raises(errors.HistoryExpiredError):
            table.to_arrow(as_of=past)
    assert hudi.Table.open(path).validate().differences == ()
    if "iceberg" in table.format:
        assert list(open_table(str(path), {}).lister().leftovers()) == []


@pytest.mark.parametrize("table_format", TABLES)
def test_a_clean_says_before_what_it_does(path: Path, table_format: str) -> None:
    table = two_writes(path, table_format, **OFF)
    for ts in (3, 4, 5):
        table.upsert(batch(ts, "a"))
    before = names_of_files(path)
    planned = table.clean(options=KEPT, dry_run=True)
    assert planned.instant is None
    assert names_of_files(path) == before
    assert cleans(table) == []
    seen: list[tuple[int, int]] = []
    done = table.clean(options=KEPT, progress=lambda done, total: seen.append((done, total)))
    assert done.instant is not None
    count = len(done.files)
    assert {(number, count) for number in range(1, count + 1)} <= set(seen)
    assert replace(done, instant=None) == planned
    gone = {one.rpartition("/")[2] for one in done.files}
    assert gone
    assert set(before) - set(names_of_files(path)) == gone
    assert table.clean(options=KEPT).files == ()
    # what is gone does not come back when more is to be kept
    again = table.clean()
    assert (again.files, again.earliest_retained) == ((), done.earliest_retained)
    agree(path)


def test_policies_keep_what_they_say(path: Path) -> None:
    table = two_writes(path, **OFF)
    for ts in range(3, 8):
        table.upsert(batch(ts, "a"))
    versions = {
        "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
        "hoodie.cleaner.fileversions.retained": "4",
    }
    of_hours = table.clean(options={"hoodie.clean.policy": "KEEP_LATEST_BY_HOURS"})
    assert (of_hours.policy, of_hours.files) == (CleanPolicy.KEEP_LATEST_BY_HOURS, ())
    done = table.clean(options=versions)
    assert len(done.files) == 3
    groups = table.file_slices()
    in_rome = next(one for one in groups if one.partition_path == "rome")
    assert sum(name.startswith(in_rome.file_id) for name in names_of_files(path)) == 4
    agree(path)


def test_a_replaced_partition_goes_with_its_mark(path: Path, table: hudi.Table) -> None:
    table.delete_partitions(["city=oslo"] if (path / "city=oslo").exists() else ["oslo"])
    for ts in (3, 4, 5):
        table.upsert(batch(ts, "a"), options=KEPT)
    assert not list((path / "oslo").glob("*.parquet"))
    last = cleans(table)[-1]
    body = decode_clean(open_table(str(path), {}).client.active.read(last), "clean")
    dropped = {one for clean in [body] for one in clean.partition_metadata}
    assert dropped <= {"rome", "oslo"}
    sound(path)


def test_appends_are_never_listed_and_move_the_archive_on(path: Path, native: hudi.Table) -> None:
    for ts in range(16):
        native.insert(
            batch(ts, f"a{ts}"), options={**SMALL, "hoodie.parquet.small.file.limit": "0"}
        )
    assert len(native.timeline.completed_writes()) <= 14
    client = open_table(str(path), {}).client
    done = [decode_clean(client.active.read(one), "clean") for one in cleans(native)]
    assert len(done) <= 2, "one of ten commits records a clean that deletes nothing"
    agree(path)


def died_in_clean(path: Path, table_format: str, **options: str) -> tuple[hudi.Table, set[str]]:
    """A table whose clean is pending; returns the names of the files that it deletes."""
    table = two_writes(path, table_format, **OFF, **options)
    for ts in (3, 4, 5):
        table.upsert(batch(ts, "a"))
    wanted = table.clean(options=KEPT, dry_run=True)
    client = open_table(str(path), {}).client
    partitions: dict[str, tuple[CleanFileInfo, ...]] = {}
    for file in wanted.files:
        partition = file.rpartition("/")[0]
        info = CleanFileInfo(f"{client.storage.root}/{file}", False)
        partitions[partition] = (*partitions.get(partition, ()), info)
    assert wanted.earliest_retained is not None
    plan = CleanerPlan(
        ActionInstant(wanted.earliest_retained, "commit", "COMPLETED"),
        "",
        "KEEP_LATEST_COMMITS",
        {},
        file_paths_to_be_deleted_per_partition=partitions,
    )
    request_clean(client, client.clock.next_time(client.timeline()), plan)
    return table, {one.rpartition("/")[2] for one in wanted.files}


@pytest.mark.parametrize("table_format", TABLES)
def test_a_clean_that_died_is_finished_by_the_next_commit(path: Path, table_format: str) -> None:
    table, going = died_in_clean(path, table_format)
    # without services a write goes on beside it
    table.upsert(batch(6, "a"))
    assert [one.is_completed for one in cleans(table)] == [False]
    table.upsert(batch(7, "a"), options={"hoodie.table.services.enabled": "true"})
    assert [one.is_completed for one in cleans(table)] == [True]
    assert not going & set(names_of_files(path))
    sound(path)


@pytest.mark.parametrize(("before", "after"), [("native", "delta"), ("iceberg", "native")])
def test_a_clean_that_died_is_finished_by_a_conversion(path: Path, before: str, after: str) -> None:
    table, going = died_in_clean(path, before)
    table.convert(after)
    assert [one.is_completed for one in cleans(table)] == [True]
    assert not going & set(names_of_files(path))
    sound(path)


def test_a_clean_that_died_stops_no_repair(path: Path) -> None:
    died_in_clean(path, "delta")
    shutil.rmtree(path / "_delta_log")
    hudi.Table.open(path).repair()
    agree(path)


def test_files_that_a_clean_deleted_before_it_died_are_no_differences(path: Path) -> None:
    bloom_filters = {"hoodie.metadata.index.bloom.filter.enable": "true"}
    table, going = died_in_clean(path, "native", **bloom_filters)
    for one in path.rglob("*.parquet"):
        if one.name in going:
            one.unlink()
    assert table.validate().differences == ()
    # what no clean has a plan for is a difference
    next(one for one in path.rglob("*.parquet") if ".hoodie" not in one.parts).unlink()
    assert table.validate().differences


def test_limits_that_leave_no_room_are_refused(native: hudi.Table) -> None:
    with pytest.raises(errors.InvalidOptionError, match="not more than"):
        native.upsert(batch(3, "a"), options={"hoodie.keep.max.commits": "20"})
    with pytest.raises(errors.InvalidOptionError):
        native.clean(options={"hoodie.cleaner.policy": "KEEP_NOTHING"})


def test_an_archive_says_before_what_it_does(path: Path) -> None:
    table = two_writes(path, **OFF)
    once = {"hoodie.metadata.compact.max.delta.commits": "1"}
    for ts in range(3, 12):
        table.upsert(batch(ts, "a"), options=once)
    limits = {"hoodie.keep.min.commits": "4", "hoodie.keep.max.commits": "6"}
    planned = table.archive(options=limits, dry_run=True)
    assert planned.instants
    done = table.archive(options=limits)
    assert done == planned
    left = hudi.Table.open(path).timeline.instants
    assert len(left) == done.active
    assert not set(left) & set(done.instants)
    archived = open_table(str(path), {}).client.archived.load()
    assert [one.instant for one in archived] == list(done.instants)
    agree(path)


def test_what_is_archived_while_somebody_reads_is_found_in_the_history(path: Path) -> None:
    table = two_writes(path, **OFF)
    table.delete_partitions(["oslo"])
    client = open_table(table.path, {}).client
    listed = [one for one in client.timeline().instants if one.is_completed]
    bodies = [client.active.read(one) for one in listed]
    for ts in range(3, 12):
        table.upsert(batch(ts, "a"), options=SMALL | OFF)
    table.clean(options=KEPT)
    assert table.archive(options=SMALL).instants[: len(listed)] == tuple(listed)
    assert [client.active.read(one) for one in listed] == bodies
    with pytest.raises(errors.InstantNotFoundError):
        client.active.read(replace(listed[0], completion_time=listed[-1].completion_time))


SERVICES = {"hoodie.table.services.enabled": "true"}


def data_files(path: Path) -> set[str]:
    return {str(one.relative_to(path)) for one in path.glob("[or]*/*.parquet")}


def forged_clean(table: hudi.Table, *files: str) -> Instant:
    """The plan of a clean of some files, which nobody has begun."""
    client = open_table(table.path, {}).client
    named: dict[str, tuple[str, ...]] = {}
    for one in files:
        partition, _, name = one.partition("/")
        named[partition] = (*named.get(partition, ()), name)
    plan = CleanerPlan(None, "", "KEEP_LATEST_COMMITS", named)
    return request_clean(client, client.clock.next_time(client.timeline()), plan)


def newest(path: Path, table: hudi.Table) -> str:
    time = table.timeline.completed_writes()[-1].requested_time
    return next(one for one in sorted(data_files(path)) if time in one)


def savepointed(path: Path, table: hudi.Table) -> str:
    """A file that a savepoint alone keeps."""
    before = newest(path, table)
    table.savepoint()
    table.upsert(batch(9, "a", "x"))
    return before


def being_written(path: Path, table: hudi.Table) -> str:
    """A file of a write at work."""
    opened, config = open_table(str(path), {}), WriteConfig.from_options({})
    running = begin(
        opened, table_lock(opened, config), config, Action.COMMIT, WriteOperation.UPSERT
    )
    name = newest(path, table)
    time = table.timeline.completed_writes()[-1].requested_time
    mine = name.replace(time, running.instant.requested_time)
    (path / mine).write_bytes((path / name).read_bytes())
    return mine


def live_again(path: Path, table: hudi.Table) -> str:
    """A file that was superseded when the clean was planned; another engine undid that."""
    before = newest(path, table)
    last = table.upsert(batch(9, "a", "x")).instant
    forged_clean(table, before)
    plain = OpenTable(open_table(str(path), {}).client.as_stored(), load_format("native"))
    rollback.roll_back(TableState.load(plain), last)
    return before


@pytest.mark.parametrize("which", [newest, savepointed, being_written, live_again])
def test_a_clean_of_what_must_stay_is_refused(
    path: Path, which: Callable[[Path, hudi.Table], str], caplog: pytest.LogCaptureFixture
) -> None:
    table = two_writes(path, **{"hoodie.table.services.enabled": "false"})
    file = which(path, table)
    if which is not live_again:
        forged_clean(table, file)
    table = hudi.Table.open(path)
    rows, before = bag(table.to_arrow(), TAGGED.names), data_files(path)
    several = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
    for _ in range(2):
        with pytest.raises(errors.TableServiceError, match="would delete") as refused:
            table.clean(options=several)
        assert file in str(refused.value)
    assert (data_files(path), bag(table.to_arrow(), TAGGED.names)) == (before, rows)
    states = [one.state for one in table.timeline.instants if one.action is Action.CLEAN]
    assert states == [State.REQUESTED]
    # it stands in the way of no write
    with caplog.at_level(logging.WARNING):
        table.upsert(batch(20, "b"), options={**SERVICES, **several})
    assert "a service of the table" in caplog.text
    assert data_files(path) > before


@pytest.mark.parametrize("file", ["../outside/NAME", "rome/hoodie.properties"])
def test_a_forged_plan_stops_no_write(
    path: Path, file: str, caplog: pytest.LogCaptureFixture
) -> None:
    table = two_writes(path, **{"hoodie.table.services.enabled": "false"})
    before = data_files(path)
    outside = path.with_name("outside") / Path(min(before)).name
    outside.parent.mkdir()
    outside.write_text("mine")
    folder, _, name = file.replace("NAME", outside.name).rpartition("/")
    client = open_table(str(path), {}).client
    forged = Instant(client.clock.next_time(client.timeline()), Action.CLEAN, State.REQUESTED)
    plan = CleanerPlan(None, "", "KEEP_LATEST_COMMITS", {folder: (name,)})
    client.active.create_requested(forged, encode(plan))
    with pytest.raises(errors.CorruptMetadataError, match="clean plan names"):
        table.clean()
    with caplog.at_level(logging.WARNING):
        done = table.upsert(batch(3, "a"), options=SERVICES)
    assert "a service of the table" in caplog.text
    assert done.instant in table.timeline.completed_writes()
    assert data_files(path) > before
    assert outside.read_text() == "mine"


def test_a_rollback_of_an_archived_write_is_given_up(path: Path) -> None:
    table = two_writes(path, **{"hoodie.metadata.enable": "false"})
    old = table.timeline.completed_writes()[-1]
    table.upsert(batch(3, "a"))
    few = {"hoodie.cleaner.commits.retained": "1"}
    few |= {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    for ts in range(4, 7):
        table.upsert(batch(ts, "a"), options=few)
    table = hudi.Table.open(path)
    assert table.timeline.find(old.requested_time) is None
    client = open_table(str(path), {}).client
    [live] = path.glob(f"oslo/*{old.requested_time}.parquet")
    plan = make_plan(client.storage.root, old, {PartitionPath("oslo"): [live.name]})
    asked = Instant(client.clock.next_time(client.timeline()), Action.ROLLBACK, State.REQUESTED)
    client.active.create_requested(asked, encode(plan))
    before = data_files(path)
    rows = bag(table.to_arrow(), TAGGED.names)
    table.upsert(batch(7, "n"))
    assert data_files(path) >= before
    assert rows <= agree(path)
    assert hudi.Table.open(path).timeline.find(asked.requested_time) is None


def test_a_rollback_deletes_what_its_plan_leaves_out(path: Path, native: hudi.Table) -> None:
    before, rows = data_files(path), bag(native.to_arrow(), TAGGED.names)
    gone = native.upsert(batch(3, "a", "x")).instant
    client = open_table(str(path), {}).client
    [some, _] = [one for one in sorted(data_files(path)) if gone.requested_time in one]
    partition, _, name = some.partition("/")
    plan = make_plan(client.storage.root, gone, {PartitionPath(partition): [name]})
    asked = Instant(client.clock.next_time(client.timeline()), Action.ROLLBACK, State.REQUESTED)
    client.active.create_requested(asked, encode(plan))
    native.rollback(gone)
    assert (data_files(path), agree(path)) == (before, rows)
