"""Columns of Arrow as blocks and pages of Trino's Thrift protocol.

The bytes are those of Thrift's binary protocol. They are made of whole arrays: a serializer that
takes value after value is slower many times over (``make bench-connector``, case ``thrift-pages``).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_core.read.json_text import json_values
from hudi_core.schema.arrow_types import is_bytes, is_list, is_text

_STOP: Final = b"\x00"
_BOOL, _DOUBLE, _I32, _I64, _BYTES, _STRUCT, _LIST = 2, 4, 8, 10, 11, 12, 15
_MS_OF: Final = {"s": (1000, 1), "ms": (1, 1), "us": (1, 1000), "ns": (1, 1_000_000)}


class TrinoType(NamedTuple):
    """A type of Trino's protocol."""

    name: str
    field: int
    encode: Callable[[pa.Array], bytes]


def trino_type(given: pa.DataType) -> TrinoType:
    """The type that columns of an Arrow type have for Trino.

    What Trino's protocol has no type for are strings: decimals and times of day as SQL writes them,
    bytes in base64; structs, maps and lists are JSON.
    """
    return next((found for is_one, found in _TYPES if is_one(given)), _JSON)


def page(columns: Sequence[pa.Array], rows: int, token: bytes | None) -> bytes:
    """A page of rows.

    ``rows`` counts also where there is no column. ``token`` is ``None`` for the last page.
    """
    parts = [_field(_LIST, 1), struct.pack(">bi", _STRUCT, len(columns))]
    for column in columns:
        found = trino_type(column.type)
        parts += [_field(_STRUCT, found.field), found.encode(column), _STOP]
    parts += [_field(_I32, 2), struct.pack(">i", rows)]
    if token is not None:
        parts += [_field(_STRUCT, 3), _field(_BYTES, 1), struct.pack(">i", len(token)), token]
        parts.append(_STOP)
    parts.append(_STOP)
    return b"".join(parts)


# --- the values of each type ---------------------------------------------------------------------


def _numbers(kind: int, wire: str, arrow: pa.DataType) -> Callable[[pa.Array], bytes]:
    def encode(array: pa.Array) -> bytes:
        return _nulls(array) + _list(2, kind, _plain(array.cast(arrow)).astype(wire)) + _STOP

    return encode


def _booleans(array: pa.Array) -> bytes:
    return _nulls(array) + _list(2, _BOOL, _plain(array.cast(pa.uint8()))) + _STOP


def _timestamps(array: pa.Array) -> bytes:
    times, divisor = _MS_OF[array.type.unit]
    values = np.floor_divide(_plain(array.cast(pa.int64())) * times, divisor)
    return _nulls(array) + _list(2, _I64, values.astype(">i8")) + _STOP


def _texts(array: pa.Array) -> bytes:
    data = array.cast(pa.large_binary())
    sizes = _plain(pc.binary_length(data)).astype(">i4")
    whole = pc.fill_null(data, b"") if data.null_count else data
    offsets = np.frombuffer(whole.buffers()[1], np.int64, len(whole) + 1, whole.offset * 8)
    held = whole.buffers()[2]
    text = b"" if held is None else held[int(offsets[0]) : int(offsets[-1])].to_pybytes()
    parts = (_nulls(array), _list(2, _I32, sizes), _field(_BYTES, 3))
    return b"".join((*parts, struct.pack(">i", len(text)), text, _STOP))


def _sql_texts(array: pa.Array) -> bytes:
    return _texts(array.cast(pa.string()))


def _base64(array: pa.Array) -> bytes:
    # JSON has bytes in base64, in quotes
    return _texts(pc.utf8_slice_codeunits(json_values(array), 1, -1))


def _json(array: pa.Array) -> bytes:
    return _texts(json_values(array))


_VARCHAR: Final = TrinoType("varchar", 4, _texts)
_JSON: Final = TrinoType("json", 8, _json)
_INTEGER: Final = TrinoType("integer", 1, _numbers(_I32, ">i4", pa.int32()))
_BIGINT: Final = TrinoType("bigint", 2, _numbers(_I64, ">i8", pa.int64()))
_TYPES: Final[Sequence[tuple[Callable[[pa.DataType], bool], TrinoType]]] = (
    (is_text, _VARCHAR),
    (pt.is_int64, _BIGINT),
    (pt.is_uint32, _BIGINT),
    (pt.is_integer, _INTEGER),
    (pt.is_floating, TrinoType("double", 3, _numbers(_DOUBLE, ">f8", pa.float64()))),
    (pt.is_boolean, TrinoType("boolean", 5, _booleans)),
    (pt.is_date32, TrinoType("date", 6, _numbers(_I32, ">i4", pa.int32()))),
    (pt.is_timestamp, TrinoType("timestamp", 7, _timestamps)),
    (pt.is_decimal, TrinoType("varchar", 4, _sql_texts)),
    (pt.is_time, TrinoType("varchar", 4, _sql_texts)),
    (is_bytes, TrinoType("varchar", 4, _base64)),
    (is_list, _JSON),
)


def _plain(array: pa.Array) -> npt.NDArray[Any]:
    """The values of numbers; nulls are 0."""
    filled = pc.fill_null(array, pa.scalar(0, array.type)) if array.null_count else array
    values: npt.NDArray[Any] = filled.to_numpy(zero_copy_only=False)
    return values


def _nulls(array: pa.Array) -> bytes:
    """The field of nulls; nothing where there are none."""
    if not array.null_count:
        return b""
    mask = array.is_null().cast(pa.uint8()).to_numpy(zero_copy_only=False)
    return _list(1, _BOOL, mask)


def _list(number: int, kind: int, values: npt.NDArray[np.generic]) -> bytes:
    return _field(_LIST, number) + struct.pack(">bi", kind, len(values)) + values.tobytes()


def _field(kind: int, number: int) -> bytes:
    return struct.pack(">bh", kind, number)
