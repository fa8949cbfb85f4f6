"""Columns and rows of Hudi's SQL procedures."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa

from hudi_core.model.commit import NO_PREVIOUS_COMMIT, CommitMetadata, WriteStat
from hudi_core.model.instant import Action, Instant
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.serde import decode_clean, decode_rollback, decode_savepoint

_TEXT, _LONG, _INT = pa.string(), pa.int64(), pa.int32()
COMMITS: Final = {
    "commit_time": _TEXT,
    "state_transition_time": _TEXT,
    "action": _TEXT,
    "total_bytes_written": _LONG,
    "total_files_added": _LONG,
    "total_files_updated": _LONG,
    "total_partitions_written": _LONG,
    "total_records_written": _LONG,
    "total_update_records_written": _LONG,
    "total_errors": _LONG,
}
COMMITS_METADATA: Final = {
    "commit_time": _TEXT,
    "state_transition_time": _TEXT,
    "action": _TEXT,
    "partition": _TEXT,
    "file_id": _TEXT,
    "previous_commit": _TEXT,
    "num_writes": _LONG,
    "num_inserts": _LONG,
    "num_deletes": _LONG,
    "num_update_writes": _LONG,
    "total_errors": _LONG,
    "total_log_blocks": _LONG,
    "total_corrupt_log_blocks": _LONG,
    "total_rollback_blocks": _LONG,
    "total_log_records": _LONG,
    "total_updated_records_compacted": _LONG,
    "total_bytes_written": _LONG,
}
EXTRA_METADATA: Final = {
    "instant_time": _TEXT,
    "action": _TEXT,
    "metadata_key": _TEXT,
    "metadata_value": _TEXT,
}
TIMELINE: Final = {
    "instant_time": _TEXT,
    "action": _TEXT,
    "state": _TEXT,
    "completed_time": _TEXT,
    "timeline_type": _TEXT,
    "rollback_info": _TEXT,
}
CLEANS: Final = {
    "clean_time": _TEXT,
    "state_transition_time": _TEXT,
    "action": _TEXT,
    "start_clean_time": _TEXT,
    "time_taken_in_millis": _LONG,
    "total_files_deleted": _INT,
    "earliest_commit_to_retain": _TEXT,
    "last_completed_commit_timestamp": _TEXT,
    "version": _INT,
}
RUN_CLEAN: Final = {
    "start_clean_time": _TEXT,
    "time_taken_in_millis": _LONG,
    "total_files_deleted": _INT,
    "earliest_commit_to_retain": _TEXT,
    "bootstrap_part_metadata": _TEXT,
    "version": _INT,
}
CLUSTERING: Final = {
    "timestamp": _TEXT,
    "input_group_size": _INT,
    "state": _TEXT,
    "involved_partitions": _TEXT,
}
SAVEPOINTS: Final = {
    "savepoint_time": _TEXT,
    "state_transition_time": _TEXT,
    "state": _TEXT,
    "action": _TEXT,
    "timeline_type": _TEXT,
    "savepointed_by": _TEXT,
    "savepointed_at": _LONG,
    "comments": _TEXT,
    "partition_path": _TEXT,
    "savepoint_data_file": _TEXT,
    "version": _INT,
}


def completed(opened: OpenTable, action: Action) -> list[Instant]:
    """Completed instants of an action, the newest first."""
    instants = opened.timeline().instants
    return [one for one in reversed(instants) if one.action is action and one.is_completed]


def writes(opened: OpenTable, limit: int | None = None) -> list[Instant]:
    """Completed writes, the newest first."""
    return list(reversed(opened.timeline().completed_writes()))[:limit]


def commit_row(instant: Instant, commit: CommitMetadata) -> tuple[Any, ...]:
    """A write as :data:`COMMITS` has it."""
    stats = [stat for stats in commit.partition_to_write_stats.values() for stat in stats]
    added = [stat for stat in stats if stat.prev_commit in (None, NO_PREVIOUS_COMMIT)]
    return (
        instant.requested_time,
        instant.completion_time,
        instant.action.value,
        _total(stats, "total_write_bytes"),
        len(added),
        len(stats) - len(added),
        len(commit.partition_to_write_stats),
        _total(stats, "num_writes"),
        _total(stats, "num_update_writes"),
        _total(stats, "total_write_errors"),
    )


def _total(stats: Iterable[WriteStat], name: str) -> int:
    return sum(getattr(stat, name) or 0 for stat in stats)


def stat_row(instant: Instant, partition: str, stat: WriteStat) -> tuple[Any, ...]:
    """One file of a write as :data:`COMMITS_METADATA` has it."""
    return (
        instant.requested_time,
        instant.completion_time,
        instant.action.value,
        partition,
        stat.file_id,
        stat.prev_commit,
        stat.num_writes,
        stat.num_inserts,
        stat.num_deletes,
        stat.num_update_writes,
        stat.total_write_errors,
        stat.total_log_blocks,
        stat.total_corrupt_log_block,
        stat.total_rollback_blocks,
        stat.total_log_records,
        stat.total_updated_records_compacted,
        stat.total_write_bytes,
    )


def undone(opened: OpenTable) -> dict[str, str]:
    """What rollbacks and the instants they took back say of each other."""
    found: dict[str, str] = {}
    for one in completed(opened, Action.ROLLBACK):
        path = opened.client.active.path(one)
        body = decode_rollback(opened.client.active.read(one), path)
        taken = ", ".join(body.commits_rollback)
        found[one.requested_time] = f"Rolled back {taken}"
        for time in body.commits_rollback:
            found[time] = f"Rolled back by {one.requested_time}"
    return found


def clean_row(opened: OpenTable, instant: Instant) -> tuple[Any, ...]:
    """A completed clean as :data:`CLEANS` has it."""
    clean = decode_clean(opened.client.active.read(instant), opened.client.active.path(instant))
    return (
        instant.requested_time,
        instant.completion_time,
        instant.action.value,
        clean.start_clean_time,
        clean.time_taken_in_millis,
        clean.total_files_deleted,
        clean.earliest_commit_to_retain,
        clean.last_completed_commit_timestamp,
        clean.version,
    )


def savepoint_rows(opened: OpenTable, instant: Instant) -> list[tuple[Any, ...]]:
    """A savepoint as :data:`SAVEPOINTS` has it: a row for each file."""
    path = opened.client.active.path(instant)
    kept = decode_savepoint(opened.client.active.read(instant), path)
    files: list[tuple[str | None, str | None]] = [
        (partition, file)
        for partition, part in kept.partition_metadata.items()
        for file in part.savepoint_data_file
    ]
    return [
        (
            instant.requested_time,
            instant.completion_time,
            instant.state.name,
            instant.action.value,
            "ACTIVE",
            kept.savepointed_by,
            kept.savepointed_at,
            kept.comments,
            partition,
            file,
            1,
        )
        for partition, file in files or [(None, None)]
    ]
