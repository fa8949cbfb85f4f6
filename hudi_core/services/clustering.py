"""Clustering: small files rewritten into larger ones, their rows in another order.

It is scheduled, which puts a plan on the timeline, and run, by the same process or by another one.
Readers see the old files until the new ones are complete, and the same rows in either. A file group
that a plan names and another write changed makes the clustering be given up: no row is lost.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Final, TypeAlias

from hudi_core.actions.clustering import (
    PendingClustering,
    groups_under_clustering,
    plan_body,
    read_clustering,
)
from hudi_core.actions.clustering_plan import (
    PlannedGroup,
    chosen_partitions,
    plan_groups,
    stored_plan,
    with_stored_order,
)
from hudi_core.config.clustering import ClusteringConfig
from hudi_core.config.write import WriteConfig
from hudi_core.engine.base import Engine, TaskContext
from hudi_core.engine.choice import engine_for
from hudi_core.errors import (
    CommitConflictError,
    HudiError,
    InstantNotFoundError,
    TableServiceError,
    UnknownPartitionError,
)
from hudi_core.model.capability import Capability
from hudi_core.model.commit import WriteOperation, WriteStatus
from hudi_core.model.instant import Action, Instant
from hudi_core.model.instant_time import parse_instant_time, to_datetime
from hudi_core.model.result import CommitResult
from hudi_core.rows.context import WriteContext
from hudi_core.rows.sorting import require_ordered
from hudi_core.services.after_commit import InlineServices
from hudi_core.services.progress import Progress, no_progress
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn.begin import Request, begin, schedule
from hudi_core.txn.markers import LocalAttempts
from hudi_core.txn.recovery.rollback import drop_unwritten
from hudi_core.txn.scheduled import is_scheduled
from hudi_core.txn.schema_step import SchemaStep
from hudi_core.txn.state import TableState
from hudi_core.txn.table_lock import TableLock
from hudi_core.txn.table_service import locked_for_service
from hudi_core.txn.transaction import Transaction
from hudi_core.write.clustered_rows import ClusterTask
from hudi_core.write.clustering import cluster_group
from hudi_core.write.ending import commit_metadata, undone_on_failure
from hudi_core.write.input_schema import unchanged
from hudi_core.write.key_changes import key_tracking

_STAGE: Final = 2
"""Number of the step in file names: that of any write's writing."""


# --- the files that are rewritten, by table or by plan --------------------------------------------


class StalePlanError(CommitConflictError):
    """A scheduled clustering whose files another write has replaced."""


def groups_of_plan(table: OpenTable, pending: PendingClustering) -> list[PlannedGroup]:
    """The groups of a plan, whose files must be present ones.

    ``StalePlanError`` is for a file group that another write changed since; a plan that names
    anything but base files of the table is corrupt.
    """
    root = table.client.storage.root
    named = list(pending.own_groups(root))
    slices = table.views().view().latest_slices(sorted({path for path, _, _ in named}))
    latest = {one.base_file.path: one.base_file for one in slices if one.base_file is not None}
    groups = []
    for partition, paths, outputs in named:
        stale = [path for path in paths if path not in latest]
        if stale:  # guard looks-at-plan
            time_ = pending.instant.requested_time
            raise StalePlanError(
                f"The clustering {time_} cannot be run any more: another write has changed file "
                f"group {stale[0]} since it was planned",
                "It is given up, and nothing has changed. Schedule another one.",
                instant=time_,
            )
        groups.append(PlannedGroup(partition, tuple(latest[path] for path in paths), outputs))
    return groups


def groups_to_rewrite(table: OpenTable, config: ClusteringConfig) -> list[PlannedGroup]:
    """The groups of a new plan."""
    timeline = table.timeline()
    schema = table.client.schema_at(timeline)
    require_ordered(schema, config.sort_columns, ClusteringConfig.sort_columns.key)
    view = table.views().view(timeline)
    unknown = sorted(set(config.partitions) - set(view.partitions()))
    if unknown:
        raise UnknownPartitionError(
            f"The table has no rows in the partition {', '.join(map(repr, unknown))}",
            "Name partitions that Table.file_slices() lists.",
            partitions=tuple(unknown),
        )
    hour = to_datetime(table.client.config.zone.digits(datetime.now(UTC))).hour
    partitions = chosen_partitions(view.partitions(), config, hour)
    busy = groups_under_clustering(table.client, timeline)
    return plan_groups(view.latest_slices(partitions), config, busy)


