"""Clusterings beside writers, that die, and of other engines."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hudi_core as hudi
from hudi_core.actions.clustering import plan_body, read_clustering
from hudi_core.errors import (
    CommitConflictError,
    ConcurrentWriterError,
    CorruptMetadataError,
    DataFileError,
    InstantNotFoundError,
    PendingClusteringError,
)
from hudi_core.model.actions import ClusteringPlan
from hudi_core.model.commit import CommitMetadata
from hudi_core.services.clustering import Clustering, ClusteringService
from hudi_core.services.opening import open_table
from hudi_core.txn.transaction import Transaction
from tests.unit.clustering.clustered_tables import (
    OPTIONS,
    files,
    held,
    made,
    on_disk,
    on_timeline,
    rows,
)

SMALL_FILES = {**OPTIONS, "hoodie.parquet.small.file.limit": "104857600"}


ALLOW = {"hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy"}


SEVERAL = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}


# --- writers beside a plan ------------------------------------------------------------------------


def test_a_plan_is_run_by_another_process_and_inserts_go_round_it(table: hudi.Table) -> None:
    planned = table.cluster(partitions="a", schedule_only=True)
    other = hudi.Table.open(table.path, SMALL_FILES)
    other.insert(rows("a7", "b3"))  # into b's small file, and a new one of a
    assert len(files(table)) == 6
    before = held(table)
    [done] = hudi.Table.open(table.path, OPTIONS).run_clusterings()
    assert (done.instant, done.files) == (planned.instant, 3)
    assert held(table) == before
    assert len(files(table)) == 4
    assert table.run_clusterings() == []
    for instant in (done.instant, "20200101000000000"):
        with pytest.raises(InstantNotFoundError):
            table.run_clusterings(instant)


WRITES: dict[str, Callable[[hudi.Table], Any]] = {
    "upsert": lambda table: table.upsert(rows("a1", n=5)),
    "delete": lambda table: table.delete(rows("a1")),
    "insert_overwrite": lambda table: table.insert_overwrite(rows("a9")),
    "insert_overwrite_table": lambda table: table.insert_overwrite_table(rows("b9")),
    "delete_partitions": lambda table: table.delete_partitions(["a"]),
}


@pytest.mark.parametrize("name", WRITES)
def test_changes_of_files_under_clustering_are_rejected(table: hudi.Table, name: str) -> None:
    instant = table.cluster(partitions="a", schedule_only=True).instant
    before, there = held(table), on_disk(table)
    with pytest.raises(PendingClusteringError, match=str(instant)):
        WRITES[name](table)
    assert held(table) == before
    assert on_disk(table) == there
    assert table.upsert(rows("b1", n=5)).updated == 1
    table.rollback(str(instant))
    WRITES[name](table)


@pytest.mark.parametrize("name", WRITES)
def test_or_they_win_and_the_plan_is_given_up(table: hudi.Table, name: str) -> None:
    instant = table.cluster(partitions="a", schedule_only=True).instant
    WRITES[name](hudi.Table.open(table.path, OPTIONS | ALLOW))
    after = held(table)
    with pytest.raises(CommitConflictError, match=str(instant)):
        table.run_clusterings()
    assert held(table) == after
    assert on_timeline(table, "clustering") == []


def test_plans_do_not_share_files(table: hudi.Table) -> None:
    table.cluster(partitions="a", schedule_only=True)
    second = table.cluster(schedule_only=True)
    assert [group.partition_path for group in second.groups] == ["b"]
    assert table.cluster() == Clustering(table.path)
    assert [one.files for one in table.run_clusterings()] == [3, 2]


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any]) -> None:
    """Let something happen when a clustering has written its files."""
    rewrite = ClusteringService._rewrite

    def slow(self: ClusteringService, *arguments: Any) -> Any:
        found = rewrite(self, *arguments)
        monkeypatch.undo()
        act()
        return found

    monkeypatch.setattr(ClusteringService, "_rewrite", slow)


@pytest.mark.parametrize("is_scheduled", [False, True])
def test_a_write_meanwhile_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_scheduled: bool
) -> None:
    table = made(tmp_path / "t", SEVERAL)
    if is_scheduled:
        table.cluster(schedule_only=True)
    other = hudi.Table.open(table.path, OPTIONS | SEVERAL | ALLOW)
    meanwhile(monkeypatch, lambda: other.upsert(rows("a1", n=5)))
    with pytest.raises(CommitConflictError, match="file group"):
        _ = table.run_clusterings() if is_scheduled else table.cluster()
    assert on_timeline(table, "clustering") == []
    assert len(on_disk(table)) == 6
    assert next(row["n"] for row in held(table) if row["id"] == "a1") == 6


def test_a_write_to_other_files_meanwhile_stands_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path / "t", SEVERAL)
    other = hudi.Table.open(table.path, OPTIONS | SEVERAL)

    def act() -> None:
        with pytest.raises(PendingClusteringError):
            other.upsert(rows("a1", n=5))
        other.upsert(rows("a8", "b1", n=5))

    meanwhile(monkeypatch, act)
    table.cluster(partitions="a")
    assert {row["id"]: row["n"] for row in held(table)}.items() >= {"a8": 7, "b1": 6}.items()
    assert len(files(table)) == 4


def test_a_clustering_at_work_stops_a_writer_without_a_lock(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def act() -> None:
        with pytest.raises(ConcurrentWriterError):
            hudi.Table.open(table.path, OPTIONS).insert(rows("a9"))

    meanwhile(monkeypatch, act)
    assert table.cluster().outputs == 2


# --- failures -------------------------------------------------------------------------------------


def dying(monkeypatch: pytest.MonkeyPatch, table: hudi.Table, run: Callable[[], Any]) -> None:
    """Leave a table as a clustering does that dies when its files are there."""
    path, copy = Path(table.path), Path(f"{table.path}-then")
    meanwhile(monkeypatch, lambda: shutil.copytree(path, copy))
    run()
    shutil.rmtree(path)
    copy.rename(path)  # nobody holds the lock of this heartbeat


def test_one_that_died_is_undone_with_its_plan(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, there = held(table), on_disk(table)
    dying(monkeypatch, table, lambda: table.cluster(sort_by="n"))
    assert on_disk(table) > there
    assert held(table) == before
    hudi.Table.open(table.path, OPTIONS).upsert(rows("a1", n=5))
    assert on_timeline(table, "clustering") == []
    assert len(on_timeline(table, "rollback")) == 3
    assert len(on_disk(table)) == len(there) + 1


def test_the_plan_of_a_scheduled_one_that_died_is_run_by_the_next(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, there = held(table), on_disk(table)
    planned = table.cluster(sort_by="n", schedule_only=True)
    dying(monkeypatch, table, table.run_clusterings)
    other = hudi.Table.open(table.path, OPTIONS)
    other.insert(rows("b9"))
    [left] = on_timeline(table, "clustering")
    assert left.endswith(".requested")
    assert left[:17] > str(planned.instant)
    assert len(on_disk(table)) == len(there) + 1
    dying(monkeypatch, table, table.run_clusterings)
    [done] = other.run_clusterings()
    assert done.files == planned.files
    assert len(on_disk(table)) == len(there) + 3
    assert [row for row in held(table) if row["id"] != "b9"] == before


def test_a_failure_leaves_the_plan_or_nothing(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Transaction, metadata: CommitMetadata, statuses: Any) -> Any:
        raise DataFileError(table.path, "it is lost")

    there = on_disk(table)
    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "commit", fail)
        with pytest.raises(DataFileError):
            table.cluster()
        assert on_timeline(table, "clustering") == []
        table.cluster(schedule_only=True)
        with pytest.raises(DataFileError):
            table.run_clusterings()
    assert on_disk(table) == there
    [left] = on_timeline(table, "clustering")
    assert left.endswith("requested")
    assert table.run_clusterings()[0].files == 5


# --- plans of others ------------------------------------------------------------------------------


def forge(change: Callable[[str], str]) -> Callable[[ClusteringPlan], ClusteringPlan]:
    """Change the path of a plan's first file."""

    def forged(plan: ClusteringPlan) -> ClusteringPlan:
        first, *rest = plan.input_groups or ()
        one, *others = first.slices or ()
        one = replace(one, data_file_path=change(one.data_file_path or ""))
        return replace(plan, input_groups=(replace(first, slices=(one, *others)), *rest))

    return forged


