"""Bounds of column statistics, to Hudi's wrappers and back.

Statistics of version 1 (tables of version 8) show types by the wrapper alone, and a reader has to
know the column's type: a timestamp is a ``LongWrapper`` in the unit of the column. Those of
version 2 say the type beside the bounds. Source: ``hudi-format`` section 5.

What a stored bound is of is decided in one place, :func:`stored_kind`. Many bounds become an array,
and a single one stays a value: it takes a microsecond, and a hundred as an array of one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from enum import IntEnum
from functools import cache, partial
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_core.errors import CorruptMetadataError
from hudi_core.metadata.damage import REBUILD
from hudi_core.metadata.log.records import ValueType
from hudi_core.model.bound_conversions import EXACT, decimal_of
from hudi_core.model.stats import Scalar
from hudi_core.schema.arrow_types import is_text


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


_STORED: Final[Mapping[int, BoundStorage]] = {
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
_NANOS: Final = frozenset({BoundType.TIMESTAMP_NANOS, BoundType.LOCAL_TIMESTAMP_NANOS})
_DECIMAL_PRECISION, _DECIMAL_SCALE = 30, 15
"""Of the one ``DecimalWrapper`` that all decimals of version 1 are in."""
DECIMAL_DIGITS: Final = _DECIMAL_PRECISION - _DECIMAL_SCALE
"""Digits that it has room for before the point, and as many behind it."""
_MAX_SCALE: Final = 38
_DECIMAL_BYTES: Final = 16
_NUMBERS: Final = {
    stored.kind: number for number, stored in _STORED.items() if number != BoundType.FIXED
}
_SAME_BOUNDS: Final = {
    pa.int8(): pa.int32(),
    pa.int16(): pa.int32(),
    pa.large_string(): pa.string(),
    pa.large_binary(): pa.binary(),
}
WRAPPERS: Final[Mapping[str, tuple[str, pa.DataType]]] = {
    "BooleanWrapper": ("int", pa.bool_()),
    "IntWrapper": ("int", pa.int32()),
    "LongWrapper": ("int", pa.int64()),
    "FloatWrapper": ("float", pa.float32()),
    "DoubleWrapper": ("float", pa.float64()),
    "StringWrapper": ("bytes", pa.string()),
    "BytesWrapper": ("bytes", pa.binary()),
    "DateWrapper": ("int", pa.date32()),
    "LocalDateWrapper": ("int", pa.date32()),
    "TimeMicrosWrapper": ("int", pa.time64("us")),
    "TimestampMicrosWrapper": ("int", pa.timestamp("us")),
    "DecimalWrapper": ("bytes", pa.decimal128(_DECIMAL_PRECISION, _DECIMAL_SCALE)),
}
"""In which column of a table of bounds (:func:`bound_arrays`) the values of a wrapper are, and what
type they have in version 1, whose wrappers are all there is."""
_OF_VERSION_1: Final = {BoundType.DATE: "DateWrapper", BoundType.DECIMAL: "DecimalWrapper"}
"""Wrappers that only version 1 has."""
_COUNTED_IN: Final[Mapping[str, tuple[Callable[[pa.DataType], bool], ...]]] = {
    "IntWrapper": (pt.is_time, pt.is_date32),
    "LongWrapper": (pt.is_time, pt.is_timestamp),
}
"""Types of columns, in whose unit the numbers of these wrappers are in version 1."""
_OTHER_WRAPPERS: Final[Mapping[int, str]] = {
    BoundType.INT: "LongWrapper",
    BoundType.LONG: "IntWrapper",
    BoundType.FLOAT: "DoubleWrapper",
    BoundType.DOUBLE: "FloatWrapper",
}
"""Of numbers that are stored wider or narrower than their type says."""


# --- to wrappers ---------------------------------------------------------------------------------


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


Encoding = tuple[str, Callable[[Any], Any] | None]
"""The name of a wrapper, and what makes its value of the internal form; ``None``: it is that."""


@cache
def encoding(kind: pa.DataType, *, has_value_types: bool) -> Encoding:
    """How bounds of a column that has some are stored."""
    found = bound_type(kind)
    assert found is not None  # noqa: S101 - the caller has looked
    number = BoundType(found.ordinal)
    wrapper = _STORED[number].wrapper
    if not has_value_types:
        wrapper = _OF_VERSION_1.get(number, wrapper)
    if number is BoundType.DECIMAL:
        return wrapper, partial(_unscaled, kind.scale if has_value_types else _DECIMAL_SCALE)
    if number in _MILLIS:
        return wrapper, _to_millis
    return wrapper, _to_nanos if number in _NANOS else None


def _to_millis(micros: int) -> int:
    return micros // 1000


def _to_nanos(micros: int) -> int:
    return micros * 1000


def _unscaled(scale: int, value: Decimal) -> bytes:
    # as Java's BigInteger: the fewest bytes with room for the sign
    unscaled = int(value.scaleb(scale, EXACT))
    magnitude = unscaled if unscaled >= 0 else ~unscaled
    return unscaled.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)


# --- from wrappers -------------------------------------------------------------------------------


def stored_kind(
    wrapper: str, value_type: ValueType | None, kind: pa.DataType, path: str
) -> pa.DataType | None:
    """The type of a stored bound; ``None`` for an unknown one.

    ``value_type`` is ``None`` or number 0 in version 1, which keeps times as numbers in the unit of
    the column: ``kind`` is its type.
    """
    if value_type is None or value_type.ordinal == BoundType.V1:
        if any(is_counted(kind) for is_counted in _COUNTED_IN.get(wrapper, ())):
            return kind
        return WRAPPERS[wrapper][1] if wrapper in WRAPPERS else None
    number = value_type.ordinal
    if number not in _STORED or number == BoundType.UUID:
        return None
    stored = _STORED[number]
    if wrapper not in (stored.wrapper, _OTHER_WRAPPERS.get(number)):
        raise CorruptMetadataError(
            path, f"a bound of type {BoundType(number).name} is a {wrapper}", REBUILD
        )
    return pa.decimal128(38, _scale(value_type.info, path)) if stored.kind is None else stored.kind


def _scale(info: str | None, path: str) -> int:
    """The scale in a decimal's type of version 2."""
    precision, comma, scale = (info or "").partition(",")
    if not (comma and precision.isdecimal() and scale.isdecimal() and int(scale) <= _MAX_SCALE):
        raise CorruptMetadataError(
            path, f"{info!r} is not precision and scale of a decimal", REBUILD
        )
    return int(scale)


