"""Changes of record keys by a write, for partitions that index them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from hudi_core.config.index_keys import IndexConfig
from hudi_core.config.write import WriteConfig
from hudi_core.metadata.changes import PartitionChange
from hudi_core.metadata.key_delta import KeyDelta, changes_of_files
from hudi_core.metadata.key_records import DataFile
from hudi_core.metadata.partition_types import RECORD_INDEX, secondary_indexes
from hudi_core.metadata.partitions.work import Commit
from hudi_core.metadata.unique_keys import (
    has_repeated_keys,
    has_unique_keys,
    is_noted,
    with_repeated_keys,
    without_note,
)
from hudi_core.model.commit import WriteOperation
from hudi_core.model.files import FileGroupId


@dataclass(eq=False)
class KeyChanges:
    """The changes of one write."""

    commit: Commit

    @cached_property
    def _delta(self) -> KeyDelta:
        """Of the keys, and of the columns that have indexes."""
        commit = self.commit
        indexes = secondary_indexes(commit.stored.all)
        columns = {column for name in indexes for column in commit.definitions.columns(name)}
        files = changes_of_files(commit.client, commit.new, sorted(columns), self._before)
        replaced: list[DataFile] = []
        if commit.replaced:
            replaced = [file for file in commit.before if file.group in commit.replaced]
        return KeyDelta(commit.client, commit.time, files, tuple(replaced))

    def _before(self) -> dict[FileGroupId, DataFile]:
        return {file.group: file for file in self.commit.before}

    @cached_property
    def locations(self) -> PartitionChange:
        """Changes of the record index."""
        is_partitioned = self.commit.definitions.is_partitioned(RECORD_INDEX)
        return self._delta.locations(is_partitioned=is_partitioned)

    def values(self, column: str) -> PartitionChange:
        """Changes of the secondary index of a column."""
        return self._delta.values(column)

    def note_repeated(self) -> None:
        """Note it where several file groups come to hold one key.

        Readers of the record index must know.
        """
        commit = self.commit
        if RECORD_INDEX not in commit.stored.all:
            return
        if has_repeated_keys(commit.definitions) and commit.client.config.tells_meta_columns:
            return
        if is_noted(commit.definitions) and not commit.snapshot.watches_keys:
            # another engine has changed the index since
            commit.definitions = without_note(commit.definitions)
        if has_repeated_keys(commit.definitions):
            return
        has_readers = bool(secondary_indexes(commit.stored.all))
        if (has_readers or has_unique_keys(commit.definitions)) and self._are_repeated:
            commit.definitions = with_repeated_keys(commit.definitions, are_repeated=True)

    @cached_property
    def _are_repeated(self) -> bool:
        commit = self.commit
        is_partitioned = commit.definitions.is_partitioned(RECORD_INDEX)
        if self._has_looked(everywhere=not is_partitioned):
            return False
        return self._delta.repeats(commit.snapshot, self.locations)

    def _has_looked(self, *, everywhere: bool) -> bool:
        """Whether the write has looked for its keys among stored ones."""
        commit, config = self.commit, self.commit.client.config
        if commit.metadata.operation_type != WriteOperation.UPSERT or commit.listed is None:
            return False  # others may have committed since it looked
        options = commit.client.options
        is_enough = IndexConfig.index_type.read(options).is_global or not (
            everywhere and config.is_partitioned
        )
        combines = WriteConfig.combine_before_upsert.read(options)
        return is_enough and combines and config.buckets is None and bool(config.record_key_fields)
