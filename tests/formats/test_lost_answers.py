"""Step 2 has happened, or may have, and the format does not answer any more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hudi_core as hudi
import hudi_core.txn.publication
from hudi_core.errors import CommitStateUnknownError, StorageError
from hudi_core.plugin.host import FormatHost
from hudi_core.txn import roll_forward
from hudi_core.txn.publication import PublicationRejectedError
from hudi_core.txn.transaction import Transaction
from tests.formats.two_steps import FORMATS, batch, new_table, opened, read, read_at_rest

GONE = StorageError("The store is gone", "Wait for it.")


@pytest.fixture(params=FORMATS)
def table(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> hudi.Table:
    monkeypatch.setattr(hudi_core.txn.publication, "_PAUSE_S", 0.0)
    return new_table(tmp_path / "t", str(request.param))


def lose_answers(monkeypatch: pytest.MonkeyPatch, asked: int) -> None:
    """Lose every answer of the hook of a write, and all but the first to whether it is held."""
    write, find = FormatHost.complete_write, FormatHost.find_publication
    left = [asked]

    def told(self: FormatHost, *arguments: Any) -> Any:
        write(self, *arguments)
        raise GONE

    def answered(self: FormatHost, *arguments: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise GONE
        return find(self, *arguments)

    monkeypatch.setattr(FormatHost, "complete_write", told)
    monkeypatch.setattr(FormatHost, "find_publication", answered)


def test_what_is_known_to_be_held_is_told_done(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_answers(monkeypatch, 1)
    done = table.upsert(batch(2, "a"))
    monkeypatch.undo()
    assert read(table) == {"a": 2, "b": 1, "x": 1}
    publication = opened(table).host.find_publication(opened(table).client, done_instant(table))
    assert publication is not None
    assert done.receipt.version == publication.version


def done_instant(table: hudi.Table) -> Any:
    return table.timeline.completed_writes()[-1]


def test_a_commit_that_is_repeated_is_done_whatever_the_format_answers(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = Transaction.commit

    def twice(self: Transaction, *arguments: Any) -> Any:
        commit(self, *arguments)
        lose_answers(monkeypatch, 1)
        return commit(self, *arguments)

    monkeypatch.setattr(Transaction, "commit", twice)
    table.upsert(batch(2, "a"))
    monkeypatch.undo()
    assert read(table) == {"a": 2, "b": 1, "x": 1}


def test_what_cannot_be_fenced_off_is_not_told_failed(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PublicationRejectedError("something else came first", "Run the write again.")

    def fail(*_: object) -> None:
        raise GONE

    monkeypatch.setattr(roll_forward, "require_publishable", refuse)
    monkeypatch.setattr(FormatHost, "complete_write", fail)
    monkeypatch.setattr(FormatHost, "before_rollback", fail)
    with pytest.raises(CommitStateUnknownError) as told:
        table.upsert(batch(2, "a"))
    monkeypatch.undo()
    assert told.value.__cause__ is GONE
    table.upsert(batch(3, "b"))  # nothing stands against it any more, and it comes in
    assert read_at_rest(table) == {"a": 2, "b": 3, "x": 1}
