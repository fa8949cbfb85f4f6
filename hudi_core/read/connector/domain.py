"""The values that one column may have: ranges, single values, null."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from operator import attrgetter
from typing import Any, Final, Self, TypeAlias

import pyarrow as pa
import pyarrow.types as pt

from hudi_core.errors import SchemaError

Value: TypeAlias = Any
"""A value as it compares: a number, a string, bytes, or the number that a time is stored as."""


@dataclass(frozen=True, slots=True)
class Range:
    """Values between two bounds.

    ``low`` and ``high`` are ``None`` for no bound; ``has_low`` and ``has_high`` are whether the
    bounds are inclusive.
    """

    low: Value | None = None
    high: Value | None = None
    has_low: bool = False
    has_high: bool = False

    @classmethod
    def of(cls, value: Value) -> Self:
        """The range of a single value."""
        return cls(value, value, True, True)

    @property
    def is_single(self) -> bool:
        """Whether it is a single value."""
        return self.has_low and self.has_high and bool(self.low == self.high)

    @property
    def begin(self) -> tuple[Any, ...]:
        """Orders ranges by where they begin, and against :attr:`end`."""
        return (0,) if self.low is None else (1, self.low, not self.has_low)

    @property
    def end(self) -> tuple[Any, ...]:
        """Orders ranges by where they end, and against :attr:`begin`."""
        return (2,) if self.high is None else (1, self.high, self.has_high)

    @property
    def is_empty(self) -> bool:
        """Whether no value is in it."""
        return self.end <= self.begin

    def meets(self, later: Range) -> bool:
        """Whether it and a later range are one range together.

        A range that begins no sooner.
        """
        return later.begin <= self.end

    def intersect(self, other: Range) -> Range:
        """The values in both; it may be empty."""
        first = self if self.begin >= other.begin else other
        last = self if self.end <= other.end else other
        return Range(first.low, last.high, first.has_low, last.has_high)

    def through(self, later: Range) -> Range:
        """The range from its begin to the later one of both ends."""
        last = self if self.end >= later.end else later
        return Range(self.low, last.high, self.has_low, last.has_high)


EVERYTHING: Final = Range()


@dataclass(frozen=True, slots=True)
class Domain:
    """The values that a column may have.

    ``ranges`` are ascending and disjoint. The one range without bounds includes NaN; no other one
    does.
    """

    kind: pa.DataType
    ranges: tuple[Range, ...]
    nulls: bool

    @classmethod
    def of(cls, kind: pa.DataType, ranges: Iterable[Range], *, nulls: bool = False) -> Self:
        """A domain of ranges in any order, which may overlap."""
        found: list[Range] = []
        some = [one for one in ranges if not one.is_empty]
        for one in sorted(some, key=attrgetter("begin")) if len(some) > 1 else some:
            if found and found[-1].meets(one):
                found[-1] = found[-1].through(one)
            else:
                found.append(one)
        return cls(kind, tuple(found), nulls)

    @classmethod
    def all(cls, kind: pa.DataType) -> Self:
        """Every value, and null."""
        return cls(kind, (EVERYTHING,), True)

    @property
    def is_all(self) -> bool:
        """Whether it excludes nothing."""
        return self.nulls and self.has_all_values

    @property
    def has_all_values(self) -> bool:
        """Whether it excludes null at most."""
        return self.ranges == (EVERYTHING,)

    @property
    def is_none(self) -> bool:
        """Whether it excludes everything."""
        return not self.nulls and not self.ranges

    @property
    def singles(self) -> tuple[Value, ...] | None:
        """Its values, where these are single ones; else ``None``."""
        if not self.ranges or not all(one.is_single for one in self.ranges):
            return None
        return tuple(one.low for one in self.ranges)

    def intersect(self, other: Domain) -> Domain:
        """What both allow."""
        found, mine, others = [], iter(self.ranges), iter(other.ranges)
        left, right = next(mine, None), next(others, None)
        while left is not None and right is not None:
            both = left.intersect(right)
            if not both.is_empty:
                found.append(both)
            if left.end < right.end:
                left = next(mine, None)
            else:
                right = next(others, None)
        return Domain(self.kind, tuple(found), self.nulls and other.nulls)

    def union(self, other: Domain) -> Domain:
        """What one of them allows."""
        ranges = (*self.ranges, *other.ranges)
        return Domain.of(self.kind, ranges, nulls=self.nulls or other.nulls)

    def other_values(self, *, nulls: bool) -> Domain:
        """The values that it excludes."""
        if not self.ranges:
            return Domain(self.kind, (EVERYTHING,), nulls)
        first, last = self.ranges[0], self.ranges[-1]
        gaps = [
            Range(one.high, two.low, not one.has_high, not two.has_low)
            for one, two in pairwise(self.ranges)
        ]
        if first.low is not None:
            gaps.append(Range(None, first.low, False, not first.has_low))
        if last.high is not None:
            gaps.append(Range(last.high, None, not last.has_high, False))
        return Domain.of(self.kind, gaps, nulls=nulls)

    def scalar(self, value: Value) -> pa.Scalar:
        """A value of it as Arrow has it."""
        return scalar_of(value, self.kind)

    def to_json(self) -> dict[str, Any]:
        """What :meth:`from_json` reads; JSON does not hold the column's type."""
        document: dict[str, Any] = {"nulls": self.nulls}
        singles = self.singles
        if singles is not None:
            document["values"] = [_to_json(value) for value in singles]
        else:
            document["ranges"] = [
                [_to_json(one.low), _to_json(one.high), one.has_low, one.has_high]
                for one in self.ranges
            ]
        return document

    @classmethod
    def from_json(cls, document: Any, kind: pa.DataType) -> Self:
        """The domain of a column of some type."""
        if "values" in document:
            ranges = [Range.of(_from_json(value, kind)) for value in document["values"]]
        else:
            ranges = [
                Range(_from_json(low, kind), _from_json(high, kind), bool(has_low), bool(has_high))
                for low, high, has_low, has_high in document["ranges"]
            ]
        if not isinstance(document["nulls"], bool):
            raise TypeError("nulls is no boolean")
        return cls.of(kind, ranges, nulls=document["nulls"])


