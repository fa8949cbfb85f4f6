"""Clean and archive of tables in every format, by themselves and on demand."""

from __future__ import annotations

import logging
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import hudi_core as hudi
from hudi_core.actions.clean import request_clean
from hudi_core.config.kinds import CleanPolicy
from hudi_core.errors import (
    CorruptMetadataError,
    HistoryExpiredError,
    InstantNotFoundError,
    InvalidOptionError,
)
from hudi_core.model.actions import ActionInstant, CleanerPlan, CleanFileInfo
from hudi_core.model.files import BaseFileName
from hudi_core.model.instant import Action, Instant, State
from hudi_core.services.opening import open_table
from hudi_core.timeline.serde import decode_clean, encode
from tests.formats.service_tables import SCHEMA, agree, bag, batch, new_table

FORMATS = ("native", "iceberg", "delta")
KEPT = {"hoodie.cleaner.commits.retained": "2"}
SMALL = {
    **KEPT,
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "6",
    "hoodie.metadata.compact.max.delta.commits": "3",
}
OFF = {"hoodie.table.services.enabled": "false"}


def data_files(path: Path) -> list[str]:
    found = (one for one in path.rglob("*.parquet") if ".hoodie" not in one.parts)
    return sorted(one.name for one in found if BaseFileName.parse(one.name))


def cleans(table: hudi.Table) -> list[hudi.Instant]:
    return [one for one in table.timeline.instants if one.action is Action.CLEAN]


@pytest.mark.parametrize("table_format", FORMATS)
def test_a_table_that_is_written_for_long_stays_small(tmp_path: Path, table_format: str) -> None:
    path = tmp_path / "t"
    table = new_table(path, table_format)
    seen: dict[str, object] = {}
    for ts in range(3, 17):
        done = table.upsert(batch(ts, "a", "y"), options=SMALL)
        seen[done.instant.requested_time] = bag(table.to_arrow(), SCHEMA.names)
    rows = agree(path)
    assert rows == list(seen.values())[-1]
    live = len(table.file_slices())
    assert len(data_files(path)) <= live * 3
    active = [one for one in table.timeline.instants if one.is_completed]
    assert len(active) <= 6 + 10
    kept = [one.requested_time for one in table.timeline.completed_writes()]
    everything = [one.instant for one in open_table(str(path), {}).client.archived.load()]
    assert {one.requested_time for one in (*everything, *active)} >= set(seen)
    for time in kept[-2:]:
        assert bag(table.to_arrow(as_of=time), SCHEMA.names) == seen[time]
    for past in list(seen)[:-3]:
        with pytest.raises(HistoryExpiredError):
            table.to_arrow(as_of=past)
    assert hudi.Table.open(str(path)).validate().differences == ()
    if table_format == "iceberg":
        assert list(open_table(str(path), {}).lister().leftovers()) == []


@pytest.mark.parametrize("table_format", FORMATS)
def test_a_clean_says_before_what_it_does(tmp_path: Path, table_format: str) -> None:
    path = tmp_path / "t"
    table = new_table(path, table_format, **OFF)
    for ts in (3, 4, 5):
        table.upsert(batch(ts, "a"))
    before = data_files(path)
    planned = table.clean(options=KEPT, dry_run=True)
    assert planned.instant is None
    assert data_files(path) == before
    assert cleans(table) == []
    seen: list[tuple[int, int]] = []
    done = table.clean(options=KEPT, progress=lambda done, total: seen.append((done, total)))
    assert done.instant is not None
    count = len(done.files)
    assert {(number, count) for number in range(1, count + 1)} <= set(seen)
    assert replace(done, instant=None) == planned
    gone = {one.rpartition("/")[2] for one in done.files}
    assert gone
    assert set(before) - set(data_files(path)) == gone
    assert table.clean(options=KEPT).files == ()
    # what is gone does not come back when more is to be kept
    again = table.clean()
    assert (again.files, again.earliest_retained) == ((), done.earliest_retained)
    agree(path)


