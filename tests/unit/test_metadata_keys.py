"""Keys of the metadata table: filters, shards, and what is kept of their index."""

from __future__ import annotations

import base64
import math
import os
import shutil
import struct
import time
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.errors import CorruptMetadataError, InvalidOptionError, StorageError
from hudi_core.hashing.bloom import DynamicBloom
from hudi_core.hashing.java_hash import shards_of
from hudi_core.index.record_index import RecordIndex
from hudi_core.metadata import keys, partition_types
from hudi_core.metadata.hfile.block import Codec
from hudi_core.metadata.hfile.reader import HFileReader
from hudi_core.metadata.hfile.writer import HFileOptions, write_hfile
from hudi_core.metadata.key_index import key_cache
from hudi_core.metadata.key_index.key_cache import KeyCache
from hudi_core.metadata.log.layers import Layer
from hudi_core.metadata.partition_types import shard_file_id, shard_number
from hudi_core.model.files import FileId, PartitionPath
from hudi_core.services.opening import open_table
from hudi_core.storage.posix import PosixStorage
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


def test_keys_that_are_not_there_are_mostly_denied() -> None:
    bloom = DynamicBloom.build(pa.array([f"in-{n}" for n in range(20_000)]), 20_000, 1e-2)
    wrong = bloom.might_contain(pa.array([f"out-{n}" for n in range(20_000)])).true_count
    assert 50 < wrong < 400  # 200 expected


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
        "not base64!",
    ],
)
def test_damaged_filters_are_named(data: bytes | str) -> None:
    text = data if isinstance(data, str) else base64.b64encode(data)
    with pytest.raises(CorruptMetadataError, match="file-1 is damaged: its bloom filter"):
        DynamicBloom.parse(text, "file-1")


# --- keys, shards and file groups of the metadata table
def test_ids_of_real_metadata_tables() -> None:
    # as Hudi's files hold them
    assert keys.id64("driver") == "AjpJ7N1gBZc="
    assert keys.id64("currency") == "/m6lxu4Dh5w="
    assert keys.id64("region=us") == "431THTTwO5Q="
    assert len(keys.id64("")) == 12
    assert keys.id128("") == "1B2M2Y8AsgTpgAmY7PhCfg=="


def test_keys_are_made_of_ids() -> None:
    partition, file = PartitionPath("city=x"), "f.parquet"
    prefix = keys.partition_stats_key("a.b", partition)
    assert keys.column_stats_key("a.b", partition, file) == prefix + keys.id128(file)
    assert prefix == keys.id64("a.b") + keys.id64("city=x")
    assert keys.bloom_filter_key(partition, file) == keys.id64("city=x") + keys.id128(file)
    assert keys.column_stats_key("c", PartitionPath(""), "f")[12:24] == keys.id64(".")


def test_the_one_partition_has_a_name() -> None:
    assert keys.partition_name(PartitionPath("")) == "."
    assert keys.partition_path(".") == ""
    assert keys.partition_path("a=1/b=2") == "a=1/b=2"


@given(st.none() | st.text(), st.text())
def test_secondary_keys_can_be_taken_apart(value: str | None, record_key: str) -> None:
    key = keys.secondary_key(value, record_key)
    assert key.startswith(keys.secondary_prefix(value))
    assert keys.split_secondary_key(key, "f") == (value, record_key)


@pytest.mark.parametrize(
    ("value", "record_key", "key"),
    [
        ("rider-F", "e3cf", "rider-F$e3cf"),
        ("a$b", "c\\d", "a\\$b$c\\\\d"),
        (None, "k", "\0$k"),
        ("\0", "k", "\\\0$k"),
        ("", "", "$"),
    ],
)
def test_secondary_keys_escape(value: str | None, record_key: str, key: str) -> None:
    assert keys.secondary_key(value, record_key) == key


@pytest.mark.parametrize("key", ["", "abc", "a\\$b", "a$b$c", "a$b\\"])
def test_keys_that_are_none_of_a_secondary_index_are_damage(key: str) -> None:
    with pytest.raises(CorruptMetadataError, match="secondary index"):
        keys.split_secondary_key(key, "f")


