"""Timestamps without a zone under the word of Hudi's Java writer, where a table says it or asks."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_core as hudi
from hudi_core.schema.table_schema import TableSchema
from hudi_core.services.opening import open_table
from tests.tables import base_files

OPTION = "hoodie.write.schema.local.timestamps"
KINDS = {
    "us": pa.timestamp("us"),
    "moment": pa.timestamp("us", "UTC"),
    "inner": pa.struct([("at", pa.list_(pa.timestamp("us")))]),
}
SCHEMA = pa.schema([("id", pa.string()), *KINDS.items()])
SHOWN = dt.datetime(2026, 3, 29, 2, 30)  # noqa: DTZ001


def rows(key: str = "a") -> pa.Table:
    moment = SHOWN.replace(tzinfo=dt.UTC)
    row = {"id": key, "us": SHOWN, "moment": moment, "inner": {"at": [SHOWN]}}
    return pa.Table.from_pylist([row], SCHEMA)


def create(path: Path, **options: str) -> hudi.Table:
    return hudi.Table.create(str(path / "t"), SCHEMA, record_key="id", options=options)


def says(table: hudi.Table) -> list[str]:
    """Return what the properties, the last commit, and the files of a table call timestamps."""
    client = open_table(table.path, {}).client
    writes = client.timeline().completed_writes()[-1:]
    texts = [client.config.create_schema or ""]
    texts += [client.read_commit(instant).schema_json or "" for instant in writes]
    for file in base_files(table):
        metadata = pq.read_metadata(file).metadata or {}
        texts.append(metadata[b"parquet.avro.schema"].decode())
    return ["local" if '"local-timestamp-micros"' in text else "plain" for text in texts]


def test_an_option_asks_for_the_word_of_java(tmp_path: Path) -> None:
    table = create(tmp_path, **{OPTION: "true"})
    table.insert(rows())
    assert says(table) == ["local"] * 3
    text = open_table(table.path, {}).client.schema.to_avro("t")
    assert text.count("local-timestamp-micros") == 2
    assert '"logicalType":"timestamp-micros"' in text
    assert "adjust-to-utc" not in text
    # who opens it later need not know
    again = hudi.Table.open(table.path)
    again.upsert(rows("b"))
    again.alter(add_columns={"more": pa.timestamp("us")})
    again.upsert(rows("c").append_column("more", rows()["us"]))
    assert set(says(again)) == {"local"}
    found = again.to_arrow(["us", "inner"]).to_pylist()
    assert found == [{"us": SHOWN, "inner": {"at": [SHOWN]}}] * 3
    assert again.validate().differences == ()


def test_without_it_every_reader_reads_the_table(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.insert(rows())
    assert says(table) == ["plain"] * 3
    # from a write that asks for it on
    table.upsert(rows("b"), options={OPTION: "true"})
    assert says(table) == ["plain", "local", "local"]
    hudi.Table.open(table.path).upsert(rows("c"))
    assert says(table) == ["plain", "local", "local"]
    assert table.to_arrow().num_rows == 3


@pytest.mark.parametrize("format_name", ["iceberg", "delta"])
def test_other_formats_do_not_mind(tmp_path: Path, format_name: str) -> None:
    table = create(tmp_path, **{OPTION: "true", "hoodie.table.format": format_name})
    table.insert(rows())
    table.upsert(rows("b"))
    assert table.validate().differences == ()


def test_a_schema_without_such_columns_stays_as_it_is(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("moment", pa.timestamp("us", "UTC"))])
    assert TableSchema.create(schema).with_local_timestamps() == TableSchema.create(schema)
