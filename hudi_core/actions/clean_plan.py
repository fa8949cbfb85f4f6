"""Files that a clean deletes: functions of timeline and file groups.

Policies and their defaults are Hudi's. Beyond them, under each: the newest slice of a file group
stays, so do slices that a savepoint or a pending compaction needs, and nothing goes that a pending
write may have begun to read. Replaced file groups go whole, as soon as the instant that replaced
them is earlier than all that is retained; until then they lose old slices like others, which Hudi
leaves to the end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from hudi_core.config.kinds import CleanPolicy
from hudi_core.model.actions import ActionInstant, CleanerPlan, CleanFileInfo, CleanMetadata
from hudi_core.model.commit import (
    NO_PREVIOUS_COMMIT,
    CommitMetadata,
    ReplaceCommitMetadata,
    WriteOperation,
)
from hudi_core.model.extra_metadata import OWN_PREFIX
from hudi_core.model.files import (
    BaseFileName,
    FileGroup,
    FileGroupId,
    FileId,
    FileSlice,
    FileStatus,
    LogFileName,
    PartitionPath,
)
from hudi_core.model.instant import COMPACTIONS, WRITE_ACTIONS, Action, Instant
from hudi_core.model.instant_time import EARLIEST, UTC_TIMELINE, InstantTime, TimelineZone
from hudi_core.storage.location import stored_uri
from hudi_core.timeline.timeline import Timeline

_MERGES_SLICES: Final = frozenset({WriteOperation.COMPACT.value, None})
"""Operations whose files take the place of others, whatever they say of a commit before."""
SAVEPOINTED_KEY: Final = "savepointed_timestamps"
"""Key of a clean's extra metadata: the savepoints it knew, with commas between them."""
RETAINED_SINCE_KEY: Final = f"{OWN_PREFIX}retained-since"
"""Key of a clean's extra metadata: the time since which every state has its files.

No clean so far removed one of them, under whatever policy; so it never moves back."""


@dataclass(frozen=True, slots=True)
class CleanRules:
    """How much a clean keeps; each number counts under its own policy.

    The fields are ``hoodie.cleaner.policy``, ``.commits.retained`` (readers as of any of so many
    last writes go on), ``.fileversions.retained`` (slices of every file group) and
    ``.hours.retained`` (readers as of any write so young go on).
    """

    policy: CleanPolicy = CleanPolicy.KEEP_LATEST_COMMITS
    commits_retained: int = 10
    file_versions_retained: int = 3
    hours_retained: int = 24


@dataclass(frozen=True, slots=True)
class Retention:
    """The rules applied to one state of a table; made by :func:`retain`.

    From ``earliest`` on all file slices stay, and the newest before it of each file group. It is
    ``None`` where all stay, and under ``KEEP_LATEST_FILE_VERSIONS``, which knows no such write.
    ``pending`` is the same for what pending writes may be reading; ``None`` where none is pending.
    ``late`` are requested times of earlier writes that completed after one that is retained, as a
    compaction does that waited: what they superseded is of its state, and stays.
    """

    rules: CleanRules
    earliest: Instant | None
    pending: Instant | None = None
    late: frozenset[InstantTime] = frozenset()

    @property
    def releases_files(self) -> bool:
        """Whether any file can be superfluous."""
        return (
            self.earliest is not None or self.rules.policy is CleanPolicy.KEEP_LATEST_FILE_VERSIONS
        )


@dataclass(frozen=True, slots=True)
class Needed:
    """What must stay for others than readers of the latest state.

    ``savepointed`` has partition and name of every file that a savepoint keeps. ``saved`` are
    requested times of savepointed writes: what was requested before one and completed after its
    savepoint is part of the state since, and in no list of the savepoint. ``compactions`` has the
    base instant of the slice that a pending compaction of a file group reads.
    """

    savepointed: Collection[tuple[str, str]] = frozenset()
    saved: Collection[InstantTime] = ()
    compactions: Mapping[FileGroupId, str] = field(default_factory=dict)


NOTHING_NEEDED: Final = Needed()


