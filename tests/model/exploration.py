"""Every state that a protocol can get into, and what must be true in each of them."""

from __future__ import annotations

from array import array
from collections import deque

from tests.model.moves import Machine
from tests.model.packing import packed, unpacked
from tests.model.reduction import reduced
from tests.model.symmetry import representative
from tests.model.two_steps import (
    COMPLETED,
    DONE,
    DUPLICATE,
    FAILED,
    ROLLED_BACK,
    Protocol,
    State,
    first_state,
    has_ended,
)
from tests.model.walk import Verdict, nothing_to_collect

ROLLED_BACK_VISIBLE = "rolled-back visible"
FAILED_VISIBLE = "failed but visible"
DONE_INVISIBLE = "done but not visible"
STUCK = "stuck"


@nothing_to_collect()
def explore(protocol: Protocol, until: frozenset[str] | None = None) -> Verdict:
    """Take every move in every state, the nearest states first.

    ``until``: what is looked for: the rest is left out as soon as all of it is found. ``STUCK`` is
    found at the end only.
    """
    machine = Machine(protocol)
    first = first_state(protocol)
    known = _Known(first)
    later, earlier = array("I"), array("I")
    at_rest = array("I")
    found: dict[str, int] = {}
    waiting = deque([0])
    while waiting:
        number = waiting.popleft()
        state = known.state(number)
        wrong = broken(state)
        for name in wrong:
            found.setdefault(name, number)
        if until is not None and until <= found.keys():
            break
        if DUPLICATE in wrong:
            continue  # without an end: the same again
        if is_at_rest(state):
            at_rest.append(number)
        for _, moved in machine.moves(state):
            after, is_new = known.number(representative(reduced(moved, protocol)), number)
            if is_new:
                waiting.append(after)
            earlier.append(number)
            later.append(after)
    if not waiting:
        stuck = _nearest_without_way(len(known), earlier, later, at_rest)
        if stuck is not None:
            found[STUCK] = stuck

    def way(number: int) -> tuple[str, ...]:
        state, moves = first, []
        for one in known.way(number):  # again, with every writer under its own number
            move, state = next(
                (move, after)
                for move, moved in machine.moves(state)
                if known.number(representative(after := reduced(moved, protocol)))[0] == one
            )
            moves.append(move)
        return tuple(moves)

    return Verdict(len(known), {name: way(number) for name, number in found.items()})


class _Known:
    """The states that were met, by number.

    There are millions of them: they are kept as bytes.
    """

    def __init__(self, first: State) -> None:
        self._states = [packed(first)]
        self._numbers = {self._states[0]: 0}
        self._came_from = array("I", [0])

    def __len__(self) -> int:
        return len(self._states)

    def state(self, number: int) -> State:
        return unpacked(self._states[number])

    def number(self, state: State, came_from: int = 0) -> tuple[int, bool]:
        """Return the number of a state, and whether it is new."""
        data = packed(state)
        number = self._numbers.setdefault(data, len(self._states))
        is_new = number == len(self._states)
        if is_new:
            self._states.append(data)
            self._came_from.append(came_from)
        return number, is_new

    def way(self, number: int) -> list[int]:
        """Return the numbers of the states that lead to one from the first, which is left out."""
        path = []
        while number:
            path.append(number)
            number = self._came_from[number]
        return path[::-1]


def broken(state: State) -> list[str]:
    """Return what is wrong in a state, whatever comes next."""
    found = sorted(state.wrong)
    for one, outcome in enumerate(state.outcomes):
        is_visible = state.held >> one & 1
        if is_visible and state.timeline[one] == ROLLED_BACK:
            found.append(ROLLED_BACK_VISIBLE)
        if is_visible and outcome == FAILED:
            found.append(FAILED_VISIBLE)
        if not is_visible and outcome == DONE:
            found.append(DONE_INVISIBLE)
    return found


def is_at_rest(state: State) -> bool:
    """Whether all writers have ended, and timeline and format hold the same."""
    completed = sum(1 << one for one, at in enumerate(state.timeline) if at == COMPLETED)
    ended = all(map(has_ended, state.processes[:-1]))
    return ended and completed == state.held and not state.planned


def _nearest_without_way(
    count: int, earlier: array[int], later: array[int], goals: array[int]
) -> int | None:
    """Return the first state from which no goal can be reached."""
    starts = array("I", bytes((count + 1) * array("I").itemsize))
    for number in later:
        starts[number + 1] += 1
    for number in range(count):
        starts[number + 1] += starts[number]
    places, before = array("I", starts), array("I", earlier)
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
