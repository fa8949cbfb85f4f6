"""The instants of a table as an immutable value, with filters.

A timeline folder holds up to three files per instant. :class:`Timeline` keeps each instant once, in
the highest state it has reached. An instant is identified by its requested time and the action it
completes as: a clustering that completed as a replacecommit is one instant, a savepoint of a commit
is another one beside the commit.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Final

from hudi_core.errors import InvalidInstantTimeError
from hudi_core.model.instant import WRITE_ACTIONS, Action, Instant, State
from hudi_core.model.instant_time import InstantTime, parse_instant_time

InstantKey = tuple[InstantTime, Action]
"""What identifies an instant: requested time and the action it completes as."""

_ORDER: Final = {State.REQUESTED: 0, State.INFLIGHT: 1, State.COMPLETED: 2}
_TIMES: Final = re.compile(r"[0-9]+")


def instant_key(instant: Instant) -> InstantKey:
    """Identity of ``instant`` whatever its state."""
    return instant.requested_time, instant.action.completed_action


@dataclass(frozen=True)
class Timeline:
    """The instants of a table, each once.

    Made by :meth:`of`; the filters return timelines too.

    ``instants`` are in the order of requested times. Writes requested before ``active_start`` have
    been archived; nothing later than ``until`` belongs to it. ``unknown`` are files of an action of
    a later release, or second completions: such a table must not be written. ``ahead``, of a fenced
    timeline, are pending instants that a format of the table holds: they completed after it was
    read, or their completed file is lost.
    """

    instants: tuple[Instant, ...] = ()
    active_start: InstantTime | None = None
    until: InstantTime | None = None
    unknown: tuple[str, ...] = ()
    ahead: tuple[Instant, ...] = ()

    @classmethod
    def of(cls, instants: Iterable[Instant], unknown: Iterable[str] = ()) -> Timeline:
        """Return the timeline of the files of one folder."""
        highest: dict[InstantKey, Instant] = {}
        for instant in instants:
            key = instant.requested_time, instant.action.completed_action
            other = highest.get(key)
            # most have three files, which differ in state
            if other is None or (
                _age(instant) < _age(other)
                if instant.state is other.state
                else _ORDER[instant.state] > _ORDER[other.state]
            ):
                highest[key] = instant
        kept = tuple(sorted(highest.values(), key=attrgetter("sort_key")))
        return cls(kept, _active_start(kept), None, tuple(sorted(unknown)))

    def __iter__(self) -> Iterator[Instant]:
        return iter(self.instants)

    def __len__(self) -> int:
        return len(self.instants)

    # --- changes -------------------------------------------------------------------------------

    def with_instant(self, instant: Instant) -> Timeline:
        """The timeline once a file of ``instant`` in its state was put."""
        time = instant.requested_time
        start = bisect_left(self.instants, time, key=lambda one: one.requested_time)
        end = bisect_right(self.instants, time, key=lambda one: one.requested_time)
        here = Timeline.of((*self.instants[start:end], instant)).instants
        kept = (*self.instants[:start], *here, *self.instants[end:])
        return Timeline(kept, _active_start(kept), None, self.unknown)

    def without(self, instant: Instant) -> Timeline:
        """The timeline once all files of ``instant`` were deleted."""
        gone = instant_key(instant)
        return Timeline.of((one for one in self.instants if instant_key(one) != gone), self.unknown)

    # --- filters -------------------------------------------------------------------------------

    def where(self, keep: Callable[[Instant], bool]) -> Timeline:
        """Return the timeline of those instants that ``keep`` accepts."""
        return replace(self, instants=tuple(filter(keep, self.instants)))

    def completed(self) -> Timeline:
        """Return the timeline of completed instants."""
        return self._completed

    def pending(self) -> Timeline:
        """Return the timeline of requested and inflight instants."""
        return self._pending

    def of_actions(self, *actions: Action) -> Timeline:
        """Return the timeline of the actions given, pending or completed.

        ``REPLACECOMMIT`` includes clusterings, ``COMMIT`` compactions, and so on; a pending action
        keeps its own word in :attr:`Instant.action`.
        """
        families = {action.completed_action for action in actions}
        found = tuple([one for one in self.instants if one.action.completed_action in families])
        return replace(self, instants=found)

    def as_of(self, time: InstantTime) -> Timeline:
        """Return the timeline of instants requested at ``time`` or earlier."""
        until = time if self.until is None else min(self.until, time)
        cut = self.where(lambda instant: instant.requested_time <= until)
        return replace(cut, until=until)

    # --- answers -------------------------------------------------------------------------------

    def completed_writes(self) -> tuple[Instant, ...]:
        """Return the completed instants that change rows, by requested time."""
        return tuple(self._writes.values())

    def is_committed(self, time: InstantTime) -> bool:
        """Return whether files of this requested time belong to the table.

        They do when a write of that time is completed, and when the time is before the first write
        of the active timeline: then the write has been archived, for what fails is rolled back and
        never archived. Pending writes count as part of the active timeline, as nothing is archived
        past them.
        """
        if self.until is not None and time > self.until:
            return False
        if time in self._writes:
            return True
        if self.active_start is None or time >= self.active_start:
            return False
        # what is still listed before the start, and is no completed write, is no write at all; but
        # for the savepoint that is left of one whose write was archived
        return all(one.action is Action.SAVEPOINT for one in self._by_time.get(time, ()))

    def find(self, time: InstantTime, action: Action | None = None) -> Instant | None:
        """Return the instant of that requested time.

        Without ``action``, a write comes before a savepoint of it.
        """
        found = self._by_time.get(time, ())
        if action is not None:
            family = action.completed_action
            found = tuple(one for one in found if one.action.completed_action is family)
        return min(found, key=lambda one: one.action is Action.SAVEPOINT, default=None)

    @property
    def first(self) -> Instant | None:
        """The instant requested first."""
        return self.instants[0] if self.instants else None

    @property
    def last(self) -> Instant | None:
        """The instant requested last."""
        return self.instants[-1] if self.instants else None

    def latest_time(self) -> InstantTime | None:
        """Return the latest of all requested and completion times, unknown names included."""
        times = [instant.requested_time for instant in self.instants]
        times += [one.completion_time for one in self.instants if one.completion_time]
        times += [time for name in self.unknown for time in _times_in(name)]
        return max(times, default=None)

    @cached_property
    def _completed(self) -> Timeline:
        found = tuple([one for one in self.instants if one.state is State.COMPLETED])
        return replace(self, instants=found)

    @cached_property
    def _pending(self) -> Timeline:
        found = tuple([one for one in self.instants if one.state is not State.COMPLETED])
        return replace(self, instants=found)

    @cached_property
    def _writes(self) -> dict[InstantTime, Instant]:
        return {
            instant.requested_time: instant
            for instant in self.instants
            if instant.state is State.COMPLETED and instant.action in WRITE_ACTIONS
        }

    @cached_property
    def _by_time(self) -> dict[InstantTime, tuple[Instant, ...]]:
        found: dict[InstantTime, tuple[Instant, ...]] = {}
        for instant in self.instants:
            found[instant.requested_time] = (*found.get(instant.requested_time, ()), instant)
        return found


def _age(instant: Instant) -> tuple[str, str]:
    # of two completions the earlier one, which readers may have seen
    return instant.completion_time or "", instant.action.value


def _active_start(instants: tuple[Instant, ...]) -> InstantTime | None:
    """Return the requested time from which no write is archived.

    Savepointed commits may stay behind when younger ones are archived (`archive beyond savepoint`),
    so they do not count while there are others, nor the earlier of them. Cleans and rollbacks are
    archived at their own pace and say nothing about writes.
    """
    writes = [one for one in instants if one.action.completed_action in WRITE_ACTIONS]
    saved = {one.requested_time for one in instants if one.action is Action.SAVEPOINT}
    whole = [one for one in writes if one.requested_time not in saved] or writes[-1:]
    return whole[0].requested_time if whole else None


def _times_in(name: str) -> Iterator[InstantTime]:
    for digits in _TIMES.findall(name.partition(".")[0]):
        try:
            yield parse_instant_time(digits)
        except InvalidInstantTimeError:
            continue
