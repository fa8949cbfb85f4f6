"""Clusterings: plans and curves, what readers and writers meet, and what dead ones leave."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.actions.clustering import plan_body, read_clustering
from hudi_core.actions.clustering_plan import chosen_partitions, plan_groups
from hudi_core.config.clustering import ClusteringConfig, ClusteringOrder
from hudi_core.config.write import WriteConfig
from hudi_core.errors import (
    CommitConflictError,
    ConcurrentWriterError,
    CorruptMetadataError,
    DataFileError,
    InstantNotFoundError,
    InvalidOptionError,
    PendingClusteringError,
    SchemaError,
    TableServiceError,
    UnknownPartitionError,
)
from hudi_core.model.commit import CommitMetadata
from hudi_core.model.files import (
    BaseFile,
    BaseFileName,
    FileGroupId,
    FileId,
    FileSlice,
    FileStatus,
    PartitionPath,
)
from hudi_core.model.instant_time import InstantTime
from hudi_core.rows.layout import bits_per_coordinate, hilbert, row_order, scaled, z_order
from hudi_core.services.clustering import Clustering, ClusteringService, cluster_if_due
from hudi_core.services.opening import open_table
from hudi_core.txn.table_lock import table_lock
from hudi_core.txn.transaction import Transaction
from hudi_core.write import clustered_rows
from tests.cli_runs import run, run_json
from tests.foreign import by_hudi_rs
from tests.tables import copied, new_table

RANKED = pa.schema([("id", pa.string()), ("part", pa.string()), ("n", pa.int64())])


OPTIONS = {"hoodie.metadata.enable": "false", "hoodie.parquet.small.file.limit": "0"}


def ranked(*ids: str, n: int = 0) -> pa.Table:
    """Rows whose keys begin with their partition."""
    ranks = range(n + len(ids), n, -1)
    return pa.table({"id": ids, "part": [one[0] for one in ids], "n": ranks}, RANKED)


def made(path: Path, options: dict[str, str] | None = None) -> hudi.Table:
    """A table of three files in partition ``a``, and two in ``b``."""
    table = new_table(path, RANKED, {**OPTIONS, **(options or {})})
    table.insert(ranked("a1", "a2", "b1"))
    table.insert(ranked("a3", "a4", "b2"))
    table.insert(ranked("a5", "a6"))
    return table


def held(table: hudi.Table) -> list[dict[str, Any]]:
    """All rows but for the names of their files."""
    found = hudi.Table.open(table.path).to_arrow().drop_columns("_hoodie_file_name")
    listed: list[dict[str, Any]] = found.sort_by("id").to_pylist()
    return listed


def files(table: hudi.Table) -> list[str]:
    slices = hudi.Table.open(table.path).file_slices()
    return [one.base_file.path for one in slices if one.base_file is not None]


def on_timeline(table: hudi.Table, action: str) -> list[str]:
    return sorted(one.name for one in Path(table.path, ".hoodie/timeline").glob(f"*.{action}*"))


def on_disk(table: hudi.Table) -> set[str]:
    return {str(one.relative_to(table.path)) for one in Path(table.path).rglob("[!.]*.parquet")}


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    return copied(tmp_path / "t", made)


META = ["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name"]


# --- what is rewritten
def test_rows_stay_and_files_become_few(table: hudi.Table) -> None:
    before, done = held(table), table.cluster(sort_by="n")
    assert (done.files, done.outputs, done.result and done.result.files) == (5, 2, 2)
    assert held(table) == before
    sorted_rows = table.to_arrow("n", filter=[("part", "=", "a")]).column("n").to_pylist()
    assert sorted_rows == [1, 2, 2, 2, 3, 3]
    assert sorted(row["id"] for row in by_hudi_rs(table.path)) == [row["id"] for row in before]
    [completed] = on_timeline(table, "replacecommit")
    assert completed.startswith(f"{done.instant}_")
    names = [f"{done.instant}.clustering.{state}" for state in ("inflight", "requested")]
    assert on_timeline(table, "clustering") == names
    assert (Path(table.path) / ".hoodie/timeline" / names[0]).read_bytes() == b""
    assert table.optimize() == Clustering(table.path)  # each partition has one file
    assert table.validate(keys=True).is_valid


def test_the_plan_is_hudis(table: hudi.Table) -> None:
    instant = table.cluster(sort_by=["n", "id"], layout="z-order", schedule_only=True).instant
    assert instant is not None
    client = open_table(table.path, {}).client
    [found] = client.timeline().pending()
    assert (found.requested_time, found.action) == (instant, hudi.Action.CLUSTERING)
    body = read_clustering(client, found).body
    assert body.operation_type == "CLUSTER"
    plan = body.clustering_plan
    assert plan is not None
    assert plan.strategy is not None
    assert plan.input_groups is not None
    assert plan.preserve_hoodie_metadata
    assert plan.strategy.strategy_params == {
        "hoodie.clustering.plan.strategy.sort.columns": "n,id",
        "hoodie.layout.optimize.strategy": "ZORDER",
    }
    paths = [one.data_file_path or "" for group in plan.input_groups for one in group.slices or ()]
    assert sorted(paths) == sorted(f"{table.path}/{file}" for file in files(table))


def test_a_group_becomes_as_many_files_as_its_bytes_ask_for(table: hudi.Table) -> None:
    size = sum(Path(table.path, file).stat().st_size for file in files(table) if file[0] == "a")
    before = held(table)
    target = {"hoodie.clustering.plan.strategy.target.file.max.bytes": str(size // 2 + 1)}
    assert table.cluster(partitions="a", options=target).outputs == 2
    assert len(files(table)) == 4
    assert held(table) == before


@pytest.mark.parametrize("layout", ["linear", "hilbert"])
def test_large_groups_are_sorted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    """They come out as those that are sorted in memory."""

    def clustered(name: str) -> list[Any]:
        schema = pa.schema(
            [*RANKED, ("place", pa.string()), ("in", pa.struct({"x": pa.float64()}))]
        )
        table = new_table(tmp_path / name, schema, OPTIONS, partition_by=None)
        for number in range(4):
            found = ranked(*(f"a{number}-{one}" for one in range(50)), n=number)
            words = pa.array([None if one == 7 else "wv"[one % 2] for one in range(50)])
            inner = [{"x": one * number % 17 - 3.5} for one in range(50)]
            table.insert(found.append_column("place", words).append_column("in", [inner]))
        size = {"hoodie.clustering.plan.strategy.target.file.max.bytes": "4000"}
        table.cluster(sort_by=["place", "in.x", "n", "id"], layout=layout, options=size)
        assert len(files(table)) > 2
        assert not list(Path(table.path, ".hoodie/.temp").glob("*/*"))
        return [
            table.to_arrow(filter=[("_hoodie_file_name", "=", one)]).drop_columns(META).to_pylist()
            for one in files(table)
        ]

    whole = clustered("whole")
    monkeypatch.setattr(clustered_rows, "_PART_BYTES", 9000)
    assert sorted(clustered("parts"), key=str) == sorted(whole, key=str)


def test_what_was_before_is_read_as_it_was(table: hudi.Table) -> None:
    first = table.timeline.completed_writes()[0]
    begin = first.completion_time
    changed, past = table.incremental(begin=begin).num_rows, table.to_arrow(as_of=first).num_rows
    done = table.cluster()
    assert table.incremental(begin=begin).num_rows == changed
    assert table.to_arrow(as_of=first).num_rows == past
    assert done.result is not None
    assert table.incremental(begin=done.result.instant.completion_time).num_rows == 0
    table.upsert(ranked("a1", n=5))
    [row] = table.incremental(begin=done.result.instant.completion_time).to_pylist()
    assert row["id"] == "a1"


def test_indexes_follow_the_rows(tmp_path: Path) -> None:
    indexes = ("enable", "record.index.enable", "index.bloom.filter.enable")
    index = {f"hoodie.metadata.{name}": "true" for name in indexes}
    table = made(tmp_path / "t", index | {"hoodie.index.type": "RECORD_INDEX"})
    table.cluster(sort_by="n")
    assert table.validate(keys=True).is_valid
    assert table.upsert(ranked("a1", "a6", "b2", n=9)).updated == 3
    assert table.delete(ranked("a2")).deleted == 1
    assert table.validate(keys=True).is_valid


def test_columns_that_came_later_are_in_the_new_files(table: hudi.Table) -> None:
    table.alter(add_columns={"note": pa.string()}, rename={"n": "number"})
    before = held(table)
    table.cluster(sort_by="number")
    assert held(table) == before


def test_nothing_to_rewrite_leaves_no_trace(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", RANKED, OPTIONS, partition_by=None)
    assert table.cluster() == table.cluster(schedule_only=True) == Clustering(table.path)
    table.insert(ranked("a1"))
    assert table.optimize() == Clustering(table.path)
    assert on_timeline(table, "clustering") == []


def test_what_cannot_be_clustered_is_refused(tmp_path: Path, table: hudi.Table) -> None:
    with pytest.raises(SchemaError, match="'nothing'"):
        table.cluster(sort_by="nothing")
    with pytest.raises(UnknownPartitionError, match="'c'"):
        table.cluster(partitions=["a", "c"])
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    with pytest.raises(TableServiceError, match="buckets"):
        made(tmp_path / "buckets", buckets).optimize()
    assert on_timeline(table, "clustering") == []


def test_a_clustering_can_be_rolled_back(table: hudi.Table) -> None:
    before, there = held(table), on_disk(table)
    done = table.cluster(sort_by="n")
    assert done.instant is not None
    table.rollback(done.instant)
    assert held(table) == before
    assert on_disk(table) == there
    assert on_timeline(table, "clustering") == on_timeline(table, "replacecommit") == []
    assert table.upsert(ranked("a1", n=3)).updated == 1
    assert table.cluster().files == 5


def test_a_restore_takes_a_clustering_back(table: hudi.Table) -> None:
    before, there, saved = held(table), on_disk(table), table.savepoint()
    table.cluster(sort_by="n")
    table.upsert(ranked("a1", n=3))
    planned = table.cluster(sort_by="n", schedule_only=True)
    table.restore(saved.instant)
    assert (held(table), on_disk(table)) == (before, there)
    assert on_timeline(table, "clustering") == [f"{planned.instant}.clustering.requested"]
    with pytest.raises(CommitConflictError):  # its files are gone
        table.run_clusterings()
    assert table.cluster().files == 5


SMALL_FILES = {**OPTIONS, "hoodie.parquet.small.file.limit": "104857600"}


ALLOW = {"hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy"}


SEVERAL = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}


# --- writers beside a plan
def test_a_plan_is_run_by_another_process_and_inserts_go_round_it(table: hudi.Table) -> None:
    planned = table.cluster(partitions="a", schedule_only=True)
    other = hudi.Table.open(table.path, SMALL_FILES)
    other.insert(ranked("a7", "b3"))  # into b's small file, and a new one of a
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
    "upsert": lambda table: table.upsert(ranked("a1", n=5)),
    "delete": lambda table: table.delete(ranked("a1")),
    "insert_overwrite": lambda table: table.insert_overwrite(ranked("a9")),
    "insert_overwrite_table": lambda table: table.insert_overwrite_table(ranked("b9")),
    "delete_partitions": lambda table: table.delete_partitions(["a"]),
}


@pytest.mark.parametrize("name", WRITES)
def test_changes_of_files_in_clustering_are_rejected_or_win(table: hudi.Table, name: str) -> None:
    instant = table.cluster(partitions="a", schedule_only=True).instant
    before, there = held(table), on_disk(table)
    with pytest.raises(PendingClusteringError, match=str(instant)):
        WRITES[name](table)
    assert held(table) == before
    assert on_disk(table) == there
    assert table.upsert(ranked("b1", n=5)).updated == 1
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
def test_a_write_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_scheduled: bool) -> None:
    table = made(tmp_path / "t", SEVERAL)
    if is_scheduled:
        table.cluster(schedule_only=True)
    other = hudi.Table.open(table.path, OPTIONS | SEVERAL | ALLOW)
    meanwhile(monkeypatch, lambda: other.upsert(ranked("a1", n=5)))
    with pytest.raises(CommitConflictError, match="file group"):
        _ = table.run_clusterings() if is_scheduled else table.cluster()
    assert on_timeline(table, "clustering") == []
    assert len(on_disk(table)) == 6
    assert next(row["n"] for row in held(table) if row["id"] == "a1") == 6


def test_a_write_to_other_files_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path / "t", SEVERAL)
    other = hudi.Table.open(table.path, OPTIONS | SEVERAL)

    def act() -> None:
        with pytest.raises(PendingClusteringError):
            other.upsert(ranked("a1", n=5))
        other.upsert(ranked("a8", "b1", n=5))

    meanwhile(monkeypatch, act)
    table.cluster(partitions="a")
    assert {row["id"]: row["n"] for row in held(table)}.items() >= {"a8": 7, "b1": 6}.items()
    assert len(files(table)) == 4


def test_a_clustering_stops_another_writer(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def act() -> None:
        with pytest.raises(ConcurrentWriterError):
            hudi.Table.open(table.path, OPTIONS).insert(ranked("a9"))

    meanwhile(monkeypatch, act)
    assert table.cluster().outputs == 2


# --- failures
def dying(monkeypatch: pytest.MonkeyPatch, table: hudi.Table, run: Callable[[], Any]) -> None:
    """Leave a table as a clustering does that dies when its files are there."""
    path, copy = Path(table.path), Path(f"{table.path}-then")
    meanwhile(monkeypatch, lambda: shutil.copytree(path, copy))
    run()
    shutil.rmtree(path)
    copy.rename(path)  # nobody holds the lock of this heartbeat


def test_a_dead_one_is_undone_with_plan(table: hudi.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    before, there = held(table), on_disk(table)
    dying(monkeypatch, table, lambda: table.cluster(sort_by="n"))
    assert on_disk(table) > there
    assert held(table) == before
    hudi.Table.open(table.path, OPTIONS).upsert(ranked("a1", n=5))
    assert on_timeline(table, "clustering") == []
    assert len(on_timeline(table, "rollback")) == 3
    assert len(on_disk(table)) == len(there) + 1


def test_the_plan_of_a_dead_one_is_run(table: hudi.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    before, there = held(table), on_disk(table)
    planned = table.cluster(sort_by="n", schedule_only=True)
    dying(monkeypatch, table, table.run_clusterings)
    other = hudi.Table.open(table.path, OPTIONS)
    other.insert(ranked("b9"))
    [left] = on_timeline(table, "clustering")
    assert left.endswith(".requested")
    assert left[:17] > str(planned.instant)
    assert len(on_disk(table)) == len(there) + 1
    dying(monkeypatch, table, table.run_clusterings)
    [done] = other.run_clusterings()
    assert done.files == planned.files
    assert len(on_disk(table)) == len(there) + 3
    assert [row for row in held(table) if row["id"] != "b9"] == before


def test_a_failure_leaves_a_plan_or_none(
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


# --- plans of others
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
def test_a_forged_plan_changes_nothing(table: hudi.Table, change: Callable[[str], str]) -> None:
    planned = table.cluster(partitions="a", schedule_only=True)
    [name] = on_timeline(table, "clustering")
    client = open_table(table.path, OPTIONS).client
    [pending] = client.timeline().pending()
    plan = read_clustering(client, pending).plan
    first, *rest = plan.input_groups or ()
    one, *others = first.slices or ()
    one = replace(one, data_file_path=change(one.data_file_path or ""))
    forged = replace(plan, input_groups=(replace(first, slices=(one, *others)), *rest))
    (Path(table.path) / ".hoodie/timeline" / name).write_bytes(plan_body(forged, at_once=False))
    before, there = held(table), on_disk(table)
    with pytest.raises(CorruptMetadataError, match=name):
        table.run_clusterings()
    assert (held(table), on_disk(table)) == (before, there)
    table.insert(ranked("a9"))
    table.rollback(str(planned.instant))
    assert on_disk(table) >= there


def test_a_clustering_of_another_engine_is_left_alone(table: hudi.Table) -> None:
    instant = table.cluster(partitions="a", schedule_only=True).instant
    plan = Path(table.path, f".hoodie/timeline/{instant}.clustering.requested")
    plan.with_suffix(".inflight").touch()
    table.insert(ranked("a9"))
    with pytest.raises(PendingClusteringError):
        table.upsert(ranked("a1", n=5))
    assert table.run_clusterings() == []
    assert len(on_timeline(table, "clustering")) == 2
    plan.unlink()
    with pytest.raises(CorruptMetadataError, match=str(instant)):
        table.insert(ranked("a9"))
    table.rollback(str(instant))
    assert table.upsert(ranked("a1", n=5)).updated == 1


# --- after a commit
def test_a_clustering_is_due_after_some_commits(table: hudi.Table) -> None:
    def due(**options: str) -> list[tuple[bool, int]]:
        """What is clustered after a commit: whether it was run, and how many files."""
        named = {f"hoodie.clustering.{name.replace('_', '.')}": options[name] for name in options}
        given = OPTIONS | named
        opened, config = open_table(table.path, given), WriteConfig.from_options(given)
        done = cluster_if_due(opened, table_lock(opened, config), config, hudi.LocalEngine(1))
        return [(one.result is not None, one.files) for one in done]

    assert due() == []
    assert due(inline="true") == []
    assert due(inline="true", inline_max_commits="3") == [(True, 5)]
    table.insert(ranked("a7"))
    assert due(inline="true", inline_max_commits="2") == []
    assert due(schedule_inline="true") == []
    assert due(schedule_inline="true", async_max_commits="1") == [(False, 2)]
    assert due(schedule_inline="true", async_max_commits="1") == []
    assert due(inline="true") == [(True, 2)]


def test_a_write_clusters_where_options_ask(table: hudi.Table) -> None:
    sort = "hoodie.clustering.plan.strategy.sort.columns"
    inline = {"hoodie.clustering.inline": "true", sort: "n"}
    table.insert(ranked("a7"), options=inline)
    assert len(files(table)) == 2
    assert len(on_timeline(table, "replacecommit")) == 1
    table.upsert(ranked("a1", n=7), options=inline)
    assert len(on_timeline(table, "replacecommit")) == 1
    with pytest.raises(InvalidOptionError):
        table.insert(ranked("a8"), options={"hoodie.layout.optimize.strategy": "peano"})
    often = {"hoodie.clustering.inline.max.commits": "1", sort: "nothing"}
    table.insert(ranked("a8"), options=inline | often)  # the write stands
    assert len(held(table)) == 10


def test_the_commands_preview_schedule_and_run(table: hudi.Table) -> None:
    given = ("cluster", table.path, "--sort-by", "n,id", "--layout", "hilbert")
    preview = run_json(*given, "--dry-run")
    [group] = preview["clusterings"][0]["groups"][:1]
    assert (group["partition"], len(group["files"]), group["new_files"]) == ("a", 3, 1)
    assert preview["clusterings"][0]["instant"] is None
    assert "Nothing was changed" in run(*given, "--dry-run").stdout
    [planned] = run_json(*given, "--schedule")["clusterings"]
    assert planned["completed"] is None
    named = ("--run", "--instant", planned["instant"])
    [done] = run_json("cluster", table.path, *named)["clusterings"]
    assert (done["files"], done["new_files"]) == (5, 2)
    assert done["completed"] > done["instant"]
    assert run_json("optimize", table.path)["clusterings"] == []
    assert run("optimize", table.path).stdout.endswith("to rewrite.\n")
    assert run("cluster", table.path, "--run", "--dry-run").exit_code == 2


def test_progress_counts_groups(table: hudi.Table) -> None:
    seen: list[tuple[int, int]] = []
    table.optimize(progress=lambda done, total: seen.append((done, total)))
    assert sorted(seen) == [(1, 2), (2, 2)]


PLAN = "hoodie.clustering.plan.strategy."


def config(**options: object) -> ClusteringConfig:
    mode = {"hoodie.clustering.plan.partition.filter.mode": str(options.pop("mode", "NONE"))}
    named = {PLAN + name.replace("_", "."): str(value) for name, value in options.items()}
    return ClusteringConfig.from_options(mode | named)


def slices(sizes: Mapping[str, list[int]]) -> list[FileSlice]:
    """File slices with the sizes given, by partition; the later ones are younger."""
    found = []
    for partition, each in sizes.items():
        for number, size in enumerate(each):
            time = InstantTime(f"2024010100000{number:04d}")
            name = BaseFileName(FileId(f"{partition}{number}-0"), "0-2-0", time)
            status = FileStatus(f"{partition}/{name}", size)
            group = FileGroupId(PartitionPath(partition), name.file_id)
            found.append(FileSlice(group, time, BaseFile(status, name)))
    return found


A, B, C = ("a", [60, 50, 40, 30], 1), ("b", [70, 10], 1), ("c", [20], 1)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [A, B]),
        ({"small_file_limit": 45}, [("a", [40, 30], 1)]),
        ({"max_bytes_per_group": 110}, [("a", [60, 50], 1), ("a", [40, 30], 1), B]),
        ({"max_num_groups": 1}, [A]),
        ({"target_file_max_bytes": 60}, [(*A[:2], 3), (*B[:2], 2)]),
        ({"file_slices_sort_by": "instant_time"}, [("a", [50, 60, 30, 40], 1), B]),
        ({"sort_columns": "x"}, [A, B, C]),
        ({"single_group_clustering_enabled": "true"}, [A, B, C]),
    ],
)
def test_small_files_are_packed_into_groups(
    options: dict[str, object], expected: list[tuple[str, list[int], int]]
) -> None:
    files = slices({"b": [70, 10], "a": [50, 60, 30, 40], "c": [20]})
    groups = plan_groups(files, config(**options))
    found = [(one.partition_path, [file.size for file in one.files], one.outputs) for one in groups]
    assert found == expected


def test_busy_groups_and_large_files_are_left_out() -> None:
    found = slices({"a": [10, 20, 30]})
    [group] = plan_groups(found, config(small_file_limit=30))
    assert [file.size for file in group.files] == [20, 10]
    assert plan_groups(found, config(), {found[0].group, found[1].group}) == []


LAST = {"daybased_lookback_partitions": 3, "daybased_skipfromlatest_partitions": 1}
BETWEEN = {"cluster_begin_partition": "b", "cluster_end_partition": "d"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "abcde"),
        ({"partition_selected": "b,d,x"}, "bd"),
        ({"partition_regex_pattern": "[a-c]"}, "abc"),
        ({"partition_regex_pattern": "[a-c]", "partition_selected": "e"}, "e"),
        ({"mode": "RECENT_DAYS"}, "de"),
        ({"mode": "recent_days", **LAST}, "bcd"),
        ({"mode": "RECENT_DAYS", "daybased_lookback_partitions": 0}, "abcde"),
        ({"mode": "SELECTED_PARTITIONS", **BETWEEN}, "bcd"),
        ({"mode": "SELECTED_PARTITIONS"}, "abcde"),
        ({"mode": "DAY_ROLLING"}, "d"),
    ],
)
def test_partitions_are_chosen(options: dict[str, object], expected: str) -> None:
    found = chosen_partitions([PartitionPath(one) for one in "edcba"], config(**options), 3)
    assert "".join(found) == expected


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hoodie.layout.optimize.strategy", "peano"),
        ("hoodie.clustering.updates.strategy", "SparkMaybeUpdateStrategy"),
        (PLAN + "file.slices.sort.by", "NAME"),
        (PLAN + "partition.regex.pattern", "["),
        ("hoodie.clustering.plan.partition.filter.mode", "SOME"),
    ],
)
def test_options_that_cannot_be_used_are_refused(name: str, text: str) -> None:
    with pytest.raises(InvalidOptionError, match=name.replace(".", r"\.")):
        ClusteringConfig.from_options({name: text})


# --- curves
@pytest.mark.parametrize(("number", "bits"), [(1, 4), (2, 4), (3, 3), (4, 2), (5, 1)])
def test_curves_pass_every_point_once_and_hilbert_without_jumps(number: int, bits: int) -> None:
    points = np.array(list(itertools.product(range(1 << bits), repeat=number)), np.uint64)
    columns = [points[:, one].copy() for one in range(number)]
    for curve in (z_order, hilbert):
        places = curve(columns, bits)
        assert sorted(places.tolist()) == list(range(len(points)))
    steps = np.abs(np.diff(points[np.argsort(hilbert(columns, bits))].astype(np.int64), axis=0))
    assert set(steps.sum(axis=1).tolist()) == {1}


def test_bits_of_coordinates_fit_into_a_word() -> None:
    found = [bits_per_coordinate(number, 1 << 40) for number in (1, 2, 3, 8, 70)]
    assert found == [32, 32, 21, 8, 1]
    assert bits_per_coordinate(2, 5) == 3
    ranks = np.arange(1 << 10, dtype=np.uint64)
    spread = scaled(ranks, 32)
    assert (np.diff(spread.astype(np.int64)) > 0).all()
    assert int(spread[-1]) == (1 << 32) - 1


@pytest.mark.parametrize("layout", ClusteringOrder)
def test_rows_with_nulls_and_encoded_strings_are_ordered(layout: ClusteringOrder) -> None:
    words = pa.chunked_array([["b", None], ["a", "b", "c"]]).dictionary_encode()
    rows = pa.table({"w": words, "n": [2, 1, None, 1, 0], "s": [{"x": i} for i in range(5)]})
    order = row_order(rows, ["w", "n"], layout).to_pylist()
    assert sorted(order) == [0, 1, 2, 3, 4]
    if layout is ClusteringOrder.LINEAR:
        assert order == [1, 2, 3, 0, 4]
    assert row_order(rows, ["s.x"], layout).to_pylist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("layout", [ClusteringOrder.ZORDER, ClusteringOrder.HILBERT])
def test_a_curve_leaves_short_ranges_of_both_columns(layout: ClusteringOrder) -> None:
    random = np.random.default_rng(7)
    rows = pa.table({"x": random.random(4096), "y": random.integers(0, 1 << 40, 4096)})
    ordered = rows.take(row_order(rows, ["x", "y"], layout))
    for name, whole in (("x", 1.0), ("y", float(1 << 40))):
        values = ordered.column(name).to_numpy().reshape(16, 256)
        assert ((values.max(axis=1) - values.min(axis=1)) / whole).max() < 0.51
