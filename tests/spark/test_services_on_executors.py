"""Table services by Spark's executors: they leave what threads of the driver leave."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.engine.base import Engine
from hudi_core.engine.spark import SparkEngine
from tests import tables
from tests.tables import SCHEMA

pytestmark = pytest.mark.spark

PARTITIONS = 40
"""More than the files from which on a job is worth its beginning."""
OPTIONS = {"hoodie.metadata.enable": "false", "hoodie.fs.fsync": "false"}
Service = Callable[[hudi.Table, Engine], object]


def one_each(ts: int) -> pa.Table:
    found = [{"id": f"k{n:02}", "part": f"p{n:02}", "ts": ts} for n in range(PARTITIONS)]
    return pa.Table.from_pylist(found, SCHEMA)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with three versions of a file in each partition."""
    path = tmp_path_factory.mktemp("written") / "t"
    table = tables.new_table(path, SCHEMA, OPTIONS, ordering_field=None)
    for ts in (1, 2, 3):
        table.upsert(one_each(ts))
    return path


def clean(table: hudi.Table, engine: Engine) -> object:
    few = {"hoodie.cleaner.commits.retained": "1"}
    return len(table.clean(options=few, engine=engine).files)


def rollback(table: hudi.Table, engine: Engine) -> object:
    return table.rollback(table.timeline.completed_writes()[-1], engine=engine).action


def restore(table: hudi.Table, engine: Engine) -> object:
    done = table.restore(table.timeline.completed_writes()[0], engine=engine)
    return len(done.undone)


def purge(table: hudi.Table, engine: Engine) -> object:
    return len(table.purge(engine=engine).files)


def validate(table: hudi.Table, engine: Engine) -> object:
    found = table.validate(keys=True, engine=engine)
    assert found.repeated_keys is not None
    return found.files, found.rows, found.checked, found.repeated_keys.rows


def repair(table: hudi.Table, engine: Engine) -> object:
    assert not table.repair(engine=engine).left
    return not table.repair(force=True, dry_run=True, engine=engine).found


SERVICES: dict[str, Service] = {
    "clean": clean,
    "repair": repair,
    "validate": validate,
    "rollback": rollback,
    "restore": restore,
    "purge": purge,
}


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_leaves_what_it_leaves_on_threads(
    name: str, written: Path, tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # small tables have few files
    monkeypatch.setattr("hudi_core.actions.deletion._FLUSH", 1)
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup
    found = []
    for engine in (hudi.LocalEngine(), SparkEngine(spark, tasks_on_driver=False)):
        path = tmp_path / engine.name / "t"
        shutil.copytree(written, path)
        table = hudi.Table.open(path, options=OPTIONS)
        spark.sparkContext.setJobGroup(f"{name} {engine.name}", name)
        try:
            done = SERVICES[name](table, engine)
        finally:
            spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
        left = sorted(str(one.relative_to(path)) for one in path.rglob("p*/*") if one.is_file())
        found.append((done, left, table.to_arrow().num_rows))
        assert table.validate().is_valid
    by_threads, by_executors = found
    assert by_executors == by_threads
    assert not jobs(f"{name} local")
    assert jobs(f"{name} spark")
