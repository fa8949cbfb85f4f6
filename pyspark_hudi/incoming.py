"""Rows of a Spark job that wait to be committed.

Tasks write what they get to Arrow files in the table's folder for incoming rows. The commit, in a
Python process beside the driver, writes those rows as any others; until then neither the timeline
nor a reader sees anything of them.
"""

from __future__ import annotations

import contextlib
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.fs as pafs
from pyspark import TaskContext

from hudi_core.errors import StorageError
from hudi_core.storage.data_files import data_filesystem
from hudi_core.storage.open import open_storage
from hudi_core.storage.probes import store_now_ms
from hudi_core.storage.temp_folders import INCOMING_FOLDER
from pyspark_hudi.options import SourceOptions

_ABANDONED_MS: Final = 7 * 24 * 3_600_000
"""Age of the last file of a job that is taken for dead: no job sends nothing for a week."""


@dataclass(frozen=True, slots=True)
class IncomingRows:
    """The rows of one job, in a folder of its own."""

    options: SourceOptions
    schema: pa.Schema
    name: str

    @property
    def _folder(self) -> str:
        return f"{INCOMING_FOLDER}/{self.name}"

    def stage(self, batches: Iterator[Any]) -> str | None:
        """Write the rows of one task to a file.

        Returns its name; ``None`` where there are none.
        """
        task = TaskContext.get()
        number = task.partitionId() if task else 0
        name = f"{number:06d}-{uuid.uuid4().hex}.arrow"
        with ExitStack() as files:
            writer: pa.ipc.RecordBatchFileWriter | None = None
            for batch in batches:
                if batch.num_rows:
                    writer = writer or self._new_file(name, files)
                    writer.write_batch(batch.cast(self.schema))
        return name if writer else None

    def read(self, names: Sequence[str], files: ExitStack) -> pa.Table:
        """The rows of some files, in this order.

        ``files`` keeps local copies for as long as the rows are in use.
        """
        filesystem, root = data_filesystem(self.options.path, self.options.store)
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
        return pa.concat_tables([self.schema.empty_table(), *tables])

    def delete(self) -> None:
        """Delete all of them; what stays is deleted by a later job."""
        with contextlib.suppress(StorageError):
            open_storage(self.options.path, self.options.store).delete_tree(self._folder)

    def _new_file(self, name: str, files: ExitStack) -> pa.ipc.RecordBatchFileWriter:
        filesystem, root = data_filesystem(self.options.path, self.options.store)
        folder = f"{root}/{self._folder}"
        if isinstance(filesystem, pafs.LocalFileSystem):
            filesystem.create_dir(folder, recursive=True)
        stream = files.enter_context(filesystem.open_output_stream(f"{folder}/{name}"))
        return files.enter_context(pa.ipc.new_file(stream, self.schema))


def sweep(options: SourceOptions) -> None:
    """Remove the rows of jobs that died."""
    storage = open_storage(options.path, options.store)
    for folder in storage.list_folders(INCOMING_FOLDER):
        newest = max((file.modified_ms for file in storage.list(folder)), default=None)
        if newest is not None and store_now_ms(storage) - newest > _ABANDONED_MS:
            storage.delete_tree(folder)
