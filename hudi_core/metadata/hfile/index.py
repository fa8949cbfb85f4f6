"""The indexes of an HFile: where blocks begin, and with which key.

An entry of a root index::

    offset   int64
    size     int32   bytes of the block on disk
    length   VInt
    key      bytes   first key of the block; of a meta block, its name

The key of a data block is int16 n and n bytes of the row. HBase's writer lets the rest of the
cell's key follow (10 bytes), which Hudi 1.0 does too. Large files of HBase's writer have further
levels, whose blocks begin with a table of offsets::

    count     int32
    offsets   int32   count + 1 of them: where each entry begins behind this table, and the end
    entries   int64 offset, int32 size, key
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from hudi_core.errors import CorruptMetadataError
from hudi_core.metadata.hfile.block import KEY_TAIL, damaged
from hudi_core.protobuf import WireError, take

_PLACE: Final = struct.Struct(">qi")
_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
_ONE_BYTE: Final = 127
"""The greatest length that one byte says."""
Ints = npt.NDArray[np.int64]


class IndexEntry(NamedTuple):
    """One block.

    ``key`` is the row of the first key in the data block or in the first block below, or the name
    of a meta block. ``size`` is in bytes on disk.
    """

    key: bytes
    offset: int
    size: int


def encode_index(entries: Iterable[IndexEntry]) -> bytes:
    """Return a root index's content, with keys in written form."""
    return b"".join(
        _PLACE.pack(entry.offset, entry.size) + encode_vint(len(entry.key)) + entry.key
        for entry in entries
    )


def index_key(row: bytes, full: bool) -> bytes:
    """Return a row as a key of the data index.

    With the rest of the cell's key or not.
    """
    return _INT16.pack(len(row)) + row + (KEY_TAIL if full else b"")


class DataIndex:
    """First keys, places and sizes of the data blocks.

    Of a million files the index has twenty thousand blocks, and a lookup needs a few: where all
    keys have one length, as those of statistics have, none is made before it is looked at.
    """

    def __init__(self, keys: Sequence[bytes], offsets: Ints, sizes: Ints) -> None:
        self.keys, self._offsets, self._sizes = keys, offsets, sizes

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, number: int) -> IndexEntry:
        return IndexEntry(self.keys[number], int(self._offsets[number]), int(self._sizes[number]))

    @classmethod
    def of_entries(cls, entries: Sequence[IndexEntry], path: str) -> DataIndex:
        """The index of entries whose keys are as they are written."""
        keys = [row_of(key, path) for key, _, _ in entries]
        if any(low > high for low, high in pairwise(keys)):
            raise damaged(path, "the keys of its index are not in order")
        offsets = np.array([one.offset for one in entries], np.int64)
        return cls(keys, offsets, np.array([one.size for one in entries], np.int64))

    @classmethod
    def of_even(cls, content: bytes, count: int, end: int) -> DataIndex | None:
        """The index of a root whose keys have one length.

        ``None`` where they may not have.

        What is damaged is left to :func:`decode_root_index`, which says how.
        """
        start = _PLACE.size + 1
        width = content[start - 1] if count and len(content) > start else 0
        if not _INT16.size < width <= _ONE_BYTE or len(content) != count * (start + width):
            return None
        entries = np.frombuffer(content, np.uint8).reshape(count, start + width)
        offsets = entries[:, :8].copy().view(">i8")[:, 0].astype(np.int64)
        sizes = entries[:, 8:12].copy().view(">i4")[:, 0].astype(np.int64)
        length = int(_INT16.unpack_from(content, start)[0])
        if not 0 < length <= width - _INT16.size or (entries[:, start - 1] != width).any():
            return None
        if (entries[:, start : start + _INT16.size] != entries[0, start : start + 2]).any():
            return None
        begin = start + _INT16.size
        keys = entries[:, begin : begin + length].copy()
        texts = keys.view(f"S{length}")[:, 0]
        ends = offsets + sizes
        if (
            (texts[:-1] > texts[1:]).any()
            or offsets[0] < 0
            or (sizes < 0).any()
            or ends.max() > end
            or (ends[:-1] > offsets[1:]).any()
        ):
            return None
        return cls(_EvenKeys(keys.tobytes(), length), offsets, sizes)


