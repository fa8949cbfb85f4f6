"""Compaction of the metadata table: log files into base files.

When it is due, and when it must wait, are Hudi's rules. What is merged is what the plan names, by
the reader's rule of which blocks count; so a compaction that a dead writer began is finished from
its plan, whatever was committed since.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

from hudi_core.actions.compaction import (
    CompactionWork,
    complete_compaction,
    merge_slices,
    pending_compactions,
    plan_compaction,
    request_compaction,
    start_compaction,
)
from hudi_core.avro.datum import encode_datum, parse_writer_schema
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.table import TableConfig
from hudi_core.errors import CorruptMetadataError, TableServiceError
from hudi_core.metadata.damage import REBUILD
from hudi_core.metadata.log.completeness import (
    CommitRecords,
    Shards,
    require_complete_slices,
    shards_stated,
)
from hudi_core.metadata.log.file_bytes import encode_base_entries
from hudi_core.metadata.log.groups import ListedGroup
from hudi_core.metadata.log.layers import BaseLayer, Entry, GroupReader
from hudi_core.metadata.log.record_codec import (
    RecordDecoder,
    RecordEncoder,
    record_schema,
    table_schema,
)
from hudi_core.metadata.log.records import MetadataRecord
from hudi_core.metadata.log.visible_instants import VisibleInstants
from hudi_core.metadata.merging import merge, present
from hudi_core.metadata.partition_types import shard_number
from hudi_core.metadata.partitions.registry import partition_of
from hudi_core.metadata.state import MetadataState
from hudi_core.model.actions import CompactionOperation
from hudi_core.model.commit import NO_PREVIOUS_COMMIT, SCHEMA_KEY, CommitMetadata, WriteStat
from hudi_core.model.files import (
    BaseFile,
    BaseFileName,
    FileGroupId,
    FileId,
    FileSlice,
    FileStatus,
    LogFile,
    LogFileName,
    PartitionPath,
    join_path,
)
from hudi_core.model.instant import Action, Instant
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import Storage
from hudi_core.schema.table_schema import FILE_NAME, META_COLUMNS
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_system import FileSystemView
from hudi_core.view.storage_lister import StorageLister

_log: Final = logging.getLogger(__name__)
_EXTENSION: Final = ".hfile"
_LIGHT: Final = 4 << 20
"""Bytes up to which file groups are merged in this process: tasks of their own would take longer to
begin."""


def deltas_since_compaction(timeline: Timeline) -> Sequence[Instant]:
    """Return completed deltacommits since the last compaction, oldest first."""
    completed = timeline.completed()
    compactions = completed.of_actions(Action.COMMIT)
    last = max((one.requested_time for one in compactions), default="")
    return [
        one
        for one in completed.of_actions(Action.DELTACOMMIT)
        if one.effective_completion_time > last
    ]


def compaction_waits_for(data_timeline: Timeline, timeline: Timeline) -> Instant | None:
    """Return the pending instant that blocks a compaction, or ``None``.

    What the metadata table has of it, readers must still be able to leave out; in a base file they
    could not. An instant that began after the last deltacommit cannot have left anything yet, nor
    has a plan that is only scheduled.
    """
    deltas = timeline.completed().of_actions(Action.DELTACOMMIT)
    latest = max((one.requested_time for one in deltas), default="")
    begun = (one for one in data_timeline.pending() if not one.is_scheduled)
    return next((one for one in begun if one.requested_time <= latest), None)


def require_no_backlog(config: MetadataConfig, data_timeline: Timeline, timeline: Timeline) -> None:
    """Refuse a deltacommit when too many wait for a blocked compaction."""
    waiting = len(deltas_since_compaction(timeline))
    blocker = compaction_waits_for(data_timeline, timeline)
    if blocker is not None and waiting > config.max_delta_commits_pending:
        raise TableServiceError(
            f"{waiting} commits of the metadata table wait for a compaction, which waits for the "
            f"pending {blocker} of the table",
            "Finish or roll back that instant, or raise "
            f"{MetadataConfig.max_delta_commits_pending.key}.",
            instant=str(blocker),
        )


def compact_if_due(locked: MetadataState, config: MetadataConfig) -> Instant | None:
    """Compact the metadata table if due; runs under the lock."""
    metadata, timeline = locked.metadata, locked.timeline
    if len(deltas_since_compaction(timeline)) < config.compact_delta_commits:
        return None
    if compaction_waits_for(locked.data_timeline, timeline) is not None:
        return None
    slices = _slices(locked, ())
    plan = plan_compaction(slices)
    if plan is None:
        return None
    requested = request_compaction(metadata, locked.next_time(), plan)
    return _run(locked, requested, slices, config.record_index_group_bytes)


def finish_compactions(locked: MetadataState) -> bool:
    """Finish the compactions that dead writers began; runs under the table's lock."""
    pending = pending_compactions(locked.timeline)
    for one in pending:
        _run(locked, one, None)
    return bool(pending)


