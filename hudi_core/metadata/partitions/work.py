"""An action on a table, as metadata partitions see it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self, TypeVar

from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.file_slice.slice_rows import StoredSlices
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.index_definitions import IndexDefinitions
from hudi_core.metadata.key_index.key_records import DataFile
from hudi_core.metadata.keys import partition_name
from hudi_core.metadata.log.records import FileList, MetadataRecord
from hudi_core.metadata.partition_types import FILES
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.metadata.table import StoredPartitions
from hudi_core.model.commit import CommitMetadata, ReplaceCommitMetadata, WriteStatus
from hudi_core.model.file_index import FileIndex
from hudi_core.model.files import (
    BaseFile,
    BaseFileName,
    FileGroupId,
    FileId,
    FileSlice,
    FileStatus,
    LogFile,
    LogFileName,
    PartitionPath,
    join_path,
)
from hudi_core.model.instant_time import InstantTime
from hudi_core.schema.table_schema import TableSchema
from hudi_core.view.file_system import FileSystemView, ViewManager

_T = TypeVar("_T")


@dataclass(eq=False)
class Work:
    """What partitions need to know of a table.

    Partitions replace ``definitions`` with what they change.
    """

    client: TableMetaClient
    config: MetadataConfig
    definitions: IndexDefinitions
    _shared: dict[Any, Any] = field(default_factory=dict, init=False)

    def shared(self, make: Callable[[Self], _T]) -> _T:
        """What several partitions work with, made once."""
        if make not in self._shared:
            self._shared[make] = make(self)
        found: _T = self._shared[make]
        return found

    @property
    def stored(self) -> StoredPartitions:
        """The partitions of the metadata table."""
        return StoredPartitions.of(self.client.config)

    @cached_property
    def snapshot(self) -> MetadataSnapshot:
        """The metadata table before the action."""
        return MetadataSnapshot.open(self.client, self.client.timeline())

    def view(self, lister: FileIndex) -> FileSystemView:
        """The table's file slices, as a lister gives its files."""
        return ViewManager(self.client.read_commit, lister, self.client.timeline).view()

    @property
    def stored_slices(self) -> StoredSlices:
        """Reads the table's file slices."""
        return StoredSlices(self.client, self.client.timeline())

    def current_slices(self, partitions: Sequence[PartitionPath]) -> Sequence[FileSlice]:
        """Slices that readers see in partitions, by the metadata table."""
        return self.view(_Listed(self.snapshot, partitions)).latest_slices(partitions)


def data_files(slices: Iterable[FileSlice]) -> list[DataFile]:
    """The base files of file slices."""
    return [
        DataFile(one.partition_path, one.file_id, one.base_file.status.name)
        for one in slices
        if one.base_file is not None
    ]


def ranged_files(slices: Iterable[FileSlice]) -> list[DataFile]:
    """The base files and logs of file slices."""
    return [
        DataFile(one.partition_path, one.file_id, file.name) for one in slices for file in one.files
    ]