@dataclass(frozen=True, slots=True)
class PartitionFiles:
    """What one partition holds.

    ``groups`` are those with a committed file, replaced ones included, slices newest first;
    ``listed`` is every file there, those of running and failed writes included.
    """

    groups: Sequence[FileGroup]
    listed: Sequence[FileStatus]


@dataclass(frozen=True, slots=True)
class PartitionClean:
    """A clean of one partition.

    ``paths`` are relative to the table; ``drop`` means that the partition ends empty; from
    ``whole_since`` on, states need none of these files.
    """

    paths: tuple[str, ...] = ()
    drop: bool = False
    whole_since: InstantTime | None = None


def retain(
    timeline: Timeline, rules: CleanRules, now: datetime, zone: TimelineZone = UTC_TIMELINE
) -> Retention:
    """File slices that the rules keep.

    Slices are ordered by the requests of their writes, and a write sees those that had completed
    when it began. So the earliest write retained is no later than the last one that was requested
    before the first pending one, and than any that has completed since that one began.

    ``timeline`` is fenced, and ``now`` is aware.
    """
    completed, began = timeline.completed_writes(), _first_pending_write(timeline)
    found = _earliest(completed, rules, now, zone)
    late = frozenset() if found is None else late_writes(completed, found.requested_time)
    if began is None:  # guard clean-spares-pending
        return Retention(rules, found, late=late)
    before = [one for one in completed if one.requested_time < began]
    unseen = [one for one in completed if one.effective_completion_time > began]
    pending = min((*before[-1:], *unseen), key=lambda one: one.requested_time, default=None)
    if found is not None and pending is not None and pending.requested_time < found.requested_time:
        found = pending if before else None
    return Retention(rules, found, pending, late)


def never_back(found: Retention, timeline: Timeline, since: InstantTime) -> Retention:
    """What the rules keep of what the cleans before have left.

    The earliest write retained is not earlier than that of any clean before, whatever was its
    policy: of states before it files are gone.

    From ``since`` on, no clean before removed a file of a state; ``timeline`` is fenced.
    """
    earliest, writes = found.earliest, timeline.completed_writes()
    counts_versions = found.rules.policy is CleanPolicy.KEEP_LATEST_FILE_VERSIONS
    if counts_versions or since == EARLIEST or not writes:
        return found
    if earliest is not None and earliest.requested_time >= since:
        return found
    # those since then may have been undone
    earliest = next((one for one in writes if one.requested_time >= since), writes[-1])
    pending = found.pending
    if pending is not None and pending.requested_time < earliest.requested_time:
        return replace(found, earliest=None)  # and clean once that write is done
    return replace(found, earliest=earliest)


def _earliest(
    completed: Sequence[Instant], rules: CleanRules, now: datetime, zone: TimelineZone
) -> Instant | None:
    """The earliest requested write that a policy retains."""
    match rules.policy:
        case CleanPolicy.KEEP_LATEST_COMMITS:
            number = len(completed) - max(rules.commits_retained, 1)
            return completed[number] if number > 0 else None
        case CleanPolicy.KEEP_LATEST_BY_HOURS:
            since = zone.digits(now - timedelta(hours=rules.hours_retained))
            return next((one for one in completed if one.requested_time >= since), None)
        case CleanPolicy.KEEP_LATEST_FILE_VERSIONS:
            return None


def late_writes(completed: Sequence[Instant], since: InstantTime) -> frozenset[InstantTime]:
    """Requested times of earlier writes that completed after one requested since then."""
    done = (one.effective_completion_time for one in completed if one.requested_time >= since)
    first = min(done, default="9")
    late = (one for one in completed if one.effective_completion_time > first)
    return frozenset(one.requested_time for one in late if one.requested_time < since)


