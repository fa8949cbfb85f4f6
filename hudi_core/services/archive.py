"""Archiving: moves old instants from the active timeline to its history."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from hudi_core.actions.archive import archive
from hudi_core.actions.archive_plan import ArchiveRules, LastClean, plan_archive
from hudi_core.actions.clean_of_files import last_clean
from hudi_core.config.services import ServicesConfig
from hudi_core.config.write import WriteConfig
from hudi_core.model.instant import WRITE_ACTIONS, Action, Instant
from hudi_core.model.instant_time import InstantTime
from hudi_core.table_handle import OpenTable
from hudi_core.txn.publication import present_version
from hudi_core.txn.state import TableState
from hudi_core.txn.table_lock import TableLock
from hudi_core.txn.table_service import locked_for_service, planned_for_service

_CLEANS_KEPT: Final = 10
"""Cleans beyond which they are archived, however few commits there are."""


@dataclass(frozen=True, slots=True)
class ArchiveResult:
    """The instants that an archiving moved, or would move.

    Attributes
    ----------
    path
        The table.
    instants
        In the order of requested times.
    active
        Instants that stay on the active timeline.
    """

    path: str
    instants: tuple[Instant, ...]
    active: int


def archive_table(table: OpenTable, lock: TableLock, config: WriteConfig) -> ArchiveResult:
    """Archive what the limits do not keep.

    Raises
    ------
    ConcurrentWriterError, UnsupportedTableError, LockError, CommitStateUnknownError
        See :func:`hudi_core.txn.table_service.locked_for_service`.
    TableServiceError, CorruptMetadataError
        The timeline is of layout 1, or its history is damaged.
    """
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
    return _archive(state, lock, config.services, (writes[saved],))


def _plan(state: TableState, config: ServicesConfig) -> tuple[Instant, ...]:
    rules = ArchiveRules(
        config.keep_min_commits,
        config.keep_max_commits,
        beyond_savepoint=config.archive_beyond_savepoint,
        max_cleans=_CLEANS_KEPT,
    )
    if not rules.is_due(state.timeline):
        return ()
    done = last_clean(state.client, state.timeline)
    last = None if done is None else LastClean(done.instant, done.earliest_retained)
    return plan_archive(state.timeline, rules, last, _needed_by_metadata(state))


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


def _archive(
    state: TableState, lock: TableLock, config: ServicesConfig, old: tuple[Instant, ...]
) -> TableState:
    if not old:
        return state
    lock.require_lease()
    client = state.client
    archived = archive(client, old, compaction_batch_size=config.history_batch_size)
    for one in archived:
        state = state.without(one)
    table = state.table
    table.host.archive_instants(state.client, archived, present_version(table))  # archive format
    return state
