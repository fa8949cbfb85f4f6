"""Archiving: moves old instants from the active timeline to its history."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Final

from hudi_core.actions.archive import archive
from hudi_core.actions.archive_plan import ArchiveRules, LastClean, plan_archive
from hudi_core.actions.clean_of_files import DoneClean, last_clean
from hudi_core.actions.deletion import delete_together
from hudi_core.actions.rollback import partitions_replaced_by, written_by
from hudi_core.config.compaction import CompactionConfig
from hudi_core.config.kinds import TableType
from hudi_core.config.services import ServicesConfig
from hudi_core.config.write import WriteConfig
from hudi_core.errors import TableServiceError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.actions import RollbackMetadata
from hudi_core.model.commit import ReplaceCommitMetadata
from hudi_core.model.files import BaseFileName, FileStatus, LogFileName, PartitionPath
from hudi_core.model.instant import WRITE_ACTIONS, Action, Instant
from hudi_core.model.instant_time import InstantTime
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.serde import decode_restore, decode_rollback
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn.publication import present_version
from hudi_core.txn.state import TableState
from hudi_core.txn.table_lock import TableLock
from hudi_core.txn.table_service import locked_for_service, planned_for_service
from hudi_core.view.storage_lister import StorageLister

_log: Final = logging.getLogger(__name__)
_CLEANS_KEPT: Final = 10
"""Cleans beyond which they are archived, however few commits there are."""


@dataclass(frozen=True, slots=True)
class ArchiveResult:
    """The instants that an archiving moved, or would move.

    ``instants`` is in the order of requested times; ``active`` is what stays on the active
    timeline.
    """

    path: str
    instants: tuple[Instant, ...]
    active: int


def archive_table(table: OpenTable, lock: TableLock, config: WriteConfig) -> ArchiveResult:
    """Archive what the limits do not keep."""
    with locked_for_service(table, lock, config) as state:
        old = _plan(state, config.services)
        after = _archive(state, lock, config.services, old)
        return ArchiveResult(state.client.base_path, old, len(after.timeline))


def plan_table_archive(table: OpenTable, config: WriteConfig) -> ArchiveResult:
    """What :func:`archive_table` would move; changes nothing."""
    state = planned_for_service(table)
    old = _plan(state, config.services)
    return ArchiveResult(state.client.base_path, old, len(state.timeline) - len(old))


def archive_if_due(state: TableState, lock: TableLock, config: ServicesConfig) -> TableState:
    """Archive after a commit, under the same hold of the table's lock."""
    if not config.archive_automatic:
        return state
    return _archive(state, lock, config, _plan(state, config))


def archive_passed_over(
    state: TableState, lock: TableLock, config: WriteConfig, saved: InstantTime
) -> TableState:
    """Archive a savepointed commit where later ones are archived.

    Runs under the table's lock.

    What is archived counts by being earlier than the first commit without a savepoint. So only one
    that would be the first, and beside a later one.

    Refused while files that the commit replaced are still there; nothing has changed then.
    """
    writes = {one.requested_time: one for one in state.timeline.completed_writes()}
    savepoints = {one.requested_time for one in state.timeline.of_actions(Action.SAVEPOINT)}
    first = min(writes.keys() - savepoints | {saved})
    later = (one.instant for one in state.client.archived.load(saved))
    # an archival that died may have left some of them on the active timeline
    gone = [
        one for one in later if one.action in WRITE_ACTIONS and one.requested_time not in writes
    ]
    if not gone or saved not in writes or first != saved or max(writes) == saved:
        return state
    if writes[saved].action is Action.REPLACECOMMIT and _has_replaced_files(state, writes[saved]):
        raise TableServiceError(
            f"The savepoint of {saved} cannot be deleted from the table at "
            f"{state.client.base_path}: its commit would be archived, and files that it replaced "
            "are still stored",
            "Run a clean of all partitions first: `hudi clean PATH -o "
            "hoodie.cleaner.incremental.mode=false`.",
            instant=saved,
        )
    return _archive(state, lock, config.services, (writes[saved],))


def files_to_be_gone(
    state: TableState, config: ServicesConfig, last: DoneClean | None
) -> Mapping[PartitionPath, Sequence[FileStatus]]:
    """Files of partitions whose replaced file groups hold the archive up.

    Those of replacecommits that are to be archived next: mostly cleans have deleted all that they
    replaced. What is left, a savepoint kept that another engine deleted since, or a clean of
    another engine left.
    """
    old = _chosen(state, config, last, lambda _: False) if config.archive_automatic else ()
    partitions = {
        partition
        for one in old
        if one.action is Action.REPLACECOMMIT
        for partition in partitions_replaced_by(state.client, one)
    }
    return _stored(state, partitions) if partitions else {}


def _plan(state: TableState, config: ServicesConfig) -> tuple[Instant, ...]:
    last = last_clean(state.client, state.timeline)
    return _chosen(state, config, last, partial(_has_replaced_files, state))


