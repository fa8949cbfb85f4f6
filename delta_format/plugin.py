"""Hooks of the Delta format: one version per completed instant.

Step 2 is put-if-absent of the next version's file, with the version read under the table's lock as
parent. What the versions of actions without files hold is the instant alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from delta_format.change import NOTHING, change_of_write
from delta_format.commit import Record, record
from delta_format.creation import check, check_files, find_or_make
from delta_format.expiry import forget
from delta_format.found import find_table
from delta_format.location import LOG_FOLDER
from delta_format.log import open_log
from delta_format.metadata import DeltaMetadataFactory
from delta_format.options import OPTIONS
from delta_format.registration import registration
from delta_format.schema import require_supported_columns
from delta_format.timeline import DeltaTimelineFactory
from delta_format.undo import (
    require_named_files,
    require_no_live_files,
    restore,
    save,
    take_back,
    unsave,
)
from hudi_core.spi import (
    PARENT_KEY,
    Capability,
    CleanerPlan,
    CommitMetadata,
    FileSystemViewManager,
    FormatCapabilities,
    FormatCommit,
    FormatOption,
    FoundTable,
    Granularity,
    Instant,
    MetaClientView,
    Publication,
    Registration,
    ReplaceCommitMetadata,
    RestorePlan,
    TableSchema,
    TouchConflicts,
    WriteStatus,
    hookimpl,
    outgoing_groups,
)

_UNMAPPED = (
    "without column mapping, a later protocol of Delta that few readers know, columns are found by "
    "name, and values would be lost or come back"
)
_CAPABILITIES = FormatCapabilities.of(
    Capability.COPY_ON_WRITE,
    Capability.VIRTUAL_KEYS,
    Capability.UNPARTITIONED,
    Capability.IDENTITY_PARTITIONS,
    Capability.TRANSFORMED_PARTITIONS,
    Capability.STORAGE_PATH,
    Capability.REPLACE,
    Capability.CLUSTERING,
    Capability.SAVEPOINT,
    Capability.RESTORE,
    Capability.CONVERSION,
    Capability.ADD_COLUMN,
    reasons={
        Capability.EMPTY_PARTITION_VALUES: "Delta's log has one word for null and the empty text",
        Capability.SEVERAL_STORAGE_PATHS: "few readers of Delta open files outside the folder that "
        "the log is in",
        Capability.SHARED_STORAGE_PATH: "the log is in the storage path, and a vacuum deletes what "
        "it does not name",
        Capability.DROP_COLUMN: _UNMAPPED,
        Capability.RENAME_COLUMN: _UNMAPPED,
        Capability.PROMOTE_TYPE: "types that can be widened need a later protocol of Delta, which "
        "few readers know",
    },
)


class DeltaTableFormat:
    """Delta Lake's table format."""

    @hookimpl
    def get_capabilities(self) -> FormatCapabilities:
        """Capabilities of the log at reader version 1, writer version 2.

        Renamed and dropped columns need column mapping, wider types need type widening, both of
        later protocols that few readers know.
        """
        return _CAPABILITIES

    @hookimpl
    def get_options(self) -> Sequence[FormatOption[Any]]:
        """How long vacuums leave files alone."""
        return OPTIONS

    @hookimpl
    def get_timeline_factory(self) -> DeltaTimelineFactory:
        """The Hudi timeline, fenced by the transactions of the log."""
        return DeltaTimelineFactory()

    @hookimpl
    def get_metadata_factory(self) -> DeltaMetadataFactory:
        """The log tells which files there are."""
        return DeltaMetadataFactory()

    @hookimpl
    def initialize(
        self,
        meta_client: MetaClientView,
        view_manager: FileSystemViewManager,
        create: bool,
        rebuild: bool,
    ) -> FormatCommit:
        """The log of an empty table is a version without files."""
        return find_or_make(meta_client, view_manager, create=create, rebuild=rebuild)

    @hookimpl
    def check_schema(self, schema: TableSchema) -> None:
        """Refuse times of day, and names that differ in case only."""
        require_supported_columns(schema.with_meta())

    @hookimpl
    def check_files(self, meta_client: MetaClientView, view_manager: FileSystemViewManager) -> None:
        """Base files alone, each with the columns that the table has now."""
        check_files(meta_client, view_manager)

    @hookimpl
    def check_creation(self, meta_client: MetaClientView) -> None:
        """Check the log's root and the columns of the files.

        The root is the table's own folder.
        """
        check(meta_client)

    @hookimpl
    def get_metadata_folders(self) -> tuple[str, ...]:
        """The log's."""
        return (LOG_FOLDER,)

    @hookimpl
    def get_registration(self, meta_client: MetaClientView) -> Registration:
        """A table of Spark's source, at the folder with the log."""
        return registration(meta_client)

    @hookimpl
    def find_table(self, meta_client: MetaClientView) -> FoundTable | None:
        """The files of the newest version, without deletion vectors."""
        return find_table(meta_client)

    @hookimpl
    def find_publication(self, meta_client: MetaClientView, instant: Instant) -> Publication | None:
        """An instant is published when the newest version has its transaction."""
        return open_log(meta_client).publication(instant)

    @hookimpl
    def get_conflict_resolution_strategy(self) -> TouchConflicts:
        """File groups: writes of different ones can both commit."""
        return TouchConflicts(Granularity.FILE_GROUP)

    @hookimpl
    def check_write(
        self,
        meta_client: MetaClientView,
        view_manager: FileSystemViewManager,
        commit_metadata: CommitMetadata,
        instant: Instant,
    ) -> None:
        """Check that the newest version names the replaced files.

        But for those without rows.
        """
        gone = outgoing_groups(commit_metadata)
        if gone:
            require_named_files(meta_client, view_manager, gone, instant)

    @hookimpl
    def complete_write(
        self,
        meta_client: MetaClientView,
        commit_metadata: CommitMetadata,
        instant: Instant,
        write_statuses: Sequence[WriteStatus],
    ) -> FormatCommit:
        """Add new files and remove replaced ones, in one version."""
        change = change_of_write(meta_client, commit_metadata, write_statuses)
        return record(meta_client, _record(instant, commit_metadata), change)

    @hookimpl
    def complete_clustering(
        self,
        meta_client: MetaClientView,
        replace_commit_metadata: ReplaceCommitMetadata,
        instant: Instant,
        write_statuses: Sequence[WriteStatus],
    ) -> FormatCommit:
        """Replace files in a version marked as no data change.

        Followers of changes pass it over.
        """
        change = change_of_write(
            meta_client, replace_commit_metadata, write_statuses, same_rows=True
        )
        return record(meta_client, _record(instant, replace_commit_metadata), change)

    @hookimpl
    def complete_schema_change(
        self, meta_client: MetaClientView, commit_metadata: CommitMetadata, instant: Instant
    ) -> FormatCommit:
        """A version with the new columns that holds the instant."""
        change = change_of_write(meta_client, commit_metadata, ())
        return record(meta_client, _record(instant, commit_metadata), change)

    @hookimpl
    def before_clean(self, meta_client: MetaClientView, clean_plan: CleanerPlan) -> None:
        """Nothing to do: old versions stay, and name the missing file.

        They cannot be read any more; the error names the file.
        """
        require_no_live_files(meta_client, clean_plan)

    @hookimpl
    def complete_clean(self, meta_client: MetaClientView, instant: Instant) -> FormatCommit:
        """A version that holds the instant."""
        return _mark(meta_client, instant)

    @hookimpl
    def archive_instants(
        self, meta_client: MetaClientView, archived_instants: Sequence[Instant]
    ) -> None:
        """The watermark rises, and what only archived instants needed goes."""
        forget(meta_client, archived_instants)

    @hookimpl
    def before_rollback(self, meta_client: MetaClientView, instant: Instant) -> None:
        """Restore the version before the target, with its statistics.

        By Delta's own restore.
        """
        take_back(meta_client, instant)

    @hookimpl
    def complete_rollback(self, meta_client: MetaClientView, instant: Instant) -> FormatCommit:
        """A version that holds the instant."""
        return _mark(meta_client, instant)

    @hookimpl
    def complete_savepoint(self, meta_client: MetaClientView, instant: Instant) -> FormatCommit:
        """A version that holds the instant and a mark of savepoints."""
        return save(meta_client, instant)

    @hookimpl
    def complete_delete_savepoint(
        self, meta_client: MetaClientView, instant: Instant
    ) -> FormatCommit:
        """A version that takes the instant out."""
        return unsave(meta_client, instant)

    @hookimpl
    def before_restore(self, meta_client: MetaClientView, restore_plan: RestorePlan) -> None:
        """Restore an earlier version, with its statistics, as one version."""
        restore(meta_client, restore_plan)

    @hookimpl
    def complete_restore(self, meta_client: MetaClientView, instant: Instant) -> FormatCommit:
        """A version that holds the instant."""
        return _mark(meta_client, instant)


def _record(instant: Instant, metadata: CommitMetadata) -> Record:
    parent = metadata.extra_metadata.get(PARENT_KEY)
    return Record(instant, metadata.operation_type, parent)


def _mark(meta_client: MetaClientView, instant: Instant) -> FormatCommit:
    return record(meta_client, Record(instant), NOTHING)
