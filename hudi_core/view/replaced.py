"""Replaced file groups and written files, by instants' metadata."""

from __future__ import annotations

from collections.abc import Callable, Collection

from hudi_core.model.commit import CommitMetadata, ReplaceCommitMetadata
from hudi_core.model.files import FileGroupId, FileId, PartitionPath
from hudi_core.model.instant import Action, Instant
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import TimelineView

ReadCommit = Callable[[Instant], CommitMetadata]
"""Reads the metadata of a completed write."""


def replaced_groups(timeline: TimelineView, read_commit: ReadCommit) -> dict[FileGroupId, Instant]:
    """Return replaced file groups, each with its first replacecommit.

    Only replacecommits are read. Archived ones are not needed: they are archived after the files
    they replaced were removed.

    A replacecommit that cannot be read is an error: left out, it would bring deleted rows back.
    """
    found: dict[FileGroupId, Instant] = {}
    for instant in timeline.completed_writes():
        if instant.action is not Action.REPLACECOMMIT:
            continue
        metadata = read_commit(instant)
        if not isinstance(metadata, ReplaceCommitMetadata):
            continue
        for partition, file_ids in metadata.partition_to_replace_file_ids.items():
            for file_id in file_ids:
                found.setdefault(FileGroupId(PartitionPath(partition), FileId(file_id)), instant)
    return found


def written_files(
    timeline: TimelineView, read_commit: ReadCommit
) -> Callable[[InstantTime], Collection[str] | None]:
    """Lookup of the paths of a write's files, by its time.

    The answer is ``None`` for a time whose write is not on the timeline (any more).
    """

    def named(time: InstantTime) -> Collection[str] | None:
        for instant in timeline.completed_writes():
            if instant.requested_time == time:
                return {stat.path for stat in read_commit(instant).stats if stat.path}
        return None

    return named
