"""Changes of a key index's file groups, and their tasks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_core.config.table import TableConfig
from hudi_core.errors import IncompleteCommitError
from hudi_core.hashing.java_hash import shards_of
from hudi_core.meta_client import TableMetaClient, run_serially
from hudi_core.metadata.index_definitions import IndexDefinitions
from hudi_core.metadata.log.file_bytes import (
    encode_base_file,
    encode_first_log_file,
    encode_log_file,
)
from hudi_core.metadata.log.records import AlikeRecords, MetadataRecord, PartitionChange
from hudi_core.model.files import BaseFileName, FileId, LogFileName, PartitionPath, join_path
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import Storage

# --- which keys a file group has -----------------------------------------------------------------


def value_part(key: str) -> str:
    """Return a secondary key up to the ``$`` included.

    The part before the record key.
    """
    escaped = False
    for position, letter in enumerate(key):
        if letter == "$" and not escaped:
            return key[: position + 1]
        escaped = letter == "\\" and not escaped
    return key


def numbers_of_keys(
    keys: pa.StringArray | Sequence[str], count: int, by_value: bool = False
) -> npt.NDArray[np.int64]:
    """Return for each key the number of its file group.

    ``by_value``: of a secondary index whose values alone decide.
    """
    if by_value:
        texts = keys.to_pylist() if isinstance(keys, pa.Array) else keys
        keys = [value_part(key) for key in texts]
    return shards_of(keys if isinstance(keys, pa.Array) else pa.array(keys, pa.string()), count)


def by_shard(
    change: PartitionChange, count: int, by_value: bool = False
) -> Iterable[tuple[int, PartitionChange]]:
    """Yield the touched file groups with their changes."""
    records: dict[int, list[MetadataRecord]] = {}
    deleted: dict[int, list[str]] = {}
    of_records = numbers_of_keys([record.key for record in change.records], count).tolist()
    for record, shard in zip(change.records, of_records, strict=True):
        records.setdefault(shard, []).append(record)
    for key, shard in zip(
        change.deleted, numbers_of_keys(change.deleted, count).tolist(), strict=True
    ):
        deleted.setdefault(shard, []).append(key)
    alike: dict[int, list[AlikeRecords]] = {}
    for some in change.alike:
        of_keys = numbers_of_keys(some.keys, count, by_value)
        for shard in np.unique(of_keys).tolist():
            own = some.keys.filter(pa.array(of_keys == shard))
            alike.setdefault(shard, []).append(replace(some, keys=own))
    for shard in sorted(records.keys() | deleted.keys() | alike.keys()):
        yield (
            shard,
            PartitionChange(
                tuple(records.get(shard, ())),
                tuple(deleted.get(shard, ())),
                tuple(alike.get(shard, ())),
            ),
        )


# --- changes that tasks find and write -----------------------------------------------------------


class FoundChange(NamedTuple):
    """What becomes of file groups, and whether keys are repeated."""

    change: PartitionChange
    repeats: bool = False


class SpreadChange(Protocol):
    """A change of a key index by file groups; a value.

    ``is_spread``: file groups are found one by one; else the keys are few, and in one piece.
    ``owners`` have keys that come or go.
    """

    @property
    def owners(self) -> Collection[PartitionPath | None]: ...
    @property
    def is_spread(self) -> bool: ...
    @property
    def by_value(self) -> bool: ...

    def find(self, owner: PartitionPath | None, shards: Sequence[int]) -> FoundChange:
        """What becomes of the records of some file groups of an owner."""
        ...

    def noted(self, definitions: IndexDefinitions) -> IndexDefinitions:
        """The definitions, as keys come to be repeated."""
        ...


class ShardedChange(Protocol):
    """What becomes of a key index, by few keys or many."""

    def __bool__(self) -> bool: ...

    @property
    def owners(self) -> Collection[PartitionPath | None]:
        """Whose file groups it may touch; see :class:`~.groups.Groups`."""
        ...

    def spread(self, counts: Mapping[PartitionPath | None, int], folder: str) -> SpreadChange:
        """The change by file groups, of which each owner has so many.

        ``folder``, below the table's, is for files that tasks leave for others.
        """
        ...


Change: TypeAlias = PartitionChange | ShardedChange
Changes: TypeAlias = Mapping[str, Change]
"""Changes by partition of the metadata table."""


class ShardTask(NamedTuple):
    """Some of an owner's file groups: numbers and ids.

    ``total`` is how many it has. Those that are ``begun`` get a file even where nothing becomes of
    them.
    """

    owner: PartitionPath | None
    total: int
    groups: Sequence[tuple[int, FileId]]
    begun: Collection[int] = ()


class ShardFile(NamedTuple):
    """A file that a task has made.

    With its bytes, unless the task has put it.
    """

    shard: int
    file_id: FileId
    size: int
    new: int
    deleted: int
    data: bytes | None


class WrittenShards(NamedTuple):
    """What comes back from a task: a status for each file."""

    files: tuple[ShardFile, ...]
    repeats: bool


@dataclass(frozen=True, slots=True)
class WriteShards(ABC):
    """Makes the files of file groups; a value, for tasks.

    ``times`` are that of the instant and that at which the files are made. Into ``storage`` a task
    puts what it makes: two attempts at it the same bytes, so that either may be the last. It puts
    nothing without the file of the instant at ``sign``: what it is for has been taken back, and
    nobody would remove the file again.
    """

    partition: str
    change: SpreadChange
    config: TableConfig
    times: tuple[InstantTime, InstantTime]
    storage: Storage | None = None
    sign: str = ""

    @abstractmethod
    def name(self, file_id: FileId, shard: int) -> str:
        """The name of the file of a file group."""

    @abstractmethod
    def encode(self, name: str, part: PartitionChange) -> bytes:
        """The bytes of a file."""

    def __call__(self, task: ShardTask) -> WrittenShards:
        """Make those of some file groups."""
        found = self.change.find(task.owner, [shard for shard, _ in task.groups])
        if not (found.change or self.change.is_spread):
            return WrittenShards((), found.repeats)
        if self.change.is_spread and len(task.groups) == 1:
            parts = {task.groups[0][0]: found.change}
        else:
            parts = dict(by_shard(found.change, task.total, self.change.by_value))
        return WrittenShards(tuple(self._files(task, parts)), found.repeats)

    def _files(self, task: ShardTask, parts: Mapping[int, PartitionChange]) -> Iterator[ShardFile]:
        for shard, file_id in task.groups:
            part = parts.get(shard, PartitionChange())
            if not part and shard not in task.begun:
                continue
            name = self.name(file_id, shard)
            data = self.encode(name, part)
            if self.storage is not None:
                self._require_wanted(self.storage)
                self.storage.put(join_path(self.partition, name), data)
            left = data if self.storage is None else None
            yield ShardFile(shard, file_id, len(data), part.new, len(part.deleted), left)

    def _require_wanted(self, storage: Storage) -> None:
        if storage.head(self.sign) is None:
            time, _ = self.times
            raise IncompleteCommitError(
                f"The commit {time} of the metadata table was taken back while a task wrote for it",
                "Write again: nothing of this write is visible.",
                instant=time,
            )


@dataclass(frozen=True, slots=True)
class WriteLogs(WriteShards):
    """Makes the log files of a deltacommit."""

    def name(self, file_id: FileId, shard: int) -> str:
        return str(log_name(file_id, self.times[0], shard))

    def encode(self, name: str, part: PartitionChange) -> bytes:  # noqa: ARG002 - of base files
        if not part:
            return encode_first_log_file(self.times[0])
        return encode_log_file(self.partition, part, self.config, self.times)


@dataclass(frozen=True, slots=True)
class WriteBases(WriteShards):
    """Makes the first base files of a partition."""

    def name(self, file_id: FileId, shard: int) -> str:
        return str(base_name(file_id, self.times[0], shard))

    def encode(self, name: str, part: PartitionChange) -> bytes:
        return encode_base_file(part, self.config, name, self.times[1])


def log_name(file_id: FileId, time: InstantTime, shard: int) -> LogFileName:
    """The log file of a deltacommit in a file group."""
    return LogFileName(file_id, time, 1, f"{shard}-0-0")


def base_name(file_id: FileId, time: InstantTime, shard: int) -> BaseFileName:
    """The first base file of a file group."""
    return BaseFileName(file_id, f"{shard}-0-0", time, ".hfile")


def write_shards(
    metadata: TableMetaClient,
    write: WriteShards,
    groups: Mapping[PartitionPath | None, tuple[Sequence[FileId], Collection[int]]],
) -> WrittenShards:
    """Have tasks make the files of a change.

    ``groups`` are by owner the ids of all file groups, and which of them are begun. Of few keys the
    files are made here, and come with their bytes.
    """
    change, tasks = write.change, []
    if change.is_spread:
        inflight = Instant(write.times[0], Action.DELTACOMMIT, State.INFLIGHT)
        sign = metadata.active.path(inflight)
        write = replace(write, storage=metadata.storage, sign=sign)
    for owner in change.owners:
        ids, begun = groups[owner]
        numbered = list(enumerate(ids))
        parts = [[one] for one in numbered] if change.is_spread else [numbered]
        tasks += [ShardTask(owner, len(ids), part, begun) for part in parts]
    run_map = metadata.map_heavy if change.is_spread else run_serially
    found = list(run_map(write, tasks))
    files = tuple(one for some in found for one in some.files)
    return WrittenShards(files, any(one.repeats for one in found))
