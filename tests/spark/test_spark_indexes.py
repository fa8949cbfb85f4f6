"""Indexes on Spark's executors: the same tables as in this process, with one task and with many."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.engine.spark import SparkEngine
from hudi_core.index import tagging
from tests.samples import sampled
from tests.tables import new_table

INDEXED = pa.schema(
    [("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("value", pa.int64())]
)
RECORD_INDEX = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.record.index.update.partition.path": "true",
}
PARTITIONED_RECORD_INDEX = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.level.index.enable": "true",
}
Content = list[tuple[Any, ...]]


def indexed_rows(numbers: range, ts: int, shift: int) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{number:03d}" for number in numbers],
            "city": [f"c{(number + shift) % 3}" for number in numbers],
            "ts": [ts] * len(numbers),
            "value": [number * ts for number in numbers],
        },
        schema=INDEXED,
    )


def content(table: hudi.Table) -> Content:
    names = ("_hoodie_partition_path", *INDEXED.names)
    return sorted(tuple(one[name] for name in names) for one in table.to_arrow().to_pylist())


def history(path: Path, index: str, spark: Any, **options: str) -> tuple[Content, Content]:
    """Run the same writes here and on executors."""
    found = []
    for place in ("local", "spark"):
        table = new_table(
            path / place,
            INDEXED,
            {
                "hoodie.index.type": index,
                "hoodie.bucket.index.num.buckets": "2",
                "hoodie.copyonwrite.insert.auto.split": "false",
                "hoodie.copyonwrite.insert.split.size": "20",
                "hoodie.fs.fsync": "false",
                **(RECORD_INDEX if index == "RECORD_INDEX" else {}),
                **(PARTITIONED_RECORD_INDEX if index == "RECORD_LEVEL_INDEX" else {}),
                **options,
            },
        )
        moved = 1 if index.startswith("GLOBAL") or index == "RECORD_INDEX" else 0
        for operation, batch in (
            ("upsert", indexed_rows(range(90), 5, 0)),
            ("upsert", indexed_rows(range(40, 120), 6, moved)),
            ("upsert", indexed_rows(range(60), 4, moved)),
            ("delete", indexed_rows(range(0, 120, 7), 0, moved)),
        ):
            if place == "local":
                getattr(table, operation)(batch)
                continue
            frame = spark.createDataFrame(batch).repartition(3, "id")
            engine = SparkEngine(spark, tasks_on_driver=False)
            getattr(table, operation)(frame, engine=engine)
        found.append(content(table))
    return found[0], found[1]


@pytest.mark.spark
@pytest.mark.parametrize(
    "index", sampled(["BLOOM", "GLOBAL_SIMPLE", "BUCKET", "RECORD_INDEX", "RECORD_LEVEL_INDEX"], 2)
)
def test_executors_do_the_same(tmp_path: Path, spark: Any, index: str) -> None:
    local, distributed = history(tmp_path, index, spark)
    assert len(local) == 102
    assert distributed == local


@pytest.mark.spark
@pytest.mark.parametrize("filters", ["false", "true"])
def test_many_files_are_many_tasks(
    tmp_path: Path, spark: Any, filters: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    real = tagging.Tagging._run_wide

    def counted(self: Any, engine: Any, scopes: Any, stage: int) -> Any:
        looks.append(sum(len(tagging._chunks(scope)) for scope in scopes))
        return real(self, engine, scopes, stage)

    # the driver cuts the scopes; executors need not know how
    monkeypatch.setattr(tagging, "_FILES_PER_TASK", 2)
    monkeypatch.setattr(tagging.Tagging, "_run_wide", counted)
    kept = {"hoodie.metadata.index.bloom.filter.enable": filters}
    local, distributed = history(tmp_path, "GLOBAL_BLOOM", spark, **kept)
    assert distributed == local
    assert max(looks) > 2
