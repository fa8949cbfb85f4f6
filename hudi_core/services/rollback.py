"""Going back: rollbacks, restores, and the savepoints they go back to."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from hudi_core.actions.compaction import pending_compactions
from hudi_core.actions.rollback import unfinished
from hudi_core.config.write import WriteConfig
from hudi_core.errors import (
    CommitStateUnknownError,
    ConcurrentWriterError,
    InstantNotFoundError,
    TableServiceError,
)
from hudi_core.model.actions import (
    InstantInfo,
    RestorePlan,
    SavepointMetadata,
    SavepointPartitionMetadata,
)
from hudi_core.model.capability import Capability
from hudi_core.model.files import PartitionPath
from hudi_core.model.instant import (
    COMPACTIONS,
    PLANNED_ACTIONS,
    WRITE_ACTIONS,
    Action,
    Instant,
    State,
)
from hudi_core.model.instant_time import InstantTime, parse_instant_time
from hudi_core.services.archive import archive_passed_over
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.clock import require_same_zone
from hudi_core.timeline.serde import decode_savepoint, encode
from hudi_core.txn import savepoints
from hudi_core.txn.clean import continue_pending
from hudi_core.txn.ownership import require_own_claims, without_foreign_metadata
from hudi_core.txn.publication import is_two_step, present_version, publish_with_retry
from hudi_core.txn.recovery import rollback
from hudi_core.txn.recovery.lost_completion import completion_evidence
from hudi_core.txn.recovery.past_state import require_stored, slices_as_of
from hudi_core.txn.recovery.recover import is_writing, require_known_actions
from hudi_core.txn.recovery.restore import continue_restores, restore, tidy_restores
from hudi_core.txn.recovery.rollback_checks import (
    require_can_be_rolled_back,
    require_no_former_logs,
    require_no_logs_again,
)
from hudi_core.txn.scheduled import is_at_work
from hudi_core.txn.state import TableState
from hudi_core.txn.table_lock import TableLock
from hudi_core.txn.table_service import locked_for_service, planned_for_service

_UNDONE: Final = WRITE_ACTIONS | PLANNED_ACTIONS


@dataclass(frozen=True, slots=True)
class RollbackPreview:
    """What a rollback would delete."""

    path: str
    target: Instant
    files: Mapping[PartitionPath, Sequence[str]]

    @property
    def paths(self) -> list[str]:
        """The files, relative to the table."""
        paths = [f"{folder}/{name}" for folder, names in self.files.items() for name in names]
        return [one.removeprefix("/") for one in paths]


def roll_back_instant(
    table: OpenTable, lock: TableLock, config: WriteConfig, instant: str
) -> Instant:
    """Undo the last completed write, or a dead writer's pending one.

    A clustering or compaction is undone in any state, its plan with it.

    Rollbacks that were begun and not finished are finished first. So are cleans, before a completed
    write goes: they may delete what the table goes back to.

    Returns the completed rollback of that write, no matter who began it. Refused where later writes
    build on it, a savepoint holds it, or files that it replaced are gone (``TableServiceError``),
    or while its writer or another one is alive. ``TimelineError``: other writers made the newest
    instants in another time zone.
    """
    client = table.client
    time = parse_instant_time(instant)
    client.require_writable()
    with lock.held_by_service():
        state = TableState.load(table)
        require_same_zone(state.client.active, state.client.config.zone)
        require_own_claims(state.table)
        state = without_foreign_metadata(state)
        table, client = state.table, state.client
        require_known_actions(client)
        state = savepoints.without_begun_savepoints(tidy_restores(continue_restores(state)))
        state, finished = _finish_begun(state, time)
        if finished is not None:
            return finished
        found = state.timeline.find(time)
        if found is not None and found.is_completed:
            state = continue_pending(state, lock)  # guard finishes-cleans
        target = _target(state, config, time)
        published = None
        if not target.is_completed and is_two_step(table):
            published = table.host.find_publication(client, target)
        return rollback.roll_back(state, target, published)[1]


def plan_rollback(table: OpenTable, config: WriteConfig, instant: str) -> RollbackPreview:
    """What :func:`roll_back_instant` would delete; changes nothing.

    Rollbacks, restores and cleans that others began, and are finished first, are not foreseen.
    """
    state = planned_for_service(table)
    target = _target(state, config, parse_instant_time(instant))
    if target.is_completed:
        state.table.host.check_restore(state.client, RestorePlan.of_write(target))
    written = rollback.files_written(state.table, target)
    files = {partition: tuple(names) for partition, names in sorted(written.items())}
    return RollbackPreview(state.client.base_path, target, files)


def _target(state: TableState, config: WriteConfig, time: InstantTime) -> Instant:
    """The write of a time, which can be rolled back now."""
    base_path = state.client.base_path
    target = state.timeline.find(time)
    if target is None or target.action not in _UNDONE:
        raise InstantNotFoundError(time, f"the active timeline of {base_path}")
    for pending in state.timeline.pending():
        if pending.action in _UNDONE and is_writing(state.table, pending, config):
            raise ConcurrentWriterError(base_path, pending.requested_time)
    if target.is_completed or completion_evidence(state, target) is not None:
        require_can_be_rolled_back(state, target)
    return target


def _finish_begun(state: TableState, time: InstantTime) -> tuple[TableState, Instant | None]:
    """Finish begun rollbacks; return the one of the given write.

    Pending ones, and complete ones with files of their target left.

    A second plan for the same write would find its files gone already and say so in the timeline.
    """
    found = None
    for begun in unfinished(state.client):
        state, done = rollback.resume(state, begun)
        if begun.target is not None and begun.target.requested_time == time:
            found = done or found
    return state, found


# --- restore --------------------------------------------------------------------------------------


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
    completed = tuple(undone)
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
    require_no_logs_again(state, undone)
    require_no_former_logs(state, undone, target.requested_time)
    require_stored(state, target.requested_time, completed)
    # their plans may name files that go
    undone += [
        one
        for one in pending_compactions(state.timeline, COMPACTIONS)
        if one.requested_time > target.requested_time
    ]
    newest_first = tuple(sorted(undone, key=lambda one: one.requested_time, reverse=True))
    return RestoreResult(state.client.base_path, target, None, newest_first)


# --- savepoints -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A savepoint of a table.

    The requested time of ``instant`` is that of the commit it keeps; ``files`` is their number.
    """

    instant: Instant
    user: str
    comment: str
    created: datetime
    files: int


