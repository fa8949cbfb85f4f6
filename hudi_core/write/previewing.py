"""Previews of writes: plans, and files without a commit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.index.record_index import require_record_index
from hudi_core.index.tagging import located_rows
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.index_definitions import read_definitions
from hudi_core.metadata.log.groups import list_all_groups
from hudi_core.metadata.partition_types import RECORD_INDEX
from hudi_core.metadata.partitions.registry import enabled_partitions
from hudi_core.metadata.table import StoredPartitions, metadata_client
from hudi_core.model.client import SliceView
from hudi_core.model.commit import CommitMetadata
from hudi_core.model.dry_run import DryRun, FileChange, PlannedFile, StorageRequests
from hudi_core.model.files import PartitionPath
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.operation import DELETE_PARTITION, Operation
from hudi_core.model.protocols import TimelineView
from hudi_core.rows.context import WriteContext
from hudi_core.rows.deciding import deciding_names, deleted, marks_deletes
from hudi_core.rows.staging import StagedPart
from hudi_core.schema.absence import absences
from hudi_core.schema.table_schema import PARTITION_PATH, RECORD_KEY, TableSchema
from hudi_core.table_handle import OpenTable
from hudi_core.txn.schema_step import SchemaStep
from hudi_core.write.client import WriteClient
from hudi_core.write.ending import commit_metadata
from hudi_core.write.planning import GroupsUnderClustering, GroupWrite
from hudi_core.write.preparing import Prepared, prepared_rows
from hudi_core.write.replacing import (
    PartitionLike,
    replaced_groups,
    replaced_slices,
    require_known,
    rows_of,
)
from hudi_core.write.steps import WritePlan, WriteSteps

# --- estimates -----------------------------------------------------------------------------------

# Nothing reaches the store: rows are staged in memory (only the columns that decide where a row
# goes), no instant is made, no lock is taken and nothing that dead writers left is recovered.


_FILE_BYTES: Final = 3000
"""What a base file of few columns has beside its rows: schemas, statistics, key range."""
_DELETE_BYTES: Final = 64
"""What a deleted key has in a log, about."""
_PROTOCOL_READS: Final = 3
"""The table's properties under each of the two locks, and its latest schema."""
_PROTOCOL_WRITES: Final = 4
"""Heartbeat, requested, inflight and completed file."""
_PROTOCOL_LISTS: Final = 4
"""The timeline under each of the two locks; heartbeats, what is left of other writes."""


@dataclass(slots=True)
class DryRunTransaction:
    """A write that is only planned; takes the place of a transaction."""

    table: OpenTable
    began: TimelineView
    timings: dict[str, float] = field(default_factory=dict)


def deciding_columns(staged: TableSchema, context: WriteContext) -> TableSchema:
    """Return columns for key, partition, ordering and delete flag."""
    table = context.table
    names = [*table.record_key_fields, *table.partition_fields, RECORD_KEY, PARTITION_PATH]
    names += context.write.bulk_insert_sort_columns
    wanted = {name.split(".")[0] for name in names} | deciding_names(context.rules)
    return replace(staged, arrow=pa.schema([one for one in staged.arrow if one.name in wanted]))


def bytes_per_row(commits: Iterable[CommitMetadata], default: int) -> float:
    """Return bytes per row, as in the newest commit.

    Unlike the size that plans are made by, it takes a small commit as well.
    """
    for commit in commits:
        stats = [stat for stat in commit.stats if not stat.log_files]
        rows = sum(stat.num_writes or 0 for stat in stats)
        if rows:
            return sum(stat.total_write_bytes or 0 for stat in stats) / rows
    return float(default)


def plan_write(steps: WriteSteps, data: Any, metadata: MetadataConfig) -> DryRun:
    """Plan of a write of the rows."""
    plan = steps.plan(data, in_memory=True)
    client, began = steps.transaction.table.client, steps.transaction.began
    newest_first = reversed(began.completed_writes())
    row_bytes = bytes_per_row(
        map(client.read_commit, newest_first), steps.row_bytes_without_commits(plan.parts)
    )
    if steps.writes_straight:
        files = list(_straight(plan.parts, row_bytes, steps.config.max_file_size))
    else:
        files = [_planned(steps, plan, group, row_bytes) for group in plan.groups]
    if steps.operation.is_replacing:
        files += _replaced(steps.view, steps.operation, steps.partitions)
    new_partitions = len(set(steps.partitions) - set(steps.view.partitions()))
    looked_into = None if steps.context.is_global else steps.partitions
    looked_up = len(steps.view.latest_slices(looked_into)) if steps.uses_index else 0
    listed = commits = 0
    if not steps.writes_straight:
        listed, commits = len(steps.partitions), len(began.completed_writes())
    requests = expected_requests(files, new_partitions, looked_up, listed, commits)
    requests += metadata_requests(client, metadata)
    return DryRun(steps.operation.recorded, _in_order(files), requests)


