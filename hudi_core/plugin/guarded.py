"""Guards of a format's timelines, locks and strategies.

What hooks return may fail in the same ways as the hooks, and is called in the same way.
A timeline or a strategy of the project's own passes as it is: nothing of it is the format's.
Indexes of files are in :mod:`hudi_core.plugin.guarded_index`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from hudi_core.extension.guard import Guard
from hudi_core.model.client import MetaClientView
from hudi_core.model.conflicts import TouchConflicts
from hudi_core.model.format import ConflictResolutionStrategy, Granularity
from hudi_core.model.instant import Instant
from hudi_core.model.protocols import NamesOwner, TimelineView
from hudi_core.timeline.timeline import Timeline

_INSTANTS: Final = "a sequence of Instant"
Check = Callable[[Guard, str, Any], Any]
"""Refuses a wrong answer of a method, and returns what its caller gets."""


def answer_of(wanted: str, *kinds: type) -> Check:
    """An answer of some kinds."""

    def check(guard: Guard, method: str, found: Any) -> Any:
        guard.require(method, found, kinds, wanted)
        return found

    return check


def _instants(guard: Guard, method: str, found: Any) -> tuple[Instant, ...]:
    guard.require(method, found, (Sequence,), _INSTANTS)
    kept = guard.call(method, lambda: tuple(found))
    for one in kept:
        guard.require(method, one, (Instant,), _INSTANTS)
    return kept


def _seconds(guard: Guard, method: str, left: Any) -> Any:
    if not isinstance(left, (int, float)) or isinstance(left, bool) or math.isnan(left):
        guard.refuse(method, left, "a number of seconds")
    return left


_BOOLEAN: Final = answer_of("a boolean", bool)


@dataclass(frozen=True, slots=True)
class Guarded:
    """An object of a format's, and the guard that calls it."""

    guard: Guard
    own: Any


# ``Any``: the protocols have the signatures


def asked(method: str, check: Check) -> Any:
    """A method that asks the format's own."""
    name = method.rpartition(".")[2]

    def ask(self: Guarded, *arguments: Any) -> Any:
        found = self.guard.call(method, lambda: getattr(self.own, name)(*arguments))
        return check(self.guard, method, found)

    return ask


def read(method: str, check: Check) -> Any:
    """A property that reads the format's own."""
    name = method.rpartition(".")[2]

    def got(self: Guarded) -> Any:
        return check(self.guard, method, self.guard.call(method, lambda: getattr(self.own, name)))

    return property(got)


class GuardedTimeline(Guarded):
    """A format's own :class:`~hudi_core.model.protocols.TimelineView`."""

    instants = read("TimelineView.instants", _instants)
    completed_writes = asked("TimelineView.completed_writes", _instants)
    is_committed = asked("TimelineView.is_committed", _BOOLEAN)
    find = asked("TimelineView.find", answer_of("Instant or None", Instant, type(None)))


class GuardedTimelineFactory(Guarded):
    """A format's :class:`~hudi_core.model.format.TimelineFactory`."""

    def active_timeline(self, meta_client: MetaClientView) -> TimelineView:
        """Return the table's timeline as the format sees it now."""
        method, factory = "TimelineFactory.active_timeline", self.own
        found = self.guard.call(method, lambda: factory.active_timeline(meta_client))
        if type(found) is Timeline:
            return found
        self.guard.require(method, found, (TimelineView,), "TimelineView")
        return GuardedTimeline(self.guard, found)


class GuardedLock(Guarded):
    """A format's :class:`~hudi_core.model.protocols.LockProvider`."""

    try_lock = asked("LockProvider.try_lock", _BOOLEAN)
    lease_left = asked("LockProvider.lease_left", _seconds)
    excludes_processes = read("LockProvider.excludes_processes", _BOOLEAN)

    def unlock(self) -> None:
        """Give the lock back, even after the table was closed."""
        replace(self.guard, lease=None).call("LockProvider.unlock", self.own.unlock)

    def owner(self) -> str | None:
        """Who holds the lock, where the format's lock says so."""
        return _owner(self) if isinstance(self.own, NamesOwner) else None


_owner: Final = asked("LockProvider.owner", answer_of("a string or None", str, type(None)))


class GuardedStrategy(Guarded):
    """A format's own :class:`~hudi_core.model.format.ConflictResolutionStrategy`."""

    granularity = read(
        "ConflictResolutionStrategy.granularity", answer_of("Granularity", Granularity)
    )
    candidates = asked("ConflictResolutionStrategy.candidates", _instants)
    conflict = asked(
        "ConflictResolutionStrategy.conflict", answer_of("a reason or None", str, type(None))
    )


def guarded_strategy(
    guard: Guard, strategy: ConflictResolutionStrategy
) -> ConflictResolutionStrategy:
    """Return a strategy, guarded where it is the format's own."""
    own = type(strategy) is TouchConflicts
    return strategy if own else GuardedStrategy(guard, strategy)