@pytest.mark.parametrize(
    ("key", "count", "shard"),
    [
        ("hello", 10, 2),  # 99162322
        ("", 10, 0),
        # the least int, which has no absolute value in Java
        ("polygenelubricants", 10, 8),
        ("polygenelubricants", 7, 2147483648 % 7),
        ("rider-F$", 1, 0),
    ],
)
def test_shards_by_javas_hash(key: str, count: int, shard: int) -> None:
    assert shards_of(pa.array([key]), count).tolist() == [shard]


@given(st.lists(st.text(max_size=20)), st.integers(1, 50))
def test_shards_of_many_are_those_of_each(texts: list[str], count: int) -> None:
    found = shards_of(pa.array(texts, pa.string()), count).tolist()
    assert found == [shards_of(pa.array([text]), count)[0] for text in texts]
    assert all(0 <= shard < count for shard in found)


@pytest.mark.parametrize(
    ("partition", "file_id"),
    [
        (partition_types.FILES, "files-0003-0"),
        (partition_types.COLUMN_STATS, "col-stats-0003-0"),
        (partition_types.BLOOM_FILTERS, "bloom-filters-0003-0"),
        (partition_types.RECORD_INDEX, "record-index-0003-0"),
        (partition_types.PARTITION_STATS, "partition-stats-0003-0"),
        ("secondary_index_rider_idx", "secondary-index-rider-idx-0003-0"),
        ("expr_index_by_day", "expr-index-by-day-0003-0"),
    ],
)
def test_file_groups_have_numbers(partition: str, file_id: str) -> None:
    assert shard_file_id(partition, 3) == file_id
    assert shard_number(FileId(file_id)) == 3
    assert shard_number(shard_file_id(partition, 12345)) == 12345


@pytest.mark.parametrize("file_id", ["files", "files-1-0", "files-0001", "files-0001-0-x"])
def test_other_ids_have_no_number(file_id: str) -> None:
    assert shard_number(FileId(file_id)) is None


# --- what is kept of an index of keys says what its files say, or is not used
VALUES = [b"one", b"another", b""]


class Counted:
    """A file that counts what is read of it."""

    def __init__(self, data: bytes) -> None:
        self.data, self.reads = data, 0

    def __call__(self, offset: int, length: int) -> bytes:
        self.reads += 1
        return self.data[offset : offset + length]


def layer_of(content: dict[bytes, bytes], name: str = "a") -> tuple[Layer, Counted]:
    data = write_hfile(sorted(content.items()), HFileOptions("{}", 0, Codec.NONE, block_bytes=500))
    file = Counted(data)
    reader = HFileReader(file, len(data), name)
    file.reads = 0
    return Layer(name, reader, identity=(name, len(data))), file


def numbered(count: int, step: int = 1) -> dict[bytes, bytes]:
    return {f"k{number}".encode(): VALUES[number % 3] for number in range(0, count, step)}


def found(cache: KeyCache, layer: Layer, keys: list[bytes], *others: Layer) -> dict[bytes, bytes]:
    told: dict[bytes, bytes] = {}
    for ordinals, values in cache.find(layer, pa.array(keys, pa.binary()), [layer, *others]):
        for ordinal, value in zip(ordinals.tolist(), values.to_pylist(), strict=True):
            assert keys[ordinal] not in told
            told[keys[ordinal]] = value
    return told


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KeyCache:
    monkeypatch.setattr(key_cache, "_LEAST_KEYS", 100)
    return KeyCache(str(tmp_path / "cache"), "group")


def kept(cache: KeyCache) -> list[Path]:
    return sorted(Path(cache.folder).rglob("*.arrow"))


