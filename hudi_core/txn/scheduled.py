"""Clusterings that died, or are scheduled and not begun.

A scheduled clustering is no write: it stays until it is run or given up, and other
writers go round its file groups. One that died at work is rolled back; if its plan had been
scheduled by itself it is put on the timeline again, at a new time, since names of files derive from
the time and its writer may yet wake up.
"""

from __future__ import annotations

from hudi_core.actions.clustering import read_clustering
from hudi_core.config.kinds import ConcurrencyMode
from hudi_core.config.write import WriteConfig
from hudi_core.errors import ConcurrentWriterError
from hudi_core.model.instant import Action, Instant, State
from hudi_core.timeline.serde import encode
from hudi_core.txn import heartbeat
from hudi_core.txn.recovery import rollback
from hudi_core.txn.recovery.lost_completion import require_not_completed
from hudi_core.txn.state import TableState


def is_scheduled(instant: Instant) -> bool:
    """Whether an instant is a clustering that was not begun."""
    return instant.action is Action.CLUSTERING and instant.state is State.REQUESTED


def is_at_work(pending: Instant) -> bool:
    """Whether a writer may be at work for a pending instant.

    Asked under the lock. A clean runs under it from its plan to its end, and so do savepoints and
    their deletions: one that is pending is of a dead writer, and the next action goes on with it.
    """
    is_under_lock = pending.action in (Action.CLEAN, Action.SAVEPOINT)
    return not is_under_lock and not is_scheduled(pending)


def schedule_again(state: TableState, body: bytes) -> TableState:
    """Put the plan of an undone clustering onto the timeline again.

    Runs under the lock, after the clustering was rolled back.
    """
    time = state.client.clock.next_time(state.timeline)
    instant = Instant(time, Action.CLUSTERING, State.REQUESTED)
    return state.with_instant(state.client.active.create_requested(instant, body))


def recover_clustering(state: TableState, pending: Instant, config: WriteConfig) -> TableState:
    """Recover a clustering that is not complete; under the lock.

    One that is scheduled is left alone, and so is one at work in an engine that gives no sign of
    life.
    """
    client, time = state.client, pending.requested_time
    has_begun = client.storage.head(heartbeat.heartbeat_path(time)) is not None
    body = _kept_plan(state, pending)
    if body is not None and not has_begun:
        return state
    if body is not None and is_scheduled(pending):
        # who runs it holds the lock from the first sign of life to the inflight file
        rollback.drop_unwritten(state, pending, is_scheduled=True)
        return state
    if has_begun and heartbeat.is_alive(
        client.storage, time, config.heartbeat_interval_ms, config.heartbeat_misses
    ):
        if config.concurrency_mode is ConcurrencyMode.SINGLE_WRITER:
            raise ConcurrentWriterError(client.base_path, time)
        return state
    if is_scheduled(pending):
        rollback.drop_unwritten(state, pending)
        return state.without(pending)
    require_not_completed(state, pending)
    state, _ = rollback.roll_back(state, pending)
    return state if body is None else schedule_again(state, body)


def _kept_plan(state: TableState, pending: Instant) -> bytes | None:
    """Requested file of a clustering, if its plan stays.

    ``None`` where who scheduled it was to run it too.
    """
    found = read_clustering(state.client, pending)
    return encode(found.body) if found.is_scheduled else None
