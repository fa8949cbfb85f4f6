"""Row filters, resolved against the columns of a table.

A filter is an expression object or a sequence of plain conditions; it is never text that is
parsed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time
from decimal import Decimal
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.errors import SchemaError
from hudi_core.read.foreign import (
    predicate_of_expression,
    referenced_columns,
    written_form,
)
from hudi_core.read.predicate import (
    MIRRORED,
    And,
    Comparison,
    IsNull,
    Not,
    Predicate,
    columns_of,
    one_of,
    to_arrow,
)
from hudi_core.schema.arrow_types import repeated_names

Condition: TypeAlias = tuple[str, str, Any]
"""Column name, operator (one of :data:`OPERATORS`) and value.

``is null`` and ``is not null`` ignore the value.
"""
RowFilter: TypeAlias = pc.Expression | Sequence[Condition]
"""What callers give: an Arrow expression, or conditions that all have to hold."""

OPERATORS: Final = (*MIRRORED, "==", "in", "not in", "is null", "is not null")
"""The operators of a condition. As in SQL, a null value satisfies none of them but ``is null``."""
_MAX_CONDITIONS: Final = 1_000
"""Arrow recurses into a chain of "and", and its threads have small stacks."""


@dataclass(frozen=True, slots=True, eq=False)
class Filter:
    """Wanted rows of one schema.

    ``predicate`` accepts at least the wanted rows, and decides about partitions and files;
    ``expression`` accepts exactly these. ``columns`` are top-level.
    """

    predicate: Predicate
    expression: pc.Expression
    columns: frozenset[str]

    @classmethod
    def of(cls, predicate: Predicate) -> Filter:
        """The rows that a predicate over top-level columns accepts."""
        return cls(predicate, to_arrow(predicate), columns_of(predicate))

    def __and__(self, other: Filter) -> Filter:
        return Filter(
            And((self.predicate, other.predicate)),
            self.expression & other.expression,
            self.columns | other.columns,
        )


def require_computable(expression: pc.Expression) -> None:
    """Refuse an expression that Arrow has no stack for.

    Refused are expressions of too many calls, and those that name a column by its number.
    """
    written_form(expression)


def to_filter(row_filter: RowFilter | Filter | None, schema: pa.Schema) -> Filter | None:
    """A filter that is known to fit a schema.

    ``None`` where all rows are wanted.

    Values of conditions are converted to the type of their column, text included: ``("day", ">=",
    "2026-01-31")`` compares dates where ``day`` is a date column.

    An empty sequence is no filter; a :class:`Filter` is returned as it is.
    """
    if row_filter is None or isinstance(row_filter, Filter):
        return row_filter
    if isinstance(row_filter, pc.Expression):
        predicate = predicate_of_expression(row_filter, schema)  # refuses what is too deep
        _require_fit(row_filter, schema)
        columns = referenced_columns(row_filter, schema, schema.names)
        return Filter(predicate, row_filter, columns)
    if isinstance(row_filter, str | bytes | Mapping) or not isinstance(row_filter, Collection):
        kind = type(row_filter)
        raise SchemaError(
            f"The filter {row_filter!r} is "
            + ("a string" if kind is str else f"a {kind.__module__}.{kind.__qualname__}"),
            "Give a pyarrow.compute expression, or a list of conditions, each of which is a "
            "tuple (column, operator, value). polars and DuckDB filter what hudi_core.polars and "
            "hudi_core.duckdb return by expressions of their own.",
            filter=str(row_filter),
        )
    if not row_filter:
        return None
    if len(row_filter) > _MAX_CONDITIONS:
        raise SchemaError(
            f"The filter has {len(row_filter):,} conditions, and {_MAX_CONDITIONS:,} is the most",
            "Ask for one of many values by (column, 'in', values), or filter the rows that come.",
            conditions=len(row_filter),
        )
    parts = tuple(_predicate(each, schema) for each in row_filter)
    found = Filter.of(parts[0] if len(parts) == 1 else And(parts))
    _require_fit(found.expression, pa.schema([schema.field(name) for name in found.columns]))
    return found


def _require_fit(expression: pc.Expression, schema: pa.Schema) -> None:
    """Refuse an expression that cannot be evaluated, or is no boolean."""
    try:
        schema.empty_table().filter(expression)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        reason = str(error).split(" in ", 1)[0].split("\n", 1)[0]
        raise SchemaError(
            f"The filter {expression} does not fit the table: {reason}",
            f"The table has the columns {', '.join(schema.names)}.",
            filter=str(expression),
            reason=reason,
        ) from error


def require_columns(columns: Sequence[str] | None, schema: pa.Schema) -> None:
    """Refuse a projection that names columns a schema lacks, or one twice."""
    given = list(columns or ())
    twice = repeated_names(given)
    if twice:
        raise SchemaError(
            f"The columns {', '.join(map(repr, twice))} are asked for twice",
            "Ask for each column once.",
            columns=tuple(twice),
        )
    known = set(schema.names)
    unknown = [name for name in given if name not in known]
    if unknown:
        raise SchemaError(
            f"The table has no column {', '.join(map(repr, unknown))}",
            f"Its columns are {', '.join(schema.names)}.",
            columns=tuple(unknown),
        )


def _predicate(condition: Condition, schema: pa.Schema) -> Predicate:
    try:
        name, op, value = condition
    except (TypeError, ValueError) as error:
        raise SchemaError(
            f"{condition!r} is not a condition",
            "A condition is a tuple (column, operator, value).",
            condition=condition,
        ) from error
    require_columns([name], schema)
    op = " ".join(str(op).lower().split())
    kind = schema.field(name).type
    if op == "==":
        op = "="
    if op in MIRRORED:
        return Comparison(name, op, _literal(value, kind, condition))
    match op:
        case "is null":
            return IsNull(name)
        case "is not null":
            return Not(IsNull(name))
        case "in" | "not in":
            if isinstance(value, str | bytes) or not isinstance(value, Collection) or not value:
                raise SchemaError(
                    f"The filter {condition!r} needs a list of values",
                    f"Write ({name!r}, {op!r}, [value, ...]).",
                    condition=condition,
                )
            values = [_literal(each, kind, condition).as_py() for each in value]
            found = one_of(name, pa.array(values, kind))
            return found if op == "in" else And((Not(found), Not(IsNull(name))))
    raise SchemaError(
        f"{op!r} in the filter {condition!r} is not an operator",
        f"Use one of {', '.join(OPERATORS)}.",
        condition=condition,
    )


def _literal(value: object, kind: pa.DataType, condition: Condition) -> pa.Scalar:
    if value is None:
        raise SchemaError(
            f"The filter {condition!r} compares with null, which no value satisfies",
            f"Write ({condition[0]!r}, 'is null', None).",
            condition=condition,
        )
    try:
        return _converted(value, kind)
    except (
        pa.ArrowInvalid,
        pa.ArrowTypeError,
        pa.ArrowNotImplementedError,
        TypeError,
        ValueError,
        OverflowError,
    ) as error:
        raise SchemaError(
            f"The value of the filter {condition!r} does not fit its column, which is {kind}",
            "Give a value of that type.",
            condition=condition,
        ) from error


def _converted(value: object, kind: pa.DataType) -> pa.Scalar:
    """Return ``value`` safely cast to a column's type.

    So 3.5 is never 3.
    """
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    match value:
        case str() if pa.types.is_timestamp(kind):
            at = datetime.fromisoformat(value)
            # a string without a zone means UTC, as in query times
            aware = at if at.tzinfo else at.replace(tzinfo=UTC)
            return pa.scalar(aware if kind.tz else aware.replace(tzinfo=None), kind)
        case float() if pa.types.is_decimal(kind):
            return pa.scalar(Decimal(repr(value)), kind)
        case str():
            return pa.scalar(value).cast(kind)
        case _ if is_text or isinstance(value, bool) != pa.types.is_boolean(kind):
            raise TypeError(f"{type(value).__name__} is not {kind}")
        case datetime() if pa.types.is_date(kind) and value.time() != time.min:
            raise TypeError("a date has no time of day")
        case int():
            return pa.scalar(value, kind)
        case _:
            return pa.scalar(value).cast(kind)
