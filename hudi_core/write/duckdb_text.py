"""Expressions in SQL over Arrow rows, computed by DuckDB.

It sees the rows and nothing else: no files, no network, no extensions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa

from hudi_core.errors import SchemaError
from hudi_core.write.sql_text import library

_DIALECT: Final = "duckdb"
_ROWS: Final = "rows"
_SETTINGS: Final = (
    "SET TimeZone = 'UTC'",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


def computed(rows: pa.Table, columns: Mapping[str, str]) -> pa.Table:
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
    found = query(f"SELECT {shown} FROM {_ROWS}", {_ROWS: rows})  # noqa: S608 - it is SQL
    for name in columns:
        rows = rows.append_column(name, found.column(name))
    return rows


def query(text: str, tables: Mapping[str, pa.Table]) -> pa.Table:
    """Return the rows of a query over Arrow tables.

    Raises
    ------
    SchemaError
        DuckDB does not understand it, or cannot compute it.
    """
    duckdb = library("duckdb", text)
    with _connection(duckdb, tables) as connection:
        try:
            return connection.sql(text).to_arrow_table()
        except duckdb.Error as error:
            reason = str(error).split("\n", 1)[0]
            raise SchemaError(
                f"An expression in SQL cannot be computed: {reason}",
                f"It was run as: {text}",
                reason=reason,
            ) from error


@contextmanager
def _connection(duckdb: Any, tables: Mapping[str, pa.Table]) -> Iterator[Any]:
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        for setting in _SETTINGS:
            connection.execute(setting)
        yield connection
