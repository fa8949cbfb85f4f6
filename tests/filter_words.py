"""Filters on columns of every kind, in the words of each engine that has filters."""

from __future__ import annotations

import datetime as dt
import math
import operator
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
"""Of each column its type and the values that rows and filters have."""
KINDS: Final[Mapping[str, tuple[pa.DataType, Sequence[Any]]]] = {
    "n": (pa.int64(), [-3, 0, 1, 2, 5, 2**31 - 1]),
    "f": (pa.float64(), [-math.inf, -1.5, -0.0, 0.0, 0.1, 2.0, math.inf, math.nan]),
    "g": (pa.float32(), [-2.5, -0.0, 0.0, 0.1, 1.0, math.nan]),
    "s": (pa.string(), ["", "a", "ab", "b", "Ä", "it's"]),
    "p": (pa.string(), ["Oslo", "Rome", "a b"]),
    "d": (pa.date32(), [dt.date(1969, 12, 31), dt.date(2026, 1, 1), dt.date(2026, 1, 2)]),
    "t": (
        pa.timestamp("us", "UTC"),
        [EPOCH, EPOCH + dt.timedelta(microseconds=1), EPOCH + dt.timedelta(days=20_000)],
    ),
    "w": (
        pa.timestamp("us"),
        [dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 1, 12), dt.datetime(2026, 1, 2)],  # noqa: DTZ001
    ),
    "m": (pa.decimal128(9, 2), [Decimal("-0.01"), Decimal("0.00"), Decimal("1.50")]),
    "b": (pa.bool_(), [False, True]),
    "late": (pa.float64(), [-0.0, 0.0, 1.0, math.nan]),
}
WORD_COLUMNS = pa.schema([("id", pa.int64()), *((name, kind) for name, (kind, _) in KINDS.items())])
OPERATORS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


# --- filters -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Compared:
    column: str
    op: str
    value: Any


@dataclass(frozen=True)
class Among:
    column: str
    values: tuple[Any, ...]
    """With ``None``, or empty, where the engine can say that."""


@dataclass(frozen=True)
class Null:
    column: str


@dataclass(frozen=True)
class Same:
    """Equal, or both null."""

    column: str
    value: Any


@dataclass(frozen=True)
class Opaque:
    """What nobody pushes down: the rest of a division."""

    rest: int


@dataclass(frozen=True)
class Begins:
    column: str
    text: str


@dataclass(frozen=True)
class Truth:
    """A boolean column as it is."""

    column: str


@dataclass(frozen=True)
class Negated:
    inner: Any


@dataclass(frozen=True)
class Joined:
    word: str
    parts: tuple[Any, ...]


def some_filter(rng: random.Random, depth: int = 3) -> Any:
    """A filter of one to eight conditions."""
    if depth == 0 or rng.random() < 0.35:
        return some_condition(rng)
    if rng.random() < 0.3:
        return Negated(some_filter(rng, depth - 1))
    parts = tuple(some_filter(rng, depth - 1) for _ in range(rng.choice([2, 2, 3])))
    return Joined(rng.choice(["and", "or"]), parts)


def some_condition(rng: random.Random) -> Any:
    # half of the conditions are about floats
    column = rng.choice([*KINDS, "f", "f", "g", "late", "p", "f"])
    _, values = KINDS[column]
    match rng.choice(["compare", "compare", "compare", "among", "among", "null", "same", "other"]):
        case "compare":
            ops = ["=", "!="] if column == "b" else list(OPERATORS)
            return Compared(column, rng.choice(ops), rng.choice(values))
        case "among":
            some = rng.sample(values, rng.randint(0, min(3, len(values))))
            if rng.random() < 0.15:
                some.append(None)
            return Among(column, tuple(some))
        case "null":
            return Null(column)
        case "same":
            return Same(column, rng.choice([None, *values]))
    rest: list[Any] = [Opaque(rng.randint(0, 2)), Begins("s", rng.choice(["a", "Ä"])), Truth("b")]
    return rng.choice(rest)


class Unsaid(Exception):
    """An engine has no words for a filter."""


def some_conditions(rng: random.Random) -> list[tuple[str, str, Any]]:
    """A filter in the words of this project."""
    found: list[tuple[str, str, Any]] = []
    for _ in range(rng.choice([1, 1, 2, 3])):
        one = some_condition(rng)
        match one:
            case Compared(column, op, value):
                found.append((column, op, value))
            case Among(column, values) if values and None not in values:
                found.append((column, rng.choice(["in", "not in"]), list(values)))
            case Null(column) | Same(column, None):
                found.append((column, rng.choice(["is null", "is not null"]), None))
    return found or [("f", "in", [0.0])]


# --- filters in the words of each engine ---------------------------------------------------------


def as_sql(one: Any, dialect: str) -> str:
    """A filter in SQL of ``duckdb`` or ``spark``."""
    match one:
        case Compared(column, op, value):
            return f"{column} {'<>' if op == '!=' else op} {literal(column, value, dialect)}"
        case Among(_, ()):
            raise Unsaid
        case Among(column, values):
            return f"{column} IN ({', '.join(literal(column, each, dialect) for each in values)})"
        case Null(column):
            return f"{column} IS NULL"
        case Same(column, value):
            text = literal(column, value, dialect)
            if dialect == "spark":
                return f"{column} <=> {text}"
            return f"{column} IS NOT DISTINCT FROM {text}"
        case Opaque(rest):
            return f"id % 3 = {rest}"
        case Begins(column, text):
            return f"{column} LIKE '{text}%'"
        case Truth(column):
            return column
        case Negated(inner):
            return f"NOT ({as_sql(inner, dialect)})"
        case Joined(word, parts):
            return f" {word.upper()} ".join(f"({as_sql(part, dialect)})" for part in parts)
    raise AssertionError(one)


