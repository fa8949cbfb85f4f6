"""Complete writes that look pending: their completed file is lost.

To roll one back would delete rows of a commit that readers have seen, and files that the table's
format, its metadata table and later commits go on naming. Nothing of the kind happens by itself:
the write is refused and names the file; ``hudi table repair`` puts it back, and an explicit
rollback gives the commit up.
"""

from __future__ import annotations

from hudi_core.errors import CorruptMetadataError
from hudi_core.model.instant import WRITE_ACTIONS, Action, Instant
from hudi_core.model.instant_time import InstantTime
from hudi_core.storage.temp_folders import temp_folder
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn.heartbeat import heartbeat_path
from hudi_core.txn.publication import is_two_step
from hudi_core.txn.rollback import files_written
from hudi_core.txn.state import TableState


def require_not_completed(state: TableState, pending: Instant) -> None:
    """Refuse to undo a pending write that was complete.

    Parameters
    ----------
    state, pending
        The table, and a write of it whose writer is gone.

    Raises
    ------
    LostCompletionError
        Names the instant, and what shows that it was complete.
    """
    evidence = completion_evidence(state, pending)
    if evidence is not None:
        raise state.table.lost(pending, evidence)


def completion_evidence(state: TableState, pending: Instant) -> str | None:
    """What shows that a pending write was complete; ``None`` where nothing does.

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
    if _is_tidied(table, pending) and _has_recorded_files(state, pending):
        # a writer removes its markers and its heartbeat last, once its commit is complete
        return "the metadata table holds it, and its writer has removed its markers"
    return None


def _has_recorded_files(state: TableState, pending: Instant) -> bool:
    """Whether there are files of a write that the metadata table completed.

    Raises
    ------
    CorruptMetadataError
        There are files, and the metadata table, which alone would tell, is lost.
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
    for later in timeline.completed_writes():
        if later.requested_time > pending.requested_time and any(
            stat.prev_commit == pending.requested_time
            for stat in table.client.read_commit(later).stats
        ):
            return later
    return None


def _is_tidied(table: OpenTable, pending: Instant) -> bool:
    storage, time = table.client.storage, pending.requested_time
    if storage.head(heartbeat_path(time)) is not None:
        return False
    return next(iter(storage.list(temp_folder(time), recursive=True)), None) is None
