"""One statement of a session, and the tables that it names."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from hudi_core.config.resolve import options_as_strings
from hudi_core.config.sql import SqlConfig, options_of_properties
from hudi_core.config.table_keys import TableKeys
from hudi_core.config.write import WriteConfig
from hudi_core.engine.choice import catalog_of
from hudi_core.errors import InvalidOptionError, NotATableError, SchemaError
from hudi_core.model.catalog_entry import SparkCatalogEntry
from hudi_core.model.result import CommitResult
from hudi_core.read.plan import read_schema
from hudi_core.services.opening import open_table
from hudi_core.statements.words import Scanner, spelled
from hudi_core.table import Options, Table
from hudi_core.table_handle import OpenTable
from hudi_core.write.conditional.sql_text import Token, TokenKind, tokens_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from hudi_core.engine.spark import SessionCatalog


# --- a session of Spark that knows our statements -------------------------------------------------


_KIND: Final = "_hudi_session_of"
"""Attribute of a session's class: the class of Spark's that it was made of."""
_CHANGES: Final = ("INSERT", "UPDATE", "DELETE", "MERGE", "WITH")
"""What statements begin with that return counts; others return nothing, as in Spark."""
_COUNTS: Final = ("affected", "updated", "deleted", "inserted")


def sql_session(spark: SparkSession, options: Options | None = None) -> SparkSession:
    """A session whose ``sql`` runs statements on our tables, too.

    It is the given session in all else: both have the same catalog, settings and views, and what
    stops one stops the other. Statements that change rows return a row of counts; for the rest see
    :func:`hudi_core.sql`.

    Parameters
    ----------
    spark
        The session.
    options
        Hudi options of all statements, and those of the store.

    Raises
    ------
    InvalidOptionError
        It is no session.
    """
    if not hasattr(spark, "sql") or not hasattr(spark, "catalog"):
        raise InvalidOptionError(
            "spark", spark, "it is no session of Spark", "Give a SparkSession."
        )
    kind = getattr(type(spark), _KIND, type(spark))

    def sql(self: Any, sqlQuery: str, args: Any = None, **kwargs: Any) -> DataFrame:  # noqa: N803 - Spark's
        """Run a statement; see ``SparkSession.sql``, and :func:`hudi_core.sql` for ours."""
        if not kwargs:
            return _run(self, sqlQuery, args, options)
        with catalog_of(plain_session(self)).formatted(sqlQuery, kwargs) as text:
            return _run(self, text, args, options)

    own = type("HudiSparkSession", (kind,), {"sql": sql, _KIND: kind})
    return _as(own, spark)


def plain_session(spark: SparkSession) -> SparkSession:
    """The session itself; of one of :func:`sql_session`, Spark's own."""
    kind = getattr(type(spark), _KIND, None)
    return spark if kind is None else _as(kind, spark)


def _as(kind: type, spark: SparkSession) -> SparkSession:
    """A session with all that another has, of another class."""
    session: Any = object.__new__(kind)
    session.__dict__ = spark.__dict__
    return session  # type: ignore[no-any-return]


def _run(spark: SparkSession, text: str, args: Any, options: Options | None) -> DataFrame:
    # what it dispatches to knows sessions
    dispatch = import_module("hudi_core.statements.dispatch")
    found = dispatch.sql(spark, text, None, options, args)
    if not isinstance(found, CommitResult):
        return found  # type: ignore[no-any-return]
    first = Scanner(text).peek()
    if first is None or first.word not in _CHANGES:
        return plain_session(spark).range(0).select()
    counts = (found.updated, found.deleted, found.inserted)
    names = ", ".join(f"num_{name}_rows bigint" for name in _COUNTS)
    return plain_session(spark).createDataFrame([(sum(counts), *counts)], names)


# --- one statement --------------------------------------------------------------------------------


_BY_PATH: Final = "hudi"
_OPTIONS: Final = "hoodie."
_NAMED: Final = "_hudi_"
"""What names of parameters begin with that had none."""


