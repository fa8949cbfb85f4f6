"""Hooks of table services: clean, archive, rollback, savepoint, restore."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hudi_core.hookspecs.marks import Called, hook
from hudi_core.hookspecs.writes import B_contra, ChangesFormat, R_co
from hudi_core.model.actions import (
    CleanerPlan,
    CleanMetadata,
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    SavepointMetadata,
)
from hudi_core.model.capability import Capability
from hudi_core.model.client import FileSystemViewManager, MetaClientView
from hudi_core.model.format import FormatCommit
from hudi_core.model.instant import Instant


class ServiceHooks:
    """Table services: before they delete files, and their step 2."""

    @hook(is_required=True)
    def before_clean(
        self,
        *,
        meta_client: MetaClientView,
        view_manager: FileSystemViewManager,
        clean_plan: CleanerPlan,
        instant: Instant,
        expected_version: str | None,
    ) -> None:
        """Stop naming the files that a clean is about to delete. Required.

        Called under the lock when the plan is on the timeline and nothing is deleted yet. A file
        that the current state or a savepoint names is a mistake in the plan: raise. A format that
        gives its readers old states expires those that need such a file, and where it thereby
        forgets instants, it sets the watermark in the same change; one that knows the present state
        alone has nothing to expire, and leaves its watermark. A clean only goes forward: after a
        crash the same plan is given again, with some files gone. Added to RFC-93, whose hook comes
        after the deletion.

        ``instant`` is the inflight clean.
        """
        raise NotImplementedError

    @hook(is_required=True)
    def complete_clean(
        self,
        *,
        meta_client: MetaClientView,
        view_manager: FileSystemViewManager,
        clean_metadata: CleanMetadata,
        instant: Instant,
        expected_version: str | None,
    ) -> FormatCommit:
        """Record a completed clean. Required.

        Called under the lock after the deletion and step 1. A crash before it leaves the clean
        pending publication, and it is replayed; the files are gone either way. RFC-93
        ``completeClean``.
        """
        raise NotImplementedError

    @hook()
    def archive_instants(
        self,
        *,
        meta_client: MetaClientView,
        view_manager: FileSystemViewManager,
        archived_instants: Sequence[Instant],
        expected_version: str | None,
    ) -> None:
        """Expire metadata of instants that left the active timeline. Optional.

        Called under the lock after the archive is written and the instants' files are deleted; they
        are all complete. The watermark is set in the same change as the last of them is forgotten.
        A format may keep any of them, and one without this hook keeps all: they stay complete.
        A crash before it means that these instants are never given again, so the format goes by
        what is on the timeline, not only by this list. RFC-93 ``archiveInstants``.

        ``archived_instants`` are in the order of requested times. Cleans may be among them before
        older writes are: these can still be rolled back, so no watermark may cover them.
        """

    @hook(is_required=True)
    def before_rollback(
        self,
        *,
        meta_client: MetaClientView,
        view_manager: FileSystemViewManager,
        instant: Instant,
        expected_version: str | None,
    ) -> None:
        """Remove an instant from the lineage before its rollback. Required.

        The instant is completed, and its files are not deleted yet.

        Called under the lock when the rollback's plan is on the timeline and the target had reached
        step 1; nothing is deleted yet. Where the lineage holds the target, the format goes back to
        the files of before. Where it does not, the format makes a new state that changes nothing: a
        request for step 2 that is still travelling then fails its compare-and-set. From then on the
        format takes the target never again (``IncompleteCommitError``). Idempotent: called again
        after a crash. Refuses (``TableServiceError``), having changed nothing, when later instants
        build on the target, or the watermark alone covers it, so that the files of before are not
        known; a plan made just now is removed then. Added to RFC-93, whose hook comes after the
        deletion.

        Called before there is a plan for a target that is pending publication and cannot be
        published: it is only to be fenced off. Where the lineage holds it by now, its writer may
        have been informed: nothing is changed then, and the caller, who looks again with
        :meth:`find_publication`, leaves it alone.

        ``instant`` is the target: completed; or inflight with a completion time, as the fenced
        timeline has what is pending publication, where it is only to be fenced off.
        """
        raise NotImplementedError

    @hook(is_required=True)
    def complete_rollback(
        self,
        *,
        meta_client: MetaClientView,
        view_manager: FileSystemViewManager,
        rollback_metadata: RollbackMetadata,
        instant: Instant,
        expected_version: str | None,
    ) -> FormatCommit:
        """Record a completed rollback. Required.

        Called under the lock after the deletion and step 1, before the target's own timeline files
        go. Not called for the rollbacks inside a restore. A crash before it leaves the rollback
        pending publication, and it is replayed. RFC-93 ``completeRollback``.

        ``instant`` is the completed rollback; its metadata names the target.
        """
        raise NotImplementedError

    @hook(needed_by=[Capability.SAVEPOINT])
    def complete_savepoint(
        self,
        *,
        meta_client: MetaClientView,
        view_manager: FileSystemViewManager,
        savepoint_metadata: SavepointMetadata,
        instant: Instant,
        expected_version: str | None,
    ) -> FormatCommit:
        """Pin the state of a commit. Required by ``savepoint``.

        Called under the lock after step 1. What is kept is the format's own state of that commit:
        its lineage says which files that are, and ``savepoint_metadata``, which another engine may
        have written, names them for the Hudi timeline. A crash before it leaves a savepoint that is
        none yet; it is replayed. Added to RFC-93, which asks formats to "restore to previous
        commits".

        ``instant`` is the completed savepoint; it has the requested time of the commit it keeps.
        """
        raise NotImplementedError

    @hook(needed_by=[Capability.SAVEPOINT], last_first=True)
    def complete_delete_savepoint(
        self,
        *,
        meta_client: MetaClientView,
        view_manager: FileSystemViewManager,
        instant: Instant,
        expected_version: str | None,
    ) -> FormatCommit:
        """Unpin the state of a savepoint. Required by ``savepoint``.

        Called under the lock once the savepoint's completed file has left the timeline, before its
        pending files do: it keeps nothing any more. A crash before it, or after it, leaves a
        pending savepoint, and the next action calls it again. So it has no effect where the format
        does not hold the savepoint, also where that never was complete. Added to RFC-93.

        ``instant`` is the savepoint that goes, inflight and without a completion time; it has the
        requested time of the commit that it kept.
        """
        raise NotImplementedError

    @hook(needed_by=[Capability.RESTORE])
    def before_restore(
        self,
        *,
        meta_client: MetaClientView,
        view_manager: FileSystemViewManager,
        restore_plan: RestorePlan,
        instant: Instant,
        expected_version: str | None,
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
        raise NotImplementedError

    @hook(needed_by=[Capability.RESTORE])
    def complete_restore(
        self,
        *,
        meta_client: MetaClientView,
        view_manager: FileSystemViewManager,
        restore_metadata: RestoreMetadata,
        instant: Instant,
        expected_version: str | None,
    ) -> FormatCommit:
        """Record a completed restore. Required by ``restore``.

        Called under the lock after all rollbacks and step 1. A crash before it leaves the restore
        pending publication, and it is replayed. Added to RFC-93.
        """
        raise NotImplementedError


class Takes(Protocol[B_contra, R_co]):
    """Takes instants out, or forgets them."""

    def __call__(
        self, meta_client: MetaClientView, what: B_contra, expected_version: str | None = None, /
    ) -> R_co: ...


class ServiceCalls:
    """Table services, as the host has them."""

    before_clean: Called[ChangesFormat[CleanerPlan, None]]
    complete_clean: Called[ChangesFormat[CleanMetadata, FormatCommit]]
    archive_instants: Called[Takes[Sequence[Instant], None]]
    before_rollback: Called[Takes[Instant, None]]
    complete_rollback: Called[ChangesFormat[RollbackMetadata, FormatCommit]]
    complete_savepoint: Called[ChangesFormat[SavepointMetadata, FormatCommit]]
    complete_delete_savepoint: Called[Takes[Instant, FormatCommit]]
    before_restore: Called[ChangesFormat[RestorePlan, None]]
    complete_restore: Called[ChangesFormat[RestoreMetadata, FormatCommit]]
