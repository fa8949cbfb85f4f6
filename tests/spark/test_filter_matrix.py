"""Random filters on random tables: Spark finds the rows that it finds in its own memory."""

from __future__ import annotations

import random
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.filter_matrix import MatrixTable, found_by, ids, some_table
from tests.filter_words import Unsaid, accepts, as_arrow, as_sql, some_conditions, some_filter
from tests.samples import IS_WHOLE

pytestmark = pytest.mark.spark

NUMBERS, FILTERS = (range(50), 40) if IS_WHOLE else (range(1, 2), 3)
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.mark.parametrize("number", NUMBERS)
def test_spark_finds_what_it_finds_in_its_memory(
    number: int, tmp_path: Path, spark: SparkSession
) -> None:
    one, rng = some_table(number, tmp_path / "t"), random.Random(2000 + number)
    wanted = [some_filter(rng) for _ in range(FILTERS)]
    conditions = [some_conditions(rng) for _ in range(FILTERS)]
    spark.conf.set(PUSHDOWN, "true")
    try:
        assert not [
            *by_source(one, wanted, spark),
            *by_frame(one, wanted, conditions, spark),
            *by_change(one, wanted[:: 1 if IS_WHOLE else 4], spark),
        ], one.facts
    finally:
        spark.conf.unset(PUSHDOWN)


def by_source(one: MatrixTable, wanted: list[Any], spark: SparkSession) -> list[str]:
    """Differences of the data source, to which Spark hands its filters down."""
    texts = []
    for each in wanted:
        try:
            texts.append(as_sql(each, "spark"))
        except Unsaid:
            continue
    stored = spark.read.format("hudi").load(one.table.path)
    found, expected = of_each(stored, texts), of_each(in_memory(one, spark), texts)
    return [
        f"source: {text}: found {found[n]}, expected {expected[n]}"
        for n, text in enumerate(texts)
        if found[n] != expected[n]
    ]


def by_frame(
    one: MatrixTable, wanted: list[Any], conditions: list[Any], spark: SparkSession
) -> list[str]:
    """Differences of ``Table.read``, whose filter is ours."""
    rows = one.rows.to_pylist()
    given = [(each, ids(one.rows.filter(as_arrow(each)))) for each in wanted]
    frames = [one.table.read(spark, "id", as_arrow(each)) for each, _ in given]
    for each in conditions:
        kept = [row["id"] for row in rows if all(accepts(row, condition) for condition in each)]
        given.append((each, kept))
        frames.append(one.table.read(spark, "id", each))
    found = collected(frames)
    return [
        f"frame: {each}: found {found[n]}, expected {expected}"
        for n, (each, expected) in enumerate(given)
        if found[n] != expected
    ]


def by_change(one: MatrixTable, wanted: list[Any], spark: SparkSession) -> list[str]:
    """Differences of conditional writes by a text, which Spark computes."""
    different = []
    memory = in_memory(one, spark)
    for each in wanted:
        try:
            text = as_sql(each, "spark")
        except Unsaid:
            continue
        found, [expected] = ids(found_by(one.table, text, spark)), of_each(memory, [text])
        if found != expected:
            different.append(f"change: {text}: found {found}, expected {expected}")
    return different


def in_memory(one: MatrixTable, spark: SparkSession) -> DataFrame:
    frame: DataFrame = spark.createDataFrame(one.rows)
    return frame


def of_each(frame: DataFrame, texts: list[str]) -> list[list[int]]:
    return collected([frame.where(text).select("id") for text in texts])


def collected(frames: list[DataFrame]) -> list[list[int]]:
    """The ids of each, by one job."""
    if not frames:
        return []
    numbered = [frame.selectExpr(f"{n} AS n", "id") for n, frame in enumerate(frames)]
    found: list[list[int]] = [[] for _ in frames]
    for n, key in reduce(DataFrame.unionAll, numbered).collect():
        found[n].append(key)
    return [sorted(some) for some in found]
