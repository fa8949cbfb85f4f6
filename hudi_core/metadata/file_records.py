"""Files as records: the list of them, what instants add to it and take from it; bloom filters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hudi_core.metadata.keys import ALL_PARTITIONS, bloom_filter_key, partition_name
from hudi_core.metadata.partition_types import RecordType
from hudi_core.metadata.records import BloomFilterEntry, FileEntry, FileList, MetadataRecord
from hudi_core.model.files import PartitionPath


def list_records(files: Mapping[PartitionPath, Mapping[str, FileEntry]]) -> list[MetadataRecord]:
    """Return one record for each partition."""
    return [
        MetadataRecord(partition_name(partition), RecordType.FILES, FileList(dict(found)))
        for partition, found in files.items()
    ]


def partitions_record(
    present: Iterable[PartitionPath], gone: Iterable[PartitionPath] = ()
) -> MetadataRecord:
    """Return the record that lists partitions, those that are there and those that are gone."""
    entries = {partition_name(one): FileEntry(0) for one in present}
    entries |= {partition_name(one): FileEntry(0, is_deleted=True) for one in gone}
    return MetadataRecord(ALL_PARTITIONS, RecordType.ALL_PARTITIONS, FileList(entries))


def removed_files(names: Iterable[str]) -> dict[str, FileEntry]:
    """Return the entries that take files out of the list."""
    return {name: FileEntry(0, is_deleted=True) for name in names}


def bloom_record(
    partition: PartitionPath, file_name: str, entry: BloomFilterEntry
) -> MetadataRecord:
    """Return the record of a file's bloom filter."""
    return MetadataRecord(bloom_filter_key(partition, file_name), RecordType.BLOOM_FILTERS, entry)
