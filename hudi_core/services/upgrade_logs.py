"""Logs that are merged when a table gets another version.

Between versions 8 and 9 logs stay, unless the other version merges their rows by other rules: then
a compaction comes first.

Logs of version 6 do not stay. They have the names of their slices, not of their writes, so that
readers of later versions cannot know which of them count. Their slices are merged by the rules of
version 6 as a write that never completes there: its readers pass over the files, and its writers
roll them back. The timeline of the new version has it as a compaction, complete from the beginning.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

from hudi_core.actions.clustering import read_clustering
from hudi_core.actions.compaction import pending_compactions, plan_compaction
from hudi_core.actions.deletion import delete_together
from hudi_core.config.compaction import CompactionConfig, CompactionStrategyKind
from hudi_core.config.kinds import TableType
from hudi_core.config.merge_rules import merge_rules
from hudi_core.config.write import WriteConfig
from hudi_core.engine.base import Engine
from hudi_core.errors import TableServiceError, UnsupportedTableError
from hudi_core.file_slice.spilling import MergeMemory
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.lister import table_lister
from hudi_core.model.actions import CompactionPlan
from hudi_core.model.commit import CommitMetadata, WriteOperation
from hudi_core.model.files import BaseFileName, FileSlice
from hudi_core.model.instant import COMPACTIONS, PLANNED_ACTIONS, Action, Instant, State
from hudi_core.model.instant_time import InstantTime, next_instant_time
from hudi_core.rows.context import WriteContext
from hudi_core.services.compaction import CompactionService
from hudi_core.services.progress import Progress
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.active import LAYOUT_1
from hudi_core.timeline.serde import encode
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn.heartbeat import Heartbeat
from hudi_core.txn.markers import LocalAttempts
from hudi_core.txn.table_lock import TableLock
from hudi_core.write.compaction import CompactionTask, compact_slice
from hudi_core.write.ending import commit_metadata
from hudi_core.write.input_schema import unchanged

_STAGE: Final = 2
"""Number of the step in file names: that of any write's writing."""


def slices_to_merge(table: OpenTable, made: TableMetaClient) -> tuple[FileSlice, ...]:
    """The slices whose logs are to be merged.

    These logs a table of the new version must not have. ``made`` is its client as it will be. Plans
    that name such logs are refused, but for compactions of version 6, see :func:`given_up`.
    """
    client = table.client
    is_old = client.config.layout_version == LAYOUT_1
    timeline = client.timeline()
    has_logs = client.config.table_type is TableType.MERGE_ON_READ
    leave = is_old or made.config.layout_version == LAYOUT_1
    if not has_logs or not (leave or merge_rules(client.config) != merge_rules(made.config)):
        return ()
    slices = table.views().view(timeline).latest_slices()
    found = tuple(one for one in slices if one.log_files)
    if is_old:
        _require_unplanned(client, timeline, found)
    elif found:
        require_nothing_planned(client.base_path, timeline, () if not leave else COMPACTIONS)
    return found


def _require_unplanned(
    client: TableMetaClient, timeline: Timeline, slices: Iterable[FileSlice]
) -> None:
    """Refuse clusterings of logs, which a merged slice has no more."""
    groups = {one.group for one in slices}
    # that version names clusterings like other replacements
    for pending in timeline.pending().of_actions(Action.REPLACECOMMIT):
        if not groups.isdisjoint(read_clustering(client, pending).file_groups):
            raise UnsupportedTableError(
                client.base_path,
                f"has the pending clustering {pending.requested_time}, which names log files",
                "Run it, or give it up, with Apache Hudi first.",
            )


def require_nothing_planned(
    base_path: str, timeline: Timeline, given_up: Collection[Action] = ()
) -> None:
    """Refuse plans that name logs which are to be merged.

    Those of the actions ``given_up`` are so where nobody has begun them.
    """
    planned = [
        one.requested_time
        for one in timeline.pending()
        if one.action in PLANNED_ACTIONS and not (one.action in given_up and one.is_scheduled)
    ]
    if planned:
        raise TableServiceError(
            f"Clusterings or compactions of the table at {base_path} are pending "
            f"({', '.join(planned)}), and name log files",
            "Run them (`hudi compact --run`, `hudi cluster --run`) or roll them back first.",
            pending=planned,
        )


def merge_all(
    table: OpenTable,
    lock: TableLock,
    options: Mapping[str, str],
    engine: Engine,
    progress: Progress,
) -> None:
    """Compact every slice that has logs; takes the lock itself."""
    CompactionService(table, lock, engine, compacting_all(options), progress).compact()


def compacting_all(options: Mapping[str, str]) -> WriteConfig:
    """Options by which one compaction merges all logs."""
    every = {CompactionConfig.strategy.key: CompactionStrategyKind.UNBOUNDED.value}
    return WriteConfig.from_options({**options, **every})


