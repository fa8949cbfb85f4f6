"""Writing the batches of a structured streaming query, each of them once."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from hudi_core.config.write import WriteConfig
from hudi_core.doors.streaming import QUERY_ID, StreamBatch, checked_sink_options, write_batch
from hudi_core.engine.choice import arrow_schema
from hudi_core.engine.plain_errors import plain_errors
from hudi_core.errors import InvalidOptionError, UnknownOptionWarning
from hudi_core.model.operation import INSERT_OVERWRITE_TABLE
from pyspark_hudi.incoming import IncomingRows, sweep
from pyspark_hudi.options import SourceOptions
from pyspark_hudi.shipping import Shipped

_BATCH_ID = "streaming.sql.batchId"
"""What Spark calls the number of the batch that a task works for."""


@dataclass
class StagedBatch(WriterCommitMessage):
    """A task's staged file of a batch by name.

    ``name`` is ``None`` without rows. Only the task knows the id of the query in ``batch``.
    """

    batch: StreamBatch
    name: str | None


class HudiStreamWriter(Shipped, DataSourceStreamArrowWriter):
    """Stages the rows of each batch in tasks and commits them.

    Spark makes one for each process that has a part in it. What they share is in the messages.

    ``replaces``: each batch replaces all rows of the table (output mode ``complete``).
    """

    def __init__(self, options: SourceOptions, schema: pa.Schema, replaces: bool) -> None:
        self._options = options
        self._schema = schema
        self._replaces = replaces

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Write the rows of one task to a file of their own."""
        with plain_errors():
            batch = _batch_of_task()
            return StagedBatch(batch, self._rows_of(batch).stage(iterator))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803, ARG002 - Spark's
        """Write the staged rows to the table, unless the batch is there."""
        staged = [each for each in messages if isinstance(each, StagedBatch)]
        names = [each.name for each in staged if each.name]
        if not staged or not (names or self._replaces):
            return
        batch = staged[0].batch
        rows = self._rows_of(batch)
        with plain_errors(), ExitStack() as files:
            files.callback(rows.delete)
            files.enter_context(warnings.catch_warnings())
            # the process that made the first of these writers has warned already
            warnings.simplefilter("ignore", UnknownOptionWarning)
            sweep(self._options)
            write_batch(
                lambda: rows.read(names, files), self._options.path, self._options.given, batch
            )

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803, ARG002 - Spark's
        """Remove the rows that tasks staged."""
        for message in messages:
            if isinstance(message, StagedBatch):
                self._rows_of(message.batch).delete()
                return

    def _rows_of(self, batch: StreamBatch) -> IncomingRows:
        # what a query that died left of a batch goes with the batch, as it is written in the end
        name = f"{batch.query}-{batch.number}"
        return IncomingRows(self._options, self._schema, name)


def open_stream_writer(
    options: SourceOptions, schema: StructType, replaces: bool
) -> HudiStreamWriter:
    """Writer of the batches of a query, after checks of its options."""
    if options.mode not in (None, "append"):
        raise InvalidOptionError(
            "mode", options.mode, "a stream adds to its table", "Drop it, or set outputMode."
        )
    given = checked_sink_options(options.given)
    config = WriteConfig.from_options(given)
    if replaces:
        name = INSERT_OVERWRITE_TABLE.option
        if WriteConfig.operation.is_given(given) and config.operation.option != name:
            raise InvalidOptionError(
                WriteConfig.operation.key,
                config.operation.option,
                "with the output mode complete each batch replaces the whole table",
                f"Use {name}, or another output mode.",
            )
        options = options.with_options({WriteConfig.operation.key: name})
    return HudiStreamWriter(options, arrow_schema(schema), replaces)


def _batch_of_task() -> StreamBatch:
    task = TaskContext.get()
    query, number = (
        task.getLocalProperty(name) if task else None for name in (QUERY_ID, _BATCH_ID)
    )
    if not query or number is None:
        raise InvalidOptionError(
            QUERY_ID,
            query,
            "Spark does not give the task the query that it works for",
            "Use foreachBatch(hudi_core.stream_sink(...)).",
        )
    return StreamBatch(query, int(number))
