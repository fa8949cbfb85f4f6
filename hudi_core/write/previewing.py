"""Previews of writes: plans, and files without a commit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from hudi_core.index.record_index import require_record_index
from hudi_core.metadata.partition_types import RECORD_INDEX
from hudi_core.metadata.table import StoredPartitions
from hudi_core.model.commit import CommitMetadata
from hudi_core.model.dry_run import DryRun
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.operation import DELETE_PARTITION, Operation
from hudi_core.model.protocols import TimelineView
from hudi_core.schema.absence import absences
from hudi_core.txn.schema_step import SchemaStep
from hudi_core.write.client import WriteClient
from hudi_core.write.clustered_groups import GroupsUnderClustering
from hudi_core.write.dry_run import DryRunTransaction, deciding_columns, plan_deletion, plan_write
from hudi_core.write.ending import commit_metadata
from hudi_core.write.preparing import Prepared, prepared_rows
from hudi_core.write.replacing import PartitionLike, replaced_groups, require_known
from hudi_core.write.steps import WriteSteps


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
