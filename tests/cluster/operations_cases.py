"""Every write operation with its tasks on executors, in three formats, on disk and on S3."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hudi_core as hudi
from hudi_core.engine.spark import SparkEngine
from tests.cluster.standalone import Cluster
from tests.cluster.written import STORES, WatchedEngine, frame, made, require_right
from tests.crash.check_table import ACKED, Tried
from tests.crash.place import Place
from tests.crash.rows import Effect, Held, as_table, dropping, putting, replacing
from tests.tables import FORMATS

SPREAD: Held = {f"n{at}": ("xyz"[at % 3], 5) for at in range(40)}
CHANGED: Held = {"a": ("x", 5), "c": ("y", 5), **SPREAD}
NEW: Held = {f"m{at}": ("xyz"[at % 3], 5) for at in range(40)}
REPLACED: Held = {f"q{at}": ("x", 5) for at in range(40)}
GONE: Held = {"a": ("x", 9), "c": ("y", 9)}

Operation = Callable[[hudi.Table, SparkSession, SparkEngine], object]


def written(name: str, rows: Held, **more: object) -> Operation:
    return lambda table, spark, engine: getattr(table, name)(
        frame(spark, rows), engine=engine, **more
    )


OPERATIONS: dict[str, tuple[Operation, Effect]] = {
    "insert": (written("insert", NEW), putting(NEW)),
    "upsert": (written("upsert", CHANGED), putting(CHANGED)),
    "upsert_by_index": (
        written("upsert", CHANGED, options={"hoodie.index.type": "RECORD_INDEX"}),
        putting(CHANGED),
    ),
    "bulk_insert": (written("bulk_insert", NEW), putting(NEW)),
    "bulk_insert_sorted": (
        written("bulk_insert", NEW, options={"hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"}),
        putting(NEW),
    ),
    "delete": (written("delete", GONE), dropping(*GONE)),
    "insert_overwrite": (written("insert_overwrite", REPLACED), replacing("x", REPLACED)),
    "insert_overwrite_table": (written("insert_overwrite_table", NEW), lambda _: NEW),
    "delete_partitions": (
        lambda table, spark, engine: table.delete_partitions(["x"]),
        replacing("x", {}),
    ),
}
ON_DRIVER = ("delete_partitions",)


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("place", STORES, indirect=True)
def test_operations_run_on_executors(
    name: str,
    format_name: str,
    place: Place,
    spark: SparkSession,
    standalone: Cluster,
    tmp_path: Path,
) -> None:
    table = made(place, format_name)
    operation, effect = OPERATIONS[name]
    engine = WatchedEngine(spark, tmp_path / "pids")
    operation(table, spark, engine)

    # who comes next removes what a second attempt of a slow task has left
    place.open().upsert(as_table({"last": ("y", 8)}))
    last = Tried("last", putting({"last": ("y", 8)}), ACKED)
    require_right(place, [Tried(name, effect, ACKED), last])
    ran = engine.processes()
    assert os.getpid() not in ran
    assert bool(ran) == (name not in ON_DRIVER)
    below = {
        child.pid for one in standalone.executors() for child in standalone.python_workers(one)
    }
    # the process of an attempt that another one overtook is killed
    assert bool(ran & below) == bool(ran)
