"""Damaged and hostile HFiles: an error that names the file, or the right rows."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.errors import CorruptMetadataError
from hudi_core.metadata.hfile import Codec, HFileOptions, HFileReader, write_hfile
from hudi_core.metadata.hfile.block import HEADER_BYTES, encode_block, encode_cell
from hudi_core.metadata.hfile.file_info import encode_file_info
from hudi_core.metadata.hfile.index import IndexEntry, encode_index, index_key
from hudi_core.metadata.hfile.layout import (
    DATA_MAGIC,
    FILE_INFO_MAGIC,
    LEAF_INDEX_MAGIC,
    MIDDLE_INDEX_MAGIC,
    ROOT_INDEX_MAGIC,
)
from hudi_core.metadata.hfile.trailer import Trailer, encode_trailer

PATH = "/table/.hoodie/metadata/files/some.hfile"
ENTRIES = [(b"key-%02d" % n, b"value %d" % n) for n in range(12)]


def small(codec: Codec = Codec.GZIP) -> bytes:
    return write_hfile(ENTRIES, HFileOptions("{}", 0, codec, block_bytes=120, base_file=True))


def read_all(data: bytes) -> list[tuple[bytes, bytes]]:
    reader = HFileReader.from_bytes(data, PATH)
    return list(reader.entries())


def outcome(data: bytes) -> list[tuple[bytes, bytes]] | str:
    """Return the entries, or the path that the error names."""
    try:
        return read_all(data)
    except CorruptMetadataError as error:
        return error.path


@pytest.mark.parametrize("codec", Codec)
def test_a_file_cut_off_anywhere_is_an_error(codec: Codec) -> None:
    data = small(codec)
    for end in range(len(data)):
        with pytest.raises(CorruptMetadataError) as caught:
            read_all(data[:end])
        assert caught.value.path == PATH
        assert "hudi table repair --metadata PATH" in str(caught.value)


@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF])
def test_a_changed_byte_is_an_error_or_changes_nothing(mask: int) -> None:
    data = small()
    errors = 0
    for place in range(len(data)):
        changed = data[:place] + bytes([data[place] ^ mask]) + data[place + 1 :]
        found = outcome(changed)
        assert found in (ENTRIES, PATH), place
        errors += found == PATH
    assert errors > 500


def test_without_compression_a_changed_byte_is_no_other_error() -> None:
    data = small(Codec.NONE)
    different = 0
    for place in range(len(data)):
        changed = data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :]
        try:
            different += read_all(changed) != ENTRIES
        except CorruptMetadataError:
            continue
    # values and keys have no checksum there
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


def built(
    cells: list[tuple[bytes, bytes]],
    levels: int = 1,
    index: bytes | None = None,
    indexed: int = 1,
    prepared: bytes = b"",
    **changes: Any,
) -> bytes:
    """Return a file of one data block that may contradict itself."""
    codec = Codec.NONE
    block = prepared or encode_block(
        DATA_MAGIC, b"".join(encode_cell(*cell) for cell in cells), codec, -1
    )
    if index is None:
        index = encode_index([IndexEntry(index_key(cells[0][0], False), 0, len(block))])
    body = block + encode_block(ROOT_INDEX_MAGIC, index, codec, -1)
    body += encode_block(ROOT_INDEX_MAGIC, b"", codec, -1)
    info = len(body)
    body += encode_block(FILE_INFO_MAGIC, encode_file_info({"schema": b"{}"}), codec, -1)
    values: dict[str, Any] = {
        "file_info_offset": info,
        "load_on_open_offset": len(block),
        "data_bytes": 0,
        "data_index_count": indexed,
        "meta_index_count": 0,
        "entry_count": len(cells),
        "index_levels": levels,
        "first_data_offset": 0,
        "last_data_offset": 0,
        "codec": codec,
    }
    return body + encode_trailer(Trailer(**{**values, **changes}))


PAIR = [(b"a", b"1"), (b"b", b"2")]


BLOCK = encode_block(DATA_MAGIC, encode_cell(*PAIR[0]), Codec.NONE, -1)
LONGER = encode_index([IndexEntry(b"\0\1a", 0, len(BLOCK) + 4)])


def test_the_files_made_here_are_right_before_they_are_made_wrong() -> None:
    assert read_all(built(PAIR)) == PAIR


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (built(PAIR[::-1]), "not in order"),
        (built(PAIR, entry_count=3), "says 3"),
        (built(PAIR, data_index_count=2), "instead of 2"),
        (built(PAIR, load_on_open_offset=1 << 40), "outside the file"),
        (built(PAIR, file_info_offset=0), "outside the file"),
        (built(PAIR, entry_count=-1), "not possible"),
        (built(PAIR, index_levels=1 << 30), "not possible"),
        (built(PAIR, codec=3), "compression 3"),
        (built(PAIR, index=encode_index([IndexEntry(b"\0\1a", 0, 60)])), "does not fit its size"),
        (built(PAIR, prepared=BLOCK + b"more", index=LONGER), "a block has"),
        (built(PAIR, index=encode_index([IndexEntry(b"\0\1a", 0, 1 << 30)])), "outside the file"),
        (built(PAIR, index=encode_index([IndexEntry(b"\0\1a", -5, 10)])), "outside the file"),
        (built(PAIR, index=encode_index([IndexEntry(b"\0\5a", 0, 50)])), "is cut off"),
        (built(PAIR, index=encode_index([IndexEntry(b"", 0, 50)])), "is cut off"),
        (built(PAIR, index=bytes(12) + b"\x80" + bytes(8)), "cannot be read"),
        (built(PAIR, index=bytes(12) + b"\x7f"), "is cut off"),
        (built(PAIR, index=bytes(5)), "cannot be read"),
        (built(PAIR)[:-1] + b"\2", "version 3"),
    ],
)
def test_contradictions_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(CorruptMetadataError, match=reason):
        read_all(data)


def test_keys_that_the_index_denies_are_refused() -> None:
    size = len(encode_block(DATA_MAGIC, b"".join(encode_cell(*c) for c in PAIR), Codec.NONE, -1))
    data = built(PAIR, index=encode_index([IndexEntry(index_key(b"aa", False), 0, size)]))
    with pytest.raises(CorruptMetadataError, match="denies"):
        HFileReader.from_bytes(data, PATH).get(b"b")


def test_keys_that_belong_to_the_next_block_are_refused() -> None:
    first = encode_block(DATA_MAGIC, b"".join(encode_cell(*c) for c in PAIR), Codec.NONE, -1)
    second = encode_block(DATA_MAGIC, encode_cell(b"c", b"3"), Codec.NONE, 0)
    for key, refused in ((b"c", False), (b"b", True)):
        index = encode_index(
            [
                IndexEntry(index_key(b"a", False), 0, len(first)),
                IndexEntry(index_key(key, False), len(first), len(second)),
            ]
        )
        data = built(
            [*PAIR, (b"c", b"3")], prepared=first + second, index=index, data_index_count=2
        )
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
    block = encode_block(DATA_MAGIC, cell, Codec.NONE, -1)
    index = encode_index([IndexEntry(b"\0\1a", 0, len(block))])
    with pytest.raises(CorruptMetadataError, match="whole cell"):
        read_all(built(PAIR, prepared=block, index=index))


def test_a_block_that_grows_beyond_what_it_says_is_stopped() -> None:
    bomb = zlib.compress(bytes(50_000_000), 9, 31)
    head = struct.pack(
        ">8siiqBii", DATA_MAGIC, len(bomb) + 16, 100, -1, 0, 16384, HEADER_BYTES + len(bomb)
    )
    block = head + bomb + bytes(16)
    index = encode_index([IndexEntry(b"\0\1a", 0, len(block))])
    data = built(PAIR, prepared=block, index=index)
    # the other blocks are not compressed, so the file as a whole is written again
    data = _recompressed(block, index)
    with pytest.raises(CorruptMetadataError, match="100 bytes"):
        read_all(data)


def test_a_block_without_its_own_checksum_is_refused() -> None:
    stored = zlib.compress(encode_cell(b"a", b"1"), 6, 31)
    for cut in (0, 8):
        size = len(stored) - cut
        head = struct.pack(
            ">8siiqBii",
            DATA_MAGIC,
            size + 4,
            len(encode_cell(b"a", b"1")),
            -1,
            0,
            16384,
            HEADER_BYTES + size,
        )
        block = head + stored[:size] + bytes(4)
        index = encode_index([IndexEntry(b"\0\1a", 0, len(block))])
        found = HFileReader.from_bytes(_recompressed(block, index), PATH)
        if cut:
            with pytest.raises(CorruptMetadataError, match="uncompress"):
                found.get(b"a")
        else:
            assert found.get(b"a") == b"1"


def _recompressed(block: bytes, index: bytes) -> bytes:
    codec = Codec.GZIP
    body = block + encode_block(ROOT_INDEX_MAGIC, index, codec, -1)
    body += encode_block(ROOT_INDEX_MAGIC, b"", codec, -1)
    info = len(body)
    body += encode_block(FILE_INFO_MAGIC, encode_file_info({"schema": b"{}"}), codec, -1)
    return body + encode_trailer(Trailer(info, len(block), 0, 1, 0, 2, 1, 0, 0, codec))


def test_a_claim_of_gigabytes_is_refused_before_they_are_made() -> None:
    block = bytearray(encode_block(DATA_MAGIC, encode_cell(b"a", b"1"), Codec.GZIP, -1))
    struct.pack_into(">i", block, 12, 0x7FFFFFFF)
    index = encode_index([IndexEntry(b"\0\1a", 0, len(block))])
    with pytest.raises(CorruptMetadataError, match="not possible"):
        read_all(_recompressed(bytes(block), index))


def lower_index(*entries: IndexEntry) -> bytes:
    parts = [struct.pack(">qi", entry.offset, entry.size) + entry.key for entry in entries]
    starts = [sum(map(len, parts[:number])) for number in range(len(parts) + 1)]
    return struct.pack(f">{len(starts) + 1}i", len(parts), *starts) + b"".join(parts)


def test_deep_indexes_of_hbase_are_read() -> None:
    first = encode_block(DATA_MAGIC, encode_cell(*PAIR[0]), Codec.NONE, -1)
    second = encode_block(DATA_MAGIC, encode_cell(*PAIR[1]), Codec.NONE, 0)
    places = [
        IndexEntry(index_key(b"a", True), 0, len(first)),
        IndexEntry(index_key(b"b", True), len(first), len(second)),
    ]
    data = first + second
    for magic in (LEAF_INDEX_MAGIC, MIDDLE_INDEX_MAGIC):
        block = encode_block(magic, lower_index(*places), Codec.NONE, -1)
        places = [IndexEntry(index_key(b"a", True), len(data), len(block))]
        data += block
    # HBase says the middle key after the entries
    root = encode_index(places) + bytes(16)
    file = built(PAIR, levels=3, index=root, prepared=data)
    assert read_all(file) == PAIR
    assert HFileReader.from_bytes(file, PATH).get(b"b") == b"2"
    with pytest.raises(CorruptMetadataError):
        read_all(built(PAIR, levels=2, index=root, prepared=data))


def test_an_index_that_leads_in_circles_is_refused() -> None:
    place = IndexEntry(index_key(b"a", True), 0, 0)
    size = len(encode_block(MIDDLE_INDEX_MAGIC, lower_index(place, place), Codec.NONE, -1))
    place = place._replace(size=size)
    block = encode_block(MIDDLE_INDEX_MAGIC, lower_index(place, place), Codec.NONE, -1)
    file = built(PAIR, levels=8, index=encode_index([place]), prepared=block)
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
        read_all(built(PAIR, levels=2, index=index, prepared=block))


def test_wrong_checksums_are_an_error_where_there_are_any() -> None:
    block = bytearray(encode_block(DATA_MAGIC, encode_cell(b"a", b"1"), Codec.NONE, -1))
    block[24] = 1
    index = encode_index([IndexEntry(b"\0\1a", 0, len(block))])
    with pytest.raises(CorruptMetadataError, match="checksum"):
        read_all(built(PAIR[:1], prepared=bytes(block), index=index))
    struct.pack_into(">I", block, len(block) - 4, zlib.crc32(block[:-4]))
    assert read_all(built(PAIR[:1], prepared=bytes(block), index=index)) == PAIR[:1]
