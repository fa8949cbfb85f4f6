"""Hudi's quick start for Spark SQL, statement by statement, in a session of ours."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hudi_core as hudi
from hudi_core.errors import TableServiceError
from tests.foreign import by_hudi_rs

pytestmark = pytest.mark.spark

COLUMNS = "ts BIGINT, uuid STRING, rider STRING, driver STRING, fare DOUBLE, city STRING"
TRIPS = """
(1695159649087, '334e26e9', 'rider-A', 'driver-K', 19.10, 'san_francisco'),
(1695091554788, 'e96c4396', 'rider-C', 'driver-M', 27.70 ,'san_francisco'),
(1695046462179, '9909a8b1', 'rider-D', 'driver-L', 33.90 ,'san_francisco'),
(1695516137016, 'e3cf430c', 'rider-F', 'driver-P', 34.15, 'sao_paulo'    ),
(1695115999911, 'c8abbe79', 'rider-J', 'driver-T', 17.85, 'chennai')
"""


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[tuple[SparkSession, Path]]:
    """A session with the one line more, and an empty database in a folder."""
    session = hudi.sql_session(spark)
    name = f"q{uuid.uuid4().hex}"
    session.sql(f"CREATE DATABASE {name} LOCATION '{tmp_path}/lake'")
    session.sql(f"USE {name}")
    yield session, tmp_path / "lake"
    session.sql("USE default")
    session.sql(f"DROP DATABASE {name} CASCADE")
    for key in (
        "hoodie.spark.sql.insert.into.operation",
        "hoodie.write.lock.provider",
        "hoodie.metadata.record.index.enable",
    ):
        spark.conf.unset(key)


def asked(session: SparkSession, query: str) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, session.sql(query).collect()), key=repr)


def test_rows_step_by_step(lake: tuple[SparkSession, Path]) -> None:
    session, folder = lake
    # create a table: partitioned, without keys
    session.sql(f"CREATE TABLE hudi_table ({COLUMNS}) USING HUDI\nPARTITIONED BY (city);")
    assert asked(session, "SHOW TABLES")[0][1:] == ("hudi_table", False)
    # insert data
    session.sql(f"INSERT INTO hudi_table VALUES {TRIPS};")
    first = hudi.Table.open(folder / "hudi_table").timeline.completed_writes()[-1]
    # the operation of insertions
    session.sql("SET hoodie.spark.sql.insert.into.operation = 'bulk_insert'")
    # query data
    found = asked(session, "SELECT rider, fare FROM hudi_table WHERE fare > 20.0;")
    assert found == [("rider-C", 27.7), ("rider-D", 33.9), ("rider-F", 34.15)]
    assert asked(session, "SELECT DISTINCT _hoodie_partition_path FROM hudi_table") == [
        ("city=chennai",),
        ("city=san_francisco",),
        ("city=sao_paulo",),
    ]
    # update data
    session.sql("UPDATE hudi_table SET fare = 25.0 WHERE rider = 'rider-D';")
    # merging data: a source of Hudi's
    session.sql(f"CREATE TABLE fare_adjustment ({COLUMNS}) \nUSING HUDI;")
    session.sql(
        """INSERT INTO fare_adjustment VALUES
        (1695091554788, 'e96c4396', 'rider-C', 'driver-M', -2.70, 'san_francisco'),
        (1695530237068, '3f3d9565', 'rider-K', 'driver-U', 64.20, 'san_francisco'),
        (1695115999911, 'c8abbe79', 'rider-J', 'driver-T', 1.85, 'chennai'      );"""
    )
    [bulk] = hudi.Table.open(folder / "fare_adjustment").history()["operation"].to_pylist()
    assert bulk == "BULK_INSERT"
    # merging data
    counts = session.sql(
        """MERGE INTO hudi_table AS target
        USING fare_adjustment AS source
        ON target.uuid = source.uuid
        WHEN MATCHED THEN UPDATE SET target.fare = target.fare + source.fare
        WHEN NOT MATCHED THEN INSERT *
        ;"""
    ).first()
    assert counts is not None
    assert counts.asDict() == {
        "num_affected_rows": 3,
        "num_updated_rows": 2,
        "num_deleted_rows": 0,
        "num_inserted_rows": 1,
    }
    fares = {"rider-A": 19.1, "rider-D": 25.0, "rider-F": 34.15, "rider-K": 64.2}
    merged = {**fares, "rider-C": 25.0, "rider-J": 17.85 + 1.85}
    assert dict(asked(session, "SELECT rider, fare FROM hudi_table")) == merged
    # merging data: partial updates
    session.sql(
        """MERGE INTO hudi_table AS target
        USING fare_adjustment AS source
        ON target.uuid = source.uuid
        WHEN MATCHED THEN UPDATE SET fare = source.fare
        WHEN NOT MATCHED THEN INSERT *
        ;"""
    )
    # delete data
    session.sql("DELETE FROM hudi_table WHERE uuid = '3f3d9565';")
    del fares["rider-K"]
    now = {**fares, "rider-C": -2.7, "rider-J": 1.85}
    assert {row["rider"]: row["fare"] for row in by_hudi_rs(folder / "hudi_table")} == now
    assert dict(asked(session, "SELECT rider, fare FROM hudi_table")) == now

    # time travel: by a commit, and by a time in other words
    then = asked(session, f"SELECT rider, fare FROM hudi_table TIMESTAMP AS OF '{at(first)}'")
    assert ("rider-D", 33.9) in then
    assert len(then) == 5
    digits = at(first)
    words = f"{digits[:4]}-{digits[4:6]}-{digits[6:8]} {digits[8:10]}:{digits[10:12]}:"
    seconds = f"{digits[12:14]}.{digits[14:]}"
    query = f"SELECT rider, fare FROM hudi_table TIMESTAMP AS OF '{words}{seconds}' WHERE fare > 0"
    assert asked(session, query) == then
    # incremental query: all, to an end, and between
    latest = "SELECT rider FROM hudi_table_changes('hudi_table', 'latest_state', "
    assert len(asked(session, f"{latest}'earliest');")) == 5
    assert len(asked(session, f"{latest}'earliest', '{first.completion_time}');")) == 5
    changed = asked(session, f"{latest}'{first.completion_time}') WHERE fare < 30")
    assert changed == [("rider-C",), ("rider-D",), ("rider-J",)]
    # change data capture query, by path
    feed = f"SELECT op, count(*) FROM hudi_table_changes('{folder}/hudi_table', 'cdc', 'earliest')"
    assert asked(session, f"{feed} GROUP BY op") == [("d", 1), ("i", 6), ("u", 6)]


def at(instant: hudi.Instant) -> str:
    return instant.requested_time


def test_indexes_step_by_step(lake: tuple[SparkSession, Path]) -> None:
    session, folder = lake
    # create a table with a key, by options
    session.sql(
        f"""CREATE TABLE hudi_indexed_table ({COLUMNS}) USING HUDI
        options(
            primaryKey ='uuid',
            hoodie.write.record.merge.mode = "COMMIT_TIME_ORDERING"
        )
        PARTITIONED BY (city);"""
    )
    session.sql(f"INSERT INTO hudi_indexed_table VALUES {TRIPS}".replace("087,", ","))
    session.sql(
        "SET hoodie.write.lock.provider = "
        "org.apache.hudi.client.transaction.lock.InProcessLockProvider;"
    )
    # an index of the type bloom_filters is refused by its name
    with pytest.raises(TableServiceError, match="cannot be of the type bloom_filters"):
        session.sql(
            "CREATE INDEX idx_bloom_driver ON hudi_indexed_table USING bloom_filters(driver) "
            "OPTIONS(expr='identity');"
        )
    # an expression index
    session.sql(
        "CREATE INDEX idx_column_ts ON hudi_indexed_table USING column_stats(ts) "
        "OPTIONS(expr='from_unixtime', format = 'yyyy-MM-dd');"
    )
    shown = asked(session, "SHOW INDEXES FROM hudi_indexed_table;")
    assert ("expr_index_idx_column_ts", "ts", "column_stats") in shown
    day = "SELECT rider FROM hudi_indexed_table WHERE from_unixtime(ts, 'yyyy-MM-dd') = "
    assert asked(session, f"{day}'2023-09-19'") == [("rider-A",)]
    # the record index, and a secondary index
    session.sql("SET hoodie.metadata.record.index.enable=true;")
    session.sql("CREATE INDEX record_index ON hudi_indexed_table (uuid);")
    session.sql("CREATE INDEX idx_rider ON hudi_indexed_table (rider);")
    shown = asked(session, "SHOW INDEXES FROM hudi_indexed_table;")
    assert ("secondary_index_idx_rider", "rider", "secondary_index") in shown
    assert "record_index" in {row[0] for row in shown}
    assert asked(session, "SELECT uuid FROM hudi_indexed_table WHERE rider = 'rider-F'") == [
        ("e3cf430c",)
    ]
    # update a record, a number by its text
    session.sql(
        "UPDATE hudi_indexed_table SET rider = 'rider-B', driver = 'driver-N', "
        "ts = '1697516137' WHERE rider = 'rider-A';"
    )
    assert asked(session, f"{day}'2023-10-17';") == [("rider-B",)]
    table = hudi.Table.open(folder / "hudi_indexed_table")
    [file] = table.file_slices(filter=[("rider", "=", "rider-B")])
    assert file.partition_path == "city=san_francisco"
    assert table.validate(keys=True).is_valid
    # drop all of them, the one first that another needs
    session.sql("DROP INDEX record_index on hudi_indexed_table;")
    session.sql("DROP INDEX secondary_index_idx_rider on hudi_indexed_table;")
    session.sql("DROP INDEX expr_index_idx_column_ts on hudi_indexed_table;")
    left = {row[0] for row in asked(session, "SHOW INDEXES FROM hudi_indexed_table;")}
    assert left == {"column_stats", "partition_stats"}
    session.sql("SET hoodie.metadata.record.index.enable=false;")
    with pytest.raises(TableServiceError, match="no partition"):
        session.sql("DROP INDEX idx_typo on hudi_indexed_table")
    assert hudi.Table.open(table.path).validate().is_valid


def test_kinds_of_tables_step_by_step(lake: tuple[SparkSession, Path]) -> None:
    session, folder = lake
    # table types: changes go into log files, until a compaction
    session.sql(
        f"CREATE TABLE mor ({COLUMNS}) USING HUDI TBLPROPERTIES (type = 'mor') "
        "PARTITIONED BY (city);"
    )
    session.sql(f"INSERT INTO mor VALUES {TRIPS};")
    session.sql("UPDATE mor SET fare = 25.0 WHERE rider = 'rider-D';")
    session.sql("DELETE FROM mor WHERE uuid = 'c8abbe79';")
    merged = hudi.Table.open(folder / "mor")
    assert merged.config.table_type == "MERGE_ON_READ"
    assert sum(len(one.log_files) for one in merged.file_slices()) == 2
    left = [("rider-A", 19.1), ("rider-C", 27.7), ("rider-D", 25.0), ("rider-F", 34.15)]
    assert asked(session, "SELECT rider, fare FROM mor") == left
    assert sorted((row["rider"], row["fare"]) for row in by_hudi_rs(folder / "mor")) == left
    session.sql("CALL run_compaction(op => 'run', table => 'mor')")
    assert not any(one.log_files for one in merged.file_slices())
    assert asked(session, "SELECT rider, fare FROM mor") == left
    # keys
    session.sql(
        f"CREATE TABLE keyed ({COLUMNS}) USING HUDI TBLPROPERTIES (primaryKey = 'uuid', "
        "type = 'cow') PARTITIONED BY (city);"
    )
    # merge modes
    session.sql(
        f"CREATE TABLE ordered ({COLUMNS}) USING HUDI TBLPROPERTIES (primaryKey = 'uuid', "
        "preCombineField = 'ts') PARTITIONED BY (city);"
    )
    for name in ("keyed", "ordered"):
        for ts, fare in ((20, 2.0), (10, 1.0)):
            trip = f"({ts}, 'k', 'rider-A', 'driver-K', {fare}, 'rome')"
            session.sql(f"INSERT INTO {name} VALUES {trip}")
    # without an ordering field an insertion is one; with it the later event wins
    assert asked(session, "SELECT fare FROM keyed") == [(1.0,), (2.0,)]
    assert asked(session, "SELECT fare FROM ordered") == [(2.0,)]
    config = hudi.Table.open(folder / "ordered").config
    assert (config.record_key_fields, config.ordering_fields) == (("uuid",), ("ts",))
    assert config.name == "ordered"
    # an existing table by its place
    session.sql(f"CREATE TABLE again USING hudi LOCATION '{folder}/keyed'")
    session.sql("UPDATE again SET fare = 3")
    assert asked(session, "SELECT fare FROM keyed") == [(3.0,), (3.0,)]
    # create table as select: from another table, and with partitions
    session.sql("CREATE TABLE plain USING parquet AS SELECT uuid, fare, city FROM ordered")
    session.sql(
        "CREATE TABLE copied USING hudi TBLPROPERTIES (primaryKey = 'uuid') "
        "PARTITIONED BY (city) AS SELECT * FROM plain"
    )
    assert asked(session, "SELECT _hoodie_partition_path, fare FROM copied") == [("city=rome", 2.0)]
    assert by_hudi_rs(folder / "copied")[0]["fare"] == 2.0
