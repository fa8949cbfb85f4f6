"""Every table service of tables that executors write, in three formats, on disk and on S3.

Clusterings run on the executors, and so does what others do with many files; the driver plans.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hudi_core as hudi
from hudi_core.engine.spark import SparkEngine
from hudi_core.model.instant import Action
from hudi_core.services.metadata import MetadataOperator
from tests.cluster.written import (
    STORES,
    WatchedEngine,
    every_file_a_task,
    frame,
    made,
    require_right,
)
from tests.crash.check_table import ACKED, Tried
from tests.crash.place import Place
from tests.crash.rows import CHANGED, Held, as_table, dropping, putting
from tests.operators import operator
from tests.tables import FORMATS

TIGHT = {
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}
AGAIN: Held = {"b": ("x", 7), "d": ("y", 7)}
MORE: Held = {"k1": ("x", 1), "k2": ("x", 2)}

Service = Callable[[hudi.Table, SparkSession, SparkEngine], None]


def clean(table: hudi.Table, spark: SparkSession, engine: SparkEngine) -> None:
    done = table.clean(options=TIGHT, engine=engine)
    assert done.files


def archive(table: hudi.Table, spark: SparkSession, engine: SparkEngine) -> None:
    table.clean(options=TIGHT)
    assert table.archive(options=TIGHT).instants


def cluster(table: hudi.Table, spark: SparkSession, engine: SparkEngine) -> None:
    done = table.cluster(sort_by=["ts", "id"], layout="z-order", engine=engine)
    assert done.files
    assert done.result is not None


def run_scheduled(table: hudi.Table, spark: SparkSession, engine: SparkEngine) -> None:
    table.cluster(sort_by="ts", schedule_only=True)
    [done] = table.run_clusterings(engine=engine)
    assert done.result is not None


def cluster_inline(table: hudi.Table, spark: SparkSession, engine: SparkEngine) -> None:
    due = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1"}
    table.bulk_insert(frame(spark, MORE, 2), options=due, engine=engine)
    assert "CLUSTER" in table.history().column("operation").to_pylist()


def optimize(table: hudi.Table, spark: SparkSession, engine: SparkEngine) -> None:
    table.bulk_insert(frame(spark, MORE, 2), engine=engine)
    assert table.optimize(engine=engine).files


def savepoint(table: hudi.Table, spark: SparkSession, engine: SparkEngine) -> None:
    kept = table.savepoint(comment="kept").instant
    assert [one.instant for one in table.savepoints] == [kept]
    table.delete_savepoint(kept)
    assert not table.savepoints


def restore(table: hudi.Table, spark: SparkSession, engine: SparkEngine) -> None:
    kept = table.savepoint().instant
    table.upsert(frame(spark, {"later": ("x", 9)}), engine=engine)
    table.delete(frame(spark, {"d": ("y", 9)}), engine=engine)
    table.restore(kept, engine=engine)
    table.delete_savepoint(kept)


def rollback(table: hudi.Table, spark: SparkSession, engine: SparkEngine) -> None:
    # after a compaction an index of keys cannot go back
    later = {"hoodie.metadata.compact.max.delta.commits": "100"}
    table.upsert(frame(spark, {"later": ("x", 9)}), options=later, engine=engine)
    table.rollback(table.timeline.completed_writes()[-1], engine=engine)


def purge(table: hudi.Table, spark: SparkSession, engine: SparkEngine) -> None:
    table.delete(frame(spark, {"n": ("z", 9)}), engine=engine)
    assert table.purge(engine=engine).files


def rebuild_metadata(table: hudi.Table, spark: SparkSession, engine: SparkEngine) -> None:
    options = dict(table._session.options)
    for act in (MetadataOperator.delete, MetadataOperator.create):
        act(operator(table.path, options))
    table.upsert(frame(spark, AGAIN), engine=engine)
    kinds = {one.action for one in table.timeline.instants}
    assert Action.COMMIT in kinds


SERVICES: dict[str, tuple[Service, Held, tuple[str, ...]]] = {
    "clean": (clean, {}, ()),
    "archive": (archive, {}, ()),
    "cluster": (cluster, {}, ()),
    "run_scheduled": (run_scheduled, {}, ()),
    "cluster_inline": (cluster_inline, MORE, ()),
    "optimize": (optimize, MORE, ()),
    "savepoint": (savepoint, {}, ()),
    "restore": (restore, {}, ()),
    "rollback": (rollback, {}, ()),
    "purge": (purge, {}, ("n",)),
    "rebuild_metadata": (rebuild_metadata, AGAIN, ()),
}


@pytest.mark.parametrize("name", SERVICES)
@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("place", STORES, indirect=True)
def test_services_beside_writes_on_executors(
    name: str, format_name: str, place: Place, spark: SparkSession, tmp_path: Path
) -> None:
    table = made(place, format_name)
    engine = WatchedEngine(spark, tmp_path / "pids")
    first = Tried("first", putting(CHANGED), ACKED)
    table.upsert(frame(spark, CHANGED), engine=engine)
    second = Tried("second", putting({"a": ("x", 6), "s": ("y", 6)}), ACKED)
    table.upsert(frame(spark, {"a": ("x", 6), "s": ("y", 6)}), engine=engine)
    ran = len(engine.processes())

    service, rows, gone = SERVICES[name]
    with every_file_a_task():
        service(table, spark, engine)

    assert ran
    assert os.getpid() not in engine.processes()
    third = Tried(name, lambda held: dropping(*gone)({**held, **rows}), ACKED)
    # who comes next writes in its own process, and leaves nothing behind
    last = Tried("last", putting({"last": ("y", 8)}), ACKED)
    place.open().upsert(as_table({"last": ("y", 8)}))
    require_right(place, [first, second, third, last])
