"""Tables of every format as a real Trino reads them, by its own connectors and by our service.

Each query is printed with what it found; ``docs/trino.md`` has the table.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pytest
from hudi_conformance.hive_metastore import HiveMetastore, hive_metastore

import hudi_core as hudi
from hudi_core.config.trino import TrinoConfig
from hudi_core.read.connector.handles import TableName
from hudi_core.trino.server import ThriftServer
from hudi_core.trino.service import TrinoService
from tests.formats.certificates import Authority
from tests.formats.history_readers import delta_versions, iceberg_snapshots
from tests.tables import FORMATS
from tests.trino.server import QueryFailedError, Trino, trino

LAKE: Final = "lake"
OWN: Final = {"native": "hudi", "iceberg": "iceberg", "delta": "delta"}
"""Trino's own connector for each format."""
VECTORS: Final = {"iceberg_2": "iceberg"}
"""Tables that delete rows by position, and their formats."""
REFUSED: Final = {"iceberg_3": ("iceberg", "PUFFIN"), "delta_vectors": ("delta", "Random prefix")}
"""Those whose deletions Trino's own connectors do not read, and in which words."""
SPLIT: Final = "native_split"
FIRST_DAY: Final = dt.date(2026, 1, 1)


def distinct_rows(first: int, count: int, fare: float = 1.0) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "name": [f"rider {n}" for n in numbers],
            "fare": pa.array([n * fare for n in numbers], pa.float64()),
            "price": pa.array([Decimal(n) / 100 for n in numbers], pa.decimal128(9, 2)),
            "day": pa.array([FIRST_DAY + dt.timedelta(days=n % 30) for n in numbers]),
            "paid": pa.array([None if n % 7 == 0 else n % 2 == 0 for n in numbers], pa.bool_()),
            "at": pa.array(
                [dt.datetime(2026, 1, 1, 0, n % 60, tzinfo=dt.UTC) for n in numbers],
                pa.timestamp("us", "UTC"),
            ),
            "city": pa.array([("Rome", "Oslo", "Kyoto")[n % 3] for n in numbers]),
        }
    )


class Place(NamedTuple):
    """A table, and where Trino finds it."""

    catalog: str
    table: str


class Tables(NamedTuple):
    """The server, and the tables by the names of their formats."""

    server: Trino
    tables: dict[str, hudi.Table]
    version: str


def make_table(
    path: Path, table_format: str, kind: str = "COPY_ON_WRITE", **more: str
) -> hudi.Table:
    """A table with a history: rows that were updated, deleted, and added."""
    options = {
        "hoodie.write.table.version": "8",
        "hoodie.datasource.write.hive_style_partitioning": "true",
    }
    table = hudi.Table.create(
        str(path),
        distinct_rows(0, 1).schema,
        record_key="id",
        partition_by="city",
        format=table_format,
        table_type=kind,
        options=options | more,
    )
    table.bulk_insert(distinct_rows(0, 300))
    table.upsert(distinct_rows(100, 50, fare=2.0))
    table.delete(distinct_rows(0, 10))
    table.insert(distinct_rows(300, 30))
    return table


