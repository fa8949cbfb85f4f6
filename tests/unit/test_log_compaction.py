"""Log compactions: small logs of a file slice merged into one, and what follows."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pytest

import hudi_core as hudi
from hudi_core.actions.compaction import read_compaction
from hudi_core.errors import CommitConflictError, TableServiceError
from hudi_core.file_slice.blocks import SliceBlock, blocks_of_slice, content_of
from hudi_core.file_slice.stored_slice import own_instants
from hudi_core.log_format import counted
from hudi_core.log_format.block import HeaderKey, decode_delete_content
from hudi_core.model.commit import WriteOperation
from hudi_core.model.instant import Action
from hudi_core.services.opening import open_table
from tests.cli_runs import run, run_json
from tests.tables import base_files, new_table
from tests.unit.test_compaction import (
    OPTIONS,
    RANKED,
    SEVERAL,
    by_judge,
    held,
    logs,
    meanwhile,
    on_timeline,
    ranked,
    values,
)

LOGS: Final = {"hoodie.log.compaction.blocks.threshold": "2"}
GIVEN: Final = {**OPTIONS, **LOGS}
BESIDE: Final = {**SEVERAL, **LOGS}


def made(path: Path, options: dict[str, str] = GIVEN, order: str | None = None) -> hudi.Table:
    """A table with a file slice of three logs, and one of one."""
    table = new_table(path, RANKED, options, ordering_field=order)
    table.insert(ranked("a1", "a2", "a3", "a4", "b1", "b2"))
    table.upsert(ranked("a1", "b1", n=1))
    table.delete(ranked("a2", n=1))
    table.upsert(ranked("a1", "a3", n=2))
    return table


def compact_logs(table: hudi.Table) -> hudi.CommitResult:
    """Merge the logs of the first slice into one."""
    done = table.compact(log_compaction=True)
    assert done.result is not None
    return done.result


def blocks(table: hudi.Table) -> list[SliceBlock]:
    """The blocks that readers of the first slice take."""
    client = open_table(table.path, {}).client
    found = [log.status for log in hudi.Table.open(table.path).file_slices()[0].log_files]
    return blocks_of_slice(client.files, found, own_instants(found), None)


def require_same(table: hudi.Table, expected: dict[str, int]) -> None:
    """Compare rows, by readers that know what a log compaction replaces and by others."""
    assert values(table) == by_judge(table) == expected
    after = counted._after_compactions
    try:
        counted._after_compactions = list  # type: ignore[assignment]
        assert values(table) == expected
    finally:
        counted._after_compactions = after
    assert hudi.Table.open(table.path).validate(keys=True).is_valid


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    """Give the test a table with logs."""
    return made(tmp_path / "t")


# --- what is merged


@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize("order", [None, "n"])
def test_logs_become_one(tmp_path: Path, version: str, order: str | None) -> None:
    metadata = {
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.write.table.version": version,
    }
    table = made(tmp_path / "t", {**GIVEN, **metadata}, order)
    before, writes = held(table), table.timeline.completed_writes()
    states = {one: table.to_arrow(as_of=one).sort_by("id").to_pylist() for one in writes}
    bases = base_files(table)
    done = compact_logs(table)
    assert (done.operation, done.files) == (WriteOperation.LOG_COMPACT, 1)
    table = hudi.Table.open(table.path, GIVEN)
    assert (held(table), logs(table)) == (before, [4, 1])
    assert base_files(table) == bases
    require_same(table, {"a1": 2, "a3": 2, "a4": 0, "b1": 1, "b2": 0})
    made_by = [one.requested_time for one in writes[1:]]
    for one in blocks(table):
        assert one.instant == done.instant.requested_time
        assert one.header(HeaderKey.COMPACTED_BLOCK_TIMES) == ",".join(made_by)
        assert one.header(HeaderKey.RECORD_POSITIONS)
    assert len(blocks(table)) == 2
    # nothing has changed for those who ask for changes, or for a past state
    assert table.incremental(writes[-1].effective_completion_time).num_rows == 0
    for time, state in states.items():
        assert table.to_arrow(as_of=time).sort_by("id").to_pylist() == state
    assert table.history()[0].rows_updated == 0
    assert table.to_arrow(filter=[("n", ">=", 2)]).num_rows == 2
    # what comes later is merged over it
    table.upsert(ranked("a3", n=3))
    table.delete(ranked("a4", n=3))
    require_same(table, {"a1": 2, "a3": 3, "b1": 1, "b2": 0})
    assert table.compact().logs == 7
    require_same(table, {"a1": 2, "a3": 3, "b1": 1, "b2": 0})


def test_the_timeline_says_what_hudi_would(table: hudi.Table) -> None:
    before = values(table)
    planned = table.compact(log_compaction=True, schedule_only=True)
    [name] = on_timeline(table, "logcompaction")
    assert name == f"{planned.instant}.logcompaction.requested"
    client = open_table(table.path, {}).client
    plan = read_compaction(client, client.active.load().pending().instants[0])
    assert plan.strategy is not None
    assert str(plan.strategy.compactor_class_name).endswith(".LogCompactionExecutionHelper")
    [one] = plan.operations or ()
    assert len(one.delta_file_paths or ()) == 3
    assert {one["compaction"] for one in run_json("table", "show", table.path)["slices"]} == {
        planned.instant,
        None,
    }
    [done] = table.run_compactions(planned.instant)
    assert done.instant == planned.instant
    assert [one.partition(".")[2] for one in on_timeline(table, "logcompaction")] == [
        "logcompaction.inflight",
        "logcompaction.requested",
    ]
    assert done.result is not None
    last = done.result.instant
    assert (last.action, done.result.metadata.compacted) == (Action.DELTACOMMIT, True)
    [stat] = done.result.metadata.stats
    assert (stat.num_writes, stat.num_deletes, stat.total_log_files_compacted) == (2, 1, 3)
    require_same(table, before)


def test_deletes_keep_their_ordering_values(tmp_path: Path) -> None:
    table = made(tmp_path / "t", order="n")
    table.upsert(ranked("a4", n=7))
    table.delete(ranked("a4"))
    compact_logs(table)
    _, one = blocks(table)
    content = content_of(open_table(table.path, {}).client.files, one)
    found = decode_delete_content(content.to_pybytes(), one.path)
    given = {each.record_key: each.ordering and each.ordering.value for each in found}
    assert given == {"a2": 0, "a4": 7}
    table.upsert(ranked("a3", n=1))  # is late
    require_same(table, {"a1": 2, "a3": 2, "b1": 1, "b2": 0})


def test_what_was_merged_is_merged_again(table: hudi.Table) -> None:
    compact_logs(table)
    assert table.compact(log_compaction=True).slices == ()
    for n in (3, 4):
        table.upsert(ranked("a4", n=n))
        done = compact_logs(table)
        assert {one.instant for one in blocks(table)} == {done.instant.requested_time}
        require_same(table, {"a1": 2, "a3": 2, "a4": n, "b1": 1, "b2": 0})
    assert logs(table) == [8, 1]


def test_few_blocks_stay(table: hudi.Table) -> None:
    usual = hudi.Table.open(table.path, OPTIONS)
    assert usual.compact(log_compaction=True, dry_run=True).slices == ()
    assert usual.compact(log_compaction=True).instant is None
    table.upsert(ranked("a4", n=2))
    table.upsert(ranked("a4", n=3))
    assert usual.compact(log_compaction=True, dry_run=True).logs == 5
    assert on_timeline(table, "logcompaction") == []


def test_log_rows_on_the_disk_and_in_small_blocks(tmp_path: Path) -> None:
    small = ("hoodie.logfile.data.block.max.size", "hoodie.memory.merge.max.size")
    table = made(tmp_path / "t", {**GIVEN, **dict.fromkeys(small, "1")})
    compact_logs(table)
    assert len(blocks(table)) > 2
    require_same(table, {"a1": 2, "a3": 2, "a4": 0, "b1": 1, "b2": 0})
    # blocks of one log compaction are not many logs
    assert table.compact(log_compaction=True).slices == ()


def test_keys_that_only_logs_have(tmp_path: Path) -> None:
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
    table = made(tmp_path / "t", {**GIVEN, **buckets})
    table.upsert(ranked("a8", n=3))
    compact_logs(table)
    assert not any(one.header(HeaderKey.RECORD_POSITIONS) for one in blocks(table))
    require_same(table, {"a1": 2, "a3": 2, "a4": 0, "a8": 3, "b1": 1, "b2": 0})


def test_the_command_merges_logs(table: hudi.Table) -> None:
    before = values(table)
    few = ["--logs", "-o", "hoodie.log.compaction.blocks.threshold=2"]
    found = run("compact", table.path, *few, "--dry-run").stdout
    assert "Nothing was changed" in found
    found = run("compact", table.path, *few).stdout.replace("\n", " ")
    assert "3 logs of 1 file slice" in found
    assert "became 1 log," in found
    require_same(table, before)


# --- after a commit


def test_one_is_due_after_some_commits(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    inline = {"hoodie.log.compaction.inline": "true", **LOGS}
    for n in range(3, 7):
        table.upsert(ranked("a1", n=n), options=inline)
    # each took in the one before and a deltacommit, and is none itself
    assert len(on_timeline(table, "logcompaction.requested")) == 2
    require_same(table, {"a1": 6, "a3": 2, "a4": 0, "b1": 1, "b2": 0})
    both = {**inline, "hoodie.compact.inline": "true"}
    table.upsert(ranked("a1", n=9), options=both)
    assert len(on_timeline(table, "commit")) == 1
    assert len(on_timeline(table, "logcompaction.requested")) == 2


# --- going back


def test_a_rollback_takes_a_log_compaction_back(table: hudi.Table) -> None:
    before, write = values(table), table.timeline.completed_writes()[-1]
    planned = table.compact(log_compaction=True, schedule_only=True)
    with pytest.raises(TableServiceError, match=str(planned.instant)):
        table.rollback(write)
    table.rollback(str(planned.instant))
    done = compact_logs(table)
    with pytest.raises(TableServiceError, match="came after it"):
        table.rollback(write)
    table.rollback(done.instant)
    assert logs(table) == [3, 1]
    require_same(table, before)
    table.rollback(write)
    require_same(table, {"a1": 1, "a3": 0, "a4": 0, "b1": 1, "b2": 0})


def test_savepoint_restore_clean_and_archive(tmp_path: Path) -> None:
    table = made(tmp_path / "t", {**GIVEN, "hoodie.metadata.enable": "true"})
    before, done = values(table), compact_logs(table)
    table.savepoint(done.instant)
    table.upsert(ranked("a1", n=8))
    compact_logs(table)
    table.restore(done.instant)
    require_same(table, before)
    table.delete_savepoint(done.instant)
    for n in range(10, 16):
        table.upsert(ranked("a1", n=n))
        compact_logs(table)
    kept = {"hoodie.clean.commits.retained": "1"}
    table.clean(options=kept)
    require_same(table, {**before, "a1": 15})
    table.compact()
    table.upsert(ranked("a1", n=20))
    table.upsert(ranked("a1", n=21))
    table.clean(options=kept)
    assert logs(table) == [2, 0]
    assert len(list(Path(table.path, "a").glob("[.]*.log.*"))) == 2
    table.archive(options={"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"})
    require_same(table, {**before, "a1": 21})


# --- beside writers


def test_logs_that_come_after_the_plan_count_after_it(tmp_path: Path) -> None:
    table = made(tmp_path / "t", BESIDE)
    table.compact(log_compaction=True, schedule_only=True)
    other = hudi.Table.open(table.path, BESIDE)
    other.upsert(ranked("a1", n=7))
    other.delete(ranked("a3"))
    table.run_compactions()
    require_same(table, {"a1": 7, "a4": 0, "b1": 1, "b2": 0})


def test_logs_written_during_a_log_compaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path / "t", BESIDE)
    other = hudi.Table.open(table.path, BESIDE)
    meanwhile(monkeypatch, lambda: other.upsert(ranked("a1", n=7)), of=WriteOperation.LOG_COMPACT)
    compact_logs(table)
    require_same(table, {"a1": 7, "a3": 2, "a4": 0, "b1": 1, "b2": 0})


@pytest.mark.parametrize("is_run", [True, False])
def test_a_write_that_began_before_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_run: bool
) -> None:
    """Readers that take logs as they were requested would find older rows after its own."""
    table = made(tmp_path / "t", BESIDE)
    other = hudi.Table.open(table.path, BESIDE)

    def act() -> None:
        other.compact(log_compaction=True, schedule_only=not is_run)

    meanwhile(monkeypatch, act, of=WriteOperation.UPSERT)
    if is_run:
        with pytest.raises(CommitConflictError, match="file group"):
            table.upsert(ranked("a1", n=7))
        table.upsert(ranked("a1", n=7))
    else:
        table.upsert(ranked("a1", n=7))
        with pytest.raises(CommitConflictError, match="has changed file group"):
            table.run_compactions()
        assert on_timeline(table, "logcompaction") == []
        compact_logs(table)
    require_same(table, {"a1": 7, "a3": 2, "a4": 0, "b1": 1, "b2": 0})


def test_a_base_file_of_another_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path / "t", BESIDE, "n")
    other = hudi.Table.open(table.path, BESIDE)
    meanwhile(monkeypatch, lambda: other.upsert(ranked("a2", n=-1)), of=WriteOperation.LOG_COMPACT)
    with pytest.raises(CommitConflictError, match="file group"):
        compact_logs(table)
    require_same(table, {"a1": 2, "a2": -1, "a3": 2, "a4": 0, "b1": 1, "b2": 0})


def test_who_rewrites_a_slice_gives_its_plan_up(tmp_path: Path) -> None:
    """Another engine would run it, and its rows would come after those of the new base file."""
    table = made(tmp_path / "t", BESIDE, "n")
    for rewrite in (
        lambda: table.upsert(ranked("a2", n=-1)),
        table.compact,
        lambda: table.insert_overwrite(ranked("a5", "a6")),
    ):
        table.upsert(ranked("a1", n=len(on_timeline(table, "deltacommit")) + 10))
        table.delete(ranked("a4"))
        if table.compact(log_compaction=True, schedule_only=True).instant is None:
            table.upsert(ranked("a3", n=50))
            assert table.compact(log_compaction=True, schedule_only=True).instant is not None
        rewrite()
        assert on_timeline(table, "logcompaction") == []
    require_same(table, {"a5": 0, "a6": 0, "b1": 1, "b2": 0})


def test_no_slice_is_compacted_both_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path / "t", BESIDE)
    before = values(table)
    planned = table.compact(schedule_only=True)
    assert table.compact(log_compaction=True).slices == ()
    table.rollback(str(planned.instant))
    # what is only planned is given up where a compaction goes before it
    table.compact(log_compaction=True, schedule_only=True)
    assert table.compact(log_compaction=True).slices == ()
    table.compact(schedule_only=True)
    with pytest.raises(CommitConflictError, match="has changed file group"):
        table.run_compactions()
    assert on_timeline(table, "logcompaction") == []
    assert [one.logs for one in table.run_compactions()] == [4]
    require_same(table, before)
    # one at work keeps a compaction from its slices
    table.upsert(ranked("a1", "b1", n=3))
    table.upsert(ranked("a1", n=4))
    seen: list[int] = []
    meanwhile(
        monkeypatch,
        lambda: seen.append(hudi.Table.open(table.path, BESIDE).compact(dry_run=True).logs),
        of=WriteOperation.LOG_COMPACT,
    )
    compact_logs(table)
    assert seen == [1]
    require_same(table, {**before, "a1": 4, "b1": 3})


def test_a_dead_one_is_rolled_back_and_planned_again(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, copy = Path(table.path), Path(f"{table.path}-then")
    planned, before = table.compact(log_compaction=True, schedule_only=True), values(table)
    of = WriteOperation.LOG_COMPACT
    meanwhile(monkeypatch, lambda: shutil.copytree(path, copy), of=of)
    table.run_compactions()
    shutil.rmtree(path)
    copy.rename(path)
    require_same(table, before)
    other = hudi.Table.open(table.path, GIVEN)
    other.upsert(ranked("a1", n=6))
    [left] = on_timeline(table, "logcompaction")
    assert left.endswith(".requested")
    assert left[:17] > str(planned.instant)
    assert logs(table) == [4, 1]
    [done] = other.run_compactions()
    assert done.logs == 3
    require_same(table, {**before, "a1": 6})


def test_a_lost_completed_file_is_put_back(tmp_path: Path) -> None:
    table = made(tmp_path / "t", {**GIVEN, "hoodie.metadata.enable": "true"})
    before, done = values(table), compact_logs(table)
    table.upsert(ranked("a1", n=6))
    timeline = Path(table.path, ".hoodie/timeline")
    [completed] = timeline.glob(f"{done.instant.requested_time}_*.deltacommit")
    completed.unlink()
    hudi.Table.open(table.path, GIVEN).repair()
    [entry] = [
        one
        for one in hudi.Table.open(table.path).history()
        if one.instant == done.instant.requested_time
    ]
    assert (entry.operation, entry.rows_updated) == ("LOG_COMPACT", 0)
    require_same(table, {**before, "a1": 6})
