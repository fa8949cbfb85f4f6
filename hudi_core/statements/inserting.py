"""``INSERT INTO`` and ``INSERT OVERWRITE``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hudi_core.config.sql import OverwriteMode
from hudi_core.engine.choice import engine_of, fitted, with_constants
from hudi_core.errors import SchemaError
from hudi_core.model.operation import INSERT, UPSERT, Operation
from hudi_core.model.result import CommitResult
from hudi_core.schema.table_schema import META_COLUMNS
from hudi_core.statements.partitions import matching_partitions, partition_values, taken_partition
from hudi_core.statements.querying import query
from hudi_core.statements.running import Statement, Target
from hudi_core.statements.words import Scanner, properties_of
from hudi_core.table import Table
from hudi_core.write.replacing import PartitionLike

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NULLS: Final = {"hoodie.write.set.null.for.missing.columns": "true"}
_MODE: Final = "spark.sql.sources.partitionOverwriteMode"


@dataclass(frozen=True, slots=True)
class _Insertion:
    """The clauses of an insertion.

    ``partition`` gives expressions by column, ``None`` where the query has the values; it is
    ``None`` without a clause, as ``columns`` is without a list. ``is_by_name``: columns of the
    query go where their names say.
    """

    overwrites: bool
    partition: Mapping[str, str | None] | None = None
    columns: tuple[str, ...] | None = None
    is_by_name: bool = False


def insert(statement: Statement, scanner: Scanner, ctes: str = "") -> CommitResult | None:
    """Run an insertion; ``None`` where its table is none of ours."""
    scanner.take("INSERT")
    evolves = scanner.take("WITH", "SCHEMA", "EVOLUTION")
    overwrites = scanner.take("OVERWRITE")
    if not overwrites and not scanner.take("INTO"):
        return None
    scanner.take("TABLE")
    target = statement.take_target(scanner)
    if target is None:
        return None
    if evolves:
        raise statement.refusal("WITH SCHEMA EVOLUTION cannot be done: use ALTER TABLE before")
    if scanner.take("WITH|OPTIONS"):
        options = properties_of(scanner.group() or "")
        if options is None:
            raise statement.refusal("its options are no list of names and values")
        target = statement.with_options(target, options)
    clauses = _clauses(statement, scanner, overwrites=overwrites)
    body = scanner.rest()
    statement.require_end(scanner)
    table = statement.open(target)
    values = partition_values(statement, table, clauses.partition or {})
    rows = query(statement, f"{ctes} {body}")
    rows = _placed(statement, (target, table), clauses, rows, values)
    return _Writing(statement, table, target, rows).run(clauses, values)


def _clauses(statement: Statement, scanner: Scanner, *, overwrites: bool) -> _Insertion:
    partition = taken_partition(statement, scanner)
    if scanner.take("IF", "NOT", "EXISTS"):
        raise statement.refusal("IF NOT EXISTS cannot be done for a partition")
    if scanner.take("REPLACE"):
        raise statement.refusal("REPLACE WHERE, ON and USING cannot be done: use MERGE INTO")
    is_by_name = scanner.take("BY", "NAME")
    columns = None if is_by_name else _columns(statement, scanner)
    return _Insertion(overwrites, partition, columns, is_by_name)


def _columns(statement: Statement, scanner: Scanner) -> tuple[str, ...] | None:
    """The list of columns, if the parentheses are one, and no query."""
    if not scanner.is_symbol("("):
        return None
    inner = Scanner(scanner.text, scanner.place)
    listed = Scanner(inner.group() or "")
    first = listed.peek()
    if (
        first is None
        or first.word in ("SELECT", "WITH", "VALUES", "FROM", "TABLE")
        or (listed.is_symbol("("))
    ):
        return None
    names = []
    for item in Scanner(scanner.group() or "").items():
        name = Scanner(item)
        parts = name.name()
        if parts is None or len(parts) != 1 or not name.is_at_end:
            raise statement.refusal(f"{item!r} is no column")
        names.append(parts[0])
    return tuple(names)


def _placed(
    statement: Statement,
    into: tuple[Target, Table],
    clauses: _Insertion,
    rows: DataFrame,
    values: Mapping[str, Any],
) -> DataFrame:
    """The rows of a query under the names of the table's columns."""
    # rows of another table of Hudi's bring its meta columns
    gone = [name for name in rows.columns if name.lower() in META_COLUMNS]
    rows = rows.drop(*gone) if len(set(gone)) == len(META_COLUMNS) else rows
    schema, columns = into[1].schema, statement.positions(*into)
    given_by_query = [name for name, text in (clauses.partition or {}).items() if text is None]
    dynamic = _known(statement, given_by_query, schema.names)
    others = [name for name in columns if name not in values and name not in dynamic]
    wanted = _known(statement, clauses.columns or (*others, *dynamic), schema.names)
    given = [name.lower() for name in rows.columns]
    same = sorted(given) == sorted(name.lower() for name in wanted)
    if clauses.is_by_name:
        names = _known(statement, rows.columns, schema.names)
    elif clauses.columns is None and same and len(set(given)) == len(given):
        # as Hudi does: positions count where names do not say it
        names = _known(statement, rows.columns, wanted)
    else:
        names = wanted
    if len(names) != len(rows.columns):
        raise SchemaError(
            f"{statement.given!r} gives {len(rows.columns)} columns for {len(names)}: "
            f"{', '.join(names)}",
            "Name the columns to insert, INSERT INTO t (a, b) ..., or give all of them.",
            columns=names,
        )
    twice = [name for name in names if names.count(name) > 1 or name in values]
    if twice:
        raise statement.refusal(f"it gives {twice[0]} twice")
    kinds = {name: statement.catalog.sql_type(schema.field(name).type) for name in values}
    return with_constants(fitted(rows.toDF(*names), schema), values, kinds)


