"""A block of an HFile: header, content, checksums.

All numbers big-endian::

    magic                8 bytes
    size                 int32    bytes after the header: content on disk and checksums
    uncompressed size    int32    bytes of the content
    previous             int64    where the block of that kind before it begins; -1 for the first
    checksum type        byte     0 none, 1 CRC32, 2 CRC32C
    bytes per checksum   int32    16384
    data size            int32    header and content on disk
    content              bytes    one gzip stream, or as it is
    checksums            4 bytes for every 16384 bytes of header and content

Hudi's native writer writes zeros for checksums. gzip has its own, which is checked.
"""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from enum import IntEnum
from itertools import islice
from operator import lt
from typing import Final, NamedTuple

from hudi_core.errors import CorruptMetadataError
from hudi_core.metadata.damage import REBUILD

# --- constants that the parts of an HFile share, and its error ------------------------------------


DATA_MAGIC: Final = b"DATABLK*"
META_MAGIC: Final = b"METABLKc"
ROOT_INDEX_MAGIC: Final = b"IDXROOT2"
MIDDLE_INDEX_MAGIC: Final = b"IDXINTE2"
LEAF_INDEX_MAGIC: Final = b"IDXLEAF2"
FILE_INFO_MAGIC: Final = b"FILEINF2"

KEY_TAIL: Final = b"\x00" + b"\x7f" + b"\xff" * 7 + b"\x04"
"""What follows the row in every key: no column family, the latest timestamp, type "put"."""
MAX_KEY_BYTES: Final = 32767
"""Longest row key: its length is an int16."""
MAX_BLOCK_BYTES: Final = 512 * 1024 * 1024
"""Largest block accepted, on disk or uncompressed; a block grows with its largest value only."""


class Codec(IntEnum):
    """Compression of every block of a file, by HBase's numbers."""

    GZIP = 1
    NONE = 2


def damaged(path: str, reason: str) -> CorruptMetadataError:
    """Return the error that says what is wrong with an HFile."""
    return CorruptMetadataError(path, reason, REBUILD)


# --- blocks ---------------------------------------------------------------------------------------


# --- cells ---------------------------------------------------------------------------------------

# A cell, numbers big-endian::
#
#     key length     int32   12 + n
#     value length   int32
#     row length     int16   n
#     row            bytes   the record key
#     tail           00 7fffffffffffffff 04
#     value          bytes
#     version        00


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
    # strictly: a key that became its neighbour hides itself
    if not all(map(lt, keys, islice(keys, 1, None))):
        raise damaged(path, "the keys of a data block are not in order")
    return Cells(content, keys, begins, ends)


def _damaged_cell(position: int, path: str) -> CorruptMetadataError:
    return damaged(path, f"byte {position} of a data block is not the begin of a whole cell")


# --- blocks --------------------------------------------------------------------------------------


_HEADER: Final = struct.Struct(">8siiqBii")
HEADER_BYTES: Final = _HEADER.size
_CHUNK: Final = 16384
_GZIP: Final = 31
"""zlib's word for a gzip stream with the largest window."""
_DEFLATE: Final = -15
"""zlib's word for what is in it."""
_GZIP_HEAD: Final = bytes.fromhex("1f8b0800000000000000")
"""No name, no time, no operating system, as Java writes it: the same bytes everywhere."""
_GZIP_END: Final = struct.Struct("<II")
_NO_CHECKSUM, _CRC32, _CRC32C = 0, 1, 2


class Block(NamedTuple):
    """A block that was read.

    ``content`` is uncompressed; ``size`` is the bytes on disk, header and checksums included.
    """

    content: bytes
    size: int


def encode_block(magic: bytes, content: bytes, codec: Codec, previous: int) -> bytes:
    """Return a block.

    ``content`` is uncompressed. ``previous`` is the offset of the preceding block of that kind, -1
    for the first.
    """
    stored = _gzip(content) if codec == Codec.GZIP else content
    data_size = HEADER_BYTES + len(stored)
    words = -(-data_size // _CHUNK)
    # hudi-rs 0.5.0 counts the chunks over the checksums, too, and cuts off as many words: without
    # a further word it would lose the end of a gzip stream that ends near the end of a chunk
    while -(-(data_size + 4 * words) // _CHUNK) > words:
        words += 1
    size = len(stored) + 4 * words
    header = _HEADER.pack(magic, size, len(content), previous, _NO_CHECKSUM, _CHUNK, data_size)
    return b"".join((header, stored, bytes(4 * words)))


def decode_block(data: bytes, position: int, magic: bytes, codec: Codec, path: str) -> Block:
    """Return the block that begins at a position.

    ``data`` may be a part of the file; ``position`` counts in ``data``.
    """
    if not 0 <= position <= len(data) - HEADER_BYTES:
        raise damaged(path, f"it has no room for its block {magic!r}")
    found, size, full_size, _, checksum, chunk, data_size = _HEADER.unpack_from(data, position)
    if found != magic:
        raise damaged(path, f"it has {found!r} where a block {magic!r} should begin")
    stored_size = data_size - HEADER_BYTES
    if not 0 <= stored_size <= size <= len(data) - position - HEADER_BYTES:
        raise damaged(path, f"its block {magic!r} does not fit its size of {size} bytes")
    if not 0 <= full_size <= MAX_BLOCK_BYTES or checksum > _CRC32C or chunk < 1:
        raise damaged(path, f"the header of its block {magic!r} is not possible")
    begin = position + HEADER_BYTES
    end = begin + stored_size
    if checksum == _CRC32:
        _require_crc32(data[position:end], data[end : begin + size], chunk, path)
    return Block(_uncompressed(data[begin:end], full_size, codec, path), HEADER_BYTES + size)


def _gzip(content: bytes) -> bytes:
    stream = zlib.compressobj(6, zlib.DEFLATED, _DEFLATE)
    end = _GZIP_END.pack(zlib.crc32(content), len(content) & 0xFFFFFFFF)
    return b"".join((_GZIP_HEAD, stream.compress(content), stream.flush(), end))


def _uncompressed(stored: bytes, full_size: int, codec: Codec, path: str) -> bytes:
    if codec == Codec.NONE:
        if len(stored) != full_size:
            raise damaged(path, f"a block holds {len(stored)} bytes instead of {full_size}")
        return stored
    stream = zlib.decompressobj(_GZIP)
    try:
        # one byte more than it may have: a stream that goes on is stopped there
        content = stream.decompress(stored, full_size + 1)
    except zlib.error as error:
        raise damaged(path, f"a block cannot be uncompressed ({error})") from error
    if len(content) != full_size or not stream.eof:
        raise damaged(path, f"a block does not uncompress to its {full_size} bytes")
    return content


def _require_crc32(covered: bytes, checksums: bytes, chunk: int, path: str) -> None:
    for number, start in enumerate(range(0, len(covered), chunk)):
        stored = int.from_bytes(checksums[4 * number : 4 * number + 4], "big")
        if zlib.crc32(covered[start : start + chunk]) != stored:
            raise damaged(path, "the checksum of a block is wrong")