def _run(
    locked: MetadataState,
    instant: Instant,
    slices: Sequence[FileSlice] | None,
    most_bytes: int | None = None,
) -> Instant:
    """Run a compaction.

    Warns of file groups of key indexes with more than ``most_bytes``.
    """
    metadata, timeline = locked.metadata, locked.timeline
    work = start_compaction(metadata, instant)
    if slices is None:
        slices = _slices(locked, [one.partition_path or "" for one in work.plan.operations or ()])
    completion = {one.requested_time: one.effective_completion_time for one in timeline.completed()}
    merge_one = _MergeSlice(
        metadata.storage,
        metadata.config,
        instant.requested_time,
        VisibleInstants.of(locked.data_timeline, timeline),
        completion,
        {file.path: file for one in slices for file in _files(one)},
    )
    untouched = _untouched(locked, work, slices, completion)
    extra = {SCHEMA_KEY: table_schema(), **shards_stated(untouched)}
    weight = sum(file.size for one in slices for file in _files(one))
    run_map = metadata.map_heavy if weight > _LIGHT else metadata.run_map
    operations = work.plan.operations or ()
    found = dict(zip(map(_group_of, operations), run_map(merge_one, operations), strict=True))

    def stat(operation: CompactionOperation, _: InstantTime) -> WriteStat:
        return merge_one.stat(operation, found[_group_of(operation)])

    body = merge_slices(metadata, work, stat, extra)
    if most_bytes is not None:
        _warn_of_growth(locked.client.base_path, body, most_bytes)
    return complete_compaction(metadata, work, locked.next_time(), body)


def _warn_of_growth(base_path: str, body: CommitMetadata, most_bytes: int) -> None:
    """Say which key indexes have outgrown their file groups."""
    for partition, stats in body.partition_to_write_stats.items():
        largest = max(one.file_size_in_bytes or 0 for one in stats)
        kind = partition_of(partition)
        if kind is not None and kind.is_key_index and largest > most_bytes:
            _log.warning(
                "file groups of %s of %s have up to %d bytes, more than the %d of %s; "
                "`hudi metadata drop` and `hudi metadata index` build it again with more of them",
                partition,
                base_path,
                largest,
                most_bytes,
                MetadataConfig.record_index_group_bytes.key,
            )


def _slices(locked: MetadataState, planned: Iterable[str]) -> Sequence[FileSlice]:
    """Latest slices of complete partitions and of those that a plan names.

    None of them lacks a file; each costs a listing.
    """
    metadata, timeline = locked.metadata, locked.timeline
    lister = StorageLister(metadata.storage, partitioned=True, run_map=metadata.run_map)
    # a partition that is dropped or built just now may have any files
    complete = locked.partitions.complete
    partitions = [PartitionPath(one) for one in dict.fromkeys((*complete, *planned))]
    slices = FileSystemView(lister, timeline, {}).latest_slices(partitions)
    counts = VisibleInstants.of(locked.data_timeline, timeline)
    records = CommitRecords(metadata.storage.root, timeline, counts, metadata.read_commit)
    for partition in complete:
        # what is missing now would not be missed any more
        own = [one for one in slices if one.partition_path == partition]
        is_partitioned = partial(locked.definitions.is_partitioned, partition)
        require_complete_slices(partition, own, records, is_partitioned)
    return slices


