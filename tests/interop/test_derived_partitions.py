"""Partitions that are periods of a moment: a table that Apache Hudi wrote, and ours in hudi-rs."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import hudi as hudi_rs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hudi_core as hudi
from hudi_core.config.properties import parse_properties
from hudi_core.config.stored_table import stored_config
from hudi_core.config.table import TableConfig
from hudi_core.errors import UnsupportedTableError
from hudi_core.keygen import key_generator
from hudi_core.schema.table_schema import PARTITION_PATH, RECORD_KEY, TableSchema
from tests.hudi_tables import TIMESTAMP, RealTables

PREFIX = "hoodie.keygen.timebased."
START = 1_705_311_000
"""2024-01-15T09:30:00Z."""
MICROS = pa.timestamp("us", "UTC")


def theirs(path: Path, *filters: tuple[str, str, str]) -> pa.Table:
    table = hudi_rs.HudiTableBuilder.from_base_uri(str(path)).build()
    batches = table.read(hudi_rs.HudiReadOptions(filters=list(filters)))
    schema = pa.schema([("id", pa.string())])
    return pa.Table.from_batches(batches) if batches else schema.empty_table()


def config_of(table: Path) -> TableConfig:
    content = (table / ".hoodie" / "hoodie.properties").read_bytes()
    return stored_config(parse_properties(content))


def test_paths_that_hudi_wrote_are_made_again(real_tables: RealTables) -> None:
    """Its files have the column as numbers, and where Spark SQL wrote them as texts."""
    table = real_tables(TIMESTAMP)
    config, kinds = config_of(table), set()
    for path in sorted(table.rglob("2024/*/*/*.parquet")):
        with pq.ParquetFile(path) as file:
            found = file.read()
        kinds.add(str(found.schema.field("ts_epoch").type))
        rows = found.select(["txn_id", "ts_epoch"])
        keygen = key_generator(config, TableSchema.create(rows.schema))
        for batch in rows.combine_chunks().to_batches():
            assert keygen.record_keys(batch).to_pylist() == found[RECORD_KEY].to_pylist()
            assert keygen.partition_paths(batch).to_pylist() == found[PARTITION_PATH].to_pylist()
    assert kinds == {"int64", "string"}


def test_a_table_that_hudi_wrote_is_written_on(real_tables: RealTables) -> None:
    path = real_tables(TIMESTAMP)
    unknown = hudi.Table.open(str(path))
    before = unknown.to_arrow()
    with pytest.raises(UnsupportedTableError, match=r"time zone.*output\.timezone"):
        unknown.upsert(before.select(unknown.schema.names))
    table = hudi.Table.open(str(path), options={f"{PREFIX}output.timezone": "UTC"})
    rows = before.select(table.schema.names).filter(pc.field("txn_id") == "TXN-003")
    assert rows.num_rows == 1
    new = rows.to_pylist()[0]
    changed = {**new, "currency": "NOK"}
    # the same key on another day is another row; and a day that the table does not have yet
    added = {**new, "txn_id": "TXN-900", "ts_epoch": str(START + 30 * 86_400), "currency": "SEK"}
    result = table.upsert(pa.Table.from_pylist([changed, added], rows.schema))
    assert (result.updated, result.inserted) == (1, 1)

    def facts(found: pa.Table) -> list[tuple[Any, ...]]:
        names = (PARTITION_PATH, "txn_id", "currency", "ts_epoch")
        return sorted(tuple(row[name] for name in names) for row in found.to_pylist())

    ours = facts(table.to_arrow())
    assert ours == facts(theirs(path))
    assert ("2024/01/16", "TXN-003", "NOK", new["ts_epoch"]) in ours
    assert ("2024/02/14", "TXN-900", "SEK", added["ts_epoch"]) in ours
    assert len(ours) == before.num_rows + 1
    late = theirs(path, ("ts_epoch", ">=", str(START + 20 * 86_400)))
    assert late["txn_id"].to_pylist() == ["TXN-900"]


def written(
    path: Path, kind: pa.DataType, values: list[Any], options: dict[str, str]
) -> hudi.Table:
    schema = pa.schema([("id", pa.string()), ("ts", kind), ("n", pa.int64())])
    table = hudi.Table.create(
        str(path),
        schema,
        record_key="id",
        partition_by="ts",
        options={
            "hoodie.datasource.write.keygenerator.type": "TIMESTAMP",
            f"{PREFIX}timestamp.type": "UNIX_TIMESTAMP",
            f"{PREFIX}output.dateformat": "yyyy/MM/dd",
            "hoodie.fs.fsync": "false",
            **options,
        },
    )
    ids = [f"k{number}" for number in range(len(values))]
    data = {"id": ids, "ts": pa.array(values, kind), "n": [1] * len(values)}
    table.insert(pa.table(data, schema=schema))
    table.upsert(pa.table({**data, "n": [2] * len(values)}, schema=schema).slice(0, 2))
    return table


def same_rows(path: Path, table: hudi.Table) -> bool:
    ours, found = table.to_arrow(), theirs(path)
    names = ["id", "ts", "n", PARTITION_PATH]
    # hudi-rs gives a timestamp without a zone as one in UTC
    found = found.set_column(
        found.schema.get_field_index("ts"), "ts", found["ts"].cast(ours.schema.field("ts").type)
    )
    both = [
        sorted(one.select(names).to_pylist(), key=lambda row: row["id"]) for one in (ours, found)
    ]
    return both[0] == both[1]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"output.dateformat": "yyyy/MM/dd/HH"},
        {"output.dateformat": "yyyy-MM-dd"},
        {"output.dateformat": "yyyyMMdd"},
        {"output.timezone": "America/New_York"},
        {"output.timezone": "GMT+8:00"},
        {"timezone": "EST"},
    ],
)
def test_hudi_rs_leaves_out_the_same_partitions(tmp_path: Path, options: dict[str, str]) -> None:
    values = [START + number * 40_000 for number in range(8)]
    given = {f"{PREFIX}{name}": options[name] for name in options}
    table = written(tmp_path, pa.int64(), values, given)

    assert same_rows(tmp_path, table)
    for op in (">=", "<", "="):
        for value in (values[2], values[5]):
            ours = table.to_arrow(filter=[("ts", op, value)])["id"].to_pylist()
            found = theirs(tmp_path, ("ts", op, str(value)))["id"].to_pylist()
            assert sorted(ours) == sorted(found)


@pytest.mark.parametrize("style", ["hive_style_partitioning", "partitionpath.urlencode"])
def test_hudi_rs_reads_paths_of_other_styles(tmp_path: Path, style: str) -> None:
    values = [START, START + 86_400, None]
    table = written(tmp_path, pa.int64(), values, {f"hoodie.datasource.write.{style}": "true"})
    assert same_rows(tmp_path, table)


@pytest.mark.parametrize(
    ("kind", "options", "values"),
    [
        (
            MICROS,
            {"timestamp.type": "EPOCHMICROSECONDS"},
            [dt.datetime(2024, 1, 15, 9, 30, tzinfo=dt.UTC), None],
        ),
        (
            pa.timestamp("us"),
            {"timestamp.type": "EPOCHMICROSECONDS"},
            [dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, dt.UTC).replace(tzinfo=None), None],
        ),
        (
            pa.date32(),
            {"timestamp.type": "SCALAR", "timestamp.scalar.time.unit": "DAYS"},
            [dt.date(2024, 1, 15), dt.date(1960, 2, 29), None],
        ),
        (
            pa.string(),
            {"timestamp.type": "DATE_STRING", "input.dateformat": "yyyy-MM-dd HH:mm:ss,yyyyMMdd"},
            ["2024-01-15 09:30:00", "20240116", None],
        ),
        (pa.float64(), {"timestamp.type": "EPOCHMILLISECONDS"}, [START * 1000.5, None]),
    ],
    ids=str,
)
def test_hudi_rs_reads_columns_of_other_types(
    tmp_path: Path, kind: pa.DataType, options: dict[str, str], values: list[Any]
) -> None:
    given = {f"{PREFIX}{name}": options[name] for name in options}
    table = written(tmp_path, kind, values, given)
    assert same_rows(tmp_path, table)
    # the column keeps what was given, whatever the folder is called
    assert table.to_arrow().sort_by("id")["ts"].to_pylist() == values
