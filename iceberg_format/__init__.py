"""Apache Iceberg as a table format: each commit is Iceberg's too."""

from iceberg_format.plugin import IcebergTableFormat

__all__ = ["IcebergTableFormat"]
