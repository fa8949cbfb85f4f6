"""The second step of a commit: replayed, failing, raced, fenced off."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

import delta_format.commit
import delta_format.plugin
import hudi_core as hudi
import hudi_core.txn.publication
from delta_format.log import open_log
from hudi_core.errors import (
    CommitConflictError,
    CommitError,
    CommitStateUnknownError,
    CorruptMetadataError,
    HudiError,
    IncompleteCommitError,
    InvalidOptionError,
    StorageError,
    TableServiceError,
)
from hudi_core.model.actions import CleanerPlan, CleanFileInfo, CleanMetadata, RollbackMetadata
from hudi_core.model.commit import ReplaceCommitMetadata
from hudi_core.model.format import PARENT_KEY
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.services.opening import open_table
from hudi_core.txn.open_table import OpenTable
from tests.formats.columns import SCHEMA
from tests.formats.delta_tables import (
    assert_all_read,
    by_deltalake,
    content,
    new_table,
    rows,
    versions,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "table"


@pytest.fixture
def table(path: Path) -> hudi.Table:
    made = new_table(path)
    made.insert(rows(0, 1, 2))
    return made


def opened(path: Path) -> OpenTable:
    return open_table(str(path), {})


def last_write(path: Path) -> Instant:
    """The last write of the Hudi timeline, whatever the log says."""
    return opened(path).client.timeline().completed_writes()[-1]


def cut_short(monkeypatch: pytest.MonkeyPatch, write: Callable[[], Any]) -> None:
    """Do a write whose writer dies between the two steps."""

    def dies(*_: object) -> None:
        raise StorageError("The store is gone", "Wait for it.")

    with monkeypatch.context() as patched:
        patched.setattr(delta_format.plugin, "record", dies)
        with pytest.raises(HudiError):
            write()


def publish(path: Path, instant: Instant) -> Any:
    """Call the hook for a write as recovery does, without statuses."""
    found = opened(path)
    metadata = found.client.read_commit(instant)
    if metadata.operation_type == "ALTER_SCHEMA":
        return found.host.complete_schema_change(found.client, metadata, instant)
    return found.host.complete_write(found.client, metadata, instant)


def version(path: Path) -> int:
    return int(DeltaTable(str(path)).version())


def actions_of(path: Path, number: int) -> list[dict[str, Any]]:
    text = (path / "_delta_log" / f"{number:020d}.json").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


WRITES: dict[str, Callable[[hudi.Table], Any]] = {
    "insert": lambda table: table.insert(rows(3, 4)),
    "upsert": lambda table: table.upsert(rows(0, 5, ts=1)),
    "delete": lambda table: table.delete(rows(1)),
    "bulk_insert": lambda table: table.bulk_insert(rows(3, 8)),
    "insert_overwrite": lambda table: table.insert_overwrite(rows(5, ts=1)),
    "delete_partitions": lambda table: table.delete_partitions([{"city": "oslo"}]),
    "alter": lambda table: table.alter(add_columns={"extra": pa.int64()}),
    "insert_with_column": lambda table: table.insert(
        rows(3).append_column("extra", pa.array([7], pa.int64()))
    ),
}


@pytest.mark.parametrize("operation", WRITES)
def test_a_write_cut_between_the_steps_is_unseen_until_it_is_published(
    monkeypatch: pytest.MonkeyPatch, path: Path, table: hudi.Table, operation: str
) -> None:
    cut_short(monkeypatch, lambda: WRITES[operation](table))
    instant = last_write(path)
    seen = opened(path)
    assert seen.host.find_publication(seen.client, instant) is None
    assert seen.timeline().find(instant.requested_time) == replace(instant, state=State.INFLIGHT)
    assert content(hudi.Table.open(str(path)).to_arrow()) == content(rows(0, 1, 2))
    assert content(by_deltalake(path)) == content(rows(0, 1, 2))

    receipt = publish(path, instant)
    twin = new_table(path.parent / "twin")
    twin.insert(rows(0, 1, 2))
    WRITES[operation](twin)
    assert_all_read(path, content(by_deltalake(path.parent / "twin")))
    found = seen.host.find_publication(seen.client, instant)
    assert found is not None
    assert found.version == receipt.version == str(version(path))
    assert found.completion_time == instant.completion_time


@pytest.mark.parametrize("operation", WRITES)
def test_a_replayed_write_changes_nothing(path: Path, table: hudi.Table, operation: str) -> None:
    first = WRITES[operation](table)
    before = version(path)
    assert publish(path, last_write(path)) == first.receipt
    assert publish(path, last_write(path)).version == str(before)
    assert version(path) == before


def test_a_replayed_write_has_the_bounds_of_the_first_but_for_floats(
    monkeypatch: pytest.MonkeyPatch, path: Path, table: hudi.Table
) -> None:
    table.insert(rows(3))
    cut_short(monkeypatch, lambda: table.insert(rows(8)))
    publish(path, last_write(path))
    written, replayed = (
        json.loads(action["add"]["stats"])
        for number in (2, 3)
        for action in actions_of(path, number)
        if "add" in action
    )
    assert written["minValues"].keys() - replayed["minValues"].keys() == {"value"}
    assert written["nullCount"].keys() == replayed["nullCount"].keys()
    # the second write merged its row into the file of the first
    assert replayed["minValues"]["inner"] == {"x": 3, "word": "w" * 32}
    assert replayed["maxValues"]["inner"]["x"] == 8


@pytest.mark.parametrize("action", [Action.CLEAN, Action.ROLLBACK])
def test_actions_without_files_are_empty_versions_and_replay(
    path: Path, table: hudi.Table, action: Action
) -> None:
    seen = opened(path)
    instant = Instant(
        InstantTime("20991231000000000"),
        action,
        State.COMPLETED,
        InstantTime("20991231000000001"),
    )
    calls: dict[Action, Callable[[], Any]] = {
        Action.CLEAN: lambda: seen.host.complete_clean(
            seen.client, CleanMetadata("20991231000000000", 0, 0, ""), instant
        ),
        Action.ROLLBACK: lambda: seen.host.complete_rollback(
            seen.client, RollbackMetadata("20991231000000000", 0, 0, ()), instant
        ),
    }
    first = calls[action]()
    assert first == calls[action]()
    assert first.version == str(version(path)) == "2"
    assert {next(iter(each)) for each in actions_of(path, 2)} == {"commitInfo", "txn"}
    found = seen.host.find_publication(seen.client, instant)
    assert found is not None
    assert (found.action, found.version) == (action, "2")


# --- errors around the commit ------------------------------------------------------------------


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What the next commits do: "lost" (applied, but answered with an error) or "failed"."""
    waiting: list[str] = []
    real = delta_format.commit.write_actions

    def faulty(*arguments: Any) -> None:
        fault = waiting.pop(0) if waiting else ""
        if fault != "failed":
            real(*arguments)
        if fault:
            raise CommitFailedError("Failed to commit transaction: 0")

    monkeypatch.setattr(delta_format.commit, "write_actions", faulty)
    monkeypatch.setattr(hudi_core.txn.publication, "_PAUSE_S", 0)
    yield waiting
    assert not waiting


