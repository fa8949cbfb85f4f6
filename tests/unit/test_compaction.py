"""Compactions: plans, what readers and writers meet, and what dead ones leave."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_core as hudi
from hudi_core.actions.compaction import plan_compaction, read_compaction
from hudi_core.actions.compaction_plan import chosen_operations
from hudi_core.base_file.key_footer import key_footer
from hudi_core.config.compaction import CompactionConfig
from hudi_core.config.write import WriteConfig
from hudi_core.errors import (
    CommitConflictError,
    ConcurrentWriterError,
    CorruptMetadataError,
    DataFileError,
    InstantNotFoundError,
    InvalidOptionError,
    NotATableError,
    TableServiceError,
)
from hudi_core.model.actions import CompactionOperation, CompactionPlan
from hudi_core.model.commit import CommitMetadata, ReplaceCommitMetadata, WriteOperation, WriteStat
from hudi_core.model.conflicts import TouchConflicts
from hudi_core.model.files import (
    BaseFile,
    BaseFileName,
    FileGroupId,
    FileId,
    FileSlice,
    FileStatus,
    LogFile,
    LogFileName,
    PartitionPath,
)
from hudi_core.model.instant_time import InstantTime
from hudi_core.services.compaction import Compaction, CompactionService, compact_if_due
from hudi_core.services.opening import open_table
from hudi_core.timeline.serde import encode
from hudi_core.txn.table_lock import table_lock
from hudi_core.txn.transaction import Transaction
from hudi_core.write import planning
from tests.cli_runs import run, run_json
from tests.foreign import by_hudi_rs
from tests.tables import new_table

RANKED: Final = pa.schema([("id", pa.string()), ("part", pa.string()), ("n", pa.int64())])
OPTIONS: Final = {
    "hoodie.metadata.enable": "false",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.compact.inline": "false",
    "hoodie.parquet.small.file.limit": "0",
}
SEVERAL: Final = {
    **OPTIONS,
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
}


def ranked(*ids: str, n: int = 0) -> pa.Table:
    """Rows whose keys begin with their partition."""
    return pa.table({"id": ids, "part": [one[0] for one in ids], "n": [n] * len(ids)}, RANKED)


def made(path: Path, options: dict[str, str] | None = None, order: str | None = None) -> hudi.Table:
    """A table of a file group with logs in each of two partitions, and one without."""
    given = {**OPTIONS, **(options or {})}
    table = new_table(path, RANKED, given, ordering_field=order)
    table.insert(ranked("a1", "a2", "a3", "b1", "b2"))
    table.insert(ranked("a4"))
    table.upsert(ranked("a1", "b1", n=1))
    table.delete(ranked("a2"))
    return table


def held(table: hudi.Table) -> list[dict[str, Any]]:
    """All rows but for the names of their files."""
    found = hudi.Table.open(table.path).to_arrow().drop_columns("_hoodie_file_name")
    listed: list[dict[str, Any]] = found.sort_by("id").to_pylist()
    return listed


def values(table: hudi.Table) -> dict[str, int]:
    return {row["id"]: row["n"] for row in held(table)}


def by_judge(table: hudi.Table) -> dict[str, int]:
    return {row["id"]: row["n"] for row in by_hudi_rs(table.path)}


def in_bases(table: hudi.Table) -> dict[str, int]:
    """What a reader of base files alone sees."""
    found = hudi.read(None, table.path, {"hoodie.datasource.query.type": "read_optimized"})
    return dict(zip(found["id"].to_pylist(), found["n"].to_pylist(), strict=True))


def logs(table: hudi.Table) -> list[int]:
    """How many logs each slice has, by partition."""
    return [len(one.log_files) for one in hudi.Table.open(table.path).file_slices()]


def on_timeline(table: hudi.Table, action: str) -> list[str]:
    return sorted(one.name for one in Path(table.path, ".hoodie/timeline").glob(f"*.{action}*"))


def on_disk(table: hudi.Table) -> set[str]:
    return {str(one.relative_to(table.path)) for one in Path(table.path).rglob("[!.]*.parquet")}


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    """Give the test a table with logs."""
    return made(tmp_path / "t")


# --- what is merged


def test_partitions_keep_the_ranges_of_logs_that_came_meanwhile(tmp_path: Path) -> None:
    """They belong to the base file of the compaction, and readers skip partitions by ranges."""
    table = made(tmp_path / "t", {"hoodie.metadata.enable": "true"})
    table.compact(schedule_only=True)
    table.upsert(ranked("a3", n=9))
    [done] = table.run_compactions()
    assert (done.logs, sorted(logs(table))) == (3, [0, 0, 1])
    assert table.validate().differences == ()
    assert hudi.Table.open(table.path).to_arrow(filter=[("n", "=", 9)])["id"].to_pylist() == ["a3"]


@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize("memory", [str(1 << 30), "1"])
def test_rows_stay_and_logs_end(tmp_path: Path, version: str, memory: str) -> None:
    """Log rows may be on the disk meanwhile."""
    table = made(
        tmp_path / "t",
        {"hoodie.write.table.version": version, "hoodie.memory.merge.max.size": memory},
    )
    before, now = held(table), values(table)
    assert in_bases(table) != now
    done = table.compact()
    assert (done.logs, len(done.slices), done.result and done.result.files) == (3, 2, 2)
    assert (held(table), in_bases(table), by_judge(table)) == (before, now, now)
    assert sum(logs(table)) == 0
    [completed] = on_timeline(table, "commit")
    assert completed.startswith(f"{done.instant}_")
    names = [f"{done.instant}.compaction.{state}" for state in ("inflight", "requested")]
    assert on_timeline(table, "compaction") == names
    assert (Path(table.path) / ".hoodie/timeline" / names[0]).read_bytes() == b""
    assert table.compact() == Compaction(table.path)
    assert table.validate(keys=True).is_valid


@pytest.mark.parametrize("memory", [str(1 << 30), "1"])
def test_the_keys_of_a_file_are_those_of_its_rows(tmp_path: Path, memory: str) -> None:
    """The filter of the base file grows by new keys, and bounds follow deletes."""
    in_one_bucket = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
    options = {**OPTIONS, **in_one_bucket, "hoodie.memory.merge.max.size": memory}
    table = new_table(tmp_path / "t", RANKED, options)
    table.insert(ranked(*(f"a{number}" for number in range(20, 40))))
    changes = (
        (table.upsert, ("a25", "a30"), ("a20", "a39")),
        (table.upsert, ("a10", "a30", "a90"), ("a10", "a90")),
        (table.delete, ("a10", "a39"), ("a20", "a90")),
        (table.delete, ("a20", "a90"), ("a21", "a38")),
    )
    for change, changed, bounds in changes:
        change(ranked(*changed, n=1))
        assert table.compact().logs == 1
        [one] = table.file_slices()
        assert one.base_file is not None
        keys = key_footer(pq.read_metadata(Path(table.path, one.base_file.path)), "")
        assert (keys.min_key, keys.max_key) == bounds
        assert keys.bloom is not None
        held_keys = pa.array([row["id"] for row in held(table)])
        assert all(keys.bloom.might_contain(held_keys).to_pylist())


def test_the_counts_are_hudis(table: hudi.Table) -> None:
    bases = {one.base_file.status.name for one in table.file_slices() if one.base_file}
    done = table.compact()
    assert done.result is not None
    metadata = done.result.metadata
    assert (metadata.operation_type, metadata.compacted) == ("COMPACT", True)
    in_a, in_b = (metadata.partition_to_write_stats[part][0] for part in "ab")
    assert {in_a.prev_base_file, in_b.prev_base_file} < bases
    counts = ("num_writes", "num_update_writes", "num_deletes", "num_inserts")
    assert [getattr(in_a, name) for name in counts] == [2, 1, 1, 0]
    assert [getattr(in_b, name) for name in counts] == [2, 1, 0, 0]
    merged = ("total_log_records", "total_log_blocks", "total_log_files_compacted")
    assert [getattr(in_a, name) for name in merged] == [2, 2, 2]
    assert [getattr(in_b, name) for name in merged] == [1, 1, 1]
    assert in_a.total_updated_records_compacted == 2
    assert in_a.prev_commit == table.timeline.completed_writes()[0].requested_time


def test_a_slice_without_rows_keeps_its_file_group(table: hudi.Table) -> None:
    table.delete(ranked("b1", "b2"))
    table.compact()
    [emptied] = [one for one in table.file_slices() if one.partition_path == "b"]
    assert emptied.base_file is not None
    assert emptied.log_files == ()
    assert values(table) == by_judge(table) == {"a1": 1, "a3": 0, "a4": 0}
    table.upsert(ranked("b1", n=4))
    table.compact()
    assert values(table) == by_judge(table) == {"a1": 1, "a3": 0, "a4": 0, "b1": 4}


def test_changes_are_not_seen_again(table: hudi.Table) -> None:
    begin = table.timeline.completed_writes()[1].effective_completion_time
    wanted = table.incremental(begin).sort_by("id").drop_columns("_hoodie_file_name").to_pylist()
    feed = table.changes(begin).to_pylist()
    done = table.compact()
    found = table.incremental(begin).sort_by("id").drop_columns("_hoodie_file_name").to_pylist()
    assert found == wanted
    assert table.changes(begin).to_pylist() == feed
    assert table.incremental(str(done.instant)).num_rows == 0


def test_a_checkpoint_is_carried_over(table: hudi.Table) -> None:
    key = "streamer.checkpoint.key.v2"
    table.upsert(ranked("a1", n=2), extra_metadata={key: "offset-7"})
    done = table.compact()
    assert done.result is not None
    assert done.result.metadata.extra_metadata[key] == "offset-7"


def test_the_plan_is_hudis(table: hudi.Table) -> None:
    planned = table.compact(schedule_only=True)
    client = open_table(table.path, {}).client
    [found] = client.timeline().pending()
    assert (found.requested_time, found.action) == (planned.instant, hudi.Action.COMPACTION)
    plan = read_compaction(client, found)
    assert (plan.version, plan.extra_metadata) == (2, {})
    by_group = {one.file_id: one for one in planned.slices}
    for one in plan.operations or ():
        slice_ = by_group[FileId(one.file_id or "")]
        assert slice_.base_file is not None
        assert one.data_file_path == slice_.base_file.status.name
        assert one.delta_file_paths == tuple(log.status.name for log in slice_.log_files)
        assert one.base_instant_time == slice_.base_instant
    shown = run_json("table", "show", table.path)["slices"]
    assert {one["compaction"] for one in shown} == {planned.instant, None}


def test_nothing_else_can_be_compacted(tmp_path: Path) -> None:
    path = tmp_path / "cow"
    plain = new_table(path, RANKED, {"hoodie.metadata.enable": "false"})
    plain.insert(ranked("a1"))
    before = {str(one) for one in path.rglob("*")}
    for dry_run, schedule_only in ((False, False), (True, False), (False, True)):
        with pytest.raises(TableServiceError, match="COPY_ON_WRITE"):
            plain.compact(dry_run=dry_run, schedule_only=schedule_only)
    assert {str(one) for one in path.rglob("*")} == before


# --- writers beside a plan


def test_logs_after_the_plan_stay_with_the_new_slice(table: hudi.Table) -> None:
    planned = table.compact(schedule_only=True)
    other = hudi.Table.open(table.path, OPTIONS)
    other.upsert(ranked("a1", "b9", n=5))
    other.delete(ranked("b2"))
    now = values(table)
    assert now == by_judge(table)
    [done] = hudi.Table.open(table.path, OPTIONS).run_compactions()
    assert (done.instant, done.logs) == (planned.instant, 3)
    assert values(table) == by_judge(table) == now
    assert sorted(logs(table)) == [0, 0, 1, 1]
    assert in_bases(table) == {"a1": 1, "a3": 0, "a4": 0, "b1": 1, "b2": 0, "b9": 5}
    assert table.run_compactions() == []
    for instant in (done.instant, "20200101000000000"):
        with pytest.raises(InstantNotFoundError):
            table.run_compactions(instant)
    assert table.compact().logs == 2
    assert values(table) == by_judge(table) == in_bases(table) == now


def meanwhile(
    monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any], *, of: WriteOperation
) -> None:
    """Let something happen when a write has written its files, and is about to commit."""
    commit = Transaction.commit

    def slow(self: Transaction, metadata: CommitMetadata, statuses: Any) -> Any:
        if metadata.operation_type == of:
            monkeypatch.undo()
            act()
        return commit(self, metadata, statuses)

    monkeypatch.setattr(Transaction, "commit", slow)


def test_logs_written_during_a_compaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path / "t", SEVERAL)
    other = hudi.Table.open(table.path, SEVERAL)

    def act() -> None:
        other.upsert(ranked("a1", "b2", n=7))
        other.delete(ranked("a3"))

    meanwhile(monkeypatch, act, of=WriteOperation.COMPACT)
    table.compact()
    assert values(table) == by_judge(table) == {"a1": 7, "a4": 0, "b1": 1, "b2": 7}
    assert sum(logs(table)) == 3
    table.compact()
    assert values(table) == by_judge(table) == in_bases(table)


@pytest.mark.parametrize("early", ["true", "false"])
def test_a_write_that_began_before_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, early: str
) -> None:
    """Its logs belong to the slice that the compaction makes."""
    detection = "hoodie.write.concurrency.early.conflict.detection.enable"
    given = {**SEVERAL, detection: early}
    table = made(tmp_path / "t", given)
    other = hudi.Table.open(table.path, given)
    meanwhile(monkeypatch, other.compact, of=WriteOperation.UPSERT)
    table.upsert(ranked("a1", "b2", n=7))
    assert sorted(logs(table)) == [0, 1, 1]
    assert values(table) == by_judge(table) == {"a1": 7, "a3": 0, "a4": 0, "b1": 1, "b2": 7}
    # what is scheduled is no conflict either
    table.upsert(ranked("a3", n=7))
    meanwhile(monkeypatch, lambda: other.compact(schedule_only=True), of=WriteOperation.UPSERT)
    table.upsert(ranked("a1", n=8))
    table.run_compactions()
    assert values(table) == by_judge(table) == {"a1": 8, "a3": 7, "a4": 0, "b1": 1, "b2": 7}


def rewriting(table: hudi.Table) -> None:
    """Write a row that goes into a base file: by its order, a delete in a log holds against it."""
    table.upsert(ranked("a2", n=-1))


@pytest.mark.parametrize("is_run", [True, False])
def test_a_base_file_that_a_compaction_would_not_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_run: bool
) -> None:
    table = made(tmp_path / "t", SEVERAL, "n")
    other = hudi.Table.open(table.path, SEVERAL)
    compact = partial(other.compact, schedule_only=not is_run)
    meanwhile(monkeypatch, compact, of=WriteOperation.UPSERT)
    with pytest.raises(CommitConflictError, match="file group"):
        rewriting(table)
    assert "a2" not in values(table)
    rewriting(table)
    now = values(table)
    assert now["a2"] == -1
    if not is_run:
        with pytest.raises(CommitConflictError, match="has changed file group"):
            table.run_compactions()
        assert on_timeline(table, "compaction") == []
    table.compact()
    assert values(table) == by_judge(table) == now


def test_a_base_file_that_has_all_of_a_compaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path / "t", SEVERAL, "n")
    other = hudi.Table.open(table.path, SEVERAL)
    meanwhile(monkeypatch, lambda: rewriting(other), of=WriteOperation.COMPACT)
    table.compact()
    assert values(table) == by_judge(table)
    assert values(table)["a2"] == -1


def test_a_replaced_file_group_ends_the_plan(table: hudi.Table) -> None:
    planned = table.compact(schedule_only=True)
    table.insert_overwrite(ranked("a9"))
    now = values(table)
    with pytest.raises(CommitConflictError, match=str(planned.instant)):
        table.run_compactions()
    assert on_timeline(table, "compaction") == []
    assert values(table) == now
    assert [one.partition_path for one in table.compact().slices] == ["b"]


def test_services_do_not_share_file_groups(table: hudi.Table) -> None:
    first = table.compact(schedule_only=True)
    table.upsert(ranked("a4", n=2))
    second = table.compact(schedule_only=True)
    groups = [{one.group for one in found.slices} for found in (first, second)]
    assert len(groups[1]) == 1
    assert groups[0].isdisjoint(groups[1])
    assert table.compact() == Compaction(table.path)
    assert table.cluster(dry_run=True).files == 0
    assert [one.logs for one in table.run_compactions()] == [3, 1]


# --- failures


def dying(monkeypatch: pytest.MonkeyPatch, table: hudi.Table, act: Callable[[], Any]) -> None:
    """Leave a table as a compaction does that dies when its files are there."""
    path, copy = Path(table.path), Path(f"{table.path}-then")
    meanwhile(monkeypatch, lambda: shutil.copytree(path, copy), of=WriteOperation.COMPACT)
    act()
    shutil.rmtree(path)
    copy.rename(path)  # nobody holds the lock of this heartbeat


def test_a_dead_one_is_undone_with_plan(table: hudi.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    before, there = held(table), on_disk(table)
    dying(monkeypatch, table, table.compact)
    assert on_disk(table) > there
    assert held(table) == before
    assert by_judge(table) == values(table)
    hudi.Table.open(table.path, OPTIONS).upsert(ranked("a1", n=5))
    assert on_timeline(table, "compaction") == []
    assert len(on_timeline(table, "rollback")) == 3
    assert on_disk(table) == there
    assert table.compact().logs == 4


def test_the_plan_of_a_dead_one_is_made_again(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the logs that came since: they belong to the slice that it merges."""
    there, planned = on_disk(table), table.compact(schedule_only=True)
    dying(monkeypatch, table, table.run_compactions)
    other = hudi.Table.open(table.path, OPTIONS)
    other.upsert(ranked("a1", n=6))
    [left] = on_timeline(table, "compaction")
    assert left.endswith(".requested")
    assert left[:17] > str(planned.instant)
    assert on_disk(table) == there
    other.upsert(ranked("a1", n=7))
    now = values(table)
    dying(monkeypatch, table, table.run_compactions)
    [done] = other.run_compactions()
    assert done.logs == planned.logs + 2
    assert values(table) == by_judge(table) == in_bases(table) == now


