"""The conformance suite over the SQL format, as its author runs it."""

from __future__ import annotations

import pytest
from hudi_sql_format.conformance import SqlSuite


@pytest.mark.one_matrix
class TestSqlite(SqlSuite):
    pass
