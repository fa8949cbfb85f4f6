"""One write, or one clustering, from requested to complete.

It begins in :mod:`hudi_core.txn.begin`: under the lock what dead writers left is recovered, and
the instant put on the timeline. Rows are written without it. ``commit`` takes it again: conflict
check, the format's look at what is replaced, files of lost task attempts deleted, the completed
file on the Hudi timeline (step 1), then the format's own commit (step 2). RFC-93, "Commit
Protocol".
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.errors import (
    HudiError,
    StorageError,
)
from hudi_core.metadata.maintenance.services import run_services
from hudi_core.metadata.session import MetadataSession, record_commit
from hudi_core.metadata.state import MetadataState
from hudi_core.model.client import HeldMetadata
from hudi_core.model.commit import CommitMetadata, WriteOperation, WriteStatus
from hudi_core.model.extra_metadata import CommitExtras
from hudi_core.model.files import join_path
from hudi_core.model.format import FormatCommit
from hudi_core.model.instant import PLANNED_ACTIONS, Instant
from hudi_core.model.protocols import TimelineView
from hudi_core.model.result import CommitResult, commit_result
from hudi_core.storage.location import parse_location
from hudi_core.storage.temp_folders import STAGE, temp_folder
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.serde import encode
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn.carried_metadata import with_extras
from hudi_core.txn.commit_errors import aborted, busy, rolled_back, superseded, unknown_outcome
from hudi_core.txn.conflicts import require_no_conflicts
from hudi_core.txn.heartbeat import Heartbeat
from hudi_core.txn.last_hold import LastHold, files_after, instants_at_rest
from hudi_core.txn.markers import LocalAttempts, Markers
from hudi_core.txn.publication import (
    PublicationRejectedError,
    is_two_step,
    parent_of,
    publish_once,
    publish_with_retry,
    with_current_parent,
)
from hudi_core.txn.recovery import rollback
from hudi_core.txn.recovery.roll_forward import ROUNDS, publish, roll_forward_pending
from hudi_core.txn.scheduled import give_up_outdated, schedule_again
from hudi_core.txn.schema_step import SchemaStep, commit_schema
from hudi_core.txn.state import ListedFiles, TableState
from hudi_core.txn.table_lock import TableLock
from hudi_core.view.file_system import FileSystemView

_log = logging.getLogger(__name__)

AfterCommit = Callable[[TableState, TableLock], TableState]
"""Runs table services on a table whose lock is held; returns the table after them."""


CommitCheck = Callable[[OpenTable, TimelineView, CommitMetadata], None]
"""Looks at what a commit would publish on a timeline; raises where it must not complete."""


def no_services(state: TableState, _: TableLock) -> TableState:
    """The table as it is."""
    return state


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit that took place."""

    instant: Instant
    receipt: FormatCommit
    metadata: CommitMetadata

    def result(
        self,
        operation: WriteOperation,
        timings: Mapping[str, float],
        statuses: Sequence[WriteStatus] = (),
    ) -> CommitResult:
        """What its caller gets."""
        return commit_result(
            self.instant,
            operation,
            self.metadata,
            self.receipt,
            timings=timings,
            statuses=statuses,
        )


