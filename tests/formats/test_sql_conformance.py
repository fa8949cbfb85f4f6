"""The conformance suite over the SQL format, as its author runs it."""

from __future__ import annotations

from hudi_conformance.formats import TwoStepFormat, TwoStepFormatSuite

from tests.formats.sql_reader import INTRUSION, ask_sqlite, database_of, rows_of


class TestSqlite(TwoStepFormatSuite):
    format = TwoStepFormat(
        "sql",
        read=rows_of,
        lose=lambda path: database_of(path).unlink(),
        intrude=lambda path: ask_sqlite(path, INTRUSION),
    )