def test_it_says_what_the_file_says(cache: KeyCache) -> None:
    content = numbered(2000, 2)
    layer, file = layer_of(content)
    keys = [f"k{number}".encode() for number in range(2000, -1, -1)]
    assert found(cache, layer, keys) == content
    assert len(kept(cache)) == 1
    first = file.reads
    assert first
    # in another order, and of a process that knows nothing
    assert found(cache, layer, sorted(keys)) == content
    some = sorted(content)[::50]
    assert found(cache, layer, [b"", *some, b"zzz"]) == {key: content[key] for key in some}
    assert found(cache, layer, []) == {}
    assert file.reads == first


def test_few_keys_and_small_files_are_read_as_they_are(cache: KeyCache) -> None:
    content = numbered(2000)
    layer, _ = layer_of(content)
    assert found(cache, layer, [b"k7", b"x"]) == {b"k7": content[b"k7"]}
    small, _ = layer_of(numbered(99), "small")
    assert found(cache, small, list(content)) == numbered(99)
    assert not kept(cache)


def test_for_few_keys_what_is_kept_is_not_read(
    cache: KeyCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = numbered(2000)
    layer, file = layer_of(content)
    found(cache, layer, list(content))
    opened: list[str] = []
    monkeypatch.setattr(PosixStorage, "read", lambda _, path: opened.append(path))
    before = file.reads
    assert found(cache, layer, [b"k7", b"x"]) == {b"k7": content[b"k7"]}
    assert file.reads > before
    assert not opened


@pytest.mark.parametrize("how", ["cut", "changed", "empty", "no arrow", "another's", "other type"])
def test_what_is_damaged_is_made_anew(cache: KeyCache, how: str) -> None:
    content = numbered(2000)
    layer, file = layer_of(content)
    other, _ = layer_of(dict.fromkeys(content, b"wrong"), "other")
    assert found(cache, layer, list(content)) == content
    (path,) = kept(cache)
    good = path.read_bytes()
    if how == "cut":
        path.write_bytes(good[:-100])
    elif how == "changed":
        path.write_bytes(good.replace(b"k1000", b"k1OOO"))
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "no arrow":
        path.write_bytes(b"nothing" + zlib.crc32(b"nothing").to_bytes(4, "big"))
    elif how == "another's":
        found(cache, other, list(content), layer)
        (wrong,) = set(kept(cache)) - {path}
        shutil.copy(wrong, path)
    else:
        sink = pa.BufferOutputStream()
        schema = pa.schema([("key", pa.string())], {b"identity": repr(layer.identity).encode()})
        with pa.ipc.new_file(sink, schema) as writer:
            writer.write_batch(pa.record_batch([["k1"]], schema=schema))
        data = sink.getvalue().to_pybytes()
        path.write_bytes(data + zlib.crc32(data).to_bytes(4, "big"))
    assert path.read_bytes() != good
    before = file.reads
    assert found(cache, layer, list(content)) == content
    assert file.reads > before
    assert path.read_bytes() == good


def test_what_is_kept_of_files_that_are_gone_is_removed(cache: KeyCache) -> None:
    content = numbered(2000)
    (old, _), (log, _), (new, _) = (layer_of(content, name) for name in ("old", "log", "new"))
    found(cache, old, list(content), log)
    found(cache, log, list(content), old)
    elsewhere = KeyCache(cache.folder, "another group")
    found(elsewhere, old, list(content))
    assert len(kept(cache)) == 3
    found(cache, new, list(content), log)
    assert len(kept(cache)) == 3
    again, file = layer_of(content, "old")
    found(cache, again, list(content), new)
    assert file.reads


def test_what_was_kept_long_ago_is_removed(cache: KeyCache) -> None:
    """Of a table that is gone nobody asks for anything any more."""
    content = numbered(2000)
    gone, _ = layer_of(content, "gone")
    found(KeyCache(cache.folder, "a group that is gone"), gone, list(content))
    young, _ = layer_of(content, "young")
    found(KeyCache(cache.folder, "another group"), young, list(content))
    (old, *_) = before = sorted(kept(cache), key=lambda one: one.stat().st_mtime_ns)
    long_ago = time.time() - 31 * 86_400
    own = Path(cache.folder, "rows.arrow")
    own.write_bytes(b"of a user")
    for path in (old, own):
        os.utime(path, (long_ago, long_ago))
    new, _ = layer_of(content, "new")
    found(cache, new, list(content))
    assert len(before) == 2
    assert not old.exists()
    assert before[1].exists()
    assert own.exists()


@pytest.mark.parametrize("folder", ["s3://lake/cache", "GS://lake/cache", "abfss://c@a/cache"])
def test_a_folder_of_no_machine_is_refused(folder: str) -> None:
    with pytest.raises(InvalidOptionError, match="local path, such as /var/cache/hudi"):
        MetadataConfig.from_options({MetadataConfig.record_index_cache.key: folder})
    for local in ("/var/cache", "file:///var/cache", "cache"):
        assert (
            MetadataConfig.record_index_cache.read({MetadataConfig.record_index_cache.key: local})
            == local
        )


def test_a_folder_that_takes_nothing_costs_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_cache, "_LEAST_KEYS", 100)
    (tmp_path / "file").write_text("")
    content = numbered(500)
    layer, _ = layer_of(content)
    assert found(KeyCache(str(tmp_path / "file"), "g"), layer, list(content)) == content


