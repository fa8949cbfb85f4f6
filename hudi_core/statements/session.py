"""A session of Spark that knows our statements."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from hudi_core.engine.choice import catalog_of
from hudi_core.errors import InvalidOptionError
from hudi_core.model.result import CommitResult
from hudi_core.statements.words import Scanner
from hudi_core.table import Options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
