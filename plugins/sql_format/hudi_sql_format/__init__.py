"""Table format with its metadata in a SQL database."""

from hudi_sql_format.plugin import SqlTableFormat

__all__ = ["SqlTableFormat"]
