"""Guards of a format's timelines, locks and strategies.

What hooks return may fail in the same ways as the hooks, and is called in the same way.
A timeline or a strategy of the project's own passes as it is: nothing of it is the format's.
Indexes of files are in :mod:`hudi_core.plugin.guarded_index`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from hudi_core.extension.guard import Guard
from hudi_core.model.client import MetaClientView
from hudi_core.model.commit import CommitMetadata
from hudi_core.model.conflicts import TouchConflicts
from hudi_core.model.format import ConflictResolutionStrategy, Granularity, TimelineFactory
from hudi_core.model.instant import Action, Instant
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import LockProvider, NamesOwner, TimelineView
from hudi_core.timeline.timeline import Timeline

_INSTANTS: Final = "a sequence of Instant"


@dataclass(frozen=True, slots=True)
class GuardedTimelineFactory:
    """A format's :class:`~hudi_core.model.format.TimelineFactory`."""

    guard: Guard
    factory: TimelineFactory

    def active_timeline(self, meta_client: MetaClientView) -> TimelineView:
        """Return the table's timeline as the format sees it now."""
        method = "TimelineFactory.active_timeline"
        found = self.guard.call(method, lambda: self.factory.active_timeline(meta_client))
        if type(found) is Timeline:
            return found
        self.guard.require(method, found, (TimelineView,), "TimelineView")
        return GuardedTimeline(self.guard, found)


@dataclass(frozen=True, slots=True)
class GuardedTimeline:
    """A format's own :class:`~hudi_core.model.protocols.TimelineView`."""

    guard: Guard
    timeline: TimelineView

    @property
    def instants(self) -> tuple[Instant, ...]:
        """All instants in time order, each in its highest state."""
        method = "TimelineView.instants"
        return _instants(
            self.guard, method, self.guard.call(method, lambda: self.timeline.instants)
        )

    def completed_writes(self) -> tuple[Instant, ...]:
        """Completed instants that change rows, in time order."""
        method = "TimelineView.completed_writes"
        return _instants(
            self.guard, method, self.guard.call(method, self.timeline.completed_writes)
        )

    def is_committed(self, time: InstantTime) -> bool:
        """Whether files of this requested time belong to the table."""
        method = "TimelineView.is_committed"
        found = self.guard.call(method, lambda: self.timeline.is_committed(time))
        self.guard.require(method, found, (bool,), "a boolean")
        return found

    def find(self, time: InstantTime, action: Action | None = None) -> Instant | None:
        """Return the instant of that requested time."""
        method = "TimelineView.find"
        found = self.guard.call(method, lambda: self.timeline.find(time, action))
        self.guard.require(method, found, (Instant, type(None)), "Instant or None")
        return found


@dataclass(frozen=True, slots=True)
class GuardedLock:
    """A format's :class:`~hudi_core.model.protocols.LockProvider`."""

    guard: Guard
    lock: LockProvider

    def try_lock(self, timeout_s: float) -> bool:
        """Take the lock within ``timeout_s`` seconds."""
        method = "LockProvider.try_lock"
        taken = self.guard.call(method, lambda: self.lock.try_lock(timeout_s))
        self.guard.require(method, taken, (bool,), "a boolean")
        return taken

    def unlock(self) -> None:
        """Give the lock back, even after the table was closed."""
        replace(self.guard, lease=None).call("LockProvider.unlock", self.lock.unlock)

    def lease_left(self) -> float:
        """Seconds until the lock may be taken by another."""
        method = "LockProvider.lease_left"
        left = self.guard.call(method, self.lock.lease_left)
        if not isinstance(left, (int, float)) or isinstance(left, bool) or math.isnan(left):
            self.guard.refuse(method, left, "a number of seconds")
        return left

    def owner(self) -> str | None:
        """Who holds the lock, where the format's lock says so."""
        lock = self.lock
        if not isinstance(lock, NamesOwner):
            return None
        method = "LockProvider.owner"
        found = self.guard.call(method, lock.owner)
        self.guard.require(method, found, (str, type(None)), "a string or None")
        return found

    @property
    def excludes_processes(self) -> bool:
        """Whether the lock excludes other processes."""
        method = "LockProvider.excludes_processes"
        found = self.guard.call(method, lambda: self.lock.excludes_processes)
        self.guard.require(method, found, (bool,), "a boolean")
        return found


@dataclass(frozen=True, slots=True)
class GuardedStrategy:
    """A format's own :class:`~hudi_core.model.format.ConflictResolutionStrategy`."""

    guard: Guard
    strategy: ConflictResolutionStrategy

    @property
    def granularity(self) -> Granularity:
        """What its answers are about."""
        method = "ConflictResolutionStrategy.granularity"
        found = self.guard.call(method, lambda: self.strategy.granularity)
        self.guard.require(method, found, (Granularity,), "Granularity")
        return found

    def candidates(
        self, began: TimelineView, now: TimelineView, instant: Instant
    ) -> Sequence[Instant]:
        """Return the instants that ``instant`` must be compared with."""
        method = "ConflictResolutionStrategy.candidates"
        found = self.guard.call(method, lambda: self.strategy.candidates(began, now, instant))
        return _instants(self.guard, method, found)

    def conflict(self, mine: CommitMetadata, theirs: CommitMetadata) -> str | None:
        """Return why both cannot be kept; ``None`` when both can."""
        method = "ConflictResolutionStrategy.conflict"
        reason = self.guard.call(method, lambda: self.strategy.conflict(mine, theirs))
        self.guard.require(method, reason, (str, type(None)), "a reason or None")
        return reason


def guarded_strategy(
    guard: Guard, strategy: ConflictResolutionStrategy
) -> ConflictResolutionStrategy:
    """Return a strategy, guarded where it is the format's own."""
    own = type(strategy) is TouchConflicts
    return strategy if own else GuardedStrategy(guard, strategy)


def _instants(guard: Guard, method: str, found: Sequence[Instant]) -> tuple[Instant, ...]:
    guard.require(method, found, (Sequence,), _INSTANTS)
    kept = guard.call(method, lambda: tuple(found))
    for one in kept:
        guard.require(method, one, (Instant,), _INSTANTS)
    return kept
