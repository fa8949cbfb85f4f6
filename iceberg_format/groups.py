"""File group and path of a data file, from its URI."""

from __future__ import annotations

from pyiceberg.manifest import DataFile

from hudi_core.spi import BaseFileName, FileGroupId, FileId, PartitionPath
from iceberg_format.files import TableFiles


def group_of(files: TableFiles, file: DataFile) -> FileGroupId | None:
    """Return a file's group; ``None`` without a name of Hudi's."""
    partition_path, _, name = files.data_path(file.file_path).rpartition("/")
    parsed = BaseFileName.parse(name)
    return (
        None
        if parsed is None
        else FileGroupId(PartitionPath(partition_path), FileId(parsed.file_id))
    )