def plan_deletion(
    client: TableMetaClient,
    view: SliceView,
    partitions: Sequence[PartitionPath],
    metadata: MetadataConfig,
) -> DryRun:
    """Plan of a deletion of partitions."""
    operation = DELETE_PARTITION
    rows = rows_of(client, replaced_slices(view, operation, partitions))
    files = [
        replace(file, deleted=rows.get(file.path or "", 0))
        for file in _replaced(view, operation, partitions)
    ]
    requests = expected_requests(files, 0, 0, len(partitions), 0)
    requests += metadata_requests(client, metadata)
    return DryRun(operation.recorded, _in_order(files), requests)


def _replaced(
    view: SliceView, operation: Operation, partitions: Sequence[PartitionPath]
) -> list[PlannedFile]:
    return [
        PlannedFile(
            FileChange.REPLACE,
            slice_.partition_path,
            slice_.file_id,
            slice_.base_file.path if slice_.base_file else None,
        )
        for slice_ in replaced_slices(view, operation, partitions)
    ]


def _in_order(files: Iterable[PlannedFile]) -> tuple[PlannedFile, ...]:
    return tuple(
        sorted(files, key=lambda file: (file.partition_path, file.change, file.path or ""))
    )


def expected_requests(
    files: Sequence[PlannedFile], new_partitions: int, looked_up: int, listed: int, commits: int
) -> StorageRequests:
    """Requests of a write whose tasks run in its own process.

    Those between its tasks are left out. A process that wrote to the table last makes fewer.

    Tasks elsewhere look at heartbeat and seal before and after each file, and their markers are
    listed.

    Those of native tables; a format's own metadata, and the metadata table, come on top. Writes and
    deletes are exact as long as no task is repeated, reads and lists are estimates.

    Counted are the requests of a native table; a format's own metadata and the metadata table come
    on top. Writes and deletes are exact as long as no task is repeated; reads and lists are
    estimates.

    ``new_partitions`` are not in the table yet; of ``looked_up`` files keys are looked up; of
    ``commits`` the metadata is read.
    """
    written = sum(file.change is not FileChange.REPLACE for file in files)
    new = sum(file.change is FileChange.CREATE for file in files)
    return StorageRequests(
        # before each file the last version is read, unless the look for keys has fetched it, or the
        # metadata of the partition is looked for
        reads=_PROTOCOL_READS + commits + looked_up + (new if looked_up else written),
        # a marker comes before each file
        writes=_PROTOCOL_WRITES + 2 * written + new_partitions,
        lists=_PROTOCOL_LISTS + listed,
        deletes=written + 1,
    )


def _planned(
    steps: WriteSteps, plan: WritePlan, group: GroupWrite, row_bytes: float
) -> PlannedFile:
    if group.base_file is None:
        return PlannedFile(
            FileChange.CREATE,
            group.partition_path,
            None,
            None,
            inserted=group.inserts,
            bytes_written=round(_FILE_BYTES + group.inserts * row_bytes),
        )
    updated, deleted = _met(steps, plan, group)
    size = group.base_file.size + (group.inserts - deleted) * row_bytes
    if group.appends:
        size = _FILE_BYTES + updated * row_bytes + deleted * _DELETE_BYTES
    return PlannedFile(
        FileChange.APPEND if group.appends else FileChange.REWRITE,
        group.partition_path,
        group.file_id,
        group.base_file.path,
        inserted=group.inserts,
        updated=updated,
        deleted=deleted,
        bytes_written=max(0, round(size)),
    )


def _met(steps: WriteSteps, plan: WritePlan, group: GroupWrite) -> tuple[int, int]:
    """Return counts of updated and deleted rows, ignoring late ones."""
    if group.candidate is None:
        return 0, 0
    if steps.operation.deletes:
        return 0, group.updates
    tagged = plan.tagged[group.partition_path]
    located = located_rows(steps.context, tagged, group.candidate)
    incoming, rules = located.incoming, steps.context.rules
    deletes = np.zeros(len(incoming), dtype=bool)
    if marks_deletes(steps.staged.arrow.names, rules):
        numbers, places = np.unique(incoming, return_inverse=True)
        rows = tagged.sources.take(steps.context, plan.parts, numbers, steps.staged.arrow)
        deletes = deleted(rows, rules)[places]
    return int(np.sum(~deletes)), int(np.sum(deletes)) + len(located.gone)


def _straight(
    parts: Sequence[StagedPart], row_bytes: float, max_file_size: int
) -> Iterable[PlannedFile]:
    """Yield the files of a bulk insert, per task and partition."""
    for part in parts:
        for path, rows in part.rows.items():
            size = rows * row_bytes
            count = max(1, min(rows, round(size / max_file_size)))
            for number in range(count):
                share = rows // count + (number < rows % count)
                yield PlannedFile(
                    FileChange.CREATE,
                    PartitionPath(path),
                    None,
                    None,
                    inserted=share,
                    bytes_written=round(_FILE_BYTES + share * row_bytes),
                )


# --- requests of a write --------------------------------------------------------------------------


