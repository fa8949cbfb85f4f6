"""Every state that a protocol can get into, and what must be true in each of them."""

from __future__ import annotations

from array import array
from collections import deque
from dataclasses import dataclass
from itertools import combinations

from tests.model.moves import Machine
from tests.model.symmetry import representative
from tests.model.two_steps import (
    COMPLETED,
    DONE,
    FAILED,
    ROLLED_BACK,
    Protocol,
    State,
    first_state,
    has_ended,
    held,
)

LOST_UPDATE = "lost update"
DUPLICATE = "duplicate"
OUT_OF_ORDER = "out of order"
ROLLED_BACK_VISIBLE = "rolled-back visible"
FAILED_VISIBLE = "told failed but visible"
DONE_INVISIBLE = "told done but not visible"
STUCK = "stuck"


@dataclass(frozen=True)
class Verdict:
    """What was found.

    Attributes
    ----------
    states
        How many states there are.
    violations
        What goes wrong, each with a shortest way to it.
    """

    states: int
    violations: dict[str, tuple[str, ...]]

    def __str__(self) -> str:
        lines = [f"{self.states:,} states"]
        for name, way in self.violations.items():
            lines += [f"{name}:", *(f"  {number:2}. {move}" for number, move in enumerate(way, 1))]
        return "\n".join(lines)


def explore(protocol: Protocol, until: frozenset[str] | None = None) -> Verdict:
    """Take every move in every state, the nearest states first.

    Parameters
    ----------
    until
        What is looked for: the rest is left out as soon as all of it is found. ``STUCK`` is found
        at the end only.
    """
    machine = Machine(protocol)
    first = first_state(protocol)
    numbers = {first: 0}
    came_from = array("l", [-1])
    later, earlier = array("l"), array("l")
    settled = array("l")
    found: dict[str, int] = {}
    waiting = deque([first])
    while waiting:
        state = waiting.popleft()
        number = numbers[state]
        wrong = broken(state, protocol)
        for name in wrong:
            found.setdefault(name, number)
        if until is not None and until <= found.keys():
            break
        if DUPLICATE in wrong:
            continue  # without an end: the same again
        if is_settled(state):
            settled.append(number)
        for _, moved in machine.moves(state):
            after = representative(moved)
            known = numbers.get(after)
            if known is None:
                known = numbers[after] = len(numbers)
                came_from.append(number)
                waiting.append(after)
            earlier.append(number)
            later.append(known)
    if not waiting:
        stuck = _nearest_without_way(len(numbers), earlier, later, settled)
        if stuck is not None:
            found[STUCK] = stuck

    def way(number: int) -> tuple[str, ...]:
        path = []
        while number > 0:
            path.append(number)
            number = came_from[number]
        state, told = first, []
        for one in reversed(path):  # again, with every writer under its own number
            move, state = next(
                (move, after)
                for move, after in machine.moves(state)
                if numbers[representative(after)] == one
            )
            told.append(move)
        return tuple(told)

    return Verdict(len(numbers), {name: way(number) for name, number in found.items()})


def broken(state: State, protocol: Protocol) -> list[str]:
    """Return what is wrong in a state, whatever comes next."""
    found = []
    visible = held(state.lineage)
    if visible.bit_count() < len(state.lineage):
        found.append(DUPLICATE)
    for one, told in enumerate(state.told):
        is_visible = visible >> one & 1
        if is_visible and state.timeline[one] == ROLLED_BACK:
            found.append(ROLLED_BACK_VISIBLE)
        if is_visible and told == FAILED:
            found.append(FAILED_VISIBLE)
        if not is_visible and told == DONE:
            found.append(DONE_INVISIBLE)
    for before, later in combinations(state.lineage, 2):
        if before == later or ROLLED_BACK in (state.timeline[before], state.timeline[later]):
            continue
        if not protocol.disjoint and not state.bases[later] >> before & 1:
            found.append(LOST_UPDATE)
        if state.times[before] > state.times[later]:
            found.append(OUT_OF_ORDER)
    return found


def is_settled(state: State) -> bool:
    """Tell whether all is told, and timeline and format hold the same."""
    completed = sum(1 << one for one, at in enumerate(state.timeline) if at == COMPLETED)
    ended = all(map(has_ended, state.processes[:-1]))
    return ended and completed == held(state.lineage) and not state.planned


def _nearest_without_way(
    count: int, earlier: array[int], later: array[int], goals: array[int]
) -> int | None:
    """Return the first state from which no goal can be reached."""
    starts = array("l", bytes((count + 1) * array("l").itemsize))
    for number in later:
        starts[number + 1] += 1
    for number in range(count):
        starts[number + 1] += starts[number]
    places, before = array("l", starts), array("l", earlier)
    for source, target in zip(earlier, later, strict=True):
        before[places[target]] = source
        places[target] += 1
    reached = bytearray(count)
    waiting = deque(goals)
    for goal in goals:
        reached[goal] = 1
    while waiting:
        number = waiting.popleft()
        for one in before[starts[number] : starts[number + 1]]:
            if not reached[one]:
                reached[one] = 1
                waiting.append(one)
    missing = reached.find(0)
    return None if missing < 0 else missing
