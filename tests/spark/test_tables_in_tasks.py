"""Tables in the closures of Spark's tasks, which get them as pickles."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

import hudi_core as hudi

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = pa.table({"id": [1, 2, 3], "city": ["oslo", "rome", "oslo"]})


def test_a_task_reads_the_table_of_its_closure(spark: SparkSession, tmp_path: Path) -> None:
    secret = {"fs.s3a.access.key": "me", "fs.s3a.secret.key": "canary"}
    table = hudi.Table.create(tmp_path / "t", ROWS, record_key="id", options=secret)
    table.insert(ROWS)

    def looked_up(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            wanted = batch.column("id").to_pylist()
            found = table.to_arrow(["id", "city"], [("id", "in", wanted)])
            yield from found.combine_chunks().to_batches()

    asked = spark.createDataFrame([(1,), (2,)], "id long").coalesce(1)
    found = asked.mapInArrow(looked_up, "id long, city string").collect()
    assert sorted(map(tuple, found)) == [(1, "oslo"), (2, "rome")]