def can_be_clustered(table: OpenTable) -> bool:
    """Whether the table's format knows clusterings, and it has no buckets."""
    has_buckets = table.client.config.buckets is not None
    return Capability.CLUSTERING in table.host.capabilities and not has_buckets


def require_clusterable(table: OpenTable) -> None:
    """Refuse a table that cannot be clustered.

    Neither tables with buckets nor those of a format that does not know clusterings can be.
    """
    table.client.require_writable()
    table.host.require(Capability.CLUSTERING)
    if table.client.config.buckets is not None:
        raise TableServiceError(
            f"{table.client.base_path} has buckets, each of which is one file group: no two can be "
            "rewritten together",
            "Its files are as few as its buckets; nothing is to be done.",
        )


# --- clustering -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Clustering:
    """A clustering, planned or done.

    ``instant`` is ``None`` of a plan that was only looked at, and where there is nothing to
    rewrite; ``result`` is ``None`` where it was not run.
    """

    path: str
    instant: str | None = None
    groups: tuple[PlannedGroup, ...] = ()
    result: CommitResult | None = None

    @property
    def files(self) -> int:
        """How many files are rewritten."""
        return sum(len(group.files) for group in self.groups)

    @property
    def size(self) -> int:
        """Bytes of these files."""
        return sum(group.size for group in self.groups)

    @property
    def outputs(self) -> int:
        """How many files take their place."""
        return sum(group.outputs for group in self.groups)

    @property
    def new_files(self) -> int:
        """How many files took their place, or would."""
        return self.outputs if self.result is None else self.result.files


_Function: TypeAlias = Callable[[TaskContext, ClusterTask], tuple[WriteStatus, ...]]


class _Counted:
    """A task's function that reports how many tasks are done."""

    def __init__(self, function: _Function, progress: Progress, total: int) -> None:
        self._function, self._progress, self._total = function, progress, total
        self._done = 0
        self._lock = threading.Lock()

    def __call__(self, task: TaskContext, item: ClusterTask) -> tuple[WriteStatus, ...]:
        found = self._function(task, item)
        with self._lock:
            self._done += 1
            self._progress(self._done, self._total)
        return found


class _NothingToDoError(Exception):
    """There is no file to rewrite."""


