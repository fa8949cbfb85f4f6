"""A file group with logs keeps its promises; without one protective step it does not."""

from __future__ import annotations

from functools import partial

import pytest

from tests.model.logs import (
    CHANGED,
    LOST,
    RETURNED,
    STARVED,
    Rules,
    State,
    moves,
    violations,
)
from tests.model.walk import Verdict, walk

pytestmark = pytest.mark.takes_turns

WHO = {
    "two writers of logs": "log log compaction runner clean",
    "a base file": "log base compaction runner clean",
    "two compactions": "log log compaction runner compaction runner",
    "rollback": "log log compaction runner rollback",
    "rollback and clean": "log compaction runner clean rollback",
}


def taken(who: str, rules: Rules, until: str | None = None) -> Verdict:
    """Take every path of some processes, of which one may die."""
    first = State(tuple((kind, "start") for kind in who.split()), crashes=1)
    return walk(first, partial(moves, rules=rules), partial(violations, rules=rules), until)


@pytest.mark.parametrize("who", WHO)
def test_nothing_goes_wrong(who: str) -> None:
    found = taken(WHO[who], Rules())
    print(f"\n{who}: {found}")
    assert found.violations == {}


BROKEN = {
    "a log is of the slice that it was requested in": (
        "log compaction log runner",
        Rules(homes_by_completion=False),
        {LOST, CHANGED},
    ),
    "a past state has the logs of its slice alone": (
        "log log compaction runner",
        Rules(counts_crossed=False),
        {CHANGED},
    ),
    "a plan names logs of writes under way": (
        "log log compaction runner",
        Rules(plans_completed=False),
        {CHANGED, STARVED},
    ),
    "a dead compaction is run as it was planned": (
        "log log compaction runner runner",
        Rules(plans_anew=False),
        {LOST, CHANGED},
    ),
    "a base file commits that a compaction does not see": (
        "log base compaction runner",
        Rules(looks_for_compactions=False),
        {LOST, CHANGED},
    ),
    "a write is rolled back that a plan names": (
        "log compaction rollback runner",
        Rules(looks_at_plans=False),
        {STARVED},
    ),
    "a write is rolled back that a compaction has merged": (
        "log compaction runner rollback",
        Rules(looks_at_later=False),
        {RETURNED, CHANGED},
    ),
    "a clean takes what a compaction reads": (
        "log base compaction runner clean",
        Rules(clean_spares_planned=False),
        {STARVED},
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_protocol_is_caught(name: str) -> None:
    who, rules, wrong = BROKEN[name]
    assert taken(who, rules).violations.keys() == wrong
