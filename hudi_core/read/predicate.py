"""Row filters in one form for rows, files and partitions.

Conditions are made into predicates directly. An expression of Arrow's is taken apart as far as that
goes; the rest becomes :class:`Anything`, which excludes nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_core.model.ranges import Mask, ValueRanges
from hudi_core.schema.arrow_types import is_bytes, is_text

_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
MIRRORED: Final = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
"""The comparison that says the same with its sides exchanged."""


@dataclass(frozen=True, slots=True)
class Anything:
    """Whatever it is, it may be true or false of any row."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A column compared with a value of its type, not null.

    Of a null it is null.

    ``column`` is a path with dots, ``op`` one of :data:`MIRRORED`.
    """

    column: str
    op: str
    value: pa.Scalar


@dataclass(frozen=True, slots=True)
class OneOf:
    """A column compared with some values of its type, not null.

    Of a null it is false. NaN is among values that have it. As in SQL, -0.0 and 0.0 are one value:
    :func:`one_of` sees to it that both are among values that have one.
    """

    column: str
    values: pa.Array


@dataclass(frozen=True, slots=True)
class IsNull:
    """Whether a column is null; NaN is a value."""

    column: str


@dataclass(frozen=True, slots=True)
class Not:
    """True where another predicate is false."""

    inner: Predicate


@dataclass(frozen=True, slots=True)
class And:
    """All of several predicates."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """One of several predicates."""

    parts: tuple[Predicate, ...]


Predicate: TypeAlias = Anything | Comparison | OneOf | IsNull | Not | And | Or


def one_of(column: str, values: pa.Array) -> OneOf:
    """A column compared with some values, as SQL does."""
    return OneOf(column, with_both_zeros(values))


def with_both_zeros(values: pa.Array) -> pa.Array:
    """Values, with 0.0 and -0.0 where one of them is among them.

    Arrow looks values up by their bytes. The bounds of a file of nothing but zeros are -0.0 and
    0.0, and Arrow takes the one for the only value of the file.
    """
    if not pt.is_floating(values.type):
        return values
    zeros = pc.unique(values.filter(pc.equal(values, pa.scalar(0.0, values.type))))
    return pa.concat_arrays([values, pc.negate(zeros)]) if len(zeros) == 1 else values


MAX_DEPTH: Final = 64
"""Nothing is known of what is nested deeper, so that code may recurse into a predicate."""


def all_of(*parts: Predicate) -> Predicate:
    """All of some predicates: an :class:`And`, or the only one."""
    found = [one for part in parts for one in (part.parts if isinstance(part, And) else (part,))]
    return found[0] if len(found) == 1 else And(tuple(found))


def any_of(*parts: Predicate) -> Predicate:
    """One of some predicates: an :class:`Or`, or the only one."""
    found = [one for part in parts for one in (part.parts if isinstance(part, Or) else (part,))]
    return found[0] if len(found) == 1 else Or(tuple(found))


def not_of(inner: Predicate) -> Predicate:
    """The negation of a predicate; of a negation what it negates."""
    return inner.inner if isinstance(inner, Not) else Not(inner)


Values: TypeAlias = frozenset[Any]


def values_of(predicate: Comparison | OneOf) -> Values | None:
    """Values of which a column has one where a predicate holds."""
    if isinstance(predicate, OneOf):
        return Values(predicate.values.to_pylist())
    return Values([predicate.value.as_py()]) if predicate.op == "=" else None


def flattened(parts: Sequence[Predicate]) -> Iterator[Predicate]:
    """Yield what all have to hold, without further :class:`And` among them."""
    for part in parts:
        if isinstance(part, And):
            yield from flattened(part.parts)
        else:
            yield part


def columns_of(predicate: Predicate) -> frozenset[str]:
    """Paths of the columns that a predicate depends on.

    As far as it was taken apart.
    """
    return frozenset(_columns(predicate))


def _columns(predicate: Predicate) -> Iterator[str]:
    match predicate:
        case Comparison() | OneOf() | IsNull():
            yield predicate.column
        case Not():
            yield from _columns(predicate.inner)
        case And() | Or():
            for part in predicate.parts:
                yield from _columns(part)


def is_whole(predicate: Predicate) -> bool:
    """Whether a predicate accepts exactly the rows of its filter."""
    match predicate:
        case Anything():
            return False
        case Not():
            return is_whole(predicate.inner)
        case And() | Or():
            return all(map(is_whole, predicate.parts))
    return True


def known_part(predicate: Predicate) -> Predicate | None:
    """A predicate without the parts that were not taken apart.

    It accepts at least the same rows; ``None`` where nothing is left.
    """
    match predicate:
        case Anything():
            return None
        case And(parts):
            known = tuple(one for part in parts if (one := known_part(part)) is not None)
            return And(known) if known else None
        case Or(parts):
            left = [known_part(part) for part in parts]
            known = tuple(one for one in left if one is not None)
            return Or(known) if len(known) == len(left) else None
    return predicate if is_whole(predicate) else None


def to_arrow(predicate: Predicate) -> pc.Expression:
    """A predicate over top-level columns as an expression that filters rows."""
    match predicate:
        case Comparison(column, op, value):
            return _COMPARISONS[op](pc.field(column), value)
        case OneOf(column, values):
            return pc.field(column).isin(values)
        case IsNull(column):
            return pc.field(column).is_null()
        case Not(inner):
            if isinstance(inner, IsNull):
                return pc.field(inner.column).is_valid()
            return ~to_arrow(inner)
        case And(parts) | Or(parts):
            joined = operator.and_ if isinstance(predicate, And) else operator.or_
            return reduce(joined, map(to_arrow, parts))
    raise ValueError("an expression that was not taken apart filters rows by itself")


def exactly(literal: pa.Scalar, kind: pa.DataType) -> pa.Scalar | None:
    """A literal in a column's type; ``None`` where that differs."""
    if not literal.is_valid or not is_like(literal.type, kind):
        return None
    try:
        value = literal.cast(kind)
        is_same = value.cast(literal.type).equals(literal)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return value if is_same else None  # so never of NaN