def unwrapped(value: Any, stored: pa.DataType) -> Scalar | None:
    """A bound in internal form.

    ``value`` is the wrapper's, ``stored`` from :func:`stored_kind`. ``None`` for one between two
    microseconds, neither of which is a bound below and above.
    """
    if pt.is_decimal(stored):
        return decimal_of(value, stored.scale)
    found: Scalar = value
    if pt.is_timestamp(stored) or pt.is_time(stored):
        if stored.unit == "ns":
            return None if value % 1000 else int(value) // 1000
        found = value * {"s": 1_000_000, "ms": 1000, "us": 1}[stored.unit]
    return found


def bound_arrays(table: pa.Table, side: str, kind: pa.DataType, path: str) -> pa.Array:
    """Return bounds in their column's type; null where unreliable.

    Nothing is concluded from bounds of another family than that type.
    """
    wrappers, infos = in_one(table[f"{side}_wrapper"]), in_one(table["type_info"])
    ordinals = pc.fill_null(in_one(table["type_ordinal"]), int(BoundType.V1))
    # as a rule all are of one form
    forms = [
        (wrapper, ordinal, info)
        for wrapper in pc.unique(wrappers).to_pylist()
        for ordinal in pc.unique(ordinals).to_pylist()
        for info in pc.unique(infos).to_pylist()
        if wrapper is not None
    ]
    found: pa.Array | None = None
    for wrapper, ordinal, info in forms:
        same: pa.Array | None = None
        if len(forms) > 1:
            same = pc.and_(_equal(wrappers, wrapper), _equal(ordinals, ordinal))
            same = pc.and_(same, _equal(infos, info))
            if not pc.any(same).as_py():
                continue
        value_type = ValueType(ordinal, info)
        stored = None if ordinal in _NANOS else stored_kind(wrapper, value_type, kind, path)
        if stored is None:
            continue
        values = in_one(table[f"{side}_{WRAPPERS[wrapper][0]}"])
        if same is not None:
            values = pc.if_else(same, values, pa.scalar(None, values.type))
        try:
            bounds = _converted(values, stored, kind)
        except pa.ArrowInvalid as error:
            raise CorruptMetadataError(path, "a bound is not of its type", REBUILD) from error
        if bounds is not None:
            found = bounds if found is None else pc.coalesce(found, bounds)
    return pa.nulls(len(table), kind) if found is None else found


def _equal(values: pa.Array, wanted: object) -> pa.Array:
    """Return where values are the wanted one, which may be null."""
    if wanted is None:
        return pc.is_null(values)
    return pc.fill_null(pc.equal(values, wanted), False)


