"""The facade: a table to create, open, write and read.

Rows are a Spark DataFrame, which is written by Spark, or anything Arrow can read, which is written
in this process. People who bring Hudi's options come in by :mod:`hudi_core.doors.datasource`.
"""

from __future__ import annotations

from hudi_core.table.arguments import Extras, Options
from hudi_core.table.table import Table

__all__ = ["Extras", "Options", "Table"]
