"""``UPDATE``, ``DELETE FROM`` and ``MERGE INTO``.

Spark hands none of them to a source in Python. sqlglot parses their conditions and values, and
methods of the table do them; the source of a merge stays Spark's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from hudi_core.engine.choice import arrow_schema, engine_of, with_casts
from hudi_core.model.result import CommitResult
from hudi_core.schema.arrow_types import is_text
from hudi_core.statements.querying import query
from hudi_core.statements.running import Statement, Target, parameters_of
from hudi_core.statements.words import Scanner, spelled
from hudi_core.table import Table
from hudi_core.table.merging import TableMerger
from hudi_core.write.conditional.changes import ChangeWhere
from hudi_core.write.conditional.sql_text import (
    Tree,
    library,
    plain_strings,
    quoted_string,
    tokens_of,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_DIALECT: Final = "spark"


def update(statement: Statement, scanner: Scanner) -> CommitResult | None:
    """``UPDATE``; ``None`` where its table is none of ours."""
    scanner.take("UPDATE")
    target = statement.take_target(scanner)
    if target is None:
        return None
    change = _Change.of(statement, target, f"UPDATE {_name(target)} {scanner.rest()}")
    tree = change.tree
    change.require_only("this", "expressions", "where")
    alias = _alias(tree.this)
    changes = ChangeWhere(change.where(), change.assigned(tree.expressions, alias), alias)
    return change.table.change(changes, engine_of(statement.spark), target.options)


def delete(statement: Statement, scanner: Scanner) -> CommitResult | None:
    """``DELETE FROM``; ``None`` where its table is none of ours."""
    scanner.take("DELETE")
    if not scanner.take("FROM"):
        return None
    target = statement.take_target(scanner)
    if target is None:
        return None
    change = _Change.of(statement, target, " ".join(("DELETE FROM", _name(target), scanner.rest())))
    change.require_only("this", "where")
    changes = ChangeWhere(change.where(), None, _alias(change.tree.this))
    return change.table.change(changes, engine_of(statement.spark), target.options)


def merge(statement: Statement, scanner: Scanner, ctes: str = "") -> CommitResult | None:
    """``MERGE INTO``; ``None`` where its table is none of ours."""
    scanner.take("MERGE")
    evolves = scanner.take("WITH", "SCHEMA", "EVOLUTION")
    if not scanner.take("INTO"):
        return None
    target = statement.take_target(scanner)
    if target is None:
        return None
    if evolves:
        raise statement.refusal("WITH SCHEMA EVOLUTION cannot be done: use ALTER TABLE before")
    given = scanner.until(lambda one: one.take("USING"))
    source = scanner.until(lambda one: one.take("ON"))
    if not source:
        raise statement.refusal("it names no source, or no condition after ON")
    rows, alias = _source(statement, source, ctes)
    into = Scanner(given.removesuffix("USING"))
    into.take("AS")
    name = into.name()
    into_text = f"{_name(target)} AS {spelled(name)}" if name else _name(target)
    text = f"MERGE INTO {into_text} USING {spelled([alias])} ON {scanner.rest()}"
    return _Change.of(statement, target, text).merge(rows, alias, name[-1] if name else None)


def _source(statement: Statement, text: str, ctes: str) -> tuple[DataFrame, str]:
    """The rows of a merge's source, and its alias."""
    scanner = Scanner(text)
    if scanner.is_symbol("("):
        body = scanner.group() or ""
        scanner.take("AS")
        alias = scanner.name() or ("source",)
        if scanner.is_symbol("("):
            return query(statement, _all_of(ctes, text)), alias[-1]
        return query(statement, f"{ctes} {body}"), alias[-1]
    parts = scanner.name() or ("source",)
    is_plain = scanner.is_at_end or scanner.take("AS")
    names = [one.value for one in tokens_of(text)]
    alias = (names[-1],) if not scanner.is_at_end else parts
    if not is_plain:
        following = Scanner(scanner.text, scanner.place)
        is_plain = following.name() is not None and following.is_at_end
    found = statement.find(parts) if is_plain and not ctes else None
    if found is not None:
        return statement.open(found).read(statement.spark), alias[-1]
    return query(statement, _all_of(ctes, text)), alias[-1]


def _all_of(ctes: str, source: str) -> str:
    return " ".join((ctes, "SELECT * FROM", source))


def _name(target: Target) -> str:
    """What columns are qualified by, where there is no alias."""
    return spelled([target.called])


def _alias(named: Tree) -> str | None:
    return str(named.alias or named.name) or None


