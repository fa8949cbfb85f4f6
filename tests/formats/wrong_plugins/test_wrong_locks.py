"""Formats whose locks and receipts fail."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hudi_core as hudi
from hudi_core.errors import HudiError, LockError, PluginHookError
from hudi_core.extension.guard import Guard
from hudi_core.model.instant import State
from hudi_core.plugin.guarded import GuardedLock
from hudi_core.services.opening import open_table
from hudi_core.spi import InProcessLock
from hudi_core.txn.table_lock import TableLock
from tests.formats.two_steps import FAST, batch
from tests.formats.wrong_format import FAULTS
from tests.formats.wrong_plugins.wrong_tables import ERROR, Fault, fails, reads, writes

# --- locks ----------------------------------------------------------------------------------------


def _hearts() -> set[str]:
    return {one.name for one in threading.enumerate() if one.name.startswith("heartbeat-")}


@pytest.fixture(autouse=True)
def hearts() -> Callable[[], list[str]]:
    """What beats since the test began: tests before it may have left writers that died."""
    before = _hearts()
    return lambda: sorted(_hearts() - before)


def pending(table: hudi.Table) -> list[str]:
    instants = open_table(table.path, FAST).client.timeline().instants
    return [one.requested_time for one in instants if one.state is not State.COMPLETED]


def failing_unlock(call: int) -> Fault:
    """Give the lock back, and fail all the same at that call."""
    calls = []

    def unlock(right: Callable[[], Any]) -> Any:
        calls.append(right())
        if len(calls) == call:
            raise ERROR

    return unlock


def test_a_lock_that_is_not_given_back_leaves_no_beating_heart(
    table: hudi.Table, hearts: Callable[[], list[str]]
) -> None:
    FAULTS["unlock"] = failing_unlock(1)
    with pytest.raises(PluginHookError, match=r"LockProvider\.unlock"):
        writes(table)
    assert hearts() == []
    assert pending(table) == []
    assert not list(Path(table.path, ".hoodie/.heartbeat").iterdir())
    FAULTS.clear()
    writes(table)
    assert reads(table)["a"] == 2


def test_a_commit_that_took_place_is_no_failure(
    table: hudi.Table, caplog: pytest.LogCaptureFixture, hearts: Callable[[], list[str]]
) -> None:
    FAULTS["unlock"] = failing_unlock(2)
    assert hudi.Table.open(table.path, FAST).upsert(batch(2, "a")).updated == 1
    assert reads(table)["a"] == 2
    assert hearts() == []
    assert "could not be given back" in caplog.text


def test_the_first_error_is_the_one_that_is_told(
    table: hudi.Table, hearts: Callable[[], list[str]]
) -> None:
    FAULTS["complete_write"] = fails(ERROR)
    FAULTS["unlock"] = failing_unlock(2)
    with pytest.raises(HudiError, match="does not hold it yet") as caught:
        writes(table)
    assert "LockProvider.unlock" in "".join(caught.value.__notes__)
    assert hearts() == []


class Stuck(InProcessLock):
    def unlock(self) -> None:
        raise ERROR


def test_a_lock_that_stays_taken_is_not_asked_for_again_and_again(tmp_path: Path) -> None:
    lock = TableLock(GuardedLock(Guard("wrong"), Stuck(str(tmp_path))), 0.01, 9, 3600)
    with pytest.raises(PluginHookError), lock.held():
        pass
    with pytest.raises(LockError, match="not free"), lock.held():
        pass


def test_a_receipt_keeps_its_location_where_the_hook_fails_afterwards(
    table: hudi.Table, caplog: pytest.LogCaptureFixture
) -> None:
    def fail_afterwards(right: Callable[[], Any]) -> Any:
        right()
        raise ERROR

    FAULTS["complete_write"] = fail_afterwards
    with caplog.at_level(logging.WARNING, "hudi_core"):
        result = hudi.Table.open(table.path, FAST).upsert(batch(2, "a"))
    assert result.receipt.location == f"{table.path}/.hoodie/toy"
    assert result.receipt.version == "3"
    assert "the wrong format holds" in caplog.text
    assert "database is locked" in caplog.text
