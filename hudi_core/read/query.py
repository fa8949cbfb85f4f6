"""Snapshot queries: the table now, or as of an instant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain, compress
from typing import Final

import pyarrow as pa

from hudi_core.actions.clean import require_not_cleaned
from hudi_core.config.kinds import MergeType
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.read import QueryType, ReadConfig
from hudi_core.config.support import require_readable_table
from hudi_core.config.table import TableConfig
from hudi_core.errors import UnsupportedTableError
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.lister import MetadataLister, table_lister
from hudi_core.metadata.partition_types import RECORD_INDEX
from hudi_core.metadata.statistics.row_counts import row_counts
from hudi_core.metadata.table import StoredPartitions
from hudi_core.model.file_index import FileIndex
from hudi_core.model.files import (
    FileGroupId,
    FileSlice,
    FileStatus,
    PartitionPath,
)
from hudi_core.model.instant import Instant
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import TimelineView
from hudi_core.model.ranges import ValueRanges
from hudi_core.read.changes.net_changes import StateDiff, require_no_change_column
from hudi_core.read.file_pruning import (
    KeyFilter,
    Kinds,
    by_expressions,
    groups_with_values,
    prune,
    prune_named,
    ranged_columns,
    united,
)
from hudi_core.read.filters import Filter, RowFilter, to_filter
from hudi_core.read.known_state import KnownState
from hudi_core.read.partition_pruning import PartitionPruner
from hudi_core.read.path_pattern import PathPattern, require_named
from hudi_core.read.plan import PlannedSlice, ReadPlan, planned_slice, read_schema
from hudi_core.read.predicate import Predicate
from hudi_core.read.query_times import snapshot_time
from hudi_core.read.scan import file_scan
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn.recovery.lost_completion import require_none_lost
from hudi_core.view.file_system import FileSystemView, replaced_groups, written_files

PartitionTexts = Mapping[PartitionPath, Mapping[str, str | None]]
"""Strings of partition paths by partition field."""
_PARTITIONS_AT_A_TIME: Final = 1000
"""Partitions whose files are planned together where rows are read as a stream."""
_FIRST_BATCH_ROWS: Final = 1 << 17
"""Arrow's own default."""


