"""Stages beside other writes: conflicts, and publication once."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import (
    StageConflictError,
    UnknownStageError,
)
from hudi_core.services import stage as stage_service
from hudi_core.services import stage_record
from tests.formats.service_tables import agree, batch
from tests.formats.stages.staged_rows import folder, rows


def _rename(table: hudi.Table) -> None:
    table.alter(add_columns={"note": pa.string()})


def _archive(table: hudi.Table) -> None:
    often = {
        "hoodie.cleaner.commits.retained": "1",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.metadata.compact.max.delta.commits": "1",
    }
    for at in range(6):
        table.insert_overwrite(batch(5, f"z{at}"), options=often)
    assert table.history().to_pylist()[-1]["archived"]


CONFLICTS: list[tuple[str, tuple[str, ...], Callable[[hudi.Table], Any], str]] = [
    ("upsert", ("a",), lambda table: table.upsert(batch(9, "b")), "file group"),
    ("upsert", ("c", "a"), lambda table: table.delete(batch(9, "a")), "file group"),
    ("upsert", ("a",), lambda table: table.cluster(sort_by="ts"), "file group"),
    ("upsert", ("a",), lambda table: table.delete_partitions(["rome"]), "file group"),
    ("upsert", ("y",), lambda table: table.rollback(table.timeline.instants[-1]), "file group"),
    ("upsert", ("y",), lambda table: table.restore(table.timeline.instants[0]), "file group"),
    ("insert_overwrite", ("c",), lambda table: table.bulk_insert(batch(9, "d")), "overwrites"),
    ("insert", ("c",), _rename, "columns"),
    ("insert", ("c",), _archive, "archived"),
]


@pytest.mark.parametrize(("operation", "keys", "meanwhile", "reason"), CONFLICTS)
def test_what_changed_since_is_a_conflict(
    native: hudi.Table,
    operation: str,
    keys: tuple[str, ...],
    meanwhile: Callable[[hudi.Table], Any],
    reason: str,
) -> None:
    staged = native.stage(batch(5, *keys), operation)
    meanwhile(hudi.Table.open(native.path))
    now = agree(Path(native.path))
    with pytest.raises(StageConflictError, match="stage its rows again") as caught:
        staged.publish()
    assert reason in caught.value.reason
    assert not caught.value.retryable
    with pytest.raises(StageConflictError):
        staged.to_arrow()
    assert agree(Path(native.path)) == now
    assert [one.id for one in native.stages()] == [staged.id]


def test_a_key_that_others_inserted_is_a_conflict(table: hudi.Table) -> None:
    new_files = {"hoodie.parquet.small.file.limit": "0"}
    staged = table.stage(batch(5, "n"), options=new_files)
    other = table.stage(batch(5, "o"), options=new_files)
    hudi.Table.open(table.path).upsert(batch(9, "n"), options=new_files)
    with pytest.raises(StageConflictError, match="both added record key 'n'"):
        staged.publish()
    # in the same partition, and nothing in common
    other.publish()
    assert sum(agree(Path(table.path)).values()) == 6


MARKED = batch(9, "n", "a").append_column("_hoodie_is_deleted", pa.array([True, False]))


@pytest.mark.parametrize(
    ("operation", "given", "is_held"),
    [
        ("delete", batch(9, "n"), False),
        ("delete", batch(9, "n", "x"), False),
        ("delete", batch(9, "n"), True),
        ("upsert", MARKED, False),
    ],
)
def test_rows_that_nobody_checked_are_not_deleted(
    native: hudi.Table, operation: str, given: pa.Table, is_held: bool
) -> None:
    """Others insert a key that was not there to be deleted."""
    alone = {"hoodie.parquet.small.file.limit": "0"}
    if operation == "upsert":
        columns = batch(1, "z").append_column("_hoodie_is_deleted", pa.array([False]))
        native.upsert(columns)
    staged = native.stage(given, operation, options=alone)
    other = hudi.Table.open(native.path)
    if is_held:  # the row comes into a file group of before
        other.upsert(batch(5, "n"))
    else:
        other.upsert(batch(5, "n"), options=alone)
    now = agree(Path(native.path))
    with pytest.raises(StageConflictError, match="delete rows that others inserted since"):
        staged.publish()
    assert agree(Path(native.path)) == now
    # once it has gone nothing is in the way
    other.delete(batch(5, "n"))
    staged.publish()
    assert "n" not in native.to_arrow("id")["id"].to_pylist()


def test_other_writes_go_on(table: hudi.Table) -> None:
    staged = table.stage(batch(5, "a"))
    for _ in range(2):
        table.upsert(batch(9, "x"))
    table.clean(options={"hoodie.cleaner.commits.retained": "1"})
    would_be = rows(staged)
    staged.publish()
    assert agree(Path(table.path)) == would_be
    assert {row["id"]: row["ts"] for row in table.to_arrow().to_pylist()} == {
        "a": 5,
        "b": 1,
        "x": 9,
        "y": 2,
    }


def test_what_was_published_is_not_published_twice(table: hudi.Table, tmp_path: Path) -> None:
    """As after a crash between the commit and the deletion of the stage."""
    staged = table.stage(batch(5, "c"), "bulk_insert")
    shutil.copytree(folder(table), tmp_path / "kept")
    first = staged.publish()
    shutil.copytree(tmp_path / "kept", folder(table), dirs_exist_ok=True)
    again = hudi.Table.open(table.path).find_stage(staged.id).publish()
    assert again.is_repetition
    assert again.instant == first.instant
    assert sum(agree(Path(table.path)).values()) == 5
    assert table.stages() == ()


def test_two_publish_one_stage_at_once(native: hudi.Table) -> None:
    together = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
    table = hudi.Table.open(native.path, together)
    staged = table.stage(batch(5, "c"), "bulk_insert")
    first: list[Any] = []

    def publish_first(rows: object, commit: object) -> None:
        if not first:
            first.append(None)
            first[0] = hudi.Table.open(native.path, together).find_stage(staged.id).publish()

    second = staged.publish(validators=[publish_first])
    assert second.is_repetition
    assert second.instant == first[0].instant
    assert sum(agree(Path(native.path)).values()) == 5


@pytest.mark.parametrize("step", ["require_publishable", "require_as_checked"])
def test_what_is_dropped_meanwhile_is_not_published(
    native: hudi.Table, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    staged = native.stage(batch(5, "c"))
    require = getattr(stage_service, step)

    def dropped(*arguments: Any) -> None:
        require(*arguments)
        staged.drop()

    now, writes = agree(Path(native.path)), native.timeline.completed_writes()
    monkeypatch.setattr(stage_service, step, dropped)
    with pytest.raises(UnknownStageError, match="published or dropped"):
        staged.publish()
    assert list(folder(native).glob("*")) == []
    assert agree(Path(native.path)) == now
    assert native.timeline.completed_writes() == writes


def test_what_another_publishes_meanwhile_is_published_once(
    native: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other is done, and has deleted the stage, after the timeline was read."""
    together = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
    staged = hudi.Table.open(native.path, together).stage(batch(5, "c"), "bulk_insert")
    require = stage_record.require_as_checked
    first: list[Any] = []

    def published(*arguments: Any) -> None:
        require(*arguments)
        if not first:
            first.append(None)
            first[0] = hudi.Table.open(native.path, together).find_stage(staged.id).publish()

    monkeypatch.setattr(stage_service, "require_as_checked", published)
    second = staged.publish()
    assert (second.is_repetition, second.instant) == (True, first[0].instant)
    assert sum(agree(Path(native.path)).values()) == 5
