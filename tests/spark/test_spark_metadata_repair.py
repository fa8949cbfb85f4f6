"""Metadata tables built by Spark's executors: what they list and read, in how many jobs."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.engine.spark import SparkEngine
from hudi_core.errors import DataFileError, TaskFailedError
from hudi_core.metadata.maintenance.validator import validate
from hudi_core.metadata.table import METADATA_FOLDER
from hudi_core.model.files import PartitionPath
from hudi_core.services.opening import open_table
from hudi_core.view.committed_files import TableListing
from tests import tables
from tests.tables import SCHEMA

PARTITIONS = 40
OPTIONS = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.fs.fsync": "false",
}
OFF = {"hoodie.metadata.enable": "false", "hoodie.fs.fsync": "false"}


def row_per_partition(ts: int = 1) -> pa.Table:
    found = [{"id": f"k{n:02}", "part": f"p{n:02}", "ts": ts} for n in range(PARTITIONS)]
    return pa.Table.from_pylist(found, SCHEMA)


def unordered_table(path: Path, options: dict[str, str]) -> hudi.Table:
    return tables.new_table(path, SCHEMA, options, ordering_field=None)


@pytest.fixture
def jobs(spark: Any) -> Callable[[Callable[[], object]], int]:
    """Give a function that calls another one and counts the jobs of that."""

    def count(call: Callable[[], object]) -> int:
        context = spark.sparkContext
        context.setJobGroup("counted", "counted")
        before = len(context.statusTracker().getJobIdsForGroup("counted"))
        try:
            call()
        finally:
            context.setLocalProperty("spark.jobGroup.id", None)
        return len(context.statusTracker().getJobIdsForGroup("counted")) - before

    return count


def test_a_repair_lists_and_reads_on_executors(
    tmp_path: Path,
    spark: Any,
    jobs: Callable[[Callable[[], object]], int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "t"
    unordered_table(path, OPTIONS).upsert(row_per_partition())
    shutil.rmtree(path / METADATA_FOLDER)
    here: list[str] = []
    plain = TableListing._of_partitions

    def noted(listing: TableListing, some: Sequence[PartitionPath]) -> Any:
        here.extend(some)
        return plain(listing, some)

    monkeypatch.setattr(TableListing, "_of_partitions", noted)
    table = hudi.Table.open(str(path), OPTIONS)

    count = jobs(lambda: table.repair_metadata(engine=SparkEngine(spark, tasks_on_driver=False)))

    # folders, ranges, bloom filters, keys of files, keys of file groups: the tasks of each are
    # dealt out, and run
    assert count == 5 * 2
    assert here == []
    assert validate(open_table(str(path), {}).client).is_valid
    count = jobs(lambda: table.repair_metadata(engine=SparkEngine(spark, tasks_on_driver=True)))
    assert count == 0


def test_a_first_write_by_spark_builds_the_metadata_table_on_executors(
    tmp_path: Path, spark: Any, jobs: Callable[[Callable[[], object]], int]
) -> None:
    for name in ("without", "with"):
        unordered_table(tmp_path / name, OFF).upsert(row_per_partition())
    engine = SparkEngine(spark, tasks_on_driver=False)
    frame = spark.createDataFrame(row_per_partition(2).to_pandas())
    counts = {
        name: jobs(
            lambda: hudi.Table.open(str(tmp_path / name), options).upsert(frame, engine=engine)  # noqa: B023
        )
        for name, options in (("without", OFF), ("with", OPTIONS))
    }
    assert counts["with"] >= counts["without"] + 4 * 2
    assert validate(open_table(str(tmp_path / "with"), {}).client).is_valid
    # what is opened later has nothing of the session
    assert hudi.Table.open(str(tmp_path / "with"), OPTIONS).to_arrow().num_rows == PARTITIONS


def test_a_damaged_file_is_named_by_executors(tmp_path: Path, spark: Any) -> None:
    path = tmp_path / "t"
    table = unordered_table(path, OPTIONS)
    table.upsert(row_per_partition())
    damaged = max(path.glob("p07/*.parquet"))
    damaged.write_bytes(b"\0" * damaged.stat().st_size)
    with pytest.raises((DataFileError, TaskFailedError), match=damaged.name):
        table.repair_metadata(engine=SparkEngine(spark, tasks_on_driver=False))
    assert table.metadata("files").num_rows == PARTITIONS
