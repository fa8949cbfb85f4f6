"""What conditional writes make of joined rows; pure.

Rows come joined: the columns of the table, of the source, or of both; where the stored row is; and
whether there is a source row. Each of them goes to the first clause that is for such rows and whose
condition is true. What comes out are the columns of the table after the change, and what is to
happen to the stored row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_core.errors import SchemaError
from hudi_core.model.ranges import Mask
from hudi_core.rows.staging import true_mask
from hudi_core.schema.arrow_types import children, is_text
from hudi_core.schema.casting import cast_array

FILE: Final = "_hoodie_change_file"
"""Column of joined and staged rows: the ordinal of the file that holds the stored row."""
ROW: Final = "_hoodie_change_row"
"""Column of joined and staged rows: the position of the stored row in its file."""
SOURCE: Final = "_hoodie_change_source"
"""Column of joined rows: not null where there is a source row."""
KIND: Final = "_hoodie_change_kind"
"""Column of staged rows: a :class:`ChangeKind`."""
PLACE: Final = (pa.field(FILE, pa.int32()), pa.field(ROW, pa.int64()))
STAGED: Final = (*PLACE, pa.field(KIND, pa.int8()))
"""What staged rows of a change have beside the columns of the table."""


class ChangeKind(IntEnum):
    """What becomes of a stored row."""

    INSERT = 0
    """There is none: the row is new."""
    UPDATE = 1
    """Another one takes its place in its file."""
    MOVE = 2
    """Another one takes its place, in the partition that its columns say."""
    DELETE = 3


class Met(Enum):
    """Which rows a clause is for."""

    BOTH = "matched"
    SOURCE = "not matched"
    TARGET = "not matched by source"


@dataclass(frozen=True, slots=True)
class Clause:
    """One ``WHEN ... THEN ...``.

    Null counts as false in ``condition``; ``None`` is always true. ``values`` has all columns of
    the table, over the joined columns; none for deletes. ``assigned`` are those that an update does
    not take from the stored row as they are.
    """

    met: Met
    kind: ChangeKind
    condition: pc.Expression | None = None
    values: Mapping[str, pc.Expression] = field(default_factory=dict)
    assigned: frozenset[str] = frozenset()


def decide(joined: pa.Table, clauses: Sequence[Clause], staged: pa.Schema) -> pa.Table:
    """Return the rows that change, each as it becomes.

    ``joined`` has the columns :data:`FILE`, :data:`ROW` and :data:`SOURCE`. ``staged`` has the
    columns of the table, none for deletes alone, and :data:`STAGED`.
    """
    stored, sourced = (true_mask(joined.column(name).is_valid()) for name in (FILE, SOURCE))
    left = {Met.BOTH: stored & sourced, Met.SOURCE: ~stored, Met.TARGET: ~sourced}
    pieces = [staged.empty_table()]
    for clause in clauses:
        positions = np.flatnonzero(left[clause.met])
        if not len(positions):
            continue
        rows = joined.take(pa.array(positions))
        if clause.condition is not None:
            chosen = holds(rows, clause.condition)
            positions, rows = positions[chosen], rows.filter(pa.array(chosen))
        left[clause.met][positions] = False
        if len(positions):
            pieces.append(_changed(rows, clause, staged))
    return pa.concat_tables(pieces)


def holds(rows: pa.Table, condition: pc.Expression) -> Mask:
    """Return of which rows a condition is true."""
    return true_where(project(rows, {"holds": condition}).column("holds"))


def true_where(answers: pa.ChunkedArray) -> Mask:
    """Return where a condition is true; null counts as false."""
    if pt.is_null(answers.type):
        return np.zeros(len(answers), bool)
    if not pt.is_boolean(answers.type):
        raise SchemaError(
            f"A condition of a conditional write is neither true nor false, but {answers.type}",
            "Compare it with something.",
            given=str(answers.type),
        )
    found: Mask = true_mask(answers)
    return found


def _changed(rows: pa.Table, clause: Clause, staged: pa.Schema) -> pa.Table:
    values = project(rows, clause.values)
    kind = pa.array(np.full(rows.num_rows, int(clause.kind), np.int8))
    own = {FILE: rows.column(FILE), ROW: rows.column(ROW), KIND: kind}
    columns = [
        own[one.name]
        if one.name in own
        else assigned(values.column(one.name), one)
        if one.name in clause.values
        else pa.nulls(rows.num_rows, one.type)
        for one in staged
    ]
    return pa.table(columns, schema=staged)


def project(rows: pa.Table, values: Mapping[str, pc.Expression]) -> pa.Table:
    """Return the values of expressions over the columns of some rows."""
    if not values:
        return pa.table({})
    from pyarrow import acero  # noqa: PLC0415 - it imports pyarrow.dataset, which imports pandas

    steps = [
        acero.Declaration("table_source", acero.TableSourceNodeOptions(rows)),
        acero.Declaration("project", acero.ProjectNodeOptions([*values.values()], [*values])),
    ]
    try:
        # one thread keeps the rows in their order
        return acero.Declaration.from_sequence(steps).to_table(use_threads=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        reason = str(error).split("\n", 1)[0].split(" in ", 1)[0]
        shown = ", ".join(f"{name} = {value}" for name, value in values.items())
        raise SchemaError(
            f"An expression of a conditional write does not fit its rows: {reason}",
            f"The expressions are {shown}.",
            reason=reason,
        ) from error


def assigned(values: pa.ChunkedArray, column: pa.Field) -> pa.Array:
    """Return values as a column holds them, assigned as in SQL.

    Numbers become other numbers where nothing but digits after the point of a float is lost; dates
    become times; strings, booleans and numbers do not become each other.
    """
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if isinstance(array, pa.ChunkedArray):  # of no chunks
        array = pa.array([], array.type)
    given, wanted = array.type, column.type
    if array.null_count == len(array):
        array = pa.nulls(len(array), wanted)
    elif _casts(given, wanted):
        array = _cast(array, column)
    elif _are_incompatible(given, wanted):
        raise SchemaError(
            f"A value for column {column.name} has the type {given}, and the column is {wanted}",
            "Cast it in the expression, as with CAST(... AS ...).",
            column=column.name,
            given=str(given),
            stored=str(wanted),
        )
    _require_whole(array.type, wanted, column.name)
    return cast_array(array, column, column.name)


def _require_whole(given: pa.DataType, wanted: pa.DataType, path: str) -> None:
    """Refuse structs that lack columns: null would replace stored values."""
    below = {suffix: one.type for suffix, one in children(given)}
    for suffix, one in children(wanted):
        if suffix not in below:
            if not (pt.is_struct(given) and pt.is_struct(wanted)):
                return  # of two kinds, which the cast refuses
            raise SchemaError(
                f"A value for column {path} lacks the column {path}.{suffix}",
                "Give it, with null where there is no value.",
                column=f"{path}.{suffix}",
            )
        _require_whole(below[suffix], one.type, f"{path}.{suffix}")


def _casts(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether SQL assigns one type to a column of another."""
    if given == wanted or children(given) or children(wanted):
        return False
    if is_number(wanted):
        return is_number(given)
    if pt.is_timestamp(wanted):
        return bool(
            pt.is_date(given) or (pt.is_timestamp(given) and bool(given.tz) == bool(wanted.tz))
        )
    if is_text(wanted):
        return is_text(given)
    return bool(pt.is_date(wanted) and (pt.is_date(given) or pt.is_timestamp(given)))