def partitions_to_clean(
    timeline: Timeline,
    retention: Retention,
    last: CleanMetadata | None,
    savepoints: Collection[InstantTime],
    read_commit: Callable[[Instant], CommitMetadata],
) -> frozenset[PartitionPath] | None:
    """Return partitions with files superfluous since the last clean.

    Those in which a file group was updated or replaced from the earliest write that the last clean
    retained up to the earliest that this one retains, or by an earlier one that was completed since
    then: a compaction. Only these writes are read.

    Returns ``None`` for all partitions: without an earlier clean to go on from, when its end has
    been archived, or when a savepoint it knew was deleted since.
    """
    earliest = retention.earliest
    if earliest is None or last is None or not last.earliest_commit_to_retain:
        return None
    since = last.earliest_commit_to_retain
    known = (last.extra_metadata or {}).get(SAVEPOINTED_KEY, "").split(",")
    if timeline.active_start is None or since < timeline.active_start:
        return None
    if set(filter(None, known)) - set(savepoints):
        return None
    touched: set[PartitionPath] = set()
    for write in timeline.completed_writes():
        if write.effective_completion_time > since and (
            write.requested_time < earliest.requested_time
        ):
            metadata = read_commit(write)
            touched.update(
                PartitionPath(partition)
                for partition, stats in metadata.partition_to_write_stats.items()
                # new file groups, of which most appends are, have no older slice
                if any(stat.prev_commit != NO_PREVIOUS_COMMIT for stat in stats)
                or metadata.operation_type in _MERGES_SLICES
            )
            if isinstance(metadata, ReplaceCommitMetadata):
                touched.update(map(PartitionPath, metadata.partition_to_replace_file_ids))
    return frozenset(touched)


def clean_partition(
    files: PartitionFiles,
    replaced: Mapping[FileGroupId, Instant],
    retention: Retention,
    needed: Needed,
) -> PartitionClean:
    """Files that a clean deletes in one partition.

    ``replaced`` has, for each file group taken out of the table, the first completed write that
    did.
    """
    rules, earliest = retention.rules, retention.earliest
    bound = earliest or retention.pending
    if not retention.releases_files:
        return PartitionClean()
    superfluous: list[FileSlice] = []
    since: list[InstantTime] = []
    for group in files.groups:
        by = replaced.get(group.id)
        gone: Sequence[FileSlice] = group.slices
        if by is None or (bound is not None and by.requested_time >= bound.requested_time):
            gone = gone if bound is None else _before(group, bound.requested_time, needed)
            if earliest is None:
                old = _old_versions(group, rules.file_versions_retained, needed)
                gone = [one for one in old if one in gone]
        # guard clean-spares-savepoints
        saved = _saved_slices(group, by, needed)
        going = [
            one
            for one in gone
            if not (one in saved or _is_savepointed(one, needed))
            and _superseded(group, one, by) not in retention.late
        ]
        superfluous += going
        if going:
            since.append(_superseded(group, going[0], by))
    attempts = _attempts(files.listed)
    paths = {path for one in superfluous for path in _paths(one, attempts)}
    left = (file.path for file in files.listed if _is_data_file(file))
    partition = next((group.id.partition_path for group in files.groups), "")
    return PartitionClean(
        tuple(sorted(paths)),
        bool(partition and paths and not set(left) - paths),
        max(since, default=None),
    )


def make_clean_plan(
    root: str,
    retention: Retention,
    partitions: Mapping[PartitionPath, PartitionClean],
    timeline: Timeline,
    savepoints: Iterable[InstantTime] = (),
    *,
    retained_since: InstantTime | None = None,
    or_empty: bool = False,
) -> CleanerPlan | None:
    """Return the plan of a clean; ``None`` without anything to do.

    Its paths are absolute, as in Hudi.

    ``timeline`` is the fenced one that all this was planned on. ``savepoints`` are stored since a
    clean after one of them is deleted looks at every partition. ``retained_since`` is what the
    cleans before retained; ``None`` for a table without readable past states.
    """
    if not or_empty and not any(one.paths or one.drop for one in partitions.values()):
        return None
    writes = timeline.completed_writes()
    saved = ",".join(sorted(savepoints))
    extra = {SAVEPOINTED_KEY: saved} if saved else {}
    if retained_since is not None:
        whole = (one.whole_since for one in partitions.values() if one.whole_since is not None)
        earliest = () if retention.earliest is None else (retention.earliest.requested_time,)
        extra[RETAINED_SINCE_KEY] = max((retained_since, *earliest, *whole))
    return CleanerPlan(
        earliest_instant_to_retain=_named(retention.earliest),
        last_completed_commit_timestamp=writes[-1].requested_time if writes else "",
        policy=retention.rules.policy.value,
        files_to_be_deleted_per_partition={},
        file_paths_to_be_deleted_per_partition={
            partition: tuple(CleanFileInfo(stored_uri(root, path), False) for path in one.paths)
            for partition, one in sorted(partitions.items())
            if one.paths
        },
        partitions_to_be_deleted=tuple(
            sorted(path for path, one in partitions.items() if one.drop)
        ),
        extra_metadata=extra,
    )


