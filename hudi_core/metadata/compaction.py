"""Compaction of the metadata table: each file group's base file and log files become a base file.

When it is due, and when it must wait, are Hudi's rules. What is merged is what the plan names, by
the reader's rule of which blocks count; so a compaction that a dead writer began is finished from
its plan, whatever was committed since.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hudi_core.actions.compaction import (
    CompactionWork,
    complete_compaction,
    merge_slices,
    pending_compactions,
    plan_compaction,
    request_compaction,
    start_compaction,
)
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.table import TableConfig
from hudi_core.errors import CorruptMetadataError, TableServiceError
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.completeness import require_complete_shards, require_index_groups
from hudi_core.metadata.damage import REBUILD
from hudi_core.metadata.file_bytes import encode_base_entries
from hudi_core.metadata.group_reader import GroupReader
from hudi_core.metadata.merged_group import merge_group
from hudi_core.metadata.partition_types import shard_number
from hudi_core.metadata.record_codec import RecordEncoder
from hudi_core.metadata.record_schema import record_schema, table_schema
from hudi_core.metadata.recorded import OTHER_GROUPS, other_groups
from hudi_core.metadata.state import MetadataState
from hudi_core.metadata.visible_instants import VisibleInstants
from hudi_core.model.actions import CompactionOperation
from hudi_core.model.commit import NO_PREVIOUS_COMMIT, SCHEMA_KEY, WriteStat
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
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_system import FileSystemView
from hudi_core.view.storage_lister import StorageLister

_EXTENSION: Final = ".hfile"


def deltas_since_compaction(timeline: Timeline) -> Sequence[Instant]:
    """Return the completed deltacommits of a metadata table that no base file has, oldest first."""
    completed = timeline.completed()
    compactions = completed.of_actions(Action.COMMIT)
    last = max((one.requested_time for one in compactions), default="")
    return [
        one
        for one in completed.of_actions(Action.DELTACOMMIT)
        if one.effective_completion_time > last
    ]


def compaction_waits_for(data_timeline: Timeline, timeline: Timeline) -> Instant | None:
    """Return the pending instant of the table that a compaction must wait for.

    What the metadata table has of it, readers must still be able to leave out; in a base file they
    could not. An instant that began after the last deltacommit cannot have left anything yet.

    Parameters
    ----------
    data_timeline, timeline
        The table's, and its metadata table's.
    """
    deltas = timeline.completed().of_actions(Action.DELTACOMMIT)
    latest = max((one.requested_time for one in deltas), default="")
    pending = data_timeline.pending()
    return next((one for one in pending if one.requested_time <= latest), None)


def require_no_backlog(config: MetadataConfig, data_timeline: Timeline, timeline: Timeline) -> None:
    """Refuse another deltacommit where too many wait for a compaction that cannot run.

    Raises
    ------
    TableServiceError
        Names the pending instant of the table that has to be resolved.
    """
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
    """Compact the metadata table if enough was committed; runs under the table's lock.

    Returns
    -------
    Instant or None
        The completed compaction; ``None`` when none is due, or it has to wait.

    Raises
    ------
    CorruptMetadataError
        A file of the metadata table is damaged.
    """
    metadata, timeline = locked.metadata, locked.timeline
    if len(deltas_since_compaction(timeline)) < config.compact_delta_commits:
        return None
    if compaction_waits_for(locked.data_timeline, timeline) is not None:
        return None
    # a partition that is dropped or built just now may have any files
    partitions = [PartitionPath(one) for one in locked.partitions.complete]
    lister = StorageLister(metadata.storage, partitioned=True, run_map=metadata.run_map)
    slices = list(FileSystemView(lister, timeline, {}).latest_slices(partitions))
    root = metadata.storage.root
    for partition in partitions:
        # what is missing now would not be missed any more
        own = [one for one in slices if one.partition_path == partition]
        if own or not locked.definitions.is_partitioned(partition):
            require_complete_shards(partition, own, timeline, metadata.read_commit, root)
        else:
            counts = VisibleInstants.of(locked.data_timeline, timeline)
            require_index_groups(partition, timeline, counts, metadata.read_commit, root)
    plan = plan_compaction(slices)
    if plan is None:
        return None
    return _run(locked, request_compaction(metadata, locked.next_time(), plan))


def finish_compactions(locked: MetadataState) -> bool:
    """Finish the compactions that dead writers began; runs under the table's lock.

    Returns
    -------
    bool
        Whether there were any.
    """
    pending = pending_compactions(locked.timeline)
    for one in pending:
        _run(locked, one)
    return bool(pending)


def _run(locked: MetadataState, instant: Instant) -> Instant:
    metadata = locked.metadata
    work = start_compaction(metadata, instant)
    timeline = locked.timeline
    completion = {one.requested_time: one.effective_completion_time for one in timeline.completed()}
    listed = _listed(metadata, work)
    merge_one = _MergeSlice(
        metadata.storage,
        metadata.config,
        VisibleInstants.of(locked.data_timeline, timeline),
        completion,
        listed,
    )
    touched = {one.file_id or "" for one in work.plan.operations or ()}
    extra = {
        SCHEMA_KEY: table_schema(),
        OTHER_GROUPS: other_groups(listed, touched),
    }
    body = merge_slices(metadata, work, merge_one, extra)
    return complete_compaction(metadata, work, locked.next_time(), body)


def _listed(metadata: TableMetaClient, work: CompactionWork) -> Mapping[str, FileStatus]:
    """Return the files of the partitions that a plan names, by path; a listing of each."""
    named = sorted({PartitionPath(one.partition_path or "") for one in work.plan.operations or ()})
    lister = StorageLister(metadata.storage, partitioned=True, run_map=metadata.run_map)
    return {file.path: file for files in lister.list_files(named).values() for file in files}


@dataclass(frozen=True)
class _MergeSlice:
    """Merges one slice; a value, which an engine can send away with its storage."""

    storage: Storage
    config: TableConfig
    counts: Callable[[InstantTime], bool]
    completion: Mapping[InstantTime, str]
    listed: Mapping[str, FileStatus]

    def __call__(self, operation: CompactionOperation, time: InstantTime) -> WriteStat:
        found = self._slice(operation)
        name = BaseFileName(found.file_id, _token(found.file_id), time, _EXTENSION)
        reader = GroupReader(
            self.storage, found, self.counts, lambda one: self.completion.get(one, one)
        )
        merged = merge_group(reader, RecordEncoder(str(name)), str(name))
        data = encode_base_entries(merged.entries, record_schema(), self.config, time)
        path = join_path(found.partition_path, str(name))
        self.storage.put(path, data)
        base = found.base_file
        return WriteStat(
            file_id=found.file_id,
            path=path,
            prev_commit=base.instant if base else NO_PREVIOUS_COMMIT,
            num_writes=len(merged.entries),
            num_deletes=merged.removed,
            num_update_writes=merged.updated,
            num_inserts=merged.inserted,
            total_write_bytes=len(data),
            file_size_in_bytes=len(data),
            partition_path=found.partition_path,
            total_log_records=merged.log_records,
            total_log_files=len(found.log_files),
            total_log_blocks=merged.log_blocks,
            total_updated_records_compacted=merged.inserted + merged.updated,
            total_log_files_compacted=len(found.log_files),
            total_log_size_compacted=sum(log.status.size for log in found.log_files),
            prev_base_file=base.status.name if base else None,
        )

    def _slice(self, operation: CompactionOperation) -> FileSlice:
        partition = PartitionPath(operation.partition_path or "")
        group = FileGroupId(partition, FileId(operation.file_id or ""))
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
