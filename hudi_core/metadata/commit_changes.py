"""Metadata table changes of a write, from its writers' reports."""

from __future__ import annotations

from collections.abc import Sequence

from hudi_core.metadata.partitions.work import Commit
from hudi_core.metadata.session import MetadataSession
from hudi_core.metadata.state import MetadataState
from hudi_core.model.commit import CommitMetadata, WriteStatus
from hudi_core.model.instant_time import InstantTime
from hudi_core.schema.table_schema import TableSchema
from hudi_core.view.file_system import FileSystemView


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