def test_a_commit_whose_answer_is_lost_is_found(
    path: Path, table: hudi.Table, faults: list[str]
) -> None:
    faults.append("lost")
    result = table.insert(rows(3))
    assert result.receipt.version == str(version(path)) == "2"
    assert_all_read(path, content(rows(0, 1, 2, 3)))


def test_a_commit_that_failed_is_tried_again_on_the_same_version(
    path: Path, table: hudi.Table, faults: list[str]
) -> None:
    faults += ["failed", "lost"]
    table.insert(rows(3))
    assert version(path) == 2
    assert_all_read(path, content(rows(0, 1, 2, 3)))


def test_an_outcome_that_stays_open_is_said_to_be_open(
    path: Path, table: hudi.Table, faults: list[str]
) -> None:
    faults += ["failed"] * 3
    with pytest.raises(CommitStateUnknownError):
        table.insert(rows(3))
    assert version(path) == 1
    publish(path, last_write(path))
    assert_all_read(path, content(rows(0, 1, 2, 3)))


def test_a_log_that_cannot_be_asked_leaves_the_outcome_open(
    monkeypatch: pytest.MonkeyPatch, path: Path, table: hudi.Table, faults: list[str]
) -> None:
    cut_short(monkeypatch, lambda: table.insert(rows(3)))
    faults.append("lost")
    calls: list[object] = []

    def once(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 2:
            raise StorageError("The store is gone", "Wait for it.")
        return open_log(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(delta_format.commit, "open_log", once)
        with pytest.raises(CommitStateUnknownError):
            publish(path, last_write(path))
    assert publish(path, last_write(path)).version == "2"
    assert_all_read(path, content(rows(0, 1, 2, 3)))


def test_who_loses_the_race_for_a_version_records_nothing(
    monkeypatch: pytest.MonkeyPatch, path: Path, table: hudi.Table
) -> None:
    cut_short(monkeypatch, lambda: table.insert(rows(3)))
    instant = last_write(path)
    real = delta_format.commit.write_actions

    def overtaken(handle: DeltaTable, *arguments: Any) -> None:
        DeltaTable(str(path)).alter.set_table_name("other")
        real(handle, *arguments)

    monkeypatch.setattr(delta_format.commit, "write_actions", overtaken)
    with pytest.raises(CommitConflictError, match="from version 1 to 2"):
        publish(path, instant)
    assert content(by_deltalake(path)) == content(rows(0, 1, 2))


def test_the_recorded_parent_is_what_is_compared(
    monkeypatch: pytest.MonkeyPatch, path: Path, table: hudi.Table
) -> None:
    cut_short(monkeypatch, lambda: table.insert(rows(3)))
    instant = last_write(path)
    seen = opened(path)
    metadata = seen.client.read_commit(instant)

    def built_on(parent: str) -> Any:
        return replace(metadata, extra_metadata={**metadata.extra_metadata, PARENT_KEY: parent})

    with pytest.raises(CommitConflictError, match="builds on version 0"):
        seen.host.complete_write(seen.client, built_on("0"), instant)
    assert version(path) == 1
    # a vacuum changes no rows
    DeltaTable(str(path)).vacuum(dry_run=False)
    receipt = seen.host.complete_write(seen.client, built_on("1"), instant)
    assert receipt.version == str(version(path))
    assert_all_read(path, content(rows(0, 1, 2, 3)))


def test_a_crash_after_the_schema_step_is_no_other_parent(
    monkeypatch: pytest.MonkeyPatch, path: Path, table: hudi.Table, faults: list[str]
) -> None:
    faults += ["failed"] * 3
    with pytest.raises(CommitStateUnknownError):
        WRITES["insert_with_column"](table)
    assert version(path) == 2  # the columns are there, without an instant
    instant, seen = last_write(path), opened(path)
    metadata = seen.client.read_commit(instant)
    metadata = replace(metadata, extra_metadata={**metadata.extra_metadata, PARENT_KEY: "1"})
    assert seen.host.complete_write(seen.client, metadata, instant).version == "3"
    assert by_deltalake(path).column("extra").to_pylist().count(7) == 1


# --- rollback ----------------------------------------------------------------------------------


def test_a_write_that_never_reached_the_log_is_fenced_off(
    monkeypatch: pytest.MonkeyPatch, path: Path, table: hudi.Table
) -> None:
    cut_short(monkeypatch, lambda: table.insert(rows(3)))
    instant, seen = last_write(path), opened(path)
    stale = open_log(seen.client)
    seen.host.before_rollback(seen.client, instant)
    assert version(path) == 2
    seen.host.before_rollback(seen.client, instant)
    assert version(path) == 2
    # neither a request that still travels nor a late replay gets it in
    with pytest.raises(CommitFailedError):
        delta_format.commit.write_actions(
            stale.table, [], delta_format.commit.commit_properties({"hudi.instant": "x"})
        )
    with pytest.raises(IncompleteCommitError):
        publish(path, instant)
    assert seen.host.find_publication(seen.client, instant) is None
    table.rollback(instant)
    table.insert(rows(4))
    assert_all_read(path, content(rows(0, 1, 2, 4)))


def test_a_published_write_is_taken_out_before_its_files_go(path: Path, table: hudi.Table) -> None:
    table.upsert(rows(0, 1, ts=1))
    instant, seen = last_write(path), opened(path)
    seen.host.before_rollback(seen.client, instant)
    assert content(by_deltalake(path)) == content(rows(0, 1, 2))
    assert seen.host.find_publication(seen.client, instant) is None
    assert seen.timeline().find(instant.requested_time) == replace(instant, state=State.INFLIGHT)
    assert content(table.to_arrow()) == content(rows(0, 1, 2))
    before = version(path)
    seen.host.before_rollback(seen.client, instant)
    assert version(path) == before
    with pytest.raises(IncompleteCommitError):
        publish(path, instant)
    stats = pa.table(DeltaTable(str(path)).get_add_actions(flatten=True))
    assert stats.column("min.id").null_count == 0


def test_a_write_that_others_build_on_is_not_taken_out(path: Path, table: hudi.Table) -> None:
    first = last_write(path)
    table.upsert(rows(0, ts=1))
    seen = opened(path)
    with pytest.raises(TableServiceError, match="build on"):
        seen.host.before_rollback(seen.client, first)
    assert_all_read(path, content(pa.concat_tables([rows(0, ts=1), rows(1, 2)])))


# --- foreign writers, damage, upkeep -------------------------------------------------------------


def test_a_foreign_version_stops_writes_by_its_name(path: Path, table: hudi.Table) -> None:
    foreign = by_deltalake(path).slice(0, 1)
    write_deltalake(str(path), foreign, mode="append")
    count = len(list(path.rglob("*.parquet")))
    with pytest.raises(CommitConflictError, match=r"Version 2 .*WRITE"):
        table.insert(rows(3))
    assert len(list(path.rglob("*.parquet"))) == count
    # the way out that the error names
    (path / "_delta_log" / f"{2:020d}.json").unlink()
    for file in path.rglob("part-*.parquet"):
        file.unlink()  # hudi-rs does not read a folder with files that Hudi did not name
    table.insert(rows(3))
    assert_all_read(path, content(rows(0, 1, 2, 3)))


def test_a_vacuum_of_another_engine_finds_nothing(path: Path, table: hudi.Table) -> None:
    table.upsert(rows(0, 1, 2, ts=1))
    handle = DeltaTable(str(path))
    assert handle.vacuum(full=True, dry_run=True) == []
    with pytest.raises(Exception, match="retention"):
        handle.vacuum(retention_hours=24 * 3650, dry_run=False)
    handle.vacuum(full=True, dry_run=False)
    table.insert(rows(3))
    assert content(by_deltalake(path, 1)) == content(rows(0, 1, 2))


def test_retention_is_an_option(path: Path) -> None:
    key = "hoodie.table.format.delta.deleted-file-retention-days"
    new_table(path, more={key: "60"})
    properties = DeltaTable(str(path)).metadata().configuration
    assert properties["delta.deletedFileRetentionDuration"] == "interval 60 days"
    with pytest.raises(InvalidOptionError, match=key):
        new_table(path.parent / "other", more={key: "soon"})


def test_a_table_whose_log_is_gone_is_no_empty_table(path: Path, table: hudi.Table) -> None:
    (path / "_delta_log").rename(path.parent / "aside")
    with pytest.raises(CorruptMetadataError, match="_delta_log"):
        table.to_arrow()
    with pytest.raises(CorruptMetadataError, match="_delta_log"):
        table.insert(rows(3))


def test_a_damaged_log_is_named(path: Path, table: hudi.Table) -> None:
    (path / "_delta_log" / f"{1:020d}.json").write_text("{not json", encoding="utf-8")
    with pytest.raises(CorruptMetadataError, match="_delta_log"):
        table.to_arrow()


def test_a_file_that_is_not_as_the_commit_says_is_not_published(
    monkeypatch: pytest.MonkeyPatch, path: Path, table: hudi.Table
) -> None:
    wanted: list[Any] = []

    def dies(*arguments: Any) -> None:
        wanted[:] = arguments
        raise StorageError("The store is gone", "Wait for it.")

    with monkeypatch.context() as patched:
        patched.setattr(delta_format.plugin, "record", dies)
        with pytest.raises(HudiError):
            table.insert(rows(3))
    [new] = wanted[2].new_files
    file = path / new.path
    whole = file.read_bytes()
    file.write_bytes(whole + b"more")
    with pytest.raises(CommitError, match=f"should have {len(whole)} bytes and has {new.size + 4}"):
        delta_format.commit.record(*wanted)
    file.unlink()
    with pytest.raises(CommitError, match="is not there"):
        delta_format.commit.record(*wanted)
    assert version(path) == 1
    file.write_bytes(whole)
    delta_format.commit.record(*wanted)
    assert_all_read(path, content(rows(0, 1, 2, 3)))


def test_a_clean_that_would_delete_a_present_file_is_refused(path: Path, table: hudi.Table) -> None:
    old = {file.path for slice_ in table.file_slices() if (file := slice_.base_file)}
    table.upsert(rows(0, ts=1))
    now = {file.path for slice_ in table.file_slices() if (file := slice_.base_file)}
    seen, instant = (
        opened(path),
        Instant(InstantTime("20991231000000000"), Action.CLEAN, State.INFLIGHT),
    )

    def plan(file: str) -> CleanerPlan:
        folder = file.rpartition("/")[0]
        planned = {folder: (CleanFileInfo(f"{path}/{file}", False),)}
        return CleanerPlan(
            None, "", "KEEP_LATEST_COMMITS", file_paths_to_be_deleted_per_partition=planned
        )

    seen.host.before_clean(seen.client, plan(min(old - now)), instant)
    with pytest.raises(TableServiceError, match="names"):
        seen.host.before_clean(seen.client, plan(min(now)), instant)


def test_a_clustering_changes_files_and_no_data(
    monkeypatch: pytest.MonkeyPatch, path: Path, table: hudi.Table
) -> None:
    cut_short(monkeypatch, lambda: table.insert_overwrite_table(rows(0, 1, 2)))
    instant, seen = last_write(path), opened(path)
    metadata = seen.client.read_commit(instant)
    assert isinstance(metadata, ReplaceCommitMetadata)
    seen.host.complete_clustering(seen.client, metadata, instant)
    files = [
        action[kind]
        for action in actions_of(path, version(path))
        for kind in {"add", "remove"} & action.keys()
    ]
    assert len(files) == 6
    assert not any(file["dataChange"] for file in files)
    assert_all_read(path, content(rows(0, 1, 2)))


def test_what_the_log_forgets_is_complete_up_to_the_watermark(
    path: Path, table: hudi.Table
) -> None:
    known = last_write(path)
    seen = opened(path)
    never = replace(known, requested_time=InstantTime("20200101000000000"))
    assert not open_log(seen.client).holds(never)
    seen.host.archive_instants(seen.client, [known])
    seen.host.archive_instants(seen.client, [known])
    assert version(path) == 2
    after = open_log(seen.client)
    assert after.holds(never)
    assert not after.holds(replace(never, completion_time=InstantTime("20991231000000000")))
    table.insert(rows(3))
    assert_all_read(path, content(rows(0, 1, 2, 3)))


def test_checkpoints_come_by_themselves_and_keep_every_instant(path: Path) -> None:
    table = new_table(path, partitioned=False)
    table.insert(rows(0, 1, 2))
    first, seen = last_write(path), opened(path)
    for number in range(100):
        clean = Instant(
            InstantTime(f"20990101000000{number:03d}"),
            Action.CLEAN,
            State.COMPLETED,
            InstantTime(f"20990101000001{number:03d}"),
        )
        seen.host.complete_clean(seen.client, CleanMetadata("20990101000000000", 0, 0, ""), clean)
    assert list((path / "_delta_log").glob("*.checkpoint.parquet"))
    for old in (path / "_delta_log").glob("0000000000000000000[0-9].json"):
        old.unlink()  # as another engine's clean-up of the log would
    found = seen.host.find_publication(seen.client, first)
    assert found is not None
    assert found.completion_time is None
    table.upsert(rows(0, 3, ts=1))
    assert_all_read(path, content(pa.concat_tables([rows(0, 3, ts=1), rows(1, 2)])))


def test_the_place_of_the_log_is_kept(path: Path, table: hudi.Table) -> None:
    assert hudi.Table.open(str(path)).config.raw["hoodie.table.format.delta.location"] == str(path)
    assert len(versions(path)) == 2


def test_a_file_with_two_values_of_a_partition_is_refused() -> None:
    from delta_format.partition import partition_values  # noqa: PLC0415
    from hudi_core.model.stats import ColumnStats  # noqa: PLC0415

    known = ColumnStats("a", "b", 2, 0, 0, 0, 0)
    with pytest.raises(CommitError, match="city"):
        partition_values("p/f.parquet", {"city": known}, SCHEMA, ["city"])
