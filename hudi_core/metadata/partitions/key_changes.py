"""Changes of record keys by a write, for partitions that index them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Final

import pyarrow as pa

from hudi_core.config.index_keys import IndexConfig
from hudi_core.config.write import WriteConfig
from hudi_core.meta_client import run_serially
from hudi_core.metadata.key_index.key_records import DataFile, index_millis
from hudi_core.metadata.key_index.sharded import (
    FEW_FILES,
    FEW_KEYS,
    Held,
    KeyedChange,
    KeyIndex,
    KeyReader,
    KeySource,
    ManyKeys,
    loaded,
)
from hudi_core.metadata.key_index.unique_keys import (
    group_of,
    has_repeated_keys,
    has_unique_keys,
    is_noted,
    without_note,
)
from hudi_core.metadata.log.records import RecordLocation
from hudi_core.metadata.log.shards import ShardedChange, SpreadChange
from hudi_core.metadata.partition_types import RECORD_INDEX, secondary_indexes
from hudi_core.metadata.partitions.listed import ListedTable
from hudi_core.metadata.partitions.work import Commit
from hudi_core.metadata.statistics.row_counts import row_counts
from hudi_core.model.commit import MERGES_LOGS, WriteOperation, WriteStat, WriteStatus
from hudi_core.model.files import FileGroupId, FileSlice, PartitionPath
from hudi_core.rows.staging import SpillRef

_PROBES: Final = 32
"""In so many parts repeated keys are looked for, where no file groups say in how many."""
_LEAST_BYTES: Final = 32
"""Bytes of a row of a data file, at the least: most have more."""

# --- keys that come and go with a commit ---------------------------------------------------------

# Tasks spill it for the files that they write. What has to be read are the files of groups that a
# write takes out of the table as a whole, and files whose tasks knew nothing of an index: it was
# added when the write was under way.


@dataclass(eq=False)
class KeyChanges:
    """The changes of one write."""

    commit: Commit
    _watches: bool = field(default=False, init=False)

    @cached_property
    def _columns(self) -> tuple[str, ...]:
        """Those that have indexes."""
        commit = self.commit
        indexes = secondary_indexes(commit.stored.all)
        return tuple(sorted({one for name in indexes for one in commit.definitions.columns(name)}))

    @cached_property
    def _reader(self) -> KeyReader:
        commit = self.commit
        return KeyReader(commit.client, self._columns, commit.stored_slices, commit.slices_after)

    @cached_property
    def _sources(self) -> list[KeySource]:
        """Where the keys of each file are that comes or goes."""
        commit = self.commit
        if commit.metadata.operation_type in MERGES_LOGS:
            return []  # the writers of the logs have recorded what a compaction merges
        # of several logs of a file group the first has what all of them change
        new: dict[FileGroupId, tuple[WriteStatus, DataFile]] = {}
        for status, file in commit.new:
            new.setdefault(file.group, (status, file))
        sources = [
            KeySource(self._location(group), status.changed_keys)
            if self._is_known(status.changed_keys)
            else self._reread(file)
            for group, (status, file) in new.items()
        ]
        if commit.replaced:
            sources += [
                KeySource(self._location(one.group), before=one)
                for one in commit.before
                if one.group in commit.replaced
            ]
        return sources

    def _is_known(self, spilled: SpillRef | None) -> bool:
        """Whether a task spilled the keys of a file, and all columns."""
        if spilled is None:
            return False
        names = spilled.column_names if isinstance(spilled, pa.Table) else self._spilled_names
        return {f"after.{name}" for name in self._columns} <= {*names}

    @cached_property
    def _spilled_names(self) -> Sequence[str]:
        """The columns in every file that tasks spilled."""
        paths = (status.changed_keys for status, _ in self.commit.new)
        first = next(one for one in paths if isinstance(one, str))
        names: list[str] = loaded(self.commit.client, first).column_names
        return names

    def _reread(self, file: DataFile) -> KeySource:
        last = self._former.get(file.group)
        after = self.commit.slice_with(file, last)
        return KeySource(self._location(file.group), before=last, after=after)

    @cached_property
    def _former(self) -> dict[FileGroupId, FileSlice]:
        return {one.group: one for one in self.commit.before}

    def _location(self, group: FileGroupId) -> RecordLocation:
        millis = index_millis(self.commit.time, self.commit.client.config)
        return RecordLocation(group.partition_path, group.file_id, millis)

    @cached_property
    def _are_few(self) -> bool:
        """Whether the keys of the write are handled in one piece."""
        written: dict[FileGroupId, WriteStat] = {}
        for one in self.commit.statuses:
            written.setdefault(FileGroupId(one.partition_path, one.file_id), one.stat)
        count = files = 0
        for source in self._sources:
            if isinstance(source.spilled, pa.Table):
                count += source.spilled.num_rows
                continue
            files += 1
            stat = written.get(group_of(source.location))
            if source.spilled is not None and stat is not None:
                count += _changed_rows(stat)
            elif source.after is not None and stat is not None:
                count += stat.num_writes or 0
            elif source.before is not None:
                count += source.before.total_size // _LEAST_BYTES
        return count <= FEW_KEYS and files <= FEW_FILES

    @cached_property
    def _tables(self) -> list[tuple[KeySource, pa.Table]]:
        read = self.commit.client.run_map(self._reader, self._sources)
        return list(zip(self._sources, read, strict=True))

    def of(self, index: KeyIndex) -> ShardedChange:
        """The change of an index."""
        watches = self._watches and index.column is None
        held = self.commit.snapshot.shards(RECORD_INDEX) if watches else None
        if not self._are_few:
            return ManyKeys(self._reader, index, self._sources, held)
        client = self.commit.client
        keyed = ((one, index.keyed(table, client.base_path)) for one, table in self._tables)
        return KeyedChange.of(client, index, [pair for pair in keyed if pair[1].num_rows], held)

    def note_repeated(self) -> None:
        """Have it noted where several file groups come to hold one key.

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
        is_asked = has_readers or has_unique_keys(commit.definitions)
        everywhere = not commit.definitions.is_partitioned(RECORD_INDEX)
        self._watches = is_asked and not self._has_looked(everywhere=everywhere)

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


