"""One walk over all folders of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hudi_core.meta_client import run_serially
from hudi_core.model.client import RunMap
from hudi_core.model.file_index import FileIndex
from hudi_core.model.files import PARTITION_METADATA_FILE, BaseFileName, FileStatus, PartitionPath
from hudi_core.model.protocols import Storage
from hudi_core.storage.federated import FederatedStorage
from hudi_core.view.storage_lister import files_in_prefixes, folders_below


@dataclass(frozen=True, slots=True)
class _Look:
    """Lists one folder; a value, which engines can send away."""

    storage: Storage
    is_partition: bool = False
    is_elsewhere: bool = False

    def __call__(self, folder: str) -> tuple[tuple[FileStatus, ...] | None, tuple[str, ...]]:
        """Return the files of a partition, and folders that may be partitions."""
        files = tuple(self.storage.list(folder))
        names = [file.name for file in files]
        if self.is_partition or PARTITION_METADATA_FILE in names:
            return () if self.is_elsewhere else files, ()
        is_unmarked = not self.is_elsewhere and any(
            BaseFileName.parse(name) is not None for name in names
        )
        return files if is_unmarked else None, folders_below(self.storage, folder)


class TableListing(FileIndex):
    """A table's data files by partition, from one walk over its folders.

    What counts as a partition is what :class:`~hudi_core.view.storage_lister.StorageLister` says.
    Each folder of a partition is listed once, when anything is first asked for, and its files are
    kept: for who needs all of them. One call per partition, and two per folder above them. Where a
    storage strategy places data files, one call more for each of its folders.
    """

    def __init__(self, storage: Storage, partitioned: bool, run_map: RunMap = run_serially) -> None:
        self._storage = storage
        self._prefixed = storage if isinstance(storage, FederatedStorage) else None
        self._partitioned = partitioned
        self._run_map = run_map

    def list_partitions(self) -> Sequence[PartitionPath]:
        """Return every partition path, sorted; ``[""]`` for a table without partitions."""
        return sorted(self._walked)

    def list_files(
        self, partitions: Sequence[PartitionPath]
    ) -> Mapping[PartitionPath, Sequence[FileStatus]]:
        """Return the files of each partition, in-flight and old ones included."""
        others = [one for one in partitions if one not in self._walked]
        listed = self._walked | self._of_partitions(others) if others else self._walked
        return {one: listed[one] for one in partitions}

    @cached_property
    def _walked(self) -> dict[PartitionPath, Sequence[FileStatus]]:
        if not self._partitioned:
            return self._of_partitions([PartitionPath("")])
        if self._prefixed is None:
            return self._below(_Look(self._storage))
        # marks of partitions stay in the table's folder
        marked = self._below(_Look(self._prefixed.table_storage, is_elsewhere=True))
        return marked | files_in_prefixes(self._prefixed, None, self._run_map)

    def _below(self, look: _Look) -> dict[PartitionPath, Sequence[FileStatus]]:
        found = dict[PartitionPath, Sequence[FileStatus]]()
        # the root of a partitioned table is no partition, whatever lies in it
        level = folders_below(look.storage, "")
        while level:
            answers = list(self._run_map(look, level))
            for folder, (files, _) in zip(level, answers, strict=True):
                if files is not None:
                    found[PartitionPath(folder)] = files
            level = tuple(path for _, below in answers for path in below)
        return found

    def _of_partitions(
        self, partitions: Sequence[PartitionPath]
    ) -> dict[PartitionPath, Sequence[FileStatus]]:
        if self._prefixed is not None:
            return files_in_prefixes(self._prefixed, partitions, self._run_map)
        answers = self._run_map(_Look(self._storage, is_partition=True), list(partitions))
        return {one: files or () for one, (files, _) in zip(partitions, answers, strict=True)}