@pytest.fixture(scope="module")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveMetastore]:
    with hive_metastore(tmp_path_factory.mktemp("metastore")) as service:
        yield service


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, metastore: HiveMetastore) -> Iterator[Tables]:
    folder = tmp_path_factory.mktemp("lake")
    tables = {one: make_table(folder / one, one) for one in FORMATS}
    tables["spread"] = make_table(
        folder / "spread",
        "native",
        **{
            "hoodie.storage.path": str(folder / "storage"),
            "hoodie.storage.strategy.class": "object_store",
        },
    )
    tables["virtual"] = make_table(
        folder / "virtual", "native", **{"hoodie.populate.meta.fields": "false"}
    )
    for one, table_format in {
        **VECTORS,
        **{one: words[0] for one, words in REFUSED.items()},
    }.items():
        version = {"hoodie.table.format.iceberg.format-version": one[-1]}
        given = version if table_format == "iceberg" else {}
        tables[one] = make_table(folder / one, table_format, "MERGE_ON_READ", **given)
    mode = {"hoodie.table.merge-on-read.mode": "split"}
    tables[SPLIT] = make_table(folder / SPLIT, "native", "MERGE_ON_READ", **mode)
    for one in (*FORMATS, *VECTORS, *REFUSED, SPLIT):
        synced = tables[one].sync(
            "hive",
            options={
                "hoodie.datasource.hive_sync.metastore.uris": metastore.uri,
                "hoodie.datasource.hive_sync.database": LAKE,
                "hoodie.datasource.hive_sync.table": one,
            },
        )
        print(f"synced: {synced}")
    authority = Authority(folder, "authority")
    key = folder / "key"
    key.write_text("0123456789abcdef" * 4)
    shared = {"hudi.trino.signing-key-file": str(key)}
    mutual = {
        "hudi.trino.tls.certificate-file": str(authority.issue("server")),
        "hudi.trino.tls.client-ca-file": str(authority.certificate),
    }
    served = {TableName(LAKE, name): table.path for name, table in tables.items()}
    common = {"hive.metastore.uri": metastore.uri, "fs.hadoop.enabled": "true"}
    with ExitStack() as stack:
        places = []
        # two servers of one key behind one catalog, and one that asks for certificates
        for options in (shared, shared, mutual):
            config = TrinoConfig.from_options(options)
            server = ThriftServer(TrinoService(hudi.Connector(), served, config))
            host, port = stack.enter_context(server.running())
            places.append(f"{host}:{port}")
        tls = {
            "trino.thrift.client.ssl.enabled": "true",
            "trino.thrift.client.ssl.trust-certificate": str(authority.certificate),
        }
        catalogs = {
            "hudi": {"connector.name": "hudi", **common},
            "iceberg": {
                "connector.name": "iceberg",
                "iceberg.catalog.type": "hive_metastore",
                **common,
            },
            "delta": {"connector.name": "delta_lake", **common},
            "ours": thrift_catalog(",".join(places[:2])),
            "mutual": thrift_catalog(places[2])
            | tls
            | {"trino.thrift.client.ssl.key": str(authority.issue("trino"))},
            # of an authority that the service does not know
            "stranger": thrift_catalog(places[2])
            | tls
            | {"trino.thrift.client.ssl.key": str(Authority(folder, "other").issue("trino"))},
        }
        engine = stack.enter_context(trino(tmp_path_factory.mktemp("trino"), catalogs))
        print(f"Trino {engine.version}")
        yield Tables(engine, tables, engine.version)


def thrift_catalog(addresses: str) -> dict[str, str]:
    return {
        "connector.name": "trino_thrift",
        "trino.thrift.client.addresses": addresses,
        "trino.thrift.client.transport": "FRAMED",
        "trino.thrift.client.protocol": "BINARY",
    }


PLACES: Final = [
    *(Place(OWN[one], one) for one in FORMATS),
    *(Place(catalog, one) for one, catalog in VECTORS.items()),
    *(Place("ours", one) for one in (*FORMATS, "spread", "virtual", *VECTORS, *REFUSED, SPLIT)),
]
COLUMNS: Final = ("id", "name", "fare", "paid", "city")
CONDITIONS: Final = {
    "all rows": ("true", "True"),
    "one partition": ("city = 'Oslo'", "city == 'Oslo'"),
    "two partitions": ("city IN ('Oslo', 'Rome')", "city in ('Oslo', 'Rome')"),
    "range": ("id BETWEEN 95 AND 105", "95 <= id <= 105"),
    "doubles": ("fare > 250", "fare > 250"),
    "text": ("name = 'rider 120'", "id == 120"),
    "null": ("paid IS NULL", "paid is None"),
    "true": ("paid AND city <> 'Oslo'", "paid is True and city != 'Oslo'"),
    "date": ("day = DATE '2026-01-05'", "day == FIRST_DAY + dt.timedelta(days=4)"),
    "time": ("at >= TIMESTAMP '2026-01-01 00:58:00{zone}'", "at.minute >= 58"),
    "decimal": ("CAST(price AS decimal(9, 2)) = 1.25", "id == 125"),
    "nothing": ("id < 0", "False"),
}
"""What is asked for, in Trino's SQL and in Python's words over a row."""


@pytest.mark.parametrize("name", CONDITIONS)
@pytest.mark.parametrize("place", PLACES, ids=".".join)
def test_rows(lake: Tables, place: Place, name: str) -> None:
    condition, meaning = CONDITIONS[name]
    # Hudi's connector and the Thrift protocol have timestamps without a zone
    zone = " UTC" if place.catalog in ("iceberg", "delta") else ""
    table = f"{place.catalog}.{LAKE}.{place.table}"
    sql = f"SELECT {', '.join(COLUMNS)} FROM {table} WHERE {condition.format(zone=zone)}"
    found = lake.server.query(sql)
    rows = lake.tables[place.table].to_arrow().to_pylist()
    wanted = [[row[one] for one in COLUMNS] for row in rows if _holds(meaning, row)]
    print(f"{place.catalog:8} {place.table:8} {name:15} {len(found.rows):4} rows: {sql}")
    assert sorted(found.rows, key=repr) == sorted(wanted, key=repr)