def test_policies_keep_what_they_say(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = new_table(path, **OFF)
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
    assert sum(name.startswith(in_rome.file_id) for name in data_files(path)) == 4
    agree(path)


@pytest.mark.parametrize("table_format", FORMATS)
def test_a_replaced_partition_goes_with_its_mark(tmp_path: Path, table_format: str) -> None:
    path = tmp_path / "t"
    table = new_table(path, table_format)
    table.delete_partitions(["city=oslo"] if (path / "city=oslo").exists() else ["oslo"])
    for ts in (3, 4, 5):
        table.upsert(batch(ts, "a"), options=KEPT)
    assert not list((path / "oslo").glob("*.parquet"))
    last = cleans(table)[-1]
    body = decode_clean(open_table(str(path), {}).client.active.read(last), "clean")
    dropped = {one for clean in [body] for one in clean.partition_metadata}
    assert dropped <= {"rome", "oslo"}
    agree(path)
    assert hudi.Table.open(str(path)).validate().differences == ()


def test_appends_are_never_listed_and_move_the_archive_on(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = new_table(path)
    for ts in range(16):
        table.insert(batch(ts, f"a{ts}"), options={**SMALL, "hoodie.parquet.small.file.limit": "0"})
    assert len(table.timeline.completed_writes()) <= 14
    client = open_table(str(path), {}).client
    done = [decode_clean(client.active.read(one), "clean") for one in cleans(table)]
    assert len(done) <= 2, "one of ten commits records a clean that deletes nothing"
    agree(path)


def died_in_clean(path: Path, table_format: str, **options: str) -> tuple[hudi.Table, set[str]]:
    """A table whose clean is pending; returns the names of the files that it deletes."""
    table = new_table(path, table_format, **OFF, **options)
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


@pytest.mark.parametrize("table_format", FORMATS)
def test_a_clean_that_died_is_finished_by_the_next_commit(
    tmp_path: Path, table_format: str
) -> None:
    path = tmp_path / "t"
    table, going = died_in_clean(path, table_format)
    # without services a write goes on beside it
    table.upsert(batch(6, "a"))
    assert [one.is_completed for one in cleans(table)] == [False]
    table.upsert(batch(7, "a"), options={"hoodie.table.services.enabled": "true"})
    assert [one.is_completed for one in cleans(table)] == [True]
    assert not going & set(data_files(path))
    agree(path)
    assert hudi.Table.open(str(path)).validate().differences == ()


@pytest.mark.parametrize(("before", "after"), [("native", "delta"), ("iceberg", "native")])
def test_a_clean_that_died_is_finished_by_a_conversion(
    tmp_path: Path, before: str, after: str
) -> None:
    path = tmp_path / "t"
    table, going = died_in_clean(path, before)
    table.convert(after)
    assert [one.is_completed for one in cleans(table)] == [True]
    assert not going & set(data_files(path))
    agree(path)
    assert hudi.Table.open(str(path)).validate().differences == ()


def test_a_clean_that_died_stops_no_repair(tmp_path: Path) -> None:
    path = tmp_path / "t"
    died_in_clean(path, "delta")
    shutil.rmtree(path / "_delta_log")
    hudi.Table.open(str(path)).repair()
    agree(path)


def test_files_that_a_clean_deleted_before_it_died_are_no_differences(tmp_path: Path) -> None:
    path = tmp_path / "t"
    bloom_filters = {"hoodie.metadata.index.bloom.filter.enable": "true"}
    table, going = died_in_clean(path, "native", **bloom_filters)
    for one in path.rglob("*.parquet"):
        if one.name in going:
            one.unlink()
    assert table.validate().differences == ()
    # what no clean has a plan for is a difference
    next(one for one in path.rglob("*.parquet") if ".hoodie" not in one.parts).unlink()
    assert table.validate().differences


@pytest.mark.parametrize("where", ["../outside", "/etc", "rome/../../outside", "rome"])
def test_a_forged_plan_deletes_nothing(
    tmp_path: Path, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    path, outside = tmp_path / "t", tmp_path / "outside"
    table = new_table(path, **OFF)
    outside.mkdir()
    name = data_files(path)[0]
    (outside / name).write_text("mine")
    client = open_table(str(path), {}).client
    file = name if where != "rome" else "hoodie.properties"
    plan = CleanerPlan(None, "", "KEEP_LATEST_COMMITS", {where: (file,)})
    instant = client.clock.next_time(client.timeline())
    client.active.create_requested(Instant(instant, Action.CLEAN, State.REQUESTED), encode(plan))
    before = data_files(path)
    with pytest.raises(CorruptMetadataError, match="clean plan names"):
        table.clean()
    with caplog.at_level(logging.WARNING):
        done = table.upsert(batch(3, "a"), options={"hoodie.table.services.enabled": "true"})
    assert "a service of the table" in caplog.text
    assert done.instant in table.timeline.completed_writes()
    assert set(data_files(path)) > set(before)
    assert (outside / name).read_text() == "mine"


def test_limits_that_leave_no_room_are_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    with pytest.raises(InvalidOptionError, match="not more than"):
        table.upsert(batch(3, "a"), options={"hoodie.keep.max.commits": "20"})
    with pytest.raises(InvalidOptionError):
        table.clean(options={"hoodie.cleaner.policy": "KEEP_NOTHING"})


def test_an_archive_says_before_what_it_does(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = new_table(path, **OFF)
    once = {"hoodie.metadata.compact.max.delta.commits": "1"}
    for ts in range(3, 12):
        table.upsert(batch(ts, "a"), options=once)
    limits = {"hoodie.keep.min.commits": "4", "hoodie.keep.max.commits": "6"}
    planned = table.archive(options=limits, dry_run=True)
    assert planned.instants
    done = table.archive(options=limits)
    assert done == planned
    left = hudi.Table.open(str(path)).timeline.instants
    assert len(left) == done.active
    assert not set(left) & set(done.instants)
    archived = open_table(str(path), {}).client.archived.load()
    assert [one.instant for one in archived] == list(done.instants)
    agree(path)


def test_what_is_archived_while_somebody_reads_is_found_in_the_history(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", **OFF)
    table.delete_partitions(["oslo"])
    client = open_table(table.path, {}).client
    listed = [one for one in client.timeline().instants if one.is_completed]
    bodies = [client.active.read(one) for one in listed]
    for ts in range(3, 12):
        table.upsert(batch(ts, "a"), options=SMALL | OFF)
    table.clean(options=KEPT)
    assert table.archive(options=SMALL).instants[: len(listed)] == tuple(listed)
    assert [client.active.read(one) for one in listed] == bodies
    with pytest.raises(InstantNotFoundError):
        client.active.read(replace(listed[0], completion_time=listed[-1].completion_time))
