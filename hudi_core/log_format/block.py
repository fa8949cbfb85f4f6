"""The frame of a log block: type, header, content, footer.

All numbers big-endian::

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
from collections.abc import Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from hudi_core.log_format.cursor import Cursor

MAGIC: Final = b"#HUDI#"
FORMAT_VERSION: Final = 1
SIZE_BYTES: Final = 8
"""Bytes of the size, and of the distance."""
_MAX_ENTRIES: Final = 64


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
    COMPACTED_BLOCK_TIMES = 4
    RECORD_POSITIONS = 5
    BLOCK_IDENTIFIER = 6
    IS_PARTIAL = 7
    BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS = 8


class LogBlock(NamedTuple):
    """One block; ``type`` and header keys are open numbers.

    Later releases may add some.
    """

    type: int
    header: Mapping[int, str]
    content: bytes


def encode_log_block(kind: BlockType, header: Mapping[HeaderKey, str], content: bytes) -> bytes:
    """Return the bytes of a block with an empty footer.

    ``header`` is written in the mapping's order; every reader asks for ``INSTANT_TIME``.
    ``content`` is empty for a command.
    """
    named = [(key, value.encode()) for key, value in header.items()]
    entries = b"".join([struct.pack(">ii", key, len(text)) + text for key, text in named])
    head = struct.pack(">iii", FORMAT_VERSION, kind, len(header)) + entries
    head += struct.pack(">q", len(content))
    size = len(head) + len(content) + 4 + SIZE_BYTES
    end = struct.pack(">iq", 0, size + len(MAGIC))
    return b"".join((MAGIC, struct.pack(">q", size), head, content, end))


class BlockHead(NamedTuple):
    """What precedes a block's content, and the size of that content."""

    type: int
    header: Mapping[int, str]
    content_size: int


def decode_head(cursor: Cursor) -> BlockHead:
    """Read what follows a block's size, up to the content."""
    version = cursor.int32()
    if version != FORMAT_VERSION:
        raise cursor.damage(f"the block has format version {version}")
    return BlockHead(cursor.int32(), decode_map(cursor), cursor.int64())


def decode_map(cursor: Cursor) -> dict[int, str]:
    """Read a header or a footer."""
    count = cursor.int32()
    if not 0 <= count <= _MAX_ENTRIES:
        raise cursor.damage(f"the block has a map of {count} entries")
    entries: dict[int, str] = {}
    for _ in range(count):
        key = cursor.int32()
        try:
            entries[key] = cursor.take(cursor.int32()).decode()
        except UnicodeDecodeError as error:
            raise cursor.damage("a string of the block is not UTF-8") from error
    return entries
