"""HFiles: what is written is read again, by few reads, and damage is named."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hudi_core.errors import CorruptMetadataError, RecordKeyError
from hudi_core.metadata.hfile.block import (
    DATA_MAGIC,
    FILE_INFO_MAGIC,
    HEADER_BYTES,
    KEY_TAIL,
    LEAF_INDEX_MAGIC,
    MIDDLE_INDEX_MAGIC,
    ROOT_INDEX_MAGIC,
    Codec,
    decode_block,
    decode_cells,
    encode_block,
    encode_cell,
)
from hudi_core.metadata.hfile.index import (
    IndexEntry,
    decode_vint,
    encode_index,
    encode_vint,
    index_key,
)
from hudi_core.metadata.hfile.many_cells import find_cells
from hudi_core.metadata.hfile.reader import TAIL_BYTES, HFileReader
from hudi_core.metadata.hfile.trailer import Trailer, encode_file_info, encode_trailer
from hudi_core.metadata.hfile.writer import HFileOptions, write_hfile

PATH = "/table/.hoodie/metadata/files/some.hfile"
Entries = Sequence[tuple[bytes, bytes]]
RECORD = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}'


def options(**changes: Any) -> HFileOptions:
    return HFileOptions(RECORD, 1_700_000_000_000, **changes)


def numbered(count: int, size: int = 100) -> Entries:
    return [(b"key-%06d" % n, (b"%06d" % n) * (size // 6)) for n in range(count)]


class CountedReads:
    """A file that remembers what was read of it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.reads: list[tuple[int, int]] = []

    def __call__(self, offset: int, length: int) -> bytes:
        self.reads.append((offset, length))
        return self.data[offset : offset + length]

    def taken(self) -> tuple[int, int]:
        """How often it was read since the last call, and how many bytes."""
        found = len(self.reads), sum(length for _, length in self.reads)
        self.reads.clear()
        return found


def counted(entries: Entries, **changes: Any) -> tuple[CountedReads, HFileReader]:
    """A file without compression, as it is when its reader was opened."""
    file = CountedReads(write_hfile(entries, options(codec=Codec.NONE, **changes)))
    return file, HFileReader(file, len(file.data), "f")


def opened(data: bytes) -> HFileReader:
    return HFileReader.from_bytes(data, PATH)


CONTENTS = st.dictionaries(st.binary(max_size=40), st.binary(max_size=300), max_size=60)