def _chosen(
    state: TableState,
    config: ServicesConfig,
    last: DoneClean | None,
    decides: Callable[[Instant], bool],
) -> tuple[Instant, ...]:
    rules = ArchiveRules(
        config.keep_min_commits,
        config.keep_max_commits,
        beyond_savepoint=config.archive_beyond_savepoint,
        # by those that are left it is known when the next compaction is due
        compaction_delta_commits=_counted(state.client),
        max_cleans=_CLEANS_KEPT,
    )
    if not rules.is_due(state.timeline):
        return ()
    cleaned = None
    if last is not None:
        cleaned = LastClean(last.instant, last.earliest_retained, last.savepoints)
    return plan_archive(state.timeline, rules, cleaned, _needed_by_metadata(state), decides)


def _counted(client: TableMetaClient) -> int | None:
    """How many deltacommits compactions count; ``None`` without log files."""
    if client.config.table_type is not TableType.MERGE_ON_READ:
        return None
    return CompactionConfig.max_delta_commits.read(client.options)


def _has_replaced_files(state: TableState, write: Instant) -> bool:
    """Whether files that a write replaced, or its logs, are stored."""
    client, metadata = state.client, state.client.read_commit(write)
    if not isinstance(metadata, ReplaceCommitMetadata):
        paths = [one.path for one in metadata.stats if one.path and one.log_files]
        return any(client.run_map(client.data.head, paths))
    gone = metadata.partition_to_replace_file_ids
    stored = _stored(state, map(PartitionPath, gone))
    return any(_group_of(file) in gone[path] for path in stored for file in stored[path])


def _stored(
    state: TableState, partitions: Iterable[PartitionPath]
) -> Mapping[PartitionPath, Sequence[FileStatus]]:
    """Files of partitions, whatever a metadata table says of them."""
    client = state.client
    lister = StorageLister.of(client)
    return lister.list_files(sorted(partitions))


def _group_of(file: FileStatus) -> str | None:
    """File group of a file with rows of the table."""
    base = BaseFileName.parse(file.name)
    if base is not None:
        return base.file_id
    log = LogFileName.parse(file.name)
    return None if log is None or log.is_cdc else log.file_id


def _needed_by_metadata(state: TableState) -> Iterator[InstantTime]:
    """Time from which readers of the metadata table look instants up.

    Its log blocks count where the table's timeline has their instants; what a compaction has taken
    in counts by itself.
    """
    if state.metadata is not None:
        completed = state.metadata.timeline.completed()
        compactions = completed.of_actions(Action.COMMIT).instants
        first = completed.first
        if compactions:
            yield max(one.requested_time for one in compactions)
        elif first is not None:
            yield first.requested_time


def _undone_files(state: TableState, old: Iterable[Instant]) -> list[str]:
    """Files of undone writes that would count once others are archived.

    Tasks that outlived their write may have made them after its rollback, where it had files. The
    first write of the active timeline shows what is archived, and thus complete: all that is
    earlier.
    """
    client, begin = state.client, state.timeline.active_start
    start = reduce(Timeline.without, old, state.timeline).active_start
    if begin is None or start is None:
        return []
    undone: dict[PartitionPath, set[str]] = {}
    for instant in state.timeline.completed().of_actions(Action.ROLLBACK, Action.RESTORE):
        for one in _undone_by(client, instant):
            # other engines do a clustering again under its time
            times = {
                time
                for time in one.commits_rollback
                if begin <= time < start and state.timeline.find(InstantTime(time)) is None
            }
            for path in one.partition_metadata if times else ():
                undone.setdefault(PartitionPath(path), set()).update(times)
    stored = _stored(state, undone) if undone else {}
    found = [
        file.path
        for path, files in stored.items()
        for file in files
        if written_by(file.name) in undone[path]
    ]
    for path in found:
        _log.warning("%s: %s is left of a write that was undone", client.base_path, path)
    return sorted(found)


def _undone_by(client: TableMetaClient, instant: Instant) -> Iterator[RollbackMetadata]:
    body, where = client.active.read(instant), client.active.path(instant)
    if instant.action is Action.ROLLBACK:
        yield decode_rollback(body, where)
    else:
        for each in decode_restore(body, where).hoodie_restore_metadata.values():
            yield from each


def _archive(
    state: TableState, lock: TableLock, config: ServicesConfig, old: tuple[Instant, ...]
) -> TableState:
    if not old:
        return state
    lock.require_lease()
    client = state.client
    undone = _undone_files(state, old)
    delete_together(client.data, client.map_requests, undone)
    if undone:
        state = replace(state, files=None)  # a listing may have had them
    archived = archive(client, old, compaction_batch_size=config.history_batch_size)
    for one in archived:
        state = state.without(one)
    table = state.table
    table.host.archive_instants(state.client, archived, present_version(table))  # archive format
    return state
