"""Changes of stored rows by conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.config.sql import SqlLimits
from hudi_core.config.table import TableConfig
from hudi_core.engine.base import Engine
from hudi_core.engine.choice import changed_frame
from hudi_core.errors import SchemaError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.operation import DELETE, UPSERT, Operation
from hudi_core.model.ranges import Mask
from hudi_core.read.plan import PlannedSlice
from hudi_core.read.positions import HoldsFor, NumberedFile, PositionScan
from hudi_core.read.query import SnapshotQuery
from hudi_core.read.scan import file_scan
from hudi_core.read.spark_frame import splits
from hudi_core.rows.changes import FILE, SOURCE, STAGED, ChangeKind, Clause, Met, decide, true_where
from hudi_core.schema.table_schema import META_COLUMNS, TableSchema
from hudi_core.write.conditional.duckdb_text import DuckDb
from hudi_core.write.conditional.expressions import Compiled, Compiler, Text, Values, Where
from hudi_core.write.conditional.sql_text import Visible


@dataclass(frozen=True, slots=True)
class TableColumns:
    """What the expressions of a change meet.

    ``is_global``: the index makes keys unique in the whole table.
    """

    config: TableConfig
    schema: TableSchema
    is_global: bool

    @property
    def readable(self) -> pa.Schema:
        """All columns that can be read, without metadata."""
        has_meta = self.config.populate_meta_fields
        fields = self.schema.with_meta() if has_meta else self.schema.arrow
        return pa.schema([pa.field(one.name, one.type) for one in fields])

    def require(self, names: Sequence[str]) -> None:
        """Refuse to set columns that the table lacks, or that Hudi keeps."""
        unknown = [name for name in names if name not in self.schema.names]
        if unknown:
            meta = [name for name in unknown if name in META_COLUMNS]
            raise SchemaError(
                f"The column {', '.join(map(repr, unknown))} cannot be set: "
                + ("Hudi keeps it" if meta else "the table has none of that name"),
                f"The columns are {', '.join(self.schema.names)}; of a struct all fields are set "
                "at once, by the name of the column.",
                columns=unknown,
            )

    @property
    def key_columns(self) -> frozenset[str]:
        """Top-level columns of the record key."""
        return frozenset(name.split(".")[0] for name in self.config.record_key_fields)

    @property
    def partition_columns(self) -> frozenset[str]:
        """Top-level columns that say where a row lies."""
        return frozenset(name.split(".")[0] for name in self.config.partition_fields)

    def require_no_keys(self, names: Sequence[str]) -> None:
        """Refuse to change a record key."""
        keys = sorted(self.key_columns.intersection(names))
        if keys:
            raise SchemaError(
                f"The column {', '.join(map(repr, keys))} is part of the record key, and a row "
                "keeps its key",
                "Delete the row and insert it with the other key; in a merge that does not match "
                "by key leave the column out, such as with except_cols.",
                columns=keys,
            )

    def kind_of(self, names: Sequence[str]) -> ChangeKind:
        """What becomes of a row whose columns of these names are set."""
        return ChangeKind.UPDATE if self.partition_columns.isdisjoint(names) else ChangeKind.MOVE


@dataclass(frozen=True, slots=True)
class JoinedRows:
    """The joined rows of a change, for the engine's ``map_input``.

    ``rows`` name ``files`` by number; ``names`` are the columns of joined rows where ``rows`` have
    other names.
    """

    rows: Any
    files: tuple[PlannedSlice, ...]
    names: tuple[str, ...] | None = None


class Resolved(Protocol):
    """A change that is known to fit a table."""

    @property
    def clauses(self) -> tuple[Clause, ...]: ...

    @property
    def inserts(self) -> bool:
        """Whether rows may be inserted."""
        ...

    @property
    def are_new(self) -> bool:
        """Whether inserted rows are known to have new keys."""
        ...

    def find(self, engine: Engine, client: TableMetaClient, query: SnapshotQuery) -> JoinedRows:
        """Look for the rows, at one state of the table."""
        ...


class Changes(Protocol):
    """A change of rows by conditions."""

    @property
    def operation(self) -> Operation:
        """What the commit records."""
        ...

    def resolve(self, table: TableColumns) -> Resolved:
        """Bring the expressions into one form."""
        ...


def staged_columns(columns: pa.Schema, operation: Operation) -> pa.Schema:
    """The columns that a change stages; deletes write no rows."""
    return pa.schema([*(() if operation.deletes else columns), *STAGED])


def require_fit(
    joined: pa.Schema, texts: Sequence[Text], clauses: Sequence[Clause], columns: pa.Schema
) -> None:
    """Refuse expressions that fit neither rows nor the columns they set.

    ``joined`` lacks the columns of ``texts``, of which nothing is known yet.
    """
    ends = [pa.field(text.name, pa.null()) for text in texts]
    places = [pa.field(FILE, pa.int32()), *(one for one in STAGED if one.name != FILE)]
    places += [pa.field(SOURCE, pa.bool_())]
    row = pa.schema([*joined, *places, *ends])
    # one row of nulls for each clause: an expression is computed for rows alone
    for clause in clauses:
        rows = pa.table([pa.nulls(1, one.type) for one in row], schema=row)
        place = row.get_field_index(FILE)
        if clause.met is not Met.SOURCE:
            rows = rows.set_column(place, row.field(place), pa.array([0], pa.int32()))
        if clause.met is Met.BOTH:
            place = row.get_field_index(SOURCE)
            rows = rows.set_column(place, row.field(place), pa.array([True]))
        loose = pa.schema([one.with_nullable(True) for one in columns])
        always = Clause(clause.met, clause.kind, None, clause.values)
        decide(rows, [always], staged_columns(loose, UPSERT))
        decide(rows, [clause], staged_columns(loose, UPSERT))


@dataclass(frozen=True, slots=True)
class TextAccepts:
    """The rows of which SQL text is true, by DuckDB."""

    sql: str
    database: DuckDb

    def __call__(self, rows: pa.Table) -> Mask:
        return true_where(self.database.computed(rows, {"holds": self.sql}).column("holds"))


@dataclass(frozen=True, slots=True)
class ChangeWhere:
    """All rows that a condition accepts, changed or deleted.

    ``where`` is ``None`` for all rows; ``values`` is ``None`` to delete them.
    """

    where: Where | None
    values: Values | None
    alias: str | None = None

    @property
    def operation(self) -> Operation:
        return DELETE if self.values is None else UPSERT

    def resolve(self, table: TableColumns) -> _Where:
        compiler, columns = Compiler(), table.schema.arrow
        readable = table.readable
        visible = Visible(readable, {"": ""} if self.alias is None else {self.alias: "", "": ""})
        met = Met.TARGET
        condition = compiler.condition(self.where, visible, met)
        if self.values is None:
            clause = Clause(met, ChangeKind.DELETE, condition.expression)
            read: tuple[str, ...] = ()
        else:
            names = list(self.values)
            table.require(names)
            table.require_no_keys(names)
            if not names:
                raise SchemaError("An update sets no column", "Name a column and its value.")
            values: dict[str, pc.Expression] = {
                one.name: compiler.value(
                    self.values[one.name], one, visible, met, condition=condition.text
                )
                if one.name in self.values
                else pc.field(one.name)
                for one in columns
            }
            kind = table.kind_of(names)
            clause = Clause(met, kind, condition.expression, values, frozenset(names))
            read = tuple(readable.names)
        require_fit(readable, compiler.texts, [clause], columns)
        texts = tuple(one for one in compiler.texts if one.sql is not condition.text)
        # the rows that are found satisfy the condition
        return _Where((replace(clause, condition=None),), texts, condition, read)


@dataclass(frozen=True, slots=True)
class _Where:
    clauses: tuple[Clause, ...]
    texts: tuple[Text, ...]
    condition: Compiled
    read: tuple[str, ...]
    inserts: bool = False
    are_new: bool = True

    def find(self, engine: Engine, client: TableMetaClient, query: SnapshotQuery) -> JoinedRows:
        plan = query.plan(None, self.condition.filter)
        scan = file_scan(client, plan, list(self.read))
        deciding = tuple(name for name in query.schema.names if name in self.condition.columns)
        parts = numbered(plan.files)
        text = self.condition.text
        if engine.name == "spark":
            accepts = None
            if text is None and self.condition.expression is not None:
                accepts = HoldsFor(self.condition.expression)
            elif text is not None:
                both = dict.fromkeys((*deciding, *self.read))
                scan = file_scan(client, plan, list(both))
            positions = PositionScan(scan, deciding, accepts)
            columns = {one.name: one.guarded("spark") for one in self.texts}
            wanted = None if text is None else text.sql("spark")
            frame, names = changed_frame(
                engine,
                splits(parts),
                positions.read,
                positions.output_schema,
                columns=columns,
                wanted=wanted,
            )
            return JoinedRows(frame, plan.files, names)
        database = DuckDb(SqlLimits.from_options(client.options))
        if text is not None:
            positions = PositionScan(scan, deciding, TextAccepts(text.sql("duckdb"), database))
        elif self.condition.expression is not None:
            positions = PositionScan(scan, deciding, HoldsFor(self.condition.expression))
        else:
            positions = PositionScan(scan)
        schema = positions.output_schema
        return JoinedRows(stream(self._local(positions, parts, database), schema), plan.files)

    def _local(
        self, scan: PositionScan, parts: Sequence[NumberedFile], database: DuckDb
    ) -> Iterator[pa.Table]:
        columns = {one.name: one.guarded("duckdb") for one in self.texts}
        with database:
            for part in parts:
                rows = scan.table(part)
                if rows.num_rows:
                    yield database.computed(rows, columns)


def numbered(files: Sequence[PlannedSlice]) -> list[NumberedFile]:
    """Files with their numbers."""
    return [NumberedFile(number, file) for number, file in enumerate(files)]


def stream(tables: Iterator[pa.Table], schema: pa.Schema) -> pa.Table | pa.RecordBatchReader:
    """Joined rows as one stream."""
    first = next(tables, None)
    if first is None:
        return schema.empty_table()

    def batches() -> Iterator[pa.RecordBatch]:
        for table in chain([first], tables):
            yield from table.to_batches()

    return pa.RecordBatchReader.from_batches(first.schema, batches())