def _bound(statement: Statement, text: str) -> str:
    """SQL text whose parameters are literals."""
    args = statement.args or {}
    used = [(mark, name) for mark, name in parameters_of(text) if name in args]
    if not used:
        return text
    names = list(dict.fromkeys(name for _, name in used))
    kinds = statement.constants([f"typeof(:{name})" for name in names])
    casts = []
    for name, kind in zip(names, kinds, strict=True):
        if kind.startswith(("array", "map", "struct", "binary", "variant")):
            raise statement.refusal(f"the parameter {name} is a {kind}, and no literal")
        is_time = kind == "timestamp"
        zoned = f"date_format(:{name}, 'yyyy-MM-dd HH:mm:ss.SSSSSSXXX')"
        casts.append(zoned if is_time else f"CAST(:{name} AS STRING)")
    literals = {}
    for name, kind, value in zip(names, kinds, statement.constants(casts), strict=True):
        is_null = value is None or kind == "void"
        literals[name] = "NULL" if is_null else f"CAST({quoted_string(value)} AS {kind})"
        if kind == "string" and not is_null:
            literals[name] = quoted_string(value)
    for mark, name in reversed(used):
        text = f"{text[: mark.start]}{literals[name]}{text[mark.end + len(name) :]}"
    return text


@dataclass(frozen=True, slots=True)
class _Change:
    """A parsed statement on an open table."""

    statement: Statement
    target: Target
    table: Table
    tree: Tree
    exp: Any

    @classmethod
    def of(cls, statement: Statement, target: Target, text: str) -> _Change:
        """Parse a statement."""
        given = statement.given
        sqlglot, exp = library("sqlglot", given), library("sqlglot.expressions", given)
        bound = plain_strings(_bound(statement, text))
        try:
            parsed = [one for one in sqlglot.parse(bound, dialect=_DIALECT) if one is not None]
        except sqlglot.errors.SqlglotError as error:
            raise statement.refusal(str(error).split("\n", 1)[0]) from error
        count = sum(1 for _ in _statements(statement.text))
        if len(parsed) != 1 or count != 1:
            raise statement.refusal(f"it has {max(count, len(parsed))} statements")
        return cls(statement, target, statement.open(target), parsed[0], exp)

    def merge(self, rows: DataFrame, source: str, target: str | None) -> CommitResult:
        """Run a merge."""
        self.require_only("this", "using", "on", "whens")
        whens = self.tree.args["whens"].expressions
        target = target or _alias(self.tree.this)
        if any(self._is_star(when.args["then"]) for when in whens):
            rows = with_casts(rows, self._fitting(arrow_schema(rows.schema)))
        kinds = dict(zip(rows.columns, arrow_schema(rows.schema).types, strict=True))
        values = _Values(self, source, kinds)
        merger = self.table.merge(
            rows,
            self.tree.args["on"].sql(dialect=_DIALECT),
            source_alias=source,
            target_alias=target or "target",
            options=self.target.options,
        )
        for when in whens:
            merger = self._when(merger, when, target, values)
        return merger.execute()

    def _when(
        self, merger: TableMerger, when: Tree, target: str | None, values: _Values
    ) -> TableMerger:
        exp, then = self.exp, when.args["then"]
        condition = when.args.get("condition")
        predicate = None if condition is None else condition.sql(dialect=_DIALECT)
        found = None
        if when.args.get("matched"):
            found = self._matched(merger, then, predicate, target, values)
        elif when.args.get("source"):
            found = self._by_source(merger, then, predicate, target)
        elif isinstance(then, exp.Insert):
            found = self._insertion(merger, then, predicate, values)
        if found is None:
            raise self._refusal(f"{when.sql(dialect=_DIALECT)} is no clause of a merge")
        return found

    def _matched(
        self,
        merger: TableMerger,
        then: Tree,
        predicate: str | None,
        target: str | None,
        values: _Values,
    ) -> TableMerger | None:
        if self._is_delete(then):
            return merger.when_matched_delete(predicate)
        if not isinstance(then, self.exp.Update):
            return None
        if self._is_star(then):
            return merger.when_matched_update_all(predicate)
        assigned = self.assigned(then.expressions, target, values)
        return merger.when_matched_update(assigned, predicate)

    def _by_source(
        self, merger: TableMerger, then: Tree, predicate: str | None, target: str | None
    ) -> TableMerger | None:
        if self._is_delete(then):
            return merger.when_not_matched_by_source_delete(predicate)
        if not isinstance(then, self.exp.Update) or self._is_star(then):
            return None
        values = self.assigned(then.expressions, target)
        return merger.when_not_matched_by_source_update(values, predicate)

    def _insertion(
        self, merger: TableMerger, then: Tree, predicate: str | None, values: _Values
    ) -> TableMerger:
        exp, columns, given = self.exp, then.this, then.expression
        if isinstance(columns, exp.Star):
            return merger.when_not_matched_insert_all(predicate)
        if not isinstance(columns, exp.Tuple) or not isinstance(given, exp.Tuple):
            raise self._refusal("an insertion has no columns, or no values")
        names = [one.name for one in columns.expressions]
        if len(names) != len(given.expressions):
            count = len(given.expressions)
            raise self._refusal(f"an insertion has {count} values for {len(names)} columns")
        texts = [values.text(name, one) for name, one in zip(names, given.expressions, strict=True)]
        return merger.when_not_matched_insert(dict(zip(names, texts, strict=True)), predicate)

    def assigned(
        self, assignments: Any, alias: str | None, values: _Values | None = None
    ) -> dict[str, str]:
        """Values by column, as SQL text."""
        values = values or _Values(self, "", {})
        found: dict[str, str] = {}
        for one in assignments:
            if not isinstance(one, self.exp.EQ) or not isinstance(one.this, self.exp.Column):
                raise self._refusal(f"{one.sql(dialect=_DIALECT)} sets no column")
            parts = [part.name for part in one.this.parts]
            if len(parts) > 1 and alias is not None and parts[0].lower() == alias.lower():
                parts = parts[1:]
            name = ".".join(parts)
            if name in found:
                raise self._refusal(f"it sets {name} twice")
            found[name] = values.text(name, one.expression)
        return found

    def where(self) -> str | None:
        """The condition of the rows."""
        where = self.tree.args.get("where")
        return None if where is None else str(where.this.sql(dialect=_DIALECT))

    def kind(self, column: str) -> pa.DataType | None:
        """The type of a column of the table, in any case."""
        schema = self.table.schema
        known = {name.lower(): name for name in schema.names}
        name = known.get(column.lower())
        return None if name is None else schema.field(name).type

    def _fitting(self, source: pa.Schema) -> dict[str, str]:
        """Types of the table's columns that strings of a source become."""
        kinds = {field.name: self.kind(field.name) for field in source if is_text(field.type)}
        return {
            name: self.statement.catalog.sql_type(kind)
            for name, kind in kinds.items()
            if kind is not None and takes_strings(kind)
        }

    def require_only(self, *known: str) -> None:
        """Refuse parts of a statement that would be passed over."""
        args = self.tree.args.items()
        more = sorted(name for name, value in args if value and name not in known)
        if more:
            raise self._refusal(f"its {', '.join(more)} cannot be done")

    def _is_delete(self, then: Tree) -> bool:
        return isinstance(then, self.exp.Var) and then.name.upper() == "DELETE"

    def _is_star(self, then: Tree) -> bool:
        stars = [then.this, *then.expressions] if isinstance(then, self.exp.Expression) else []
        return any(isinstance(one, self.exp.Star) for one in stars)

    def _refusal(self, reason: str) -> Exception:
        return self.statement.refusal(reason)


