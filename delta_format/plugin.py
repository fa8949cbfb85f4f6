"""Hooks of the Delta format: one version per completed instant.

Step 2 is put-if-absent of the next version's file, with the version read under the table's lock as
parent. What the versions of actions without files hold is the instant alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from delta_format.change import NOTHING, change_of_write
from delta_format.commit import Record, record
from delta_format.creation import check, check_files, made, opened
from delta_format.expiry import forget
from delta_format.foreign import require_ours
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
    require_restorable,
    restore,
    save,
    take_back,
    unsave,
)
from hudi_core.spi import (
    Action,
    Capability,
    CleanerPlan,
    CommitMetadata,
    Completion,
    FileSystemViewManager,
    FormatCapabilities,
    FormatCommit,
    FormatOption,
    FoundTable,
    Instant,
    MetaClientView,
    Publication,
    RecordingFormat,
    Registration,
    RestorePlan,
    TableSchema,
    TakenIn,
    WriteOperation,
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
    Capability.TAKE_IN,
    Capability.ADD_COLUMN,
    reasons={
        Capability.EMPTY_PARTITION_VALUES: "Delta's log has one word for null and the empty string",
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


_OVER_FOREIGN = (Action.CLEAN, Action.ROLLBACK)
"""Recorded also where there are versions of other writers."""


class DeltaTableFormat(RecordingFormat):
    """Delta Lake's table format."""

    spi_version = "1.0"

    def get_capabilities(self) -> FormatCapabilities:
        """Capabilities of the log at reader version 1, writer version 2.

        Renamed and dropped columns need column mapping, wider types need type widening, both of
        later protocols that few readers know.
        """
        return _CAPABILITIES

    def get_options(self) -> Sequence[FormatOption[Any]]:
        """How long vacuums leave files alone."""
        return OPTIONS

    def get_timeline_factory(self) -> DeltaTimelineFactory:
        """The Hudi timeline, fenced by the transactions of the log."""
        return DeltaTimelineFactory()

    def get_metadata_factory(self) -> DeltaMetadataFactory:
        """Files come from the log."""
        return DeltaMetadataFactory()

    def open(self, meta_client: MetaClientView, **_: Any) -> FormatCommit:
        """The newest version of the log."""
        return opened(meta_client)

    def rebuild(
        self, meta_client: MetaClientView, view_manager: FileSystemViewManager
    ) -> FormatCommit:
        """A version with the present files; the log may be new."""
        return made(meta_client, view_manager)

    create = rebuild  # the log of an empty table is a version without files

    def check_schema(self, schema: TableSchema, **_: Any) -> None:
        """Refuse times of day, and names that differ in case only."""
        require_supported_columns(schema.with_meta())

    def check_files(self, meta_client: MetaClientView, view_manager: FileSystemViewManager) -> None:
        """Base files alone, each with the columns that the table has now."""
        check_files(meta_client, view_manager)

    def check_creation(self, meta_client: MetaClientView) -> None:
        """Check the log's root and the columns of the files.

        The root is the table's own folder.
        """
        check(meta_client)

    def get_metadata_folders(self, **_: Any) -> tuple[str, ...]:
        """The log's."""
        return (LOG_FOLDER,)

    def get_registration(self, meta_client: MetaClientView) -> Registration:
        """A table of Spark's source, at the folder with the log."""
        return registration(meta_client)

    def find_table(self, meta_client: MetaClientView) -> FoundTable | None:
        """The files of the newest version, without deletion vectors."""
        return find_table(meta_client)

    def find_publication(self, meta_client: MetaClientView, instant: Instant) -> Publication | None:
        """An instant is published when the newest version has its transaction."""
        return open_log(meta_client).publication(instant)

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
        taken = TakenIn.of(commit_metadata.extra_metadata, meta_client.config.table_format)
        if taken is not None:
            require_ours(meta_client, open_log(meta_client), taken, gone)

    def record(self, completion: Completion) -> FormatCommit:
        """One version, which adds new files and removes replaced ones.

        That of a clustering is marked as no change of data: followers of changes pass it over.
        """
        client, instant = completion.meta_client, completion.instant
        commit, expected = completion.commit_metadata, completion.expected_version
        if commit is not None:
            operation = commit.operation_type
            same_rows = operation == WriteOperation.CLUSTER
            statuses = completion.write_statuses
            change = change_of_write(client, commit, statuses, same_rows=same_rows)
            return record(client, Record(instant, operation, expected), change)
        taken = None
        if instant.action in _OVER_FOREIGN:
            head = open_log(client)
            base = None if head.foreign is None else head.foreign.hudi_version
            # it takes nothing of them in: they stay foreign
            taken = None if base is None else TakenIn(str(base), ())
        return record(client, Record(instant, parent=expected), replace(NOTHING, taken=taken))

    def before_clean(self, meta_client: MetaClientView, clean_plan: CleanerPlan, **_: Any) -> None:
        """Nothing to do: old versions stay, and name the missing file.

        They cannot be read any more; the error names the file.
        """
        require_no_live_files(meta_client, clean_plan)

    def archive_instants(
        self,
        meta_client: MetaClientView,
        archived_instants: Sequence[Instant],
        expected_version: str | None,
        **_: Any,
    ) -> None:
        """The watermark rises, and what only archived instants needed goes."""
        forget(meta_client, archived_instants, expected_version)

    def before_rollback(
        self, meta_client: MetaClientView, instant: Instant, expected_version: str | None, **_: Any
    ) -> None:
        """Restore the version before the target, with its statistics.

        By Delta's own restore.
        """
        take_back(meta_client, instant, expected_version)

    def complete_savepoint(
        self, meta_client: MetaClientView, instant: Instant, expected_version: str | None, **_: Any
    ) -> FormatCommit:
        """A version that holds the instant and a mark of savepoints."""
        return save(meta_client, instant, expected_version)

    def complete_delete_savepoint(
        self, meta_client: MetaClientView, instant: Instant, expected_version: str | None, **_: Any
    ) -> FormatCommit:
        """A version that takes the instant out."""
        return unsave(meta_client, instant, expected_version)

    def check_restore(
        self, meta_client: MetaClientView, restore_plan: RestorePlan, **_: Any
    ) -> None:
        """Refuse where the log does not keep the version any more."""
        require_restorable(meta_client, restore_plan)

    def before_restore(
        self,
        meta_client: MetaClientView,
        restore_plan: RestorePlan,
        expected_version: str | None,
        **_: Any,
    ) -> None:
        """Restore an earlier version, with its statistics, as one version."""
        restore(meta_client, restore_plan, expected_version)
