"""Single Avro records without a container around them."""

from __future__ import annotations

import io
from typing import Any, Final

import fastavro
from fastavro.schema import SchemaParseException

from hudi_core.avro.writer_schema import ParsedSchema
from hudi_core.errors import CorruptMetadataError

_DAMAGE: Final = (
    EOFError,
    IndexError,
    KeyError,
    MemoryError,
    OverflowError,
    TypeError,
    ValueError,
    SchemaParseException,
)
"""What fastavro raises on bytes that do not fit the schema."""


def decode_datum(
    datum: bytes, schema: ParsedSchema, path: str, *, named: bool = False
) -> dict[str, Any]:
    """Return the record in bare Avro bytes, under the writer's schema.

    With ``named``, a value of a union with several records is a pair of the record's full name and
    the record. Bytes left over after the record are an error.
    """
    source = io.BytesIO(datum)
    try:
        record = fastavro.schemaless_reader(
            source, schema, None, return_record_name=named, return_record_name_override=named
        )
    except _DAMAGE as error:
        raise CorruptMetadataError(path, f"its record cannot be decoded ({error!r})") from error
    if source.tell() != len(datum):
        raise CorruptMetadataError(path, "its record is shorter than the file says")
    if not isinstance(record, dict):
        raise CorruptMetadataError(path, "it does not hold a record")
    return record


def encode_datum(record: object, schema: ParsedSchema) -> bytes:
    """Return the Avro bytes of a record, in the form :func:`decode_datum` returns."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, record)
    return out.getvalue()
