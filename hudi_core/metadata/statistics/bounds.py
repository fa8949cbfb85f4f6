"""Bounds of column statistics: internal form to Hudi's wrappers, and back.

Statistics of version 1 (tables of version 8) show types by the wrapper alone, and a reader has to
know the column's type: a timestamp is a ``LongWrapper`` in the unit of the column. Those of
version 2 say the type beside the bounds. Source: ``hudi-format`` section 5.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, localcontext
from enum import IntEnum
from functools import cache
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.types as pt

from hudi_core.avro.wrappers import Wrapped
from hudi_core.errors import CorruptMetadataError
from hudi_core.metadata.damage import REBUILD
from hudi_core.metadata.log.records import ValueType
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


class BoundStorage(NamedTuple):
    """What bounds of one of Hudi's types are stored in."""

    wrapper: str
    kind: pa.DataType | None
    """``None`` where the number alone does not say it."""


STORED: Final[Mapping[int, BoundStorage]] = {
    BoundType.BOOLEAN: BoundStorage("BooleanWrapper", pa.bool_()),
    BoundType.INT: BoundStorage("IntWrapper", pa.int32()),
    BoundType.LONG: BoundStorage("LongWrapper", pa.int64()),
    BoundType.FLOAT: BoundStorage("FloatWrapper", pa.float32()),
    BoundType.DOUBLE: BoundStorage("DoubleWrapper", pa.float64()),
    BoundType.STRING: BoundStorage("StringWrapper", pa.string()),
    BoundType.BYTES: BoundStorage("BytesWrapper", pa.binary()),
    BoundType.FIXED: BoundStorage("BytesWrapper", pa.binary()),
    BoundType.DECIMAL: BoundStorage("BytesWrapper", None),
    BoundType.UUID: BoundStorage("StringWrapper", None),
    BoundType.DATE: BoundStorage("IntWrapper", pa.date32()),
    BoundType.TIME_MILLIS: BoundStorage("IntWrapper", pa.time32("ms")),
    BoundType.TIME_MICROS: BoundStorage("LongWrapper", pa.time64("us")),
    BoundType.TIMESTAMP_MILLIS: BoundStorage("LongWrapper", pa.timestamp("ms", "UTC")),
    BoundType.TIMESTAMP_MICROS: BoundStorage("LongWrapper", pa.timestamp("us", "UTC")),
    BoundType.TIMESTAMP_NANOS: BoundStorage("LongWrapper", pa.timestamp("ns", "UTC")),
    BoundType.LOCAL_TIMESTAMP_MILLIS: BoundStorage("LongWrapper", pa.timestamp("ms")),
    BoundType.LOCAL_TIMESTAMP_MICROS: BoundStorage("LongWrapper", pa.timestamp("us")),
    BoundType.LOCAL_TIMESTAMP_NANOS: BoundStorage("LongWrapper", pa.timestamp("ns")),
}
"""Of version 2."""
_MILLIS: Final = frozenset(
    {BoundType.TIME_MILLIS, BoundType.TIMESTAMP_MILLIS, BoundType.LOCAL_TIMESTAMP_MILLIS}
)
NANOS: Final = frozenset({BoundType.TIMESTAMP_NANOS, BoundType.LOCAL_TIMESTAMP_NANOS})
_DECIMAL_PRECISION, _DECIMAL_SCALE = 30, 15
"""Of the one ``DecimalWrapper`` that all decimals of version 1 are in."""
DECIMAL_DIGITS: Final = _DECIMAL_PRECISION - _DECIMAL_SCALE
"""Digits that it has room for before the point, and as many behind it."""
_MAX_DIGITS: Final = 100
_NUMBERS: Final = {
    stored.kind: number for number, stored in STORED.items() if number != BoundType.FIXED
}
_SAME_BOUNDS: Final = {
    pa.int8(): pa.int32(),
    pa.int16(): pa.int32(),
    pa.large_string(): pa.string(),
    pa.large_binary(): pa.binary(),
}
KINDS_1: Final = {
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
"""Types of version 1, whose wrappers are all there is."""


@cache
def bound_type(kind: pa.DataType) -> ValueType | None:
    """Return the type of a column's bounds; ``None`` without bounds.

    Cached: 0.2 instead of 0.9 us, some 100 times a commit.
    """
    if pt.is_decimal(kind):
        return ValueType(BoundType.DECIMAL, f"{kind.precision},{kind.scale}")
    if pt.is_fixed_size_binary(kind):
        return ValueType(BoundType.FIXED)
    if pt.is_timestamp(kind):
        kind = pa.timestamp(kind.unit, None if kind.tz is None else "UTC")
    number = _NUMBERS.get(_SAME_BOUNDS.get(kind, kind))
    return None if number is None else ValueType(number)


@cache
def is_stored_as_is(kind: pa.DataType) -> bool:
    """Whether bounds of a type are stored in their internal form."""
    found = bound_type(kind)
    return found is not None and found.ordinal not in (BoundType.DECIMAL, *_MILLIS, *NANOS)


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
    elif number in NANOS:
        stored = int(value) * 1000
    return Wrapped(wrapper_of(kind, has_value_types=has_value_types), stored)


@cache
def wrapper_of(kind: pa.DataType, *, has_value_types: bool) -> str:
    """The name of the wrapper of a column's bounds."""
    found = bound_type(kind)
    number = BoundType.LONG if found is None else found.ordinal
    own = {BoundType.DATE: "DateWrapper", BoundType.DECIMAL: "DecimalWrapper"}
    if not has_value_types and number in own:
        return own[BoundType(number)]
    return STORED[number].wrapper


def kind_of(bound: Wrapped, value_type: ValueType | None) -> pa.DataType | None:
    """The type of a column with such a bound; ``None`` if unknown.

    In version 1 a ``LongWrapper`` may be of a timestamp as well.
    """
    if value_type is None or value_type.ordinal == BoundType.V1:
        return KINDS_1.get(bound.wrapper)
    if value_type.ordinal == BoundType.DECIMAL:
        return pa.decimal128(38, scale_of(value_type.info, ""))
    found = STORED.get(value_type.ordinal)
    return None if found is None else found.kind


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
    if value_type.ordinal not in STORED:
        return None
    return _version_2(bound, value_type, path)


def _version_2(bound: Wrapped, value_type: ValueType, path: str) -> Scalar | None:
    number, value = BoundType(value_type.ordinal), bound.value
    if bound.wrapper != STORED[number].wrapper:
        raise CorruptMetadataError(path, f"a bound of type {number.name} is wrong", REBUILD)
    if number is BoundType.DECIMAL:
        return _decimal(value, scale_of(value_type.info, path))
    if number in _MILLIS:
        return int(value) * 1000
    if number in NANOS:
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


def scale_of(info: str | None, path: str, most: int = _MAX_DIGITS) -> int:
    """The scale in a decimal's type of version 2."""
    precision, comma, scale = (info or "").partition(",")
    if not (comma and precision.isdecimal() and scale.isdecimal() and int(scale) <= most):
        raise CorruptMetadataError(
            path, f"{info!r} is not precision and scale of a decimal", REBUILD
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
