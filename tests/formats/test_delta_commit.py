"""The second step of a commit: replayed, failing, raced, fenced off."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Field
from deltalake.schema import PrimitiveType

import delta_format.commit
import delta_format.plugin
import hudi_core as hudi
import hudi_core.txn.publication
from delta_format.log import open_log
from delta_format.versions import NewVersion, make_next
from hudi_core.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitStateUnknownError,
    StorageError,
)
from hudi_core.model.actions import CleanMetadata, RollbackMetadata
from hudi_core.model.format import PARENT_KEY
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.storage.posix import PosixStorage
from hudi_core.txn.publication import publish_once
from tests.formats.delta_steps import actions_of, cut_short, last_write, opened, publish, version
from tests.formats.delta_tables import assert_all_read, by_deltalake, content, new_table, rows


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "table"


@pytest.fixture
def table(path: Path) -> hudi.Table:
    made = new_table(path)
    made.insert(rows(0, 1, 2))
    return made


WRITES: dict[str, Callable[[hudi.Table], Any]] = {
    "insert": lambda table: table.insert(rows(3, 4)),
    "upsert": lambda table: table.upsert(rows(0, 5, ts=1)),
    "delete": lambda table: table.delete(rows(1)),
    "bulk_insert": lambda table: table.bulk_insert(rows(3, 8)),
    "insert_overwrite": lambda table: table.insert_overwrite(rows(5, ts=1)),
    "delete_partitions": lambda table: table.delete_partitions([{"city": "oslo"}]),
    "alter": lambda table: table.alter(add_columns={"extra": pa.int64()}),
    "insert_with_column": lambda table: table.insert(
        rows(3).append_column("extra", pa.array([7], pa.int64()))
    ),
}


@pytest.mark.parametrize("operation", WRITES)
def test_a_write_cut_between_the_steps_is_unseen_until_it_is_published(
    monkeypatch: pytest.MonkeyPatch, path: Path, table: hudi.Table, operation: str
) -> None:
    cut_short(monkeypatch, lambda: WRITES[operation](table))
    instant = last_write(path)
    seen = opened(path)
    assert seen.host.find_publication(seen.client, instant) is None
    assert seen.timeline().find(instant.requested_time) == replace(instant, state=State.INFLIGHT)
    assert content(hudi.Table.open(str(path)).to_arrow()) == content(rows(0, 1, 2))
    assert content(by_deltalake(path)) == content(rows(0, 1, 2))

    receipt = publish(path, instant)
    twin = new_table(path.parent / "twin")
    twin.insert(rows(0, 1, 2))
    WRITES[operation](twin)
    assert_all_read(path, content(by_deltalake(path.parent / "twin")))
    found = seen.host.find_publication(seen.client, instant)
    assert found is not None
    assert found.version == receipt.version == str(version(path))
    assert found.completion_time == instant.completion_time


def test_a_replayed_write_has_the_bounds_of_the_first_but_for_floats(
    monkeypatch: pytest.MonkeyPatch, path: Path, table: hudi.Table
) -> None:
    table.insert(rows(3))
    cut_short(monkeypatch, lambda: table.insert(rows(8)))
    publish(path, last_write(path))
    written, replayed = (
        json.loads(action["add"]["stats"])
        for number in (2, 3)
        for action in actions_of(path, number)
        if "add" in action
    )
    assert written["minValues"].keys() - replayed["minValues"].keys() == {"value"}
    assert written["nullCount"].keys() == replayed["nullCount"].keys()
    # the second write merged its row into the file of the first
    assert replayed["minValues"]["inner"] == {"x": 3, "word": "w" * 32}
    assert replayed["maxValues"]["inner"]["x"] == 8


@pytest.mark.parametrize("action", [Action.CLEAN, Action.ROLLBACK])
def test_actions_without_files_are_empty_versions_and_replay(
    path: Path, table: hudi.Table, action: Action
) -> None:
    seen = opened(path)
    instant = Instant(
        InstantTime("20991231000000000"), action, State.COMPLETED, InstantTime("20991231000000001")
    )
    calls: dict[Action, Callable[[], Any]] = {
        Action.CLEAN: lambda: seen.host.complete_clean(
            seen.client, CleanMetadata("20991231000000000", 0, 0, ""), instant
        ),
        Action.ROLLBACK: lambda: seen.host.complete_rollback(
            seen.client, RollbackMetadata("20991231000000000", 0, 0, ()), instant
        ),
    }
    first = calls[action]()
    assert first == calls[action]()
    assert first.version == str(version(path)) == "2"
    assert {next(iter(each)) for each in actions_of(path, 2)} == {"commitInfo", "txn"}
    found = seen.host.find_publication(seen.client, instant)
    assert found is not None
    assert (found.action, found.version) == (action, "2")


# --- errors around the commit ------------------------------------------------------------------


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What the next versions do: "lost" (put, but answered with an error) or "failed"."""
    waiting: list[str] = []
    real = PosixStorage.put_if_absent

    def faulty(storage: PosixStorage, path: str, data: bytes) -> None:
        fault = waiting.pop(0) if waiting and path.startswith("_delta_log/") else ""
        if fault != "failed":
            real(storage, path, data)
        if fault:
            raise StorageError("The connection broke", "Try again.")

    monkeypatch.setattr(PosixStorage, "put_if_absent", faulty)
    monkeypatch.setattr(hudi_core.txn.publication, "_PAUSE_S", 0)
    yield waiting
    assert not waiting


