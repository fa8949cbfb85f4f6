"""Bounds of many statistics at once, in the type of the column.

The same rules as for one bound, :func:`~hudi_core.metadata.statistics.bounds.unwrap_bound`: nothing
is concluded from bounds of another family than the column's type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_core.errors import CorruptMetadataError
from hudi_core.metadata.damage import REBUILD
from hudi_core.metadata.statistics.bounds import KINDS_1, NANOS, STORED, BoundType, scale_of

_MAX_SCALE: Final = 38
_DECIMAL_BYTES: Final = 16
_KINDS_1: Final[Mapping[str, pa.DataType]] = {
    **KINDS_1,
    "LocalDateWrapper": pa.date32(),
    "TimeMicrosWrapper": pa.time64("us"),
    "TimestampMicrosWrapper": pa.timestamp("us"),
}
_OTHER_WRAPPERS: Final[Mapping[int, str]] = {
    BoundType.INT: "LongWrapper",
    BoundType.LONG: "IntWrapper",
    BoundType.FLOAT: "DoubleWrapper",
    BoundType.DOUBLE: "FloatWrapper",
}
"""Of numbers that are stored wider or narrower than their type says."""


def bound_arrays(table: pa.Table, side: str, kind: pa.DataType, path: str) -> pa.Array:
    """Return bounds in their column's type; null where unreliable."""
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
        bounds = [in_one(table[f"{side}_{part}"]) for part in ("int", "float", "bytes")]
        if len(forms) > 1:
            same = pc.and_(_equal(wrappers, wrapper), _equal(ordinals, ordinal))
            same = pc.and_(same, _equal(infos, info))
            if not pc.any(same).as_py():
                continue
            bounds = [pc.if_else(same, each, pa.scalar(None, each.type)) for each in bounds]
        stored = _stored_kind(wrapper, ordinal, info, kind, path)
        if stored is None:
            continue
        try:
            values = _values(bounds, stored, kind)
        except pa.ArrowInvalid as error:
            raise CorruptMetadataError(path, "a bound is not of its type", REBUILD) from error
        if values is not None:
            found = values if found is None else pc.coalesce(found, values)
    return pa.nulls(len(table), kind) if found is None else found


def _equal(values: pa.Array, wanted: object) -> pa.Array:
    """Return where values are the wanted one, which may be null."""
    if wanted is None:
        return pc.is_null(values)
    return pc.fill_null(pc.equal(values, wanted), False)


def _stored_kind(
    wrapper: str, ordinal: int, info: str | None, kind: pa.DataType, path: str
) -> pa.DataType | None:
    """The type of stored bounds; ``None`` if nothing is concluded from it."""
    if ordinal == BoundType.V1:
        # version 1 keeps times as numbers, in the unit of the column
        if wrapper in ("IntWrapper", "LongWrapper") and (pt.is_timestamp(kind) or pt.is_time(kind)):
            return kind
        is_day = wrapper == "IntWrapper" and pt.is_date32(kind)
        return kind if is_day else _KINDS_1.get(wrapper)
    if ordinal not in STORED or ordinal in (*NANOS, BoundType.UUID):
        return None
    stored = STORED[ordinal]
    if wrapper not in (stored.wrapper, _OTHER_WRAPPERS.get(ordinal)):
        raise CorruptMetadataError(
            path, f"a bound of type {BoundType(ordinal).name} is a {wrapper}", REBUILD
        )
    if ordinal == BoundType.DECIMAL:
        return pa.decimal128(38, scale_of(info, path, _MAX_SCALE))
    return stored.kind


def _values(bounds: Sequence[pa.Array], stored: pa.DataType, kind: pa.DataType) -> pa.Array | None:
    """Return all bounds, read as one type.

    ``None`` where the column is of another family.
    """
    ints, floats, content = bounds

    def both(is_of: Callable[[pa.DataType], bool]) -> bool:
        return is_of(stored) and is_of(kind)

    is_number = pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind)
    is_text = pt.is_string(kind) or pt.is_large_string(kind)
    is_bytes = pt.is_binary(kind) or pt.is_large_binary(kind)
    ways: tuple[tuple[bool, Callable[[], pa.Array | None]], ...] = (
        (both(pt.is_boolean), lambda: ints.cast(kind)),
        (pt.is_integer(stored) and is_number, lambda: _fitting(ints, kind)),
        (both(pt.is_floating), lambda: _without_nan(floats).cast(kind, safe=False)),
        (pt.is_string(stored) and is_text, lambda: content.cast(kind)),
        (pt.is_binary(stored) and is_bytes, lambda: content.cast(kind)),
        (both(pt.is_decimal), lambda: _decimals(content, stored.scale, kind)),
        (both(pt.is_date32), lambda: _fitting(ints, pa.int32()).view(kind)),
        (both(pt.is_timestamp), lambda: _timestamps(ints, stored.unit, kind)),
        (both(pt.is_time), lambda: _times(ints, stored.unit, kind)),
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