@dataclass(frozen=True, slots=True)
class Target:
    """A table that a statement names.

    ``name`` is as SQL spells it, ``None`` for a table that is not in the session's catalog;
    ``entry`` is the catalog's. ``options`` are those of the table in the catalog, of the session
    and of the call; ``sql`` are those of statements alone. ``given`` is the table where a caller
    has it open; ``called`` qualifies its columns where it has no alias.
    """

    path: str
    options: Mapping[str, str]
    sql: SqlConfig
    name: str | None = None
    entry: SparkCatalogEntry | None = None
    given: Table | None = None
    called: str = "target"


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement, as it is run.

    In ``text`` parameters have names; ``given`` is the statement as it was given, for Spark.
    ``tables`` are by name in lower case.
    """

    spark: SparkSession
    text: str
    given: str
    args: Any = None
    tables: Mapping[str, Table | str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        spark: SparkSession,
        text: str,
        args: Any,
        tables: Mapping[str, Table | str] | None,
        options: Options | None,
    ) -> Statement:
        """A statement with its parameters."""
        known = {name.lower(): table for name, table in (tables or {}).items()}
        given = options_as_strings(options)
        if not isinstance(args, Sequence) or not args:
            return cls(spark, text, text, args or None, known, given)
        names = {f"{_NAMED}{number}": value for number, value in enumerate(args)}
        return cls(spark, _with_names(text), text, names, known, given)

    # --- what Spark does -------------------------------------------------------------------------

    @property
    def catalog(self) -> SessionCatalog:
        """The names of the session."""
        return catalog_of(self.spark)

    def by_spark(self) -> DataFrame:
        """Run the statement by Spark, as it was given."""
        args = self.args
        if args is not None and self.given != self.text:
            args = list(args.values())
        return self.spark.sql(self.given, args) if args else self.spark.sql(self.given)

    def query(self, text: str) -> DataFrame:
        """Run a query by Spark, with the parameters of the statement."""
        return self.spark.sql(text, self.args) if self.args else self.spark.sql(text)

    def constants(self, texts: Sequence[str]) -> list[Any]:
        """The values of expressions without columns, as Spark computes them.

        Times with a zone keep it.
        """
        if not texts:
            return []
        listed = ", ".join(f"({text}) AS c{number}" for number, text in enumerate(texts))
        frame = self.query(f"SELECT {listed}")
        [row] = frame.collect()
        kinds = [column.dataType.typeName() for column in frame.schema]
        return [
            value.astimezone() if kind == "timestamp" and isinstance(value, datetime) else value
            for value, kind in zip(row, kinds, strict=True)
        ]

    def nothing(self) -> DataFrame:
        """What Spark returns for a statement without a result."""
        return self.spark.range(0).select()

    # --- tables ----------------------------------------------------------------------------------

    def take_target(self, scanner: Scanner) -> Target | None:
        """Go past a table's name; ``None`` where it is none of ours."""
        if scanner.take("IDENTIFIER") and (expression := scanner.group()) is not None:
            [text] = self.constants([expression])
            parts = Scanner(str(text)).name()
        else:
            parts = scanner.name()
        return None if parts is None else self.find(parts)

    def find(self, parts: Sequence[str]) -> Target | None:
        """The table of a name; ``None`` where it is none of ours."""
        found = self._found(parts)
        return None if found is None else replace(found, called=parts[-1])

    def _found(self, parts: Sequence[str]) -> Target | None:
        given = self.tables.get(".".join(parts).lower())
        if given is not None:
            path = given.path if isinstance(given, Table) else given
            opened = given if isinstance(given, Table) else None
            return self.target(path, given=opened)
        name = spelled(parts)
        entry = self.catalog.entry(name)
        if entry is not None:
            return self.target(entry.path, name, entry)
        if len(parts) != 2 or parts[0].lower() != _BY_PATH or self.catalog.is_taken(name):
            return None
        return self.target(parts[1])

    def target(
        self,
        path: str,
        name: str | None = None,
        entry: SparkCatalogEntry | None = None,
        given: Table | None = None,
    ) -> Target:
        """A table with options: its own, the session's, the call's."""
        of_table = {} if entry is None else options_of_properties(entry.properties)
        options = {**of_table, **self.session_options(), **self.options}
        own = SqlConfig.from_options(options)
        return Target(path, of_tables(options), own, name, entry, given)

    def with_options(self, target: Target, options: Mapping[str, str]) -> Target:
        """A table with further options of a statement."""
        more = replace(self, options={**self.options, **options})
        return more.target(target.path, target.name, target.entry, target.given)

    def session_options(self) -> dict[str, str]:
        """Options that ``SET`` gave the session."""
        # which keeps quotes
        found = self.catalog.options(_OPTIONS)
        return {name: text.strip().strip("'\"") for name, text in found.items()}

    def open(self, target: Target) -> Table:
        """Open a table, and make it where there is a name alone.

        ``CREATE TABLE`` with columns in a session of Spark alone makes a name, and no table.
        """
        if target.given is not None:
            return target.given
        entry = target.entry
        try:
            return Table.open(target.path, target.options)
        except NotATableError:
            if entry is None or entry.note is not None or target.name is None:
                raise
        table = self.create(
            target.path, entry.columns, entry.partition_columns, target.name, target.options
        )
        self.refresh(target, table)
        return table

    def create(
        self,
        path: str,
        columns: Any,
        partition_columns: Sequence[str],
        name: str,
        options: Mapping[str, str],
    ) -> Table:
        """Create a table as SQL does, with named partition paths."""
        more: dict[str, str] = {}
        parts = Scanner(name).name() or (name,)
        if not TableKeys.name.is_given(options):
            more[TableKeys.name.key] = parts[-1]
        if partition_columns:
            if not TableKeys.partition_path.is_given(options):
                more[TableKeys.partition_path.key] = ",".join(partition_columns)
            if not TableKeys.hive_style.is_given(options):
                more[TableKeys.hive_style.key] = "true"
        return Table.create(path, columns, options={**options, **more})

    def positions(self, target: Target, table: Table) -> list[str]:
        """The columns by their position, as ``DESCRIBE`` shows them."""
        names = table.schema.names
        stated = () if target.entry is None else target.entry.columns.names
        shown = [name for name in stated if name in names]
        return shown if len(shown) == len(names) else list(names)

    def refresh(self, target: Target, table: Table) -> None:
        """Give a name the place and the columns of its table."""
        if target.name is None:
            return
        columns = in_sql(open_table(table.path, dict(target.options)))
        entry = target.entry
        kept = {} if entry is None else dict(entry.note or {})
        columns = columns if entry is None else _commented(columns, entry.columns)
        note = {**kept, "path": table.path, "columns": json.dumps(columns.names)}
        self.catalog.put_columns(target.name, columns, note)

    # --- refusals --------------------------------------------------------------------------------

    def refusal(self, reason: str) -> SchemaError:
        """The error of a statement that cannot be run."""
        return SchemaError(
            f"The statement {self.given!r} cannot be run: {reason}",
            "Put it right, or use the methods of Table: insert, insert_overwrite, update, delete, "
            "merge, alter.",
            statement=self.given,
            reason=reason,
        )

    def require_end(self, scanner: Scanner) -> None:
        """Refuse what is left of a statement."""
        if not scanner.is_at_end:
            raise self.refusal(f"{scanner.rest()!r} is not known here")


