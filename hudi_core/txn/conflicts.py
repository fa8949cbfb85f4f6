"""Optimistic concurrency at the granularity of file groups (Hudi's simple strategy).

Two writes conflict when both write, or replace, one file group. Writes that only add new file
groups never conflict; whether two of them brought the same record key is not looked at, as in Hudi.
In a table with buckets they do when they add a group for one bucket, which can have but one (Hudi's
bucket index strategy).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hudi_core.errors import CommitConflictError
from hudi_core.model.buckets import bucket_of_file
from hudi_core.model.commit import CommitMetadata, ReplaceCommitMetadata
from hudi_core.model.files import FileGroupId, FileId, PartitionPath
from hudi_core.model.instant import Instant
from hudi_core.model.protocols import TimelineView


def touched_groups(metadata: CommitMetadata) -> set[FileGroupId]:
    """Return every file group a commit writes or takes out of the table."""
    groups = {
        FileGroupId(PartitionPath(path), FileId(stat.file_id or ""))
        for path, stats in metadata.partition_to_write_stats.items()
        for stat in stats
    }
    if isinstance(metadata, ReplaceCommitMetadata):
        groups |= {
            FileGroupId(PartitionPath(path), FileId(file_id))
            for path, file_ids in metadata.partition_to_replace_file_ids.items()
            for file_id in file_ids
        }
    return groups


def completed_since(began: TimelineView, now: TimelineView) -> list[Instant]:
    """Return the writes that ``now`` holds as completed and ``began`` did not."""
    known = {instant.requested_time for instant in began.completed_writes()}
    return [instant for instant in now.completed_writes() if instant.requested_time not in known]


def check_conflicts(
    mine: CommitMetadata,
    others: Iterable[Instant],
    read_commit: Callable[[Instant], CommitMetadata],
    *,
    has_buckets: bool = False,
) -> None:
    """Refuse a commit that touches a file group another writer changed meanwhile.

    Parameters
    ----------
    mine
        What this writer is about to commit.
    others
        Writes that completed since this one began.
    read_commit
        Reads the metadata of one of them.
    has_buckets
        Whether file groups stand for buckets.

    Raises
    ------
    CommitConflictError
        Names the other instant and a file group both wrote.
    """
    groups = {_place(group, has_buckets): group for group in touched_groups(mine)}
    for other in others:
        theirs = {_place(group, has_buckets) for group in touched_groups(read_commit(other))}
        shared = groups.keys() & theirs
        if shared:
            group = groups[min(shared)]
            raise CommitConflictError(
                f"Instant {other.requested_time} changed file group {group.file_id} of partition "
                f"{group.partition_path!r} while this write was under way",
                "Nothing of this write is visible; run it again on the new state of the table.",
                other=other.requested_time,
                group=group,
            )


def _place(group: FileGroupId, has_buckets: bool) -> tuple[str, str]:
    """Return what two file groups must not share."""
    bucket = bucket_of_file(group.file_id) if has_buckets else None
    return group.partition_path, group.file_id if bucket is None else f"{bucket:08d}"
