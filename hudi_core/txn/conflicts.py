"""Optimistic concurrency: the later of two conflicting writes fails.

What contradicts is for strategies to say. One looks at file groups, in every table: of two writes
of one group one would be lost, whatever the format can detect. Another may be the user's or, where
the user names none, the format's (RFC-93, "Conflict Resolution"). Beside them no two writes may add
one record key: see :mod:`hudi_core.txn.added_keys`. And what a write has read must still be there:
an operator may have rolled a write back after it, while this writer gave no sign of life.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache

from hudi_core.config.extension_points import CONFLICT_POINT
from hudi_core.config.lock import LockConfig
from hudi_core.errors import CommitConflictError, InvalidInstantTimeError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.commit import CommitMetadata
from hudi_core.model.conflict_strategy import BaseConflictStrategy
from hudi_core.model.conflicts import TouchConflicts, completed_since
from hudi_core.model.files import BaseFileName, FileGroupId, LogFileName
from hudi_core.model.format import ConflictResolutionStrategy, Granularity
from hudi_core.model.instant import Instant
from hudi_core.model.instant_time import InstantTime, just_before, parse_instant_time
from hudi_core.model.protocols import TimelineView
from hudi_core.plugin.guarded import GuardedStrategy
from hudi_core.storage.temp_folders import TEMP_FOLDER
from hudi_core.table_handle import OpenTable
from hudi_core.txn import heartbeat
from hudi_core.txn.added_keys import AddedKeys
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
        for one in shared:
            raise CommitConflictError(
                f"Instant {other}, which is under way, changes file group {one.file_id} of "
                f"partition {one.partition_path!r} as well",
                "No data was written; run it again when the other write has ended.",
                other=other,
                granularity="file_group",
            )


def _group(marker: Marker) -> FileGroupId:
    name = BaseFileName.parse(marker.file_name) or LogFileName.parse(marker.file_name)
    assert name is not None  # noqa: S101 - markers of other names are refused as forged
    return FileGroupId(marker.partition_path, name.file_id)
