"""Erasure: no file of a table holds a deleted row any more."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from hudi_core.actions.clean_of_files import plan_clean, retained_since
from hudi_core.actions.clean_plan import CleanRules, Retention, never_back
from hudi_core.actions.clustering import groups_under_clustering
from hudi_core.actions.compaction import groups_under_compaction
from hudi_core.actions.deletion import delete_together
from hudi_core.config.compaction import CompactionStrategyKind
from hudi_core.config.kinds import CleanPolicy, TableType
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.write import WriteConfig
from hudi_core.engine.base import Engine
from hudi_core.errors import ConcurrentWriterError, TableServiceError
from hudi_core.metadata.maintenance.lifecycle import rebuild_metadata_table
from hudi_core.metadata.table import StoredPartitions
from hudi_core.model.actions import CleanerPlan
from hudi_core.model.capability import Capability
from hudi_core.model.files import FileSlice, LogFileName
from hudi_core.model.instant import WRITE_ACTIONS, Action, Instant
from hudi_core.model.instant_time import EARLIEST, InstantTime
from hudi_core.services.compaction import CompactionService
from hudi_core.services.convert import build_format, new_properties
from hudi_core.services.progress import Progress, no_progress
from hudi_core.services.stage_record import delete_expired_stages, stage_ids
from hudi_core.storage.properties_file import update_properties
from hudi_core.table_handle import OpenTable
from hudi_core.txn.clean import clean, continue_pending
from hudi_core.txn.publication import is_two_step
from hudi_core.txn.savepoints import delete_savepoint
from hudi_core.txn.scheduled import is_at_work
from hudi_core.txn.state import TableState
from hudi_core.txn.table_lock import TableLock
from hudi_core.txn.table_service import locked_for_service, planned_for_service
from hudi_core.view.committed_files import foreign_data_files
from hudi_core.view.file_system import replaced_groups
from hudi_core.view.storage_lister import StorageLister


@dataclass(frozen=True, slots=True)
class PurgeResult:
    """What a purge deleted.

    ``instant`` is ``None`` when there was no past file. ``files`` are data files and logs of
    changes, relative to the table; ``metadata_files`` are those of the format that nothing names
    any more.
    """

    path: str
    instant: Instant | None
    files: tuple[str, ...]
    metadata_files: tuple[str, ...]


def purge_table(
    table: OpenTable,
    lock: TableLock,
    engine: Engine,
    config: WriteConfig,
    *,
    older_than: InstantTime | None = None,
    savepoints: Collection[InstantTime] = (),
    progress: Progress = no_progress,
) -> PurgeResult:
    """Delete every trace of rows that the table no longer has.

    Log files are merged into base files first, which is a compaction. Then files of past states are
    cleaned, the logs of changes deleted, and the metadata table and the format's metadata rebuilt
    from the present files, for indexes and statistics hold values too. Files that other writers of
    the format have left, or that only its former states name, go too.

    ``older_than`` erases rows that went before that time, and states since then stay readable in
    Hudi's view, but for those that read them by log files from before; by default only the present
    state stays. ``savepoints`` are deleted first: what they keep could not be erased.

    Another savepoint that keeps past files, or a stage with rows, refuses the purge with nothing
    deleted, unless the stage came meanwhile: then only its files may hold deleted rows.
    """
    _require_possible(table)
    if _unmerged(table.as_stored(), older_than):
        with locked_for_service(table, lock, config) as locked:
            _require_erasable(locked, config, savepoints)
        table = _compacted(table.as_stored().afresh, lock, engine, config).on(engine)
    with locked_for_service(table, lock, config) as locked:
        _require_erasable(locked, config, savepoints)
        _require_merged(locked, older_than)
        state = _without_savepoints(locked, savepoints)
        state = continue_pending(state, lock)
        state, done, files = _cleaned(state, lock, older_than)
        changes = _logs_of_changes(state, older_than)
        lock.require_lease()
        delete_together(state.client.data, state.client.map_requests, changes)
        if StoredPartitions.of(state.client.config).all:
            options = MetadataConfig.from_options(state.client.options)
            state = state.with_client(rebuild_metadata_table(state.client, options)[0])
        lock.require_lease()
        left = _rebuilt_format(state, progress)
        # nothing names them any more; the format has expired its former states
        others = _files_of_others(state.table)
        delete_together(state.client.data, state.client.run_map, others)
        _require_no_new_stages(state)
        return PurgeResult(state.client.base_path, done, (*files, *changes, *others), left)


def plan_purge(
    table: OpenTable,
    *,
    older_than: InstantTime | None = None,
    savepoints: Collection[InstantTime] = (),
) -> PurgeResult:
    """What :func:`purge_table` would delete of data files; changes nothing.

    What the format would no longer name is known once its metadata is rebuilt.
    """
    _require_possible(table)
    state = planned_for_service(table)
    _require_no_stages(state)
    for one in _given_savepoints(state, savepoints):
        state = state.without(one)
    unmerged = _unmerged(state.table, older_than)
    _require_not_clustered(state, unmerged)
    # only the present state stays where a compaction comes first
    plan = _plan(state, None if unmerged else older_than)
    files = () if plan is None else tuple(plan.paths())
    files += tuple(file.path for one in unmerged for file in one.files)
    cleaned = set(files)
    # a clean takes the logs of the slices that it deletes along
    changes = [one for one in _logs_of_changes(state, older_than) if one not in cleaned]
    others = _files_of_others(state.table)
    return PurgeResult(state.client.base_path, None, (*files, *changes, *others), ())


def _require_possible(table: OpenTable) -> None:
    if is_two_step(table):
        table.host.require(Capability.CONVERSION)


def _require_erasable(
    state: TableState, config: WriteConfig, savepoints: Collection[InstantTime]
) -> None:
    """Refuse a table with a writer at work, or copies of rows."""
    for pending in state.timeline.pending().where(is_at_work):
        if pending.action.completed_action in WRITE_ACTIONS:
            raise ConcurrentWriterError(state.client.base_path, pending.requested_time)
    delete_expired_stages(state.client.storage, config.services.stage_hours_retained)
    _require_no_stages(state)
    _given_savepoints(state, savepoints)


# --- log files ------------------------------------------------------------------------------------


def _unmerged(table: OpenTable, older_than: InstantTime | None) -> Sequence[FileSlice]:
    """The file slices whose logs are merged before files are deleted.

    None where no present log is older than that time: what it deleted went later.
    """
    if table.client.config.table_type is not TableType.MERGE_ON_READ:
        return ()
    logged = [one for one in table.views().view().latest_slices() if one.log_files]
    return logged if any(_has_older(one, older_than) for one in logged) else ()


def _has_older(one: FileSlice, older_than: InstantTime | None) -> bool:
    """Whether a log of a slice is older than a time."""
    return any(older_than is None or log.name.instant < older_than for log in one.log_files)


def _compacted(table: OpenTable, lock: TableLock, engine: Engine, config: WriteConfig) -> OpenTable:
    """Merge all logs, those first that a compaction is scheduled for."""
    state = planned_for_service(table)
    _require_not_clustered(state, _unmerged(table, None))
    every = replace(config.compaction, strategy=CompactionStrategyKind.UNBOUNDED)
    service = CompactionService(table, lock, engine, replace(config, compaction=every))
    service.run_all()
    service.compact()
    return service.table


def _require_not_clustered(state: TableState, unmerged: Sequence[FileSlice]) -> None:
    """Refuse where a compaction would leave logs to a scheduled clustering."""
    busy = groups_under_clustering(state.client, state.timeline) if unmerged else {}
    for one in unmerged:
        if one.group in busy:
            path, time = state.client.base_path, busy[one.group].requested_time
            raise TableServiceError(
                f"The clustering {time} of the table at {path} is scheduled, and names file groups "
                "with log files, whose deleted rows are to be erased",
                f"Run it (`hudi cluster {path} --run`), or give it up (`hudi rollback {path} "
                f"{time}`).",
                clustering=time,
            )


def _require_merged(state: TableState, older_than: InstantTime | None) -> None:
    """Refuse a table whose logs came, or stayed, after the compaction."""
    for one in _unmerged(state.table, older_than):
        busy = groups_under_compaction(state.client, state.timeline)
        raise ConcurrentWriterError(state.client.base_path, busy.get(one.group, one.last_instant))


def _merged_after(state: TableState, older_than: InstantTime) -> InstantTime:
    """The time after which states read no logs older than another."""
    if state.client.config.table_type is not TableType.MERGE_ON_READ:
        return EARLIEST
    replaced = replaced_groups(state.timeline, state.client.read_commit)
    found = EARLIEST
    for group in state.table.views().view().file_groups():
        by = replaced.get(group.id)
        next_time = None if by is None else by.requested_time
        for one in group.slices:
            if _has_older(one, older_than):
                found = max(found, next_time or one.last_instant)
                break
            next_time = one.base_instant
    return found


# --- what is deleted ------------------------------------------------------------------------------


def _files_of_others(table: OpenTable) -> Sequence[str]:
    """Data files without a name of Hudi's.

    Other writers of the format have left them, or an adoption for its former states. They hold rows
    that the table has, or had. Below storage paths other tables may have some.
    """
    if not is_two_step(table) or not table.client.files.is_plain:
        return ()
    return tuple(foreign_data_files(table.client.data))


def _require_no_stages(state: TableState) -> None:
    """Refuse to leave copies of rows in stages."""
    storage = state.client.storage
    stages = stage_ids(storage)
    if stages:
        raise TableServiceError(
            f"Stages of the table at {state.client.base_path} hold copies of rows: "
            f"{', '.join(stages)}",
            "Publish or drop them first.",
            stages=stages,
        )


def _require_no_new_stages(state: TableState) -> None:
    """Refuse to call rows erased that a stage may have copied meanwhile.

    Stages are written without the table's lock, from the files as they were.
    """
    stages = stage_ids(state.client.storage)
    if stages:
        raise TableServiceError(
            f"Rows were staged while the table at {state.client.base_path} was purged, so that "
            f"files of stages may hold rows that were deleted: {', '.join(stages)}",
            "All else is erased. Publish or drop these stages, then purge the table again.",
            stages=stages,
        )


def _given_savepoints(state: TableState, given: Collection[InstantTime]) -> Sequence[Instant]:
    """The table's savepoints; refuses those that are not given."""
    saved = state.timeline.completed().of_actions(Action.SAVEPOINT).instants
    others = [one.requested_time for one in saved if one.requested_time not in given]
    if others:
        raise TableServiceError(
            f"Savepoints of the table at {state.client.base_path} keep files of past states: "
            f"{', '.join(others)}",
            "Name each of them, with --savepoint INSTANT on the command line or savepoints=[...] "
            "in Python: a purge deletes those first. Or purge once they are no longer needed.",
            savepoints=others,
        )
    return saved


