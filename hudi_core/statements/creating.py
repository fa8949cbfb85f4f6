"""``CREATE TABLE``, with columns or a query, and ``DROP TABLE``."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from hudi_core.config.options import is_secret_name
from hudi_core.config.sql import options_of_properties
from hudi_core.engine.choice import arrow_schema, engine_of
from hudi_core.errors import HudiError, NotATableError, SchemaError
from hudi_core.schema.table_schema import META_COLUMNS
from hudi_core.services.opening import open_table, table_exists
from hudi_core.statements.querying import query, run_query
from hudi_core.statements.running import Statement, in_sql, of_tables
from hudi_core.statements.words import Scanner, properties_of, spelled
from hudi_core.storage.location import location_of
from hudi_core.table import Table
from hudi_core.write.conditional.sql_text import quoted_string

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SOURCES: Final = ("hudi", "org.apache.hudi")
_DEFAULT_SOURCE: Final = "spark.sql.sources.default"
_PATH: Final = "path"
PURGED: Final = "external.table.purge"
"""Hive's property of a table whose rows are deleted with its name."""
_REFUSED: Final = ("CLUSTERED", "CLUSTER", "SKEWED", "ROW", "STORED", "DEFAULT")
"""What other clauses begin with."""


@dataclass(slots=True)
class _Definition:
    """The clauses of ``CREATE TABLE``.

    ``columns``, ``source`` (``USING``) and ``like`` are ``None`` without their clause; ``body`` is
    blank without a query. ``properties`` are of ``OPTIONS`` and ``TBLPROPERTIES``; the latter win.
    """

    columns: str | None = None
    like: tuple[str, ...] | None = None
    source: str | None = None
    partition_columns: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    location: str | None = None
    comment: str | None = None
    refused: str | None = None
    body: str = ""


def create(statement: Statement, scanner: Scanner) -> Any:
    """``CREATE TABLE``; ``None`` where the table is to be none of ours."""
    replaces = scanner.take("REPLACE") or scanner.take("CREATE", "OR", "REPLACE")
    if not replaces:
        scanner.take("CREATE")
    if not scanner.take("TABLE"):
        return None
    is_tolerant = scanner.take("IF", "NOT", "EXISTS")
    parts = scanner.name()
    if parts == ("IDENTIFIER",) and scanner.is_symbol("("):
        [text] = statement.constants([scanner.group() or ""])
        parts = Scanner(str(text)).name()
    if parts is None:
        return None
    found = _definition(scanner)
    source = found.source or str(statement.spark.conf.get(_DEFAULT_SOURCE, ""))
    name, catalog = spelled(parts), statement.catalog
    if source.lower() not in _SOURCES or not catalog.can_name(name):
        return None
    if replaces:
        raise statement.refusal("REPLACE TABLE cannot be done: drop the table, then create it")
    if catalog.is_taken(name):
        target = statement.find(parts)
        if is_tolerant and target is not None:
            statement.open(target)  # a name that a session of Spark alone made gets its table
        return run_query(statement) if not found.body else _taken(statement, is_tolerant)
    if found.refused is not None:
        raise statement.refusal(f"{found.refused} cannot be done")
    return _Creation(statement, name, found).run()


def _taken(statement: Statement, is_tolerant: bool) -> DataFrame:
    return statement.nothing() if is_tolerant else statement.by_spark()


def _definition(scanner: Scanner) -> _Definition:
    found = _Definition()
    if scanner.is_symbol("("):
        found.columns = scanner.group()
    if scanner.take("LIKE"):
        found.like = scanner.name()
    while not scanner.is_at_end and found.refused is None:
        if scanner.take("USING"):
            found.source = ".".join(scanner.name() or ())
        elif scanner.take("OPTIONS"):
            found.options = _properties(scanner, found)
        elif scanner.take("TBLPROPERTIES"):
            found.properties = _properties(scanner, found)
        elif scanner.take("PARTITIONED", "BY"):
            found.partition_columns = _partition_columns(scanner, found)
        elif scanner.take("LOCATION"):
            found.location = scanner.take_string()
        elif scanner.take("COMMENT"):
            found.comment = scanner.take_string()
        elif (following := scanner.peek()) is not None and following.word in _REFUSED:
            # the source may come after it
            found.refused = following.text
            scanner.until(lambda one: one.take("USING"))
            found.source = ".".join(scanner.name() or ()) or found.source
        else:
            scanner.take("AS")
            found.body = scanner.rest()
    return found


def _properties(scanner: Scanner, found: _Definition) -> dict[str, str]:
    known = properties_of(scanner.group() or "")
    if known is None:
        found.refused = "a property whose value is an expression"
    return known or {}


def _partition_columns(scanner: Scanner, found: _Definition) -> tuple[str, ...]:
    names = []
    for item in Scanner(scanner.group() or "").items():
        one = Scanner(item)
        parts = one.name()
        if parts is None or not one.is_at_end:
            found.refused = f"PARTITIONED BY ({item}), which is no name of a column,"
        names.append(".".join(parts or ()))
    return tuple(names)


