"""Reading a table in the tasks of a Spark query."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from hudi_core.engine.choice import arrow_schema
from hudi_core.engine.plain_errors import plain_errors
from hudi_core.errors import HudiError
from hudi_core.read.plan import Scan, Sized
from pyspark_hudi.options import SourceOptions
from pyspark_hudi.planning import PlannedRead, plan_read
from pyspark_hudi.shipping import Shipped


class FilesPartition(InputPartition):
    """The files, or changes of files, of one task."""

    def __init__(self, parts: tuple[Sized, ...]) -> None:
        super().__init__(parts)


class HudiReader(Shipped, DataSourceReader):
    """Reads one plan: made on the driver, run in the tasks.

    It takes no filters of Spark's. Spark keeps what a source in Python planned last with the
    DataFrame, for every other query of it: ``rows.where(...)`` would take files from ``rows``, and
    one side of a join from the other.
    """

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._columns = schema.fieldNames()
        self._schema = arrow_schema(schema)

    def partitions(self) -> list[InputPartition]:
        """Return the files of each task."""
        with plain_errors():
            return [FilesPartition(parts) for parts in self._plan.tasks]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the rows of one task's files as Arrow batches."""
        with plain_errors():
            for batch in self._scan.read(partition.value or ()):
                yield fitted(batch, self._schema)

    def shipped(self) -> dict[str, Any]:
        """State that a task needs: neither the options nor the plan.

        Spark asks for it before it asks for :meth:`partitions`, and reports what fails here as a
        failure to send it. So an error of the plan waits until then.
        """
        try:
            scan = self._scan
        except HudiError:
            scan = None
        return {"_scan": scan, "_schema": self._schema}

    @cached_property
    def _plan(self) -> PlannedRead:
        return plan_read(self._options, self._columns)

    @cached_property
    def _scan(self) -> Scan[Any]:
        return self._plan.scan


def fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows in the columns of a name, with nulls for what lacks."""
    if batch.num_columns == len(schema):
        return batch.cast(schema)
    known = set(batch.schema.names)
    columns = [
        batch.column(field.name).cast(field.type)
        if field.name in known
        else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
