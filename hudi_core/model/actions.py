"""What the other actions leave on the timeline: plans and results.

Field names are Hudi's in snake case, in the order of Hudi's Avro records (``hudi-format`` section
3). Paths are kept as the file holds them, absolute or relative to the base path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hudi_core.model.instant import Instant


@dataclass(frozen=True, slots=True)
class InstantInfo:
    """An instant named inside another instant's metadata.

    Attributes
    ----------
    commit_time
        Its requested time.
    action
        Its action, such as ``commit``.
    """

    commit_time: str
    action: str


@dataclass(frozen=True, slots=True)
class RollbackRequest:
    """Files of one file group that a rollback deletes (absolute paths).

    Hudi cannot carry out a plan whose log blocks are null.
    """

    partition_path: str
    file_id: str | None = None
    latest_base_instant: str | None = None
    files_to_be_deleted: tuple[str, ...] = ()
    log_blocks_to_be_deleted: Mapping[str, int] | None = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    """The body of ``rollback.requested``."""

    instant_to_rollback: InstantInfo | None
    rollback_requests: tuple[RollbackRequest, ...] = ()
    version: int | None = 1


@dataclass(frozen=True, slots=True)
class RollbackPartitionMetadata:
    """What a rollback deleted in one partition.

    Attributes
    ----------
    partition_path
        Relative to the table.
    success_delete_files, failed_delete_files
        What was deleted, and what could not be.
    rollback_log_files, log_files_from_failed_commit
        Log files and their bytes: those of the rollback, and those that it undid.
    """

    partition_path: str
    success_delete_files: tuple[str, ...] = ()
    failed_delete_files: tuple[str, ...] = ()
    rollback_log_files: Mapping[str, int] | None = None
    log_files_from_failed_commit: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class RollbackMetadata:
    """The body of a completed rollback.

    Attributes
    ----------
    start_rollback_time
        Requested time of the rollback.
    time_taken_in_millis, total_files_deleted
        How long it took, and how many files it deleted.
    commits_rollback, instants_rollback
        Requested times of what was rolled back, and the same with actions.
    partition_metadata
        What was deleted, by partition path.
    version
        Of the record; Hudi's default.
    """

    start_rollback_time: str
    time_taken_in_millis: int
    total_files_deleted: int
    commits_rollback: tuple[str, ...]
    partition_metadata: Mapping[str, RollbackPartitionMetadata] = field(default_factory=dict)
    version: int | None = 1
    instants_rollback: tuple[InstantInfo, ...] = ()


@dataclass(frozen=True, slots=True)
class ClusteringSlice:
    """A file slice a clustering plan reads (paths as their writer stored)."""

    data_file_path: str | None = None
    delta_file_paths: tuple[str, ...] | None = None
    file_id: str | None = None
    partition_path: str | None = None
    bootstrap_file_path: str | None = None
    version: int | None = 1


@dataclass(frozen=True, slots=True)
class ClusteringGroup:
    """Slices that a clustering plan rewrites together."""

    slices: tuple[ClusteringSlice, ...] | None = None
    metrics: Mapping[str, float] | None = None
    num_output_file_groups: int | None = 1
    extra_metadata: Mapping[str, str] | None = None
    version: int | None = 1


@dataclass(frozen=True, slots=True)
class ClusteringStrategy:
    """How to execute a clustering plan, as its writer put it."""

    strategy_class_name: str | None = None
    strategy_params: Mapping[str, str] | None = None
    version: int | None = 1


@dataclass(frozen=True, slots=True)
class ClusteringPlan:
    """The file slices a clustering replaces."""

    input_groups: tuple[ClusteringGroup, ...] | None = None
    strategy: ClusteringStrategy | None = None
    extra_metadata: Mapping[str, str] | None = None
    version: int | None = 1
    preserve_hoodie_metadata: bool | None = None
    missing_schedule_partitions: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class RequestedReplaceMetadata:
    """The body of ``replacecommit.requested`` and ``clustering.requested``.

    Only a clustering has a plan; other writes that replace file groups leave it ``None``.
    """

    operation_type: str | None = None
    clustering_plan: ClusteringPlan | None = None
    extra_metadata: Mapping[str, str] | None = None
    version: int | None = 1


@dataclass(frozen=True, slots=True)
class ActionInstant:
    """An instant named inside a cleaner plan."""

    timestamp: str
    action: str
    state: str


@dataclass(frozen=True, slots=True)
class CleanFileInfo:
    """A file that a clean deletes (an absolute path on disk).

    Attributes
    ----------
    file_path
        Its path; see :meth:`CleanerPlan.paths` for those relative to the table.
    is_bootstrap_base_file
        Whether it is a file of another table, which this one was made over.
    """

    file_path: str | None = None
    is_bootstrap_base_file: bool | None = None


@dataclass(frozen=True, slots=True)
class CleanerPlan:
    """The body of ``clean.requested``.

    Attributes
    ----------
    earliest_instant_to_retain
        The oldest instant whose state can still be read; ``None`` where the policy knows none.
    last_completed_commit_timestamp
        Requested time of the newest commit that the plan knew; may be empty.
    policy
        Name of the cleaning policy.
    files_to_be_deleted_per_partition
        Names of files by partition path, as earlier versions of Hudi planned.
    file_paths_to_be_deleted_per_partition
        The same with whole paths; :meth:`paths` reads both.
    partitions_to_be_deleted
        Partitions that are left without a file.
    extra_metadata
        Free strings by key.
    version
        Of the record; Hudi's default.
    """

    earliest_instant_to_retain: ActionInstant | None
    last_completed_commit_timestamp: str
    policy: str
    files_to_be_deleted_per_partition: Mapping[str, tuple[str, ...]] | None = None
    version: int | None = 2
    file_paths_to_be_deleted_per_partition: Mapping[str, tuple[CleanFileInfo, ...]] | None = None
    partitions_to_be_deleted: tuple[str, ...] | None = None
    extra_metadata: Mapping[str, str] | None = None

    def paths(self) -> Iterator[str]:
        """Yield the files to delete, relative to the table.

        Either form of the plan is read.
        """
        for partition, names in (self.files_to_be_deleted_per_partition or {}).items():
            yield from (_joined(partition, name) for name in names)
        for partition, infos in (self.file_paths_to_be_deleted_per_partition or {}).items():
            yield from (_joined(partition, info.file_path) for info in infos if info.file_path)


def _joined(partition: str, path: str) -> str:
    name = path.rpartition("/")[2]
    return f"{partition}/{name}" if partition else name


@dataclass(frozen=True, slots=True)
class CleanPartitionMetadata:
    """What a clean deleted in one partition; plain file names."""

    partition_path: str
    policy: str
    delete_path_patterns: tuple[str, ...] = ()
    success_delete_files: tuple[str, ...] = ()
    failed_delete_files: tuple[str, ...] = ()
    is_partition_deleted: bool | None = None


@dataclass(frozen=True, slots=True)
class CleanMetadata:
    """The body of a completed clean.

    Attributes
    ----------
    start_clean_time
        Requested time of the clean.
    time_taken_in_millis, total_files_deleted
        How long it took, and how many files it deleted.
    earliest_commit_to_retain, last_completed_commit_timestamp
        As in its plan; empty for none.
    partition_metadata, bootstrap_partition_metadata
        What was deleted, by partition path; of the table, and of one that it was made over.
    extra_metadata
        Free strings by key.
    version
        Of the record; Hudi's default.
    """

    start_clean_time: str
    time_taken_in_millis: int
    total_files_deleted: int
    earliest_commit_to_retain: str
    last_completed_commit_timestamp: str = ""
    partition_metadata: Mapping[str, CleanPartitionMetadata] = field(default_factory=dict)
    version: int | None = 2
    bootstrap_partition_metadata: Mapping[str, CleanPartitionMetadata] | None = None
    extra_metadata: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class CompactionOperation:
    """One file slice that a compaction merges; plain file names.

    ``data_file_path`` is ``None`` for a slice of log files alone, whose ``base_instant_time`` is
    that of its first log file.
    """

    base_instant_time: str | None
    delta_file_paths: tuple[str, ...] | None = None
    data_file_path: str | None = None
    file_id: str | None = None
    partition_path: str | None = None
    metrics: Mapping[str, float] | None = None
    bootstrap_file_path: str | None = None


@dataclass(frozen=True, slots=True)
class CompactionStrategy:
    """How to execute a compaction plan, as its writer put it."""

    compactor_class_name: str | None = None
    strategy_params: Mapping[str, str] | None = None
    version: int | None = 1


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """The body of ``compaction.requested`` and ``logcompaction.requested``."""

    operations: tuple[CompactionOperation, ...] | None = None
    extra_metadata: Mapping[str, str] | None = field(default_factory=dict)
    version: int | None = 2
    strategy: CompactionStrategy | None = None
    preserve_hoodie_metadata: bool | None = False
    missing_schedule_partitions: tuple[str, ...] | None = ()


@dataclass(frozen=True, slots=True)
class SavepointPartitionMetadata:
    """The files of one partition that a savepoint keeps; plain file names.

    Attributes
    ----------
    partition_path
        Relative to the table.
    savepoint_data_file
        Names of the files.
    """

    partition_path: str
    savepoint_data_file: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SavepointMetadata:
    """The body of a completed savepoint.

    Attributes
    ----------
    savepointed_by, comments
        Who made it, and why.
    savepointed_at
        Milliseconds since the epoch.
    partition_metadata
        What it keeps, by partition path.
    """

    savepointed_by: str
    savepointed_at: int
    comments: str
    partition_metadata: Mapping[str, SavepointPartitionMetadata] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IndexPartitionInfo:
    """A partition of the metadata table that an indexing builds or drops.

    ``index_upto_instant`` is the last completed write that it covers.
    """

    version: int | None = 1
    metadata_partition_path: str | None = None
    index_upto_instant: str | None = None
    extra_metadata: Mapping[str, str] | None = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IndexPlan:
    """The body of ``indexing.requested``."""

    version: int | None = 1
    index_partition_infos: tuple[IndexPartitionInfo, ...] | None = None


@dataclass(frozen=True, slots=True)
class IndexCommitMetadata:
    """The body of a completed indexing."""

    version: int | None = 1
    operation_type: str | None = None
    index_partition_infos: tuple[IndexPartitionInfo, ...] | None = None


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """The body of ``restore.requested``: the instants to roll back, the latest first.

    Attributes
    ----------
    instants_to_rollback
        Each with its requested time (``commit_time``) and its action; the latest first.
    savepoint_to_restore_timestamp
        Requested time of the state to go back to; ``None`` in plans of earlier versions.
    version
        Of the record; Hudi's default.
    """

    instants_to_rollback: tuple[InstantInfo, ...] = ()
    version: int | None = 2
    savepoint_to_restore_timestamp: str | None = None

    @classmethod
    def of_write(cls, instant: Instant) -> RestorePlan:
        """The plan that goes back behind one write, as its rollback does."""
        return cls((InstantInfo(instant.requested_time, instant.action.value),))


@dataclass(frozen=True, slots=True)
class RestoreMetadata:
    """The body of a completed restore.

    Attributes
    ----------
    start_restore_time
        Requested time of the restore.
    time_taken_in_millis
        How long it took.
    instants_to_rollback, restore_instant_info
        Requested times of what was rolled back, and the same with actions.
    hoodie_restore_metadata
        What each rollback deleted, by the requested time of its instant.
    version
        Of the record; Hudi's default.
    """

    start_restore_time: str
    time_taken_in_millis: int
    instants_to_rollback: tuple[str, ...]
    hoodie_restore_metadata: Mapping[str, tuple[RollbackMetadata, ...]] = field(
        default_factory=dict
    )
    version: int | None = 1
    restore_instant_info: tuple[InstantInfo, ...] = ()
