"""The last 4096 bytes of an HFile: where everything is.

``TRABLK"$``, a protobuf message behind its length, zeros, and at the very end int32 3 (the major
version; HBase puts a minor version into the first of these four bytes).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from hudi_core.metadata.hfile.block import Codec, damaged
from hudi_core.protobuf import (
    WireError,
    decode_delimited,
    decode_fields,
    encode_delimited,
    encode_message,
)

TRAILER_BYTES: Final = 4096
_MAGIC: Final = b'TRABLK"$'
_VERSION: Final = 3
_COMPARATOR: Final = b"org.apache.hudi.io.storage.HoodieHBaseKVComparator"
_MAX_LEVELS: Final = 8


@dataclass(frozen=True, slots=True)
class Trailer:
    """What the trailer says.

    ``file_info_offset`` and ``load_on_open_offset`` are where the file info and the root data index
    begin. ``data_bytes`` is the uncompressed size of all data blocks (HBase writes that of the data
    index there). ``index_levels`` is 1 when the root index leads to data blocks. Without data
    blocks, ``first_data_offset`` is -1 and ``last_data_offset`` 0.
    """

    file_info_offset: int
    load_on_open_offset: int
    data_bytes: int
    data_index_count: int
    meta_index_count: int
    entry_count: int
    index_levels: int
    first_data_offset: int
    last_data_offset: int
    codec: Codec


_NUMBERS: Final = {
    1: "file_info_offset",
    2: "load_on_open_offset",
    3: "data_bytes",
    5: "data_index_count",
    6: "meta_index_count",
    7: "entry_count",
    8: "index_levels",
    9: "first_data_offset",
    10: "last_data_offset",
}
"""Fields of the message; 11 names the comparator, 12 the codec."""


def encode_trailer(trailer: Trailer) -> bytes:
    """Return the 4096 bytes."""
    message = encode_message(
        [
            *[(number, getattr(trailer, name)) for number, name in _NUMBERS.items()],
            (11, _COMPARATOR),
            (12, int(trailer.codec)),
        ]
    )
    head = _MAGIC + encode_delimited(message)
    return head.ljust(TRAILER_BYTES - 4, b"\0") + _VERSION.to_bytes(4, "big")


def decode_trailer(data: bytes, file_bytes: int, path: str) -> Trailer:
    """The trailer in the last bytes of a file.

    ``data`` is the last 4096 bytes of the file; only version 3 and gzip or no compression are read.
    """
    if not data.startswith(_MAGIC) or len(data) != TRAILER_BYTES:
        raise damaged(path, "it does not end with the trailer of an HFile")
    if int.from_bytes(data[-3:], "big") != _VERSION:
        raise damaged(path, f"it is not an HFile of version {_VERSION}")
    try:
        numbers = {
            field.number: field.value
            for field in decode_fields(decode_delimited(data, len(_MAGIC)))
            if isinstance(field.value, int)
        }
    except WireError as error:
        raise damaged(path, f"its trailer cannot be read ({error})") from error
    missing = [name for number, name in _NUMBERS.items() if number not in numbers]
    if missing:
        raise damaged(path, f"its trailer does not say its {missing[0]}")
    if numbers.get(12) not in tuple(Codec):
        raise damaged(path, f"it has compression {numbers.get(12)}, and only gzip is known")
    values = {name: numbers[number] for number, name in _NUMBERS.items()}
    trailer = Trailer(codec=Codec(numbers[12]), **values)
    _check(trailer, file_bytes - TRAILER_BYTES, path)
    return trailer


def _check(trailer: Trailer, end: int, path: str) -> None:
    counts = (trailer.data_index_count, trailer.meta_index_count, trailer.entry_count)
    if not 0 <= trailer.load_on_open_offset <= trailer.file_info_offset < end:
        raise damaged(path, "its trailer points outside the file")
    if min(counts) < 0 or not 0 <= trailer.index_levels <= _MAX_LEVELS:
        raise damaged(path, "its trailer has counts that are not possible")


# --- file info: names and values ------------------------------------------------------------------
# Content: ``PBUF`` and a protobuf message behind its length, ``{1: {1: name, 2: value}}`` repeated.


class Info(StrEnum):
    """Names of a file's info, in the order of Hudi's files."""

    SCHEMA = "schema"
    """Avro schema of the values, JSON."""
    BLOOM_TYPE = "bloomFilterTypeCode"
    LAST_KEY = "hfile.LASTKEY"
    AVERAGE_VALUE = "hfile.AVG_VALUE_LEN"
    MIN_KEY = "minRecordKey"
    AVERAGE_KEY = "hfile.AVG_KEY_LEN"
    MAX_KEY = "maxRecordKey"
    VALUE_VERSION = "KEY_VALUE_VERSION"
    MAX_MEMSTORE = "MAX_MEMSTORE_TS_KEY"
    CREATE_TIME = "hfile.CREATE_TIME_TS"


BLOOM_BLOCK: Final = "bloomFilter"
"""Name of the meta block with the bloom filter of the keys, as base64 text."""

_INFO_MAGIC: Final = b"PBUF"


def encode_file_info(info: Mapping[str, bytes]) -> bytes:
    """Return the content of the block, for the names of :class:`Info`."""
    entries = [
        encode_message([(1, name.encode()), (2, info[name])]) for name in Info if name in info
    ]
    return _INFO_MAGIC + encode_delimited(encode_message([(1, entry) for entry in entries]))


def decode_file_info(content: bytes, path: str) -> dict[str, bytes]:
    """Return the names and bytes of the block's content."""
    if not content.startswith(_INFO_MAGIC):
        raise damaged(path, "its file info is in a form before HFile version 3")
    info: dict[str, bytes] = {}
    try:
        for entry in decode_fields(decode_delimited(content, len(_INFO_MAGIC))):
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
