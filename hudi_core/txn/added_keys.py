"""Record keys that two concurrent writes both add, each to a file group of its own.

Neither of them could find the other's rows when it looked its keys up, and they share no file
group: without this check both would stand, and the key would be in the table twice. Hudi leaves
that to its users; its rule is kept for operations that look nothing up (insert, bulk_insert).

Only writes that completed meanwhile are looked at, only their files with new rows in the same
partitions, and of those first the footers: ranges of keys, then bloom filters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.config.index_keys import INDEX_TYPE
from hudi_core.config.kinds import InsertDuplicates
from hudi_core.config.write import WriteConfig
from hudi_core.index.base import KeyFooter
from hudi_core.index.bloom import BloomIndex
from hudi_core.index.key_footer import key_footer
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.data_files import read_columns, read_file_metadata
from hudi_core.model.commit import (
    NO_PREVIOUS_COMMIT,
    CommitMetadata,
    WriteOperation,
    WriteStat,
)
from hudi_core.model.files import FileId
from hudi_core.model.instant import Instant
from hudi_core.model.schema import COMMIT_TIME, RECORD_KEY

_LOOKS_UP: Final = frozenset(
    {
        WriteOperation.UPSERT,
        WriteOperation.INSERT_OVERWRITE,
        WriteOperation.INSERT_OVERWRITE_TABLE,
    }
)
"""Operations after which a key is in the table once, if it was before."""
_MOVES_ROWS: Final = frozenset({WriteOperation.CLUSTER, WriteOperation.COMPACT})
"""Operations whose new files hold no new key."""


@dataclass(frozen=True)
class AddedKeys:
    """The record keys that one write adds, read when they are first compared.

    Attributes
    ----------
    client
        The table.
    metadata, instant
        What the write is about to commit, and its instant.
    """

    client: TableMetaClient
    metadata: CommitMetadata
    instant: Instant

    def shared_with(self, theirs: CommitMetadata) -> str | None:
        """A key that another write has added as well; ``None`` where there is none.

        For writes whose keys are unique; see :attr:`are_unique`.

        Parameters
        ----------
        theirs
            Of a write that completed after this one began.

        Raises
        ------
        DataFileError
            A file of one of the two cannot be read.
        """
        if theirs.operation_type in _MOVES_ROWS:
            return None
        for partition, stats in theirs.partition_to_write_stats.items():
            files = _WrittenFiles(self.client, [stat for stat in stats if _has_new_rows(stat)])
            own = self._by_scope.get("" if self._is_global else partition)
            if own is None or not len(files):
                continue
            for match in BloomIndex().tag(own, files):
                return str(own[int(match.incoming[0])])
        return None

    @property
    def are_unique(self) -> bool:
        """Whether the write looks its keys up, so that it adds none that the table has."""
        config, options = self.client.config, self.client.options
        if not config.record_key_fields or config.buckets is not None:
            return False  # keys of our own making; new groups of one bucket conflict by themselves
        if self.metadata.operation_type == WriteOperation.INSERT:
            return WriteConfig.from_options(options).insert_duplicates is not InsertDuplicates.NONE
        return self.metadata.operation_type in _LOOKS_UP

    @property
    def _is_global(self) -> bool:
        return INDEX_TYPE.read(self.client.options).is_global

    @cached_property
    def _by_scope(self) -> dict[str, pa.StringArray]:
        """The keys by the path of their partition, or all of them under an empty one."""
        found: dict[str, list[pa.StringArray]] = {}
        for partition, stats in self.metadata.partition_to_write_stats.items():
            scope = "" if self._is_global else partition
            for path in (stat.path for stat in stats if _has_new_rows(stat)):
                found.setdefault(scope, []).append(self._written_keys(path or ""))
        return {scope: pc.unique(pa.concat_arrays(keys)) for scope, keys in found.items()}

    def _written_keys(self, path: str) -> pa.StringArray:
        rows = read_columns(self.client, path, [RECORD_KEY, COMMIT_TIME])
        own = pc.equal(rows.column(COMMIT_TIME), self.instant.requested_time)
        return rows.column(RECORD_KEY).filter(own).cast(pa.string()).combine_chunks()


@dataclass(frozen=True, slots=True)
class _WrittenFiles:
    """Files of one write; :class:`~hudi_core.index.base.Candidates`."""

    client: TableMetaClient
    stats: Sequence[WriteStat]

    def __len__(self) -> int:
        return len(self.stats)

    def file_id(self, ordinal: int) -> FileId:
        return FileId(self.stats[ordinal].file_id or "")

    def footer(self, ordinal: int) -> KeyFooter:
        path = self.stats[ordinal].path or ""
        return key_footer(read_file_metadata(self.client, path), path)

    def keys(self, ordinal: int) -> pa.ChunkedArray:
        found = read_columns(self.client, self.stats[ordinal].path or "", [RECORD_KEY])
        return found.column(RECORD_KEY).cast(pa.string())


def _has_new_rows(stat: WriteStat) -> bool:
    is_new_group = stat.prev_commit in (None, "", NO_PREVIOUS_COMMIT)
    return bool(stat.path and stat.num_writes and (stat.num_inserts or is_new_group))
