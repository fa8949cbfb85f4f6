"""What makes no difference any more is forgotten, so that fewer states are told apart.

Two states are one here if whatever can happen after the one can happen after the other, but for
steps that nobody else notices. Why each part may be forgotten is said where it is; all of it rests
on the protocol being the whole one, so that protocols with something taken out are left alone.
"""

from __future__ import annotations

from typing import Final

from tests.model.two_steps import (
    COMPLETED,
    DONE,
    NOTHING,
    PENDING,
    UNKNOWN,
    Policy,
    Process,
    Protocol,
    State,
    Step,
    in_order,
)

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
