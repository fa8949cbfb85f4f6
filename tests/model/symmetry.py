"""Writers are alike: of states that differ only in which is which, one is enough."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, groupby, permutations, product

from tests.model.two_steps import Process, State


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
