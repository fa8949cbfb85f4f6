"""The file info block of an HFile: named byte strings.

Content: ``PBUF`` and a protobuf message behind its length, ``{1: {1: name, 2: value}}`` repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hudi_core.metadata.hfile.layout import damaged
from hudi_core.protobuf import (
    WireError,
    decode_delimited,
    decode_fields,
    encode_delimited,
    encode_message,
)

SCHEMA: Final = "schema"
"""Avro schema of the values, JSON."""
MIN_KEY: Final = "minRecordKey"
MAX_KEY: Final = "maxRecordKey"
BLOOM_TYPE: Final = "bloomFilterTypeCode"
LAST_KEY: Final = "hfile.LASTKEY"
AVERAGE_KEY: Final = "hfile.AVG_KEY_LEN"
AVERAGE_VALUE: Final = "hfile.AVG_VALUE_LEN"
CREATE_TIME: Final = "hfile.CREATE_TIME_TS"
VALUE_VERSION: Final = "KEY_VALUE_VERSION"
MAX_MEMSTORE: Final = "MAX_MEMSTORE_TS_KEY"

BLOOM_BLOCK: Final = "bloomFilter"
"""Name of the meta block with the bloom filter of the keys, as base64 text."""

_MAGIC: Final = b"PBUF"
_ORDER: Final = (
    SCHEMA,
    BLOOM_TYPE,
    LAST_KEY,
    AVERAGE_VALUE,
    MIN_KEY,
    AVERAGE_KEY,
    MAX_KEY,
    VALUE_VERSION,
    MAX_MEMSTORE,
    CREATE_TIME,
)
"""As Hudi's files hold them; readers do not mind."""


def encode_file_info(info: Mapping[str, bytes]) -> bytes:
    """Return the content of the block, for the names of this module."""
    entries = [
        encode_message([(1, name.encode()), (2, info[name])]) for name in _ORDER if name in info
    ]
    return _MAGIC + encode_delimited(encode_message([(1, entry) for entry in entries]))


def decode_file_info(content: bytes, path: str) -> dict[str, bytes]:
    """Return the names and bytes of the block's content."""
    if not content.startswith(_MAGIC):
        raise damaged(path, "its file info is in a form before HFile version 3")
    info: dict[str, bytes] = {}
    try:
        for entry in decode_fields(decode_delimited(content, len(_MAGIC))):
            if entry.number != 1 or not isinstance(entry.value, bytes):
                continue
            parts = dict(decode_fields(entry.value))
            name, value = parts.get(1), parts.get(2, b"")
            if not isinstance(name, bytes) or not isinstance(value, bytes):
                raise damaged(path, "an entry of its file info has no name")
            info[name.decode()] = value
    except (WireError, UnicodeDecodeError) as error:
        raise damaged(path, f"its file info cannot be read ({error})") from error
    return info