def is_like(given: pa.DataType, kind: pa.DataType) -> bool:
    """Whether values are compared as those of a column's type."""
    if given == kind:
        return True
    if pt.is_integer(given):
        return bool(pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind))
    if pt.is_date(given):
        return bool(pt.is_date(kind) or pt.is_timestamp(kind))
    families = (pt.is_floating, pt.is_decimal, pt.is_timestamp, pt.is_time, is_text, is_bytes)
    return any(is_one(given) and is_one(kind) for is_one in families)


# --- which files a predicate may accept ----------------------------------------------------------

# Logic is SQL's, with true, false and null: of a part of a predicate it is asked whether it can be
# true of a row of each file, or whether it can be false, which is what a negation asks.


class _Match(NamedTuple):
    """A row of the match table: how a file's bounds compare.

    ``low`` and ``high`` compare the file's bound with that value; of two, both have to hold, or
    either where ``either``. An unknown bound is any.
    """

    low: Callable[..., pa.Array] | None
    high: Callable[..., pa.Array] | None
    opposite: str
    """The comparison that is true of a number where this one is false."""
    either: bool = False
    of_nan: bool = False
    """Whether it is true of NaN, which no bound covers."""


_MATCHES: Final[Mapping[str, _Match]] = {
    "=": _Match(pc.less_equal, pc.greater_equal, "!="),
    # all values are this one where both bounds are
    "!=": _Match(pc.not_equal, pc.not_equal, "=", either=True, of_nan=True),
    "<": _Match(pc.less, None, ">="),
    "<=": _Match(pc.less_equal, None, ">"),
    ">": _Match(None, pc.greater, "<="),
    ">=": _Match(None, pc.greater_equal, "<"),
}


def can_match(predicate: Predicate, ranges: Mapping[str, ValueRanges], count: int) -> Mask:
    """Return for each file whether a row can match the predicate.

    ``ranges`` are by path; a column that is not there may hold anything.
    """
    return _can_be(True, predicate, ranges, count)


def _can_be(
    wanted: bool, predicate: Predicate, ranges: Mapping[str, ValueRanges], count: int
) -> Mask:
    match predicate:
        case And(parts) | Or(parts):
            of_all = isinstance(predicate, And) is wanted
            masks = [_can_be(wanted, part, ranges, count) for part in parts]
            return reduce(operator.and_ if of_all else operator.or_, masks)
        case Not(inner):
            return _can_be(not wanted, inner, ranges, count)
        case IsNull(column) if column in ranges:
            return ranges[column].may_be_null if wanted else ranges[column].may_have_value
        case OneOf(column, values) if column in ranges and wanted:
            return ranges[column].may_hold(values)
        case Comparison(column) if column in ranges:
            return _can_compare(wanted, predicate, ranges[column])
    # of anything else nothing is known
    return np.ones(count, np.bool_)


def _can_compare(wanted: bool, predicate: Comparison, known: ValueRanges) -> Mask:
    value, stated = predicate.value, _MATCHES[predicate.op]
    if pt.is_floating(value.type) and stated.of_nan is wanted:
        return known.may_have_value
    found = stated if wanted else _MATCHES[stated.opposite]
    tests = ((found.low, known.minimum), (found.high, known.maximum))
    masks = [_holds(test, bounds, value) for test, bounds in tests if test is not None]
    return reduce(operator.or_ if found.either else operator.and_, masks) & known.may_have_value


def _holds(compare: Callable[..., pa.Array], bounds: pa.Array, value: pa.Scalar) -> Mask:
    """Return where a comparison holds, or the bound is unknown."""
    mask: Mask = pc.fill_null(compare(bounds, value), True).to_numpy(zero_copy_only=False)
    return mask
