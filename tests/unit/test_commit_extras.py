"""Extra metadata of commits: their callers' texts, and values carried over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import InvalidOptionError
from hudi_core.model.commit import CommitMetadata, ReplaceCommitMetadata, WriteOperation
from hudi_core.model.extra_metadata import DELETED_ROWS_KEY
from hudi_core.model.instant import Action, Instant, State
from hudi_core.services.opening import open_table
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.clock import TimelineClock
from hudi_core.timeline.serde import encode
from hudi_core.txn.carried_metadata import WITHHELD_KEY
from hudi_core.txn.heartbeat import Heartbeat

ROWS = pa.table({"id": ["a", "b"], "city": ["Rome", "Oslo"], "n": [1, 2]})
STREAMER = {
    "streamer.checkpoint.key.v2": "trips,0:17",
    "streamer.checkpoint.reset.key.v2": "trips,0:0",
}
SINK = {"_hudi_streaming_sink_checkpoint": '{"default_single_writer":"4"}'}
KAFKA = {"kafka.commit.offsets": "0=17,1=9"}


# commits that are made by hand are not in a metadata table
WITHOUT = {"hoodie.metadata.enable": "false"}


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    path = str(tmp_path / "table")
    return hudi.Table.create(
        path, ROWS.schema, record_key="id", partition_by="city", options=WITHOUT
    )


def kept(table: hudi.Table, result: hudi.CommitResult | None = None) -> dict[str, str]:
    """Extra metadata of a commit, by default the last, but the schema."""
    client = open_table(table.path, {}).client
    instant = client.timeline().completed_writes()[-1] if result is None else result.instant
    found = client.read_commit(instant).extra_metadata
    others = ("schema", DELETED_ROWS_KEY, WITHHELD_KEY)
    return {key: value for key, value in found.items() if key not in others}


def foreign_commit(table: hudi.Table, extra: dict[str, str], operation: str = "UPSERT") -> None:
    """Complete a commit without files, as another engine would."""
    active = open_table(table.path, {}).client.active
    time = TimelineClock(active).next_time(active.load())
    action = Action.REPLACECOMMIT if operation == "CLUSTER" else Action.COMMIT
    make = ReplaceCommitMetadata if operation == "CLUSTER" else CommitMetadata
    instant = Instant(time, action, State.REQUESTED)
    active.create_requested(instant, b"")
    pending = active.to_inflight(instant, b"")
    body = encode(make(extra_metadata=extra, operation_type=operation))
    done = TimelineClock(active).next_time(active.load())
    active.complete(pending, done, body, active.load())


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
    "insert": lambda table, **more: table.insert(ROWS, **more),
    "bulk_insert": lambda table, **more: table.bulk_insert(ROWS, **more),
    "upsert": lambda table, **more: table.upsert(ROWS, **more),
    "delete": lambda table, **more: table.delete(ROWS.slice(0, 1), **more),
    "insert_overwrite": lambda table, **more: table.insert_overwrite(ROWS, **more),
    "insert_overwrite_table": lambda table, **more: table.insert_overwrite_table(ROWS, **more),
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
    path = str(tmp_path / "table")
    options = {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.commitmeta.key.prefix": "ingest.",
        "ingest.source": "kafka",
        "ingest.": "all",
        "_not": "x",
    }
    hudi.write(ROWS, path, options=options, extra_metadata={"more": "1"})
    found = kept(hudi.Table.open(path))
    assert found == {"ingest.source": "kafka", "ingest.": "all", "more": "1"}
    hudi.write(ROWS, path, options={"_x": True})
    assert kept(hudi.Table.open(path)) == {"_x": "true"}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"hoodie.datasource.write.commitmeta.key.prefix": " "}, "credentials too"),
        ({"_session_token": "canary"}, "for all its readers to see"),
        (
            {
                "hoodie.datasource.write.commitmeta.key.prefix": "fs.",
                "fs.s3a.access.key": "canary",
                "fs.s3a.secret.key": "canary",
            },
            "for all its readers to see",
        ),
        (
            {"hoodie.datasource.write.commitmeta.key.prefix": "sch", "schema": "x"},
            "keeps this key itself",
        ),
        ({"hoodie.datasource.write.commitmeta.key.prefix": "hudi", "hudi.x": "x"}, "key itself"),
        ({"hoodie.write.rolling.metadata.timeline.lookback.commits": "0"}, "less than 1"),
    ],
)
def test_options_that_cannot_be_kept(
    table: hudi.Table, options: dict[str, str], reason: str
) -> None:
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


# --- checkpoints of other engines ----------------------------------------------------------------


@pytest.mark.parametrize("checkpoint", [STREAMER, SINK, KAFKA, {**STREAMER, **SINK}])
def test_checkpoints_are_carried_over(table: hudi.Table, checkpoint: dict[str, str]) -> None:
    foreign_commit(table, {**checkpoint, "schema": "", "of.the.job": "x"})
    for run in (OPERATIONS["insert"], OPERATIONS["alter"], OPERATIONS["delete_partitions"]):
        assert kept(table, run(table)) == checkpoint


def test_table_services_stand_between_without_effect(table: hudi.Table) -> None:
    foreign_commit(table, STREAMER)
    foreign_commit(table, {}, "CLUSTER")
    assert kept(table, table.insert(ROWS)) == STREAMER


def test_a_commit_without_a_checkpoint_ends_it(table: hudi.Table) -> None:
    foreign_commit(table, STREAMER)
    foreign_commit(table, KAFKA)
    assert kept(table, table.insert(ROWS)) == KAFKA


def test_what_the_caller_gives_goes_before(table: hudi.Table) -> None:
    foreign_commit(table, {**STREAMER, **SINK})
    mine = {"streamer.checkpoint.key.v2": "trips,0:18"}
    assert kept(table, table.insert(ROWS, extra_metadata=mine)) == {**mine, **SINK}


def test_an_older_checkpoint_does_not_stand_before_a_newer_one(table: hudi.Table) -> None:
    """Its engine goes by requested times: an earlier write may bring it."""
    foreign_commit(table, {**STREAMER, "n": "1"})
    active = open_table(table.path, {}).client.active
    began = Instant(TimelineClock(active).next_time(active.load()), Action.COMMIT, State.REQUESTED)
    shared = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
    active.create_requested(began, b"")
    pending = active.to_inflight(began, b"")
    with alive(table, began):
        meanwhile = table.insert(ROWS, options=shared)
        assert kept(table, meanwhile) == {}
        newer = {**STREAMER, "streamer.checkpoint.key.v2": "trips,0:40"}
        body = encode(CommitMetadata(extra_metadata=newer, operation_type="UPSERT"))
        done = TimelineClock(active).next_time(active.load())
        active.complete(pending, done, body, active.load())
    assert kept(table, table.insert(ROWS)) == newer


def test_writes_that_overlap_leave_no_gap(table: hudi.Table) -> None:
    foreign_commit(table, STREAMER)
    active = open_table(table.path, {}).client.active
    began = Instant(TimelineClock(active).next_time(active.load()), Action.COMMIT, State.REQUESTED)
    shared = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
    active.create_requested(began, b"")
    with alive(table, began):
        table.insert(ROWS, options=shared)
        assert kept(table, table.insert(ROWS, options=shared, extra_metadata=SINK)) == SINK
    active.delete(began)
    assert kept(table, table.insert(ROWS)) == {**STREAMER, **SINK}


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Instant]:
    """Give the instants whose files are read from a timeline, as they are read."""
    found: list[Instant] = []
    whole = ActiveTimeline.read

    def counted(self: ActiveTimeline, instant: Instant) -> bytes:
        found.append(instant)
        return whole(self, instant)

    monkeypatch.setattr(ActiveTimeline, "read", counted)
    return found


def test_a_write_reads_the_commit_of_another_before_it_once(
    table: hudi.Table, read: list[Instant]
) -> None:
    table.insert(ROWS, idempotency=("job", 1))
    last = table.timeline.completed_writes()[-1]
    read.clear()
    # who builds a metadata table reads which files each commit names
    hudi.Table.open(table.path, WITHOUT).upsert(ROWS, idempotency=("job", 2))
    assert read.count(last) == 1


def test_a_write_does_not_read_its_own_commit_before_it(
    table: hudi.Table, read: list[Instant]
) -> None:
    last = table.insert(ROWS, idempotency=("job", 1)).instant
    read.clear()
    table.upsert(ROWS, idempotency=("job", 2))
    assert last not in read


# --- rolling keys --------------------------------------------------------------------------------


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
