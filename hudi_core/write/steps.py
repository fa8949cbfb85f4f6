"""The steps of a write, pure functions run by the engine."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from typing import Any, Final, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from hudi_core.config.kinds import InsertDuplicates
from hudi_core.config.write import WriteConfig
from hudi_core.engine.base import Engine, TaskContext, TaskFunction
from hudi_core.errors import PartitionValueError
from hudi_core.index.collisions import ambiguity_of, require_distinct_rows
from hudi_core.index.incoming import Scope, arrival_order, key_names, record_keys
from hudi_core.index.record_index import RecordIndex, RecordTagging, has_record_index
from hudi_core.index.stored_filters import StoredFilters, key_ranges
from hudi_core.index.tagging import Tagged, Tagging, scopes, staged_for, without_duplicates
from hudi_core.keygen.ambiguity import Ambiguity
from hudi_core.model.client import SliceView
from hudi_core.model.commit import WriteStatus
from hudi_core.model.files import BaseFile, FileGroupId, FileId, FileSlice, PartitionPath
from hudi_core.model.operation import Operation
from hudi_core.model.protocols import TimelineView
from hudi_core.rows.context import WriteContext
from hudi_core.rows.deciding import marks_deletes
from hudi_core.rows.filling import folded
from hudi_core.rows.gathering import take
from hudi_core.rows.sorting import arrangement_for, sorts
from hudi_core.rows.staging import (
    INGEST_ORDER,
    LAST_INGESTED,
    PartBuilder,
    StagedPart,
    partition_rows,
    stage_rows,
)
from hudi_core.schema.absence import ABSENT
from hudi_core.schema.table_schema import TableSchema
from hudi_core.table_handle import OpenTable
from hudi_core.txn.conflicts import require_no_early_conflicts
from hudi_core.write.append_handle import append_group, give_up_rows
from hudi_core.write.bulk_insert import bulk_insert_rows
from hudi_core.write.merge_handle import GroupTask, MovedRows
from hudi_core.write.nesting import can_nest, require_unnested_partitions, unmark_partitions
from hudi_core.write.planning import (
    BucketAssignment,
    FileSizing,
    GroupsUnderClustering,
    GroupWrite,
    average_record_size,
    warn_of_logs,
)
from hudi_core.write.replacing import replaced_slices

R = TypeVar("R")

_STAGE, _TAG, _WRITE, _FOLD, _CHECK, _GIVE_UP = range(6)
_MOST_REWRITTEN: Final = 4
"""Rewriting a small file costs its bytes now, and spares a small file group later."""
_GROUP_BYTES: Final = 100 << 10
"""A file group is as much work as so many bytes of rows, beside its rows."""
_SHORT_TASK: Final = 32 * _GROUP_BYTES
_LONG_TASK: Final = 64 << 20
"""Bytes of rows that a partition of a split table has in memory, where it is one task."""
_TIMES_IN_MEMORY: Final = 4
"""Bytes of a row in memory for each of its bytes in a file, about."""


class WriteSession(Protocol):
    """The write that steps belong to: a transaction or dry run."""

    @property
    def table(self) -> OpenTable: ...
    @property
    def began(self) -> TimelineView:
        """The timeline that the write builds on."""
        ...

    @property
    def timings(self) -> dict[str, float]:
        """Seconds by step; filled in as the write goes."""
        ...


@dataclass(frozen=True, slots=True)
class WritePlan:
    """What a write is going to do."""

    parts: list[StagedPart]
    tagged: dict[PartitionPath, Tagged]
    groups: list[GroupWrite]


@dataclass(slots=True)
class WriteSteps:
    """The steps between ``begin`` and ``commit``: stage, locate, plan, write.

    ``clustering`` are the file groups that pending clusterings are about to replace. ``partitions``
    are known once the rows are staged, and include those replaced with them; ``replaces`` are
    replaced even if no row belongs to them.
    """

    engine: Engine
    config: WriteConfig
    transaction: WriteSession
    context: WriteContext
    staged: TableSchema
    operation: Operation
    view: SliceView
    clustering: GroupsUnderClustering
    partitions: list[PartitionPath] = field(default_factory=list)
    replaces: Sequence[PartitionPath] = ()

    def run(self, data: Any) -> list[WriteStatus]:
        """Write the rows to invisible data files; return their statuses."""
        engine, context = self.engine, self.context
        if self.writes_straight:
            with self._timed("write"):
                function = partial(bulk_insert_rows, context=context, staged=self.staged)
                statuses = engine.map_input(self._arranged(data), function, _STAGE)
            self._require_unnested({PartitionPath(status.partition_path) for status in statuses})
            return statuses
        plan = self.plan(data, engine.shares_memory)
        if self.config.detects_early:
            self._require_no_early_conflicts(plan.groups)
        with self._timed("write"):
            return self._write_groups(plan.groups, plan.parts, plan.tagged)

    def plan(self, data: Any, in_memory: bool) -> WritePlan:
        """Stage and locate the rows, and assign their file groups.

        With ``in_memory`` what is staged is kept on the driver, else below the table.
        """
        with self._timed("stage"):
            stage = partial(
                stage_rows, context=self.context, schema=self.staged, in_memory=in_memory
            )
            arranged = self._arranged(data) if self.writes_straight else data
            parts = self.engine.map_input(arranged, stage, _STAGE)
        rows = partition_rows(parts)
        self.partitions = list(dict.fromkeys((*rows, *self.replaces)))
        self._require_distinct(parts)
        parts = [*parts, *self._folded(parts, in_memory)]
        self._require_unnested(rows)
        self._compare_inserts(parts, in_memory)
        index = self._record_index(sum(rows.values())) if parts else None
        with self._timed("tag"):
            if index is None:
                base_files = self._latest_base_files(self.partitions)
                tagged = self._tag(parts, base_files, in_memory)
            else:
                base_files, tagged = self._tag_by_index(index, parts, in_memory)
        if self._looks_for_duplicates:
            tagged = without_duplicates(tagged, parts, self.context, self.staged)
        groups = self._plan(rows, base_files, tagged, parts)
        self._require_not_clustered(groups)
        return WritePlan(parts, tagged, groups)

    def _require_distinct(self, parts: Sequence[StagedPart]) -> None:
        """Refuse rows that share a record key without being one row."""
        if parts and not self.writes_straight:
            found = self._scopes(parts, {})
            require_distinct_rows(self.engine, found, self.context, self.staged, _CHECK)

    def _compare_inserts(self, parts: Sequence[StagedPart], in_memory: bool) -> None:
        """Refuse inserts whose keys are looked up nowhere, and are another row's."""
        adds = not (self.uses_index or self.writes_straight or self.operation.is_replacing)
        if not adds or ambiguity_of(parts) is not Ambiguity.ACTIVE:
            return
        everywhere = None if self.context.is_global else self.partitions
        found = self._scopes(parts, self._base_files_of(everywhere))
        ranges = partial(key_ranges, self.transaction.table.client)
        self._tagging(in_memory).compare(self.engine, found, _CHECK, ranges)

    def _require_not_clustered(self, groups: Iterable[GroupWrite]) -> None:
        """Refuse to change file groups under clustering."""
        changed = {FileGroupId(one.partition_path, one.file_id) for one in groups if one.base_file}
        if self.operation.is_replacing and self.clustering.groups:
            gone = replaced_slices(self.view, self.operation, self.partitions)
            changed |= {one.group for one in gone}
        self.clustering.require_none_of(changed)

    def _require_no_early_conflicts(self, groups: Iterable[GroupWrite]) -> None:
        require_no_early_conflicts(
            self.transaction.table.client,
            self.context.instant,
            {FileGroupId(one.partition_path, one.file_id) for one in groups if one.base_file},
            self.config.heartbeat_interval_ms,
            self.config.heartbeat_misses,
        )

    def _folded(self, parts: Sequence[StagedPart], in_memory: bool) -> list[StagedPart]:
        """Merge incoming rows with one key where they give each other values.

        What comes out arrives last: it is what is left of the rows when they are combined.
        """
        rules = self.context.rules
        fills = rules.fill is not None and rules.fills_batch
        fills = fills or ABSENT in self.staged.arrow.names
        if not (parts and fills and self._combines) or self.operation.deletes:
            return []
        fold = partial(fold_rows, context=self.context, schema=self.staged, in_memory=in_memory)
        paths = list(partition_rows(parts))
        tasks = scopes(parts, {}, paths, self.context, combine=True, deletes_all=False)
        found = self.engine.map_tasks(tasks, fold, _FOLD)
        return [part for part in found if part is not None]

    def _arranged(self, data: Any) -> Any:
        arrangement = arrangement_for(self.context)
        return data if arrangement is None else self.engine.arrange(data, arrangement)

    @property
    def writes_straight(self) -> bool:
        """Whether each input task writes its rows to files of its own."""
        straight = self.operation.writes_straight and not self._combines
        return straight and self.context.table.buckets is None

    @property
    def uses_index(self) -> bool:
        """Whether incoming keys are looked for among the stored ones."""
        return self.operation.by_key or self._looks_for_duplicates

    @property
    def _looks_for_duplicates(self) -> bool:
        return self.config.duplicates(self.operation) is not InsertDuplicates.NONE

    @property
    def _combines(self) -> bool:
        return self.context.combines(self.operation)

    def _require_unnested(self, written: Iterable[PartitionPath]) -> None:
        """Refuse partitions within partitions."""
        if can_nest(self.context.table) and not self.operation.deletes:
            client, paths = self.transaction.table.client, sorted(written)
            try:
                require_unnested_partitions(
                    client.data, client.config, client.run_map, self.view, paths
                )
            except PartitionValueError:
                unmark_partitions(client.storage, paths, self.context.instant)
                raise

    def _latest_base_files(
        self, partitions: Sequence[PartitionPath]
    ) -> dict[PartitionPath, tuple[BaseFile, ...]]:
        """Return the latest base files of partitions, by file id.

        None for operations that look nothing up and make new groups only.
        """
        in_buckets = self.context.table.buckets and self.operation.writes_straight
        if self.operation.new_groups_only and not in_buckets:
            return {}
        everywhere = self.uses_index and self.context.is_global
        return self._base_files_of(None if everywhere else partitions)

    def _base_files_of(
        self, partitions: Collection[PartitionPath] | None
    ) -> dict[PartitionPath, tuple[BaseFile, ...]]:
        """The latest base files of partitions, with their logs.

        File groups of logs alone are among them.
        """
        found: dict[PartitionPath, list[BaseFile]] = {}
        wanted = None if partitions is None else sorted(partitions)
        slices = self.view.latest_slices(wanted)
        adding = self._groups_with_added_keys(slices)
        for slice_ in slices:
            base_file = slice_.base_with_logs
            if base_file is None:
                base_file = slice_.of_logs_alone
            elif base_file.logs:
                base_file = replace(base_file, adds_keys=slice_.group in adding)
            found.setdefault(slice_.partition_path, []).append(base_file)
        return {
            path: tuple(sorted(files, key=lambda file: file.name.file_id))
            for path, files in found.items()
        }

    def _groups_with_added_keys(self, slices: Iterable[FileSlice]) -> Collection[FileGroupId]:
        """File groups whose logs may have keys that their base files lack.

        Commits say in which logs they inserted, and a session reads each once. A log whose commit
        is archived may have some, and so may those of buckets.
        """
        logged = [one for one in slices if one.log_files]
        if self.context.table.buckets is not None:
            return {one.group for one in logged}
        times = {log.name.instant for one in logged for log in one.log_files}
        client, completed = self.transaction.table.client, self.transaction.began.completed_writes()
        commits = [one for one in completed if one.requested_time in times]
        notes = list(client.run_map(client.active.read_notes, commits))
        inserted = {
            FileGroupId(PartitionPath(path), FileId(stat.file_id or ""))
            for one in notes
            for path, stats in one.partition_to_write_stats.items()
            for stat in stats
            if stat.log_files
        }
        archived = times.difference(one.requested_time for one in commits)
        return {
            one.group
            for one in logged
            if one.group in inserted
            or not archived.isdisjoint(log.name.instant for log in one.log_files)
        }

    def _record_index(self, keys: int) -> RecordIndex | None:
        """Return the record index, if used for so many keys.

        ``None`` also where a planned write would first build it.
        """
        client, began = self.transaction.table.client, self.transaction.began
        asks = self.uses_index and self.context.uses_record_index
        if not (asks and has_record_index(client)):
            return None
        index = RecordIndex.open(client, began)
        if self.operation.by_key and index.reads_more_than_files(
            keys, self.partitions, lambda: sum(map(len, self._candidates().values()))
        ):
            return None
        return index

    def _candidates(self) -> dict[PartitionPath, tuple[BaseFile, ...]]:
        """The latest base files of partitions in which incoming keys can be."""
        return self._base_files_of(None if self.context.is_global else self.partitions)

    def _tag_by_index(
        self, index: RecordIndex, parts: Sequence[StagedPart], in_memory: bool
    ) -> tuple[dict[PartitionPath, tuple[BaseFile, ...]], dict[PartitionPath, Tagged]]:
        asking = [replace(scope, probes_keys=True) for scope in self._scopes(parts, {})]
        tagging = RecordTagging(self._tagging(in_memory))
        return tagging.run(self.engine, index, asking, self._base_files_of, _TAG)

    def _tag(
        self,
        parts: Sequence[StagedPart],
        base_files: dict[PartitionPath, tuple[BaseFile, ...]],
        in_memory: bool,
    ) -> dict[PartitionPath, Tagged]:
        uses_index = self.uses_index
        has_deletes = marks_deletes(self.staged.arrow.names, self.context.rules)
        asks = uses_index or self._combines or has_deletes or self.context.table.buckets
        if not (parts and asks):
            return {}
        tasks = self._scopes(parts, base_files if uses_index else {})
        ranges = partial(key_ranges, self.transaction.table.client)
        known = ranges if uses_index and self.context.table.buckets is None else None
        filters = self._stored_filters() if known is not None else None
        return self._tagging(in_memory).run(self.engine, tasks, _TAG, known, filters)

    def _stored_filters(self) -> StoredFilters | None:
        """Return the stored bloom filters the index is to ask."""
        index = self.config.index
        if not (index.index_type.asks_filters and index.asks_metadata):
            return None
        return StoredFilters.open(self.transaction.table.client, self.transaction.began)

    def _scopes(
        self,
        parts: Sequence[StagedPart],
        files: Mapping[PartitionPath, Sequence[BaseFile]],
    ) -> list[Scope]:
        context, operation = self.context, self.operation
        return scopes(
            parts,
            files,
            self.partitions,
            context,
            combine=self._combines,
            deletes_all=operation.deletes,
            sort=operation.writes_straight and sorts(context),
        )

    def _tagging(self, in_memory: bool) -> Tagging:
        moves = self.context.moves and self.operation.updates
        return Tagging(self.context, self.staged, moves, in_memory)

    def _plan(
        self,
        rows: dict[PartitionPath, int],
        base_files: dict[PartitionPath, tuple[BaseFile, ...]],
        tagged: dict[PartitionPath, Tagged],
        parts: Sequence[StagedPart],
    ) -> list[GroupWrite]:
        instant, buckets = self.context.instant, self.context.table.buckets
        sizing = FileSizing(
            self.config,
            instant,
            partial(self._record_size, parts),
            self.clustering.groups,
            appends=self.context.appends,
            most_rewritten=self._most_rewritten,
            splits=self.context.table.is_split and not self.operation.deletes,
        )
        groups = []
        for path, count in (dict.fromkeys(tagged, 0) | rows).items():
            found = tagged.get(path)
            located = found.located if found else {}
            inserts = found.inserts if found else count
            if self.operation.deletes:
                inserts = 0
            if buckets is not None and found is not None:
                assignment = BucketAssignment(
                    buckets, instant, self.context.base_path, appends=self.context.appends
                )
                new = found.buckets if inserts else {}
                groups += assignment.assign(path, base_files.get(path, ()), located, new)
                continue
            groups += sizing.assign(path, base_files.get(path, ()), located, inserts)
        return groups

    @property
    def _most_rewritten(self) -> int | None:
        """Greatest size of a rewritten small file, as multiple of its inserts.

        Hudi's own limit of small files is obeyed where it is set.
        """
        is_set = WriteConfig.small_file_limit.key in self.transaction.table.client.options
        return _MOST_REWRITTEN if self.context.appends and not is_set else None

    def row_bytes_without_commits(self, parts: Sequence[StagedPart]) -> int:
        """Bytes of a row in a file, where no commit shows them."""
        option = WriteConfig.record_size_estimate
        rows = sum(sum(part.rows.values()) for part in parts)
        if not rows or option.key in self.transaction.table.client.options:
            return self.config.record_size_estimate
        in_memory = sum(part.size for part in parts) // rows
        return max(option.default, in_memory // _TIMES_IN_MEMORY)

    def _record_size(self, parts: Sequence[StagedPart]) -> int:
        """Return bytes per row, from the newest writes' metadata."""
        client = self.transaction.table.client
        newest_first = reversed(self.transaction.began.completed_writes())
        config = replace(self.config, record_size_estimate=self.row_bytes_without_commits(parts))
        return average_record_size(map(client.active.read_notes, newest_first), config)

    def _write_groups(
        self,
        groups: Sequence[GroupWrite],
        parts: Sequence[StagedPart],
        tagged: dict[PartitionPath, Tagged],
    ) -> list[WriteStatus]:
        tasks = [
            GroupTask(
                group,
                staged_for(parts, group.partition_path, tagged),
                tagged.get(group.partition_path),
                self.operation,
            )
            for group in groups
        ]
        warn_of_logs(groups, self.context.base_path)
        function = partial(append_group, context=self.context, staged_schema=self.staged)
        if not self.context.table.is_split:
            written = self._run_groups(tasks, function, _WRITE)
            return [status for some in written for status in some]
        by_partition: dict[PartitionPath, list[GroupTask]] = {}
        for one in tasks:
            by_partition.setdefault(one.group.partition_path, []).append(one)
        if not self._is_even([[one.group for one in some] for some in by_partition.values()]):
            return split(
                tasks, self._run_groups, self.context, self.staged, self.engine.shares_memory
            )
        firsts = accumulate(map(len, by_partition.values()), initial=0)
        items = list(zip(firsts, by_partition.values(), strict=False))
        weights = [sum(one.group.weight for one in some) for _, some in items]
        write = partial(split_partition, context=self.context, staged=self.staged)
        return [
            status
            for some in self.engine.map_tasks(items, write, _WRITE, weights)
            for status in some
        ]

    def _is_even(self, partitions: Sequence[Sequence[GroupWrite]]) -> bool:
        """Whether partitions are tasks of which none is much longer than others."""
        costs = [sum(one.weight + _GROUP_BYTES for one in some) for some in partitions]
        heaviest = max(costs, default=0)
        share = sum(costs) // self.engine.parallelism
        return heaviest <= max(_SHORT_TASK, min(_LONG_TASK, share))

    def _run_groups(
        self, tasks: Sequence[GroupTask], function: TaskFunction[GroupTask, R], stage: int
    ) -> list[R]:
        weights = [one.group.weight for one in tasks]
        return self.engine.map_tasks(tasks, function, stage, weights)

    @contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        started = time.monotonic()
        yield
        self.transaction.timings[step] = time.monotonic() - started


# --- the groups of a split table -----------------------------------------------------------------


class RunGroups(Protocol):
    """Runs a function for each of some file groups."""

    def __call__(
        self, tasks: Sequence[GroupTask], function: TaskFunction[GroupTask, R], stage: int, /
    ) -> list[R]: ...


def split(
    tasks: Sequence[GroupTask],
    run: RunGroups,
    context: WriteContext,
    staged: TableSchema,
    in_memory: bool,
) -> list[WriteStatus]:
    """Delete the rows that change, then write their successors.

    These and new rows go into file groups that give up no row in this write: its deletes belong to
    a whole slice of a group, and would take its new rows as well.
    """
    giving = [one for one in tasks if one.group.appends]
    give_up = partial(give_up_rows, context=context, staged_schema=staged, in_memory=in_memory)
    statuses: list[WriteStatus] = []
    left = [one for one in tasks if not one.group.appends]
    moved: dict[PartitionPath, list[MovedRows]] = {}
    for task, given in zip(giving, run(giving, give_up, _GIVE_UP), strict=True):
        if given is None:
            left.append(replace(task, group=replace(task.group, appends=False)))
            continue
        if given.status is not None:
            statuses.append(given.status)
        if given.rows is not None:
            rows = MovedRows(given.rows, 0, given.count, given.updates)
            moved.setdefault(task.group.partition_path, []).append(rows)
    append = partial(append_group, context=context, staged_schema=staged)
    written = run(with_moved(left, moved), append, _WRITE)
    return [*statuses, *(status for some in written for status in some)]


def split_partition(
    task: TaskContext,
    item: tuple[int, Sequence[GroupTask]],
    context: WriteContext,
    staged: TableSchema,
) -> list[WriteStatus]:
    """Write the groups of one partition.

    They are numbered from the number on that is given with them.
    """
    first, tasks = item

    def run(
        tasks: Sequence[GroupTask], function: TaskFunction[GroupTask, R], stage: int, /
    ) -> list[R]:
        return [
            function(TaskContext(first + number, stage, task.attempt), one)
            for number, one in enumerate(tasks)
        ]

    return split(tasks, run, context, staged, in_memory=True)


def with_moved(
    tasks: Sequence[GroupTask], moved: Mapping[PartitionPath, Iterable[MovedRows]]
) -> list[GroupTask]:
    """Groups with the rows that others of their partitions give up.

    New ones without a row are left out. Each takes as many as it has room for, the last one of a
    partition all that are left.
    """
    last = {one.group.partition_path: one.group.file_id for one in tasks if one.group.moved}
    ends = {FileGroupId(path, last[path]) for path in moved}
    waiting = {path: deque(rows) for path, rows in moved.items()}
    found = []
    for one in tasks:
        group, path = one.group, one.group.partition_path
        room = sys.maxsize if FileGroupId(path, group.file_id) in ends else group.moved
        own = (*_first_of(waiting.get(path, deque()), room),)
        if own or group.inserts or group.base_file is not None:
            found.append(replace(one, moved=own))
    return found


def _first_of(waiting: deque[MovedRows], room: int) -> Iterator[MovedRows]:
    """Take as many rows as there is room for."""
    while waiting and room:
        one = waiting.popleft()
        end = min(one.end, one.begin + room)
        room -= end - one.begin
        yield replace(one, end=end)
        if end < one.end:
            waiting.appendleft(replace(one, begin=end))


# --- incoming rows of one key ---------------------------------------------------------------------


def fold_rows(
    task: TaskContext, scope: Scope, context: WriteContext, schema: TableSchema, in_memory: bool
) -> StagedPart | None:
    """Stage the one row that each key with several rows comes to.

    Memory holds the keys of the scope, and all columns of rows whose key is there several times.

    The part is of the partition of the row that counts; ``None`` where every key occurs once. With
    ``in_memory`` the part holds the rows, and no file is written.
    """
    staged = scope.parts[0].schema
    wanted = {INGEST_ORDER, *key_names(context)}
    names = [name for name in staged.names if name in wanted]
    rows = scope.sources.table(context, scope.parts, names)
    keys = record_keys(rows, context, schema).combine_chunks().dictionary_encode()
    codes = keys.indices.to_numpy()
    numbers = np.flatnonzero(np.bincount(codes)[codes] > 1)
    if not len(numbers):
        return None
    _, codes = np.unique(codes[numbers], return_inverse=True)
    whole = scope.sources.take(context, scope.parts, numbers, staged)
    order = arrival_order(whole)
    if order is not None:
        whole, codes, numbers = take(whole, order), codes[order], numbers[order]
    rules = context.rules
    # rows of a batch complete each other by values that are absent, or by the table's rules too
    rules = rules if rules.fills_batch else replace(rules, fill=None)
    one, counted = folded(whole, codes, rules)
    if INGEST_ORDER in staged.names:
        arrivals = pa.array(LAST_INGESTED + np.arange(one.num_rows))
        one = one.set_column(
            staged.get_field_index(INGEST_ORDER), staged.field(INGEST_ORDER), arrivals
        )
    builder = PartBuilder(task, context, staged, in_memory)
    partitions = scope.sources.partition_of(numbers[counted])
    for ordinal, path in enumerate(scope.sources.paths):
        own = np.flatnonzero(partitions == ordinal)
        if len(own):
            for batch in take(one, own).combine_chunks().to_batches():
                builder.add(path, batch)
    return builder.close()
