"""Idempotent writes: a repetition writes nothing and returns the first result."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.actions.archive import archive
from hudi_core.errors import CorruptMetadataError, InvalidOptionError, NotATableError
from hudi_core.model.commit import CommitMetadata
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.services.opening import open_table
from hudi_core.timeline.clock import TimelineClock
from hudi_core.timeline.serde import encode as encode_commit
from hudi_core.txn.idempotency import IDEMPOTENCY_KEY, Done, encode

ROWS = pa.table({"id": ["a", "b"], "city": ["Rome", "Oslo"], "n": [1, 2]})
MORE = pa.table({"id": ["c"], "city": ["Rome"], "n": [3]})
KEYED = {"hoodie.datasource.write.recordkey.field": "id"}
JOB = "job"


def create(tmp_path: Path, **more: Any) -> hudi.Table:
    return hudi.Table.create(
        str(tmp_path / "table"), ROWS.schema, record_key="id", partition_by="city", **more
    )


def files(table: hudi.Table) -> set[str]:
    """All files of a table but scratch and metadata files."""
    return {
        str(path.relative_to(table.path))
        for path in Path(table.path).rglob("*")
        if path.is_file() and ".temp" not in path.parts
    }


def account(table: hudi.Table) -> dict[str, list[Any]]:
    """The entry of the newest commit for idempotent writes."""
    client = open_table(table.path, {}).client
    newest = max(
        client.timeline().completed_writes(), key=lambda one: one.effective_completion_time
    )
    found: dict[str, list[Any]] = json.loads(
        client.read_commit(newest).extra_metadata[IDEMPOTENCY_KEY]
    )
    return found


def foreign_commit(table: hudi.Table, extra: dict[str, str] | None = None) -> Instant:
    """Complete a commit without files, as another engine would."""
    active = open_table(table.path, {}).client.active
    time = TimelineClock(active).next_time(active.load())
    instant = Instant(time, Action.COMMIT, State.REQUESTED)
    active.create_requested(instant, b"")
    pending = active.to_inflight(instant, b"")
    body = encode_commit(CommitMetadata(extra_metadata=extra or {}, operation_type="UPSERT"))
    done = TimelineClock(active).next_time(active.load())
    return active.complete(pending, done, body, active.load())


@pytest.mark.parametrize("format_name", ["native", "iceberg", "delta"])
def test_a_repetition_writes_nothing_and_returns_the_first_result(
    format_name: str, tmp_path: Path
) -> None:
    table = create(tmp_path, format=format_name)
    first = table.insert(ROWS, idempotency=(JOB, 3))
    assert not first.is_repetition
    before = files(table)
    for version in (3, 2, -7):
        again = hudi.Table.open(table.path).insert(ROWS, idempotency=(JOB, version))
        assert again.is_repetition
        assert str(again).endswith("written before)")
        assert again.instant == first.instant
        assert again.operation is first.operation
        assert (again.inserted, again.updated, again.deleted) == (2, 0, 0)
        assert (again.files, again.bytes_written) == (first.files, first.bytes_written)
        assert again.receipt.version == first.receipt.version
        assert again.metadata == first.metadata
        assert (dict(again.timings), again.statuses) == ({}, ())
    assert files(table) == before
    assert table.to_arrow().num_rows == 2
    later = table.insert(MORE, idempotency=(JOB, 4))
    assert not later.is_repetition
    assert table.insert(ROWS, idempotency=(JOB, 3)).instant == later.instant
    assert table.to_arrow().num_rows == 3
    table.rollback(later.instant)
    again = table.insert(MORE, idempotency=(JOB, 4))
    assert not again.is_repetition, "it was rolled back"
    assert table.insert(ROWS, idempotency=(JOB, 3)).instant == again.instant
    assert table.to_arrow().num_rows == 3
    assert table.validate().differences == ()


OPERATIONS: dict[str, Callable[..., hudi.CommitResult]] = {
    "bulk_insert": lambda table, **more: table.bulk_insert(MORE, **more),
    "upsert": lambda table, **more: table.upsert(MORE, **more),
    "delete": lambda table, **more: table.delete(ROWS.slice(0, 1), **more),
    "insert_overwrite": lambda table, **more: table.insert_overwrite(MORE, **more),
    "insert_overwrite_table": lambda table, **more: table.insert_overwrite_table(MORE, **more),
    "delete_partitions": lambda table, **more: table.delete_partitions(["Rome"], **more),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_is_done_once(operation: str, tmp_path: Path) -> None:
    table, run = create(tmp_path), OPERATIONS[operation]
    table.insert(ROWS, idempotency=("first", 1))
    done = run(table, idempotency=(JOB, 1))
    after = table.to_arrow()
    again = run(table, idempotency=(JOB, 1))
    assert again.is_repetition
    assert (again.instant, again.operation) == (done.instant, done.operation)
    assert (again.inserted, again.deleted) == (done.inserted, done.deleted)
    assert done.deleted == (operation in ("delete", "delete_partitions"))
    assert table.to_arrow() == after
    assert table.insert(ROWS, idempotency=("first", 1)).is_repetition, "others are remembered"
    assert table.timeline.instants[-1] == done.instant


def test_other_writes_carry_over_what_applications_wrote(tmp_path: Path) -> None:
    table = create(tmp_path)
    first = table.insert(ROWS, idempotency=(JOB, 1))
    other = table.insert(MORE, idempotency=("other job é", 9))
    table.upsert(ROWS)
    table.alter(add_columns={"x": pa.int8()}, options={"txnAppId": JOB, "txnVersion": 7})
    assert account(table) == {
        JOB: [1, first.instant.requested_time],
        "other job é": [9, other.instant.requested_time],
    }
    assert table.insert(ROWS, idempotency=(JOB, 1)).instant == first.instant
    assert "hudi.idempotency" not in create(tmp_path / "plain").insert(ROWS).metadata.extra_metadata


def test_commits_of_other_engines_stand_between_without_effect(tmp_path: Path) -> None:
    table = create(tmp_path, options={"hoodie.metadata.enable": "false"})
    first = table.insert(ROWS, idempotency=(JOB, 1))
    for _ in range(3):
        foreign_commit(table)
    assert table.insert(ROWS, idempotency=(JOB, 1)).instant == first.instant
    table.upsert(ROWS)
    assert account(table) == {JOB: [1, first.instant.requested_time]}


def test_what_was_archived_is_remembered(tmp_path: Path) -> None:
    options = {"hoodie.metadata.enable": "false"}
    table = create(tmp_path, options=options)
    first = table.insert(ROWS, idempotency=(JOB, 1))
    foreign = foreign_commit(table)
    foreign_commit(table)
    archive(open_table(table.path, options).client, [first.instant, foreign])
    table = hudi.Table.open(table.path, options)
    assert first.instant not in table.timeline.instants
    again = table.insert(ROWS, idempotency=(JOB, 1))
    assert again.is_repetition
    assert (again.instant, again.inserted) == (first.instant, 2)
    assert not table.upsert(MORE, idempotency=(JOB, 2)).is_repetition
    assert account(table)[JOB][0] == 2


def test_a_write_that_is_gone_is_still_a_repetition(tmp_path: Path) -> None:
    table = create(tmp_path, options={"hoodie.metadata.enable": "false"})
    table.insert(ROWS, idempotency=(JOB, 1))
    gone = {IDEMPOTENCY_KEY: encode({JOB: Done(8, InstantTime("20200101000000000"))})}
    foreign_commit(table, gone)
    again = table.delete(ROWS, idempotency=(JOB, 8))
    assert again.is_repetition
    assert again.instant.requested_time == "20200101000000000"
    assert (again.inserted, again.deleted, again.files) == (0, 0, 0)
    assert again.operation is hudi.WriteOperation.DELETE


def test_a_thousand_applications_are_remembered(tmp_path: Path) -> None:
    done = {
        f"job {number}": Done(1, InstantTime(f"20260101000000{number % 1000:03d}"))
        for number in range(1000)
    }
    text = encode({**done, "newest": Done(1, InstantTime("20260101000001000"))})
    found = json.loads(text)
    assert len(found) == 1000
    assert "newest" in found
    assert "job 0" not in found


def test_what_a_commit_keeps_is_not_trusted(tmp_path: Path) -> None:
    table = create(tmp_path, options={"hoodie.metadata.enable": "false"})
    table.insert(ROWS, idempotency=(JOB, 1))
    for text in ("{", "[]", '{"job":[1]}', '{"job":["1","20260101000000000"]}', '{"job":[1,"x"]}'):
        foreign_commit(table, {IDEMPOTENCY_KEY: text})
        with pytest.raises(CorruptMetadataError, match=r"hudi\.idempotency cannot be read"):
            table.insert(ROWS, idempotency=(JOB, 1))
        with pytest.raises(CorruptMetadataError):
            table.insert(ROWS)
    assert table.to_arrow().num_rows == 2


# --- doors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["append", "overwrite", "errorifexists", "ignore"])
def test_a_write_that_makes_the_table_is_done_once(mode: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    first = hudi.write(ROWS, path, mode, KEYED, idempotency=(JOB, 1))
    assert first is not None
    again = hudi.write(ROWS, path, mode, {**KEYED, "txnAppId": JOB, "txnVersion": 1})
    assert again is not None
    assert again.is_repetition
    assert again.instant == first.instant
    assert len(hudi.Table.open(path).timeline.instants) == 1
    if mode == "errorifexists":
        with pytest.raises(NotATableError):
            hudi.write(ROWS, path, mode, KEYED, idempotency=(JOB, 2))
    elif mode == "overwrite":
        assert not hudi.write(MORE, path, mode, KEYED, idempotency=(JOB, 2)).is_repetition  # type: ignore[union-attr]
        assert hudi.Table.open(path).to_arrow().num_rows == 1


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"txnAppId": "job"}, "txnAppId has no meaning without it|has no meaning without it"),
        ({"hoodie.write.idempotency.version": "1"}, "has no meaning without it"),
        ({"txnAppId": "job", "txnVersion": "one"}, "not a whole number"),
    ],
)
def test_options_that_say_half(options: dict[str, str], reason: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match=reason):
        hudi.write(ROWS, str(tmp_path / "table"), options=options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "idempotency", ["job", ("job",), ("job", "1"), ("job", True), ("", 1), (1, "job"), ("a", 1, 2)]
)
def test_arguments_that_say_nothing(idempotency: Any, tmp_path: Path) -> None:
    table = create(tmp_path)
    with pytest.raises(InvalidOptionError, match="idempotency=\\('orders', 17\\)"):
        table.insert(ROWS, idempotency=idempotency)
    assert not table.timeline.instants


def test_a_dry_run_is_no_write(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.plan("insert", ROWS)
    assert not table.insert(ROWS, idempotency=(JOB, 1)).is_repetition
