"""Clean plans from a table's files and its completed cleans."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Final, NamedTuple

from hudi_core.actions.clean_plan import (
    NOTHING_NEEDED,
    RETAINED_SINCE_KEY,
    SAVEPOINTED_KEY,
    Needed,
    PartitionFiles,
    Retention,
    clean_partition,
    make_clean_plan,
    partitions_to_clean,
)
from hudi_core.errors import CorruptMetadataError, InvalidInstantTimeError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.actions import CleanerPlan, CleanMetadata
from hudi_core.model.file_index import FileIndex
from hudi_core.model.files import FileGroupId, FileStatus, PartitionPath
from hudi_core.model.instant import WRITE_ACTIONS, Action, Instant
from hudi_core.model.instant_time import EARLIEST, InstantTime, parse_instant_time
from hudi_core.model.protocols import TimelineView
from hudi_core.timeline.serde import decode_clean, decode_savepoint
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_system import FileSystemView

_READ_TOGETHER: Final = 8


class DoneClean(NamedTuple):
    """A completed clean, what it recorded, and where."""

    instant: Instant
    metadata: CleanMetadata
    path: str

    @property
    def earliest_retained(self) -> InstantTime | None:
        """The earliest write it retained; ``None`` under a policy that knows none."""
        return self._time(self.metadata.earliest_commit_to_retain)

    @property
    def savepoints(self) -> frozenset[str]:
        """Requested times of the savepoints that it knew."""
        known = (self.metadata.extra_metadata or {}).get(SAVEPOINTED_KEY, "")
        return frozenset(filter(None, known.split(",")))

    @property
    def retained_since(self) -> InstantTime | None:
        """The time since which every state has its files.

        ``None`` where the clean does not record it: it is another engine's, or an earlier
        release's.
        """
        return self._time((self.metadata.extra_metadata or {}).get(RETAINED_SINCE_KEY))

    @property
    def whole_since(self) -> InstantTime:
        """The time since which this clean took no state a file.

        One that counts versions keeps the newest of every file group.
        """
        since = self.retained_since or self.earliest_retained
        last = self._time(self.metadata.last_completed_commit_timestamp)
        return since or last or self.instant.requested_time

    def _time(self, text: str | None) -> InstantTime | None:
        try:
            return parse_instant_time(text) if text else None
        except InvalidInstantTimeError as error:
            raise CorruptMetadataError(self.path, f"{text!r} is no time of an instant") from error


def last_clean(client: TableMetaClient, timeline: Timeline) -> DoneClean | None:
    """The last completed clean of a timeline."""
    last = timeline.completed().of_actions(Action.CLEAN).last
    return None if last is None else _read(client, last)


def cleans_of_timeline(
    client: TableMetaClient, timeline: TimelineView, after: InstantTime = EARLIEST
) -> Iterator[DoneClean]:
    """Yield the completed cleans of a timeline, the newest first.

    The first, which mostly says enough, is read alone, the others some at a time when they are
    asked for.

    Only cleans requested later than ``after`` count.
    """
    cleans = _cleans(timeline, after)
    for start, end in pairwise((0, *range(1, len(cleans), _READ_TOGETHER), len(cleans))):
        yield from client.run_map(partial(_read, client), cleans[start:end])


def cleans_after(
    client: TableMetaClient, timeline: TimelineView, time: InstantTime
) -> Iterator[DoneClean]:
    """Yield the completed cleans requested after a time, archived ones too.

    The newest come first. The archive is read where it may hold one: cleans go there with the
    writes around them, or, all but the newest, before these.
    """
    yield from cleans_of_timeline(client, timeline, time)
    active = _cleans(timeline, time)
    if active or not is_active(timeline, time):
        yield from _archived_cleans(client, time, active)


def retained_since(client: TableMetaClient, timeline: TimelineView) -> InstantTime:
    """The time since which every state has its files.

    No clean of the table has removed one of them. The last one says so, unless another engine or
    an earlier release made it.
    """
    since = EARLIEST
    for clean in cleans_of_timeline(client, timeline):
        since = max(since, clean.whole_since)
        if clean.retained_since is not None:
            return since
    for clean in _archived_cleans(client, since, _cleans(timeline)):
        since = max(since, clean.whole_since)
        if clean.retained_since is not None:
            return since
    return since


def is_active(timeline: TimelineView, time: InstantTime) -> bool:
    """Whether all writes since a time are on the active timeline."""
    saved = {one.requested_time for one in timeline.instants if one.action is Action.SAVEPOINT}
    first = next(
        (
            one.requested_time
            for one in timeline.instants
            if one.action.completed_action in WRITE_ACTIONS and one.requested_time not in saved
        ),
        None,
    )
    return first is not None and first <= time


def _cleans(timeline: TimelineView, after: InstantTime = EARLIEST) -> list[Instant]:
    return [
        one
        for one in reversed(timeline.instants)
        if one.action is Action.CLEAN and one.is_completed and one.requested_time > after
    ]


def _archived_cleans(
    client: TableMetaClient, time: InstantTime, active: Collection[Instant]
) -> Iterator[DoneClean]:
    """Yield the archived cleans requested after a time, the newest first."""
    known = {one.requested_time for one in active}
    for archived in reversed(client.archived.load(time, bodies=True)):
        instant = archived.instant
        if instant.action is Action.CLEAN and instant.requested_time not in known:
            path = f"{client.archived.folder}:{instant}"
            if archived.metadata is None:
                raise CorruptMetadataError(path, "it does not say what the clean removed")
            yield DoneClean(instant, decode_clean(archived.metadata, path), path)


def _read(client: TableMetaClient, instant: Instant) -> DoneClean:
    path = client.active.path(instant)
    return DoneClean(instant, decode_clean(client.active.read(instant), path), path)


def savepointed_files(
    client: TableMetaClient, timeline: TimelineView
) -> dict[tuple[str, str], InstantTime]:
    """Partition and name of each file that savepoints keep, with the savepoint."""
    kept = {}
    for one in timeline.instants:
        if one.action is Action.SAVEPOINT and one.is_completed:
            body = decode_savepoint(client.active.read(one), client.active.path(one))
            for partition, saved in body.partition_metadata.items():
                for name in saved.savepoint_data_file:
                    kept[partition, name.rpartition("/")[2]] = one.requested_time
    return kept


def plan_clean(
    client: TableMetaClient,
    timeline: Timeline,
    lister: FileIndex,
    retention: Retention,
    last: DoneClean | None = None,
    *,
    replaced: Callable[[], Mapping[FileGroupId, Instant]] = dict,
    needed: Callable[[], Needed] = lambda: NOTHING_NEEDED,
    savepoints: Collection[InstantTime] = (),
    retained_since: InstantTime | None = None,
    empty_after: int | None = None,
    also: Mapping[PartitionPath, Sequence[FileStatus]] | None = None,
) -> CleanerPlan | None:
    """What a clean of a table deletes; ``None`` without anything to do.

    Only partitions in which something was updated or replaced since the last clean are listed.

    ``timeline`` is fenced. Without ``last``, the last completed clean, every partition is listed;
    ``also`` are partitions that are looked at in any case, with their files. ``replaced`` reads the
    file groups that completed writes took out, each with the first that did; it and ``needed`` are
    not called where no partition is listed.

    After ``empty_after`` writes since the earliest that the last clean retained, there is a plan
    that deletes nothing, too; so is there where every partition was listed. ``None`` means never.
    """
    before = last.metadata if last is not None else None
    touched = partitions_to_clean(timeline, retention, before, savepoints, client.read_commit)
    partitions = set(lister.list_partitions() if touched is None else touched)
    found, also = {}, also or {}
    if partitions or also:
        gone, kept = replaced(), needed()
        others = sorted(partitions - also.keys())
        listed = {**(lister.list_files(others) if others else {}), **also}
        view = FileSystemView(lister, timeline, gone, listed=listed)
        for partition in sorted(listed):
            files = PartitionFiles(view.file_groups([partition]), listed.get(partition, ()))
            found[partition] = clean_partition(files, gone, retention, kept)
    or_empty = empty_after is not None and _moves_on(timeline, retention, last, empty_after)
    return make_clean_plan(
        client.storage.root,
        retention,
        found,
        timeline,
        savepoints,
        retained_since=retained_since,
        or_empty=or_empty,
    )


def _moves_on(timeline: Timeline, retention: Retention, last: DoneClean | None, after: int) -> bool:
    """Whether an empty clean spares the next ones many writes."""
    earliest = retention.earliest
    if earliest is None:
        return False
    since = last.earliest_retained if last is not None else None
    if since is None:
        return True
    passed = [
        one
        for one in timeline.completed_writes()
        if since <= one.requested_time < earliest.requested_time
    ]
    return len(passed) >= after