@given(
    entries=CONTENTS,
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
    assert reader.schema == RECORD
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


@given(entries=CONTENTS, prefixes=st.lists(st.binary(max_size=2)))
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
    later = HFileOptions(RECORD, 1_800_000_000_000)
    assert write_hfile(numbered(50), options()) != write_hfile(numbered(50), later)


def test_opening_reads_the_end_only() -> None:
    file, _ = counted(numbered(50_000))
    assert file.reads == [(len(file.data) - TAIL_BYTES, TAIL_BYTES)]
    # a large index takes one more read
    file, reader = counted([(b"%06d" % n * 20, b"") for n in range(4000)], block_bytes=1)
    assert file.taken() == (2, len(file.data) - reader.trailer.load_on_open_offset)


def test_a_lookup_reads_one_block() -> None:
    entries = numbered(50_000)
    file, reader = counted(entries)
    file.reads.clear()
    assert reader.get(b"key-020000") == entries[20_000][1]
    assert (1, 0) < file.taken() < (1, 70_000)
    assert reader.get(b"a key before all") is None
    assert file.taken() == (0, 0)
    assert reader.get(b"key-020000x") is None
    assert file.taken()[0] == 1


def test_lookups_of_many_keys_read_each_block_once_and_neighbours_together() -> None:
    entries = numbered(20_000)
    file, reader = counted(entries)
    file.reads.clear()
    near = [key for key, _ in entries[1000:1010]]
    far = [key for key, _ in entries[18_000:18_003]]
    assert [key for key, _ in reader.get_many(far + near)] == near + far
    assert (2, 0) < file.taken() < (2, 140_000)
    assert dict(reader.get_many(key for key, _ in entries)) == dict(entries)
    assert (1, 0) < file.taken() < (1, len(file.data))
    assert list(reader.scan_prefixes([b"key-0123"])) == entries[12_300:12_400]
    assert (1, 0) < file.taken() < (1, 140_000)


def test_long_scans_are_read_in_pieces() -> None:
    file, reader = counted([(b"%03d" % n, b"v" * 1_000_000) for n in range(20)])
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


TRICKY = st.sampled_from([KEY_TAIL, b"\0" * 4, b"\0\x0d\0\0\0\x01\0\x01a" + KEY_TAIL])
parts = st.lists(st.one_of(st.binary(max_size=9), TRICKY), max_size=3).map(b"".join)
contents = st.dictionaries(parts, parts, min_size=1, max_size=60)


def written(content: dict[bytes, bytes], block_bytes: int = 200) -> bytes:
    return write_hfile(sorted(content.items()), options(codec=Codec.NONE, block_bytes=block_bytes))


def found(reader: HFileReader, keys: list[bytes]) -> dict[bytes, bytes]:
    told: dict[bytes, bytes] = {}
    for ordinals, values in reader.find_many(pa.array(keys, pa.binary())):
        assert len(ordinals) == len(values)
        for ordinal, value in zip(ordinals.tolist(), values.to_pylist(), strict=True):
            assert keys[ordinal] not in told
            told[keys[ordinal]] = value
    return told


@settings(max_examples=5 * settings().max_examples)
@given(contents, st.sets(parts, max_size=9), st.sampled_from([1, 100, 1000, 100_000]))
@example({b"": b""}, {b"longer than the block that would hold it"}, 1)
def test_the_same_is_found_as_key_by_key(
    content: dict[bytes, bytes], others: set[bytes], block_bytes: int
) -> None:
    reader = opened(written(content, block_bytes))
    keys = list(dict.fromkeys([*others, *list(content)[::2]]))
    assert found(reader, keys) == dict(reader.get_many(keys))
    some = pa.array([b"before", *keys, b"after"], pa.binary())[1:-1]  # a slice is taken as it is
    told = [one for own, _ in reader.find_many(some) for one in own.tolist()]
    assert {keys[one] for one in told} == keys & content.keys()
    assert not list(reader.find_many(some[:0]))


@settings(max_examples=5 * settings().max_examples)
@given(st.lists(contents, min_size=1, max_size=3))
def test_cells_are_those_of_each_block(blocks: list[dict[bytes, bytes]]) -> None:
    cells = [b"".join(encode_cell(*one) for one in sorted(block.items())) for block in blocks]
    expected = [
        (key, one.value(place))
        for content in cells
        for one in [decode_cells(content, PATH)]
        for place, key in enumerate(one.keys)
    ]
    many = find_cells(cells, PATH)
    data = many.data.tobytes()
    assert [
        (data[key : key + size], data[value : value + length])
        for key, size, value, length in zip(
            many.key_begins.tolist(),
            many.key_lengths.tolist(),
            many.value_begins.tolist(),
            many.value_lengths.tolist(),
            strict=True,
        )
    ] == expected


def test_only_the_blocks_are_read_that_may_hold_a_key() -> None:
    content = {f"k{number:05}".encode(): bytes(100) for number in range(5000)}
    file, reader = counted(sorted(content.items()), block_bytes=1000)
    file.reads.clear()
    assert len(found(reader, [b"k00100", b"k00101", b"k03000", b"a", b"z"])) == 3
    # one of them is the last, for the key behind all
    assert len(file.reads) == 3
    assert all(length < 2000 for _, length in file.reads)


@pytest.mark.parametrize("place", [2, 3, 4, 7, 8, 9])
def test_what_is_no_cell_is_told(place: int) -> None:
    good = b"".join(encode_cell(f"k{number:03}".encode(), bytes(23)) for number in range(100))
    assert len(find_cells([good], PATH)) == 100
    cell = len(good) // 100
    for number in (0, 50, 99):
        bad = bytearray(good)
        bad[number * cell + place] ^= 0x55
        with pytest.raises(CorruptMetadataError, match="does not hold whole cells"):
            find_cells([bytes(bad)], PATH)
    for end in (1, cell - 1, cell + 5):
        with pytest.raises(CorruptMetadataError):
            find_cells([good, good[:end], good], PATH)


def test_a_block_of_many_small_cells_beside_others_takes_no_more_memory() -> None:
    small = b"".join(encode_cell(f"{number:06}".encode(), b"") for number in range(20_000))
    large = [encode_cell(b"k", bytes(50_000)) for _ in range(400)]
    many = find_cells([*large, small], PATH)
    assert len(many) == 20_400
    assert (np.diff(many.key_begins) > 0).all()


def test_a_block_that_the_index_denies_is_told() -> None:
    content = {f"k{number:03}".encode(): bytes(100) for number in range(50)}
    data = bytearray(written(content, 1000))
    at = data.index(b"k0", data.index(b"DATABLK*", 20))
    data[at : at + 4] = b"k000"
    with pytest.raises(CorruptMetadataError, match="keys that its index denies"):
        found(opened(bytes(data)), list(content))


@given(st.integers(0, 99_999), st.integers(1, 255))
def test_damage_hides_no_key(place: int, change: int) -> None:
    # without room between neighbours for other keys, and no value as long as some cells
    content = {number.to_bytes(2): bytes([number % 7]) * 200 for number in range(300)}
    data = bytearray(written(content, 4000))
    data[place % data.index(b"IDXROOT2")] ^= change
    keys = [b"", *content, b"\0", b"z"]
    try:
        reader = HFileReader.from_bytes(bytes(data), PATH)
        told = found(reader, keys)
    except CorruptMetadataError:
        return
    assert told.keys() == content.keys()
    assert told == dict(reader.get_many(keys))


@pytest.mark.parametrize("became", [b"k006", b"k008", b"k29:"])
def test_a_key_that_became_another_is_refused(became: bytes) -> None:
    content = {f"k{number:03}".encode(): bytes(40) for number in range(300)}
    lost = b"k299" if became == b"k29:" else b"k007"
    data = written(content, 1000)
    at = data.index(lost, data.index(b"k298") if lost == b"k299" else 0)
    reader = opened(data[:at] + became + data[at + 4 :])
    lookups: list[Callable[[], object]] = [
        lambda: found(reader, [lost]),
        lambda: reader.get(lost),
        lambda: list(reader.scan_prefixes([lost])),
        lambda: list(reader.entries()),
    ]
    for lookup in lookups:
        with pytest.raises(CorruptMetadataError):
            lookup()


ENTRIES = [(b"key-%02d" % n, b"value %d" % n) for n in range(12)]


def small(codec: Codec = Codec.GZIP) -> bytes:
    return write_hfile(ENTRIES, options(codec=codec, block_bytes=120, base_file=True))


def read_all(data: bytes) -> list[tuple[bytes, bytes]]:
    return list(opened(data).entries())


def outcome(data: bytes) -> list[tuple[bytes, bytes]] | str:
    """Return the entries, or the path that the error names."""
    try:
        return read_all(data)
    except CorruptMetadataError as error:
        return error.path


def flipped(data: bytes, mask: int) -> Iterator[bytes]:
    """The same bytes with one changed, for each of them."""
    for place in range(len(data)):
        yield data[:place] + bytes([data[place] ^ mask]) + data[place + 1 :]


@pytest.mark.parametrize("codec", Codec)
def test_a_file_cut_off_anywhere_is_an_error(codec: Codec) -> None:
    data = small(codec)
    for end in range(len(data)):
        with pytest.raises(CorruptMetadataError) as caught:
            read_all(data[:end])
        assert caught.value.path == PATH
        assert "hudi table repair --metadata PATH" in str(caught.value)


@pytest.mark.takes_turns
@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF])
def test_a_changed_byte_is_an_error_or_changes_nothing(mask: int) -> None:
    outcomes = [outcome(changed) for changed in flipped(small(), mask)]
    assert all(found in (ENTRIES, PATH) for found in outcomes)
    assert outcomes.count(PATH) > 500


