"""Optimistic concurrency: the later of two conflicting writes fails.

What contradicts is for strategies to say. One looks at file groups, in every table: of two writes
of one group one would be lost, whatever the format can detect. Another may be the user's or, where
the user names none, the format's (RFC-93, "Conflict Resolution"). Beside them no two writes may add
one record key: see :class:`AddedKeys`. And what a write has read must still be there:
an operator may have rolled a write back after it, while this writer gave no sign of life.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.actions.compaction import groups_of_plan, read_compaction
from hudi_core.base_file.footer import read_columns, read_file_metadata
from hudi_core.base_file.key_footer import KeyFooter, key_footer
from hudi_core.config.extension_points import CONFLICT_POINT
from hudi_core.config.index_keys import IndexConfig
from hudi_core.config.kinds import InsertDuplicates
from hudi_core.config.lock import LockConfig
from hudi_core.config.write import WriteConfig
from hudi_core.errors import CommitConflictError, InvalidInstantTimeError
from hudi_core.index.bloom import BloomIndex
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.commit import (
    MOVES_ROWS,
    NO_PREVIOUS_COMMIT,
    CommitMetadata,
    WriteOperation,
    WriteStat,
)
from hudi_core.model.conflicts import (
    BaseConflictStrategy,
    TouchConflicts,
    base_files_of,
    completed_since,
    touched_groups,
)
from hudi_core.model.files import BaseFileName, FileGroupId, FileId, LogFileName
from hudi_core.model.format import ConflictResolutionStrategy, Granularity
from hudi_core.model.instant import COMPACTIONS, Action, Instant
from hudi_core.model.instant_time import InstantTime, just_before, parse_instant_time
from hudi_core.model.operation import operation_recorded
from hudi_core.model.protocols import TimelineView
from hudi_core.plugin.guarded_index import GuardedStrategy
from hudi_core.schema.table_schema import COMMIT_TIME, RECORD_KEY
from hudi_core.storage.temp_folders import TEMP_FOLDER
from hudi_core.table_handle import OpenTable
from hudi_core.txn import heartbeat
from hudi_core.txn.markers import Marker, Markers


def strategies(table: OpenTable) -> Sequence[ConflictResolutionStrategy]:
    """Return a table's conflict strategies; each can refuse a write."""
    client = table.client
    groups = TouchConflicts(Granularity.FILE_GROUP, client.config.buckets is not None)
    wanted = chosen_strategy(client)
    further = table.host.get_conflict_resolution_strategy(client) if wanted is None else wanted
    if further is None or further == TouchConflicts(Granularity.FILE_GROUP):
        return (groups,)
    return groups, further


def chosen_strategy(client: TableMetaClient) -> ConflictResolutionStrategy | None:
    """Return the conflict strategy that options name."""
    wanted = LockConfig.conflict_strategy.read(client.options)
    if wanted is None or isinstance(wanted, Granularity):
        return None if wanted is None else TouchConflicts(wanted)
    named = CONFLICT_POINT.make(wanted, BaseConflictStrategy, lambda kind: kind())
    return GuardedStrategy(CONFLICT_POINT.guard(wanted), named)


def require_no_conflicts(
    table: OpenTable,
    mine: CommitMetadata,
    instant: Instant,
    began: TimelineView,
    now: TimelineView,
) -> None:
    """Refuse a write that conflicts with writes completed meanwhile.

    Runs under the table's lock.

    ``began`` and ``now`` are the timeline, fenced by the format, when the write began and as it is.
    An instant that was rolled back meanwhile is a conflict, too.
    """
    _require_nothing_taken_back(table.client, began, now)  # guard looks-for-rollbacks
    read = cache(table.client.read_commit)  # several look at one commit
    for strategy in strategies(table):  # guard looks-for-conflicts
        for other in strategy.candidates(began, now, instant):
            reason = strategy.conflict(mine, read(other))
            if reason is not None:
                raise _conflict(other, reason, strategy.granularity)
    _require_not_planned(table.client, mine, instant, now)  # guard looks-for-compactions
    added = AddedKeys(table.client, mine, instant)
    if not added.are_unique:
        return
    others = {
        other: read(other)
        for other in completed_since(began, now)
        if other.requested_time != instant.requested_time
    }
    shared = added.shared_with(others)
    if shared is not None:
        other, key = shared
        raise _conflict(other, f"both added record key {key!r}", "record_key")


