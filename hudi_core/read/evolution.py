"""Whether filters can be pushed down to files of older schemas.

Arrow brings every column it returns to the type of the table. A filter that it pushes down is
evaluated earlier, against the statistics and values as the file has them; that is the same for
wider numbers, and fails for other changes of type, such as from number to text.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_core.read.filters import Filter
from hudi_core.read.predicate import And, Anything, Comparison, IsNull, Not, OneOf, Or, Predicate
from hudi_core.schema.arrow_types import children


def can_push_down(condition: Filter, stored: pa.Schema, wanted: pa.Schema) -> bool:
    """Whether a filter means the same on a file's stored columns.

    ``condition`` fits ``wanted``; columns that ``stored`` lacks are null.
    """
    changed = [
        field.name
        for field in wanted
        if (index := stored.get_field_index(field.name)) >= 0
        and not _compares_alike(stored.field(index).type, field.type)
    ]
    return condition.columns.isdisjoint(changed)


def accepts_nan(condition: Filter, schema: pa.Schema) -> bool:
    """Whether a filter may accept a row because of a NaN.

    Arrow leaves out row groups by their statistics, which do not record NaN: it would leave out
    the rows that such a filter accepts.
    """
    floating = [field.name for field in schema if _has_floats(field.type)]
    if condition.columns.isdisjoint(floating):
        return False
    return _may_accept(condition.predicate, is_negated=False)


def _may_accept(predicate: Predicate, is_negated: bool) -> bool:
    match predicate:
        case Not():
            return _may_accept(predicate.inner, not is_negated)
        case And() | Or():
            return any(_may_accept(part, is_negated) for part in predicate.parts)
        case Comparison():
            # NaN is different from every number, and nothing else
            return pt.is_floating(predicate.value.type) and (predicate.op == "!=") != is_negated
        case OneOf():
            floats = pt.is_floating(predicate.values.type)
            return floats and (is_negated or bool(pc.any(pc.is_nan(predicate.values)).as_py()))
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
