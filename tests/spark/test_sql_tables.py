"""Tables that statements make, change and drop, in all formats."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import hudi_core as hudi
from hudi_core.errors import (
    HudiError,
    NotATableError,
    OptionConflictError,
    PartitionValueError,
    RecordKeyError,
    SchemaError,
    UnsupportedCapabilityError,
)
from tests.foreign import by_hudi_rs

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def lake(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[SparkSession, Path]]:
    """A session of ours in a database of its own, and the database's folder."""
    folder = tmp_path_factory.mktemp("lake")
    session = hudi.sql_session(spark)
    name = f"l{uuid.uuid4().hex}"
    session.sql(f"CREATE DATABASE {name} LOCATION '{folder}'")
    session.sql(f"USE {name}")
    yield session, folder
    session.sql("USE default")
    session.sql(f"DROP DATABASE {name} CASCADE")


def asked(session: SparkSession, query: str) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, session.sql(query).collect()), key=repr)


def columns(session: SparkSession, name: str) -> list[tuple[str, str]]:
    """The columns of a name as Spark shows them, but for meta columns."""
    shown = session.sql(f"DESCRIBE {name}").collect()
    return [(row[0], row[1]) for row in shown if not row[0].startswith("_hoodie")]


@pytest.mark.parametrize("name", ["native", "iceberg,delta"])
def test_a_life_of_a_table(lake: tuple[SparkSession, Path], name: str) -> None:
    session, folder = lake
    t = f"life_{name.replace(',', '_')}"
    session.sql(
        f"""CREATE TABLE IF NOT EXISTS {t}
        (dt STRING, id BIGINT COMMENT 'the key', v DOUBLE, hh INT)
        USING hudi PARTITIONED BY (dt, hh) COMMENT 'trips'
        TBLPROPERTIES (primaryKey = 'id', 'hoodie.table.format' = '{name}', note = 'it''s')"""
    )
    path = folder / t
    # as in Spark and in Hudi, columns of partitions are the last
    wanted = [("id", "bigint"), ("v", "double"), ("dt", "string"), ("hh", "int")]
    assert columns(session, t) == wanted
    session.sql(f"CREATE TABLE IF NOT EXISTS {t} (other INT) USING hudi")
    session.sql(f"INSERT INTO {t} VALUES (1, 1, 'a', 1), (2, 2.5, 'a', 2), (3, NULL, 'b', 1)")
    session.sql(f"INSERT INTO {t} PARTITION (dt = 'b', hh) SELECT 4, 4, 2")
    session.sql(f"INSERT INTO {t} PARTITION (dt = 'c', hh = '3') SELECT 5, 5")
    session.sql(f"INSERT INTO {t} (hh, id, dt) VALUES (1, 6, 'c')")
    session.sql(f"INSERT INTO {t} BY NAME SELECT 7 AS id, 'c' AS dt, 2 AS hh")
    # columns of the same names go by them, as with Hudi
    session.sql(f"INSERT INTO {t} SELECT 9 AS hh, 8 AS id, 0.5 AS v, 'c' AS dt")
    assert asked(session, f"SHOW PARTITIONS {t} PARTITION (dt = 'c')") == [
        ("dt=c/hh=1",),
        ("dt=c/hh=2",),
        ("dt=c/hh=3",),
        ("dt=c/hh=9",),
    ]
    # static: what the clause names goes; dynamic: what the rows belong to
    session.sql(f"INSERT OVERWRITE {t} PARTITION (dt = 'c', hh) SELECT 10, 10, 7")
    session.sql(f"INSERT OVERWRITE {t} PARTITION (dt = 'a', hh = 1) SELECT 11, 11 WHERE false")
    session.sql("SET hoodie.datasource.overwrite.mode = dynamic")
    session.sql(f"INSERT OVERWRITE TABLE {t} SELECT 12, 12, 'a', 2")
    session.conf.unset("hoodie.datasource.overwrite.mode")
    left = [(3, None, "b", 1), (4, 4.0, "b", 2), (10, 10.0, "c", 7), (12, 12.0, "a", 2)]
    assert asked(session, f"SELECT id, v, dt, hh FROM {t}") == sorted(left, key=repr)

    session.sql(f"ALTER TABLE {t} ADD COLUMNS (n INT COMMENT 'number', s STRING)")
    assert columns(session, t) == [*wanted[:2], ("n", "int"), ("s", "string"), *wanted[2:]]
    session.sql(f"INSERT INTO {t} VALUES (13, 1, 7, 8, 'd', 1)")
    if "delta" in name:  # where columns are found by name
        with pytest.raises(UnsupportedCapabilityError):
            session.sql(f"ALTER TABLE {t} RENAME COLUMN n TO m")
        assert asked(session, f"SELECT n FROM {t} WHERE id = 13") == [(7,)]
    else:
        session.sql(f"ALTER TABLE {t} RENAME COLUMN n TO m")
        session.sql(f"ALTER TABLE {t} ALTER COLUMN m TYPE BIGINT")
        session.sql(f"ALTER TABLE {t} DROP COLUMNS (s)")
        assert asked(session, f"SELECT m FROM {t} WHERE id = 13") == [(7,)]
        assert dict(columns(session, t))["m"] == "bigint"
    comments = {row[0]: row[2] for row in session.sql(f"DESCRIBE {t}").collect()}
    assert comments["id"] == "the key"
    session.sql(f"ALTER TABLE {t} DROP PARTITION (dt = 'b'), PARTITION (dt = 'd', hh = 1)")
    assert asked(session, f"SELECT id FROM {t}") == [(10,), (12,)]

    session.sql(f"ALTER TABLE {t} SET TBLPROPERTIES ('hoodie.keep.max.commits' = '77')")
    properties = dict(asked(session, f"SHOW TBLPROPERTIES {t}"))
    assert properties["hoodie.keep.max.commits"] == "77"
    assert properties["note"] == "it's"
    session.sql(f"ALTER TABLE {t} UNSET TBLPROPERTIES ('note')")
    [definition] = session.sql(f"SHOW CREATE TABLE {t}").first() or ("",)
    assert f"LOCATION '{path}'" in definition
    assert "PARTITIONED BY (`dt`, `hh`)" in definition
    session.sql(f"ALTER TABLE {t} RENAME TO {t}_2")
    session.sql(f"UPDATE {t}_2 SET v = v + 1, hh = hh + 1 WHERE dt = 'c'")
    assert asked(session, f"SELECT id, v, hh FROM {t}_2") == [(10, 11.0, 8), (12, 12.0, 2)]
    assert sorted(row["id"] for row in by_hudi_rs(path)) == [10, 12]
    table = hudi.Table.open(path)
    assert table.format == name
    assert table.validate(keys=True).is_valid
    session.sql(f"TRUNCATE TABLE {t}_2 PARTITION (dt = 'a')")
    assert table.count() == 1
    session.sql(f"TRUNCATE TABLE {t}_2")
    assert table.count() == 0
    assert table.count(as_of=table.timeline.completed_writes()[-2]) == 1
    # a table that was made without a place goes with its name
    session.sql(f"DROP TABLE {t}_2")
    with pytest.raises(NotATableError):
        hudi.Table.open(path)


