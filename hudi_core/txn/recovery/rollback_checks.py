"""What keeps a completed write from being rolled back."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from hudi_core.actions.compaction import instants_compacted, pending_compactions
from hudi_core.config.kinds import TableType
from hudi_core.config.table_keys import WRITABLE_VERSIONS
from hudi_core.errors import ForeignCommitError, HistoryExpiredError, TableServiceError
from hudi_core.metadata.session import can_undo
from hudi_core.model.commit import WriteOperation
from hudi_core.model.instant import COMPACTIONS, WRITE_ACTIONS, Action, Instant
from hudi_core.model.instant_time import InstantTime, just_before
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn.recovery.past_state import lost_files, slices_as_of
from hudi_core.txn.state import TableState


def require_can_be_rolled_back(state: TableState, target: Instant) -> None:
    """Refuse a rollback that would lose rows of other writes.

    ``state`` must be read under the lock. Refused are a write that later ones build on, or that a
    compaction is planned to merge, that a savepoint holds, that alone shows that earlier writes are
    archived, or whose replaced files are gone.
    """
    _require_not_built_upon(state.timeline, target)  # guard looks-at-later
    _require_not_planned(state, target)  # guard looks-at-plans
    require_no_logs_again(state, [target])
    require_no_former_logs(state, [target], just_before(target.requested_time))
    _require_no_savepoint(state.timeline, target)  # guard looks-at-savepoints
    _require_archived_still_count(state, target)  # guard looks-at-history
    _require_not_cleaned(state, target)  # guard looks-at-files
    _require_not_compacted(state, target)


def require_can_be_fenced(state: TableState, target: Instant) -> None:
    """Refuse to fence a write when others' rows would be lost.

    The write is pending publication.

    Later writes do not matter by themselves: they have not seen it. One of a writer that does not
    know the format may have.

    ``state`` must be read under the lock.
    """
    for later in state.timeline.completed_writes():
        if later.effective_completion_time > target.effective_completion_time and any(
            stat.prev_commit == target.requested_time
            for stat in state.client.read_commit(later).stats
        ):
            raise TableServiceError(
                f"instant {later.requested_time} builds on files of it",
                "Roll the later instants back first, the newest at first.",
                instant=target.requested_time,
                later=[later.requested_time],
            )
    _require_no_savepoint(state.timeline, target)
    _require_not_cleaned(state, target)
    _require_not_compacted(state, target)


def _require_not_built_upon(timeline: Timeline, target: Instant) -> None:
    later = [
        found.requested_time
        for found in timeline.completed_writes()
        if found.effective_completion_time > target.effective_completion_time
    ]
    if later:
        instant = target.requested_time
        raise TableServiceError(
            f"Instant {instant} cannot be rolled back: {', '.join(later)} came after it",
            "Roll the later instants back first, the newest at first.",
            instant=instant,
            later=later,
        )


def _require_not_planned(state: TableState, target: Instant) -> None:
    """Refuse if a pending compaction merges files of the write."""
    time = target.requested_time
    for pending in pending_compactions(state.timeline, COMPACTIONS):
        if time in instants_compacted(state.client, pending):
            raise TableServiceError(
                f"Instant {time} cannot be rolled back: the compaction {pending.requested_time} is "
                "planned to merge its files",
                f"Run the compaction or roll it back first: `hudi rollback "
                f"{state.client.base_path} {pending.requested_time}`.",
                instant=time,
                later=[pending.requested_time],
            )


def require_no_logs_again(state: TableState, undone: Iterable[Instant]) -> None:
    """Refuse to undo what has merged logs, in a table without any.

    Readers of a COPY_ON_WRITE table take base files alone.
    """
    client = state.client
    if client.config.table_type is not TableType.COPY_ON_WRITE:
        return
    for one in undone:
        merged = one.action is Action.DELTACOMMIT or (
            one.action is Action.COMMIT
            and one.is_completed
            and client.read_commit(one).operation_type == WriteOperation.COMPACT
        )
        if merged:
            time = one.requested_time
            raise TableServiceError(
                f"Instant {time} cannot be undone: the table would have log files again, and it is "
                "of type COPY_ON_WRITE by now",
                f"Make it one of log files first: `hudi table convert {client.base_path} --type "
                "MERGE_ON_READ`.",
                instant=time,
            )


def require_no_former_logs(state: TableState, undone: Iterable[Instant], time: InstantTime) -> None:
    """Refuse to go back to logs of version 6 after an upgrade.

    They have the names of their slices, and writers of later versions know by the names of logs
    which of their blocks count. ``time`` is the requested time of the state that is left.
    """
    client = state.client
    was_upgraded = client.config.initial_version < min(WRITABLE_VERSIONS)
    if not was_upgraded or client.config.table_type is not TableType.MERGE_ON_READ:
        return
    if not any(one.action is Action.COMMIT for one in undone):
        return  # its upgrade has merged them, and other writes leave deltacommits
    for one in slices_as_of(state, time):
        base = None if one.base_file is None else one.base_file.instant
        for log in one.log_files:
            if log.name.instant == base or (base is None and log.name.version > 1):
                raise TableServiceError(
                    f"The table at {client.base_path} cannot go back to before {time}: file group "
                    f"{one.file_id} had logs of version 6 then, which are only read",
                    f"Read that state as of {time}, and write its rows.",
                    log=log.status.path,
                )


def _require_no_savepoint(timeline: Timeline, target: Instant) -> None:
    instant = target.requested_time
    if timeline.find(instant, Action.SAVEPOINT) is not None:
        raise TableServiceError(
            f"Instant {instant} cannot be rolled back: a savepoint holds it",
            "Delete the savepoint (hudi savepoint delete), then roll back.",
            instant=instant,
        )


def _require_archived_still_count(state: TableState, target: Instant) -> None:
    """Refuse to roll back the last active write before archived ones.

    What is earlier than the active timeline counts as archived, and thus as complete: without a
    write on it nothing does.
    """
    left = Timeline.of(state.timeline.without(target).completed().instants)
    archived = [
        one.instant.requested_time
        for one in ([] if _has_unsaved(left) else state.client.archived.load(left.active_start))
        if one.instant.action in WRITE_ACTIONS
    ]
    if archived:
        instant = target.requested_time
        raise TableServiceError(
            f"Instant {instant} cannot be rolled back: the writes before it are archived, which "
            "only a later write on the active timeline shows",
            "Write the rows that are wanted.",
            instant=instant,
            archived=archived,
        )


def _has_unsaved(timeline: Timeline) -> bool:
    saved = {one.requested_time for one in timeline if one.action is Action.SAVEPOINT}
    return any(one.requested_time not in saved for one in timeline.completed_writes())


def _require_not_compacted(state: TableState, target: Instant) -> None:
    """Refuse if a key index cannot return to before the write."""
    tables = state.metadata
    if tables is not None and not can_undo(tables, target.requested_time):
        instant = target.requested_time
        raise TableServiceError(
            f"Instant {instant} cannot be rolled back: a compaction of the metadata table has "
            "taken its keys into an index, or one was built after it",
            "Drop the indexes of keys (hudi metadata drop), roll back, and build them again.",
            instant=instant,
        )


def _require_not_cleaned(state: TableState, target: Instant) -> None:
    """Refuse where the state before the write cannot be read any more."""
    gone = next(lost_files(state, {target: state.client.read_commit(target)}), None)
    if gone is not None:
        raise HistoryExpiredError(*gone, undoing=target.requested_time)


# --- rollbacks, restores and savepoints that the table's format refuses ---------------------------


_log: Final = logging.getLogger(__name__)


@dataclass
class FormatAnswer:
    """What a format said of another writer's plan."""

    is_refused: bool = False


