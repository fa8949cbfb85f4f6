"""Rows of a log block: Avro records, or a Parquet file."""

from __future__ import annotations

import json
import struct
from collections.abc import Collection
from typing import Any, Final

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from hudi_core.avro.columns import Columns, arrow_values, decode_columns
from hudi_core.avro.datum import decode_datum, encode_datum, parse_writer_schema
from hudi_core.errors import CorruptMetadataError
from hudi_core.log_format.block import CONTENT_VERSION, encode_avro_content
from hudi_core.schema.arrow_types import children, has_map, is_list, is_text, with_children
from hudi_core.schema.avro_types import record_from_avro

_HEAD: Final = struct.Struct(">ii")
_LENGTH: Final = struct.Struct(">i")
_SMALL_BYTES: Final = 1 << 20


def parquet_rows(content: pa.Buffer | bytes, names: Collection[str] | None, path: str) -> pa.Table:
    """The rows of a Parquet block.

    Of its columns those that ``names`` has, all for ``None``; where it has none of them, its first:
    a table without columns does not know how many rows it has.
    """
    try:
        with pq.ParquetFile(pa.BufferReader(content), coerce_int96_timestamp_unit="us") as file:
            stored = file.schema_arrow
            wanted = [name for name in stored.names if names is None or name in names]
            # of small blocks, handing columns over to threads takes longer than to read them
            rows = file.read(wanted or stored.names[:1], use_threads=len(content) > _SMALL_BYTES)
        rows.validate(full=True)  # strings of damaged blocks may be no UTF-8
        return rows
    except (OSError, ValueError, pa.ArrowException) as error:
        raise CorruptMetadataError(path, f"a Parquet block cannot be read: {error}") from error


def avro_rows(content: bytes, schema: str, names: Collection[str] | None, path: str) -> pa.Table:
    """The rows of an Avro block whose header has the schema.

    Its columns are those of :func:`parquet_rows`, the types those that the schema means.
    """
    every = list(record_from_avro(schema))
    fields = [one for one in every if names is None or one.name in names] or every[:1]
    records = _spans(content, path)
    parsed = parse_writer_schema(schema, path).parsed
    try:
        if all(_is_plain(one["type"]) for one in parsed["fields"]):
            found = decode_columns(content, *records, parsed, path)
            columns = [_column(found, one, path) for one in fields]
        else:
            # nested values have no fixed place in a record
            pairs = zip(*records, strict=True)
            rows = [decode_datum(content[begin:end], parsed, path) for begin, end in pairs]
            columns = [arrow_values([row[one.name] for row in rows], one.type) for one in fields]
    except (ValueError, TypeError, LookupError, OverflowError) as error:
        raise CorruptMetadataError(path, f"an Avro block cannot be decoded: {error}") from error
    return pa.table(columns, schema=pa.schema(fields))


def avro_content(rows: pa.Table, schema: str) -> bytes:
    """The content of an Avro block of rows.

    They are in the columns of the schema.
    """
    parsed = fastavro.parse_schema(json.loads(schema))
    assert isinstance(parsed, dict)  # noqa: S101 - a dict parses to a dict
    return encode_avro_content([encode_datum(row, parsed) for row in datums(rows)])


def datums(rows: pa.Table) -> list[dict[str, Any]]:
    """Rows as fastavro encodes them."""
    # fastavro takes times without a zone for those of this machine's
    numbers = pa.schema([field.with_type(_with_numbers(field.type)) for field in rows.schema])
    found: list[dict[str, Any]] = rows.cast(numbers).to_pylist()
    for column in rows.schema:
        if has_map(column.type):
            for row in found:
                row[column.name] = _with_maps(row[column.name], column.type)
    return found


def _with_numbers(kind: pa.DataType) -> pa.DataType:
    """A type with numbers in the place of timestamps."""
    if pt.is_timestamp(kind):
        return pa.int64()
    below = children(kind)
    if not below:
        return kind
    return with_children(kind, [field.with_type(_with_numbers(field.type)) for _, field in below])


def _with_maps(value: Any, kind: pa.DataType) -> Any:
    """A value whose maps, lists of pairs so far, are dictionaries."""
    if value is None:
        return None
    if pt.is_map(kind):
        return {key: _with_maps(one, kind.item_type) for key, one in value}
    if pt.is_struct(kind):
        return {one.name: _with_maps(value[one.name], one.type) for one in kind}
    if is_list(kind):
        return [_with_maps(one, kind.value_type) for one in value]
    return value


def _is_plain(kind: Any) -> bool:
    """Whether a field's values can be decoded column by column."""
    branches = kind if isinstance(kind, list) else [kind]
    others = [one for one in branches if one != "null"]
    return len(others) <= 1 and all(
        isinstance(one, str) or one["type"] == "fixed" for one in others
    )


def _spans(content: bytes, path: str) -> tuple[list[int], list[int]]:
    """Where each record begins and ends."""
    try:
        version, count = _HEAD.unpack_from(content)
        if version != CONTENT_VERSION or count < 0:
            raise CorruptMetadataError(path, f"an Avro block has content version {version}")
        begins, ends, at = [], [], _HEAD.size
        for _ in range(count):
            (length,) = _LENGTH.unpack_from(content, at)
            begin = at + _LENGTH.size
            at = begin + length
            if length < 0 or at > len(content):
                break
            begins.append(begin)
            ends.append(at)
    except struct.error as error:
        raise CorruptMetadataError(path, "an Avro block is cut off") from error
    if len(begins) != count or at != len(content):
        raise CorruptMetadataError(path, "an Avro block does not hold as many records as it says")
    return begins, ends


def _column(found: Columns, field: pa.Field, path: str) -> pa.Array:
    kind = field.type
    if pt.is_decimal(kind):
        return found.decimals(field.name, kind)
    if is_text(kind) or pt.is_binary(kind) or pt.is_fixed_size_binary(kind):
        return found.texts(field.name, kind, path)
    if pt.is_date32(kind) or pt.is_time32(kind):
        return found.numbers(field.name, pa.int32()).cast(kind)
    return found.numbers(field.name, kind)
