"""Expressions in SQL over Arrow rows, computed by DuckDB.

It sees the rows and nothing else: no files, no network, no extensions.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self

import pyarrow as pa

from hudi_core.errors import SchemaError
from hudi_core.write.sql_text import library

_ROWS: Final = "rows"
_SETTINGS: Final = (
    "SET TimeZone = 'UTC'",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


class DuckDb:
    """Database in memory that computes the texts of one write.

    A context, which closes it.

    It is opened by the first text, and kept for all files of the write: opening one takes 20 to
    40 ms, which are mostly its threads, and a text over a few rows 2 to 5. So a merge of three rows
    with a text for the rows that its source lacks, into 100 files, takes 1.1 s of a processor and
    not 3.9, and an update of half of their rows by texts 1.6 and not 6.1. Between two texts it
    holds no rows. One thread uses it at a time.
    """

    def __init__(self) -> None:
        self._connection: Any = None

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
        """Return rows with further columns.

        Parameters
        ----------
        columns
            Expressions in DuckDB's SQL over the columns, by name.

        Raises
        ------
        SchemaError
            An expression cannot be computed.
        """
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
        """Return the rows of a query over Arrow tables.

        Raises
        ------
        SchemaError
            DuckDB does not understand it, or cannot compute it.
        """
        duckdb = library("duckdb", text)
        connection = self._opened(duckdb)
        for name, table in tables.items():
            connection.register(name, table)
        try:
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

    def _opened(self, duckdb: Any) -> Any:
        if self._connection is None:
            connection = duckdb.connect()
            for setting in _SETTINGS:
                connection.execute(setting)
            self._connection = connection
        return self._connection
