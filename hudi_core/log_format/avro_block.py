"""The content of an Avro block; the block's header has the schema.

All numbers big-endian::

    content version   int32   3; in version 0 the next field is missing
    records           int32
    per record        int32 length, Avro datum
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Final

from hudi_core.log_format.cursor import Cursor

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
