"""The predicates that engines push down, column by column.

A predicate is one :class:`~hudi_core.read.connector.domain.Domain` for each column that it limits,
and a row is wanted whose columns are all within (Trino's ``TupleDomain``). Filters that are not of
this form, such as an "or" of two columns, are refused, never weakened.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from hudi_core.errors import SchemaError
from hudi_core.model.ranges import Mask, ValueRanges
from hudi_core.read.connector.domain import (
    EVERYTHING,
    Domain,
    Range,
    array_of,
    is_nan,
    value_of,
)
from hudi_core.read.filters import Filter, RowFilter, require_columns, to_filter
from hudi_core.read.predicate import (
    And,
    Anything,
    Comparison,
    IsNull,
    Not,
    OneOf,
    Or,
    Predicate,
    all_of,
    any_of,
    can_match,
    one_of,
)

_BOUNDS: Final[Mapping[str, tuple[bool, bool]]] = {
    "<": (False, False),
    "<=": (False, True),
    ">": (True, False),
    ">=": (True, True),
}
"""Whether the value of a comparison is the lower bound, and belongs to the range."""


@dataclass(frozen=True, slots=True)
class TupleDomain:
    """The wanted rows.

    ``domains`` is ``None`` where no row is wanted; a column that may be anything is not among them.
    """

    domains: Mapping[str, Domain] | None = field(default_factory=dict)

    @classmethod
    def of_domains(cls, domains: Mapping[str, Domain]) -> Self:
        """The rows whose columns are all within."""
        if any(domain.is_none for domain in domains.values()):
            return cls(None)
        return cls({name: domains[name] for name in sorted(domains) if not domains[name].is_all})

    @classmethod
    def of(cls, row_filter: RowFilter | Filter | None, schema: pa.Schema) -> Self:
        """The rows that a filter accepts, exactly.

        A filter that single columns cannot express raises ``SchemaError``; nothing is approximated.
        """
        wanted = to_filter(row_filter, schema)
        if wanted is None:
            return cls()
        return cls.of_domains(_domains(wanted.predicate, schema))

    @property
    def is_none(self) -> bool:
        """Whether no row is wanted."""
        return self.domains is None

    @property
    def is_all(self) -> bool:
        """Whether every row is wanted."""
        return self.domains is not None and not self.domains

    @property
    def columns(self) -> frozenset[str]:
        """The columns that it limits."""
        return frozenset(self.domains or ())

    def intersect(self, other: TupleDomain) -> TupleDomain:
        """The rows that both want."""
        if self.domains is None or other.domains is None:
            return TupleDomain(None)
        return TupleDomain.of_domains(_both(self.domains, other.domains))

    def to_filter(self, schema: pa.Schema) -> Filter | None:
        """The same as a filter; ``None`` where every row is wanted.

        The caller has checked that any row is wanted; else ``ValueError``.
        """
        if self.domains is None:
            raise ValueError("no row is wanted")
        require_columns(sorted(self.domains), schema)
        return Filter.of(_wanted(self.domains)) if self.domains else None

    def overlaps(self, ranges: Mapping[str, ValueRanges], count: int) -> Mask:
        """Mask of the files, or partitions, that may hold a wanted row.

        A column that is not in ``ranges`` may hold anything.
        """
        if self.domains is None:
            return np.zeros(count, np.bool_)
        wanted = _wanted(self.domains) if self.domains else Anything()
        return can_match(wanted, ranges, count)

    def to_document(self) -> Any:
        """What :meth:`from_document` reads, as JSON knows it."""
        if self.domains is None:
            return None
        return {name: domain.to_json() for name, domain in self.domains.items()}

    @classmethod
    def from_document(cls, document: Any, schema: pa.Schema) -> Self:
        """The wanted rows of a schema."""
        if document is None:
            return cls(None)
        try:
            if not isinstance(document, dict):
                raise TypeError("it is no object")
            require_columns(list(document), schema)
            return cls.of_domains(
                {
                    name: Domain.from_json(one, schema.field(name).type)
                    for name, one in document.items()
                }
            )
        except (ValueError, TypeError, KeyError, ArithmeticError, pa.ArrowException) as error:
            raise SchemaError(
                f"{str(document)[:200]} is no predicate of the columns: {error}",
                "Give what to_json made.",
            ) from error

    def to_json(self) -> str:
        """The same as a string."""
        return json.dumps(self.to_document(), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str, schema: pa.Schema) -> Self:
        """The wanted rows that a string of :meth:`to_json` means; see :meth:`from_document`."""
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise SchemaError(
                f"The predicate {text[:200]!r} is no JSON", "Give what to_json made."
            ) from error
        return cls.from_document(document, schema)


ALL: Final = TupleDomain()
"""Every row."""
NONE: Final = TupleDomain(None)
"""No row."""


def _both(one: Mapping[str, Domain], other: Mapping[str, Domain]) -> dict[str, Domain]:
    found = dict(one)
    for name, domain in other.items():
        found[name] = found[name].intersect(domain) if name in found else domain
    return found


# --- filters to domains --------------------------------------------------------------------------


def _domains(predicate: Predicate, schema: pa.Schema) -> dict[str, Domain]:
    match predicate:
        case And(parts):
            return reduce(_both, [_domains(part, schema) for part in parts])
        case Or(parts):
            return _one_of(parts, schema)
        case Not(inner):
            return _negated(inner, schema)
        case Comparison() | OneOf() | IsNull():
            return {predicate.column: _domain(predicate, schema)}
    raise _not_by_column("a part of it is no comparison of a column with a value")


def _negated(predicate: Predicate, schema: pa.Schema) -> dict[str, Domain]:
    match predicate:
        case Not(inner):
            return _domains(inner, schema)
        case And(parts):
            return _one_of([Not(part) for part in parts], schema)
        case Or(parts):
            return reduce(_both, [_negated(part, schema) for part in parts])
        case IsNull(column):
            return {column: Domain(_kind(column, schema), (EVERYTHING,), nulls=False)}
        case Comparison(column) | OneOf(column):
            kind = _kind(column, schema)
            if pt.is_floating(kind):
                raise _not_by_column(f"NaN is in no range, and it would be among what {column} is")
            # of a null a comparison is null, and so is its negation; "one of" is false
            inside = _domain(predicate, schema)
            return {column: inside.other_values(nulls=isinstance(predicate, OneOf))}
    raise _not_by_column("a part of it is no comparison of a column with a value")


def _one_of(parts: Any, schema: pa.Schema) -> dict[str, Domain]:
    each = [_domains(part, schema) for part in parts]
    names = {name for one in each for name in one}
    if len(names) != 1:
        raise _not_by_column(f"it is an 'or' of {', '.join(sorted(names))}")
    [name] = names
    return {name: reduce(Domain.union, [one[name] for one in each])}


def _domain(predicate: Comparison | OneOf | IsNull, schema: pa.Schema) -> Domain:
    kind = _kind(predicate.column, schema)
    match predicate:
        case IsNull():
            return Domain(kind, (), nulls=True)
        case OneOf(_, values):
            found = [value_of(value) for value in values.cast(kind)]
            if any(map(is_nan, found)):
                raise _not_by_column("NaN is in no range")
            return Domain.of(kind, [Range.of(value) for value in found])
        case Comparison(_, op, scalar):
            value = value_of(scalar.cast(kind))
            if op == "!=":
                return _negated(Comparison(predicate.column, "=", scalar), schema)[predicate.column]
            if is_nan(value):
                return Domain(kind, (), nulls=False)
            if op == "=":
                return Domain(kind, (Range.of(value),), nulls=False)
            is_low, closed = _BOUNDS[op]
            one = Range(value, None, closed) if is_low else Range(None, value, False, closed)
            return Domain(kind, (one,), nulls=False)


def _kind(column: str, schema: pa.Schema) -> pa.DataType:
    if column not in schema.names:
        raise _not_by_column(f"{column} is within another column")
    kind: pa.DataType = schema.field(column).type
    return kind


def _not_by_column(reason: str) -> SchemaError:
    return SchemaError(
        f"The filter is none of ranges and values of single columns: {reason}",
        "Give conditions that each concern one column, and filter the rows that come by the rest.",
        reason=reason,
    )


# --- domains to filters --------------------------------------------------------------------------


def _wanted(domains: Mapping[str, Domain]) -> Predicate:
    return all_of(*(_predicate(name, domain) for name, domain in domains.items()))


def _predicate(name: str, domain: Domain) -> Predicate:
    if not domain.ranges:
        return IsNull(name)
    if domain.has_all_values:
        return Not(IsNull(name))
    singles = [one.low for one in domain.ranges if one.is_single]
    parts: list[Predicate] = [
        _within(name, domain, one) for one in domain.ranges if not one.is_single
    ]
    if len(singles) == 1:
        parts.append(Comparison(name, "=", domain.scalar(singles[0])))
    elif pt.is_floating(domain.kind):
        # -0.0 equals 0.0, and is not among values with 0.0 in them
        parts += [Comparison(name, "=", domain.scalar(value)) for value in singles]
    elif singles:
        parts.append(_any_of(name, domain, singles))
    if domain.nulls:
        parts.append(IsNull(name))
    return any_of(*parts)


def _any_of(name: str, domain: Domain, singles: list[Any]) -> Predicate:
    is_one = one_of(name, array_of(singles, domain.kind))
    # the bounds let a reader skip row groups by their statistics, which it cannot do for a set
    low, high = domain.scalar(singles[0]), domain.scalar(singles[-1])
    return And((Comparison(name, ">=", low), Comparison(name, "<=", high), is_one))


def _within(name: str, domain: Domain, one: Range) -> Predicate:
    parts: list[Predicate] = []
    if one.low is not None:
        parts.append(Comparison(name, ">=" if one.has_low else ">", domain.scalar(one.low)))
    if one.high is not None:
        parts.append(Comparison(name, "<=" if one.has_high else "<", domain.scalar(one.high)))
    return all_of(*parts)
