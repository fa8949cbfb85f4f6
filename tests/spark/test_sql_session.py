"""A session of ours beside Spark's own: which statements are whose, and names of the catalog."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import hudi_core as hudi
from hudi_core.errors import InvalidOptionError, NotATableError, SchemaError
from tests.tables import new_table

pytestmark = pytest.mark.spark

ROWS = pa.table({"id": [1, 2], "v": ["a", "b"]})


@pytest.fixture(scope="module")
def place(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[SparkSession, Path]]:
    """Spark's own session in a database of its own, and the database's folder."""
    folder, name = tmp_path_factory.mktemp("place"), f"p{uuid.uuid4().hex}"
    spark.sql(f"CREATE DATABASE {name} LOCATION '{folder}'")
    spark.sql(f"USE {name}")
    yield spark, folder
    spark.sql("USE default")
    spark.sql(f"DROP DATABASE {name} CASCADE")


def made(path: Path) -> hudi.Table:
    return new_table(path, ROWS)


def asked(session: SparkSession, query: str, args: Any = None) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, session.sql(query, args).collect()), key=repr)


def test_it_is_the_session_but_for_its_sql(place: tuple[SparkSession, Path]) -> None:
    spark, folder = place
    session = hudi.sql_session(spark, {"hoodie.keep.max.commits": "44"})
    assert isinstance(session, SparkSession)
    assert type(session) is not type(spark)
    assert (session.version, session.sparkContext) == (spark.version, spark.sparkContext)
    assert type(session.newSession()) is type(session)
    session.conf.set("spark.sql.x", "y")
    assert spark.conf.get("spark.sql.x") == "y"
    session.sql("CREATE TABLE own (id INT) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    assert isinstance(session.sql("INSERT INTO own VALUES (1)"), DataFrame)
    assert spark.table("own").count() == hudi.read(session, folder / "own").count() == 1
    merged = hudi.Table.open(folder / "own").merge(session.table("own"), "id")
    assert merged.when_matched_delete().execute().deleted == 1
    again = hudi.sql_session(session)
    again.newSession().sql(f"INSERT INTO {spark.catalog.currentDatabase()}.own VALUES (2)")
    assert asked(again, "SELECT id FROM own") == [(2,)]
    again.sql("DROP TABLE own")
    with pytest.raises(InvalidOptionError, match="no session"):
        hudi.sql_session("local[2]")  # type: ignore[arg-type]


def test_statements_of_others_are_sparks_as_they_are(place: tuple[SparkSession, Path]) -> None:
    spark, folder = place
    session = hudi.sql_session(spark)
    made(folder / "t")
    session.sql(f"CREATE TABLE t USING hudi LOCATION '{folder}/t'")
    # the same statements, on a table of files
    session.sql("CREATE TABLE files (id INT, p STRING) USING parquet PARTITIONED BY (p)")
    session.sql("INSERT INTO files PARTITION (p = 'x') VALUES (1), (2)")
    session.sql("INSERT OVERWRITE files PARTITION (p = 'y') SELECT id FROM t WHERE id = 2")
    session.sql("ALTER TABLE files ADD COLUMNS (n INT)")
    assert asked(session, "SHOW PARTITIONS files") == [("p=x",), ("p=y",)]
    assert asked(session, "SELECT id, p FROM files -- ; a comment\n;") == [
        (1, "x"),
        (2, "x"),
        (2, "y"),
    ]
    joined = "SELECT t.v FROM t JOIN files f ON t.id = f.id WHERE f.p = :p"
    assert asked(session, joined, {"p": "x"}) == [("a",), ("b",)]
    session.sql("ALTER TABLE files DROP PARTITION (p = 'x')")
    session.sql("TRUNCATE TABLE files")
    session.sql("ALTER TABLE files RENAME TO files_2")
    session.sql("DROP TABLE files_2")
    # a view hides a table of its name, also from us
    spark.range(3).createOrReplaceTempView("t")
    assert len(asked(session, "SELECT * FROM t")) == 3
    for text in ("DELETE FROM t WHERE id = 1", "INSERT INTO t VALUES (1, 'a')"):
        with pytest.raises(Exception, match=r"(?i)table|relation"):
            session.sql(text)
    spark.catalog.dropTempView("t")
    assert asked(session, "SELECT id FROM t") == [(1,), (2,)]
    # what looks like ours
    assert asked(session, "SELECT timestamp AS of FROM (SELECT 1 AS timestamp)") == [(1,)]
    assert asked(session, "SELECT 'hudi_table_changes(1)', 'x AS OF y' AS `hudi.``a```")
    assert asked(session, "VALUES (?, :x)".replace("?, ", ""), {"x": 5}) == [(5,)]
    # errors are Spark's
    for text in ("DELETE FROM nowhere", "CALL nothing(1)", "UPDATE", "ALTER TABLE none SET X"):
        with pytest.raises(PySparkException):
            session.sql(text)
    with pytest.raises(PySparkException) as caught:
        session.sql("CALL run_bootstrap('t')")
    assert "show_commits" in str(getattr(caught.value, "__notes__", ""))
    # a database of the name that paths have
    session.sql(f"CREATE DATABASE hudi LOCATION '{folder}/hudi_db'")
    session.sql("CREATE TABLE hudi.t (x INT) USING hudi")
    session.sql("INSERT INTO hudi.t VALUES (9)")
    assert asked(session, "SELECT x FROM spark_catalog.hudi.t") == [(9,)]
    session.sql("CREATE TABLE hudi.files (x INT) USING parquet")
    session.sql("INSERT INTO hudi.files VALUES (8)")
    assert asked(session, "SELECT x FROM hudi.files") == [(8,)]
    session.sql("DROP DATABASE hudi CASCADE")
    session.sql("DROP TABLE t")


def test_parameters_and_clauses(place: tuple[SparkSession, Path]) -> None:
    spark, folder = place
    session = hudi.sql_session(spark)
    session.sql("CREATE TABLE p (id INT, v STRING, at TIMESTAMP) USING hudi")
    noon = dt.datetime(2020, 5, 6, 12, tzinfo=dt.UTC)
    session.sql("INSERT INTO p VALUES (?, ?, ?), (2, 'b', NULL)", [1, "it's", noon])
    first = hudi.Table.open(folder / "p").timeline.completed_writes()[-1].requested_time
    session.sql(
        "UPDATE p SET v = :v, id = id + :n WHERE at = :at", {"v": "\\", "n": 10, "at": noon}
    )
    session.sql("DELETE FROM IDENTIFIER(:t) WHERE id = :id", {"t": "p", "id": 2})
    assert asked(session, "SELECT id, v FROM p") == [(11, "\\")]
    past = "SELECT ? AS x, q.v FROM p TIMESTAMP AS OF ? AS q WHERE q.id = ?"
    assert asked(session, past, [7, first, 1]) == [(7, "it's")]
    both = f"SELECT p.v, n.v FROM p VERSION AS OF {first} JOIN p n ON p.at = n.at"
    assert asked(session, both) == [("it's", "\\")]
    now = "p FOR SYSTEM_TIME AS OF current_timestamp() - INTERVAL 0 DAY WHERE id > 1"
    assert asked(session, f"SELECT count(*) FROM {now}") == [(1,)]
    assert asked(session, f"WITH w AS (SELECT * FROM hudi.`{folder}/p`) SELECT v FROM w") == [
        ("\\",)
    ]
    source = spark.createDataFrame([(11, "m"), (12, "n")], "id int, v string")
    session.sql(
        "MERGE INTO p USING {source} AS s ON p.id = s.id WHEN MATCHED THEN UPDATE SET * "
        "WHEN NOT MATCHED THEN INSERT *",
        source=source,
    )
    session.sql("WITH w AS (SELECT 13 AS id, 'w' AS v) INSERT INTO p (id, v) SELECT * FROM w")
    session.sql(
        f"""WITH w (id) AS (SELECT 13)
        MERGE INTO p AS t USING (
            SELECT w.id, o.v FROM w CROSS JOIN (SELECT v FROM p TIMESTAMP AS OF '{first}') o
        ) AS s ON t.id = s.id AND s.v = 'b' WHEN MATCHED THEN UPDATE SET v = s.v"""
    )
    assert asked(session, "SELECT id, v FROM p") == [(11, "m"), (12, "n"), (13, "b")]
    with pytest.raises(SchemaError, match="array<int>"):
        session.sql("DELETE FROM p WHERE id IN (:ids)", {"ids": [1, 2]})
    with pytest.raises(SchemaError, match="2 statements"):
        session.sql("DELETE FROM p WHERE id = 11; DELETE FROM p")
    assert asked(session, "SELECT count(*) FROM p") == [(3,)]
    calls = session.sql("CALL show_commits(table => 'p', limit => ?)", [2])
    assert calls.count() == 2
    session.sql("DROP TABLE p")


def test_names_that_spark_alone_made(place: tuple[SparkSession, Path]) -> None:
    spark, folder = place
    # with columns: a name without a table, which says what mends it
    spark.sql(
        "CREATE TABLE n1 (id INT, dt STRING) USING hudi PARTITIONED BY (dt) "
        "TBLPROPERTIES (primaryKey = 'id')"
    )
    for text in ("SELECT * FROM n1", "INSERT INTO n1 VALUES (1, 'x')"):
        with pytest.raises(PySparkException, match=r"hudi\.sql\(spark"):
            spark.sql(text).collect()
    hudi.sql(spark, "REFRESH TABLE n1")
    assert spark.sql("SELECT * FROM n1").count() == 0
    hudi.sql(spark, "INSERT INTO n1 VALUES (1, 'x')")
    assert asked(spark, "SELECT id, _hoodie_partition_path FROM n1") == [(1, "dt=x")]
    assert hudi.Table.open(folder / "n1").config.record_key_fields == ("id",)
    # Spark moves what it made by itself
    spark.sql("ALTER TABLE n1 RENAME TO n1_2")
    with pytest.raises(PySparkException, match="REFRESH TABLE"):
        spark.sql("SELECT * FROM n1_2").collect()
    hudi.sql(spark, "ALTER TABLE n1_2 RENAME TO n1")
    assert asked(spark, "SELECT id FROM n1") == [(1,)]
    # any statement of ours makes the table
    spark.sql("CREATE TABLE n2 (id INT) USING hudi")
    hudi.sql(spark, "INSERT INTO n2 VALUES (5)")
    assert asked(spark, "SELECT id FROM n2") == [(5,)]
    # a name with columns for a table that is there
    table = made(folder / "there")
    spark.sql(f"CREATE TABLE n3 (id BIGINT, v STRING) USING hudi LOCATION '{table.path}'")
    hudi.sql(spark, "REFRESH TABLE n3")
    assert asked(spark, "SELECT id FROM n3") == [(1,), (2,)]
    # properties that contradict the table make no name
    with pytest.raises(PySparkException, match="contradicts the table"):
        spark.sql(
            f"CREATE TABLE n4 USING hudi LOCATION '{table.path}' TBLPROPERTIES (primaryKey = 'v')"
        )
    # tables of a query, and of DataFrames, are refused with what does it, and leave no name
    for make in (
        lambda: spark.sql("CREATE TABLE n5 USING hudi AS SELECT * FROM n3"),
        lambda: spark.table("n3").write.format("hudi").mode("append").saveAsTable("n5"),
    ):
        with pytest.raises(PySparkException, match=r"saveAsTable.*hudi\.sql_session\(spark\)"):
            make()
    names = {row[1] for row in asked(spark, "SHOW TABLES")}
    assert names == {"n1", "n2", "n3"}
    assert table.count() == 2
    for name in names:
        hudi.sql(spark, f"DROP TABLE {name}")
    assert table.count() == 2
    for name in ("n1", "n2"):
        with pytest.raises(NotATableError):
            hudi.Table.open(folder / name)


@pytest.mark.parametrize("pushdown", ["false", "true"])
def test_columns_that_spark_alone_changed(place: tuple[SparkSession, Path], pushdown: str) -> None:
    spark, folder = place
    table = made(folder / f"c_{pushdown}")
    spark.sql(f"CREATE TABLE c USING hudi LOCATION '{table.path}'")
    spark.conf.set("spark.sql.python.filterPushdown.enabled", pushdown)
    try:
        # a column more has no value yet
        spark.sql("ALTER TABLE c ADD COLUMNS (x INT)")
        assert asked(spark, "SELECT id, x FROM c WHERE x IS NULL AND id > 1") == [(2, None)]
        assert asked(spark, "SELECT id FROM c WHERE x = 1") == []
        hudi.sql(spark, "INSERT INTO c VALUES (3, 'c')")
        with pytest.raises(SchemaError, match="ADD COLUMNS adds"):
            hudi.sql(spark, "INSERT INTO c (id, x) VALUES (4, 4)")
        hudi.sql(spark, "ALTER TABLE c ADD COLUMNS (x INT)")
        hudi.sql(spark, "INSERT INTO c (id, x) VALUES (4, 4)")
        assert asked(spark, "SELECT id FROM c WHERE x = 4") == [(4,)]
        # a column that is called otherwise is nobody's
        spark.sql("ALTER TABLE c RENAME COLUMN v TO w")
        with pytest.raises(PySparkException, match=r"no column 'w'.*REFRESH TABLE"):
            spark.sql("SELECT id FROM c").collect()
        hudi.sql(spark, "REFRESH TABLE c")
        assert asked(spark, "SELECT v FROM c WHERE id = 1") == [("a",)]
        # so is one that the table lost
        table.alter(drop="v")
        with pytest.raises(PySparkException, match=r"no column 'v'.*REFRESH TABLE"):
            spark.sql("SELECT id FROM c").collect()
        hudi.sql(spark, "MSCK REPAIR TABLE c")
        assert spark.table("c").columns[5:] == ["id", "x"]
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
        spark.sql("DROP TABLE c")


def test_a_name_goes_where_it_is_sent(place: tuple[SparkSession, Path]) -> None:
    spark, folder = place
    made(folder / "old")
    new = hudi.Table.create(folder / "new", pa.schema([("k", pa.int64())]))
    new.insert(pa.table({"k": [7]}))
    session = hudi.sql_session(spark)
    session.sql(f"CREATE TABLE moved USING hudi LOCATION '{folder}/old'")
    session.sql(f"ALTER TABLE moved SET LOCATION '{new.path}'")
    assert asked(spark, "SELECT k FROM moved") == [(7,)]
    session.sql("UPDATE moved SET k = 8")
    assert new.to_arrow(["k"])["k"].to_pylist() == [8]
    session.sql("DROP TABLE moved")
