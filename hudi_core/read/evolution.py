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
        without = schema.remove(schema.get_field_index(name)).empty_table()
        try:
            without.filter(expression)
        except pa.ArrowInvalid:
            found.add(name)
    return frozenset(found)


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
