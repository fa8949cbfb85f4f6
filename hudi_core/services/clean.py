"""Cleaning: deletes file slices that no retained state of a table needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from hudi_core.actions.clean_of_files import (
    DoneClean,
    last_clean,
    plan_clean,
    retained_since,
    savepointed_files,
)
from hudi_core.actions.clean_plan import CleanRules, Needed, Retention, never_back, retain
from hudi_core.actions.compaction import slices_under_compaction
from hudi_core.config.kinds import CleanPolicy
from hudi_core.config.services import ServicesConfig
from hudi_core.config.write import WriteConfig
from hudi_core.metadata.lister import table_lister
from hudi_core.model.actions import CleanerPlan
from hudi_core.model.file_index import FileIndex
from hudi_core.model.files import FileStatus, PartitionPath
from hudi_core.model.instant import Action, Instant
from hudi_core.model.instant_time import InstantTime
from hudi_core.services.archive import files_to_be_gone
from hudi_core.services.stage_record import delete_expired_stages
from hudi_core.table_handle import OpenTable
from hudi_core.txn.clean import clean, continue_pending
from hudi_core.txn.publication import is_two_step
from hudi_core.txn.state import ListedFiles, TableState
from hudi_core.txn.table_lock import TableLock
from hudi_core.txn.table_service import locked_for_service, planned_for_service
from hudi_core.view.file_system import replaced_groups

_EMPTY_AFTER: Final = 10
"""Commits after which a clean with nothing to delete is recorded all the same.

The next one then looks at later commits only, and the earlier ones can be archived."""


@dataclass(frozen=True, slots=True)
class CleanResult:
    """What a clean deleted, or would delete.

    ``instant`` is ``None`` when there was nothing to do, and of a plan; ``files`` are relative to
    the table; ``partitions`` are those gone with their last file. ``earliest_retained`` is the
    requested time of the earliest commit as of which the table stays readable; ``None`` where all
    are, or the policy counts versions.
    """

    path: str
    instant: Instant | None
    policy: CleanPolicy
    files: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    earliest_retained: InstantTime | None = None


def clean_table(table: OpenTable, lock: TableLock, config: WriteConfig) -> CleanResult:
    """Finish the cleans that others began, then clean the table.

    A stored plan that names what must stay is an error; nothing was deleted then.
    """
    with locked_for_service(table, lock, config) as locked:
        state = continue_pending(locked, lock)
        retention, plan = _planned(state, config.services)
        instant = None if plan is None else clean(state, lock, plan)[1]
        delete_expired_stages(state.client.storage, config.services.stage_hours_retained)
        return _result(state, retention, plan, instant)


def plan_table_clean(table: OpenTable, config: WriteConfig) -> CleanResult:
    """What :func:`clean_table` would delete; changes nothing."""
    state = planned_for_service(table)
    return _result(state, *_planned(state, config.services))


def clean_if_due(state: TableState, lock: TableLock, config: ServicesConfig) -> TableState:
    """Clean a table after a commit, under the same lock hold."""
    if not config.clean_automatic:
        return state
    state = continue_pending(state, lock)
    timeline = state.timeline
    if config.clean_policy is CleanPolicy.KEEP_LATEST_COMMITS and (
        len(timeline.completed_writes()) <= config.commits_retained
    ):
        return state  # mostly, of a young table
    last = last_clean(state.client, timeline)
    if last is not None:
        since = last.metadata.last_completed_commit_timestamp or last.instant.requested_time
        new = sum(one.requested_time > since for one in timeline.completed_writes())
        if new < config.clean_max_commits:
            return state
    _, plan = _planned(state, config, last)
    if plan is None:
        return state
    state = clean(state, lock, plan)[0]
    delete_expired_stages(state.client.storage, config.stage_hours_retained)
    return state


def _planned(
    state: TableState, config: ServicesConfig, last: DoneClean | None = None
) -> tuple[Retention, CleanerPlan | None]:
    """What a clean retains and deletes."""
    client, timeline = state.client, state.timeline
    last = last or last_clean(client, timeline)
    since = (last and last.retained_since) or retained_since(client, timeline)
    retention = _retention(state, config, since)
    if not retention.releases_files:
        return retention, None
    saved = timeline.completed().of_actions(Action.SAVEPOINT).instants
    savepoints = [one.requested_time for one in saved]
    plan = plan_clean(
        client,
        timeline,
        _lister(state),
        retention,
        last if config.clean_incremental else None,
        replaced=lambda: replaced_groups(timeline, client.read_commit),
        needed=lambda: Needed(
            savepointed_files(client, timeline).keys(),
            savepoints,
            slices_under_compaction(client, timeline),
        ),
        savepoints=savepoints,
        retained_since=since,
        empty_after=_EMPTY_AFTER,
        also=files_to_be_gone(state, config, last),
    )
    return retention, plan


def _lister(state: TableState) -> FileIndex:
    """The lister of the table's files, with those at hand."""
    lister, files = table_lister(state.client), state.files
    # what a format lists are not all files that a clean looks at
    return lister if files is None or is_two_step(state.table) else _KnownFiles(lister, files)


class _KnownFiles(FileIndex):
    """Files of some partitions, and who lists those of others."""

    def __init__(self, index: FileIndex, known: ListedFiles) -> None:
        self._index, self._known = index, known

    def list_partitions(self) -> Sequence[PartitionPath]:
        return self._index.list_partitions()

    def list_files(
        self, partitions: Sequence[PartitionPath]
    ) -> Mapping[PartitionPath, Sequence[FileStatus]]:
        others = [path for path in partitions if path not in self._known]
        listed = self._index.list_files(others) if others else {}
        return {path: self._known.get(path) or listed.get(path, ()) for path in partitions}


def _retention(state: TableState, config: ServicesConfig, since: InstantTime) -> Retention:
    """What stays: at most what the cleans before left."""
    rules = CleanRules(
        config.clean_policy,
        config.commits_retained,
        config.file_versions_retained,
        config.hours_retained,
    )
    timeline = state.timeline
    found = retain(timeline, rules, datetime.now(UTC), state.client.config.zone)
    return never_back(found, timeline, since)


def _result(
    state: TableState,
    retention: Retention,
    plan: CleanerPlan | None,
    instant: Instant | None = None,
) -> CleanResult:
    earliest = retention.earliest
    return CleanResult(
        state.client.base_path,
        instant,
        retention.rules.policy,
        tuple(plan.paths()) if plan else (),
        tuple(plan.partitions_to_be_deleted or ()) if plan else (),
        earliest.requested_time if earliest else None,
    )
