"""Bounds of column statistics: internal form to Hudi's wrappers, and back.

Statistics of version 1 (tables of version 8) show types by the wrapper alone, and a reader has to
know the column's type: a timestamp is a ``LongWrapper`` in the unit of the column. Those of
version 2 say the type beside the bounds. Source: ``hudi-format`` section 5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal, localcontext
from enum import IntEnum
from functools import cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt

from hudi_core.avro.wrappers import Wrapped
from hudi_core.errors import CorruptMetadataError
from hudi_core.metadata.damage import REBUILD
from hudi_core.metadata.records import ValueType
from hudi_core.model.stats import Scalar


class BoundType(IntEnum):
    """Hudi's numbers of the types of bounds."""

    V1 = 0
    NULL = 1
    BOOLEAN = 2
    INT = 3
    LONG = 4
    FLOAT = 5
    DOUBLE = 6
    STRING = 7
    BYTES = 8
    FIXED = 9
    DECIMAL = 10
    UUID = 11
    DATE = 12
    TIME_MILLIS = 13
    TIME_MICROS = 14
    TIMESTAMP_MILLIS = 15
    TIMESTAMP_MICROS = 16
    TIMESTAMP_NANOS = 17
    LOCAL_TIMESTAMP_MILLIS = 18
    LOCAL_TIMESTAMP_MICROS = 19
    LOCAL_TIMESTAMP_NANOS = 20


_WRAPPERS: Final = {
    BoundType.BOOLEAN: "BooleanWrapper",
    BoundType.INT: "IntWrapper",
    BoundType.LONG: "LongWrapper",
    BoundType.FLOAT: "FloatWrapper",
    BoundType.DOUBLE: "DoubleWrapper",
    BoundType.STRING: "StringWrapper",
    BoundType.BYTES: "BytesWrapper",
    BoundType.FIXED: "BytesWrapper",
    BoundType.DECIMAL: "BytesWrapper",
    BoundType.UUID: "StringWrapper",
    BoundType.DATE: "IntWrapper",
    BoundType.TIME_MILLIS: "IntWrapper",
}
"""Wrappers of version 2; all other types are in a ``LongWrapper``."""
_MILLIS: Final = frozenset(
    {BoundType.TIME_MILLIS, BoundType.TIMESTAMP_MILLIS, BoundType.LOCAL_TIMESTAMP_MILLIS}
)
_NANOS: Final = frozenset({BoundType.TIMESTAMP_NANOS, BoundType.LOCAL_TIMESTAMP_NANOS})
_TIMESTAMPS: Final = {
    ("ms", False): BoundType.TIMESTAMP_MILLIS,
    ("us", False): BoundType.TIMESTAMP_MICROS,
    ("ns", False): BoundType.TIMESTAMP_NANOS,
    ("ms", True): BoundType.LOCAL_TIMESTAMP_MILLIS,
    ("us", True): BoundType.LOCAL_TIMESTAMP_MICROS,
    ("ns", True): BoundType.LOCAL_TIMESTAMP_NANOS,
}
_DECIMAL_PRECISION, _DECIMAL_SCALE = 30, 15
"""Of the one ``DecimalWrapper`` that all decimals of version 1 are in."""
DECIMAL_DIGITS: Final = _DECIMAL_PRECISION - _DECIMAL_SCALE
"""Digits that it has room for before the point, and as many behind it."""
_MAX_DIGITS: Final = 100


