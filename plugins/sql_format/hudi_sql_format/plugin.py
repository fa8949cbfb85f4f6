"""Hooks of the format: one state of the database per completed instant.

Step 2 is one transaction, compared and set on the version that was read under the table's lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hudi_core.spi import (
    Capability,
    CleanerPlan,
    CommitMetadata,
    FileIndex,
    FileSystemViewManager,
    FormatCapabilities,
    FormatCommit,
    FormatOption,
    Granularity,
    Instant,
    MetaClientView,
    Publication,
    ReplaceCommitMetadata,
    RestorePlan,
    TableFormat,
    TimelineView,
    TouchConflicts,
    WriteStatus,
    fence,
)
from hudi_sql_format.commit import Record, record
from hudi_sql_format.creation import check_files, made, opened
from hudi_sql_format.database import FOLDER, Database, require_place
from hudi_sql_format.files import change_of_write
from hudi_sql_format.lister import SqlLister
from hudi_sql_format.options import OPTIONS
from hudi_sql_format.state import read_state
from hudi_sql_format.undo import (
    forget,
    require_restorable,
    restore,
    stop_naming,
    take_back,
    unsave,
)

_PLACES: Final = "the database names files by their paths in the table's folder"
_CAPABILITIES: Final = FormatCapabilities.of(
    Capability.COPY_ON_WRITE,
    Capability.VIRTUAL_KEYS,
    Capability.UNPARTITIONED,
    Capability.IDENTITY_PARTITIONS,
    Capability.TRANSFORMED_PARTITIONS,
    Capability.EMPTY_PARTITION_VALUES,
    Capability.REPLACE,
    Capability.CLUSTERING,
    Capability.SAVEPOINT,
    Capability.RESTORE,
    Capability.CONVERSION,
    Capability.ADD_COLUMN,
    Capability.DROP_COLUMN,
    Capability.RENAME_COLUMN,
    Capability.REORDER_COLUMNS,
    Capability.PROMOTE_TYPE,
    reasons={
        Capability.MERGE_ON_READ: "who finds files by SQL reads them alone, without log files",
        Capability.DROPPED_PARTITION_COLUMNS: "who finds files by SQL reads them alone",
        Capability.STORAGE_PATH: _PLACES,
        Capability.SEVERAL_STORAGE_PATHS: _PLACES,
        Capability.SHARED_STORAGE_PATH: _PLACES,
    },
)


class SqlTableFormat(TableFormat):
    """A table format whose metadata is in a SQL database."""

    spi_version = "1.0"

    def __init__(self) -> None:
        self._database: Database | None = None

    def get_capabilities(self) -> FormatCapabilities:
        """Everything that plain files and their field ids allow."""
        return _CAPABILITIES

    def get_options(self) -> Sequence[FormatOption[Any]]:
        """Where the database is, and how to reach it."""
        return OPTIONS

    def get_timeline_factory(self) -> SqlFactory:
        """The Hudi timeline, fenced by the instants of the database."""
        return SqlFactory(self)

    def get_metadata_factory(self) -> SqlFactory:
        """Files come from the database."""
        return SqlFactory(self)

    def get_metadata_folders(self, **_: Any) -> tuple[str, ...]:
        """The folder of the SQLite file."""
        return (FOLDER,)

    def check_creation(self, meta_client: MetaClientView) -> None:
        """The place has to suit the table, a server to answer."""
        require_place(meta_client)

    def check_files(self, meta_client: MetaClientView, view_manager: FileSystemViewManager) -> None:
        """Base files alone."""
        check_files(meta_client, view_manager)

    def create(
        self, meta_client: MetaClientView, view_manager: FileSystemViewManager
    ) -> FormatCommit:
        """A state without files."""
        return made(meta_client, self.database(meta_client), view_manager)

    def open(self, meta_client: MetaClientView, **_: Any) -> FormatCommit:
        """The present state."""
        return opened(self.database(meta_client))

    def rebuild(
        self, meta_client: MetaClientView, view_manager: FileSystemViewManager
    ) -> FormatCommit:
        """A state of the present files, older ones kept."""
        return made(meta_client, self.database(meta_client), view_manager)

    def close(self) -> None:
        """Give the connections back."""
        if self._database is not None:
            self._database.close()

    def find_publication(self, meta_client: MetaClientView, instant: Instant) -> Publication | None:
        """An instant is published when the database has it."""
        return read_state(self.database(meta_client)).publication(instant)

    def get_conflict_resolution_strategy(self, **_: Any) -> TouchConflicts:
        """File groups: writes of different ones can both commit."""
        return TouchConflicts(Granularity.FILE_GROUP)

    def complete_write(
        self,
        meta_client: MetaClientView,
        commit_metadata: CommitMetadata,
        instant: Instant,
        write_statuses: Sequence[WriteStatus],
        expected_version: str | None,
        **_: Any,
    ) -> FormatCommit:
        """Add new files and end old ones, in one transaction."""
        what = Record(
            instant,
            expected_version,
            commit_metadata.operation_type,
            change_of_write(meta_client, commit_metadata, write_statuses),
            commit_metadata.schema_json,
        )
        return record(self.database(meta_client), what)

    def complete_clustering(
        self,
        meta_client: MetaClientView,
        replace_commit_metadata: ReplaceCommitMetadata,
        instant: Instant,
        write_statuses: Sequence[WriteStatus],
        expected_version: str | None,
        **_: Any,
    ) -> FormatCommit:
        """Replace files as a write does."""
        return self.complete_write(
            meta_client, replace_commit_metadata, instant, write_statuses, expected_version
        )

    def complete_schema_change(
        self,
        meta_client: MetaClientView,
        commit_metadata: CommitMetadata,
        instant: Instant,
        expected_version: str | None,
        **_: Any,
    ) -> FormatCommit:
        """A state with the new columns."""
        what = Record(
            instant,
            expected_version,
            commit_metadata.operation_type,
            columns=commit_metadata.schema_json,
        )
        return record(self.database(meta_client), what)

    def before_clean(self, meta_client: MetaClientView, clean_plan: CleanerPlan, **_: Any) -> None:
        """Forget the files that go, and states with them."""
        stop_naming(self.database(meta_client), clean_plan)

    def complete_clean(
        self, meta_client: MetaClientView, instant: Instant, expected_version: str | None, **_: Any
    ) -> FormatCommit:
        """A state that holds the instant."""
        return record(self.database(meta_client), Record(instant, expected_version))

    def archive_instants(
        self,
        meta_client: MetaClientView,
        archived_instants: Sequence[Instant],
        expected_version: str | None,
        **_: Any,
    ) -> None:
        """The watermark rises, and the instants below it go."""
        forget(self.database(meta_client), meta_client, archived_instants, expected_version)

    def before_rollback(
        self, meta_client: MetaClientView, instant: Instant, expected_version: str | None, **_: Any
    ) -> None:
        """Go back before the target, or fence it off."""
        take_back(self.database(meta_client), instant, expected_version)

    def complete_rollback(
        self, meta_client: MetaClientView, instant: Instant, expected_version: str | None, **_: Any
    ) -> FormatCommit:
        """A state that holds the instant, without the files that are deleted."""
        what = Record(instant, expected_version, is_undo=True)
        return record(self.database(meta_client), what)

    def complete_savepoint(
        self, meta_client: MetaClientView, instant: Instant, expected_version: str | None, **_: Any
    ) -> FormatCommit:
        """A state that holds the savepoint."""
        return record(self.database(meta_client), Record(instant, expected_version))

    def complete_delete_savepoint(
        self, meta_client: MetaClientView, instant: Instant, expected_version: str | None, **_: Any
    ) -> FormatCommit:
        """A state without the savepoint."""
        return unsave(self.database(meta_client), instant, expected_version)

    def check_restore(
        self, meta_client: MetaClientView, restore_plan: RestorePlan, **_: Any
    ) -> None:
        """Refuse where the files of the state are not kept any more."""
        require_restorable(self.database(meta_client), restore_plan)

    def before_restore(
        self,
        meta_client: MetaClientView,
        restore_plan: RestorePlan,
        expected_version: str | None,
        **_: Any,
    ) -> None:
        """Go back to the files of the savepoint, in one state."""
        restore(self.database(meta_client), restore_plan, expected_version)

    def complete_restore(
        self, meta_client: MetaClientView, instant: Instant, expected_version: str | None, **_: Any
    ) -> FormatCommit:
        """A state that holds the instant, without the files that are deleted."""
        what = Record(instant, expected_version, is_undo=True)
        return record(self.database(meta_client), what)

    def database(self, meta_client: MetaClientView) -> Database:
        """The database of the table, the same while it is open."""
        if self._database is None:
            self._database = Database(meta_client)
        return self._database


class SqlFactory:
    """Makes the timeline, and what lists the table's files."""

    def __init__(self, plugin: SqlTableFormat) -> None:
        self._plugin = plugin

    def active_timeline(self, meta_client: MetaClientView) -> TimelineView:
        """Return the fenced timeline: one listing, and one look into the database."""
        timeline, database = meta_client.timeline(), self._plugin.database(meta_client)
        state = read_state(database)
        state.look_for_foreign(database)
        return fence(timeline, [state])

    def create(self, meta_client: MetaClientView) -> FileIndex:
        """Return the table's file lister, which asks on demand."""
        return SqlLister(meta_client, self._plugin.database(meta_client))
