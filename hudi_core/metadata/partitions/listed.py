"""A table's files from one listing, for partitions that are built."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from hudi_core.actions.clean import files_being_cleaned
from hudi_core.errors import IncompleteListingError, MisplacedFileError
from hudi_core.metadata.key_index.key_records import DataFile
from hudi_core.metadata.log.records import MetadataRecord
from hudi_core.metadata.partitions.names import Check
from hudi_core.metadata.partitions.work import Removal, Work, data_files
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.model.file_index import FileIndex
from hudi_core.model.files import BaseFile, FileSlice, FileStatus, LogFileName, PartitionPath
from hudi_core.model.instant_time import InstantTime
from hudi_core.view.committed_files import CommittedFiles, CommittedListing, TableListing
from hudi_core.view.file_system import FileSystemView


@dataclass(eq=False)
class ListedTable(Work):
    """The files of a table.

    Its folders are listed once, when they are first asked for.

    ``with_history``: archived writes, too, are asked which files they name.
    """

    with_history: bool = False

    @cached_property
    def listing(self) -> TableListing:
        """Everything that lies in the table's partitions."""
        client = self.client
        return TableListing(client.data, client.config.is_partitioned, client.map_files)

    @cached_property
    def committed(self) -> CommittedFiles:
        """The files that writes name."""
        read = CommittedFiles.of_history if self.with_history else CommittedFiles.of_timeline
        return read(self.client, self.client.timeline())

    def require_committed(self) -> None:
        """Refuse a listing that lacks files which writes name.

        A ``MisplacedFileError`` means that another engine put a file into the folder of a table
        with storage paths; an ``IncompleteListingError``, that it is nowhere.
        """
        found = {one.path: one.size for files in self.files.values() for one in files}
        missing = self.committed.missing_from(found)
        if missing:
            files, base_path = self.client.files, self.client.base_path
            reason = f"{len(missing)} files are not where they belong"
            error = files.unreadable([one.path for one in missing], reason)
            if isinstance(error, MisplacedFileError):
                raise error
            raise IncompleteListingError(base_path, [str(one) for one in missing])

    @cached_property
    def lister(self) -> FileIndex:
        """The listing without files that their writes do not name."""
        return CommittedListing(self.listing, self.committed)

    @cached_property
    def orphans(self) -> tuple[str, ...]:
        """Paths of these files."""
        files = self.listing.list_files(self.listing.list_partitions()).values()
        return tuple(one.path for some in files for one in some if self.committed.is_orphan(one))

    @cached_property
    def _view(self) -> FileSystemView:
        return self.view(self.lister)

    @cached_property
    def _partitions(self) -> tuple[PartitionPath, ...]:
        pattern = self.config.dir_filter
        return tuple(
            path
            for path in self._view.partitions()
            if not (pattern and re.fullmatch(pattern, path))
        )

    @cached_property
    def files(self) -> dict[PartitionPath, list[BaseFile]]:
        """Files of every partition that has one, replaced groups included."""
        found: dict[PartitionPath, list[BaseFile]] = {}
        for one in self._view.all_slices(self._partitions):
            if one.base_file is not None:
                found.setdefault(one.partition_path, []).append(one.base_file)
        return found

    @cached_property
    def change_logs(self) -> dict[PartitionPath, list[FileStatus]]:
        """Committed logs of changes in the same partitions."""
        if not self.client.config.logs_changes:
            return {}
        timeline = self.client.timeline()
        return {
            path: [
                file
                for file in files
                if (name := LogFileName.parse(file.name)) is not None
                and name.is_cdc
                and timeline.is_committed(name.instant)
            ]
            for path, files in self.lister.list_files(list(self.files)).items()
        }

    @cached_property
    def all(self) -> list[DataFile]:
        """The same files."""
        return [
            DataFile(partition, file.name.file_id, file.status.name)
            for partition, files in self.files.items()
            for file in files
        ]

    @cached_property
    def all_logs(self) -> dict[PartitionPath, list[FileStatus]]:
        """Committed logs of the same slices, by partition."""
        found: dict[PartitionPath, list[FileStatus]] = {}
        for one in self._view.all_slices(self._partitions):
            for log in one.log_files:
                found.setdefault(one.partition_path, []).append(log.status)
        return found

    @cached_property
    def current(self) -> list[DataFile]:
        """The base files that readers see."""
        return data_files(self.slices)

    @cached_property
    def slices(self) -> tuple[FileSlice, ...]:
        """The slices that readers see."""
        return self._view.latest_slices(self._partitions)

    @property
    def logs(self) -> list[tuple[PartitionPath, FileStatus]]:
        """The logs of these."""
        return [(one.partition_path, log.status) for one in self.slices for log in one.log_files]

    @cached_property
    def times(self) -> dict[str, InstantTime]:
        """The instant that wrote each file, by its name."""
        return {file.status.name: file.instant for files in self.files.values() for file in files}


# --- comparison of a metadata table with its table's files ----------------------------------------


@dataclass(eq=False)
class RecordComparison:
    """One comparison, and what it came to.

    What completes while the comparison runs is left out of ``table``. ``paths`` limits the
    partitions whose files are compared, ``None`` for all. ``checked`` has the number of records by
    partition of the metadata table, ``skipped`` the reasons; ``made`` caches records that were made
    of the table.
    """

    table: ListedTable
    snapshot: MetadataSnapshot
    checks: Collection[Check]
    paths: Collection[PartitionPath] | None
    checked: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    made: dict[str, Sequence[MetadataRecord]] = field(default_factory=dict)

    @cached_property
    def file_names(self) -> frozenset[str]:
        """Names of all files that the table has, of any instant."""
        listed = self.table.lister.list_files(self.table.lister.list_partitions())
        return frozenset(file.name for files in listed.values() for file in files)

    @cached_property
    def being_cleaned(self) -> Removal:
        """The files of pending cleans; their records may outlive them."""
        table = self.table
        names = files_being_cleaned(table.client)
        return Removal(table.client, table.config, table.definitions, names, (), is_of_past=True)

    def is_partitioned(self, index: str) -> bool:
        """Whether an index keeps the keys of each table partition apart."""
        return self.table.definitions.is_partitioned(index)
