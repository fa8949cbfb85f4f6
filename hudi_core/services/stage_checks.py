"""What must hold of a table for a stage to be published."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hudi_core.errors import CommitConflictError, HudiError, StageConflictError
from hudi_core.model.commit import NO_PREVIOUS_COMMIT, CommitMetadata, WriteStat
from hudi_core.model.conflicts import completed_since
from hudi_core.model.extra_metadata import OWN_PREFIX
from hudi_core.model.files import FileGroupId, FileId, PartitionPath
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import TimelineView
from hudi_core.schema.table_schema import TableSchema
from hudi_core.services.stage_record import StageRecord
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn.conflicts import require_no_conflicts
from hudi_core.write.replacing import replaced_groups

STAGE_KEY: Final = f"{OWN_PREFIX}stage"
"""Key of extra metadata: the stage that a commit published."""
_LOOKED_AT: Final = 100
"""Archived instants among which one would be that completed since a stage was made."""


class PublishedError(HudiError):
    """A stage was published by another process, or before a crash."""

    def __init__(self, instant: InstantTime) -> None:
        self.instant = instant
        super().__init__(f"The stage was published as instant {instant}", "Nothing is to be done.")


def require_publishable(table: OpenTable, seen: TimelineView, record: StageRecord) -> None:
    """Refuse a stage whose publication would not give what was checked.

    ``seen`` is fenced by the table's format. Refused are changes to file groups or columns that the
    stage builds on, and inserts of its keys, since then; an expired stage; and one since which it
    is not known any more what happened.
    """
    began = require_unpublished(table, seen, record)
    reason = _obstacle(table, seen, record)
    if reason is not None:
        raise StageConflictError(table.client.base_path, record.id, reason)
    instant = Instant(record.instant, Action.COMMIT, State.INFLIGHT)
    try:
        require_no_conflicts(table, record.metadata, instant, began, seen)
    except CommitConflictError as error:
        raise StageConflictError(table.client.base_path, record.id, error.what) from error


def require_as_checked(base_path: str, record: StageRecord, metadata: CommitMetadata) -> None:
    """Refuse a publication that changes rows the stage did not find.

    Keys that were not there when the rows were staged leave no file in the stage, so that what a
    deletion or a change of them does to rows that others inserted since could not be checked.
    """
    found = {group for group, _ in _stats(record.metadata)}
    for group, stat in _stats(metadata):
        if group not in found and (stat.num_deletes or stat.num_update_writes):
            what = "delete" if stat.num_deletes else "change"
            shown = f"file group {group.file_id} of partition {group.partition_path!r}"
            reason = f"it would {what} rows that others inserted since with its keys, in {shown}"
            raise StageConflictError(base_path, record.id, reason)


def _stats(metadata: CommitMetadata) -> Iterator[tuple[FileGroupId, WriteStat]]:
    for path, stats in metadata.partition_to_write_stats.items():
        for stat in stats:
            yield FileGroupId(PartitionPath(path), FileId(stat.file_id or "")), stat


def require_unpublished(table: OpenTable, seen: TimelineView, record: StageRecord) -> Timeline:
    """The instants that a stage builds on, unless it was published."""
    base = record.base
    known = (one for one in seen.instants if one.is_completed)
    older = [one for one in known if base is not None and one.effective_completion_time <= base]
    began = Timeline.of(older)
    for one in completed_since(began, seen):
        notes = table.client.active.read_notes(one)
        if notes.extra_metadata.get(STAGE_KEY) == record.id:
            raise PublishedError(one.requested_time)
    return began


def _obstacle(table: OpenTable, seen: TimelineView, record: StageRecord) -> str | None:
    """Why a stage cannot be published; ``None`` where it can."""
    if record.is_expired():
        return f"it expired at {record.expires.isoformat(timespec='seconds')}"
    client, base = table.client, record.base
    archived = [one.instant for one in client.archived.newest(_LOOKED_AT)]
    if any(base is None or one.effective_completion_time > base for one in archived):
        return "writes since have been archived, so it is not known what they changed"
    config = client.config
    columns = TableSchema.from_avro(record.columns, config.field_ids, config.last_column_id)
    if client.schema_at(seen) != columns:
        return "the columns of the table have changed since"
    return _changed_group(table, seen, record)


def _changed_group(table: OpenTable, seen: TimelineView, record: StageRecord) -> str | None:
    """Name a file group that is not as the stage found it."""
    metadata, operation = record.metadata, record.operation
    built_on = {
        group: stat.prev_commit
        for group, stat in _stats(metadata)
        if stat.prev_commit not in (None, "", NO_PREVIOUS_COMMIT)
    }
    if not (built_on or operation.is_replacing):
        return None
    view = table.views().view(seen)
    now = {
        one.group: one.base_instant
        for one in view.latest_slices(sorted({group.partition_path for group in built_on}))
    }
    for group, instant in built_on.items():
        if now.get(group) != instant:
            shown = f"file group {group.file_id} of partition {group.partition_path!r}"
            return f"{shown} has changed since"
    if operation.is_replacing:
        written = [PartitionPath(path) for path in metadata.partition_to_write_stats]
        replaced = getattr(metadata, "partition_to_replace_file_ids", {})
        partitions = sorted({*written, *map(PartitionPath, replaced)})
        if replaced_groups(view, operation, partitions) != dict(replaced):
            return "partitions that it overwrites have changed since"
    return None