def literal(column: str, value: Any, dialect: str) -> str:
    kind = KINDS[column][0]
    if value is None:
        return "NULL"
    if pa.types.is_floating(kind):
        name = "DOUBLE" if pa.types.is_float64(kind) else "FLOAT"
        return f"CAST('{value!r}' AS {name})"
    if pa.types.is_string(kind):
        doubled = value.replace("'", "\\'" if dialect == "spark" else "''")
        return f"'{doubled}'"
    if pa.types.is_date(kind):
        return f"DATE '{value}'"
    if pa.types.is_timestamp(kind):
        zoned = kind.tz is not None
        names = {"spark": ("TIMESTAMP_NTZ", "TIMESTAMP"), "duckdb": ("TIMESTAMP", "TIMESTAMPTZ")}
        return f"CAST('{value}' AS {names[dialect][zoned]})"
    return str(value).upper() if pa.types.is_boolean(kind) else str(value)


def as_polars(one: Any) -> pl.Expr:
    match one:
        case Compared(column, op, value):
            found: pl.Expr = OPERATORS[op](pl.col(column), polars_literal(column, value))
            return found
        case Among(column, values):
            return pl.col(column).is_in(pl.Series(values, dtype=polars_type(column)))
        case Null(column):
            return pl.col(column).is_null()
        case Same(column, value):
            return pl.col(column).eq_missing(polars_literal(column, value))
        case Opaque(rest):
            return pl.col("id") % 3 == rest
        case Begins(column, text):
            return pl.col(column).str.starts_with(text)
        case Truth(column):
            return pl.col(column)
        case Negated(inner):
            return ~as_polars(inner)
        case Joined(word, parts):
            operation = operator.and_ if word == "and" else operator.or_
            return reduce(operation, map(as_polars, parts))
    raise AssertionError(one)


def polars_type(column: str) -> Any:
    empty = pl.from_arrow(pa.schema([(column, KINDS[column][0])]).empty_table())
    assert isinstance(empty, pl.DataFrame)
    return empty.schema[column]


def polars_literal(column: str, value: Any) -> Any:
    # numbers as users write them, which polars brings to the type of the column
    is_plain = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_plain else pl.lit(value, dtype=polars_type(column))


def as_arrow(one: Any) -> pc.Expression:
    match one:
        case Compared(column, op, value):
            given = pa.scalar(value, KINDS[column][0])
            if isinstance(value, int | float | str) and len(repr(one)) % 2:
                given = value  # as users write it
            return OPERATORS[op](pc.field(column), given)
        case Among(column, values):
            return pc.field(column).isin(pa.array(values, KINDS[column][0]))
        case Null(column):
            return pc.field(column).is_null()
        case Same(column, None):
            return ~pc.field(column).is_valid()
        case Same(column, value):
            # as DuckDB writes its IN
            equal = pc.field(column) == pa.scalar(value, KINDS[column][0])
            return pc.if_else(pc.field(column).is_valid(), equal, pa.scalar(None, pa.bool_()))
        case Opaque(rest):
            return pc.field("id") - pc.field("id") / 3 * 3 == rest
        case Begins(column, text):
            return pc.starts_with(pc.field(column), text)
        case Truth(column):
            return pc.field(column)
        case Negated(inner):
            return ~as_arrow(inner)
        case Joined(word, parts):
            operation = operator.and_ if word == "and" else operator.or_
            return reduce(operation, map(as_arrow, parts))
    raise AssertionError(one)


def as_where(conditions: Sequence[tuple[str, str, Any]]) -> str | None:
    """Conditions as the command line takes them; ``None`` where it has no words."""
    texts = []
    for column, op, value in conditions:
        values = value if isinstance(value, list) else [value]
        if any(isinstance(each, float) and not math.isfinite(each) for each in values):
            return None
        shown = [
            str(each).lower()
            if isinstance(each, bool | int | float)
            else "'" + str(each).replace("'", "''") + "'"
            for each in values
        ]
        right = "" if value is None else f"({', '.join(shown)})" if "in" in op else shown[0]
        texts.append(f"{column} {op} {right}")
    return " AND ".join(texts)


def accepts(row: Mapping[str, Any], condition: tuple[str, str, Any]) -> bool:
    """What a condition means, by the documentation: SQL's null, Arrow's NaN, one zero."""
    column, op, value = condition
    found = row[column]
    if op in ("is null", "is not null"):
        return (found is None) == (op == "is null")
    if found is None:
        return False
    if op in OPERATORS:
        return bool(OPERATORS[op](found, as_stored(column, value)))
    values = [as_stored(column, each) for each in value]
    is_nan = isinstance(found, float) and math.isnan(found)
    is_one = any(math.isnan(each) for each in values) if is_nan else found in values
    return is_one == (op == "in")


def as_stored(column: str, value: Any) -> Any:
    return pa.scalar(value, KINDS[column][0]).as_py()