def test_tables_of_a_query_and_of_another_table(lake: tuple[SparkSession, Path]) -> None:
    session, folder = lake
    place = folder / "elsewhere"
    session.sql(
        f"""CREATE TABLE made USING hudi OPTIONS (primaryKey 'id') PARTITIONED BY (dt)
        LOCATION '{place}' AS SELECT '2021-12-01' AS dt, 1 AS id, 'a1' AS name"""
    )
    assert columns(session, "made") == [("id", "int"), ("name", "string"), ("dt", "string")]
    assert [row["_hoodie_partition_path"] for row in by_hudi_rs(place)] == ["dt=2021-12-01"]
    assert hudi.Table.open(place).history()["operation"].to_pylist() == ["BULK_INSERT"]
    session.sql("CREATE TABLE IF NOT EXISTS made USING hudi AS SELECT 1 AS other")
    session.sql("CREATE TABLE like_it LIKE made USING hudi TBLPROPERTIES (primaryKey = 'id')")
    session.sql("INSERT INTO like_it SELECT * FROM made")
    session.sql("INSERT INTO like_it TABLE made")
    assert asked(session, "SELECT id, name, dt FROM like_it") == [(1, "a1", "2021-12-01")] * 2
    assert asked(session, "SELECT id FROM made") == [(1,)]
    # the name goes, the table stays; purged it goes, too
    session.sql("DROP TABLE made")
    assert hudi.Table.open(place).count() == 1
    session.sql(f"CREATE TABLE made (id INT, name STRING, dt STRING) USING hudi LOCATION '{place}'")
    session.sql("DROP TABLE made PURGE")
    with pytest.raises(NotATableError):
        hudi.Table.open(place)
    # what fails half way leaves neither a table nor a name
    with pytest.raises(Exception, match="half way"):
        session.sql(
            "CREATE TABLE half USING hudi AS SELECT id, "
            "IF(id > 3, raise_error('half way'), 'x') AS v FROM range(5)"
        )
    assert not session.catalog.tableExists("half")
    session.sql("CREATE TABLE half USING hudi AS SELECT 1 AS id")
    session.sql("DROP TABLE IF EXISTS half")
    session.sql("DROP TABLE IF EXISTS half")


