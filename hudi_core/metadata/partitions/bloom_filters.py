"""The bloom filters of the table's files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import pyarrow as pa

from hudi_core.base_file.footer import read_bloom
from hudi_core.hashing.bloom import TYPE_CODE
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.key_index.key_records import DataFile
from hudi_core.metadata.keys import bloom_filter_key
from hudi_core.metadata.log.records import (
    BloomFilterEntry,
    MetadataRecord,
    PartitionChange,
    RecordType,
)
from hudi_core.metadata.partition_types import BLOOM_FILTERS
from hudi_core.metadata.partitions.base import MetadataPartition, Reading
from hudi_core.metadata.partitions.listed import ListedTable
from hudi_core.metadata.partitions.names import Check
from hudi_core.metadata.partitions.work import Commit, Removal
from hudi_core.model.files import BaseFileName, PartitionPath
from hudi_core.model.instant_time import InstantTime


@dataclass(frozen=True)
class BloomFilters(MetadataPartition):
    """The bloom filter of every file, as its footer has it."""

    name: str = BLOOM_FILTERS
    arrow_schema: ClassVar[pa.Schema] = pa.schema(
        [
            ("key", pa.string()),
            ("type", pa.string()),
            ("instant_time", pa.string()),
            ("bloom_filter", pa.binary()),
        ]
    )
    checks: ClassVar[frozenset[Check]] = frozenset({Check.BLOOM_FILTERS})
    option: ClassVar[str | None] = "bloom_filters"
    groups: ClassVar[int | str] = "bloom_filter_groups"

    def of_commit(self, commit: Commit) -> PartitionChange:
        # a write that began before there was this partition kept none
        new = [(status, file) for status, file in commit.new if not file.is_log]
        unknown = [file for status, file in new if status.bloom is None]
        times = dict.fromkeys([file.name for file in unknown], commit.time)
        read = _from_footers(commit.client, unknown, times)
        known = (
            _entry(file, commit.time, status.bloom)
            for status, file in new
            if status.bloom is not None
        )
        return PartitionChange((*known, *read))

    def of_removal(self, removal: Removal) -> PartitionChange:
        gone = BloomFilterEntry(TYPE_CODE, "", b"", is_deleted=True)
        files = (file for file in removal.files if BaseFileName.parse(file[1]) is not None)
        return PartitionChange(tuple(_record(*file, gone) for file in files))

    def build(self, table: ListedTable) -> Iterable[MetadataRecord]:
        return _from_footers(table.client, table.all, table.times)

    def rows(self, record: MetadataRecord, reading: Reading) -> Iterable[tuple[Any, ...]]:  # noqa: ARG002
        found = record.payload
        if isinstance(found, BloomFilterEntry):
            yield record.key, found.type_code, found.instant_time, found.bloom

    def fact(self, record: MetadataRecord) -> object:
        return _filter(record)

    def describe(self, record: MetadataRecord) -> str:
        return f"a bloom filter of {len(_filter(record))} bytes"


def _from_footers(
    client: TableMetaClient, files: list[DataFile], times: Mapping[str, InstantTime]
) -> Iterator[MetadataRecord]:
    blooms = client.map_files(partial(read_bloom, client.for_tasks), [one.path for one in files])
    for file, bloom in zip(files, blooms, strict=True):
        yield _entry(file, times[file.name], bloom)


def _entry(file: DataFile, time: InstantTime, bloom: bytes) -> MetadataRecord:
    entry = BloomFilterEntry(TYPE_CODE, time, bloom)
    return _record(file.partition_path, file.name, entry)


def _record(partition: PartitionPath, name: str, entry: BloomFilterEntry) -> MetadataRecord:
    return MetadataRecord(bloom_filter_key(partition, name), RecordType.BLOOM_FILTERS, entry)


def _filter(record: MetadataRecord) -> bytes:
    return record.payload.bloom if isinstance(record.payload, BloomFilterEntry) else b""
