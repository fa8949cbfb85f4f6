"""Savepoints: commits whose files stay, to be restored."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime

from hudi_core.config.write import WriteConfig
from hudi_core.errors import (
    CommitStateUnknownError,
    InstantNotFoundError,
    TableServiceError,
)
from hudi_core.model.actions import SavepointMetadata, SavepointPartitionMetadata
from hudi_core.model.capability import Capability
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.services.archive import archive_passed_over
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.serde import decode_savepoint, encode
from hudi_core.txn.clean import continue_pending
from hudi_core.txn.past_state import slices_as_of
from hudi_core.txn.publication import present_version, publish_with_retry
from hudi_core.txn.state import TableState
from hudi_core.txn.table_lock import TableLock
from hudi_core.txn.table_service import locked_for_service


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
            # the format does not keep that state any more: it is no savepoint
            client.active.delete(done)
            client.active.delete_pending(done)
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
        client = state.client
        expected = present_version(state.table)
        state.table.host.complete_delete_savepoint(client, found, expected)
        client.active.delete(found)
        client.active.delete_pending(found)
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