def test_a_failure_leaves_a_plan_or_none(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Transaction, metadata: CommitMetadata, statuses: Any) -> Any:
        raise DataFileError(table.path, "it is lost")

    there = on_disk(table)
    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "commit", fail)
        with pytest.raises(DataFileError):
            table.compact()
        assert on_timeline(table, "compaction") == []
        table.compact(schedule_only=True)
        with pytest.raises(DataFileError):
            table.run_compactions()
    assert on_disk(table) == there
    [left] = on_timeline(table, "compaction")
    assert left.endswith("requested")
    assert table.run_compactions()[0].logs == 3


def test_a_log_that_is_gone_ends_the_plan(table: hudi.Table) -> None:
    planned = table.compact(schedule_only=True)
    with pytest.raises(TableServiceError, match=str(planned.instant)):
        table.rollback(table.timeline.completed_writes()[-1])
    for one in Path(table.path).rglob(
        f".*_{table.timeline.completed_writes()[-1].requested_time}*"
    ):
        one.unlink()  # as other engines do
    with pytest.raises(CommitConflictError, match=str(planned.instant)):
        table.run_compactions()
    assert on_timeline(table, "compaction") == []
    assert table.compact().logs == 2


def test_a_rollback_gives_a_plan_up_or_takes_a_compaction_back(table: hudi.Table) -> None:
    planned, before = table.compact(schedule_only=True), values(table)
    table.rollback(str(planned.instant))
    assert on_timeline(table, "compaction") == []
    done = table.compact()
    table.rollback(str(done.instant))
    assert values(table) == by_judge(table) == before
    assert sum(logs(table)) == 3
    assert table.compact().logs == 3


