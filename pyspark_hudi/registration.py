"""Registers the data source ``hudi`` where Spark does not find it."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from pyspark_hudi.source import DefaultSource
from pyspark_org_apache_hudi import DefaultSource as NamedAsInHudi


def register(session: SparkSession) -> None:
    """Register the source in this Python, where executors are local."""
    context = session.sparkContext
    if (context.master or "").partition("[")[0] != "local":
        return
    others = context.pythonExec
    # what is registered keeps the Python of that moment
    context.pythonExec = sys.executable
    try:
        for source in (DefaultSource, NamedAsInHudi):
            session.dataSource.register(source)
    finally:
        context.pythonExec = others
