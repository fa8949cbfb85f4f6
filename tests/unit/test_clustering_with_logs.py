"""Clusterings of file groups whose changed rows are in log files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_core as hudi
from hudi_core.actions.clustering import plan_body, read_clustering
from hudi_core.errors import (
    CommitConflictError,
    CorruptMetadataError,
    HistoryExpiredError,
    PendingClusteringError,
)
from hudi_core.metadata.partition_types import COLUMN_STATS, RECORD_INDEX
from hudi_core.model.files import LogFileName
from hudi_core.services.clustering import Clustering, ClusteringService
from hudi_core.services.opening import open_table
from hudi_core.write import clustered_rows
from tests.foreign import by_hudi_rs
from tests.operators import operator
from tests.tables import copied, new_table

COLUMNS: Final = pa.schema(
    [("id", pa.string()), ("part", pa.string()), ("n", pa.int64()), ("w", pa.string())]
)
SMALL: Final = {"hoodie.parquet.small.file.limit": "0", "hoodie.compact.inline": "false"}
INDEXES: Final = {
    **SMALL,
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
}
NONE: Final = {**SMALL, "hoodie.metadata.enable": "false"}
SEVERAL: Final = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
ALLOW: Final = {"hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy"}
MERGED: Final = [
    *(("a1", "a", 1), ("a2", "a", 92), ("a4", "a", 4), ("a5", "a", 95)),
    *(("b1", "b", 91), ("b2", "b", 2)),
]
"""Rows of :func:`made`."""


def some(*ids: str, n: int = 0) -> pa.Table:
    """Rows whose keys begin with their partition, and end with their number."""
    numbers = [n + int(one[1:]) for one in ids]
    words = [f"w{number % 3}" for number in numbers]
    return pa.table([ids, [one[0] for one in ids], numbers, words], COLUMNS.names).cast(COLUMNS)


def made(path: Path, options: Mapping[str, str] = INDEXES) -> hudi.Table:
    """A table of three file groups in ``a`` and one in ``b``: of all but one logs change rows."""
    table = new_table(path, COLUMNS, options, table_type="MERGE_ON_READ", ordering_field="n")
    table.insert(some("a1", "a2", "b1", "b2"))
    table.insert(some("a3", "a5"))
    table.insert(some("a4"))
    table.upsert(some("a2", "b1", n=90))
    table.delete(some("a3", n=90))
    table.upsert(some("a5", n=90))
    return hudi.Table.open(path, options)


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    return copied(tmp_path / "t", made)


def held(table: hudi.Table, as_of: str | None = None) -> list[tuple[Any, ...]]:
    """The rows of a table, on which hudi-rs agrees."""
    again = hudi.Table.open(table.path)
    rows = again.to_arrow(["id", "part", "n"], as_of=as_of).to_pylist()
    found = sorted(tuple(one.values()) for one in rows)
    if as_of is None:
        theirs = [(one["id"], one["part"], one["n"]) for one in by_hudi_rs(table.path)]
        assert sorted(theirs) == found
    return found


def in_order(table: hudi.Table) -> list[tuple[Any, ...]]:
    """The rows of a table that is found to be right."""
    report = hudi.Table.open(table.path).validate(keys=True)
    assert report.differences == ()
    return held(table)


def logs(table: hudi.Table) -> int:
    return sum(len(one.log_files) for one in hudi.Table.open(table.path).file_slices())


def time_of(table: hudi.Table, number: int) -> str:
    return str(table.timeline.completed_writes()[number].requested_time)


# --- what is rewritten ----------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize("block", ["parquet", "avro"])
def test_logs_are_merged_into_the_new_files(version: str, block: str, tmp_path: Path) -> None:
    options = {
        **INDEXES,
        "hoodie.write.table.version": version,
        "hoodie.logfile.data.block.format": block,
    }
    table = made(tmp_path / "t", options)
    assert in_order(table) == MERGED
    times = {one["id"]: one["_hoodie_commit_time"] for one in table.to_arrow().to_pylist()}
    last = time_of(table, -1)
    planned = table.cluster(dry_run=True)
    assert (planned.files, planned.logs) == (3, 3)
    own = [one for one in table.file_slices() if one.partition_path == "a"]
    assert planned.size == sum(one.total_size for one in own)
    done = table.cluster()
    assert (done.files, done.logs, done.new_files) == (3, 3, 1)
    assert in_order(table) == MERGED
    assert logs(table) == 1  # of the only file group of b
    after = hudi.Table.open(table.path)
    # rows are those of their commits: no reader of changes sees them again
    rows = after.to_arrow().to_pylist()
    assert {one["id"]: one["_hoodie_commit_time"] for one in rows} == times
    assert after.incremental(last).num_rows == 0
    assert held(table, time_of(after, 3))[0:3] == [("a1", "a", 1), ("a2", "a", 92), ("a3", "a", 3)]
    assert held(table, last) == MERGED


@pytest.mark.parametrize("layout", ["linear", "hilbert"])
@pytest.mark.parametrize("options", [INDEXES, NONE], ids=["indexes", "no metadata table"])
def test_merged_rows_are_sorted(options: Mapping[str, str], layout: str, tmp_path: Path) -> None:
    table = copied(tmp_path / "t", made, options)
    target = {"hoodie.clustering.plan.strategy.target.file.max.bytes": "9000"}
    table.cluster(sort_by=["n", "id"], layout=layout, options=target)
    assert (logs(table), in_order(table)) == (0, MERGED)
    by_file: dict[str, list[int]] = {}
    for one in hudi.Table.open(table.path).to_arrow().to_pylist():
        by_file.setdefault(one["_hoodie_file_name"], []).append(one["n"])
    assert len(by_file) >= 3
    assert layout != "linear" or all(own == sorted(own) for own in by_file.values())


@pytest.mark.parametrize("sort_by", [["n"], ["n", "id"], []])
@pytest.mark.parametrize("memory", ["1", "1000000"])
def test_large_groups_are_sorted_in_parts(
    sort_by: list[str], memory: str, table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few rows of logs are in memory, and few of the group."""
    monkeypatch.setattr(clustered_rows, "_PART_BYTES", 8000)
    options = {"hoodie.memory.merge.max.size": memory}
    assert table.cluster(sort_by=sort_by, options=options).files >= 3
    found = hudi.Table.open(table.path).to_arrow(["n"], pc.field("part") == "a")
    if sort_by:
        assert found.column("n").to_pylist() == [1, 4, 92, 95]
    assert in_order(table) == MERGED


