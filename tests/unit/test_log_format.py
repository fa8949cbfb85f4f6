"""Log files: blocks are written and found again, torn ones are told apart from whole ones."""

from __future__ import annotations

import struct
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.avro.wrappers import ARRAY, SCALARS, Wrapped
from hudi_core.errors import CorruptMetadataError
from hudi_core.log_format.block import (
    BlockType,
    DeletedRecord,
    HeaderKey,
    LogBlock,
    decode_avro_content,
    decode_delete_content,
    encode_delete_content,
    encode_log_block,
    find_log_blocks,
    read_log_blocks,
)

PATH = "/table/city=x/.f_20260101000000000.log.1_0-0-0"
HEADER = {HeaderKey.INSTANT_TIME: "20260101000000000"}
FIRST = encode_log_block(BlockType.PARQUET, HEADER, b"first content")
SECOND = encode_log_block(BlockType.COMMAND, {**HEADER, HeaderKey.COMMAND_BLOCK_TYPE: "0"}, b"")
WHOLE = FIRST + SECOND


def blocks(data: bytes, skip_corrupt: bool = False) -> list[LogBlock]:
    return list(read_log_blocks(data, PATH, skip_corrupt=skip_corrupt))


def kinds(data: bytes) -> list[tuple[int, bytes]]:
    return [(block.type, block.content) for block in blocks(data, skip_corrupt=True)]


def test_a_block_by_its_bytes() -> None:
    data = encode_log_block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: "7"}, b"\xaa\xbb")
    parts = [
        b"#HUDI#",
        struct.pack(">q", 43),
        struct.pack(">iii", 1, 1, 1),
        struct.pack(">ii", 0, 1) + b"7",
        struct.pack(">q", 2) + b"\xaa\xbb",
        struct.pack(">i", 0),
        struct.pack(">q", 49),
    ]
    assert data == b"".join(parts)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(BlockType),
            st.dictionaries(st.sampled_from(HeaderKey), st.text(max_size=20), max_size=4),
            st.binary(max_size=300),
        ),
        max_size=5,
    )
)
def test_what_is_written_is_read(
    written: list[tuple[BlockType, dict[HeaderKey, str], bytes]],
) -> None:
    data = b"".join(encode_log_block(*block) for block in written)
    assert blocks(data) == written
    assert blocks(data, skip_corrupt=True) == written


def test_contents_are_found_without_being_read() -> None:
    content = bytes(3_000_000)
    head = {**HEADER, HeaderKey.SCHEMA: "s" * 200_000}
    data = encode_log_block(BlockType.HFILE, head, content) + FIRST
    reads: list[int] = []

    def read(offset: int, length: int) -> bytes:
        reads.append(length)
        return data[offset : offset + length]

    found = list(find_log_blocks(read, len(data), PATH))
    assert [place.type for place in found] == [BlockType.HFILE, BlockType.PARQUET]
    assert found[0].header == head
    assert [data[place.offset : place.offset + place.size] for place in found] == [
        content,
        b"first content",
    ]
    assert sum(reads) < 1_500_000


def test_a_small_file_is_read_at_once() -> None:
    reads: list[tuple[int, int]] = []

    def read(offset: int, length: int) -> bytes:
        reads.append((offset, length))
        return WHOLE[offset : offset + length]

    assert len(list(find_log_blocks(read, len(WHOLE), PATH))) == 2
    assert reads == [(0, len(WHOLE))]


def test_a_file_shorter_than_its_listing_says_is_an_error() -> None:
    with pytest.raises(CorruptMetadataError, match="before its end"):
        list(find_log_blocks(lambda begin, size: WHOLE[begin : begin + size], 500, PATH))


@pytest.mark.parametrize("end", [end for end in range(1, len(WHOLE)) if end != len(FIRST)])
def test_a_file_cut_off_is_an_error_or_ends_in_a_corrupt_block(end: int) -> None:
    with pytest.raises(CorruptMetadataError) as caught:
        blocks(WHOLE[:end])
    assert caught.value.path == PATH
    torn = WHOLE[:end]
    if end < len(FIRST):
        assert kinds(torn) == [(BlockType.CORRUPT, torn)]
    else:
        rest = torn[len(FIRST) :]
        assert kinds(torn) == [(BlockType.PARQUET, b"first content"), (BlockType.CORRUPT, rest)]


def test_torn_blocks_are_skipped_up_to_the_next_magic() -> None:
    torn = FIRST[:-9]
    assert kinds(torn + SECOND) == [(BlockType.CORRUPT, torn), (BlockType.COMMAND, b"")]
    assert kinds(b"noise" + SECOND) == [(BlockType.CORRUPT, b"noise"), (BlockType.COMMAND, b"")]
    assert kinds(b"#HUDI#" + SECOND)[0] == (BlockType.CORRUPT, b"#HUDI#")
    # whole by its own account, but nothing begins where it says that it ends
    assert kinds(FIRST + b"noise" + SECOND) == [
        (BlockType.CORRUPT, FIRST + b"noise"),
        (BlockType.COMMAND, b""),
    ]


