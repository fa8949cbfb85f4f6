"""The list of the table's files; every metadata table has it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from hudi_core.errors import TableServiceError
from hudi_core.metadata.keys import ALL_PARTITIONS, partition_name, partition_path
from hudi_core.metadata.lister import MetadataLister, compare_files
from hudi_core.metadata.log.records import (
    FileEntry,
    FileList,
    MetadataRecord,
    PartitionChange,
    RecordType,
)
from hudi_core.metadata.partition_types import FILES
from hudi_core.metadata.partitions.base import MetadataPartition, Reading
from hudi_core.metadata.partitions.listed import ListedTable, RecordComparison
from hudi_core.metadata.partitions.names import Check
from hudi_core.metadata.partitions.work import Commit, Removal
from hudi_core.model.difference import Difference
from hudi_core.model.files import FileStatus, PartitionPath, join_path
from hudi_core.view.file_system import FileSystemView


@dataclass(frozen=True)
class Files(MetadataPartition):
    """The partitions of the table, and their files with sizes."""

    name: str = FILES
    arrow_schema: ClassVar[pa.Schema] = pa.schema(
        [("partition_path", pa.string()), ("file_name", pa.string()), ("size", pa.int64())]
    )
    checks: ClassVar[frozenset[Check]] = frozenset({Check.FILES, Check.LATEST_FILES})
    option: ClassVar[str | None] = "enabled"
    is_required: ClassVar[bool] = True

    def require_droppable(self) -> None:
        raise TableServiceError(
            "The list of files is what the metadata table cannot be without",
            "Run `hudi metadata delete PATH` to delete all of it.",
        )

    def of_commit(self, commit: Commit) -> PartitionChange:
        lists: dict[PartitionPath, dict[str, FileEntry]] = {}
        for status, file in commit.new:
            entry = FileEntry(status.stat.file_size_in_bytes or 0)
            names = lists.setdefault(file.partition_path, {})
            names[file.name] = entry
            for path, size in (status.stat.cdc_stats or {}).items():
                names[path.rpartition("/")[2]] = FileEntry(size)
        return PartitionChange((partitions_record(lists), *list_records(lists)) if lists else ())

    def of_removal(self, removal: Removal) -> PartitionChange:
        records = list_records(
            {
                partition: {name: FileEntry(0, is_deleted=True) for name in names}
                for partition, names in removal.names.items()
            }
        )
        if removal.dropped:
            records.append(partitions_record((), removal.dropped))
        return PartitionChange(tuple(records))

    def build(self, table: ListedTable) -> Iterable[MetadataRecord]:
        lists = {
            partition: {file.status.name: FileEntry(file.size) for file in files}
            for partition, files in table.files.items()
        }
        for found in (table.all_logs, table.change_logs):
            for partition, logs in found.items():
                entries = {file.name: FileEntry(file.size) for file in logs}
                lists[partition] = lists.get(partition, {}) | entries
        return [partitions_record(lists), *list_records(lists)]

    def rows(self, record: MetadataRecord, reading: Reading) -> Iterable[tuple[Any, ...]]:  # noqa: ARG002
        if record.key != ALL_PARTITIONS and isinstance(record.payload, FileList):
            partition = partition_path(record.key)
            for name, entry in sorted(record.payload.files.items()):
                yield partition, name, entry.size

    def compare(self, comparison: RecordComparison) -> Iterator[Difference]:
        client, storage = comparison.table.client, comparison.table.lister
        metadata = MetadataLister(client)
        known = {*metadata.list_partitions(), *storage.list_partitions()}
        wanted = sorted(known if comparison.paths is None else known & {*comparison.paths})
        listed, stored = metadata.list_files(wanted), storage.list_files(wanted)
        # gone or not, both is right
        going = {join_path(*one) for one in comparison.being_cleaned.files}
        comparison.checked[self.name] = sum(len(files) for files in listed.values())
        for path in wanted:
            ours = [one for one in listed[path] if one.path not in going]
            theirs = [one for one in stored[path] if one.path not in going]
            if Check.FILES not in comparison.checks:
                ours, theirs = (_latest(path, some, comparison) for some in (ours, theirs))
            yield from compare_files(path, ours, theirs, client.timeline())


def list_records(files: Mapping[PartitionPath, Mapping[str, FileEntry]]) -> list[MetadataRecord]:
    """One record for each partition of the table."""
    return [
        MetadataRecord(partition_name(partition), RecordType.FILES, FileList(dict(found)))
        for partition, found in files.items()
    ]


def partitions_record(
    present: Iterable[PartitionPath], gone: Iterable[PartitionPath] = ()
) -> MetadataRecord:
    """The record that lists partitions, present ones and deleted ones."""
    entries = {partition_name(one): FileEntry(0) for one in present}
    entries |= {partition_name(one): FileEntry(0, is_deleted=True) for one in gone}
    return MetadataRecord(ALL_PARTITIONS, RecordType.ALL_PARTITIONS, FileList(entries))


def _latest(
    partition: PartitionPath, files: Sequence[FileStatus], comparison: RecordComparison
) -> list[FileStatus]:
    """The files of the newest slice of each file group."""
    table = comparison.table
    view = FileSystemView(table.lister, table.client.timeline(), {}, listed={partition: files})
    return [file for one in view.latest_slices([partition]) for file in one.files]
