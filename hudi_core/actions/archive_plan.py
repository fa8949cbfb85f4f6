"""Instants that may be archived: a function of the timeline.

Numbers and bounds are Hudi's. Archived instants count as completed for good, and their metadata is
read no more; so an instant stays while anything may still depend on reading it: a pending action, a
clean or a compaction to come, a savepoint, or replaced file groups whose files are still there:
these would be taken for the table's again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from hudi_core.actions.clean_plan import late_writes
from hudi_core.model.instant import Action, Instant
from hudi_core.model.instant_time import SOLO_PREFIX, InstantTime
from hudi_core.timeline.timeline import Timeline

_UNDOING: Final = (Action.ROLLBACK, Action.RESTORE)


@dataclass(frozen=True, slots=True)
class ArchiveRules:
    """How many completed writes stay on the active timeline.

    ``min_commits`` (``hoodie.keep.min.commits``) stay when some are archived; nothing is archived
    up to ``max_commits`` (``hoodie.keep.max.commits``) writes, rollbacks and restores together.
    With ``beyond_savepoint`` (``hoodie.archive.beyond.savepoint``) savepointed writes stay and
    younger ones may go; else nothing from the first savepointed write on goes.

    ``compaction_delta_commits`` is how many deltacommits after the last compaction the next one is
    due, which must be there to be counted; ``None`` for tables that are not compacted. Beyond
    ``max_cleans``, cleans are archived by themselves; ``None`` where they go with the writes around
    them, as rollbacks and restores always do: these decide which late files count for nothing.
    """

    min_commits: int = 20
    max_commits: int = 30
    beyond_savepoint: bool = False
    compaction_delta_commits: int | None = None
    max_cleans: int | None = None

    def is_due(self, timeline: Timeline) -> bool:
        """Whether a timeline has more instants than it should."""
        if self.has_many_writes(timeline):
            return True
        cleans = timeline.completed().of_actions(Action.CLEAN)
        return self.max_cleans is not None and len(cleans) > self.max_cleans

    def has_many_writes(self, timeline: Timeline) -> bool:
        """Whether there are too many writes, rollbacks and restores, which go together."""
        undone = timeline.completed().of_actions(*_UNDOING)
        return len(timeline.completed_writes()) + len(undone) > self.max_commits


@dataclass(frozen=True, slots=True)
class LastClean:
    """What archiving has to know of the last completed clean.

    ``earliest_retained`` is ``None`` under a policy that knows no such write. ``savepoints`` are
    those it knew, deleted ones too: it left their files.
    """

    instant: Instant
    earliest_retained: InstantTime | None
    savepoints: Collection[str] = ()


def plan_archive(
    timeline: Timeline,
    rules: ArchiveRules,
    last_clean: LastClean | None,
    retained_from: Iterable[InstantTime] = (),
    decides: Callable[[Instant], bool] = lambda _: False,
) -> tuple[Instant, ...]:
    """Return the instants to archive, the oldest first.

    Writes, and the cleans, rollbacks and restores between them.

    ``timeline`` is fenced; ``last_clean`` is ``None`` when there was none. Everything from a time
    of ``retained_from`` on stays for reasons that the timeline does not show: the last compaction
    of the table's metadata table; for a metadata table, the earliest write and the earliest pending
    instant of its data table.

    ``decides`` is whether files are stored of which only that write shows what they are: file
    groups that it replaced, without it they would come back; or logs that it completed after a
    compaction of their file group had been requested. It is asked only of writes that could go
    else, the oldest first, up to the first that stays.
    """
    writes = timeline.completed_writes()
    if not rules.is_due(timeline):
        return ()
    bound = min((*retained_from, *_bounds(timeline, rules, last_clean)), default=None)
    # guard keeps-saved
    saved = {one.requested_time for one in timeline if one.action is Action.SAVEPOINT}
    # the newest stays in any case: what is archived counts by being earlier than one that is not
    unsaved = [one for one in writes if one.requested_time not in saved][:-1]  # guard keeps-newest
    candidates = [one for one in unsaved if bound is None or one.requested_time < bound]
    surplus = max(0, len(writes) - rules.min_commits) if rules.has_many_writes(timeline) else 0
    crossed = {one.requested_time for one in _across_compactions(timeline)}

    def goes(write: Instant) -> bool:
        is_asked = write.action is Action.REPLACECOMMIT or write.requested_time in crossed
        return not (is_asked and decides(write))  # guard keeps-replacing

    chosen = list(takewhile(goes, candidates[:surplus]))
    newest = chosen[-1].requested_time if chosen else ""
    until = dict.fromkeys((*_UNDOING, Action.CLEAN), newest)
    if rules.max_cleans is not None:
        # who asks for them later finds them in the history
        until[Action.CLEAN] = max(newest, bound or timeline.latest_time() or "")
    between = [
        one
        for one in timeline.completed().of_actions(*until)
        if one.requested_time < until[one.action]
        # the next clean goes on from it
        and (last_clean is None or one != last_clean.instant)
    ]
    return tuple(sorted((*chosen, *between), key=lambda one: one.sort_key))


def _bounds(
    timeline: Timeline, rules: ArchiveRules, last_clean: LastClean | None
) -> Iterator[InstantTime]:
    """Yield the requested times from which on something keeps instants."""
    writes = timeline.completed_writes()
    if (pending := timeline.pending().first) is not None:  # guard keeps-from-pending
        # the write before it too: the timeline then still begins with a completed write
        earlier = [one for one in writes if one.requested_time < pending.requested_time]
        yield (earlier[-1] if earlier else pending).requested_time
    if rules.compaction_delta_commits is not None:
        yield from _counted_by_compaction(timeline, rules.compaction_delta_commits)
    yield from _completed_after_compaction(timeline)
    if last_clean is not None and last_clean.earliest_retained is not None:
        since = last_clean.earliest_retained
        # a format that forgets what is archived forgets what completed before that, too
        yield from (since, *late_writes(writes, since))
    savepoints = [one.requested_time for one in timeline if one.action is Action.SAVEPOINT]
    if savepoints and not rules.beyond_savepoint:  # guard is-beyond
        yield min(savepoints)
    for write in writes:
        # without its metadata the file groups it replaced would come back
        if write.action is Action.REPLACECOMMIT and not (
            _are_replaced_files_gone(write, last_clean)
            and all(time >= write.requested_time for time in savepoints)
        ):
            yield write.requested_time
            break


def _are_replaced_files_gone(write: Instant, last_clean: LastClean | None) -> bool:
    """Whether the last clean deleted the files that a write replaced."""
    return (
        last_clean is not None
        and all(time >= write.requested_time for time in last_clean.savepoints)
        and write.effective_completion_time < last_clean.instant.requested_time
        and (
            last_clean.earliest_retained is None
            or write.requested_time < last_clean.earliest_retained
        )
    )


def _counted_by_compaction(timeline: Timeline, due: int) -> Iterator[InstantTime]:
    """Yield the first instants that decide whether compaction is due."""
    completed = timeline.completed()
    compactions = completed.of_actions(Action.COMMIT).instants
    last = max(compactions, key=lambda one: one.requested_time, default=None)
    deltas = [
        one
        for one in completed.of_actions(Action.DELTACOMMIT)
        if last is None or one.effective_completion_time > last.requested_time
    ]
    if len(deltas) >= due > 0:
        yield deltas[len(deltas) - due].requested_time
    elif last is not None:
        yield last.requested_time
    elif deltas:
        yield deltas[0].requested_time


def _completed_after_compaction(timeline: Timeline) -> Iterator[InstantTime]:
    """Yield deltacommits that were requested before a compaction and completed after it.

    Their log files belong to the slices that the compaction made. Only their completion times show
    that; without these, readers would look for them in older slices. A later compaction has merged
    them, if it was of their file groups.
    """
    compactions = timeline.completed().of_actions(Action.COMMIT)
    latest = max((one.requested_time for one in compactions), default="")
    for delta in _across_compactions(timeline):
        if latest < delta.effective_completion_time:
            yield delta.requested_time


def _across_compactions(timeline: Timeline) -> Iterator[Instant]:
    """Yield deltacommits that were under way when a compaction was requested."""
    completed = timeline.completed()
    compactions = [one.requested_time for one in completed.of_actions(Action.COMMIT)]
    for delta in completed.of_actions(Action.DELTACOMMIT):
        if delta.requested_time.startswith(SOLO_PREFIX):
            continue  # it began new file groups, whose first base files are its own
        done = delta.effective_completion_time
        if any(delta.requested_time < time < done for time in compactions):
            yield delta
