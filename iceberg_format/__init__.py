"""Apache Iceberg as a table format: every commit of a Hudi timeline is an Iceberg commit too."""

from iceberg_format.plugin import IcebergTableFormat

__all__ = ["IcebergTableFormat"]
