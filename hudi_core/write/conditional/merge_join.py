"""How the rows of a merge are matched, and their columns."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_core.config.sql import SqlLimits
from hudi_core.engine.base import Engine
from hudi_core.errors import SchemaError
from hudi_core.meta_client import TableMetaClient
from hudi_core.read.filters import Filter
from hudi_core.read.positions import NumberedFile, PositionScan
from hudi_core.read.predicate import And, Comparison, Predicate, one_of
from hudi_core.read.query import SnapshotQuery
from hudi_core.read.scan import file_scan
from hudi_core.rows.changes import FILE, PLACE, ROW, SOURCE, Met, assigned, is_number
from hudi_core.rows.combine import Positions
from hudi_core.schema.arrow_types import repeated_names
from hudi_core.schema.table_schema import META_COLUMNS
from hudi_core.write.conditional.changes import JoinedRows, numbered, stream
from hudi_core.write.conditional.duckdb_text import DuckDb
from hudi_core.write.conditional.expressions import Text
from hudi_core.write.conditional.sql_text import SqlText, Visible

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
        twice = repeated_names(source.names)
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


# --- conditional merges in this process ----------------------------------------------------------


_NUMBER: Final = "_hoodie_number"
_OTHER: Final = "_hoodie_other"
_NONE: Final = np.empty(0, dtype=np.int64)


def merged_rows(
    _: Engine, client: TableMetaClient, snapshot: SnapshotQuery, merge: MergePlan
) -> JoinedRows:
    """Return the joined rows of a merge.

    The columns that match rows are read of all files that may hold a match; the others of those
    that do, of one file at a time.
    """
    source, joined, join, wanted = merge.source, merge.joined, merge.join, merge.wanted
    rows = source.read_all() if isinstance(source, pa.RecordBatchReader) else source
    plan = snapshot.plan(None, _filter(rows, joined, join, wanted))
    names = join.columns(joined)
    keys = file_scan(client, plan, [name for name in joined.target.names if name in names])
    scan = file_scan(client, plan, joined.target.names)
    places = PositionScan(keys, prefix=joined.target_prefix)
    rows = rows.rename_columns([joined.source_prefix + name for name in rows.column_names])
    parts = numbered(plan.files)
    columns = {one.name: one.guarded("duckdb") for one in merge.texts}

    def tables() -> Iterator[pa.Table]:
        stored = pa.concat_tables([places.output_schema.empty_table(), *map(places.table, parts)])
        with DuckDb(SqlLimits.from_options(client.options)) as database:
            left, right = _matches(stored, rows, joined, join, database)
            whole = PositionScan(scan, prefix=joined.target_prefix)
            found = _Joining(whole, rows, joined, wanted, stored, left, right)
            for some in found.tables(parts):
                if some.num_rows:
                    yield database.computed(some, columns)

    return JoinedRows(stream(tables(), joined.schema), plan.files)


@dataclass(frozen=True, slots=True)
class _Joining:
    scan: PositionScan
    source: pa.Table
    joined: JoinedColumns
    wanted: frozenset[Met]
    stored: pa.Table
    left: Positions
    right: Positions

    def tables(self, parts: Sequence[NumberedFile]) -> Iterator[pa.Table]:
        """Yield the joined rows, those of the table file by file."""
        numbers = self.stored.column(FILE).to_numpy()
        bounds = np.searchsorted(numbers, np.arange(len(parts) + 1))
        order = np.argsort(self.left, kind="stable")
        left, right = self.left[order], self.right[order]
        cuts = np.searchsorted(left, bounds)
        for part in parts:
            start, end = int(bounds[part.number]), int(bounds[part.number + 1])
            pairs = slice(cuts[part.number], cuts[part.number + 1])
            if self.wanted - {Met.SOURCE}:
                yield from self._of_file(part, end - start, left[pairs] - start, right[pairs])
        if Met.SOURCE in self.wanted:
            is_new = np.ones(self.source.num_rows, bool)
            is_new[right] = False
            yield self._table(None, self.source.filter(pa.array(is_new)))

    def _of_file(
        self, part: NumberedFile, count: int, places: Positions, others: Positions
    ) -> Iterator[pa.Table]:
        alone = _NONE
        if Met.TARGET in self.wanted:
            alone = np.setdiff1d(np.arange(count), places)
        if Met.BOTH not in self.wanted:
            places = others = _NONE
        positions = np.unique(np.concatenate([places, alone]))
        if not len(positions):
            return
        rows = self.scan.rows_at(part, None if len(positions) == count else positions)
        if len(places):
            some = rows.take(pa.array(np.searchsorted(positions, places)))
            yield self._table(some, self.source.take(pa.array(others)))
        if len(alone):
            yield self._table(rows.take(pa.array(np.searchsorted(positions, alone))), None)

    def _table(self, target: pa.Table | None, source: pa.Table | None) -> pa.Table:
        schema = self.joined.schema
        count = target.num_rows if target is not None else source.num_rows if source else 0
        columns = []
        for one in schema:
            if one.name == SOURCE:
                is_there = source is not None
                columns.append(pa.array([True] * count) if is_there else pa.nulls(count, one.type))
            elif target is not None and one.name in target.column_names:
                columns.append(target.column(one.name))
            elif source is not None and one.name in source.column_names:
                columns.append(source.column(one.name))
            else:
                columns.append(pa.nulls(count, one.type))
        return pa.table(columns, schema=schema)


def _filter(
    rows: pa.Table, joined: JoinedColumns, join: Join, wanted: frozenset[Met]
) -> Filter | None:
    """Rows of the table that may match; ``None`` for all."""
    if Met.TARGET in wanted:
        return None
    found = join.filter
    for target, source in join.pairs:
        known = within(joined.target.field(target), rows.column(source))
        if known is not None:
            found = Filter.of(known) if found is None else found & Filter.of(known)
    return found


def _matches(
    stored: pa.Table, source: pa.Table, joined: JoinedColumns, join: Join, database: DuckDb
) -> tuple[Positions, Positions]:
    """Numbers of the stored and the source rows that match."""
    numbers = [pa.array(np.arange(one.num_rows)) for one in (stored, source)]
    if join.text is not None:
        own = stored.drop_columns([FILE, ROW, SOURCE])
        tables = {
            "t": own.append_column(_NUMBER, numbers[0]),
            "s": source.append_column(_OTHER, numbers[1]),
        }
        sql = join.sql(joined, "duckdb")
        found = database.query(
            f'SELECT t."{_NUMBER}", s."{_OTHER}" FROM t JOIN s ON {sql}',  # noqa: S608 - it is SQL
            tables,
        )
    else:
        names = [str(number) for number in range(len(join.pairs))]
        left, right = {_NUMBER: numbers[0]}, {_OTHER: numbers[1]}
        for name, (target, other) in zip(names, join.pairs, strict=True):
            field = joined.target.field(target)
            sides = [
                stored.column(joined.target_prefix + target),
                source.column(joined.source_prefix + other),
            ]
            if any(pt.is_floating(side.type) for side in sides) and all(
                is_number(side.type) for side in sides
            ):
                left[name], right[name] = _as_floats(sides)
            else:
                left[name], right[name] = sides[0], assigned(sides[1], field)
        found = pa.table(left).join(pa.table(right), names, join_type="inner")
    return tuple(found.column(name).to_numpy().astype(np.int64) for name in (_NUMBER, _OTHER))


def _as_floats(sides: Sequence[pa.ChunkedArray]) -> list[pa.ChunkedArray]:
    """Numbers as SQL compares them, with one zero and one NaN.

    Arrow joins by bytes: to SQL -0.0 is 0.0, and NaN is NaN whatever its bits.
    """
    kind = sides[0].type if sides[0].type == sides[1].type else pa.float64()
    found = []
    for side in sides:
        values = side.cast(kind, safe=False)
        nan, zero = (pa.scalar(value, kind) for value in (math.nan, 0.0))
        found.append(pc.if_else(pc.is_nan(values), nan, pc.add(values, zero)))
    return found
