"""The two-step commit of a table with two formats: a step 2 for each, one after the other.

As :mod:`tests.model.two_steps`, with formats ``FIRST`` and ``LAST``. A commit travels from the
first to the last, and what is taken back from the last to the first; complete is what both hold.
So the last one never holds what the first one lacks, and shows just what is complete. Between any
two requests, those to the two formats too, any other process may take steps of its own, writers may
die, and what was sent may land late or without an answer. What is left out: a rollback that a user
asks for, of an instant that both hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum, auto
from typing import Final, NamedTuple

from tests.model.exploration import DONE_INVISIBLE, FAILED_VISIBLE, ROLLED_BACK_VISIBLE
from tests.model.two_steps import (
    ABSENT,
    COMPLETED,
    DONE,
    DUPLICATE,
    FAILED,
    LOST_UPDATE,
    NOTHING,
    OUT_OF_ORDER,
    ROLLED_BACK,
    numbers,
)

FIRST, LAST = 0, 1
AHEAD: Final = "the last format ahead of the first"


class At(IntEnum):
    """What a process does next."""

    BEGIN = auto()
    READ_FIRST = auto()
    READ_LAST = auto()
    DECIDE = auto()
    COMPLETE = auto()
    LOOK_FOR_PLAN = auto()
    PUBLISH_FIRST = auto()
    PUBLISH_LAST = auto()
    FENCE_FIRST = auto()
    FENCE_LAST = auto()
    LOOK_AGAIN = auto()
    REVERT_LAST = auto()
    REVERT_FIRST = auto()
    UNDO = auto()
    PLAN_ROLLBACK = auto()
    LOOK_AT_TARGET = auto()
    UNDO_PENDING = auto()
    ENDED = auto()
    DEAD = auto()


@dataclass(frozen=True)
class Several:
    """The protocol, and what can be taken out of it; by default it is the right one.

    ``others_first``: whether a writer whose step 2 fails brings others' pending instants to their
    end before it goes on with its own. ``begun_first``: whether an instant that one format holds is
    brought to its end before older ones. ``compares``: the formats in which step 2 is made only on
    the state that it was planned on. ``fences``: the formats that are fenced against an instant
    that is given up. ``looks_again``: whether the formats are asked, once they are fenced, whether
    both hold the instant. ``reverts``: whether an instant that is given up is taken out of a format
    that holds it. ``waits_for_all``: whether a write is done when both formats hold it, and not
    when one does. ``parents_first``: whether both formats are read before the timeline; without it
    the last one is read after. ``disjoint``: whether the writers change different file groups.
    ``crashes``: how many writers may die.
    """

    writers: int = 2
    others_first: bool = True
    begun_first: bool = True
    compares: tuple[int, ...] = (FIRST, LAST)
    fences: tuple[int, ...] = (FIRST, LAST)
    looks_again: bool = True
    reverts: bool = True
    waits_for_all: bool = True
    parents_first: bool = True
    disjoint: bool = False
    crashes: int = 1


class Who(NamedTuple):
    """What one process knows: a writer, or the last one, which recovers and does not die."""

    at: At
    seen: tuple[int, int] = (0, 0)
    current: tuple[bool, bool] = (False, False)
    target: int = -1
    time: int = 0
    has_sent: bool = False


class World(NamedTuple):
    """Everything there is; bits and entries per instant, pairs per format."""

    timeline: tuple[int, ...]
    times: tuple[int, ...]
    bases: tuple[int, ...]
    """The instants, as bits, that were complete when each write began."""
    planned: int
    held: tuple[int, int]
    revoked: tuple[int, int]
    travelling: tuple[int, int]
    outcomes: tuple[int, ...]
    crashes: int
    who: tuple[Who, ...]
    wrong: frozenset[str] = frozenset()

    @property
    def complete(self) -> int:
        return self.held[FIRST] & self.held[LAST]


Moves = Iterator[tuple[str, World]]


def first_world(protocol: Several) -> World:
    zeros = (0,) * protocol.writers
    writers = (Who(At.BEGIN),) * protocol.writers
    return World(
        timeline=(ABSENT,) * protocol.writers,
        times=zeros,
        bases=zeros,
        planned=0,
        held=(0, 0),
        revoked=(0, 0),
        travelling=(0, 0),
        outcomes=(NOTHING,) * protocol.writers,
        crashes=protocol.crashes,
        who=(*writers, Who(At.READ_FIRST)),
    )


def with_value(pair: tuple[int, int], which: int, value: int) -> tuple[int, int]:
    return (value, pair[1]) if which == FIRST else (pair[0], value)


def changed(world: World, which: int, protocol: Several) -> World:
    """Nobody has the format's present state as parent, and what is on its way will fail."""
    who = tuple(
        one._replace(current=_unset(one.current, which)) if one.current[which] else one
        for one in world.who
    )
    if which not in protocol.compares:
        return world._replace(who=who)
    return world._replace(who=who, travelling=with_value(world.travelling, which, 0))


def _unset(pair: tuple[bool, bool], which: int) -> tuple[bool, bool]:
    return (False, pair[1]) if which == FIRST else (pair[0], False)


def landed(world: World, which: int, instant: int, protocol: Several) -> World:
    """The world once a format holds an instant, with what is wrong about that."""
    wrong, held = set(world.wrong), world.held[which]
    if held >> instant & 1:
        wrong.add(DUPLICATE)
    elif world.timeline[instant] != ROLLED_BACK:
        others = [one for one in numbers(held) if world.timeline[one] != ROLLED_BACK]
        unknown = [one for one in others if not world.bases[instant] >> one & 1]
        if unknown and not protocol.disjoint:
            wrong.add(LOST_UPDATE)
        if any(world.times[one] > world.times[instant] for one in others):
            wrong.add(OUT_OF_ORDER)
    if which == LAST and not world.held[FIRST] >> instant & 1:
        wrong.add(AHEAD)
    now = world._replace(
        held=with_value(world.held, which, held | 1 << instant), wrong=frozenset(wrong)
    )
    return changed(now, which, protocol)


def in_order(world: World) -> World:
    """The world with completion times 1, 2, 3, ...: only their order matters."""
    given = sorted({*world.times, *[one.time for one in world.who]} - {0})
    if not given or given[-1] == len(given):
        return world
    rank = {time: number for number, time in enumerate(given, 1)} | {0: 0}
    return world._replace(
        times=tuple(rank[time] for time in world.times),
        who=tuple(one._replace(time=rank[one.time]) for one in world.who),
    )


def broken(world: World) -> set[str]:
    """What is wrong in a world, whatever comes next."""
    found = set(world.wrong)
    for one, outcome in enumerate(world.outcomes):
        is_named = (world.held[FIRST] | world.held[LAST]) >> one & 1
        if is_named and world.timeline[one] == ROLLED_BACK:
            found.add(ROLLED_BACK_VISIBLE)
        if is_named and outcome == FAILED:
            found.add(FAILED_VISIBLE)
        if outcome == DONE and not world.complete >> one & 1:
            found.add(DONE_INVISIBLE)
    return found


def is_at_rest(world: World) -> bool:
    """Whether all writers have ended, and timeline and formats hold the same."""
    completed = sum(1 << one for one, at in enumerate(world.timeline) if at == COMPLETED)
    ended = all(one.at in (At.ENDED, At.DEAD) for one in world.who[:-1])
    return ended and world.held == (completed, completed) and not world.planned