def _without_savepoints(state: TableState, given: Collection[InstantTime]) -> TableState:
    """Delete the savepoints that are given; refuse others."""
    for one in _given_savepoints(state, given):
        state = delete_savepoint(state, one)
    return state


def _cleaned(
    state: TableState, lock: TableLock, older_than: InstantTime | None
) -> tuple[TableState, Instant | None, tuple[str, ...]]:
    plan = _plan(state, older_than)
    if plan is None:
        return state, None, ()
    after, instant, _ = clean(state, lock, plan)
    return after, instant, tuple(plan.paths())


def _plan(state: TableState, older_than: InstantTime | None) -> CleanerPlan | None:
    client, timeline = state.client, state.timeline
    since = retained_since(client, timeline)
    return plan_clean(
        client,
        timeline,
        StorageLister.of(client),
        never_back(_retention(state, older_than), timeline, since),
        replaced=lambda: replaced_groups(timeline, client.read_commit),
        retained_since=since,
    )


def _retention(state: TableState, older_than: InstantTime | None) -> Retention:
    if older_than is not None:
        merged = _merged_after(state, older_than)
        for write in state.timeline.completed_writes():
            if write.requested_time >= older_than and write.requested_time > merged:
                return Retention(CleanRules(), write)
    versions = CleanRules(CleanPolicy.KEEP_LATEST_FILE_VERSIONS, file_versions_retained=1)
    return Retention(versions, None)


def _logs_of_changes(state: TableState, older_than: InstantTime | None) -> Sequence[str]:
    """Paths of logs with rows as they were before a change."""
    client = state.client
    lister = StorageLister.of(client)
    listed = lister.list_files(list(lister.list_partitions()))
    found = []
    for file in chain.from_iterable(listed.values()):
        name = LogFileName.parse(file.name)
        if name is not None and name.is_cdc and (older_than is None or name.instant < older_than):
            found.append(file.path)
    return sorted(found)


def _rebuilt_format(state: TableState, progress: Progress) -> tuple[str, ...]:
    """Rebuild the format's metadata; delete what nothing names any more."""
    table = state.table.holding(None)
    if not is_two_step(table):
        return ()
    receipt = build_format(table, table.host, state.timeline, progress)
    update_properties(table.client.storage, new_properties(table, table.host, receipt))
    now = table.as_stored()
    # all of it has expired: no state of the format but the present one is gone back to
    old = state.timeline.completed().instants
    now.host.archive_instants(now.client, old, receipt.version)
    left = now.afresh.leftovers()
    delete_together(now.format_storage, table.client.run_map, left)
    return left