@dataclass(frozen=True, slots=True)
class _Creation:
    """A table that is made, or taken up, under a name."""

    statement: Statement
    name: str
    found: _Definition

    def run(self) -> Any:
        """Make the table with its rows, and register the name."""
        statement, found = self.statement, self.found
        path = found.location or found.options.get(_PATH)
        is_own = path is None
        place = location_of(path or statement.catalog.default_path(self.name))
        given = of_tables(
            {
                **statement.session_options(),
                **statement.options,
                **options_of_properties(found.options),
                **options_of_properties(found.properties),
            }
        )
        rows = query(statement, found.body) if found.body else None
        columns = self._columns(rows)
        exists = table_exists(place, given)
        if exists and (is_own or rows is not None):
            raise NotATableError(
                place,
                "holds a table already",
                "Choose another place with LOCATION. To make a name for that table: "
                f"CREATE TABLE {self.name} USING hudi LOCATION '{place}'.",
            )
        if exists or columns is None:
            return self._taken_up(place, given, columns)
        ordered = self._ordered(columns)
        table = statement.create(place, ordered, found.partition_columns, self.name, given)
        result = None
        try:
            if rows is not None:
                rows = rows.select(*(f"`{name}`" for name in ordered.names))
                engine = engine_of(statement.spark)
                result = table.bulk_insert(rows, engine=engine)
            self._register(table, given, is_own=is_own)
        except BaseException:
            with contextlib.suppress(HudiError):
                table.drop()
            raise
        return result or statement.nothing()

    def _columns(self, rows: DataFrame | None) -> pa.Schema | None:
        """The columns that the statement names, or that its query has."""
        statement, found = self.statement, self.found
        if found.like is not None:
            rows = statement.spark.table(spelled(found.like))
        if rows is not None:
            if found.columns is not None:
                raise statement.refusal("columns are those of the query: CAST gives them types")
            columns = arrow_schema(rows.schema)
        elif found.columns is None:
            return None
        else:
            columns = statement.catalog.stated_columns(found.columns)
        return pa.schema([one for one in columns if one.name.lower() not in META_COLUMNS])

    def _ordered(self, columns: pa.Schema) -> pa.Schema:
        """The columns, those of partitions last, as in Spark and Hudi."""
        spelled_as = {name.lower(): name for name in columns.names}
        wanted = self.found.partition_columns
        unknown = [name for name in wanted if name.lower() not in spelled_as]
        if unknown:
            raise SchemaError(
                f"{self.statement.given!r} is partitioned by {unknown[0]!r}, which is no column",
                f"The columns are: {', '.join(columns.names)}.",
                column=unknown[0],
            )
        last = [spelled_as[name.lower()] for name in wanted]
        others = [name for name in columns.names if name not in last]
        return pa.schema([columns.field(name) for name in (*others, *last)])

    def _taken_up(
        self, place: str, given: Mapping[str, str], columns: pa.Schema | None
    ) -> DataFrame:
        """Register a table that is there and fits the statement."""
        table = Table.open(place, given)
        stated = () if columns is None else zip(columns.names, columns.types, strict=True)
        had = dict(zip(table.schema.names, table.schema.types, strict=True))
        wrong = [f"{name} {kind}" for name, kind in stated if had.get(name) != kind]
        if wrong or (columns is not None and len(columns) != len(had)):
            raise SchemaError(
                f"The table at {place} has other columns than {self.statement.given!r} says"
                + (f" ({', '.join(wrong)})" if wrong else ""),
                "Leave the columns out: the name gets those of the table. They are: "
                f"{', '.join(f'{name} {kind}' for name, kind in had.items())}.",
            )
        fields = self.found.partition_columns
        if fields and tuple(fields) != table.config.partition_fields:
            raise SchemaError(
                f"The table at {place} is partitioned by "
                f"{', '.join(table.config.partition_fields) or 'nothing'}, not by "
                f"{', '.join(fields)}",
                "Leave PARTITIONED BY out.",
            )
        self._register(table, given, is_own=False)
        return self.statement.nothing()

    def _register(self, table: Table, given: Mapping[str, str], *, is_own: bool) -> None:
        statement, found = self.statement, self.found
        columns = in_sql(open_table(table.path, given))
        note = {_PATH: table.path, "columns": json.dumps(columns.names)}
        statement.catalog.register(self.name, columns, note, found.comment)
        properties = {
            name: text
            for name, text in {**found.options, **found.properties}.items()
            if name != _PATH and not is_secret_name(name)
        }
        if is_own:
            properties[PURGED] = "true"
        if properties:
            listed = ", ".join(
                f"{quoted_string(name)} = {quoted_string(text)}"
                for name, text in properties.items()
            )
            statement.spark.sql(f"ALTER TABLE {self.name} SET TBLPROPERTIES ({listed})")


def drop(statement: Statement, scanner: Scanner) -> DataFrame | None:
    """``DROP TABLE``; ``None`` where its table is none of ours.

    The rows go where the table was made without a place, and with ``PURGE``, as in Hudi.
    """
    scanner.take("DROP")
    if not scanner.take("TABLE"):
        return None
    scanner.take("IF", "EXISTS")
    target = statement.take_target(scanner)
    if target is None or target.name is None or target.entry is None:
        return None
    purges = scanner.take("PURGE")
    statement.require_end(scanner)
    is_own = target.entry.properties.get(PURGED, "").lower() == "true"
    if purges or is_own or target.entry.is_managed:
        with contextlib.suppress(NotATableError):
            Table.open(target.path, target.options).drop()
    return statement.by_spark()
