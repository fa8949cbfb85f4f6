"""The engine on PySpark, and what turns file lists into DataFrames; the only rooms that import
``pyspark``."""

from hudi_core.engine.spark.engine import SparkEngine
from hudi_core.engine.spark.scan import read_files

__all__ = ["SparkEngine", "read_files"]
