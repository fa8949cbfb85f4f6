"""Data skipping by expression indexes.

What a filter on a column says of a function of it.

Where a function keeps the order of values, a filter on the column bounds the function's values, and
equal values have equal ones whatever the function. An index may have been made in any time zone, so
what is asked of it is as wide as zones are. Nothing is concluded from a negation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from hudi_core.metadata.expressions import Expression
from hudi_core.metadata.lister import MetadataLister
from hudi_core.model.file_columns import FileColumns
from hudi_core.model.ranges import Mask, ValueRanges
from hudi_core.model.stats import Scalar
from hudi_core.read.matching import can_match
from hudi_core.read.predicate import And, Anything, Comparison, OneOf, Or, Predicate
from hudi_core.schema.arrow_types import is_text

_VALUES: Final = "values"
"""Name of the function's values in a predicate of them."""
_MICROS: Final = {"s": 1_000_000, "ms": 1_000, "us": 1}


def by_expressions(
    predicate: Predicate,
    files: FileColumns,
    columns: Mapping[str, pa.DataType],
    lister: MetadataLister | None,
) -> Mask:
    """Mask of the files that no expression index excludes."""
    found = () if lister is None else lister.expression_ranges(files, columns)
    return may_match(predicate, found, len(files))


def may_match(
    predicate: Predicate, found: Iterable[tuple[Expression, ValueRanges]], count: int
) -> Mask:
    """Mask of the files that may hold a matching row."""
    mask: Mask = np.ones(count, np.bool_)
    for expression, ranges in found:
        mask &= can_match(of_values(predicate, expression), {_VALUES: ranges}, count)
    return mask


def of_values(predicate: Predicate, expression: Expression) -> Predicate:
    """What holds of an expression's values wherever a predicate holds."""
    match predicate:
        case And(parts):
            return And(tuple(of_values(part, expression) for part in parts))
        case Or(parts):
            return Or(tuple(of_values(part, expression) for part in parts))
        case Comparison(column, op, value) if column == expression.column:
            return _of_comparison(op, value, expression)
        case OneOf(column, values) if column == expression.column and len(values):
            each = (_of_comparison("=", value, expression) for value in values)
            return Or(tuple(each))
    return Anything()


def _of_comparison(op: str, value: pa.Scalar, expression: Expression) -> Predicate:
    inner = _internal(value)
    if inner is None or op == "!=":
        return Anything()
    if op == "=" and not expression.zone_micros:
        return _compared("=", expression.value(inner), expression)
    if not expression.is_monotone:
        return Anything()
    parts = []
    if op in ("=", ">", ">="):
        parts.append(_compared(">=", expression.value(expression.shifted(inner, -1)), expression))
    if op in ("=", "<", "<="):
        parts.append(_compared("<=", expression.value(expression.shifted(inner, 1)), expression))
    return And(tuple(parts))


def _compared(op: str, value: Scalar | None, expression: Expression) -> Predicate:
    if value is None:
        return Anything()
    kind = expression.result
    try:
        if pt.is_date32(kind):
            return Comparison(_VALUES, op, pa.scalar(value, pa.int32()).cast(kind))
        if pt.is_timestamp(kind):
            return Comparison(_VALUES, op, pa.scalar(value, pa.int64()).cast(kind))
        return Comparison(_VALUES, op, pa.scalar(value, kind))
    except (OverflowError, pa.ArrowInvalid):
        return Anything()


def _internal(value: pa.Scalar) -> Scalar | None:
    """A value in internal form; ``None`` for other types."""
    kind = value.type
    if pt.is_timestamp(kind):
        return int(value.value) * _MICROS[kind.unit] if kind.unit in _MICROS else None
    if pt.is_date32(kind):
        return int(value.value)
    if is_text(kind):
        return str(value.as_py())
    return int(value.as_py()) if pt.is_integer(kind) else None
