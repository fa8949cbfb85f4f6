"""The Avro container of instant files: one record, not compressed.

Layout, in file order (Avro specification, "Object Container Files")::

    magic     4 bytes   "Obj" 0x01
    metadata  map       long n, n x (string key, bytes value), ..., long 0; one key is avro.schema
    sync      16 bytes  any value, repeated after every block
    block     long      records in the block, here 1
              long      bytes of the block
              bytes     the record's datum
    sync      16 bytes

``long`` is a zigzag varint; ``string`` and ``bytes`` are a long length and the bytes. Hudi writes
no ``avro.codec`` key. fastavro's writer always adds one, so the container is written by hand here.
"""

from __future__ import annotations

import hashlib
from typing import Final, NamedTuple

from hudi_core.errors import CorruptMetadataError

MAGIC: Final = b"Obj\x01"
MAX_INSTANT_BYTES: Final = 256 * 1024 * 1024
"""Largest instant file that is read or written."""
MAX_SCHEMA_BYTES: Final = 1024 * 1024
"""Largest schema accepted inside an instant file."""
_SYNC_BYTES: Final = 16
_MAX_HEADER_ENTRIES: Final = 64


class Container(NamedTuple):
    """What an instant file holds."""

    schema: str
    datum: bytes


def write_container(schema: str, datum: bytes) -> bytes:
    """Return an object container that holds one record.

    The sync marker is a digest of the datum, so that equal records give equal files.
    """
    sync = hashlib.sha256(datum).digest()[:_SYNC_BYTES]
    key, text = b"avro.schema", schema.encode()
    header = _long(1) + _long(len(key)) + key + _long(len(text)) + text + _long(0)
    return b"".join((MAGIC, header, sync, _long(1), _long(len(datum)), datum, sync))


def read_container(data: bytes, path: str) -> Container:
    """Return schema and record of an object container.

    The container holds exactly one uncompressed record.
    """
    if len(data) > MAX_INSTANT_BYTES:
        raise CorruptMetadataError(path, f"{len(data)} bytes are more than {MAX_INSTANT_BYTES}")
    if not data:
        raise CorruptMetadataError(path, "it is empty")
    if not data.startswith(MAGIC):
        raise CorruptMetadataError(path, "it is not an Avro file")
    cursor = _Cursor(data, path, len(MAGIC))
    header = _read_header(cursor)
    codec = header.get(b"avro.codec", b"null")
    if codec != b"null":
        raise cursor.damage(f"its codec is {codec[:32]!r}, and instant files are not compressed")
    sync = cursor.take(_SYNC_BYTES)
    if cursor.left == 0:
        raise cursor.damage("it holds no record")
    count = cursor.long()
    if count != 1:
        raise cursor.damage(f"it holds {count} records instead of one")
    datum = cursor.take(cursor.long())
    if cursor.take(_SYNC_BYTES) != sync:
        raise cursor.damage("its sync markers differ")
    if cursor.left:
        raise cursor.damage("bytes follow the record")
    return Container(_schema_text(header, cursor), datum)


def _schema_text(header: dict[bytes, bytes], cursor: _Cursor) -> str:
    schema = header.get(b"avro.schema")
    if schema is None:
        raise cursor.damage("it names no schema")
    if len(schema) > MAX_SCHEMA_BYTES:
        raise cursor.damage(f"its schema has {len(schema)} bytes")
    try:
        return schema.decode()
    except UnicodeDecodeError as error:
        raise cursor.damage("its schema is not UTF-8") from error


def _read_header(cursor: _Cursor) -> dict[bytes, bytes]:
    entries: dict[bytes, bytes] = {}
    while count := cursor.long():
        if count < 0:
            # a negative count is followed by the block's size in bytes, which is of no use here
            count = -count
            cursor.long()
        if count + len(entries) > _MAX_HEADER_ENTRIES:
            raise cursor.damage("its header has too many entries")
        for _ in range(count):
            key = cursor.take(cursor.long())
            entries[key] = cursor.take(cursor.long())
    return entries


def _long(value: int) -> bytes:
    zigzag = (value << 1) ^ (value >> 63)
    out = bytearray()
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


class _Cursor:
    """Reads forward through the bytes of one file."""

    def __init__(self, data: bytes, path: str, position: int) -> None:
        self._data, self._path, self._position = data, path, position

    @property
    def left(self) -> int:
        return len(self._data) - self._position

    def damage(self, reason: str) -> CorruptMetadataError:
        return CorruptMetadataError(self._path, reason)

    def take(self, count: int) -> bytes:
        end = self._position + count
        if count < 0:
            raise self.damage(f"a length at byte {self._position} is negative")
        if end > len(self._data):
            raise self.damage(f"it ends after {len(self._data)} bytes and should have {end}")
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def long(self) -> int:
        zigzag = 0
        for shift in range(0, 70, 7):  # 64 bits in groups of 7
            byte = self.take(1)[0]
            zigzag |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (zigzag >> 1) ^ -(zigzag & 1)
        raise self.damage(f"a number before byte {self._position} is longer than 64 bits")