_TYPES: Final[tuple[tuple[Callable[[pa.DataType], bool], BoundType], ...]] = (
    (pt.is_boolean, BoundType.BOOLEAN),
    (pt.is_int64, BoundType.LONG),
    (pt.is_signed_integer, BoundType.INT),
    (pt.is_float32, BoundType.FLOAT),
    (pt.is_float64, BoundType.DOUBLE),
    (lambda kind: pt.is_string(kind) or pt.is_large_string(kind), BoundType.STRING),
    (lambda kind: pt.is_binary(kind) or pt.is_large_binary(kind), BoundType.BYTES),
    (pt.is_fixed_size_binary, BoundType.FIXED),
    (pt.is_date32, BoundType.DATE),
    (lambda kind: pt.is_time32(kind) and kind.unit == "ms", BoundType.TIME_MILLIS),
    (lambda kind: pt.is_time64(kind) and kind.unit == "us", BoundType.TIME_MICROS),
)
"""The first that matches."""
_KINDS_1: Final = {
    "BooleanWrapper": pa.bool_(),
    "IntWrapper": pa.int32(),
    "LongWrapper": pa.int64(),
    "FloatWrapper": pa.float32(),
    "DoubleWrapper": pa.float64(),
    "StringWrapper": pa.string(),
    "BytesWrapper": pa.binary(),
    "DateWrapper": pa.date32(),
    "DecimalWrapper": pa.decimal128(_DECIMAL_PRECISION, _DECIMAL_SCALE),
}
_KINDS_2: Final[Mapping[int, pa.DataType]] = {
    BoundType.BOOLEAN: pa.bool_(),
    BoundType.INT: pa.int32(),
    BoundType.LONG: pa.int64(),
    BoundType.FLOAT: pa.float32(),
    BoundType.DOUBLE: pa.float64(),
    BoundType.STRING: pa.string(),
    BoundType.BYTES: pa.binary(),
    BoundType.FIXED: pa.binary(),
    BoundType.DATE: pa.date32(),
    BoundType.TIME_MILLIS: pa.time32("ms"),
    BoundType.TIME_MICROS: pa.time64("us"),
    **{
        number: pa.timestamp(unit, None if is_local else "UTC")
        for (unit, is_local), number in _TIMESTAMPS.items()
    },
}


@cache
def bound_type(kind: pa.DataType) -> ValueType | None:
    """Return the type of a column's bounds; ``None`` without bounds.

    Cached: 0.2 instead of 0.9 us, some 100 times a commit.
    """
    if pt.is_decimal(kind):
        return ValueType(BoundType.DECIMAL, f"{kind.precision},{kind.scale}")
    if pt.is_timestamp(kind):
        found = _TIMESTAMPS.get((kind.unit, kind.tz is None))
        return None if found is None else ValueType(found)
    for matches, number in _TYPES:
        if matches(kind):
            return ValueType(number)
    return None


@cache
def is_stored_as_is(kind: pa.DataType) -> bool:
    """Whether bounds of a type are stored in their internal form."""
    found = bound_type(kind)
    return found is not None and found.ordinal not in (BoundType.DECIMAL, *_MILLIS, *_NANOS)


def wrap_bound(value: Scalar, kind: pa.DataType, has_value_types: bool) -> Wrapped | None:
    """Return a bound as the metadata table holds it.

    ``value`` is in internal form (:data:`hudi_core.model.stats.Scalar`). ``None`` where the form
    has no place for it: a type without bounds, or a decimal of too many digits in version 1.
    """
    found = bound_type(kind)
    if found is None:
        return None
    number = BoundType(found.ordinal)
    if number is BoundType.DECIMAL:
        scale = kind.scale if has_value_types else _DECIMAL_SCALE
        unscaled = _unscaled(value, scale)
        if has_value_types:
            return Wrapped("BytesWrapper", _to_bytes(unscaled))
        if abs(unscaled) >= 10**_DECIMAL_PRECISION:
            return None
        return Wrapped("DecimalWrapper", _to_bytes(unscaled))
    stored: Any = value
    if number in _MILLIS:
        stored = int(value) // 1000
    elif number in _NANOS:
        stored = int(value) * 1000
    return Wrapped(wrapper_of(kind, has_value_types=has_value_types), stored)


@cache
def wrapper_of(kind: pa.DataType, *, has_value_types: bool) -> str:
    """The name of the wrapper of a column's bounds."""
    found = bound_type(kind)
    number = BoundType.V1 if found is None else BoundType(found.ordinal)
    if not has_value_types:
        own = {BoundType.DATE: "DateWrapper", BoundType.DECIMAL: "DecimalWrapper"}
        if number in own:
            return own[number]
    return _WRAPPERS.get(number, "LongWrapper")


