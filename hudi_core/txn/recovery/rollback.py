"""Rolling back one instant of a table.

The metadata table and the format record it.

What happens in which order, and why, is in :mod:`hudi_core.actions.rollback`. Everything here runs
under the table's lock.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hudi_core.actions.rollback import (
    Rollback,
    RollbackHooks,
    begin,
    drop,
    files_of_instant,
    make_plan,
    partitions_replaced_by,
    planned,
    relative_files,
    remove_from_timeline,
    run,
)
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.errors import (
    ConcurrentWriterError,
    HistoryExpiredError,
    PluginContractError,
    TableServiceError,
)
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.index_definitions import IndexDefinitions
from hudi_core.metadata.log.undo import undo
from hudi_core.metadata.session import MetadataSession, record_rollback
from hudi_core.metadata.state import MetadataState
from hudi_core.model.actions import RollbackMetadata, RollbackPlan
from hudi_core.model.files import FileStatus, PartitionPath, join_path
from hudi_core.model.format import Publication
from hudi_core.model.instant import PLANNED_ACTIONS, WRITE_ACTIONS, Instant, State
from hudi_core.model.instant_time import InstantTime, just_before
from hudi_core.table_handle import OpenTable
from hudi_core.txn.heartbeat import heartbeat_path, is_of_this_boot, remove_heartbeat
from hudi_core.txn.markers import Markers
from hudi_core.txn.publication import (
    is_two_step,
    present_version,
    publish_with_retry,
    version_of_any_writer,
)
from hudi_core.txn.recovery.rollback_checks import asking_format, require_can_be_rolled_back
from hudi_core.txn.state import TableState
from hudi_core.view.storage_lister import StorageLister

_log = logging.getLogger(__name__)


def roll_back(
    state: TableState, target: Instant, published: Publication | None = None
) -> tuple[TableState, Instant]:
    """Undo ``target``, an incomplete or the last completed write.

    ``target`` is as the Hudi timeline has it; ``published`` is how the format holds it although it
    is pending there. Returns the table and the completed rollback.

    :class:`ConcurrentWriterError`: its writer has completed it meanwhile; nothing has changed.
    :class:`TableServiceError`: the format cannot go back behind it; nothing was deleted, and the
    plan is removed.
    """
    client = state.client
    if not target.is_completed:
        markers = Markers(client.scratch, target.requested_time)
        markers.list()  # a forged one is refused before anything is written
        # tasks on other machines may outlive their writer: from now on no file of theirs counts
        markers.seal()
    replaced: dict[PartitionPath, Sequence[str]] = dict.fromkeys(
        partitions_replaced_by(client, target), ()
    )
    files = replaced | {**files_written(state.table, target)}
    requested = client.clock.next_time(state.timeline)
    begun = begin(client, target, files, requested)  # step plan-rollback
    _require_still_pending(state.table, begun.instant, target)
    state, completed = _run(state.with_instant(begun.instant), begun, published, is_new=True)
    assert completed is not None  # noqa: S101 - the plan names the target
    return state, completed


def _require_still_pending(table: OpenTable, rollback: Instant, target: Instant) -> None:
    """Abandon a pending write's rollback if the write completed.

    Its writer, who was taken for dead, may have looked for a plan before there was this one, and
    report that the write is done. Nothing is deleted yet.
    """
    if target.is_completed:
        return
    # step look-at-target
    found = table.client.active.load().find(target.requested_time, target.action)
    if found is not None and found.is_completed:
        table.client.active.delete_pending(rollback)
        raise ConcurrentWriterError(table.client.base_path, target.requested_time)


def resume(state: TableState, rollback: Rollback) -> tuple[TableState, Instant | None]:
    """Finish a rollback that an earlier writer began.

    The rollback is ``None`` when it was dropped, because its plan names no instant, an archived
    write, or a completed one that must stay by now and has lost nothing yet. After
    :class:`TableServiceError` nothing was deleted by this call.
    """
    table, target = state.table, rollback.target
    published = None
    if target is not None and not rollback.instant.is_completed:
        if _is_archived(state, target):
            drop(state.client, rollback)
            return state.without(rollback.instant), None
        if target.is_completed and _must_stay(state, target):  # guard gives-up-rollbacks
            drop(state.client, rollback)
            return state.without(rollback.instant), None
        if not target.is_completed and is_two_step(table):
            published = table.host.find_publication(table.client, target)
        rollback = _with_all_files(state, rollback, target)
    return _run(state, rollback, published)


def _is_archived(state: TableState, target: Instant) -> bool:
    """Whether a plan names an archived write, which is complete for good."""
    time = target.requested_time
    if state.timeline.find(time) is not None:
        return False
    archived = state.client.archived.load(just_before(time), time)
    found = any(one.instant.action in WRITE_ACTIONS for one in archived)
    if found:
        _log.warning("the rollback of %s is given up: it is archived, and complete", time)
    return found


def _with_all_files(state: TableState, rollback: Rollback, target: Instant) -> Rollback:
    """A rollback that also deletes what its target wrote since.

    Tasks of other engines may outlive their writer, and its rollback.
    """
    plan, root = rollback.body, state.client.storage.root
    if not isinstance(plan, RollbackPlan) or state.timeline.find(target.requested_time) is None:
        return rollback
    where = state.client.active.path(rollback.instant.to(State.REQUESTED))
    planned_files = relative_files(plan, root, target.requested_time, where)
    known = {path for _, path in planned_files}
    more = {
        partition: [name for name in names if join_path(partition, name) not in known]
        for partition, names in files_written(state.table, target).items()
    }
    requests = make_plan(root, target, {path: names for path, names in more.items() if names})
    every = (*plan.rollback_requests, *requests.rollback_requests)
    return replace(rollback, body=replace(plan, rollback_requests=every))


def planned_for(client: TableMetaClient, target: Instant) -> Rollback | None:
    """The pending rollback whose plan names ``target``; ``None`` when there is none."""
    for one in planned(client):
        if one.target is not None and one.target.requested_time == target.requested_time:
            return one
    return None


def drop_unwritten(state: TableState, target: Instant, *, is_scheduled: bool = False) -> None:
    """Undo an instant without data files, leaving no trace.

    ``is_scheduled``: the plan stays, as it was scheduled before it was begun.
    """
    if state.metadata is not None:
        undo(state.metadata, target.requested_time)
    if target.action not in PLANNED_ACTIONS:
        _remove_signs_of_life(state.client, target)
    if is_scheduled:
        state.client.active.delete(target.to(State.INFLIGHT))
    else:
        remove_from_timeline(state.client, target)
    if target.action in PLANNED_ACTIONS:
        # last: without them it would be taken for one of another engine
        _remove_signs_of_life(state.client, target)


def _run(
    state: TableState, rollback: Rollback, published: Publication | None, *, is_new: bool = False
) -> tuple[TableState, Instant | None]:
    # nothing is recorded of a rollback that is complete
    is_complete = rollback.instant.is_completed
    tables = None if is_complete else state.metadata
    client = state.client if tables is None else tables.client
    definitions = state.definitions if tables is None else tables.definitions
    recorded = None if tables is None else tables.definitions
    hooks = _Hooks(state.table, recorded, published, rollback.instant, is_new)
    client, completed = run(client, rollback, client.clock.next_time, hooks)
    return state.with_client(client, definitions), completed


@dataclass(frozen=True)
class _Hooks(RollbackHooks):
    """Calls the format and the metadata table.

    ``definitions`` is ``None`` where the table has no metadata table. ``published`` is how the
    format holds the target although it is pending on the timeline. ``begun`` is the rollback as it
    was found; the format may hold one that was complete before. ``is_new``: it was planned just
    now.
    """

    table: OpenTable
    definitions: IndexDefinitions | None
    published: Publication | None
    begun: Instant
    is_new: bool

    def before_delete(self, client: TableMetaClient, target: Instant) -> None:
        """Let the format stop naming the target's files."""
        table = replace(self.table, client=client)
        if self.published is not None:
            completion = self.published.completion_time or target.requested_time
            target = target.to(State.COMPLETED, completion)
        if target.is_completed:
            with asking_format(table, self.begun, is_new=self.is_new):
                _leave_format(table, target)

    def after_delete(self, client: TableMetaClient, metadata: RollbackMetadata) -> TableMetaClient:
        """Record the deletions in the metadata table."""
        if self.definitions is None:
            return client
        tables = MetadataState(client, self.definitions)
        session = MetadataSession(tables, MetadataConfig.from_options(client.options))
        return record_rollback(session, InstantTime(metadata.start_rollback_time), metadata).client

    def after_complete(
        self, client: TableMetaClient, rollback: Instant, metadata: RollbackMetadata
    ) -> None:
        """Publish the completed rollback in the format."""
        table, host = replace(self.table, client=client), self.table.host
        if self.begun.is_completed and host.find_publication(client, rollback) is not None:
            return
        publish_with_retry(
            table,
            rollback,
            lambda: host.complete_rollback(
                client, metadata, rollback, version_of_any_writer(table)
            ),
        )

    def before_tidy(self, client: TableMetaClient, target: Instant) -> None:
        """Remove what shows that a writer is at work."""
        _remove_signs_of_life(client, target)


