"""File group and path of a data file, from its URI."""

from __future__ import annotations

from pyiceberg.manifest import DataFile

from hudi_core.spi import BaseFileName, CorruptMetadataError, FileGroupId, FileId, PartitionPath
from iceberg_format.files import TableFiles


def group_of(files: TableFiles, file: DataFile) -> FileGroupId:
    """Return the file group of a file.

    Raises
    ------
    CorruptMetadataError
        It is not below the table's base path, or its name is none of a base file.
    """
    partition_path, _, name = files.data_path(file.file_path).rpartition("/")
    parsed = BaseFileName.parse(name)
    if parsed is None:
        raise CorruptMetadataError(
            file.file_path,
            "the table's Iceberg metadata names it, and its name is none of a base file",
            "Restore the Iceberg metadata from a backup of the table.",
        )
    return FileGroupId(PartitionPath(partition_path), FileId(parsed.file_id))