def kind_of(bound: Wrapped, value_type: ValueType | None) -> pa.DataType | None:
    """The type of a column with such a bound; ``None`` if unknown.

    In version 1 a ``LongWrapper`` may be of a timestamp as well.
    """
    if value_type is None or value_type.ordinal == BoundType.V1:
        return _KINDS_1.get(bound.wrapper)
    if value_type.ordinal == BoundType.DECIMAL:
        return pa.decimal128(38, _scale_of(value_type, ""))
    return _KINDS_2.get(value_type.ordinal)


def unwrap_bound(
    bound: Wrapped, value_type: ValueType | None, kind: pa.DataType, path: str
) -> Scalar | None:
    """Return a bound in internal form.

    ``value_type`` is ``None`` or number 0 in version 1, which takes units from ``kind``: the
    column's type now or when the file was written. ``None`` for unknown types and for bounds of
    another family than the column: nothing may be concluded from them.
    """
    if value_type is None or value_type.ordinal == BoundType.V1:
        return _version_1(bound, kind)
    if value_type.ordinal not in tuple(BoundType) or value_type.ordinal == BoundType.NULL:
        return None
    return _version_2(bound, value_type, path)


def _version_2(bound: Wrapped, value_type: ValueType, path: str) -> Scalar | None:
    number, value = BoundType(value_type.ordinal), bound.value
    if bound.wrapper != _WRAPPERS.get(number, "LongWrapper"):
        raise CorruptMetadataError(path, f"a bound of type {number.name} is wrong", REBUILD)
    if number is BoundType.DECIMAL:
        return _decimal(value, _scale_of(value_type, path))
    if number in _MILLIS:
        return int(value) * 1000
    if number in _NANOS:
        # between two microseconds, neither of them is a bound below and above
        return int(value) // 1000 if value % 1000 == 0 else None
    return _known(value)


def _version_1(bound: Wrapped, kind: pa.DataType) -> Scalar | None:
    if bound.wrapper == "ArrayWrapper":
        return None
    if bound.wrapper == "DecimalWrapper":
        return _decimal(bound.value, _DECIMAL_SCALE) if pt.is_decimal(kind) else None
    if bound.wrapper == "LongWrapper" and (pt.is_timestamp(kind) or pt.is_time(kind)):
        return _micros(bound.value, kind.unit)
    if bound.wrapper == "IntWrapper" and pt.is_time(kind):
        return _micros(bound.value, kind.unit)
    return _known(bound.value)


def _micros(value: int, unit: str) -> int | None:
    if unit == "ns":
        return None
    return value * {"s": 1_000_000, "ms": 1000, "us": 1}[unit]


def _known(value: object) -> Scalar | None:
    return value if isinstance(value, bool | int | float | str | bytes) else None


def _scale_of(value_type: ValueType, path: str) -> int:
    precision, comma, scale = (value_type.info or "").partition(",")
    if not (comma and precision.isdecimal() and scale.isdecimal() and int(scale) <= _MAX_DIGITS):
        raise CorruptMetadataError(
            path, f"{value_type.info!r} is not precision and scale of a decimal", REBUILD
        )
    return int(scale)


def _unscaled(value: Scalar, scale: int) -> int:
    assert isinstance(value, Decimal)  # noqa: S101 - the internal form of a decimal column
    with localcontext() as context:
        context.prec = _MAX_DIGITS
        return int(value.scaleb(scale))


def _decimal(data: bytes, scale: int) -> Decimal:
    with localcontext() as context:
        context.prec = _MAX_DIGITS
        return Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-scale)


def _to_bytes(unscaled: int) -> bytes:
    # as Java's BigInteger: the fewest bytes with room for the sign
    magnitude = unscaled if unscaled >= 0 else ~unscaled
    return unscaled.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)
