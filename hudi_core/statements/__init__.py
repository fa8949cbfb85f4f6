"""Statements in SQL on our tables, in a session of Spark.

A source in Python gets few statements from Spark, and of these neither place nor name of the table.
So statements on our tables are done here; whatever is none of ours is Spark's, as it was given.
"""

from hudi_core.statements.dispatch import sql
from hudi_core.statements.running import sql_session

__all__ = ["sql", "sql_session"]
