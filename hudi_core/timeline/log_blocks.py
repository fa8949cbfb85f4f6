"""The frame of Hudi's log files: blocks with a type, a header and a content.

A block, all numbers big-endian (``hudi-format`` section 4)::

    magic           6 bytes  "#HUDI#"
    size            int64    L, the bytes that follow this field
    format version  int32    1
    type            int32    see BlockType
    header          map      int32 n, n x (int32 key, int32 length, UTF-8 text)
    content size    int64
    content         bytes
    footer          map
    distance        int64    L + 6, from here back to the block's begin
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from hudi_core.errors import CorruptMetadataError

MAGIC: Final = b"#HUDI#"
FORMAT_VERSION: Final = 1
_MAX_ENTRIES: Final = 64
_INT32: Final = struct.Struct(">i")
_INT64: Final = struct.Struct(">q")


class BlockType(IntEnum):
    """What the content of a block is."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO = 3
    HFILE = 4
    PARQUET = 5
    CDC = 6


class HeaderKey(IntEnum):
    """Keys of a block's header."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3


class LogBlock(NamedTuple):
    """One block. ``type`` is a number, as later releases may add some; so are the header's keys."""

    type: int
    header: Mapping[int, str]
    content: bytes


def read_log_blocks(data: bytes, path: str) -> Iterator[LogBlock]:
    """Yield the blocks of a log file.

    Raises
    ------
    CorruptMetadataError
        The bytes are not a sequence of whole blocks.
    """
    position = 0
    while position < len(data):
        frame = LogReader(data, path, position)
        if frame.take(len(MAGIC)) != MAGIC:
            raise frame.damage("no block begins here")
        size = frame.int64()
        if not 0 <= size <= frame.left:
            raise frame.damage(f"a block of {size} bytes begins and {frame.left} bytes are left")
        begin, position = position, frame.position + size
        yield _read_block(LogReader(data, path, frame.position, position), position - begin - 8)


def _read_block(block: LogReader, distance: int) -> LogBlock:
    version = block.int32()
    if version != FORMAT_VERSION:
        raise block.damage(f"the block has format version {version}")
    kind, header = block.int32(), _read_map(block)
    content = block.take(block.int64())
    _read_map(block)
    if block.int64() != distance or block.left:
        raise block.damage("the block's size and its parts disagree")
    return LogBlock(kind, header, content)


def _read_map(block: LogReader) -> dict[int, str]:
    count = block.int32()
    if not 0 <= count <= _MAX_ENTRIES:
        raise block.damage(f"the block has a map of {count} entries")
    entries: dict[int, str] = {}
    for _ in range(count):
        key = block.int32()
        try:
            entries[key] = block.take(block.int32()).decode()
        except UnicodeDecodeError as error:
            raise block.damage("a text of the block is not UTF-8") from error
    return entries


class LogReader:
    """Reads big-endian numbers and bytes forward through a part of a log file."""

    def __init__(self, data: bytes, path: str, position: int = 0, end: int | None = None) -> None:
        self._data, self._path, self.position = data, path, position
        self._end = len(data) if end is None else end

    @property
    def left(self) -> int:
        """Bytes that have not been read."""
        return self._end - self.position

    def damage(self, reason: str) -> CorruptMetadataError:
        """Return the error that says so, with the place."""
        return CorruptMetadataError(self._path, f"at byte {self.position}, {reason}")

    def take(self, count: int) -> bytes:
        """Return the next ``count`` bytes."""
        if not 0 <= count <= self.left:
            raise self.damage(f"{count} bytes are announced and {self.left} are left")
        taken = self._data[self.position : self.position + count]
        self.position += count
        return taken

    def int32(self) -> int:
        """Return the next 4 bytes as a number."""
        return int(_INT32.unpack(self.take(4))[0])

    def int64(self) -> int:
        """Return the next 8 bytes as a number."""
        return int(_INT64.unpack(self.take(8))[0])
