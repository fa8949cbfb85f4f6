"""The file groups of one partition of the metadata table.

How many there are is decided when a partition is first built, and says where each key is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hudi_core.errors import CorruptMetadataError
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.damage import REBUILD
from hudi_core.metadata.partition_types import shard_file_id, shard_number
from hudi_core.model.files import BaseFileName, FileStatus, LogFileName


@dataclass(frozen=True, slots=True)
class MetadataGroups:
    """The files of one partition, as a listing tells them.

    Attributes
    ----------
    partition
        Name of the partition.
    count
        File groups; at least 1.
    files
        Every base and log file.
    """

    partition: str
    count: int
    files: tuple[FileStatus, ...]


def list_groups(metadata: TableMetaClient, partition: str) -> MetadataGroups:
    """Return the file groups of a partition; one listing.

    Raises
    ------
    CorruptMetadataError
        The partition has no file group, or lacks one.
    """
    files: list[FileStatus] = []
    numbers: set[int] = set()
    for status in metadata.storage.list(partition):
        name = BaseFileName.parse(status.name) or LogFileName.parse(status.name)
        number = None if name is None else shard_number(name.file_id)
        if name is None or number is None or name.file_id != shard_file_id(partition, number):
            continue
        files.append(status)
        numbers.add(number)
    if numbers != set(range(len(numbers))) or not numbers:
        missing = min(set(range(len(numbers) + 1)) - numbers)
        path = f"{metadata.base_path}/{partition}"
        raise CorruptMetadataError(path, f"it lacks file group {missing}", REBUILD)
    return MetadataGroups(partition, len(numbers), tuple(files))


def list_all_groups(
    metadata: TableMetaClient, partitions: Sequence[str]
) -> dict[str, MetadataGroups]:
    """Return the file groups of several partitions, listed as the client shares out work."""

    def one(partition: str) -> MetadataGroups:
        return list_groups(metadata, partition)

    return dict(zip(partitions, metadata.run_map(one, list(partitions)), strict=True))
