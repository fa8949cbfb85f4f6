"""Conflicts of two concurrent writes: file group, partition or table.

Two writes that write, or replace, one file group always conflict: one of the two would be lost.
Writes that only add new file groups do not; whether two of them brought the same record key is
checked elsewhere, as it takes their files. In a table with buckets they do when they add a group
for one bucket, which can have but one (Hudi's bucket index strategy). A compaction changes no row:
log files that others add to its file groups belong to the slice that it makes, or to the one after
it. Nor does a log compaction, as long as others add logs alone, and none that come before its own.
Coarser strategies give up more writes, for formats and users that want less to go on at the
same time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hudi_core.model.buckets import bucket_of_file
from hudi_core.model.commit import (
    MERGES_LOGS,
    NO_PREVIOUS_COMMIT,
    CommitMetadata,
    ReplaceCommitMetadata,
    WriteOperation,
    WriteStat,
)
from hudi_core.model.files import BaseFileName, FileGroupId, FileId, LogFileName, PartitionPath
from hudi_core.model.format import Granularity
from hudi_core.model.instant import Instant
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import TimelineView


@dataclass(frozen=True, slots=True)
class TouchConflicts:
    """Two writes conflict when they touch the same group, partition or table.

    A :class:`~hudi_core.model.format.ConflictResolutionStrategy`.

    Attributes
    ----------
    granularity
        Of file group, partition and table the one that must not be the same.
    has_buckets
        Whether file groups are buckets.
    """

    granularity: Granularity = Granularity.FILE_GROUP
    has_buckets: bool = False

    def candidates(self, began: TimelineView, now: TimelineView, instant: Instant) -> list[Instant]:
        """Return the writes that ``now`` holds as completed and ``began`` did not."""
        return others_since(began, now, instant)

    def conflict(self, mine: CommitMetadata, theirs: CommitMetadata) -> str | None:
        """Changes in common; ``None`` when there are none."""
        if self.granularity is Granularity.TABLE:
            return "both changed the table"
        if self.granularity is Granularity.PARTITION:
            partitions = _partitions(mine) & _partitions(theirs)
            return f"both changed partition {min(partitions)!r}" if partitions else None
        groups = self._places(mine)
        shared = groups.keys() & self._places(theirs).keys()
        if mine.operation_type in MERGES_LOGS or theirs.operation_type in MERGES_LOGS:
            shared = {one for one in shared if not _both_stay(mine, theirs, groups[one])}
        if not shared:
            return None
        group = groups[min(shared)]
        return f"both changed file group {group.file_id} of partition {group.partition_path!r}"

    def _places(self, metadata: CommitMetadata) -> Mapping[tuple[str, str], FileGroupId]:
        """Return the file groups by what two of them must not share."""
        found: dict[tuple[str, str], FileGroupId] = {}
        for group in touched_groups(metadata):
            bucket = bucket_of_file(group.file_id) if self.has_buckets else None
            place = group.file_id if bucket is None else f"{bucket:08d}"
            found[group.partition_path, place] = group
        return found


def written_files(metadata: CommitMetadata) -> tuple[WriteStat, ...]:
    """Return the stats of what a commit brought: base files, logs.

    These are the files that a format names from then on. A stat without a path names no file; a
    base file without rows (``num_writes``) is one that a format need not name, for nothing is in
    it, or none at all. A log without rows has deletes. Every file that is named is there, with the
    bytes of ``file_size_in_bytes``.
    """
    return tuple(
        stat for stat in metadata.stats if stat.path and (stat.num_writes or _is_log(stat))
    )


def touched_groups(metadata: CommitMetadata) -> set[FileGroupId]:
    """Return every file group that a commit writes or replaces."""
    groups = {
        FileGroupId(PartitionPath(path), FileId(stat.file_id or ""))
        for path, stats in metadata.partition_to_write_stats.items()
        for stat in stats
    }
    return groups | _replaced(metadata)


def outgoing_groups(metadata: CommitMetadata) -> frozenset[FileGroupId]:
    """Return the file groups whose present files a commit replaces.

    A group to which it adds log files alone keeps what it has.
    """
    updated = {
        FileGroupId(PartitionPath(path), FileId(stat.file_id or ""))
        for path, stats in metadata.partition_to_write_stats.items()
        for stat in stats
        if stat.prev_commit not in (None, NO_PREVIOUS_COMMIT) and not _is_log(stat)
    }
    return frozenset(updated | _replaced(metadata))


def _is_log(stat: WriteStat) -> bool:
    return LogFileName.parse((stat.path or "").rpartition("/")[2]) is not None


def completed_since(began: TimelineView, now: TimelineView) -> list[Instant]:
    """Return the writes that ``now`` holds as completed and ``began`` did not."""
    known = {instant.requested_time for instant in began.completed_writes()}
    return [instant for instant in now.completed_writes() if instant.requested_time not in known]


def others_since(began: TimelineView, now: TimelineView, instant: Instant) -> list[Instant]:
    """Return the writes but ``instant`` that were completed between two timelines."""
    mine = instant.requested_time
    return [one for one in completed_since(began, now) if one.requested_time != mine]


def _both_stay(one: CommitMetadata, other: CommitMetadata, group: FileGroupId) -> bool:
    """Whether a compaction and another write of a group can both stay.

    Logs belong to the base file that was requested last when they were complete. A base file of the
    other write that was requested after the compaction has all that the compaction merges.
    """
    compaction, write = (one, other) if one.operation_type in MERGES_LOGS else (other, one)
    if write.operation_type in MERGES_LOGS or group in _replaced(write):
        return False
    if compaction.operation_type == WriteOperation.LOG_COMPACT:
        # readers that do not know what its log replaces take logs as they were requested
        last = max(logs_of(compaction, group), default=InstantTime(""))
        comes_later = all(last < time for time in logs_of(write, group))
        return comes_later and not base_files_of(write, group)
    merged = max(base_files_of(compaction, group), default=InstantTime(""))
    return all(merged < time for time in base_files_of(write, group))


def base_files_of(metadata: CommitMetadata, group: FileGroupId) -> list[InstantTime]:
    """Return requested times of a commit's base files in a group."""
    names = (BaseFileName.parse(name) for name in _names(metadata, group))
    return [name.instant for name in names if name is not None]


