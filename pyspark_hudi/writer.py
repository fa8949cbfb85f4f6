"""Writing rows that come from the tasks of a Spark job.

Tasks write what they get to Arrow files in the table's folder for incoming rows. The commit, in a
Python process beside the driver, writes those rows as :func:`hudi_core.write` writes any others;
until then neither the timeline nor a reader sees anything of them, and an overwritten table is
still the old one.
"""

from __future__ import annotations

import contextlib
import tempfile
import uuid
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.fs as pafs
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

import hudi_core as hudi
from hudi_core.config.write import WriteConfig
from hudi_core.engine.choice import arrow_schema
from hudi_core.engine.plain_errors import plain_errors
from hudi_core.errors import NotATableError, StorageError, UnknownOptionWarning
from hudi_core.model.protocols import Storage
from hudi_core.services.create import plan_table
from hudi_core.services.opening import open_table, table_exists
from hudi_core.storage.data_files import data_filesystem
from hudi_core.storage.open import open_storage
from hudi_core.storage.store_clock import store_now_ms
from hudi_core.storage.temp_folders import INCOMING_FOLDER
from hudi_core.write.repetition import repetition_of
from pyspark_hudi.options import SaveMode, SourceOptions
from pyspark_hudi.shipping import Shipped

_ABANDONED_MS: Final = 7 * 24 * 3_600_000
"""Age of the last file of a job that is taken for dead: no job sends nothing for a week."""


@dataclass
class StagedRows(WriterCommitMessage):
    """A task's staged file by name; ``None`` without rows."""

    name: str | None


class HudiWriter(Shipped, DataSourceArrowWriter):
    """Stages rows in tasks and commits them; see :func:`open_writer`.

    Parameters
    ----------
    options
        Options of the write.
    schema
        Columns of the rows.
    mode
        The save mode; ``None`` for rows that nobody wants.
    """

    def __init__(self, options: SourceOptions, schema: pa.Schema, mode: SaveMode | None) -> None:
        self._options = options
        self._schema = schema
        self._mode = mode
        self._folder = f"{INCOMING_FOLDER}/{uuid.uuid4().hex}"

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Write the rows of one task to a file of their own."""
        if self._mode is None:
            return StagedRows(None)
        task = TaskContext.get()
        number = task.partitionId() if task else 0
        name = f"{number:06d}-{uuid.uuid4().hex}.arrow"
        with plain_errors(), ExitStack() as files:
            writer: pa.ipc.RecordBatchFileWriter | None = None
            for batch in iterator:
                if batch.num_rows:
                    writer = writer or self._new_file(name, files)
                    writer.write_batch(batch.cast(self._schema))
        return StagedRows(name if writer else None)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Write the staged rows to the table."""
        if self._mode is None:
            return
        names = [each.name for each in messages if isinstance(each, StagedRows) and each.name]
        with plain_errors(), ExitStack() as files:
            files.callback(self._cleanup)
            rows = self._staged(names, files)
            files.enter_context(warnings.catch_warnings())
            # the process that made this writer has warned already
            warnings.simplefilter("ignore", UnknownOptionWarning)
            hudi.write(rows, self._options.path, self._mode, self._options.given)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002 - Spark's
        """Remove the rows that tasks staged."""
        self._cleanup()

    def _new_file(self, name: str, files: ExitStack) -> pa.ipc.RecordBatchFileWriter:
        filesystem, root = data_filesystem(self._options.path, self._options.store)
        folder = f"{root}/{self._folder}"
        if isinstance(filesystem, pafs.LocalFileSystem):
            filesystem.create_dir(folder, recursive=True)
        stream = files.enter_context(filesystem.open_output_stream(f"{folder}/{name}"))
        return files.enter_context(pa.ipc.new_file(stream, self._schema))

    def _staged(self, names: Sequence[str], files: ExitStack) -> pa.Table:
        """Yield the rows of all tasks, in task order, as a stream."""
        filesystem, root = data_filesystem(self._options.path, self._options.store)
        folder = f"{root}/{self._folder}"
        if not isinstance(filesystem, pafs.LocalFileSystem):
            here = files.enter_context(tempfile.TemporaryDirectory(prefix="hudi-rows-"))
            local = pafs.LocalFileSystem()
            for name in names:
                pafs.copy_files(
                    f"{folder}/{name}",
                    f"{here}/{name}",
                    source_filesystem=filesystem,
                    destination_filesystem=local,
                )
            folder = here
        tables = [pa.ipc.open_file(pa.memory_map(f"{folder}/{name}")).read_all() for name in names]
        return pa.concat_tables([self._schema.empty_table(), *tables])

    def _cleanup(self) -> None:
        # what stays is removed by a later job
        with contextlib.suppress(StorageError):
            _storage(self._options).delete_tree(self._folder)


def open_writer(options: SourceOptions, schema: StructType, overwrite: bool) -> HudiWriter:
    """Writer of rows to a table, after checks that it can succeed.

    Parameters
    ----------
    schema
        Columns of the rows, in Spark's types.
    overwrite
        Whether Spark overwrites.

    Raises
    ------
    NotATableError
        With ``errorifexists``, there is a table.
    ConfigError, SchemaError, PluginError
        The options cannot be used, or contradict the table.
    """
    given, mode, rows = options.given, options.save_mode(overwrite), arrow_schema(schema)
    config = WriteConfig.from_options(given)
    exists = table_exists(options.path, given)
    if exists and _is_repetition(options, config):
        return HudiWriter(options, rows, None)
    if exists and mode in ("errorifexists", "error"):
        raise NotATableError(
            options.path, "holds a table already", "Write with mode=append, or to another path."
        )
    if exists and mode == "ignore":
        return HudiWriter(options, rows, None)
    if exists and (mode == "append" or config.operation.is_replacing):
        open_table(options.path, given)
    else:
        plan_table(options.path, rows, given)
    _sweep(_storage(options))
    return HudiWriter(options, rows, mode)


def _is_repetition(options: SourceOptions, config: WriteConfig) -> bool:
    """Whether the rows were written before."""
    if config.extras.idempotency is None:
        return False
    opened = open_table(options.path, options.given)
    return repetition_of(opened, opened.timeline(), config.extras.idempotency) is not None


def _sweep(storage: Storage) -> None:
    """Remove the rows of jobs that died."""
    for folder in storage.list_folders(INCOMING_FOLDER):
        newest = max((file.modified_ms for file in storage.list(folder)), default=None)
        if newest is not None and store_now_ms(storage) - newest > _ABANDONED_MS:
            storage.delete_tree(folder)


def _storage(options: SourceOptions) -> Storage:
    return open_storage(options.path, options.store)
