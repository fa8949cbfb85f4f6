"""A row filter taken apart, for those who decide about files and not about rows.

What cannot be taken apart becomes :class:`Anything`, which excludes nothing; so a filter means at
least as many rows here as it does on rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import pyarrow as pa

MIRRORED: Final = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
"""The comparison that says the same with its sides exchanged."""


@dataclass(frozen=True, slots=True)
class Anything:
    """Whatever it is, it may be true or false of any row."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A column compared with a value that is neither null nor NaN, of the column's type.

    Attributes
    ----------
    column
        Path of the column, with dots.
    op
        One of :data:`MIRRORED`.
    value
        The value.
    """

    column: str
    op: str
    value: pa.Scalar


@dataclass(frozen=True, slots=True)
class OneOf:
    """A column compared with some values; of a null it is false."""

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


def columns_of(predicate: Predicate) -> frozenset[str]:
    """Return the paths of the columns that a predicate says something about."""
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
