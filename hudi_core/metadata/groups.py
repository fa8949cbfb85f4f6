"""The file groups of one partition of the metadata table.

How many there are is decided when a partition is first built, and says where each key is. A record
index that is kept by the table's partitions has some for each of them, those of a new partition
since its first commit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from hudi_core.errors import CorruptMetadataError
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.damage import REBUILD
from hudi_core.metadata.partition_types import GroupPlace, group_place
from hudi_core.model.files import BaseFileName, FileId, LogFileName, PartitionPath
from hudi_core.model.instant_time import InstantTime


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A file group, as a listing tells it.

    Attributes
    ----------
    file_id
        Its id.
    instants
        Those that have a file of it.
    """

    file_id: FileId
    instants: frozenset[InstantTime]


@dataclass(frozen=True, slots=True)
class MetadataGroups:
    """The file groups of one partition, as a listing tells them.

    Attributes
    ----------
    partition
        Name of the partition.
    owned
        The file groups by their owner, see :class:`~hudi_core.metadata.partition_types.GroupPlace`,
        each where its number says.
    """

    partition: str
    owned: Mapping[PartitionPath | None, Sequence[ListedGroup]]


def list_groups(metadata: TableMetaClient, partition: str, has_owners: bool) -> MetadataGroups:
    """Return the file groups of a partition; one listing.

    Parameters
    ----------
    has_owners
        Whether it is a record index that is kept by the table's partitions. Such an index has no
        file group where no partition of the table ever held a row.

    Raises
    ------
    CorruptMetadataError
        The partition has no file group, or lacks one, or has one twice.
    """
    ids: dict[GroupPlace, FileId] = {}
    instants: dict[FileId, set[InstantTime]] = {}
    path = f"{metadata.base_path}/{partition}"
    for status in metadata.storage.list(partition):
        name = BaseFileName.parse(status.name) or LogFileName.parse(status.name)
        place = None if name is None else group_place(partition, name.file_id)
        if name is None or place is None or (place.owner is not None) is not has_owners:
            continue
        if ids.setdefault(place, name.file_id) != name.file_id:
            raise CorruptMetadataError(path, f"{name.file_id} is there under two names", REBUILD)
        instants.setdefault(name.file_id, set()).add(name.instant)
    found: dict[PartitionPath | None, list[ListedGroup]] = {} if has_owners else {None: []}
    for place, file_id in sorted(ids.items(), key=lambda item: item[0].shard):
        groups = found.setdefault(place.owner, [])
        if place.shard != len(groups):
            raise CorruptMetadataError(path, _lacks(place.owner, len(groups)), REBUILD)
        groups.append(ListedGroup(file_id, frozenset(instants[file_id])))
    if found.get(None) == []:
        raise CorruptMetadataError(path, _lacks(None, 0), REBUILD)
    return MetadataGroups(partition, found)


def list_all_groups(
    metadata: TableMetaClient, partitions: Sequence[str], with_owners: Collection[str]
) -> dict[str, MetadataGroups]:
    """Return the file groups of several partitions, listed as the client shares out work.

    Parameters
    ----------
    with_owners
        Those whose file groups have owners.
    """

    def one(partition: str) -> MetadataGroups:
        return list_groups(metadata, partition, partition in with_owners)

    return dict(zip(partitions, metadata.run_map(one, list(partitions)), strict=True))


def _lacks(owner: PartitionPath | None, shard: int) -> str:
    whose = "" if owner is None else f" of partition {owner!r}"
    return f"it lacks file group {shard}{whose}"
