"""A metadata table commit: one log file per touched group.

It has the time of the instant of the table that it records, and is complete before that one is
(RFC-15, design V2): readers count its log files only when the table's own instant counts.
Everything here runs under the table's lock.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

import numpy as np
import pyarrow as pa

from hudi_core.hashing.java_hash import shards_of
from hudi_core.metadata.log.completeness import WATCHED, CommitRecords, require_complete
from hudi_core.metadata.log.file_bytes import encode_first_log_file, encode_log_file
from hudi_core.metadata.log.groups import Groups, ListedGroup, list_all_groups, without_files
from hudi_core.metadata.log.record_codec import table_schema
from hudi_core.metadata.log.records import AlikeRecords, Changes, MetadataRecord, PartitionChange
from hudi_core.metadata.log.undo import undo
from hudi_core.metadata.log.visible_instants import VisibleInstants
from hudi_core.metadata.partition_types import shard_file_id
from hudi_core.metadata.state import KnownGroups, MetadataState
from hudi_core.model.commit import SCHEMA_KEY, CommitMetadata, WriteStat
from hudi_core.model.files import FileId, LogFileName, join_path
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import Storage
from hudi_core.storage.flushing import flushed_together
from hudi_core.storage.kept_files import KEPT
from hudi_core.timeline.serde import encode

UPSERT: Final = "UPSERT_PREPPED"
"""What deltacommits call themselves that record changes."""


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file to put.

    ``path`` is below the metadata table; ``stat`` is ``None`` for files that the commit does not
    mention.
    """

    path: str
    data: bytes
    stat: WriteStat | None = None


@dataclass(frozen=True, slots=True)
class _Put:
    """Puts files; a value, which engines can send away."""

    storage: Storage

    def __call__(self, file: NewFile) -> None:
        self.storage.put_if_absent(file.path, file.data)


def write_deltacommit(
    tables: MetadataState,
    time: InstantTime,
    changes: Changes,
    by_value: Collection[str] = (),
    new_groups: int = 1,
) -> MetadataState:
    """Commit what an instant of the table changes.

    What an earlier attempt at the same instant left is undone first.

    ``time`` is of an instant of the table that is not complete yet. ``by_value`` are secondary
    indexes whose values alone decide the file group; ``new_groups`` is how many file groups a
    partition of the table gets that a record index kept by partitions has none of.
    """
    if tables.timeline.find(time, Action.DELTACOMMIT) is not None:
        tables = undo(tables, time)
    metadata, timeline = tables.metadata, tables.timeline
    counts = VisibleInstants.of(tables.data_timeline, timeline)
    known = tables.groups.at(timeline)
    groups = _groups_of(tables, changes, known, counts)
    now = tables.next_time()
    tables = begin_deltacommit(tables, time)
    files: list[NewFile] = []
    for partition, found in groups.items():
        change = changes[partition]
        if change.owned:
            parts = _by_owner(partition, change, found, new_groups, counts)
        else:
            own = found[None]
            parts = (
                (own[shard].file_id, shard, part)
                for shard, part in _by_shard(change, len(own), partition in by_value)
            )
        for file_id, shard, part in parts:
            data = (
                encode_log_file(partition, part, metadata.config, (time, now))
                if part
                else encode_first_log_file(time)
            )
            name = LogFileName(file_id, time, 1, f"{shard}-0-0")
            stat = replace(
                log_stat(name, partition, len(data), time),
                num_writes=part.new,
                num_update_writes=part.new,
                num_deletes=len(part.deleted),
            )
            files.append(NewFile(join_path(partition, str(name)), data, stat))
    tables = complete_deltacommit(tables, time, files, UPSERT)
    for file in files:
        KEPT.keep(metadata.storage.root, file.path, file.data)
    # of an index that is kept by partitions a new one may have got its first
    named = {name: without_files(some) for name, some in groups.items() if not changes[name].owned}
    return replace(tables, groups=KnownGroups(tables.timeline.instants, {**known, **named}))


def _groups_of(
    tables: MetadataState,
    changes: Changes,
    known: Mapping[str, Groups],
    counts: Callable[[InstantTime], bool],
) -> dict[str, Groups]:
    """File groups of partitions that change; unknown ones are listed."""
    metadata, names = tables.metadata, [name for name, change in changes.items() if change]
    asked = [name for name in names if name not in known]
    listed = list_all_groups(metadata, asked, [name for name in asked if changes[name].owned])
    records = CommitRecords(metadata.storage.root, tables.timeline, counts, metadata.read_commit)
    for partition, found in listed.items():
        require_complete(partition, [*chain(*found.values())], records, groups_only=True)
    both = {**known, **listed}
    return {name: both[name] for name in names}


