"""Very many keys of an HFile at once: the same as key by key, with the same reads."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hudi_core.errors import CorruptMetadataError
from hudi_core.metadata.hfile import Codec, HFileOptions, HFileReader, write_hfile
from hudi_core.metadata.hfile.block import decode_cells, encode_cell
from hudi_core.metadata.hfile.layout import KEY_TAIL
from hudi_core.metadata.hfile.many_cells import find_cells

PATH = "/table/.hoodie/metadata/record_index/f.hfile"
TRICKY = st.sampled_from([KEY_TAIL, b"\0" * 4, b"\0\x0d\0\0\0\x01\0\x01a" + KEY_TAIL])
parts = st.lists(st.one_of(st.binary(max_size=9), TRICKY), max_size=3).map(b"".join)
contents = st.dictionaries(parts, parts, min_size=1, max_size=60)


def written(content: dict[bytes, bytes], block_bytes: int = 200) -> bytes:
    options = HFileOptions("{}", 0, Codec.NONE, block_bytes)
    return write_hfile(sorted(content.items()), options)


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
    reader = HFileReader.from_bytes(written(content, block_bytes), PATH)
    keys = [*others, *list(content)[::2]]
    keys = list(dict.fromkeys(keys))
    assert found(reader, keys) == dict(reader.get_many(keys))


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


def test_a_slice_of_keys_is_looked_up_as_it_is() -> None:
    content = {f"k{number}".encode(): str(number).encode() for number in range(500)}
    reader = HFileReader.from_bytes(written(content), PATH)
    keys = pa.array([b"k1", b"k22", b"no", b"k333", b"k4"], pa.binary())[1:4]
    told = {
        int(at): value
        for own, some in reader.find_many(keys)
        for at, value in zip(own, some.to_pylist(), strict=True)
    }
    assert told == {0: b"22", 2: b"333"}
    assert not list(reader.find_many(keys[:0]))


def test_only_the_blocks_are_read_that_may_hold_a_key() -> None:
    content = {f"k{number:05}".encode(): bytes(100) for number in range(5000)}
    data = written(content, 1000)
    reads: list[tuple[int, int]] = []

    def read(offset: int, length: int) -> bytes:
        reads.append((offset, length))
        return data[offset : offset + length]

    reader = HFileReader(read, len(data), PATH)
    reads.clear()
    assert len(found(reader, [b"k00100", b"k00101", b"k03000", b"a", b"z"])) == 3
    # one of them is the last, for the key behind all
    assert len(reads) == 3
    assert all(length < 2000 for _, length in reads)


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
    second = data.index(b"DATABLK*", 20)
    at = data.index(b"k0", second)
    data[at : at + 4] = b"k000"
    reader = HFileReader.from_bytes(bytes(data), PATH)
    with pytest.raises(CorruptMetadataError, match="keys that its index denies"):
        found(reader, list(content))


@given(st.integers(0, 19_999), st.integers(1, 255))
def test_damage_hides_no_key(place: int, change: int) -> None:
    content = {f"k{number:03}".encode(): bytes([number % 7]) * 40 for number in range(300)}
    data = bytearray(written(content, 1000))
    data[place % data.index(b"IDXROOT2")] ^= change
    keys = [b"before", *content, b"k1", b"z"]
    try:
        reader = HFileReader.from_bytes(bytes(data), PATH)
        told = found(reader, keys)
    except CorruptMetadataError:
        return
    assert told.keys() == content.keys()
    assert told == dict(reader.get_many(keys))
