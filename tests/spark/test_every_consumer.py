"""Every consumer of a table returns the rows that the reader of its format finds, by predicate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import hudi_core as hudi
from hudi_core.read.connector.handles import TableName
from hudi_core.read.connector.predicate import TupleDomain
from hudi_core.trino.server import ThriftServer
from hudi_core.trino.service import TrinoService
from tests.formats.trino_client import (
    ABOVE,
    BELOW,
    EXACTLY,
    PROTOCOL,
    all_splits,
    between,
    connected,
    domain,
    rows_of_split,
    table_name,
)
from tests.samples import IS_WHOLE
from tests.spark.judges import judged
from tests.tables import new_table

pytestmark = pytest.mark.spark

CONSUMED = ("native", "iceberg,delta", *(("iceberg", "delta") if IS_WHOLE else ()))
"""The second one is judged by the readers of both."""
FARES = pa.schema(
    [("id", pa.int64()), ("city", pa.string()), ("fare", pa.float64()), ("ts", pa.int64())]
)
CITIES = ("Rome", "Oslo", "Kyōto")
Row = Mapping[str, Any]


class Predicate(NamedTuple):
    """One condition on rows, in the words of each consumer.

    ``holds``: whether a row meets it. ``conditions``: as queries of tables take it. ``sql``: as
    engines with SQL do. ``domains``: as Trino does: by column.
    """

    holds: Callable[[Row], bool]
    conditions: list[tuple[Any, ...]] | None
    sql: str
    domains: Sequence[Any] = ()


IDS = (3, 50, 77, 999)
PREDICATES = {
    "all": Predicate(lambda row: True, None, "true"),
    "partition": Predicate(
        lambda row: row["city"] == "Oslo",
        [("city", "=", "Oslo")],
        "city = 'Oslo'",
        [domain("city", between("varchar", "Oslo", "Oslo"))],
    ),
    "range": Predicate(
        lambda row: 40 <= row["id"] < 60,
        [("id", ">=", 40), ("id", "<", 60)],
        "id >= 40 AND id < 60",
        [domain("id", between("bigint", 40, 60, (EXACTLY, BELOW)))],
    ),
    "set": Predicate(
        lambda row: row["id"] in IDS,
        [("id", "in", IDS)],
        f"id IN {IDS}",
        [domain("id", *(between("bigint", one, one) for one in IDS))],
    ),
    "null": Predicate(
        lambda row: row["fare"] is None,
        [("fare", "is null", None)],
        "fare IS NULL",
        [domain("fare", nulls=True)],
    ),
    "both": Predicate(
        lambda row: row["city"] == "Rome" and (row["fare"] or 0) > 20,
        [("city", "=", "Rome"), ("fare", ">", 20.0)],
        "city = 'Rome' AND fare > 20",
        [
            domain("city", between("varchar", "Rome", "Rome")),
            domain("fare", between("double", 20.0, None, (ABOVE, BELOW))),
        ],
    ),
    "nobody": Predicate(
        lambda row: row["id"] < 0,
        [("id", "<", 0)],
        "id < 0",
        [domain("id", between("bigint", None, 0, (ABOVE, BELOW)))],
    ),
}


def fare_rows(first: int, last: int, ts: int) -> pa.Table:
    made = [
        {"id": n, "city": CITIES[n % 3], "fare": None if n % 7 == 0 else n / 2 + ts, "ts": ts}
        for n in range(first, last)
    ]
    return pa.Table.from_pylist(made, FARES)


@pytest.fixture(scope="module", params=CONSUMED)
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> hudi.Table:
    """Rows that were inserted, updated, deleted and put together, in several files."""
    made = new_table(tmp_path_factory.mktemp("consumers") / "trips", FARES, format=request.param)
    made.bulk_insert(fare_rows(0, 50, 1))
    made.bulk_insert(fare_rows(50, 90, 1))
    made.upsert(fare_rows(40, 100, 2))
    made.delete(fare_rows(10, 13, 3))
    return made


@pytest.fixture(scope="module")
def rows_by_format(table: hudi.Table) -> list[list[dict[str, Any]]]:
    """All rows by the reader of each format."""
    return [judged(Path(table.path), name) for name in table.format.split(",")]


def plain(found: Any) -> list[tuple[Any, ...]]:
    """Rows without meta columns, in an order."""
    return sorted(tuple(row[name] for name in FARES.names) for row in found)


# --- the consumers -------------------------------------------------------------------------------


def arrow(table: hudi.Table, wanted: Predicate, _: SparkSession) -> Any:
    return table.to_arrow(filter=wanted.conditions).to_pylist()


def dataset(table: hudi.Table, wanted: Predicate, _: SparkSession) -> Any:
    return table.scan(wanted.conditions).to_table().to_pylist()


def pandas(table: hudi.Table, wanted: Predicate, _: SparkSession) -> Any:
    found = table.to_pandas(filter=wanted.conditions)
    return found.astype(object).where(found.notna(), None).to_dict("records")


def duckdb_view(table: hudi.Table, wanted: Predicate, _: SparkSession) -> Any:
    with duckdb.connect() as connection:
        hudi.duckdb(connection, table.path)
        found = connection.sql(f"SELECT * FROM trips WHERE {wanted.sql}")
        return found.to_arrow_table().to_pylist()


def polars_frame(table: hudi.Table, wanted: Predicate, _: SparkSession) -> Any:
    return hudi.polars(table.path).filter(pl.sql_expr(wanted.sql)).collect().to_dicts()


def connector_splits(table: hudi.Table, wanted: Predicate, _: SparkSession) -> Any:
    connector = hudi.Connector({"hudi.target-split-size": "3kB"})
    domain = TupleDomain.of(wanted.conditions, FARES) if wanted.conditions else None
    with connector.scan(table.path, wanted.conditions) as splits:
        for split in splits:
            yield from connector.read(split.to_json(), None, domain).read_all().to_pylist()


def thrift(table: hudi.Table, wanted: Predicate, _: SparkSession) -> Any:
    domains = {name: one for each in wanted.domains for name, one in each.domains.items()}
    service = TrinoService(hudi.Connector(), {TableName("lake", "trips"): table.path})
    with ThriftServer(service).running() as address, connected(address) as client:
        asked = PROTOCOL.TupleDomain(domains=domains)
        for split in all_splits(client, table_name("lake", "trips"), asked):
            for row in rows_of_split(client, split, FARES.names):
                yield dict(zip(FARES.names, row, strict=True))


def spark_source(table: hudi.Table, wanted: Predicate, spark: SparkSession) -> Any:
    found = spark.read.format("hudi").load(table.path).filter(wanted.sql)
    return [row.asDict() for row in found.collect()]


def spark_frame(table: hudi.Table, wanted: Predicate, spark: SparkSession) -> Any:
    found = table.read(spark, filter=wanted.conditions)
    return [row.asDict() for row in found.collect()]


def spark_sql(table: hudi.Table, wanted: Predicate, spark: SparkSession) -> Any:
    spark.read.format("hudi").load(table.path).createOrReplaceTempView("consumed")
    try:
        found = spark.sql(f"SELECT * FROM consumed WHERE {wanted.sql}").collect()
    finally:
        spark.catalog.dropTempView("consumed")
    return [row.asDict() for row in found]


CONSUMERS: Mapping[str, Callable[[hudi.Table, Predicate, SparkSession], Any]] = {
    one.__name__: one
    for one in (
        *(arrow, dataset, pandas, duckdb_view, polars_frame, connector_splits, thrift),
        *(spark_source, spark_frame, spark_sql),
    )
}


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_every_consumer_returns_the_same_rows(
    table: hudi.Table,
    rows_by_format: list[list[dict[str, Any]]],
    consumer: str,
    spark: SparkSession,
) -> None:
    for name, wanted in PREDICATES.items():
        found = plain(CONSUMERS[consumer](table, wanted, spark))
        for expected in rows_by_format:
            assert found == plain(filter(wanted.holds, expected)), name
