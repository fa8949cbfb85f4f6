"""Past states that a clean has made unreadable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

from hudi_core.actions.clean import files_of_cleans
from hudi_core.actions.clean_of_files import (
    DoneClean,
    cleans_after,
    cleans_of_timeline,
    is_active,
)
from hudi_core.errors import HistoryExpiredError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.commit import ReplaceCommitMetadata
from hudi_core.model.files import (
    BaseFileName,
    FileGroup,
    FileGroupId,
    FileId,
    PartitionPath,
    join_path,
)
from hudi_core.model.instant import Action, Instant
from hudi_core.model.instant_time import EARLIEST, InstantTime
from hudi_core.model.protocols import Storage, TimelineView
from hudi_core.timeline.archived import ArchivedInstant
from hudi_core.timeline.serde import decode_restore

_Keep = Callable[[Sequence[PartitionPath]], Sequence[PartitionPath]]


class DeletedFile(NamedTuple):
    """A base file that a clean has deleted.

    ``is_listed`` means that listings may name the file still: the clean is not complete.
    """

    instant: InstantTime
    path: str
    is_listed: bool = False

    def was_after(self, stored: InstantTime | str) -> bool:
        """Whether it is newer than what is listed of its group."""
        return stored < self.instant or (self.is_listed and stored == self.instant)


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

    A file group whose slice is gone would otherwise look as if it had come later.

    ``timeline`` is fenced; ``time`` is the requested time up to which instants count; ``keep``
    returns which of some partitions the query reads, ``groups`` the file groups as they are stored
    now.
    """
    deleted = Cleaned(client, timeline).since(time)
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
        and file.was_after(stored.get(group, ""))
        and ((by := replaced.get(group)) is None or by.requested_time > time)
    }
    gone = replaced_by_archived(client, timeline) if lost else {}
    for group, file in lost.items():
        when = gone.get(group)
        if when is None or when > time:
            raise HistoryExpiredError(file.instant, file.path)


def replaced_by_archived(
    client: TableMetaClient, timeline: TimelineView
) -> dict[FileGroupId, InstantTime]:
    """File groups that archived writes replaced, and when each first was.

    Writes that a restore took out count for nothing, though they stay in the archive.
    """
    archived = client.archived.load(bodies=True)
    undone = set(_restored_away(client, timeline, archived))
    found: dict[FileGroupId, InstantTime] = {}
    for one in archived:
        time = one.instant.requested_time
        metadata = client.read_archived_commit(one) if _replaces(one) else None
        if isinstance(metadata, ReplaceCommitMetadata) and time not in undone:
            for partition, file_ids in metadata.partition_to_replace_file_ids.items():
                for file_id in file_ids:
                    group = FileGroupId(PartitionPath(partition), FileId(file_id))
                    found.setdefault(group, time)
    return found


def _replaces(archived: ArchivedInstant) -> bool:
    return archived.instant.action is Action.REPLACECOMMIT and archived.instant.is_completed


def _restored_away(
    client: TableMetaClient, timeline: TimelineView, archived: Iterable[ArchivedInstant]
) -> Iterator[str]:
    """Yield requested times of the writes that restores took out."""
    for one in timeline.instants:
        if one.action is Action.RESTORE and one.is_completed:
            path = client.active.path(one)
            yield from decode_restore(client.active.read(one), path).instants_to_rollback
    for each in archived:
        if each.instant.action is Action.RESTORE and each.metadata is not None:
            path = f"{client.archived.folder}:{each.instant}"
            yield from decode_restore(each.metadata, path).instants_to_rollback


@dataclass(frozen=True)
class Cleaned:
    """What the cleans of one table have deleted; each is read once.

    The timeline is fenced.
    """

    client: TableMetaClient
    timeline: TimelineView

    def since(self, time: InstantTime) -> Mapping[FileGroupId, DeletedFile]:
        """Newest deleted base file of each file group up to a time.

        Cleans before that time deleted nothing that was the latest then. Mostly the last one says
        that none of those after it did, and no other is read.
        """
        if time not in self._found:
            self._found[time] = self._deleted(time)
        return self._found[time]

    def may_lack(self, path: str) -> bool:
        """Whether a clean can have deleted a file, by its name."""
        name = BaseFileName.parse(path.rpartition("/")[2])
        if name is None or self._under_way:
            return True
        if self._last is not None:
            since = self._last.retained_since
            return since is None or name.instant < since
        if is_active(self.timeline, name.instant):
            return False
        return name.instant < self._last_archived

    def _deleted(self, time: InstantTime) -> dict[FileGroupId, DeletedFile]:
        found: dict[FileGroupId, DeletedFile] = {}
        for partition, path, is_listed in self._paths(time):
            name = BaseFileName.parse(path.rpartition("/")[2])
            if name is None or name.instant > time:
                continue
            group = FileGroupId(partition, name.file_id)
            known = found.get(group)
            if known is None or known.instant < name.instant:
                there = join_path(partition, str(name))
                found[group] = DeletedFile(name.instant, there, is_listed)
        return found

    def _paths(self, time: InstantTime) -> Iterator[tuple[PartitionPath, str, bool]]:
        """Yield files that cleans deleted; whether listings may name them."""
        if any(one.requested_time > time for one in self._under_way):
            yield from ((*one, True) for one in self._going)
        for clean in cleans_after(self.client, self.timeline, time):
            if time < clean.whole_since:
                for partition, cleaned in clean.metadata.partition_metadata.items():
                    for path in cleaned.success_delete_files:
                        yield PartitionPath(partition), path, False
            elif clean.retained_since is not None:
                break

    @cached_property
    def _last(self) -> DoneClean | None:
        return next(cleans_of_timeline(self.client, self.timeline), None)

    @cached_property
    def _last_archived(self) -> InstantTime:
        """When the last clean in the archive was requested."""
        archived = (one.instant for one in self.client.archived.load())
        times = (one.requested_time for one in archived if one.action is Action.CLEAN)
        return max(times, default=EARLIEST)

    @cached_property
    def _under_way(self) -> Sequence[Instant]:
        return [
            one
            for one in self.timeline.instants
            if one.action is Action.CLEAN and not one.is_completed
        ]

    @cached_property
    def _going(self) -> Sequence[tuple[PartitionPath, str]]:
        """Files that cleans under way have deleted already."""
        planned = files_of_cleans(self.client, self._under_way)
        files = [(partition, name) for partition in planned for name in planned[partition]]
        probe = partial(_is_stored, self.client.data)
        there = self.client.run_map(probe, [join_path(*one) for one in files])
        return [one for one, is_there in zip(files, there, strict=True) if not is_there]

    @cached_property
    def _found(self) -> dict[InstantTime, Mapping[FileGroupId, DeletedFile]]:
        return {}


def _is_stored(storage: Storage, path: str) -> bool:
    return storage.head(path) is not None
