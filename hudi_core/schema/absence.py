"""Values that rows do not have at all, where others have them.

A row given as a dictionary may lack a name that other rows have. In Arrow every row has every
column, so the rows then carry one column more, :data:`ABSENT`: a struct of booleans, one for each
column that some row lacks, named by its path.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

ABSENT: Final = "_hoodie_absent"
_ROW: Final = b"row"


class Absence(NamedTuple):
    """A column that some rows lack.

    ``path`` is dotted within structs, lists and maps; ``row`` is the first such row, as a message
    names it.
    """

    path: str
    row: str


class Lacking(NamedTuple):
    """The rows that lack a column, and the name of the first."""

    rows: np.ndarray[Any, np.dtype[np.bool_]]
    first: str


def with_absence(table: pa.Table, lacking: Mapping[str, Lacking]) -> pa.Table:
    """Return rows that say which columns they lack."""
    if not lacking:
        return table
    fields = [
        pa.field(path, pa.bool_(), metadata={_ROW: one.first.encode()})
        for path, one in lacking.items()
    ]
    field = pa.field(ABSENT, pa.struct(fields))
    absent = {path: one.rows for path, one in lacking.items()}
    return table.append_column(field, flags_column(absent, field))


def absence_field(rows: Any) -> pa.Field | None:
    """The field of :data:`ABSENT`; ``None`` where rows lack nothing."""
    if not isinstance(rows, pa.Table | pa.RecordBatchReader):
        return None  # a DataFrame
    position = rows.schema.get_field_index(ABSENT)
    field = rows.schema.field(position) if position >= 0 else pa.field(ABSENT, pa.null())
    # one that rows bring has a name that Hudi keeps, and is refused like others
    is_ours = pt.is_struct(field.type) and all(_ROW in (one.metadata or {}) for one in field.type)
    return field if is_ours else None


def absences(rows: Any) -> tuple[Absence, ...]:
    """The columns that some rows lack."""
    field = absence_field(rows)
    if field is None:
        return ()
    return tuple(Absence(one.name, one.metadata[_ROW].decode()) for one in field.type)


def visible_schema(rows: pa.Table | pa.RecordBatchReader) -> pa.Schema:
    """The columns of rows, without :data:`ABSENT`."""
    if absence_field(rows) is None:
        return rows.schema
    return rows.schema.remove(rows.schema.get_field_index(ABSENT))


def without_absence(rows: Any) -> Any:
    """Return rows in which absent values are null."""
    return rows.drop_columns(ABSENT) if absence_field(rows) is not None else rows


def absent_values(rows: pa.Table) -> dict[str, np.ndarray[Any, np.dtype[np.bool_]]]:
    """Return which rows, taken or staged, lack each column, by its path."""
    if ABSENT not in rows.column_names:
        return {}
    column = rows.column(ABSENT)
    return {
        one.name: pc.struct_field(column, [at]).to_numpy() for at, one in enumerate(column.type)
    }


def flags_column(
    absent: Mapping[str, np.ndarray[Any, np.dtype[np.bool_]]], field: pa.Field
) -> pa.StructArray:
    """The column :data:`ABSENT`, of :func:`absent_values`."""
    flags = [pa.array(absent[one.name]) for one in field.type]
    return pa.StructArray.from_arrays(flags, fields=list(field.type))


def flags_of(paths: Collection[str]) -> pa.Field:
    """The field of :data:`ABSENT` for some columns."""
    return pa.field(ABSENT, pa.struct([pa.field(path, pa.bool_()) for path in paths]))


def narrowed(column: pa.StructArray, kind: pa.StructType) -> pa.StructArray:
    """Return the flags of those columns that a type has."""
    return pa.StructArray.from_arrays([column.field(one.name) for one in kind], fields=list(kind))
