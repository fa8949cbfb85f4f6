"""Merges of a source into a table, clause by clause."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_core.config.schema import SchemaConfig
from hudi_core.engine.base import Engine
from hudi_core.engine.choice import bounds_of, merged_frame
from hudi_core.errors import RecordKeyError, SchemaError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.operation import UPSERT, Operation
from hudi_core.read.filters import Filter
from hudi_core.read.positions import PositionScan
from hudi_core.read.predicate import known_part
from hudi_core.read.query import SnapshotQuery
from hudi_core.read.scan import file_scan
from hudi_core.read.spark_frame import splits
from hudi_core.rows.changes import SOURCE, ChangeKind, Clause, Met
from hudi_core.schema.absence import absences, without_absence
from hudi_core.schema.arrow_types import children
from hudi_core.schema.casting import without_views
from hudi_core.schema.table_schema import META_COLUMNS
from hudi_core.write.conditional.changes import JoinedRows, TableColumns, numbered, require_fit
from hudi_core.write.conditional.expressions import Compiler, Text, Values
from hudi_core.write.conditional.merge_join import (
    Join,
    JoinedColumns,
    MergePlan,
    merged_rows,
    within,
)
from hudi_core.write.conditional.sql_text import SqlText


@dataclass(frozen=True, slots=True)
class When:
    """One clause as a caller gives it.

    ``values`` is ``None`` to take all columns that the source has, but for those in ``without``.
    """

    met: Met
    kind: ChangeKind
    condition: Any = None
    values: Values | None = None
    without: frozenset[str] = frozenset()


def whole_source(source: Any, how: SchemaConfig) -> Any:
    """The rows of a merge's source, in types that can be joined.

    Its clauses are about columns that every row has: one that lacks a column is refused, unless
    null is to be taken for it.
    """
    absent = absences(source)
    if absent and not how.fill_missing:
        row = absent[0].row
        paths = [one.path for one in absent if one.row == row]
        raise SchemaError(
            f"{row} of the source lacks the column {', '.join(map(repr, paths))}, which other rows "
            "have",
            f"Give it to every row, with None where there is no value; or set "
            f"{SchemaConfig.fill_missing.key}=true, by which it is null.",
            columns=paths,
        )
    if isinstance(source, pa.RecordBatchReader):
        source = source.read_all()
    return without_views(without_absence(source)) if isinstance(source, pa.Table) else source


@dataclass(frozen=True, slots=True)
class MergeChanges:
    """A merge of a source into a table.

    ``source`` is as the engine took it. ``on`` is names of columns that are equal, or a condition
    in Spark's SQL.
    """

    source: Any
    columns: pa.Schema
    on: Any
    source_alias: str = "source"
    target_alias: str = "target"
    whens: tuple[When, ...] = ()

    @property
    def operation(self) -> Operation:
        return UPSERT

    def resolve(self, table: TableColumns) -> _Merge:
        if self.source_alias.lower() == self.target_alias.lower():
            raise SchemaError(
                f"Source and target have one alias, {self.source_alias!r}", "Give them two."
            )
        joined = JoinedColumns.of(
            table.readable, self.columns, f"{self.target_alias}.", f"{self.source_alias}."
        )
        resolving = _Resolving(self, table, joined)
        join = resolving.join()
        clauses = [resolving.clause(when, join) for when in self.whens]
        texts = tuple(resolving.compiler.texts)
        for clause in clauses:
            require_fit(joined.seen_by(clause.met), texts, [clause], table.schema.arrow)
        wanted = frozenset(when.met for when in self.whens)
        return _Merge(
            tuple(clauses),
            resolving.adds_new_keys(join, clauses),
            MergePlan(self.source, joined.needed(resolving.mentioned(texts)), join, wanted, texts),
        )


@dataclass(frozen=True, slots=True)
class _Merge:
    clauses: tuple[Clause, ...]
    are_new: bool
    plan: MergePlan

    @property
    def inserts(self) -> bool:
        return Met.SOURCE in self.plan.wanted

    def find(self, engine: Engine, client: TableMetaClient, query: SnapshotQuery) -> JoinedRows:
        find = merged_frame_of if engine.name == "spark" else merged_rows
        return find(engine, client, query, self.plan)


_ValueOf = Callable[[Any, pa.Field], pc.Expression]
"""Brings the value of a column into the common form."""


@dataclass(slots=True)
class _Resolving:
    merge: MergeChanges
    table: TableColumns
    joined: JoinedColumns
    compiler: Compiler = field(default_factory=Compiler)
    before: dict[Met, list[SqlText]] = field(default_factory=dict)
    given: list[Any] = field(default_factory=list)

    def join(self) -> Join:
        """The condition that matches rows."""
        on, joined = self.merge.on, self.joined
        names = [on] if isinstance(on, str) and on in joined.target.names else on
        if isinstance(names, str | SqlText):
            text = names
            if isinstance(text, str):
                text = SqlText.parse(text, joined.visible(Met.BOTH))
            self.given.append(text)
            pairs = []
            for one, other in text.equalities():
                if one in joined.source_names:
                    one, other = other, one  # noqa: PLW2901 - the column of the table comes first
                if one in joined.target_names and other in joined.source_names:
                    pairs.append((joined.target_names[one], joined.source_names[other]))
            fields = {joined.target_prefix + one.name: one for one in joined.target}
            known = known_part(text.predicate(fields))
            return Join(
                tuple(pairs),
                text,
                len(pairs) == text.conjuncts,
                None if known is None else Filter.of(known),
            )
        if isinstance(names, pc.Expression) or not isinstance(names, Sequence) or not names:
            raise SchemaError(
                f"{on!r} is no condition that matches rows",
                "Give names of columns that both have, or SQL such as 'target.id = source.id'.",
            )
        for name in names:
            for side, columns in (("table", joined.target), ("source", joined.source)):
                if name not in columns.names:
                    raise SchemaError(
                        f"The {side} has no column {name!r}, by which rows are matched",
                        f"Its columns are {', '.join(columns.names)}.",
                        column=name,
                    )
            kind = joined.target.field(name).type
            if children(kind):
                raise SchemaError(
                    f"Rows cannot be matched by {name!r}, which is {kind}",
                    "Match them by columns of single values.",
                    column=name,
                )
        self.given += names
        return Join(tuple((name, name) for name in names), None, True, None)

    def clause(self, when: When, join: Join) -> Clause:
        """One clause, its expressions in the common form."""
        visible = self.joined.visible(when.met)
        before = self.before.setdefault(when.met, [])
        condition = self.compiler.condition(when.condition, visible, when.met, before)
        self.given.append(when.condition)
        if when.kind is ChangeKind.DELETE:
            clause = Clause(when.met, ChangeKind.DELETE, condition.expression)
        else:
            values = self._given(when)
            self.given += values.values()
            self.table.require([*values])
            value_of = partial(
                self.compiler.value,
                visible=visible,
                met=when.met,
                before=tuple(before),
                condition=condition.text,
            )
            make = self._inserted if when.kind is ChangeKind.INSERT else self._updated
            clause = make(Clause(when.met, when.kind, condition.expression), values, join, value_of)
        if condition.text is not None:
            before.append(condition.text)
        return clause

    def _given(self, when: When) -> dict[str, Any]:
        """Values by column of the table."""
        if when.values is None:
            names = [
                name
                for name in self.joined.source.names
                if name not in META_COLUMNS and name not in when.without
            ]
            known = set(self.table.schema.names)
            unknown = [name for name in names if name not in known]
            if unknown:
                raise SchemaError(
                    f"The table has no column {', '.join(map(repr, unknown))}, which the source "
                    "has",
                    "Leave it out of the source, or name it in except_cols.",
                    columns=unknown,
                )
            return {name: pc.field(f"{self.joined.source_prefix}{name}") for name in names}
        prefix = self.joined.target_prefix
        return {
            name.removeprefix(prefix).removeprefix("`").removesuffix("`"): value
            for name, value in when.values.items()
        }

    def _updated(
        self, clause: Clause, values: dict[str, Any], join: Join, value_of: _ValueOf
    ) -> Clause:
        # what is matched by equality has that value already
        values = {
            name: value for name, value in values.items() if not self._is_matched(name, value, join)
        }
        self.table.require_no_keys(
            [name for name, value in values.items() if not self._keeps_key(name, value, join)]
        )
        all_values = {
            one.name: value_of(values[one.name], one)
            if one.name in values
            else pc.field(f"{self.joined.target_prefix}{one.name}")
            for one in self.table.schema.arrow
        }
        kind = self.table.kind_of([*values])
        return replace(clause, kind=kind, values=all_values, assigned=frozenset(values))

    def _inserted(
        self, clause: Clause, values: dict[str, Any], _: Join, value_of: _ValueOf
    ) -> Clause:
        missing = sorted(self.table.key_columns.difference(values))
        if missing:
            raise RecordKeyError(
                f"Rows would be inserted without the record key column "
                f"{', '.join(map(repr, missing))}",
                "Give it a value.",
                columns=missing,
            )
        all_values = {}
        for one in self.table.schema.arrow:
            if one.name not in values and not one.nullable:
                raise SchemaError(
                    f"Rows would be inserted without the column {one.name!r}, which has no nulls",
                    "Give it a value.",
                    column=one.name,
                )
            all_values[one.name] = value_of(values.get(one.name), one)
        return replace(clause, kind=ChangeKind.INSERT, values=all_values)

    def _is_matched(self, name: str, value: Any, join: Join) -> bool:
        """Whether a column is set to what it is equal to."""
        for target, source in join.pairs:
            if target == name:
                return self._is_source(value, source)
        return False

    def _is_source(self, value: Any, name: str) -> bool:
        """Whether a value is a column of the source."""
        flat = f"{self.joined.source_prefix}{name}"
        if isinstance(value, str):
            value = SqlText.parse(value, self.joined.visible(Met.BOTH))
        if isinstance(value, SqlText):
            return value.is_column(flat)
        return isinstance(value, pc.Expression) and value.equals(pc.field(flat))

    def _keeps_key(self, name: str, value: Any, join: Join) -> bool:
        """Whether a struct keeps its fields of the record key.

        So it does where rows are matched by these fields, and it is set to that of the source.
        """
        keys = [one for one in self.table.config.record_key_fields if one.startswith(f"{name}.")]
        if not keys or join.text is None:
            return False
        equal = {frozenset(pair) for pair in join.text.equalities()}
        for source in self.joined.source.names:
            if self._is_source(value, source):
                target, other = self.joined.target_prefix, self.joined.source_prefix
                return all(
                    frozenset((f"{target}{key}", f"{other}{source}{key.removeprefix(name)}"))
                    in equal
                    and not self._is_floating(key)
                    for key in keys
                )
        return False

    def _is_floating(self, path: str) -> bool:
        """Whether equal values may make two keys."""
        field = self.table.schema.field(path)
        return field is None or pt.is_floating(field.type)

    def adds_new_keys(self, join: Join, clauses: Sequence[Clause]) -> bool:
        """Whether unmatched source rows have keys that the table lacks.

        So it is where rows are matched by nothing but equality of key columns, and are inserted
        with just these.
        """
        identifying = set(self.table.key_columns)
        if not self.table.is_global:
            identifying |= self.table.partition_columns
        by_column = dict(join.pairs)
        if not join.is_whole or not identifying.issuperset(by_column):
            return False
        if any(pt.is_floating(self.joined.target.field(name).type) for name in by_column):
            return False  # numbers that are equal may make two keys, and NaN has many forms
        texts = {one.name: one.sql for one in self.compiler.texts}
        for clause in clauses:
            for target, source in join.pairs if clause.kind is ChangeKind.INSERT else ():
                flat, value = f"{self.joined.source_prefix}{source}", clause.values[target]
                as_text = texts.get(str(value))
                if not (
                    value.equals(pc.field(flat))
                    or (as_text is not None and as_text.is_column(flat))
                ):
                    return False
        return True

    def mentioned(self, texts: Sequence[Text]) -> frozenset[str]:
        """Meta columns of the table that an expression may name."""
        words = [one.text if isinstance(one, SqlText) else str(one) for one in self.given]
        words += [name for one in texts for name in one.sql.columns]
        return frozenset(name for name in META_COLUMNS if any(name in word for word in words))


# --- joined rows as a Spark DataFrame -------------------------------------------------------------


def merged_frame_of(
    engine: Engine, client: TableMetaClient, snapshot: SnapshotQuery, merge: MergePlan
) -> JoinedRows:
    """Return the joined rows of a merge.

    The source is evaluated once: where its values show which files can match, its rows are kept by
    the executors until they are joined. See
    :func:`hudi_core.write.conditional.merge_join.merged_rows`.
    """
    source, joined, join, wanted = merge.source, merge.joined, merge.join, merge.wanted
    row_filter = None
    if Met.TARGET not in wanted:
        row_filter = join.filter
        if join.pairs:
            source, bounds = bounds_of(source, [other for _, other in join.pairs])
            for (target, _), values in zip(join.pairs, bounds, strict=True):
                known = within(joined.target.field(target), values, as_bounds=True)
                if known is not None:
                    found = Filter.of(known)
                    row_filter = found if row_filter is None else row_filter & found
    plan = snapshot.plan(None, row_filter)
    scan = file_scan(client, plan, joined.target.names)
    positions = PositionScan(scan, prefix=joined.target_prefix)
    frame, names = merged_frame(
        engine,
        splits(numbered(plan.files)),
        positions.read,
        positions.output_schema,
        source.toDF(*(joined.source_prefix + name for name in source.columns)),
        on=join.sql(joined, "spark"),
        how=_how(wanted),
        present=SOURCE,
        columns={one.name: one.guarded("spark") for one in merge.texts},
    )
    return JoinedRows(frame, plan.files, names)


def _how(wanted: frozenset[Met]) -> str:
    """The kind of join that gives all rows that clauses are for."""
    if {Met.SOURCE, Met.TARGET} <= wanted:
        return "full"
    if Met.SOURCE in wanted:
        return "right"
    return "left" if Met.TARGET in wanted else "inner"