def test_all_rows_of_a_group_may_be_deleted(table: hudi.Table) -> None:
    table.delete(some("a1", "a2", "a4", "a5", n=100))
    table.cluster()
    assert in_order(table) == MERGED[4:]
    table.upsert(some("a1"))
    assert in_order(table) == [("a1", "a", 1), *MERGED[4:]]


def test_virtual_keys_and_storage_paths(tmp_path: Path) -> None:
    for number, more in enumerate(
        (
            {"hoodie.recordkey.virtual.enabled": "true"},
            {"hoodie.populate.meta.fields": "false"},
            {
                "hoodie.storage.path": str(tmp_path / "store"),
                "hoodie.storage.strategy.class": "object_store",
            },
        )
    ):
        table = made(tmp_path / f"t{number}", {**INDEXES, **more})
        before = hudi.Table.open(table.path).to_arrow(["id", "n"]).sort_by("id")
        assert table.cluster(sort_by="n").logs == 4
        after = hudi.Table.open(table.path)
        assert after.to_arrow(["id", "n"]).sort_by("id") == before
        assert after.validate(keys=True).differences == ()
        after.upsert(some("a1", "a9", n=200))
        assert hudi.Table.open(table.path).to_arrow(["id"]).num_rows == 7


def test_indexes_follow_the_merged_rows(table: hudi.Table) -> None:
    operator(table.path, INDEXES).index("secondary_index_w", "w")
    table = hudi.Table.open(table.path, INDEXES)
    table.cluster(sort_by="n")
    after = hudi.Table.open(table.path, INDEXES)
    groups = {one.file_id for one in after.file_slices()}
    places = after.metadata(RECORD_INDEX).to_pylist()
    assert len(places) == 6
    assert {one["file_id"] for one in places} == groups
    names = {one["file_name"] for one in after.metadata(COLUMN_STATS).to_pylist()}
    present = {one.base_file.status.name for one in after.file_slices() if one.base_file}
    assert present <= names
    assert sorted(after.to_arrow(["id"], pc.field("w") == "w2").column("id").to_pylist()) == sorted(
        one for one, _, n in MERGED if n % 3 == 2
    )
    assert in_order(after) == MERGED
    after.upsert(some("a1", "b1", n=200))
    after.delete(some("a4", n=200))
    changed = {"a1": ("a1", "a", 201), "b1": ("b1", "b", 201)}
    assert in_order(after) == [changed.get(one[0], one) for one in MERGED if one[0] != "a4"]


