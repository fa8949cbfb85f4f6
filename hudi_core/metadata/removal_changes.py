"""What deletions of files change in the metadata table: rollbacks and cleans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hudi_core.hashing.bloom import TYPE_CODE
from hudi_core.metadata.changes import Changes, PartitionChange
from hudi_core.metadata.column_records import removed_ranges
from hudi_core.metadata.file_records import (
    bloom_record,
    list_records,
    partitions_record,
    removed_files,
)
from hudi_core.metadata.indexed_columns import IndexableColumns
from hudi_core.metadata.key_records import DataFile
from hudi_core.metadata.partition_types import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
)
from hudi_core.metadata.records import BloomFilterEntry, MetadataRecord
from hudi_core.metadata.session import MetadataSession, is_key_index
from hudi_core.metadata.state import MetadataState
from hudi_core.metadata.undo import is_compacted, undo
from hudi_core.model.actions import CleanMetadata, RollbackMetadata
from hudi_core.model.files import PartitionPath, join_path
from hudi_core.model.instant_time import InstantTime
from hudi_core.schema.avro_types import local_timestamps

Names = Mapping[PartitionPath, Sequence[str]]
"""Names of files by partition."""


def record_rollback(
    session: MetadataSession, time: InstantTime, metadata: RollbackMetadata
) -> MetadataState:
    """Record what a rollback deleted, before it completes; returns the tables after it.

    The deltacommits of what it rolls back are taken out first, where no compaction has taken them
    in.

    Parameters
    ----------
    time
        Of the rollback.
    metadata
        The body that its completed instant gets.
    """
    for target in metadata.commits_rollback:
        session = replace(session, tables=undo(session.tables, InstantTime(target)))
    gone = {
        PartitionPath(partition): _names(found.success_delete_files)
        for partition, found in metadata.partition_metadata.items()
    }
    return session.write(time, _removal(session, gone, ()))


def record_clean(
    session: MetadataSession, time: InstantTime, metadata: CleanMetadata
) -> MetadataState:
    """Record what a clean deleted, before it completes; returns the tables after it."""
    found = {PartitionPath(path): one for path, one in metadata.partition_metadata.items()}
    gone = {path: _names(one.success_delete_files) for path, one in found.items()}
    dropped = [path for path, one in found.items() if one.is_partition_deleted]
    return session.write(time, _removal(session, gone, dropped))


def can_undo(tables: MetadataState, time: InstantTime) -> bool:
    """Whether the indexes of keys can be brought back to before a write.

    They can as long as no compaction of the metadata table has taken it in.
    """
    if not any(map(is_key_index, tables.partitions.all)):
        return True
    return not is_compacted(tables.timeline, time)


def _names(paths: Sequence[str]) -> list[str]:
    return [path.rpartition("/")[2] for path in paths]


def _removal(session: MetadataSession, gone: Names, dropped: Sequence[PartitionPath]) -> Changes:
    """Changes that deleted files make."""
    changes: dict[str, PartitionChange] = {}
    held = {partition: names for partition, names in gone.items() if names}
    records = list_records({partition: removed_files(names) for partition, names in held.items()})
    if dropped:
        records.append(partitions_record((), dropped))
    changes[FILES] = PartitionChange(tuple(records))
    each = [(partition, name) for partition, names in held.items() for name in names]
    if COLUMN_STATS in session.partitions.all:
        columns = session.definitions.columns(COLUMN_STATS)
        changes[COLUMN_STATS] = PartitionChange(
            tuple(record for one in each for record in removed_ranges(*one, columns))
        )
    if BLOOM_FILTERS in session.partitions.all:
        changes[BLOOM_FILTERS] = PartitionChange(
            tuple(
                bloom_record(*one, BloomFilterEntry(TYPE_CODE, "", b"", is_deleted=True))
                for one in each
            )
        )
    if PARTITION_STATS in session.partitions.all:
        removed = {join_path(*one) for one in each}
        touched = sorted({*held, *dropped})
        left = [
            file
            for file in session.current_files(touched)
            if file.path not in removed and file.partition_path not in dropped
        ]
        changes[PARTITION_STATS] = PartitionChange(tuple(_left(session, touched, left)))
    return changes


def _left(
    session: MetadataSession, touched: Sequence[PartitionPath], files: Sequence[DataFile]
) -> list[MetadataRecord]:
    """Ranges of partitions, from the files that are left."""
    client, known = session.tables.client, session.definitions.columns(COLUMN_STATS)
    timeline = client.timeline()
    indexable = IndexableColumns.of(
        client.schema_at(timeline),
        client.config,
        local=local_timestamps(client.schema_text_at(timeline)),
    )
    return session.partition_ranges(touched, files, indexable.among(known), {})
