"""Statements in SQL that change rows of our tables, and conditional writes on executors."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

import hudi_core as hudi
from hudi_core.engine.spark import SparkEngine
from hudi_core.errors import (
    DuplicateRecordKeyError,
    ExpressionLimitError,
    MergeCardinalityError,
    SchemaError,
)
from tests.foreign import by_hudi_rs
from tests.tables import new_table

pytestmark = pytest.mark.spark

COUNTED = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("ts", pa.int64()),
        ("v", pa.float64()),
        ("n", pa.int32()),
    ]
)
Rows = list[tuple[Any, ...]]


def some(*rows: tuple[Any, ...]) -> pa.Table:
    return pa.Table.from_pylist(
        [dict(zip(COUNTED.names, row, strict=True)) for row in rows], COUNTED
    )


def held(path: str) -> Rows:
    rows = hudi.Table.open(path).to_arrow().to_pylist()
    return sorted((tuple(row[name] for name in COUNTED.names) for row in rows), key=repr)


@pytest.fixture(params=["native", "iceberg", "delta"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    table = new_table(tmp_path / "t", COUNTED, {"hoodie.fs.fsync": "false"}, format=request.param)
    table.upsert(
        some(("a", "rome", 10, 1.0, 1), ("b", "rome", 20, None, 2), ("c", "oslo", 30, 3.0, None))
    )
    return table.path


def counts(result: Any) -> tuple[int, int, int]:
    return result.inserted, result.updated, result.deleted


def test_a_doubled_quote_is_one_quote_in_statements(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    options = {"hoodie.fs.fsync": "false"}
    table = new_table(path, COUNTED, options, partition_by=None, ordering_field=None)
    table.insert(some(*((one, one, 1, 1.0, 1) for one in ("it's", "its", "a'", "a"))))
    name = f"hudi.`{path}`"
    hudi.sql(
        spark,
        f"""MERGE INTO {name} t USING (SELECT 'it''s' AS id) s ON t.id = s.id AND t.city = 'it''s'
        WHEN MATCHED AND t.city LIKE '%''%' THEN UPDATE SET t.city = "o""k'"
        WHEN NOT MATCHED THEN INSERT (id, city) VALUES ('wrong', 'it''s')""",
    )
    assert counts(hudi.sql(spark, f"DELETE FROM {name} WHERE id LIKE 'a''%'")) == (0, 0, 1)
    assert counts(hudi.sql(spark, f"UPDATE {name} SET city = 'a''b' WHERE id = 'a'")) == (0, 1, 0)
    assert {row[0]: row[1] for row in held(path)} == {"a": "a'b", "it's": "o\"k'", "its": "its"}


def test_statements_change_tables_by_path(spark: SparkSession, path: str) -> None:
    name = f"hudi.`{path}`"
    found = hudi.sql(
        spark, f"INSERT INTO {name} VALUES ('d', 'bern', 1, 2.5, 4), ('e', 'x', 1, 1, 5)"
    )
    assert counts(found) == (2, 0, 0)
    assert counts(hudi.sql(spark, f"INSERT INTO {name} (id, city) SELECT 'f', 'x'")) == (1, 0, 0)
    done = hudi.sql(
        spark, f"UPDATE {name} AS t SET t.v = t.v * 2, n = NULL WHERE t.id IN ('a', 'd')"
    )
    assert counts(done) == (0, 2, 0)
    assert counts(hudi.sql(spark, f"DELETE FROM {name} WHERE city = 'x' AND n IS NULL")) == (
        0,
        0,
        1,
    )
    merged = hudi.sql(
        spark,
        f"""
        MERGE INTO {name} AS t
        USING (SELECT * FROM VALUES ('a', true), ('c', false), ('z', false) AS s (id, gone)) AS s
        ON t.id = s.id
        WHEN MATCHED AND s.gone THEN DELETE
        WHEN MATCHED THEN UPDATE SET v = coalesce(t.v, 0) + 1, ts = t.ts - 100
        WHEN NOT MATCHED THEN INSERT (id, city, v) VALUES (upper(s.id), 'new', 1)
        WHEN NOT MATCHED BY SOURCE AND t.v IS NULL THEN UPDATE SET v = -1
        """,
    )
    assert counts(merged) == (1, 2, 1)
    rows = [
        ("Z", "new", None, 1.0, None),
        ("b", "rome", 20, -1.0, 2),
        ("c", "oslo", -70, 4.0, None),
        ("d", "bern", 1, 5.0, None),
        ("e", "x", 1, 1.0, 5),
    ]
    assert held(path) == rows
    foreign = (tuple(row[name] for name in COUNTED.names) for row in by_hudi_rs(path))
    assert sorted(foreign, key=repr) == rows


def test_statements_change_tables_of_the_catalog(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    table = new_table(tmp_path / "t", COUNTED, partition_by=None, ordering_field=None)
    table.upsert(some(("a", "rome", 1, 1.0, 1), ("b", "rome", 1, 1.0, 1)))
    spark.sql(f"CREATE TABLE conditional_t USING hudi OPTIONS (path '{table.path}')")
    request.addfinalizer(lambda: spark.sql("DROP TABLE conditional_t"))
    # what Spark does not hand to data sources in Python, and what hence is done here
    for statement in (
        "UPDATE conditional_t SET v = 2 WHERE id = 'a'",
        "DELETE FROM conditional_t WHERE id = 'b'",
        """
        MERGE INTO conditional_t t USING (SELECT 'a' AS id) s ON t.id = s.id
        WHEN MATCHED THEN UPDATE SET n = 9
        """,
        "INSERT INTO default.conditional_t VALUES ('c', 'x', 1, 1, 1)",
    ):
        with pytest.raises(PySparkException):
            spark.sql(statement)
        assert isinstance(hudi.sql(spark, statement), hudi.CommitResult)
    assert held(table.path) == [("a", "rome", 1, 2.0, 9), ("c", "x", 1, 1.0, 1)]
    given = {"mine": table}
    merge = "MERGE INTO mine USING conditional_t s ON mine.id = s.id WHEN MATCHED THEN UPDATE SET *"
    assert counts(hudi.sql(spark, merge, given)) == (0, 2, 0)
    other = hudi.sql(spark, "SELECT 1 AS one")
    assert isinstance(other, DataFrame)
    assert other.collect()[0].one == 1


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE {t} SET v = 1, v = 2", "sets v twice"),
        ("UPDATE {t} SET id = 'x'", "record key"),
        ("UPDATE {t} SET v = (SELECT max(v) FROM {t})", "a subquery"),
        ("UPDATE {t} SET v = no_such_function(v)", "no_such_function|NO_SUCH_FUNCTION"),
        ("UPDATE {t} SET v = 'x'", "'x' is no double"),
        ("UPDATE {t} SET v = city", "has the type string"),
        ("DELETE FROM {t} WHERE nope = 1", "'nope'"),
        ("DELETE FROM {t}; DELETE FROM {t}", "2 statements"),
        ("INSERT OVERWRITE {t} SELECT 1", "gives 1 columns for 5"),
        ("INSERT INTO {t} SELECT 1", "gives 1 columns for 5"),
        ("MERGE INTO {t} t USING (SELECT 'a' AS id) s ON t.id", "statement|neither"),
        ("MERGE INTO {t} t USING {t} s ON t.id = s.id WHEN MATCHED THEN INSERT *", "cannot be run"),
        ("UPDATE {t} SET", "sets no column"),
    ],
)
def test_statements_that_cannot_be_run_change_nothing(
    spark: SparkSession, tmp_path: Path, statement: str, said: str
) -> None:
    table = new_table(tmp_path / "t", COUNTED, partition_by=None, ordering_field=None)
    table.upsert(some(("a", "rome", 1, 1.0, 1)))
    with pytest.raises(SchemaError, match=said):
        hudi.sql(spark, statement.format(t=f"hudi.`{table.path}`"))
    assert len(hudi.Table.open(table.path).timeline.instants) == 1


def test_executors_do_what_this_process_does(spark: SparkSession, path: str) -> None:
    engine = SparkEngine(spark, tasks_on_driver=False)
    table = hudi.Table.open(path)
    assert counts(table.update({"v": pc.field("v") + 1}, pc.field("v") > 0, engine=engine)) == (
        0,
        2,
        0,
    )
    assert counts(table.update({"city": "'bern'"}, "id = 'b'", engine=engine)) == (1, 0, 1)
    source = spark.createDataFrame(some(("a", "x", 0, 9.0, 9), ("q", "x", 0, 8.0, 8)))
    merger = table.merge(source, "id", engine=engine)
    done = (
        merger.when_matched(pc.field("target.v") < pc.field("source.v"))
        .update_all(except_cols=["city"])
        .when_not_matched([("source.n", ">", 5)])
        .insert_all()
        .when_not_matched_by_source("target.v > 3")
        .delete()
        .execute()
    )
    assert counts(done) == (1, 1, 1)
    rows = [("a", "rome", 0, 9.0, 9), ("b", "bern", 20, None, 2), ("q", "x", 0, 8.0, 8)]
    assert held(path) == rows
    with pytest.raises(MergeCardinalityError):
        table.merge(source.union(source), "id", engine=engine).when_matched_delete().execute()
    with pytest.raises(DuplicateRecordKeyError):
        table.merge(
            source.withColumn("n", source.n * 10), "target.n = source.n", engine=engine
        ).when_not_matched_insert_all().execute()
    with pytest.raises(SchemaError, match="does not fit"):
        table.update({"n": pc.scalar(2**40)}, engine=engine)
    assert held(path) == rows
    assert counts(table.delete(where=pc.field("n") > 8, spark=spark)) == (0, 0, 1)
    assert hudi.Table.open(path).validate(keys=True).is_valid


def test_a_source_is_evaluated_once(spark: SparkSession, tmp_path: Path) -> None:
    # its keys tell which files are read: were they others by then, some would be inserted twice
    table = new_table(
        tmp_path / "t",
        COUNTED,
        {"hoodie.parquet.small.file.limit": "0", "hoodie.fs.fsync": "false"},
        partition_by=None,
        ordering_field=None,
    )
    any_key = sql.udf(lambda: f"k{secrets.randbelow(4)}", "string").asNondeterministic()
    source = spark.range(1).select(any_key().alias("id"), sql.lit("x").alias("city"))
    for _ in range(10):
        merger = table.merge(source, "id").when_matched_update({"n": "coalesce(n, 0) + 1"})
        result = merger.when_not_matched_insert_all().execute()
        assert result.inserted + result.updated == 1
    ids = table.to_arrow(["id"]).column("id").to_pylist()
    assert len(ids) == len(set(ids)) <= 4


def test_deep_statements_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path / "deep", COUNTED, partition_by=None, ordering_field=None)
    deep = "NOT " * 5000 + "v = 1"
    for statement in (
        f"DELETE FROM t WHERE {deep}",
        f"UPDATE t SET v = 1 WHERE {deep}",
        f"MERGE INTO t USING (SELECT 'a' AS id) s ON {deep} WHEN MATCHED THEN DELETE",
        f"INSERT INTO t (id) SELECT 'a' FROM (SELECT 1.0D AS v) WHERE {deep}",
        f"SELECT 1 FROM (SELECT 1.0D AS v) WHERE {deep}",
    ):
        with pytest.raises(ExpressionLimitError, match="nested too deeply"):
            hudi.sql(spark, statement, {"t": table})
    assert not table.history()