# --- version 6 ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GivenUp:
    """Pending compactions of version 6, which an upgrade does in their place.

    ``instants`` are not on the new timeline, but for those that logs are ``named`` after: writers
    of version 6 name logs after the slice that a pending compaction is to make. There these are
    complete, with no file of their own, so that past states have the logs.
    """

    instants: tuple[Instant, ...] = ()
    named: tuple[Instant, ...] = ()

    @classmethod
    def of(cls, timeline: Timeline, slices: Iterable[FileSlice]) -> GivenUp:
        """Those of a timeline; ``slices`` are the latest with logs."""
        pending = pending_compactions(timeline, COMPACTIONS)
        times = {log.name.instant for one in slices for log in one.log_files}
        return cls(pending, tuple(one for one in pending if one.requested_time in times))

    def is_of(self, instant: Instant) -> bool:
        """Whether a file of a timeline is of one of them."""
        return any(
            (one.requested_time, one.action) == (instant.requested_time, instant.action)
            for one in self.instants
        )

    def delete_files(self, client: TableMetaClient) -> None:
        """Delete what those that were begun have written.

        Archived later, their instants would count as completed.
        """
        begun = {one.requested_time for one in self.instants if one.state is State.INFLIGHT}
        if not begun:
            return
        lister = table_lister(client)
        listed = lister.list_files(lister.list_partitions())
        written = [
            file.path
            for files in listed.values()
            for file in files
            if (name := BaseFileName.parse(file.name)) is not None and name.instant in begun
        ]
        delete_together(client.data, client.map_requests, written)

    def put(self, client: TableMetaClient, made: TableMetaClient) -> None:
        """Put those that logs are named after onto the new timeline."""
        for one in self.named:
            timeline = made.active.load()
            taken = {each.completion_time for each in timeline} | {
                each.requested_time for each in timeline
            }
            done = next_instant_time(one.requested_time, one.requested_time)
            while done in taken:
                done = next_instant_time(done, done)
            requested = one.to(State.REQUESTED)
            inflight = made.active.begin(requested, client.active.read(requested))
            metadata = CommitMetadata(compacted=True, operation_type=WriteOperation.COMPACT)
            made.active.complete(inflight, done, encode(metadata), timeline)


@dataclass(frozen=True, slots=True)
class MergedBefore:
    """What a table's first compaction of the new version has done.

    ``requested`` is when it began, in the former version.
    """

    requested: InstantTime
    plan: CompactionPlan
    metadata: CommitMetadata

    def put(self, made: TableMetaClient) -> None:
        """Put it on the new timeline, after all that is there."""
        instant = Instant(self.requested, Action.COMPACTION, State.REQUESTED)
        inflight = made.active.begin(instant, encode(self.plan))
        timeline = made.active.load()
        done = made.clock.next_time(timeline)
        made.active.complete(inflight, done, encode(self.metadata), timeline)


@contextmanager
def merged_in_version_6(
    table: OpenTable,
    slices: Sequence[FileSlice],
    config: WriteConfig,
    engine: Engine,
    progress: Progress,
) -> Iterator[MergedBefore | None]:
    """Merge slices of a table of version 6.

    Nothing changes for its readers. As long as the context is, the write has its heartbeat.
    """
    plan = plan_compaction(slices, at_once=True)
    if plan is None:
        yield None
        return
    client = table.client
    time_ = client.clock.next_time()
    # the heart beats before the instant can be seen, so that no writer takes it for dead
    heartbeat = Heartbeat(client.scratch, time_, config.heartbeat_interval_ms)
    heartbeat.start()
    try:
        for state in (State.REQUESTED, State.INFLIGHT):
            pending = Instant(time_, Action.DELTACOMMIT, state)
            client.storage.put_if_absent(client.active.path(pending), b"")
        attempts = LocalAttempts(heartbeat) if engine.shares_memory else None
        schema = unchanged(table).new
        context = WriteContext(
            client.base_path,
            client.storage_options,
            client.config,
            schema,
            config,
            time_,
            attempts=attempts,
        )
        memory = MergeMemory.of(client.options)
        tasks = [CompactionTask(one, memory, client.timeline()) for one in slices]
        weights = [task.weight for task in tasks]
        run = partial(compact_slice, context=context)
        statuses = engine.map_tasks(tasks, run, _STAGE, weights)
        progress(len(tasks), len(tasks))
        if attempts is not None:
            attempts.wait_for_flushes()
        name = client.config.name
        metadata = commit_metadata(statuses, schema, name, WriteOperation.COMPACT)
        yield MergedBefore(time_, plan, metadata)
    finally:
        heartbeat.stop()
