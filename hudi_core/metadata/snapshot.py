"""The metadata table as one reader sees it.

Opening costs the properties, the two timelines, and a listing of each partition that is used:
nothing of it grows with the partitions or files of the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain

import numpy as np
import pyarrow as pa

from hudi_core.errors import CorruptMetadataError, UnsupportedTableError
from hudi_core.hashing.java_hash import shards_of
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.damage import REBUILD, with_rebuild_hint
from hudi_core.metadata.index_definitions import IndexDefinitions, read_definitions
from hudi_core.metadata.key_index.unique_keys import are_watched, is_noted
from hudi_core.metadata.keys import secondary_prefix, split_secondary_key
from hudi_core.metadata.log.completeness import CommitRecords, require_complete_slices
from hudi_core.metadata.log.layers import GroupFiles, GroupReader
from hudi_core.metadata.log.records import MetadataRecord
from hudi_core.metadata.log.visible_instants import VisibleInstants, require_current
from hudi_core.metadata.merging import present
from hudi_core.metadata.partition_types import RECORD_INDEX, SECONDARY_INDEX
from hudi_core.metadata.table import (
    StoredPartitions,
    metadata_client,
    require_readable,
)
from hudi_core.model.files import FileGroupId, FileSlice, PartitionPath
from hudi_core.model.instant import Action
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.metering import Metric
from hudi_core.model.protocols import TimelineView
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_system import FileSystemView
from hudi_core.view.storage_lister import StorageLister


class MetadataSnapshot:
    """Looks up records of the metadata table.

    Made by :meth:`open`. Partitions are listed when they are first used, and kept; what is
    committed later is not seen.
    """

    def __init__(
        self,
        client: TableMetaClient,
        timeline: Timeline,
        counts: VisibleInstants,
        partitions: Sequence[str],
        *,
        table: TableMetaClient,
        seen: TimelineView,
    ) -> None:
        self._client = client
        self.seen = seen
        """The timeline of the table whose state it shows."""
        self._table = table
        self._timeline = timeline
        self._counts = counts
        self._completion = {
            one.requested_time: one.effective_completion_time for one in timeline.completed_writes()
        }
        lister = StorageLister(client.storage, partitioned=True, run_map=client.run_map)
        self._view = FileSystemView(lister, timeline, {})
        self._read: set[FileGroupId] = set()
        self._groups: dict[str, dict[PartitionPath | None, tuple[GroupReader, ...]]] = {}
        self.partitions: tuple[str, ...] = tuple(partitions)
        """Names of the partitions that readers may use."""

    @classmethod
    def open(
        cls, client: TableMetaClient, timeline: TimelineView | None = None
    ) -> MetadataSnapshot:
        """Open the metadata table of a table.

        ``timeline`` is read now by default; a metadata table that lacks one of its writes is
        refused.
        """
        require_readable(client)
        # the table's timeline first: what is complete there is complete in the metadata table
        seen = client.timeline() if timeline is None else timeline
        partitions = StoredPartitions.of(client.config).complete
        metadata = metadata_client(client)
        with with_rebuild_hint():
            own = metadata.timeline()
        require_current(seen, own, f"{metadata.storage.root}/{metadata.active.folder}")
        counts = VisibleInstants.of(seen, own)
        return cls(metadata, own, counts, partitions, table=client, seen=seen)

    @property
    def root(self) -> str:
        """Path of the metadata table."""
        return self._client.storage.root

    def has_recorded(self, time: InstantTime) -> bool:
        """Whether the metadata table has completed an instant."""
        return time in self._completion

    def lookup(self, partition: str, keys: Iterable[str]) -> dict[str, MetadataRecord]:
        """Return the records of some keys; absent keys are left out.

        Of each file group only the blocks are read that may hold one of the keys.
        """
        by_owner = self.groups_by_owner(partition)
        if None not in by_owner:
            raise UnsupportedTableError(
                self._table.base_path,
                "has a record index that is kept by partitions, where a key alone says nothing",
                "Name the partition, too.",
            )
        return self._lookup(partition, by_owner[None], keys)

    def lookup_owned(self, owner: PartitionPath, keys: Iterable[str]) -> dict[str, MetadataRecord]:
        """Return records of keys in a partitioned record index."""
        groups = self.groups_by_owner(RECORD_INDEX).get(owner, ())
        return self._lookup(RECORD_INDEX, groups, keys)

    def _lookup(
        self, partition: str, groups: Sequence[GroupReader], keys: Iterable[str]
    ) -> dict[str, MetadataRecord]:
        wanted = list(dict.fromkeys(keys)) if groups else []
        found: dict[str, MetadataRecord] = {}
        for shard, some in self._by_shard(partition, wanted, len(groups)).items():
            found |= _present(self._scanned(groups[shard]).lookup(some))
        return found

    def group_of(self, partition: str, key: str) -> GroupReader:
        """The file group for the record of a key."""
        groups = self.groups(partition)
        (shard,) = self._by_shard(partition, [key], len(groups))
        return self._scanned(groups[shard])

    def scan(self, partition: str, prefix: str = "") -> Iterator[MetadataRecord]:
        """Yield records by key prefix, group by group, in order."""
        for group in self.groups(partition):
            found = _present(self._scanned(group).scan([prefix]))
            yield from (found[key] for key in sorted(found))

    def scan_many(self, partition: str, prefixes: Sequence[str]) -> dict[str, MetadataRecord]:
        """Return the records by several key prefixes, by key."""
        found: dict[str, MetadataRecord] = {}
        for group in self.groups(partition):
            found |= _present(self._scanned(group).scan(prefixes))
        return found

    def _scanned(self, group: GroupReader) -> GroupReader:
        """Return a file group with its log files read once."""
        if group.slice.group not in self._read:
            self._read.add(group.slice.group)
            with self._table.meter.time(Metric.SCAN):
                _ = group.layers
        return group

    def groups(self, partition: str) -> Sequence[GroupReader]:
        """Return a partition's file groups by shard number."""
        return tuple(chain.from_iterable(self.groups_by_owner(partition).values()))

    def groups_by_owner(
        self, partition: str
    ) -> Mapping[PartitionPath | None, Sequence[GroupReader]]:
        """Return the file groups of a partition by whose keys they have.

        All are under ``None``, but for a record index that is kept by the table's partitions:
        there, each partition that ever held rows has its own.
        """
        if partition not in self.partitions:
            raise CorruptMetadataError(
                f"{self.root}/{partition}",
                "the table's properties do not name this partition of the metadata table",
                REBUILD,
            )
        if partition not in self._groups:
            self._groups[partition] = {
                owner: tuple(
                    GroupReader(self._client.storage, one, self._counts, self._completed_at)
                    for one in slices
                )
                for owner, slices in self._slices(partition).items()
            }
        return self._groups[partition]

    def _slices(self, partition: str) -> Mapping[PartitionPath | None, Sequence[FileSlice]]:
        def may_be_empty() -> bool:
            return self._definitions.is_partitioned(partition)

        slices = self._view.latest_slices([PartitionPath(partition)])
        return require_complete_slices(partition, slices, self._records, may_be_empty)

    @cached_property
    def _definitions(self) -> IndexDefinitions:
        return read_definitions(self._table.storage, self._table.config)

    @cached_property
    def _records(self) -> CommitRecords:
        return CommitRecords(self.root, self._timeline, self._counts, self._client.read_commit)

    def built_since(self) -> frozenset[str]:
        """Partitions that were built after the state that it shows.

        Their files are not those that this state had. The timeline is read again.
        """
        now = CommitRecords(
            self.root, self._client.timeline(), self._counts, self._client.read_commit
        )
        later = [one for one in now.newest_first() if not self._counts(one.requested_time)]
        return frozenset(chain.from_iterable(now.read(one).builds for one in later))

    @property
    def watches_keys(self) -> bool:
        """Whether all that changed the record index noted repeated keys."""
        return are_watched(self._records, self._table.config)

    def knows_all_keys(self, definitions: IndexDefinitions) -> bool:
        """Whether a key that the record index lacks is in no row."""
        config = self._table.config
        return config.tells_meta_columns or (is_noted(definitions) and self.watches_keys)

    def is_of(self, timeline: TimelineView, *partitions: str) -> bool:
        """Whether partitions show the state that a timeline has.

        Files that were compacted or built later than the timeline was read hold later changes,
        which cannot be distinguished from others in them.
        """
        seen = _completed(self.seen)
        if _completed(timeline) != seen or self._counts.are_exceeded:
            return False
        builds = {
            base.instant
            for partition in partitions
            for group in self.groups(partition)
            if (base := group.slice.base_file) is not None
        }
        if any(
            self._timeline.find(one, Action.DELTACOMMIT) for one in builds if not self._counts(one)
        ):
            return False
        # what was built since the last instant may be of any state since
        return not self._counts.may_be_older or _completed(self._table.active.load()) == seen

    def shards(self, partition: str) -> dict[PartitionPath | None, tuple[GroupFiles, ...]]:
        """Return a partition's file groups as values for tasks."""
        return {
            owner: tuple(
                GroupFiles(group.slice, self._counts, self._completion) for group in groups
            )
            for owner, groups in self.groups_by_owner(partition).items()
        }

    def _completed_at(self, time: InstantTime) -> str:
        return self._completion.get(time, time)

    def _by_shard(
        self, partition: str, keys: Sequence[str], count: int
    ) -> Mapping[int, Sequence[str]]:
        if count == 1 or not keys:
            return {0: keys}
        hashed: Sequence[str] = keys
        if partition.startswith(SECONDARY_INDEX) and self._definitions.is_by_value(partition):
            hashed = [secondary_prefix(split_secondary_key(key, partition)[0]) for key in keys]
        shards = shards_of(pa.array(hashed, pa.string()), count)
        order = np.argsort(shards, kind="stable")
        numbers, starts = np.unique(shards[order], return_index=True)
        parts = np.split(order, starts[1:])
        return {
            int(number): [keys[place] for place in part.tolist()]
            for number, part in zip(numbers, parts, strict=True)
        }


def _completed(timeline: TimelineView) -> frozenset[tuple[InstantTime, Action]]:
    return frozenset(
        (one.requested_time, one.action.completed_action)
        for one in timeline.instants
        if one.is_completed
    )


def _present(found: Mapping[str, MetadataRecord | None]) -> dict[str, MetadataRecord]:
    return {key: seen for key, record in found.items() if (seen := present(record)) is not None}
