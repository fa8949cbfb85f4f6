"""A clean of any Hudi table: its instants and file deletion.

Order (a crash at any point leaves a clean that the next attempt finishes): plan, inflight, files
deleted, completed metadata. What must happen in between, such as telling the table's format or its
metadata table, is the caller's, who holds the table's lock. Which files to delete is planned in
:mod:`hudi_core.actions.clean_plan`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

from hudi_core.actions.clean_of_files import (
    DoneClean,
    cleans_after,
    cleans_of_timeline,
    is_active,
)
from hudi_core.actions.deletion import delete_together
from hudi_core.actions.stored_paths import is_data_path, relative_path
from hudi_core.errors import CorruptMetadataError, HistoryExpiredError, TableServiceError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.actions import CleanerPlan, CleanMetadata, CleanPartitionMetadata
from hudi_core.model.commit import ReplaceCommitMetadata
from hudi_core.model.files import (
    PARTITION_METADATA_FILE,
    BaseFileName,
    FileGroup,
    FileGroupId,
    FileId,
    LogFileName,
    PartitionPath,
    join_path,
)
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import EARLIEST, InstantTime
from hudi_core.model.protocols import Storage, TimelineView
from hudi_core.storage.location import parse_location
from hudi_core.timeline.archived import ArchivedInstant
from hudi_core.timeline.serde import decode_cleaner_plan, decode_restore, encode
from hudi_core.timeline.timeline import Timeline

_UNTOUCHED = "Nothing was deleted. Remove the plan if it is not from a writer you trust."


@dataclass(frozen=True, slots=True)
class CleanWork:
    """A clean under way, its plan checked.

    ``instant`` is inflight once the clean is begun; ``files`` are names by partition;
    ``partitions`` are gone once their files are.
    """

    instant: Instant
    plan: CleanerPlan
    files: Mapping[PartitionPath, Sequence[str]]
    partitions: Sequence[PartitionPath] = ()


def pending_cleans(timeline: Timeline) -> tuple[Instant, ...]:
    """Return the cleans that an earlier writer began, oldest first."""
    return timeline.pending().of_actions(Action.CLEAN).instants


def files_being_cleaned(client: TableMetaClient) -> dict[PartitionPath, tuple[str, ...]]:
    """Names of the files that pending cleans delete, by partition.

    Each may be there still, or gone already.
    """
    return files_of_cleans(client, pending_cleans(client.timeline()))


def files_of_cleans(
    client: TableMetaClient, cleans: Iterable[Instant]
) -> dict[PartitionPath, tuple[str, ...]]:
    """Files that the plans of cleans delete, by partition."""
    names: dict[PartitionPath, tuple[str, ...]] = {}
    for one in cleans:
        path = client.active.path(one.to(State.REQUESTED))
        body = client.active.read(one.to(State.REQUESTED))
        if body:
            for partition, found in _files(client, decode_cleaner_plan(body, path), path).items():
                names[partition] = (*names.get(partition, ()), *found)
    return names


def request_clean(client: TableMetaClient, requested: InstantTime, plan: CleanerPlan) -> Instant:
    """Put the plan of a new clean on the timeline.

    The time is from the table's clock.

    A plan that names what a clean may not delete is refused before anything is written.
    """
    instant = Instant(requested, Action.CLEAN, State.REQUESTED)
    _files(client, plan, client.active.path(instant))
    return client.active.create_requested(instant, encode(plan))


def start_clean(
    client: TableMetaClient,
    instant: Instant,
    check: Callable[[CleanWork], None] = lambda _: None,
    plan: CleanerPlan | None = None,
) -> CleanWork | None:
    """Begin a requested clean, or continue one that is inflight.

    ``check`` may refuse the plan, before anything is done by it. ``plan`` is given by who has just
    put it on the timeline; others read it. Returns ``None`` when the plan is
    empty, left by a writer that crashed while it wrote: the clean was dropped, and had deleted
    nothing.

    Nothing was deleted where the plan is damaged, or names anything but data files of the table,
    each in its partition. Files outside the table that a bootstrap took over are refused.
    """
    active = client.active
    requested = instant.to(State.REQUESTED)
    where = f"{client.storage.root}/{active.path(requested)}"
    if plan is None:
        body = active.read(requested)
        if not body:
            active.delete_pending(instant)
            return None
        plan = decode_cleaner_plan(body, where)
    files = _files(client, plan, where)
    partitions = [_partition(path, where) for path in plan.partitions_to_be_deleted or ()]
    work = CleanWork(instant, plan, files, partitions)
    check(work)
    if instant.state is State.REQUESTED:
        work = replace(work, instant=active.to_inflight(instant))
    return work


def delete_cleaned(client: TableMetaClient, work: CleanWork) -> CleanMetadata:
    """Delete the files of a clean; missing ones count as deleted.

    Of a partition that is dropped only the mark goes, and only if no data file is left: a writer
    may have begun to fill it again.
    """
    begin = time.monotonic()
    paths = [
        join_path(partition, name) for partition in work.files for name in work.files[partition]
    ]
    delete_together(client.data, client.map_requests, paths)
    holds = client.map_requests(partial(_holds_data, client.data), work.partitions)
    going = zip(work.partitions, holds, strict=True)
    marks = [join_path(path, PARTITION_METADATA_FILE) for path, is_held in going if not is_held]
    # at once, and in this process: a task that is late might take the mark of a new partition
    delete_together(client.data, client.run_map, marks)
    earliest = work.plan.earliest_instant_to_retain
    return CleanMetadata(
        start_clean_time=work.instant.requested_time,
        time_taken_in_millis=round((time.monotonic() - begin) * 1000),
        total_files_deleted=len(paths),
        earliest_commit_to_retain=earliest.timestamp if earliest else "",
        last_completed_commit_timestamp=work.plan.last_completed_commit_timestamp,
        partition_metadata={
            partition: CleanPartitionMetadata(
                partition,
                work.plan.policy,
                delete_path_patterns=tuple(work.files.get(partition, ())),
                success_delete_files=tuple(work.files.get(partition, ())),
                is_partition_deleted=partition in work.partitions,
            )
            for partition in sorted({*work.files, *work.partitions})
        },
        bootstrap_partition_metadata={},
        extra_metadata=work.plan.extra_metadata,
    )


def complete_clean(
    client: TableMetaClient, work: CleanWork, completion: InstantTime, metadata: CleanMetadata
) -> Instant:
    """Put the completed clean; the time is from the table's clock.

    ``client`` has the timeline as it is under this hold of the lock, or it is listed.
    """
    active = client.active
    return active.complete(work.instant, completion, encode(metadata), client.timeline())


def run_clean(
    client: TableMetaClient, instant: Instant, next_time: Callable[[], InstantTime]
) -> Instant | None:
    """Begin a requested clean or continue an inflight one, and complete it.

    For a table whose format does not record cleans.

    ``next_time`` gives the completion, from the table's clock. Returns ``None`` when the clean was
    dropped, see :func:`start_clean`.
    """
    work = start_clean(client, instant)
    if work is None:
        return None
    body = delete_cleaned(client, work)
    return complete_clean(client, work, next_time(), body)


def _holds_data(storage: Storage, partition: PartitionPath) -> bool:
    return any(_is_data_file(file.name) for file in storage.list(partition))


def _files(
    client: TableMetaClient, plan: CleanerPlan, where: str
) -> dict[PartitionPath, tuple[str, ...]]:
    """Return the file names a plan deletes, each checked.

    A plan on disk may have been written by anybody who can write the table's folder, and other
    writers spell the same place in other ways (``file:/t/x``, ``s3a://bucket/t/x``).
    """
    root = parse_location(client.storage.root)
    found: dict[PartitionPath, list[str]] = {}
    for path, infos in (plan.file_paths_to_be_deleted_per_partition or {}).items():
        names = found.setdefault(_partition(path, where), [])
        for info in infos:
            if info.is_bootstrap_base_file:
                raise TableServiceError(
                    f"{where} deletes the bootstrapped file {info.file_path!r}",
                    "Finish this clean with Apache Hudi.",
                    path=where,
                )
            relative = relative_path(root, info.file_path or "")
            names.append(_checked(relative, path, info.file_path, where))
    # how plans of version 1 name files
    for path, plain in (plan.files_to_be_deleted_per_partition or {}).items():
        names = found.setdefault(_partition(path, where), [])
        names += [_checked(join_path(path, name), path, name, where) for name in plain]
    return {partition: tuple(dict.fromkeys(names)) for partition, names in sorted(found.items())}


def _checked(relative: str, partition: str, spelled: str | None, where: str) -> str:
    # the partition was checked, so what lies right in it is inside the table too
    folder, _, name = relative.rpartition("/")
    if folder != partition or not _is_data_file(name):
        raise CorruptMetadataError(
            where,
            f"the clean plan names {spelled!r}, which is no data file of partition {partition!r}",
            _UNTOUCHED,
        )
    return name


def _partition(path: str, where: str) -> PartitionPath:
    if path and not is_data_path(path):
        raise CorruptMetadataError(
            where, f"the clean plan names the partition {path!r} outside the table", _UNTOUCHED
        )
    return PartitionPath(path)


def _is_data_file(name: str) -> bool:
    return BaseFileName.parse(name) is not None or LogFileName.parse(name) is not None


# --- past states that a clean has made unreadable -------------------------------------------------


_Keep = Callable[[Sequence[PartitionPath]], Sequence[PartitionPath]]


class DeletedFile(NamedTuple):
    """A file that a clean has deleted.

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
        """Newest deleted file of each file group up to a time.

        A slice of logs alone has no base file; and logs are older than the next base file.

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
            plain = path.rpartition("/")[2]
            name = BaseFileName.parse(plain) or LogFileName.parse(plain)
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
        there = self.client.map_requests(probe, [join_path(*one) for one in files])
        return [one for one, is_there in zip(files, there, strict=True) if not is_there]

    @cached_property
    def _found(self) -> dict[InstantTime, Mapping[FileGroupId, DeletedFile]]:
        return {}


def _is_stored(storage: Storage, path: str) -> bool:
    return storage.head(path) is not None
