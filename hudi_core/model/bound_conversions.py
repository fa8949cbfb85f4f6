"""Bounds of columns as arrays and as strings.

For the internal form see :data:`~hudi_core.model.stats.Scalar`.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal, InvalidOperation
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from hudi_core.model.stats import Scalar

EXACT: Final = Context(prec=100)
"""For decimals of any column, of which none has so many digits."""


def bounds_to_array(bounds: Sequence[Scalar | None], kind: pa.DataType) -> pa.Array:
    """Bounds in internal form as an array of the column's type.

    Parameters
    ----------
    bounds
        ``None`` where no bound is known.
    kind
        The column's type in the table's schema.
    """
    if pt.is_date32(kind):
        return pa.array(bounds, pa.int32()).cast(kind)
    if pt.is_time(kind):
        return pa.array(bounds, pa.int64()).cast(pa.time64("us")).cast(kind)
    if pt.is_timestamp(kind):
        return pa.array(bounds, pa.int64()).cast(pa.timestamp("us", kind.tz)).cast(kind)
    return pa.array(bounds, kind)


def decimal_of(unscaled: bytes | int, scale: int) -> Decimal:
    """A decimal from its digits, highest first."""
    number = unscaled if isinstance(unscaled, int) else int.from_bytes(unscaled, "big", signed=True)
    return Decimal(number).scaleb(-scale, EXACT)


def bound_to_text(bound: Scalar) -> str:
    """A bound in internal form as text, for metadata of a format."""
    if isinstance(bound, bool):
        return "true" if bound else "false"
    if isinstance(bound, bytes):
        return base64.b64encode(bound).decode("ascii")
    return repr(bound) if isinstance(bound, float) else str(bound)


def bound_from_text(text: str, kind: pa.DataType) -> Scalar:
    """The bound that :func:`bound_to_text` made a string of.

    Parameters
    ----------
    kind
        The column's type in the table's schema.

    Raises
    ------
    ValueError
        The text is no bound of such a column.
    """
    for is_kind, read in _READERS.items():
        if is_kind(kind):
            return read(text)
    raise ValueError(f"columns of type {kind} have no bounds")


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(f"{text!r} is neither true nor false")
    return text == "true"


def _float(text: str) -> float:
    found = float(text)
    if math.isnan(found):
        raise ValueError("NaN is no bound")
    return found


def _decimal(text: str) -> Decimal:
    try:
        found = Decimal(text)
    except InvalidOperation:
        found = Decimal("NaN")
    if not found.is_finite():
        raise ValueError(f"{text!r} is no decimal")
    return found


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pt.is_string(kind) or pt.is_large_string(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    found = pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_fixed_size_binary(kind)
    return bool(found)


def _is_counted(kind: pa.DataType) -> bool:
    return bool(pt.is_integer(kind) or pt.is_temporal(kind))


_READERS: Final[Mapping[Callable[[pa.DataType], bool], Callable[[str], Scalar]]] = {
    pt.is_boolean: _boolean,
    pt.is_decimal: _decimal,
    pt.is_floating: _float,
    _is_counted: int,
    _is_text: str,
    _is_bytes: _bytes,
}
"""How strings are read, by the kinds of columns."""
