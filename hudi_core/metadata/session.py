"""A metadata table that is kept in step with its table (RFC-15).

What an action changes is recorded in every partition that the metadata table has, before the
action completes. Everything here runs under the table's lock.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.metadata.index_definitions import IndexDefinitions
from hudi_core.metadata.log.completeness import BULK_INSERT
from hudi_core.metadata.log.shards import Changes
from hudi_core.metadata.log.undo import is_compacted, undo
from hudi_core.metadata.log.writer import write_deltacommit
from hudi_core.metadata.partitions.base import MetadataPartition
from hudi_core.metadata.partitions.registry import partitions_of
from hudi_core.metadata.partitions.work import Commit, Removal
from hudi_core.metadata.state import MetadataState
from hudi_core.model.actions import CleanMetadata, RollbackMetadata
from hudi_core.model.commit import CommitMetadata, WriteStatus
from hudi_core.model.files import PartitionPath
from hudi_core.model.instant import Action
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.metering import Metric
from hudi_core.schema.table_schema import TableSchema
from hudi_core.view.file_system import FileSystemView


@dataclass(frozen=True, slots=True)
class MetadataSession:
    """Keeps one metadata table while the table's lock is held."""

    tables: MetadataState
    config: MetadataConfig

    @property
    def partitions(self) -> list[MetadataPartition]:
        """Those that have to be kept."""
        return partitions_of(self.tables.partitions.all)

    def write(
        self, time: InstantTime, changes: Changes, definitions: IndexDefinitions
    ) -> MetadataState:
        """Commit the changes of an instant about to complete."""
        tables = self.tables.with_definitions(definitions)
        least, _ = self.config.partitioned_index_groups
        with tables.client.meter.time(Metric.SYNC):
            return write_deltacommit(tables, time, changes, least)


# --- changes of a write --------------------------------------------------------------------------


def record_commit(
    session: MetadataSession,
    time: InstantTime,
    metadata: CommitMetadata,
    statuses: Sequence[WriteStatus],
    *,
    base: TableSchema | None = None,
    view: FileSystemView | None = None,
) -> MetadataState:
    """Record a write before its commit; returns the new tables.

    ``metadata`` is the body that the completed instant gets, ``statuses`` has every file that it
    counts. ``base`` is the schema that the write builds on, ``None`` where it says nothing of
    columns.
    """
    client, definitions = session.tables.client, session.tables.definitions
    commit = Commit(client, session.config, definitions, time, metadata, statuses, base, view)
    changes = {one.name: one.of_commit(commit) for one in session.partitions}
    return session.write(time, changes, commit.definitions)


# --- changes of cleans, rollbacks and restores ---------------------------------------------------


def record_rollback(
    session: MetadataSession, time: InstantTime, metadata: RollbackMetadata
) -> MetadataState:
    """Record a rollback before it completes; returns the new tables.

    The deltacommits of what it rolls back are taken out first, where no compaction has taken them
    in.
    """
    times = [InstantTime(one) for one in metadata.commits_rollback]
    is_kept = any(is_compacted(session.tables.timeline, one) for one in times)
    for time_ in times:
        session = replace(session, tables=undo(session.tables, time_))
    gone = {
        PartitionPath(partition): _names(found.success_delete_files)
        for partition, found in metadata.partition_metadata.items()
    }
    return _record(session, time, gone, (), restored=gone if is_kept else ())


def record_clean(
    session: MetadataSession, time: InstantTime, metadata: CleanMetadata
) -> MetadataState:
    """Record a clean before it completes; returns the new tables."""
    found = {PartitionPath(path): one for path, one in metadata.partition_metadata.items()}
    gone = {path: _names(one.success_delete_files) for path, one in found.items()}
    dropped = [path for path, one in found.items() if one.is_partition_deleted]
    return _record(session, time, gone, dropped, is_of_past=True)


def can_undo(tables: MetadataState, time: InstantTime) -> bool:
    """Whether key indexes can return to before a write.

    They can as long as no compaction of the metadata table has taken it in, and none of them was
    built after it.
    """
    indexes = {one.name for one in partitions_of(tables.partitions.all) if one.is_key_index}
    if not indexes:
        return True
    return not (is_compacted(tables.timeline, time) or _is_built_in(tables, time, indexes))


def _is_built_in(tables: MetadataState, time: InstantTime, indexes: Set[str]) -> bool:
    """Whether some partition was built of the files of a write."""
    target = tables.timeline.find(time, Action.DELTACOMMIT)
    done = time if target is None else target.effective_completion_time
    later = (
        one
        for one in tables.timeline.completed().of_actions(Action.DELTACOMMIT)
        if one.effective_completion_time > done
    )
    bodies = map(tables.metadata.read_commit, later)
    return any(
        body.operation_type == BULK_INSERT and bool(indexes & body.partition_to_write_stats.keys())
        for body in bodies
    )


def _names(paths: Sequence[str]) -> list[str]:
    return [path.rpartition("/")[2] for path in paths]


def _record(
    session: MetadataSession,
    time: InstantTime,
    gone: Mapping[PartitionPath, Sequence[str]],
    dropped: Sequence[PartitionPath],
    *,
    is_of_past: bool = False,
    restored: Collection[PartitionPath] = (),
) -> MetadataState:
    """Record deleted files, by their names, and dropped partitions."""
    client, definitions = session.tables.client, session.tables.definitions
    names = {partition: found for partition, found in gone.items() if found}
    removal = Removal(client, session.config, definitions, names, dropped, is_of_past, restored)
    changes = {one.name: one.of_removal(removal) for one in session.partitions}
    return session.write(time, changes, removal.definitions)
