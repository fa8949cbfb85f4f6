"""The bloom filter of record keys, against a plain reading of its definition."""

from __future__ import annotations

import base64
import math
import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.errors import CorruptMetadataError
from hudi_core.hashing.bloom import DynamicBloom
from tests.tables import base_files, new_table


def signed(number: int, bits: int) -> int:
    return (number + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def murmur(key: bytes, seed: int) -> int:
    """Hadoop's MurmurHash2, one byte string at a time."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    h = (seed ^ len(key)) & mask
    whole = len(key) // 4 * 4
    for (k,) in struct.iter_unpack("<I", key[:whole]):
        mixed = k * m & mask
        mixed = (mixed ^ mixed >> 24) * m & mask
        h = (h * m & mask) ^ mixed
    left = len(key) - whole
    if left:
        if left >= 3:
            h ^= signed(key[-3], 8) << 16 & mask
        if left >= 2:
            h ^= signed(key[-2], 8) << 8 & mask
        h = (h ^ signed(key[-1], 8) & mask) * m & mask
    h = (h ^ h >> 13) * m & mask
    return signed(h ^ h >> 15, 32)


def plain_filter(keys: list[str], entries: int, fpp: float, max_entries: int) -> str:
    """Build the serialized filter key by key, as the Java class does."""
    size = math.ceil(entries * -math.log(fpp) / math.log(2) ** 2)
    hashes = math.ceil(math.log(2) * size / entries)
    rows = [bytearray((size + 7) // 8)]
    added, turn, full = 0, 0, False
    for key in keys:
        if full:
            row = rows[turn % len(rows)]
            turn += 1
        elif added >= entries and len(rows) * entries < max_entries:
            row = bytearray((size + 7) // 8)
            rows.append(row)
            added = 0
        elif added >= entries:
            full, row = True, rows[0]
        else:
            row = rows[-1]
        h = 0
        for _ in range(hashes):
            h = murmur(key.encode(), h)
            bit = abs(h) % size
            row[bit // 8] |= 1 << bit % 8
        added += 1
    head = struct.pack(">iibi", -1, hashes, 1, size)
    counts = struct.pack(">iii", entries, added, len(rows))
    return base64.b64encode(head + counts + b"".join(head + row for row in rows)).decode()


KEYS = ["", "a", "ab", "abc", "abcd", "é", "日本", "ß𝄞", "x" * 37, "id:1,name:Alice", "\x7f\x80"]


@pytest.mark.parametrize(("entries", "max_entries"), [(100, 0), (3, 0), (3, 9), (4, 10), (1, 100)])
def test_bytes_are_those_of_the_definition(entries: int, max_entries: int) -> None:
    keys = [f"{key}{n}" for n in range(3) for key in KEYS]
    for count in (0, 1, 3, 4, 9, 10, 12, 13, len(keys)):
        built = DynamicBloom.build(pa.array(keys[:count], pa.string()), entries, 1e-3, max_entries)
        assert built.to_base64() == plain_filter(keys[:count], entries, 1e-3, max_entries)
        if count <= max(entries, max_entries // entries * entries):
            assert built.count == count


@pytest.mark.parametrize("count", [1, 31, 32, 90])
def test_long_keys_beside_short_ones_have_the_bits_of_the_definition(count: int) -> None:
    keys = [f"{n}é" * (700 if n % 40 == 0 else n % 29) + "\x7f" * (n % 5) for n in range(count)]
    built = DynamicBloom.build(pa.array(keys), count, 1e-3)
    assert built.to_base64() == plain_filter(keys, count, 1e-3, 0)
    asked = pa.array([*(f"{key}?" for key in keys), *keys])
    answers = DynamicBloom.parse(built.to_base64(), "f").might_contain(asked).to_pylist()
    assert all(answers[count:])
    assert sum(answers[:count]) <= 1


def test_a_file_of_long_keys_has_a_filter_of_few_hashes() -> None:
    long = [f"{n:05d}" * 1000 for n in range(200)]
    bloom = DynamicBloom.fitted(pa.array(long), 1e-3)
    assert (bloom.hashes, bloom.entries, bloom.added) == (3, 200, 200)
    assert bloom.might_contain(pa.array(long)).true_count == 200
    # as many false positives as of a filter with all its hashes, and small beside the keys
    wrong = bloom.might_contain(pa.array([f"{n}" for n in range(20_000)])).true_count
    assert wrong < 60
    strict = DynamicBloom.fitted(pa.array(long), 1e-9)
    assert (strict.hashes, DynamicBloom.fitted(pa.array(long[:1]), 0.5).hashes) == (3, 1)
    assert len(strict.to_base64()) < sum(map(len, long)) / 9
    short = pa.array([f"k{n}" for n in range(200)])
    assert DynamicBloom.fitted(short, 1e-9).to_base64() == plain_filter(
        short.to_pylist(), 200, 1e-9, 0
    )


def test_the_filter_of_a_file_of_long_keys_grows(tmp_path: Path) -> None:
    rows = pa.table({"id": [f"{n}" * 5000 for n in range(5)], "v": range(5)})
    table = new_table(tmp_path / "t", rows.schema)
    table.upsert(rows.slice(0, 4))
    table.upsert(rows.slice(2))
    footer = pq.read_metadata(*base_files(table)).metadata
    bloom = DynamicBloom.parse(footer[b"org.apache.hudi.bloomfilter"], "footer")
    assert bloom.might_contain(rows.column("id")).true_count == 5
    assert table.to_arrow(["id"]).num_rows == 5


def test_known_size_of_hudis_default() -> None:
    bloom = DynamicBloom.build(pa.array(["a"]), 60_000, 1e-9, 100_000)
    assert (bloom.size, bloom.hashes, bloom.added) == (2_587_966, 30, 1)
    assert len(bloom.to_base64()) == 431_380


def test_keys_that_are_there_are_never_denied() -> None:
    keys = pa.array([f"key-{n}" * (n % 7) + str(n) for n in range(5_000)])
    bloom = DynamicBloom.parse(DynamicBloom.build(keys, 1_000, 1e-3, 3_000).to_base64(), "f")
    assert bloom.might_contain(keys).true_count == len(keys)


def test_keys_that_are_not_there_are_mostly_denied() -> None:
    bloom = DynamicBloom.build(pa.array([f"in-{n}" for n in range(20_000)]), 20_000, 1e-2)
    wrong = bloom.might_contain(pa.array([f"out-{n}" for n in range(20_000)])).true_count
    assert 50 < wrong < 400  # 200 expected


def test_answers_keep_the_order_of_the_keys() -> None:
    bloom = DynamicBloom.build(pa.array(["a", "longer key", "b"]), 3, 1e-9)
    asked = pa.array(["x", "longer key", "y", "a", "also not there", "b"])
    assert bloom.might_contain(asked).to_pylist() == [False, True, False, True, False, True]
    assert bloom.might_contain(asked.slice(2, 2)).to_pylist() == [False, True]
    assert bloom.might_contain(asked.slice(0, 0)).to_pylist() == []


def test_chunked_and_sliced_keys_are_the_keys() -> None:
    keys = pa.array(["skipped", "a", "b", "c"]).slice(1)
    chunked = pa.chunked_array([keys.slice(0, 1), keys.slice(1)])
    one = DynamicBloom.build(pa.array(["a", "b", "c"]), 3, 1e-9).to_base64()
    assert DynamicBloom.build(keys, 3, 1e-9).to_base64() == one
    assert DynamicBloom.build(chunked, 3, 1e-9).to_base64() == one


GOOD = base64.b64decode(DynamicBloom.build(pa.array(["a"]), 10, 0.1).to_base64())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        GOOD[:12],
        GOOD[:-1],
        GOOD + b"\0",
        b"\0" + GOOD[1:],
        GOOD[:8] + b"\2" + GOOD[9:],
        GOOD[:4] + struct.pack(">i", 10**9) + GOOD[8:],
        GOOD[:9] + struct.pack(">i", -5) + GOOD[13:],
        GOOD[:21] + struct.pack(">i", 2**31 - 1) + GOOD[25:],
        GOOD[:29] + b"\7" + GOOD[30:],
    ],
)
def test_damaged_filters_are_named(data: bytes) -> None:
    with pytest.raises(CorruptMetadataError, match="file-1 is damaged: its bloom filter"):
        DynamicBloom.parse(base64.b64encode(data), "file-1")


def test_text_that_is_not_base64_is_named() -> None:
    with pytest.raises(CorruptMetadataError, match="file-1"):
        DynamicBloom.parse("not base64!", "file-1")