@dataclass(eq=False)
class Commit(Work):
    """A write that is about to complete.

    ``metadata`` is the body that the completed instant gets, ``statuses`` has every file that it
    counts. ``base`` is the schema that the write builds on, ``None`` where it says nothing of
    columns; ``listed`` is the table's files as they are now, where the write has listed them.
    """

    time: InstantTime
    metadata: CommitMetadata
    statuses: Sequence[WriteStatus]
    base: TableSchema | None
    listed: FileSystemView | None = None

    def current_slices(self, partitions: Sequence[PartitionPath]) -> Sequence[FileSlice]:
        """Slices that readers see in partitions before the write."""
        if self.listed is not None and self.listed.has_listed(partitions):
            return self.listed.latest_slices(partitions)
        return super().current_slices(partitions)

    @cached_property
    def schema_text(self) -> str:
        """The table's schema as it leaves it, in Avro's JSON."""
        return self.metadata.schema_json or self.client.schema_text_at(self.client.timeline())

    @cached_property
    def new(self) -> list[tuple[WriteStatus, DataFile]]:
        """The files that it made."""
        return [
            (status, DataFile(status.partition_path, status.file_id, path.rpartition("/")[2]))
            for status in self.statuses
            if (path := status.stat.path)
        ]

    @cached_property
    def replaced(self) -> frozenset[FileGroupId]:
        """The file groups that it takes out of the table."""
        if not isinstance(self.metadata, ReplaceCommitMetadata):
            return frozenset()
        return frozenset(
            FileGroupId(PartitionPath(partition), FileId(file_id))
            for partition, ids in self.metadata.partition_to_replace_file_ids.items()
            for file_id in ids
        )

    @cached_property
    def outgoing(self) -> frozenset[FileGroupId]:
        """The file groups whose present files go: those written without logs."""
        return self.replaced | {
            FileGroupId(one.partition_path, one.file_id)
            for one in self.statuses
            if LogFileName.parse((one.stat.path or "").rpartition("/")[2]) is None
        }

    def takes_out(self, file: DataFile) -> bool:
        """Whether a file belongs to a past slice after the write.

        Logs that were complete after the write was requested belong to the base file that it makes:
        writers go on while a compaction runs.
        """
        if file.group not in self.outgoing:
            return False
        log = LogFileName.parse(file.name)
        if log is None or file.group in self.replaced:
            return True
        return self._completed.get(log.instant, log.instant) < self.time

    @cached_property
    def _completed(self) -> Mapping[InstantTime, InstantTime]:
        return {
            one.requested_time: one.effective_completion_time
            for one in self.client.timeline().completed_writes()
        }

    @cached_property
    def touched(self) -> list[PartitionPath]:
        """The partitions of the table in which files come or go."""
        written = {one.partition_path for one in self.statuses}
        return sorted(written | {group.partition_path for group in self.replaced})

    @cached_property
    def before(self) -> Sequence[FileSlice]:
        """The slices that readers saw in these partitions before it."""
        return self.current_slices(self.touched)

    @property
    def slices_after(self) -> StoredSlices:
        """Reads slices with the logs that it wrote."""
        return StoredSlices(self.client, self.client.timeline(), self.time)

    def slice_with(self, file: DataFile, last: FileSlice | None) -> FileSlice:
        """The slice before, changed by one of its files.

        By all its logs of the group, where it is one of them.
        """
        base = BaseFileName.parse(file.name)
        if base is not None:
            return FileSlice(file.group, self.time, BaseFile(self._status_of(file), base))
        logs = [
            LogFile(self._status_of(one), name)
            for _, one in self.new
            if one.group == file.group and (name := LogFileName.parse(one.name)) is not None
        ]
        logs.sort(key=lambda one: one.name.version)
        if last is None:
            return FileSlice(file.group, self.time, None, tuple(logs))
        return replace(last, log_files=(*last.log_files, *logs))

    def _status_of(self, file: DataFile) -> FileStatus:
        return FileStatus(file.path, self._sizes[file.path])

    @cached_property
    def _sizes(self) -> dict[str, int]:
        return {one.stat.path or "": one.stat.file_size_in_bytes or 0 for one in self.statuses}


@dataclass(eq=False)
class Removal(Work):
    """A deletion of files that is about to complete.

    A rollback or a clean.

    ``names`` are by partition of the table; ``dropped`` are partitions that are gone as a whole.
    ``is_of_past``: all files are of past states, so that the present rows stay. ``restored``
    partitions get file groups back of which the metadata table no longer has ranges.
    """

    names: Mapping[PartitionPath, Sequence[str]]
    dropped: Sequence[PartitionPath]
    is_of_past: bool = False
    restored: Collection[PartitionPath] = ()

    @property
    def files(self) -> list[tuple[PartitionPath, str]]:
        """Partition and name of each file."""
        return [(partition, name) for partition, names in self.names.items() for name in names]


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
