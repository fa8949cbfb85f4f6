"""Writers and services that meet keep their promises; without one protective step they do not."""

from __future__ import annotations

from functools import partial

import pytest

from tests.model.beside import (
    AHEAD,
    DOUBLED,
    IN_USE,
    LEFT,
    LOST,
    RETURNED,
    STARVED,
    UNREADABLE,
    UNSAVED,
    Rules,
    first_state,
    violations,
)
from tests.model.beside_moves import moves
from tests.model.walk import Verdict, walk

pytestmark = pytest.mark.takes_turns

WHO = {
    "clustering": "writer writer clustering",
    "clustering run by another": "writer clustering runner",
    "clustering and clean": "writer clustering clean rollback",
    "clustering and restore": "writer clustering restore",
    "savepoint and rollback": "writer clean savepoint rollback",
    "savepoint and restore": "writer clean savepoint restore",
    "rollback": "writer writer rollback",
}


def taken(who: str, rules: Rules, until: str | None = None) -> Verdict:
    """Take every path of some processes; one may die, and one be taken for dead."""
    first = first_state(who.split(), crashes=1, late=1)
    return walk(first, partial(moves, rules=rules), violations, until)


@pytest.mark.parametrize("rejects", [False, True], ids=["allow", "reject"])
@pytest.mark.parametrize("who", WHO)
def test_nothing_goes_wrong(who: str, rejects: bool) -> None:
    found = taken(WHO[who], Rules(rejects=rejects))
    print(f"\n{who}: {found}")
    assert found.violations == {}


DELETES_FIRST = ("delete", "leave", "hide", "complete", "record", "tidy")
HIDES_LAST = ("leave", "delete", "hide", "complete", "record", "tidy")
FORMAT_LAST = ("hide", "leave", "delete", "complete", "record", "tidy")
FILES_LAST = ("leave", "hide", "complete", "record", "tidy", "delete")

BROKEN = {
    "commits do not look for conflicts": (
        "writer clustering",
        Rules(looks_for_conflicts=False),
        {LOST},
    ),
    "a plan is run whatever came since": ("writer clustering", Rules(looks_at_plan=False), {LOST}),
    "the format changes twice for a clustering": (
        "clustering",
        Rules(is_one_change=False),
        {DOUBLED},
    ),
    "a write on what was rolled back commits": (
        "writer writer rollback",
        Rules(looks_for_rollbacks=False),
        {RETURNED},
    ),
    "a clustering of what was rolled back commits": (
        "writer clustering rollback",
        Rules(looks_for_rollbacks=False),
        {RETURNED, DOUBLED},
    ),
    "a clean takes what a clustering reads": (
        "writer clustering clean",
        Rules(clean_spares_pending=False),
        {STARVED},
    ),
    "a clean takes what a savepoint keeps": (
        "writer clean savepoint",
        Rules(clean_spares_savepoints=False),
        {UNSAVED, IN_USE},
    ),
    "a savepoint beside a begun clean": (
        "writer clean savepoint",
        Rules(finishes_cleans=False),
        {UNSAVED, IN_USE},
    ),
    "a rollback beside a begun clean": (
        "writer clean rollback",
        Rules(finishes_cleans=False),
        {UNREADABLE, IN_USE},
    ),
    "a restore beside a begun clean": (
        "writer clean restore",
        Rules(finishes_cleans=False),
        {UNREADABLE, IN_USE},
    ),
    "a rollback to what was cleaned": (
        "writer clean rollback",
        Rules(looks_at_files=False),
        {UNREADABLE},
    ),
    "a rollback of another than the last write": (
        "writer writer rollback",
        Rules(looks_at_later=False),
        {RETURNED},
    ),
    "a rollback of what a savepoint keeps": (
        "writer savepoint rollback",
        Rules(looks_at_savepoints=False),
        {UNSAVED},
    ),
    "a rollback goes on whatever came since": (
        "writer writer rollback",
        Rules(gives_up_rollbacks=False),
        {RETURNED},
    ),
    "rollback: files first": ("writer rollback", Rules(undo=DELETES_FIRST), {UNREADABLE}),
    "rollback: files before the timeline": (
        "writer rollback",
        Rules(undo=HIDES_LAST),
        {UNREADABLE},
    ),
    "rollback: timeline before the format": ("writer rollback", Rules(undo=FORMAT_LAST), {AHEAD}),
    "rollback: files after all": ("writer rollback", Rules(undo=FILES_LAST), {LEFT}),
    "restore: files first": ("writer writer restore", Rules(undo=DELETES_FIRST), {UNREADABLE}),
    "restore: timeline before the format": (
        "writer writer restore",
        Rules(undo=FORMAT_LAST),
        {AHEAD},
    ),
    "nobody publishes what died between the steps": ("clustering", Rules(publishes=False), {LEFT}),
    "nobody rolls a dead clustering back": ("clustering", Rules(takes_back=False), {LEFT}),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_protocol_is_caught(name: str) -> None:
    who, rules, wrong = BROKEN[name]
    assert taken(who, rules).violations.keys() == wrong
