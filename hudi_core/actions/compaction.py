"""A compaction of any merge-on-read table: its instants and files.

Of a log compaction too, as far as its plan goes.

Order (a crash at any point leaves a compaction that the next attempt finishes): plan, inflight, a
base file per slice, completed commit. How a slice is merged is the caller's, who holds the table's
lock; a base file that an earlier attempt wrote is written again over the first, or under a name of
its own, and the commit names the one that counts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from hudi_core.actions.stored_paths import is_data_path
from hudi_core.errors import CorruptMetadataError, InstantNotFoundError, TableServiceError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.actions import CompactionOperation, CompactionPlan, CompactionStrategy
from hudi_core.model.commit import CommitMetadata, WriteOperation, WriteStat
from hudi_core.model.extra_metadata import RUN_AT_ONCE_KEY
from hudi_core.model.files import (
    BaseFileName,
    FileGroupId,
    FileId,
    FileSlice,
    LogFileName,
    PartitionPath,
)
from hudi_core.model.instant import COMPACTIONS, Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import TimelineView
from hudi_core.timeline.serde import decode_compaction_plan, encode
from hudi_core.timeline.timeline import Timeline

MergeSlice = Callable[[CompactionOperation, InstantTime], WriteStat]
"""Writes the base file of an operation's slice, named with the compaction's time.

A value, which an engine may send to several workers; it returns what was written.
"""
_MEGABYTE: Final = 1024 * 1024
_OF_LOGS: Final = CompactionStrategy(
    "org.apache.hudi.table.action.compact.LogCompactionExecutionHelper", {}
)
"""How Hudi's plans of log compactions say what they are."""


@dataclass(frozen=True, slots=True)
class CompactionWork:
    """A compaction under way, its plan checked."""

    instant: Instant
    plan: CompactionPlan


Choose = Callable[[Sequence[CompactionOperation]], Sequence[CompactionOperation]]
"""Chooses what a compaction merges now."""


def plan_compaction(
    slices: Iterable[FileSlice],
    choose: Choose = tuple,
    *,
    action: Action = Action.COMPACTION,
    new_file_bytes: int = 0,
    at_once: bool = False,
    also: Collection[FileGroupId] = (),
) -> CompactionPlan | None:
    """Return the plan that merges slices with log files, or ``None``.

    ``slices`` are the latest of the table, without those of groups in other pending services;
    ``new_file_bytes`` is what a base file is expected to have where there is none yet. ``at_once``
    means that the maker of the plan runs it too. Slices of the groups ``also`` need no log files.
    """
    found = [
        _operation(one, new_file_bytes) for one in slices if one.log_files or one.group in also
    ]
    operations = tuple(choose(found))
    extra = {RUN_AT_ONCE_KEY: "true"} if at_once else {}
    if not operations:
        return None
    if action is Action.LOGCOMPACTION:
        return CompactionPlan(operations, extra, strategy=_OF_LOGS, preserve_hoodie_metadata=True)
    return CompactionPlan(operations, extra)


def runs_at_once(plan: CompactionPlan) -> bool:
    """Whether no other process than its scheduler may run a plan."""
    return RUN_AT_ONCE_KEY in (plan.extra_metadata or {})


def groups_of_plan(plan: CompactionPlan) -> frozenset[FileGroupId]:
    """The file groups that a plan merges."""
    return frozenset(group_of_operation(one) for one in plan.operations or ())


def group_of_operation(one: CompactionOperation) -> FileGroupId:
    """The file group that an operation merges."""
    return FileGroupId(PartitionPath(one.partition_path or ""), FileId(one.file_id or ""))


def pending_compactions(
    timeline: Timeline, actions: Collection[Action] = (Action.COMPACTION,)
) -> tuple[Instant, ...]:
    """Return the compactions that an earlier writer began or planned, oldest first."""
    return tuple(one for one in timeline.pending() if one.action in actions)


def groups_under_compaction(
    client: TableMetaClient, timeline: TimelineView, *, also_planned_logs: bool = True
) -> Mapping[FileGroupId, InstantTime]:
    """File groups that pending compactions merge, with their latest time.

    Log compactions are among them. Without ``also_planned_logs`` those of log compactions that
    nobody has begun are left out: what goes before them lets them be given up.
    """
    found: dict[FileGroupId, InstantTime] = {}
    for instant in timeline.instants:
        if instant.is_completed or instant.action not in COMPACTIONS:
            continue
        is_plan_of_logs = instant.is_scheduled and instant.action is Action.LOGCOMPACTION
        if is_plan_of_logs and not also_planned_logs:
            continue
        for group in groups_of_plan(read_compaction(client, instant)):
            found[group] = instant.requested_time
    return found


def slices_under_compaction(
    client: TableMetaClient, timeline: TimelineView
) -> Mapping[FileGroupId, InstantTime]:
    """File groups under pending compactions, with the times of their slices."""
    found: dict[FileGroupId, InstantTime] = {}
    for instant in timeline.instants:
        if instant.is_completed or instant.action not in COMPACTIONS:
            continue
        for one in read_compaction(client, instant).operations or ():
            group = FileGroupId(PartitionPath(one.partition_path or ""), FileId(one.file_id or ""))
            time = InstantTime(one.base_instant_time or "")
            found[group] = min(time, found.get(group, time))
    return found