def has_order(kind: pa.DataType) -> bool:
    """Whether ranges of a type are known here."""
    return bool(
        pt.is_integer(kind)
        or pt.is_boolean(kind)
        or pt.is_float32(kind)
        or pt.is_float64(kind)
        or pt.is_decimal(kind)
        or pt.is_string(kind)
        or pt.is_large_string(kind)
        or pt.is_binary(kind)
        or pt.is_large_binary(kind)
        or pt.is_fixed_size_binary(kind)
        or _counts_time(kind)
    )


def value_of(scalar: pa.Scalar) -> Value:
    """A scalar, not null, as it compares."""
    kind = scalar.type
    if not has_order(kind):
        raise SchemaError(
            f"Values of the type {kind} are not compared in the predicate of a connector",
            "Leave the condition out, and filter the rows that come.",
            type=str(kind),
        )
    return scalar.value if _counts_time(kind) else scalar.as_py()


def is_nan(value: Value) -> bool:
    """Whether a value is no number."""
    return isinstance(value, float) and math.isnan(value)


def scalar_of(value: Value, kind: pa.DataType) -> pa.Scalar:
    """The scalar of a value, of some type."""
    return array_of([value], kind)[0]


def array_of(values: Sequence[Value], kind: pa.DataType) -> pa.Array:
    """The array of some values, of some type."""
    if _counts_time(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.array(values, width).cast(kind)
    return pa.array(values, kind)


def _counts_time(kind: pa.DataType) -> bool:
    return bool(pt.is_timestamp(kind) or pt.is_date(kind) or pt.is_time(kind))


def _to_json(value: Value | None) -> Any:
    match value:
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case Decimal():
            return str(value)
        case float() if not math.isfinite(value):
            return repr(value)
    return value


def _from_json(value: Any, kind: pa.DataType) -> Value | None:
    if value is None:
        return None
    if not has_order(kind):
        raise ValueError(f"values of the type {kind} have no order")
    if pt.is_floating(kind):
        found: Value = float(value)
    elif pt.is_decimal(kind):
        found = Decimal(value)
    elif pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_fixed_size_binary(kind):
        found = base64.b64decode(value, validate=True)
    else:
        found = value
    # one of another type is an error here, not where rows are read
    return value_of(scalar_of(found, kind))