def _are_incompatible(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of one type are none of another, whatever they are."""
    if given == wanted or pt.is_dictionary(given) or pt.is_run_end_encoded(given):
        return False
    if children(given) or children(wanted):
        return not (children(given) and children(wanted))
    return any(
        test(given) != test(wanted) for test in (is_number, is_text, pt.is_boolean, pt.is_temporal)
    )


def is_number(kind: pa.DataType) -> bool:
    """Whether SQL compares and assigns values of a type as numbers."""
    return bool(pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind))


def _cast(array: pa.Array, column: pa.Field) -> pa.Array:
    wanted = column.type
    try:
        if pt.is_floating(wanted):
            return array.cast(wanted, safe=False)
        if pt.is_integer(array.type) and pt.is_decimal(wanted):
            return cast_array(array, column.with_nullable(True), column.name)
        if pt.is_floating(array.type) and pt.is_decimal(wanted):
            # by the shortest text of the number: 0.1 is 0.1
            return array.cast(pa.string()).cast(wanted)
        if pt.is_date(wanted) and pt.is_timestamp(array.type) and array.type.tz:
            array = array.cast(pa.timestamp(array.type.unit))  # Arrow keeps the time in UTC
        return array.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaError(
            f"A value for column {column.name} does not fit its type {wanted} ({error})",
            "Round or cast it in the expression.",
            column=column.name,
            stored=str(wanted),
        ) from error