def of_tables(options: Mapping[str, str]) -> dict[str, str]:
    """Options without those that say which operation a statement is."""
    keys = (*SqlConfig.keys, WriteConfig.operation)
    own = {name for key in keys for name in key.names}
    return {name: text for name, text in options.items() if name not in own}


def in_sql(table: OpenTable) -> pa.Schema:
    """The columns of a table, those of partitions last, as in SQL."""
    schema = read_schema(table.client, table.timeline())
    last = set(table.client.config.partition_fields)
    ordered = sorted(schema, key=lambda field: field.name in last)
    return pa.schema(ordered)


def _commented(columns: pa.Schema, stated: pa.Schema) -> pa.Schema:
    """Columns with the comments that a catalog keeps."""
    comments = {field.name: field.metadata for field in stated if field.metadata}
    return pa.schema(
        [
            field.with_metadata({**(field.metadata or {}), **comments.get(field.name, {})})
            for field in columns
        ]
    )


def _with_names(text: str) -> str:
    """A statement whose parameters without names have some."""
    marks = [one for one in tokens_of(text) if one.kind is TokenKind.SYMBOL and one.text == "?"]
    for number, one in reversed(list(enumerate(marks))):
        text = f"{text[: one.start]}:{_NAMED}{number}{text[one.end :]}"
    return text


def parameters_of(text: str) -> list[tuple[Token, str]]:
    """The named parameters of SQL text, with their names."""
    tokens = list(tokens_of(text))
    return [
        (mark, name.text)
        for mark, name in pairwise(tokens)
        if mark.kind is TokenKind.SYMBOL
        and mark.text == ":"
        and name.kind is TokenKind.WORD
        and name.start == mark.end
    ]