def test_without_compression_a_changed_byte_is_no_other_error() -> None:
    outcomes = [outcome(changed) for changed in flipped(small(Codec.NONE), 0x10)]
    # values and keys have no checksum there
    different = sum(found not in (ENTRIES, PATH) for found in outcomes)
    assert different <= sum(len(key) + len(value) for key, value in ENTRIES)


@given(st.binary(max_size=200), st.integers(0, 600))
def test_random_bytes_in_the_middle(noise: bytes, place: int) -> None:
    data = small()
    changed = data[:place] + noise + data[place + len(noise) :]
    assert outcome(changed) in (ENTRIES, PATH)


def test_a_file_that_is_shorter_than_its_listing_says() -> None:
    data = small()
    with pytest.raises(CorruptMetadataError, match="ends"):
        HFileReader(lambda begin, size: data[begin : begin + size], len(data) + 10, PATH)


def block_of(*cells: tuple[bytes, bytes], codec: Codec = Codec.NONE, before: int = -1) -> bytes:
    return encode_block(DATA_MAGIC, b"".join(encode_cell(*one) for one in cells), codec, before)


def built(
    cells: list[tuple[bytes, bytes]],
    index: bytes | None = None,
    prepared: bytes = b"",
    blocks: Codec = Codec.NONE,
    **changes: Any,
) -> bytes:
    """Return a file of one data block that may contradict itself."""
    block = prepared or block_of(*cells)
    if index is None:
        index = encode_index([IndexEntry(index_key(cells[0][0], False), 0, len(block))])
    body = block + encode_block(ROOT_INDEX_MAGIC, index, blocks, -1)
    body += encode_block(ROOT_INDEX_MAGIC, b"", blocks, -1)
    info = len(body)
    body += encode_block(FILE_INFO_MAGIC, encode_file_info({"schema": b"{}"}), blocks, -1)
    trailer = Trailer(info, len(block), 0, 1, 0, len(cells), 1, 0, 0, blocks)
    return body + encode_trailer(replace(trailer, **changes))