def _remove_signs_of_life(client: TableMetaClient, target: Instant) -> None:
    # the seal last: while there is a heartbeat, it is what keeps tasks from adding files
    remove_heartbeat(client.storage, target.requested_time)
    Markers(client.storage, target.requested_time).delete_all()


def _leave_format(table: OpenTable, target: Instant) -> None:
    """Remove the target's files from the format, and verify.

    If the format still names them (:class:`PluginContractError`), nothing was deleted.
    """
    client, host = table.client, table.host
    host.before_rollback(client, target, present_version(table))
    if is_two_step(table) and host.find_publication(client, target) is not None:
        raise PluginContractError(
            host.name, f"before_rollback returned, and it still holds {target.requested_time}"
        )


def _must_stay(state: TableState, target: Instant) -> bool:
    """Whether a completed write's rollback must be abandoned by now.

    Other engines may have saved it, cleaned before it or written after it. A write whose heartbeat
    is left was taken for dead and landed late: its writer may have seen it fail. Nor is
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
    except (HistoryExpiredError, TableServiceError) as refused:
        paths = [stat.path for stat in table.client.read_commit(target).stats if stat.path]
        if None not in table.client.map_requests(table.client.data.head, paths):
            _log.warning("the rollback of %s is given up: %s", target.requested_time, refused)
            return True
    return False


def files_written(table: OpenTable, target: Instant) -> Mapping[PartitionPath, Sequence[str]]:
    """File names of an instant, found by its markers.

    All that carry its time where its markers are.

    Without a single marker the writer may have kept them in another way, and markers are not
    flushed, so that a power failure may have taken some: then the whole table is listed.
    """
    # asked of storage: no metadata knows the files of a write that is not complete
    client = table.client
    lister = StorageLister.of(client)
    if target.is_completed:
        named = table.client.read_commit(target).partition_to_write_stats
        partitions = [PartitionPath(path) for path in named]
        return files_of_instant(lister.list_files(partitions), target.requested_time)
    markers = Markers(table.client.storage, target.requested_time).list()
    partitions = sorted({marker.partition_path for marker in markers})
    complete = is_of_this_boot(table.client.storage, target.requested_time)
    if not markers or not complete:
        partitions = list(lister.list_partitions())
    elif not client.files.is_plain:
        # a listing would look into every folder of the storage strategy
        paths = sorted(join_path(one.partition_path, one.file_name) for one in markers)
        there = client.map_requests(client.data.head, paths)
        return files_of_instant(_by_partition(there), target.requested_time)
    return files_of_instant(lister.list_files(partitions), target.requested_time)


def _by_partition(
    files: Iterable[FileStatus | None],
) -> dict[PartitionPath, list[FileStatus]]:
    found: dict[PartitionPath, list[FileStatus]] = {}
    for file in files:
        if file is not None:
            found.setdefault(PartitionPath(file.path.rpartition("/")[0]), []).append(file)
    return found
