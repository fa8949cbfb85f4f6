"""Keys, partition paths, bloom filters and schemas of files that Apache Hudi wrote."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import hudi
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.base_file.key_bounds import RecordKeyCollector
from hudi_core.config.properties import parse_properties
from hudi_core.config.stored_table import stored_config
from hudi_core.config.table import TableConfig
from hudi_core.hashing.bloom import TYPE_CODE, DynamicBloom
from hudi_core.keygen import key_generator
from hudi_core.schema.table_schema import META_COLUMNS, PARTITION_PATH, RECORD_KEY, TableSchema
from tests.hudi_tables import ALL, TIMESTAMP, RealTables


def parquet_files(table: Path) -> Iterator[tuple[str, pq.ParquetFile]]:
    for path in sorted(table.rglob("*.parquet")):
        if ".hoodie" not in path.parts:
            with pq.ParquetFile(path) as file:
                yield path.name, file


def config_of(table: Path) -> TableConfig:
    content = (table / ".hoodie" / "hoodie.properties").read_bytes()
    return stored_config(parse_properties(content))


@pytest.mark.parametrize("name", ALL)
def test_bloom_filters_and_key_ranges_are_rebuilt(real_tables: RealTables, name: str) -> None:
    seen = 0
    for where, file in parquet_files(real_tables(name)):
        footers = file.metadata.metadata
        keys = file.read([RECORD_KEY]).column(0)
        stored = footers[b"org.apache.hudi.bloomfilter"].decode()
        assert footers[b"hoodie_bloom_filter_type_code"].decode() == TYPE_CODE
        assert DynamicBloom.build(keys, 60_000, 1e-9, 100_000).to_base64() == stored
        bloom = DynamicBloom.parse(stored, where)
        assert bloom.to_base64() == stored
        assert bloom.might_contain(keys).true_count == len(keys)
        assert bloom.might_contain(pa.array([f"not {key}" for key in keys])).true_count == 0
        collector = RecordKeyCollector(None)
        collector.add(keys.combine_chunks())
        assert collector.min_key == footers[b"hoodie_min_record_key"].decode()
        assert collector.max_key == footers[b"hoodie_max_record_key"].decode()
        seen += 1
    assert seen >= 2


@pytest.mark.parametrize("name", [name for name in ALL if name != TIMESTAMP])
def test_keys_and_paths_are_made_again(real_tables: RealTables, name: str) -> None:
    table = real_tables(name)
    config = config_of(table)
    assert config.create_schema is not None
    schema = TableSchema.from_avro(config.create_schema)
    keygen = key_generator(config, schema)
    for _, file in parquet_files(table):
        for batch in file.iter_batches():
            rows = schema.cast_batch(batch)
            assert keygen.record_keys(rows).equals(batch.column(RECORD_KEY))
            paths = keygen.partition_paths(rows).dictionary_decode()
            assert paths.equals(batch.column(PARTITION_PATH))


@pytest.mark.parametrize("name", ALL)
def test_schemas_are_those_that_hudi_rs_sees(real_tables: RealTables, name: str) -> None:
    table = real_tables(name)
    config = config_of(table)
    assert config.create_schema is not None
    ours = TableSchema.from_avro(config.create_schema)
    theirs = hudi.HudiTableBuilder.from_base_uri(str(table)).build().get_schema()
    for field in theirs:
        if name == TIMESTAMP and field.name in config.partition_fields:
            continue  # hudi-rs gives the text in the path in place of the column
        assert ours.arrow.field(field.name) == field
    assert ours.names == theirs.names


@pytest.mark.parametrize("name", ALL)
def test_schemas_in_footers_are_written_again(real_tables: RealTables, name: str) -> None:
    table = real_tables(name)
    config = config_of(table)
    seen = 0
    for _, file in parquet_files(table):
        stored = file.metadata.metadata.get(b"parquet.avro.schema")
        if stored is None:
            continue  # written from Spark rows, without an Avro schema
        schema = TableSchema.from_avro(stored.decode())
        assert schema.meta_ids == (1, 2, 3, 4, 5)
        written = schema.to_avro(config.name, with_meta=True)
        assert without_ids(written) == stored.decode()
        assert schema.with_meta().names[:5] == list(META_COLUMNS)
        seen += 1
    assert seen


def without_ids(avro: str) -> str:
    for number in range(1, 64):
        for name in ("field", "element", "key", "value"):
            avro = avro.replace(f',"{name}-id":{number}}}', "}")
            avro = avro.replace(f',"{name}-id":{number},', ",")
    return avro
