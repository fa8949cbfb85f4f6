"""The table of values that Spark gives to expressions, judged by Spark itself."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.spark_values import ROW, VALUES, same

pytestmark = pytest.mark.spark


def test_spark_gives_the_values_of_the_table(spark: SparkSession) -> None:
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        rows = spark.createDataFrame(ROW)
        columns = [f"{text} AS c{number}" for number, (text, _) in enumerate(VALUES)]
        [found] = rows.selectExpr(*columns).toArrow().to_pylist()
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone or "UTC")
    wrong = [
        (text, value, wanted)
        for (text, wanted), value in zip(VALUES, found.values(), strict=True)
        if not same(value, wanted)
    ]
    assert not wrong
