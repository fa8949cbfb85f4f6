"""The hooks of the Iceberg format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyiceberg.table.update import TableUpdate

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
    LockProvider,
    MetaClientView,
    Publication,
    RecordingFormat,
    TableSchema,
    TableSettings,
    outgoing_groups,
    passed_on,
)
from iceberg_format import creation, found, rollback, services
from iceberg_format.catalog import TableState, metadata_folder
from iceberg_format.commit import change_updates, publish, require_named_files
from iceberg_format.files import TableFiles, require_one_access
from iceberg_format.foreign import require_hudi_lineage
from iceberg_format.locks import catalog_lock
from iceberg_format.metadata import IcebergMetadataFactory, IcebergTimelineFactory
from iceberg_format.options import OPTIONS
from iceberg_format.partition import require_free_partition_names
from iceberg_format.registration import registration
from iceberg_format.schema import iceberg_schema
from iceberg_format.table import IcebergTable, version_of
from iceberg_format.writes import change_of_write, taken_by

_CAPABILITIES = FormatCapabilities.of(
    Capability.COPY_ON_WRITE,
    Capability.DELETION_VECTORS,
    Capability.VIRTUAL_KEYS,
    Capability.UNPARTITIONED,
    Capability.IDENTITY_PARTITIONS,
    Capability.TRANSFORMED_PARTITIONS,
    Capability.EMPTY_PARTITION_VALUES,
    Capability.STORAGE_PATH,
    Capability.SEVERAL_STORAGE_PATHS,
    Capability.SHARED_STORAGE_PATH,
    Capability.REPLACE,
    Capability.CLUSTERING,
    Capability.SAVEPOINT,
    Capability.RESTORE,
    Capability.CONVERSION,
    Capability.TAKE_IN,
    Capability.ADD_COLUMN,
    Capability.DROP_COLUMN,
    Capability.RENAME_COLUMN,
    Capability.REORDER_COLUMNS,
    Capability.PROMOTE_TYPE,
    promotions=("int to long", "float to double", "decimal to decimal of more digits"),
    reasons={
        Capability.MERGE_ON_READ: "readers of Iceberg read data files alone, without log files",
    },
)


_OVER_FOREIGN = (Action.CLEAN, Action.ROLLBACK)
"""Recorded also where there are snapshots of other writers."""


class IcebergTableFormat(RecordingFormat):
    """Apache Iceberg, versions 2 and 3 of its format."""

    spi_version = "1.0"

    def get_capabilities(self) -> FormatCapabilities:
        """What Iceberg holds exactly as Hudi does."""
        return _CAPABILITIES

    def metadata_of(self, meta_client: MetaClientView) -> IcebergTable:
        """The Iceberg table."""
        return IcebergTable.open(meta_client)

    def get_options(self) -> Sequence[FormatOption[Any]]:
        """Where the metadata is, and the catalog."""
        return OPTIONS

    def get_timeline_factory(self) -> IcebergTimelineFactory:
        """The current lineage is the truth."""
        return IcebergTimelineFactory()

    def get_metadata_factory(self) -> IcebergMetadataFactory:
        """Files come from the manifests."""
        return IcebergMetadataFactory()

    def open(self, meta_client: MetaClientView, **_: Any) -> FormatCommit:
        """Find the Iceberg table; its snapshot is the version."""
        table = IcebergTable.open(meta_client)
        state = table.find()
        if state is None:
            raise table.missing()
        require_hudi_lineage(table, state)
        return FormatCommit(version_of(state.metadata), table.location)

    def rebuild(
        self, meta_client: MetaClientView, view_manager: FileSystemViewManager
    ) -> FormatCommit:
        """A snapshot of the present files; the Iceberg table may be new."""
        table = IcebergTable.open(meta_client)
        table.forget()
        made = creation.rebuild(table, view_manager)
        return FormatCommit(version_of(made.metadata), table.location)

    create = rebuild  # of an Iceberg table without files

    def check_schema(
        self, settings: TableSettings, schema: TableSchema, before: TableSchema | None
    ) -> None:
        """Refuse unknown types, and new columns named as partition fields.

        Iceberg has every type that tables have now.
        """
        after = iceberg_schema(schema, 0)
        if before is not None:
            require_free_partition_names(settings, iceberg_schema(before, 0), after)

    # base files alone, with values that are in one partition
    check_files = passed_on(creation.check_files, "view_manager")

    def check_creation(self, meta_client: MetaClientView) -> None:
        """Check columns, partitions, folder, and the catalog's namespace and name.

        And that one set of credentials reaches all files.
        """
        require_one_access(meta_client)
        creation.check(IcebergTable.open(meta_client))

    def get_metadata_folders(self, meta_client: MetaClientView) -> tuple[str, ...]:
        """The folder below the Iceberg table's, whatever catalog has it."""
        return (metadata_folder(meta_client, TableFiles(meta_client)),)

    # the format, and the file with the current metadata
    get_registration = passed_on(registration)
    # the files of the current snapshot, without files of deleted rows
    find_table = passed_on(found.find_table)

    def find_publication(self, meta_client: MetaClientView, instant: Instant) -> Publication | None:
        """Look for the instant in the current lineage."""
        state = IcebergTable.open(meta_client).load()
        return state.lineage.publication(instant, version_of(state.metadata))

    def get_lock_provider(self, meta_client: MetaClientView, **_: Any) -> LockProvider | None:
        """A lease in the database of a sql catalog."""
        return catalog_lock(meta_client)

    # --- writes ----------------------------------------------------------------------------------

    def check_write(
        self,
        meta_client: MetaClientView,
        commit_metadata: CommitMetadata,
        instant: Instant,
        **_: Any,
    ) -> None:
        """File groups that go have files in the current snapshot."""
        gone, table = outgoing_groups(commit_metadata), IcebergTable.open(meta_client)
        if gone:
            require_named_files(table, gone, instant)
        taken = taken_by(table, commit_metadata)
        if taken is not None:
            require_hudi_lineage(table, table.load(), taken)

    def record(self, completion: Completion) -> FormatCommit:
        """One snapshot for files and columns; for other actions a property."""
        table, instant = IcebergTable.open(completion.meta_client), completion.instant
        commit = completion.commit_metadata
        if commit is None:
            beside = instant.action in _OVER_FOREIGN
            return services.record(table, instant, completion.expected_version, over_foreign=beside)

        def updates(state: TableState) -> tuple[TableUpdate, ...]:
            change = change_of_write(table, state.metadata, completion, commit)
            return change_updates(table, state, change, instant)

        taken = taken_by(table, commit)
        return publish(table, instant, updates, completion.expected_version, taken)

    # --- clean and archive -----------------------------------------------------------------------

    # expire the snapshots that name the files
    before_clean = passed_on(services.stop_naming, "clean_plan", "expected_version")
    # expire the snapshots of the archived instants
    archive_instants = passed_on(services.forget, "archived_instants", "expected_version")
    # --- rollback, savepoint and restore ---------------------------------------------------------

    # go on from the snapshot before the instant's
    before_rollback = passed_on(rollback.take_out, "instant", "expected_version")
    # tag the snapshot of the commit
    complete_savepoint = passed_on(services.tag, "instant", "expected_version")
    # remove the tag
    complete_delete_savepoint = passed_on(services.untag, "instant", "expected_version")
    # refuse where the state's snapshot has been expired
    check_restore = passed_on(services.require_restorable, "restore_plan")
    # go on from the snapshot of the savepoint
    before_restore = passed_on(services.restore, "restore_plan", "expected_version")