def _changed_rows(stat: WriteStat) -> int:
    return sum(one or 0 for one in (stat.num_inserts, stat.num_deletes, stat.num_update_writes))


# --- keys of the files that a table has ----------------------------------------------------------


@dataclass(eq=False)
class KeysOfTable:
    """The keys of a table's files, for an index that is built."""

    table: ListedTable
    index: KeyIndex

    @cached_property
    def _reader(self) -> KeyReader:
        columns = () if self.index.column is None else (self.index.column,)
        stored = self.table.stored_slices
        return KeyReader(self.table.client, columns, stored, stored)

    @cached_property
    def _sources(self) -> list[KeySource]:
        config = self.table.client.config
        return [
            KeySource(
                RecordLocation(
                    one.partition_path, one.file_id, index_millis(one.base_instant, config)
                ),
                after=one,
            )
            for one in self.table.slices
        ]

    @cached_property
    def rows(self) -> Mapping[PartitionPath | None, int]:
        """About how many keys each owner of file groups has.

        A partition that has no rows now is among them: other engines make file groups of new ones
        only.
        """
        table = self.table
        bases = [one.base_file for one in table.slices if one.base_file is not None]
        named = [(one.instant, one.path) for one in bases]
        counted = row_counts(table.client, table.client.timeline(), named)
        paths: list[PartitionPath | None] = [*table.files, *table.all_logs]
        rows = dict.fromkeys(paths, 0)
        for one in table.slices:
            base = one.base_file
            of_base = counted[base.path] if base is not None else 0
            logged = sum(log.status.size for log in one.log_files)
            each = base.size // of_base if base is not None and of_base else _LEAST_BYTES
            rows[one.partition_path] += of_base + logged // max(each, _LEAST_BYTES)
        return rows if self.index.is_owned else {None: sum(rows.values())}

    def change(self) -> ShardedChange:
        """The keys, as they come to an index that has none."""
        held: Held | None = {} if self.index.column is None else None
        few = sum(self.rows.values()) <= FEW_KEYS and len(self._sources) <= FEW_FILES
        if not few:
            return ManyKeys(self._reader, self.index, self._sources, held)
        keyed = [(one, table) for one, table in self.keyed() if table.num_rows]
        return KeyedChange.of(self.table.client, self.index, keyed, held)

    def keyed(self) -> Iterable[tuple[KeySource, pa.Table]]:
        """The keys of each file."""
        client, index = self.table.client, self.index
        read = client.map_files(self._reader.for_tasks, self._sources)
        for source, table in zip(self._sources, read, strict=True):
            yield source, index.keyed(table, client.base_path)

    def are_repeated(self, folder: str) -> bool:
        """Whether several file groups hold one key."""
        change, count = self.change(), _PROBES
        spread = change.spread(dict.fromkeys(change.owners, count), folder)
        shards = [[one] for one in range(count)] if spread.is_spread else [[*range(count)]]
        run_map = self.table.client.map_heavy if spread.is_spread else run_serially
        return any(run_map(partial(_repeats, spread), shards)) if spread.owners else False


def _repeats(change: SpreadChange, shards: Sequence[int]) -> bool:
    return any(change.find(owner, shards).repeats for owner in change.owners)
