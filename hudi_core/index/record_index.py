"""The record index: file groups of keys, by the metadata table.

Its file groups are shards by the hash of the key, so a task looks up the keys of some shards and
reads of them just the blocks that may hold one. An index that is kept by partitions has shards for
each of them, and those of other partitions than the keys' are not looked into. What is found is a
hint: the file itself decides whether the key is there, and where. A file group that is not there at
all is damage: every writer takes the keys of a group that goes out of the index.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.config.extension_points import NamedIndex
from hudi_core.config.index_keys import IndexConfig
from hudi_core.config.kinds import IndexType
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.engine.base import Engine, TaskContext
from hudi_core.errors import CorruptMetadataError, InvalidOptionError
from hudi_core.hashing.java_hash import shards_of
from hudi_core.index.incoming import Scope, SpilledIncoming
from hudi_core.index.tagging import FileLook, Tagged, Tagging, file_chunks
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.damage import REBUILD
from hudi_core.metadata.index_definitions import read_definitions
from hudi_core.metadata.key_index.key_cache import KeyCache
from hudi_core.metadata.keys import partition_path
from hudi_core.metadata.log.layers import GroupFiles, GroupReader
from hudi_core.metadata.log.record_codec import RecordDecoder
from hudi_core.metadata.log.records import RecordLocation
from hudi_core.metadata.partition_types import RECORD_INDEX
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.metadata.table import METADATA_FOLDER, StoredPartitions
from hudi_core.model.files import BaseFile, BasePath, FileGroupId, FileId, PartitionPath
from hudi_core.model.protocols import TimelineView
from hudi_core.rows.combine import IntArray
from hudi_core.rows.context import WriteContext
from hudi_core.rows.staging import SpillRef, load, spill
from hudi_core.storage.location import parse_location
from hudi_core.storage.open import open_storage
from hudi_core.storage.options import StorageOptions
from hudi_core.storage.subfolder import SubfolderStorage

_KEYS_PER_TASK: Final = 50_000
_BLOCK_BYTES: Final = 11 << 10
"""Bytes of a block of the index on the disk, as they are written here: about 700 keys."""
_FEW_BLOCKS: Final = 256
_BLOCKS_TO_READ: Final = 8
"""The keys of so many blocks are read from data files while one block is looked into."""
_BLOCKS_TO_OPEN: Final = 5
"""So many blocks are looked into while a data file is opened."""


@dataclass(frozen=True, slots=True)
class ShardLookup:
    """The shards that one task probes; crosses to executors.

    ``count`` is the number of shards among which the keys are distributed: of the whole index, or
    of the keys' partition; ``shards`` has the files, by number, of only those to look into.
    ``cache`` is a folder for what large files say of keys; ``None``: nothing is kept.
    """

    base_path: BasePath
    storage_options: StorageOptions
    count: int
    shards: Mapping[int, GroupFiles]
    cache: str | None = None

    def find(self, keys: pa.StringArray) -> Locations:
        """Look up those of some keys that these shards hold."""
        whole = open_storage(self.base_path, self.storage_options)
        storage = SubfolderStorage(whole, METADATA_FOLDER)
        of_keys = shards_of(keys, self.count)
        known = _KnownGroups()
        found, groups = [_NO_KEYS], [_NO_KEYS]
        for number, files in self.shards.items():
            own = np.flatnonzero(of_keys == number).astype(np.int32)
            if len(own):
                places = _group_of_each(
                    files.reader(storage), keys.take(pa.array(own)), known, self.cache
                )
                held = np.flatnonzero(places >= 0)
                found.append(own[held])
                groups.append(places[held])
        # a group that only older files of the index name has been taken back by newer ones
        used, numbers = np.unique(np.concatenate(groups), return_inverse=True)
        named = tuple(known.groups[one] for one in used.tolist())
        return Locations(np.concatenate(found), numbers.astype(np.int32), named)


@dataclass(frozen=True, slots=True)
class Locations:
    """Where keys are, as the index says.

    ``keys`` are ordinals of the keys found; ``groups`` has for each an ordinal among
    ``file_groups``.
    """

    keys: IntArray
    groups: IntArray
    file_groups: tuple[FileGroupId, ...]


@dataclass(frozen=True, slots=True)
class RecordIndex:
    """The record index of a table at one moment.

    ``shards`` has the files of every shard, in their order, by partition of the table where the
    index is kept by partitions, else under ``None``.
    """

    base_path: BasePath
    storage_options: StorageOptions
    shards: Mapping[PartitionPath | None, tuple[GroupFiles, ...]]
    cache: str | None = None

    @classmethod
    def open(cls, client: TableMetaClient, timeline: TimelineView) -> RecordIndex:
        """Open the index as of a timeline, listing its files."""
        snapshot = MetadataSnapshot.open(client, timeline)
        cache = MetadataConfig.from_options(client.options).record_index_cache
        shards = snapshot.shards(RECORD_INDEX)
        return cls(client.base_path, client.storage_options, shards, cache)

    def reads_more_than_files(
        self, keys: int, owners: Collection[PartitionPath], file_count: Callable[[], int]
    ) -> bool:
        """Whether looking into all data files is less work.

        Keys of random rows are in as many blocks of the index, and each of them has to be inflated
        and walked through; and the files that the index names are read as well. ``owners`` are the
        keys' partitions; ``file_count`` is asked last. On object stores an index spares requests,
        one that is kept on the disk costs none, and few blocks are no work.
        """
        if self.cache is not None or not parse_location(self.base_path).is_local:
            return False
        shards = [one for owner in (None, *owners) for one in self.shards.get(owner, ())]
        blocks = sum(one.slice.total_size for one in shards) // _BLOCK_BYTES
        looked = min(keys, blocks)
        least = max(_FEW_BLOCKS, blocks // _BLOCKS_TO_READ)
        return looked > least and looked > least + _BLOCKS_TO_OPEN * file_count()

    def lookups(self, keys: int, owner: PartitionPath | None = None) -> list[ShardLookup]:
        """Return tasks for a number of keys, each with some shards.

        ``owner`` is the keys' partition, where the index is kept by partitions; for one that the
        index does not know there are no tasks.
        """
        shards = self.shards.get(owner, ())
        tasks = min(len(shards), max(1, -(-keys // _KEYS_PER_TASK)))
        return [
            ShardLookup(
                self.base_path,
                self.storage_options,
                len(shards),
                {number: shards[number] for number in range(task, len(shards), tasks)},
                self.cache,
            )
            for task in range(tasks)
        ]


def has_record_index(client: TableMetaClient) -> bool:
    """Whether a table has a record index, as its properties say."""
    return RECORD_INDEX in StoredPartitions.of(client.config).complete


def require_record_index(client: TableMetaClient, kind: IndexType | NamedIndex) -> None:
    """Refuse a write whose record index the table lacks.

    An index of the other kind, or one that another engine has not kept, is refused like a missing
    one.
    """
    option = (
        MetadataConfig.record_index if kind.is_global else MetadataConfig.partitioned_record_index
    )
    build = f"`hudi metadata index {client.base_path} record_index --option {option.key}=true`"
    if not has_record_index(client):
        raise InvalidOptionError(
            IndexConfig.index_type.key,
            kind.value,
            "the table has no record index",
            f"Build it with {build}, or write with {MetadataConfig.enabled.key}=true and "
            f"{option.key}=true.",
        )
    definitions = read_definitions(client.storage, client.config)
    again = f"Run `hudi metadata drop {client.base_path} record_index`, then {build}."
    if not client.config.tells_meta_columns:
        snapshot = MetadataSnapshot.open(client)
        if not snapshot.knows_all_keys(definitions):
            raise InvalidOptionError(
                IndexConfig.index_type.key,
                kind.value,
                "the table's record index may lack rows: another engine has written the table, "
                "and of one without meta columns Hudi keeps no record index",
                f"{again} Or write with another index.",
            )
    if definitions.is_partitioned(RECORD_INDEX) is kind.is_global:
        ours = "of the whole table" if kind.is_global else "kept by partitions"
        theirs = "kept by partitions" if kind.is_global else "of the whole table"
        raise InvalidOptionError(
            IndexConfig.index_type.key,
            kind.value,
            f"the table's record index is {theirs}, and this needs one that is {ours}",
            again,
        )


_NO_KEYS: Final = np.empty(0, dtype=np.int32)
_ABSENT: Final = -1


class _KnownGroups:
    """Numbers of file groups that index values name."""

    def __init__(self) -> None:
        self.groups: list[FileGroupId] = []
        self._numbers: dict[FileGroupId, int] = {}

    def number(self, location: RecordLocation) -> int:
        group = FileGroupId(partition_path(location.partition_name), FileId(location.file_id))
        number = self._numbers.setdefault(group, len(self.groups))
        if number == len(self.groups):
            self.groups.append(group)
        return number


def _group_of_each(
    reader: GroupReader, keys: pa.StringArray, known: _KnownGroups, cache: str | None
) -> npt.NDArray[np.int32]:
    """Return the file group number of each key; -1 for none."""
    encoded = keys.cast(pa.binary())
    groups = np.full(len(encoded), _ABSENT, np.int32)
    kept = None if cache is None else KeyCache(cache, f"{reader.path}/{reader.slice.file_id}")
    for layer in reader.layers:
        if layer.reader is not None:
            found = (
                layer.reader.find_many(encoded)
                if kept is None
                else kept.find(layer, encoded, reader.layers)
            )
            decoder = RecordDecoder(layer.reader.schema, layer.path)
            for ordinals, values in found:
                # the keys of one file group have few different locations
                coded = values.dictionary_encode()
                numbers = [
                    _number(decoder, value, layer.path, known)
                    for value in coded.dictionary.to_pylist()
                ]
                groups[ordinals] = np.array(numbers, np.int32)[coded.indices.to_numpy()]
        if layer.deleted:
            deleted = pa.array([key.encode() for key in layer.deleted], pa.binary())
            groups[pc.is_in(encoded, value_set=deleted).to_numpy(zero_copy_only=False)] = _ABSENT
    return groups


def _number(decoder: RecordDecoder, value: bytes, path: str, known: _KnownGroups) -> int:
    if not value:
        return _ABSENT
    _, location = decoder.decode_value(value)
    if not isinstance(location, RecordLocation):
        raise CorruptMetadataError(path, "a value of the record index is no location", REBUILD)
    return known.number(location)


# --- rows tagged by the record index -------------------------------------------------------------

# Four rounds of tasks: the keys are collected, and dealt out by shard; each task asks some shards
# for theirs; of the files that they name, and of no others, each task looks for the keys that are
# said to be there; and what was found is decided as it is with every other index. With an index
# that is kept by partitions each partition is for itself, and the tasks of all share the rounds.


BaseFiles = dict[PartitionPath, tuple[BaseFile, ...]]
_Answer = tuple[SpillRef, tuple[FileGroupId, ...]]
"""Keys with the ordinals of their file groups, and these."""


@dataclass(frozen=True, slots=True)
class RecordTagging:
    """The tasks that locate rows by the record index."""

    tagging: Tagging

    def run(
        self,
        engine: Engine,
        index: RecordIndex,
        scopes: Sequence[Scope],
        files_of: Callable[[Collection[PartitionPath]], BaseFiles],
        stage: int,
    ) -> tuple[BaseFiles, dict[PartitionPath, Tagged]]:
        """Locate the rows of a write.

        ``scopes`` have no files: one of all rows, or with an index that is kept by partitions one
        for each. Returned are the base files of the partitions concerned, and what becomes of these
        partitions.
        """
        asked = [index.lookups(sum(one.sources.rows), self._owner(one)) for one in scopes]
        items = [(scope, tuple(some)) for scope, some in zip(scopes, asked, strict=True)]
        collected = engine.map_tasks(items, self.collect, stage)
        left = [incoming for incoming, _ in collected]
        flat = [
            one
            for (_, shares), some in zip(collected, asked, strict=True)
            for one in zip(shares, some, strict=True)
        ]
        found = iter(engine.map_tasks(flat, self.ask, stage))
        answers = [[next(found) for _ in some] for some in asked]
        paths = set[PartitionPath]()
        if self._context.knows_partitions:
            paths = {path for scope in scopes for path in scope.sources.paths}
        if self._context.is_global:
            paths |= {
                group.partition_path for some in answers for _, groups in some for group in groups
            }
        files = files_of(paths)
        with_files = [self._with_files(scope, files) for scope in scopes]
        looks = [
            self._looks(scope, incoming, some, -(-engine.parallelism // len(scopes)))
            for scope, incoming, some in zip(with_files, left, answers, strict=True)
        ]
        tagged = self.tagging.run_looks(engine, with_files, left, looks, stage)
        return files, {one.partition_path: one for some in tagged for one in some}

    def _owner(self, scope: Scope) -> PartitionPath | None:
        """Return the data partition whose shards hold a scope's keys."""
        if self._context.is_global:
            return None
        (path,) = scope.sources.paths
        return path

    def _with_files(self, scope: Scope, files: BaseFiles) -> Scope:
        paths = files if self._context.is_global else scope.sources.paths
        return replace(
            scope, files=tuple((path, file) for path in paths for file in files.get(path, ()))
        )

    def _looks(
        self, scope: Scope, incoming: SpilledIncoming, answers: Sequence[_Answer], least: int
    ) -> list[FileLook]:
        """The files of a scope that hold keys, as the index says."""
        ordinals = self._ordinals(scope, answers)
        hints = tuple((left, tuple(ordinals[one] for one in groups)) for left, groups in answers)
        chunks = file_chunks(scope, sorted(ordinals.values()), least)
        return [FileLook(scope, incoming, chunk, hints) for chunk in chunks]

    def _ordinals(self, scope: Scope, answers: Sequence[_Answer]) -> dict[FileGroupId, int]:
        """The file's ordinal of each file group that the index names.

        A file group that is not there raises ``CorruptMetadataError``: its keys would be taken for
        new ones.
        """
        named = {group for _, groups in answers for group in groups}
        found = {
            group: ordinal
            for ordinal, (path, file) in enumerate(scope.files)
            if (group := FileGroupId(path, file.name.file_id)) in named
        }
        gone = sorted(named - found.keys())
        if gone:
            raise CorruptMetadataError(
                f"{self._context.base_path}/{METADATA_FOLDER}/{RECORD_INDEX}",
                f"it says that keys are in the file group {gone[0].file_id} of partition "
                f"{gone[0].partition_path!r}, which is not there"
                + (f"; and in {len(gone) - 1} more of that kind" if len(gone) > 1 else ""),
                REBUILD,
            )
        return found

    def collect(
        self, task: TaskContext, item: tuple[Scope, Sequence[ShardLookup]]
    ) -> tuple[SpilledIncoming, list[SpillRef]]:
        """Collect the keys of a scope, and those of each lookup."""
        scope, lookups = item
        incoming = self.tagging.collect(task, scope)
        shares = []
        if lookups:
            keys = load(self._context, incoming.keys).column("key").combine_chunks()
            # as RecordIndex.lookups deals the shards out
            of_lookups = shards_of(keys, lookups[0].count) % len(lookups)
            for number in range(len(lookups)):
                own = np.flatnonzero(of_lookups == number).astype(np.int32)
                some = pa.table({"key": keys.take(pa.array(own)), "ordinal": own})
                kind = f"asked{number}"
                shares.append(spill(self._context, task, kind, some, self.tagging.in_memory))
        return incoming, shares

    def ask(self, task: TaskContext, item: tuple[SpillRef, ShardLookup]) -> _Answer:
        """Ask some shards for the keys that are theirs."""
        share, lookup = item
        asked = load(self._context, share)
        found = lookup.find(asked.column("key").combine_chunks())
        # ordinals of keys and groups, both of 32 bits
        ordinals = asked.column("ordinal").to_numpy()[found.keys]
        where = pa.table({"key": ordinals, "group": found.groups})
        left = spill(self._context, task, "where", where, self.tagging.in_memory)
        return left, found.file_groups

    @property
    def _context(self) -> WriteContext:
        return self.tagging.context
