"""The two-step commit keeps its promises in every state it can get into, and each part is needed.

Two writers by default, in seconds; ``HUDI_MODEL=3``, or ``make model``, takes three.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.model import exploration
from tests.model.exploration import FAILED_VISIBLE, ROLLED_BACK_VISIBLE, STUCK, explore
from tests.model.moves import Machine
from tests.model.two_steps import (
    DUPLICATE,
    LOST_UPDATE,
    OUT_OF_ORDER,
    PENDING,
    Moves,
    Policy,
    Process,
    Protocol,
    State,
    Step,
)

pytestmark = pytest.mark.takes_turns

WRITERS = int(os.environ.get("HUDI_MODEL", "2"))
# of three, one that dies is one that takes no more steps: leases run out, and nobody waits for it
CRASHES = 2 if WRITERS == 2 else 0


@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    "protocol",
    [
        Protocol(WRITERS, crashes=CRASHES),
        Protocol(WRITERS, disjoint=True, crashes=CRASHES),
        Protocol(WRITERS, policy=Policy.FENCED, crashes=CRASHES),
    ],
    ids=["forward", "forward, other file groups", "always behind a fence"],
)
def test_nothing_goes_wrong(protocol: Protocol) -> None:
    verdict = explore(protocol)
    assert not verdict.violations, str(verdict)
    print(verdict)  # how many states there are


ABLATIONS = {
    "plain rollback": (Protocol(policy=Policy.PLAIN), {ROLLED_BACK_VISIBLE, FAILED_VISIBLE}),
    "plain rollback, nothing lands late": (
        Protocol(policy=Policy.PLAIN, late_landing=False),
        {ROLLED_BACK_VISIBLE},
    ),
    "no look for conflicts before a replay": (Protocol(checks_conflicts=False), {LOST_UPDATE}),
    "no look for newer instants before a replay": (
        Protocol(disjoint=True, checks_order=False),
        {OUT_OF_ORDER},
    ),
    "no compare-and-set": (
        Protocol(compare_and_set=False),
        {DUPLICATE, LOST_UPDATE, OUT_OF_ORDER, ROLLED_BACK_VISIBLE},
    ),
    "the parent read after the decision": (
        Protocol(parent_first=False),
        {LOST_UPDATE, OUT_OF_ORDER},
    ),
    "a target not looked at once its rollback is planned": (
        Protocol(looks_at_target=False),
        {ROLLED_BACK_VISIBLE, FAILED_VISIBLE},
    ),
    "no look for a plan between the steps": (
        Protocol(looks_for_plan=False),
        {ROLLED_BACK_VISIBLE, FAILED_VISIBLE},
    ),
    "a plan taken for a failure": (Protocol(plan_is_failure=True), {FAILED_VISIBLE}),
}


@pytest.mark.parametrize("name", ABLATIONS)
def test_each_part_is_needed(name: str) -> None:
    protocol, expected = ABLATIONS[name]
    verdict = explore(protocol, until=frozenset(expected))
    assert expected <= verdict.violations.keys(), str(verdict)


def test_what_is_never_published_is_never_settled() -> None:
    verdict = explore(Protocol(policy=Policy.IGNORE))
    assert verdict.violations.keys() == {STUCK}


def test_a_plain_rollback_passes_where_nothing_is_late_and_no_lease_runs_out() -> None:
    """Why tests that only kill writers say nothing about it."""
    plain = Protocol(policy=Policy.PLAIN, late_landing=False, zombies=False)
    assert not explore(plain).violations


def _always_follows(*_: object) -> bool:
    return True


def _undoes_at_once(self: Machine, state: State, me: int, process: Process, target: int) -> Moves:
    """Without a fence."""
    after = process._replace(at=Step.UNDO, target=target, seen=0, is_current=False)
    yield f"goes to roll {target} back", self._at(state, me, after)


def _takes_for_dead(self: Machine, state: State, me: int, process: Process) -> Moves:
    """Without a plan that the writer could find."""
    for one, held in enumerate(state.timeline):
        if held == PENDING:
            after = process._replace(at=Step.UNDO, target=one, seen=0, is_current=False)
            yield f"takes {one} for dead", self._at(state, me, after)
    yield "is done", self._end(state, me, Process(Step.RECORD_PARENT))


FAULTS = [
    ("_may_follow", _always_follows, {LOST_UPDATE, OUT_OF_ORDER}),
    ("_make_good", _undoes_at_once, {ROLLED_BACK_VISIBLE}),
    ("_clear_up", _takes_for_dead, {ROLLED_BACK_VISIBLE}),
]


@pytest.mark.parametrize("is_reduced", [True, False], ids=["reduced", "in full"])
@pytest.mark.parametrize(("part", "fault", "expected"), FAULTS, ids=[one[0] for one in FAULTS])
def test_what_is_forgotten_hides_nothing(
    part: str, fault: Any, expected: set[str], is_reduced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault that the protocol does not tell of is found with fewer states, too."""
    monkeypatch.setattr(Machine, part, fault)
    if not is_reduced:
        monkeypatch.setattr(exploration, "reduced", lambda state, _: state)
    verdict = explore(Protocol(), until=frozenset(expected))
    assert expected <= verdict.violations.keys(), str(verdict)


def test_as_much_goes_wrong_in_fewer_states(monkeypatch: pytest.MonkeyPatch) -> None:
    protocol = Protocol(crashes=0)
    fewer = explore(protocol)
    monkeypatch.setattr(exploration, "reduced", lambda state, _: state)
    all_of_them = explore(protocol)
    assert fewer.violations == all_of_them.violations == {}
    assert fewer.states < all_of_them.states
