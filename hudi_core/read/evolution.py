"""Whether a filter can be pushed down into a file that was written under an earlier schema.

Arrow brings every column it returns to the type of the table. A filter that it pushes down is
evaluated earlier, against the statistics and values as the file has them; that is the same for
wider numbers, and fails for other changes of type, such as from number to text.
"""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_core.read.predicate import And, Anything, Comparison, IsNull, Not, OneOf, Or, Predicate
from hudi_core.read.substrait import predicate_of_expression
from hudi_core.schema.arrow_types import children


def can_push_down(expression: pc.Expression, stored: pa.Schema, wanted: pa.Schema) -> bool:
    """Return whether a filter means the same on a file's own columns as on the table's.

    Parameters
    ----------
    expression
        A filter that fits ``wanted``.
    stored
        Schema of the file; columns it lacks are null.
    wanted
        Schema of the table.
    """
    changed = [
        field.name
        for field in wanted
        if (index := stored.get_field_index(field.name)) >= 0
        and not _compares_alike(stored.field(index).type, field.type)
    ]
    return not referenced_columns(expression, wanted, changed)


def accepts_nan(expression: pc.Expression, schema: pa.Schema) -> bool:
    """Return whether a filter may accept a row because a value is NaN.

    Arrow leaves out row groups by their statistics, which do not tell of NaN: it would leave out
    the rows that such a filter accepts.

    Parameters
    ----------
    expression
        A filter that fits ``schema``.
    schema
        Schema of the table.
    """
    floating = [field.name for field in schema if _has_floats(field.type)]
    if not referenced_columns(expression, schema, floating):
        return False
    predicate = predicate_of_expression(expression, schema)
    return _may_accept(predicate, schema, is_negated=False)


def referenced_columns(
    expression: pc.Expression, schema: pa.Schema, among: Collection[str]
) -> frozenset[str]:
    """Return which of some columns an expression depends on.

    An expression does not tell its columns, but it cannot be bound to a schema without one of them.

    Parameters
    ----------
    expression
        An expression that fits ``schema``.
    schema
        Schema of the rows.
    among
        Names of the columns in question.
    """
    found = set()
    for name in among:
        without = schema.remove(schema.get_field_index(name))
        try:
            _bind(expression, without)
        except pa.ArrowInvalid:
            found.add(name)
    return frozenset(found)


def _bind(expression: pc.Expression, schema: pa.Schema) -> None:
    """Bind an expression to a schema; ``ArrowInvalid`` where it has none of its columns."""
    try:
        # what it returns is not wanted: it runs nothing
        expression.to_substrait(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, ImportError):
        # a column is missing, or Substrait has no word for something
        schema.empty_table().filter(expression)


def _may_accept(predicate: Predicate, schema: pa.Schema, is_negated: bool) -> bool:
    match predicate:
        case Not():
            return _may_accept(predicate.inner, schema, not is_negated)
        case And() | Or():
            return any(_may_accept(part, schema, is_negated) for part in predicate.parts)
        case Comparison():
            # NaN is different from every number, and nothing else
            return pt.is_floating(predicate.value.type) and (predicate.op == "!=") != is_negated
        case OneOf():
            return is_negated and pt.is_floating(predicate.values.type)
        case IsNull():
            return False
        case Anything():
            return True


def _has_floats(kind: pa.DataType) -> bool:
    return pt.is_floating(kind) or any(_has_floats(child.type) for _, child in children(kind))


def _compares_alike(stored: pa.DataType, wanted: pa.DataType) -> bool:
    if stored == wanted:
        return True
    if pt.is_struct(stored) and pt.is_struct(wanted):
        return all(
            _compares_alike(stored.field(index).type, field.type)
            for field in wanted
            if (index := stored.get_field_index(field.name)) >= 0
        )
    # of lists and maps a filter can only ask whether they are null
    if (pt.is_list(stored) and pt.is_list(wanted)) or (pt.is_map(stored) and pt.is_map(wanted)):
        return True
    if pt.is_integer(stored):
        return bool(pt.is_integer(wanted) or pt.is_float64(wanted))
    if pt.is_decimal(stored):
        return bool(pt.is_decimal(wanted))
    return bool(pt.is_floating(stored) and pt.is_floating(wanted))
