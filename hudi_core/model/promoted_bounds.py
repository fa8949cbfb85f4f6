"""Column bounds of files written before a type promotion.

Such files stay as they are, and readers turn their values into the new type. Bounds have to hold
whichever way they do that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from hudi_core.model.stats import Scalar
from hudi_core.schema.arrow_types import is_bytes, is_text

Bounds = tuple[Scalar, Scalar]
_MICROS_OF_A_DAY: Final = 86_400_000_000
_YEAR_1, _YEAR_9999 = -719_162, 2_932_896
"""Days since the epoch of the first day and of the last."""
_SPELLED: Final = ("+", "o")
"""Between these are numbers, dates and times as strings, however they are spelled."""
_WIDEST: Final[Mapping[pa.DataType, Bounds]] = {
    pa.bool_(): (False, True),
    pa.int32(): (-(2**31), 2**31 - 1),
    pa.int64(): (-(2**63), 2**63 - 1),
    pa.float32(): (-math.inf, math.inf),
    pa.float64(): (-math.inf, math.inf),
    pa.date32(): (_YEAR_1, _YEAR_9999),
}


def promoted_bounds(low: Scalar, high: Scalar, stored: pa.DataType, wanted: pa.DataType) -> Bounds:
    """The bounds of a column in its new type.

    Parameters
    ----------
    low, high
        Bounds in internal form, in the type of the file.
    stored, wanted
        The two types.

    Returns
    -------
    tuple
        Wide ones where the order of the values changes as well, as that of numbers which become
        strings.
    """
    if _is_same(stored, wanted):
        return low, high
    if pt.is_float32(stored) and pt.is_float64(wanted):
        # Hudi's readers widen a float by way of its shortest text, all others keep the number
        number, other = float(low), float(high)
        return min(number, _by_text(number)), max(other, _by_text(other))
    change = _change(stored, wanted)
    if change is not None:
        return change(low), change(high)
    return _SPELLED if is_text(wanted) and not is_bytes(stored) else widest_bounds(wanted)


def widest_bounds(kind: pa.DataType) -> Bounds:
    """Bounds of all values of a type but NaN."""
    if pt.is_decimal(kind):
        greatest = Decimal((0, (9,) * kind.precision, -kind.scale))
        return greatest.copy_negate(), greatest  # a minus sign would round to 28 digits
    if pt.is_timestamp(kind):
        return _YEAR_1 * _MICROS_OF_A_DAY, (_YEAR_9999 + 1) * _MICROS_OF_A_DAY
    if pt.is_time(kind):
        return 0, _MICROS_OF_A_DAY
    if is_bytes(kind):
        return b"", b"\xff" * 16
    return _WIDEST.get(kind, ("", chr(0x10FFFF) * 8))


def _is_same(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether two types have one internal form."""
    if stored.equals(wanted):
        return True
    same_kinds: tuple[Callable[[pa.DataType], bool], ...] = (
        pt.is_decimal,
        pt.is_timestamp,
        pt.is_time,
        is_text,
        is_bytes,
    )
    return any(test(stored) and test(wanted) for test in same_kinds)


def _change(stored: pa.DataType, wanted: pa.DataType) -> Callable[[Scalar], Scalar] | None:
    """A change of type that keeps the order of values, if any."""
    if pt.is_signed_integer(stored):
        ways: tuple[tuple[bool, Callable[[Scalar], Scalar]], ...] = (
            (pt.is_int64(wanted), int),
            (pt.is_float64(wanted), float),
            (pt.is_float32(wanted), lambda value: float(np.float32(int(value)))),
            (pt.is_decimal(wanted), lambda value: Decimal(int(value))),
        )
        return next((way for fits, way in ways if fits), None)
    if pt.is_date32(stored) and pt.is_timestamp(wanted):
        return lambda value: int(value) * _MICROS_OF_A_DAY
    if is_text(stored) and is_bytes(wanted):
        return lambda value: str(value).encode()
    return None


def _by_text(number: float) -> float:
    return float(str(np.float32(number)))
