"""The file lister that asks storage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from hudi_core.meta_client import TableMetaClient, run_serially
from hudi_core.model.client import RunMap
from hudi_core.model.file_index import FileIndex
from hudi_core.model.files import (
    PARTITION_METADATA_FILE,
    BaseFileName,
    FileStatus,
    PartitionPath,
    join_path,
)
from hudi_core.model.protocols import Storage
from hudi_core.storage.federated import FederatedStorage, Prefix

_FEW: Final = 4
"""So many partitions are listed one by one in each folder of a storage strategy."""
METADATA_FOLDER: Final = ".hoodie"
"""The folder of a table that never holds its rows."""


@dataclass(frozen=True, slots=True)
class _Probe:
    """Probes one folder; a value that engines can send away.

    With its storage.
    """

    storage: Storage

    def __call__(self, folder: str) -> tuple[bool, tuple[str, ...]]:
        """Return whether the folder is a partition, and folders to probe.

        The latter are folders below it that may be partitions.
        """
        if self.storage.head(join_path(folder, PARTITION_METADATA_FILE)) is not None:
            return True, ()
        is_partition = any(
            BaseFileName.parse(status.name) is not None for status in self.storage.list(folder)
        )
        return is_partition, folders_below(self.storage, folder)


@dataclass(frozen=True, slots=True)
class _Listing:
    """Lists one partition; a value, as :class:`_Probe` is."""

    storage: Storage

    def __call__(self, partition: PartitionPath) -> tuple[FileStatus, ...]:
        return tuple(self.storage.list(partition))


def folders_below(storage: Storage, folder: str) -> tuple[str, ...]:
    """Return the folders below one that may hold rows."""
    return tuple(
        path for path in storage.list_folders(folder) if path.rpartition("/")[2] != METADATA_FOLDER
    )


@dataclass(frozen=True, slots=True)
class _PrefixListing:
    """Lists partitions in one prefix; a value, as :class:`_Probe` is."""

    partitions: tuple[PartitionPath, ...] | None

    def __call__(self, prefix: Prefix) -> tuple[FileStatus, ...]:
        if self.partitions is None:
            return prefix.list(recursive=True)
        return tuple(file for path in self.partitions for file in prefix.list(path, False))


class StorageLister(FileIndex):
    """Lists a table's folders; needs nothing but the storage.

    A partition is a folder with a ``.hoodie_partition_metadata`` file; folders below it are not
    looked at, as Hudi does. Where writers left that file out, a folder that holds base files is one
    too. Cost: one call per partition to find it, one to list it.

    Where a storage strategy places data files, each of its folders is listed: once, with all below
    it, or a few partitions in each.

    Parameters
    ----------
    storage
        Of the table's data files.
    partitioned
        Whether the table has partition fields. Without them the table itself is the one partition.
    run_map
        Runs the calls of one level of folders; an engine's ``map``. Serial by default.
    """

    def __init__(self, storage: Storage, partitioned: bool, run_map: RunMap = run_serially) -> None:
        self._prefixed = storage if isinstance(storage, FederatedStorage) else None
        # marks of partitions stay in the table's folder
        self._storage = storage if self._prefixed is None else self._prefixed.table_storage
        self._partitioned = partitioned
        self._run_map = run_map

    @classmethod
    def of(cls, client: TableMetaClient) -> StorageLister:
        """The lister of a table's folders, by its client's engine."""
        return cls(client.data, client.config.is_partitioned, client.map_requests)

    def list_partitions(self) -> Sequence[PartitionPath]:
        """Return every partition path, sorted; ``[""]`` for a table without partitions."""
        if not self._partitioned:
            return [PartitionPath("")]
        probe = _Probe(self._storage)
        found: list[PartitionPath] = []
        # the root of a partitioned table is no partition, whatever lies in it
        level = folders_below(self._storage, "")
        while level:
            answers = list(self._run_map(probe, level))
            found += [
                PartitionPath(folder)
                for folder, (is_partition, _) in zip(level, answers, strict=True)
                if is_partition
            ]
            level = tuple(path for _, below in answers for path in below)
        if self._prefixed is not None:
            found += files_in_prefixes(self._prefixed, None, self._run_map)
        return sorted(set(found))

    def list_files(
        self, partitions: Sequence[PartitionPath]
    ) -> Mapping[PartitionPath, Sequence[FileStatus]]:
        """Return the files of each partition, in-flight and old ones included."""
        if self._prefixed is not None:
            return files_in_prefixes(self._prefixed, partitions, self._run_map)
        answers = self._run_map(_Listing(self._storage), list(partitions))
        return dict(zip(partitions, answers, strict=True))


def files_in_prefixes(
    storage: FederatedStorage, partitions: Sequence[PartitionPath] | None, run_map: RunMap
) -> dict[PartitionPath, Sequence[FileStatus]]:
    """Files of some or all partitions, in a strategy's folders."""
    is_few = partitions is not None and len(partitions) <= _FEW
    listing = _PrefixListing(tuple(partitions) if partitions and is_few else None)
    found: dict[PartitionPath, list[FileStatus]] = {path: [] for path in partitions or ()}
    for some in run_map(listing, storage.prefixes()):
        for file in some:
            path = PartitionPath(file.path.rpartition("/")[0])
            if partitions is None:
                found.setdefault(path, [])
            if path in found:
                found[path].append(file)
    by_path = attrgetter("path")
    return {path: tuple(sorted(files, key=by_path)) for path, files in found.items()}