# --- plans of others


@pytest.mark.parametrize(
    "change",
    [
        {"data_file_path": "/etc/passwd"},
        {"data_file_path": "../b/x-0_0-1-0_20260101000000000.parquet"},
        {"delta_file_paths": (".x-0_20260101000000000.log.1_0-1-0",)},
        {"partition_path": "../a"},
        {"partition_path": ".hoodie"},
    ],
)
def test_a_forged_plan_changes_nothing(table: hudi.Table, change: dict[str, Any]) -> None:
    planned = table.compact(schedule_only=True)
    [name] = on_timeline(table, "compaction")
    client = open_table(table.path, OPTIONS).client
    [pending] = client.timeline().pending()
    plan = read_compaction(client, pending)
    first, *others = plan.operations or ()
    forged = replace(plan, operations=(replace(first, **change), *others))
    (Path(table.path) / ".hoodie/timeline" / name).write_bytes(encode(forged))
    before, there = held(table), on_disk(table)
    with pytest.raises(CorruptMetadataError, match=name):
        table.run_compactions()
    assert (held(table), on_disk(table)) == (before, there)
    table.rollback(str(planned.instant))
    assert table.compact().logs == 3


def test_a_compaction_of_another_engine_is_left_alone(table: hudi.Table) -> None:
    """Older releases of Hudi give no sign of life at work."""
    instant = table.compact(schedule_only=True).instant
    plan = Path(table.path, f".hoodie/timeline/{instant}.compaction.requested")
    plan.with_suffix(".inflight").touch()
    table.upsert(ranked("a1", n=5))
    assert table.run_compactions() == []
    assert table.compact() == Compaction(table.path)
    assert len(on_timeline(table, "compaction")) == 2
    table.rollback(str(instant))
    assert table.compact().logs == 4


