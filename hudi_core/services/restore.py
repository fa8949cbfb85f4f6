"""Restores a table to the state after one of its commits."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_core.config.write import WriteConfig
from hudi_core.errors import ConcurrentWriterError, TableServiceError
from hudi_core.model.actions import InstantInfo, RestorePlan
from hudi_core.model.capability import Capability
from hudi_core.model.instant import WRITE_ACTIONS, Instant
from hudi_core.model.instant_time import InstantTime
from hudi_core.services.savepoint import (
    completed_write,
    require_no_later_savepoint,
)
from hudi_core.table_handle import OpenTable
from hudi_core.txn.clean import continue_pending
from hudi_core.txn.past_state import require_stored
from hudi_core.txn.restore import restore
from hudi_core.txn.scheduled import is_at_work
from hudi_core.txn.state import TableState
from hudi_core.txn.table_lock import TableLock
from hudi_core.txn.table_service import locked_for_service, planned_for_service


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """What a restore took out, or would take out.

    ``instant`` is ``None`` when there was nothing to do, and of a plan; ``undone`` has the newest
    first.
    """

    path: str
    to: Instant
    instant: Instant | None
    undone: tuple[Instant, ...]


def restore_table(
    table: OpenTable, lock: TableLock, config: WriteConfig, to: InstantTime
) -> RestoreResult:
    """Take a table back to the state after a commit.

    Cleans that others began are finished first: what they delete may be what the table goes back
    to.

    ``to`` is the requested time of a commit on the active timeline, or of its savepoint. Nothing
    was deleted where a file of that state is gone (``HistoryExpiredError``), or where a later
    commit has a savepoint or was under way with that one, or the format has forgotten the state
    (``TableServiceError``).
    """
    table.host.require(Capability.RESTORE)
    with locked_for_service(table, lock, config) as locked:
        for pending in locked.timeline.pending().where(is_at_work):
            if pending.action.completed_action in WRITE_ACTIONS:
                raise ConcurrentWriterError(locked.client.base_path, pending.requested_time)
        state = continue_pending(locked, lock)  # guard finishes-cleans
        found = _plan(state, to)
        if not found.undone:
            return found
        done = restore(state, _stored_form(found)).instant
        return RestoreResult(found.path, found.to, done, found.undone)


def plan_restore(table: OpenTable, to: InstantTime) -> RestoreResult:
    """What :func:`restore_table` would take out; changes nothing."""
    table.host.require(Capability.RESTORE)
    state = planned_for_service(table)
    found = _plan(state, to)
    if found.undone:
        state.table.host.check_restore(state.client, _stored_form(found))
    return found


def _stored_form(found: RestoreResult) -> RestorePlan:
    """The restore's plan in the form of the timeline."""
    undone = tuple(InstantInfo(one.requested_time, one.action.value) for one in found.undone)
    return RestorePlan(undone, savepoint_to_restore_timestamp=found.to.requested_time)


def _plan(state: TableState, to: InstantTime) -> RestoreResult:
    target = completed_write(state, to)
    require_no_later_savepoint(state, target.requested_time)
    writes = state.timeline.completed_writes()
    # archiving beyond a savepoint moves commits that come after it
    archived = (one.instant for one in state.client.archived.load(target.requested_time))
    undone = [one for one in archived if one.action in WRITE_ACTIONS]  # guard takes-archived-out
    undone += [one for one in writes if one.requested_time > target.requested_time]
    first = min((one.effective_completion_time for one in undone), default=None)
    kept = [one for one in writes if one.requested_time < target.requested_time]
    late = [
        one.requested_time
        for one in (*kept, target)
        if first is not None and one.effective_completion_time > first
    ]
    if late:
        raise TableServiceError(
            f"Commits were under way together with {target.requested_time}: {', '.join(late)} "
            "completed after one that a restore would take out",
            "Restore to a commit that no other one overlaps.",
            instant=target.requested_time,
        )
    require_stored(state, target.requested_time, undone)
    newest_first = tuple(sorted(undone, key=lambda one: one.requested_time, reverse=True))
    return RestoreResult(state.client.base_path, target, None, newest_first)