def begin_deltacommit(tables: MetadataState, time: InstantTime) -> MetadataState:
    """Begin a deltacommit; returns the new tables.

    Puts its requested and its inflight file.
    """
    active = tables.metadata.active
    requested = Instant(time, Action.DELTACOMMIT, State.REQUESTED)
    return tables.with_instant(active.begin(requested))


def complete_deltacommit(
    tables: MetadataState,
    time: InstantTime,
    files: Sequence[NewFile],
    operation: str,
    extra: Mapping[str, str] | None = None,
) -> MetadataState:
    """Complete a begun deltacommit; returns the new tables.

    Puts its files, then its completed file.
    """
    metadata = tables.metadata
    # every put is waited for before the next step
    with flushed_together(metadata.storage) as storage:
        list(metadata.run_map(_Put(storage), files))
    stats: dict[str, list[WriteStat]] = {}
    for file in files:
        if file.stat is not None:
            stats.setdefault(file.stat.partition_path or "", []).append(file.stat)
    body = CommitMetadata(
        partition_to_write_stats={name: tuple(found) for name, found in stats.items()},
        extra_metadata={SCHEMA_KEY: table_schema(), WATCHED: "true", **(extra or {})},
        operation_type=operation,
    )
    inflight = Instant(time, Action.DELTACOMMIT, State.INFLIGHT)
    completion = tables.next_time()
    return tables.with_instant(
        metadata.active.complete(inflight, completion, encode(body), tables.timeline)
    )


_GroupPart = tuple[FileId, int, PartitionChange]
"""A file group, its number, and its part of a change."""


def _by_owner(
    partition: str,
    change: PartitionChange,
    found: Groups,
    new_groups: int,
    counts: Callable[[InstantTime], bool],
) -> Iterator[_GroupPart]:
    """Yield file groups that a partitioned index's change touches.

    Or makes.

    Of an owner all file groups are there or none, and their number says where keys are. So those
    that nothing but instants without effect have made, which may be undone yet, are made again,
    with a part that says nothing.
    """
    for owner, own in change.owned.items():
        if not own:
            continue
        groups = found.get(owner) or [
            ListedGroup(partition, shard_file_id(partition, shard, owner), {})
            for shard in range(new_groups)
        ]
        parts = dict(_by_shard(own, len(groups), by_value=False))
        for shard, group in enumerate(groups):
            if shard in parts or not any(map(counts, group.instants)):
                yield group.file_id, shard, parts.get(shard, PartitionChange())


def _by_shard(
    change: PartitionChange, count: int, by_value: bool
) -> Iterable[tuple[int, PartitionChange]]:
    """Yield the touched file groups with their changes."""
    records: dict[int, list[MetadataRecord]] = {}
    deleted: dict[int, list[str]] = {}
    of_records = shard_numbers([record.key for record in change.records], count, by_value)
    for record, shard in zip(change.records, of_records, strict=True):
        records.setdefault(shard, []).append(record)
    for key, shard in zip(
        change.deleted, shard_numbers(change.deleted, count, by_value), strict=True
    ):
        deleted.setdefault(shard, []).append(key)
    alike: dict[int, list[AlikeRecords]] = {}
    for some in change.alike:
        of_keys = shards_of(some.keys, count)
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


def shard_numbers(keys: Sequence[str], count: int, by_value: bool = False) -> list[int]:
    """Return for each key the number of its file group."""
    hashed = [value_part(key) for key in keys] if by_value else keys
    found: list[int] = shards_of(pa.array(hashed, pa.string()), count).tolist()
    return found


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


def log_stat(name: LogFileName, partition: str, size: int, previous: str) -> WriteStat:
    """The status of a log file that nothing is counted of yet."""
    return WriteStat(
        file_id=name.file_id,
        path=join_path(partition, str(name)),
        prev_commit=previous,
        total_write_bytes=size,
        file_size_in_bytes=size,
        partition_path=partition,
        log_version=1,
        log_offset=0,
        base_file="",
        log_files=(str(name),),
    )
