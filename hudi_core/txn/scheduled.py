"""Clusterings and compactions that died, or are scheduled and not begun.

What is scheduled is no write: it stays until it is run or given up. One that died at work is rolled
back; if its plan had been scheduled by itself it is put on the timeline again, at a new time, since
names of files derive from the time and its writer may yet wake up. A compaction, of logs too, is
then planned again: logs that came since its first plan belong to the slice that it merges now.
"""

from __future__ import annotations

from hudi_core.actions.clustering import read_clustering
from hudi_core.actions.compaction import (
    groups_of_plan,
    plan_compaction,
    read_compaction,
    runs_at_once,
)
from hudi_core.config.kinds import ConcurrencyMode
from hudi_core.config.write import WriteConfig
from hudi_core.errors import ConcurrentWriterError
from hudi_core.model.commit import CommitMetadata
from hudi_core.model.conflicts import base_files_of, logs_of, touched_groups
from hudi_core.model.instant import COMPACTIONS, Action, Instant, State
from hudi_core.timeline.serde import decode_compaction_plan, encode
from hudi_core.txn import heartbeat
from hudi_core.txn.recovery import rollback
from hudi_core.txn.recovery.lost_completion import require_not_completed
from hudi_core.txn.state import TableState


def is_at_work(pending: Instant) -> bool:
    """Whether a writer may be at work for a pending instant.

    Asked under the lock. A clean runs under it from its plan to its end, and so do savepoints and
    their deletions: one that is pending is of a dead writer, and the next action goes on with it.
    """
    is_under_lock = pending.action in (Action.CLEAN, Action.SAVEPOINT)
    return not is_under_lock and not pending.is_scheduled


def schedule_again(state: TableState, undone: Instant, body: bytes) -> TableState:
    """Put the plan of an undone action onto the timeline again.

    Of a clustering or compaction. Runs under the lock, after it was rolled back. Nothing is put for
    a compaction whose slices have no logs any more.
    """
    found: bytes | None = body
    if undone.action in COMPACTIONS:
        found = _planned_again(state, undone, body)  # guard plans-anew
    if found is None:
        return state
    time = state.client.clock.next_time(state.timeline)
    instant = Instant(time, undone.action, State.REQUESTED)
    return state.with_instant(state.client.active.create_requested(instant, found))


def _planned_again(state: TableState, undone: Instant, body: bytes) -> bytes | None:
    """The plan of an undone compaction, with present logs."""
    where = state.client.active.path(undone.to(State.REQUESTED))
    groups = groups_of_plan(decode_compaction_plan(body, where))
    view = state.table.views().view(state.table.timeline())
    partitions = sorted({group.partition_path for group in groups})
    slices = view.latest_slices(partitions)
    plan = plan_compaction([one for one in slices if one.group in groups], action=undone.action)
    return None if plan is None else encode(plan)


def give_up_outdated(state: TableState, metadata: CommitMetadata) -> TableState:
    """Take planned log compactions of rewritten slices off the timeline.

    A process that ran one, of another engine too, would put older rows over those of the new slice.
    Runs under the lock, before the commit.
    """
    touched = touched_groups(metadata)
    for planned in state.timeline.pending():
        if planned.action is not Action.LOGCOMPACTION or not planned.is_scheduled:
            continue
        groups = groups_of_plan(read_compaction(state.client, planned)) & touched
        if any(base_files_of(metadata, one) or not logs_of(metadata, one) for one in groups):
            rollback.drop_unwritten(state, planned)
            state = state.without(planned)
    return state


def recover_planned(state: TableState, pending: Instant, config: WriteConfig) -> TableState:
    """Recover a clustering or compaction that is not complete; under the lock.

    One that is scheduled is left alone, and so is one at work in an engine that gives no sign of
    life.
    """
    client, time = state.client, pending.requested_time
    has_begun = client.storage.head(heartbeat.heartbeat_path(time)) is not None
    body = _kept_plan(state, pending)
    if body is not None and not has_begun:
        return state
    is_plan = body is not None and pending.is_scheduled
    if is_plan and not heartbeat.is_of_other_engine(client.storage, time):
        # who runs it here holds the lock from the first sign of life to the inflight file
        rollback.drop_unwritten(state, pending, is_scheduled=True)
        return state
    if has_begun and is_run(state, pending, config):
        # another engine, which has no inflight file yet, does not share the lock from there on
        is_alone = config.concurrency_mode is ConcurrencyMode.SINGLE_WRITER
        if is_alone and not pending.is_scheduled:
            raise ConcurrentWriterError(client.base_path, time)
        return state
    if is_plan:
        rollback.drop_unwritten(state, pending, is_scheduled=True)
        return state
    if pending.is_scheduled:
        rollback.drop_unwritten(state, pending)
        return state.without(pending)
    require_not_completed(state, pending)
    state, _ = rollback.roll_back(state, pending)
    return state if body is None else schedule_again(state, pending, body)


def is_run(state: TableState, pending: Instant, config: WriteConfig) -> bool:
    """Whether a process runs a clustering or compaction, and is alive."""
    return heartbeat.is_alive(
        state.client.storage,
        pending.requested_time,
        config.heartbeat_interval_ms,
        config.heartbeat_misses,
    )


def _kept_plan(state: TableState, pending: Instant) -> bytes | None:
    """Requested file of a clustering or compaction, if its plan stays.

    ``None`` where who scheduled it was to run it too.
    """
    if pending.action in COMPACTIONS:
        plan = read_compaction(state.client, pending)
        return None if runs_at_once(plan) else encode(plan)
    found = read_clustering(state.client, pending)
    return encode(found.body) if found.is_scheduled else None
