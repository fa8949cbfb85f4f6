"""The contract between writer and table format (RFC-93), as pluggy hooks.

**Complete.** Every action of a table becomes complete in two steps: the completed file is put on
the Hudi timeline (step 1), then the format records the instant in its own metadata (step 2: a
``complete_*`` hook). An instant is complete when both have happened, and the format's *current
lineage* (not its log of everything that ever was) is what counts. What only step 1 has reached is
*pending publication*: no fenced reader sees it, and the next writer calls the hook again.

**A plugin** is an object, or a class without arguments to make one, behind an entry point of the
group ``hudi.table_formats``. Its methods carry :data:`hookimpl` and may leave out arguments that
they do not need. One plugin serves many tables: it keeps no state of a table between calls.

**What every hook may rely on**, unless its own text says otherwise:

* ``meta_client`` is the open table. Its timeline is the Hudi timeline without a fence.
  ``view_manager`` gives file slices; by default those of the fenced timeline, so what the format
  names now.
* ``instant`` carries both times as 17 digits, UTC, milliseconds. Paths are relative to the base
  path.
* Metadata values are frozen, and belong to everybody: their mappings must not be changed.
* "Lock" means the table's lock, held by the caller. A lease may run out under its holder, so the
  lock alone is no fence: what a hook changes it changes by compare-and-set on the state it has read
  under that lock; for commits, on the one recorded in them under ``hudi.format-parent``. Automatic
  retry of the format's library is off.

**What every hook owes**, unless its own text says otherwise:

* A ``complete_*`` hook records ``hudi.instant``, ``hudi.action``, ``hudi.operation`` and
  ``hudi.completion-time``, also when the action changed nothing: otherwise it never becomes
  complete.
* It is idempotent by requested time and action. It first looks whether the lineage holds the
  instant, and then returns the receipt that was due: recovery replays hooks, and a lost answer is
  not a failure.
* It returns a :class:`~hudi_core.model.format.FormatCommit`; ``None`` is a breach of contract.
* It raises when it has not recorded the instant: ``CommitConflictError`` when another writer was
  first, ``IncompleteCommitError`` when it never will, because the instant was taken out of the
  lineage or the catalog refuses it, ``CommitStateUnknownError`` when the outcome is open. After
  *any* error the caller asks :meth:`TableFormatHooks.find_publication`, and calls the hook again
  where that is of use; no error is believed to mean that nothing has happened.

**What hooks return** (factories and what they make, locks, strategies) is called in the same way:
errors of the project pass to the caller as they are; any other becomes a ``PluginHookError``, once.
A result of another kind than the contract says is a ``PluginContractError``; so is a listing
without a partition that was asked for, and one without any file of a partition in which, by the
table's own metadata, a complete write has left rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from pluggy import HookimplMarker, HookspecMarker

from hudi_core.config.format_option import FormatOption
from hudi_core.model import actions
from hudi_core.model.capability import FormatCapabilities
from hudi_core.model.client import FileSystemViewManager, MetaClientView, TableSettings
from hudi_core.model.commit import CommitMetadata, ReplaceCommitMetadata, WriteStatus
from hudi_core.model.format import (
    ConflictResolutionStrategy,
    FormatCommit,
    MetadataFactory,
    Publication,
    TimelineFactory,
)
from hudi_core.model.found_table import FoundTable
from hudi_core.model.instant import Instant
from hudi_core.model.protocols import LockProvider
from hudi_core.model.registration import Registration
from hudi_core.schema.table_schema import TableSchema

PROJECT = "hudi"

hookspec = HookspecMarker(PROJECT)
hookimpl = HookimplMarker(PROJECT)
"""Marks a method as the implementation of the hook of that name."""


class TableFormatHooks(Protocol):
    """Every hook of a table format.

    At most one plugin, the table's format, answers each.
    """

    # --- the format and its metadata -------------------------------------------------------------

    @hookspec(firstresult=True)
    def get_capabilities(self) -> FormatCapabilities:
        """Declare what the format can do. Required.

        Called once when the plugin is loaded, without lock or table. What is not declared is
        refused by name before the first file is written. Added to RFC-93, whose "Limitations" are
        prose.
        """

    @hookspec(firstresult=True)
    def get_options(self) -> Sequence[FormatOption[Any]]:
        """Declare the options of the format. Optional.

        Called without lock or table, when an option of the format is given, and to list them. With
        it a value that cannot be used is refused before the first file is written, a name that is
        not declared is warned of with the nearest one, and what is declared as stored stays with
        the table. ``hoodie.table.format.<name>.location`` is known of every format. The options of
        a format without it are passed to it unseen, and none is kept. Added to RFC-93, which leaves
        options to each format.
        """

    @hookspec(firstresult=True)
    def initialize(
        self,
        meta_client: MetaClientView,
        view_manager: FileSystemViewManager,
        create: bool,
        rebuild: bool,
    ) -> FormatCommit:
        """Create or open the format's metadata. Required.

        Called under the lock: when a table is created, adopted or converted, before its properties
        say so; and at the start of every action, after recovery, before anything is written. The
        version in the receipt is the state on which step 2 of that action will be compared and set.
        Idempotent; a crash before or after it loses nothing: what repeats the action that died
        calls it again, for a new table in a folder from which all files are deleted first. Added to
        RFC-93, which has nobody create the metadata.

        Parameters
        ----------
        create
            Whether absent metadata is created, with all slices of the view and a watermark at the
            last completed instant. If false, absent metadata is damage: ``CorruptMetadataError``.
            The view is then that of the Hudi timeline without a fence, over the metadata table or
            the table's folders: no metadata of the format is read.
        rebuild
            With ``create``: whether metadata that is there, damaged, of an earlier time as this
            format, or with commits of another writer, gives way to what an absent one would become.
            For a new table, a conversion and a repair, which may be repeated after a crash at any
            point; a format that declares ``CONVERSION`` must heed it, others are not asked to.

        Returns
        -------
        FormatCommit
            The state found or made, and where the metadata is.

        Raises
        ------
        UnsupportedTableError
            The table is of a kind the format cannot hold, beyond what capabilities say.
        """

    @hookspec(firstresult=True)
    def check_schema(
        self, settings: TableSettings, schema: TableSchema, before: TableSchema | None
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

    @hookspec(firstresult=True)
    def check_files(self, meta_client: MetaClientView, view_manager: FileSystemViewManager) -> None:
        """Refuse a table with data files that the format cannot hold. Optional.

        Called without lock, after :meth:`check_schema`, when a conversion is only planned. What
        :meth:`initialize` would refuse about the table's files, it refuses here, and changes
        nothing. Without it the plan of a conversion may promise what the conversion then refuses.
        Added to RFC-93, where tables that have rows are not given a format.

        ``meta_client`` is the table as one of this format. The view is that which ``initialize``
        gets.

        Raises
        ------
        UnsupportedTableError
            Names a file, and what is in the way.
        DataFileError, CorruptMetadataError
            A file is damaged or missing.
        """

    @hookspec(firstresult=True)
    def check_creation(self, meta_client: MetaClientView) -> None:
        """Refuse a table whose metadata the format could not make. Optional.

        Called without lock, after :meth:`check_schema` and before the first file is written: when a
        table is created, adopted or converted, and when one of these is only planned. What
        :meth:`initialize` would refuse for a reason that can be seen beforehand is refused here:
        the place, options of the format, the settings of the table, a catalog that does not answer
        or that has another table of the name. Changes nothing. Without it such a table is refused
        in :meth:`initialize`, and what was made of it until then is deleted again. Added to RFC-93,
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

    @hookspec(firstresult=True)
    def get_metadata_folders(self, meta_client: MetaClientView) -> tuple[str, ...]:
        """Name the table's folders with metadata of the format. Optional.

        Called under the lock, before :meth:`initialize` makes a new table, with the table as it is
        to be. Where its creator dies, whoever creates a table there deletes these folders and
        ``.hoodie``, and refuses any other file. Without it the format has none: what it makes
        elsewhere in the folder stands in the way then. Called also to validate and repair a table,
        whose checksum files of Hadoop are looked for there. Added to RFC-93, where creating a table
        is left open.

        Returns
        -------
        tuple
            Their paths, relative to the table.
        """

    @hookspec(firstresult=True)
    def get_registration(self, meta_client: MetaClientView) -> Registration:
        """Say how metastores know the table. Optional.

        Called without lock, when a table is registered in a metastore, by itself or after a commit;
        changes nothing. Called also before a table is made whose commits are to be followed by
        that, perhaps in the place of another one: its metadata may be missing then, which is the
        error below. Tables of a format without it cannot be registered. Added to RFC-93, where a
        table is found by its path.

        Returns
        -------
        Registration
            Of the present state, as readers of the format expect it in a Hive metastore.

        Raises
        ------
        CorruptMetadataError
            The format's metadata is damaged, or not there.
        """

    @hookspec(firstresult=True)
    def find_table(self, meta_client: MetaClientView) -> FoundTable | None:
        """Find a foreign table of this format, not Hudi's. Optional.

        Called without lock, before there is a Hudi table, when a folder is to be adopted; changes
        nothing. ``meta_client`` has an empty timeline, and of its settings the format alone. Tables
        of a format without it cannot be adopted. Added to RFC-93, which covers new tables only.

        Returns
        -------
        FoundTable or None
            The present state; ``None`` where the folder holds no table of this format.

        Raises
        ------
        UnsupportedTableError
            There is one, with something that its data files alone do not show, such as deleted
            rows; names it.
        CorruptMetadataError
            Its metadata is damaged.
        """

    @hookspec(firstresult=True)
    def find_publication(self, meta_client: MetaClientView, instant: Instant) -> Publication | None:
        """Whether the format's current lineage holds ``instant``. Required.

        Called under the lock: before a ``complete_*`` hook is replayed, after one failed, and
        before a rollback deletes anything; also by ``validate``, without the lock. Reads the
        format's metadata again and changes nothing. Added to RFC-93: without it neither replay nor
        a lost answer can be decided.

        Parameters
        ----------
        instant
            Any state; its requested time and the action as which it completes identify it.

        Returns
        -------
        Publication or None
            ``None``: the instant is not complete in the format. An instant up to the watermark that
            the format has forgotten is complete, with the watermark's version and ``is_expired``.
        """

    @hookspec(firstresult=True)
    def get_timeline_factory(self) -> TimelineFactory:
        """Factory of the timeline as the format sees it. Required.

        Called without lock, for every reader, planner, cleaner and archiver. RFC-93
        ``getTimelineFactory``.
        """

    @hookspec(firstresult=True)
    def get_metadata_factory(self) -> MetadataFactory:
        """Factory of the index of files that the format's metadata names. Required.

        Called without lock when a table is opened. RFC-93 ``getMetadataFactory``.
        """

    @hookspec(firstresult=True)
    def get_lock_provider(
        self, meta_client: MetaClientView, lock_options: Mapping[str, str]
    ) -> LockProvider | None:
        """Return the lock that the format's catalog offers. Optional.

        Called when a table is opened for writing, or is about to be created (see
        :meth:`check_creation`), and ``hoodie.write.lock.provider`` is not given. It is held in
        addition to the lock that suits the table's place. A lock that does not
        exclude other processes is not used; like ``None``, it leaves the table with a lock in its
        store. Where it has a method ``owner()``, waiting writers say whom they wait for. RFC-93
        ``getLockProvider``.

        Parameters
        ----------
        lock_options
            The options under ``hoodie.write.lock.``, without that prefix.
        """

    @hookspec(firstresult=True)
    def get_conflict_resolution_strategy(
        self, meta_client: MetaClientView
    ) -> ConflictResolutionStrategy | None:
        """Return how the format decides whether two concurrent actions conflict. Optional.

        Called when a table is opened for writing. ``None``: two writes conflict when they touch one
        file group, which they do in every format: a strategy can be stricter, not laxer. It is
        asked under the lock, before step 1 and before a replay, on the fenced timeline. RFC-93
        ``getConflictResolutionStrategyClassName``; an object, for a class named by a table
        is code that the table chooses.
        """

    # --- writes ----------------------------------------------------------------------------------

    @hookspec(firstresult=True)
    def check_write(
        self,
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
            As in :meth:`complete_write`; the instant is inflight yet.

        Raises
        ------
        CorruptMetadataError
            Names what is missing.
        """

    @hookspec(firstresult=True)
    def complete_write(
        self,
        meta_client: MetaClientView,
        view_manager: FileSystemViewManager,
        commit_metadata: CommitMetadata,
        instant: Instant,
        write_statuses: Sequence[WriteStatus],
    ) -> FormatCommit:
        """Record a completed write. Required.

        Called once per commit, under the lock, after conflict check, metadata-table commit and step
        1. A crash before it leaves the write pending publication: readers see the old state in
        every view, and the next writer replays it. A crash after it leaves a complete write that
        was not acknowledged. RFC-93 ``completeWrite``.

        Parameters
        ----------
        commit_metadata
            The body of the completed instant: files with rows and bytes, the schema it leaves, and
            for insert_overwrite and delete_partition (``ReplaceCommitMetadata``) the groups it
            removes.
        instant
            Completed; ``commit``, ``deltacommit`` or ``replacecommit``.
        write_statuses
            The same files with column statistics, so that no footer is read again. Empty in a
            replay: the format then takes the statistics from the footers.
        """

    @hookspec(firstresult=True)
    def complete_clustering(
        self,
        meta_client: MetaClientView,
        view_manager: FileSystemViewManager,
        replace_commit_metadata: ReplaceCommitMetadata,
        instant: Instant,
        write_statuses: Sequence[WriteStatus],
    ) -> FormatCommit:
        """Record a completed clustering. Required by ``clustering``.

        It puts the same rows into other files.

        When, lock, crash and arguments as for :meth:`complete_write`, with operation ``CLUSTER``.
        The groups that the metadata names as replaced stay visible until this hook returns: the
        format makes one replacement, and does not count it as a change of data. RFC-93
        ``completeClustering``.
        """

    @hookspec(firstresult=True)
    def complete_schema_change(
        self,
        meta_client: MetaClientView,
        view_manager: FileSystemViewManager,
        commit_metadata: CommitMetadata,
        instant: Instant,
    ) -> FormatCommit:
        """Record a schema change without rows. Required by any schema evolution.

        When, lock and crashes as for :meth:`complete_write`. Columns are matched by field id, never
        by name. Added to RFC-93, where such a change reaches the format with the next write.

        ``commit_metadata`` names no files; its ``schema_json`` is the new Avro schema with field
        ids. ``instant`` is a completed ``commit``.
        """

    # --- clean and archive -----------------------------------------------------------------------

    @hookspec(firstresult=True)
    def before_clean(
        self,
        meta_client: MetaClientView,
        view_manager: FileSystemViewManager,
        clean_plan: actions.CleanerPlan,
        instant: Instant,
    ) -> None:
        """Stop naming the files that a clean is about to delete. Required.

        Called under the lock when the plan is on the timeline and nothing is deleted yet. Old
        states that need such a file are expired first, with the watermark set in the same change. A
        file that the current state or a savepoint names is a mistake in the plan: raise. A clean
        only goes forward: after a crash the same plan is given again, with some files gone. Added
        to RFC-93, whose hook comes after the deletion.

        ``instant`` is the inflight clean.
        """

    @hookspec(firstresult=True)
    def complete_clean(
        self,
        meta_client: MetaClientView,
        view_manager: FileSystemViewManager,
        clean_metadata: actions.CleanMetadata,
        instant: Instant,
    ) -> FormatCommit:
        """Record a completed clean. Required.

        Called under the lock after the deletion and step 1. A crash before it leaves the clean
        pending publication, and it is replayed; the files are gone either way. RFC-93
        ``completeClean``.
        """

    @hookspec(firstresult=True)
    def archive_instants(
        self,
        meta_client: MetaClientView,
        view_manager: FileSystemViewManager,
        archived_instants: Sequence[Instant],
    ) -> None:
        """Expire metadata of instants that left the active timeline. Required.

        Called under the lock after the archive is written and the instants' files are deleted; they
        are all complete. The watermark is set in the same change as the last of them is forgotten.
        A crash before it means that these instants are never given again, so the format goes by
        what is on the timeline, not only by this list. RFC-93 ``archiveInstants``.

        ``archived_instants`` are in the order of requested times.
        """

    # --- rollback --------------------------------------------------------------------------------

    @hookspec(firstresult=True)
    def before_rollback(
        self, meta_client: MetaClientView, view_manager: FileSystemViewManager, instant: Instant
    ) -> None:
        """Remove an instant from the lineage before its rollback. Required.

        The instant is completed, and its files are not deleted yet.

        Called under the lock when the rollback's plan is on the timeline and the target had reached
        step 1; nothing is deleted yet. Where the lineage holds the target, the format goes back to
        the files of before. Where it does not, the format makes a new state that changes nothing: a
        request for step 2 that is still travelling then fails its compare-and-set. From then on the
        format takes the target never again (``IncompleteCommitError``). Idempotent: called again
        after a crash. Refuses (``TableServiceError``), having changed nothing, when later instants
        build on the target; a plan made just now is removed then. Added to RFC-93, whose hook comes
        after the deletion.

        Called before there is a plan for a target that is pending publication and cannot be
        published: it is only to be fenced off. Where the lineage holds it by now, its writer may
        have been informed: nothing is changed then, and the caller, who looks again with
        :meth:`find_publication`, leaves it alone.

        ``instant`` is the target: completed; or inflight with a completion time, as the fenced
        timeline has what is pending publication, where it is only to be fenced off.
        """

    @hookspec(firstresult=True)
    def complete_rollback(
        self,
        meta_client: MetaClientView,
        view_manager: FileSystemViewManager,
        rollback_metadata: actions.RollbackMetadata,
        instant: Instant,
    ) -> FormatCommit:
        """Record a completed rollback. Required.

        Called under the lock after the deletion and step 1, before the target's own timeline files
        go. Not called for the rollbacks inside a restore. A crash before it leaves the rollback
        pending publication, and it is replayed. RFC-93 ``completeRollback``.

        ``instant`` is the completed rollback; its metadata names the target.
        """

    # --- savepoint and restore -------------------------------------------------------------------

    @hookspec(firstresult=True)
    def complete_savepoint(
        self,
        meta_client: MetaClientView,
        view_manager: FileSystemViewManager,
        savepoint_metadata: actions.SavepointMetadata,
        instant: Instant,
    ) -> FormatCommit:
        """Pin the state of a commit. Required by ``savepoint``.

        Called under the lock after step 1. A crash before it leaves a savepoint that is none yet;
        it is replayed. Added to RFC-93, which asks formats to "restore to previous commits".

        ``instant`` is the completed savepoint; it has the requested time of the commit it keeps.
        """

    @hookspec(firstresult=True)
    def complete_delete_savepoint(
        self, meta_client: MetaClientView, view_manager: FileSystemViewManager, instant: Instant
    ) -> FormatCommit:
        """Unpin the state of a savepoint. Required by ``savepoint``.

        Called under the lock before the savepoint's files leave the timeline: a crash in between
        leaves a savepoint on the Hudi timeline only, which is deleted again. Added to RFC-93.

        ``instant`` is the completed savepoint that goes.
        """

    @hookspec(firstresult=True)
    def before_restore(
        self,
        meta_client: MetaClientView,
        view_manager: FileSystemViewManager,
        restore_plan: actions.RestorePlan,
        instant: Instant,
    ) -> None:
        """Return to the savepoint before a restore. Required by ``restore``.

        No file is deleted yet.

        Called under the lock when the plan is on the timeline, once for the whole restore: one
        change of the format, however many instants it takes out. A restore only goes forward: after
        a crash the same plan is given again. Refuses (``TableServiceError``), having changed
        nothing, when the format does not keep that state; a plan made just now is removed then.
        Added to RFC-93.

        ``instant`` is the inflight restore.
        """

    @hookspec(firstresult=True)
    def complete_restore(
        self,
        meta_client: MetaClientView,
        view_manager: FileSystemViewManager,
        restore_metadata: actions.RestoreMetadata,
        instant: Instant,
    ) -> FormatCommit:
        """Record a completed restore. Required by ``restore``.

        Called under the lock after all rollbacks and step 1. A crash before it leaves the restore
        pending publication, and it is replayed. Added to RFC-93.
        """
