"""Restores of a table, its metadata table and its format.

A restore only goes forward. Its plan is put on the timeline; the format returns to the state in one
change; the plan becomes inflight; the instants that came later are hidden from readers, the newest
first; their files are deleted; the metadata table records that, or is rebuilt where it cannot go
back; the restore completes, and the format records it; then the instants leave the timeline. One
that is cut short is continued from its plan by the next writer, before it does anything else.
Everything runs under the table's lock.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

from hudi_core.actions.deletion import delete_together
from hudi_core.actions.rollback import (
    files_of_instant,
    instant_named,
    partitions_replaced_by,
    remove_from_timeline,
)
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.errors import (
    CorruptMetadataError,
    HistoryExpiredError,
    InstantNotFoundError,
)
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.maintenance.lifecycle import announce_rebuild, ensure_metadata_table
from hudi_core.metadata.session import MetadataSession, can_undo, record_rollback
from hudi_core.metadata.table import StoredPartitions
from hudi_core.model.actions import (
    InstantInfo,
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    RollbackPartitionMetadata,
)
from hudi_core.model.files import PartitionPath, join_path
from hudi_core.model.instant import WRITE_ACTIONS, Action, Instant, State
from hudi_core.model.instant_time import InstantTime, just_before
from hudi_core.storage.location import stored_uri
from hudi_core.timeline.serde import decode_restore, decode_restore_plan, encode
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn.heartbeat import remove_heartbeat
from hudi_core.txn.markers import Markers
from hudi_core.txn.publication import present_version, publish_with_retry
from hudi_core.txn.recovery.past_state import require_stored
from hudi_core.txn.recovery.rollback_checks import asking_format
from hudi_core.txn.state import TableState
from hudi_core.view.storage_lister import StorageLister

_log: Final = logging.getLogger(__name__)
_Files = Mapping[InstantTime, Mapping[PartitionPath, Sequence[str]]]


class Restored(NamedTuple):
    """A table after a restore.

    ``instant`` is ``None`` when the restore was dropped: its plan was empty, or was refused before
    anything of it was done.
    """

    state: TableState
    instant: Instant | None


def restore(state: TableState, plan: RestorePlan) -> Restored:
    """Run a new restore; see :func:`continue_restore`.

    Its plan is removed again where the format refuses it.
    """
    client = state.client
    requested = client.clock.next_time(state.timeline)
    instant = Instant(requested, Action.RESTORE, State.REQUESTED)
    client.active.create_requested(instant, encode(plan))
    return continue_restore(state.with_instant(instant), instant, is_new=True)


def continue_restores(state: TableState) -> TableState:
    """Finish the restores that others began; returns the table after them."""
    for instant in state.timeline.pending().of_actions(Action.RESTORE):
        state = continue_restore(state, instant).state
    return state


def tidy_restores(state: TableState) -> TableState:
    """Remove what completed restores have left of the instants they took out."""
    for instant in state.timeline.completed().of_actions(Action.RESTORE):
        state = _tidy(state, instant)
    return state


def continue_restore(state: TableState, instant: Instant, *, is_new: bool = False) -> Restored:
    """Bring a restore whose plan is on the timeline to its end.

    ``is_new``: see :func:`~hudi_core.txn.recovery.rollback_checks.asking_format`.
    :class:`CorruptMetadataError` (a plan that is damaged or leaves writes in between) and
    :class:`TableServiceError` mean that nothing was deleted. After :class:`CommitStateUnknownError`
    the restore is complete on the Hudi timeline, and the format does not hold it yet.
    """
    started = time.monotonic()
    active, host = state.client.active, state.table.host
    plan = _stored_plan(state.client, instant)
    if plan is None:
        active.delete_pending(instant)
        return Restored(state.without(instant), None)
    is_begun = instant.state is State.INFLIGHT
    named = _named(plan, state.client.active.path(instant.to(State.REQUESTED)))
    reason = None if is_new else _why_not(state, instant, plan, named)
    if reason is not None:
        _refuse(state, instant, reason)
        return Restored(state.without(instant), None)
    with asking_format(state.table, instant, is_new=is_new, is_begun=is_begun) as answer:
        expected = present_version(state.table)
        host.before_restore(state.client, plan, instant.to(State.INFLIGHT), expected)  # undo leave
    if answer.is_refused:
        return Restored(state.without(instant), None)
    if not is_begun:
        instant = active.to_inflight(instant)
        state = state.with_instant(instant)
    targets = _targets(state, named)
    files = _files(state.client, targets)
    state = _ready_for_rebuild(state, targets)
    state = _hidden(state, targets)  # undo hide
    paths = [
        join_path(partition, name)
        for found in files.values()
        for partition, names in found.items()
        for name in names
    ]
    delete_together(state.client.data, state.client.map_requests, paths)  # undo delete
    state = _recorded(state, instant, targets, files)
    body = _metadata(state.client, instant, targets, files, time.monotonic() - started)
    timeline = state.timeline
    completion = state.client.clock.next_time(timeline)
    completed = active.complete(instant, completion, encode(body), timeline)  # undo complete
    state = state.with_instant(completed)
    table, client = state.table, state.client
    publish_with_retry(
        table,
        completed,
        # undo record
        lambda: host.complete_restore(client, body, completed, present_version(table)),
    )
    for target in targets:
        state = _removed(state, target)  # undo tidy
    return Restored(_with_metadata_table(state), completed)


def under_restore(client: TableMetaClient, timeline: Timeline) -> frozenset[InstantTime]:
    """Requested times of the instants that pending restores take out."""
    found: set[InstantTime] = set()
    for instant in timeline.pending().of_actions(Action.RESTORE):
        plan = _stored_plan(client, instant)
        if plan is not None:
            where = client.active.path(instant.to(State.REQUESTED))
            found.update(time_ for time_, _ in _named(plan, where))
    return frozenset(found)


def _stored_plan(client: TableMetaClient, instant: Instant) -> RestorePlan | None:
    requested = instant.to(State.REQUESTED)
    where = client.active.path(requested)
    try:
        body = client.active.read(requested)
    except InstantNotFoundError as error:
        raise CorruptMetadataError(
            where,
            "it is missing, and the restore is under way: which commits it takes out is not known",
            "Put the file back from a backup of the table.",
        ) from error
    return decode_restore_plan(body, where) if body else None


def _named(plan: RestorePlan, where: str) -> list[tuple[InstantTime, Action]]:
    return [instant_named(info, where) for info in plan.instants_to_rollback]


def _targets(state: TableState, named: Iterable[tuple[InstantTime, Action]]) -> list[Instant]:
    """Instants of a plan, newest first.

    What is not on the timeline is archived. It stays in the history, which counts as complete: all
    the more its files have to go.
    """
    found = []
    for time_, action in named:
        one = state.timeline.find(time_) or Instant(time_, action, State.INFLIGHT)
        if one.action.completed_action in WRITE_ACTIONS:
            found.append(one)
    return sorted(found, key=lambda one: one.requested_time, reverse=True)


def _why_not(
    state: TableState,
    instant: Instant,
    plan: RestorePlan,
    named: Collection[tuple[InstantTime, Action]],
) -> str | None:
    """Why another writer's restore must not go on; ``None`` where it may.

    Once it is inflight files may be gone, and only a plan that never was one is refused.
    """
    is_begun = instant.state is State.INFLIGHT
    times = {time_ for time_, _ in named}
    writes = state.timeline.completed_writes()
    before = [one for one in writes if times and one.requested_time < min(times)]
    to = plan.savepoint_to_restore_timestamp or (before[-1].requested_time if before else "")
    target = state.timeline.find(InstantTime(to))
    done = "" if target is None else target.effective_completion_time
    left = [
        one.requested_time
        for one in writes
        if one.requested_time > to
        and one.effective_completion_time > done
        and one.requested_time not in times
        and (not is_begun or one.requested_time < instant.requested_time)
    ]
    if left:
        return f"it leaves {', '.join(left)} in, which came after {to or 'the beginning'}"
    if is_begun or not times:
        return None
    saved = {one.requested_time for one in state.timeline.of_actions(Action.SAVEPOINT)}
    kept = sorted(times & saved) or sorted(time_ for time_ in times if time_ <= to)
    if kept:
        return f"it takes {', '.join(kept)} out, which must stay"
    undone = [one for one in _targets(state, named) if one.is_completed]
    since = InstantTime(to) if to else just_before(min(times))
    try:
        require_stored(state, since, undone)
    except HistoryExpiredError as expired:
        return expired.what
    return None


def _refuse(state: TableState, instant: Instant, reason: str) -> None:
    """Drop another writer's plan of which nothing has been done.

    A plan that is under way stays, and is a :class:`CorruptMetadataError`.
    """
    active = state.client.active
    if instant.state is State.INFLIGHT:
        raise CorruptMetadataError(
            f"{state.client.storage.root}/{active.path(instant.to(State.REQUESTED))}",
            f"as the plan of a restore, {reason}",
            "Nothing was deleted by this call. Remove the restore's files from the timeline if "
            "they are not from a writer you trust.",
        )
    _log.warning(
        "%s: the plan of the restore %s, of a writer that died, is dropped: %s",
        state.client.base_path,
        instant.requested_time,
        reason,
    )
    active.delete_pending(instant)


def _files(client: TableMetaClient, targets: Sequence[Instant]) -> _Files:
    """Data files of instants, by their time and partition.

    Their commits name the partitions; where one is hidden already, all are listed.
    """
    if not targets:
        return {}
    lister = StorageLister.of(client)
    replaced = {one: partitions_replaced_by(client, one) for one in targets}
    if all(one.is_completed for one in targets):
        named = (client.read_commit(one).partition_to_write_stats for one in targets)
        partitions = [PartitionPath(path) for path in sorted(set(chain.from_iterable(named)))]
    else:
        partitions = list(lister.list_partitions())
        # which of them get file groups back a hidden commit does not say
        replaced = {one: {*partitions} for one in targets}
    listing = lister.list_files(partitions)
    return {
        one.requested_time: {
            **{path: [] for path in replaced[one]},
            **files_of_instant(listing, one.requested_time),
        }
        for one in targets
    }


def _ready_for_rebuild(state: TableState, targets: Sequence[Instant]) -> TableState:
    """Have readers list the storage where the metadata table cannot go back."""
    tables = state.metadata
    if tables is None or all(can_undo(tables, one.requested_time) for one in targets):
        return state
    return state.with_client(announce_rebuild(state.client))


def _hidden(state: TableState, targets: Sequence[Instant]) -> TableState:
    """Take the completed files of instants away, the newest first."""
    for target in targets:
        if target.is_completed:
            state.client.active.delete(target)
            state = state.without(target).with_instant(target.to(State.INFLIGHT))
    return state


def _recorded(
    state: TableState, instant: Instant, targets: Sequence[Instant], files: _Files
) -> TableState:
    """Record the deletions in the metadata table, as one commit of it."""
    if state.metadata is None:
        return state
    session = MetadataSession(state.metadata, MetadataConfig.from_options(state.client.options))
    whole = _rollback(state.client, instant, targets, files)
    return state.with_metadata(record_rollback(session, instant.requested_time, whole))


def _rollback(
    client: TableMetaClient, instant: Instant, targets: Sequence[Instant], files: _Files
) -> RollbackMetadata:
    """What was undone of instants; paths are absolute, as in Hudi."""
    deleted: dict[str, list[str]] = {}
    for target in targets:
        for partition, names in files.get(target.requested_time, {}).items():
            found = deleted.setdefault(partition, [])
            found += (stored_uri(client.storage.root, join_path(partition, name)) for name in names)
    return RollbackMetadata(
        start_rollback_time=instant.requested_time,
        time_taken_in_millis=0,
        total_files_deleted=sum(map(len, deleted.values())),
        commits_rollback=tuple(one.requested_time for one in targets),
        partition_metadata={
            partition: RollbackPartitionMetadata(partition, tuple(paths))
            for partition, paths in sorted(deleted.items())
        },
        instants_rollback=_infos(targets),
    )


def _infos(targets: Sequence[Instant]) -> tuple[InstantInfo, ...]:
    return tuple(
        InstantInfo(one.requested_time, one.action.completed_action.value) for one in targets
    )


def _metadata(
    client: TableMetaClient,
    instant: Instant,
    targets: Sequence[Instant],
    files: _Files,
    seconds: float,
) -> RestoreMetadata:
    """The body of the completed restore."""
    return RestoreMetadata(
        start_restore_time=instant.requested_time,
        time_taken_in_millis=round(seconds * 1000),
        instants_to_rollback=tuple(one.requested_time for one in targets),
        hoodie_restore_metadata={
            one.requested_time: (_rollback(client, instant, [one], files),) for one in targets
        },
        restore_instant_info=_infos(targets),
    )


def _removed(state: TableState, target: Instant) -> TableState:
    client = state.client
    Markers(client.storage, target.requested_time).delete_all()
    remove_heartbeat(client.storage, target.requested_time)
    remove_from_timeline(client, target)
    return state.without(target)


def _tidy(state: TableState, instant: Instant) -> TableState:
    """Remove the files of a restore's instants from the timeline."""
    pending = {one.requested_time: one for one in state.timeline.pending()}
    if not pending or min(pending) > instant.requested_time:
        return state
    body = decode_restore(state.client.active.read(instant), state.client.active.path(instant))
    for time_ in body.instants_to_rollback:
        left = pending.get(InstantTime(time_))
        if left is not None:
            state = _removed(state, left)
    return state


def _with_metadata_table(state: TableState) -> TableState:
    """Rebuild the metadata table where it could not go back."""
    client = state.client
    if not StoredPartitions.of(client.config).is_rebuilding:
        return state
    config = MetadataConfig.from_options(client.options)
    return state.with_client(ensure_metadata_table(client, config))
