"""The PySpark engine; the only rooms that import ``pyspark``.

File lists as DataFrames are here, too.
"""

from hudi_core.engine.spark.columns import quoted
from hudi_core.engine.spark.engine import SparkEngine
from hudi_core.engine.spark.scan import (
    connected_scheme,
    read_batches,
    read_files,
    where,
)

__all__ = [
    "SparkEngine",
    "connected_scheme",
    "quoted",
    "read_batches",
    "read_files",
    "where",
]
