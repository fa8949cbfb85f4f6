"""Rolls forward, or fences off, instants with step 1 only.

A write is published as long as nothing contradicts it by now: no write that completed later is in
the format (its readers would find rows behind the point that they had read to), and none that
completed since it began touched the same. Otherwise it is taken back; never by deleting alone, for
the request of its writer may be on its way yet: the rollback is fenced.
The steps are taken in the order of completion, and no write completes while one of them is left.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import pyarrow as pa

from hudi_core.errors import (
    CommitConflictError,
    HistoryExpiredError,
    HudiError,
    IncompleteCommitError,
    TableServiceError,
    UnpublishedCommitsError,
)
from hudi_core.model.actions import (
    CleanMetadata,
    RestorePlan,
    RollbackMetadata,
    SavepointMetadata,
)
from hudi_core.model.capability import Capability
from hudi_core.model.commit import CommitMetadata, WriteStatus
from hudi_core.model.conflicts import completed_since
from hudi_core.model.format import PARENT_KEY, FormatCommit, Publication
from hudi_core.model.instant import WRITE_ACTIONS, Action, Instant, State
from hudi_core.model.protocols import TimelineView
from hudi_core.plugin.fenced import pending_publications
from hudi_core.plugin.host import FormatHost
from hudi_core.schema.table_schema import TableSchema
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.serde import (
    decode,
    decode_restore,
    decode_restore_plan,
    decode_savepoint,
)
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn.conflicts import require_no_conflicts
from hudi_core.txn.publication import (
    PublicationRejectedError,
    head,
    is_taken_back,
    is_two_step,
    present_version,
    publish_once,
    publish_with_retry,
    receipt_of,
    unknown,
    version_of_any_writer,
    with_parent_version,
)
from hudi_core.txn.recovery import rollback
from hudi_core.txn.recovery.rollback_checks import asking_format, require_can_be_fenced
from hudi_core.txn.state import TableState

_log = logging.getLogger(__name__)
ROUNDS: Final = 3
"""How often others may complete instants while this process holds the lock."""
RECORDED: Final[Mapping[Action, tuple[type[Any], str]]] = {
    Action.ROLLBACK: (RollbackMetadata, "complete_rollback"),
    Action.CLEAN: (CleanMetadata, "complete_clean"),
}
"""Actions without rows that every format holds: their bodies, and the hooks that record them."""
_BY_CAPABILITY: Final = {
    Action.SAVEPOINT: Capability.SAVEPOINT,
    Action.RESTORE: Capability.RESTORE,
}


@dataclass(frozen=True, slots=True)
class RolledForward:
    """A table on which nothing is pending publication.

    ``seen`` is the timeline as the format sees it.
    """

    state: TableState
    seen: TimelineView

    @property
    def timeline(self) -> Timeline:
        """The Hudi timeline."""
        return self.state.timeline


def roll_forward_pending(state: TableState) -> RolledForward:
    """Publish, or fence off, instants that the format lacks.

    Runs under the table's lock.

    :class:`CommitStateUnknownError`: an instant cannot be published now, but may be later;
    :class:`IncompleteCommitError`: it can neither be published nor undone.
    """
    seen = state.table.timeline()
    pending = pending_publications(seen)
    if not pending:
        return RolledForward(state, seen)
    for instant in _begun_first(state.table, pending):
        _roll_forward(state, instant)
        state = state.reloaded()
    return RolledForward(state, state.table.timeline())


def _begun_first(table: OpenTable, pending: Sequence[Instant]) -> Sequence[Instant]:
    """The pending instants, those before others that one of several formats holds.

    The checks of the others look at what is complete, and would not see them.
    """
    begun = [one for one in pending if _is_begun(table, one)]
    return [*begun, *(one for one in pending if one not in begun)]


def _is_begun(table: OpenTable, instant: Instant) -> bool:
    """Whether one of several formats holds an instant."""
    is_one = len(table.host.parts) == 1
    return not is_one and bool(table.host.holders(table.client, instant))


def publish(
    state: TableState,
    metadata: CommitMetadata,
    completed: Instant,
    statuses: Sequence[WriteStatus] = (),
    before: Callable[[], None] = lambda: None,
) -> FormatCommit | PublicationRejectedError:
    """Publish a write, or roll it back; runs under the lock.

    ``state`` has the write completed; ``metadata`` includes the state of the format that it builds
    on. ``before`` runs before each attempt, and raises where the lock was lost. A
    :class:`PublicationRejectedError` is returned, not raised, for a write that was rolled back.
    """
    due = PendingPublication(state, metadata, completed, statuses, before)
    return due.publish()


def _roll_forward(state: TableState, instant: Instant) -> None:
    table = state.table
    begun = rollback.planned_for(state.client, instant)
    if begun is not None:
        rollback.resume(state, begun)
        return
    if instant.action not in WRITE_ACTIONS:
        _record_service(table, instant)
        return
    if table.host.find_publication(table.client, instant) is None:
        _log.warning("%s is published again: its writer did not get that far", instant)
        due = PendingPublication(state, table.client.read_commit(instant), instant)
        due.publish(is_replay=True)


def _record_service(table: OpenTable, instant: Instant) -> None:
    """Publish a completed action without rows, if the format lacks it.

    Runs under the table's lock.

    :class:`CommitStateUnknownError`: the format does not hold it, and may do so later;
    :class:`IncompleteCommitError`: it cannot record such an action.
    """
    if table.host.find_publication(table.client, instant) is None:
        call = _service_call(table, instant)
        _log.warning("%s is published again: its writer did not get that far", instant)
        publish_with_retry(table, instant, call)


class PendingPublication:
    """A write whose step 2 is due."""

    def __init__(
        self,
        state: TableState,
        metadata: CommitMetadata,
        instant: Instant,
        statuses: Sequence[WriteStatus] = (),
        before: Callable[[], None] = lambda: None,
    ) -> None:
        self._state, self._instant, self._statuses = state, instant, statuses
        self._table = state.table
        self._metadata, self._before = metadata, before
        self._knew_format = PARENT_KEY in metadata.extra_metadata

    def publish(self, *, is_replay: bool = False) -> FormatCommit | PublicationRejectedError:
        """Publish the write, or take it back; see :func:`publish`."""
        if is_replay and not self._knew_format and is_two_step(self._table):
            self._require_files()
        try:
            if is_replay:
                self._recheck()
            return publish_with_retry(self._table, self._instant, self._call, self._recheck)
        except PublicationRejectedError as why:
            if is_taken_back(self._table.client, self._instant):
                return why
            if not self._knew_format and is_two_step(self._table):
                raise self._ignored(why) from why
            held = fence_and_rollback(self._state, self._instant, why.what)
            return why if held is None else receipt_of(self._table, held)

    def _require_files(self) -> None:
        """Refuse a commit whose files were cleaned before its publication."""
        client, host = self._table.client, self._table.host
        paths = [stat.path for stat in self._metadata.stats if stat.path]
        found = client.map_requests(client.data.head, paths)
        for path, status in zip(paths, found, strict=True):
            if status is None:
                time = self._instant.requested_time
                raise UnpublishedCommitsError(client.base_path, host.name, time, path)

    def _call(self) -> FormatCommit:
        self._before()
        return publish_once(self._table, self._metadata, self._instant, self._statuses)

    def _recheck(self) -> None:
        """Check that the write may be published on the present state."""
        # in this order: what lands in between makes the compare-and-set fail
        # step record-parent
        version = head(self._table, self._instant, self._metadata)
        for _ in range(ROUNDS):
            if not self._finish_others():
                break
            version = head(self._table, self._instant, self._metadata)
        else:
            raise unknown(self._table, self._instant, None)
        # step decide
        require_publishable(self._table, self._instant, self._metadata)
        self._metadata = with_parent_version(self._metadata, version)

    def _finish_others(self) -> bool:
        """Finish other instants that one of several formats holds.

        Returns whether there was any. The format that holds it would hold this one after it, and
        the others before it.
        """
        table = self._table.seeing(self._table.client.active.load())
        if len(table.host.parts) == 1:
            return False
        pending = pending_publications(table.timeline())
        others = [one for one in pending if one != self._instant and _is_begun(table, one)]
        for other in others:
            _roll_forward(self._state.reloaded(), other)
        return bool(others)

    def _ignored(self, why: PublicationRejectedError) -> IncompleteCommitError:
        name, time = self._table.host.name, self._instant.requested_time
        return IncompleteCommitError(
            f"A writer that knows nothing of the {name} format completed instant {time} "
            f"({self._metadata.operation_type}), which cannot be published any more: {why.what}",
            f"Nothing was deleted. `hudi table repair {self._table.client.base_path}` rebuilds the "
            f"{name} metadata, with this instant in it.",
            instant=time,
        )


def require_publishable(table: OpenTable, instant: Instant, metadata: CommitMetadata) -> None:
    """Refuse to publish a write that the format now contradicts.

    Runs under the table's lock.

    Refused are a write that is off the timeline, one after which another write that the format sees
    has completed, and one that conflicts with those of meanwhile, in files or columns.
    """
    if is_taken_back(table.client, instant):
        what = "it is no longer on the Hudi timeline"
        raise PublicationRejectedError(what, "Run the write again.")
    seen = table.seeing(table.client.active.load()).timeline()
    done = instant.effective_completion_time
    others = [one for one in seen.completed_writes() if one != instant]
    later = next((one for one in others if one.effective_completion_time > done), None)
    if later is not None:
        raise PublicationRejectedError(
            f"instant {later.requested_time}, which completed after it, is in the format",
            "Run the write again.",
        )
    known = [one for one in others if one.effective_completion_time < instant.requested_time]
    began = Timeline.of(known)
    meanwhile = Timeline.of(others)
    try:
        require_no_conflicts(table, metadata, instant, began, meanwhile)
    except CommitConflictError as error:
        raise PublicationRejectedError(error.what, error.hint) from error
    columns = _columns(metadata)
    for other in completed_since(began, meanwhile):
        if _columns(table.client.read_commit(other)) != columns:
            raise PublicationRejectedError(
                f"instant {other.requested_time} left other columns meanwhile",
                "Run the write again.",
            )


def _columns(metadata: CommitMetadata) -> pa.Schema | None:
    text = metadata.schema_json
    return None if text is None else TableSchema.from_avro(text).arrow.remove_metadata()


def _service_call(table: OpenTable, instant: Instant) -> Callable[[], FormatCommit]:
    """Hook call that publishes an action without rows."""
    client, host, active = table.client, table.host, table.client.active
    if not can_record(host, instant):
        raise _unrecordable(table, instant)
    data, where = active.read(instant), active.path(instant)
    version = version_of_any_writer  # what changes no row is recorded beside foreign commits
    if instant.action in RECORDED:
        kind, hook = RECORDED[instant.action]
        call, body = getattr(host, hook), decode(kind, data, where)
        return lambda: call(client, body, instant, version(table))
    if instant.action is Action.RESTORE:
        return partial(_complete_restore, table, instant)
    return partial(_complete_savepoint, table, instant, decode_savepoint(data, where))


def _complete_savepoint(
    table: OpenTable, instant: Instant, body: SavepointMetadata
) -> FormatCommit:
    """Publish a savepoint, whose state the format may have forgotten."""
    with asking_format(table, instant, is_new=False):
        expected = present_version(table)
        return table.host.complete_savepoint(table.client, body, instant, expected)


def _complete_restore(table: OpenTable, instant: Instant) -> FormatCommit:
    """Publish a restore, which another engine may have made without the format."""
    client, host, active = table.client, table.host, table.client.active
    body = decode_restore(active.read(instant), active.path(instant))
    requested = instant.to(State.REQUESTED)
    stored = active.read(requested)
    # who continues a restore names what was left; its plan names all
    plan = (
        decode_restore_plan(stored, active.path(requested))
        if stored
        else RestorePlan(body.restore_instant_info)
    )
    with asking_format(table, instant, is_new=False):
        host.before_restore(client, plan, instant.to(State.INFLIGHT), present_version(table))
    return host.complete_restore(client, body, instant, present_version(table))


def can_record(host: FormatHost, instant: Instant) -> bool:
    """Whether a format can record another engine's completed action."""
    needed = _BY_CAPABILITY.get(instant.action)
    if needed is not None:
        return needed in host.capabilities
    return instant.action in RECORDED or instant.action in WRITE_ACTIONS


