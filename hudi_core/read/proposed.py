"""The table as an incomplete commit would leave it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from hudi_core.meta_client import TableMetaClient
from hudi_core.model.commit import CommitMetadata
from hudi_core.model.conflicts import outgoing_groups
from hudi_core.model.file_index import FileIndex
from hudi_core.model.files import (
    BaseFileName,
    FileGroupId,
    FileId,
    FileStatus,
    LogFileName,
    PartitionPath,
)
from hudi_core.model.instant import Instant
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import TimelineView
from hudi_core.read.filters import Filter, RowFilter
from hudi_core.read.path_pattern import PathPattern
from hudi_core.read.plan import PlannedSlice, ReadPlan, columns_read, planned_file
from hudi_core.read.query import SnapshotQuery
from hudi_core.schema.table_schema import TableSchema


class ProposedQuery(SnapshotQuery):
    """Reads one table at a state that no other reader sees yet.

    Files of a partition that a filter leaves out are not read; of the new files no statistics are
    looked at but those in their footers.

    ``client``, ``index`` and ``timeline`` are of the state that the commit builds on; the files of
    ``metadata`` are written already, and ``schema`` is that after the commit.
    """

    def __init__(
        self,
        client: TableMetaClient,
        index: FileIndex,
        timeline: TimelineView,
        metadata: CommitMetadata,
        schema: TableSchema,
    ) -> None:
        super().__init__(client, index, timeline)
        self._metadata = metadata
        self._proposed = schema

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns, meta columns first."""
        return columns_read(self.client.config, self._proposed)

    def plan(
        self,
        as_of: str | None = None,
        row_filter: RowFilter | Filter | None = None,
        within: PathPattern | None = None,
    ) -> ReadPlan:
        """The files to read; see :meth:`SnapshotQuery.plan`."""
        before, logs = super().plan(as_of, row_filter, within), self._logs
        gone = outgoing_groups(self._metadata)
        stay = [file for file in before.files if _group(file) not in gone | logs.keys()]
        if logs:
            # whatever statistics say of a slice, rows of a new log may be wanted
            whole = super().plan(as_of, None, within).files
            stay += [
                replace(file, logs=(*file.logs, *logs[_group(file)]))
                for file in whole
                if _group(file) in logs
            ]
        files = sorted(
            (*stay, *self._added()), key=lambda file: (file.partition_path, file.file_id)
        )
        own = {name.instant for some in logs.values() for log in some if (name := _log(log.path))}
        return ReadPlan(tuple(files), before.schema, timeline=_Committed(self._timeline, own))

    def plans(
        self, as_of: str | None = None, row_filter: RowFilter | Filter | None = None
    ) -> Iterator[ReadPlan]:
        """Yield :meth:`plan`, as a whole."""
        yield self.plan(as_of, row_filter)

    @property
    def _logs(self) -> dict[FileGroupId, list[FileStatus]]:
        """The new logs by file group."""
        found: dict[FileGroupId, list[FileStatus]] = {}
        for partition, stats in self._metadata.partition_to_write_stats.items():
            for stat in stats:
                if stat.path and _log(stat.path) is not None:
                    group = FileGroupId(PartitionPath(partition), FileId(stat.file_id or ""))
                    log = FileStatus(stat.path, stat.file_size_in_bytes or 0)
                    found.setdefault(group, []).append(log)
        return found

    def _added(self) -> Iterator[PlannedSlice]:
        for partition, stats in self._metadata.partition_to_write_stats.items():
            path = PartitionPath(partition)
            for stat in stats:
                name = BaseFileName.parse((stat.path or "").rpartition("/")[2])
                if stat.path and name is not None and stat.num_writes:
                    yield planned_file(
                        self.client,
                        FileGroupId(path, FileId(stat.file_id or "")),
                        path=stat.path,
                        size=stat.file_size_in_bytes or 0,
                        instant=name.instant,
                        partition_values=self.pruner.values(path),
                    )


@dataclass(frozen=True, slots=True)
class _Committed:
    """A timeline, and instants that are about to be on it."""

    timeline: TimelineView
    own: Set[InstantTime]

    @property
    def instants(self) -> Sequence[Instant]:
        return self.timeline.instants

    def is_committed(self, time: InstantTime) -> bool:
        """Whether an instant counts."""
        return time in self.own or self.timeline.is_committed(time)


def _group(file: PlannedSlice) -> FileGroupId:
    return FileGroupId(file.partition_path, file.file_id)


def _log(path: str) -> LogFileName | None:
    return LogFileName.parse(path.rpartition("/")[2])