REFUSED = [
    ("CREATE TABLE bad (id INT, v VARCHAR(3)) USING hudi", SchemaError, "varchar|Varchar"),
    ("CREATE TABLE bad (id INT DEFAULT 5) USING hudi", SchemaError, "default values"),
    ("CREATE TABLE bad (id INT) USING hudi PARTITIONED BY (zz)", SchemaError, "zz"),
    ("CREATE TABLE bad (id INT) USING hudi PARTITIONED BY (bucket(4, id))", SchemaError, "bucket"),
    ("CREATE TABLE bad (id INT) CLUSTERED BY (id) INTO 4 BUCKETS USING hudi", SchemaError, "CLUST"),
    ("CREATE TABLE bad (id INT) USING hudi TBLPROPERTIES (primaryKey='k')", RecordKeyError, "'k'"),
    (
        (
            "CREATE TABLE bad (id INT) USING hudi "
            "TBLPROPERTIES (type='mor', 'hoodie.table.format'='iceberg', "
            "'hoodie.table.merge-on-read.mode'='logs')"
        ),
        UnsupportedCapabilityError,
        "merge on read",
    ),
    ("CREATE TABLE bad (id INT) USING hudi TBLPROPERTIES (a = b())", SchemaError, "expression"),
    ("CREATE TABLE bad USING hudi", NotATableError, "holds no Hudi table"),
    ("CREATE TABLE bad (x INT) USING hudi LOCATION '{path}'", SchemaError, "other columns"),
    ("CREATE TABLE bad USING hudi AS SELECT NULL AS x", SchemaError, "type null"),
    (
        "CREATE TABLE bad USING hudi LOCATION '{path}' TBLPROPERTIES (primaryKey = 'v')",
        OptionConflictError,
        "created with 'id'",
    ),
    ("CREATE OR REPLACE TABLE t USING hudi AS SELECT 1 AS id", SchemaError, "REPLACE TABLE"),
    ("ALTER TABLE t ADD COLUMNS (x INT FIRST)", SchemaError, "FIRST and AFTER"),
    ("ALTER TABLE t ADD COLUMNS (v INT)", SchemaError, "v"),
    ("ALTER TABLE t DROP COLUMN nope", SchemaError, "nope"),
    ("ALTER TABLE t DROP COLUMN id", SchemaError, "record key"),
    ("ALTER TABLE t ALTER COLUMN v SET NOT NULL", SchemaError, "only the type"),
    ("ALTER TABLE t ALTER COLUMN v TYPE BOOLEAN", SchemaError, "bool"),
    ("ALTER TABLE t ADD PARTITION (dt = 'x')", SchemaError, "ADD PARTITION"),
    ("ALTER TABLE t DROP PARTITION (dt = 'none')", PartitionValueError, "no rows"),
    ("ALTER TABLE t DROP PARTITION (v = 1)", SchemaError, "partition column 'v'"),
    ("ALTER TABLE t SET SERDEPROPERTIES ('a' = 'b')", SchemaError, "SERDEPROPERTIES"),
    ("ALTER TABLE t SET TBLPROPERTIES (primaryKey = 'v')", OptionConflictError, "'v'"),
    ("ALTER TABLE t SET LOCATION '/nowhere'", NotATableError, "nowhere"),
    ("ALTER TABLE t REPLACE COLUMNS (a INT)", SchemaError, "REPLACE COLUMNS"),
    ("INSERT INTO t VALUES (1, 2)", SchemaError, "gives 2 columns for 3"),
    ("INSERT INTO t (id, nope) VALUES (1, 2)", SchemaError, "nope"),
    ("INSERT INTO t (id, ID, dt) VALUES (1, 2, 3)", SchemaError, "twice"),
    ("INSERT INTO t PARTITION (v = 1) SELECT 1, 'a'", SchemaError, "partition column 'v'"),
    ("INSERT INTO t PARTITION (dt = 'a') IF NOT EXISTS SELECT 1, 2", SchemaError, "IF NOT EXISTS"),
    ("INSERT INTO t REPLACE WHERE id = 1 SELECT 1, 2, 'a'", SchemaError, "REPLACE WHERE"),
    ("INSERT WITH SCHEMA EVOLUTION INTO t SELECT 1", SchemaError, "SCHEMA EVOLUTION"),
    ("INSERT INTO t VALUES ('x', 1, 'a')", SchemaError, "type string"),
    ("UPDATE t SET v = 'x'", SchemaError, "'x' is no int"),
    ("CREATE INDEX i ON t (nope)", HudiError, "nope"),
    ("CREATE INDEX i ON t (v, dt)", HudiError, "2 columns"),
    ("DROP INDEX i ON t", HudiError, "no partition"),
    ("SELECT * FROM t TIMESTAMP AS OF '2001-01-01'", HudiError, "no state"),
    ("SELECT * FROM t VERSION AS OF 1", HudiError, "Instant 1"),
    ("SELECT * FROM hudi_table_changes('t', 'rows', 'earliest')", SchemaError, "'rows'"),
    ("SELECT * FROM hudi_table_changes('t', 'cdc')", SchemaError, "a begin"),
    ("CALL show_commits(tabel => 't')", SchemaError, "tabel"),
]


