"""Clusterings of a table: what readers and writers meet, and what dead ones leave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.actions.clustering import read_clustering
from hudi_core.errors import (
    CommitConflictError,
    SchemaError,
    TableServiceError,
    UnknownPartitionError,
)
from hudi_core.services.clustering import Clustering
from hudi_core.services.opening import open_table
from hudi_core.write import clustered_rows
from tests.foreign import by_hudi_rs
from tests.unit.clustering.clustered_tables import (
    OPTIONS,
    SCHEMA,
    files,
    held,
    made,
    on_disk,
    on_timeline,
    rows,
)

META = ["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name"]


# --- what is rewritten ----------------------------------------------------------------------------


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
def test_large_groups_are_sorted_part_by_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    """They come out as those that are sorted in memory."""

    def clustered(name: str) -> list[Any]:
        schema = pa.schema([*SCHEMA, ("word", pa.string()), ("in", pa.struct({"x": pa.float64()}))])
        table = hudi.Table.create(str(tmp_path / name), schema, record_key="id", options=OPTIONS)
        for number in range(4):
            found = rows(*(f"a{number}-{one}" for one in range(50)), n=number)
            words = pa.array([None if one == 7 else "wv"[one % 2] for one in range(50)])
            inner = [{"x": one * number % 17 - 3.5} for one in range(50)]
            table.insert(found.append_column("word", words).append_column("in", [inner]))
        size = {"hoodie.clustering.plan.strategy.target.file.max.bytes": "4000"}
        table.cluster(sort_by=["word", "in.x", "n", "id"], layout=layout, options=size)
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
    table.upsert(rows("a1", n=5))
    [row] = table.incremental(begin=done.result.instant.completion_time).to_pylist()
    assert row["id"] == "a1"


def test_indexes_follow_the_rows(tmp_path: Path) -> None:
    index = {
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.metadata.index.bloom.filter.enable": "true",
        "hoodie.index.type": "RECORD_INDEX",
    }
    table = made(tmp_path / "t", index)
    table.cluster(sort_by="n")
    assert table.validate(keys=True).is_valid
    assert table.upsert(rows("a1", "a6", "b2", n=9)).updated == 3
    assert table.delete(rows("a2")).deleted == 1
    assert table.validate(keys=True).is_valid


def test_columns_that_came_later_are_in_the_new_files(table: hudi.Table) -> None:
    table.alter(add_columns={"note": pa.string()}, rename={"n": "number"})
    before = held(table)
    table.cluster(sort_by="number")
    assert held(table) == before


def test_nothing_to_rewrite_leaves_no_trace(tmp_path: Path) -> None:
    table = hudi.Table.create(str(tmp_path / "t"), SCHEMA, record_key="id", options=OPTIONS)
    assert table.cluster() == table.cluster(schedule_only=True) == Clustering(table.path)
    table.insert(rows("a1"))
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
    assert table.upsert(rows("a1", n=3)).updated == 1
    assert table.cluster().files == 5


def test_a_restore_takes_a_clustering_back(table: hudi.Table) -> None:
    before, there, saved = held(table), on_disk(table), table.savepoint()
    table.cluster(sort_by="n")
    table.upsert(rows("a1", n=3))
    planned = table.cluster(sort_by="n", schedule_only=True)
    table.restore(saved.instant)
    assert (held(table), on_disk(table)) == (before, there)
    assert on_timeline(table, "clustering") == [f"{planned.instant}.clustering.requested"]
    with pytest.raises(CommitConflictError):  # its files are gone
        table.run_clusterings()
    assert table.cluster().files == 5
