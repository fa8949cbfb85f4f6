"""A writer that loses its lock without noticing while it commits, and another that commits then."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import hudi_core as hudi
import hudi_core.actions.rollback
import hudi_core.txn.transaction
from hudi_core.actions.rollback import make_plan
from hudi_core.errors import CommitConflictError, ConcurrentWriterError
from hudi_core.model.instant import Action
from hudi_core.txn import rollback
from hudi_core.txn.conflicts import require_no_conflicts
from hudi_core.txn.state import TableState
from hudi_core.txn.table_lock import Hold, TableLock
from tests.formats.two_steps import FAST, FORMATS, READ, batch, new_table

SHARED = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control", **FAST}


@pytest.mark.parametrize("format_name", FORMATS)
def test_what_was_published_after_the_look_for_conflicts_is_not_built_upon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_name: str
) -> None:
    path = tmp_path / "t"
    new_table(path, format_name)
    look = require_no_conflicts
    others = [hudi.Table.open(str(path), options=SHARED)]

    def asleep_afterwards(*arguments: Any) -> None:
        look(*arguments)
        if others:
            other = others.pop()
            with monkeypatch.context() as patched:
                patched.setattr(TableLock, "held", lambda self: nullcontext(Hold()))
                patched.setattr(TableLock, "require_lease", lambda self: None)
                other.upsert(batch(5, "a"))

    monkeypatch.setattr(hudi_core.txn.transaction, "require_no_conflicts", asleep_afterwards)
    with pytest.raises(CommitConflictError):
        hudi.Table.open(str(path), options=SHARED).upsert(batch(4, "a", "c"))
    assert READ[format_name](path) == {"a": 5, "b": 1, "x": 1}
    found = hudi.Table.open(str(path)).to_arrow(columns=["id", "ts"]).to_pylist()
    assert {row["id"]: row["ts"] for row in found} == {"a": 5, "b": 1, "x": 1}


@pytest.mark.parametrize("format_name", ["native", *FORMATS])
def test_a_write_that_completes_while_its_rollback_is_planned_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_name: str
) -> None:
    path = tmp_path / "t"
    new_table(path, format_name)
    plan, refused = make_plan, list[ConcurrentWriterError]()

    def taken_for_dead(self: Any, *arguments: Any) -> Any:
        """Roll the write back from elsewhere; it completes while the plan is made."""
        opened, pending = self.table, self.instant

        def slow(*given: Any) -> Any:
            made = plan(*given)
            done.append(complete(self, *arguments))
            return made

        done: list[Any] = []
        monkeypatch.setattr(hudi_core.actions.rollback, "make_plan", slow)
        with pytest.raises(ConcurrentWriterError) as caught:
            rollback.roll_back(TableState.load(opened), pending)
        refused.append(caught.value)
        monkeypatch.setattr(hudi_core.actions.rollback, "make_plan", plan)
        return done[0]

    complete = hudi_core.txn.transaction.Transaction._complete
    monkeypatch.setattr(hudi_core.txn.transaction.Transaction, "_complete", taken_for_dead)
    hudi.Table.open(str(path), options=SHARED).upsert(batch(4, "a"))
    monkeypatch.undo()
    assert refused
    opened = hudi.Table.open(str(path))
    found = opened.to_arrow(columns=["id", "ts"]).to_pylist()
    assert {row["id"]: row["ts"] for row in found} == {"a": 4, "b": 1, "x": 1}
    assert not [one for one in opened.timeline.instants if one.action is Action.ROLLBACK]
