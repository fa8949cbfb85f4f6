"""Rolling back one instant as a transaction: plan, delete, complete, tell the format.

What happens in which order, and why, is in :mod:`hudi_core.actions.rollback`. Everything here runs
under the table's lock.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from hudi_core.actions.rollback import (
    delete_files,
    files_of_instant,
    make_plan,
    relative_files,
)
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.errors import ConcurrentWriterError, PluginContractError, TableServiceError
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.removal_changes import record_rollback
from hudi_core.metadata.session import MetadataSession
from hudi_core.metadata.undo import undo
from hudi_core.model.actions import InstantInfo, RollbackPlan
from hudi_core.model.files import PartitionPath
from hudi_core.model.format import Publication
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import parse_instant_time
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.serde import decode_rollback_plan, encode
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn.heartbeat import heartbeat_path, is_of_this_boot, remove_heartbeat
from hudi_core.txn.markers import Markers
from hudi_core.txn.publication import is_two_step, publish_with_retry
from hudi_core.txn.rollback_checks import require_can_be_rolled_back
from hudi_core.txn.state import TableState
from hudi_core.view.storage_lister import StorageLister

_log = logging.getLogger(__name__)


def roll_back(
    state: TableState, target: Instant, published: Publication | None = None
) -> tuple[TableState, Instant]:
    """Undo ``target``, which no reader counts, or which is the last completed write.

    Parameters
    ----------
    target
        The instant as it stands on the Hudi timeline.
    published
        How the format holds it although the timeline has it as pending.

    Returns
    -------
    tuple
        The table after it, and the completed rollback.

    Raises
    ------
    ConcurrentWriterError
        It was pending, and its writer has completed it meanwhile; nothing has changed.
    """
    client = state.client
    files = files_written(state.table, target)
    plan = make_plan(client.storage.root, target, files)
    time = client.clock.next_time(state.timeline)
    requested = Instant(time, Action.ROLLBACK, State.REQUESTED)
    client.active.create_requested(requested, encode(plan))  # step plan-rollback
    _require_still_pending(state.table, requested, target)
    return _execute(state.with_instant(requested), requested, plan, target, published)


def _require_still_pending(table: OpenTable, rollback: Instant, target: Instant) -> None:
    """Give the rollback of a pending write up that has been completed by now.

    Its writer, who was taken for dead, may have looked for a plan before there was this one, and
    tell that the write is done. Nothing is deleted yet.
    """
    if target.is_completed:
        return
    # step look-at-target
    found = table.client.active.load().find(target.requested_time, target.action)
    if found is not None and found.is_completed:
        _delete(table, rollback)
        raise ConcurrentWriterError(table.client.base_path, target.requested_time)


def resume(state: TableState, rollback: Instant) -> tuple[TableState, Instant | None]:
    """Finish a rollback that an earlier writer began.

    Returns
    -------
    tuple
        The table after it, and the completed rollback; ``None`` when it was dropped, because its
        plan names no instant, or a completed write that must stay by now and has lost nothing yet.
    """
    table, active = state.table, state.client.active
    requested = rollback.to(State.REQUESTED)
    plan = decode_rollback_plan(active.read(requested), active.path(requested))
    if plan.instant_to_rollback is None:
        _delete(table, rollback)
        return state.without(rollback), None
    target = _target(state.timeline, plan.instant_to_rollback)
    if target.is_completed and _must_stay(state, target):
        _delete(table, rollback)
        return state.without(rollback), None
    published = None
    if not target.is_completed and is_two_step(table):
        published = table.host.find_publication(table.client, target)
    return _execute(state, rollback, plan, target, published)


def planned(client: TableMetaClient, timeline: Timeline, target: Instant) -> Instant | None:
    """The pending rollback of ``timeline`` whose plan names ``target``; ``None`` when there is
    none."""
    active = client.active
    for pending in timeline.pending():
        if pending.action is Action.ROLLBACK:
            requested = pending.to(State.REQUESTED)
            plan = decode_rollback_plan(active.read(requested), active.path(requested))
            named = plan.instant_to_rollback
            if named is not None and named.commit_time == target.requested_time:
                return pending
    return None


def drop_unwritten(state: TableState, target: Instant) -> None:
    """Undo an instant that has made no data file; no trace of it is left."""
    if state.metadata is not None:
        undo(state.metadata, target.requested_time)
    finish(state.table, target)


def finish(table: OpenTable, target: Instant) -> None:
    """Remove what is left of an instant that is undone: markers and heartbeat, timeline files
    last."""
    storage = table.client.storage
    Markers(storage, target.requested_time).delete_all()
    remove_heartbeat(storage, target.requested_time)
    for late in table.client.active.scan().late:
        if late.requested_time == target.requested_time:
            table.client.active.delete(late)
    for state in (State.INFLIGHT, State.REQUESTED):
        table.client.active.delete(Instant(target.requested_time, target.action, state))


def _execute(
    state: TableState,
    rollback: Instant,
    plan: RollbackPlan,
    target: Instant,
    published: Publication | None,
) -> tuple[TableState, Instant]:
    table, client = state.table, state.client
    where = client.active.path(rollback.to(State.REQUESTED))
    files = relative_files(plan, client.storage.root, target.requested_time, where)
    if rollback.state is State.REQUESTED:
        rollback = client.active.to_inflight(rollback)
        state = state.with_instant(rollback)
    if published is not None:
        completion = published.completion_time or target.requested_time
        _leave_format(table, target.to(State.COMPLETED, completion))
    if target.is_completed:
        _leave_format(table, target)
        client.active.delete(target)  # from here on no reader counts it
        state = state.without(target).with_instant(target.to(State.INFLIGHT))
    # step undo
    metadata = delete_files(client.storage, files, target, rollback.requested_time)
    if state.metadata is not None:
        upkeep = MetadataSession(state.metadata, MetadataConfig.from_options(client.options))
        state = state.with_metadata(record_rollback(upkeep, rollback.requested_time, metadata))
    completion = client.clock.next_time(state.timeline)
    completed = client.active.complete(rollback, completion, encode(metadata), state.timeline)
    state = state.with_instant(completed)
    table, client = state.table, state.client
    publish_with_retry(
        table, completed, lambda: table.host.complete_rollback(client, metadata, completed)
    )
    finish(table, target)
    return state.without(target), completed


def _leave_format(table: OpenTable, target: Instant) -> None:
    """Let the format stop naming files of the target, and make sure that it does.

    Raises
    ------
    PluginContractError
        It goes on naming them; nothing was deleted.
    """
    client, host = table.client, table.host
    host.before_rollback(client, target)
    if is_two_step(table) and host.find_publication(client, target) is not None:
        raise PluginContractError(
            host.name, f"before_rollback returned, and it still holds {target.requested_time}"
        )


def _delete(table: OpenTable, rollback: Instant) -> None:
    for state in (State.INFLIGHT, State.REQUESTED):
        table.client.active.delete(rollback.to(state))


def _must_stay(state: TableState, target: Instant) -> bool:
    """Whether the rollback of a completed write is to be given up, now that time has passed.

    Other engines may have saved it, cleaned before it or written after it. A write whose heartbeat
    is left was taken for dead and landed late: its writer may have been told that it failed. Nor is
    there a way back once a file is gone.
    """
    table = state.table
    if is_two_step(table) and table.host.find_publication(table.client, target) is None:
        return False  # it never counted, and the format will not take it any more
    storage = table.client.storage
    if storage.head(heartbeat_path(target.requested_time)) is not None:
        return False
    try:
        require_can_be_rolled_back(state, target)
    except TableServiceError as refused:
        stats = table.client.read_commit(target).stats
        if all(storage.head(stat.path) is not None for stat in stats if stat.path):
            _log.warning("the rollback of %s is given up: %s", target.requested_time, refused)
            return True
    return False


def _target(timeline: Timeline, info: InstantInfo) -> Instant:
    time = parse_instant_time(info.commit_time)
    found = timeline.find(time)
    return found or Instant(time, Action(info.action), State.INFLIGHT)


def files_written(table: OpenTable, target: Instant) -> Mapping[PartitionPath, Sequence[str]]:
    """The names of an instant's files: all that carry its time where its markers say.

    Without a single marker the writer may have kept them in another way, and markers are not
    flushed, so that a power failure may have taken some: then the whole table is listed.
    """
    # asked of storage: no metadata knows the files of a write that is not complete
    client = table.client
    lister = StorageLister(client.storage, client.config.is_partitioned, client.run_map)
    if target.is_completed:
        named = table.client.read_commit(target).partition_to_write_stats
        partitions = [PartitionPath(path) for path in named]
        return files_of_instant(lister.list_files(partitions), target.requested_time)
    markers = Markers(table.client.storage, target.requested_time).list()
    partitions = sorted({marker.partition_path for marker in markers})
    complete = is_of_this_boot(table.client.storage, target.requested_time)
    if not markers or not complete:
        partitions = list(lister.list_partitions())
    return files_of_instant(lister.list_files(partitions), target.requested_time)