@pytest.mark.parametrize("has_begun", [True, False])
def test_another_engine_that_gives_signs_of_life(table: hudi.Table, has_begun: bool) -> None:
    """Two never run one plan. Hudi has a heartbeat before its inflight file."""
    instant = table.compact(schedule_only=True).instant
    sign = Path(table.path, f".hoodie/.heartbeat/{instant}")
    sign.parent.mkdir(exist_ok=True)
    sign.touch()
    if has_begun:
        plan = Path(table.path, f".hoodie/timeline/{instant}.compaction.requested")
        plan.with_suffix(".inflight").touch()
    other = hudi.Table.open(table.path, SEVERAL)
    other.upsert(ranked("a1", n=5))
    assert other.run_compactions() == []
    with pytest.raises((ConcurrentWriterError, InstantNotFoundError)):
        other.run_compactions(instant)
    assert len(on_timeline(table, "compaction")) == 1 + has_begun
    os.utime(sign, (0, 0))  # it gives none any more
    [done] = other.run_compactions()
    assert done.logs == 3 + has_begun
    assert values(table) == by_judge(table) == {"a1": 5, "a3": 0, "a4": 0, "b1": 1, "b2": 0}


# --- after a commit


def test_a_compaction_is_due_after_some_commits(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def due(**options: str) -> list[tuple[bool, int]]:
        """What is compacted after a commit: whether it was run, and how many logs."""
        named = {f"hoodie.compact.{name.replace('_', '.')}": options[name] for name in options}
        given = {**OPTIONS, **named}
        opened, config = open_table(table.path, given), WriteConfig.from_options(given)
        done = compact_if_due(opened, table_lock(opened, config), config, hudi.LocalEngine(1))
        return [(one.result is not None, one.logs) for one in done]

    four = {"inline": "true", "inline_max_delta_commits": "4"}
    later = {"inline": "true", "inline_trigger_strategy": "TIME_ELAPSED"}
    both = {**four, "inline_trigger_strategy": "NUM_AND_TIME"}
    assert due() == []
    assert due(inline="true") == []
    assert due(**later) == []
    assert due(**both) == []
    assert due(**{**both, "inline_max_delta_commits": "5", "inline_max_delta_seconds": "1"}) == []
    assert due(schedule_inline="true") == []
    assert due(schedule_inline="true", inline_max_delta_commits="4") == [(False, 3)]
    assert due(schedule_inline="true", inline_max_delta_commits="1") == []
    table.upsert(ranked("a4", n=1))
    request = "NUM_COMMITS_AFTER_LAST_REQUEST"
    wanted = {"schedule_inline": "true", "inline_trigger_strategy": request}
    assert due(**wanted, inline_max_delta_commits="2") == []
    assert due(**wanted, inline_max_delta_commits="1") == [(False, 1)]
    assert due(**four) == [(True, 3), (True, 1)]
    table.upsert(ranked("a4", n=2))
    assert due(**four) == due(**later) == []

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(tz) + timedelta(hours=2)

    monkeypatch.setattr("hudi_core.services.compaction.datetime", Later)
    assert due(**{**four, "inline_trigger_strategy": "NUM_AND_TIME"}) == []
    assert due(**{**four, "inline_trigger_strategy": "NUM_OR_TIME"}) == [(True, 1)]
    assert due(**later) == []


def test_nothing_is_read_to_find_that_none_is_due(table: hudi.Table) -> None:
    opened, config = open_table(table.path, {}), WriteConfig.from_options({})
    left, lock = opened.client.timeline(), table_lock(opened, config)
    shutil.rmtree(table.path)
    assert compact_if_due(opened, lock, config, hudi.LocalEngine(1), left=left) == ()
    with pytest.raises(NotATableError):
        compact_if_due(opened, lock, config, hudi.LocalEngine(1))


def test_a_write_compacts_unless_options_say_no(table: hudi.Table) -> None:
    table.upsert(ranked("a1", n=2))
    assert on_timeline(table, "commit") == []
    table.upsert(ranked("a1", n=3), options={"hoodie.compact.schedule.inline": "true"})
    assert on_timeline(table, "commit") == []
    inline = {name: text for name, text in OPTIONS.items() if "compact" not in name}
    other = hudi.Table.open(table.path, inline)
    other.upsert(ranked("b1", n=2))
    assert len(on_timeline(table, "commit")) == 1
    for n in range(3, 6):
        other.upsert(ranked("b1", n=n))
    assert len(on_timeline(table, "commit")) == 1
    other.upsert(ranked("b1", n=7), options={"hoodie.compact.schedule.inline": "true"})
    assert len(on_timeline(table, "commit")) == 1
    assert on_timeline(table, "compaction")[-1].endswith("requested")
    other.upsert(ranked("b1", n=8))
    assert len(on_timeline(table, "commit")) == 2
    assert values(table) == by_judge(table) == {"a1": 3, "a3": 0, "a4": 0, "b1": 8, "b2": 0}


def test_a_compaction_that_fails_does_not_fail_the_commit(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> Any:
        raise DataFileError(table.path, "it is lost")

    monkeypatch.setattr(CompactionService, "compact", fail)
    inline = {"hoodie.compact.inline": "true"}
    assert table.upsert(ranked("a1", n=5), options=inline).updated == 1
    assert "it is lost" in caplog.text
    assert on_timeline(table, "compaction") == []


def test_the_command_previews_schedules_and_runs(tmp_path: Path) -> None:
    table = made(tmp_path / "t", {"hoodie.metadata.enable": "true"})
    [preview] = run_json("compact", table.path, "--dry-run")["compactions"]
    assert (preview["instant"], preview["logs"]) == (None, 3)
    assert {one["partition"]: one["logs"] for one in preview["slices"]} == {"a": 2, "b": 1}
    assert "Nothing was changed" in run("compact", table.path, "--dry-run").stdout
    [planned] = run_json("compact", table.path, "--schedule-only")["compactions"]
    assert planned["completed"] is None
    [done] = run_json("compact", table.path, "--run", planned["instant"])["compactions"]
    assert (done["instant"], done["logs"], done["new_files"]) == (planned["instant"], 3, 2)
    assert done["completed"] > done["instant"]
    assert run("compact", table.path).stdout.endswith("nothing to compact.\n")
    table.upsert(ranked("a1", n=9))
    assert "Scheduled" in run("compact", table.path, "--schedule-only").stdout
    assert "Compacted" in run("compact", table.path, "--run", "all").stdout
    assert run("compact", table.path, "--run", "all", "--dry-run").exit_code == 2
    assert run("compact", table.path, "--run", "20200101000000000").exit_code == 1


def test_progress_counts_slices(table: hudi.Table) -> None:
    seen: list[tuple[int, int]] = []
    table.compact(progress=lambda done, total: seen.append((done, total)))
    assert sorted(seen) == [(1, 2), (2, 2)]


# --- which slices


def slice_of(name: str, base: int | None, sizes: list[int]) -> FileSlice:
    """A file slice; sizes are in megabytes."""
    partition, file_id = PartitionPath(name.rpartition(":")[0]), FileId(f"{name[-1]}-0")
    time = InstantTime("20260101000000000")
    file_name = BaseFileName(file_id, "0-1-0", time)
    status = FileStatus(f"{partition}/{file_name}", (base or 0) << 20)
    logs = tuple(
        LogFile(FileStatus(f"{partition}/{log}", size << 20), log)
        for number, size in enumerate(sizes)
        for log in [LogFileName(file_id, InstantTime(f"2026010100000000{number}"), 1, "0-1-0")]
    )
    held_base = None if base is None else BaseFile(status, file_name)
    return FileSlice(FileGroupId(partition, file_id), time, held_base, logs)


SLICES: Final = [
    slice_of("2026/01/02:a", 100, [1, 1, 1]),
    slice_of("2026/01/10:b", 10, [9]),
    slice_of("2026/01/02:c", None, [4, 4]),
    slice_of("2026/01/02:d", 10, []),
]
NAMES: Final = "hoodie.compaction."


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "bca"),
        ({"target.io": 30}, "bc"),
        ({"target.io": 29}, "b"),
        ({"logfile.size.threshold": 4 << 20}, "bc"),
        ({"strategy": "LogFileNumBasedCompactionStrategy"}, "acb"),
        ({"strategy": "LogFileNumBasedCompactionStrategy", "logfile.num.threshold": 2}, "ac"),
        ({"strategy": "BoundedIOCompactionStrategy"}, "abc"),
        ({"strategy": "BoundedIOCompactionStrategy", "target.io": 1}, "a"),
        ({"strategy": "UnBoundedCompactionStrategy", "target.io": 1}, "abc"),
        ({"strategy": "DayBasedCompactionStrategy"}, "bac"),
        ({"strategy": "DayBasedCompactionStrategy", "daybased.target.partitions": 1}, "b"),
    ],
)
def test_strategies(options: dict[str, object], expected: str) -> None:
    config = compaction_config(options)
    plan = plan_compaction(
        SLICES, lambda found: chosen_operations(found, config), new_file_bytes=120 << 20
    )
    assert plan is not None
    assert "".join((one.file_id or "")[0] for one in plan.operations or ()) == expected


