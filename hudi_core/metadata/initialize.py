"""The first building of partitions of the metadata table.

Each partition is one commit of its own, and the table is listed once for all of them. Readers do
not use a partition before the table's properties name it. Everything here runs under the table's
lock.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Final

from hudi_core.base_file.footer import read_bloom
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.hashing.bloom import TYPE_CODE
from hudi_core.metadata.column_records import file_ranges, partition_record, range_records
from hudi_core.metadata.file_bytes import (
    encode_base_file,
    encode_first_log_file,
    encode_partition_mark,
)
from hudi_core.metadata.file_records import bloom_record, list_records, partitions_record
from hudi_core.metadata.index_definitions import IndexDefinitions, with_index
from hudi_core.metadata.indexed_columns import IndexableColumns, IndexedColumns
from hudi_core.metadata.key_records import DataFile, all_entries, all_locations
from hudi_core.metadata.keys import partition_path
from hudi_core.metadata.merging import present
from hudi_core.metadata.partition_types import (
    COLUMN_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX,
    shard_file_id,
)
from hudi_core.metadata.recorded import BULK_INSERT, shards_stated
from hudi_core.metadata.records import (
    BloomFilterEntry,
    ColumnRange,
    FileEntry,
    MetadataRecord,
    RecordLocation,
)
from hudi_core.metadata.state import MetadataState
from hudi_core.metadata.stored_statistics import stored_statistics
from hudi_core.metadata.value_index import repeats_keys, with_repeated_keys, with_type
from hudi_core.metadata.writer import (
    NewFile,
    begin_deltacommit,
    complete_deltacommit,
    shard_numbers,
)
from hudi_core.model.commit import NO_PREVIOUS_COMMIT, WriteStat
from hudi_core.model.files import (
    PARTITION_METADATA_FILE,
    BaseFile,
    BaseFileName,
    LogFileName,
    PartitionPath,
    join_path,
)
from hudi_core.model.instant_time import InstantTime
from hudi_core.schema.avro_types import local_timestamps
from hudi_core.view.file_system import FileSystemView
from hudi_core.view.replaced import replaced_groups, written_files
from hudi_core.view.storage_lister import StorageLister

_LOCATION_BYTES: Final = 48
"""What Hudi expects an entry of the record index to take."""
_SECONDARY_GROUPS: Final = 10


@dataclass
class PartitionBuilder:
    """Builds partitions of a metadata table from one listing of the table.

    Attributes
    ----------
    tables
        The table and its metadata table, with the partitions built so far.
    config
        What the options say.
    definitions
        The table's indexes; those of built partitions are added.
    """

    tables: MetadataState
    config: MetadataConfig
    definitions: IndexDefinitions

    @cached_property
    def _view(self) -> FileSystemView:
        client, timeline = self.tables.client, self.tables.data_timeline
        return FileSystemView(
            StorageLister(client.storage, client.config.is_partitioned, client.run_map),
            timeline,
            replaced_groups(timeline, client.read_commit),
            written_files(timeline, client.read_commit),
        )

    @cached_property
    def _partitions(self) -> tuple[PartitionPath, ...]:
        pattern = self.config.dir_filter
        return tuple(
            path
            for path in self._view.partitions()
            if not (pattern and re.fullmatch(pattern, path))
        )

    @cached_property
    def _files(self) -> dict[PartitionPath, list[BaseFile]]:
        """The files of every partition that has one, those of replaced groups included."""
        found: dict[PartitionPath, list[BaseFile]] = {}
        for one in self._view.all_slices(self._partitions):
            if one.base_file is not None:
                found.setdefault(one.partition_path, []).append(one.base_file)
        return found

    @cached_property
    def _all(self) -> list[DataFile]:
        return [
            DataFile(partition, file.name.file_id, file.status.name)
            for partition, files in self._files.items()
            for file in files
        ]

    @cached_property
    def _current(self) -> list[DataFile]:
        return [
            DataFile(one.partition_path, one.file_id, one.base_file.status.name)
            for one in self._view.latest_slices(self._partitions)
            if one.base_file is not None
        ]

    @cached_property
    def _times(self) -> dict[str, InstantTime]:
        return {file.status.name: file.instant for files in self._files.values() for file in files}

    @cached_property
    def columns(self) -> IndexedColumns:
        """The columns that have ranges."""
        client, timeline = self.tables.client, self.tables.data_timeline
        indexable = IndexableColumns.of(
            client.schema_at(timeline),
            client.config,
            local=local_timestamps(client.schema_text_at(timeline)),
        )
        return indexable.wanted(self.config, self.definitions.columns(COLUMN_STATS))

    @cached_property
    def _ranges(self) -> dict[str, dict[str, ColumnRange]]:
        """Ranges of every file by its path, from the footers."""
        client, columns = self.tables.client, self.columns
        kinds = {path: form.kind for path, form in columns.items()}

        def one(file: DataFile) -> dict[str, ColumnRange]:
            return file_ranges(file.name, stored_statistics(client, file.path, kinds), columns)

        paths = [file.path for file in self._all]
        return dict(zip(paths, client.run_map(one, self._all), strict=True))

    # --- building ------------------------------------------------------------------------------

    def build(self, partition: str, time: InstantTime) -> None:
        """Build one partition, which has no files yet, as the deltacommit of that time.

        Readers do not use it before the table's properties name it.
        """
        records = list(self.records(partition))
        by_value = self.definitions.is_by_value(partition)
        self.tables = begin_deltacommit(self.tables, time)
        files = [
            NewFile(join_path(partition, PARTITION_METADATA_FILE), encode_partition_mark(time))
        ]
        now = self.tables.next_time()
        for owner, own in self._by_owner(partition, records).items():
            count = self._group_count(partition, owner, len(own))
            shards = shard_numbers([record.key for record in own], count, by_value)
            held = set(shards)
            for shard in range(count):
                log = LogFileName(shard_file_id(partition, shard, owner), time, 1, "0-0-0")
                # a group without a base file is named by its log, so that its loss is noticed
                files.append(_first_log(partition, log, is_named=shard not in held))
            numbered = sorted(zip(shards, range(len(own)), strict=True))
            for shard, found in groupby(numbered, key=lambda pair: pair[0]):
                name = BaseFileName(
                    shard_file_id(partition, shard, owner), f"{shard}-0-0", time, ".hfile"
                )
                some = [own[number] for _, number in found]
                files.append(self._base_file(partition, name, now, some))
        # no file group is there that it did not make
        stated = shards_stated({partition: {}})
        self.tables = complete_deltacommit(self.tables, time, files, BULK_INSERT, stated)

    def _by_owner(
        self, partition: str, records: list[MetadataRecord]
    ) -> dict[PartitionPath | None, list[MetadataRecord]]:
        """Return records by the partition of the table whose file groups they are for, where file
        groups have one; else all under ``None``. Each key is there once."""
        if partition != RECORD_INDEX:
            return {None: records}
        is_owned = self.definitions.is_partitioned(partition)
        # a partition that has no rows now gets file groups as well: other engines make those of
        # new ones only
        owners: list[PartitionPath | None] = [*self._files] if is_owned else [None]
        found: dict[PartitionPath | None, dict[str, MetadataRecord]] = {one: {} for one in owners}
        for record in records:
            if isinstance(record.payload, RecordLocation):
                path = partition_path(record.payload.partition_name)
                found[path if is_owned else None][record.key] = record
        return {owner: list(own.values()) for owner, own in found.items()}

    def _base_file(
        self,
        partition: str,
        parsed: BaseFileName,
        now: InstantTime,
        records: Sequence[MetadataRecord],
    ) -> NewFile:
        name = str(parsed)
        data = encode_base_file(records, self.tables.metadata.config, name, now)
        path = join_path(partition, name)
        stat = WriteStat(
            file_id=parsed.file_id,
            path=path,
            prev_commit=NO_PREVIOUS_COMMIT,
            num_writes=len(records),
            num_inserts=len(records),
            total_write_bytes=len(data),
            file_size_in_bytes=len(data),
            partition_path=partition,
        )
        return NewFile(path, data, stat)

    def _group_count(self, partition: str, owner: PartitionPath | None, records: int) -> int:
        config = self.config
        match partition:
            case "files":
                return 1
            case "column_stats":
                return config.column_stats_groups
            case "partition_stats":
                return config.partition_stats_groups
            case "bloom_filters":
                return config.bloom_filter_groups
            case "record_index":
                bounds = config.record_index_groups
                if owner is not None:
                    bounds = config.partitioned_index_groups
                expected = records * _LOCATION_BYTES * config.record_index_growth
                groups = math.ceil(expected / config.record_index_group_bytes)
                return min(max(groups, bounds[0]), bounds[1])
        return _SECONDARY_GROUPS

    def records(self, partition: str) -> Iterable[MetadataRecord]:
        """Return the records of a partition as the table's files have it, each key once."""
        client = self.tables.client
        match partition:
            case "files":
                return self._list()
            case "column_stats":
                self.definitions = with_index(
                    self.definitions, client.config, COLUMN_STATS, tuple(self.columns)
                )
                return self._file_ranges()
            case "partition_stats":
                return self._partition_ranges()
            case "bloom_filters":
                return self._blooms()
            case "record_index":
                options = {"isPartitioned": "true" if self._keeps_by_partition else "false"}
                self.definitions = with_index(
                    self.definitions, client.config, RECORD_INDEX, options=options
                )
                if any(name.startswith(SECONDARY_INDEX) for name in self.definitions.raw):
                    self._note_repeated_keys()
                return all_locations(client, self._current, self._times)
        (column,) = self.definitions.columns(partition)
        self.definitions = with_type(self.definitions, partition, column, client.schema.arrow)
        if RECORD_INDEX in self.definitions.raw:
            self._note_repeated_keys()
        return all_entries(client, self._current, column)

    @property
    def _keeps_by_partition(self) -> bool:
        """Whether the record index is kept by partitions: as the options say, else as it was."""
        if self.config.partitioned_record_index or self.config.record_index:
            return self.config.partitioned_record_index
        return self.definitions.is_partitioned(RECORD_INDEX)

    def _note_repeated_keys(self) -> None:
        if repeats_keys(self.tables.client, self._current):
            self.definitions = with_repeated_keys(self.definitions)

    def _list(self) -> Iterator[MetadataRecord]:
        lists = {
            partition: {file.status.name: FileEntry(file.size) for file in files}
            for partition, files in self._files.items()
        }
        yield partitions_record(lists)
        yield from list_records(lists)

    def _file_ranges(self) -> Iterator[MetadataRecord]:
        for file in self._all:
            ranges = self._ranges[file.path].values()
            yield from range_records(file.partition_path, file.name, ranges)

    def _partition_ranges(self) -> Iterator[MetadataRecord]:
        by_partition: dict[PartitionPath, list[DataFile]] = {}
        for file in self._current:
            by_partition.setdefault(file.partition_path, []).append(file)
        for partition, files in by_partition.items():
            for column, form in self.columns.items():
                ranges = [self._ranges[file.path].get(column) for file in files]
                record = partition_record(partition, column, ranges, form)
                if present(record) is not None:
                    yield record

    def _blooms(self) -> Iterable[MetadataRecord]:
        client, times = self.tables.client, self._times

        def one(file: DataFile) -> MetadataRecord:
            bloom = read_bloom(client, file.path)
            entry = BloomFilterEntry(TYPE_CODE, times[file.name], bloom)
            return bloom_record(file.partition_path, file.name, entry)

        return client.run_map(one, self._all)


def _first_log(partition: str, name: LogFileName, *, is_named: bool) -> NewFile:
    path, data = join_path(partition, str(name)), encode_first_log_file(name.instant)
    if not is_named:
        return NewFile(path, data)
    stat = WriteStat(
        file_id=name.file_id,
        path=path,
        prev_commit=NO_PREVIOUS_COMMIT,
        total_write_bytes=len(data),
        file_size_in_bytes=len(data),
        partition_path=partition,
        log_version=1,
        log_offset=0,
        base_file="",
        log_files=(str(name),),
    )
    return NewFile(path, data, stat)
