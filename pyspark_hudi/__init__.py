"""The Spark data source: ``spark.read.format("hudi")`` and ``df.write.format("hudi")``.

PySpark imports every installed package whose name begins with ``pyspark_`` and registers its
``DefaultSource``; nothing needs to be configured or imported.
"""

from pyspark_hudi.source import DefaultSource

__all__ = ["DefaultSource"]
