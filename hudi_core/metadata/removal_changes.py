"""What deletions of files change in the metadata table: rollbacks and cleans."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from hudi_core.metadata.partitions.registry import partitions_of
from hudi_core.metadata.partitions.work import Removal
from hudi_core.metadata.session import MetadataSession
from hudi_core.metadata.state import MetadataState
from hudi_core.metadata.undo import is_compacted, undo
from hudi_core.model.actions import CleanMetadata, RollbackMetadata
from hudi_core.model.files import PartitionPath
from hudi_core.model.instant_time import InstantTime


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

    They can as long as no compaction of the metadata table has taken it in.
    """
    if not any(one.is_key_index for one in partitions_of(tables.partitions.all)):
        return True
    return not is_compacted(tables.timeline, time)


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
