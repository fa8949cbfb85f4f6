"""HFiles: what is written is read again, lookups read no more than they need."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.errors import RecordKeyError
from hudi_core.metadata.hfile import Codec, HFileOptions, HFileReader, write_hfile
from hudi_core.metadata.hfile.block import HEADER_BYTES, decode_block, encode_block
from hudi_core.metadata.hfile.index import decode_vint, encode_vint
from hudi_core.metadata.hfile.layout import DATA_MAGIC
from hudi_core.metadata.hfile.reader import TAIL_BYTES

Entries = Sequence[tuple[bytes, bytes]]
SCHEMA = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}'


def options(**changes: Any) -> HFileOptions:
    return HFileOptions(SCHEMA, 1_700_000_000_000, **changes)


def numbered(count: int, size: int = 100) -> Entries:
    return [(b"key-%06d" % n, (b"%06d" % n) * (size // 6)) for n in range(count)]


class CountedReads:
    """A file that remembers what was read of it."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.reads: list[tuple[int, int]] = []

    def __call__(self, offset: int, length: int) -> bytes:
        self.reads.append((offset, length))
        return self._data[offset : offset + length]

    @property
    def bytes(self) -> int:
        return sum(length for _, length in self.reads)


def opened(data: bytes) -> HFileReader:
    return HFileReader.from_bytes(data, "table/some.hfile")


ENTRIES = st.dictionaries(st.binary(max_size=40), st.binary(max_size=300), max_size=60)


@given(
    entries=ENTRIES,
    codec=st.sampled_from(Codec),
    block_bytes=st.sampled_from([1, 200, 65536]),
    full_keys=st.booleans(),
    base_file=st.booleans(),
)
def test_what_is_written_is_read(
    entries: dict[bytes, bytes], codec: Codec, block_bytes: int, full_keys: bool, base_file: bool
) -> None:
    ordered = sorted(entries.items())
    data = write_hfile(
        ordered,
        options(codec=codec, block_bytes=block_bytes, full_keys=full_keys, base_file=base_file),
    )
    reader = opened(data)
    assert list(reader.entries()) == ordered
    assert reader.entry_count == len(ordered)
    assert reader.schema == SCHEMA
    assert dict(reader.get_many([*entries, b"\xff" * 41])) == entries
    assert all(reader.get(key) == value for key, value in ordered[::7])
    for prefix in {key[:2] for key in entries} | {b"", b"\xff\xff\xff"}:
        expected = [entry for entry in ordered if entry[0].startswith(prefix)]
        assert list(reader.scan_prefixes([prefix])) == expected
    if base_file:
        keys = sorted(entries)
        assert reader.min_key == (keys[0] if keys else b"")
        assert reader.max_key == (keys[-1] if keys else b"")
    else:
        assert reader.min_key is None
        assert reader.max_key is None


@given(entries=ENTRIES, prefixes=st.lists(st.binary(max_size=2)))
def test_many_prefixes_give_each_key_once(
    entries: dict[bytes, bytes], prefixes: list[bytes]
) -> None:
    ordered = sorted(entries.items())
    reader = opened(write_hfile(ordered, options(block_bytes=200)))
    expected = [entry for entry in ordered if entry[0].startswith(tuple(prefixes))]
    assert list(reader.scan_prefixes(prefixes)) == expected


def test_the_bloom_filter_is_a_meta_block() -> None:
    data = write_hfile(numbered(3), options(base_file=True, bloom="Ymxvb20="))
    reader = opened(data)
    assert reader.meta_block("bloomFilter") == b"Ymxvb20="
    assert reader.info["bloomFilterTypeCode"] == b"DYNAMIC_V0"
    assert reader.meta_block("other") is None
    assert opened(write_hfile(numbered(3), options())).meta_block("bloomFilter") is None


def test_the_same_entries_give_the_same_bytes() -> None:
    assert write_hfile(numbered(50), options()) == write_hfile(numbered(50), options())
    later = HFileOptions(SCHEMA, 1_800_000_000_000)
    assert write_hfile(numbered(50), options()) != write_hfile(numbered(50), later)


def test_opening_reads_the_end_only() -> None:
    file = CountedReads(data := write_hfile(numbered(50_000), options(codec=Codec.NONE)))
    HFileReader(file, len(data), "f")
    assert file.reads == [(len(data) - TAIL_BYTES, TAIL_BYTES)]


def test_a_large_index_takes_one_more_read() -> None:
    entries = [(b"%06d" % n * 20, b"") for n in range(4000)]
    file = CountedReads(data := write_hfile(entries, options(codec=Codec.NONE, block_bytes=1)))
    reader = HFileReader(file, len(data), "f")
    assert len(file.reads) == 2
    assert file.bytes == len(data) - reader.trailer.load_on_open_offset


