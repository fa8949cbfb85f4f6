"""Which statements are ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from hudi_core.model.result import CommitResult
from hudi_core.statements.altering import alter, refresh
from hudi_core.statements.changing import delete, merge, update
from hudi_core.statements.creating import create, drop
from hudi_core.statements.inserting import insert
from hudi_core.statements.partitions import truncate
from hudi_core.statements.querying import run_query
from hudi_core.statements.running import Statement, plain_session
from hudi_core.statements.showing import call, create_index, drop_index, show
from hudi_core.statements.words import Scanner
from hudi_core.table import Options, Table
from hudi_core.write.conditional.sql_text import shallow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Action = Callable[[Statement, Scanner], Any]
"""Runs a statement; ``None`` where it is none of ours."""


def sql(
    spark: SparkSession,
    statement: str,
    tables: Mapping[str, Table | str] | None = None,
    options: Options | None = None,
    args: Any = None,
) -> CommitResult | DataFrame:
    """Run a statement in Spark's SQL, also on our tables.

    Parameters
    ----------
    spark
        The session, which computes expressions and sources, and whose catalog has the names.
    statement
        One statement. Its table is one of ``tables``, one of the session's catalog that was created
        ``USING hudi``, or a path: ``hudi.`s3://lake/trips` ``.
    tables
        Tables, or their paths, by name.
    options
        Hudi options of the statement, and of the store of tables that are named by path. They win
        over what ``SET`` gave the session, and this over the properties of the table in the
        catalog.
    args
        Parameters, as of ``spark.sql``.

    Returns
    -------
    CommitResult or DataFrame
        The commit of a statement that changes rows or columns; what Spark returns for others.

    Raises
    ------
    SchemaError
        The statement cannot be understood, or does not fit the table. Nothing is written.
    ExpressionLimitError
        An expression of it is nested too deeply. Nothing is written.
    InvalidOptionError
        sqlglot is not installed, and the statement has conditions or values of columns.
    CommitConflictError
        See :meth:`hudi_core.table.Table.update`.
    """
    with shallow(statement, is_too_deep=_has_no_stack_left):
        one = Statement.of(plain_session(spark), statement, args, tables, options)
        first = Scanner(one.text).peek()
        for action in _ACTIONS.get("" if first is None else first.word, ()):
            found = action(one, Scanner(one.text))
            if found is not None:
                return found  # type: ignore[no-any-return]
        return run_query(one) if _reads(Scanner(one.text)) else one.by_spark()


def _has_no_stack_left(error: Exception) -> bool:
    """Whether Spark's own parser ran out of stack."""
    return "java.lang.StackOverflowError" in str(getattr(error, "java_exception", ""))


def _with(statement: Statement, scanner: Scanner) -> Any:
    """A change after ``WITH``; ``None`` for what is Spark's."""
    scanner.take("WITH")
    scanner.take("RECURSIVE")
    while True:
        name = scanner.name()
        if scanner.is_symbol("("):
            scanner.group()
        scanner.take("AS")
        if name is None or (scanner.is_symbol("(") and scanner.group() is None):
            return None
        if not scanner.take_symbol(","):
            break
    following = scanner.peek()
    action = None if following is None else _AFTER_WITH.get(following.word)
    if following is None or action is None:
        return None
    return action(statement, scanner, statement.text[: following.start])


def _reads(scanner: Scanner) -> bool:
    """Whether a statement of Spark's reads rows at once."""
    if scanner.take("CREATE"):
        scanner.take("OR", "REPLACE")
        return scanner.take("TABLE")
    return scanner.is_symbol("(") or scanner.take("|".join(_QUERIES))


_QUERIES: Final = (
    "SELECT",
    "WITH",
    "FROM",
    "VALUES",
    "TABLE",
    "EXPLAIN",
    "DESCRIBE",
    "DESC",
    "INSERT",
    "MERGE",
)
_AFTER_WITH: Final = {"INSERT": insert, "MERGE": merge}
_ACTIONS: Final[Mapping[str, tuple[Action, ...]]] = {
    "ALTER": (alter,),
    "CALL": (call,),
    "CREATE": (create, create_index),
    "DELETE": (delete,),
    "DROP": (drop, drop_index),
    "INSERT": (insert,),
    "MERGE": (merge,),
    "MSCK": (refresh,),
    "REFRESH": (refresh,),
    "REPLACE": (create,),
    "SHOW": (show,),
    "TRUNCATE": (truncate,),
    "UPDATE": (update,),
    "WITH": (_with,),
}
"""What looks at a statement, by its first word."""
