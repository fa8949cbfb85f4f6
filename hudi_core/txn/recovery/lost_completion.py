"""Complete writes that look pending: their completed file is lost.

To roll one back would delete rows of a commit that readers have seen, and files that the table's
format, its metadata table and later commits go on naming. Nothing of the kind happens by itself:
the write is refused and names the file; ``hudi table repair`` puts it back, and an explicit
rollback gives the commit up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hudi_core.actions.compaction import instants_compacted, pending_compactions
from hudi_core.actions.rollback import files_of_instant, planned
from hudi_core.errors import CorruptMetadataError, LostCompletionError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.commit import MERGES_LOGS
from hudi_core.model.instant import COMPACTIONS, WRITE_ACTIONS, Action, Instant
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import TimelineView
from hudi_core.storage.temp_folders import temp_folder
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn.heartbeat import heartbeat_path
from hudi_core.txn.publication import is_two_step
from hudi_core.txn.recovery.restore import under_restore
from hudi_core.txn.recovery.rollback import files_written
from hudi_core.txn.state import TableState
from hudi_core.view.storage_lister import StorageLister

_TIDIED: Final = "the metadata table holds it, and its writer has removed its markers"


def require_not_completed(state: TableState, pending: Instant) -> None:
    """Refuse to undo a pending write that was complete."""
    evidence = completion_evidence(state, pending)
    if evidence is not None:
        raise state.table.lost(pending, evidence)


def require_none_lost(
    client: TableMetaClient, timeline: TimelineView, is_recorded: Callable[[Instant], bool]
) -> None:
    """Refuse to read a table without a write that was complete.

    Costs nothing without a pending write, and little while its writer is at work.

    ``timeline`` is as the reader sees it; ``is_recorded`` says whether the metadata table has
    completed a pending write.
    """
    suspects = [
        one
        for one in timeline.instants
        if not one.is_completed
        and one.action.completed_action in WRITE_ACTIONS
        and one.completion_time is None
        and is_recorded(one)
    ]
    if not suspects:
        return
    # what completed between the looks at the two timelines is not lost, nor what is taken back
    now = client.active.load()
    undone = {one.target.requested_time for one in planned(client) if one.target is not None}
    undone |= under_restore(client, now)
    for one in suspects:
        found = now.find(one.requested_time, one.action)
        if found is None or found.is_completed or one.requested_time in undone:
            continue
        if not is_tidied(client, found):
            continue
        lister = StorageLister.of(client)
        listing = lister.list_files(list(lister.list_partitions()))
        if files_of_instant(listing, found.requested_time):  # else it was rolled back
            action, time = found.action.completed_action.value, found.requested_time
            folder = client.active.folder
            raise LostCompletionError(client.base_path, folder, action, time, _TIDIED)


def completion_evidence(state: TableState, pending: Instant) -> str | None:
    """What shows that a pending write was complete; ``None`` where nothing does.

    A compaction is planned of what is complete.

    Looked for only where a writer is gone, so it may read the commits that came later.
    """
    if pending.action.completed_action not in WRITE_ACTIONS:
        return None
    table = state.table
    if is_two_step(table):
        held = table.host.find_publication(table.client, pending)
        if held is not None:
            return f"the {table.host.name} format holds it, as version {held.version}"
    later = _built_upon(table, state.timeline, pending)
    if later is not None:
        return f"instant {later.requested_time} builds on files of it"
    if is_tidied(table.client, pending) and _has_recorded_files(state, pending):
        return _TIDIED
    return None


def _has_recorded_files(state: TableState, pending: Instant) -> bool:
    """Whether there are files of a write that the metadata table completed.

    Files with a lost metadata table, which alone could decide it, are a
    :class:`CorruptMetadataError`.
    """
    try:
        is_recorded = recorded_at(state, pending) is not None
    except CorruptMetadataError:
        if files_written(state.table, pending):
            raise
        return False
    return is_recorded and bool(files_written(state.table, pending))


def recorded_at(state: TableState, pending: Instant) -> InstantTime | None:
    """When the metadata table completed a write, or ``None``."""
    tables = state.metadata
    if tables is None:
        return None
    found = tables.timeline.find(pending.requested_time, Action.DELTACOMMIT)
    return None if found is None else found.completion_time


def _built_upon(table: OpenTable, timeline: Timeline, pending: Instant) -> Instant | None:
    client, time = table.client, pending.requested_time
    for later in timeline.completed_writes():
        if later.requested_time > time:
            metadata = client.read_commit(later)
            is_compaction = metadata.operation_type in MERGES_LOGS
            if any(time in stat.base_before for stat in metadata.stats) or (
                is_compaction and time in instants_compacted(client, later)
            ):
                return later
    for compaction in pending_compactions(timeline, COMPACTIONS):
        if compaction.requested_time > time and time in instants_compacted(client, compaction):
            return compaction
    return None


def is_tidied(client: TableMetaClient, pending: Instant) -> bool:
    """Whether nothing is left of a writer at work.

    It removes its markers and its heartbeat last, once its commit is complete.
    """
    storage, time = client.storage, pending.requested_time
    if storage.head(heartbeat_path(time)) is not None:
        return False
    return next(iter(storage.list(temp_folder(time), recursive=True)), None) is None
