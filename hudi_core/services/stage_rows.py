"""The rows of a stage, as they came, in Arrow files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from hudi_core.engine.base import TaskContext
from hudi_core.engine.choice import frame_of_batches
from hudi_core.errors import DataFileError
from hudi_core.model.files import BasePath
from hudi_core.storage.data_files import data_filesystem
from hudi_core.storage.disk import sync_file
from hudi_core.storage.options import StorageOptions
from hudi_core.storage.shared import require_shared


@dataclass(frozen=True, slots=True)
class StageRows:
    """Where the rows of a stage are; tasks get it."""

    base_path: BasePath
    storage_options: StorageOptions
    folder: str
    schema: pa.Schema
    fsync: bool = True

    def save(self, task: TaskContext, batches: Iterator[pa.RecordBatch]) -> Iterator[str]:
        """Write the rows of one input task; yields the file's name.

        ``ConfigError`` means that the task runs on a machine that does not have the table.
        """
        require_shared(self.base_path)
        filesystem, path = self._path(f"{task.task}-{task.attempt}.arrow")
        is_local = isinstance(filesystem, pafs.LocalFileSystem)
        if is_local:
            filesystem.create_dir(path.rsplit("/", 1)[0], recursive=True)
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with (
            filesystem.open_output_stream(path) as stream,
            pa.ipc.new_file(stream, self.schema, options=options) as writer,
        ):
            for batch in batches:
                writer.write_batch(batch)
        if is_local and self.fsync:
            sync_file(path)
        yield path.rpartition("/")[2]

    def reader(self, names: Sequence[str]) -> pa.RecordBatchReader:
        """The rows of some files, in their order."""
        return pa.RecordBatchReader.from_batches(self.schema, self.read(names))

    def frame(self, spark: Any, names: Sequence[str]) -> Any:
        """The rows of some files as a DataFrame, a task for each."""
        return frame_of_batches(spark, [(name,) for name in names], self.read, self.schema)

    def read(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some files, in their order."""
        for name in names:
            filesystem, path = self._path(name)
            try:
                with filesystem.open_input_file(path) as source:
                    file = pa.ipc.open_file(source)
                    for number in range(file.num_record_batches):
                        yield file.get_batch(number)
            except (OSError, pa.ArrowInvalid) as error:
                raise DataFileError(self.base_path, str(error).split("\n", 1)[0]) from error

    def _path(self, name: str) -> tuple[pafs.FileSystem, str]:
        filesystem, root = data_filesystem(self.base_path, self.storage_options)
        return filesystem, f"{root}/{self.folder}/rows/{name}"
