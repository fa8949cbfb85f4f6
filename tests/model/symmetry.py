"""Writers are alike: of states that differ only in which is which, one is enough."""

from __future__ import annotations

from tests.model.two_steps import Process, State


def representative(state: State) -> State:
    """Return the state with its writers in an order that depends on what they do.

    Where two are at the same point the order says nothing; such states are then met twice, which
    costs time and no truth.
    """
    count = len(state.timeline)
    order = sorted(range(count), key=lambda one: _standing(state, one))
    if all(one == place for place, one in enumerate(order)):
        return state
    place_of = [0] * count
    for place, one in enumerate(order):
        place_of[one] = place

    def bits(before: int) -> int:
        return sum(1 << place for place, one in enumerate(order) if before >> one & 1)

    def process(before: Process) -> Process:
        return before if before.target < 0 else before._replace(target=place_of[before.target])

    return State(
        timeline=tuple(state.timeline[one] for one in order),
        times=tuple(state.times[one] for one in order),
        bases=tuple(bits(state.bases[one]) for one in order),
        planned=bits(state.planned),
        lineage=tuple(place_of[one] for one in state.lineage),
        revoked=bits(state.revoked),
        travelling=bits(state.travelling),
        lock=place_of[state.lock] if 0 <= state.lock < count else state.lock,
        told=tuple(state.told[one] for one in order),
        crashes=state.crashes,
        processes=(*(process(state.processes[one]) for one in order), process(state.processes[-1])),
    )


def _standing(state: State, one: int) -> tuple[int, ...]:
    """What tells a writer from the others, whatever numbers they have."""
    process = state.processes[one]
    return (
        process.at,
        state.timeline[one],
        state.times[one],
        state.told[one],
        state.lineage.index(one) if one in state.lineage else -1,
        process.seen,
        process.is_current,
        process.time,
        process.has_sent,
        state.bases[one].bit_count(),
        state.planned >> one & 1,
        state.revoked >> one & 1,
        state.travelling >> one & 1,
        state.processes[-1].target == one,
    )