def instants_compacted(client: TableMetaClient, compaction: Instant) -> frozenset[InstantTime]:
    """The instants whose files a compaction merges by its plan.

    Pending or completed. None where there is no plan (any more).
    """
    is_of_logs = compaction.action.completed_action is Action.DELTACOMMIT
    action = Action.LOGCOMPACTION if is_of_logs else Action.COMPACTION
    planned = Instant(compaction.requested_time, action, State.REQUESTED)
    try:
        plan = read_compaction(client, planned)
    except InstantNotFoundError:
        return frozenset()
    names = (
        name.rpartition("/")[2]
        for one in plan.operations or ()
        for name in (*(one.delta_file_paths or ()), one.data_file_path or "")
    )
    parsed = (BaseFileName.parse(name) or LogFileName.parse(name) for name in names)
    return frozenset(one.instant for one in parsed if one is not None)


def request_compaction(
    client: TableMetaClient, requested: InstantTime, plan: CompactionPlan
) -> Instant:
    """Put the plan of a new compaction on the timeline.

    The time is from the table's clock.
    """
    instant = Instant(requested, Action.COMPACTION, State.REQUESTED)
    return client.active.create_requested(instant, encode(plan))


def start_compaction(client: TableMetaClient, instant: Instant) -> CompactionWork:
    """Begin a requested compaction, or continue one that is inflight."""
    plan = read_compaction(client, instant)
    if instant.state is State.REQUESTED:
        instant = client.active.to_inflight(instant)
    return CompactionWork(instant, plan)


def read_compaction(client: TableMetaClient, instant: Instant) -> CompactionPlan:
    """The plan of a pending compaction, checked."""
    requested = instant.to(State.REQUESTED)
    where = f"{client.storage.root}/{client.active.path(requested)}"
    plan = decode_compaction_plan(client.active.read(requested), where)
    for operation in plan.operations or ():
        _check(operation, where)
    return plan


def merge_slices(
    client: TableMetaClient,
    work: CompactionWork,
    merge: MergeSlice,
    extra_metadata: Mapping[str, str],
) -> CommitMetadata:
    """Write the base file of every planned slice, in parallel.

    ``extra_metadata`` is kept in the commit, such as the table's schema. A base file that ``merge``
    wrote for another slice than asked for is an error.
    """
    operations = work.plan.operations or ()
    time = work.instant.requested_time
    stats: dict[str, list[WriteStat]] = {}
    merged = client.run_map(_Merge(merge, time), operations)
    for operation, stat in zip(operations, merged, strict=True):
        name = BaseFileName.parse((stat.path or "").rpartition("/")[2])
        if name is None or (name.file_id, name.instant) != (operation.file_id, time):
            raise TableServiceError(
                f"The compaction {time} wrote {stat.path!r} for file group {operation.file_id}",
                "Report it; the compaction is repeated by the next write.",
                instant=str(work.instant),
            )
        stats.setdefault(operation.partition_path or "", []).append(stat)
    return CommitMetadata(
        {partition: tuple(found) for partition, found in stats.items()},
        compacted=True,
        extra_metadata=extra_metadata,
        operation_type=WriteOperation.COMPACT.value,
    )


def complete_compaction(
    client: TableMetaClient,
    work: CompactionWork,
    completion: InstantTime,
    metadata: CommitMetadata,
) -> Instant:
    """Put the completed commit; the time is from the table's clock.

    ``client`` has the timeline as it is under this hold of the lock, or it is listed.
    """
    active = client.active
    return active.complete(work.instant, completion, encode(metadata), client.timeline())


@dataclass(frozen=True, slots=True)
class _Merge:
    """Merges one slice; a value, if the function is one."""

    merge: MergeSlice
    time: InstantTime

    def __call__(self, operation: CompactionOperation) -> WriteStat:
        return self.merge(operation, self.time)


def _operation(one: FileSlice, new_file_bytes: int) -> CompactionOperation:
    logs = sum(log.status.size for log in one.log_files)
    base = new_file_bytes if one.base_file is None else one.base_file.size
    read, written = one.total_size // _MEGABYTE, base // _MEGABYTE
    return CompactionOperation(
        base_instant_time=one.base_instant,
        delta_file_paths=tuple(log.status.name for log in one.log_files),
        data_file_path=one.base_file.status.name if one.base_file else None,
        file_id=one.file_id,
        partition_path=one.partition_path,
        metrics={
            "TOTAL_LOG_FILES": float(len(one.log_files)),
            "TOTAL_LOG_FILES_SIZE": float(logs),
            "TOTAL_IO_READ_MB": float(read),
            "TOTAL_IO_WRITE_MB": float(written),
            "TOTAL_IO_MB": float(read + written),
        },
    )


def _check(operation: CompactionOperation, where: str) -> None:
    """Refuse names outside the slice's partition or file group."""
    base, partition = operation.data_file_path, operation.partition_path or ""
    parsed = [LogFileName.parse(name) for name in operation.delta_file_paths or ()]
    names = chain(parsed, [BaseFileName.parse(base)] if base is not None else [])
    if (partition and not is_data_path(partition)) or any(
        name is None or name.file_id != operation.file_id for name in names
    ):
        raise CorruptMetadataError(
            where,
            f"the compaction plan names files that are not of file group {operation.file_id!r}",
            "Nothing was written. Remove the plan if it is not from a writer you trust.",
        )