def _unrecordable(table: OpenTable, instant: Instant) -> IncompleteCommitError:
    name, what = table.host.name, f"{instant.action.value} {instant.requested_time}"
    # a restore has deleted files that the format names
    hint = f"`hudi table repair {table.client.base_path}` rebuilds its metadata."
    if instant.action is Action.SAVEPOINT:
        hint = f"Delete the savepoint with the engine that made it, or accept it: {hint}"
    return IncompleteCommitError(
        f"The {what} was made by an engine that knows nothing of the {name} format, which cannot "
        "record it afterwards",
        f"Nothing was changed. {hint}",
        instant=instant.requested_time,
    )


# --- rollback of a write that step 1 has completed, fenced ----------------------------------------
# Step 2 must not take it any more.
#
# Its files cannot just be deleted: the request of its writer may be on its way, or its writer
# asleep, and would make the format name files that are gone. So the format's head is moved first,
# on which such a request fails, and is never taken afterwards either; then the format is asked once
# more, for the request may have landed just before. Only what is still absent then is rolled back,
# as any write is: planned, recorded on the timeline and in the metadata table. A crash in between
# leaves a write that is fenced off and is taken back by the next writer.


def fence_and_rollback(state: TableState, target: Instant, why: str) -> Publication | None:
    """Undo a write that is pending publication; runs under the table's lock.

    ``target`` is completed on the Hudi timeline, and the format does not hold it. ``None`` once it
    is undone; otherwise how the format holds it after all.

    :class:`IncompleteCommitError`: it can neither be published nor undone, as others build on it;
    nothing has changed. :class:`CommitStateUnknownError`: it could not be fenced off and may still
    be published; nothing was deleted.
    """
    state = state.reloaded()
    table, client, host = state.table, state.client, state.table.host
    try:
        require_can_be_fenced(state, target)
    except (HistoryExpiredError, TableServiceError) as kept:
        raise IncompleteCommitError(
            f"Instant {target.requested_time} is complete on the Hudi timeline, cannot be "
            f"published in the {host.name} format ({why}) and cannot be undone ({kept.what})",
            f"Nothing was deleted. `hudi table repair {client.base_path}` rebuilds the {host.name} "
            "metadata, with this instant in it.",
            instant=target.requested_time,
        ) from kept
    # step fence
    try:
        # whatever state the format is in by now: a request may just have landed
        host.before_rollback(client, replace(target, state=State.INFLIGHT))
        held = host.find_publication(client, target)
    except HudiError as error:
        raise unknown(table, target, error) from error
    if held is not None:
        return held
    _log.warning("%s is rolled back: it cannot be published, for %s", target, why)
    rollback.roll_back(state, target)
    return None
