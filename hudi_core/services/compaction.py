"""Compaction: logs of file slices merged into base files, or one log.

It is scheduled, which puts a plan on the timeline, and run, by the same process or by another one.
Rows stay what they are. Writers go on meanwhile: logs that were not complete when it was planned
belong to the slice that it makes. Where another write has replaced a file of a plan, the compaction
is given up. Logs that a log compaction replaces stay on the storage, for past states, until their
slice is cleaned.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import ClassVar, TypeAlias

from hudi_core.actions.clustering import groups_under_clustering
from hudi_core.actions.compaction import (
    Choose,
    group_of_operation,
    groups_of_plan,
    groups_under_compaction,
    pending_compactions,
    plan_compaction,
    read_compaction,
)
from hudi_core.actions.compaction_plan import chosen_operations
from hudi_core.config.compaction import CompactionConfig, CompactionTrigger
from hudi_core.config.kinds import TableType
from hudi_core.config.write import WriteConfig
from hudi_core.engine.base import Engine
from hudi_core.errors import HudiError, TableServiceError
from hudi_core.file_slice.blocks import blocks_of_slice
from hudi_core.file_slice.spilling import MergeMemory
from hudi_core.file_slice.stored_slice import own_instants
from hudi_core.model.actions import CompactionOperation, CompactionPlan
from hudi_core.model.capability import Capability
from hudi_core.model.commit import WriteOperation, WriteStatus
from hudi_core.model.files import FileGroupId, FileSlice
from hudi_core.model.instant import Action, Instant
from hudi_core.model.instant_time import InstantTime, TimelineZone, to_datetime
from hudi_core.model.protocols import TimelineView
from hudi_core.model.result import CommitResult
from hudi_core.rows.context import WriteContext
from hudi_core.services.clustering import worn_files
from hudi_core.services.planned import (
    NothingToDoError,
    PlannedService,
    StalePlanError,
    Written,
)
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.serde import encode
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn.begin import Request
from hudi_core.txn.table_lock import TableLock
from hudi_core.write.compaction import CompactionTask, compact_logs, compact_slice, mergeable
from hudi_core.write.planning import MANY_LOGS

MergeLogs: TypeAlias = Callable[..., WriteStatus | None]
"""The task that merges the logs of one slice."""
_log = logging.getLogger(__name__)

# --- the slices that are merged, by table or by plan ----------------------------------------------


def slices_of_plan(table: OpenTable, instant: Instant, plan: CompactionPlan) -> list[FileSlice]:
    """The slices that a plan names, with the logs that it names.

    ``StalePlanError`` is for files that are not those of a latest slice any more; and, where logs
    are merged into one, for others that come before that one, and for slices that another service
    is to rewrite.
    """
    partitions = sorted({group.partition_path for group in groups_of_plan(plan)})
    slices = table.views().view().latest_slices(partitions)
    latest = {one.group: one for one in slices}
    if instant.action is Action.LOGCOMPACTION:
        busy = _busy_groups(table, table.timeline(), also_planned_logs=False)
        latest = {group: one for group, one in latest.items() if group not in busy}
    return [_planned_slice(one, latest, instant) for one in plan.operations or ()]


def _planned_slice(
    operation: CompactionOperation, latest: dict[FileGroupId, FileSlice], instant: Instant
) -> FileSlice:
    group = group_of_operation(operation)
    found = latest.get(group)
    named = set(operation.delta_file_paths or ())
    base = None if found is None or found.base_file is None else found.base_file.status.name
    present = () if found is None else found.log_files
    logs = tuple(log for log in present if log.status.name in named)
    is_whole = base == operation.data_file_path and len(logs) == len(named)
    if instant.action is Action.LOGCOMPACTION:
        is_whole &= all(log in logs or log.name.instant > instant.requested_time for log in present)
    if found is None or not is_whole:
        # guard looks-at-plan
        time_ = instant.requested_time
        raise StalePlanError(
            f"The {instant.action.value} {time_} cannot be run any more: another action has "
            f"changed file group {group.file_id} of partition {group.partition_path!r} since it "
            "was planned",
            "It is given up, and nothing has changed. Schedule another one.",
            instant=time_,
        )
    return FileSlice(group, found.base_instant, found.base_file, logs)


def new_plan(
    table: OpenTable,
    config: WriteConfig,
    action: Action = Action.COMPACTION,
    *,
    at_once: bool = False,
    is_last: bool = False,
    is_inline: bool = False,
) -> tuple[CompactionPlan | None, list[FileSlice]]:
    """The plan of a new compaction, and its slices.

    Runs under the lock, or as a look. Its logs are those of completed writes. ``is_last``: the
    table becomes COPY_ON_WRITE after it. ``is_inline``: of a split table only slices are taken that
    have many dead rows, or logs.
    """
    timeline = table.timeline()
    is_of_logs = action is Action.LOGCOMPACTION
    busy = _busy_groups(table, timeline, also_planned_logs=is_of_logs)
    slices = table.views().view(timeline).latest_slices()  # guard plans-completed
    free = [one for one in slices if one.group not in busy]
    if is_inline and table.client.config.is_split:
        worn = worn_files(table, timeline, free, config.clustering.dead_share)
        free = [
            one
            for one in free
            if len(one.log_files) > MANY_LOGS or (one.base_file and one.base_file.path in worn)
        ]
    choose: Choose = partial(chosen_operations, config=config.compaction)
    if is_of_logs:
        free, choose = _with_many_blocks(table, free, config.compaction.log_blocks), tuple
    plan = plan_compaction(
        free,
        choose,
        action=action,
        new_file_bytes=config.max_file_size,
        at_once=at_once,
        also=_hidden_groups(timeline, slices) if is_last else (),
    )
    latest = {one.group: one for one in slices}
    named = () if plan is None else plan.operations or ()
    return plan, [latest[group_of_operation(one)] for one in named]


def _hidden_groups(timeline: TimelineView, slices: Sequence[FileSlice]) -> list[FileGroupId]:
    """File groups that Hudi-Spark would not see as COPY_ON_WRITE.

    It knows no deltacommit, and takes a file of none of its instants for a complete one only
    where it is older than the first of them: which a compaction is where there is no other.
    """
    seen = (one for one in timeline.completed_writes() if one.action is not Action.DELTACOMMIT)
    times = {one.requested_time for one in seen}
    based = [(one, one.base_file.instant) for one in slices if one.base_file is not None]
    if times:
        first = min(times)
        return [one.group for one, time in based if time > first and time not in times]
    if not based or any(one.log_files for one in slices):
        return []
    return [min((one for one, _ in based), key=lambda one: one.total_size).group]


def _busy_groups(
    table: OpenTable, timeline: TimelineView, *, also_planned_logs: bool
) -> set[FileGroupId]:
    """File groups that pending services rewrite."""
    client = table.client
    return {
        *groups_under_clustering(client, timeline),
        *groups_under_compaction(client, timeline, also_planned_logs=also_planned_logs),
    }


def _with_many_blocks(table: OpenTable, slices: Sequence[FileSlice], least: int) -> list[FileSlice]:
    """The slices whose logs have so many blocks to merge into one."""

    def has_many(one: FileSlice) -> bool:
        logs = [log.status for log in one.log_files]
        blocks = blocks_of_slice(table.client.files, logs, own_instants(logs), None)
        return mergeable(blocks, least)

    several = [one for one in slices if len(one.log_files) > 1]
    found = table.client.run_map(has_many, several)
    return [one for one, is_wanted in zip(several, found, strict=True) if is_wanted]


def require_compactable(table: OpenTable) -> None:
    """Refuse a table that has no log files to merge."""
    table.client.require_writable()
    if table.client.config.table_type is not TableType.MERGE_ON_READ:
        raise TableServiceError(
            f"{table.client.base_path} is of type COPY_ON_WRITE: it has no log files to compact",
            "`hudi optimize` rewrites small files.",
        )
    is_split = table.client.config.is_split
    table.host.require(Capability.DELETION_VECTORS if is_split else Capability.MERGE_ON_READ)


# --- compaction -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Compaction:
    """A compaction, planned or done.

    ``instant`` is ``None`` of a plan that was only looked at, and where there is nothing to merge;
    ``result`` is ``None`` where it was not run. ``slices`` have the logs that are merged.
    """

    path: str
    instant: str | None = None
    slices: tuple[FileSlice, ...] = ()
    result: CommitResult | None = None

    @property
    def logs(self) -> int:
        """How many log files are merged."""
        return sum(len(one.log_files) for one in self.slices)

    @property
    def log_bytes(self) -> int:
        """Bytes of these log files."""
        return sum(log.status.size for one in self.slices for log in one.log_files)


@dataclass(slots=True)
class CompactionService(PlannedService[Compaction]):
    """Schedules and runs compactions of one table.

    ``is_last``: the table becomes COPY_ON_WRITE after it; ``is_inline``: it is run after a commit.
    """

    is_last: bool = False
    is_inline: bool = False

    action: ClassVar[Action] = Action.COMPACTION
    operation: ClassVar[WriteOperation] = WriteOperation.COMPACT
    merge: ClassVar[MergeLogs] = staticmethod(compact_slice)

    def plan(self) -> Compaction:
        """What :meth:`compact` would merge; nothing is changed."""
        table = self.table.as_stored()
        self.require(table)
        _, found = new_plan(table, self.config, self.action)
        return Compaction(table.client.base_path, slices=tuple(found))

    def schedule(self) -> Compaction:
        """Put a plan on the timeline, for :meth:`run`; raises as :meth:`plan`."""
        found: list[FileSlice] = []
        try:
            instant = self.put_plan(partial(self._planned, found=found, at_once=False))
        except NothingToDoError:
            return Compaction(self.table.client.base_path)
        return Compaction(self.table.client.base_path, instant.requested_time, tuple(found))

    def compact(self) -> Compaction:
        """Schedule and run in one; raises as :meth:`plan` and :meth:`run`."""
        found: list[FileSlice] = []
        try:
            return self._run(partial(self._planned, found=found, at_once=True), found)
        except NothingToDoError:
            return Compaction(self.table.client.base_path)

    def require(self, table: OpenTable) -> None:
        """Refuse a table that has no log files to merge."""
        require_compactable(table)

    def run_scheduled(self, wanted: Instant) -> Compaction:
        found: list[FileSlice] = []

        def take(table: OpenTable) -> Request:
            instant = self.taken(table, wanted)
            plan = read_compaction(table.client, instant)
            found.extend(slices_of_plan(table, instant, plan))
            return Request(table.client.active.read(instant), scheduled=instant)

        try:
            return self._run(take, found)
        except StalePlanError:
            self.give_up(wanted)
            raise

    def _run(
        self, plan: Callable[[OpenTable], Request | None], found: list[FileSlice]
    ) -> Compaction:
        """Begin a compaction, merge its slices and commit it."""

        def rewrite(context: WriteContext) -> Written:
            memory = MergeMemory.of(self.table.client.options)
            tasks = [CompactionTask(one, memory) for one in found]
            weights = [task.weight for task in tasks]
            done = self.map_tasks(tasks, partial(self.merge, context=context), weights)
            return [one for one in done if one is not None], None

        instant, result = self.execute(plan, rewrite)
        return Compaction(self.table.client.base_path, instant, tuple(found), result)

    def _planned(self, table: OpenTable, *, found: list[FileSlice], at_once: bool) -> Request:
        """Request of a new compaction, whose slices are added to a list."""
        self.require(table)
        plan, slices = new_plan(
            table,
            self.config,
            self.action,
            at_once=at_once,
            is_last=self.is_last,
            is_inline=self.is_inline,
        )
        if plan is None:
            raise NothingToDoError
        found.extend(slices)
        return Request(encode(plan))


class LogCompactionService(CompactionService):
    """Schedules and runs log compactions of one table.

    Logs of split tables have nothing but positions, which take no time to merge.
    """

    action: ClassVar[Action] = Action.LOGCOMPACTION
    operation: ClassVar[WriteOperation] = WriteOperation.LOG_COMPACT
    merge: ClassVar[MergeLogs] = staticmethod(compact_logs)

    def require(self, table: OpenTable) -> None:
        """Refuse a table that has no logs of rows, too."""
        require_compactable(table)
        if table.client.config.is_split:
            raise TableServiceError(
                f"{table.client.base_path} is of the mode split: its log files have no rows, but "
                "positions of deleted ones, and are not merged into each other",
                "`hudi compact` rewrites base files without the deleted rows.",
            )


# --- compactions that are due ---------------------------------------------------------------------


def compact_if_due(
    table: OpenTable,
    lock: TableLock,
    config: WriteConfig,
    engine: Engine,
    *,
    left: Timeline | None = None,
) -> Sequence[Compaction]:
    """Schedule or run compactions after a commit, as options ask.

    Takes the lock itself.

    With ``hoodie.compact.inline``, as by default, what is scheduled is run first, then a new
    compaction where one is due. With ``hoodie.compact.schedule.inline`` it is only scheduled. Then
    follow log compactions, with ``hoodie.log.compaction.inline``.

    ``table`` is as the commit left it, and ``left`` its timeline, where that is known and all of it
    is complete: then nothing is read to find that no compaction is due. The commit remains valid
    where a compaction fails.
    """
    wanted, zone = config.compaction, table.client.config.zone
    of_base = wanted.runs_inline or wanted.schedule_inline
    of_logs = wanted.logs_inline and not table.client.config.is_split
    if not (of_base or of_logs) or not can_be_compacted(table):
        return ()
    if left is not None:
        of_base &= is_due(left, wanted, zone)
        if table.client.config.is_split:
            # what is dead in few rows only is left alone, and not looked at after each commit
            deltas = _deltas_after(left, _last_compaction(left))
            of_base &= len(deltas) % wanted.max_delta_commits == 0
        if not of_base and not (of_logs and _are_logs_due(table, left, wanted)):
            return ()
    table, done = table.as_stored().afresh, list[Compaction]()
    if of_base:
        service = CompactionService(table, lock, engine, config, is_inline=True)
        if wanted.runs_inline:
            done += service.run_all()
        if is_due(service.table.client.timeline(), wanted, zone):
            new = service.compact() if wanted.runs_inline else service.schedule()
            done += [new] if new.slices else []
        table = service.table
    if of_logs:
        logs = LogCompactionService(table, lock, engine, config)
        done += logs.run_all()
        if _are_logs_due(logs.table, logs.table.client.timeline(), wanted):
            new = logs.compact()
            done += [new] if new.slices else []
    return done


def can_be_compacted(table: OpenTable) -> bool:
    """Whether a table has log files."""
    return table.client.config.table_type is TableType.MERGE_ON_READ


def compact_after_commit(
    table: OpenTable,
    lock: TableLock,
    config: WriteConfig,
    engine: Engine,
    *,
    left: Timeline | None = None,
) -> None:
    """Schedule or run compactions that are due after a commit.

    The commit has taken place: what fails now is logged, and left to the next one.
    """
    if not config.services.enabled:
        return
    try:
        compact_if_due(table, lock, config, engine, left=left)
    except HudiError:
        where = table.client.base_path
        _log.warning("the compaction of %s after a commit failed", where, exc_info=True)


def is_due(timeline: Timeline, config: CompactionConfig, zone: TimelineZone) -> bool:
    """Whether a new compaction is due.

    Not while one is pending, but where they are counted from the last one that was scheduled.
    """
    pending = pending_compactions(timeline)
    since_request = config.trigger is CompactionTrigger.NUM_COMMITS_AFTER_LAST_REQUEST
    if pending and not since_request:
        return False
    last = _last_compaction(timeline)
    if pending:
        last = max([pending[-1].requested_time, *([last] if last else [])])
    deltas = _deltas_after(timeline, last)
    if not deltas:
        return False
    are_many = len(deltas) >= config.max_delta_commits
    now = to_datetime(zone.digits(datetime.now(UTC)))
    begin = to_datetime(deltas[0].requested_time if last is None else last)
    is_late = (now - begin).total_seconds() >= config.max_delta_seconds
    match config.trigger:
        case CompactionTrigger.TIME_ELAPSED:
            return is_late
        case CompactionTrigger.NUM_AND_TIME:
            return are_many and is_late
        case CompactionTrigger.NUM_OR_TIME:
            return are_many or is_late
        case _:
            return are_many


def _are_logs_due(table: OpenTable, timeline: Timeline, config: CompactionConfig) -> bool:
    """Whether a log compaction is due.

    By deltacommits since the last compaction, of logs or not.
    """
    deltas = _deltas_after(timeline, _last_compaction(timeline))
    last = deltas[-config.log_blocks :]
    return len(last) == config.log_blocks and not any(
        table.client.active.read_notes(one).operation_type == WriteOperation.LOG_COMPACT
        for one in reversed(last)
    )


def _deltas_after(timeline: Timeline, last: InstantTime | None) -> list[Instant]:
    """Deltacommits that were completed after a compaction was requested."""
    return [
        one
        for one in timeline.completed().of_actions(Action.DELTACOMMIT)
        if last is None or one.effective_completion_time > last
    ]


def _last_compaction(timeline: Timeline) -> InstantTime | None:
    """Requested time of the last compaction that is complete.

    It is a commit, where writes are deltacommits.
    """
    commits = timeline.completed().of_actions(Action.COMMIT)
    return max((one.requested_time for one in commits), default=None)
