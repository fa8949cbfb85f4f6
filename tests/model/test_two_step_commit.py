"""The two-step commit keeps its promises in every state it can get into, and each part is needed.

Two writers by default, in seconds; ``HUDI_MODEL=3``, or ``make model``, takes three.
"""

from __future__ import annotations

import os

import pytest

from tests.model.exploration import (
    DUPLICATE,
    FAILED_VISIBLE,
    LOST_UPDATE,
    OUT_OF_ORDER,
    ROLLED_BACK_VISIBLE,
    STUCK,
    explore,
)
from tests.model.two_steps import Policy, Protocol

WRITERS = int(os.environ.get("HUDI_MODEL", "2"))
CRASHES = 2 if WRITERS == 2 else 1


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
    "plain rollback": (
        Protocol(policy=Policy.PLAIN),
        {ROLLED_BACK_VISIBLE, FAILED_VISIBLE},
    ),
    "plain rollback, nothing lands late": (
        Protocol(policy=Policy.PLAIN, late_landing=False),
        {ROLLED_BACK_VISIBLE},
    ),
    "no look for conflicts before a replay": (
        Protocol(checks_conflicts=False),
        {LOST_UPDATE},
    ),
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
    "a plan taken for a failure": (
        Protocol(plan_is_failure=True),
        {FAILED_VISIBLE},
    ),
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