def logs_of(metadata: CommitMetadata, group: FileGroupId) -> list[InstantTime]:
    """Return requested times of a commit's log files in a group."""
    names = (LogFileName.parse(name) for name in _names(metadata, group))
    return [name.instant for name in names if name is not None]


def _names(metadata: CommitMetadata, group: FileGroupId) -> Iterator[str]:
    for stat in metadata.partition_to_write_stats.get(group.partition_path, ()):
        if stat.file_id == group.file_id:
            yield (stat.path or "").rpartition("/")[2]


def _replaced(metadata: CommitMetadata) -> set[FileGroupId]:
    if not isinstance(metadata, ReplaceCommitMetadata):
        return set()
    return {
        FileGroupId(PartitionPath(path), FileId(file_id))
        for path, file_ids in metadata.partition_to_replace_file_ids.items()
        for file_id in file_ids
    }


def _partitions(metadata: CommitMetadata) -> set[str]:
    touched = set(metadata.partition_to_write_stats)
    if isinstance(metadata, ReplaceCommitMetadata):
        touched |= set(metadata.partition_to_replace_file_ids)
    return touched


# --- the base of conflict strategies that other distributions provide -----------------------------


class BaseConflictStrategy(ABC):
    """Refuses writes beside those that change one file group.

    Two writes of one file group conflict in every table: a strategy adds to that. A new one is made
    for every commit, without arguments, and asked under the table's lock. A
    :class:`~hudi_core.model.format.ConflictResolutionStrategy`.
    """

    @property
    def granularity(self) -> Granularity:
        """What the answers are about, for errors."""
        return Granularity.TABLE

    def candidates(
        self, began: TimelineView, now: TimelineView, instant: Instant
    ) -> Sequence[Instant]:
        """Return the instants that ``instant`` must be compared with.

        By default these are the writes that were completed meanwhile.

        Parameters
        ----------
        began, now
            The timeline when the write began, and now, under the lock.
        instant
            The write about to be completed.
        """
        return others_since(began, now, instant)

    @abstractmethod
    def conflict(self, mine: CommitMetadata, theirs: CommitMetadata) -> str | None:
        """Why both cannot be kept, after "because"; ``None`` when both can.

        The answer has to be the same the other way round: which of two writes comes later is
        chance.

        Parameters
        ----------
        mine
            What is about to be committed.
        theirs
            What one of the candidates committed.
        """
