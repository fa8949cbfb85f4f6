"""The conformance suite over the SQL format, as its author runs it."""

from __future__ import annotations

from hudi_sql_format.conformance import SqlSuite


class TestSqlite(SqlSuite):
    pass