def _files(found: FileSlice) -> Iterator[FileStatus]:
    if found.base_file is not None:
        yield found.base_file.status
    yield from (log.status for log in found.log_files)


def _untouched(
    locked: MetadataState,
    work: CompactionWork,
    slices: Sequence[FileSlice],
    completion: Mapping[InstantTime, str],
) -> Shards:
    """Files of the file groups that a compaction does not touch.

    As it found them: what completed since it was requested may be rolled back yet.
    """
    time = work.instant.requested_time
    merged = {(one.partition_path, one.file_id) for one in work.plan.operations or ()}
    found: dict[str, dict[str, int]] = {partition: {} for partition in locked.partitions.complete}
    for one in slices:
        if one.partition_path in found and (one.partition_path, one.file_id) not in merged:
            found[one.partition_path] |= {
                name: file.size
                for name, file in ListedGroup.of(one).files.items()
                if completion.get(file.instant, file.instant) <= time
            }
    return found


class MergedFile(NamedTuple):
    """What a merged file group has: bytes, counts of records."""

    size: int
    records: int
    removed: int
    updated: int
    inserted: int
    log_records: int
    log_blocks: int


def _group_of(operation: CompactionOperation) -> FileGroupId:
    partition = PartitionPath(operation.partition_path or "")
    return FileGroupId(partition, FileId(operation.file_id or ""))


@dataclass(frozen=True)
class _MergeSlice:
    """Merges one file slice; a value, which engines can send away."""

    storage: Storage
    config: TableConfig
    time: InstantTime
    counts: Callable[[InstantTime], bool]
    completion: Mapping[InstantTime, str]
    listed: Mapping[str, FileStatus]

    def __call__(self, operation: CompactionOperation) -> MergedFile:
        found = self._slice(operation)
        name = str(self._name(found))
        reader = GroupReader(
            self.storage, found, self.counts, lambda one: self.completion.get(one, one)
        )
        merged = merge_group(reader, RecordEncoder(name), name)
        data = encode_base_entries(merged.entries, record_schema(), self.config, self.time)
        self.storage.put(join_path(found.partition_path, name), data)
        return MergedFile(
            len(data),
            len(merged.entries),
            merged.removed,
            merged.updated,
            merged.inserted,
            merged.log_records,
            merged.log_blocks,
        )

    def stat(self, operation: CompactionOperation, merged: MergedFile) -> WriteStat:
        """The write stat of a merged slice."""
        found = self._slice(operation)
        base = found.base_file
        return WriteStat(
            file_id=found.file_id,
            path=join_path(found.partition_path, str(self._name(found))),
            prev_commit=base.instant if base else NO_PREVIOUS_COMMIT,
            num_writes=merged.records,
            num_deletes=merged.removed,
            num_update_writes=merged.updated,
            num_inserts=merged.inserted,
            total_write_bytes=merged.size,
            file_size_in_bytes=merged.size,
            partition_path=found.partition_path,
            total_log_records=merged.log_records,
            total_log_files=len(found.log_files),
            total_log_blocks=merged.log_blocks,
            total_updated_records_compacted=merged.inserted + merged.updated,
            total_log_files_compacted=len(found.log_files),
            total_log_size_compacted=sum(log.status.size for log in found.log_files),
            prev_base_file=base.status.name if base else None,
        )

    def _name(self, found: FileSlice) -> BaseFileName:
        return BaseFileName(found.file_id, _token(found.file_id), self.time, _EXTENSION)

    def _slice(self, operation: CompactionOperation) -> FileSlice:
        group = _group_of(operation)
        partition = group.partition_path
        base = operation.data_file_path
        logs = tuple(
            LogFile(self._status(partition, one), name)
            for one in operation.delta_file_paths or ()
            if (name := LogFileName.parse(one)) is not None
        )
        parsed = BaseFileName.parse(base) if base else None
        return FileSlice(
            group,
            InstantTime(operation.base_instant_time or ""),
            BaseFile(self._status(partition, base), parsed) if base and parsed else None,
            logs,
        )

    def _status(self, partition: PartitionPath, name: str) -> FileStatus:
        path = join_path(partition, name)
        try:
            return self.listed[path]
        except KeyError as error:
            raise CorruptMetadataError(
                f"{self.storage.root}/{path}", "it is missing", REBUILD
            ) from error