@dataclass(slots=True)
class ClusteringService:
    """Schedules and runs clusterings of one table.

    ``table`` is the present one after each call. ``progress`` counts groups, and is called only
    where tasks run in this process. ``choose`` returns the files that a new plan rewrites.
    """

    table: OpenTable
    lock: TableLock
    engine: Engine
    config: WriteConfig
    progress: Progress = no_progress
    choose: Callable[[OpenTable, ClusteringConfig], list[PlannedGroup]] = groups_to_rewrite

    def plan(self) -> Clustering:
        """What :meth:`cluster` would rewrite; nothing is changed."""
        table = self.table.as_stored()
        require_clusterable(table)
        return Clustering(
            table.client.base_path, groups=tuple(self.choose(table, self.config.clustering))
        )

    def schedule(self) -> Clustering:
        """Put a plan on the timeline, for :meth:`run`; raises as :meth:`plan`."""
        found: list[PlannedGroup] = []
        try:
            instant = schedule(
                self.table,
                self.lock,
                self._write_config,
                Action.CLUSTERING,
                partial(self._planned, found=found, at_once=False),
            )
        except _NothingToDoError:
            return Clustering(self.table.client.base_path)
        finally:
            self.table = self.table.afresh
        return Clustering(self.table.client.base_path, instant.requested_time, tuple(found))

    def cluster(self) -> Clustering:
        """Schedule and run in one; raises as :meth:`plan` and :meth:`run`."""
        found: list[PlannedGroup] = []
        plan = partial(self._planned, found=found, at_once=True)
        try:
            return self._run(plan, found, self.config.clustering)
        except _NothingToDoError:
            return Clustering(self.table.client.base_path)

    def run(self, instant: str | None = None) -> list[Clustering]:
        """Run scheduled clusterings, oldest first.

        Where another write changed a file group since it was planned, the clustering is given up,
        and those after it are not run. A damaged plan, or one that names anything but base files of
        the table, changes nothing.
        """
        self.table = self.table.as_stored().afresh
        self.table.client.require_writable()
        if any(one.action is Action.CLUSTERING for one in self._pending()):
            with locked_for_service(self.table, self.lock, self.config):
                pass  # plans of those that died are scheduled again
        scheduled = self._pending().where(is_scheduled)
        if instant is not None:
            wanted = scheduled.find(parse_instant_time(instant))
            if wanted is None:
                raise self._not_scheduled(instant)
            return [self._run_scheduled(wanted)]
        done = []
        for one in scheduled:
            try:
                done.append(self._run_scheduled(one))
            except InstantNotFoundError:
                continue  # another process runs it, or gave it up
        return done

    def _run_scheduled(self, wanted: Instant) -> Clustering:
        client = self.table.client
        order = with_stored_order(read_clustering(client, wanted).plan, self.config.clustering)
        found: list[PlannedGroup] = []

        def take(table: OpenTable) -> Request:
            instant = table.client.timeline().find(wanted.requested_time, Action.CLUSTERING)
            if instant is None or not is_scheduled(instant):
                raise self._not_scheduled(wanted.requested_time)
            pending = read_clustering(table.client, instant)
            require_ordered(
                table.client.schema, order.sort_columns, ClusteringConfig.sort_columns.key
            )
            found.extend(groups_of_plan(table, pending))
            body = table.client.active.read(instant)
            return Request(body, scheduled=instant)

        try:
            return self._run(take, found, order)
        except StalePlanError:
            self._give_up(wanted)
            raise

    def _pending(self) -> Timeline:
        return self.table.client.timeline().pending()

    def _not_scheduled(self, instant: str) -> InstantNotFoundError:
        return InstantNotFoundError(
            instant, f"the scheduled clusterings of {self.table.client.base_path}"
        )

    def _give_up(self, instant: Instant) -> None:
        """Take a scheduled plan off the timeline."""
        with self.lock.held():
            state = TableState.load(self.table)
            found = state.timeline.find(instant.requested_time, Action.CLUSTERING)
            if found is not None and is_scheduled(found):
                drop_unwritten(state, found)

    def _run(
        self,
        plan: Callable[[OpenTable], Request | None],
        found: list[PlannedGroup],
        order: ClusteringConfig,
    ) -> Clustering:
        """Begin a clustering, rewrite its files and commit it."""
        started = time.monotonic()
        steps: list[SchemaStep] = []

        def check(table: OpenTable) -> Request | None:
            require_clusterable(table)
            steps.append(unchanged(table))
            return plan(table)

        operation = WriteOperation.CLUSTER
        transaction = begin(
            self.table.on(self.engine),
            self.lock,
            self._write_config,
            Action.CLUSTERING,
            operation,
            plan=check,
        )
        self.table = transaction.table.afresh
        client = transaction.table.client
        with undone_on_failure(transaction), _given_up_on_conflict(transaction):
            transaction.schema_step = steps[0]
            transaction.after_commit = InlineServices(self.config.services)
            statuses = self._rewrite(transaction, found, order, steps[0])
            replaced: dict[str, tuple[str, ...]] = {}
            for group in found:
                ids = replaced.get(group.partition_path, ())
                replaced[group.partition_path] = (*ids, *(one.name.file_id for one in group.files))
            metadata = commit_metadata(
                statuses, steps[0].new, client.config.name, operation, replaced
            )
            committed = transaction.commit(metadata, statuses)
        transaction.timings["total"] = time.monotonic() - started
        statuses = [replace(status, changed_keys=None) for status in statuses]
        result = committed.result(operation, transaction.timings, statuses)
        instant = transaction.instant.requested_time
        return Clustering(client.base_path, instant, tuple(found), result)

    def _rewrite(
        self,
        transaction: Transaction,
        groups: Sequence[PlannedGroup],
        order: ClusteringConfig,
        step: SchemaStep,
    ) -> list[WriteStatus]:
        """Write the new files of all groups."""
        client = transaction.table.client
        context = WriteContext(
            client.base_path,
            client.storage_options,
            client.config,
            step.new,
            self.config,
            transaction.instant.requested_time,
            tracked=key_tracking(client, step.new, self.engine.shares_memory),
        )
        if self.engine.shares_memory:
            transaction.attempts = LocalAttempts(transaction.heartbeat)
            context = replace(context, attempts=transaction.attempts)
        tasks = [
            ClusterTask(
                group.partition_path,
                group.files,
                group.outputs,
                order.sort_columns,
                order.layout,
                group.left_out,
            )
            for group in groups
        ]
        begun = time.monotonic()
        function: _Function = partial(cluster_group, context=context)
        if self.engine.shares_memory:
            function = _Counted(function, self.progress, len(tasks))
        weights = [task.weight for task in tasks]
        found = self.engine.map_tasks(tasks, function, _STAGE, weights)
        transaction.timings["write"] = time.monotonic() - begun
        return [status for statuses in found for status in statuses]

    def _planned(self, table: OpenTable, *, found: list[PlannedGroup], at_once: bool) -> Request:
        """Request of a new clustering, whose groups are added to a list."""
        require_clusterable(table)
        found.extend(self.choose(table, self.config.clustering))
        if not found:
            raise _NothingToDoError
        plan = stored_plan(found, table.client.storage.root, self.config.clustering)
        return Request(plan_body(plan, at_once=at_once))

    @property
    def _write_config(self) -> WriteConfig:
        # a clustering is no write that could be a repetition, and carries no caller's keys
        return replace(self.config, extras=self.config.extras.without_idempotency())


