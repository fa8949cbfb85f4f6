"""What a write leaves on the timeline: write stats and commit metadata.

Field names are Hudi's in snake case; the order of the fields is the order of Hudi's Avro records
(``hudi-format`` section 3), which :mod:`hudi_core.timeline.serde` relies on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import pyarrow as pa

from hudi_core.model.files import BaseFileName, FileId, PartitionPath
from hudi_core.model.stats import ColumnStats

NO_PREVIOUS_COMMIT = "null"
"""What ``prev_commit`` says for a new file group."""
SCHEMA_KEY = "schema"
"""Key of ``extra_metadata`` under which a commit keeps the table's Avro schema, without meta
fields."""


class WriteOperation(StrEnum):
    """The operation a commit records, by Hudi's name in commit metadata."""

    INSERT = "INSERT"
    UPSERT = "UPSERT"
    BULK_INSERT = "BULK_INSERT"
    DELETE = "DELETE"
    INSERT_OVERWRITE = "INSERT_OVERWRITE"
    INSERT_OVERWRITE_TABLE = "INSERT_OVERWRITE_TABLE"
    DELETE_PARTITION = "DELETE_PARTITION"
    CLUSTER = "CLUSTER"
    COMPACT = "COMPACT"
    LOG_COMPACT = "LOG_COMPACT"
    INDEX = "INDEX"
    ALTER_SCHEMA = "ALTER_SCHEMA"
    UNKNOWN = "UNKNOWN"


MERGES_LOGS: Final = frozenset({WriteOperation.COMPACT, WriteOperation.LOG_COMPACT})
"""Operations that merge log files, beside which others may add some to a file group."""
MOVES_ROWS: Final = MERGES_LOGS | {WriteOperation.CLUSTER}
"""Operations that put rows into other files, and change none."""


@dataclass(frozen=True, slots=True)
class RuntimeStats:
    """Milliseconds a write spent."""

    total_scan_time: int = 0
    total_create_time: int = 0
    total_upsert_time: int = 0


@dataclass(frozen=True, slots=True)
class WriteStat:
    """What one write did to one file.

    Counts are rows, sizes are bytes. What a log has is 0 or ``None`` where the write made none.

    Attributes
    ----------
    file_id, partition_path
        The file group.
    path, base_file, temp_path
        The new file, relative to the base path; the base file that a log belongs to, by its name;
        where the file was written at first.
    prev_commit, prev_base_file
        Requested time of the file group's slice before (``"null"`` for a new group), and its base
        file.
    num_writes, num_inserts, num_update_writes, num_updates, num_deletes
        Rows of the new file, copied ones included; of these the new and the changed ones; the
        changed ones of a log; and rows that were deleted.
    file_size_in_bytes, total_write_bytes, total_write_errors
        Size of the file, bytes that were written, and rows that could not be.
    min_event_time, max_event_time
        Milliseconds of the epoch, where the rows have event times.
    log_version, log_offset, log_files
        The log's version, where in it the write begins, and the logs of the slice.
    cdc_stats
        Files of the change log with their bytes.
    runtime_stats
        Milliseconds that were spent.
    total_log_records, total_log_files, total_log_blocks, total_corrupt_log_block
        What was found in the logs that were read.
    total_rollback_blocks, total_updated_records_compacted
        Likewise: blocks that undo others, and rows that were merged.
    total_log_files_compacted, total_log_size_compacted, total_log_read_time_ms
        Logs that were merged, their bytes, and the time that took.
    """

    file_id: str | None = None
    path: str | None = None
    prev_commit: str | None = None
    num_writes: int | None = 0
    num_deletes: int | None = 0
    num_update_writes: int | None = 0
    total_write_bytes: int | None = 0
    total_write_errors: int | None = 0
    partition_path: str | None = None
    total_log_records: int | None = 0
    total_log_files: int | None = 0
    total_updated_records_compacted: int | None = 0
    num_inserts: int | None = 0
    total_log_blocks: int | None = 0
    total_corrupt_log_block: int | None = 0
    total_rollback_blocks: int | None = 0
    file_size_in_bytes: int | None = 0
    log_version: int | None = None
    log_offset: int | None = None
    base_file: str | None = None
    log_files: tuple[str, ...] | None = None
    cdc_stats: Mapping[str, int] | None = None
    prev_base_file: str | None = None
    min_event_time: int | None = None
    max_event_time: int | None = None
    runtime_stats: RuntimeStats | None = None
    total_log_files_compacted: int | None = 0
    total_log_read_time_ms: int | None = 0
    total_log_size_compacted: int | None = 0
    temp_path: str | None = None
    num_updates: int | None = 0

    @property
    def base_before(self) -> tuple[str | None, str | None]:
        """Requested time and name of the base file that was there before.

        The one that the file took the place of, or that it belongs to where it is a log. Each is
        ``None`` where it is not recorded; the time of a new group is ``"null"``.
        """
        name = BaseFileName.parse(self.base_file or "")
        if name is not None:
            return name.instant, self.base_file
        before = None if self.prev_base_file is None else self.prev_base_file.rpartition("/")[2]
        return self.prev_commit or None, before or None

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of the file and of the logs of its changes."""
        return (*((self.path,) if self.path else ()), *(self.cdc_stats or ()))


@dataclass(frozen=True, slots=True)
class CommitMetadata:
    """The body of a completed commit or deltacommit.

    Attributes
    ----------
    partition_to_write_stats
        What was done to each file, by partition path; :attr:`stats` has all of it.
    operation_type
        The operation, by the value of a :class:`WriteOperation`.
    extra_metadata
        Free strings by key; the Avro schema of the table is among them.
    compacted
        Whether a compaction made it.
    version
        Of the record; Hudi's default.
    """

    partition_to_write_stats: Mapping[str, tuple[WriteStat, ...]] = field(default_factory=dict)
    compacted: bool | None = False
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
    version: int | None = 1
    operation_type: str | None = None

    @property
    def stats(self) -> tuple[WriteStat, ...]:
        """Every write stat, partition by partition."""
        return tuple(stat for stats in self.partition_to_write_stats.values() for stat in stats)

    @property
    def schema_json(self) -> str | None:
        """The table's Avro schema after this commit; ``None`` if it keeps none."""
        return self.extra_metadata.get(SCHEMA_KEY) or None


@dataclass(frozen=True, slots=True)
class ReplaceCommitMetadata(CommitMetadata):
    """The body of a completed replacecommit, which also replaces file groups.

    The other attributes are those of :class:`CommitMetadata`.

    Attributes
    ----------
    partition_to_replace_file_ids
        The file groups that are no longer in the table, by partition path.
    """

    partition_to_replace_file_ids: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """The write stat of one written file, and facts for later steps.

    Attributes
    ----------
    partition_path, file_id
        The file group.
    stat
        The write stat that goes into the commit metadata.
    columns
        Statistics of the new file by leaf path; empty when the write left no file.
    changed_keys
        What became of the file's record keys, for indexes of keys: a table, or the path of the
        file below the table's folder that holds it. ``None`` where it was not recorded.
    bloom
        The bloom filter in the file's footer, empty without one; ``None`` where no index of the
        table asks for it.
    """

    partition_path: PartitionPath
    file_id: FileId
    stat: WriteStat
    columns: Mapping[str, ColumnStats] = field(default_factory=dict)
    changed_keys: pa.Table | str | None = None
    bloom: bytes | None = None
