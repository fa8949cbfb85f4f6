"""The file groups of one partition of the metadata table.

How many there are is decided when a partition is first built, and says where each key is. A record
index that is kept by the table's partitions has some for each of them, those of a new partition
since its first commit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from hudi_core.errors import CorruptMetadataError
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.damage import REBUILD
from hudi_core.metadata.partition_types import GroupPlace, group_place, shard_number
from hudi_core.model.files import BaseFileName, FileId, FileSlice, LogFileName, PartitionPath
from hudi_core.model.instant_time import InstantTime


class GroupFile(NamedTuple):
    """A file of a file group.

    The instant in its name, and its bytes.
    """

    instant: InstantTime
    size: int
    is_log: bool


@dataclass(frozen=True)
class ListedGroup:
    """A file group, as a listing shows it."""

    partition: str
    file_id: FileId
    files: Mapping[str, GroupFile]

    @classmethod
    def of(cls, found: FileSlice) -> ListedGroup:
        """The file group of a slice, with the slice's files."""
        files = {
            log.status.name: GroupFile(log.name.instant, log.status.size, is_log=True)
            for log in found.log_files
        }
        base = found.base_file
        if base is not None:
            files[base.status.name] = GroupFile(base.instant, base.size, is_log=False)
        return cls(found.partition_path, found.file_id, files)

    @cached_property
    def instants(self) -> frozenset[InstantTime]:
        """Those that have a file of it."""
        return frozenset([file.instant for file in self.files.values()])

    @cached_property
    def start(self) -> str:
        """The instant of its newest base file; empty where it has none."""
        return max([file.instant for file in self.files.values() if not file.is_log], default="")

    @cached_property
    def place(self) -> GroupPlace:
        """Which keys it has."""
        found = group_place(self.partition, self.file_id)
        # the ids of other writers may begin otherwise
        return found or GroupPlace(None, shard_number(self.file_id) or 0)


Groups = Mapping[PartitionPath | None, Sequence[ListedGroup]]
"""File groups by their owner, each where its number says."""


def in_shard_order(groups: Iterable[ListedGroup], path: str) -> Groups:
    """File groups of a partition by owner, ordered by number."""
    found: dict[PartitionPath | None, list[ListedGroup]] = {}
    for group in sorted(groups, key=lambda one: one.place.shard):
        own = found.setdefault(group.place.owner, [])
        if group.place.shard != len(own):
            owner = group.place.owner
            whose = "" if owner is None else f" of partition {owner!r}"
            what = f"file group {len(own)}{whose} is missing"
            if group.place.shard < len(own):
                what = f"file group {group.place.shard}{whose} is there under two names"
            raise CorruptMetadataError(path, f"its {what}", REBUILD)
        own.append(group)
    if None in found and len(found) > 1:
        raise CorruptMetadataError(
            path, "some of its file groups are of one partition, and some of all", REBUILD
        )
    return found


def without_files(groups: Groups) -> Groups:
    """The same file groups without the files that were listed."""
    return {owner: [replace(one, files={}) for one in some] for owner, some in groups.items()}


def list_groups(metadata: TableMetaClient, partition: str, has_owners: bool) -> Groups:
    """List the file groups of a partition; one listing."""
    files: dict[FileId, dict[str, GroupFile]] = {}
    for status in metadata.storage.list(partition):
        written = status.name
        name = (LogFileName if written.startswith(".") else BaseFileName).parse(written)
        place = None if name is None else group_place(partition, name.file_id)
        if name is not None and place and (place.owner is not None) is has_owners:
            file = GroupFile(name.instant, status.size, isinstance(name, LogFileName))
            files.setdefault(name.file_id, {})[written] = file
    path = f"{metadata.base_path}/{partition}"
    found = in_shard_order((ListedGroup(partition, *one) for one in files.items()), path)
    if not (found or has_owners):
        raise CorruptMetadataError(path, "its file group 0 is missing", REBUILD)
    return found


def list_all_groups(
    metadata: TableMetaClient, partitions: Sequence[str], with_owners: Collection[str]
) -> dict[str, Groups]:
    """List the file groups of several partitions, shared out by the client."""

    def one(partition: str) -> Groups:
        return list_groups(metadata, partition, partition in with_owners)

    return dict(zip(partitions, metadata.run_map(one, list(partitions)), strict=True))
