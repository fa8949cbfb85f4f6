"""Columns and rows of Hudi's SQL procedures."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, Final

import pyarrow as pa

from hudi_core.model.commit import NO_PREVIOUS_COMMIT, CommitMetadata
from hudi_core.model.instant import Action, Instant
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.serde import decode_clean, decode_rollback, decode_savepoint

_TEXT, _LONG, _INT = pa.string(), pa.int64(), pa.int32()
Columns = Mapping[str, tuple[pa.DataType, str]]
"""Columns of a procedure: a type, and where the value is found.

That is an attribute of one of the values that a row is made of.
"""
_INSTANT: Final[Columns] = {
    "state_transition_time": (_TEXT, "instant.completion_time"),
    "action": (_TEXT, "instant.action.value"),
}
_COMMIT: Final[Columns] = {"commit_time": (_TEXT, "instant.requested_time"), **_INSTANT}
COMMITS: Final[Columns] = {
    **_COMMIT,
    "total_bytes_written": (_LONG, "total.total_write_bytes"),
    "total_files_added": (_LONG, "total.added"),
    "total_files_updated": (_LONG, "total.updated"),
    "total_partitions_written": (_LONG, "total.partitions"),
    "total_records_written": (_LONG, "total.num_writes"),
    "total_update_records_written": (_LONG, "total.num_update_writes"),
    "total_errors": (_LONG, "total.total_write_errors"),
}
COMMITS_METADATA: Final[Columns] = {
    **_COMMIT,
    "partition": (_TEXT, "partition"),
    "file_id": (_TEXT, "stat.file_id"),
    "previous_commit": (_TEXT, "stat.prev_commit"),
    "num_writes": (_LONG, "stat.num_writes"),
    "num_inserts": (_LONG, "stat.num_inserts"),
    "num_deletes": (_LONG, "stat.num_deletes"),
    "num_update_writes": (_LONG, "stat.num_update_writes"),
    "total_errors": (_LONG, "stat.total_write_errors"),
    "total_log_blocks": (_LONG, "stat.total_log_blocks"),
    "total_corrupt_log_blocks": (_LONG, "stat.total_corrupt_log_block"),
    "total_rollback_blocks": (_LONG, "stat.total_rollback_blocks"),
    "total_log_records": (_LONG, "stat.total_log_records"),
    "total_updated_records_compacted": (_LONG, "stat.total_updated_records_compacted"),
    "total_bytes_written": (_LONG, "stat.total_write_bytes"),
}
EXTRA_METADATA: Final[Columns] = {
    "instant_time": (_TEXT, "instant.requested_time"),
    "action": (_TEXT, "instant.action.value"),
    "metadata_key": (_TEXT, "key"),
    "metadata_value": (_TEXT, "text"),
}
TIMELINE: Final[Columns] = {
    "instant_time": (_TEXT, "instant.requested_time"),
    "action": (_TEXT, "instant.action.value"),
    "state": (_TEXT, "instant.state.name"),
    "completed_time": (_TEXT, "instant.completion_time"),
    "timeline_type": (_TEXT, "kind"),
    "rollback_info": (_TEXT, "info"),
}
_CLEAN: Final[Columns] = {
    "start_clean_time": (_TEXT, "clean.start_clean_time"),
    "time_taken_in_millis": (_LONG, "clean.time_taken_in_millis"),
    "total_files_deleted": (_INT, "clean.total_files_deleted"),
    "earliest_commit_to_retain": (_TEXT, "clean.earliest_commit_to_retain"),
}
_VERSION: Final[Columns] = {"version": (_INT, "clean.version")}
CLEANS: Final[Columns] = {
    "clean_time": (_TEXT, "instant.requested_time"),
    **_INSTANT,
    **_CLEAN,
    "last_completed_commit_timestamp": (_TEXT, "clean.last_completed_commit_timestamp"),
    **_VERSION,
}
RUN_CLEAN: Final[Columns] = {**_CLEAN, "bootstrap_part_metadata": (_TEXT, "bootstrap"), **_VERSION}
CLUSTERING: Final[Columns] = {
    "timestamp": (_TEXT, "done.instant"),
    "input_group_size": (_INT, "groups"),
    "state": (_TEXT, "state"),
    "involved_partitions": (_TEXT, "partitions"),
}
SAVEPOINTS: Final[Columns] = {
    "savepoint_time": (_TEXT, "instant.requested_time"),
    "state_transition_time": (_TEXT, "instant.completion_time"),
    "state": (_TEXT, "instant.state.name"),
    "action": (_TEXT, "instant.action.value"),
    "timeline_type": (_TEXT, "kind"),
    "savepointed_by": (_TEXT, "kept.savepointed_by"),
    "savepointed_at": (_LONG, "kept.savepointed_at"),
    "comments": (_TEXT, "kept.comments"),
    "partition_path": (_TEXT, "partition"),
    "savepoint_data_file": (_TEXT, "file"),
    "version": (_INT, "version"),
}


def row_of(columns: Columns, **values: Any) -> dict[str, Any]:
    """A row of values, by the names of its columns."""
    found = SimpleNamespace(**values)
    return {name: attrgetter(where)(found) for name, (_, where) in columns.items()}


def completed(opened: OpenTable, action: Action) -> list[Instant]:
    """Completed instants of an action, the newest first."""
    instants = opened.timeline().instants
    return [one for one in reversed(instants) if one.action is action and one.is_completed]


def writes(opened: OpenTable, limit: int | None = None) -> list[Instant]:
    """Completed writes, the newest first."""
    return list(reversed(opened.timeline().completed_writes()))[:limit]


def commit_row(instant: Instant, commit: CommitMetadata) -> dict[str, Any]:
    """A write as :data:`COMMITS` has it."""
    stats = [stat for stats in commit.partition_to_write_stats.values() for stat in stats]
    added = sum(stat.prev_commit in (None, NO_PREVIOUS_COMMIT) for stat in stats)
    names = ("total_write_bytes", "num_writes", "num_update_writes", "total_write_errors")
    total = SimpleNamespace(
        added=added,
        updated=len(stats) - added,
        partitions=len(commit.partition_to_write_stats),
        **{name: sum(getattr(stat, name) or 0 for stat in stats) for name in names},
    )
    return row_of(COMMITS, instant=instant, total=total)


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


def clean_row(opened: OpenTable, instant: Instant, columns: Columns = CLEANS) -> dict[str, Any]:
    """A completed clean."""
    clean = decode_clean(opened.client.active.read(instant), opened.client.active.path(instant))
    return row_of(columns, instant=instant, clean=clean, bootstrap=None)


def savepoint_rows(opened: OpenTable, instant: Instant) -> list[dict[str, Any]]:
    """A savepoint as :data:`SAVEPOINTS` has it: a row for each file."""
    path = opened.client.active.path(instant)
    kept = decode_savepoint(opened.client.active.read(instant), path)
    files: list[tuple[str | None, str | None]] = [
        (partition, file)
        for partition, part in kept.partition_metadata.items()
        for file in part.savepoint_data_file
    ]
    same = {"instant": instant, "kept": kept, "kind": "ACTIVE", "version": 1}
    return [
        row_of(SAVEPOINTS, **same, partition=partition, file=file)
        for partition, file in files or [(None, None)]
    ]
