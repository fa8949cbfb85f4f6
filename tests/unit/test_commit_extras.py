"""Extra metadata of commits: the caller's, checkpoints carried over, idempotent writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.actions.archive import archive
from hudi_core.errors import CorruptMetadataError, InvalidOptionError, NotATableError
from hudi_core.model.commit import CommitMetadata, ReplaceCommitMetadata, WriteOperation
from hudi_core.model.extra_metadata import DELETED_ROWS_KEY
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.services.opening import open_table
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.clock import TimelineClock
from hudi_core.timeline.serde import encode
from hudi_core.txn.carried_metadata import IDEMPOTENCY_KEY, WITHHELD_KEY, Done
from hudi_core.txn.carried_metadata import encode as encode_done
from hudi_core.txn.heartbeat import Heartbeat
from tests.calls import calls_of
from tests.tables import TABLES, copied, new_table, rows

ROWS = rows("a", "b", city=["Rome", "Oslo"], n=[1, 2])
MORE = rows("c", city="Rome", n=3)
POINT = "streamer.checkpoint."
STREAMER = {f"{POINT}key.v2": "trips,0:17", f"{POINT}reset.key.v2": "trips,0:0"}
SINK = {"_hudi_streaming_sink_checkpoint": '{"default_single_writer":"4"}'}
KAFKA = {"kafka.commit.offsets": "0=17,1=9"}
SECRETS = {"fs.s3a.access.key": "canary", "fs.s3a.secret.key": "canary"}


# commits that are made by hand are not in a metadata table
WITHOUT = {"hoodie.metadata.enable": "false"}
SHARED = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
PREFIX = "hoodie.datasource.write.commitmeta.key.prefix"


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    return copied(tmp_path / "table", new_table, ROWS.schema, WITHOUT)


def kept(table: hudi.Table, result: hudi.CommitResult | None = None) -> dict[str, str]:
    """Extra metadata of a commit, by default the last, but the schema."""
    client = open_table(table.path, {}).client
    instant = client.timeline().completed_writes()[-1] if result is None else result.instant
    found = client.read_commit(instant).extra_metadata
    others = ("schema", DELETED_ROWS_KEY, WITHHELD_KEY)
    return {key: value for key, value in found.items() if key not in others}


def begun(table: hudi.Table, action: Action = Action.COMMIT) -> tuple[ActiveTimeline, Instant]:
    """Request an instant, as another engine would."""
    active = open_table(table.path, {}).client.active
    instant = Instant(TimelineClock(active).next_time(active.load()), action, State.REQUESTED)
    active.create_requested(instant, b"")
    return active, instant


def finished(
    active: ActiveTimeline, began: Instant, extra: dict[str, str], operation: str = "UPSERT"
) -> Instant:
    """Complete an instant without files."""
    make = ReplaceCommitMetadata if operation == "CLUSTER" else CommitMetadata
    body = encode(make(extra_metadata=extra, operation_type=operation))
    done = TimelineClock(active).next_time(active.load())
    return active.complete(began, done, body, active.load())


def foreign_commit(
    table: hudi.Table, extra: dict[str, str] | None = None, operation: str = "UPSERT"
) -> Instant:
    action = Action.REPLACECOMMIT if operation == "CLUSTER" else Action.COMMIT
    active, began = begun(table, action)
    return finished(active, active.to_inflight(began, b""), extra or {}, operation)


@contextmanager
def alive(table: hudi.Table, instant: Instant) -> Iterator[None]:
    """Let the writer of a pending instant give signs of life."""
    heart = Heartbeat(open_table(table.path, {}).client.scratch, instant.requested_time, 60_000)
    heart.start()
    try:
        yield
    finally:
        heart.stop()


OPERATIONS: dict[str, Callable[..., hudi.CommitResult]] = {
    "insert": lambda table, **more: table.insert(MORE, **more),
    "bulk_insert": lambda table, **more: table.bulk_insert(MORE, **more),
    "upsert": lambda table, **more: table.upsert(MORE, **more),
    "delete": lambda table, **more: table.delete(ROWS.slice(0, 1), **more),
    "insert_overwrite": lambda table, **more: table.insert_overwrite(MORE, **more),
    "insert_overwrite_table": lambda table, **more: table.insert_overwrite_table(MORE, **more),
    "delete_partitions": lambda table, **more: table.delete_partitions(["Rome"], **more),
    "alter": lambda table, **more: table.alter(add_columns={"x": pa.int8()}, **more),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_keeps_what_it_is_given(table: hudi.Table, operation: str) -> None:
    table.insert(ROWS)
    run, options = OPERATIONS[operation], {"_batch": 17, "_who": "job", "batch": "x"}
    result = run(table, extra_metadata={"_who": "me", "source": "orders"}, options=options)
    expected = {"_batch": "17", "_who": "me", "source": "orders"}
    assert kept(table, result) == expected
    assert expected.items() <= result.metadata.extra_metadata.items()


def test_options_are_kept_by_their_prefix_and_whole_name(tmp_path: Path) -> None:
    path = tmp_path / "table"
    named = {PREFIX: "ingest.", "ingest.source": "kafka", "ingest.": "all", "_not": "x"}
    hudi.write(ROWS, path, options=KEYED | named, extra_metadata={"more": "1"})
    found = kept(hudi.Table.open(path))
    assert found == {"ingest.source": "kafka", "ingest.": "all", "more": "1"}
    hudi.write(ROWS, path, options={"_x": True})
    assert kept(hudi.Table.open(path)) == {"_x": "true"}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({PREFIX: " "}, "credentials too"),
        ({"_session_token": "canary"}, "for all its readers to see"),
        ({PREFIX: "fs.", **SECRETS}, "for all its readers to see"),
        ({PREFIX: "sch", "schema": "x"}, "keeps this key itself"),
        ({PREFIX: "hudi", "hudi.x": "x"}, "key itself"),
        ({"hoodie.write.rolling.metadata.timeline.lookback.commits": "0"}, "less than 1"),
    ],
)
def test_options_that_are_not_kept(table: hudi.Table, options: dict[str, str], reason: str) -> None:
    with pytest.raises(InvalidOptionError, match=reason) as caught:
        table.insert(ROWS, options={**options, "hudi.table.format.plugin": "native"})
    assert "canary" not in str(caught.value)
    assert not table.timeline.instants


@pytest.mark.parametrize(
    "metadata",
    [{"schema": "{}"}, {"hudi.instant": "1"}, {"": "x"}, {"n": 1}, {1: "n"}, {"n": None}],
)
def test_keys_that_are_not_the_callers(table: hudi.Table, metadata: Any) -> None:
    with pytest.raises(InvalidOptionError, match="extra_metadata"):
        table.insert(ROWS, extra_metadata=metadata)
    assert not table.timeline.instants


# --- checkpoints of other engines
@pytest.mark.parametrize("checkpoint", [STREAMER, SINK, KAFKA, {**STREAMER, **SINK}])
def test_checkpoints_are_carried_over(table: hudi.Table, checkpoint: dict[str, str]) -> None:
    foreign_commit(table, {**checkpoint, "schema": "", "of.the.job": "x"})
    for run in (OPERATIONS["insert"], OPERATIONS["alter"], OPERATIONS["delete_partitions"]):
        assert kept(table, run(table)) == checkpoint


@pytest.mark.parametrize(
    ("extra", "operation", "expected"), [({}, "CLUSTER", STREAMER), (KAFKA, "UPSERT", KAFKA)]
)
def test_a_commit_without_a_checkpoint_ends_it_and_a_service_does_not(
    table: hudi.Table, extra: dict[str, str], operation: str, expected: dict[str, str]
) -> None:
    foreign_commit(table, STREAMER)
    foreign_commit(table, extra, operation)
    assert kept(table, table.insert(ROWS)) == expected


def test_what_the_caller_gives_goes_before(table: hudi.Table) -> None:
    foreign_commit(table, {**STREAMER, **SINK})
    mine = {"streamer.checkpoint.key.v2": "trips,0:18"}
    assert kept(table, table.insert(ROWS, extra_metadata=mine)) == {**mine, **SINK}


def test_an_older_checkpoint_does_not_stand_before_a_newer_one(table: hudi.Table) -> None:
    """Its engine goes by requested times: an earlier write may bring it."""
    foreign_commit(table, {**STREAMER, "n": "1"})
    active, began = begun(table)
    began = active.to_inflight(began, b"")
    with alive(table, began):
        assert kept(table, table.insert(ROWS, options=SHARED)) == {}
        newer = {**STREAMER, "streamer.checkpoint.key.v2": "trips,0:40"}
        finished(active, began, newer)
    assert kept(table, table.insert(ROWS)) == newer


def test_writes_that_overlap_leave_no_gap(table: hudi.Table) -> None:
    foreign_commit(table, STREAMER)
    active, began = begun(table)
    with alive(table, began):
        table.insert(ROWS, options=SHARED)
        assert kept(table, table.insert(ROWS, options=SHARED, extra_metadata=SINK)) == SINK
    active.delete(began)
    assert kept(table, table.insert(ROWS)) == {**STREAMER, **SINK}


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Reads of instant files: the timeline, and the instant."""
    return calls_of(monkeypatch, ActiveTimeline, "read")


