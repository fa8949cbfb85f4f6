"""Writing rows that come from the tasks of a Spark job.

The commit writes what the tasks staged (:mod:`pyspark_hudi.incoming`) as :func:`hudi_core.write`
writes any others; until then an overwritten table is still the old one.
"""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

import hudi_core as hudi
from hudi_core.config.write import WriteConfig
from hudi_core.engine.choice import arrow_schema
from hudi_core.engine.plain_errors import plain_errors
from hudi_core.errors import NotATableError, UnknownOptionWarning
from hudi_core.services.create import plan_table
from hudi_core.services.opening import open_table, table_exists
from hudi_core.write.ending import repetition_of
from pyspark_hudi.incoming import IncomingRows, sweep
from pyspark_hudi.options import SaveMode, SourceOptions
from pyspark_hudi.shipping import Shipped


@dataclass
class StagedRows(WriterCommitMessage):
    """A task's staged file by name; ``None`` without rows."""

    name: str | None


class HudiWriter(Shipped, DataSourceArrowWriter):
    """Stages rows in tasks and commits them; see :func:`open_writer`.

    ``rows`` has the options of the write; ``mode`` is ``None`` for rows that are not wanted.
    """

    def __init__(self, rows: IncomingRows, mode: SaveMode | None) -> None:
        self._rows = rows
        self._mode = mode

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Write the rows of one task to a file of their own."""
        if self._mode is None:
            return StagedRows(None)
        with plain_errors():
            return StagedRows(self._rows.stage(iterator))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Write the staged rows to the table."""
        if self._mode is None:
            return
        names = [each.name for each in messages if isinstance(each, StagedRows) and each.name]
        options = self._rows.options
        with plain_errors(), ExitStack() as files:
            files.callback(self._rows.delete)
            rows = self._rows.read(names, files)
            files.enter_context(warnings.catch_warnings())
            # the process that made this writer has warned already
            warnings.simplefilter("ignore", UnknownOptionWarning)
            hudi.write(rows, options.path, self._mode, options.given)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002 - Spark's
        """Remove the rows that tasks staged."""
        self._rows.delete()


def open_writer(options: SourceOptions, schema: StructType, overwrite: bool) -> HudiWriter:
    """Writer of rows to a table, after checks that it can succeed."""
    given, mode = options.given, options.save_mode(overwrite)
    rows = IncomingRows(options, arrow_schema(schema), uuid.uuid4().hex)
    config = WriteConfig.from_options(given)
    exists = table_exists(options.path, given)
    if exists and _is_repetition(options, config):
        return HudiWriter(rows, None)
    if exists and mode in ("errorifexists", "error"):
        raise NotATableError(
            options.path, "holds a table already", "Write with mode=append, or to another path."
        )
    if exists and mode == "ignore":
        return HudiWriter(rows, None)
    if exists and (mode == "append" or config.operation.is_replacing):
        open_table(options.path, given)
    else:
        plan_table(options.path, rows.schema, given)
    sweep(options)
    return HudiWriter(rows, mode)


def _is_repetition(options: SourceOptions, config: WriteConfig) -> bool:
    """Whether the rows were written before."""
    if config.extras.idempotency is None:
        return False
    opened = open_table(options.path, options.given)
    return repetition_of(opened, opened.timeline(), config.extras.idempotency) is not None
