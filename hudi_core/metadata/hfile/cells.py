"""The content of a data block: cells, one behind the other.

A cell, numbers big-endian::

    key length     int32   12 + n
    value length   int32
    row length     int16   n
    row            bytes   the record key
    tail           00 7fffffffffffffff 04
    value          bytes
    version        00
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice
from operator import le
from typing import Final, NamedTuple

from hudi_core.errors import CorruptMetadataError
from hudi_core.metadata.hfile.layout import KEY_TAIL, damaged

_HEAD: Final = struct.Struct(">iih")
_KEY_OVERHEAD: Final = 2 + len(KEY_TAIL)


class Cells(NamedTuple):
    """The cells of one block, in order.

    The value of cell i is ``content[begins[i]:ends[i]]``.
    """

    content: bytes
    keys: Sequence[bytes]
    begins: Sequence[int]
    ends: Sequence[int]

    def value(self, number: int) -> bytes:
        """Return the value of a cell."""
        return self.content[self.begins[number] : self.ends[number]]

    def of_prefix(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys and values of the cells whose keys begin so."""
        keys, content = self.keys, self.content
        first = bisect_left(keys, prefix)
        stop = bisect_left(keys, True, first, key=lambda key: not key.startswith(prefix))
        some = slice(first, stop)
        for key, begin, end in zip(keys[some], self.begins[some], self.ends[some], strict=True):
            yield key, content[begin:end]


def encode_cell(key: bytes, value: bytes) -> bytes:
    """Return one cell."""
    head = _HEAD.pack(_KEY_OVERHEAD + len(key), len(value), len(key))
    return b"".join((head, key, KEY_TAIL, value, b"\0"))


def decode_cells(content: bytes, path: str) -> Cells:
    """Return the cells of a block."""
    keys: list[bytes] = []
    begins: list[int] = []
    ends: list[int] = []
    unpack, size, position = _HEAD.unpack_from, len(content), 0
    try:
        while position < size:
            key_length, value_length, row_length = unpack(content, position)
            begin = position + 8 + key_length
            end = begin + value_length
            # a byte must follow the value, and end later than the cell begins
            if key_length - row_length != 12 or row_length < 0 or value_length < 0 or content[end]:
                raise _damaged_cell(position, path)
            keys.append(content[position + 10 : position + 10 + row_length])
            begins.append(begin)
            ends.append(end)
            position = end + 1
    except (struct.error, IndexError) as error:
        raise _damaged_cell(position, path) from error
    if not all(map(le, keys, islice(keys, 1, None))):
        raise damaged(path, "the keys of a data block are not in order")
    return Cells(content, keys, begins, ends)


def _damaged_cell(position: int, path: str) -> CorruptMetadataError:
    return damaged(path, f"byte {position} of a data block is not the begin of a whole cell")
