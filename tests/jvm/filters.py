"""Filters, as Spark's SQL spells them and as rows of Python satisfy them.

Evaluated by SQL's three values: a comparison with null is neither true nor false. NaN equals NaN
and is greater than every number, as in Spark.
"""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

Row = Mapping[str, Any]

_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Filter:
    """A condition: its SQL, and whether a row satisfies it; ``None`` where that is unknown."""

    sql: str
    test: Callable[[Row], bool | None]

    def __and__(self, other: Filter) -> Filter:
        def both(row: Row) -> bool | None:
            left, right = self.test(row), other.test(row)
            if left is False or right is False:
                return False
            return None if left is None or right is None else True

        return Filter(f"({self.sql}) and ({other.sql})", both)

    def __or__(self, other: Filter) -> Filter:
        opposite = ~(~self & ~other)
        return Filter(f"({self.sql}) or ({other.sql})", opposite.test)

    def __invert__(self) -> Filter:
        def opposite(row: Row) -> bool | None:
            found = self.test(row)
            return None if found is None else not found

        return Filter(f"not ({self.sql})", opposite)

    def ids(self, rows: Iterable[Row], key: str = "id") -> list[tuple[Any]]:
        """Keys of the rows that satisfy it, in the order in which engines return them."""
        return sorted(((row[key],) for row in rows if self.test(row)), key=repr)


def compare(column: str, sign: str, value: Any, kind: pa.DataType) -> Filter:
    """A comparison of a column, named by its dotted path, with a value of its type."""
    holds = _COMPARISONS[sign]

    def test(row: Row) -> bool | None:
        found = _value(row, column)
        return None if found is None else holds(_ordered(found), _ordered(value))

    return Filter(f"{column} {sign} {literal(value, kind)}", test)


def among(column: str, values: Sequence[Any], kind: pa.DataType) -> Filter:
    """Whether a column has one of several values."""
    wanted = [_ordered(value) for value in values]
    listed = ", ".join(literal(value, kind) for value in values)

    def test(row: Row) -> bool | None:
        found = _value(row, column)
        return None if found is None else _ordered(found) in wanted

    return Filter(f"{column} in ({listed})", test)


def starts_with(column: str, text: str) -> Filter:
    """Whether a text begins with another."""

    def test(row: Row) -> bool | None:
        found = _value(row, column)
        return None if found is None else bool(found.startswith(text))

    return Filter(f"{column} like '{text}%'", test)


def is_null(column: str) -> Filter:
    """Whether a column has no value."""
    return Filter(f"{column} is null", lambda row: _value(row, column) is None)


def is_not_null(column: str) -> Filter:
    """Whether a column has a value."""
    return Filter(f"{column} is not null", lambda row: _value(row, column) is not None)


def literal(value: Any, kind: pa.DataType) -> str:
    """A value as Spark's SQL spells it."""
    match value:
        case bool():
            return str(value).lower()
        case int():
            return f"{value}L" if kind == pa.int64() else str(value)
        case float():
            name = "float" if kind == pa.float32() else "double"
            return f"{name}('{value!r}')"
        case Decimal():
            return f"cast('{value:f}' as decimal({kind.precision},{kind.scale}))"
        case bytes():
            return f"X'{value.hex()}'"
        case str():
            return "'" + "".join(map(_escaped, value)) + "'"
        case dt.datetime():
            zone = "timestamp_ntz" if value.tzinfo is None else "timestamp_ltz"
            text = value.replace(tzinfo=None).isoformat(" ", "microseconds")
            return f"{zone}'{text}{'' if value.tzinfo is None else '+00:00'}'"
        case dt.date():
            return f"date'{value.isoformat()}'"
    raise TypeError(type(value).__name__)


def _escaped(letter: str) -> str:
    return letter if letter.isalnum() or letter in " -_./:" else f"\\u{ord(letter):04x}"


def _value(row: Row, column: str) -> Any:
    found: Any = row
    for name in column.split("."):
        found = None if found is None else found.get(name)
    return found


def _ordered(value: Any) -> Any:
    """Return a value in a form whose order is Spark's."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return value
    return (True, 0) if value != value else (False, value)