def test_what_is_refused_changes_nothing(lake: tuple[SparkSession, Path]) -> None:
    session, folder = lake
    session.sql(
        "CREATE TABLE t (id INT, v INT, dt STRING) USING hudi PARTITIONED BY (dt) "
        "TBLPROPERTIES (primaryKey = 'id')"
    )
    session.sql("INSERT INTO t VALUES (1, 1, 'a')")
    path = folder / "t"
    table = hudi.Table.open(path)
    before = table.history(), columns(session, "t"), sorted(folder.iterdir())
    for text, kind, said in REFUSED:
        with pytest.raises(kind, match=said):
            session.sql(text.format(path=path))
    names = {row[1] for row in asked(session, "SHOW TABLES")}
    assert "bad" not in names
    assert (table.history(), columns(session, "t"), sorted(folder.iterdir())) == before
    assert asked(session, "SELECT id, v, dt FROM t") == [(1, 1, "a")]
    # a folder that holds something else than a table of the statement is left alone
    session.sql("ALTER TABLE t RENAME TO t_2")
    with pytest.raises(NotATableError, match="LOCATION"):
        session.sql("CREATE TABLE t (id INT) USING hudi")
    session.sql("DROP TABLE t_2")
    session.sql("CREATE TABLE t (id INT) USING hudi")
    session.sql("DROP TABLE t")


def test_values_are_assigned_as_in_spark(lake: tuple[SparkSession, Path]) -> None:
    session, folder = lake
    session.sql(
        "CREATE TABLE typed (i INT, s STRING, d DECIMAL(5,2), t TIMESTAMP, b BINARY) USING hudi"
    )
    session.sql("INSERT INTO typed VALUES (1L, 5, 1, TIMESTAMP '2020-01-01 00:00:00Z', X'00')")
    session.sql("INSERT INTO typed SELECT NULL, true, 2.5, NULL, NULL")
    for text in ("3000000000, 'a', 1", "1, 'a', 1000"):
        with pytest.raises(Exception, match=r"is no (int|decimal)"):
            session.sql(f"INSERT INTO typed (i, s, d) VALUES ({text})")
    session.sql("UPDATE typed SET t = '2021-02-03 04:05:06', d = '7.5' WHERE i = 1")
    session.sql(
        "MERGE INTO typed t USING (SELECT '1' AS i, '9' AS d) s ON t.i = s.i "
        "WHEN MATCHED THEN UPDATE SET d = s.d"
    )
    with pytest.raises(Exception, match=r"is no int"):
        session.sql(
            "MERGE INTO typed t USING (SELECT 'x' AS i, 'k' AS s) s ON t.s = s.s "
            "WHEN NOT MATCHED THEN INSERT *"
        )
    found = hudi.Table.open(folder / "typed").to_arrow(["i", "s", "d"]).sort_by("s")
    assert [str(one) for one in found["d"].to_pylist()] == ["9.00", "2.50"]
    assert found["s"].to_pylist() == ["5", "true"]
    assert found.schema.field("d").type == pa.decimal128(5, 2)
    session.sql("DROP TABLE typed")