def _known(statement: Statement, names: Sequence[str], known: Sequence[str]) -> list[str]:
    """Names as the table spells them."""
    spelled = {name.lower(): name for name in known}
    found = []
    for name in names:
        if name.lower() not in spelled:
            raise SchemaError(
                f"{statement.given!r} names {name!r}, which is no column",
                f"The columns are: {', '.join(known)}. ALTER TABLE ... ADD COLUMNS adds others.",
                column=name,
            )
        found.append(spelled[name.lower()])
    return found


@dataclass(frozen=True, slots=True)
class _Writing:
    """Rows on their way into a table."""

    statement: Statement
    table: Table
    target: Target
    rows: DataFrame

    def run(self, clauses: _Insertion, values: Mapping[str, Any]) -> CommitResult:
        """Write them as the clauses say."""
        table, rows = self.table, self.rows
        given: dict[str, Any] = {
            "options": {**_NULLS, **self.target.options},
            "engine": engine_of(self.statement.spark),
        }
        if not clauses.overwrites:
            write = getattr(table, self._operation.method)
            return write(rows, **given)  # type: ignore[no-any-return]
        mode = self.target.sql.overwrite_mode
        if mode is None:
            text = str(self.statement.spark.conf.get(_MODE, OverwriteMode.STATIC.value))
            mode = OverwriteMode(text.upper())
        fields = table.config.partition_fields
        is_static = mode is OverwriteMode.STATIC
        if not fields or (is_static and clauses.partition is None):
            return table.insert_overwrite_table(rows, **given)
        replaced: Sequence[PartitionLike] = []
        if is_static:
            is_whole = len(values) == len(fields)
            replaced = [values] if is_whole else matching_partitions(table, values)
        return table.insert_overwrite(rows, partitions=replaced, **given)

    @property
    def _operation(self) -> Operation:
        """What an insertion does that overwrites nothing."""
        chosen, config = self.target.sql.insert_operation, self.table.config
        if chosen is not None:
            return chosen
        return UPSERT if config.record_key_fields and config.ordering_fields else INSERT
