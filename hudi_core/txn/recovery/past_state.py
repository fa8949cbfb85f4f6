"""The state that a rollback or a restore goes back to.

Files are asked of storage, not of the metadata table or a format: what counts is that they are
there before another one is deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from hudi_core.actions.clean import Cleaned, require_not_cleaned
from hudi_core.errors import HistoryExpiredError
from hudi_core.metadata.lister import table_lister
from hudi_core.model.commit import (
    NO_PREVIOUS_COMMIT,
    CommitMetadata,
    ReplaceCommitMetadata,
)
from hudi_core.model.files import (
    BaseFileName,
    FileGroupId,
    FileId,
    FileSlice,
    PartitionPath,
    join_path,
)
from hudi_core.model.instant import WRITE_ACTIONS, Instant
from hudi_core.model.instant_time import InstantTime, just_before
from hudi_core.txn.state import TableState
from hudi_core.view.file_system import FileSystemView, replaced_groups, written_files
from hudi_core.view.storage_lister import StorageLister


class PastFile(NamedTuple):
    """A base file of a past state.

    ``instant`` is the requested time of the write that made it; ``path`` may be only what is known
    of the path.
    """

    instant: str
    path: str


def slices_as_of(state: TableState, time: InstantTime) -> Sequence[FileSlice]:
    """File slices of a past state; no clean took its files."""
    client, timeline = state.client, state.timeline
    replaced = replaced_groups(timeline, client.read_commit)
    named = written_files(timeline, client.read_commit)
    view = FileSystemView(table_lister(client), timeline, replaced, named)

    def every(partitions: Sequence[PartitionPath]) -> Sequence[PartitionPath]:
        return partitions

    require_not_cleaned(
        client, timeline, time, keep=every, groups=view.file_groups, replaced=replaced
    )
    return view.latest_slices(as_of=time)


def require_stored(state: TableState, time: InstantTime, undone: Sequence[Instant]) -> None:
    """Refuse to go back to a state that lacks a file.

    ``time`` is the requested time of the last write that stays. ``undone`` are the completed writes
    that are taken out, archived ones too.
    """
    slices = slices_as_of(state, time)
    names = _stored_names(state, sorted({one.partition_path for one in slices}))
    for one in slices:
        files = [log.status.name for log in one.log_files]
        files += [one.base_file.status.name] if one.base_file is not None else []
        for name in files:
            if name not in names[one.partition_path]:
                raise HistoryExpiredError(one.base_instant, join_path(one.partition_path, name))
    for lost in lost_files(state, _metadata_of(state, undone, time)):
        raise HistoryExpiredError(*lost)


def lost_files(state: TableState, undone: Mapping[Instant, CommitMetadata]) -> Iterator[PastFile]:
    """Files that the state before some writes needs, and that are gone."""
    own = {one.requested_time for one in undone}
    written = [
        (PartitionPath(partition), stat)
        for metadata in undone.values()
        for partition, stats in metadata.partition_to_write_stats.items()
        for stat in stats
    ]
    built_on = [
        (partition, stat.file_id, time or "", name)
        for partition, stat in written
        for time, name in (stat.base_before,)
        if time not in own and (name or time not in (None, NO_PREVIOUS_COMMIT))
    ]
    replaced = {
        FileGroupId(PartitionPath(partition), FileId(file_id)): instant.requested_time
        for instant, metadata in undone.items()
        if isinstance(metadata, ReplaceCommitMetadata)
        for partition, file_ids in metadata.partition_to_replace_file_ids.items()
        for file_id in file_ids
    }
    for partition, stat in written:
        # the first of them that wrote a group says what was there before
        replaced.pop(FileGroupId(partition, FileId(stat.file_id or "")), None)
    partitions = {partition for partition, *_ in built_on}
    partitions |= {group.partition_path for group in replaced}
    names = _stored_names(state, sorted(partitions))
    parsed = {path: [*filter(None, map(BaseFileName.parse, names[path]))] for path in partitions}
    for partition, file_id, time, name in built_on:
        if name:
            if name not in names[partition]:
                yield PastFile(time, join_path(partition, name))
        elif (file_id, time) not in {(file.file_id, file.instant) for file in parsed[partition]}:
            where = join_path(partition, str(file_id))
            yield PastFile(time, f"the base file of file group {where}")
    cleaned = Cleaned(state.client, state.timeline)
    for group, time in replaced.items():
        there = (
            file.instant
            for file in parsed[group.partition_path]
            if file.file_id == group.file_id and file.instant < time
        )
        newest = max(there, default=None)
        deleted = cleaned.since(just_before(time)).get(group)
        if deleted is not None and deleted.was_after(newest or ""):
            yield PastFile(deleted.instant, deleted.path)
        elif newest is None:
            where = join_path(group.partition_path, group.file_id)
            yield PastFile(time, f"every base file of file group {where}")


def _stored_names(
    state: TableState, partitions: Sequence[PartitionPath]
) -> Mapping[PartitionPath, frozenset[str]]:
    client = state.client
    lister = StorageLister.of(client)
    listing = lister.list_files(partitions)
    return {path: frozenset(file.name for file in listing[path]) for path in partitions}


def _metadata_of(
    state: TableState, writes: Sequence[Instant], after: InstantTime
) -> dict[Instant, CommitMetadata]:
    """What completed writes did, by the active timeline or the archive."""
    active = set(state.timeline.completed_writes())
    found = {one: state.client.read_commit(one) for one in writes if one in active}
    archived = {one.requested_time for one in writes if one not in active}
    if archived:
        for one in state.client.archived.load(after, bodies=True):
            if one.instant.action in WRITE_ACTIONS and one.instant.requested_time in archived:
                found[one.instant] = state.client.read_archived_commit(one)
    return found