@contextmanager
def _given_up_on_conflict(transaction: Transaction) -> Iterator[None]:
    """Let a plan that another write contradicts go with its clustering."""
    try:
        yield
    except CommitConflictError:
        transaction.scheduled = None
        raise


def rewrite_each(
    table: OpenTable, lock: TableLock, config: WriteConfig, paths: Collection[str]
) -> Clustering:
    """Rewrite data files one by one, their rows in order.

    It is a clustering, and takes the lock itself. Files that are the latest of their file groups no
    more, or that another clustering is about to replace, stay as they are.

    ``paths`` are relative to the table.
    """

    def choose(now: OpenTable, _: ClusteringConfig) -> list[PlannedGroup]:
        timeline = now.timeline()
        busy = groups_under_clustering(now.client, timeline)
        return [
            PlannedGroup(one.partition_path, (one.base_file,), 1)
            for one in now.views().view(timeline).latest_slices()
            if one.base_file is not None and one.base_file.path in paths and one.group not in busy
        ]

    given = replace(config, clustering=replace(config.clustering, sort_columns=()))
    return ClusteringService(table, lock, engine_for(None), given, choose=choose).cluster()


# --- clusterings that are due ---------------------------------------------------------------------

_log = logging.getLogger(__name__)


def cluster_if_due(
    table: OpenTable, lock: TableLock, config: WriteConfig, engine: Engine
) -> Sequence[Clustering]:
    """Schedule or run clusterings after a commit, as options ask.

    Takes the lock itself.

    With ``hoodie.clustering.inline`` what is scheduled is run first, then a new clustering where
    enough commits came since the last one. With ``hoodie.clustering.schedule.inline`` alone it is
    only scheduled. A table with buckets, or of a format that knows no clusterings, has none.

    ``table`` is as the commit left it. The commit remains valid where a clustering fails.
    """
    clustering = config.clustering
    if not (clustering.inline or clustering.schedule_inline) or not can_be_clustered(table):
        return ()
    service = ClusteringService(table.as_stored().afresh, lock, engine, config)
    done: list[Clustering] = []
    if clustering.inline:
        done += _run_scheduled(service)
    due = clustering.inline_max_commits if clustering.inline else clustering.schedule_max_commits
    if commits_since_clustering(service.table) >= due:
        new = service.cluster() if clustering.inline else service.schedule()
        done += [new] if new.groups else []
    return done


def cluster_after_commit(
    table: OpenTable, lock: TableLock, config: WriteConfig, engine: Engine
) -> None:
    """Schedule or run clusterings that are due after a commit.

    The commit has taken place: what fails now is logged, and left to the next one.
    """
    if not config.services.enabled:
        return
    try:
        cluster_if_due(table, lock, config, engine)
    except HudiError:
        where = table.client.base_path
        _log.warning("the clustering of %s after a commit failed", where, exc_info=True)


def commits_since_clustering(table: OpenTable) -> int:
    """Completed writes after the last clustering, be that complete or not."""
    timeline = table.client.timeline()
    writes = timeline.completed_writes()
    pending = [one.requested_time for one in timeline.pending() if _is_clustering(table, one)]
    done = (one.requested_time for one in reversed(writes) if _is_clustering(table, one))
    last = max([*pending, next(done, "")])
    return sum(one.requested_time > last for one in writes)


def _is_clustering(table: OpenTable, instant: Instant) -> bool:
    if instant.action is not Action.REPLACECOMMIT or not instant.is_completed:
        return instant.action is Action.CLUSTERING
    return table.client.active.read_notes(instant).operation_type == WriteOperation.CLUSTER


def _run_scheduled(service: ClusteringService) -> list[Clustering]:
    """Run what is scheduled; what is out of date is given up."""
    done: list[Clustering] = []
    for one in service.table.client.timeline().pending().where(is_scheduled):
        try:
            done += service.run(one.requested_time)
        except StalePlanError as stale:
            _log.warning("%s", stale)
        except InstantNotFoundError:
            continue  # another process runs it, or gave it up
    return done
