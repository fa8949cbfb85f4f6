"""An action on a table, as metadata partitions see it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self, TypeVar

from hudi_core.config.metadata_keys import MetadataConfig
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
    FileGroupId,
    FileId,
    FileSlice,
    FileStatus,
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

    def current_files(self, partitions: Sequence[PartitionPath]) -> list[DataFile]:
        """Base files that readers see in partitions, by the metadata table."""
        view = self.view(_Listed(self.snapshot, partitions))
        return data_files(view.latest_slices(partitions))


def data_files(slices: Iterable[FileSlice]) -> list[DataFile]:
    """The base files of file slices."""
    return [
        DataFile(one.partition_path, one.file_id, one.base_file.status.name)
        for one in slices
        if one.base_file is not None
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

    def current_files(self, partitions: Sequence[PartitionPath]) -> list[DataFile]:
        """Base files that readers see in partitions before the write."""
        if self.listed is not None and self.listed.has_listed(partitions):
            return data_files(self.listed.latest_slices(partitions))
        return super().current_files(partitions)

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
    def groups(self) -> frozenset[FileGroupId]:
        """The file groups whose files change or go."""
        written = {FileGroupId(one.partition_path, one.file_id) for one in self.statuses}
        return self.replaced | written

    @cached_property
    def touched(self) -> list[PartitionPath]:
        """The partitions of the table in which files change or go."""
        return sorted({group.partition_path for group in self.groups})

    @cached_property
    def before(self) -> list[DataFile]:
        """The files that readers saw in these partitions before it."""
        return self.current_files(self.touched)


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