def test_a_write_reads_the_commit_of_another_once(table: hudi.Table, read: list[Any]) -> None:
    table.insert(ROWS, idempotency=("job", 1))
    last = table.timeline.completed_writes()[-1]
    read.clear()
    # who builds a metadata table reads which files each commit names
    hudi.Table.open(table.path, WITHOUT).upsert(ROWS, idempotency=("job", 2))
    assert [instant for _, instant in read].count(last) == 1


def test_a_write_does_not_read_its_own_commit(table: hudi.Table, read: list[Any]) -> None:
    last = table.insert(ROWS, idempotency=("job", 1)).instant
    read.clear()
    table.upsert(ROWS, idempotency=("job", 2))
    assert last not in [instant for _, instant in read]


# --- rolling keys
def test_rolling_keys_are_looked_for_in_the_last_commits(table: hudi.Table) -> None:
    rolling = {"hoodie.write.rolling.metadata.keys": "a, b,c"}
    assert kept(table, table.insert(ROWS, options=rolling)) == {}
    table.insert(ROWS, extra_metadata={"a": "1", "b": "1", "d": "1"})
    table.insert(ROWS, extra_metadata={"b": "2", "c": ""})
    found = table.insert(ROWS, extra_metadata={"c": "3"}, options=rolling)
    assert kept(table, found) == {"a": "1", "b": "2", "c": "3"}
    table.insert(ROWS)
    near = {**rolling, "hoodie.write.rolling.metadata.timeline.lookback.commits": "1"}
    assert kept(table, table.insert(ROWS, options=near)) == {}
    assert kept(table, table.insert(ROWS, options=rolling)) == {"a": "1", "b": "2", "c": "3"}
    assert found.operation is WriteOperation.INSERT


