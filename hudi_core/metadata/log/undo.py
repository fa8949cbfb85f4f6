"""Undoes metadata table commits, and recovers dead writers' work.

A commit of the metadata table is complete before the instant of the table that it records; when
that instant never completes, the commit goes. Everything here runs under the table's lock. Its
rollback is an instant of the metadata table's own.
"""

from __future__ import annotations

from collections.abc import Sequence

from hudi_core.actions.rollback import Rollback, begin, files_of_instant, run, unfinished
from hudi_core.errors import TableServiceError
from hudi_core.metadata.state import MetadataState
from hudi_core.metadata.table import BOOTSTRAP_PREFIX
from hudi_core.model.files import PartitionPath
from hudi_core.model.instant import WRITE_ACTIONS, Action, Instant
from hudi_core.model.instant_time import InstantTime
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.storage_lister import StorageLister


def undo(tables: MetadataState, time: InstantTime) -> MetadataState:
    """Take a deltacommit out of the metadata table.

    One that is not there, or is part of a base file already, stays as it is: out of a base file
    nothing can be taken.
    """
    target = tables.timeline.find(time, Action.DELTACOMMIT)
    if target is None or is_compacted(tables.timeline, time):
        return tables
    return _roll_back(tables, target)


def is_compacted(timeline: Timeline, time: InstantTime) -> bool:
    """Whether a compaction has a deltacommit in it.

    The compaction may be begun or done.
    """
    target = timeline.find(time, Action.DELTACOMMIT)
    if target is None or target.completion_time is None:
        return False
    return any(
        one.action.completed_action is Action.COMMIT
        and one.requested_time >= target.completion_time
        for one in timeline
    )


def recover(tables: MetadataState) -> MetadataState:
    """Recover the metadata table, after the table itself.

    Rollbacks that were begun are finished. Deltacommits that are not complete, or that record an
    instant the table does not have, are undone.
    """
    for rollback in unfinished(tables.metadata):
        tables = _run(tables, rollback)
    for target in _orphans(tables.timeline, tables.data_timeline):
        if not is_compacted(tables.timeline, target.requested_time):
            tables = _roll_back(tables, target)
    return tables


def _orphans(timeline: Timeline, data_timeline: Timeline) -> Sequence[Instant]:
    """Return the deltacommits without an instant of the table.

    One of an instant that is still pending, although the table was recovered, is a live writer's:
    Hudi on Spark begins it with the write and not under the table's lock. Nor is the one by which
    Hudi's restore brings the list of files up to date, at a time of its own within the restore.
    """
    start = data_timeline.first
    restores = data_timeline.completed().of_actions(Action.RESTORE).instants
    found = []
    for instant in timeline:
        time = instant.requested_time
        if instant.action is not Action.DELTACOMMIT or time.startswith(BOOTSTRAP_PREFIX):
            continue
        counterpart = data_timeline.find(time)
        archived = start is not None and time < start.requested_time
        if instant.is_completed:
            is_of_restore = any(
                one.requested_time < time < one.effective_completion_time for one in restores
            )
            is_orphan = counterpart is None and not archived and not is_of_restore
        else:
            is_orphan = counterpart is None or counterpart.is_completed
        if is_orphan:
            found.append(instant)
    return found


def _roll_back(tables: MetadataState, target: Instant) -> MetadataState:
    metadata = tables.metadata
    lister = StorageLister(metadata.storage, partitioned=True, run_map=metadata.run_map)
    partitions = [PartitionPath(path) for path in metadata.storage.list_folders() if path[0] != "."]
    files = files_of_instant(lister.list_files(partitions), target.requested_time)
    rollback = begin(metadata, target, files, tables.next_time())
    return _run(tables.with_instant(rollback.instant), rollback)


def _run(tables: MetadataState, rollback: Rollback) -> MetadataState:
    target = rollback.target
    if target is not None and target.action.completed_action not in WRITE_ACTIONS:
        raise TableServiceError(
            f"A rollback of the metadata table names {target.requested_time}, which is a "
            f"{target.action}",
            "Let the engine that started it finish it, then write again.",
            instant=target.requested_time,
        )

    def next_time(timeline: Timeline) -> InstantTime:
        return tables.with_timeline(timeline).next_time()

    metadata, _ = run(tables.metadata, rollback, next_time)
    return tables.with_timeline(metadata.timeline())
