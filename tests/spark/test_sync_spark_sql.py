"""Tables that a sync registered, queried by their names: in Spark SQL, without Hudi's jars."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hudi_conformance.hive_metastore import HiveMetastore

import hudi_core as hudi
from tests.hudi_tables import OWN, TRIPS
from tests.spark import synced_tables

pytestmark = pytest.mark.spark

CAPITALS = pa.schema(
    [
        ("id", pa.int64()),
        ("City", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("tags", pa.list_(pa.string())),
    ]
)


def capital_rows(ids: list[int], cities: list[str]) -> pa.Table:
    tags = [[city] for city in cities]
    return pa.table({"id": ids, "City": cities, "at": [0] * len(ids), "tags": tags}, CAPITALS)


Answers = Callable[..., list[Any]]


@pytest.fixture(scope="module")
def answers(
    metastore: HiveMetastore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Answers]:
    """What gives the rows of some queries in one Spark, which starts slowly."""
    scratch = tmp_path_factory.mktemp("hive")
    command = [sys.executable, str(synced_tables.__file__), metastore.uri, str(scratch)]
    with (
        (scratch / "errors").open("w+") as errors,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as spark,
    ):
        assert spark.stdin is not None
        assert spark.stdout is not None
        asked, told = spark.stdin, spark.stdout

        def ask(*queries: str) -> list[Any]:
            asked.writelines(f"{query}\n" for query in queries)
            asked.flush()
            lines = [told.readline() for _ in queries]
            assert all(lines), (scratch / "errors").read_text()[-4000:]
            return [json.loads(line) for line in lines]

        try:
            yield ask
            asked.close()
            assert spark.wait(300) == 0
        finally:
            spark.kill()


def test_spark_finds_tables_by_their_names(
    metastore: HiveMetastore, answers: Answers, tmp_path: Path
) -> None:
    lake = f"s{uuid.uuid4().hex}"
    options = {
        "hoodie.datasource.hive_sync.enable": True,
        "hoodie.datasource.hive_sync.metastore.uris": metastore.uri,
        "hoodie.datasource.hive_sync.database": lake,
    }
    trips = hudi.Table.create(
        tmp_path / "trips", CAPITALS, record_key="id", partition_by="City", options=options
    )
    trips.insert(capital_rows([1, 2, 3], ["Rome", "Bern", "Rome"]))
    trips.upsert(capital_rows([3], ["Rome"]))
    trips.delete_partitions(["Bern"])
    plain = hudi.Table.create(tmp_path / "plain", CAPITALS, record_key="id", options=options)
    plain.insert(capital_rows([7], ["Ulm"]))
    plain.alter(add_columns={"tip": pa.int32()})

    found = answers(
        f"SELECT id, City, CAST(at AS STRING), tags FROM {lake}.trips ORDER BY id",
        f"SELECT id FROM {lake}.trips WHERE city = 'Rome' AND id > 1",
        f"SELECT id, tip FROM {lake}.plain",
        f"SELECT count(*) FROM {lake}.trips t JOIN {lake}.plain p ON t.id < p.id",
        f"DESCRIBE {lake}.trips",
    )
    epoch = "1970-01-01 00:00:00"
    assert found[0] == [[1, "Rome", epoch, ["Rome"]], [3, "Rome", epoch, ["Rome"]]]
    assert found[1] == [[3]]
    assert found[2] == [[7, None]]
    assert found[3] == [[2]]
    described = [row[:2] for row in found[4]]
    assert ["id", "bigint"] in described


def test_entries_of_a_table_with_logs(
    metastore: HiveMetastore, answers: Answers, tmp_path: Path
) -> None:
    """As Apache Hudi wrote it; each entry gives the rows that its suffix says."""
    lake, path = f"l{uuid.uuid4().hex}", OWN.unpack(TRIPS, tmp_path / "t")
    uris = "hoodie.datasource.hive_sync.metastore.uris"
    options = {uris: metastore.uri, "hoodie.datasource.hive_sync.database": lake}
    hudi.Table.open(path).sync(options={**options, "hoodie.datasource.hive_sync.table": "t"})

    def rows(kind: str) -> list[list[Any]]:
        found = hudi.read(None, path, {"hoodie.datasource.query.type": kind})
        return sorted([row["uuid"], row["fare"], row["city"]] for row in found.to_pylist())

    query = "SELECT uuid, fare, city FROM {}.{} ORDER BY uuid"
    found = answers(*(query.format(lake, name) for name in ("t_ro", "t_rt", "t")))
    assert found == [rows("read_optimized"), rows("snapshot"), rows("snapshot")]
    assert found[0] != found[1]
    counted = f"SELECT count(*) FROM {lake}.t_rt WHERE city = 'rome' AND fare = 1.5"
    assert answers(counted) == [[[1]]]


def test_tables_that_statements_make(answers: Answers, tmp_path: Path) -> None:
    lake, place = f"m{uuid.uuid4().hex}", tmp_path / "placed"
    found = answers(
        f"CREATE DATABASE {lake} LOCATION '{tmp_path}/{lake}'",
        f"USE {lake}",
        "CREATE TABLE t (id INT, v STRING COMMENT 'value', dt STRING) USING hudi "
        "PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id')",
        "INSERT INTO t VALUES (1, 'a', 'x'), (2, 'b', 'y')",
        "ALTER TABLE t ADD COLUMNS (n INT)",
        "ALTER TABLE t RENAME TO t2",
        "UPDATE t2 SET n = id * 2 WHERE id = 2",
        "SELECT id, v, n, dt FROM t2 ORDER BY id",
        "DESCRIBE t2 v",
        f"CREATE TABLE placed USING hudi LOCATION '{place}' AS SELECT 7 AS id",
        "SELECT p.id, t.v FROM placed p JOIN t2 t ON t.n < p.id",
        "DROP TABLE placed",
        "DROP TABLE t2",
        "SHOW TABLES",
    )
    assert [one for one in found if isinstance(one, str)] == []
    assert found[7] == [[1, "a", None, "x"], [2, "b", 4, "y"]]
    assert ["comment", "value"] in found[8]
    assert found[10] == [[7, "b"]]
    assert found[13] == []
    assert hudi.Table.open(place).count() == 1
    assert not (tmp_path / lake / "t" / ".hoodie" / "hoodie.properties").exists()
