"""Tables that are written and read through the data source ``hudi``."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

OPTIONS = {
    "hoodie.table.name": "source",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.table.ordering.fields": "ts",
}
CITIES = ("rome", "oslo", "lima")


def frame(spark: SparkSession, count: int, ts: int = 1) -> DataFrame:
    made = [
        {"id": f"k{n:03d}", "city": CITIES[n % 3], "ts": ts, "price": float(n)}
        for n in range(count)
    ]
    return spark.createDataFrame(pa.Table.from_pylist(made)).repartition(2)


def save(
    data: DataFrame, path: str, mode: str = "append", more: Mapping[str, str] | None = None
) -> None:
    data.write.format("hudi").options(**{**OPTIONS, **(more or {})}).mode(mode).save(path)


def load(spark: SparkSession, path: str, **options: str) -> DataFrame:
    return spark.read.format("hudi").options(**options).load(path)


def found(data: DataFrame) -> list[str]:
    return sorted(row.id for row in data.collect())


ALL = [f"k{n:03d}" for n in range(6)]
