"""Two formats in one commit keep its promises in every state, and each part is needed.

No writer dies by default, as one that takes no more steps is as good as dead: leases run out.
``HUDI_MODEL=3``, or ``make model``, has one die, too.
"""

from __future__ import annotations

import os

import pytest

from tests.model.exploration import DONE_INVISIBLE, FAILED_VISIBLE, ROLLED_BACK_VISIBLE
from tests.model.two_formats import AHEAD, FIRST, LAST, Several
from tests.model.two_formats_search import explore
from tests.model.two_steps import DUPLICATE, LOST_UPDATE, OUT_OF_ORDER

CRASHES = 1 if os.environ.get("HUDI_MODEL", "2") == "3" else 0


@pytest.mark.timeout(3600)
def test_nothing_goes_wrong() -> None:
    verdict = explore(Several(crashes=CRASHES))
    assert not verdict.violations, str(verdict)
    print(verdict)  # how many states there are


ABLATIONS = {
    "older instants before one that a format holds": (
        Several(begun_first=False, crashes=0),
        {LOST_UPDATE, OUT_OF_ORDER},
    ),
    "no look at others once step 2 has failed": (
        Several(others_first=False, crashes=0),
        {LOST_UPDATE, OUT_OF_ORDER},
    ),
    "no compare-and-set in the last format": (Several(compares=(FIRST,), crashes=0), {DUPLICATE}),
    "no compare-and-set in the first format": (
        Several(compares=(LAST,), crashes=0),
        {DUPLICATE, LOST_UPDATE, OUT_OF_ORDER},
    ),
    "no fence in the last format": (
        Several(fences=(FIRST,), crashes=0),
        {ROLLED_BACK_VISIBLE, AHEAD},
    ),
    "no fence in the first format": (
        Several(fences=(LAST,), crashes=0),
        {ROLLED_BACK_VISIBLE, FAILED_VISIBLE},
    ),
    "no look whether both hold it behind the fences": (
        Several(looks_again=False, crashes=0),
        {DONE_INVISIBLE},
    ),
    "no way back out of the format that holds it": (
        Several(reverts=False, crashes=0),
        {ROLLED_BACK_VISIBLE},
    ),
    "done when one of two holds it": (Several(waits_for_all=False, crashes=0), {DONE_INVISIBLE}),
}


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", ABLATIONS)
def test_each_part_is_needed(name: str) -> None:
    protocol, expected = ABLATIONS[name]
    verdict = explore(protocol, until=frozenset(expected))
    assert expected <= verdict.violations.keys(), str(verdict)
