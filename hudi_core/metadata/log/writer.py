"""A metadata table commit: one log file per touched group.

It has the time of the instant of the table that it records, and is complete before that one is
(RFC-15, design V2): readers count its log files only when the table's own instant counts.
Everything here runs under the table's lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from hudi_core.config.table import TableConfig
from hudi_core.metadata.log.completeness import WATCHED, CommitRecords, require_complete
from hudi_core.metadata.log.file_bytes import encode_log_file
from hudi_core.metadata.log.groups import Groups, ListedGroup, list_all_groups, without_files
from hudi_core.metadata.log.record_codec import table_schema
from hudi_core.metadata.log.records import PartitionChange
from hudi_core.metadata.log.shards import (
    Change,
    Changes,
    ShardFile,
    WriteLogs,
    by_shard,
    log_name,
    write_shards,
)
from hudi_core.metadata.log.undo import undo
from hudi_core.metadata.log.visible_instants import VisibleInstants
from hudi_core.metadata.partition_types import shard_file_id
from hudi_core.metadata.state import KnownGroups, MetadataState
from hudi_core.model.commit import SCHEMA_KEY, CommitMetadata, WriteStat
from hudi_core.model.files import LogFileName, PartitionPath, join_path
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import Storage
from hudi_core.storage.flushing import flushed_together
from hudi_core.storage.kept_files import KEPT
from hudi_core.storage.temp_folders import STAGE, temp_folder
from hudi_core.timeline.serde import encode

UPSERT: Final = "UPSERT_PREPPED"
"""What deltacommits call themselves that record changes."""


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file to put.

    Without ``data`` a task has put it. ``path`` is below the metadata table; ``stat`` is ``None``
    for files that the commit does not mention.
    """

    path: str
    data: bytes | None
    stat: WriteStat | None = None


@dataclass(frozen=True, slots=True)
class _Put:
    """Puts files; a value, which engines can send away."""

    storage: Storage

    def __call__(self, file: NewFile) -> None:
        if file.data is not None:
            self.storage.put_if_absent(file.path, file.data)


def write_deltacommit(
    tables: MetadataState,
    time: InstantTime,
    changes: Changes,
    new_groups: int = 1,
) -> MetadataState:
    """Commit what an instant of the table changes.

    What an earlier attempt at the same instant left is undone first.

    ``time`` is of an instant of the table that is not complete yet. ``new_groups`` is how many file
    groups a partition of the table gets that a record index kept by partitions has none of.
    """
    if tables.timeline.find(time, Action.DELTACOMMIT) is not None:
        tables = undo(tables, time)
    metadata, timeline = tables.metadata, tables.timeline
    counts = VisibleInstants.of(tables.data_timeline, timeline)
    known = tables.groups.at(timeline)
    groups = _groups_of(tables, changes, known, counts)
    times = time, tables.next_time()
    tables = begin_deltacommit(tables, time)
    files: list[NewFile] = []
    written: Iterable[ShardFile]
    folder = f"{temp_folder(time)}/{STAGE}"

    def new(partition: str, owner: PartitionPath | None) -> Sequence[ListedGroup]:
        ids = (shard_file_id(partition, shard, owner) for shard in range(new_groups))
        return [ListedGroup(partition, one, {}) for one in ids]

    for partition, found in groups.items():
        change = changes[partition]
        if isinstance(change, PartitionChange):
            written = _written_here(partition, change, found, metadata.config, times)
        else:
            own = {owner: found.get(owner) or new(partition, owner) for owner in change.owners}
            spread = change.spread({one: len(some) for one, some in own.items()}, folder)
            of_owners = {
                owner: ([one.file_id for one in some], _begun(owner, some, counts))
                for owner, some in own.items()
            }
            write = WriteLogs(partition, spread, metadata.config, times)
            done = write_shards(metadata, write, of_owners)
            written = done.files
            if done.repeats:
                tables = tables.with_definitions(spread.noted(tables.definitions))
        files += [_new_file(partition, one, time) for one in written]
    tables = complete_deltacommit(tables, time, files, UPSERT)
    for file in files:
        if file.data is not None:
            KEPT.keep(metadata.storage.root, file.path, file.data)
    # of an index that is kept by partitions a new one may have got its first
    whole = {name: without_files(some) for name, some in groups.items() if not _has_owners(some)}
    return replace(tables, groups=KnownGroups(tables.timeline.instants, {**known, **whole}))


def _groups_of(
    tables: MetadataState,
    changes: Changes,
    known: Mapping[str, Groups],
    counts: Callable[[InstantTime], bool],
) -> dict[str, Groups]:
    """File groups of partitions that change; unknown ones are listed."""
    metadata, names = tables.metadata, [name for name, change in changes.items() if change]
    asked = [name for name in names if name not in known]
    listed = list_all_groups(
        metadata, asked, [name for name in asked if _is_by_owner(changes[name])]
    )
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


def _is_by_owner(change: Change) -> bool:
    return not isinstance(change, PartitionChange) and None not in change.owners


def _has_owners(groups: Groups) -> bool:
    return None not in groups


def _written_here(
    partition: str,
    change: PartitionChange,
    found: Groups,
    config: TableConfig,
    times: tuple[InstantTime, InstantTime],
) -> Iterable[ShardFile]:
    own = found[None]
    for shard, part in by_shard(change, len(own)):
        data = encode_log_file(partition, part, config, times)
        yield ShardFile(shard, own[shard].file_id, len(data), part.new, len(part.deleted), data)


def _begun(
    owner: PartitionPath | None,
    groups: Sequence[ListedGroup],
    counts: Callable[[InstantTime], bool],
) -> frozenset[int]:
    """File groups of an owner that get a file anyway.

    Even where nothing becomes of them. Of an owner all file groups are there or none, and their
    number says where keys are. So those that nothing but instants without effect have made, which
    may be undone yet, are made again.
    """
    if owner is None:
        return frozenset()
    numbered = enumerate(groups)
    return frozenset(shard for shard, one in numbered if not any(map(counts, one.instants)))


def _new_file(partition: str, made: ShardFile, time: InstantTime) -> NewFile:
    name = log_name(made.file_id, time, made.shard)
    stat = replace(
        log_stat(name, partition, made.size, time),
        num_writes=made.new,
        num_update_writes=made.new,
        num_deletes=made.deleted,
    )
    return NewFile(join_path(partition, str(name)), made.data, stat)


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
