"""Rows of several sources as one table, of all their columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_core.errors import SchemaError
from hudi_core.schema.absence import (
    Lacking,
    absences,
    absent_values,
    with_absence,
    without_absence,
)
from hudi_core.schema.arrow_types import (
    LIST_ELEMENT,
    MAP_VALUE,
    children,
    is_bytes,
    is_list,
    is_text,
)
from hudi_core.schema.casting import map_entries

_Numbers = np.ndarray[Any, np.dtype[np.int64]]


def joined(
    tables: Sequence[pa.Table], sources: Sequence[str], row: Callable[[int], str] | None
) -> pa.Table:
    """Return the rows of all tables, with all their columns.

    Types grow where no value changes: whole numbers become decimals, or floats where these have
    them exactly.

    ``row`` gives a message the name of a row by its number among all; with ``None``, columns that
    rows lack are null and not marked. There must be at least one table.
    """
    if len(tables) == 1:
        return tables[0]
    plain = [without_absence(table) for table in tables]
    schema = _common_schema(plain, sources)
    rows = _promoted(plain, sources, schema)
    if row is None:
        return rows
    lacking: dict[str, Lacking] = {}
    start = 0
    for table in tables:
        for path, numbers, named in _lacking(table, schema):
            first = named or row(start + int(numbers[0]))
            one = lacking.setdefault(path, Lacking(np.zeros(rows.num_rows, dtype=bool), first))
            one.rows[start + numbers] = True
        start += table.num_rows
    return with_absence(rows, lacking)


def _common_schema(tables: Sequence[pa.Table], sources: Sequence[str]) -> pa.Schema:
    common: dict[str, pa.Field] = {}
    for table, source in zip(tables, sources, strict=True):
        for field in table.schema:
            own = pa.field(field.name, field.type)
            before = common.setdefault(field.name, own)
            if before.type == own.type:
                continue
            try:
                both = pa.unify_schemas(
                    [pa.schema([before]), pa.schema([own])], promote_options="permissive"
                ).field(0)
            except pa.ArrowException:
                both = None
            if both is None or any(_loses(one.type, both.type) for one in (before, own)):
                raise SchemaError(
                    f"Column {field.name} has the type {own.type} in {source}, and {before.type} "
                    "before it",
                    "Bring them to one type.",
                    column=field.name,
                    source=source,
                )
            common[field.name] = both
    return pa.schema(list(common.values()))


def _loses(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a type that Arrow calls wider lacks values of another."""
    if children(given):
        wide = {suffix: one.type for suffix, one in children(wanted)}
        return any(_loses(one.type, wide[suffix]) for suffix, one in children(given))
    return (pt.is_decimal(given) and pt.is_floating(wanted)) or (
        is_text(given) and is_bytes(wanted)
    )


def _promoted(tables: Sequence[pa.Table], sources: Sequence[str], schema: pa.Schema) -> pa.Table:
    none = schema.empty_table()
    whole = []
    for table, source in zip(tables, sources, strict=True):
        try:
            whole.append(pa.concat_tables([none, table], promote_options="permissive"))
        except pa.ArrowException as error:
            raise SchemaError(
                f"Numbers in {source} would change in the wider type of their column ({error})",
                "Bring the columns to one type.",
                source=source,
            ) from error
    return pa.concat_tables(whole)


def _lacking(table: pa.Table, schema: pa.Schema) -> Iterator[tuple[str, _Numbers, str | None]]:
    """Columns that rows lack, which rows, and a name of the first."""
    every = np.arange(table.num_rows)
    found = absences(table)
    absent = absent_values(table) if found else {}
    for one in found:
        yield one.path, np.flatnonzero(absent[one.path]), one.row
    for field in schema if table.num_rows else ():
        at = table.schema.get_field_index(field.name)
        if at < 0:
            yield field.name, every, None
        elif table.schema.field(at).type != field.type:
            column = table.column(at).combine_chunks()
            for path, numbers in _missing(column, field.type, field.name, every):
                yield path, np.unique(numbers), None


def _missing(
    array: pa.Array, wanted: pa.DataType, path: str, rows: _Numbers
) -> Iterator[tuple[str, _Numbers]]:
    """Nested columns of a wider type that values lack, and which rows."""
    if pt.is_struct(wanted) and pt.is_struct(array.type):
        valid = array.is_valid()
        held, rows = array.filter(valid), rows[valid.to_numpy(zero_copy_only=False)]
        places = {one.name: at for at, one in enumerate(array.type)}
        for one in wanted:
            if one.name in places:
                below = held.field(places[one.name])
                yield from _missing(below, one.type, f"{path}.{one.name}", rows)
            elif len(rows):
                yield f"{path}.{one.name}", rows
    elif pt.is_map(wanted) and pt.is_map(array.type):
        entries = map_entries(array)
        within = rows[pc.list_parent_indices(entries).to_numpy()]
        yield from _missing(
            entries.flatten().field(1), wanted.item_type, f"{path}.{MAP_VALUE}", within
        )
    elif is_list(wanted) and is_list(array.type):
        within = rows[pc.list_parent_indices(array).to_numpy()]
        yield from _missing(array.flatten(), wanted.value_type, f"{path}.{LIST_ELEMENT}", within)
