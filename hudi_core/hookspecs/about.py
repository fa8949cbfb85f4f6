"""Hooks that declare abilities, and refuse what is impossible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hudi_core.config.format_option import FormatOption
from hudi_core.hookspecs.marks import Called, hook
from hudi_core.model.actions import RestorePlan
from hudi_core.model.capability import FormatCapabilities
from hudi_core.model.client import FileSystemViewManager, MetaClientView, TableSettings
from hudi_core.model.commit import CommitMetadata
from hudi_core.model.instant import Instant
from hudi_core.schema.table_schema import TableSchema


class RefusalHooks:
    """Declarations, and checks before anything is written."""

    @hook(is_required=True)
    def get_capabilities(self) -> FormatCapabilities:
        """Declare what the format can do. Required.

        Called once when the plugin is loaded, without lock or table. What is not declared is
        refused by name before the first file is written. Added to RFC-93, whose "Limitations" are
        prose.
        """
        raise NotImplementedError

    @hook()
    def get_options(self) -> Sequence[FormatOption[Any]] | None:
        """Declare the options of the format. Optional.

        Called without lock or table, when an option of the format is given, and to list them. With
        it a value that cannot be used is refused before the first file is written, a name that is
        not declared is warned of with the nearest one, and what is declared as stored stays with
        the table. ``hoodie.table.format.<name>.location`` is known of every format. The options of
        a format without it are passed to it unseen, and none is kept. Added to RFC-93, which leaves
        options to each format.
        """

    @hook()
    def check_schema(
        self, *, settings: TableSettings, schema: TableSchema, before: TableSchema | None
    ) -> None:
        """Refuse columns that the format cannot hold. Optional.

        Called without lock before the first file is written: when a table is made or converted, and
        when rows or a user change its columns. A format without it holds whatever its capabilities
        say. Added to RFC-93, where a column that a format lacks is found out in step 2, when the
        write cannot be taken back any more.

        Parameters
        ----------
        settings
            The table's properties: which columns make the partitions, and how.
        schema
            The columns as they are to be, with field ids; without the meta columns.
        before
            The columns as they are; ``None`` for a new table. What the format cannot change about a
            column (:attr:`~hudi_core.model.capability.FormatCapabilities.promotions`) has been
            refused by then.

        Raises
        ------
        SchemaError
            Names the column and its type.
        """

    @hook(is_fenced=False)
    def check_files(
        self, *, meta_client: MetaClientView, view_manager: FileSystemViewManager
    ) -> None:
        """Refuse a table with data files that the format cannot hold. Optional.

        Called without lock, after :meth:`check_schema`, when a conversion is only planned. What
        ``rebuild`` would refuse about the table's files, it refuses here, and changes nothing.
        Without it the plan of a conversion may promise what the conversion then refuses. Added to
        RFC-93, where tables that have rows are not given a format.

        ``meta_client`` is the table as one of this format. The view is that which ``rebuild`` gets.

        Raises
        ------
        UnsupportedTableError
            Names a file, and what is in the way.
        DataFileError, CorruptMetadataError
            A file is damaged or missing.
        """

    @hook()
    def check_creation(self, *, meta_client: MetaClientView) -> None:
        """Refuse a table whose metadata the format could not make. Optional.

        Called without lock, after :meth:`check_schema` and before the first file is written: when a
        table is created, adopted or converted, and when one of these is only planned. What
        ``create`` or ``rebuild`` would refuse for a reason that can be seen beforehand is refused
        here: the place, options of the format, the settings of the table, a catalog that does not
        answer or that has another table of the name. Changes nothing. Without it such a table is
        refused in ``create``, and what was made of it until then is deleted again. Added to RFC-93,
        where creating a table is left open.

        ``meta_client`` is the table as it is to be. One that is new has an empty timeline, and its
        folder may not exist.

        Raises
        ------
        InvalidOptionError, UnsupportedTableError, SchemaError
            Names what is in the way.
        StorageError
            The place, or the catalog, does not answer.
        """

    @hook()
    def check_write(
        self,
        *,
        meta_client: MetaClientView,
        view_manager: FileSystemViewManager,
        commit_metadata: CommitMetadata,
        instant: Instant,
    ) -> None:
        """Refuse a write that cannot be recorded, before anything completes it. Optional.

        Called under the lock, after the conflict check, before metadata-table commit and step 1;
        changes nothing. What is to be looked for is old damage: a file group that the write
        replaces, and of which the format names no file. Step 2 would fail for ever, or bring rows
        back that were deleted. After an error the write is rolled back. Not called in a replay.
        Added to RFC-93, in which a format hears of a write when it is on the timeline.

        Parameters
        ----------
        commit_metadata, instant
            As in ``complete_write``; the instant is inflight yet.

        Raises
        ------
        CorruptMetadataError
            Names what is missing.
        """

    @hook(since="1.0", last_first=True)
    def check_restore(
        self,
        *,
        meta_client: MetaClientView,
        view_manager: FileSystemViewManager,
        restore_plan: RestorePlan,
    ) -> None:
        """Refuse a restore to a state that is not kept. Optional.

        Called without lock when a restore is only planned. What :meth:`before_restore` would refuse
        about the same plan, it refuses here, and changes nothing. Without it the plan of a restore
        may promise what the restore then refuses. Rollbacks of completed writes ask as well when
        they are only planned. In a table of several formats all are asked, under the lock, before
        the first of them goes back: what one has done and another refuses, only a repair mends.
        Added to RFC-93, where nothing is planned.

        ``restore_plan`` is the one that ``before_restore`` would get, or names the one write of a
        rollback, and no state to go back to; it is not on the timeline.

        Raises
        ------
        TableServiceError
            As ``before_restore``.
        """


class RefusalCalls:
    """Declarations and checks, as the host has them."""

    get_options: Called[Callable[[], tuple[FormatOption[Any], ...] | None]]
    check_schema: Called[Callable[[TableSettings, TableSchema, TableSchema | None], None]]
    check_files: Called[Callable[[MetaClientView], None]]
    check_creation: Called[Callable[[MetaClientView], None]]
    check_write: Called[Callable[[MetaClientView, CommitMetadata, Instant], None]]
    check_restore: Called[Callable[[MetaClientView, RestorePlan], None]]
