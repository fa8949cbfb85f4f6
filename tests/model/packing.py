"""A state as bytes, one for each number in it: millions of them are kept."""

from __future__ import annotations

from typing import Final

from tests.model.two_steps import DUPLICATE, LOST_UPDATE, OUT_OF_ORDER, Process, State, Step

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
