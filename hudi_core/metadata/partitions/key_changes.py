"""Changes of record keys by a write, for partitions that index them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from hudi_core.config.index_keys import IndexConfig
from hudi_core.config.write import WriteConfig
from hudi_core.errors import CorruptMetadataError
from hudi_core.file_slice.slice_rows import StoredSlices
from hudi_core.hashing.java_hash import shards_of
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.key_index.key_changes import (
    DELETED,
    INSERTED,
    changes_between,
    keys_of,
    location_changes,
)
from hudi_core.metadata.key_index.key_records import DataFile, index_millis, value_texts
from hudi_core.metadata.key_index.unique_keys import (
    group_of,
    has_repeated_keys,
    has_unique_keys,
    held_keys,
    is_noted,
    with_repeated_keys,
    without_note,
)
from hudi_core.metadata.keys import secondary_key
from hudi_core.metadata.log.layers import GroupReader
from hudi_core.metadata.log.records import (
    MetadataRecord,
    PartitionChange,
    RecordLocation,
    RecordType,
    SecondaryEntry,
)
from hudi_core.metadata.partition_types import RECORD_INDEX, secondary_indexes
from hudi_core.metadata.partitions.work import Commit
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.model.commit import MERGES_LOGS, WriteOperation, WriteStatus
from hudi_core.model.files import FileGroupId, FileSlice, PartitionPath
from hudi_core.model.instant_time import InstantTime
from hudi_core.schema.table_schema import RECORD_KEY
from hudi_core.storage.data_files import data_filesystem

# --- keys that come and go with a commit ---------------------------------------------------------

# Tasks spill it for the files that they write. What has to be read are the files of groups that a
# write takes out of the table as a whole, and files whose tasks knew nothing of an index: it was
# added when the write was under way.


_MAX_COMPARED: Final = 1_000
"""Of more keys that the index knows already, their places are not compared."""


@dataclass(frozen=True, slots=True)
class KeyDelta:
    """What a write does to the keys of its files.

    ``replaced`` are the slices of the groups that the write takes out of the table.
    """

    client: TableMetaClient
    time: InstantTime
    files: tuple[tuple[DataFile, pa.Table], ...]
    replaced: tuple[FileSlice, ...]
    stored: StoredSlices

    def by_partition(self) -> dict[PartitionPath, KeyDelta]:
        """Key changes by partition."""
        files: dict[PartitionPath, list[tuple[DataFile, pa.Table]]] = {}
        replaced: dict[PartitionPath, list[FileSlice]] = {}
        for pair in self.files:
            files.setdefault(pair[0].partition_path, []).append(pair)
        for one in self.replaced:
            replaced.setdefault(one.partition_path, []).append(one)
        return {
            path: replace(
                self, files=tuple(files.get(path, ())), replaced=tuple(replaced.get(path, ()))
            )
            for path in sorted(files.keys() | replaced.keys())
        }

    def locations(self, *, is_partitioned: bool) -> PartitionChange:
        """Changes that the write makes to the record index."""
        if is_partitioned:
            own = self.by_partition().items()
            return PartitionChange(
                owned={path: one.locations(is_partitioned=False) for path, one in own}
            )
        millis = index_millis(self.time, self.client.config)
        tables = [
            (RecordLocation(file.partition_path, file.file_id, millis), table)
            for file, table in self.files
        ]
        gone = [rows.column(RECORD_KEY).combine_chunks() for rows in self._replaced([RECORD_KEY])]
        return location_changes(tables, gone)

    def repeats(self, snapshot: MetadataSnapshot, change: PartitionChange) -> bool:
        """Whether a key ends up in several file groups.

        As far as the record index knows where keys were.
        """
        groups = snapshot.groups_by_owner(RECORD_INDEX)
        if not change.owned:
            return self._repeats(groups.get(None, ()), change.new)
        return any(
            one._repeats(groups.get(path, ()), change.owned[path].new)
            for path, one in self.by_partition().items()
        )

    def _repeats(self, groups: Sequence[GroupReader], distinct: int) -> bool:
        came = [keys_of(table, INSERTED) for _, table in self.files]
        total = pa.concat_arrays([pa.array([], pa.string()), *came])
        if not len(total):
            return False
        if distinct < len(total):
            came = [pc.unique(keys) for keys in came]  # a file may have rows of one key
            total = pa.concat_arrays(came)
            if distinct < len(total):
                return True
        if not any(layer.reader for group in groups for layer in group.layers):
            return False  # nothing was there before
        gone = [keys_of(table, DELETED) for _, table in self.files]
        gone += [
            rows.column(RECORD_KEY).cast(pa.string()).combine_chunks()
            for rows in self._replaced([RECORD_KEY])
        ]
        left = pa.concat_arrays([pa.array([], pa.string()), *gone])
        stays = np.arange(len(total))
        if len(left):
            stays = np.flatnonzero(pc.invert(pc.is_in(total, value_set=left)))
        sought = total.take(pa.array(stays)) if len(left) else total
        stays = stays[held_keys(groups, sought)]
        if len(stays) > _MAX_COMPARED:
            return True
        files = np.repeat(np.arange(len(came)), [len(keys) for keys in came])[stays].tolist()
        keys = total.take(pa.array(stays))
        shards = shards_of(keys, len(groups)).tolist() if groups else []
        for key, shard, number in zip(keys.to_pylist(), shards, files, strict=True):
            record, file = groups[shard].lookup([key]).get(key), self.files[number][0]
            where = None if record is None else record.payload
            # a group may take in a key that it has: all of its rows are in one place
            if not isinstance(where, RecordLocation) or file.group != group_of(where):
                return True
        return False

    def values(self, column: str) -> PartitionChange:
        """Changes that the write makes to the secondary index of a column."""
        new: dict[str, None] = {}
        old: dict[str, None] = {}
        for _, table in self.files:
            change = table.column("change").to_numpy()
            new |= self._entries(table, "key", f"after.{column}", change >= 0)
            old |= self._entries(table, "key", f"before.{column}", change <= 0)
        for rows in self._replaced([RECORD_KEY, column]):
            old |= self._entries(rows, RECORD_KEY, column, np.ones(rows.num_rows, bool))
        gone = [key for key in old if key not in new]
        # what was there already, with the same value in another file, is repeated: it is no error
        return PartitionChange((*_entries(new, False), *_entries(gone, True)))

    def _entries(
        self, rows: pa.Table, key: str, column: str, chosen: np.ndarray
    ) -> dict[str, None]:
        some = rows.filter(pa.array(chosen))
        texts = value_texts(some.column(column), column, self.client.base_path)
        keys = some.column(key).to_pylist()
        return dict.fromkeys(map(secondary_key, texts, keys))

    def _replaced(self, columns: Sequence[str]) -> list[pa.Table]:
        read = partial(self.stored.columns, names=columns)
        return list(self.client.run_map(read, list(self.replaced)))


def _entries(keys: Sequence[str] | dict[str, None], is_deleted: bool) -> list[MetadataRecord]:
    entry = SecondaryEntry(is_deleted)
    return [MetadataRecord(key, RecordType.SECONDARY_INDEX, entry) for key in keys]


def changes_of_files(
    commit: Commit, columns: Sequence[str]
) -> tuple[tuple[DataFile, pa.Table], ...]:
    """What became of the keys of each new file.

    From what its task spilled. Where a task spilled nothing, or lacks a column, the slice that the
    file makes is read, and the one before it.
    """
    if commit.metadata.operation_type in MERGES_LOGS:
        return ()  # the writers of the logs have recorded what a compaction merges
    client, names = commit.client, [RECORD_KEY, *columns]

    def spilled(status: WriteStatus) -> pa.Table | None:
        return _spilled(client, status.changed_keys, columns)

    # of several logs of a file group the first has what all of them change
    new: dict[FileGroupId, tuple[WriteStatus, DataFile]] = {}
    for status, file in commit.new:
        new.setdefault(file.group, (status, file))
    files = [file for _, file in new.values()]
    given = client.run_map(spilled, [status for status, _ in new.values()])
    tables = dict(zip(files, given, strict=True))
    unknown = [file for file, table in tables.items() if table is None]
    if unknown:
        former = {one.group: one for one in commit.before}
        after = commit.slices_after

        def reread(file: DataFile) -> pa.Table:
            last = former.get(file.group)
            old = None if last is None else commit.stored_slices.columns(last, names)
            return changes_between(old, after.columns(commit.slice_with(file, last), names))

        tables |= zip(unknown, client.run_map(reread, unknown), strict=True)
    return tuple(tables.items())


def _spilled(
    client: TableMetaClient, spilled: pa.Table | str | None, columns: Sequence[str]
) -> pa.Table | None:
    """What a task spilled of keys and these columns, or ``None``."""
    if spilled is None:
        return None
    table = _read(client, spilled)
    return table if {f"after.{name}" for name in columns} <= {*table.column_names} else None


def _read(client: TableMetaClient, left: pa.Table | str) -> pa.Table:
    if not isinstance(left, str):
        return left
    filesystem, root = data_filesystem(client.base_path, client.storage_options)
    path = f"{root}/{left}"
    local = isinstance(filesystem, pafs.LocalFileSystem)
    try:
        with pa.memory_map(path) if local else filesystem.open_input_file(path) as source:
            table = pa.ipc.open_file(source).read_all()
    except (OSError, pa.ArrowInvalid) as error:
        raise CorruptMetadataError(f"{client.base_path}/{left}", str(error)) from error
    return table


# --- changes of key indexes ----------------------------------------------------------------------


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
        files = changes_of_files(commit, sorted(columns))
        replaced: list[FileSlice] = []
        if commit.replaced:
            replaced = [one for one in commit.before if one.group in commit.replaced]
        return KeyDelta(commit.client, commit.time, files, tuple(replaced), commit.stored_slices)

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