_TIMELINE_WRITES: Final = 3
"""The requested, inflight and completed file of a deltacommit."""
_READS: Final = 2
"""The metadata table's properties, and what says which indexes there are."""
_LISTS: Final = 3
"""The metadata table's timeline under each of the two locks, and its folders."""
_BOOTSTRAP_WRITES: Final = 2
"""The metadata table's own properties, and the table's that name its partitions."""


def metadata_requests(client: TableMetaClient, config: MetadataConfig) -> StorageRequests:
    """Return the requests that a write makes for the metadata table.

    At most one log file is put for each of its file groups; groups that no key falls into get none.
    Compaction, cleaning and archival, which come every few commits, are left out. A table that has
    no metadata table, or half of one, and gets one, is charged for building it empty.
    """
    stored = StoredPartitions.of(client.config)
    if not stored.is_there:
        if not config.enabled:
            return StorageRequests(0, 0, 0, 0)
        rebuilt = stored.building if stored.is_rebuilding else ()
        count = len(rebuilt or enabled_partitions(config, client.config))
        built = _BOOTSTRAP_WRITES + count * (1 + _TIMELINE_WRITES)
        return StorageRequests(_READS, built + count + _TIMELINE_WRITES, _LISTS + 2 * count, 0)
    partitions = stored.all
    metadata = metadata_client(client)
    definitions = read_definitions(client.storage, client.config)
    with_owners = [name for name in partitions if definitions.is_partitioned(name)]
    listed = list_all_groups(metadata, list(partitions), with_owners)
    groups = sum(len(groups) for found in listed.values() for groups in found.values())
    return StorageRequests(
        reads=_READS,
        writes=_TIMELINE_WRITES + groups,
        lists=_LISTS + len(partitions),
        deletes=0,
    )


# --- previews ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Preview:
    """What a write would commit.

    ``metadata`` has the paths of the files as they are now, in the folder of the preview.
    """

    began: TimelineView
    metadata: CommitMetadata
    step: SchemaStep


def dry_run(writer: WriteClient, data: Any, operation: Operation) -> DryRun:
    """Plan of a write of rows; nothing is written."""
    writer.require(operation)
    context, staged, _, _ = _prepared(writer, data, operation)
    plan = DryRunTransaction(writer.table, writer.table.timeline())
    view = writer.table.views().view(plan.began)
    steps = WriteSteps(
        writer.engine,
        context.write,
        plan,
        context,
        deciding_columns(staged, context),
        operation,
        view,
        GroupsUnderClustering.of(writer.table, plan.began),
    )
    return plan_write(steps, data, writer.config.metadata)


def preview(
    writer: WriteClient, data: Any, operation: Operation, instant: InstantTime, folder: str
) -> Preview:
    """Do all of a write but the commit.

    Its files go to a folder of their own.

    ``instant`` is written into the files as the time of the write; ``folder`` is relative to the
    table.
    """
    writer.require(operation)
    began = writer.table.timeline()
    context, staged, step, _ = _prepared(writer, data, operation)
    # what others read of changes is written with the commit
    silent = replace(context.table, logs_changes=False)
    context = replace(context, table=silent, instant=instant, preview=folder)
    view = writer.table.views().view(began)
    session = DryRunTransaction(writer.table, began)
    groups = GroupsUnderClustering.of(writer.table, began)
    config = context.write
    steps = WriteSteps(writer.engine, config, session, context, staged, operation, view, groups)
    statuses = steps.run(data)
    replaced = None
    if operation.is_replacing:
        replaced = replaced_groups(view, operation, steps.partitions)
    name = writer.table.client.config.name
    metadata = commit_metadata(statuses, step.new, name, operation.recorded, replaced)
    if writer.validation is not None:
        writer.validation.require_valid(writer.table, began, metadata, step.new)
    return Preview(began, metadata, step)


def dry_run_of_deletion(writer: WriteClient, partitions: Iterable[PartitionLike]) -> DryRun:
    """Plan of a removal of partitions; nothing is written."""
    client = writer.table.client
    writer.require(DELETE_PARTITION)
    paths = writer.paths_of(writer.table, partitions, client.schema)
    view = writer.table.views().view()
    require_known(view, paths)
    return plan_deletion(client, view, paths, writer.config.metadata)


def _prepared(writer: WriteClient, data: Any, operation: Operation) -> Prepared:
    incoming, absent = writer.engine.schema_of(data), absences(data)
    prepared = prepared_rows(
        writer.table, writer.config, writer.validation, incoming, operation, absent=absent
    )
    if prepared.context.uses_record_index and not _builds_record_index(writer):
        index = prepared.context.write.index.index_type
        require_record_index(writer.table.client, index)
    return prepared


def _builds_record_index(writer: WriteClient) -> bool:
    """Whether the write first builds a record index.

    As options ask, or as there was one before a repair that died.
    """
    metadata = writer.config.metadata
    if not metadata.enabled:
        return False
    stored = StoredPartitions.of(writer.table.client.config)
    is_rebuilt = stored.is_rebuilding and RECORD_INDEX in stored.building
    return is_rebuilt or metadata.record_index or metadata.partitioned_record_index