def test_a_commit_that_failed_is_tried_again_on_the_same_version(
    path: Path, table: hudi.Table, faults: list[str]
) -> None:
    faults += ["failed", "lost"]
    table.insert(rows(3))
    assert version(path) == 2
    assert_all_read(path, content(rows(0, 1, 2, 3)))


def test_an_outcome_that_stays_open_is_said_to_be_open(
    path: Path, table: hudi.Table, faults: list[str]
) -> None:
    faults += ["failed"] * 3
    with pytest.raises(CommitStateUnknownError):
        table.insert(rows(3))
    assert version(path) == 1
    publish(path, last_write(path))
    assert_all_read(path, content(rows(0, 1, 2, 3)))


def test_a_log_that_cannot_be_asked_leaves_the_outcome_open(
    monkeypatch: pytest.MonkeyPatch, path: Path, table: hudi.Table, faults: list[str]
) -> None:
    cut_short(monkeypatch, lambda: table.insert(rows(3)))
    faults.append("lost")
    calls: list[object] = []

    def once(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 2:
            raise StorageError("The store is gone", "Wait for it.")
        return open_log(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(delta_format.commit, "open_log", once)
        with pytest.raises(CommitStateUnknownError):
            publish(path, last_write(path))
    assert publish(path, last_write(path)).version == "2"
    assert_all_read(path, content(rows(0, 1, 2, 3)))


def test_who_loses_the_race_for_a_version_records_nothing(
    monkeypatch: pytest.MonkeyPatch, path: Path, table: hudi.Table
) -> None:
    cut_short(monkeypatch, lambda: table.insert(rows(3)))
    instant = last_write(path)
    real = PosixStorage.put_if_absent

    def overtaken(storage: PosixStorage, name: str, data: bytes) -> None:
        DeltaTable(str(path)).alter.set_table_name("other")
        real(storage, name, data)

    monkeypatch.setattr(PosixStorage, "put_if_absent", overtaken)
    with pytest.raises(CommitConflictError, match="from version 1 to 2"):
        publish(path, instant)
    assert content(by_deltalake(path)) == content(rows(0, 1, 2))


def test_the_recorded_parent_is_what_is_compared(
    monkeypatch: pytest.MonkeyPatch, path: Path, table: hudi.Table
) -> None:
    cut_short(monkeypatch, lambda: table.insert(rows(3)))
    instant = last_write(path)
    seen = opened(path)
    metadata = seen.client.read_commit(instant)

    def built_on(parent: str) -> Any:
        return replace(metadata, extra_metadata={**metadata.extra_metadata, PARENT_KEY: parent})

    with pytest.raises(CommitConflictError, match="builds on version 0"):
        publish_once(seen, built_on("0"), instant)
    assert version(path) == 1
    # a vacuum changes no rows
    DeltaTable(str(path)).vacuum(dry_run=False)
    receipt = publish_once(seen, built_on("1"), instant)
    assert receipt.version == str(version(path))
    assert_all_read(path, content(rows(0, 1, 2, 3)))


def test_columns_that_an_earlier_release_has_added_first_are_no_other_parent(
    monkeypatch: pytest.MonkeyPatch, path: Path, table: hudi.Table
) -> None:
    cut_short(monkeypatch, lambda: WRITES["insert_with_column"](table))
    instant, seen = last_write(path), opened(path)
    steps = {"hudi.step": "schema", "hudi.step-of": instant.requested_time}
    DeltaTable(str(path)).alter.add_columns(
        [Field("extra", PrimitiveType("long"))],
        commit_properties=CommitProperties(custom_metadata=steps),
    )
    metadata = seen.client.read_commit(instant)
    metadata = replace(metadata, extra_metadata={**metadata.extra_metadata, PARENT_KEY: "1"})
    assert publish_once(seen, metadata, instant).version == "3"
    assert by_deltalake(path).column("extra").to_pylist().count(7) == 1
    seen.host.before_rollback(seen.client, instant)
    assert by_deltalake(path).schema == by_deltalake(path, 1).schema


def test_columns_and_their_files_come_in_one_version(path: Path, table: hudi.Table) -> None:
    table.upsert(rows(0, ts=1).append_column("extra", pa.array([7], pa.int64())))
    assert version(path) == 2
    kinds = [next(iter(action)) for action in actions_of(path, 2)]
    assert kinds == ["commitInfo", "txn", "metaData", "remove", "add"]


# --- rollback ----------------------------------------------------------------------------------


def test_a_write_that_never_reached_the_log_is_fenced_off(
    monkeypatch: pytest.MonkeyPatch, path: Path, table: hudi.Table
) -> None:
    cut_short(monkeypatch, lambda: table.insert(rows(3)))
    instant, seen = last_write(path), opened(path)
    stale = open_log(seen.client)
    seen.host.before_rollback(seen.client, instant)
    # a request that still travels does not get it in
    with pytest.raises(AlreadyExistsError):
        make_next(seen.client, stale, NewVersion({"hudi.instant": "x"}))
    table.rollback(instant)
    table.insert(rows(4))
    assert_all_read(path, content(rows(0, 1, 2, 4)))


def test_the_first_write_of_a_table_is_taken_out(path: Path, table: hudi.Table) -> None:
    table.rollback(last_write(path))
    assert_all_read(path, content(rows(4).slice(1)))
    table.insert(rows(4))
    assert_all_read(path, content(rows(4)))
