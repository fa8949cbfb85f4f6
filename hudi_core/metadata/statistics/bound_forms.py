"""Stored forms of column ranges, and conversions between them.

Foreign readers leave out a file or a partition for what a range says, for one without bounds, and,
of a partition, for one that is missing. So a range that counts values always has bounds, and a
column has ranges only where its form holds whatever its type does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt

from hudi_core.avro.wrappers import Wrapped
from hudi_core.metadata.log.records import ColumnRange, ValueType
from hudi_core.metadata.statistics.bounds import (
    DECIMAL_DIGITS,
    BoundType,
    Encoding,
    bound_type,
    encoding,
    stored_kind,
    unwrapped,
)
from hudi_core.model.promoted_bounds import Bounds, promoted_bounds, widest_bounds
from hudi_core.model.stats import ColumnStats, Scalar

_IN_UTC: Final = {
    BoundType.LOCAL_TIMESTAMP_MILLIS: BoundType.TIMESTAMP_MILLIS,
    BoundType.LOCAL_TIMESTAMP_MICROS: BoundType.TIMESTAMP_MICROS,
}


@dataclass(frozen=True)
class BoundForm:
    """The form of a column's bounds.

    ``value_type`` is ``None`` in version 1 of the statistics.
    """

    kind: pa.DataType
    value_type: ValueType | None

    @cached_property
    def _encoding(self) -> Encoding:
        return encoding(self.kind, has_value_types=self.value_type is not None)

    @property
    def wrapper(self) -> str:
        """Name of the wrapper."""
        return self._encoding[0]

    def wrap(self, value: Scalar) -> Wrapped:
        """A bound of the column, from its internal form."""
        wrapper, encode = self._encoding
        return Wrapped(wrapper, value if encode is None else encode(value))


def bound_form(
    kind: pa.DataType, *, has_value_types: bool, is_local: bool = True
) -> BoundForm | None:
    """The form of a column's bounds; ``None`` where it has no ranges.

    Version 1 has one wrapper for decimals, of 15 digits before the point and 15 behind it. A type
    that has room for more has no ranges at all there, as in Hudi: values that did not fit would be
    missing in the ranges of all others.

    ``is_local`` is for timestamps without a zone: whether the table's Avro schema calls them local.
    Where it does not, Hudi takes them for points in time.
    """
    found = bound_type(kind)
    if found is None:
        return None
    if not has_value_types:
        fits = not pt.is_decimal(kind) or (
            kind.scale <= DECIMAL_DIGITS and kind.precision - kind.scale <= DECIMAL_DIGITS
        )
        return BoundForm(kind, None) if fits else None
    if not is_local:
        found = ValueType(_IN_UTC.get(BoundType(found.ordinal), found.ordinal), found.info)
    return BoundForm(kind, found)


def wrapped_bounds(
    stats: ColumnStats, form: BoundForm
) -> tuple[Wrapped, Wrapped] | tuple[None, None]:
    """The bounds of a file's column; none where it has no value.

    Values without bounds, NaN above all, may be any: there is no bound that all readers compare NaN
    with in one way. Spark has it as the greatest number, and loses it where the bound is NaN
    itself, in the statistics of its own cache.
    """
    if not stats.has_values:
        return None, None
    low, high = stats.min_value, stats.max_value
    if low is None or high is None or (stats.has_unbounded and pt.is_floating(form.kind)):
        low, high = widest_bounds(form.kind)
    return form.wrap(low), form.wrap(high)


def has_values(one: ColumnRange) -> bool:
    """Whether there may be anything but nulls."""
    counts = one.value_count, one.null_count
    return None in counts or counts[0] != counts[1]


def has_type(one: ColumnRange) -> bool:
    """Whether a range records its bounds' type (version 2)."""
    return one.value_type is not None and one.value_type.ordinal != BoundType.V1


def covers(wide: ColumnRange, narrow: ColumnRange) -> bool:
    """Whether bounds hold for all values of another range."""
    low, high, first, last = wide.min_value, wide.max_value, narrow.min_value, narrow.max_value
    if low is None or high is None or first is None or last is None:
        return not has_values(narrow)
    order = bound_order(wide)
    return bool(order(low) <= order(first) and order(last) <= order(high))


def bound_order(one: ColumnRange) -> Callable[[Wrapped], Any]:
    """What orders bounds: strings by their bytes, NaN after all numbers."""
    kind, wrapper = one.value_type, one.min_value and one.min_value.wrapper
    is_decimal = kind is not None and kind.ordinal == BoundType.DECIMAL
    return _by_number if is_decimal or wrapper == "DecimalWrapper" else _by_value


def outermost(ranges: Sequence[ColumnRange]) -> tuple[Wrapped, Wrapped]:
    """The least and the greatest bound of ranges.

    At least one of them is bounded."""
    order = bound_order(ranges[0])
    low = min((one.min_value for one in ranges if one.min_value is not None), key=order)
    high = max((one.max_value for one in ranges if one.max_value is not None), key=order)
    return low, high


def _by_value(bound: Wrapped) -> Any:
    # Python's order of code points is that of the bytes of strings
    return (bound.value != bound.value, bound.value)


def _by_number(bound: Wrapped) -> int:
    return int.from_bytes(bound.value, "big", signed=True)


def is_in_form(one: ColumnRange, form: BoundForm) -> bool:
    """Whether a range has the form that its column has now."""
    low, high = one.min_value, one.max_value
    if one.value_type != form.value_type:
        return False
    if low is None or high is None:
        return low is high and not has_values(one)
    is_of_wrapper = low.wrapper == high.wrapper == form.wrapper
    return is_of_wrapper and has_values(one) and not is_nothing(low, high)


def in_form(one: ColumnRange, form: BoundForm) -> ColumnRange:
    """A range in the form that its column has now."""
    if is_in_form(one, form):
        return one
    low, high = one.min_value, one.max_value
    if not has_values(one) or low is None or high is None or is_nothing(low, high):
        return widest(one, form)
    bounds = _promoted(low, high, one.value_type, form.kind)
    return widest(one, form) if bounds is None else _bounded(one, form, bounds)


def widest(one: ColumnRange, form: BoundForm) -> ColumnRange:
    """A range for any values, with the counts of another."""
    if not has_values(one):
        return replace(one, min_value=None, max_value=None, value_type=form.value_type)
    return _bounded(one, form, widest_bounds(form.kind))


def _bounded(one: ColumnRange, form: BoundForm, bounds: Bounds) -> ColumnRange:
    return replace(
        one,
        min_value=form.wrap(bounds[0]),
        max_value=form.wrap(bounds[1]),
        value_type=form.value_type,
    )


def is_nothing(low: Wrapped, high: Wrapped) -> bool:
    """Whether bounds are those of Hudi's writers for floats with a NaN.

    They are two zeros, both positive. Zeros that are bounds are made negative below and positive
    above by every writer of Parquet files.
    """
    is_float = low.wrapper == high.wrapper and low.wrapper in ("FloatWrapper", "DoubleWrapper")
    return is_float and low.value == high.value == 0 and math.copysign(1, low.value) > 0


def _promoted(
    low: Wrapped, high: Wrapped, value_type: ValueType | None, wanted: pa.DataType
) -> Bounds | None:
    if low.wrapper != high.wrapper:
        return None
    stored = stored_kind(low.wrapper, value_type, wanted, "")
    if stored is None:
        return None
    first, last = (unwrapped(one.value, stored) for one in (low, high))
    if first is None or last is None:
        return None
    return promoted_bounds(first, last, stored, wanted)