def _converted(values: pa.Array, stored: pa.DataType, kind: pa.DataType) -> pa.Array | None:
    """Stored values in a column's type; ``None`` for another family."""

    def both(is_of: Callable[[pa.DataType], bool]) -> bool:
        return is_of(stored) and is_of(kind)

    is_number = pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind)
    is_binary = pt.is_binary(kind) or pt.is_large_binary(kind)
    ways: tuple[tuple[bool, Callable[[], pa.Array | None]], ...] = (
        (both(pt.is_boolean), lambda: values.cast(kind)),
        (pt.is_integer(stored) and is_number, lambda: _fitting(values, kind)),
        (both(pt.is_floating), lambda: _without_nan(values).cast(kind, safe=False)),
        (pt.is_string(stored) and is_text(kind), lambda: values.cast(kind)),
        (pt.is_binary(stored) and is_binary, lambda: values.cast(kind)),
        (both(pt.is_decimal), lambda: _decimals(values, stored.scale, kind)),
        (both(pt.is_date32), lambda: _fitting(values, pa.int32()).view(kind)),
        (both(pt.is_timestamp), lambda: _timestamps(values, stored.unit, kind)),
        (both(pt.is_time), lambda: _times(values, stored.unit, kind)),
    )
    return next((convert() for fits, convert in ways if fits), None)


def _without_nan(floats: pa.Array) -> pa.Array:
    # a bound that is NaN says nothing
    return pc.if_else(pc.is_nan(floats), pa.scalar(None, floats.type), floats)


def _timestamps(values: pa.Array, unit: str, kind: pa.DataType) -> pa.Array:
    return values.cast(pa.timestamp(unit, kind.tz)).cast(kind, safe=False)


def _fitting(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Cast numbers, with null for those that do not fit."""
    if kind == pa.int32():
        limits = pc.and_(pc.greater_equal(values, -(2**31)), pc.less(values, 2**31))
        return pc.if_else(limits, values, pa.scalar(None, values.type)).cast(kind)
    if pt.is_decimal(kind):
        return _narrowed(values.cast(pa.decimal128(19, 0)).cast(pa.decimal128(38, 0)), kind)
    return values.cast(kind, safe=False)


def _times(values: pa.Array, unit: str, kind: pa.DataType) -> pa.Array | None:
    if unit == kind.unit:
        stored = pa.int32() if pt.is_time32(kind) else pa.int64()
        return _fitting(values, stored).view(kind)
    if (unit, kind.unit) == ("ms", "us"):
        return pc.multiply(values, 1000).view(kind)
    return None


def _decimals(content: pa.Array, scale: int, kind: pa.DataType) -> pa.Array:
    """Return big-endian unscaled numbers as decimals.

    Of as few bytes as they need.
    """
    lengths = pc.fill_null(pc.binary_length(content), 0).to_numpy()
    known = pc.is_valid(content).to_numpy(zero_copy_only=False) & (lengths <= _DECIMAL_BYTES)
    known &= lengths > 0
    data = np.frombuffer(b"".join(filter(None, content.to_pylist())), np.uint8)
    ends = np.cumsum(lengths)
    cells = np.zeros((len(content), _DECIMAL_BYTES), np.uint8)
    for place in range(_DECIMAL_BYTES):
        has = known & (lengths > place)
        cells[has, place] = data[ends[has] - 1 - place]
    first = data[(ends - lengths)[known]]
    sign = np.zeros(len(content), np.uint8)
    sign[known] = np.where(first >= 0x80, 0xFF, 0)
    beyond = np.arange(_DECIMAL_BYTES)[None, :] >= lengths[:, None]
    cells = np.where(beyond, sign[:, None], cells)
    valid = pa.py_buffer(np.packbits(known, bitorder="little"))
    buffers = [valid, pa.py_buffer(np.ascontiguousarray(cells))]
    whole = pa.Array.from_buffers(pa.decimal128(38, scale), len(content), buffers)
    return _narrowed(whole, kind)


def _narrowed(whole: pa.Array, kind: pa.DataType) -> pa.Array:
    """Cast decimals of 38 digits; null where inexact."""
    digits = kind.precision - kind.scale
    if digits < whole.type.precision - whole.type.scale:
        limit = pa.scalar(Decimal(10) ** digits, whole.type)
        least = pa.scalar(-(Decimal(10) ** digits), whole.type)
        fits = pc.and_(pc.less(whole, limit), pc.greater(whole, least))
        whole = pc.if_else(fits, whole, pa.scalar(None, whole.type))
    narrow = whole.cast(kind, safe=False)
    exact = pc.equal(narrow.cast(whole.type, safe=False), whole)
    return pc.if_else(exact, narrow, pa.scalar(None, kind))


def in_one(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
