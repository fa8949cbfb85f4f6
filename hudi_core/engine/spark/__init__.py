"""The PySpark engine; the only rooms that import ``pyspark``.

File lists as DataFrames are here, too.
"""

from hudi_core.engine.spark.columns import quoted
from hudi_core.engine.spark.conditional import (
    bounds_of,
    catalog_path,
    changed_frame,
    fitted,
    merged_frame,
)
from hudi_core.engine.spark.engine import SparkEngine
from hudi_core.engine.spark.scan import (
    connected_scheme,
    read_batches,
    read_files,
    where,
)

__all__ = [
    "SparkEngine",
    "bounds_of",
    "catalog_path",
    "changed_frame",
    "connected_scheme",
    "fitted",
    "merged_frame",
    "quoted",
    "read_batches",
    "read_files",
    "where",
]
