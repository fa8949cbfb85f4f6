"""Keys that come and go, by file groups of an index.

Few keys are handled in one piece. Of many, tasks read the keys of one file each and leave them as a
file with a batch for every file group; then one task for each file group reads its batches of all
these files. So no process holds more than the keys of one file, or of one file group, and the
driver none.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.errors import CorruptMetadataError
from hudi_core.file_slice.slice_rows import StoredSlices
from hudi_core.hashing.java_hash import shards_of
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.index_definitions import IndexDefinitions
from hudi_core.metadata.key_index.key_changes import (
    DELETED,
    INSERTED,
    UPDATED,
    change_table,
    changes_between,
    entry_changes,
    keys_of,
    location_changes,
)
from hudi_core.metadata.key_index.key_records import value_texts
from hudi_core.metadata.key_index.unique_keys import group_of, held_keys, with_repeated_keys
from hudi_core.metadata.keys import partition_path, secondary_key
from hudi_core.metadata.log.layers import GroupFiles, GroupReader
from hudi_core.metadata.log.records import PartitionChange, RecordLocation
from hudi_core.metadata.log.shards import FoundChange, numbers_of_keys
from hudi_core.metadata.table import metadata_storage
from hudi_core.model.files import FileGroupId, FileSlice, PartitionPath
from hudi_core.rows.staging import SpillRef, load, put_spill, spilled
from hudi_core.schema.table_schema import RECORD_KEY

FEW_KEYS: Final = 200_000
"""Up to so many keys are handled in one piece, in the process that commits: tasks of their own
would take longer to begin."""
FEW_FILES: Final = 64
"""Up to so many files are read there for them."""
_SHARDS: Final = b"shards"
"""Key of the metadata of a file of spread keys: the number of the file group of each batch."""
_MAX_COMPARED: Final = 1_000
"""Of more keys that a file group of the index knows already, their places are not compared."""


@dataclass(frozen=True, slots=True)
class KeySource:
    """Where the keys of one file are found.

    In what its task spilled, else in the slices before and after the write.
    """

    location: RecordLocation
    spilled: SpillRef | None = None
    before: FileSlice | None = None
    after: FileSlice | None = None

    @property
    def owner(self) -> PartitionPath:
        """The partition of the table that has the file."""
        return partition_path(self.location.partition_name)


@dataclass(frozen=True, slots=True)
class KeyReader:
    """Reads what becomes of the keys of files; a value, for tasks.

    ``columns`` are those that have indexes.
    """

    client: TableMetaClient
    columns: tuple[str, ...]
    before: StoredSlices
    after: StoredSlices

    @property
    def for_tasks(self) -> KeyReader:
        """This reader as executors may get it, with nothing loaded."""
        client = self.client.for_tasks
        before, after = (replace(one, client=client) for one in (self.before, self.after))
        return replace(self, client=client, before=before, after=after)

    def __call__(self, source: KeySource) -> pa.Table:
        """Return the table of :mod:`hudi_core.metadata.key_index.key_changes`."""
        if source.spilled is not None:
            return loaded(self.client, source.spilled)
        names, old, last = [RECORD_KEY, *self.columns], None, source.before
        if last is not None:
            old = self.before.columns(last, names)
        if source.after is None:
            return change_table(DELETED, old, None)
        return changes_between(old, self.after.columns(source.after, names))


def loaded(client: TableMetaClient, left: SpillRef) -> pa.Table:
    """What a task has spilled of keys."""
    try:
        return load(client, left)
    except (OSError, pa.ArrowInvalid) as error:
        raise CorruptMetadataError(f"{client.base_path}/{left}", str(error)) from error


@dataclass(frozen=True, slots=True)
class KeyIndex:
    """An index of keys: the record index, or one of a column.

    ``by_value``: values alone decide about the file group. ``is_owned``: each partition of the
    table has file groups of its own.
    """

    name: str
    column: str | None = None
    by_value: bool = False
    is_owned: bool = False

    def keyed(self, changes: pa.Table, base_path: str) -> pa.Table:
        """Which of its own keys come and go: columns ``key`` and ``change``."""
        kinds = changes.column("change")
        if self.column is None:
            moved = changes.select(["key", "change"]).filter(pc.not_equal(kinds, UPDATED))
            return moved.set_column(0, "key", moved.column("key").cast(pa.string()))
        parts = []
        for kind, side, chosen in (
            (INSERTED, "after", pc.greater_equal(kinds, 0)),
            (DELETED, "before", pc.less_equal(kinds, 0)),
        ):
            some = changes.filter(chosen)
            texts = value_texts(some.column(f"{side}.{self.column}"), self.column, base_path)
            keys = map(secondary_key, texts, some.column("key").to_pylist())
            parts.append(_table(pa.array(keys, pa.string()), kind))
        return pa.concat_tables(parts)

    def change(self, tables: Sequence[tuple[RecordLocation, pa.Table]]) -> PartitionChange:
        """What becomes of its records, by the tables of files."""
        if self.column is None:
            return location_changes(tables)
        return entry_changes([table for _, table in tables])


def _table(keys: pa.Array, kind: int) -> pa.Table:
    return pa.table({"key": keys, "change": pa.array(np.full(len(keys), kind, np.int8))})


Held: TypeAlias = Mapping[PartitionPath | None, tuple[GroupFiles, ...]]
"""The file groups of a record index, by their owner."""

# --- few keys, or those of one file group --------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeyedChange:
    """The change of a key index; a value, for tasks.

    A :class:`~hudi_core.metadata.log.shards.ShardedChange`.

    ``files`` has by owner of file groups what :meth:`KeyIndex.keyed` says of each file; in files of
    a batch for each file group where it ``is_spread``. ``held`` are the file groups of the record
    index as it was, ``None`` unless it is to be found out whether keys come to be repeated.
    """

    client: TableMetaClient
    index: KeyIndex
    files: Mapping[PartitionPath | None, Sequence[tuple[RecordLocation, SpillRef]]]
    held: Held | None
    is_spread: bool = False

    def __bool__(self) -> bool:
        return bool(self.files)

    @classmethod
    def of(
        cls,
        client: TableMetaClient,
        index: KeyIndex,
        tables: Sequence[tuple[KeySource, SpillRef]],
        held: Held | None,
        *,
        is_spread: bool = False,
    ) -> KeyedChange:
        """The change by the tables of files, in their order."""
        files: dict[PartitionPath | None, list[tuple[RecordLocation, SpillRef]]] = {}
        for source, left in tables:
            owner = source.owner if index.is_owned else None
            files.setdefault(owner, []).append((source.location, left))
        return cls(client, index, files, held, is_spread)

    @property
    def by_value(self) -> bool:
        return self.index.by_value

    @property
    def owners(self) -> Collection[PartitionPath | None]:
        return self.files

    def spread(self, counts: Mapping[PartitionPath | None, int], folder: str) -> KeyedChange:  # noqa: ARG002 - they are few
        return self

    def find(self, owner: PartitionPath | None, shards: Sequence[int]) -> FoundChange:
        """What becomes of the records of some file groups of an owner."""
        tables = [(location, self._read(left, shards)) for location, left in self.files[owner]]
        change = self.index.change(tables)
        if self.held is None:
            return FoundChange(change)
        held, storage = self.held.get(owner, ()), metadata_storage(self.client)
        groups = {shard: held[shard].reader(storage) for shard in shards} if held else {}
        located = [(group_of(location), table) for location, table in tables]
        return FoundChange(change, _are_repeated(located, change.new, groups, len(held)))

    def noted(self, definitions: IndexDefinitions) -> IndexDefinitions:
        """The definitions, as keys come to be repeated."""
        return with_repeated_keys(definitions, are_repeated=True)

    def _read(self, left: SpillRef, shards: Sequence[int]) -> pa.Table:
        if isinstance(left, pa.Table):
            return left
        with spilled(self.client, left) as reader:
            numbers = np.frombuffer(reader.schema.metadata[_SHARDS], np.int32)
            own = np.flatnonzero(np.isin(numbers, shards)).tolist()
            schema = reader.schema.remove_metadata()
            batches = [reader.get_batch(one).replace_schema_metadata() for one in own]
            return pa.Table.from_batches(batches, schema)


def _are_repeated(
    tables: Sequence[tuple[FileGroupId, pa.Table]],
    distinct: int,
    groups: Mapping[int, GroupReader],
    count: int,
) -> bool:
    """Whether a key ends up in several file groups.

    As far as the record index knows where keys were: ``groups`` are those of its ``count`` file
    groups that hold the keys, by number. ``distinct`` is how many keys come.
    """
    came = [keys_of(table, INSERTED) for _, table in tables]
    total = pa.concat_arrays([pa.array([], pa.string()), *came])
    if not len(total):
        return False
    if distinct < len(total):
        came = [pc.unique(keys) for keys in came]  # a file may have rows of one key
        total = pa.concat_arrays(came)
        if distinct < len(total):
            return True
    if not any(layer.reader for group in groups.values() for layer in group.layers):
        return False  # nothing was there before
    gone = [keys_of(table, DELETED) for _, table in tables]
    left = pa.concat_arrays([pa.array([], pa.string()), *gone])
    stays = np.arange(len(total))
    if len(left):
        stays = np.flatnonzero(pc.invert(pc.is_in(total, value_set=left)))
    sought = total.take(pa.array(stays)) if len(left) else total
    stays = stays[held_keys(groups, count, sought)]
    if len(stays) > _MAX_COMPARED:
        return True
    files = np.repeat(np.arange(len(came)), [len(keys) for keys in came])[stays].tolist()
    keys = total.take(pa.array(stays))
    shards = shards_of(keys, count).tolist()
    for key, shard, number in zip(keys.to_pylist(), shards, files, strict=True):
        record = groups[shard].lookup([key]).get(key)
        where = None if record is None else record.payload
        # a group may take in a key that it has: all of its rows are in one place
        if not isinstance(where, RecordLocation) or tables[number][0] != group_of(where):
            return True
    return False


# --- many keys -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ManyKeys:
    """The change of a key index by very many keys.

    A :class:`~hudi_core.metadata.log.shards.ShardedChange`.
    """

    reader: KeyReader
    index: KeyIndex
    sources: Sequence[KeySource]
    held: Held | None = None

    def __bool__(self) -> bool:
        return bool(self.sources)

    @property
    def owners(self) -> Collection[PartitionPath | None]:
        if not self.index.is_owned:
            return [None]
        return dict.fromkeys(source.owner for source in self.sources)

    def spread(self, counts: Mapping[PartitionPath | None, int], folder: str) -> KeyedChange:
        """Have tasks leave the keys of each file by file group.

        In files of a folder.
        """
        client = self.reader.client
        spread = _Spread(self.reader.for_tasks, self.index, counts, folder)
        left = client.map_heavy(spread, self.sources)
        tables = [
            (source, one) for source, one in zip(self.sources, left, strict=True) if one is not None
        ]
        return KeyedChange.of(client.for_tasks, self.index, tables, self.held, is_spread=True)


@dataclass(frozen=True, slots=True)
class _Spread:
    """Spreads the keys of a file over file groups; a value."""

    reader: KeyReader
    index: KeyIndex
    counts: Mapping[PartitionPath | None, int]
    folder: str

    def __call__(self, source: KeySource) -> str | None:
        """Return the file with a batch for each.

        ``None`` without a key.
        """
        client, index = self.reader.client, self.index
        rows = index.keyed(self.reader(source), client.base_path).combine_chunks()
        if not rows.num_rows:
            return None
        count = self.counts[source.owner if index.is_owned else None]
        shards = numbers_of_keys(rows.column("key").chunk(0), count, index.by_value)
        order = np.argsort(shards, kind="stable")
        rows = rows.take(pa.array(order))
        numbers, starts = np.unique(shards[order], return_index=True)
        ends = np.append(starts[1:], len(order))
        parts = [
            rows.slice(start, end - start).combine_chunks()
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ]
        stated = {_SHARDS: numbers.astype(np.int32).tobytes()}
        # no two attempts at a task meet in one file
        location = f"{self.folder}/{index.name}-{uuid.uuid4()}.arrow"
        put_spill(client, location, pa.concat_tables(parts).replace_schema_metadata(stated))
        return location