class SnapshotQuery:
    """Reads one table at one state of its timeline.

    ``timeline`` is fenced by the table's format. ``base_files_only`` is Hudi's read-optimized
    query: what logs changed since is not seen. ``skips_merge``: all rows are returned as they were
    written. ``known`` caches what is known of this state, and is added to.
    """

    def __init__(
        self,
        client: TableMetaClient,
        index: FileIndex,
        timeline: TimelineView,
        *,
        base_files_only: bool = False,
        skips_merge: bool = False,
        known: KnownState | None = None,
    ) -> None:
        require_readable_table(client.config, client.base_path, base_files_only=base_files_only)
        self.client = client
        self._index = index
        self._known = known or KnownState()
        self._timeline = timeline
        self._base_files_only = base_files_only
        self._skips_merge = skips_merge

    @cached_property
    def schema(self) -> pa.Schema:
        """The latest schema, meta columns first, for past states too."""
        return self._known.schema(lambda: read_schema(self.client, self._timeline))

    def is_of_the_state_of(self, other: SnapshotQuery) -> bool:
        """Whether both queries know of one state of the table."""
        return self._known is other._known

    @cached_property
    def view(self) -> FileSystemView:
        """The file groups of the table."""
        return self._view_of({})

    @cached_property
    def _replaced(self) -> Mapping[FileGroupId, Instant]:
        return replaced_groups(self._timeline, self.client.read_commit)

    def _view_of(self, listed: Mapping[PartitionPath, Sequence[FileStatus]]) -> FileSystemView:
        written = written_files(self._timeline, self.client.read_commit)
        return FileSystemView(self._index, self._timeline, self._replaced, written, listed)

    @cached_property
    def pruner(self) -> PartitionPruner:
        """What partition paths say about the rows."""
        return PartitionPruner(self.client.config, self.schema)

    def plan(
        self,
        as_of: str | None = None,
        row_filter: RowFilter | Filter | None = None,
        within: PathPattern | None = None,
    ) -> ReadPlan:
        """Return the files to read.

        Instants requested later than ``as_of`` do not count. ``TimeOutOfRangeError``: it is before
        the first commit, or later than now. ``UnknownPartitionError``: ``within`` names nothing
        that the table has.
        """
        if as_of is None and row_filter is None and within is None:
            return self._known.plan(lambda: self._plan_of(self.file_slices(), None))
        until = None if as_of is None else snapshot_time(self.client, self._timeline, as_of)
        return self._plan_of(self.file_slices(as_of, row_filter, within), until)

    def plans(
        self, as_of: str | None = None, row_filter: RowFilter | Filter | None = None
    ) -> Iterator[ReadPlan]:
        """Yield what :meth:`plan` returns in parts, in order; at least one.

        Where a filter leaves no files out but by their partitions, those of so many partitions at a
        time are planned: the files of the whole table are never there together.
        """
        wanted = to_filter(row_filter, self.schema)
        is_known = wanted is None and as_of is None and self._known.has_plan
        if is_known or (wanted is not None and self._kinds(wanted)):
            yield self.plan(as_of, wanted)
            return
        partitions = self.partitions(wanted)
        if len(partitions) <= _PARTITIONS_AT_A_TIME:
            yield self.plan(as_of, row_filter)
            return
        until = self.state(as_of, wanted)
        self._require_none_lost(until)
        for begin in range(0, len(partitions), _PARTITIONS_AT_A_TIME):
            some = partitions[begin : begin + _PARTITIONS_AT_A_TIME]
            yield self._plan_of(self._view_of({}).latest_slices(some, until), until)

    def _kinds(self, wanted: Filter) -> Kinds:
        """The columns of a filter that may have ranges."""
        # of columns known from paths, ranges say no more
        known = self.pruner.identity | self.client.config.former_names
        return ranged_columns(wanted.predicate, self.schema, known)

    def _plan_of(self, slices: Sequence[FileSlice], until: InstantTime | None) -> ReadPlan:
        files = tuple(self.planned_slices(slices, until))
        return ReadPlan(files, self.schema, timeline=self._timeline, skips_merge=self._skips_merge)

    @cached_property
    def latest_time(self) -> InstantTime | None:
        """Requested time of the last completed write."""
        writes = self._timeline.completed_writes()
        return max((one.requested_time for one in writes), default=None)

    def planned_slices(
        self, slices: Sequence[FileSlice], until: InstantTime | None
    ) -> list[PlannedSlice]:
        """Slices as plans have them, without logs where these are unwanted."""
        paths = {found.partition_path for found in slices}
        values = {path: self.pruner.values(path) for path in paths}
        files = []
        for found in slices:
            own = self._base_file_of(found) if self._base_files_only else found
            if own.files:
                files.append(planned_slice(self.client, own, values[own.partition_path], until))
        return files

    def _base_file_of(self, found: FileSlice) -> FileSlice:
        """A slice without its logs, where these are no deletions alone."""
        if found.log_files and self.client.config.is_split:
            raise UnsupportedTableError(
                self.client.base_path,
                "is of the mode split, in which base files have the former version of an updated "
                "row as well as the present one: those of file group "
                f"{found.file_id} have deleted rows",
                "Read a snapshot, which is as fast; or compact the table before: `hudi compact "
                f"{self.client.base_path}`.",
            )
        return replace(found, log_files=())

    def state(self, as_of: str | None, wanted: Filter | None) -> InstantTime | None:
        """The state at a query time; ``None`` for the latest."""
        if as_of is None:
            return None
        time = snapshot_time(self.client, self._timeline, as_of)
        self._require_not_cleaned(time, wanted)
        return time

    def partitions(self, wanted: Filter | None) -> Sequence[PartitionPath]:
        """The partitions that may hold a wanted row by their paths."""
        return self.pruner.of_index(self._known.over(self._index), wanted)

    def slices_of(
        self,
        partitions: Sequence[PartitionPath],
        time: InstantTime | None,
        wanted: Filter | None,
    ) -> tuple[FileSlice, ...]:
        """The slices of some partitions that may hold a wanted row.

        Threads may ask for several at once.

        ``time`` is what :meth:`state` returned.
        """
        return self._slices(time, wanted, partitions)

    def file_slices(
        self,
        as_of: str | None = None,
        row_filter: RowFilter | Filter | None = None,
        within: PathPattern | None = None,
    ) -> tuple[FileSlice, ...]:
        """Return the slices that :meth:`plan` reads."""
        time = self.state(as_of, to_filter(row_filter, self.schema))
        if within is None:
            return self._slices(time, row_filter, None)
        known = self._index.list_partitions()
        partitions = require_named(within, known, self.client.base_path)
        slices = self._slices(time, row_filter, partitions)
        return tuple(one for one in slices if one.files and within.names(one.files[0].path))

    def to_table(
        self,
        columns: Sequence[str] | None = None,
        row_filter: RowFilter | Filter | None = None,
        as_of: str | None = None,
    ) -> pa.Table:
        """Return the rows at once; see :meth:`to_arrow`."""
        wanted = to_filter(row_filter, self.schema)
        plan = self.plan(as_of, wanted)
        return file_scan(self.client, plan, columns, wanted).table(plan.files)

    def to_arrow(
        self,
        columns: Sequence[str] | None = None,
        row_filter: RowFilter | Filter | None = None,
        as_of: str | None = None,
        batch_rows: int | None = None,
    ) -> pa.RecordBatchReader:
        """Return the rows; see :meth:`plan` and :func:`hudi_core.read.scan.scan`."""
        wanted = to_filter(row_filter, self.schema)
        plans = self.plans(as_of, wanted)
        first = next(plans)
        scanned = file_scan(self.client, first, columns, wanted, batch_rows)

        def batches() -> Iterator[pa.RecordBatch]:
            yield from scanned.read(first.files)
            for plan in plans:
                yield from file_scan(self.client, plan, columns, wanted, batch_rows).read(
                    plan.files
                )

        return pa.RecordBatchReader.from_batches(scanned.output_schema, batches())

    def count(self, row_filter: RowFilter | Filter | None = None, as_of: str | None = None) -> int:
        """Return the number of rows; see :meth:`plan`.

        Without a filter no rows are read: commits record the rows of their files. For a commit
        that is archived, or does not record them, the footer of the file is read.
        """
        wanted = to_filter(row_filter, self.schema)
        counted: int = 0
        if wanted is None:
            plan = self.plan(as_of)
            files = ((file.instant, file.path) for file in plan.files if not file.logs)
            counted = sum(row_counts(self.client, self._timeline, files).values())
            plan = replace(plan, files=tuple(file for file in plan.files if file.logs))
            one = file_scan(self.client, plan, plan.schema.names[-1:], None)
            return counted + sum(self.client.run_map(one.row_count, plan.files))
        needed = sorted(wanted.columns) or self.schema.names[-1:]
        for batch in self.to_arrow(needed[:1], wanted, as_of):
            counted += batch.num_rows
        return counted

    def head(
        self,
        rows: int,
        columns: Sequence[str] | None = None,
        row_filter: RowFilter | Filter | None = None,
        as_of: str | None = None,
    ) -> pa.Table:
        """Return the first rows, reading no more files than needed."""
        return self.first(rows, columns, row_filter, as_of).read_all()

    def first(
        self,
        rows: int,
        columns: Sequence[str] | None = None,
        row_filter: RowFilter | Filter | None = None,
        as_of: str | None = None,
    ) -> pa.RecordBatchReader:
        """Return the rows of :meth:`head` as a stream."""
        wanted = to_filter(row_filter, self.schema)
        batch_rows = min(max(1, rows), _FIRST_BATCH_ROWS)
        plans = self.plans(as_of, wanted)
        begin = next(plans)
        output = file_scan(self.client, begin, columns, wanted, batch_rows).output_schema

        def found() -> Iterator[pa.RecordBatch]:
            for plan in chain([begin], plans):
                scanned = file_scan(self.client, plan, columns, wanted, batch_rows)
                for file in plan.files:
                    yield from scanned.read([file])

        def batches() -> Iterator[pa.RecordBatch]:
            missing = rows
            for batch in found() if rows > 0 else ():
                yield batch.slice(0, missing)
                missing -= batch.num_rows
                if missing <= 0:
                    return

        return pa.RecordBatchReader.from_batches(output, batches())

    def diff(
        self, before: str, after: str | None = None, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Return the rows in which two states differ; see :class:`StateDiff`.

        Files that both states have are not read.

        The states may be given in any order. A column with the name of the one that holds the
        change is refused.
        """
        require_no_change_column(self.schema)
        old, new = self.plan(before), self.plan(after)
        both = replace(new, files=(*old.files, *new.files))
        reader = StateDiff.of(file_scan(self.client, both, columns), self.client.config)
        return reader.table(old.files, new.files)

    def _require_not_cleaned(self, time: InstantTime, wanted: Filter | None) -> None:
        def keep(partitions: Sequence[PartitionPath]) -> Sequence[PartitionPath]:
            return partitions if wanted is None else self.pruner.keep(partitions, wanted)

        require_not_cleaned(
            self.client,
            self._timeline,
            time,
            keep=keep,
            groups=self.view.file_groups,
            replaced=self._replaced,
        )

    def _groups_of_keys(
        self, predicate: Predicate, partitions: Sequence[PartitionPath]
    ) -> frozenset[FileGroupId] | None:
        """File groups of the keys in a predicate, if known.

        The metadata table has the record index, whatever the format that lists the files.
        """
        if RECORD_INDEX not in StoredPartitions.of(self.client.config).complete:
            return None
        schema = self.client.schema_at(self._timeline)
        keys = KeyFilter(self.client.config, schema).keys(predicate)
        index = self._indexes
        if keys is None or index is None:
            return None
        return index.groups_of_keys(self._timeline, partitions, sorted(keys))

    @cached_property
    def _indexes(self) -> MetadataLister | None:
        """What asks the metadata table, whatever lists the files; ``None`` without it."""
        index = self._index
        if not isinstance(index, MetadataLister) and isinstance(self._timeline, Timeline):
            index = table_lister(self.client.seeing(self._timeline))
        return index if isinstance(index, MetadataLister) else None

    def _located(
        self,
        groups: frozenset[FileGroupId],
        partitions: Sequence[PartitionPath],
        wanted: Filter,
    ) -> tuple[FileSlice, ...] | None:
        """The slices of some file groups that may hold a wanted row.

        ``None`` where a group is not there, of which the index says that it is.
        """
        kept = set(partitions)
        named = {group for group in groups if group.partition_path in kept}
        paths = sorted({group.partition_path for group in named})
        slices = [one for one in self.view.latest_slices(paths) if one.group in named]
        if len(named) != len(slices):
            return None
        known = self.pruner.identity | self.client.config.former_names
        bases = [one.base_file.status for one in slices if one.base_file and not one.log_files]
        mask = prune_named(self._index, bases, wanted, self.schema, known)
        may_match = {file.path for file in compress(bases, mask)}
        return tuple(
            one
            for one in slices
            if one.log_files or (one.base_file and one.base_file.path in may_match)
        )

    def _files_of(self, within: Sequence[PartitionPath] | None) -> FileSystemView:
        """The view to ask, which keeps all that it was asked for.

        Who names partitions goes through very many, some at a time.
        """
        return self.view if within is None else self._view_of({})

    def _latest_slices(self) -> tuple[FileSlice, ...]:
        self._require_none_lost(None)
        return self.view.latest_slices()

    def _require_none_lost(self, time: InstantTime | None) -> None:
        """Refuse a state without a write that the metadata table completed."""
        index = self._index
        if isinstance(index, MetadataLister):
            require_none_lost(
                self.client,
                self._timeline,
                lambda one: (
                    (time is None or one.requested_time <= time)
                    and index.snapshot.has_recorded(one.requested_time)
                ),
            )

    def _slices(
        self,
        time: InstantTime | None,
        row_filter: RowFilter | Filter | None,
        within: Sequence[PartitionPath] | None,
    ) -> tuple[FileSlice, ...]:
        wanted = to_filter(row_filter, self.schema)
        if wanted is None:
            if time is None and within is None:
                return self._known.slices(self._latest_slices)
            self._require_none_lost(time)
            return self._files_of(within).latest_slices(within, time)
        self._require_none_lost(time)
        index, predicate = self._known.over(self._index), wanted.predicate
        if within is None:
            partitions = self.pruner.of_index(index, wanted)
        else:
            partitions = self.pruner.keep(within, wanted)
        if time is None and (located := self._groups_of_keys(predicate, partitions)) is not None:
            found = self._located(located, partitions, wanted)
            if found is not None:
                return found
        kinds = self._kinds(wanted)
        if not kinds:
            return self._files_of(within).latest_slices(partitions, time)
        if time is None and len(partitions) > 1:  # ranges of partitions are of present rows
            of_partitions = partial(index.partition_ranges, partitions)
            mask = prune(predicate, kinds, len(partitions), of_partitions)
            partitions = tuple(compress(partitions, mask))
        files = index.list_columns(partitions)
        if not files.has_several_groups:  # of a single file its own footer says as much
            kinds = {}
        has_logs = bool(files.are_logs.any())

        def ranges_of(path: str, kind: pa.DataType) -> ValueRanges | None:
            found = index.file_ranges(files, path, kind)
            # a row may have one value from a base file, and another from a log
            return united(found, files.groups) if has_logs and found is not None else found

        matches = prune(predicate, kinds, len(files), ranges_of)
        if kinds and matches.any() and not has_logs:
            matches &= by_expressions(predicate, files, kinds, self._indexes)
        # file groups stay whole, so that their latest slice does
        kept = files.rows(files.with_their_groups(matches))
        slices = self._view_of(kept.by_partition()).latest_slices(partitions, time)
        groups = groups_with_values(predicate, kinds, index) if time is None and slices else None
        names = set(files.names.filter(pa.array(matches)).to_pylist())
        return tuple(
            one
            for one in slices
            if (one.log_files or groups is None or one.group in groups)
            and any(file.name in names for file in one.files)
        )


# --- the newest state that a table's reader has seen ---------------------------------------------


class LatestState:
    """What is known of a table's newest state, until it has another.

    Each query looks at the timeline, which is one list of a folder, and at what the table's format
    says of it. Where both are as they were, and the table was not opened again, as by its own
    repairs, the query plans from what is known. Of a table there is one such state, the newest.
    """

    def __init__(self) -> None:
        self._newest: tuple[TableConfig, Timeline, tuple[Instant, ...], KnownState] | None = None

    def query(self, opened: OpenTable) -> SnapshotQuery:
        """A query of the table at the timeline that it sees.

        The options that the table was opened with say which rows of a state are read.
        """
        asked = ReadConfig.from_options(opened.client.options)
        if asked.query_type is QueryType.INCREMENTAL:
            raise ReadConfig.query_type.refused(
                asked.query_type,
                "this reads a state of the table",
                "Call Table.incremental or Table.changes, or leave the option out.",
            )
        config, timeline, fenced = opened.client.config, opened.client.timeline(), opened.timeline()
        newest = self._newest  # looked at once: another thread may put the next one there
        if MetadataConfig.from_options(opened.client.options).validate:
            known = KnownState()  # each query compares the metadata table with the storage
        elif (
            newest is not None
            and newest[0] is config
            and newest[1:3] == (timeline, fenced.instants)
        ):
            known = newest[3]
        else:
            known = KnownState()
            self._newest = config, timeline, fenced.instants, known
        return SnapshotQuery(
            opened.client,
            opened.lister(),
            fenced,
            base_files_only=asked.query_type is QueryType.READ_OPTIMIZED,
            skips_merge=asked.merge_type is MergeType.SKIPPED,
            known=known,
        )
