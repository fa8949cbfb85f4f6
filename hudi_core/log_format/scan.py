"""Finds blocks of a log file, in memory or by few reads."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from hudi_core.errors import CorruptMetadataError
from hudi_core.log_format.block import (
    MAGIC,
    SIZE_BYTES,
    BlockType,
    Cursor,
    LogBlock,
    decode_head,
    decode_map,
)

Read: TypeAlias = Callable[[int, int], bytes]
"""Returns ``length`` bytes of a file from ``offset`` on, fewer only where it ends."""

_FRAME_BYTES: Final = len(MAGIC) + SIZE_BYTES
_READ_BYTES: Final = 64 * 1024
"""Bytes fetched at once: most headers, which hold a schema, and many whole files."""
_SEARCH_BYTES: Final = 1024 * 1024


class BlockPlace(NamedTuple):
    """A block whose content has not been read.

    ``BlockType.CORRUPT`` is for bytes that are no whole block. ``offset`` and ``size`` are those of
    the content; for corrupt bytes, of the bytes themselves.
    """

    type: int
    header: Mapping[int, str]
    offset: int
    size: int


def read_log_blocks(data: bytes, path: str, *, skip_corrupt: bool = False) -> Iterator[LogBlock]:
    """Yield the blocks of a log file in memory; see :func:`find_log_blocks`."""
    places = find_log_blocks(
        lambda offset, length: data[offset : offset + length],
        len(data),
        path,
        skip_corrupt=skip_corrupt,
    )
    for place in places:
        content = data[place.offset : place.offset + place.size]
        yield LogBlock(place.type, place.header, content)


def find_log_blocks(
    read: Read, length: int, path: str, *, skip_corrupt: bool = False
) -> Iterator[BlockPlace]:
    """Yield the blocks of a log file without their contents.

    A writer that died while it appended leaves bytes that are no whole block. With ``skip_corrupt``
    reading continues at the next magic, as in Hudi, and what is before it comes as a block of type
    ``CORRUPT``; otherwise they are an error, for rows may be missing. A block that is whole by its
    size but whose parts do not fit is always an error.
    """
    file = _File(read, length, path)
    position = 0
    while position < length:
        try:
            size = _block_size(file, position, skip_corrupt)
        except CorruptMetadataError:
            if not skip_corrupt:
                raise
            end = file.find_magic(position + 1)
            yield BlockPlace(BlockType.CORRUPT, {}, position, end - position)
        else:
            end = position + _FRAME_BYTES + size
            yield _place(file, position, end)
        position = end


def _block_size(file: _File, position: int, look_ahead: bool) -> int:
    """Return a block's size if its frame is whole."""
    frame = Cursor(file.take(position, _FRAME_BYTES), file.path, position)
    if frame.take(len(MAGIC)) != MAGIC:
        raise frame.damage("no block begins here")
    size = frame.int64()
    left = file.length - position - _FRAME_BYTES
    if not SIZE_BYTES <= size <= left:
        raise frame.damage(f"a block of {size} bytes begins and {left} bytes are left")
    end = position + _FRAME_BYTES + size
    (distance,) = struct.unpack(">q", file.take(end - SIZE_BYTES, SIZE_BYTES))
    if distance != size + len(MAGIC):
        raise frame.damage("the block's size and its parts disagree")
    # a size that fits by chance does not end where another block begins, whole or torn
    if look_ahead and not MAGIC.startswith(file.take(end, len(MAGIC))):
        raise frame.damage("no block follows the block")
    return size


def _place(file: _File, begin: int, end: int) -> BlockPlace:
    start = begin + _FRAME_BYTES
    head_bytes = _READ_BYTES
    while True:
        cursor = Cursor(file.take(start, min(head_bytes, end - start)), file.path, start)
        try:
            head = decode_head(cursor)
            break
        except CorruptMetadataError:
            # a header may be larger than what was taken of the block
            if head_bytes >= end - start:
                raise
            head_bytes *= 8
    offset = start + cursor.position
    left = end - SIZE_BYTES - offset
    if not 0 <= head.content_size <= left:
        raise cursor.damage(f"{head.content_size} bytes are announced and {left} are left")
    footer_begin = offset + head.content_size
    footer = Cursor(
        file.take(footer_begin, end - SIZE_BYTES - footer_begin), file.path, footer_begin
    )
    decode_map(footer)
    if footer.left:
        raise footer.damage("the block's size and its parts disagree")
    return BlockPlace(head.type, head.header, offset, head.content_size)


class _File:
    """A file of which the piece that was read last is kept."""

    def __init__(self, read: Read, length: int, path: str) -> None:
        self._read, self.length, self.path = read, length, path
        self._begin = 0
        self._piece = b""

    def take(self, begin: int, count: int) -> bytes:
        """Return some bytes; fewer only where the file ends."""
        count = max(0, min(count, self.length - begin))
        if begin < self._begin or begin + count > self._begin + len(self._piece):
            size = min(max(count, _READ_BYTES), self.length - begin)
            self._begin, self._piece = begin, self._read(begin, size)
            if len(self._piece) != size:
                raise CorruptMetadataError(
                    self.path, f"it ends {size - len(self._piece)} bytes before its end"
                )
        return self._piece[begin - self._begin : begin - self._begin + count]

    def find_magic(self, begin: int) -> int:
        """Return the position of the next block, or the end."""
        while begin < self.length:
            piece = self.take(begin, _SEARCH_BYTES)
            found = piece.find(MAGIC)
            if found >= 0:
                return begin + found
            # the magic may lie across two pieces
            begin += max(1, len(piece) - len(MAGIC) + 1)
        return self.length