def _token(file_id: FileId) -> str:
    return f"{shard_number(file_id) or 0}-0-0"


# --- merged file groups ---------------------------------------------------------------------------


_META_FIELDS: Final = json.dumps(
    {
        "type": "record",
        "name": "MetaFields",
        "fields": [{"name": name, "type": ["null", "string"]} for name in META_COLUMNS],
    }
)


@dataclass(slots=True)
class MergedGroup:
    """A merged file group, and how it came about."""

    entries: list[Entry] = field(default_factory=list)
    log_blocks: int = 0
    log_records: int = 0
    inserted: int = 0
    updated: int = 0
    removed: int = 0


def merge_group(reader: GroupReader, encoder: RecordEncoder, file_name: str) -> MergedGroup:
    """Merge a file group.

    What no log block mentions is taken from the old base file as it is, but for the file's own name
    in it: of a large file few records are decoded.
    """
    layers, base = reader.logs, reader.base
    merged = MergedGroup(log_blocks=len(layers))
    changed: dict[bytes, list[MetadataRecord | None]] = {}
    for layer in layers:
        for text, record in layer.scan([""]):
            merged.log_records += 1
            changed.setdefault(text.encode(), []).append(record)
    waiting = sorted(changed, reverse=True)
    if base is not None:
        kept = _Kept(base, reader, encoder, file_name)
        for key, value in base.reader.entries():
            while waiting and waiting[-1] < key:
                _add(merged, encoder, None, changed[waiting.pop()])
            if waiting and waiting[-1] == key:
                _add(merged, encoder, kept.decode(key, value), changed[waiting.pop()])
            elif (entry := kept.entry(key, value)) is not None:
                merged.entries.append(entry)
    while waiting:
        _add(merged, encoder, None, changed[waiting.pop()])
    return merged


def _add(
    merged: MergedGroup,
    encoder: RecordEncoder,
    old: MetadataRecord | None,
    newer: list[MetadataRecord | None],
) -> None:
    """Add a key's merged entry, if anything is left.

    Of a key that occurs in the log.
    """
    record = old
    for one in newer:
        record = merge(record, one)
    seen = present(record)
    if seen is None:
        merged.removed += old is not None
        return
    merged.inserted += old is None
    merged.updated += old is not None
    merged.entries.append(encoder.encode(seen))


class _Kept:
    """Entries of the old base file, for the new one."""

    def __init__(
        self, base: BaseLayer, reader: GroupReader, encoder: RecordEncoder, file_name: str
    ) -> None:
        assert reader.slice.base_file is not None  # noqa: S101 - the layer is of this file
        self._encoder = encoder
        self._decoder = RecordDecoder(base.reader.schema, base.path)
        self._is_same = base.reader.schema == encoder.schema
        self._old = _meta_fields(reader.slice.base_file.status.name)
        self._new = _meta_fields(file_name)

    def decode(self, key: bytes, value: bytes) -> MetadataRecord | None:
        return self._decoder.decode(key, value)

    def entry(self, key: bytes, value: bytes) -> Entry | None:
        """Return the entry, unless it is of something that is gone."""
        if self._is_same and value.startswith(self._old):
            # of one schema, and of one writer, who leaves out what is gone
            return key, self._new + value[len(self._old) :]
        record = present(self.decode(key, value))
        return None if record is None else self._encoder.encode(record)


def _meta_fields(file_name: str) -> bytes:
    """Leading bytes of every base file value.

    Four nulls and the file's name.
    """
    schema = parse_writer_schema(_META_FIELDS, "MetaFields").parsed
    return encode_datum({**dict.fromkeys(META_COLUMNS), FILE_NAME: file_name}, schema)