@pytest.mark.parametrize(
    "change",
    [
        lambda path: f"/etc{path}",
        lambda path: path.replace("/a/", "/a/../b/"),
        lambda path: path.replace("/a/", "/b/"),
        lambda path: path.replace("/a/", "/.hoodie/"),
        lambda path: f"{path}.txt",
        lambda _: "",
    ],
)
def test_a_forged_plan_is_refused_and_nothing_changes(
    table: hudi.Table, change: Callable[[str], str]
) -> None:
    planned = table.cluster(partitions="a", schedule_only=True)
    [name] = on_timeline(table, "clustering")
    client = open_table(table.path, OPTIONS).client
    [pending] = client.timeline().pending()
    plan = forge(change)(read_clustering(client, pending).plan)
    (Path(table.path) / ".hoodie/timeline" / name).write_bytes(plan_body(plan, at_once=False))
    before, there = held(table), on_disk(table)
    with pytest.raises(CorruptMetadataError, match=name):
        table.run_clusterings()
    assert (held(table), on_disk(table)) == (before, there)
    table.insert(rows("a9"))
    table.rollback(str(planned.instant))
    assert on_disk(table) >= there


def test_a_clustering_of_another_engine_is_left_alone(table: hudi.Table) -> None:
    instant = table.cluster(partitions="a", schedule_only=True).instant
    timeline = Path(table.path) / ".hoodie/timeline"
    (timeline / f"{instant}.clustering.inflight").touch()
    table.insert(rows("a9"))
    with pytest.raises(PendingClusteringError):
        table.upsert(rows("a1", n=5))
    assert table.run_clusterings() == []
    assert len(on_timeline(table, "clustering")) == 2
    (timeline / f"{instant}.clustering.requested").unlink()
    with pytest.raises(CorruptMetadataError, match=str(instant)):
        table.insert(rows("a9"))
    table.rollback(str(instant))
    table.insert(rows("a10"))