def of_block(block: bytes, blocks: Codec = Codec.NONE, cells: int = 2) -> bytes:
    """A file with this one block, which begins with the key ``a``."""
    index = encode_index([IndexEntry(b"\0\1a", 0, len(block))])
    return built(PAIR[:cells], index, block, blocks)


PAIR = [(b"a", b"1"), (b"b", b"2")]


BLOCK = block_of(PAIR[0])
LONGER = encode_index([IndexEntry(b"\0\1a", 0, len(BLOCK) + 4)])


CONTRADICTIONS = {
    "not in order": [built(PAIR[::-1]), built([PAIR[0], PAIR[0]])],
    "says 3": [built(PAIR, entry_count=3)],
    "instead of 2": [built(PAIR, data_index_count=2)],
    "not possible": [built(PAIR, entry_count=-1), built(PAIR, index_levels=1 << 30)],
    "compression 3": [built(PAIR, codec=3)],
    "a block has": [built(PAIR, LONGER, BLOCK + b"more")],
    "version 3": [built(PAIR)[:-1] + b"\2"],
    "outside the file": [
        built(PAIR, load_on_open_offset=1 << 40),
        built(PAIR, file_info_offset=0),
        built(PAIR, encode_index([IndexEntry(b"\0\1a", 0, 1 << 30)])),
        built(PAIR, encode_index([IndexEntry(b"\0\1a", -5, 10)])),
    ],
    "does not fit its size": [built(PAIR, encode_index([IndexEntry(b"\0\1a", 0, 60)]))],
    "is cut off": [
        built(PAIR, encode_index([IndexEntry(b"\0\5a", 0, 50)])),
        built(PAIR, encode_index([IndexEntry(b"", 0, 50)])),
        built(PAIR, bytes(12) + b"\x7f"),
    ],
    "cannot be read": [built(PAIR, bytes(12) + b"\x80" + bytes(8)), built(PAIR, bytes(5))],
}


@pytest.mark.parametrize("reason", CONTRADICTIONS)
def test_contradictions_are_refused(reason: str) -> None:
    assert read_all(built(PAIR)) == PAIR, "it is right before it is made wrong"
    for data in CONTRADICTIONS[reason]:
        with pytest.raises(CorruptMetadataError, match=reason):
            read_all(data)


def test_keys_that_the_index_denies_are_refused() -> None:
    place = IndexEntry(index_key(b"aa", False), 0, len(block_of(*PAIR)))
    with pytest.raises(CorruptMetadataError, match="denies"):
        opened(built(PAIR, encode_index([place]))).get(b"b")


def test_keys_that_belong_to_the_next_block_are_refused() -> None:
    first, second = block_of(*PAIR), block_of((b"c", b"3"), before=0)
    for key, refused in ((b"c", False), (b"b", True)):
        places = [
            IndexEntry(index_key(b"a", False), 0, len(first)),
            IndexEntry(index_key(key, False), len(first), len(second)),
        ]
        cells, index = [*PAIR, (b"c", b"3")], encode_index(places)
        data = built(cells, index, first + second, data_index_count=2)
        assert (outcome(data) == PATH) is refused


@pytest.mark.parametrize(
    "cell",
    [
        struct.pack(">iih", 13, 1 << 30, 1) + b"a",
        struct.pack(">iih", 13, -1, 1) + b"a" + bytes(12),
        struct.pack(">iih", 11, 1, -1) + bytes(40),
        struct.pack(">iih", 14, 1, 1) + bytes(40),
        struct.pack(">iih", 13, 1, 1) + b"a" + bytes(10) + b"v\1",
        b"\0\0",
    ],
)
def test_cells_that_do_not_fit_are_refused(cell: bytes) -> None:
    with pytest.raises(CorruptMetadataError, match="whole cell"):
        read_all(of_block(encode_block(DATA_MAGIC, cell, Codec.NONE, -1)))