def test_the_next_magic_is_found_across_pieces() -> None:
    for size in range(1024 * 1024 - 14, 1024 * 1024 + 2):
        found = kinds(b"#HUDI#" + bytes(size) + SECOND)
        assert [kind for kind, _ in found] == [BlockType.CORRUPT, BlockType.COMMAND]


@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF])
def test_a_changed_byte_of_the_frame_is_an_error(mask: int) -> None:
    content = FIRST.index(b"first")
    for place in range(len(FIRST)):
        changed = FIRST[:place] + bytes([FIRST[place] ^ mask]) + FIRST[place + 1 :]
        try:
            assert len(blocks(changed)) == 1
        except CorruptMetadataError:
            continue
        # contents have no checksum of their own, types and header keys may be of a later release
        is_type = 18 <= place < 22
        is_header = 26 <= place < content - 8
        is_content = content <= place < content + 13
        assert is_type or is_header or is_content, place


@given(st.binary(max_size=120))
def test_any_bytes_are_blocks_or_corrupt(noise: bytes) -> None:
    data = FIRST + noise + SECOND
    try:
        found = blocks(data, skip_corrupt=True)
    except CorruptMetadataError:
        return
    assert found[-1] == LogBlock(BlockType.COMMAND, {0: "20260101000000000", 3: "0"}, b"")


# --- contents
@given(st.lists(st.binary(max_size=50)))
def test_avro_contents(datums: list[bytes]) -> None:
    parts = [struct.pack(">i", len(datum)) + datum for datum in datums]
    content = struct.pack(">ii", 3, len(datums)) + b"".join(parts)
    assert list(decode_avro_content(content, PATH)) == datums


ORDERINGS = [
    None,
    Wrapped("BooleanWrapper", True),
    Wrapped("IntWrapper", 0),
    Wrapped("IntWrapper", -5),
    Wrapped("LongWrapper", 1 << 40),
    Wrapped("FloatWrapper", 0.5),
    Wrapped("DoubleWrapper", 0.1),
    Wrapped("BytesWrapper", b"\0\xff"),
    Wrapped("StringWrapper", "später"),
    Wrapped("DateWrapper", 20_000),
    Wrapped("DecimalWrapper", int(Decimal("12.5").scaleb(15)).to_bytes(9, "big", signed=True)),
    Wrapped("TimeMicrosWrapper", 1),
    Wrapped("TimestampMicrosWrapper", 1_700_000_000_000_000),
    Wrapped(ARRAY, (Wrapped("IntWrapper", 1), None, Wrapped("StringWrapper", "b"))),
]


def test_every_ordering_value_survives() -> None:
    used = {ordering.wrapper for ordering in ORDERINGS if ordering}
    assert used == {*SCALARS, ARRAY} - {"LocalDateWrapper"}
    records = [DeletedRecord(f"key {n}", "p=1", value) for n, value in enumerate(ORDERINGS)]
    records.append(DeletedRecord(None, None))
    assert decode_delete_content(encode_delete_content(records), PATH) == records


def test_delete_contents_by_their_bytes() -> None:
    assert encode_delete_content([]).hex() == "000000030000000100"
    # as Spark writes a DELETE: one record, key, partition, int 0
    spark = "000000030000000f02020e54584e2d3030350200040000"
    assert encode_delete_content(
        [DeletedRecord("TXN-005", "", Wrapped("IntWrapper", 0))]
    ) == bytes.fromhex(spark)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        struct.pack(">i", 3),
        struct.pack(">ii", 1, 1) + b"\0",
        struct.pack(">ii", 3, 2) + b"\0",
        struct.pack(">ii", 3, 1) + b"\0\0",
        struct.pack(">ii", 3, -1),
        struct.pack(">ii", 3, 3) + b"\2\2\7",
        struct.pack(">ii", 3, 10) + b"\xff" * 9 + b"\1",
        struct.pack(">ii", 3, 4) + b"\2\0\0\x7e",
    ],
)
def test_damaged_delete_contents_are_named(content: bytes) -> None:
    with pytest.raises(CorruptMetadataError) as caught:
        decode_delete_content(content, PATH)
    assert caught.value.path == PATH


def test_a_changed_byte_of_a_delete_content_is_no_other_error() -> None:
    content = encode_delete_content([DeletedRecord("k", "p", value) for value in ORDERINGS])
    for place in range(len(content)):
        for mask in (1, 0x80, 0xFF):
            changed = content[:place] + bytes([content[place] ^ mask]) + content[place + 1 :]
            try:
                decode_delete_content(changed, PATH)
            except CorruptMetadataError as error:
                found = error.path
            else:
                found = PATH
            assert found == PATH
