"""The content of a delete block: which records are deleted.

``int32 3``, ``int32`` length, and the Avro datum of a ``HoodieDeleteRecordList``. A list without
records is ``00000003 00000001 00``; with such a block Hudi begins every file group of a metadata
table.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from hudi_core.avro import decode_datum, encode_datum, parse_writer_schema
from hudi_core.avro.wrappers import SCALARS, Wrapped, unwrap, wrap_all, wrapper_union
from hudi_core.errors import CorruptMetadataError
from hudi_core.log_format.block import CONTENT_VERSION, Cursor

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