KEYED = {"hoodie.datasource.write.recordkey.field": "id"}
JOB = "job"


def files(table: hudi.Table) -> set[str]:
    """All files of a table but scratch and metadata files."""
    found = (path for path in Path(table.path).rglob("*") if path.is_file())
    return {str(path.relative_to(table.path)) for path in found if ".temp" not in path.parts}


def account(table: hudi.Table) -> dict[str, list[Any]]:
    """The entry of the newest commit for idempotent writes."""
    client = open_table(table.path, {}).client
    writes = client.timeline().completed_writes()
    newest = max(writes, key=lambda one: one.effective_completion_time)
    return dict(json.loads(client.read_commit(newest).extra_metadata[IDEMPOTENCY_KEY]))


@pytest.mark.parametrize("format_name", TABLES)
def test_a_repetition_writes_nothing_and_returns_the_first(
    format_name: str, tmp_path: Path
) -> None:
    table = new_table(tmp_path / "table", ROWS.schema, format=format_name)
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
    assert table.count() == 2
    later = table.insert(MORE, idempotency=(JOB, 4))
    assert not later.is_repetition
    assert table.insert(ROWS, idempotency=(JOB, 3)).instant == later.instant
    assert table.count() == 3
    table.rollback(later.instant)
    again = table.insert(MORE, idempotency=(JOB, 4))
    assert not again.is_repetition, "it was rolled back"
    assert table.insert(ROWS, idempotency=(JOB, 3)).instant == again.instant
    assert table.count() == 3
    assert table.validate().differences == ()


