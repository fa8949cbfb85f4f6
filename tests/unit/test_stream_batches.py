"""Batches of streams: written once, tried again, and as far as a reader may go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.config.streaming import StreamSourceConfig
from hudi_core.doors.datasource import write
from hudi_core.doors.streaming import (
    SINK_CHECKPOINT,
    StreamBatch,
    checked_sink_options,
    stream_sink,
    write_batch,
    written_before,
)
from hudi_core.errors import (
    ConcurrentWriterError,
    HudiError,
    InvalidOptionError,
    MetaSyncError,
    MetaSyncWarning,
    SchemaError,
)
from hudi_core.model.actions import ClusteringPlan, RequestedReplaceMetadata
from hudi_core.model.instant_time import InstantTime, next_instant_time
from hudi_core.read.waiting import first_offset, latest_time, next_offset
from hudi_core.services.opening import open_table
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.serde import encode
from tests.version_6 import to_version_6

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.streaming.retry.interval.ms": "1",
}
IDENTIFIER = "hoodie.datasource.write.streaming.checkpoint.identifier"
QUERY = "6d9c1d4e-query"


def unordered_rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "ts": [0] * len(ids)})


def put(path: Path, number: int, *ids: int, query: str = QUERY, **more: str) -> Any:
    batch = StreamBatch(query, number)
    return write_batch(lambda: unordered_rows(*ids), str(path), {**OPTIONS, **more}, batch)


def ids(path: Path) -> list[int]:
    found: list[int] = hudi.Table.open(path).to_arrow("id")["id"].to_pylist()
    return sorted(found)


def commits(path: Path) -> int:
    return len(hudi.Table.open(path).timeline.completed_writes())


def test_compactions_between_batches(tmp_path: Path) -> None:
    """The newest commit keeps the number of the last batch, where Hudi's sink looks for it."""
    merged = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    disabled = {"hoodie.datasource.write.streaming.disable.compaction": "true"}
    for number in range(6):
        put(tmp_path, number, 1, 2, **merged, **disabled)
    table = hudi.Table.open(tmp_path)
    assert {one.action for one in table.timeline.instants} == {hudi.Action.DELTACOMMIT}
    put(tmp_path, 6, 1, **merged)
    assert put(tmp_path, 6, 1, **merged) is None
    client = open_table(str(tmp_path), {}).client
    last = client.timeline().completed_writes()[-1]
    assert last.action is hudi.Action.COMMIT
    kept = json.loads(client.read_commit(last).extra_metadata[SINK_CHECKPOINT])
    assert kept == {"default_single_writer": "6"}
    assert ids(tmp_path) == [1, 2]


@pytest.mark.parametrize(
    ("asked", "inline", "compacts"),
    [
        ("false", None, False),
        ("false", "true", True),
        ("true", "false", True),
        (None, "false", False),
    ],
)
def test_streams_are_asked_for_compactions(
    tmp_path: Path, asked: str | None, inline: str | None, compacts: bool
) -> None:
    given = {
        "hoodie.datasource.compaction.async.enable": asked,
        "hoodie.compact.inline": inline,
        "hoodie.compact.inline.max.delta.commits": "2",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    }
    for number in range(3):
        put(tmp_path, number, 1, 2, **{key: value for key, value in given.items() if value})
    instants = hudi.Table.open(tmp_path).timeline.instants
    assert (hudi.Action.COMMIT in {one.action for one in instants}) is compacts


def test_a_batch_is_written_once_by_each_query(tmp_path: Path) -> None:
    path = tmp_path / "t"
    insert = {"hoodie.datasource.write.operation": "insert"}
    assert put(path, 0, 1, 2, **insert).inserted == 2
    assert put(path, 1, 3, **insert).inserted == 1
    assert put(path, 1, 3, **insert) is None
    assert put(path, 0, 1, 2, **insert) is None
    # the same number of another query is another batch
    assert put(path, 0, 4, query="other", **insert).inserted == 1
    assert ids(path) == [1, 2, 3, 4]
    assert commits(path) == 3


def test_the_rows_of_a_repeated_batch_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "t"
    put(path, 0, 1)

    def unread() -> pa.Table:
        raise AssertionError("read")

    assert write_batch(unread, str(path), dict(OPTIONS), StreamBatch(QUERY, 0)) is None
    with pytest.raises(AssertionError, match="read"):
        write_batch(unread, str(path), dict(OPTIONS), StreamBatch(QUERY, 1))


def test_commits_say_the_batch_as_those_of_hudi(tmp_path: Path) -> None:
    path = tmp_path / "t"
    put(path, 0, 1)
    put(path, 1, 2, **{IDENTIFIER: "trips"})
    opened = open_table(str(path), {})
    kept = [
        json.loads(opened.client.read_commit(one).extra_metadata[SINK_CHECKPOINT])
        for one in opened.timeline().completed_writes()
    ]
    assert kept == [{"default_single_writer": "0"}, {"trips": "1"}]


