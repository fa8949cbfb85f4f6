"""A file's columns aligned with the columns of the table.

A column keeps its field id when it is renamed, and a new column of an old name has a new one. So
columns are matched by id where the file carries ids, and by name where it does not: in files of
other writers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from hudi_core.schema.arrow_types import FIELD_ID, children, field_id, is_list, walk, with_children
from hudi_core.schema.casting import null_mask, with_values
from hudi_core.schema.widening import widened

_AVRO_SCHEMA: Final = b"parquet.avro.schema"


def stored_fields(schema: pa.Schema) -> list[pa.Field]:
    """Return a data file's columns, with the table's field ids.

    Ids that are not of the table are dropped.

    ``schema`` is as Arrow reads it from the file, its metadata included: the Avro schema that base
    files carry shows whose ids they are. Ids that another writer gave, for a table of another kind,
    have nothing to do with those of this table.
    """
    if b'"field-id"' in (schema.metadata or {}).get(_AVRO_SCHEMA, b""):
        return list(schema)
    return with_ids(schema, {})


def ids_of(fields: Sequence[pa.Field]) -> Mapping[str, int]:
    """Return the ids of fields, nested ones too, by path."""
    return {path: number for path, field in walk(fields) if (number := field_id(field)) is not None}


def with_ids(fields: Iterable[pa.Field], ids: Mapping[str, int]) -> list[pa.Field]:
    """Return fields with the ids of their paths, and no others."""
    return [_with_ids(field, field.name, ids) for field in fields]


def shared_schema(schema: pa.Schema) -> pa.Schema:
    """A data file's schema without what is about its own rows.

    Files of one commit have it in common, and :func:`stored_fields` needs no more.
    """
    avro = (schema.metadata or {}).get(_AVRO_SCHEMA)
    return schema.with_metadata(None if avro is None else {_AVRO_SCHEMA: avro})


def counterparts(stored: Iterable[pa.Field], wanted: Iterable[pa.Field]) -> list[pa.Field | None]:
    """Return for each table column the file's column that holds it.

    ``None`` where its rows are null.
    """
    known, by_name, by_id = list(stored), dict[str, int](), dict[int, int]()
    without_id: dict[str, int] = {}
    for at, field in enumerate(known):
        number = field_id(field)
        by_name.setdefault(field.name, at)
        if number is None:
            without_id.setdefault(field.name, at)
        else:
            by_id.setdefault(number, at)
    found: list[pa.Field | None] = []
    for field in wanted:
        number = field_id(field)
        if number is None:
            place = by_name.get(field.name)
        else:
            place, other = by_id.get(number), without_id.get(field.name)
            place = other if place is None or (other is not None and other < place) else place
        found.append(None if place is None else known[place])
    return found


def counterpart(stored: Iterable[pa.Field], wanted: pa.Field) -> pa.Field | None:
    """Return the file's column that holds a table column.

    ``None`` where its rows are null.
    """
    return counterparts(stored, [wanted])[0]


def same_by_name(stored: Sequence[pa.Field], wanted: Iterable[pa.Field]) -> bool:
    """Whether matching columns by name finds the right ones, nested included."""
    names = {field.name for field in stored}
    fields = list(wanted)
    for field, found in zip(fields, counterparts(stored, fields), strict=True):
        if found is None:
            if field.name in names:
                return False
        elif found.name != field.name or not _same_below(found.type, field.type):
            return False
    return True


def align(rows: pa.Table, stored: Sequence[pa.Field], schema: pa.Schema) -> pa.Table:
    """Return a file's rows in the columns and types of ``schema``.

    ``stored`` are the fields of ``rows``, from :func:`stored_fields`. Columns that the file lacks
    are null. Errors are Arrow's own.
    """
    return aligned(rows, counterparts(stored, schema), schema)


def aligned(rows: pa.Table, stored: Sequence[pa.Field | None], schema: pa.Schema) -> pa.Table:
    """The same, where the :func:`counterparts` of the schema are known."""
    columns = []
    for field, found in zip(schema, stored, strict=True):
        if found is None:
            columns.append(pa.nulls(rows.num_rows, field.type))
            continue
        column = rows.column(found.name)
        if column.type != field.type or not _same_below(found.type, field.type):
            chunks = [_aligned(chunk, found.type, field.type) for chunk in column.chunks]
            column = pa.chunked_array(chunks, field.type)
        columns.append(column)
    return pa.table(columns, schema=schema)


def _same_below(stored: pa.DataType, wanted: pa.DataType) -> bool:
    if not pt.is_nested(stored):
        return True
    if pt.is_struct(stored) and pt.is_struct(wanted):
        return same_by_name(list(stored), list(wanted))
    return all(
        _same_below(mine.field.type, theirs.field.type)
        for mine, theirs in zip(children(stored), children(wanted), strict=False)
    )


def _aligned(array: pa.Array, stored: pa.DataType, wanted: pa.DataType) -> pa.Array:
    if pt.is_struct(stored) and pt.is_struct(wanted):
        return _aligned_struct(array, list(stored), wanted)
    both_maps = pt.is_map(stored) and pt.is_map(wanted)
    if both_maps or (is_list(stored) and is_list(wanted)):
        pairs = [
            (mine.field.type, theirs.field.type)
            for mine, theirs in zip(children(stored), children(wanted), strict=True)
        ]
        return with_values(array, lambda values, at: _aligned(values, *pairs[at]), wanted)
    return array if array.type == wanted else widened(array, wanted)


def _aligned_struct(
    array: pa.StructArray, stored: Sequence[pa.Field], wanted: pa.DataType
) -> pa.Array:
    columns = []
    for field in wanted:
        found = counterpart(stored, field)
        if found is None:
            columns.append(pa.nulls(len(array), field.type))
        else:
            position = next(n for n, each in enumerate(stored) if each is found)
            columns.append(_aligned(array.field(position), found.type, field.type))
    return pa.StructArray.from_arrays(columns, fields=list(wanted), mask=null_mask(array))


def _with_ids(field: pa.Field, path: str, ids: Mapping[str, int]) -> pa.Field:
    kind, had = field.type, field.metadata or {}
    below = children(kind)
    number = ids.get(path)
    own = {} if number is None else {FIELD_ID: str(number).encode()}
    if not below and had == own:
        return field
    if below:
        fields = [_with_ids(child, f"{path}.{suffix}", ids) for suffix, child in below]
        kind = with_children(kind, fields)
    metadata = {key: value for key, value in had.items() if key != FIELD_ID} | own
    return pa.field(field.name, kind, field.nullable, metadata or None)