def test_a_lookup_reads_one_block() -> None:
    entries = numbered(50_000)
    file = CountedReads(data := write_hfile(entries, options(codec=Codec.NONE)))
    reader = HFileReader(file, len(data), "f")
    file.reads.clear()
    assert reader.get(b"key-020000") == entries[20_000][1]
    assert len(file.reads) == 1
    assert file.bytes < 70_000
    file.reads.clear()
    assert reader.get(b"a key before all") is None
    assert not file.reads
    assert reader.get(b"key-020000x") is None
    assert len(file.reads) == 1


def test_lookups_of_many_keys_read_each_block_once_and_neighbours_together() -> None:
    entries = numbered(20_000)
    file = CountedReads(data := write_hfile(entries, options(codec=Codec.NONE)))
    reader = HFileReader(file, len(data), "f")
    file.reads.clear()
    near = [key for key, _ in entries[1000:1010]]
    far = [key for key, _ in entries[18_000:18_003]]
    assert [key for key, _ in reader.get_many(far + near)] == near + far
    assert len(file.reads) == 2
    assert file.bytes < 140_000
    file.reads.clear()
    assert dict(reader.get_many(key for key, _ in entries)) == dict(entries)
    assert len(file.reads) == 1
    assert file.bytes < len(data)


def test_prefix_lookups_read_the_blocks_of_the_prefix() -> None:
    entries = numbered(20_000)
    file = CountedReads(data := write_hfile(entries, options(codec=Codec.NONE)))
    reader = HFileReader(file, len(data), "f")
    file.reads.clear()
    assert list(reader.scan_prefixes([b"key-0123"])) == entries[12_300:12_400]
    assert len(file.reads) == 1
    assert file.bytes < 140_000


def test_long_scans_are_read_in_pieces() -> None:
    entries = [(b"%03d" % n, b"v" * 1_000_000) for n in range(20)]
    file = CountedReads(data := write_hfile(entries, options(codec=Codec.NONE)))
    reader = HFileReader(file, len(data), "f")
    file.reads.clear()
    assert sum(len(value) for _, value in reader.entries()) == 20_000_000
    assert 4 <= len(file.reads) <= 8


def test_a_file_within_another_is_read_in_place() -> None:
    entries = numbered(30)
    data = write_hfile(entries, options(block_bytes=500))
    whole = b"before" + data + b"behind"
    reader = HFileReader(lambda begin, size: whole[begin : begin + size], len(data), "log", 6)
    assert list(reader.entries()) == entries
    assert reader.get(b"key-000007") == entries[7][1]


def test_unordered_keys_are_refused() -> None:
    with pytest.raises(ValueError, match="comes after"):
        write_hfile([(b"b", b""), (b"a", b"")], options())
    with pytest.raises(ValueError, match="comes after"):
        write_hfile([(b"a", b""), (b"a", b"")], options())


def test_keys_have_a_greatest_length() -> None:
    longest = b"k" * 32767
    assert opened(write_hfile([(longest, b"v")], options())).get(longest) == b"v"
    with pytest.raises(RecordKeyError, match="32768 bytes"):
        write_hfile([(longest + b"k", b"v")], options())


@pytest.mark.parametrize("extra", range(-60, 40))
def test_blocks_hold_as_many_checksums_as_hudi_rs_cuts_off(extra: int) -> None:
    # its count: chunks of 16384 bytes in header, content and checksums together
    block = encode_block(DATA_MAGIC, bytes(16384 - HEADER_BYTES + extra), Codec.NONE, -1)
    (size,) = struct.unpack_from(">i", block, 8)
    words = (size - (16384 - HEADER_BYTES + extra)) // 4
    assert -(-(HEADER_BYTES + size) // 16384) == words
    assert len(block) == HEADER_BYTES + size
    content = decode_block(block, 0, DATA_MAGIC, Codec.NONE, "f").content
    assert content == bytes(16384 - HEADER_BYTES + extra)


def test_gzip_blocks_are_ordinary_gzip() -> None:
    block = encode_block(DATA_MAGIC, b"content" * 9, Codec.GZIP, -1)
    assert gzip.decompress(block[HEADER_BYTES:-4]) == b"content" * 9
    assert block[HEADER_BYTES:][:10].hex() == "1f8b0800000000000000"


@given(value=st.integers(0, 2**40))
def test_hadoop_numbers(value: int) -> None:
    data = encode_vint(value)
    assert decode_vint(b"x" + data, 1) == (value, 1 + len(data))


@pytest.mark.parametrize(
    ("value", "data"), [(0, "00"), (127, "7f"), (128, "8f80"), (300, "8e012c"), (32779, "8e800b")]
)
def test_hadoop_numbers_by_their_bytes(value: int, data: str) -> None:
    assert encode_vint(value).hex() == data
