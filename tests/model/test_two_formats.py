"""Two formats in one commit keep its promises in every state, and each part is needed.

No writer dies by default, as one that takes no more steps is as good as dead: leases run out.
``HUDI_MODEL=3``, or ``make model``, has one die, too.
"""

from __future__ import annotations

import os
from collections import deque
from functools import cache

import pytest

from tests.model.exploration import DONE_INVISIBLE, FAILED_VISIBLE, ROLLED_BACK_VISIBLE, STUCK
from tests.model.two_formats import (
    AHEAD,
    FIRST,
    LAST,
    Several,
    Who,
    World,
    broken,
    first_world,
    is_at_rest,
)
from tests.model.two_formats_moves import SeveralMachine
from tests.model.two_steps import DUPLICATE, LOST_UPDATE, OUT_OF_ORDER
from tests.model.walk import Verdict, nothing_to_collect

pytestmark = pytest.mark.takes_turns


@nothing_to_collect()
def explore(protocol: Several, until: frozenset[str] | None = None) -> Verdict:
    """Take every move in every world, the nearest first; see ``exploration.explore``."""
    machine, first = SeveralMachine(protocol), first_world(protocol)
    known: dict[World, int] = {first: 0}
    came: list[tuple[int, str]] = [(0, "")]
    before: list[list[int]] = [[]]
    at_rest: list[int] = []
    found: dict[str, int] = {}
    waiting = deque([first])
    while waiting:
        world = waiting.popleft()
        number = known[world]
        wrong = broken(world)
        for name in sorted(wrong):
            found.setdefault(name, number)
        if until is not None and until <= found.keys():
            break
        if wrong:
            continue
        if is_at_rest(world):
            at_rest.append(number)
        for move, moved in machine.moves(world):
            after = _representative(moved)
            reached = known.setdefault(after, len(known))
            if reached == len(came):
                came.append((number, move))
                before.append([])
                waiting.append(after)
            before[reached].append(number)
    if not waiting and not found:
        stuck = _without_way(before, at_rest)
        if stuck is not None:
            found[STUCK] = stuck

    def way(number: int) -> tuple[str, ...]:
        path = []
        while number:
            number, move = came[number]
            path.append(move)
        return tuple(path[::-1])

    return Verdict(len(known), {name: way(number) for name, number in found.items()})


def _representative(world: World) -> World:
    """The same world with two writers swapped, if that one comes first."""
    if len(world.outcomes) != 2:
        return world
    # most pairs differ in what is compared first, and the twin need not be made
    here, there = world.timeline, world.timeline[::-1]
    if here == there:
        here, there = world.times, world.times[::-1]
    if here < there:
        return world
    first, second, last = world.who
    twin = World(
        timeline=world.timeline[::-1],
        times=world.times[::-1],
        bases=(_swapped(world.bases[1]), _swapped(world.bases[0])),
        planned=_swapped(world.planned),
        held=_both_swapped(world.held),
        revoked=_both_swapped(world.revoked),
        travelling=_both_swapped(world.travelling),
        outcomes=world.outcomes[::-1],
        crashes=world.crashes,
        who=(_renamed(second), _renamed(first), _renamed(last)),
        wrong=world.wrong,
    )
    return twin if here > there else min(world, twin, key=lambda one: one[:-1])


def _swapped(bits: int) -> int:
    return (bits & 1) << 1 | bits >> 1


def _both_swapped(pair: tuple[int, int]) -> tuple[int, int]:
    return _swapped(pair[0]), _swapped(pair[1])


@cache
def _renamed(one: Who) -> Who:
    """What a process knows, with both writers swapped; few different ones are met."""
    target = one.target if one.target < 0 else 1 - one.target
    return one._replace(seen=_both_swapped(one.seen), target=target)


def _without_way(before: list[list[int]], goals: list[int]) -> int | None:
    """The first world from which no one at rest can be reached."""
    reaching, waiting = set(goals), list(goals)
    while waiting:
        for one in before[waiting.pop()]:
            if one not in reaching:
                reaching.add(one)
                waiting.append(one)
    return next((one for one in range(len(before)) if one not in reaching), None)


CRASHES = 1 if os.environ.get("HUDI_MODEL", "2") == "3" else 0


@pytest.mark.timeout(3600)
def test_nothing_goes_wrong() -> None:
    verdict = explore(Several(crashes=CRASHES))
    assert not verdict.violations, str(verdict)
    print(verdict)  # how many states there are


ABLATIONS = {
    "older instants before one that a format holds": (
        Several(begun_first=False, crashes=0),
        {LOST_UPDATE, OUT_OF_ORDER},
    ),
    "no look at others once step 2 has failed": (
        Several(others_first=False, crashes=0),
        {LOST_UPDATE, OUT_OF_ORDER},
    ),
    "no compare-and-set in the last format": (Several(compares=(FIRST,), crashes=0), {DUPLICATE}),
    "no compare-and-set in the first format": (
        Several(compares=(LAST,), crashes=0),
        {DUPLICATE, LOST_UPDATE, OUT_OF_ORDER},
    ),
    "no fence in the last format": (
        Several(fences=(FIRST,), crashes=0),
        {ROLLED_BACK_VISIBLE, AHEAD},
    ),
    "no fence in the first format": (
        Several(fences=(LAST,), crashes=0),
        {ROLLED_BACK_VISIBLE, FAILED_VISIBLE},
    ),
    "no look whether both hold it behind the fences": (
        Several(looks_again=False, crashes=0),
        {DONE_INVISIBLE},
    ),
    "no way back out of the format that holds it": (
        Several(reverts=False, crashes=0),
        {ROLLED_BACK_VISIBLE},
    ),
    "done when one of two holds it": (Several(waits_for_all=False, crashes=0), {DONE_INVISIBLE}),
}


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", ABLATIONS)
def test_each_part_is_needed(name: str) -> None:
    protocol, expected = ABLATIONS[name]
    verdict = explore(protocol, until=frozenset(expected))
    assert expected <= verdict.violations.keys(), str(verdict)
