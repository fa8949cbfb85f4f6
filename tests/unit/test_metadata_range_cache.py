"""Decoded statistics are kept for the next query, within bounds, and never for another file."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.metadata import column_ranges
from hudi_core.metadata.range_cache import SHARED, RangeCache
from tests.tables import new_table

OPTIONS = {
    "hoodie.metadata.enable": "true",
    # so that the ranges of all partitions' files are asked for
    "hoodie.metadata.index.partition.stats.enable": "false",
}
SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.int64())])


def table_of(rows: int) -> pa.Table:
    return pa.table({"x": pa.array(range(rows), pa.int64())})


def test_an_entry_is_decoded_once() -> None:
    cache, decoded = RangeCache(), []

    def decode() -> pa.Table:
        decoded.append(1)
        return table_of(3)

    assert not cache.holds("a")
    assert cache.get("a", decode) is cache.get("a", decode)
    assert cache.holds("a")
    assert decoded == [1]


def test_what_was_not_used_for_longest_goes() -> None:
    cache = RangeCache(max_bytes=2 * table_of(100).nbytes)
    for key in ("a", "b", "a", "c"):
        cache.get(key, lambda: table_of(100))
    assert [key for key in "abc" if cache.holds(key)] == ["a", "c"]
    assert cache.get("huge", lambda: table_of(10_000)).num_rows == 10_000
    assert not cache.holds("huge")


def write(path: Path, first: int, partitions: int = 40) -> hudi.Table:
    """Make a table whose metadata table is compacted: many partitions, twelve writes."""
    table = new_table(path, SCHEMA, OPTIONS, partition_by="p")
    rows = range(partitions)
    data = {"id": [*rows], "p": [f"p{n}" for n in rows], "v": [first + n for n in rows]}
    table.insert(pa.table(data, schema=SCHEMA))
    for _ in range(11):
        table.upsert(pa.table({"id": [0], "p": ["p0"], "v": [first]}, schema=SCHEMA))
    return hudi.Table.open(str(path), OPTIONS)


def found(table: hudi.Table, value: int) -> list[int]:
    ids: list[int] = table.to_arrow(filter=[("v", "=", value)])["id"].to_pylist()
    return ids


def test_a_table_made_anew_is_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = RangeCache()
    monkeypatch.setattr(column_ranges, "SHARED", cache)
    first = write(tmp_path / "t", 1000)
    assert list((tmp_path / "t/.hoodie/metadata/column_stats").glob("*.hfile"))
    assert found(first, 1005) == found(first, 1005) == [5]
    assert cache._tables
    shutil.rmtree(tmp_path / "t")
    second = write(tmp_path / "t", 2000)
    assert found(second, 2005) == [5]
    assert found(second, 1005) == []
    # what is written later is in the log, and comes first
    second.upsert(pa.table({"id": [5], "p": ["p5"], "v": [1005]}, schema=SCHEMA))
    assert found(hudi.Table.open(second.path, OPTIONS), 1005) == [5]
    assert SHARED is not cache
