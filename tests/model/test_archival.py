"""Archiving keeps its promises wherever it dies, and beside other services; broken, it does not.

``HUDI_MODEL=3``, or ``make model``, has writes under way beside all of them.
"""

from __future__ import annotations

import os
from functools import partial

import pytest

from tests.model.archival import (
    BROKEN,
    LEFT,
    NOWHERE,
    REPLACED,
    RETURNED,
    STUCK,
    TWICE,
    UNCOUNTED,
    UNHELD,
    UNPINNED,
    UNSAVED,
    UNSEEN,
    Rules,
    State,
    violations,
)
from tests.model.archival_moves import moves
from tests.model.walk import Verdict, walk

pytestmark = pytest.mark.takes_turns

IS_WHOLE = os.environ.get("HUDI_MODEL", "2") == "3"
ACTIONS = (
    "read,begin",
    "roll back,begin",
    "save,restore,roll back,write" + (",begin" if IS_WHOLE else ""),
    "save,clean,restore,write" + (",roll back" if IS_WHOLE else ""),
)


def taken(actions: str, rules: Rules) -> Verdict:
    """Take every path of archivals beside some actions; somebody may die once."""
    begin = State(replacing=2 if "clean" in actions else 0)
    return walk(begin, partial(moves, rules=rules, actions=actions.split(",")), violations)


@pytest.mark.parametrize("is_beyond", [False, True], ids=["up to savepoints", "beyond them"])
@pytest.mark.parametrize("actions", ACTIONS)
def test_nothing_goes_wrong(actions: str, is_beyond: bool) -> None:
    found = taken(actions, Rules(is_beyond=is_beyond))
    print(f"\n{actions}: {found}")
    assert found.violations == {}


@pytest.mark.parametrize("behind", ["", "version"])
def test_the_format_may_forget_earlier(behind: str) -> None:
    """Its watermark speaks for what is active all the same."""
    rest = [one for one in Rules().order if one != "format"]
    rest.insert(rest.index(behind) + 1 if behind else 0, "format")
    assert taken("read,begin", Rules(order=rest)).violations == {}


COMPLETED_FIRST = ("file", "manifest", "version", "completed", "pending", "format")
BEFORE_THE_FILE = ("pending", "completed", "file", "manifest", "version", "format")
BEFORE_THE_VERSION = ("file", "manifest", "pending", "completed", "version", "format")
FILE_LAST = ("manifest", "version", "file", "pending", "completed", "format")

WRONG = {
    "commits leave before they are stored": ("read,begin", Rules(order=BEFORE_THE_FILE), {NOWHERE}),
    "commits leave before the version": ("read,begin", Rules(order=BEFORE_THE_VERSION), {NOWHERE}),
    "the completed file leaves first": ("read,begin", Rules(order=COMPLETED_FIRST), {UNCOUNTED}),
    "the version before the file": ("read,begin", Rules(order=FILE_LAST), {BROKEN}),
    "the newest leave first": ("read,begin", Rules(oldest_first=False), {UNCOUNTED}),
    "names are forgotten without a watermark": ("read,begin", Rules(has_watermark=False), {UNHELD}),
    "the history is not looked into": ("read,begin", Rules(looks_into_history=False), {TWICE}),
    "nobody goes on": ("read,begin", Rules(goes_on=False), {STUCK}),
    "readers look into the history first": (
        "read,begin",
        Rules(reads_timeline_first=False),
        {NOWHERE},
    ),
    "readers count both": ("read,begin", Rules(counts_once=False), {TWICE}),
    "a pending write holds nothing back": (
        "read,begin",
        Rules(keeps_from_pending=False),
        {UNCOUNTED, UNSEEN},
    ),
    "savepoints hold nothing back": ("save,write", Rules(keeps_saved=False), {UNSAVED}),
    "all without a savepoint go": ("save,write", Rules(keeps_newest=False), {UNCOUNTED}),
    "a savepoint leaves its commit behind": (
        "save,write",
        Rules(archives_passed_over=False),
        {UNCOUNTED},
    ),
    "the format forgets a savepoint first": ("save", Rules(timeline_first=False), {UNPINNED}),
    "nobody finishes a deletion": ("save,write", Rules(unpins=False), {LEFT}),
    "the last active commit is rolled back": (
        "roll back,write",
        Rules(looks_at_history=False),
        {UNCOUNTED},
    ),
    "a commit leaves before what it replaced": (
        "save,clean,write",
        Rules(keeps_replacing=False),
        {REPLACED},
    ),
    "a restore leaves archived commits": (
        "save,restore,write",
        Rules(takes_archived_out=False),
        {RETURNED},
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_broken_protocol_is_caught(name: str) -> None:
    actions, rules, wrong = WRONG[name]
    assert taken(actions, rules).violations.keys() == wrong