def of_hudi(path: Path, last: int, name: str = "default_single_writer") -> None:
    write(
        unordered_rows(last),
        path,
        options=OPTIONS,
        extra_metadata={SINK_CHECKPOINT: json.dumps({name: str(last)})},
    )


def test_a_batch_that_hudis_sink_may_have_written(tmp_path: Path) -> None:
    path = tmp_path / "t"
    of_hudi(path, 3)
    for number in (0, 3):
        with pytest.raises(InvalidOptionError, match="Hudi's sink wrote batches up to 3"):
            put(path, number, 7)
    assert ids(path) == [3]
    # who says the name goes on with that query, of which Spark repeats the last batch alone
    mine = {IDENTIFIER: "default_single_writer"}
    assert put(path, 3, 7, **mine) is None
    with pytest.raises(InvalidOptionError, match="this is batch 2"):
        put(path, 2, 7, **mine)
    assert put(path, 4, 8, **mine).inserted == 1
    assert put(path, 4, 8, **mine) is None
    assert ids(path) == [3, 8]
    # a new query takes a name of its own
    assert put(path, 0, 9, query="new", **{IDENTIFIER: "new"}).inserted == 1


def test_batches_of_another_query_are_not_those_of_hudis_sink(tmp_path: Path) -> None:
    path = tmp_path / "t"
    put(path, 0, 1)
    put(path, 1, 2)
    put(path, 2, 3, **{IDENTIFIER: "renamed"})
    assert put(path, 0, 4, query="new").inserted == 1
    # a number that a query of ours wrote too does not make Hudi's batch ours
    of_hudi(path, 2)
    with pytest.raises(InvalidOptionError, match="Hudi's sink wrote batches up to 2"):
        put(path, 0, 5, query="newer")
    # it carries over what the commits before it keep
    put(path, 3, 6, **{IDENTIFIER: "renamed"})
    with pytest.raises(InvalidOptionError, match="Hudi's sink wrote batches up to 2"):
        put(path, 0, 5, query="newer")


def test_names_and_texts_of_hudis_checkpoints_that_say_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t"
    of_hudi(path, 3, "another")
    write(unordered_rows(5), path, options=OPTIONS, extra_metadata={SINK_CHECKPOINT: "[]"})
    assert put(path, 0, 7).inserted == 1


class Failing:
    def __init__(self, times: int, error: HudiError) -> None:
        self.left, self.error, self.tries = times, error, 0

    def __call__(self) -> pa.Table:
        self.tries += 1
        if self.left:
            self.left -= 1
            raise self.error
        return unordered_rows(1)


BUSY = ConcurrentWriterError("t", "20260101000000000")


@pytest.mark.parametrize(("count", "failures", "tries"), [("3", 2, 3), ("1", 0, 1)])
def test_what_may_pass_is_tried_again(
    tmp_path: Path, count: str, failures: int, tries: int
) -> None:
    path, source = tmp_path / "t", Failing(failures, BUSY)
    options = {**OPTIONS, "hoodie.datasource.write.streaming.retry.count": count}
    write_batch(source, str(path), options, StreamBatch(QUERY, 0))
    assert source.tries == tries
    assert ids(path) == [1]


@pytest.mark.parametrize(
    ("failures", "error", "tries"), [(3, BUSY, 3), (1, SchemaError("no", "Stop."), 1)]
)
def test_a_batch_that_fails_is_an_error_or_left_out(
    tmp_path: Path, failures: int, error: HudiError, tries: int
) -> None:
    source = Failing(failures, error)
    with pytest.raises(type(error)):
        write_batch(source, str(tmp_path / "t"), dict(OPTIONS), StreamBatch(QUERY, 0))
    assert source.tries == tries
    ignoring = {**OPTIONS, "hoodie.datasource.write.streaming.ignore.failed.batch": "true"}
    source = Failing(failures, error)
    with pytest.warns(RuntimeWarning, match="Batch 0 of the query .* was left out"):
        assert write_batch(source, str(tmp_path / "t"), ignoring, StreamBatch(QUERY, 0)) is None
    assert source.tries == tries


def test_a_batch_whose_sync_fails_is_not_left_out(tmp_path: Path) -> None:
    path = tmp_path / "t"
    sync = "hoodie.datasource.hive_sync."
    broken = {f"{sync}enable": "true", f"{sync}metastore.uris": "thrift://127.0.0.1:1"}
    with pytest.raises(MetaSyncError, match="is complete, but the sync"):
        put(path, 0, 1, **broken)
    ignoring = {**broken, "hoodie.datasource.write.streaming.ignore.failed.batch": "true"}
    with pytest.warns(MetaSyncWarning, match="is complete, but the sync") as warned:
        done = put(path, 1, 2, **ignoring)
    assert done.inserted == 1
    assert not [one for one in warned if "left out" in str(one.message)]
    assert ids(path) == [1, 2]


