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

import json
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.avro.columns import encode_longs
from hudi_core.avro.datum import decode_datum, encode_datum, parse_writer_schema
from hudi_core.avro.wrappers import SCALARS, Wrapped, unwrap, wrap_all, wrapper_union
from hudi_core.errors import CorruptMetadataError

# --- a cursor over bytes -------------------------------------------------------------------------


_INT32: Final = struct.Struct(">i")
_INT64: Final = struct.Struct(">q")


class Cursor:
    """Reads big-endian numbers and bytes.

    ``data`` is a part of the file, which begins at ``base``; errors name ``path`` and the position
    in the file.
    """

    def __init__(self, data: bytes, path: str, base: int = 0) -> None:
        self._data, self._path, self._base = data, path, base
        self.position = 0

    @property
    def left(self) -> int:
        """Bytes that have not been read."""
        return len(self._data) - self.position

    def damage(self, reason: str) -> CorruptMetadataError:
        """Return the error for damaged bytes, with their position."""
        place = self._base + self.position
        return CorruptMetadataError(self._path, f"at byte {place}, {reason}")

    def take(self, count: int) -> bytes:
        """Return the next ``count`` bytes."""
        if not 0 <= count <= len(self._data) - self.position:
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


# --- blocks --------------------------------------------------------------------------------------


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


# --- blocks of Avro records ----------------------------------------------------------------------

# All numbers big-endian::
#
#     content version   int32   3; in version 0 the next field is missing
#     records           int32
#     per record        int32 length, Avro datum


CONTENT_VERSION: Final = 3
"""Version of the content of Avro and delete blocks."""


def encode_avro_content(records: Sequence[bytes]) -> bytes:
    """Return the content that holds the Avro bytes of some records."""
    parts = [struct.pack(">ii", CONTENT_VERSION, len(records))]
    for record in records:
        parts += [struct.pack(">i", len(record)), record]
    return b"".join(parts)


def decode_avro_content(content: bytes, path: str) -> Iterator[bytes]:
    """Yield the Avro bytes of each record."""
    cursor = Cursor(content, path)
    has_count = cursor.int32() > 0
    count = cursor.int32() if has_count else None
    while cursor.left and count != 0:
        yield cursor.take(cursor.int32())
        count = None if count is None else count - 1
    if count or cursor.left:
        raise cursor.damage("the Avro block does not hold as many records as it says")


# --- delete blocks: keys whose records are gone ---------------------------------------------------
# ``int32 3``, ``int32`` length, and the Avro datum of a ``HoodieDeleteRecordList``. A list without
# records is ``00000003 00000001 00``; with such a block Hudi begins every file group of a metadata
# table.


_ORDERING: Final = tuple(name for name in SCALARS if name != "LocalDateWrapper")
_LIST: Final = "deleteRecordList"
_TEXT: Final = {"type": ["null", "string"], "default": None}
_DELETED: Final[dict[str, Any]] = {
    "type": "record",
    "name": "HoodieDeleteRecord",
    "fields": [
        {"name": "recordKey", **_TEXT},
        {"name": "partitionPath", **_TEXT},
        {
            "name": "orderingVal",
            "type": wrapper_union(_ORDERING, arrays=True),
            "default": None,
        },
    ],
}
_SCHEMA: Final = parse_writer_schema(
    json.dumps(
        {
            "type": "record",
            "name": "HoodieDeleteRecordList",
            "namespace": "org.apache.hudi.avro.model",
            "fields": [{"name": _LIST, "type": {"type": "array", "items": _DELETED}}],
        }
    ),
    "HoodieDeleteRecordList",
).parsed


class DeletedRecord(NamedTuple):
    """One record that is deleted.

    ``partition_path`` may name a partition of the metadata table. ``ordering``: the int 0 is later
    than every other value, and so is ``None``.
    """

    record_key: str | None
    partition_path: str | None
    ordering: Wrapped | None = None


NATURAL_ORDER: Final = Wrapped("IntWrapper", 0)
"""The ordering value of a delete that holds whatever the record's own value was."""


_CONTENT_HEAD: Final = struct.calcsize(">ii")
_ONE: Final = b"\x02"
"""Avro's number of one record."""
_EMPTY_KEY: Final = b"\x02\x00"
"""The second branch of a union, and a string of no bytes."""
_END: Final = b"\x00"
"""The end of an array."""


_MORE: Final = 0x80
"""Bytes of a number from which on others follow."""
_FIRST_BYTES: Final = 1 << 16
"""Where key and partition of the first record are, unless they are very long."""