def test_a_window_with_changes_and_a_clustering(table: hudi.Table) -> None:
    begin = time_of(table, 2)
    wanted = sorted(table.incremental(begin, columns=["id", "n"]).to_pylist(), key=str)
    feed = changes(table, begin)
    table.cluster()
    again = hudi.Table.open(table.path)
    assert changes(again, begin) == feed
    assert sorted(again.incremental(begin, columns=["id", "n"]).to_pylist(), key=str) == wanted
    again.upsert(some("a1", n=300))
    again = hudi.Table.open(table.path)
    found = again.incremental(begin, columns=["id", "n"]).to_pylist()
    assert sorted(found, key=str) == sorted([*wanted, {"id": "a1", "n": 301}], key=str)
    assert [one for one in changes(again, begin) if one not in feed] == [("a1", 301, "update")]


def changes(table: hudi.Table, begin: str) -> list[tuple[Any, ...]]:
    found = table.diff(begin, None).to_pylist()
    return sorted((one["id"], one["n"], one["_change_type"]) for one in found)


# --- what it is taken back by ---------------------------------------------------------------------


@pytest.mark.parametrize("options", [INDEXES, NONE], ids=["indexes", "no metadata table"])
def test_a_clustering_is_taken_back(options: Mapping[str, str], tmp_path: Path) -> None:
    table = copied(tmp_path / "t", made, options)
    table.cluster(sort_by="n")
    table.rollback(time_of(table, -1))
    assert (logs(table), in_order(table)) == (4, MERGED)
    table.upsert(some("a1", "a3", n=300))
    wanted = sorted([("a1", "a", 301), ("a3", "a", 303), *MERGED[1:]])
    assert in_order(table) == wanted
    table.cluster(sort_by="n")
    assert in_order(table) == wanted
    table = hudi.Table.open(table.path, options)
    table.restore(time_of(table, 3))
    assert in_order(table)[:4] == [("a1", "a", 1), ("a2", "a", 92), ("a3", "a", 3), ("a4", "a", 4)]


def test_logs_of_replaced_groups_are_cleaned(table: hudi.Table) -> None:
    there = {one for one in Path(table.path).rglob(".*.log.*") if ".hoodie" not in one.parts}
    before = time_of(table, -1)
    saved = table.savepoint(before)
    table.cluster(sort_by="n")
    for n in (100, 200):
        table.upsert(some("a1", n=n))
    few = {"hoodie.cleaner.commits.retained": "1"}
    table.clean(options=few)
    assert held(table, before) == MERGED
    table.delete_savepoint(saved.instant)
    assert set(table.clean(options=few).files) >= {
        str(one.relative_to(table.path)) for one in there
    }
    with pytest.raises(HistoryExpiredError):
        held(table, before)
    assert in_order(table) == [("a1", "a", 201), *MERGED[1:]]


