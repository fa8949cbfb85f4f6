"""Past states that a clean has made unreadable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from hudi_core.errors import HistoryExpiredError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.actions import CleanMetadata
from hudi_core.model.files import (
    BaseFileName,
    FileGroup,
    FileGroupId,
    FileId,
    PartitionPath,
    join_path,
)
from hudi_core.model.instant import Action, Instant
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import TimelineView
from hudi_core.timeline.serde import decode_clean, decode_replace_commit

_Keep = Callable[[Sequence[PartitionPath]], Sequence[PartitionPath]]


class DeletedFile(NamedTuple):
    """A base file that a clean has deleted."""

    instant: InstantTime
    path: str


def require_not_cleaned(
    client: TableMetaClient,
    timeline: TimelineView,
    time: InstantTime,
    *,
    keep: _Keep,
    groups: Callable[[Sequence[PartitionPath]], Sequence[FileGroup]],
    replaced: Mapping[FileGroupId, Instant],
) -> None:
    """Refuse a past state of which a clean has deleted a file.

    A file group whose slice is gone would otherwise look as if it had come later. Mostly the last
    clean tells that the state is one that it retained, and nothing else is read.

    Parameters
    ----------
    timeline
        The fenced timeline.
    time
        Requested time up to which instants count.
    keep
        Which of some partitions the query reads.
    groups
        The file groups of partitions, as they are stored now.
    replaced
        File groups that completed writes took out of the table, and the first that did.

    Raises
    ------
    HistoryExpiredError
        Names a file that is gone.
    """
    deleted = deleted_since(client, timeline, time)
    if not deleted:
        return
    wanted = set(keep(sorted({group.partition_path for group in deleted})))
    if not wanted:
        return
    stored = {
        group.id: max(
            (one.base_instant for one in group.slices if one.base_instant <= time), default=""
        )
        for group in groups(sorted(wanted))
    }
    lost = {
        group: file
        for group, file in sorted(deleted.items())
        if group.partition_path in wanted
        and stored.get(group, "") < file.instant
        and ((by := replaced.get(group)) is None or by.requested_time > time)
    }
    gone = _replaced_before(client, time) if lost else frozenset[FileGroupId]()
    for group, file in lost.items():
        if group not in gone:
            raise HistoryExpiredError(file.instant, file.path)


def _replaced_before(client: TableMetaClient, time: InstantTime) -> frozenset[FileGroupId]:
    """File groups that archived writes replaced, up to a time."""
    return frozenset(
        FileGroupId(PartitionPath(partition), FileId(file_id))
        for archived in client.archived.load(until=time, bodies=True)
        if archived.instant.action is Action.REPLACECOMMIT and archived.metadata is not None
        for partition, file_ids in decode_replace_commit(
            archived.metadata, f"{client.archived.folder}:{archived.instant}"
        ).partition_to_replace_file_ids.items()
        for file_id in file_ids
    )


def deleted_since(
    client: TableMetaClient, timeline: TimelineView, time: InstantTime
) -> dict[FileGroupId, DeletedFile]:
    """Newest deleted base file of each file group up to a time.

    Cleans before that time deleted nothing that was the latest then.
    """
    found: dict[FileGroupId, DeletedFile] = {}
    for clean in _cleans_after(client, timeline, time):
        for partition, cleaned in clean.partition_metadata.items():
            for path in cleaned.success_delete_files:
                name = BaseFileName.parse(path.rpartition("/")[2])
                if name is None or name.instant > time:
                    continue
                group = FileGroupId(PartitionPath(partition), FileId(name.file_id))
                known = found.get(group)
                if known is None or known.instant < name.instant:
                    found[group] = DeletedFile(name.instant, join_path(partition, str(name)))
    return found


def _cleans_after(
    client: TableMetaClient, timeline: TimelineView, time: InstantTime
) -> Iterator[CleanMetadata]:
    """Cleans after a time, archived ones too.

    None where the last one retained that time.
    """
    active = [
        one
        for one in timeline.instants
        if one.action is Action.CLEAN and one.is_completed and one.requested_time > time
    ]
    for number, one in enumerate(reversed(active)):
        metadata = decode_clean(client.active.read(one), client.active.path(one))
        since = metadata.earliest_commit_to_retain
        if number == 0 and since and time >= since:
            return
        yield metadata
    if not active:
        return
    for archived in client.archived.load(time, bodies=True):
        if archived.instant.action is Action.CLEAN and archived.metadata is not None:
            where = f"{client.archived.folder}:{archived.instant}"
            yield decode_clean(archived.metadata, where)
