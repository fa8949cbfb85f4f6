"""A table that no test changes."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.spark.source.source_tables import OPTIONS, frame


@pytest.fixture(scope="module")
def shared(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Six rows in three partitions, in a table that no test changes."""
    path = str(tmp_path_factory.mktemp("source") / "t")
    frame(spark, 6).write.format("org.apache.hudi").options(**OPTIONS).mode("append").save(path)
    return path