@contextmanager
def asking_format(
    table: OpenTable, plan: Instant, *, is_new: bool, is_begun: bool = True
) -> Iterator[FormatAnswer]:
    """A format's hook that may refuse a plan, or a savepoint.

    A format that refuses has changed nothing. What stayed on the timeline would be given to it
    again, and refused again, by every later write.

    Runs under the table's lock. With ``is_new`` this call made the plan, of which nothing has been
    done; it is removed and the error raised. With ``is_begun`` another writer may have deleted
    files already, and its plan stays; otherwise the plan is removed with a warning in the log, and
    without an error.
    """
    answer = FormatAnswer()
    try:
        yield answer
    except ForeignCommitError:
        # every writer is refused until it is taken in or out; another's plan waits for that
        if is_new:
            table.client.active.delete_pending(plan)
        raise
    except TableServiceError as refused:
        if is_new:
            table.client.active.delete_pending(plan)
            raise
        what, name = f"{plan.action.value} {plan.requested_time}", table.host.name
        if not is_begun:
            _log.warning(
                "%s: the %s format refuses the %s of a writer that died; its plan is dropped: %s",
                table.client.base_path,
                name,
                what,
                refused.what,
            )
            table.client.active.delete_pending(plan)
            answer.is_refused = True
            return
        raise TableServiceError(
            f"The {name} format refuses the {what} of another writer: {refused.what}",
            f"No write can go on before it. `hudi table repair {table.client.base_path} --force` "
            f"finishes it from the Hudi timeline alone, and rebuilds the {name} metadata.",
            instant=plan.requested_time,
        ) from refused