@dataclass(slots=True)
class Transaction:
    """A write under way; made by :func:`begin`.

    Attributes
    ----------
    instant
        The inflight instant.
    began
        The timeline, fenced by the format, that the write builds on.
    timings
        Seconds by step; filled in as the write goes.
    metadata
        What the options say of the metadata table.
    extras
        What the commit keeps in its extra metadata.
    schema_step
        From which schema to which the write leads.
    after_commit
        The table services that follow the commit, under the same hold of the lock.
    lost
        Paths of files that failed or repeated attempts at tasks left; known once it commits.
    attempts
        The files of its tasks, where they run in this process.
    view
        The table's files that the write builds on, as far as it has listed them.
    known
        What this process leaves of the table, for its next write.
    tables, files
        The metadata table, and files of some partitions, as they were when the write began.
    scheduled
        The plan that stays when this attempt at it fails; ``None`` where nothing stays.
    check
        What else must hold of the commit. It runs before the lock is taken, and again under it
        where another write completed since :attr:`began`.
    """

    table: OpenTable
    lock: TableLock
    instant: Instant
    began: TimelineView
    heartbeat: Heartbeat
    metadata: MetadataConfig
    extras: CommitExtras = field(default_factory=CommitExtras)
    timings: dict[str, float] = field(default_factory=dict)
    schema_step: SchemaStep | None = None
    after_commit: AfterCommit = no_services
    lost: set[str] = field(default_factory=set)
    attempts: LocalAttempts | None = None
    view: FileSystemView | None = None
    known: LastHold | None = None
    tables: MetadataState | None = None
    files: ListedFiles | None = None
    scheduled: bytes | None = None
    check: CommitCheck | None = None
    _may_be_complete: bool = False

    def commit(self, metadata: CommitMetadata, statuses: Sequence[WriteStatus]) -> Committed:
        """Complete the write in timeline and format, or raise.

        Once it is complete, a repetition returns the same.

        Parameters
        ----------
        metadata
            The body of the completed instant, but for what it keeps of :attr:`extras`.
        statuses
            Every file the write counts; all other files that its markers name are deleted first,
            because a foreign reader takes any file of a completed instant.

        Raises
        ------
        AlreadyDoneError
            It is a repetition of a write that took place.
        CommitConflictError
            Another writer changed a file group that this write touches, or the columns of the
            table. Nothing is visible: what was complete already was rolled back.
        CommitValidationError
            A validator refuses the commit. Nothing is visible.
        CorruptMetadataError
            The format's metadata lacks what the write replaces. Nothing is visible.
        IncompleteCommitError
            This write was rolled back by another writer. Nothing is visible.
        LockError
            The lock stays taken, or was lost. Nothing is visible.
        CommitStateUnknownError
            The store or the format failed, and the write may be complete, or may become so. Call
            this again with the same arguments, or leave it to the next writer.
        """
        started = time.monotonic()
        if self.check is not None and not self._may_be_complete:
            self.check(self.table, self.began, metadata)
            self.timings["validate"] = time.monotonic() - started
        with self.lock.held() as hold:
            held = self._newly_held()
            parent = parent_of(self.table.holding(held), self.extras.takes_in)
            # who saw an old sign of life may plan a rollback right after this
            read_at = time.monotonic() if self.heartbeat.is_fresh else -math.inf
            loaded = self._as_begun(TableState.load(self.table, held=held))
            done = self._done(loaded)
            if done is not None:
                hold.is_done = True
                self._cleanup()
                return done
            self._require_pending(loaded.timeline)
            now = roll_forward_pending(loaded)
            for _ in range(ROUNDS):
                if now.state is loaded:
                    break
                # the format has moved on
                held = HeldMetadata()
                parent = parent_of(self.table.holding(held), self.extras.takes_in)
                loaded = now.state.reloaded(held)
                now = roll_forward_pending(loaded)
            else:
                raise busy(self.instant)
            state, table = now.state, now.state.table
            metadata = with_extras(table.client, self.extras, self.instant, now, metadata)
            # step decide
            require_no_conflicts(table, metadata, self.instant, self.began, now.seen)
            if self.check is not None and not self._is_as_begun(now.seen):
                self.check(table, now.seen, metadata)
            if self.schema_step is not None:
                planned = self.table.client.config
                state = commit_schema(state, planned, self.schema_step, now.seen)
            table.host.check_write(state.client, metadata, self.instant)
            self._delete_lost_attempts(statuses)
            metadata = with_current_parent(parent, metadata)
            self.lock.require_lease()
            state = self._record(metadata, statuses, now.seen, give_up_outdated(state, metadata))
            self.lock.require_lease()
            completed = self._complete(metadata, state)
            state.client.active.note(completed, metadata)
            state = state.with_instant(completed)
            self._require_in_time(read_at)
            publishing = time.monotonic()
            receipt = publish(state, metadata, completed, statuses, self._require_lock)
            self.timings["publish"] = time.monotonic() - publishing
            if isinstance(receipt, PublicationRejectedError):
                raise aborted(self.instant, table.host.name, receipt) from receipt
            hold.is_done = True
            self._run_services(self._with_files(state, metadata))
        self.timings["commit"] = time.monotonic() - started
        self._cleanup()
        return Committed(completed, receipt, metadata)

    def _newly_held(self) -> HeldMetadata:
        """Place for what the format reads from now on.

        What it read at the beginning is out of date.
        """
        before = self.table.client.held
        return HeldMetadata() if before is None else before.handed_on()

    def _done(self, state: TableState) -> Committed | None:
        """Result of the write where an earlier call has completed it already."""
        found = state.timeline.find(self.instant.requested_time, self.instant.action)
        if found is None or not found.is_completed:
            return None
        now = roll_forward_pending(state)
        found = now.seen.find(self.instant.requested_time, self.instant.action)
        if found is None or not found.is_completed:
            raise superseded(self.instant, self.table.host.name)
        table, held = now.state.table, found
        metadata = table.client.read_commit(found)
        receipt = publish_with_retry(table, held, lambda: publish_once(table, metadata, held))
        return Committed(found, receipt, metadata)

    def _record(
        self,
        metadata: CommitMetadata,
        statuses: Sequence[WriteStatus],
        seen: TimelineView,
        state: TableState,
    ) -> TableState:
        """Record the commit in the metadata table, if any."""
        if state.metadata is None:
            return state
        session = MetadataSession(state.metadata, self.metadata)
        view = self.view if self._is_as_begun(seen) else None
        base = None if self.schema_step is None else self.schema_step.base
        return state.with_metadata(
            record_commit(
                session, self.instant.requested_time, metadata, statuses, base=base, view=view
            )
        )

    def _is_as_begun(self, seen: TimelineView) -> bool:
        """Whether no other write completed since this one began."""
        return tuple(seen.completed_writes()) == tuple(self.began.completed_writes())

    def _as_begun(self, state: TableState) -> TableState:
        """A state with known facts, where no action began since."""
        others = instants_at_rest(state.timeline, self.instant.requested_time)
        return state.knowing(self.tables, None) if others == self.began.instants else state

    def _with_files(self, state: TableState, metadata: CommitMetadata) -> TableState:
        """A state with the files known once the write completed."""
        compares = self.metadata.validate  # each listing of the metadata table with the storage
        # an action since may have deleted files that were listed: a clean, a rollback
        others = instants_at_rest(state.timeline, self.instant.requested_time)
        if self.view is None or compares or others != self.began.instants:
            return state
        return replace(state, files=files_after(self.view.listed, metadata))

    def _run_services(self, state: TableState) -> None:
        """Run the table services that are due, the metadata table's first.

        The commit has taken place: a service that fails now is continued after the next one.
        """
        started, left = time.monotonic(), None
        where = "the metadata table"
        try:
            if state.metadata is not None:
                self.lock.require_lease()
                state = state.with_metadata(run_services(state.metadata, self.metadata))
            where = "the table"
            self.lock.require_lease()
            left = self.after_commit(state, self.lock)
        except HudiError:
            root = self.table.client.base_path
            _log.warning("a service of %s at %s failed", where, root, exc_info=True)
        if self.known is not None:
            self.known.keep(left)
        self.timings["services"] = time.monotonic() - started

    def abort(self) -> None:
        """Undo the write after a failure in this process.

        A write that has made no data file yet leaves no trace; otherwise a rollback is recorded.
        One that is complete already, or that another writer has rolled back, is left alone.
        """
        if self.attempts is not None:
            self.attempts.end()
        try:
            with self.lock.held():
                self._undo()
        except BaseException:
            self.leave()
            raise
        self.heartbeat.stop()

    def leave(self) -> None:
        """Leave the write as it is to the next writer."""
        leave_heartbeat(self.heartbeat, self.instant)

    def _undo(self) -> None:
        timeline = self.table.client.active.load()
        found = timeline.find(self.instant.requested_time, self.instant.action)
        if found is None:
            self._discard_files()
            return
        if found.is_completed:
            return
        state = TableState.load(self.table, timeline)
        marked = self._marked()
        begun = rollback.planned_for(state.client, self.instant)
        if begun is not None:
            rollback.resume(state, begun)
            self._discard_files()
        elif marked:
            state, _ = rollback.roll_back(state, self.instant)
            if self.scheduled is not None:
                schedule_again(state, self.instant, self.scheduled)
        else:
            rollback.drop_unwritten(state, self.instant, is_scheduled=self.scheduled is not None)

    def _require_pending(self, timeline: Timeline) -> None:
        found = timeline.find(self.instant.requested_time, self.instant.action)
        undone = found is None or found.is_completed or self.heartbeat.is_lost
        client = self.table.client.seeing(timeline)
        if undone or rollback.planned_for(client, self.instant) is not None:
            self._discard_files()
            raise rolled_back(self.instant)

    def _discard_files(self) -> None:
        """Delete files that tasks wrote after another writer listed this write's files.

        Tasks elsewhere do it themselves, after each file.
        """
        if self.attempts is not None and not self._may_be_complete:
            for path in sorted(self.attempts.seal()):
                self.table.client.data.delete(path)

    def _require_in_time(self, read_at: float) -> None:
        """Check that this write was not rolled back meanwhile.

        While its completed file was on its way.

        It cannot have been while the lock kept others out, or as long as they still wait for the
        next sign of life.
        """
        if self.lock.is_exclusive or time.monotonic() - read_at < self.heartbeat.interval_s:
            return
        try:
            timeline = self.table.client.active.load()  # step look-for-plan
        except StorageError as error:
            raise unknown_outcome(self.instant, "The timeline cannot be read since") from error
        found = timeline.find(self.instant.requested_time, self.instant.action)
        if found is None or not found.is_completed:
            raise rolled_back(self.instant)
        if rollback.planned_for(self.table.client.seeing(timeline), self.instant) is not None:
            # who planned it leaves it alone where a third writer has published it before
            raise unknown_outcome(self.instant, "Another writer planned its rollback while")

    def _require_lock(self) -> None:
        """Check the lock before step 2.

        The format's compare-and-set is what excludes others.
        """
        if is_two_step(self.table):
            self.lock.require_lease()

    def _delete_lost_attempts(self, statuses: Sequence[WriteStatus]) -> None:
        self.lost = self._marked() - {path for status in statuses for path in status.stat.paths}
        for path in sorted(self.lost):
            self.table.client.data.delete(path)

    def _marked(self) -> set[str]:
        """Paths of all files that attempts at tasks have marked.

        From now on, no other counts.
        """
        if self.attempts is not None:
            return set(self.attempts.seal())
        markers = Markers(self.table.client.scratch, self.instant.requested_time)
        markers.seal()
        return {join_path(one.partition_path, one.file_name) for one in markers.list()}

    def _complete(self, metadata: CommitMetadata, state: TableState) -> Instant:
        active = state.client.active
        if self.attempts is not None:
            self.attempts.wait_for_flushes()
        completion = state.client.clock.next_time(state.timeline)
        body = encode(metadata)
        self._may_be_complete = True
        try:
            return active.complete(self.instant, completion, body, state.timeline)  # step complete
        except StorageError as error:
            # the store may have applied the put before it failed: only the timeline shows it
            try:
                found = active.load().find(self.instant.requested_time)
            except StorageError as unread:
                raise unknown_outcome(self.instant, "The store failed while") from unread
            if found is not None and found.completion_time == completion:
                return found
            raise unknown_outcome(self.instant, "The store failed while") from error

    def _cleanup(self) -> None:
        # the commit has taken place: whatever cannot be removed now is no reason to say otherwise.
        # An attempt that was lost may be at work yet: its marker stays, for the next writer to see
        # to what it leaves
        storage, time_ = self.table.client.scratch, self.instant.requested_time
        markers: list[str] = []
        if self.attempts is None:
            # without it tasks elsewhere know that the write is over, once the seal is gone, too
            self.heartbeat.stop()
        try:
            if self.lost:
                storage.delete_tree(f"{temp_folder(time_)}/{STAGE}")
            elif self.attempts is not None and not parse_location(storage.root).is_local:
                # all that is there, and no folders: one request for it and the heartbeat
                markers += self.attempts.seal().values()
            else:
                Markers(storage, time_).delete_all()
        except StorageError:
            _log.warning(
                "the markers of %s stay behind", self.instant.requested_time, exc_info=True
            )
        finally:
            self.heartbeat.stop(markers)


def leave_heartbeat(heartbeat: Heartbeat, instant: Instant) -> None:
    """End the heartbeat of an action that the next writer recovers.

    That of a clustering or compaction stays: by it the next writer knows that it was none of
    another engine, which may be at work without one.
    """
    if instant.action in PLANNED_ACTIONS:
        heartbeat.cease()
    else:
        heartbeat.stop()
