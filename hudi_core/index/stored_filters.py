"""Bloom filters and key ranges of files by the metadata table.

They replace the footers of candidate files, which are then not opened. A file that the metadata
table has no usable filter of is no exception: its footer is read, and rules it out or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from hudi_core.base_file.file_keys import FileKeys
from hudi_core.base_file.key_footer import KeyFooter
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.errors import CorruptMetadataError
from hudi_core.hashing.bloom import TYPE_CODE, DynamicBloom
from hudi_core.hashing.java_hash import shards_of
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.damage import REBUILD
from hudi_core.metadata.keys import bloom_filter_key
from hudi_core.metadata.lister import table_lister
from hudi_core.metadata.log.layers import GroupFiles, GroupReader
from hudi_core.metadata.log.records import BloomFilterEntry, MetadataRecord
from hudi_core.metadata.merging import present
from hudi_core.metadata.partition_types import BLOOM_FILTERS
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.metadata.table import METADATA_FOLDER, StoredPartitions
from hudi_core.model.file_columns import FileColumns
from hudi_core.model.files import BaseFile, BasePath, FileStatus, PartitionPath
from hudi_core.model.protocols import TimelineView
from hudi_core.model.ranges import ValueRanges
from hudi_core.schema.table_schema import RECORD_KEY
from hudi_core.storage.open import open_storage
from hudi_core.storage.options import StorageOptions
from hudi_core.storage.subfolder import SubfolderStorage

Candidate = tuple[PartitionPath, BaseFile]

_BYTES_AT_ONCE: Final = 256 << 20
"""Filters are looked up for so many bytes of files at once; they are the smaller part of these."""


@dataclass(frozen=True, slots=True)
class StoredFilters:
    """Where the filters of a table's files are; crosses to executors."""

    base_path: BasePath
    storage_options: StorageOptions
    shards: tuple[GroupFiles, ...]

    @classmethod
    def open(cls, client: TableMetaClient, timeline: TimelineView) -> StoredFilters | None:
        """The filters of a table; ``None`` where it keeps none.

        One that options turn off, or have compared with the storage, is not used.
        """
        stored, config = (
            StoredPartitions.of(client.config),
            MetadataConfig.from_options(client.options),
        )
        is_used = stored.is_there and not (config.is_refused or config.validate)
        if not is_used or BLOOM_FILTERS not in stored.complete:
            return None
        shards = MetadataSnapshot.open(client, timeline).shards(BLOOM_FILTERS)
        return cls(client.base_path, client.storage_options, shards[None])


class KnownFooters:
    """What footers of candidates say, without opening them.

    ``candidates`` are asked for in their order.
    """

    def __init__(
        self, filters: StoredFilters, candidates: Sequence[Candidate], ranges: ValueRanges | None
    ) -> None:
        self._filters, self._candidates, self._ranges = filters, candidates, ranges
        whole = open_storage(filters.base_path, filters.storage_options)
        self._storage = SubfolderStorage(whole, METADATA_FOLDER)
        self._readers: dict[int, GroupReader] = {}
        self._found: Mapping[int, DynamicBloom | None] = {}

    def footer(self, ordinal: int) -> KeyFooter | None:
        """Bounds and filter of a candidate; ``None`` where unknown."""
        if ordinal not in self._found:
            self._found = self._load(self._batch(ordinal))
        bloom = self._found[ordinal]
        if bloom is None:
            return None
        low = high = None
        if self._ranges is not None:
            low, high = self._ranges.minimum[ordinal], self._ranges.maximum[ordinal]
            low, high = low.as_py(), high.as_py()
        return KeyFooter(low, high, bloom, bloom.count)

    def _batch(self, first: int) -> range:
        """Ordinals of files, looked up together from one on."""
        total, stop = 0, first
        while stop < len(self._candidates) and (stop == first or total < _BYTES_AT_ONCE):
            total += self._candidates[stop][1].size
            stop += 1
        return range(first, stop)

    def _load(self, ordinals: Sequence[int]) -> dict[int, DynamicBloom | None]:
        keys = [
            bloom_filter_key(path, file.status.name)
            for path, file in (self._candidates[one] for one in ordinals)
        ]
        shards = shards_of(pa.array(keys, pa.string()), len(self._filters.shards))
        found: dict[int, DynamicBloom | None] = dict.fromkeys(ordinals)
        for shard in np.unique(shards).tolist():
            own = np.flatnonzero(shards == shard).tolist()
            reader = self._reader(shard)
            records = reader.lookup([keys[place] for place in own])
            for place in own:
                found[ordinals[place]] = _filter_of(records.get(keys[place]), reader.path)
        return found

    def _reader(self, shard: int) -> GroupReader:
        if shard not in self._readers:
            self._readers[shard] = self._filters.shards[shard].reader(self._storage)
        return self._readers[shard]


def _filter_of(record: MetadataRecord | None, path: str) -> DynamicBloom | None:
    """The filter in a record.

    ``None`` for a file without, or for a filter of another kind.
    """
    seen = present(record)
    entry = None if seen is None else seen.payload
    if not isinstance(entry, BloomFilterEntry) or not entry.bloom:
        return None
    if entry.type_code != TYPE_CODE:
        return None
    try:
        return DynamicBloom.parse(entry.bloom, path)
    except CorruptMetadataError as error:
        raise CorruptMetadataError(path, error.reason, REBUILD) from error


# --- key ranges ----------------------------------------------------------------------------------


def key_ranges(
    client: TableMetaClient, files: Sequence[tuple[PartitionPath, BaseFile]]
) -> ValueRanges | None:
    """Ranges of the record keys in some base files.

    ``None`` where none are kept.

    In ``files`` all those of one partition are next to each other.
    """
    listed: dict[PartitionPath, list[FileStatus]] = {}
    for path, file in files:
        listed.setdefault(path, []).append(file.status)
    columns = FileColumns.of_statuses(listed)
    keys = FileKeys.of(client)
    name = keys.same_column if keys.are_made else RECORD_KEY
    if name is None:
        return None
    return table_lister(client).file_ranges(columns, name, pa.string())
