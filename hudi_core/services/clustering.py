"""Clustering: small files rewritten into larger ones, their rows in another order.

It is scheduled, which puts a plan on the timeline, and run, by the same process or by another one.
Readers see the old files until the new ones are complete, and the same rows in either. A file group
that a plan names and another write changed makes the clustering be given up: no row is lost.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import ClassVar

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
from hudi_core.actions.compaction import groups_under_compaction
from hudi_core.config.clustering import ClusteringConfig
from hudi_core.config.write import WriteConfig
from hudi_core.engine.base import Engine
from hudi_core.engine.choice import engine_for
from hudi_core.errors import (
    HudiError,
    TableServiceError,
    UnknownPartitionError,
)
from hudi_core.file_slice.deleted_positions import positions_of_slices
from hudi_core.file_slice.spilling import MergeMemory
from hudi_core.metadata.statistics.row_counts import row_counts
from hudi_core.model.capability import Capability
from hudi_core.model.commit import WriteOperation, WriteStatus
from hudi_core.model.files import FileSlice
from hudi_core.model.instant import Action, Instant
from hudi_core.model.instant_time import to_datetime
from hudi_core.model.protocols import TimelineView
from hudi_core.model.result import CommitResult
from hudi_core.rows.context import WriteContext
from hudi_core.rows.sorting import require_ordered
from hudi_core.services.planned import (
    NothingToDoError,
    PlannedService,
    StalePlanError,
    Written,
)
from hudi_core.table_handle import OpenTable
from hudi_core.txn.begin import Request
from hudi_core.txn.table_lock import TableLock
from hudi_core.write.clustered_rows import ClusterTask
from hudi_core.write.clustering import cluster_group

# --- the files that are rewritten, by table or by plan --------------------------------------------


def groups_of_plan(table: OpenTable, pending: PendingClustering) -> list[PlannedGroup]:
    """The groups of a plan, whose files must be present ones.

    ``StalePlanError`` is for a file group that another write changed since, be it by a log; a plan
    that names anything but files of the table is corrupt.
    """
    root = table.client.storage.root
    named = list(pending.own_groups(root))
    slices = table.views().view().latest_slices(sorted({path for path, _, _ in named}))
    files = [one.base_with_logs for one in slices]
    latest = {one.path: one for one in files if one is not None}
    logs = {path: frozenset(log.path for log in one.logs) for path, one in latest.items()}
    groups = []
    for partition, planned, outputs in named:
        stale = [path for path, own in planned.items() if logs.get(path) != own]
        if stale:  # guard looks-at-plan
            time_ = pending.instant.requested_time
            raise StalePlanError(
                f"The clustering {time_} cannot be run any more: another write has changed file "
                f"group {stale[0]} since it was planned",
                "It is given up, and nothing has changed. Schedule another one.",
                instant=time_,
            )
        groups.append(PlannedGroup(partition, tuple(latest[path] for path in planned), outputs))
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
    busy = {
        *groups_under_clustering(table.client, timeline),
        *groups_under_compaction(table.client, timeline, also_planned_logs=False),
    }
    slices = view.latest_slices(partitions)
    worn = worn_files(table, timeline, slices, config.dead_share)
    return plan_groups(slices, config, busy, worn)


def worn_files(
    table: OpenTable, timeline: TimelineView, slices: Iterable[FileSlice], share: float
) -> frozenset[str]:
    """Base files of a split table with many dead rows.

    ``share`` of their rows at least; the headers of their logs are read.
    """
    client = table.client
    if not client.config.is_split:
        return frozenset()
    logged = [one for one in slices if one.log_files]
    dead = positions_of_slices(client, logged, takes_rows=True)
    files = [one.base_file for one in logged if one.base_file is not None]
    rows = row_counts(client, timeline, [(one.instant, one.path) for one in files])
    return frozenset(path for path, some in dead.items() if len(some) >= share * rows[path])


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
    def logs(self) -> int:
        """How many log files are merged."""
        return sum(len(group.logs) for group in self.groups)

    @property
    def size(self) -> int:
        """Bytes of these files, and of their logs."""
        return sum(group.size for group in self.groups)

    @property
    def outputs(self) -> int:
        """How many files take their place."""
        return sum(group.outputs for group in self.groups)

    @property
    def new_files(self) -> int:
        """How many files took their place, or would."""
        return self.outputs if self.result is None else self.result.files


@dataclass(slots=True)
class ClusteringService(PlannedService[Clustering]):
    """Schedules and runs clusterings of one table.

    ``choose`` returns the files that a new plan rewrites.
    """

    choose: Callable[[OpenTable, ClusteringConfig], list[PlannedGroup]] = groups_to_rewrite

    action: ClassVar[Action] = Action.CLUSTERING
    operation: ClassVar[WriteOperation] = WriteOperation.CLUSTER

    def plan(self) -> Clustering:
        """What :meth:`cluster` would rewrite; nothing is changed."""
        table = self.table.as_stored()
        self.require(table)
        return Clustering(
            table.client.base_path, groups=tuple(self.choose(table, self.config.clustering))
        )

    def schedule(self) -> Clustering:
        """Put a plan on the timeline, for :meth:`run`; raises as :meth:`plan`."""
        found: list[PlannedGroup] = []
        try:
            instant = self.put_plan(partial(self._planned, found=found, at_once=False))
        except NothingToDoError:
            return Clustering(self.table.client.base_path)
        return Clustering(self.table.client.base_path, instant.requested_time, tuple(found))

    def cluster(self) -> Clustering:
        """Schedule and run in one; raises as :meth:`plan` and :meth:`run`."""
        found: list[PlannedGroup] = []
        plan = partial(self._planned, found=found, at_once=True)
        try:
            return self._run(plan, found, self.config.clustering)
        except NothingToDoError:
            return Clustering(self.table.client.base_path)

    def require(self, table: OpenTable) -> None:
        """Refuse a table that cannot be clustered."""
        require_clusterable(table)

    def run_scheduled(self, wanted: Instant) -> Clustering:
        client = self.table.client
        order = with_stored_order(read_clustering(client, wanted).plan, self.config.clustering)
        found: list[PlannedGroup] = []

        def take(table: OpenTable) -> Request:
            instant = self.taken(table, wanted)
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
            self.give_up(wanted)
            raise

    def _run(
        self,
        plan: Callable[[OpenTable], Request | None],
        found: list[PlannedGroup],
        order: ClusteringConfig,
    ) -> Clustering:
        """Begin a clustering, rewrite its files and commit it."""

        def rewrite(context: WriteContext) -> Written:
            statuses = self._rewrite(context, found, order)
            replaced: dict[str, tuple[str, ...]] = {}
            for group in found:
                ids = replaced.get(group.partition_path, ())
                replaced[group.partition_path] = (*ids, *(one.name.file_id for one in group.files))
            return statuses, replaced

        instant, result = self.execute(plan, rewrite)
        return Clustering(self.table.client.base_path, instant, tuple(found), result)

    def _rewrite(
        self, context: WriteContext, groups: Sequence[PlannedGroup], order: ClusteringConfig
    ) -> list[WriteStatus]:
        """Write the new files of all groups."""
        memory = MergeMemory.of(self.table.client.options)
        tasks = [
            ClusterTask(
                group.partition_path,
                group.files,
                group.outputs,
                order.sort_columns,
                order.layout,
                memory,
                group.left_out,
            )
            for group in groups
        ]
        weights = [task.weight for task in tasks]
        found = self.map_tasks(tasks, partial(cluster_group, context=context), weights)
        return [status for statuses in found for status in statuses]

    def _planned(self, table: OpenTable, *, found: list[PlannedGroup], at_once: bool) -> Request:
        """Request of a new clustering, whose groups are added to a list."""
        self.require(table)
        found.extend(self.choose(table, self.config.clustering))
        if not found:
            raise NothingToDoError
        plan = stored_plan(found, table.client.storage.root, self.config.clustering)
        return Request(plan_body(plan, at_once=at_once))


def rewrite_each(
    table: OpenTable, lock: TableLock, config: WriteConfig, paths: Collection[str]
) -> Clustering:
    """Rewrite data files one by one, their rows in order.

    It is a clustering, and takes the lock itself. Files that are the latest of their file groups no
    more, or that another service is about to replace, stay as they are.

    ``paths`` are relative to the table.
    """

    def choose(now: OpenTable, _: ClusteringConfig) -> list[PlannedGroup]:
        timeline = now.timeline()
        busy = {
            *groups_under_clustering(now.client, timeline),
            *groups_under_compaction(now.client, timeline),
        }
        return [
            PlannedGroup(one.partition_path, (file,), 1)
            for one in now.views().view(timeline).latest_slices()
            if (file := one.base_with_logs) is not None
            if file.path in paths and one.group not in busy
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
        done += service.run_all()
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
