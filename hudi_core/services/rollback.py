"""The rollback that an operator asks for."""

from __future__ import annotations

from collections.abc import Iterator

from hudi_core.config.write import WriteConfig
from hudi_core.errors import ConcurrentWriterError, InstantNotFoundError, TableServiceError
from hudi_core.model.commit import NO_PREVIOUS_COMMIT, ReplaceCommitMetadata
from hudi_core.model.files import BaseFileName, PartitionPath, join_path
from hudi_core.model.instant import WRITE_ACTIONS, Action, Instant
from hudi_core.model.instant_time import InstantTime, parse_instant_time
from hudi_core.timeline.serde import decode_rollback
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn import rollback
from hudi_core.txn.open_table import OpenTable
from hudi_core.txn.recovery import is_writing, refuse_unknown_actions
from hudi_core.txn.table_lock import TableLock
from hudi_core.view.storage_lister import StorageLister


def roll_back_instant(
    table: OpenTable, lock: TableLock, config: WriteConfig, instant: str
) -> Instant:
    """Undo the last completed write, or a pending write whose writer is gone.

    Rollbacks that were begun and not finished are finished first.

    Parameters
    ----------
    instant
        Requested time of the write.

    Returns
    -------
    Instant
        The completed rollback: of the write that was asked for, whoever began it.

    Raises
    ------
    InstantNotFoundError
        No write of that time is on the active timeline.
    TableServiceError
        Later writes build on it, a savepoint holds it, or files it took the place of are gone.
    ConcurrentWriterError
        Its writer, or another one, is alive.
    """
    client = table.client
    time = parse_instant_time(instant)
    with lock.held():
        client.require_writable()
        refuse_unknown_actions(table, client.timeline())
        finished = _finish_pending(table, time)
        if finished is not None:
            return finished
        timeline = client.timeline()
        target = timeline.find(time)
        if target is None or target.action not in WRITE_ACTIONS:
            raise InstantNotFoundError(instant, f"the active timeline of {client.base_path}")
        for pending in timeline.pending():
            if pending.action in WRITE_ACTIONS and is_writing(table, pending, config):
                raise ConcurrentWriterError(client.base_path, pending.requested_time)
        if target.is_completed:
            _refuse_built_upon(timeline, target)
            _refuse_saved(timeline, target)
            _refuse_cleaned(table, target)
        return rollback.roll_back(table, target)


def _finish_pending(table: OpenTable, time: InstantTime) -> Instant | None:
    """Finish the rollbacks under way; return the one of the write of that time.

    A second plan for the same write would find its files gone already and say so in the timeline.
    """
    active = table.client.active
    found = None
    for pending in table.client.timeline().pending():
        if pending.action is Action.ROLLBACK:
            done = rollback.resume(table, pending)
            if done is not None:
                metadata = decode_rollback(active.read(done), active.path(done))
                found = done if time in metadata.commits_rollback else found
    return found


def _refuse_built_upon(timeline: Timeline, target: Instant) -> None:
    later = [
        found.requested_time
        for found in timeline.completed_writes()
        if found.effective_completion_time > target.effective_completion_time
    ]
    if later:
        instant = target.requested_time
        raise TableServiceError(
            f"Instant {instant} cannot be rolled back: {', '.join(later)} came after it",
            "Roll the later instants back first, the newest at first.",
            instant=instant,
            later=later,
        )


def _refuse_saved(timeline: Timeline, target: Instant) -> None:
    instant = target.requested_time
    if timeline.find(instant, Action.SAVEPOINT) is not None:
        raise TableServiceError(
            f"Instant {instant} cannot be rolled back: a savepoint holds it",
            "Delete the savepoint with the engine that made it, then roll back.",
            instant=instant,
        )


def _refuse_cleaned(table: OpenTable, target: Instant) -> None:
    """Refuse where the state before the write cannot be read any more."""
    gone = next(_gone(table, target), None)
    if gone is not None:
        instant = target.requested_time
        raise TableServiceError(
            f"Instant {instant} cannot be rolled back: {gone}, which it took the place of, was "
            "removed, most likely by a clean",
            "Its rows would be lost. Restore the file from a backup of the table, or write the "
            "rows that are wanted.",
            instant=instant,
            missing=gone,
        )


def _gone(table: OpenTable, target: Instant) -> Iterator[str]:
    """Yield what readers would need once the write is undone, and storage no longer has."""
    client = table.client
    metadata = client.read_commit(target)
    built_on = [
        (PartitionPath(partition), stat)
        for partition, stats in metadata.partition_to_write_stats.items()
        for stat in stats
        if stat.prev_base_file or stat.prev_commit not in (None, "", NO_PREVIOUS_COMMIT)
    ]
    replaced = [
        (PartitionPath(partition), file_id)
        for partition, file_ids in _replaced(metadata)
        for file_id in file_ids
    ]
    partitions = sorted({partition for partition, _ in [*built_on, *replaced]})
    # asked of storage, not of the format: what counts is whether the files are there
    lister = StorageLister(client.storage, bool(client.config.partition_fields), client.run_map)
    listing = lister.list_files(partitions)
    names = {path: {file.name for file in listing[path]} for path in partitions}
    parsed = {path: [*filter(None, map(BaseFileName.parse, names[path]))] for path in partitions}
    for partition, stat in built_on:
        if stat.prev_base_file:
            name = stat.prev_base_file.rpartition("/")[2]
            if name not in names[partition]:
                yield join_path(partition, name)
        elif (stat.file_id, stat.prev_commit) not in {
            (file.file_id, file.instant) for file in parsed[partition]
        }:
            where = join_path(partition, str(stat.file_id))
            yield f"the base file of {stat.prev_commit} of file group {where}"
    for partition, file_id in replaced:
        if not any(
            file.file_id == file_id and file.instant < target.requested_time
            for file in parsed[partition]
        ):
            yield f"every base file of file group {join_path(partition, file_id)}"


def _replaced(metadata: object) -> Iterator[tuple[str, tuple[str, ...]]]:
    if isinstance(metadata, ReplaceCommitMetadata):
        yield from metadata.partition_to_replace_file_ids.items()
