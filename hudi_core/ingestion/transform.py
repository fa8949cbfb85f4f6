"""Rows made of rows by a query: Hudi Streamer's SQL transformer."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from hudi_core.config.ingestion import IngestionConfig
from hudi_core.config.sql import SqlLimits
from hudi_core.errors import InvalidOptionError, SchemaError
from hudi_core.schema.absence import absences
from hudi_core.write.duckdb_sql import in_duckdb
from hudi_core.write.duckdb_text import DuckDb
from hudi_core.write.sql_text import library, shallow
from hudi_core.write.sql_tokens import plain_strings

PLACEHOLDER: Final = "<SRC>"
_ROWS: Final = "incoming_rows"


def transformed(text: str, rows: pa.Table, limits: SqlLimits) -> pa.Table:
    """The rows of a query over others.

    ``text`` is in Spark's SQL, and names the rows :data:`PLACEHOLDER`.
    """
    for one in absences(rows):
        raise SchemaError(
            f"{one.row} lacks the column {one.path!r}, and what a query makes of it is a value",
            f"Let files have one set of columns, or leave out {IngestionConfig.sql.key}.",
            columns=[one.path],
        )
    sqlglot = library("sqlglot", text)
    if PLACEHOLDER not in text:
        raise _refused(text, f"it does not name {PLACEHOLDER}, the rows of the files")
    try:
        with shallow(text):
            statements = sqlglot.parse(
                plain_strings(text.replace(PLACEHOLDER, _ROWS)), read="spark"
            )
    except sqlglot.errors.SqlglotError as error:
        raise _refused(text, str(error).split("\n", 1)[0]) from error
    if len(statements) != 1 or not isinstance(statements[0], sqlglot.exp.Query):
        raise _refused(text, "it is not one query")
    with shallow(text):
        query = in_duckdb(statements[0], text)
    with DuckDb(limits) as database:
        return database.query(query, {_ROWS: rows})


def _refused(text: str, reason: str) -> InvalidOptionError:
    return InvalidOptionError(
        IngestionConfig.sql.key, text, reason, f"Write a query FROM {PLACEHOLDER}."
    )