def _holds(meaning: str, row: dict[str, Any]) -> bool:
    known = {"dt": dt, "FIRST_DAY": FIRST_DAY}
    return bool(eval(meaning, known, row))


@pytest.mark.parametrize("place", PLACES, ids=".".join)
def test_count(lake: Tables, place: Place) -> None:
    found = lake.server.query(f"SELECT count(*) FROM {place.catalog}.{LAKE}.{place.table}")
    assert found.rows == [[lake.tables[place.table].count()]]


@pytest.mark.parametrize("place", PLACES, ids=".".join)
def test_columns(lake: Tables, place: Place) -> None:
    found = lake.server.query(f"SHOW COLUMNS FROM {place.catalog}.{LAKE}.{place.table}")
    names = [row[0] for row in found.rows]
    assert {"id", "name", "fare", "price", "day", "paid", "at", "city"} <= set(names)
    print(f"{place.catalog:8} {place.table:8} columns: {', '.join(names)}")


@pytest.mark.parametrize("name", VECTORS)
def test_past_states_of_tables_with_deleted_rows(lake: Tables, name: str) -> None:
    """By the own time travel of each format."""
    table, catalog = lake.tables[name], VECTORS[name]
    path = Path(table.path)
    named = iceberg_snapshots(path) if catalog == "iceberg" else delta_versions(path)
    for instant in table.timeline.completed_writes():
        version = named[instant.requested_time]
        sql = f"SELECT id, fare FROM {catalog}.{LAKE}.{name} FOR VERSION AS OF {version}"
        rows = table.to_arrow(["id", "fare"], as_of=instant).to_pylist()
        assert sorted(lake.server.query(sql).rows) == sorted([*row.values()] for row in rows)


@pytest.mark.parametrize("name", REFUSED)
def test_its_connectors_refuse_vectors(lake: Tables, name: str) -> None:
    """By name; no dead row is shown."""
    catalog, words = REFUSED[name]
    with pytest.raises(QueryFailedError, match=words):
        lake.server.query(f"SELECT count(fare) FROM {catalog}.{LAKE}.{name}")


def test_its_hudi_connector_does_not_know_deleted_rows(lake: Tables) -> None:
    """It reads base files alone: of a split table the former versions of rows, too."""
    found = lake.server.query(f"SELECT id FROM hudi.{LAKE}.{SPLIT}").rows
    keys = [key for (key,) in found]
    held = lake.tables[SPLIT].to_arrow("id")["id"].to_pylist()
    # 50 rows that were updated, and 10 that were deleted
    assert sorted(keys) == sorted([*held, *range(100, 150), *range(10)])


def test_a_join_of_all_formats(lake: Tables) -> None:
    """One statement that reads a table of each format by a connector each."""
    sql = (
        f"SELECT count(*) FROM hudi.{LAKE}.native n JOIN iceberg.{LAKE}.iceberg i USING (id) "
        f"JOIN delta.{LAKE}.delta d USING (id) JOIN ours.{LAKE}.spread s USING (id)"
    )
    assert lake.server.query(sql).rows == [[lake.tables["native"].count()]]


@pytest.mark.parametrize("place", [Place("mutual", one) for one in FORMATS], ids=".".join)
def test_client_certificates(lake: Tables, place: Place) -> None:
    count = f"SELECT count(*) FROM {place.catalog}.{LAKE}.{place.table}"
    assert lake.server.query(count).rows == [[lake.tables[place.table].count()]]
    with pytest.raises(QueryFailedError) as refused:
        lake.server.query(count.replace("mutual", "stranger"))
    print(f"stranger: {refused.value}")


def test_what_was_written_since_is_seen(lake: Tables) -> None:
    for name in ("native", "spread"):
        table = lake.tables[name]
        table.upsert(distinct_rows(200, 5, fare=9.0))
        sql = f"SELECT fare FROM ours.{LAKE}.{name} WHERE id = 201"
        assert lake.server.query(sql).rows == [[201 * 9.0]]