def create_savepoint(
    table: OpenTable,
    lock: TableLock,
    config: WriteConfig,
    *,
    of: InstantTime | None = None,
    user: str = "",
    comment: str = "",
) -> Savepoint:
    """Keep the files of a commit from being cleaned.

    One that is there already is returned. Cleans that others began are finished first: their plans
    know nothing of it.

    ``of`` is the requested time of a commit on the active timeline; by default of the last one.
    ``HistoryExpiredError`` means that a clean has deleted a file of the state,
    ``TableServiceError`` that the format does not keep it any more.
    """
    table.host.require(Capability.SAVEPOINT)
    with locked_for_service(table, lock, config) as locked:
        state = continue_pending(locked, lock)  # guard finishes-cleans
        client, timeline = state.client, state.timeline
        target = completed_write(state, of)
        there = timeline.find(target.requested_time, Action.SAVEPOINT)
        if there is not None:
            return _described(state, there)
        kept: dict[str, list[str]] = {}
        for one in slices_as_of(state, target.requested_time):
            names = [log.status.name for log in one.log_files]
            names += [one.base_file.status.name] if one.base_file is not None else []
            kept.setdefault(one.partition_path, []).extend(names)
        body = SavepointMetadata(
            user,
            round(time.time() * 1000),
            comment,
            {
                path: SavepointPartitionMetadata(path, tuple(sorted(names)))
                for path, names in sorted(kept.items())
            },
        )
        inflight = Instant(target.requested_time, Action.SAVEPOINT, State.INFLIGHT)
        client.active.to_inflight(inflight)
        done = client.active.complete(
            inflight, client.clock.next_time(timeline), encode(body), timeline
        )
        saved = state.with_instant(done)
        host, client = saved.table.host, saved.client
        try:
            publish_with_retry(
                saved.table,
                done,
                lambda: host.complete_savepoint(client, body, done, present_version(saved.table)),
            )
        except CommitStateUnknownError as unpublished:
            refused = unpublished.__cause__
            if not isinstance(refused, TableServiceError):
                raise
            # the format does not keep that state any more; of several, an earlier one may
            savepoints.delete_savepoint(saved, done)
            raise refused from unpublished
        return _described(saved, done)


def delete_savepoint(
    table: OpenTable, lock: TableLock, config: WriteConfig, of: InstantTime
) -> Instant:
    """Let the files of a savepoint be cleaned again.

    A commit that archiving has passed over for it is archived first: the active timeline would
    begin with it, and what is archived counts by being earlier.
    """
    with locked_for_service(table, lock, config) as locked:
        found = locked.timeline.find(of, Action.SAVEPOINT)
        if found is None or not found.is_completed:
            raise InstantNotFoundError(of, f"the savepoints of {locked.client.base_path}")
        state = archive_passed_over(locked, lock, config, of)  # guard archives-passed-over
        savepoints.delete_savepoint(state, found)
        return found


def savepoints_of(table: OpenTable) -> tuple[Savepoint, ...]:
    """The savepoints of a table, the oldest first."""
    timeline = table.timeline()
    state = TableState(table)
    return tuple(
        _described(state, one)
        for one in timeline.instants
        if one.action is Action.SAVEPOINT and one.is_completed
    )


def completed_write(state: TableState, time_: InstantTime | None) -> Instant:
    """A completed write of the active timeline; by default the last one."""
    writes = state.timeline.completed_writes()
    found = [one for one in writes if time_ in (None, one.requested_time)]
    if not found:
        where = f"the active timeline of {state.client.base_path}"
        raise InstantNotFoundError(time_ or "a completed write", where)
    return found[-1]


def require_no_later_savepoint(state: TableState, time_: InstantTime) -> None:
    """Refuse to take out a state that a savepoint keeps."""
    saved = state.timeline.completed().of_actions(Action.SAVEPOINT).instants
    later = [one.requested_time for one in saved if one.requested_time > time_]
    if later:
        raise TableServiceError(
            f"The table at {state.client.base_path} has savepoints of later commits, which a "
            f"restore to {time_} would take out: {', '.join(later)}",
            "Delete them first (hudi savepoint delete), or restore to the newest of them.",
            later=later,
        )


def _described(state: TableState, instant: Instant) -> Savepoint:
    active = state.client.active
    body = decode_savepoint(active.read(instant), active.path(instant))
    return Savepoint(
        instant,
        body.savepointed_by,
        body.comments,
        datetime.fromtimestamp(body.savepointed_at / 1000, UTC),
        sum(len(one.savepoint_data_file) for one in body.partition_metadata.values()),
    )
