"""Clusterings of tables that Hudi-Spark and this project share.

Each reads and writes what the other has clustered, and runs the plans that the other has made.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import PendingClusteringError
from tests.jvm.engines import Engine
from tests.tables import new_table

OPTIONS = {"hoodie.fs.fsync": "false", "hoodie.parquet.small.file.limit": "0"}
INDEXED = {"hoodie.metadata.record.index.enable": "true", "hoodie.index.type": "RECORD_INDEX"}
WAYS = {"default": {}, "listing": {"hoodie.metadata.enable": "false"}}
HUDI_OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.clean.automatic": "false",
}
Values = dict[int, tuple[str, float]]
versions = pytest.mark.parametrize("version", ["8", "9"])


def valued_rows(values: Values, ts: int) -> pa.Table:
    return pa.table(
        {
            "id": list(values),
            "city": [city for city, _ in values.values()],
            "v": [value for _, value in values.values()],
            "ts": [ts] * len(values),
        }
    )


def made(
    path: Path, version: str, more: Mapping[str, str] | None = None
) -> tuple[hudi.Table, Values]:
    """A table of six files, three in each partition."""
    table = new_table(
        path,
        valued_rows({1: ("A", 0.0)}, 0).schema,
        {**OPTIONS, **(more or {}), "hoodie.write.table.version": version},
        name="t",
    )
    held: Values = {}
    for ts in range(3):
        batch = {ts * 10 + one: ("AB"[one % 2], 1.0 / (1 + one + ts)) for one in range(6)}
        table.insert(valued_rows(batch, ts))
        held |= batch
    return table, held


def logged(
    path: Path, version: str, more: Mapping[str, str] | None = None
) -> tuple[hudi.Table, Values]:
    """The same table, whose logs change rows of both partitions and delete one of each."""
    options = {"hoodie.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}
    table, held = made(path, version, {**options, **(more or {})})
    changed = {1: ("B", 7.0), 10: ("A", 8.0), 24: ("A", 9.0)}
    table.upsert(valued_rows(changed, 10))
    held |= changed
    table.delete(valued_rows({one: held.pop(one) for one in (2, 13)}, 11))
    return hudi.Table.open(str(path), OPTIONS | options), held


def agree(engine: Engine, path: Path, held: Values) -> None:
    wanted = [(key, *held[key]) for key in sorted(held)]
    own = hudi.Table.open(str(path)).to_arrow(["id", "city", "v"]).sort_by("id").to_pylist()
    assert [(one["id"], one["city"], one["v"]) for one in own] == wanted
    for way, options in WAYS.items():
        found = engine.values(path, ["id", "city", "v"], None, options)
        assert sorted(tuple(one) for one in found) == wanted, way
    near = [key for key in sorted(held) if held[key][1] > 0.3]
    assert sorted(one[0] for one in engine.values(path, ["id"], "v > 0.3", {})) == near
    assert hudi.Table.open(str(path)).validate(keys=True).is_valid


def upsert_by_hudi(engine: Engine, path: Path, held: Values, changed: Values, **more: str) -> None:
    given = {**HUDI_OPTIONS, "hoodie.datasource.write.operation": "upsert"}
    engine.save(
        valued_rows(changed, 500),
        path,
        given | {name.replace("__", "."): one for name, one in more.items()},
    )
    held |= changed


@versions
@pytest.mark.parametrize("index", [{}, INDEXED], ids=["simple", "record index"])
def test_hudi_reads_and_writes_what_we_clustered(
    hudi_spark: Engine, tmp_path: Path, version: str, index: dict[str, str]
) -> None:
    path = tmp_path / "t"
    table, held = made(path, version, index)
    done = table.cluster(sort_by=["v", "ts"], layout="hilbert")
    assert (done.files, done.outputs) == (6, 2)
    agree(hudi_spark, path, held)
    more = {"hoodie__index__type": "RECORD_INDEX"} if index else {}
    upsert_by_hudi(hudi_spark, path, held, {0: ("A", 7.0), 11: ("B", 8.0), 99: ("A", 9.0)}, **more)
    agree(hudi_spark, path, held)
    table = hudi.Table.open(str(path), OPTIONS | index)
    assert table.upsert(valued_rows({1: ("B", 5.0), 99: ("A", 4.0)}, 600)).updated == 2
    held |= {1: ("B", 5.0), 99: ("A", 4.0)}
    assert table.optimize().files == 0
    last = table.cluster(sort_by="ts").instant
    agree(hudi_spark, path, held)
    if not index:  # a compaction of the metadata table has taken its keys
        table.rollback(str(last))
        agree(hudi_spark, path, held)


@versions
def test_hudi_runs_our_plan(hudi_spark: Engine, tmp_path: Path, version: str) -> None:
    path = tmp_path / "t"
    table, held = made(path, version)
    planned = table.cluster(sort_by="v", partitions="A", schedule_only=True)
    agree(hudi_spark, path, held)
    hudi_spark.sql(f"call run_clustering(path => '{path}', op => 'execute')")
    table = hudi.Table.open(str(path), OPTIONS)
    assert table.timeline.completed_writes()[-1].requested_time == planned.instant
    assert len(table.file_slices()) == 4
    agree(hudi_spark, path, held)
    table.cluster(sort_by="v")
    agree(hudi_spark, path, held)


@versions
def test_we_run_the_plan_of_hudi(hudi_spark: Engine, tmp_path: Path, version: str) -> None:
    path = tmp_path / "t"
    table, held = made(path, version)
    hudi_spark.sql(f"call run_clustering(path => '{path}', op => 'schedule', order => 'v')")
    with pytest.raises(PendingClusteringError):
        table.upsert(valued_rows({1: ("B", 5.0)}, 60))
    table = hudi.Table.open(str(path), {**OPTIONS, "hoodie.parquet.small.file.limit": "104857600"})
    table.insert(valued_rows({70: ("A", 0.1)}, 60))
    held[70] = ("A", 0.1)
    [done] = table.run_clusterings()
    assert done.files == 6
    agree(hudi_spark, path, held)
    upsert_by_hudi(hudi_spark, path, held, {1: ("B", 6.0), 70: ("A", 2.0)})
    agree(hudi_spark, path, held)


@versions
@pytest.mark.parametrize("block", ["parquet", "avro"])
def test_hudi_merges_the_logs_of_our_plan(
    hudi_spark: Engine, tmp_path: Path, version: str, block: str
) -> None:
    path = tmp_path / "t"
    table, held = logged(path, version, {"hoodie.logfile.data.block.format": block})
    agree(hudi_spark, path, held)
    planned = table.cluster(sort_by="v", partitions="A", schedule_only=True)
    assert planned.logs == 3
    hudi_spark.sql(f"call run_clustering(path => '{path}', op => 'execute')")
    table = hudi.Table.open(str(path), OPTIONS)
    assert table.timeline.completed_writes()[-1].requested_time == planned.instant
    agree(hudi_spark, path, held)
    assert table.cluster(sort_by="v").logs == 2
    agree(hudi_spark, path, held)


@versions
def test_we_merge_the_logs_of_a_plan_of_hudi(
    hudi_spark: Engine, tmp_path: Path, version: str
) -> None:
    path = tmp_path / "t"
    table, held = logged(path, version)
    hudi_spark.sql(f"call run_clustering(path => '{path}', op => 'schedule', order => 'v')")
    [done] = table.run_clusterings()
    assert (done.files, done.logs) == (6, 5)
    agree(hudi_spark, path, held)
    upsert_by_hudi(hudi_spark, path, held, {1: ("B", 6.0), 14: ("A", 2.0)})
    agree(hudi_spark, path, held)
    hudi.Table.open(str(path)).purge()
    agree(hudi_spark, path, held)


def test_hudi_sees_no_change_in_a_clustering(hudi_spark: Engine, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table, _ = made(path, "8")
    last = table.timeline.completed_writes()[-1]
    done = table.cluster(sort_by="v")
    assert done.result is not None

    def changes(begin: str | None) -> list[Any]:
        given = {
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.read.begin.instanttime": str(begin),
        }
        return hudi_spark.values(path, ["id"], None, given)

    assert changes(last.completion_time) == []
    assert len(changes(table.timeline.completed_writes()[0].completion_time)) == 12
