"""The PySpark engine; the only rooms that import ``pyspark``.

File lists as DataFrames are here, too.
"""

from hudi_core.engine.spark.catalog import NOTE, SessionCatalog, noted
from hudi_core.engine.spark.conditional import (
    bounds_of,
    changed_frame,
    fitted,
    merged_frame,
    with_casts,
    with_constants,
)
from hudi_core.engine.spark.engine import SparkEngine
from hudi_core.engine.spark.scan import (
    connected_scheme,
    quoted,
    read_batches,
    read_files,
    to_arrow,
    where,
)

__all__ = [
    "NOTE",
    "SessionCatalog",
    "SparkEngine",
    "bounds_of",
    "changed_frame",
    "connected_scheme",
    "fitted",
    "merged_frame",
    "noted",
    "quoted",
    "read_batches",
    "read_files",
    "to_arrow",
    "where",
    "with_casts",
    "with_constants",
]
