"""What a write changes in the metadata table, from what its writers report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from hudi_core.base_file.footer import read_bloom
from hudi_core.hashing.bloom import TYPE_CODE
from hudi_core.metadata.changes import Changes, PartitionChange
from hudi_core.metadata.file_records import bloom_record, list_records, partitions_record
from hudi_core.metadata.index_definitions import put_definitions, read_definitions
from hudi_core.metadata.key_records import (
    DataFile,
    FileReplacement,
    location_change,
    secondary_change,
)
from hudi_core.metadata.partition_types import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
)
from hudi_core.metadata.range_changes import RangeChanges
from hudi_core.metadata.records import BloomFilterEntry, FileEntry, MetadataRecord
from hudi_core.metadata.session import MetadataSession, is_key_index
from hudi_core.metadata.state import MetadataState
from hudi_core.metadata.tracked_keys import TrackedKeys
from hudi_core.metadata.value_index import has_repeated_keys, with_repeated_keys
from hudi_core.model.commit import CommitMetadata, ReplaceCommitMetadata, WriteStatus
from hudi_core.model.files import FileGroupId, FileId, PartitionPath
from hudi_core.model.instant_time import InstantTime
from hudi_core.schema.table_schema import TableSchema


def record_commit(
    session: MetadataSession,
    time: InstantTime,
    metadata: CommitMetadata,
    statuses: Sequence[WriteStatus],
    base: TableSchema | None = None,
) -> MetadataState:
    """Record what a write is about to commit; returns the tables after it.

    Parameters
    ----------
    time
        Of the write.
    metadata
        The body that its completed instant gets.
    statuses
        Every file that it counts.
    base
        The schema that it builds on; ``None`` where it says nothing of columns.
    """
    return session.write(time, _Commit(session, time, metadata, statuses, base).changes())


@dataclass(frozen=True)
class _Commit:
    """One write, as the metadata table is to know it."""

    session: MetadataSession
    time: InstantTime
    metadata: CommitMetadata
    statuses: Sequence[WriteStatus]
    base: TableSchema | None

    def changes(self) -> Changes:
        """Records by partition of the metadata table."""
        kept = self.session.partitions.all
        changes: dict[str, PartitionChange] = {FILES: self._files()}
        if BLOOM_FILTERS in kept:
            changes[BLOOM_FILTERS] = self._blooms()
        if COLUMN_STATS in kept:
            changes |= self._ranges()
        indexes = [name for name in kept if is_key_index(name)]
        if indexes:
            changes |= self._keys(indexes)
        return changes

    def _new(self) -> list[tuple[WriteStatus, DataFile]]:
        return [
            (status, DataFile(status.partition_path, status.file_id, path.rpartition("/")[2]))
            for status in self.statuses
            if (path := status.stat.path)
        ]

    def _files(self) -> PartitionChange:
        lists: dict[PartitionPath, dict[str, FileEntry]] = {}
        for status, file in self._new():
            entry = FileEntry(status.stat.file_size_in_bytes or 0)
            lists.setdefault(file.partition_path, {})[file.name] = entry
        if not lists:
            return PartitionChange()
        return PartitionChange((partitions_record(lists), *list_records(lists)))

    def _blooms(self) -> PartitionChange:
        client = self.session.tables.client
        files = [file for _, file in self._new()]

        def one(file: DataFile) -> MetadataRecord:
            bloom = read_bloom(client, file.path)
            entry = BloomFilterEntry(TYPE_CODE, self.time, bloom)
            return bloom_record(file.partition_path, file.name, entry)

        return PartitionChange(tuple(client.run_map(one, files)))

    def _ranges(self) -> Changes:
        session, client = self.session, self.session.tables.client
        text = self.metadata.schema_json or client.schema_text_at(client.timeline())
        touched = sorted({group.partition_path for group in self._touched})
        staying: list[DataFile] = []
        if PARTITION_STATS in session.partitions.all and touched:
            staying = [file for file in session.current_files(touched) if self._stays(file)]
        return RangeChanges(session, self.base, text, self._new(), touched, staying).changes()

    @cached_property
    def _touched(self) -> set[FileGroupId]:
        """Return the file groups whose files change or go."""
        groups = {FileGroupId(one.partition_path, one.file_id) for one in self.statuses}
        if isinstance(self.metadata, ReplaceCommitMetadata):
            groups |= {
                FileGroupId(PartitionPath(partition), FileId(file_id))
                for partition, ids in self.metadata.partition_to_replace_file_ids.items()
                for file_id in ids
            }
        return groups

    def _stays(self, file: DataFile) -> bool:
        return FileGroupId(file.partition_path, file.file_id) not in self._touched

    def _keys(self, indexes: Sequence[str]) -> Changes:
        client, definitions = self.session.tables.client, self.session.definitions
        columns = {name: definitions.columns(name)[0] for name in indexes if name != RECORD_INDEX}
        tracked = self._tracked(columns.values())
        changes: dict[str, PartitionChange] = {}
        has_owners = definitions.is_partitioned(RECORD_INDEX)
        if tracked is not None:
            if RECORD_INDEX in indexes and has_owners:
                owned = {path: own.locations() for path, own in tracked.by_partition().items()}
                changes[RECORD_INDEX] = PartitionChange(owned=owned)
            elif RECORD_INDEX in indexes:
                changes[RECORD_INDEX] = tracked.locations()
            if columns:
                self._note_repeated_keys(changes, tracked)
            return changes | {name: tracked.values(column) for name, column in columns.items()}
        touched = sorted({group.partition_path for group in self._touched})
        old = [file for file in self.session.current_files(touched) if not self._stays(file)]
        exchange = FileReplacement(tuple(old), tuple(file for _, file in self._new()))
        if RECORD_INDEX in indexes and has_owners:
            changes[RECORD_INDEX] = PartitionChange(
                owned={
                    path: location_change(client, own, self.time)
                    for path, own in exchange.by_partition().items()
                }
            )
        elif RECORD_INDEX in indexes:
            changes[RECORD_INDEX] = location_change(client, exchange, self.time)
        if columns:
            self._note_repeated_keys(changes, None)
        for name, column in columns.items():
            changes[name] = secondary_change(client, exchange, column)
        return changes

    def _note_repeated_keys(self, changes: Changes, tracked: TrackedKeys | None) -> None:
        """Note it where several file groups come to hold one key: readers of secondary indexes
        must know. Where nobody kept account of the keys, they may."""
        client, change = self.session.tables.client, changes.get(RECORD_INDEX)
        if not change or not change.new:
            return
        # what the columns' ranges have added is in the file already
        definitions = read_definitions(client.storage, client.config)
        if has_repeated_keys(definitions):
            return
        if tracked is None or tracked.repeats(self.session.snapshot(), change):
            put_definitions(client.storage, with_repeated_keys(definitions))

    def _tracked(self, columns: Iterable[str]) -> TrackedKeys | None:
        """Key changes that the write's tasks spilled; ``None`` where that is not all."""
        statuses = [status for status, _ in self._new()]
        replaced: list[DataFile] = []
        if isinstance(self.metadata, ReplaceCommitMetadata):
            ids = self.metadata.partition_to_replace_file_ids
            partitions = sorted(map(PartitionPath, ids))
            replaced = [
                file
                for file in self.session.current_files(partitions)
                if file.file_id in ids[file.partition_path]
            ]
        tracked = TrackedKeys.read(self.session.tables.client, self.time, statuses, replaced)
        return tracked if tracked is not None and all(map(tracked.has, columns)) else None
