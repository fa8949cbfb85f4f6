"""Statements in SQL that change rows of our tables.

Spark hands no ``MERGE INTO``, ``UPDATE`` or ``DELETE FROM`` to a data source written in Python, and
``INSERT INTO`` asks for the meta columns. So a statement is parsed here, by sqlglot, and done by
the methods of the table; its expressions and its source stay Spark's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hudi_core.engine.choice import catalog_path, engine_of, fitted
from hudi_core.errors import SchemaError
from hudi_core.model.result import CommitResult
from hudi_core.table import Options, Table
from hudi_core.table.merging import TableMerger
from hudi_core.write.changes import ChangeWhere
from hudi_core.write.sql_text import Tree, library

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DIALECT: Final = "spark"
_BY_PATH: Final = "hudi"


def sql(
    spark: SparkSession,
    statement: str,
    tables: Mapping[str, Table | str] | None = None,
    options: Options | None = None,
) -> CommitResult | DataFrame:
    """Run a statement in Spark's SQL, also on our tables.

    ``MERGE INTO``, ``UPDATE``, ``DELETE FROM`` and ``INSERT INTO`` are done here where the table is
    one of ours; any other statement is Spark's.

    Parameters
    ----------
    spark
        The session, which computes expressions and sources.
    statement
        One statement. Its table is one of ``tables``, one of the session's catalog that was created
        ``USING hudi``, or a path: ``hudi.`s3://lake/trips` ``.
    tables
        Tables, or their paths, by name.
    options
        Hudi options of the write, and of the store of tables that are named by path.

    Returns
    -------
    CommitResult or DataFrame
        The commit of a statement that changes rows; what Spark returns for others.

    Raises
    ------
    SchemaError
        The statement cannot be understood, or does not fit the table. Nothing is written.
    InvalidOptionError
        sqlglot is not installed.
    CommitConflictError
        See :meth:`hudi_core.table.Table.update`.
    """
    sqlglot, exp = library("sqlglot", statement), library("sqlglot.expressions", statement)
    try:
        parsed = [one for one in sqlglot.parse(statement, dialect=_DIALECT) if one is not None]
    except sqlglot.errors.SqlglotError as error:
        reason = str(error).split("\n", 1)[0]
        raise _unread(statement, reason) from error
    if len(parsed) != 1:
        raise _unread(statement, f"it has {len(parsed)} statements")
    [tree] = parsed
    known = {name.lower(): table for name, table in (tables or {}).items()}
    session = _Statement(spark, exp, statement, known, options)
    actions = {
        exp.Merge: session.merge,
        exp.Update: session.update,
        exp.Delete: session.delete,
        exp.Insert: session.insert,
    }
    action = actions.get(type(tree))
    named = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    table = session.find(named) if action is not None and isinstance(named, exp.Table) else None
    if action is None or table is None:
        return spark.sql(statement)
    return action(table, tree)


@dataclass(frozen=True, slots=True)
class _Statement:
    spark: SparkSession
    exp: Any
    text: str
    tables: Mapping[str, Table | str]
    options: Options | None

    def find(self, named: Tree) -> Table | None:
        """The table of a name; ``None`` where it is none of ours."""
        parts = [part.name for part in named.parts]
        found = self.tables.get(".".join(parts).lower())
        if found is None and len(parts) == 2 and parts[0].lower() == _BY_PATH:
            found = parts[1]
        if found is None:
            name = self.exp.table_(*reversed(parts[-3:])).sql(dialect=_DIALECT, identify=True)
            found = catalog_path(self.spark, name)
        if found is None or isinstance(found, Table):
            return found
        return Table.open(found, self.options)

    def update(self, table: Table, tree: Tree) -> CommitResult:
        self._require_only(tree, "this", "expressions", "where")
        alias = self._alias(tree.this)
        changes = ChangeWhere(self._where(tree), self._set(tree.expressions, alias), alias)
        return table.change(changes, engine_of(self.spark), self.options)

    def delete(self, table: Table, tree: Tree) -> CommitResult:
        self._require_only(tree, "this", "where")
        where = self._where(tree)
        changes = ChangeWhere(where, None, self._alias(tree.this))
        return table.change(changes, engine_of(self.spark), self.options)

    def insert(self, table: Table, tree: Tree) -> CommitResult:
        exp = self.exp
        self._require_only(tree, "this", "expression")
        named = tree.this
        if isinstance(named, exp.Schema):
            names = [one.name for one in named.expressions]
        else:
            names = list(table.schema.names)
        if named.find(exp.Partition) is not None:
            raise _unread(self.text, "a PARTITION clause is for tables of files")
        rows = self.spark.sql(tree.expression.sql(dialect=_DIALECT))
        if len(rows.columns) != len(names):
            raise SchemaError(
                f"{self.text!r} gives {len(rows.columns)} columns for {len(names)}: "
                f"{', '.join(names)}",
                "Name the columns to insert, INSERT INTO t (a, b) ..., or give all of them.",
                columns=names,
            )
        given = {"hoodie.write.set.null.for.missing.columns": "true"}
        rows = fitted(rows.toDF(*names), table.schema)
        return table.insert(rows, options={**given, **(self.options or {})})

    def merge(self, table: Table, tree: Tree) -> CommitResult:
        self._require_only(tree, "this", "using", "on", "whens")
        target, source = self._alias(tree.this), self._alias(tree.args["using"])
        merger = table.merge(
            self._rows(tree.args["using"]),
            tree.args["on"].sql(dialect=_DIALECT),
            source_alias=source or "source",
            target_alias=target or "target",
            options=self.options,
        )
        for when in tree.args["whens"].expressions:
            merger = self._when(merger, when, target)
        return merger.execute()

    def _when(self, merger: TableMerger, when: Tree, target: str | None) -> TableMerger:
        exp, then = self.exp, when.args["then"]
        condition = when.args.get("condition")
        predicate = None if condition is None else condition.sql(dialect=_DIALECT)
        found = None
        if when.args.get("matched"):
            found = self._matched(merger, then, predicate, target)
        elif when.args.get("source"):
            found = self._by_source(merger, then, predicate, target)
        elif isinstance(then, exp.Insert):
            found = self._insertion(merger, then, predicate)
        if found is None:
            raise _unread(self.text, f"{when.sql(dialect=_DIALECT)} is no clause of a merge")
        return found

    def _matched(
        self, merger: TableMerger, then: Tree, predicate: str | None, target: str | None
    ) -> TableMerger | None:
        if self._is_delete(then):
            return merger.when_matched_delete(predicate)
        if not isinstance(then, self.exp.Update):
            return None
        if self._is_star(then):
            return merger.when_matched_update_all(predicate)
        return merger.when_matched_update(self._set(then.expressions, target), predicate)

    def _by_source(
        self, merger: TableMerger, then: Tree, predicate: str | None, target: str | None
    ) -> TableMerger | None:
        if self._is_delete(then):
            return merger.when_not_matched_by_source_delete(predicate)
        if not isinstance(then, self.exp.Update) or self._is_star(then):
            return None
        values = self._set(then.expressions, target)
        return merger.when_not_matched_by_source_update(values, predicate)

    def _insertion(self, merger: TableMerger, then: Tree, predicate: str | None) -> TableMerger:
        exp, columns, values = self.exp, then.this, then.expression
        if isinstance(columns, exp.Star):
            return merger.when_not_matched_insert_all(predicate)
        if not isinstance(columns, exp.Tuple) or not isinstance(values, exp.Tuple):
            raise _unread(self.text, "an insertion has no columns, or no values")
        names = [one.name for one in columns.expressions]
        given = [one.sql(dialect=_DIALECT) for one in values.expressions]
        if len(names) != len(given):
            reason = f"an insertion has {len(given)} values for {len(names)} columns"
            raise _unread(self.text, reason)
        return merger.when_not_matched_insert(dict(zip(names, given, strict=True)), predicate)

    def _is_delete(self, then: Tree) -> bool:
        return isinstance(then, self.exp.Var) and then.name.upper() == "DELETE"

    def _is_star(self, then: Tree) -> bool:
        return any(isinstance(one, self.exp.Star) for one in then.expressions)

    def _set(self, assignments: Any, alias: str | None) -> dict[str, str]:
        """Values by column, as texts."""
        found: dict[str, str] = {}
        for one in assignments:
            if not isinstance(one, self.exp.EQ) or not isinstance(one.this, self.exp.Column):
                raise _unread(self.text, f"{one.sql(dialect=_DIALECT)} sets no column")
            parts = [part.name for part in one.this.parts]
            if len(parts) > 1 and alias is not None and parts[0].lower() == alias.lower():
                parts = parts[1:]
            name = ".".join(parts)
            if name in found:
                raise _unread(self.text, f"it sets {name} twice")
            found[name] = one.expression.sql(dialect=_DIALECT)
        return found

    def _where(self, tree: Tree) -> str | None:
        where = tree.args.get("where")
        return None if where is None else str(where.this.sql(dialect=_DIALECT))

    def _rows(self, using: Tree) -> DataFrame:
        """The source of a merge."""
        exp = self.exp
        if isinstance(using, exp.Table):
            found = self.find(using)
            if found is not None:
                return found.read(self.spark)
        bare = using.copy()
        bare.set("alias", None)
        body = bare.this if isinstance(bare, exp.Subquery) else exp.select("*").from_(bare)
        return self.spark.sql(body.sql(dialect=_DIALECT))

    def _alias(self, named: Tree) -> str | None:
        return str(named.alias or named.name) or None

    def _require_only(self, tree: Tree, *known: str) -> None:
        """Refuse parts of a statement that would be passed over."""
        more = sorted(name for name, value in tree.args.items() if value and name not in known)
        if more:
            raise _unread(self.text, f"its {', '.join(more)} cannot be done")


def _unread(statement: str, reason: str) -> SchemaError:
    return SchemaError(
        f"The statement {statement!r} cannot be run: {reason}",
        "Put it right, or use the methods of Table: merge, update, delete, insert, "
        "insert_overwrite.",
        statement=statement,
        reason=reason,
    )
