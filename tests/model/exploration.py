"""Every state that a protocol can get into, and what must be true in each of them."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain, groupby, permutations, product
from typing import Final

from tests.model.moves import Machine
from tests.model.two_steps import (
    COMPLETED,
    DONE,
    DUPLICATE,
    FAILED,
    LOST_UPDATE,
    NOTHING,
    OUT_OF_ORDER,
    PENDING,
    ROLLED_BACK,
    UNKNOWN,
    Policy,
    Process,
    Protocol,
    State,
    Step,
    first_state,
    has_ended,
    in_order,
)
from tests.model.walk import Verdict, nothing_to_collect

_WITHOUT_PARENT: Final = (Step.PLAN_ROLLBACK, Step.LOOK_AT_TARGET)
_COMPARED: Final = (Step.PUBLISH, Step.FENCE)


def is_whole(protocol: Protocol) -> bool:
    """Whether nothing is taken out of a protocol."""
    return protocol.policy in (Policy.FORWARD, Policy.FENCED) and all(
        (
            protocol.compare_and_set,
            protocol.checks_conflicts,
            protocol.checks_order,
            protocol.parent_first,
            protocol.looks_at_target,
            protocol.looks_for_plan,
            not protocol.plan_is_failure,
        )
    )


def reduced(state: State, protocol: Protocol) -> State:
    """Return the state without what makes no difference."""
    if state.wrong or not is_whole(protocol):
        return state
    processes = tuple(_process(one, number) for number, one in enumerate(state.processes))
    state = state._replace(
        processes=processes,
        times=_times(state),
        bases=_bases(state, protocol),
        outcomes=tuple(_wrong_outcome(state, one, end) for one, end in enumerate(state.outcomes)),
        # who is in the format is not given up
        revoked=state.revoked & ~state.held,
    )
    return in_order(state)


def _process(process: Process, number: int) -> Process:
    if process.at in _WITHOUT_PARENT:
        return process._replace(is_current=False)  # these do not compare
    if process.at in _COMPARED and not process.is_current:
        # its request fails, and then it looks again: nobody else notices
        has_sent = process.at is Step.PUBLISH and process.target == number
        return Process(Step.RECORD_PARENT, has_sent=process.has_sent or has_sent)
    return process


def _times(state: State) -> tuple[int, ...]:
    """Of the instants in the format the newest counts: who compares with another one has looked at
    an older state, and what it then asks for fails."""
    newest = max((time for one, time in enumerate(state.times) if state.held >> one & 1), default=0)
    return tuple(newest if state.held >> one & 1 else time for one, time in enumerate(state.times))


def _bases(state: State, protocol: Protocol) -> tuple[int, ...]:
    """What a write builds on counts until it is in the format, and then only whether the format has
    got more since: less than all who look at it have seen is none."""
    if protocol.disjoint:
        return (0,) * len(state.bases)
    seen = [one.seen.bit_count() for one in state.processes if one.at is Step.DECIDE]
    least = min([*seen, state.held.bit_count()])
    return tuple(
        base
        if state.timeline[one] in (PENDING, COMPLETED)
        and not state.held >> one & 1
        and base >= least
        else 0
        for one, base in enumerate(state.bases)
    )


def _wrong_outcome(state: State, one: int, outcome: int) -> int:
    """An outcome that is right, and cannot become wrong, is as good as nothing."""
    is_right = outcome == UNKNOWN or (outcome == DONE and state.held >> one & 1)
    return NOTHING if is_right else outcome


def representative(state: State) -> State:
    """Return the state with its writers in an order that depends on what they do, and not on their
    numbers."""
    orders = list(_orders(state))
    if len(orders) == 1:
        return _in_order(state, orders[0])
    return min(_in_order(state, order) for order in orders)


def _orders(state: State) -> Iterator[Sequence[int]]:
    """Yield the orders that what writers do by themselves leaves open."""
    standing = {one: _standing(state, one) for one in range(len(state.timeline))}
    by_standing = groupby(sorted(standing, key=standing.__getitem__), standing.__getitem__)
    for parts in product(*(permutations(list(alike)) for _, alike in by_standing)):
        yield tuple(chain.from_iterable(parts))


def _in_order(state: State, order: Sequence[int]) -> State:
    if all(one == place for place, one in enumerate(order)):
        return state
    count = len(order)
    place_of = [0] * count
    for place, one in enumerate(order):
        place_of[one] = place

    def bits(before: int) -> int:
        return sum(1 << place for place, one in enumerate(order) if before >> one & 1)

    def process(before: Process) -> Process:
        target = before.target if before.target < 0 else place_of[before.target]
        return before._replace(seen=bits(before.seen), target=target)

    return State(
        timeline=tuple(state.timeline[one] for one in order),
        times=tuple(state.times[one] for one in order),
        bases=tuple(state.bases[one] for one in order),
        planned=bits(state.planned),
        held=bits(state.held),
        revoked=bits(state.revoked),
        travelling=bits(state.travelling),
        lock=place_of[state.lock] if 0 <= state.lock < count else state.lock,
        outcomes=tuple(state.outcomes[one] for one in order),
        crashes=state.crashes,
        processes=(*(process(state.processes[one]) for one in order), process(state.processes[-1])),
        wrong=state.wrong,
    )


def _standing(state: State, one: int) -> tuple[int, ...]:
    """What tells a writer from the others, whatever numbers they have."""
    process = state.processes[one]
    return (
        process.at,
        state.timeline[one],
        state.times[one],
        state.outcomes[one],
        state.held >> one & 1,
        process.seen.bit_count(),
        process.is_current,
        process.time,
        process.has_sent,
        state.bases[one],
        state.planned >> one & 1,
        state.revoked >> one & 1,
        state.travelling >> one & 1,
        state.processes[-1].target == one,
    )


_WRONG: Final = (LOST_UPDATE, DUPLICATE, OUT_OF_ORDER)
_STEPS: Final = {step.value: step for step in Step}
_FIELDS: Final = 6
"""Numbers of a process."""


def packed(state: State) -> bytes:
    """Return a state as bytes."""
    wrong = sum(1 << at for at, name in enumerate(_WRONG) if name in state.wrong)
    heads = (state.planned, state.held, state.revoked, state.travelling, state.lock + 1)
    numbers = [*heads, state.crashes, wrong]
    for part in (state.timeline, state.times, state.bases, state.outcomes):
        numbers += part
    for at, seen, is_current, target, time, has_sent in state.processes:
        numbers += (at, seen, is_current, target + 1, time, has_sent)
    return bytes(numbers)


def unpacked(data: bytes) -> State:
    """Return the state that bytes are."""
    planned, held, revoked, travelling, lock, crashes, wrong = data[:7]
    count = (len(data) - 7 - _FIELDS) // (4 + _FIELDS)
    parts = [tuple(data[at : at + count]) for at in range(7, 7 + 4 * count, count)]
    timeline, times, bases, outcomes = parts
    processes = tuple(
        Process(_STEPS[at], seen, bool(is_current), target - 1, time, bool(has_sent))
        for at, seen, is_current, target, time, has_sent in (
            data[start : start + _FIELDS] for start in range(7 + 4 * count, len(data), _FIELDS)
        )
    )
    said = frozenset(name for at, name in enumerate(_WRONG) if wrong >> at & 1)
    return State(
        timeline,
        times,
        bases,
        planned,
        held,
        revoked,
        travelling,
        lock - 1,
        outcomes,
        crashes,
        processes,
        said,
    )


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
