"""A metadata table that is kept in step with its table (RFC-15).

What an action changes is told in every partition that the metadata table has, before the action
completes. Everything here runs under the table's lock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.metadata.changes import Changes
from hudi_core.metadata.column_records import partition_record
from hudi_core.metadata.index_definitions import IndexDefinitions
from hudi_core.metadata.indexed_columns import IndexedColumns
from hudi_core.metadata.key_records import DataFile
from hudi_core.metadata.keys import id64, id128, partition_name, partition_stats_key
from hudi_core.metadata.partition_types import (
    COLUMN_STATS,
    FILES,
    RECORD_INDEX,
    SECONDARY_INDEX,
)
from hudi_core.metadata.records import ColumnRange, FileList, MetadataRecord
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.metadata.state import MetadataState
from hudi_core.metadata.table import StoredPartitions
from hudi_core.metadata.writer import write_deltacommit
from hudi_core.model.file_index import FileIndex
from hudi_core.model.files import FileStatus, PartitionPath, join_path
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.metering import Metric
from hudi_core.view.file_system import FileSystemView
from hudi_core.view.replaced import replaced_groups, written_files


@dataclass(frozen=True, slots=True)
class MetadataSession:
    """Keeps one metadata table while the table's lock is held.

    Attributes
    ----------
    tables
        The table and its metadata table.
    config
        What the options say.
    view
        The files of the table as they are now, where a write has them at hand.
    """

    tables: MetadataState
    config: MetadataConfig
    view: FileSystemView | None = None

    @property
    def partitions(self) -> StoredPartitions:
        """Those that have to be kept."""
        return self.tables.partitions

    @property
    def definitions(self) -> IndexDefinitions:
        """The table's indexes."""
        return self.tables.definitions

    def write(self, time: InstantTime, changes: Changes) -> MetadataState:
        """Commit what an instant of the table changes, which is about to complete.

        Returns
        -------
        MetadataState
            The two tables after it.
        """
        by_value = [name for name in changes if self.definitions.is_by_value(name)]
        least, _ = self.config.partitioned_index_groups
        with self.tables.client.meter.time(Metric.SYNC):
            return write_deltacommit(self.tables, time, changes, by_value, least)

    def current_files(self, partitions: Sequence[PartitionPath]) -> list[DataFile]:
        """Return the base files of some partitions that readers see, as the metadata table lists
        them."""
        return [
            DataFile(file.partition_path, file.file_id, file.base_file.status.name)
            for file in self._view(partitions).latest_slices(partitions)
            if file.base_file is not None
        ]

    def _view(self, partitions: Sequence[PartitionPath]) -> FileSystemView:
        if self.view is not None and self.view.has_listed(partitions):
            return self.view
        client, timeline = self.tables.client, self.tables.data_timeline
        return FileSystemView(
            _Listed(self.snapshot(), partitions),
            timeline,
            replaced_groups(timeline, client.read_commit),
            written_files(timeline, client.read_commit),
        )

    def snapshot(self) -> MetadataSnapshot:
        """Return the metadata table as readers see it now."""
        return MetadataSnapshot.open(self.tables.client, self.tables.data_timeline)

    def partition_ranges(
        self,
        partitions: Iterable[PartitionPath],
        files: Sequence[DataFile],
        columns: IndexedColumns,
        fresh: Mapping[str, Mapping[str, ColumnRange]],
    ) -> list[MetadataRecord]:
        """Return the ranges of whole partitions.

        Parameters
        ----------
        files
            Those that readers see in them.
        columns
            Whose ranges are wanted.
        fresh
            Ranges of files that the metadata table does not have yet, by file path and column.
        """
        # a file's own part of its keys is a hash, made once
        names = {file.path: id128(file.name) for file in files if file.path not in fresh}
        stored: dict[str, MetadataRecord] = {}
        if names and COLUMN_STATS in self.partitions.complete:
            keys = [
                partition_stats_key(column, file.partition_path) + names[file.path]
                for file in files
                if file.path in names
                for column in columns
            ]
            stored = self.snapshot().lookup(COLUMN_STATS, keys)

        def found(file: DataFile, column: str) -> ColumnRange | None:
            if file.path in fresh:
                return fresh[file.path].get(column)
            key = partition_stats_key(column, file.partition_path) + names[file.path]
            record = stored.get(key)
            payload = None if record is None else record.payload
            return payload if isinstance(payload, ColumnRange) else None

        by_partition: dict[PartitionPath, list[DataFile]] = {one: [] for one in partitions}
        for file in files:
            by_partition.setdefault(file.partition_path, []).append(file)
        return [
            partition_record(partition, column, [found(file, column) for file in held], form)
            for partition, held in by_partition.items()
            for column, form in columns.items()
        ]

    def stored_ranges(
        self, partition: str, columns: Collection[str]
    ) -> Iterator[tuple[MetadataRecord, ColumnRange]]:
        """Yield the ranges that a partition of the metadata table has of some columns.

        Parameters
        ----------
        partition
            ``column_stats`` or ``partition_stats``; nothing is there of one that is not complete.
        """
        if not columns or partition not in self.partitions.complete:
            return
        found = self.snapshot().scan_many(partition, [id64(one) for one in columns])
        for record in found.values():
            if isinstance(record.payload, ColumnRange) and record.payload.column_name in columns:
                yield record, record.payload


@dataclass(frozen=True, slots=True)
class _Listed(FileIndex):
    """The lister of some partitions, whose files the metadata table names."""

    snapshot: MetadataSnapshot
    partitions: Sequence[PartitionPath]

    def list_partitions(self) -> Sequence[PartitionPath]:
        return self.partitions

    def list_files(
        self, partitions: Sequence[PartitionPath]
    ) -> Mapping[PartitionPath, Sequence[FileStatus]]:
        names = {one: partition_name(one) for one in partitions}
        found = self.snapshot.lookup(FILES, names.values())
        return {one: _statuses(one, found.get(name)) for one, name in names.items()}


def _statuses(partition: PartitionPath, record: MetadataRecord | None) -> list[FileStatus]:
    if record is None or not isinstance(record.payload, FileList):
        return []
    return [
        FileStatus(join_path(partition, name), entry.size)
        for name, entry in record.payload.files.items()
    ]


def is_key_index(partition: str) -> bool:
    """Whether a partition of the metadata table is an index of keys."""
    return partition == RECORD_INDEX or partition.startswith(SECONDARY_INDEX)