class _EvenKeys(Sequence[bytes]):
    """Keys of one length, one behind the other."""

    def __init__(self, content: bytes, width: int) -> None:
        self._content, self._width = content, width

    def __len__(self) -> int:
        return len(self._content) // self._width

    @overload
    def __getitem__(self, number: int) -> bytes: ...

    @overload
    def __getitem__(self, number: slice) -> Sequence[bytes]: ...

    def __getitem__(self, number: int | slice) -> bytes | Sequence[bytes]:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        begin = range(len(self))[number] * self._width
        return self._content[begin : begin + self._width]


def row_of(key: bytes, path: str) -> bytes:
    """Return the row of a data index key, in either form."""
    length = _INT16.unpack_from(key)[0] if len(key) >= _INT16.size else -1
    if not 0 <= length <= len(key) - _INT16.size:
        raise damaged(path, "a key of its index is cut off")
    return key[_INT16.size : _INT16.size + length]


def decode_root_index(
    content: bytes, count: int, end: int, path: str, more: bool = False
) -> list[IndexEntry]:
    """Return the entries of a root index, keys as they are written.

    ``count`` is from the trailer; the last block has to end at ``end``. ``more`` allows bytes after
    the entries: HBase appends the middle key of an index with levels.
    """
    entries: list[IndexEntry] = []
    position = 0
    try:
        while position < len(content) and not (more and len(entries) == count):
            offset, size = _PLACE.unpack_from(content, position)
            length, position = decode_vint(content, position + _PLACE.size)
            if length > len(content) - position:
                raise damaged(path, "a key of its index is cut off")
            if offset < 0 or size < 0 or offset + size > end:
                raise _outside(path)
            entries.append(IndexEntry(content[position : position + length], offset, size))
            position += length
    except (WireError, struct.error) as error:
        raise damaged(path, f"its index cannot be read ({error})") from error
    if len(entries) != count:
        raise damaged(path, f"its index has {len(entries)} entries instead of {count}")
    return entries


def decode_lower_index(content: bytes, end: int, path: str) -> list[IndexEntry]:
    """Return the entries of an index block below the root; see :func:`decode_root_index`."""
    count = _INT32.unpack_from(content)[0] if len(content) >= _INT32.size else -1
    base = _INT32.size * (count + 2)
    if count < 0 or base > len(content):
        raise damaged(path, f"an index block has {count} entries in {len(content)} bytes")
    starts = struct.unpack_from(f">{count + 1}i", content, _INT32.size)
    entries: list[IndexEntry] = []
    for start, stop in pairwise(starts):
        if not 0 <= start <= stop - _PLACE.size <= len(content) - base - _PLACE.size:
            raise damaged(path, "an index block has an entry outside of it")
        offset, size = _PLACE.unpack_from(content, base + start)
        if offset < 0 or size < 0 or offset + size > end:
            raise _outside(path)
        key = content[base + start + _PLACE.size : base + stop]
        entries.append(IndexEntry(key, offset, size))
    return entries


def require_ordered_blocks(entries: Sequence[IndexEntry], path: str) -> None:
    """Refuse entries whose blocks overlap or are not in the file's order.

    Otherwise many entries could lead to one large block, which would be read as often.
    """
    if any(low.offset + low.size > high.offset for low, high in pairwise(entries)):
        raise damaged(path, "its index leads to the same place twice")


def _outside(path: str) -> CorruptMetadataError:
    return damaged(path, "its index leads outside the file")


# --- numbers of Hadoop's --------------------------------------------------------------------------

# One byte for -112 to 127; otherwise the first byte says the sign and how many bytes follow, the
# highest first. Lengths are never negative.


def encode_vint(value: int) -> bytes:
    """Return a number that is not negative in Hadoop's form."""
    if value <= 127:
        return bytes([value])
    size = (value.bit_length() + 7) // 8
    return bytes([256 - 112 - size]) + value.to_bytes(size, "big")


def decode_vint(data: bytes, position: int) -> tuple[int, int]:
    """Return a number, and the position after it.

    Negative ones are refused.
    """
    if position >= len(data):
        raise WireError("a number is cut off")
    first = data[position]
    if first <= 127:
        return first, position + 1
    size = 256 - 112 - first
    if not 1 <= size <= 8:
        raise WireError("a length is negative")
    content, position = take(data, position + 1, size)
    return int.from_bytes(content, "big"), position
