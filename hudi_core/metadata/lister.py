"""The file lister that asks the metadata table."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import compress
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.errors import CorruptMetadataError, InstantNotFoundError, UnsafePathError
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.column_ranges import file_ranges, partition_ranges
from hudi_core.metadata.comparison import compare_files
from hudi_core.metadata.damage import REBUILD
from hudi_core.metadata.file_lists import FileLists, read_lists
from hudi_core.metadata.keys import ALL_PARTITIONS, partition_name, partition_path
from hudi_core.metadata.partition_types import COLUMN_STATS, FILES, PARTITION_STATS
from hudi_core.metadata.records import FileList, MetadataRecord
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.metadata.table import StoredPartitions, is_readable
from hudi_core.metadata.value_index import groups_of_values
from hudi_core.model.client import MetaClientView
from hudi_core.model.difference import Difference
from hudi_core.model.files import FileGroupId, FileStatus, PartitionPath
from hudi_core.model.metering import Metric
from hudi_core.model.protocols import FileLister
from hudi_core.model.ranges import MayMatch, Texts, ValueRanges
from hudi_core.schema.table_schema import COMMIT_TIME
from hudi_core.storage.safe_path import require_safe_folder
from hudi_core.view.storage_lister import StorageLister

_log = logging.getLogger(__name__)
Told = TypeVar("Told")


def table_lister(client: MetaClientView) -> FileLister:
    """Return who tells a table's files: the metadata table where it has the list of files.

    ``hoodie.metadata.enable=false`` and ``hoodie.metadata.validate=true`` among the options of the
    session have the storage listed, the latter beside the metadata table.
    """
    storage = StorageLister(client.storage, bool(client.config.partition_fields), client.run_map)
    if not isinstance(client, TableMetaClient) or not is_readable(client.config):
        return storage
    config = MetadataConfig.from_options(client.options)
    if not StoredPartitions.of(client.config).is_there or config.is_refused:
        return storage
    metadata = DroppableLister(client, storage)
    return ValidatingLister(metadata, storage) if config.validate else metadata


class MetadataLister:
    """Lists a table's files from its metadata table; the storage is not listed.

    Files of writes that are not complete, and files that such writes left behind, are not known to
    it: who looks for these has to list the storage.

    Parameters
    ----------
    client
        The table. The timeline it sees decides which records count.
    """

    def __init__(self, client: TableMetaClient) -> None:
        self.client = client

    @cached_property
    def snapshot(self) -> MetadataSnapshot:
        """The metadata table, opened when the first question is asked."""
        return MetadataSnapshot.open(self.client)

    def list_partitions(self) -> Sequence[PartitionPath]:
        """Return every partition path, sorted; ``[""]`` for a table without partitions.

        Raises
        ------
        CorruptMetadataError
            The metadata table is missing, damaged or stale.
        """
        if not self.client.config.is_partitioned:
            return [PartitionPath("")]
        with self.client.meter.time(Metric.LOOKUP_PARTITIONS):
            return sorted(map(self._checked, self._known))

    def list_files(
        self, partitions: Sequence[PartitionPath]
    ) -> Mapping[PartitionPath, Sequence[FileStatus]]:
        """Return the files of each partition, old ones included.

        Raises
        ------
        CorruptMetadataError
            As above, or a partition that is listed has no list of files.
        """
        partitions = list(dict.fromkeys(partitions))
        with self.client.meter.time(Metric.LOOKUP_FILES):
            lists = self._lists(partitions)
            return _statuses(partitions, lists, np.arange(len(lists)))

    def list_matching(
        self, partitions: Sequence[PartitionPath], may_match: MayMatch
    ) -> Mapping[PartitionPath, Sequence[FileStatus]]:
        """Return the files of those file groups of which a base file may match; see
        :class:`~hudi_core.model.ranges.MatchingLister`."""
        partitions = list(dict.fromkeys(partitions))
        with self.client.meter.time(Metric.LOOKUP_FILES):
            lists = self._lists(partitions)
        paths = pa.DictionaryArray.from_arrays(lists.owners, pa.array(partitions, pa.string()))
        # rows of a log file have no ranges
        is_log = pc.starts_with(lists.names, ".").to_numpy(zero_copy_only=False)
        wanted = may_match(paths, lists.names) | is_log
        return _statuses(partitions, lists, lists.with_their_groups(wanted))

    def _lists(self, partitions: Sequence[PartitionPath]) -> FileLists:
        """Return the lists of some partitions, in their order."""
        names = [partition_name(path) for path in partitions]
        found = read_lists(self.snapshot.groups(FILES), names)
        if len(found.keys) < len(names):
            missing = compress(names, pc.invert(found.known(names)).to_pylist())
            for name in missing:
                if name in self._known:
                    raise self._damaged(f"it lists the partition {name!r} and not its files")
        return found.select(names)

    def partition_ranges(
        self, partitions: Sequence[PartitionPath], column: str, kind: pa.DataType
    ) -> ValueRanges | None:
        """Return ranges of a column in partitions; see
        :class:`~hudi_core.model.ranges.RangeSource`."""
        config = self.client.config
        keys = (COMMIT_TIME,) if config.populate_meta_fields else config.record_key_fields
        counting = next(iter(keys), None)
        return partition_ranges(self.snapshot, partitions, column, kind, counting)

    def file_ranges(
        self,
        partitions: Texts,
        names: Texts,
        column: str,
        kind: pa.DataType,
    ) -> ValueRanges | None:
        """Return ranges of a column in files; see :class:`~hudi_core.model.ranges.RangeSource`."""
        return file_ranges(self.snapshot, partitions, names, column, kind)

    def groups_of_values(self, column: str, values: pa.Array) -> frozenset[FileGroupId] | None:
        """Return where values of a column are; see :class:`~hudi_core.model.ranges.ValueIndex`."""
        if not MetadataConfig.from_options(self.client.options).secondary_index:
            return None
        return groups_of_values(self.client, self.snapshot, column, values)

    @cached_property
    def _known(self) -> frozenset[str]:
        record = self.snapshot.lookup(FILES, [ALL_PARTITIONS]).get(ALL_PARTITIONS)
        if record is None:
            raise self._damaged("it has no list of partitions")
        return frozenset(self._list(record).files)

    def _list(self, record: MetadataRecord) -> FileList:
        if not isinstance(record.payload, FileList):
            raise self._damaged(f"the record of {record.key!r} is no list of files")
        return record.payload

    def _checked(self, name: str) -> PartitionPath:
        path = partition_path(name)
        try:
            require_safe_folder(path)
        except UnsafePathError as error:
            raise self._damaged(f"{name!r} is not a path of a partition") from error
        return path

    def _damaged(self, reason: str) -> CorruptMetadataError:
        return CorruptMetadataError(f"{self.snapshot.root}/{FILES}", reason, REBUILD)


class DroppableLister(MetadataLister):
    """Lists a table's files from its metadata table for as long as there is one.

    A table that was opened before its metadata table, or a partition of it, was dropped looks for
    what is not there. Only then its properties are read again, and what was dropped is done
    without. A metadata table that was at hand and has been rebuilt since is opened again.

    Parameters
    ----------
    client
        The table, with its properties as they were when it was opened.
    storage
        The lister that needs no metadata table.
    """

    def __init__(self, client: TableMetaClient, storage: FileLister) -> None:
        super().__init__(client)
        self._storage = storage
        self._dropped: set[str] = set()

    def list_partitions(self) -> Sequence[PartitionPath]:
        """Return every partition path, sorted; ``[""]`` for a table without partitions."""
        return self._with_fallback(FILES, super().list_partitions, self._storage.list_partitions)

    def list_files(
        self, partitions: Sequence[PartitionPath]
    ) -> Mapping[PartitionPath, Sequence[FileStatus]]:
        """Return the files of each partition, old ones included."""
        metadata = super().list_files
        return self._with_fallback(
            FILES, lambda: metadata(partitions), lambda: self._storage.list_files(partitions)
        )

    def list_matching(
        self, partitions: Sequence[PartitionPath], may_match: MayMatch
    ) -> Mapping[PartitionPath, Sequence[FileStatus]]:
        """Return the files of those file groups of which a base file may match; of all of them
        where there is no metadata table."""
        metadata = super().list_matching
        return self._with_fallback(
            FILES,
            lambda: metadata(partitions, may_match),
            lambda: self._storage.list_files(partitions),
        )

    def partition_ranges(
        self, partitions: Sequence[PartitionPath], column: str, kind: pa.DataType
    ) -> ValueRanges | None:
        """Return ranges of a column in partitions, where there are any."""
        metadata = super().partition_ranges
        return self._with_fallback(
            PARTITION_STATS, lambda: metadata(partitions, column, kind), lambda: None
        )

    def file_ranges(
        self, partitions: Texts, names: Texts, column: str, kind: pa.DataType
    ) -> ValueRanges | None:
        """Return ranges of a column in files, where there are any."""
        metadata = super().file_ranges
        return self._with_fallback(
            COLUMN_STATS, lambda: metadata(partitions, names, column, kind), lambda: None
        )

    def groups_of_values(self, column: str, values: pa.Array) -> frozenset[FileGroupId] | None:
        """Return where values of a column are, where an index tells."""
        metadata = super().groups_of_values
        return self._with_fallback(None, lambda: metadata(column, values), lambda: None)

    def _with_fallback(
        self, partition: str | None, ask: Callable[[], Told], without: Callable[[], Told]
    ) -> Told:
        """Ask a partition of the metadata table, or any of it for ``None``; do without it where it
        was dropped."""
        if partition in self._dropped:
            return without()
        try:
            return ask()
        except (CorruptMetadataError, InstantNotFoundError):
            now = self.client.as_stored()
            gone = {*StoredPartitions.of(self.client.config).complete}
            gone -= {*StoredPartitions.of(now.config).complete}
            if not (gone if partition is None else partition in gone):
                if self.client.metadata is None:
                    raise
                # the one at hand was rebuilt since
                self.client = replace(self.client, metadata=None)
                self.__dict__.pop("snapshot", None)
                self.__dict__.pop("_known", None)
                return self._with_fallback(partition, ask, without)
            _log.info("%s were dropped from the metadata table", ", ".join(sorted(gone)))
            self._dropped = gone
            return without()


def _statuses(
    partitions: Sequence[PartitionPath], lists: FileLists, rows: npt.NDArray[np.int64]
) -> Mapping[PartitionPath, Sequence[FileStatus]]:
    """Return some of the files by their partitions, whose lists are in that order."""
    some = lists.rows(rows)
    names, sizes = some.names.to_pylist(), some.sizes.tolist()
    ends = np.searchsorted(some.owners, np.arange(len(partitions)), side="right").tolist()
    found: dict[PartitionPath, Sequence[FileStatus]] = {}
    begin = 0
    for partition, end in zip(partitions, ends, strict=True):
        folder = f"{partition}/" if partition else ""
        found[partition] = [
            FileStatus(folder + name, size)
            for name, size in zip(names[begin:end], sizes[begin:end], strict=True)
        ]
        begin = end
    return found


class ValidatingLister:
    """Lists both, compares, and answers from the storage (RFC-15, `hoodie.metadata.validate`).

    Parameters
    ----------
    metadata
        The lister that is checked.
    storage
        The lister that is right.
    """

    def __init__(self, metadata: MetadataLister, storage: FileLister) -> None:
        self._metadata, self._storage = metadata, storage
        self._differences: list[Difference] = []

    @property
    def differences(self) -> Sequence[Difference]:
        """What was found so far; each is logged as a warning, too."""
        return tuple(self._differences)

    def list_partitions(self) -> Sequence[PartitionPath]:
        """Return every partition path as the storage has it."""
        with self._metadata.client.meter.time(Metric.VALIDATE_PARTITIONS):
            stored = self._storage.list_partitions()
        listed = self._metadata.list_partitions()
        # the folder of a partition may outlive its files, and the other way round
        self._note(
            difference
            for path in sorted({*listed} - {*stored})
            for difference in compare_files(
                path,
                self._metadata.list_files([path])[path],
                (),
                self._metadata.client.timeline(),
            )
        )
        return stored

    def list_files(
        self, partitions: Sequence[PartitionPath]
    ) -> Mapping[PartitionPath, Sequence[FileStatus]]:
        """Return the files of each partition as the storage has them."""
        with self._metadata.client.meter.time(Metric.VALIDATE_FILES):
            stored = self._storage.list_files(partitions)
        listed = self._metadata.list_files(partitions)
        timeline = self._metadata.client.timeline()
        for path in partitions:
            self._note(compare_files(path, listed[path], stored[path], timeline))
        return stored

    def _note(self, found: Iterable[Difference]) -> None:
        for difference in found:
            _log.warning("the metadata table of %s is wrong: %s", self._where, difference)
            self._differences.append(difference)
            self._metadata.client.meter.count(Metric.VALIDATE_ERRORS)

    @property
    def _where(self) -> str:
        return self._metadata.client.base_path