def _require_nothing_taken_back(
    client: TableMetaClient, began: TimelineView, now: TimelineView
) -> None:
    """Refuse a write that builds on one that was rolled back.

    It may have its rows in its own files.
    """
    there = {one.requested_time for one in now.completed_writes()}
    gone = {one.requested_time for one in began.completed_writes()} - there
    if not gone:
        return
    archived = client.archived.load(just_before(min(gone)), max(gone))
    gone -= {one.instant.requested_time for one in archived}
    if gone:
        other = max(gone)
        raise CommitConflictError(
            f"Instant {other}, on which this write builds, was rolled back while it was under way",
            "Nothing of this write is visible; run it again on the new state of the table.",
            other=other,
            granularity="table",
        )


def _require_not_planned(
    client: TableMetaClient, mine: CommitMetadata, instant: Instant, now: TimelineView
) -> None:
    """Refuse files that a planned compaction will not see.

    It was planned while the write was under way, and its own come after these. Log files of the
    write belong to the slice that the compaction makes; but for those of a log compaction, whose
    rows may be older than that slice.
    """
    if mine.operation_type == WriteOperation.COMPACT:
        return
    is_of_logs = mine.operation_type == WriteOperation.LOG_COMPACT
    for planned in now.instants:
        if planned.is_completed or planned.action is not Action.COMPACTION:
            continue
        if not is_of_logs and planned.requested_time < instant.requested_time:
            continue
        merged = groups_of_plan(read_compaction(client, planned))
        for group in sorted(touched_groups(mine) & merged):
            if is_of_logs or base_files_of(mine, group):
                raise CommitConflictError(
                    f"The compaction {planned.requested_time} was planned while this write was "
                    f"under way, and merges file group {group.file_id} of partition "
                    f"{group.partition_path!r} without the file of this write",
                    "Nothing of this write is visible; run it again on the new state of the table.",
                    other=planned.requested_time,
                    granularity="file_group",
                )


def _conflict(other: Instant, reason: str, granularity: str) -> CommitConflictError:
    return CommitConflictError(
        f"Instant {other.requested_time} was completed while this write was under way, "
        f"and both cannot be kept, because {reason}",
        "Nothing of this write is visible; run it again on the new state of the table.",
        other=other.requested_time,
        granularity=granularity,
    )


# --- before the files are written -----------------------------------------------------------------

# Two writers of one file group cannot both commit. The second finds the markers of the first before
# it writes data; the check at the commit stays what decides. Hudi's option
# ``hoodie.write.concurrency.early.conflict.detection.enable``.


def require_no_early_conflicts(
    client: TableMetaClient,
    instant: InstantTime,
    groups: Collection[FileGroupId],
    interval_ms: int,
    misses: int,
) -> None:
    """Refuse to change file groups that a live writer is changing.

    When it raises, no data was written.
    """
    storage = client.scratch
    for folder in storage.list_folders(TEMP_FOLDER) if groups else ():
        try:
            other = parse_instant_time(folder.rpartition("/")[2])
        except InvalidInstantTimeError:
            continue  # rows that wait for a write
        if other == instant or not heartbeat.is_alive(storage, other, interval_ms, misses):
            continue
        shared = {_group(one) for one in Markers(storage, other).list()}.intersection(groups)
        if shared and _is_compaction(client.active.load().find(other)):
            continue  # it changes no row; what this write does to the files, the commit looks at
        for one in shared:
            raise CommitConflictError(
                f"Instant {other}, which is under way, changes file group {one.file_id} of "
                f"partition {one.partition_path!r} as well",
                "No data was written; run it again when the other write has ended.",
                other=other,
                granularity="file_group",
            )


def _is_compaction(found: Instant | None) -> bool:
    return found is not None and found.action in COMPACTIONS and not found.is_completed


def _group(marker: Marker) -> FileGroupId:
    name = BaseFileName.parse(marker.file_name) or LogFileName.parse(marker.file_name)
    assert name is not None  # noqa: S101 - markers of other names are refused as forged
    return FileGroupId(marker.partition_path, name.file_id)


# --- record keys that two concurrent writes both insert -------------------------------------------
# Neither of them could find the other's rows when it looked its keys up, and they share no file
# group: without this check both would be kept, and the key would be in the table twice. Hudi leaves
# that to its users; its rule is kept for operations that look nothing up (insert, bulk_insert).
#
# Only writes that completed meanwhile are looked at, only their files with new rows in the same
# partitions, and of those first the footers: ranges of keys, then bloom filters. The keys of this
# write are read file by file, and only of files whose range meets that of another one.


