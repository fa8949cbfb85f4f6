"""Columns that decide between versions of a row: ordering, delete marker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_core.base_file.encoded_columns import plain
from hudi_core.config.merge_keys import DeleteMarker
from hudi_core.config.merge_rules import MergeRules
from hudi_core.errors import SchemaError
from hudi_core.rows.merger import ranks, require_rankable
from hudi_core.rows.staging import true_mask
from hudi_core.schema.arrow_types import children
from hudi_core.schema.table_schema import IS_DELETED, TableSchema

Mask = npt.NDArray[np.bool_]

_SEQUENCE: Final = r"^(?P<file>[0-9]{1,18})\.(?P<position>[0-9]{1,18})$"
_SHOWN: Final = 3


def deciding_names(rules: MergeRules) -> set[str]:
    """Top-level columns that order versions of a row or mark deletes."""
    return {IS_DELETED, *(field.split(".")[0] for field in rules.fields)}


def require_merge_columns(rules: MergeRules, schema: TableSchema) -> None:
    """Refuse merge columns that the table lacks or that cannot be compared."""
    for name in rules.order:
        field = schema.field(name)
        if field is None or children(field.type):
            reason = "is no column" if field is None else f"has the type {field.type}"
            raise SchemaError(
                f"The table orders versions of a row by {name}, which {reason}",
                "Add the column with Table.alter(add_columns=...), or create a table with another "
                "ordering field.",
                columns=[name],
            )
        if rules.is_sequence and not pt.is_string(field.type):
            raise SchemaError(
                f"The column {name} has the type {field.type}; it has to hold strings such as "
                "000012.3045, the number of a binlog file and a position in it",
                "Create a table with another payload class.",
                columns=[name],
            )
    if rules.named is not None:
        found = [schema.field(name) for name in rules.order]
        kinds = [field.type for field in found if field is not None]
        require_rankable(rules.named, rules.order, kinds)


def require_delete_markers(rules: MergeRules, schema: TableSchema) -> None:
    """Refuse columns that cannot mark deletes.

    They may be missing: full loads often have none.
    """
    for marker in rules.markers:
        field = schema.field(marker.field)
        if field is not None and not _can_mark(field.type):
            raise SchemaError(
                f"The column {marker.field} marks deletes and has the type {field.type}",
                "Name a column of strings, integers or booleans in hoodie.payload.delete.field.",
                columns=[marker.field],
            )


def _can_mark(kind: pa.DataType) -> bool:
    return bool(pt.is_string(kind) or pt.is_integer(kind) or pt.is_boolean(kind))


def column_of(rows: pa.Table | pa.RecordBatch, name: str) -> pa.ChunkedArray:
    """A column, or a struct field; null where its struct is null."""
    top, *below = name.split(".")
    column = rows.column(top)
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    if not below:
        return pa.chunked_array(chunks, column.type)
    kind = column.type
    for part in below:
        kind = kind.field(part).type
    return pa.chunked_array([pc.struct_field(chunk, below) for chunk in chunks], kind)


def order_values(
    rows: pa.Table, fields: Sequence[str], rules: MergeRules
) -> tuple[pa.ChunkedArray, ...]:
    """The ordering columns; each breaks ties of those before."""
    columns = tuple(column_of(rows, name) for name in fields)
    if rules.named is not None:
        return (ranks(rules.named, fields, [plain(column) for column in columns]),)
    if not rules.is_sequence:
        return columns
    return tuple(part for column in columns for part in _sequence(column))


def _sequence(column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """A sequence string as two columns: file number and position.

    Null where the string is no such pair.
    """
    found = pc.extract_regex(column, _SEQUENCE)
    file, position = (
        pa.chunked_array([pc.struct_field(chunk, [name]) for chunk in found.chunks], pa.string())
        for name in ("file", "position")
    )
    return file.cast(pa.int64()), position.cast(pa.int64())


def require_sequences(rows: pa.Table, rules: MergeRules) -> None:
    """Refuse incoming rows whose place in the source's log is not known."""
    for name in rules.order:
        if not rules.is_sequence or name not in rows.column_names:
            continue
        column = column_of(rows, name)
        unknown = column.filter(_sequence(column)[0].is_null())
        if len(unknown):
            strings = ", ".join(map(repr, pc.unique(unknown).to_pylist()[:_SHOWN]))
            raise SchemaError(
                f"{len(unknown)} rows have no number of a binlog file and a position in {name}, "
                f"but {strings}",
                "Give strings such as 000012.3045.",
                columns=[name],
            )


def marks_deletes(names: Sequence[str], rules: MergeRules) -> bool:
    """Whether rows with these columns may be deletes."""
    tops = {IS_DELETED, *(marker.field.split(".")[0] for marker in rules.markers)}
    return not tops.isdisjoint(names)


def deleted(rows: pa.Table | pa.RecordBatch, rules: MergeRules) -> Mask:
    """The rows that are deletes."""
    names = rows.schema.names
    found = np.zeros(rows.num_rows, dtype=bool)
    if IS_DELETED in names:
        found |= true_mask(rows.column(IS_DELETED))
    for marker in rules.markers:
        if marker.field.split(".")[0] in names:
            found |= true_mask(_marked(column_of(rows, marker.field), marker))
    return found


def _marked(column: pa.ChunkedArray, marker: DeleteMarker) -> pa.ChunkedArray:
    """Where a column has the value that marks deletes."""
    value = marker.value
    if pt.is_string(column.type):
        if marker.any_case:
            return pc.equal(pc.utf8_lower(column), value.lower())
        return pc.equal(column, value)
    if pt.is_boolean(column.type):
        known = {"true": True, "false": False}.get(value)
        return pc.equal(column, pa.scalar(known, pa.bool_()))
    strings = column.cast(pa.string())
    return pc.equal(strings, value)
