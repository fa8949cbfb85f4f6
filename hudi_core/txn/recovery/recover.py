"""Recovery of dead writers' work before a writer's own.

What the Hudi timeline holds and the table's format does not is published first, or taken back, in
the order of completion. A pending write whose heartbeat has stopped is rolled back; one whose
writer is alive is left alone or, where no lock is shared, stops this writer. Clusterings
and compactions are :mod:`hudi_core.txn.scheduled`'s. Pending actions of kinds that are not built
here stop this writer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hudi_core.actions.rollback import unfinished
from hudi_core.config.kinds import ConcurrencyMode
from hudi_core.config.write import WriteConfig
from hudi_core.errors import (
    ConcurrentWriterError,
    InvalidInstantTimeError,
    UnsupportedTableError,
)
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.maintenance.indexing import is_own_indexing, recover_pending_indexing
from hudi_core.model.client import HeldMetadata
from hudi_core.model.files import FileStatus, join_path
from hudi_core.model.instant import PLANNED_ACTIONS, WRITE_ACTIONS, Action, Instant
from hudi_core.model.instant_time import InstantTime, parse_instant_time
from hudi_core.storage.probes import sweep
from hudi_core.storage.temp_folders import TEMP_FOLDER
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.clock import require_same_zone
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn import heartbeat
from hudi_core.txn.markers import Markers
from hudi_core.txn.ownership import require_own_claims, without_foreign_metadata
from hudi_core.txn.recovery import rollback
from hudi_core.txn.recovery.lost_completion import require_not_completed
from hudi_core.txn.recovery.restore import continue_restores, tidy_restores
from hudi_core.txn.recovery.roll_forward import RECORDED, roll_forward_pending
from hudi_core.txn.savepoints import without_begun_savepoints
from hudi_core.txn.scheduled import recover_planned
from hudi_core.txn.state import TableState
from hudi_core.txn.storage_move import continue_move

_OWN_WRITES: Final = WRITE_ACTIONS | PLANNED_ACTIONS
_CONTINUED: Final = frozenset({*RECORDED, Action.SAVEPOINT, Action.RESTORE})
"""Actions that are finished, or dropped, whichever writer began them."""
_LEFT: Final = frozenset({Action.CLEAN, Action.SAVEPOINT})
"""Actions that may be pending after recovery: the next clean goes on with one, and a savepoint that
is not dropped yet keeps nothing."""


def recover(
    state: TableState, config: WriteConfig, heartbeats: Sequence[str] | None = None
) -> TableState:
    """Recover the timeline for a new write; runs under the lock.

    ``heartbeats`` are the names of those that were listed under this hold, if any were. Where there
    is nothing to recover it costs one listing of them and one of the temporary folders. Refused
    are: a live writer that does not share the lock, a pending action that this release can neither
    continue nor undo, and newest instants of another time zone.
    """
    client, before = state.client, state.timeline.instants
    require_same_zone(client.active, client.config.zone)
    require_own_claims(state.table)
    state = continue_move(without_foreign_metadata(state))
    if state.timeline.unknown and _remove_surplus(client):
        state = state.reloaded()
    if recover_pending_indexing(state.client):
        held = None if state.client.held is None else HeldMetadata()
        state = TableState.load(state.table, held=held)
    require_known_actions(state.client)
    # the format lacks what a restore is taking out: that is not to be published again
    state = continue_restores(state)
    state = tidy_restores(roll_forward_pending(state).state)  # guard publishes
    state = without_begun_savepoints(state)  # guard unpins
    for begun in unfinished(state.client):
        state, _ = rollback.resume(state, begun)
    for pending in state.timeline.pending():
        if pending.action in _LEFT:
            continue
        if pending.action in PLANNED_ACTIONS:
            state = recover_planned(state, pending, config)  # guard takes-back
        elif is_writing(state.table, pending, config):
            if config.concurrency_mode is ConcurrencyMode.SINGLE_WRITER:
                raise ConcurrentWriterError(client.base_path, pending.requested_time)
        else:
            require_not_completed(state, pending)
            state, _ = rollback.roll_back(state, pending)  # guard takes-back
    if state.timeline.instants != before:
        heartbeats = None  # that of a write that was rolled back has gone
    _expire_dead_writers(state.table, config, state.timeline, heartbeats)
    return state


def _remove_surplus(client: TableMetaClient) -> bool:
    """Delete files that landed late; return whether there were any.

    They landed after another writer had finished their instant.
    """
    surplus = client.active.scan().surplus
    for one in surplus:
        client.active.delete(one)
    return bool(surplus)


def is_writing(table: OpenTable, pending: Instant, config: WriteConfig) -> bool:
    """Return whether the writer of a pending instant is alive."""
    return heartbeat.is_alive(
        table.client.storage,
        pending.requested_time,
        config.heartbeat_interval_ms,
        config.heartbeat_misses,
    )


def _expire_dead_writers(
    table: OpenTable,
    config: WriteConfig,
    timeline: Timeline,
    heartbeats: Sequence[str] | None,
) -> None:
    """Delete heartbeats and temporary folders of dead writers.

    Of those without a pending instant.

    They died before their instant was on the timeline or after it was completed, or a task of
    theirs outlived the write. Files that their markers name and no commit counts are deleted first:
    readers take files of times before the first instant of the timeline for archived ones.
    """
    storage = table.client.storage
    folders: list[str] = []

    def listed(folder: str) -> list[FileStatus]:
        return list(storage.list(folder, others=folders if folder == TEMP_FOLDER else None))

    asked = (TEMP_FOLDER,) if heartbeats is not None else (TEMP_FOLDER, heartbeat.FOLDER)
    probes, *beats = table.client.run_map(listed, asked)
    sweep(storage, probes)
    left = {path.rpartition("/")[2] for path in folders}
    left.update(heartbeats or (), (status.name for some in beats for status in some))
    pending = {instant.requested_time for instant in timeline.pending()}
    for name in sorted(left):
        try:
            time = parse_instant_time(name)
        except InvalidInstantTimeError:
            continue  # not ours
        interval, misses = config.heartbeat_interval_ms, config.heartbeat_misses
        if time not in pending and not heartbeat.is_alive(storage, time, interval, misses):
            # first: tasks take its absence for the end of their write
            heartbeat.remove_heartbeat(storage, time)
            _delete_uncounted(table, time, timeline)
            Markers(storage, time).delete_all()


def _delete_uncounted(table: OpenTable, time: InstantTime, timeline: Timeline) -> None:
    storage = table.client.storage
    marked = {
        join_path(marker.partition_path, marker.file_name)
        for marker in Markers(storage, time).list()
    }
    if not marked:
        return
    found = timeline.find(time)
    if found is not None and found.is_completed:
        stats = table.client.read_commit(found).stats
        marked -= {path for stat in stats for path in stat.paths}
    elif any(one.instant.requested_time == time for one in table.client.archived.load()):
        return  # complete, and archived since: the archive says which files it counts
    for path in sorted(marked):
        table.client.data.delete(path)


def require_known_actions(client: TableMetaClient) -> None:
    """Refuse pending actions that this release does not write."""
    timeline = client.timeline()
    foreign = [
        str(instant)
        for instant in timeline.pending()
        if instant.action not in _OWN_WRITES
        and instant.action not in _CONTINUED
        and not is_own_indexing(client, instant)
    ]
    # what landed after another writer had finished it is removed, see _remove_surplus
    foreign += timeline.unknown
    if foreign:
        raise UnsupportedTableError(
            client.base_path,
            f"has pending actions that this release does not write: {', '.join(foreign)}",
            "Let the engine that started them finish or roll them back, then write again.",
        )