_Range: TypeAlias = tuple[bytes, bytes] | None
"""Least and greatest key of a file; ``None`` where they are not known."""


@dataclass(frozen=True)
class AddedKeys:
    """The record keys that one write adds."""

    client: TableMetaClient
    metadata: CommitMetadata
    instant: Instant

    def shared_with(self, others: Mapping[Instant, CommitMetadata]) -> tuple[Instant, str] | None:
        """A key that another write inserted too, and that write.

        ``None`` where none has.

        For writes whose keys are unique; see :attr:`are_unique`.

        ``others`` are the writes that completed after this one began.
        """
        ranges = cache(self._range)
        for partition, stat in with_new_rows(self.metadata):
            near = [
                (other, their_stat)
                for other, theirs in others.items()
                if theirs.operation_type not in MOVES_ROWS
                for their_partition, their_stat in with_new_rows(theirs)
                if self._is_global or their_partition == partition
                if _overlap(ranges(stat.path or ""), ranges(their_stat.path or ""))
            ]
            if not near:
                continue
            own = self._written_keys(stat.path or "")
            files = _WrittenFiles(self.client, [their_stat for _, their_stat in near])
            for match in BloomIndex().tag(own, files):
                return near[match.candidate][0], str(own[int(match.incoming[0])])
        return None

    @property
    def are_unique(self) -> bool:
        """Whether the write looks up keys, so inserts no existing one."""
        config, options = self.client.config, self.client.options
        if not config.record_key_fields or config.buckets is not None:
            return False  # keys of our own making; new groups of one bucket conflict by themselves
        operation = operation_recorded(self.metadata.operation_type)
        if operation is None or operation.adds_keys_once:
            return operation is not None
        duplicates = WriteConfig.from_options(options).duplicates(operation)
        return duplicates is not InsertDuplicates.NONE

    @property
    def _is_global(self) -> bool:
        return IndexConfig.index_type.read(self.client.options).is_global

    def _range(self, path: str) -> _Range:
        footer = _footer(self.client, path)
        if footer.min_key is None or footer.max_key is None:
            return None
        return _units(footer.min_key), _units(footer.max_key)

    def _written_keys(self, path: str) -> pa.StringArray:
        rows = read_columns(self.client, path, [RECORD_KEY, COMMIT_TIME])
        keys = rows.column(RECORD_KEY).cast(pa.string())
        if COMMIT_TIME not in self.client.config.stored_meta_columns:
            # those that were copied from the last version of the file come too: no other write
            # can have inserted them, unless they were in the table twice before
            return keys.combine_chunks()
        own = pc.equal(rows.column(COMMIT_TIME), self.instant.requested_time)
        return keys.filter(own).combine_chunks()


@dataclass(frozen=True, slots=True)
class _WrittenFiles:
    """Files of other writes; :class:`~hudi_core.index.base.Candidates`."""

    client: TableMetaClient
    stats: Sequence[WriteStat]

    def __len__(self) -> int:
        return len(self.stats)

    def file_id(self, ordinal: int) -> FileId:
        return FileId(self.stats[ordinal].file_id or "")

    def footer(self, ordinal: int) -> KeyFooter:
        return _footer(self.client, self.stats[ordinal].path or "")

    def keys(self, ordinal: int) -> pa.ChunkedArray:
        found = read_columns(self.client, self.stats[ordinal].path or "", [RECORD_KEY])
        return found.column(RECORD_KEY).cast(pa.string())


def with_new_rows(metadata: CommitMetadata) -> Iterator[tuple[str, WriteStat]]:
    """Yield partition and statistics of base files with new rows.

    Keys that a log adds are keys that its file group had before, but in tables with buckets: who
    else adds them changes that group.
    """
    for partition, stats in metadata.partition_to_write_stats.items():
        for stat in stats:
            if BaseFileName.parse((stat.path or "").rpartition("/")[2]) is None:
                continue
            is_new_group = stat.prev_commit in (None, "", NO_PREVIOUS_COMMIT)
            if stat.path and stat.num_writes and (stat.num_inserts or is_new_group):
                yield partition, stat


def _footer(client: TableMetaClient, path: str) -> KeyFooter:
    return key_footer(read_file_metadata(client, path), path)


def _units(key: str) -> bytes:
    """A key in the order of footers: that of Java's strings."""
    return key.encode("utf-16-be")


def _overlap(one: _Range, other: _Range) -> bool:
    """Whether two files may hold one key."""
    if one is None or other is None:
        return True
    return one[0] <= other[1] and other[0] <= one[1]
