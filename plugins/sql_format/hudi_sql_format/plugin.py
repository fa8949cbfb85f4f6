"""Hooks of the format: one state of the database per completed instant.

Step 2 is one transaction, compared and set on the version that was read under the table's lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hudi_core.spi import (
    Action,
    Capability,
    Completion,
    FileIndex,
    FileSystemViewManager,
    FormatCapabilities,
    FormatCommit,
    FormatOption,
    Instant,
    MetaClientView,
    Publication,
    RecordingFormat,
    TimelineView,
    fence,
    passed_on,
)
from hudi_sql_format import undo
from hudi_sql_format.commit import Record, record
from hudi_sql_format.creation import check_files, made, opened
from hudi_sql_format.database import FOLDER, Database, require_place
from hudi_sql_format.files import change_of_write
from hudi_sql_format.lister import SqlLister
from hudi_sql_format.options import OPTIONS
from hudi_sql_format.state import read_state

_PLACES: Final = "the database names files by their paths in the table's folder"
_CAPABILITIES: Final = FormatCapabilities.of(
    Capability.COPY_ON_WRITE,
    Capability.DELETION_VECTORS,
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


class SqlTableFormat(RecordingFormat):
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
        """Base files, and logs of split tables."""
        check_files(meta_client, view_manager)

    # the present state
    open = passed_on(opened)

    def rebuild(
        self, meta_client: MetaClientView, view_manager: FileSystemViewManager
    ) -> FormatCommit:
        """A state of the present files, older ones kept."""
        return made(meta_client, self.metadata_of(meta_client), view_manager)

    create = rebuild  # a state without files

    def close(self) -> None:
        """Give the connections back."""
        if self._database is not None:
            self._database.close()

    def find_publication(self, meta_client: MetaClientView, instant: Instant) -> Publication | None:
        """An instant is published when the database has it."""
        return read_state(self.metadata_of(meta_client)).publication(instant)

    def record(self, completion: Completion) -> FormatCommit:
        """One transaction, which adds new files and ends old ones."""
        client, instant = completion.meta_client, completion.instant
        commit, expected = completion.commit_metadata, completion.expected_version
        if commit is None:
            # the files of what was undone are deleted
            is_undo = instant.action in (Action.ROLLBACK, Action.RESTORE)
            what = Record(instant, expected, is_undo=is_undo)
        else:
            views = completion.view_manager
            change = change_of_write(client, commit, completion.write_statuses, views)
            what = Record(instant, expected, commit.operation_type, change, commit.schema_json)
        return record(self.metadata_of(client), what)

    # forget the files that go, and states with them
    before_clean = passed_on(undo.stop_naming, "clean_plan")

    def archive_instants(
        self,
        meta_client: MetaClientView,
        archived_instants: Sequence[Instant],
        expected_version: str | None,
        **_: Any,
    ) -> None:
        """The watermark rises, and the instants below it go."""
        undo.forget(self.metadata_of(meta_client), meta_client, archived_instants, expected_version)

    # go back before the target, or fence it off
    before_rollback = passed_on(undo.take_back, "instant", "expected_version")
    # a state without the savepoint
    complete_delete_savepoint = passed_on(undo.unsave, "instant", "expected_version")
    # refuse where the files of the state are not kept any more
    check_restore = passed_on(undo.require_restorable, "restore_plan")
    # go back to the files of the savepoint, in one state
    before_restore = passed_on(undo.restore, "restore_plan", "expected_version")

    def metadata_of(self, meta_client: MetaClientView) -> Database:
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
        timeline, database = meta_client.timeline(), self._plugin.metadata_of(meta_client)
        state = read_state(database)
        state.look_for_foreign(database)
        return fence(timeline, [state])

    def create(self, meta_client: MetaClientView) -> FileIndex:
        """Return the table's file lister, which asks on demand."""
        return SqlLister(meta_client, self._plugin.metadata_of(meta_client))