@dataclass(frozen=True, slots=True)
class _Values:
    """Values that are assigned, in the types of their columns.

    Strings become numbers and times where they are literals or columns of the source, as in Spark;
    a string that is none is refused.
    """

    change: _Change
    source: str
    kinds: Mapping[str, pa.DataType]

    def text(self, column: str, value: Tree) -> str:
        """A value as SQL text for a column."""
        text = str(value.sql(dialect=_DIALECT))
        kind = self.change.kind(column)
        if kind is None or not takes_strings(kind):
            return text
        statement, exp = self.change.statement, self.change.exp
        wanted = statement.catalog.sql_type(kind)
        if isinstance(value, exp.Literal) and value.is_string:
            [found] = statement.constants([f"TRY_CAST({text} AS {wanted})"])
            if found is None:
                raise statement.refusal(f"{text} is no {wanted}, which {column} is")
            return f"CAST({text} AS {wanted})"
        if isinstance(value, exp.Column) and self._is_string(value):
            fits = f"TRY_CAST({text} AS {wanted})"
            wrong = quoted_string(f"a value of {text} is no {wanted}, which {column} is")
            return (
                f"CASE WHEN {text} IS NULL OR {fits} IS NOT NULL THEN {fits} "
                f"ELSE CAST(raise_error({wrong}) AS {wanted}) END"
            )
        return text

    def _is_string(self, column: Tree) -> bool:
        """Whether a column is one of the source, and a string."""
        parts = [part.name for part in column.parts]
        if len(parts) == 2 and parts[0].lower() == self.source.lower():
            parts = parts[1:]
        elif len(parts) == 1 and self.change.kind(parts[0]) is not None:
            return False
        known = {name.lower(): kind for name, kind in self.kinds.items()}
        kind = known.get(parts[-1].lower()) if len(parts) == 1 else None
        return kind is not None and is_text(kind)


def takes_strings(kind: pa.DataType) -> bool:
    """Whether strings that spell its values are cast to a type."""
    return not is_text(kind) and (
        pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_boolean(kind)
    )


def _statements(text: str) -> Iterator[str]:
    """Yield the statements that semicolons separate."""
    scanner = Scanner(text)
    while not scanner.is_at_end:
        yield scanner.rest()
        while scanner.take_symbol(";"):
            pass
