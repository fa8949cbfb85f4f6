"""The steps of the two-step commit, in the order in which the code takes them.

``tests/model`` proves the protocol for this order; comments name the steps where they are taken.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import hudi_core as hudi
from hudi_core.plugin.host import FormatHost
from hudi_core.txn.heartbeat import Heartbeat
from hudi_core.txn.table_lock import TableLock
from tests.formats.dying_writers import death_in
from tests.formats.two_steps import READABLE, batch, blind, left_between, small_table
from tests.model.test_steps_in_code import PLACES
from tests.model.two_steps import Step

_MARK = re.compile(r"# step ([a-z-]+)$")


def lines_of_steps(path: Path) -> dict[int, Step]:
    """The step that each line takes: a comment of its own names that of the next line."""
    steps = {step.word: step for step in Step}
    found = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if mark := _MARK.search(line):
            is_alone = line.lstrip().startswith("#")
            found[number + is_alone] = steps[mark[1]]
    return found


LINES = {str(path): lines_of_steps(path) for path in PLACES}


@contextmanager
def taken() -> Iterator[list[Step]]:
    """Note the steps that this thread takes."""
    steps: list[Step] = []
    last: dict[FrameType, int] = {}

    def in_function(frame: FrameType, event: str, _: Any) -> Any:
        line = frame.f_lineno
        # a call over several lines comes back to its first one
        if event == "line" and last.get(frame) != line and line in LINES[frame.f_code.co_filename]:
            steps.append(LINES[frame.f_code.co_filename][line])
            last[frame] = line
        return in_function

    def of_call(frame: FrameType, _: str, __: Any) -> Any:
        return in_function if LINES.get(frame.f_code.co_filename) else None

    sys.settrace(of_call)
    try:
        yield steps
    finally:
        sys.settrace(None)


@pytest.fixture(params=READABLE)
def table(path: Path, request: pytest.FixtureRequest) -> hudi.Table:
    return small_table(path, str(request.param))


def test_a_write(table: hudi.Table) -> None:
    with taken() as steps:
        table.upsert(batch(2, "a"))
    assert steps == [Step.BEGIN, Step.RECORD_PARENT, Step.DECIDE, Step.COMPLETE, Step.PUBLISH]


@pytest.mark.parametrize("is_fresh", [True, False])
def test_a_write_whose_lock_may_have_been_another_s_for_a_blink(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch, is_fresh: bool
) -> None:
    monkeypatch.setattr(TableLock, "is_exclusive", False)
    monkeypatch.setattr(Heartbeat, "is_fresh", is_fresh)
    with taken() as steps:
        table.upsert(batch(2, "a"))
    # nobody else can have given up waiting for the next sign of life yet
    looks = [] if is_fresh else [Step.LOOK_FOR_PLAN]
    assert steps[3:] == [Step.COMPLETE, *looks, Step.PUBLISH]


def test_a_write_with_a_doubtful_lock(table: hudi.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    real = FormatHost.check_write

    def slowly(*arguments: Any) -> None:
        time.sleep(0.02)
        real(*arguments)

    monkeypatch.setattr(FormatHost, "check_write", slowly)
    monkeypatch.setattr(TableLock, "is_exclusive", False)
    often = hudi.Table.open(table.path, {"hoodie.client.heartbeat.interval_in_ms": "10"})
    with taken() as steps:
        often.upsert(batch(2, "a"))
    assert steps == [
        Step.BEGIN,
        Step.RECORD_PARENT,
        Step.DECIDE,
        Step.COMPLETE,
        Step.LOOK_FOR_PLAN,
        Step.PUBLISH,
    ]


def test_a_write_that_fails_before_its_commit(table: hudi.Table) -> None:
    with taken() as steps, death_in("hudi_core.txn.transaction.parent_of"):
        table.upsert(batch(2, "a"))
    undone = [Step.PLAN_ROLLBACK, Step.LOOK_AT_TARGET, Step.UNDO]
    # the format hears of the rollback itself
    assert steps == [Step.BEGIN, *undone, Step.PUBLISH]


def test_a_write_after_one_that_died_between_the_steps(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_between(monkeypatch, table, lambda: table.upsert(batch(2, "a")))
    with taken() as steps:
        table.upsert(batch(3, "a"))
    theirs = [Step.RECORD_PARENT, Step.DECIDE, Step.PUBLISH]
    mine = [Step.BEGIN, Step.RECORD_PARENT, Step.DECIDE, Step.COMPLETE, Step.PUBLISH]
    assert steps == theirs + mine


def test_after_one_that_is_not_published(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_between(monkeypatch, table, lambda: table.upsert(batch(2, "a")))
    with blind(monkeypatch):
        table.upsert(batch(3, "x"))
    with taken() as steps:
        table.upsert(batch(4, "b"))
    # undone in the metadata table, and in the table
    of_rollback = [Step.FENCE, Step.PLAN_ROLLBACK, Step.UNDO, Step.UNDO]
    assert [one for one in steps if one >= Step.PLAN_ROLLBACK] == of_rollback
    assert steps[0] is Step.RECORD_PARENT
