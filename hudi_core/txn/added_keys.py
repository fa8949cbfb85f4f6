"""Record keys that two concurrent writes both insert.

Neither of them could find the other's rows when it looked its keys up, and they share no file
group: without this check both would be kept, and the key would be in the table twice. Hudi leaves
that to its users; its rule is kept for operations that look nothing up (insert, bulk_insert).

Only writes that completed meanwhile are looked at, only their files with new rows in the same
partitions, and of those first the footers: ranges of keys, then bloom filters. The keys of this
write are read file by file, and only of files whose range meets that of another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.base_file.footer import read_columns, read_file_metadata
from hudi_core.base_file.key_footer import KeyFooter, key_footer
from hudi_core.config.index_keys import IndexConfig
from hudi_core.config.kinds import InsertDuplicates
from hudi_core.config.write import WriteConfig
from hudi_core.index.bloom import BloomIndex
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.commit import (
    NO_PREVIOUS_COMMIT,
    CommitMetadata,
    WriteOperation,
    WriteStat,
)
from hudi_core.model.files import FileId
from hudi_core.model.instant import Instant
from hudi_core.model.operation import operation_recorded
from hudi_core.schema.table_schema import COMMIT_TIME, RECORD_KEY

MOVES_ROWS: Final = frozenset({WriteOperation.CLUSTER, WriteOperation.COMPACT})
"""Operations whose new files hold no new key."""
_Range: TypeAlias = tuple[bytes, bytes] | None
"""Least and greatest key of a file; ``None`` where they are not known."""


@dataclass(frozen=True)
class AddedKeys:
    """The record keys that one write adds."""

    client: TableMetaClient
    metadata: CommitMetadata
    instant: Instant

    def shared_with(self, others: Mapping[Instant, CommitMetadata]) -> tuple[Instant, str] | None:
        """A key that another write inserted too, and that write.

        ``None`` where none has.

        For writes whose keys are unique; see :attr:`are_unique`.

        ``others`` are the writes that completed after this one began.
        """
        ranges = cache(self._range)
        for partition, stat in with_new_rows(self.metadata):
            near = [
                (other, their_stat)
                for other, theirs in others.items()
                if theirs.operation_type not in MOVES_ROWS
                for their_partition, their_stat in with_new_rows(theirs)
                if self._is_global or their_partition == partition
                if _overlap(ranges(stat.path or ""), ranges(their_stat.path or ""))
            ]
            if not near:
                continue
            own = self._written_keys(stat.path or "")
            files = _WrittenFiles(self.client, [their_stat for _, their_stat in near])
            for match in BloomIndex().tag(own, files):
                return near[match.candidate][0], str(own[int(match.incoming[0])])
        return None

    @property
    def are_unique(self) -> bool:
        """Whether the write looks up keys, so inserts no existing one."""
        config, options = self.client.config, self.client.options
        if not config.record_key_fields or config.buckets is not None:
            return False  # keys of our own making; new groups of one bucket conflict by themselves
        operation = operation_recorded(self.metadata.operation_type)
        if operation is None or operation.adds_keys_once:
            return operation is not None
        duplicates = WriteConfig.from_options(options).duplicates(operation)
        return duplicates is not InsertDuplicates.NONE

    @property
    def _is_global(self) -> bool:
        return IndexConfig.index_type.read(self.client.options).is_global

    def _range(self, path: str) -> _Range:
        footer = _footer(self.client, path)
        if footer.min_key is None or footer.max_key is None:
            return None
        return _units(footer.min_key), _units(footer.max_key)

    def _written_keys(self, path: str) -> pa.StringArray:
        rows = read_columns(self.client, path, [RECORD_KEY, COMMIT_TIME])
        keys = rows.column(RECORD_KEY).cast(pa.string())
        if COMMIT_TIME not in self.client.config.stored_meta_columns:
            # those that were copied from the last version of the file come too: no other write
            # can have inserted them, unless they were in the table twice before
            return keys.combine_chunks()
        own = pc.equal(rows.column(COMMIT_TIME), self.instant.requested_time)
        return keys.filter(own).combine_chunks()


@dataclass(frozen=True, slots=True)
class _WrittenFiles:
    """Files of other writes; :class:`~hudi_core.index.base.Candidates`."""

    client: TableMetaClient
    stats: Sequence[WriteStat]

    def __len__(self) -> int:
        return len(self.stats)

    def file_id(self, ordinal: int) -> FileId:
        return FileId(self.stats[ordinal].file_id or "")

    def footer(self, ordinal: int) -> KeyFooter:
        return _footer(self.client, self.stats[ordinal].path or "")

    def keys(self, ordinal: int) -> pa.ChunkedArray:
        found = read_columns(self.client, self.stats[ordinal].path or "", [RECORD_KEY])
        return found.column(RECORD_KEY).cast(pa.string())


def with_new_rows(metadata: CommitMetadata) -> Iterator[tuple[str, WriteStat]]:
    """Yield partition and statistics of each file with rows that are new."""
    for partition, stats in metadata.partition_to_write_stats.items():
        for stat in stats:
            is_new_group = stat.prev_commit in (None, "", NO_PREVIOUS_COMMIT)
            if stat.path and stat.num_writes and (stat.num_inserts or is_new_group):
                yield partition, stat


def _footer(client: TableMetaClient, path: str) -> KeyFooter:
    return key_footer(read_file_metadata(client, path), path)


def _units(key: str) -> bytes:
    """A key in the order of footers: that of Java's strings."""
    return key.encode("utf-16-be")


def _overlap(one: _Range, other: _Range) -> bool:
    """Whether two files may hold one key."""
    if one is None or other is None:
        return True
    return one[0] <= other[1] and other[0] <= one[1]
