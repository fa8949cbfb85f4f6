"""Hooks of the Delta format: one version per completed instant.

Step 2 is put-if-absent of the next version's file, with the version read under the table's lock as
parent. What the versions of actions without files hold is the instant alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from delta_format import creation, found, undo
from delta_format.change import NOTHING, change_of_write
from delta_format.commit import Record, record
from delta_format.expiry import forget
from delta_format.foreign import require_ours
from delta_format.location import LOG_FOLDER
from delta_format.log import open_log
from delta_format.metadata import DeltaMetadataFactory, DeltaTimelineFactory
from delta_format.options import OPTIONS
from delta_format.registration import registration
from delta_format.schema import require_supported_columns
from delta_format.undo import require_named_files
from delta_format.vectors import FOLDER
from hudi_core.spi import (
    Action,
    Capability,
    CommitMetadata,
    Completion,
    FileSystemViewManager,
    FormatCapabilities,
    FormatCommit,
    FormatOption,
    Instant,
    MetaClientView,
    Publication,
    RecordingFormat,
    TableSchema,
    TakenIn,
    outgoing_groups,
    passed_on,
)

_UNMAPPED = (
    "without column mapping, a later protocol of Delta that few readers know, columns are found by "
    "name, and values would be lost or come back"
)
_CAPABILITIES = FormatCapabilities.of(
    Capability.COPY_ON_WRITE,
    Capability.DELETION_VECTORS,
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
        Capability.MERGE_ON_READ: "readers of Delta read data files alone, without log files; the "
        "mode split deletes rows by deletion vectors instead",
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

        Deletion vectors come with a table feature, in tables that are made for them. Renamed and
        dropped columns need column mapping, wider types need type widening, both of later protocols
        that few readers know.
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

    # the newest version of the log
    open = passed_on(creation.opened)
    # a version with the present files; the log may be new
    rebuild = passed_on(creation.made, "view_manager")
    create = rebuild  # the log of an empty table is a version without files

    def check_schema(self, schema: TableSchema, **_: Any) -> None:
        """Refuse times of day, and names that differ in case only."""
        require_supported_columns(schema.with_meta())

    # base files alone, each with the columns that the table has now
    check_files = passed_on(creation.check_files, "view_manager")
    # check the log's root and the columns of the files
    check_creation = passed_on(creation.check)

    def get_metadata_folders(self, **_: Any) -> tuple[str, ...]:
        """Those of the log and of deletion vectors."""
        return (LOG_FOLDER, FOLDER)

    # a table of Spark's source, at the folder with the log
    get_registration = passed_on(registration)
    # the files of the newest version, without deletion vectors
    find_table = passed_on(found.find_table)

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

        A file of which rows are deleted it removes and adds again, with another vector. What writes
        rows again is marked as no change of data: followers of changes pass it over.
        """
        client, instant = completion.meta_client, completion.instant
        commit, expected = completion.commit_metadata, completion.expected_version
        if commit is not None:
            change = change_of_write(
                client, commit, completion.write_statuses, completion.view_manager
            )
            return record(client, Record(instant, commit.operation_type, expected), change)
        taken = None
        if instant.action in _OVER_FOREIGN:
            head = open_log(client)
            base = None if head.foreign is None else head.foreign.hudi_version
            # it takes nothing of them in: they stay foreign
            taken = None if base is None else TakenIn(str(base), ())
        return record(client, Record(instant, parent=expected), replace(NOTHING, taken=taken))

    # nothing to do: old versions stay, and name the missing file
    before_clean = passed_on(undo.require_no_live_files, "clean_plan")
    # the watermark rises, and what only archived instants needed goes
    archive_instants = passed_on(forget, "archived_instants", "expected_version")
    # restore the version before the target, with its statistics
    before_rollback = passed_on(undo.take_back, "instant", "expected_version")
    # a version that holds the instant and a mark of savepoints
    complete_savepoint = passed_on(undo.save, "instant", "expected_version")
    # a version that takes the instant out
    complete_delete_savepoint = passed_on(undo.unsave, "instant", "expected_version")
    # refuse where the log does not keep the version any more
    check_restore = passed_on(undo.require_restorable, "restore_plan")
    # restore an earlier version, with its statistics, as one version
    before_restore = passed_on(undo.restore, "restore_plan", "expected_version")
