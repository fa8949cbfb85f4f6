"""Spill files between tasks of one write, as Arrow files.

They lie below the instant's temporary folder.

A file counts only when a task's result names it; the attempt in its name keeps two attempts from
meeting.
"""

from __future__ import annotations

from typing import TypeAlias

import pyarrow as pa
import pyarrow.fs as pafs

from hudi_core.engine.base import TaskContext
from hudi_core.rows.context import WriteContext
from hudi_core.rows.staging import stage_folder
from hudi_core.storage.data_files import data_filesystem

SpillRef: TypeAlias = pa.Table | str
"""A table between two tasks: itself, where the engine shares memory, else the path of a file."""


def spill(
    context: WriteContext, task: TaskContext, kind: str, table: pa.Table, in_memory: bool
) -> SpillRef:
    """Leave a table for a later task.

    ``kind`` becomes a word of the file's name. With ``in_memory`` the table itself is handed on.
    """
    if in_memory:
        return table
    location = f"{stage_folder(context)}/{kind}-{task.stage}-{task.task}-{task.attempt}.arrow"
    filesystem, root = data_filesystem(context.base_path, context.storage_options)
    path = f"{root}/{location}"
    if isinstance(filesystem, pafs.LocalFileSystem):
        filesystem.create_dir(path.rsplit("/", 1)[0], recursive=True)
    with (
        filesystem.open_output_stream(path) as stream,
        pa.ipc.new_file(stream, table.schema) as writer,
    ):
        writer.write_table(table)
    return location


def load(context: WriteContext, left: SpillRef) -> pa.Table:
    """The rows that an earlier task spilled."""
    if isinstance(left, pa.Table):
        return left
    filesystem, root = data_filesystem(context.base_path, context.storage_options)
    path = f"{root}/{left}"
    local = isinstance(filesystem, pafs.LocalFileSystem)
    with pa.memory_map(path) if local else filesystem.open_input_file(path) as source:
        return pa.ipc.open_file(source).read_all()