def compaction_config(options: dict[str, object]) -> CompactionConfig:
    named = {NAMES + name: str(value) for name, value in options.items()}
    return CompactionConfig.from_options(named)


def test_what_a_slice_reads_and_writes() -> None:
    plan = plan_compaction(SLICES, new_file_bytes=120 << 20)
    assert plan is not None
    found = [
        [(one.metrics or {})[f"TOTAL_{name}"] for name in ("IO_READ_MB", "IO_WRITE_MB", "IO_MB")]
        for one in plan.operations or ()
    ]
    assert found == [[103, 100, 203], [19, 10, 29], [8, 120, 128]]
    assert plan_compaction(SLICES[3:]) is None


def test_days_are_dates_with_names_or_without() -> None:
    config = compaction_config({"strategy": "DayBasedCompactionStrategy"})
    days = ["y=2026/m=9/d=30", "y=2026/m=10/d=1"]
    found = [CompactionOperation(None, partition_path=day) for day in days]
    assert [one.partition_path for one in chosen_operations(found, config)] == days[::-1]
    with pytest.raises(TableServiceError, match="'Rome' is no date"):
        chosen_operations([CompactionOperation(None, partition_path="Rome")], config)


def test_java_names_and_what_cannot_be_used() -> None:
    package = "org.apache.hudi.table.action.compact.strategy."
    assert compaction_config(
        {"strategy": f"{package}UnBoundedCompactionStrategy"}
    ) == compaction_config({"strategy": "UnBoundedCompactionStrategy"})
    for name, text in (
        (NAMES + "strategy", "com.example.Mine"),
        ("hoodie.compact.inline.trigger.strategy", "SOMETIMES"),
        ("hoodie.compact.inline", "perhaps"),
    ):
        with pytest.raises(InvalidOptionError, match=name.replace(".", r"\.")):
            CompactionConfig.from_options({name: text})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, True),
        ({"hoodie.compact.inline": "false"}, False),
        ({"hoodie.compact.schedule.inline": "true"}, False),
        ({"hoodie.compact.schedule.inline": "true", "hoodie.compact.inline": "true"}, True),
    ],
)
def test_who_runs_inline(given: dict[str, str], expected: bool) -> None:
    assert CompactionConfig.from_options(given).runs_inline is expected


