"""The data source ``hudi`` as PySpark meets it."""

from __future__ import annotations

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from pyspark_hudi.shipping import Shipped

# Spark imports this module in every session that uses a source of any kind, to learn the names of
# sources. So what reads and writes is imported where it does.
# ruff: noqa: PLC0415


class DefaultSource(Shipped, DataSource):
    """Tables by path, with Hudi's options.

    Reading takes ``as.of.instant``, or ``hoodie.datasource.query.type=incremental`` with a begin
    and an end; writing takes ``hoodie.datasource.write.operation`` and everything else that
    :func:`hudi_core.write` does. Options of a store reach the tasks, never the table.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name for ``format(...)``."""
        return "hudi"

    def schema(self) -> StructType:
        """Return the columns after the latest commit, meta columns first."""
        from hudi_core.engine.plain_errors import plain_errors
        from pyspark_hudi.options import SourceOptions
        from pyspark_hudi.planning import spark_schema

        with plain_errors():
            return spark_schema(SourceOptions.of(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reader of the columns of ``schema``."""
        from hudi_core.engine.plain_errors import plain_errors
        from pyspark_hudi.options import SourceOptions
        from pyspark_hudi.reader import HudiReader

        with plain_errors():
            return HudiReader(SourceOptions.of_read(self.options, schema), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Writer of rows of ``schema``."""
        from hudi_core.engine.plain_errors import plain_errors
        from pyspark_hudi.options import SourceOptions
        from pyspark_hudi.writer import open_writer

        with plain_errors():
            return open_writer(SourceOptions.of(self.options), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's
        """Writer of the batches of a stream."""
        from hudi_core.engine.plain_errors import plain_errors
        from pyspark_hudi.options import SourceOptions
        from pyspark_hudi.stream_writer import open_stream_writer

        with plain_errors():
            return open_stream_writer(SourceOptions.of(self.options), schema, overwrite)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's
        """Reader of what changes in the table."""
        from hudi_core.engine.plain_errors import plain_errors
        from pyspark_hudi.options import SourceOptions
        from pyspark_hudi.stream_reader import HudiStreamReader

        with plain_errors():
            return HudiStreamReader(SourceOptions.of_read(self.options, schema), schema)
