"""Rows of change data in every format, from both engines: what Apache Hudi leaves of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hudi_core as hudi
from hudi_core.engine.base import Engine
from hudi_core.engine.local import LocalEngine
from hudi_core.engine.spark import SparkEngine
from tests.formats.service_tables import READERS
from tests.merging_histories import SCHEMA, batches, by_hudi, held, kinds

NAMES = {
    "iceberg": "9-PostgresDebeziumAvroPayload-unordered-all",
    "delta": "8-AWSDmsAvroPayload-ts-two",
}


def check(path: Path, table_format: str, engine: Engine, spark: SparkSession | None) -> None:
    (kind,) = (one for one in kinds() if str(one) == NAMES[table_format])
    options = {**kind.options, "hoodie.fs.fsync": "false"}
    table = hudi.Table.create(
        str(path), SCHEMA, record_key="id", format=table_format, options=options
    )
    for batch in batches(kind.history):
        data = batch if spark is None else spark.createDataFrame(batch).coalesce(1)
        table.upsert(data, engine=engine)
    for read in READERS[table_format]:
        assert held(table, read(path)) == by_hudi(str(kind)), read.__name__
    assert table.validate(keys=True).is_valid


@pytest.mark.parametrize("table_format", NAMES)
def test_readers_of_a_format_see_rows_of_change_data_merged(
    table_format: str, tmp_path: Path
) -> None:
    check(tmp_path / "t", table_format, LocalEngine(), None)


@pytest.mark.spark
@pytest.mark.parametrize("table_format", NAMES)
def test_they_see_the_same_rows_by_spark(
    table_format: str, spark: SparkSession, tmp_path: Path
) -> None:
    check(tmp_path / "t", table_format, SparkEngine(spark, tasks_on_driver=False), spark)