# --- conflicts


def commit_of(operation: str, time: int, *logs_of: int, is_base: bool = False) -> CommitMetadata:
    group, instant = FileId("g-0"), InstantTime(f"{20260101000000000 + time}")
    names = [str(LogFileName(group, instant, number, "0-1-0")) for number in logs_of]
    names += [str(BaseFileName(group, "0-1-0", instant))] if is_base else []
    stats = tuple(WriteStat(file_id=group, path=f"p/{name}", num_writes=1) for name in names)
    return CommitMetadata({"p": stats}, operation_type=operation)


MERGING: Final = commit_of("COMPACT", 5, is_base=True)


@pytest.mark.parametrize(
    ("other", "conflicts"),
    [
        (commit_of("UPSERT", 3, 1), False),
        (commit_of("UPSERT", 7, 1), False),
        (commit_of("UPSERT", 3, is_base=True), True),
        (commit_of("UPSERT", 7, is_base=True), False),
        (commit_of("UPSERT", 3, 1, is_base=True), True),
        (commit_of("COMPACT", 3, is_base=True), True),
        (
            ReplaceCommitMetadata(
                operation_type="INSERT_OVERWRITE", partition_to_replace_file_ids={"p": ("g-0",)}
            ),
            True,
        ),
        (CommitMetadata({"q": (WriteStat(file_id="g-0"),)}, operation_type="UPSERT"), False),
    ],
)
def test_what_contradicts_a_compaction(other: CommitMetadata, conflicts: bool) -> None:
    strategy = TouchConflicts()
    assert (strategy.conflict(MERGING, other) is not None) is conflicts
    assert (strategy.conflict(other, MERGING) is not None) is conflicts


def test_a_plan_without_operations_has_no_groups() -> None:
    assert encode(CompactionPlan())


# --- what nobody has merged yet


def test_many_logs_of_a_group_are_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "MANY_LOGS", 1)
    table = made(tmp_path / "t")
    assert "log files" not in caplog.text
    table.upsert(ranked("a3", n=2))
    table.upsert(ranked("a3", "b1", n=3))
    [message] = [one for one in caplog.messages if "log files" in one]
    assert f"in {table.path} have more than 1 log files, up to 2" in message
    assert f"`hudi compact {table.path}`" in message


def test_a_table_is_shown_with_what_nobody_has_merged(table: hudi.Table) -> None:
    update = [one.requested_time for one in table.timeline.completed_writes()][2]
    found = run_json("table", "show", table.path)
    size = sum(log.status.size for one in table.file_slices() for log in one.log_files)
    assert (found["log_files"], found["log_bytes"], found["logs_since"]) == (3, size, update)
    shown = run("table", "show", table.path).stdout.splitlines()
    assert [one.split() for one in shown if one.startswith("logs since")] == [
        ["logs", "since", update]
    ]
    table.compact()
    assert run_json("table", "show", table.path)["logs_since"] is None