# --- beside others --------------------------------------------------------------------------------

WRITES: dict[str, Callable[[hudi.Table], Any]] = {
    "upsert": lambda table: table.upsert(some("a1", n=500)),
    "delete": lambda table: table.delete(some("a1", n=500)),
    "update": lambda table: table.update({"n": "n + 500"}, "id = 'a1'"),
    "delete_where": lambda table: table.delete(where="id = 'a1'"),
    "insert_overwrite": lambda table: table.insert_overwrite(some("a9")),
    "delete_partitions": lambda table: table.delete_partitions(["a"]),
}


@pytest.mark.parametrize("name", WRITES)
def test_logs_of_groups_in_clustering_are_rejected_or_win(name: str, table: hudi.Table) -> None:
    instant = table.cluster(partitions="a", schedule_only=True).instant
    before = logs(table)
    with pytest.raises(PendingClusteringError, match=str(instant)):
        WRITES[name](table)
    assert (held(table), logs(table)) == (MERGED, before)
    assert table.upsert(some("b1", n=500)).updated == 1
    WRITES[name](hudi.Table.open(table.path, INDEXES | ALLOW))
    after = held(table)
    with pytest.raises(CommitConflictError, match=str(instant)):
        table.run_clusterings()
    assert in_order(table) == after
    assert all(one.is_completed for one in hudi.Table.open(table.path).timeline.instants)


def test_a_log_of_a_write_that_began_before_the_plan_is_kept(table: hudi.Table) -> None:
    """No plan keeps it off the group, as it had looked for plans before."""
    options = INDEXES | SEVERAL
    given = some("a1", n=500)

    def batches() -> Iterator[pa.RecordBatch]:
        hudi.Table.open(table.path, options).cluster(schedule_only=True)
        yield from given.to_batches()

    writer = hudi.Table.open(table.path, options)
    writer.upsert(pa.RecordBatchReader.from_batches(given.schema, batches()))
    wanted = [("a1", "a", 501), *MERGED[1:]]
    assert held(table) == wanted
    with pytest.raises(CommitConflictError, match="changed file group"):
        table.run_clusterings()
    assert in_order(table) == wanted
    assert table.cluster().logs == 4
    assert in_order(table) == wanted


