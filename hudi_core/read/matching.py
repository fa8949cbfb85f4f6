"""Files that can match a predicate, by ranges of columns.

Logic is SQL's, with true, false and null. Of every part of a predicate two things are known for
each file: whether it can be true of a row, and whether it can be false, which is what a negation
asks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_core.model.ranges import Mask, ValueRanges
from hudi_core.read.predicate import And, Anything, Comparison, IsNull, Not, OneOf, Or, Predicate


class _Can(NamedTuple):
    """For each file, whether a predicate can be true, and false."""

    be_true: Mask
    be_false: Mask


def can_match(predicate: Predicate, ranges: Mapping[str, ValueRanges], count: int) -> Mask:
    """Return for each file whether a row can match the predicate.

    ``ranges`` are by path; a column that is not there may hold anything.
    """
    return _can(predicate, ranges, count).be_true


def _can(predicate: Predicate, ranges: Mapping[str, ValueRanges], count: int) -> _Can:
    match predicate:
        case And() | Or():
            parts = [_can(part, ranges, count) for part in predicate.parts]
            trues, falses = zip(*parts, strict=True)
            of_all = isinstance(predicate, And)
            return _Can(_joined(trues, every=of_all), _joined(falses, every=not of_all))
        case Not():
            inner = _can(predicate.inner, ranges, count)
            return _Can(inner.be_false, inner.be_true)
        case Anything():
            return _anything(count)
        case _:
            known = ranges.get(predicate.column)
            return _anything(count) if known is None else _of_column(predicate, known)


def _joined(masks: Sequence[Mask], *, every: bool) -> Mask:
    joined = masks[0]
    for mask in masks[1:]:
        joined = joined & mask if every else joined | mask
    return joined


def _of_column(predicate: Comparison | OneOf | IsNull, known: ValueRanges) -> _Can:
    match predicate:
        case IsNull():
            return _Can(known.may_be_null, known.may_have_value)
        case OneOf():
            return _Can(known.may_hold(predicate.values), np.ones(len(known), np.bool_))
        case Comparison():
            return _compare(predicate, known)


def _anything(count: int) -> _Can:
    return _Can(np.ones(count, np.bool_), np.ones(count, np.bool_))


def _compare(predicate: Comparison, known: ValueRanges) -> _Can:
    low, high, value = known.minimum, known.maximum, predicate.value
    is_below, is_above = _holds(pc.less_equal, low, value), _holds(pc.greater_equal, high, value)
    match predicate.op:
        case "=" | "!=":
            be_true = is_below & is_above
            # all values are this one where both bounds are
            be_false = _holds(pc.not_equal, low, value) | _holds(pc.not_equal, high, value)
        case "<":
            be_true, be_false = _holds(pc.less, low, value), is_above
        case "<=":
            be_true, be_false = is_below, _holds(pc.greater, high, value)
        case ">":
            be_true, be_false = _holds(pc.greater, high, value), is_below
        case _:
            be_true, be_false = is_above, _holds(pc.less, low, value)
    if pt.is_floating(value.type):
        # no bound covers NaN, which is neither equal to, less nor greater than any number
        be_false = np.ones(len(known), np.bool_)
    if predicate.op == "!=":
        be_true, be_false = be_false, be_true
    return _Can(be_true & known.may_have_value, be_false & known.may_have_value)


def _holds(compare: Callable[..., Any], bounds: pa.Array, value: pa.Scalar) -> Mask:
    """Return where a comparison holds, or the bound is unknown."""
    mask: Mask = pc.fill_null(compare(bounds, value), True).to_numpy(zero_copy_only=False)
    return mask