@pytest.mark.parametrize("name", ["read", "put", "list"])
def test_a_folder_that_refuses_costs_no_answer(
    cache: KeyCache, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> bytes:
        raise StorageError("Permission denied", "Ask for it.")

    monkeypatch.setattr(PosixStorage, name, refuse)
    content = numbered(2000)
    layer, _ = layer_of(content)
    for _ in range(2):
        assert found(cache, layer, list(content)) == content


@pytest.mark.parametrize("first", [b"a", b"a" * 20], ids=["seems small", "seems large"])
def test_of_a_file_that_is_too_large_nothing_is_kept(
    cache: KeyCache, first: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = {first: VALUES[0], **numbered(2000)}
    layer, _ = layer_of(content)
    monkeypatch.setattr(key_cache, "_MOST_BYTES", sum(map(len, content)) - 1)
    assert found(cache, layer, list(content)) == content
    assert not kept(cache)
    monkeypatch.setattr(key_cache, "_MOST_BYTES", 20 * len(content))
    assert found(cache, layer, list(content)) == content
    assert kept(cache)


def test_a_table_is_written_rightly_by_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_cache, "_LEAST_KEYS", 100)
    options = {
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.global.record.level.index.enable": "true",
        "hoodie.metadata.global.record.level.index.min.filegroup.count": "2",
        "hoodie.index.type": "RECORD_INDEX",
        "hoodie.metadata.compact.max.delta.commits": "2",
        MetadataConfig.record_index_cache.key: str(tmp_path / "cache"),
    }
    schema = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64())])

    def rows(ids: range, v: int) -> pa.Table:
        data: dict[str, Any] = {"id": [f"k{n}" for n in ids], "p": ["a"] * len(ids)}
        return pa.table({**data, "v": [v] * len(ids)}, schema=schema)

    table = new_table(tmp_path / "t", schema, options, partition_by="p")
    table.insert(rows(range(1000), 0))
    expected = {f"k{n}": 0 for n in range(1000)}
    for v in range(1, 5):
        result = table.upsert(rows(range(100 * v, 1000 + 100 * v), v))
        assert (result.updated, result.inserted) == (900, 100)
        expected |= {f"k{n}": v for n in range(100 * v, 1000 + 100 * v)}
    got = table.to_arrow()
    assert dict(zip(got["id"].to_pylist(), got["v"].to_pylist(), strict=True)) == expected
    assert list((tmp_path / "cache").rglob("*.arrow"))
    # each process may look keys up
    keys = pa.array([*expected, "nowhere"])
    told = []
    for some in ({}, options):
        opened = open_table(table.path, some)
        index = RecordIndex.open(opened.client, opened.timeline())
        told.append(sorted(key for one in index.lookups(9) for key in one.find(keys).keys.tolist()))
    assert told[0] == told[1] == list(range(len(expected)))