def stored_block(stored: bytes, says: int, checksum: int) -> bytes:
    """A block whose header says how many bytes its compressed content has."""
    sizes = (len(stored) + checksum, says, -1, 0, 16384, HEADER_BYTES + len(stored))
    return struct.pack(">8siiqBii", DATA_MAGIC, *sizes) + stored + bytes(checksum)


def test_a_block_that_grows_beyond_what_it_says_is_stopped() -> None:
    block = stored_block(zlib.compress(bytes(50_000_000), 9, 31), 100, 16)
    with pytest.raises(CorruptMetadataError, match="100 bytes"):
        read_all(of_block(block, Codec.GZIP))


def test_a_block_without_its_own_checksum_is_refused() -> None:
    cell = encode_cell(b"a", b"1")
    stored = zlib.compress(cell, 6, 31)
    assert opened(of_block(stored_block(stored, len(cell), 4), Codec.GZIP)).get(b"a") == b"1"
    with pytest.raises(CorruptMetadataError, match="uncompress"):
        opened(of_block(stored_block(stored[:-8], len(cell), 4), Codec.GZIP)).get(b"a")


def test_a_claim_of_gigabytes_is_refused_before_they_are_made() -> None:
    block = bytearray(block_of(PAIR[0], codec=Codec.GZIP))
    struct.pack_into(">i", block, 12, 0x7FFFFFFF)
    with pytest.raises(CorruptMetadataError, match="not possible"):
        read_all(of_block(bytes(block), Codec.GZIP))


def lower_index(*entries: IndexEntry) -> bytes:
    parts = [struct.pack(">qi", entry.offset, entry.size) + entry.key for entry in entries]
    starts = [sum(map(len, parts[:number])) for number in range(len(parts) + 1)]
    return struct.pack(f">{len(starts) + 1}i", len(parts), *starts) + b"".join(parts)


def test_deep_indexes_of_hbase_are_read() -> None:
    first, second = block_of(PAIR[0]), block_of(PAIR[1], before=0)
    a, b = (index_key(key, True) for key, _ in PAIR)
    places = [IndexEntry(a, 0, len(first)), IndexEntry(b, len(first), len(second))]
    data = first + second
    for magic in (LEAF_INDEX_MAGIC, MIDDLE_INDEX_MAGIC):
        block = encode_block(magic, lower_index(*places), Codec.NONE, -1)
        places = [IndexEntry(index_key(b"a", True), len(data), len(block))]
        data += block
    # HBase says the middle key after the entries
    root = encode_index(places) + bytes(16)
    file = built(PAIR, root, data, index_levels=3)
    assert read_all(file) == PAIR
    assert opened(file).get(b"b") == b"2"
    with pytest.raises(CorruptMetadataError):
        read_all(built(PAIR, root, data, index_levels=2))


def test_an_index_that_leads_in_circles_is_refused() -> None:
    place = IndexEntry(index_key(b"a", True), 0, 0)
    size = len(encode_block(MIDDLE_INDEX_MAGIC, lower_index(place, place), Codec.NONE, -1))
    place = place._replace(size=size)
    block = encode_block(MIDDLE_INDEX_MAGIC, lower_index(place, place), Codec.NONE, -1)
    file = built(PAIR, encode_index([place]), block, index_levels=8)
    with pytest.raises(CorruptMetadataError, match="twice"):
        read_all(file)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        bytes(3),
        struct.pack(">i", -1),
        struct.pack(">i", 1 << 30),
        struct.pack(">iii", 1, 0, 5),
        struct.pack(">iii", 1, -8, 20) + bytes(40),
        struct.pack(">iii", 1, 0, 90) + bytes(20),
    ],
)
def test_damaged_lower_indexes_are_refused(content: bytes) -> None:
    block = encode_block(LEAF_INDEX_MAGIC, content, Codec.NONE, -1)
    index = encode_index([IndexEntry(index_key(b"a", True), 0, len(block))])
    with pytest.raises(CorruptMetadataError, match="index"):
        read_all(built(PAIR, index, block, index_levels=2))


def test_wrong_checksums_are_an_error_where_there_are_any() -> None:
    block = bytearray(BLOCK)
    block[24] = 1
    with pytest.raises(CorruptMetadataError, match="checksum"):
        read_all(of_block(bytes(block), cells=1))
    struct.pack_into(">I", block, len(block) - 4, zlib.crc32(block[:-4]))
    assert read_all(of_block(bytes(block), cells=1)) == PAIR[:1]