def encode_delete_content(records: Sequence[DeletedRecord]) -> bytes:
    """Return the content that deletes some records."""
    rows = [
        {
            "recordKey": record.record_key,
            "partitionPath": record.partition_path,
            "orderingVal": ordering,
        }
        for record, ordering in zip(
            records, wrap_all(*[record.ordering for record in records]), strict=True
        )
    ]
    datum = encode_datum({_LIST: rows}, _SCHEMA)
    return struct.pack(">ii", CONTENT_VERSION, len(datum)) + datum


def encode_deletes(
    keys: pa.StringArray, partition_path: str, wrapper: str | None, values: pa.Array
) -> bytes:
    """Return the content that deletes keys of one partition, by columns.

    The same as of :func:`encode_delete_content`, which takes many times as long. ``values`` are
    ordering values, numbers of the wrapper, and null for a delete that always holds; without a
    wrapper, all have :data:`NATURAL_ORDER`, and ``values`` say nothing.
    """

    if not len(keys):
        return encode_delete_content([])

    def tail(order: Wrapped | None) -> bytes:
        """All that follows the key, which is the empty string here."""
        alone = encode_delete_content([DeletedRecord("", partition_path, order)])
        return alone[_CONTENT_HEAD + len(_ONE) + len(_EMPTY_KEY) : -len(_END)]

    nothing = pa.scalar(b"", pa.large_binary())
    if wrapper is None:
        tails: Any = pa.scalar(tail(NATURAL_ORDER), pa.large_binary())
    else:
        stem = pa.scalar(tail(Wrapped(wrapper, 0))[:-1], pa.large_binary())  # a 0 is one byte
        numbers = encode_longs(values.fill_null(0).cast(pa.int64()).to_numpy())
        valued = pc.binary_join_element_wise(stem, numbers, nothing)
        tails = pc.if_else(values.is_valid(), valued, pa.scalar(tail(None), pa.large_binary()))
    sizes = encode_longs(pc.binary_length(keys).cast(pa.int64()).to_numpy())
    named = pa.scalar(_EMPTY_KEY[:1], pa.large_binary())
    plain = keys.cast(pa.large_binary())
    records = pc.binary_join_element_wise(named, sizes, plain, tails, nothing)
    end = pc.sum(pc.binary_length(records)).as_py()
    count = encode_longs(np.array([len(keys)]))[0].as_py()
    datum = b"".join([count, records.buffers()[2][:end], _END])
    return struct.pack(">ii", CONTENT_VERSION, len(datum)) + datum


_NATURAL_TAIL: Final = encode_delete_content([DeletedRecord("", "", NATURAL_ORDER)])[
    _CONTENT_HEAD + len(_ONE) + 2 * len(_EMPTY_KEY) : -len(_END)
]
"""What follows the partition of such a record."""


def are_natural(content: bytes, count: int) -> bool:
    """Whether a block's deletes hold whatever the records' own values are.

    ``count`` is how many it has. That is found without their keys, as each record then ends with
    the same bytes; ``False`` where it is not known.
    """
    data = content[_CONTENT_HEAD : _CONTENT_HEAD + _FIRST_BYTES]
    cursor = Cursor(data, "")
    try:
        if _length(cursor) != count or cursor.take(1) != _EMPTY_KEY[:1]:
            return False
        cursor.take(_length(cursor))
        begin = cursor.position
        if cursor.take(1) != _EMPTY_KEY[:1]:
            return False
        cursor.take(_length(cursor))
    except CorruptMetadataError:
        return False
    tail = data[begin : cursor.position] + _NATURAL_TAIL
    return content.endswith(tail + _END) and content.count(tail) == count


def _length(cursor: Cursor) -> int:
    """A length as Avro writes it."""
    value, shift = 0, 0
    while True:
        (byte,) = cursor.take(1)
        value |= (byte & 0x7F) << shift
        if byte < _MORE:
            return value >> 1
        shift += 7


def decode_delete_content(content: bytes, path: str) -> list[DeletedRecord]:
    """Return the records that a block deletes.

    Versions before 3, which Hudi wrote up to release 0.13, are refused as corrupt.
    """
    cursor = Cursor(content, path)
    version = cursor.int32()
    if version != CONTENT_VERSION:
        raise cursor.damage(f"the delete block has content version {version}")
    datum = cursor.take(cursor.int32())
    if cursor.left:
        raise cursor.damage("bytes follow the records of the delete block")
    try:
        return [
            DeletedRecord(row["recordKey"], row["partitionPath"], unwrap(row["orderingVal"]))
            for row in decode_datum(datum, _SCHEMA, path, named=True)[_LIST]
        ]
    except ValueError as error:
        raise CorruptMetadataError(path, str(error)) from error


# --- blocks of a log file, in memory or by few reads ----------------------------------------------


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