@pytest.mark.parametrize(
    "options",
    [
        {"txnAppId": "a", "txnVersion": "1"},
        {"hoodie.write.idempotency.application": "a"},
        {"hoodie.datasource.write.streaming.retry.count": "0"},
        {IDENTIFIER: " "},
    ],
)
def test_options_that_no_sink_takes(options: dict[str, str]) -> None:
    with pytest.raises(InvalidOptionError):
        checked_sink_options(options)
    with pytest.raises(InvalidOptionError):
        stream_sink("t", options)


def test_the_function_wants_a_batch_of_a_query(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="a DataFrame, not Table"):
        stream_sink(tmp_path / "t")(unordered_rows(1), 0)


def test_nothing_is_written_before_of_a_table_that_is_not_there(tmp_path: Path) -> None:
    assert not written_before(str(tmp_path / "t"), {}, StreamBatch(QUERY, 0))


@pytest.fixture
def followed(tmp_path: Path) -> OpenTable:
    for number in range(4):
        write(unordered_rows(number, number + 100), tmp_path / "t", options=OPTIONS)
    return open_table(str(tmp_path / "t"), {})


def times(opened: OpenTable) -> list[str]:
    return [one.effective_completion_time for one in opened.timeline().completed_writes()]


def config(**options: str) -> StreamSourceConfig:
    return StreamSourceConfig.from_options(options)


def test_where_a_stream_begins(followed: OpenTable) -> None:
    timeline = followed.timeline()

    def begin(text: str) -> str:
        start = config(**{"hoodie.datasource.streaming.startOffset": text}).start
        return first_offset(followed.client, timeline, start)

    assert begin("earliest") == begin("000") == config().start == "0" * 17
    assert (
        begin("latest")
        == begin("LATEST")
        == times(followed)[-1]
        == latest_time(followed.client, timeline)
    )
    assert begin("2026-01-02T03:04:05Z") == "20260102030405000"
    for text in ("", "soon"):
        with pytest.raises(InvalidOptionError):
            begin(text)


def test_how_far_a_batch_goes(followed: OpenTable) -> None:
    first, second, third, last = times(followed)
    client, timeline = followed.client, followed.timeline()

    def end(start: str, stop: str | None = None, **options: str) -> str:
        return next_offset(client, timeline, start, config(**options), stop)

    assert end("0") == last
    assert end(first, third) == third
    assert end(last) == last
    assert end(last, first) == last
    # each of these writes made one file
    assert end("0", maxFilesPerTrigger="1") == first
    assert end(first, maxFilesPerTrigger="2") == third
    assert end(first, second, maxFilesPerTrigger="2") == second
    assert end(first, maxBytesPerTrigger="1") == second
    assert end(first, maxBytesPerTrigger=str(1 << 30)) == last
    assert end(last, maxFilesPerTrigger="1") == last


def test_pending_writes_of_tables_that_record_no_completion_times(
    followed: OpenTable, tmp_path: Path
) -> None:
    to_version_6(tmp_path / "t")
    opened = open_table(str(tmp_path / "t"), {})
    first, second, third, last = times(opened)
    meta, client = tmp_path / "t/.hoodie", opened.client

    def reached(start: str = "0", stop: str | None = None, **options: str) -> tuple[str, str]:
        timeline = client.timeline()
        end = next_offset(client, timeline, start, config(**options), stop)
        return latest_time(client, timeline), end

    def behind(time: str) -> InstantTime:
        return next_instant_time(InstantTime(time), InstantTime(time))

    def add(time: str, action: str, request: bytes = b"") -> None:
        (meta / f"{time}.{action}.requested").write_bytes(request)

    assert reached() == (last, last)
    # neither changes rows, nor does what was requested last come before a completed write
    add(behind(first), "compaction")
    plan = RequestedReplaceMetadata("CLUSTER", ClusteringPlan())
    add(behind(first), "replacecommit", encode(plan))
    add(behind(last), "commit")
    assert reached() == (last, last)
    # a writer that began before another one has not finished
    done = meta / f"{third}.commit"
    body = done.read_bytes()
    done.unlink()
    assert reached() == (second, second)
    assert reached(maxFilesPerTrigger="1") == (second, first)
    assert reached(second) == (second, second)
    # what a stream that went too far has read, it does not read again
    assert reached(last) == (second, last)
    done.write_bytes(body)
    assert reached(second) == (last, last)
    # one that has been inflight, and one whose plan is empty
    (meta / f"{behind(second)}.replacecommit.inflight").write_bytes(b"")
    assert reached() == (second, second)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("as.of.instant", "20260101000000000"),
        ("hoodie.datasource.read.begin.instanttime", "earliest"),
        ("hoodie.datasource.read.end.instanttime", "20260101000000000"),
    ],
)
def test_options_of_reads_that_end(name: str, value: str) -> None:
    with pytest.raises(InvalidOptionError, match="a stream goes on for ever"):
        config(**{name: value})


def test_a_stream_of_changes_needs_no_begin() -> None:
    wanted = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.query.incremental.format": "cdc",
    }
    assert config(**wanted).is_feed
    assert not config().is_feed
