"""Hooks over a format's metadata as a whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hudi_core.hookspecs.marks import Called, hook
from hudi_core.model.capability import Capability
from hudi_core.model.client import FileSystemViewManager, MetaClientView
from hudi_core.model.format import (
    ConflictResolutionStrategy,
    FormatCommit,
    MetadataFactory,
    Publication,
    Registration,
    TimelineFactory,
)
from hudi_core.model.found_table import FoundTable
from hudi_core.model.instant import Instant
from hudi_core.model.protocols import LockProvider


class MetadataHooks:
    """The format's metadata: made, opened, read, closed."""

    @hook(is_required=True, since="1.0", is_fenced=False)
    def create(
        self, *, meta_client: MetaClientView, view_manager: FileSystemViewManager
    ) -> FormatCommit:
        """Make the metadata of a new table. Required.

        Called under the lock, before the properties make the folder a table, and after the files
        are deleted that a creator left who died. So the table has no instant, and what is there
        under its name in a catalog, of such a creator or of a table that was dropped, gives way. A
        crash before or after it loses nothing: who creates a table there calls it again. Added to
        RFC-93, in which no hook creates the metadata.

        Returns
        -------
        FormatCommit
            The state that was made, and where the metadata is.

        Raises
        ------
        UnsupportedTableError
            The table is of a kind the format cannot hold, beyond what capabilities say.
        """
        raise NotImplementedError

    @hook(is_required=True, since="1.0")
    def open(
        self, *, meta_client: MetaClientView, view_manager: FileSystemViewManager
    ) -> FormatCommit:
        """Open the format's metadata, and say in which state it is. Required.

        Called under the lock at the start of every action, after recovery, before anything is
        written, and whenever a change is about to be decided: the version in the receipt is what
        the changing hook then gets as ``expected_version``. Also called by ``validate``, without
        the lock. Changes nothing, so that a crash means nothing. Added to RFC-93, in which no hook
        opens the metadata.

        Returns
        -------
        FormatCommit
            The present state, and where the metadata is.

        Raises
        ------
        CorruptMetadataError
            The metadata is gone or damaged. It is never made here.
        ForeignCommitError
            A writer that knows nothing of Hudi has committed to it: nothing may be built on it. The
            error names its commits and the present state. Reads go on with Hudi's state, and warn
            of it (``warn_of_foreign_commits``); a repair counts rows and files by
            :meth:`~hudi_core.model.file_index.FileIndex.named_files`, and asks what is to become
            of them.
        """
        raise NotImplementedError

    @hook(needed_by=[Capability.CONVERSION], since="1.0", is_fenced=False)
    def rebuild(
        self, *, meta_client: MetaClientView, view_manager: FileSystemViewManager
    ) -> FormatCommit:
        """Make the metadata of a table that has rows. Required by ``conversion``.

        Called under the lock: by a conversion, an adoption, a move of the data files and a purge,
        before the table's properties say so, and by a repair. Metadata that is there, damaged, of
        an earlier time as this format, or with commits of another writer, gives way. Idempotent; a
        crash before or after it loses nothing: what repeats the action that died calls it again.
        Added to RFC-93, where tables that have rows are not given a format.

        The new state names the *latest slices*, ``view_manager.view().latest_slices()``: all that a
        reader of the present state sees. Older slices and replaced groups are in no state of the
        format; its lister (:class:`~hudi_core.model.file_index.FileIndex`) has them all the same,
        from ``table_lister`` where the format does not know them. The watermark of the new state is
        the completion time of the last completed instant. The view is that of the Hudi timeline
        without a fence, over the metadata table or the table's folders: no metadata of the format
        is read.

        Returns
        -------
        FormatCommit
            The state that was made, and where the metadata is.

        Raises
        ------
        UnsupportedTableError
            The table is of a kind the format cannot hold, beyond what capabilities say.
        """
        raise NotImplementedError

    @hook(since="1.0")
    def close(self) -> None:
        """Give back what the format holds of an open table. Optional.

        Called without lock, once, when the table is closed, or when it is garbage; no
        other hook is called afterwards. It may be called in another thread than the hooks. The
        process may die without it, so that nothing must depend on it. An error of it fails the
        closing of the table alone. Added to RFC-93, where a format holds nothing.
        """

    @hook(is_required=True)
    def find_publication(
        self, *, meta_client: MetaClientView, instant: Instant
    ) -> Publication | None:
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
            the format has forgotten is complete, with the watermark's version and ``is_expired``;
            whether it was rolled back meanwhile, the Hudi timeline says. So the lineage alone may
            answer: a format need not remember what ``before_rollback`` took out once the watermark
            has passed it, and one that does may say ``None``.
        """
        raise NotImplementedError

    @hook(is_required=True)
    def get_timeline_factory(self) -> TimelineFactory:
        """Factory of the timeline as the format sees it. Required.

        Called without lock, for every reader, planner, cleaner and archiver. RFC-93
        ``getTimelineFactory``.
        """
        raise NotImplementedError

    @hook(is_required=True)
    def get_metadata_factory(self) -> MetadataFactory:
        """Factory of the index of files that the format's metadata names. Required.

        Called without lock when a table is opened. RFC-93 ``getMetadataFactory``.
        """
        raise NotImplementedError

    @hook()
    def get_metadata_folders(self, *, meta_client: MetaClientView) -> tuple[str, ...] | None:
        """Name the table's folders with metadata of the format. Optional.

        Called under the lock, before :meth:`create` makes a new table, with the table as it is
        to be. Where its creator dies, the next creator of a table there deletes these folders and
        ``.hoodie``, and refuses any other file. Without it the format has none: what it makes
        elsewhere in the folder is in the way then. Called also to validate and repair a table,
        whose checksum files of Hadoop are looked for there. Added to RFC-93, where creating a table
        is left open.

        Returns
        -------
        tuple
            Their paths, relative to the table.
        """

    @hook()
    def get_registration(self, *, meta_client: MetaClientView) -> Registration | None:
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

    @hook()
    def find_table(self, *, meta_client: MetaClientView) -> FoundTable | None:
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

    @hook()
    def get_lock_provider(
        self, *, meta_client: MetaClientView, lock_options: Mapping[str, str]
    ) -> LockProvider | None:
        """Return the lock that the format's catalog offers. Optional.

        Called when a table is opened for writing, by one writer or by several, or is about to be
        created (see ``check_creation``), and ``hoodie.write.lock.provider`` is not given. It is
        held in addition to the lock that suits the table's place. A lock that does not exclude
        other processes is not used; like ``None``, it leaves the table with a lock in its store.
        An error of it is an error of the action, before anything is written. ``try_lock`` may be
        asked to wait for as long as ``hoodie.write.lock.wait_time_ms`` says, in any thread of the
        process, and is asked again a number of times. Where it has a method ``owner()``, waiting
        writers say whom they wait for. RFC-93 ``getLockProvider``.

        Parameters
        ----------
        lock_options
            The options under ``hoodie.write.lock.``, without that prefix.
        """

    @hook()
    def get_conflict_resolution_strategy(
        self, *, meta_client: MetaClientView
    ) -> ConflictResolutionStrategy | None:
        """Return how the format decides whether two concurrent actions conflict. Optional.

        Called when a table is opened for writing. ``None``: two writes conflict when they touch one
        file group, which they do in every format: a strategy can be stricter, not laxer. It is
        asked under the lock, before step 1 and before a replay, on the fenced timeline. RFC-93
        ``getConflictResolutionStrategyClassName``; an object, for a class named by a table
        is code that the table chooses.
        """


class MetadataCalls:
    """The format's metadata, as the host has it."""

    create: Called[Callable[[MetaClientView], FormatCommit]]
    open: Called[Callable[[MetaClientView], FormatCommit]]
    rebuild: Called[Callable[[MetaClientView], FormatCommit]]
    find_publication: Called[Callable[[MetaClientView, Instant], Publication | None]]
    get_timeline_factory: Called[Callable[[], TimelineFactory]]
    get_metadata_factory: Called[Callable[[], MetadataFactory]]
    get_metadata_folders: Called[Callable[[MetaClientView], tuple[str, ...]]]
    get_registration: Called[Callable[[MetaClientView], Registration | None]]
    find_table: Called[Callable[[MetaClientView], FoundTable | None]]
    get_lock_provider: Called[Callable[[MetaClientView, Mapping[str, str]], LockProvider | None]]
    get_conflict_resolution_strategy: Called[
        Callable[[MetaClientView], ConflictResolutionStrategy | None]
    ]
