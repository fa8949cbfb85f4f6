"""Schema evolution: by incoming rows, or on request.

Pure functions from one schema to the next. Columns keep their field ids; new ones get ids that no
column ever had.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.types as pt

from hudi_core.errors import SchemaError
from hudi_core.schema.arrow_types import (
    LIST_ELEMENT,
    MAP_KEY,
    MAP_VALUE,
    children,
    is_list,
    normalise_field,
    normalise_type,
    require_case_distinct,
    require_distinct,
    walk,
    with_children,
)
from hudi_core.schema.casting import can_promote, way_out
from hudi_core.schema.table_schema import (
    IS_DELETED,
    META_COLUMNS,
    TableSchema,
    require_free_names,
)

_INNER = (f".{LIST_ELEMENT}", f".{MAP_KEY}", f".{MAP_VALUE}")


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """A requested schema change.


    Paths name columns as they were before the change.

    ``add`` are columns that may be null; a dotted name adds to a struct. ``rename`` gives by path
    the new name of the column alone, without its path.
    """

    add: tuple[pa.Field, ...] = ()
    rename: Mapping[str, str] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    promote: Mapping[str, pa.DataType] = field(default_factory=dict)
    widely: bool = False


# --- changes that rows bring along -----------------------------------------------------------


def merged_schema(
    table: TableSchema,
    incoming: pa.Schema,
    fixed: Collection[str],
    *,
    fill_missing: bool,
    widely: bool = False,
) -> TableSchema:
    """Return the table's schema after writing rows of another schema.

    Columns the table lacks are added at the end, and may be null; types grow as
    :mod:`hudi_core.schema.casting` lets rows make them. Columns that the rows lack stay.

    ``incoming``: meta columns and the delete flag are ignored. ``fixed`` columns (keys, partitions,
    ordering) keep their types. With ``fill_missing`` nested columns that the rows lack become null;
    otherwise they are an error.
    """
    known = set(table.names)
    ignored = {*META_COLUMNS, IS_DELETED} - known
    rows = [each for each in incoming if each.name not in ignored]
    require_distinct([each.name for each in rows], "The batch of rows")
    require_free_names([each.name for each in rows if each.name not in known])
    merge = _Merge(frozenset(fixed), fill_missing, widely)
    merged = merge.fields(list(table.arrow), rows, "")
    return table if merged == list(table.arrow) else table.with_fields(merged)


@dataclass(frozen=True, slots=True)
class _Merge:
    fixed: frozenset[str]
    fill_missing: bool
    widely: bool

    def fields(
        self, stored: Sequence[pa.Field], given: Sequence[pa.Field], prefix: str
    ) -> list[pa.Field]:
        by_name = {each.name: each for each in given}
        known = {each.name for each in stored}
        merged = []
        for each in stored:
            path = prefix + each.name
            if each.name in by_name:
                kind = self.kind(each.type, by_name[each.name].type, path)
                merged.append(each.with_type(kind))
                continue
            if prefix and not (self.fill_missing and each.nullable):
                _raise_missing(path)
            merged.append(each)
        new = [
            normalise_field(each, prefix + each.name).with_nullable(True)
            for each in given
            if each.name not in known
        ]
        where = f"The struct {prefix[:-1]}" if prefix else "The table"
        names = [each.name for each in (*merged, *new)]
        require_case_distinct([each.name for each in new], names, where)
        return merged + new

    def kind(self, stored: pa.DataType, given: pa.DataType, path: str) -> pa.DataType:
        if pt.is_dictionary(given) or pt.is_run_end_encoded(given):
            return self.kind(stored, given.value_type, path)
        if path in self.fixed or pt.is_null(given):
            return stored
        if pt.is_struct(stored) and pt.is_struct(given):
            require_distinct([each.name for each in given], f"The struct {path} of the rows")
            merged = self.fields(list(stored), list(given), f"{path}.")
            return stored if merged == list(stored) else pa.struct(merged)
        both_maps = pt.is_map(stored) and pt.is_map(given)
        if both_maps or (is_list(stored) and is_list(given)):
            pairs = zip(children(stored), children(given), strict=True)
            below = [
                mine.field.with_type(
                    self.kind(mine.field.type, theirs.field.type, f"{path}.{mine.suffix}")
                )
                for mine, theirs in pairs
            ]
            same = below == [mine.field for mine in children(stored)]
            return stored if same else with_children(stored, below)
        if children(given) or children(stored):
            return stored  # refused with both types when the rows are cast
        wanted = normalise_type(given, path)
        grows = can_promote(stored, wanted, on_write=True, widely=self.widely)
        return wanted if grows else stored


def _raise_missing(path: str) -> NoReturn:
    raise SchemaError(
        f"The rows lack the column {path}, which the table has",
        "Add it, with nulls where there is no value, or set "
        "hoodie.write.set.null.for.missing.columns=true where it may be null. "
        "Table.alter(drop=...) takes a column out of the table.",
        column=path,
    )


# --- changes that are asked for --------------------------------------------------------------


def altered_schema(
    table: TableSchema, change: SchemaChange, fixed: Mapping[str, str]
) -> TableSchema:
    """Return the schema of a table after a change.

    ``fixed`` says by name what a column is used for that may not be dropped, renamed or retyped.
    """
    _require_unfixed(table, change, fixed)
    fields = _Alter(change).fields(list(table.arrow), "")
    if not fields:
        raise SchemaError("No column would be left", "Keep one, or drop the table.")
    known = set(table.names)
    require_free_names([each.name for each in fields if each.name not in known])
    changed = table.with_fields(fields)
    if changed == table:
        raise SchemaError(
            "The change leaves the table as it is", "Say what to add, rename, drop or promote."
        )
    return changed


@dataclass(frozen=True, slots=True)
class _Alter:
    change: SchemaChange

    def fields(self, stored: Sequence[pa.Field], parent: str) -> list[pa.Field]:
        changed = []
        for each in stored:
            path = _below(parent, each.name)
            if path not in self.change.drop:
                name = self.change.rename.get(path, each.name)
                changed.append(each.with_name(name).with_type(self.kind(each.type, path)))
        for new in self.change.add:
            above, _, name = new.name.rpartition(".")
            if above == parent:
                changed.append(normalise_field(new.with_name(name), new.name))
        where = f"The struct {parent}" if parent else "The table"
        names = [each.name for each in changed]
        require_distinct(names, where)
        before = {each.name for each in stored}
        require_case_distinct([name for name in names if name not in before], names, where)
        for each in changed:
            normalise_field(each, _below(parent, each.name))  # refuses names Avro cannot hold
        return changed

    def kind(self, stored: pa.DataType, path: str) -> pa.DataType:
        if path in self.change.promote:
            return _promoted(stored, self.change.promote[path], path, widely=self.change.widely)
        if pt.is_struct(stored):
            fields = self.fields(list(stored), path)
            if not fields:
                raise SchemaError(
                    f"The struct {path} would have no columns left",
                    "Drop the struct itself.",
                    column=path,
                )
            return pa.struct(fields)
        below = children(stored)
        if not below:
            return stored
        return with_children(
            stored, [each.with_type(self.kind(each.type, f"{path}.{name}")) for name, each in below]
        )


def _promoted(stored: pa.DataType, wanted: Any, path: str, *, widely: bool) -> pa.DataType:
    kind = normalise_type(wanted, path)
    if kind == stored or (not children(stored) and can_promote(stored, kind, widely=widely)):
        return kind
    raise SchemaError(
        f"Column {path} has the type {stored}, which cannot become {kind} without losing values or "
        "readers",
        f"Add a column of the new type, fill it, and drop this one{way_out(stored, kind)}.",
        column=path,
        stored=str(stored),
        wanted=str(kind),
    )


def _require_unfixed(table: TableSchema, change: SchemaChange, fixed: Mapping[str, str]) -> None:
    known = dict(walk(table.arrow))
    touched: list[tuple[str, str]] = []
    touched += [(path, "renamed") for path in change.rename]
    touched += [(path, "dropped") for path in change.drop]
    touched += [(path, "promoted") for path in change.promote]
    for path, done in touched:
        if path not in known:
            _raise_unknown(table, path)
        inside = next((name for name in fixed if name == path or name.startswith(f"{path}.")), None)
        if inside is not None:
            raise SchemaError(
                f"Column {path} cannot be {done}: {'it' if inside == path else inside} is "
                f"{fixed[inside]}",
                "Make a new table and write the rows there.",
                column=path,
            )
        if path.endswith(_INNER) and (done != "promoted" or path.endswith(MAP_KEY)):
            raise SchemaError(
                f"{path} cannot be {done}: it is no column of its own",
                "Change the column that holds it.",
                column=path,
            )
    # a column may get a new name and a new type at once, and nothing else twice
    twice = {path for path in change.drop if change.drop.count(path) > 1}
    twice |= {path for path in change.drop if path in change.rename or path in change.promote}
    if twice:
        raise SchemaError(
            f"Column {min(twice)} is to be dropped and is named again",
            "Name a column that goes once.",
            column=min(twice),
        )
    for new in change.add:
        _require_new(table, known, new)


def _require_new(table: TableSchema, known: Mapping[str, pa.Field], new: pa.Field) -> None:
    above = new.name.rpartition(".")[0]
    if above and above not in known:
        _raise_unknown(table, above)
    if above and not pt.is_struct(known[above].type):
        raise SchemaError(
            f"Column {new.name} cannot be added: {above} is no struct",
            "Name a struct, or its place in a list or map, such as tags.list.element.",
            column=new.name,
        )
    if not new.nullable:
        raise SchemaError(
            f"Column {new.name} cannot be added as required: the rows of the table have no value",
            "Let it be null.",
            column=new.name,
        )


def _raise_unknown(table: TableSchema, path: str) -> NoReturn:
    names = ", ".join(found for found, _ in walk(table.arrow))
    raise SchemaError(f"There is no column {path}", f"The columns are: {names}.", column=path)


def _below(parent: str, name: str) -> str:
    return f"{parent}.{name}" if parent else name