def _named(instant: Instant | None) -> ActionInstant | None:
    if instant is None:
        return None
    return ActionInstant(instant.requested_time, instant.action.value, instant.state.name)


def _first_pending_write(timeline: Timeline) -> InstantTime | None:
    """When the first pending write began.

    A compaction reads the slices of its plan, which stay.
    """
    writes = (
        one.requested_time
        for one in timeline.pending()
        if (one.action.completed_action in WRITE_ACTIONS and one.action not in COMPACTIONS)
        or one.action is Action.INDEXING
    )
    return min(writes, default=None)


def _before(group: FileGroup, earliest: InstantTime, needed: Needed) -> list[FileSlice]:
    """Return the slices that no reader as of ``earliest`` or later sees."""
    old = [one for one in group.slices if one.base_instant < earliest]
    # of the old ones the newest is what a reader as of `earliest` sees
    return [one for one in old[1:] if one is not group.latest and not _is_compacted(one, needed)]


def _old_versions(group: FileGroup, versions: int, needed: Needed) -> list[FileSlice]:
    """Return slices older than the newest ``versions``, at least one."""
    kept_anyway = group.id in needed.compactions
    rest = [one for one in group.slices if not _is_compacted(one, needed)]
    kept = versions - 1 if kept_anyway else versions
    return [one for one in rest[max(kept, 0) :] if one is not group.latest]


def _superseded(group: FileGroup, one: FileSlice, by: Instant | None) -> InstantTime:
    """The time from which on no state needs a slice."""
    place = group.slices.index(one)
    if place > 0:
        return group.slices[place - 1].base_instant
    return one.base_instant if by is None else by.requested_time


def _is_compacted(one: FileSlice, needed: Needed) -> bool:
    base = needed.compactions.get(one.group)  # guard clean-spares-planned
    return base is not None and one.base_instant >= base


def _saved_slices(group: FileGroup, by: Instant | None, needed: Needed) -> list[FileSlice]:
    """The slices of a group that savepointed states have now."""
    times = (time for time in needed.saved if by is None or by.requested_time > time)
    found = (
        next((one for one in group.slices if one.base_instant <= time), None) for time in times
    )
    return [one for one in found if one is not None]


def _is_savepointed(one: FileSlice, needed: Needed) -> bool:
    names = [log.status.name for log in one.log_files]
    names += [one.base_file.status.name] if one.base_file else []
    return any((one.partition_path, name) in needed.savepointed for name in names)


def _attempts(
    listed: Iterable[FileStatus],
) -> dict[tuple[FileId, InstantTime], list[str]]:
    """Return base files and change logs by file group and instant.

    Failed attempts are included.
    """
    found: dict[tuple[FileId, InstantTime], list[str]] = {}
    for file in listed:
        name: BaseFileName | LogFileName | None = BaseFileName.parse(file.name)
        if name is None:
            log = LogFileName.parse(file.name)
            name = log if log is not None and log.is_cdc else None
        if name is not None:
            found.setdefault((name.file_id, name.instant), []).append(file.path)
    return found


def _paths(
    one: FileSlice, attempts: Mapping[tuple[FileId, InstantTime], Sequence[str]]
) -> Iterator[str]:
    """Yield the files of a slice."""
    yield from (log.status.path for log in one.log_files)
    if one.base_file is not None:
        yield one.base_file.path
        yield from attempts.get((one.file_id, one.base_file.instant), ())


def _is_data_file(file: FileStatus) -> bool:
    return BaseFileName.parse(file.name) is not None or LogFileName.parse(file.name) is not None
