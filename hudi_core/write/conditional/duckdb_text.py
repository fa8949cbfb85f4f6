"""Expressions in SQL over Arrow rows, computed by DuckDB.

It sees the rows and nothing else: no files, no network, no extensions.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final, Self

import pyarrow as pa

from hudi_core.config.sql import SqlLimits
from hudi_core.errors import ExpressionLimitError, SchemaError
from hudi_core.write.conditional.duckdb_sql import MACROS, PREFIX
from hudi_core.write.conditional.sql_text import library

_ROWS: Final = "rows"
_LONGEST: Final = 10_000_000
_TOO_LONG: Final = f"a value of more than {_LONGEST:,} characters or elements"
_TOO_DEEP: Final = "expression depth limit"
_GROWING: Final = {
    "repeat": {"value, times": "length(value) * times"},
    "lpad": {"value, size, pad": "size"},
    "rpad": {"value, size, pad": "size"},
    "generate_series": {
        "low, high": "TRY_CAST(high - low AS DOUBLE)",
        "low, high, step": "TRY_CAST(high - low AS DOUBLE) / abs(TRY_CAST(step AS DOUBLE))",
    },
}
"""Functions that make long values of short ones, by their arguments the length: DuckDB neither
counts their memory nor stops them. Their second argument decides."""


def closed_database(duckdb: Any, limits: SqlLimits, **settings: str) -> Any:
    """A connection to a database in memory.

    It sees what is registered, and no files, network or extensions.
    """
    connection = duckdb.connect()
    for setting, value in (
        *settings.items(),
        ("temp_directory", ""),
        ("memory_limit", limits.memory_limit),
        ("enable_external_access", "false"),
        ("lock_configuration", "true"),
    ):
        connection.execute(f"SET {setting} = '{value}'")
    for name, forms in _GROWING.items():
        made = [_guarded(name, arguments, size) for arguments, size in forms.items()]
        connection.execute(f"CREATE MACRO {name} {', '.join(made)}")
    return connection


def _guarded(name: str, arguments: str, size: str) -> str:
    """A form of a macro that takes a function's place."""
    first, second, *rest = arguments.split(", ")
    checked = f"CASE WHEN {size} > {_LONGEST} THEN error('{_TOO_LONG}') ELSE {second} END"
    return f"({arguments}) AS system.main.{name}({', '.join([first, checked, *rest])})"


@contextmanager
def limited(connection: Any, limits: SqlLimits, text: str) -> Iterator[None]:
    """Run SQL text within its limits."""
    import duckdb  # noqa: PLC0415 - who has a connection has it

    is_late = threading.Event()

    def stop() -> None:
        is_late.set()
        connection.interrupt()

    timer = threading.Timer(limits.timeout_s, stop) if limits.timeout_s else None
    if timer is not None:
        timer.daemon = True
        timer.start()
    try:
        yield
    except duckdb.Error as error:
        key, limit = None, ""
        if is_late.is_set() and isinstance(error, duckdb.InterruptException):
            key, limit = SqlLimits.timeout_s.key, f"{limits.timeout_s} seconds"
        elif isinstance(error, duckdb.OutOfMemoryException):
            key, limit = SqlLimits.memory_limit.key, f"{limits.memory_limit} of memory"
        elif _TOO_DEEP in str(error):
            raise ExpressionLimitError(
                "An expression in SQL is nested too deeply for DuckDB",
                f"Make it of fewer operations. It was run as: {text}",
                text=text,
            ) from error
        elif _TOO_LONG in str(error):
            raise ExpressionLimitError(
                f"An expression in SQL makes {_TOO_LONG}",
                f"Make it shorter. It was run as: {text}",
                limit=_LONGEST,
            ) from error
        if key is None:
            raise
        raise ExpressionLimitError(
            f"An expression in SQL takes more than the {limit} that {key} gives it",
            f"Simplify it, or give {key} more. It was run as: {text}",
            option=key,
            limit=limit,
        ) from error
    finally:
        if timer is not None:
            timer.cancel()


class DuckDb:
    """Database in memory that computes the SQL of one write.

    A context, which closes it.

    It is opened by the first expression, and kept for all files of the write: opening one takes 20
    to 40 ms, which are mostly its threads, and an expression over a few rows 2 to 5. So a merge of
    three rows with an expression for the rows that its source lacks, into 100 files, takes 1.1 s of
    a processor and not 3.9, and an update of half of their rows by expressions 1.6 and not 6.1.
    Between two expressions it holds no rows. One thread uses it at a time.
    """

    def __init__(self, limits: SqlLimits) -> None:
        self._limits = limits
        self._connection: Any = None
        self._has_macros = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def computed(self, rows: pa.Table, columns: Mapping[str, str]) -> pa.Table:
        """Return rows with further columns."""
        if not columns:
            return rows
        if not rows.num_rows and not rows.num_columns:
            raise ValueError("rows have columns")
        shown = ", ".join(f'{sql} AS "{name}"' for name, sql in columns.items())
        found = self.query(f"SELECT {shown} FROM {_ROWS}", {_ROWS: rows})  # noqa: S608 - it is SQL
        for name in columns:
            rows = rows.append_column(name, found.column(name))
        return rows

    def query(self, text: str, tables: Mapping[str, pa.Table]) -> pa.Table:
        """Return the rows of a query over Arrow tables."""
        duckdb = library("duckdb", text)
        connection = self._opened(duckdb, text)
        for name, table in tables.items():
            connection.register(name, table)
        try:
            with limited(connection, self._limits, text):
                return connection.sql(text).to_arrow_table()
        except duckdb.Error as error:
            reason = str(error).split("\n", 1)[0]
            raise SchemaError(
                f"An expression in SQL cannot be computed: {reason}",
                f"It was run as: {text}",
                reason=reason,
            ) from error
        finally:
            for name in tables:
                connection.unregister(name)

    def _opened(self, duckdb: Any, text: str) -> Any:
        if self._connection is None:
            self._connection = closed_database(duckdb, self._limits, TimeZone="UTC")
        if PREFIX in text and not self._has_macros:
            made = (f"CREATE MACRO {name} {body}" for name, body in MACROS.items())
            self._connection.execute("; ".join(made))
            self._has_macros = True
        return self._connection
