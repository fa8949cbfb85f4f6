"""A file written again takes over what its last version's footer says of the keys."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import hudi_core as hudi
from hudi_core.hashing.bloom import DynamicBloom
from tests.tables import base_files, new_table

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64())])


def batch(numbers: range, ts: int) -> pa.Table:
    return pa.table({"id": [f"key-{n:05d}" for n in numbers], "ts": [ts] * len(numbers)}, SCHEMA)


def footer(table: hudi.Table) -> tuple[dict[bytes, bytes], DynamicBloom, pa.Array]:
    [path] = base_files(table)
    values = pq.read_metadata(path).metadata
    bloom = DynamicBloom.parse(values[b"org.apache.hudi.bloomfilter"], str(path))
    keys = pq.read_table(path, columns=["_hoodie_record_key"]).column(0).combine_chunks()
    return values, bloom, keys


def made_table(path: Path) -> hudi.Table:
    table = new_table(path, SCHEMA)
    table.insert(batch(range(1000, 2000), 1))
    return table


def test_a_few_new_keys_are_added_to_the_filter(tmp_path: Path) -> None:
    table = made_table(tmp_path / "t")
    size = len(footer(table)[1].to_base64())
    table.upsert(batch(range(950, 1010), 2))
    values, bloom, keys = footer(table)
    assert len(keys) == 1050
    assert bloom.might_contain(keys).to_pylist() == [True] * 1050
    assert len(bloom.to_base64()) == size, "the filter is the old one with more bits set"
    assert values[b"hoodie_min_record_key"] == b"key-00950"
    assert values[b"hoodie_max_record_key"] == b"key-01999"
    strangers = pa.array([f"other-{n}" for n in range(10_000)])
    assert sum(bloom.might_contain(strangers).to_pylist()) <= 1


def test_many_new_keys_make_a_new_filter(tmp_path: Path) -> None:
    table = made_table(tmp_path / "t")
    size = len(footer(table)[1].to_base64())
    table.upsert(batch(range(2000, 3000), 2))
    _, bloom, keys = footer(table)
    assert bloom.might_contain(keys).to_pylist() == [True] * 2000
    assert len(bloom.to_base64()) > 1.9 * size


def test_bounds_stay_true_when_rows_are_deleted(tmp_path: Path) -> None:
    table = made_table(tmp_path / "t")
    table.delete(batch(range(1000, 1100), 0))
    values, bloom, keys = footer(table)
    texts = keys.to_pylist()
    assert values[b"hoodie_min_record_key"].decode() <= min(texts)
    assert values[b"hoodie_max_record_key"].decode() >= max(texts)
    assert bloom.might_contain(keys).to_pylist() == [True] * 900
