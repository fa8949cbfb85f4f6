"""Visible instants of the metadata table, for its readers.

A deltacommit of the metadata table has the time of the table's own instant and completes first. So
between the two completions, and after a crash there, the metadata table is ahead, and what it says
of that instant must not be seen (``hudi-format`` section 5).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hudi_core.errors import CorruptMetadataError
from hudi_core.metadata.damage import REBUILD
from hudi_core.model.instant import Action, Instant
from hudi_core.model.instant_time import SOLO_PREFIX, InstantTime
from hudi_core.model.protocols import TimelineView
from hudi_core.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class VisibleInstants:
    """Instants whose log files and blocks a reader may use.

    ``completed`` and ``pending`` are of the table's own timeline, as the reader sees it, and so is
    ``latest``, its last time (``None`` if it is empty): what the metadata table has later was begun
    since.
    """

    completed: frozenset[InstantTime]
    pending: frozenset[InstantTime]
    latest: InstantTime | None
    own: Timeline

    @classmethod
    def of(cls, table: TimelineView, own: Timeline) -> VisibleInstants:
        """Visible instants for a reader of ``table``, which was read before ``own``."""
        completed = {one.requested_time for one in table.instants if one.is_completed}
        pending = {one.requested_time for one in table.instants if not one.is_completed}
        return cls(frozenset(completed), frozenset(pending), _latest(table.instants), own)

    def __call__(self, time: InstantTime) -> bool:
        """Return whether what the metadata table holds of ``time`` counts."""
        if not self.own.is_committed(time):
            return False
        if time.startswith(SOLO_PREFIX) or time in self.completed:
            return True
        # neither completed nor pending: archived, or undone with what undoes it in the log
        return time not in self.pending and self.latest is not None and time <= self.latest

    @property
    def are_exceeded(self) -> bool:
        """Whether a base file has a deltacommit that does not count."""
        compactions = [
            one.requested_time for one in self.own.completed_writes() if one.action is Action.COMMIT
        ]
        last = max(compactions, default="")
        return any(
            one.effective_completion_time <= last and not self(one.requested_time)
            for one in self.own.completed_writes()
            if one.action is Action.DELTACOMMIT
        )

    @property
    def may_be_older(self) -> bool:
        """Whether the reader's timeline may be older than a build."""
        writes = self.own.completed_writes()
        if self.latest is None:
            return bool(writes)
        built = (
            one.effective_completion_time
            for one in writes
            if one.requested_time.startswith(SOLO_PREFIX)
        )
        first = self.own.first
        is_archived = first is not None and first.requested_time > self.latest
        return is_archived or any(time > self.latest for time in built)


def require_current(table: TimelineView, own: Timeline, folder: str) -> None:
    """Refuse a metadata table that lacks a completed write of its table.

    ``table`` is read before ``own``.
    """
    begun = [
        one.completion_time
        for one in own.completed_writes()
        if one.requested_time.startswith(SOLO_PREFIX) and one.completion_time
    ]
    first = min(begun, default=None)
    for write in table.completed_writes():
        if own.is_committed(write.requested_time):
            continue
        # what was there when the metadata table was built is in its first files
        if first is not None and write.effective_completion_time <= first:
            continue
        raise CorruptMetadataError(
            folder, f"the metadata table lacks the instant {write.requested_time}", REBUILD
        )


def _latest(instants: Iterable[Instant]) -> InstantTime | None:
    times = [one.requested_time for one in instants]
    times += [one.completion_time for one in instants if one.completion_time]
    return max(times, default=None)
