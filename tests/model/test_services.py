"""Clean and restore keep their promises wherever somebody dies, and broken ones do not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.model.services import (
    CLEAN,
    LEFT,
    MISSING,
    OUT_OF_ORDER,
    PUBLISHED_AGAIN,
    RESTORE,
    UNREADABLE,
    Protocol,
    explore,
)

CLEANING = Protocol(CLEAN, is_restore=False)
RESTORING = Protocol(RESTORE, is_restore=True)


def moved(steps: tuple[str, ...], what: str, behind: str) -> tuple[str, ...]:
    """The steps with one of them behind another."""
    rest = [one for one in steps if one != what]
    rest.insert(rest.index(behind) + 1, what)
    return tuple(rest)


@pytest.mark.parametrize("protocol", [CLEANING, RESTORING], ids=["clean", "restore"])
def test_nothing_goes_wrong(protocol: Protocol) -> None:
    assert explore(protocol) == frozenset()


@pytest.mark.parametrize(
    ("protocol", "wrong"),
    [
        (replace(CLEANING, steps=moved(CLEAN, "stop naming", "delete 1")), MISSING),
        (replace(CLEANING, steps=moved(CLEAN, "plan", "delete 2")), LEFT),
        (replace(CLEANING, continues=False), LEFT),
        (replace(RESTORING, steps=moved(RESTORE, "stop naming", "delete 2")), MISSING),
        (replace(RESTORING, steps=moved(RESTORE, "hide 1", "delete 1")), UNREADABLE),
        (replace(RESTORING, steps=moved(RESTORE, "hide 2", "hide 1")), OUT_OF_ORDER),
        (replace(RESTORING, continues_first=False), PUBLISHED_AGAIN),
        (replace(RESTORING, continues=False), LEFT),
    ],
    ids=[
        "clean: files before the format",
        "clean: plan after the files",
        "clean: nobody goes on",
        "restore: files before the format",
        "restore: files before the timeline",
        "restore: the oldest first",
        "restore: publication first",
        "restore: nobody goes on",
    ],
)
def test_a_broken_protocol_is_caught(protocol: Protocol, wrong: str) -> None:
    assert wrong in explore(protocol)
