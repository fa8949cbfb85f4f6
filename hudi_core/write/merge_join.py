"""How the rows of a merge are matched, and their columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_core.errors import SchemaError
from hudi_core.read.filters import Filter
from hudi_core.read.predicate import And, Comparison, Predicate, one_of
from hudi_core.rows.changes import PLACE, SOURCE, Met
from hudi_core.schema.table_schema import META_COLUMNS
from hudi_core.write.expressions import Text
from hudi_core.write.sql_text import SqlText, Visible

_FEW: Final = 1000


@dataclass(frozen=True, slots=True)
class JoinedColumns:
    """Columns of joined rows: of the table and of the source.

    ``target`` and ``source`` have their own names; in joined rows these begin with the prefixes,
    ``target.`` and ``source.`` or other aliases.
    """

    target: pa.Schema
    source: pa.Schema
    target_prefix: str
    source_prefix: str

    @classmethod
    def of(
        cls, target: pa.Schema, source: pa.Schema, target_prefix: str, source_prefix: str
    ) -> JoinedColumns:
        """Join columns."""
        twice = sorted({name for name in source.names if source.names.count(name) > 1})
        if twice:
            raise SchemaError(
                f"The source has several columns named {', '.join(map(repr, twice))}",
                "Rename or drop all but one.",
                columns=twice,
            )
        plain = pa.schema([pa.field(one.name, one.type) for one in source])
        return cls(target, plain, target_prefix, source_prefix)

    @property
    def target_names(self) -> Mapping[str, str]:
        """Columns of the table by their names in joined rows."""
        return {self.target_prefix + name: name for name in self.target.names}

    @property
    def source_names(self) -> Mapping[str, str]:
        """Columns of the source by their names in joined rows."""
        return {self.source_prefix + name: name for name in self.source.names}

    @property
    def schema(self) -> pa.Schema:
        """The joined columns, and where the rows are."""
        own = [one.with_name(self.target_prefix + one.name) for one in self.target]
        given = [one.with_name(self.source_prefix + one.name) for one in self.source]
        return pa.schema([*own, *given, *PLACE, pa.field(SOURCE, pa.bool_())])

    def seen_by(self, met: Met) -> pa.Schema:
        """The columns that a clause for such rows may name."""
        own = [one.with_name(self.target_prefix + one.name) for one in self.target]
        given = [one.with_name(self.source_prefix + one.name) for one in self.source]
        fields = (own if met is not Met.SOURCE else []) + (given if met is not Met.TARGET else [])
        return pa.schema(fields)

    def visible(self, met: Met) -> Visible:
        """What SQL of a clause for such rows may name."""
        prefixes = {}
        if met is not Met.SOURCE:
            prefixes[self.target_prefix[:-1]] = self.target_prefix
        if met is not Met.TARGET:
            prefixes[self.source_prefix[:-1]] = self.source_prefix
        return Visible(self.seen_by(met), prefixes)

    def needed(self, meta: Collection[str]) -> JoinedColumns:
        """These columns without meta columns of the table that are not named."""
        fields = [one for one in self.target if one.name in meta or one.name not in META_COLUMNS]
        return replace(self, target=pa.schema(fields))


@dataclass(frozen=True, slots=True)
class Join:
    """Which rows of the table and of the source match.

    ``text`` is ``None`` where the condition is just the ``pairs`` of equal columns; ``is_whole``:
    it says nothing but these. ``filter`` is what it says of the table's rows alone.
    """

    pairs: tuple[tuple[str, str], ...]
    text: SqlText | None
    is_whole: bool
    filter: Filter | None

    def columns(self, joined: JoinedColumns) -> frozenset[str]:
        """Columns of the table that it is about."""
        if self.text is None:
            return frozenset(target for target, _ in self.pairs)
        names = joined.target_names
        return frozenset(names[name] for name in self.text.columns if name in names)

    def sql(self, joined: JoinedColumns, dialect: str) -> str:
        """The condition over joined rows."""
        if self.text is not None:
            return self.text.sql(dialect)
        mark = '"' if dialect == "duckdb" else "`"
        sides = (
            (f"{joined.target_prefix}{one}", f"{joined.source_prefix}{other}")
            for one, other in self.pairs
        )
        twice = mark * 2
        quoted = (
            tuple(f"{mark}{name.replace(mark, twice)}{mark}" for name in pair) for pair in sides
        )
        return " AND ".join(f"{one} = {other}" for one, other in quoted)


@dataclass(frozen=True, slots=True)
class MergePlan:
    """What an engine needs to join the rows of a merge."""

    source: Any
    joined: JoinedColumns
    join: Join
    wanted: frozenset[Met]
    texts: tuple[Text, ...]


def within(
    column: pa.Field, values: pa.ChunkedArray | pa.Array, *, as_bounds: bool = False
) -> Predicate | None:
    """Range of a column that equals given values; ``None`` if unknown.

    A column of another type than the values is not used. ``as_bounds``: the values are only the
    least and the greatest.
    """
    same = values.type == column.type or (pt.is_integer(values.type) and pt.is_integer(column.type))
    if not same or pt.is_floating(column.type) or pt.is_nested(column.type):
        return None
    known = pc.unique(values.drop_null())
    bounds = pc.min_max(known) if as_bounds or len(known) > _FEW else None
    if as_bounds and not len(known):
        return None
    try:
        if bounds is None:
            return one_of(column.name, known.cast(column.type))
        low, high = bounds["min"].cast(column.type), bounds["max"].cast(column.type)
    except pa.ArrowInvalid:
        return None
    return And((Comparison(column.name, ">=", low), Comparison(column.name, "<=", high)))