@pytest.mark.parametrize("is_scheduled", [False, True])
def test_a_log_that_comes_while_files_are_rewritten_wins(
    is_scheduled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = INDEXES | SEVERAL
    table = made(tmp_path / "t", options)
    rewrite = ClusteringService._rewrite

    def slow(self: ClusteringService, *arguments: Any) -> Any:
        found = rewrite(self, *arguments)
        monkeypatch.undo()
        hudi.Table.open(table.path, options | ALLOW).upsert(some("a1", n=500))
        return found

    if is_scheduled:
        table.cluster(schedule_only=True)
    monkeypatch.setattr(ClusteringService, "_rewrite", slow)
    with pytest.raises(CommitConflictError, match="file group"):
        _ = table.run_clusterings() if is_scheduled else table.cluster()
    assert in_order(table) == [("a1", "a", 501), *MERGED[1:]]


def test_a_clustering_wins_over_a_log_that_it_has_not_seen(table: hudi.Table) -> None:
    options = INDEXES | SEVERAL
    given = some("a1", n=500)

    def batches() -> Iterator[pa.RecordBatch]:
        hudi.Table.open(table.path, options).cluster()
        yield from given.to_batches()

    writer = hudi.Table.open(table.path, options)
    with pytest.raises(CommitConflictError, match="file group"):
        writer.upsert(pa.RecordBatchReader.from_batches(given.schema, batches()))
    assert in_order(table) == MERGED
    writer.upsert(given)
    assert in_order(table) == [("a1", "a", 501), *MERGED[1:]]


def test_clusterings_and_compactions_share_no_group(table: hudi.Table) -> None:
    clustering = table.cluster(partitions="a", schedule_only=True)
    compaction = table.compact(schedule_only=True)
    assert {one.partition_path for one in compaction.slices} == {"b"}
    assert table.cluster(sort_by="n") == Clustering(table.path)
    [done] = table.run_compactions()
    assert done.instant == compaction.instant
    [clustered] = table.run_clusterings()
    assert (clustered.instant, clustered.logs) == (clustering.instant, 3)
    assert (logs(table), in_order(table)) == (0, MERGED)


def test_a_plan_of_files_that_were_compacted_is_given_up(table: hudi.Table) -> None:
    """As another engine may do to them."""
    planned = table.cluster(partitions="a", schedule_only=True)
    body = Path(table.path, f".hoodie/timeline/{planned.instant}.clustering.requested")
    held_back = body.read_bytes()
    body.unlink()
    table.compact()
    body.write_bytes(held_back)
    with pytest.raises(CommitConflictError, match=str(planned.instant)):
        table.run_clusterings()
    assert in_order(table) == MERGED


def test_a_dead_one_is_undone(table: hudi.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(ClusteringService, "_rewrite", die)
    with pytest.raises(KeyboardInterrupt):
        table.cluster()
    monkeypatch.undo()
    table.upsert(some("a1", n=500))
    assert in_order(table) == [("a1", "a", 501), *MERGED[1:]]


# --- plans of others ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda path: f"/etc{path}",
        lambda path: path.replace("/a/", "/a/../b/"),
        lambda path: path.replace("/a/", "/b/"),
        lambda path: path.replace("/a/.", "/a/.x"),
        lambda path: f"{path}.txt",
        lambda path: f"../{path.rpartition('/')[2]}",
        lambda _: "",
    ],
)
def test_a_forged_plan_changes_nothing(table: hudi.Table, change: Callable[[str], str]) -> None:
    planned = table.cluster(partitions="a", schedule_only=True)
    rewritten(table, change)
    with pytest.raises(CorruptMetadataError, match="log file"):
        table.run_clusterings()
    assert held(table) == MERGED
    table.rollback(str(planned.instant))
    assert in_order(table) == MERGED


def test_a_plan_may_name_logs_without_their_folders(table: hudi.Table) -> None:
    table.cluster(partitions="a", schedule_only=True)
    rewritten(table, lambda path: path.rpartition("/")[2])
    assert table.run_clusterings()[0].logs == 3
    assert in_order(table) == MERGED


def test_a_plan_that_knows_less_logs_is_given_up(table: hudi.Table) -> None:
    planned = table.cluster(partitions="a", schedule_only=True)
    rewritten(table, None)
    with pytest.raises(CommitConflictError, match=str(planned.instant)):
        table.run_clusterings()
    assert in_order(table) == MERGED


def rewritten(table: hudi.Table, change: Callable[[str], str] | None) -> None:
    """Change the names of logs in the plan of a clustering; ``None`` takes them out."""
    client = open_table(table.path, INDEXES).client
    [pending] = client.timeline().pending()
    plan = read_clustering(client, pending).plan
    groups = []
    for group in plan.input_groups or ():
        slices = []
        for one in group.slices or ():
            paths = one.delta_file_paths or ()
            assert all(LogFileName.parse(path.rpartition("/")[2]) for path in paths)
            names = () if change is None else tuple(map(change, paths))
            slices.append(replace(one, delta_file_paths=names))
        groups.append(replace(group, slices=tuple(slices)))
    body = plan_body(replace(plan, input_groups=tuple(groups)), at_once=False)
    name = f"{pending.requested_time}.clustering.requested"
    Path(table.path, ".hoodie/timeline", name).write_bytes(body)