@pytest.mark.parametrize("operation", sorted(OPERATIONS.keys() - {"insert", "alter"}))
def test_every_operation_is_done_once(operation: str, tmp_path: Path) -> None:
    table, run = new_table(tmp_path / "table", ROWS.schema), OPERATIONS[operation]
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
    table = new_table(tmp_path / "table", ROWS.schema)
    first = table.insert(ROWS, idempotency=(JOB, 1))
    other = table.insert(MORE, idempotency=("other job é", 9))
    table.upsert(ROWS)
    table.alter(add_columns={"x": pa.int8()}, options={"txnAppId": JOB, "txnVersion": 7})
    one, two = (done.instant.requested_time for done in (first, other))
    assert account(table) == {JOB: [1, one], "other job é": [9, two]}
    assert table.insert(ROWS, idempotency=(JOB, 1)).instant == first.instant
    plain = new_table(tmp_path / "plain", ROWS.schema).insert(ROWS)
    assert "hudi.idempotency" not in plain.metadata.extra_metadata


def test_commits_of_other_engines_stand_between_without_effect(tmp_path: Path) -> None:
    table = new_table(tmp_path / "table", ROWS.schema, WITHOUT)
    first = table.insert(ROWS, idempotency=(JOB, 1))
    for _ in range(3):
        foreign_commit(table)
    assert table.insert(ROWS, idempotency=(JOB, 1)).instant == first.instant
    table.upsert(ROWS)
    assert account(table) == {JOB: [1, first.instant.requested_time]}


def test_what_was_archived_is_remembered(tmp_path: Path) -> None:
    table = new_table(tmp_path / "table", ROWS.schema, WITHOUT)
    first = table.insert(ROWS, idempotency=(JOB, 1))
    foreign = foreign_commit(table)
    foreign_commit(table)
    archive(open_table(table.path, WITHOUT).client, [first.instant, foreign])
    table = hudi.Table.open(table.path, WITHOUT)
    assert first.instant not in table.timeline.instants
    again = table.insert(ROWS, idempotency=(JOB, 1))
    assert again.is_repetition
    assert (again.instant, again.inserted) == (first.instant, 2)
    assert not table.upsert(MORE, idempotency=(JOB, 2)).is_repetition
    assert account(table)[JOB][0] == 2


def test_a_write_that_is_gone_is_still_a_repetition(tmp_path: Path) -> None:
    table = new_table(tmp_path / "table", ROWS.schema, WITHOUT)
    table.insert(ROWS, idempotency=(JOB, 1))
    gone = {IDEMPOTENCY_KEY: encode_done({JOB: Done(8, InstantTime("20200101000000000"))})}
    foreign_commit(table, gone)
    again = table.delete(ROWS, idempotency=(JOB, 8))
    assert again.is_repetition
    assert again.instant.requested_time == "20200101000000000"
    assert (again.inserted, again.deleted, again.files) == (0, 0, 0)
    assert again.operation is hudi.WriteOperation.DELETE


def test_a_thousand_applications_are_remembered(tmp_path: Path) -> None:
    times = [InstantTime(f"20260101000000{number:03d}") for number in range(1000)]
    done = {f"job {number}": Done(1, time) for number, time in enumerate(times)}
    text = encode_done({**done, "newest": Done(1, InstantTime("20260101000001000"))})
    found = json.loads(text)
    assert len(found) == 1000
    assert "newest" in found
    assert "job 0" not in found


def test_what_a_commit_keeps_is_not_trusted(tmp_path: Path) -> None:
    table = new_table(tmp_path / "table", ROWS.schema, WITHOUT)
    table.insert(ROWS, idempotency=(JOB, 1))
    for text in ("{", "[]", '{"job":[1]}', '{"job":["1","20260101000000000"]}', '{"job":[1,"x"]}'):
        foreign_commit(table, {IDEMPOTENCY_KEY: text})
        with pytest.raises(CorruptMetadataError, match=r"hudi\.idempotency cannot be read"):
            table.insert(ROWS, idempotency=(JOB, 1))
        with pytest.raises(CorruptMetadataError):
            table.insert(ROWS)
    assert table.to_arrow().num_rows == 2


# --- doors
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
    table = new_table(tmp_path / "table", ROWS.schema)
    with pytest.raises(InvalidOptionError, match="idempotency=\\('orders', 17\\)"):
        table.insert(ROWS, idempotency=idempotency)
    assert not table.timeline.instants


def test_a_dry_run_is_no_write(tmp_path: Path) -> None:
    table = new_table(tmp_path / "table", ROWS.schema)
    table.plan("insert", ROWS)
    assert not table.insert(ROWS, idempotency=(JOB, 1)).is_repetition
