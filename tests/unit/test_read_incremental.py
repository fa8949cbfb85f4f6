"""Windows and moments of a table, and planned files read as the table's."""

from __future__ import annotations

import dataclasses
import json
import pickle
import threading
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hudi_core as hudi
from hudi_core.config.table import TableConfig
from hudi_core.errors import (
    CorruptMetadataError,
    DataFileError,
    HistoryExpiredError,
    InvalidInstantTimeError,
    SchemaError,
    TimeOutOfRangeError,
    UnsafePathError,
    UnsupportedTableError,
)
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.lister import table_lister
from hudi_core.model.actions import CleanMetadata, CleanPartitionMetadata
from hudi_core.model.commit import CommitMetadata, ReplaceCommitMetadata, WriteStat
from hudi_core.model.files import BasePath, FileId, PartitionPath
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import UTC_TIMELINE, InstantTime, parse_query_time, to_datetime
from hudi_core.model.protocols import TimelineView
from hudi_core.read.changes.incremental import IncrementalQuery
from hudi_core.read.file_reader import can_push_down
from hudi_core.read.filters import Filter, to_filter
from hudi_core.read.foreign import referenced_columns
from hudi_core.read.plan import PlannedSlice, ReadPlan
from hudi_core.read.scan import file_scan, scan
from hudi_core.schema.table_schema import TableSchema
from hudi_core.storage.options import StorageOptions
from hudi_core.storage.posix import PosixStorage
from hudi_core.timeline.serde import encode
from tests.tables import new_table

REGIONS = TableSchema.create(pa.schema([("id", pa.int64()), ("region", pa.string())]))


def at(n: int) -> InstantTime:
    return InstantTime(f"202601010000{n:05d}")


def base(file_id: str, time: InstantTime) -> str:
    return f"{file_id}_0-1-2_{time}.parquet"


def query_of(client: TableMetaClient, timeline: TimelineView) -> IncrementalQuery:
    return IncrementalQuery(client, timeline, table_lister(client))


class Builder:
    """Writes base files and completed instants the way a writer would."""

    def __init__(self, root: Path) -> None:
        self.config = TableConfig(
            name="t",
            record_key_fields=("id",),
            partition_fields=("region",),
            create_schema=REGIONS.to_avro("t"),
        )
        storage = PosixStorage(str(root), fsync=False)
        self.client = TableMetaClient(BasePath(str(root)), storage, self.config, StorageOptions())
        self.root = root
        self.previous: dict[tuple[str, str], InstantTime] = {}

    def write(
        self,
        requested: int,
        completed: int | None,
        groups: Mapping[tuple[str, str], Mapping[int, int]],
        replaced: Mapping[str, tuple[str, ...]] | None = None,
        operation: str | None = None,
    ) -> None:
        """Write one file per group with ``{id: requested time of the row's commit}``."""
        time = at(requested)
        stats: dict[str, list[WriteStat]] = {}
        for (partition, file_id), rows in groups.items():
            path = f"{partition}/{base(file_id, time)}"
            self._base_file(path, partition, rows)
            stat = WriteStat(file_id=file_id, path=path, partition_path=partition)
            earlier = self.previous.get((partition, file_id))
            if earlier is not None:
                stat = dataclasses.replace(
                    stat, prev_commit=earlier, prev_base_file=base(file_id, earlier)
                )
            stats.setdefault(partition, []).append(stat)
            self.previous[partition, file_id] = time
        metadata = CommitMetadata(
            {path: tuple(each) for path, each in stats.items()}, operation_type=operation
        )
        if replaced is not None:
            metadata = ReplaceCommitMetadata(
                metadata.partition_to_write_stats,
                operation_type=operation,
                partition_to_replace_file_ids=replaced,
            )
        self.record(requested, completed, metadata)

    def record(self, requested: int, completed: int | None, metadata: CommitMetadata) -> None:
        is_replace = isinstance(metadata, ReplaceCommitMetadata)
        action = Action.REPLACECOMMIT if is_replace else Action.COMMIT
        instant = Instant(at(requested), action, State.REQUESTED)
        active = self.client.active
        active.create_requested(instant)
        inflight = active.to_inflight(instant)
        if completed is not None:
            active.complete(inflight, at(completed), encode(metadata))

    def archive(self, requested: int) -> None:
        """Move a completed write to the history."""
        active = self.client.active
        found = active.load().find(at(requested))
        assert found is not None
        assert found.completion_time is not None
        folder = f"{active.folder}/history"
        name = f"{found.requested_time}_{found.requested_time}_0.parquet"
        row = {
            "instantTime": found.requested_time,
            "completionTime": found.completion_time,
            "action": found.action.value,
            "metadata": active.read(found),
            "plan": None,
            "version": 1,
        }
        storage = self.client.storage
        storage.put(f"{folder}/_version_", b"1")
        path = self.root / folder / name
        pq.write_table(pa.Table.from_pylist([row]), path)
        entry = {"fileName": name, "fileLen": path.stat().st_size}
        storage.put(f"{folder}/manifest_1", json.dumps({"files": [entry]}).encode())
        for state in active.scan().files:
            if state.requested_time == found.requested_time:
                active.delete(state)

    def clean(self, requested: int, *paths: str) -> None:
        deleted: dict[str, list[str]] = {}
        for path in paths:
            (self.root / path).unlink()
            partition, _, name = path.rpartition("/")
            deleted.setdefault(partition, []).append(name)
        partitions = {
            one: CleanPartitionMetadata(one, "", success_delete_files=tuple(names))
            for one, names in deleted.items()
        }
        body = encode(CleanMetadata("", 0, len(paths), "", partition_metadata=partitions))
        name = f"{at(requested)}_{at(requested + 1)}.clean"
        self.client.storage.put(f"{self.client.active.folder}/{name}", body)

    def query(self) -> IncrementalQuery:
        return query_of(self.client, self.client.timeline())

    def ids(self, begin: str | None = None, end: str | None = None) -> list[int]:
        found = self.query().to_arrow(begin, end, ["id"]).read_all()["id"].to_pylist()
        return sorted(found)

    def net(self, begin: str | None = None, end: str | None = None) -> dict[int, str]:
        """What happened, by id."""
        rows = self.query().net(begin, end, ["id"]).to_arrow().read_all()
        return dict(zip(rows["id"].to_pylist(), rows["_change_type"].to_pylist(), strict=True))

    def feed(self, begin: str | None = None, end: str | None = None) -> list[tuple[str, str]]:
        """Operations and requested times."""
        rows = self.query().feed(begin, end, ["id"]).to_arrow().read_all().to_pylist()
        return sorted((row["ts_ms"], row["op"]) for row in rows)

    def _base_file(self, path: str, partition: str, rows: Mapping[int, int]) -> None:
        schema = REGIONS.with_meta()
        table = pa.Table.from_pylist(
            [
                {
                    "_hoodie_commit_time": at(time),
                    "_hoodie_commit_seqno": f"{at(time)}_0_{id_}",
                    "_hoodie_record_key": str(id_),
                    "_hoodie_partition_path": partition,
                    "_hoodie_file_name": path.rpartition("/")[2],
                    "id": id_,
                    "region": partition,
                }
                for id_, time in rows.items()
            ],
            schema,
        )
        (self.root / path).parent.mkdir(exist_ok=True)
        pq.write_table(table, self.root / path, store_schema=False)


@pytest.fixture
def table(tmp_path: Path) -> Builder:
    return Builder(tmp_path)


EU_A, EU_B, US_A = ("eu", "aaaa-0"), ("eu", "bbbb-0"), ("us", "aaaa-0")


def test_a_window_is_over_completion_times(table: Builder) -> None:
    table.write(10, 50, {EU_A: {1: 10}})  # requested first, completed last
    table.write(20, 30, {EU_B: {2: 20}})

    assert table.ids(at(0), at(40)) == [2]
    assert table.ids(at(40)) == [1]
    assert table.ids(at(30)) == [1]  # begin is exclusive,
    assert table.ids(None, at(30)) == [2]  # end is inclusive
    assert table.ids(at(29), at(30)) == [2]
    assert table.ids(at(50)) == table.ids(at(60), at(5)) == []


def test_rows_that_were_replaced_within_the_window_do_not_come(table: Builder) -> None:
    table.write(10, 15, {EU_A: {1: 10}, US_A: {9: 10}})
    table.write(20, 25, {EU_B: {2: 20}}, {"eu": ("aaaa-0",)})

    assert table.ids() == [2, 9]  # the same file id in another partition is another group
    assert table.ids(None, at(15)) == [1, 9]
    assert table.ids(at(15)) == [2]


def test_pending_writes_and_other_actions_do_not_count(table: Builder) -> None:
    table.write(10, 15, {EU_A: {1: 10}})
    table.write(20, None, {EU_A: {1: 20}})
    table.clean(30)

    assert table.ids() == [1]


def test_the_fence_of_the_format_decides(table: Builder) -> None:
    table.write(10, 15, {EU_A: {1: 10}})
    table.write(20, 25, {EU_B: {2: 20}})
    fenced = table.client.timeline().where(lambda instant: instant.requested_time != at(20))

    rows = query_of(table.client, fenced).to_arrow(columns=["id"]).read_all()

    assert rows["id"].to_pylist() == [1]


class OwnTimeline:
    """A format's own timeline, with what no other process can have."""

    def __init__(self, own: TimelineView) -> None:
        self._own, self._lock = own, threading.Lock()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)


def test_tasks_do_not_get_the_timeline(table: Builder) -> None:
    table.write(10, 15, {EU_A: {1: 10}})
    query = query_of(table.client, OwnTimeline(table.client.timeline()))
    for plan in (query.feed(columns=["id"]), query.net(columns=["id"])):
        scan = pickle.loads(pickle.dumps(plan.scan))
        assert sum(batch.num_rows for batch in scan.read(plan.parts)) == 1


def test_filters_prune_partitions_and_rows(table: Builder) -> None:
    table.write(10, 15, {EU_A: {1: 10, 2: 10}, US_A: {9: 10}})

    plan = table.query().plan(row_filter=[("region", "=", "eu"), ("id", ">", 1)])
    assert [file.partition_path for file in plan.files] == ["eu"]
    rows = table.query().to_arrow(columns=["id"], row_filter=[("id", ">", 1)]).read_all()
    assert sorted(rows["id"].to_pylist()) == [2, 9]


def test_a_file_that_clean_removed_is_an_error(table: Builder) -> None:
    table.write(10, 15, {EU_A: {1: 10}})
    table.write(20, 25, {EU_A: {1: 20}})
    table.clean(30, f"eu/{base('aaaa-0', at(10))}")

    with pytest.raises(HistoryExpiredError, match=r"instant 20260101000000010.*begin later"):
        table.query().plan(None, at(15))
    assert table.ids() == [1]  # needs the later version only
    assert table.ids(at(15)) == [1]


def test_archived_writes_belong_to_their_window(table: Builder) -> None:
    table.write(10, 15, {EU_A: {1: 10}})
    table.write(20, 25, {EU_B: {2: 20}})
    table.write(30, 35, {EU_A: {1: 10, 3: 30}})
    table.archive(10)

    assert table.ids() == [1, 2, 3]
    assert table.ids(None, at(25)) == [1, 2]
    assert table.ids(at(15)) == [2, 3]
    assert table.ids(at(14), at(15)) == [1]


@pytest.mark.parametrize("archived", [False, True])
def test_the_requested_time_of_a_write_means_its_completion(table: Builder, archived: bool) -> None:
    table.write(10, 50, {EU_A: {1: 10}})
    table.write(20, 25, {EU_B: {2: 20}})
    table.write(60, 65, {EU_B: {2: 20, 3: 60}})
    if archived:
        table.archive(10)

    assert table.ids(at(30), at(64)) == [1]
    assert table.ids(at(10)) == [3]
    assert table.ids(at(20)) == [1, 3]
    assert table.ids(None, at(20)) == [2]
    assert table.ids(at(20), at(10)) == [1]
    # of no write: as it is
    assert table.ids(at(11)) == [1, 2, 3]


@pytest.mark.parametrize("begin", ["earliest", "000", "0", "20200101000000", "2020-01-01"])
def test_ways_to_begin_at_the_beginning(table: Builder, begin: str) -> None:
    table.write(10, 15, {EU_A: {1: 10}})

    assert table.ids(begin) == [1]


def test_a_text_that_is_no_time_is_refused(table: Builder) -> None:
    table.write(10, 15, {EU_A: {1: 10}})

    with pytest.raises(InvalidInstantTimeError, match="yesterday"):
        table.query().plan("yesterday")
    with pytest.raises(InvalidInstantTimeError, match="tomorrow"):
        table.query().plan(None, "tomorrow")


@pytest.mark.parametrize(
    ("partition", "path", "error"),
    [
        *(
            ("eu", path, CorruptMetadataError)
            for path in (
                f"us/{base('aaaa-0', at(10))}",
                f"eu/../../{base('aaaa-0', at(10))}",
                "/etc/passwd",
                "eu/notes.txt",
            )
        ),
        ("../elsewhere", f"../elsewhere/{base('aaaa-0', at(10))}", UnsafePathError),
    ],
)
def test_a_path_outside_its_partition_is_damage(
    table: Builder, partition: str, path: str, error: type[Exception]
) -> None:
    stat = WriteStat(file_id="aaaa-0", path=path, partition_path=partition)
    table.record(10, 15, CommitMetadata({partition: (stat,)}))
    words = "no base file of partition 'eu'" if partition == "eu" else partition
    with pytest.raises(error, match=words):
        table.query().plan()


def test_tables_without_meta_columns_are_refused(table: Builder) -> None:
    config = dataclasses.replace(table.config, populate_meta_fields=False)
    client = dataclasses.replace(table.client, config=config)

    with pytest.raises(UnsupportedTableError, match=r"hoodie\.populate\.meta\.fields"):
        query_of(client, client.timeline())


def test_clustering_changes_nothing(table: Builder) -> None:
    table.write(10, 15, {EU_A: {1: 10}, EU_B: {2: 10}})
    table.write(20, 25, {("eu", "cccc-0"): {1: 10, 2: 10}}, {"eu": ("aaaa-0", "bbbb-0")}, "CLUSTER")
    alone = table.query().net(at(15), at(25))
    assert alone.parts == ()  # and no file is read for it
    assert table.ids(at(15), at(25)) == []
    table.write(30, 35, {("eu", "cccc-0"): {1: 10, 2: 30, 3: 30}})

    assert table.net(at(15)) == {2: "update", 3: "insert"}
    assert table.feed(at(15)) == [(at(30), "i"), (at(30), "u")]
    assert table.net() == {1: "insert", 2: "insert", 3: "insert"}


def test_files_before_the_window_are_needed_for_deletes(table: Builder) -> None:
    table.write(10, 15, {EU_A: {1: 10, 2: 10}})
    table.write(20, 25, {EU_A: {1: 20}})
    table.clean(30, f"eu/{base('aaaa-0', at(10))}")

    assert table.ids(at(15)) == [1]
    with pytest.raises(HistoryExpiredError, match=r"instant 20260101000000010.*begin later"):
        table.net(at(15))
    assert table.net() == {1: "insert"}


@pytest.mark.parametrize("read", ["net", "feed"])
def test_replaced_files_that_were_cleaned_are_an_error(table: Builder, read: str) -> None:
    table.write(10, 15, {EU_A: {1: 10}})
    table.write(20, 25, {EU_B: {2: 20}}, {"eu": ("aaaa-0",)})
    table.clean(30, f"eu/{base('aaaa-0', at(10))}")

    with pytest.raises(HistoryExpiredError, match=base("aaaa-0", at(10))):
        getattr(table.query(), read)(at(15))


def test_an_older_file_that_a_savepoint_kept_is_not_what_was_replaced(table: Builder) -> None:
    table.write(10, 15, {EU_A: {1: 10}})
    table.write(20, 25, {EU_A: {1: 10, 2: 20}})
    table.write(30, 35, {EU_B: {2: 30}}, {"eu": ("aaaa-0",)})
    assert table.net(at(25)) == {1: "delete", 2: "update"}
    table.clean(40, f"eu/{base('aaaa-0', at(20))}")

    with pytest.raises(HistoryExpiredError, match=base("aaaa-0", at(20))):
        table.net(at(25))


def test_stats_that_do_not_name_the_file_before(table: Builder) -> None:
    table.write(10, 15, {EU_A: {1: 10, 2: 10}})
    path = f"eu/{base('aaaa-0', at(20))}"
    table._base_file(path, "eu", {1: 20})
    stat = WriteStat(file_id="aaaa-0", path=path, partition_path="eu", prev_commit=at(10))
    table.record(20, 25, CommitMetadata({"eu": (stat,)}))

    assert table.net(at(15)) == {1: "update", 2: "delete"}


def test_a_key_that_is_stored_twice(table: Builder) -> None:
    table.write(10, 15, {EU_A: {1: 10, 2: 10}, EU_B: {3: 10}})
    # an insert that looks nothing up adds 1 again, and a delete takes 2 away
    path = f"eu/{base('aaaa-0', at(20))}"
    table.write(20, 25, {EU_A: {1: 10}})
    rows = pq.read_table(table.root / path)
    again = rows.set_column(0, "_hoodie_commit_time", pa.array([at(20)]))
    pq.write_table(pa.concat_tables([rows, again]), table.root / path, store_schema=False)

    assert [one for _, one in table.feed(at(15))] == ["d", "i"]


# --- times of past states: how users name them, and which of them a table has
EAST = timezone(timedelta(hours=9))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # as Hudi: whole seconds are completed to .999, a date to its begin, digits to nothing
        ("2026-01-31 10:11:12", "20260131101112999"),
        ("2026-01-31T10:11:12", "20260131101112999"),
        ("2026-01-31T10:11:12Z", "20260131101112999"),
        ("2026-01-31T10:11:12+05:30", "20260131044112999"),
        ("2026-01-31 10:11:12.000", "20260131101112000"),
        ("2026-01-31 10:11:12.5", "20260131101112500"),
        ("2026-01-31", "20260131000000000"),
        ("20260131101112", "20260131101112"),
        ("20260131101112000", "20260131101112000"),
    ],
)
def test_what_texts_mean(text: str, expected: str) -> None:
    named = parse_query_time(text, end_of_second=True)
    assert (named if isinstance(named, str) else UTC_TIMELINE.digits(named)) == expected


@pytest.fixture(scope="module")
def thrice(tmp_path_factory: pytest.TempPathFactory) -> hudi.Table:
    """One row, written three times."""
    path = tmp_path_factory.mktemp("timestamps") / "t"
    rows = pa.table({"id": [1], "v": [0]})
    made = new_table(path, rows.schema)
    for value in range(3):
        made.upsert(pa.table({"id": [1], "v": [value]}))
    return made


def writes(table: hudi.Table) -> list[hudi.Instant]:
    return list(table.timeline.completed_writes())


def value(table: hudi.Table, as_of: Any) -> int:
    [found] = table.to_arrow("v", as_of=as_of).column(0).to_pylist()
    return int(found)


def test_moments_of_python(thrice: hudi.Table) -> None:
    first, second, third = (one.requested_time for one in writes(thrice))
    at = to_datetime(second)
    for moment in (at, at.replace(tzinfo=None), at.astimezone(EAST)):
        assert value(thrice, moment) == 1
        assert value(thrice, moment - timedelta(milliseconds=1)) == 0
        assert hudi.read(None, thrice.path, {"as.of.instant": moment}).column("v")[0].as_py() == 1
    # the last of the three may be of a later second
    assert value(thrice, f"{to_datetime(third):%Y-%m-%d %H:%M:%S}") == 2
    assert [value(thrice, one) for one in (first, third, writes(thrice)[1])] == [0, 2, 1]
    tomorrow = at.date() + timedelta(days=1)
    assert thrice.incremental(at.date(), tomorrow, columns="v").to_pydict() == {"v": [2]}


def test_a_span_of_whole_seconds_holds_all_of_them(thrice: hudi.Table) -> None:
    completed = to_datetime(writes(thrice)[-1].effective_completion_time)
    second = f"{completed:%Y-%m-%d %H:%M:%S}"
    # the begin itself is not in a span
    expected = [2] if completed.microsecond else []
    assert thrice.incremental(second, second, columns="v").to_pydict() == {"v": expected}
    assert thrice.incremental(second, f"{second}.000").num_rows == 0


@pytest.mark.parametrize("wrong", [5, 1.5, ["2026-01-01"]])
def test_what_is_no_time_is_refused(thrice: hudi.Table, wrong: Any) -> None:
    with pytest.raises(InvalidInstantTimeError, match="is no time"):
        thrice.to_arrow(as_of=wrong)


@pytest.mark.parametrize(
    "early", ["2020-01-01", date(2020, 1, 1), datetime(2020, 1, 1, tzinfo=EAST), "20200101000000"]
)
def test_before_the_first_commit_there_is_no_state(thrice: hudi.Table, early: Any) -> None:
    first = writes(thrice)[0].requested_time
    with pytest.raises(TimeOutOfRangeError, match=f"its first commit is {first}") as caught:
        thrice.count(as_of=early)
    assert (caught.value.first, caught.value.base_path) == (first, thrice.path)
    just_before = InstantTime(f"{int(first) - 1}")
    for read in (thrice.to_arrow, thrice.to_batches, thrice.head, thrice.file_slices):
        with pytest.raises(TimeOutOfRangeError):
            read(as_of=just_before)
    with pytest.raises(TimeOutOfRangeError):
        hudi.read(None, thrice.path, {"as.of.instant": just_before})
    with pytest.raises(TimeOutOfRangeError):
        thrice.scan(as_of=just_before).count_rows()


def test_after_now_there_is_no_state(thrice: hudi.Table) -> None:
    now = datetime.now(UTC)
    assert value(thrice, now) == 2
    # the second that it is now has an end
    assert value(thrice, f"{now:%Y-%m-%d %H:%M:%S}") == 2
    for late in (now + timedelta(minutes=5), "2130-01-01", (now + timedelta(days=1)).date()):
        with pytest.raises(TimeOutOfRangeError, match="and now is"):
            thrice.to_arrow(as_of=late)


def test_a_table_without_commits_has_no_past_states(tmp_path: Path) -> None:
    made = hudi.Table.create(tmp_path / "t", pa.schema([("id", pa.int64())]))
    assert made.count() == 0
    with pytest.raises(TimeOutOfRangeError, match="it has no commits"):
        made.count(as_of=datetime.now(UTC))


def test_commit_times_of_rows_stand_for_completions(thrice: hudi.Table) -> None:
    first, second, third = writes(thrice)

    def changed(begin: Any, end: Any = None) -> list[Any]:
        return [row["v"] for row in thrice.incremental(begin, end).to_pylist()]

    assert changed(first.requested_time, second.requested_time) == [1]
    assert changed(first, second) == changed(first.completion_time, second.completion_time) == [1]
    assert changed(third.requested_time) == []
    # what is no time of a commit stays what it is
    before = InstantTime(f"{int(third.requested_time) - 1}")
    assert changed(before) == [2]
    span = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": first.requested_time,
        "hoodie.datasource.read.end.instanttime": second.requested_time,
    }
    assert hudi.read(None, thrice.path, span).column("v").to_pylist() == [1]


# --- planned files of several schemas, read as the table's
INNER = pa.struct([("a", pa.int64()), ("b", pa.string())])
LATEST = pa.schema(
    [
        ("_hoodie_commit_time", pa.string()),
        ("id", pa.int64()),
        ("price", pa.decimal128(12, 3)),
        ("code", pa.string()),
        ("place", INNER),
        ("places", pa.list_(INNER)),
        ("named", pa.map_(pa.string(), INNER)),
        ("added", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)
OLD_INNER = pa.struct([("a", pa.int32())])
OLD_SCHEMA = pa.schema(
    [
        ("id", pa.int32()),  # columns in another order, narrower, or of another type
        ("_hoodie_commit_time", pa.string()),
        ("price", pa.decimal128(10, 2)),
        ("code", pa.int64()),
        ("place", OLD_INNER),
        ("places", pa.list_(OLD_INNER)),
        ("named", pa.map_(pa.string(), OLD_INNER)),
        ("at", pa.timestamp("us", "UTC")),
        ("dropped", pa.string()),
    ]
)
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
OLD = [
    {
        "id": n,
        "_hoodie_commit_time": f"2026010100000000{n}",
        "price": Decimal("1.25") * n,
        "code": 10 * n,
        "place": {"a": n},
        "places": [{"a": n}],
        "named": [("x", {"a": n})],
        "at": MOMENT,
        "dropped": "gone",
    }
    for n in (1, 2)
]
NEW = [
    {
        "_hoodie_commit_time": "20260101000000003",
        "id": 3,
        "price": Decimal("0.125"),
        "code": "30",
        "place": {"a": 3, "b": "y"},
        "places": [],
        "named": [],
        "added": "z",
        "at": MOMENT,
    }
]
OLD_READ = [
    {
        "_hoodie_commit_time": row["_hoodie_commit_time"],
        "id": row["id"],
        "price": row["price"],
        "code": str(row["code"]),
        "place": {"a": row["id"], "b": None},
        "places": [{"a": row["id"], "b": None}],
        "named": [("x", {"a": row["id"], "b": None})],
        "added": None,
        "at": MOMENT,
    }
    for row in OLD
]


@pytest.fixture
def client(tmp_path: Path) -> TableMetaClient:
    pq.write_table(
        pa.Table.from_pylist(OLD, OLD_SCHEMA), tmp_path / "old.parquet", store_schema=False
    )
    pq.write_table(pa.Table.from_pylist(NEW, LATEST), tmp_path / "new.parquet", store_schema=False)
    return TableMetaClient(
        BasePath(str(tmp_path)),
        PosixStorage(str(tmp_path)),
        TableConfig(name="t", record_key_fields=("id",)),
        StorageOptions(),
    )


def plan(
    *names: str, schema: pa.Schema = LATEST, times: frozenset[InstantTime] | None = None
) -> ReadPlan:
    files = tuple(
        PlannedSlice(
            name,
            f"/{name}",
            1,
            PartitionPath(""),
            FileId(name),
            {},
            InstantTime("20260101000000000"),
        )
        for name in names
    )
    return ReadPlan(files, schema, times)


BOTH = plan("old.parquet", "new.parquet")


def test_files_come_in_the_latest_schema_and_in_the_order_of_the_plan(
    client: TableMetaClient,
) -> None:
    table = scan(client, BOTH).read_all()

    assert table.schema == LATEST
    assert table.to_pylist() == OLD_READ + NEW
    backwards = scan(client, plan("new.parquet", "old.parquet")).read_all()
    assert backwards["id"].to_pylist() == [3, 1, 2]


@pytest.mark.parametrize(
    ("row_filter", "ids"),
    [
        ([("id", ">", 1)], [2, 3]),
        ([("id", "=", 2**40)], []),
        ([("price", "=", Decimal("2.500"))], [2]),
        ([("code", "=", "20")], [2]),  # a number in the old file
        ([("code", "in", ["10", "30"])], [1, 3]),
        ([("code", ">", "3")], [3]),  # as texts: "10" and "20" are smaller
        ([("added", "is null", None)], [1, 2]),
        ([("added", "=", "z")], [3]),
        (pc.field("place", "a") > 1, [2, 3]),
        (pc.field("place", "b").is_null(), [1, 2]),
        ((pc.field("code") == "10") | (pc.field("id") == 3), [1, 3]),
        (pc.field("places").is_valid(), [1, 2, 3]),
    ],
)
def test_filters_see_the_latest_schema(
    client: TableMetaClient, row_filter: Any, ids: list[int]
) -> None:
    assert scan(client, BOTH, ["id"], row_filter).read_all()["id"].to_pylist() == ids
    everything = scan(client, BOTH, None, row_filter).read_all()
    assert everything.to_pylist() == [row for row in OLD_READ + NEW if row["id"] in ids]


def test_a_filter_needs_no_column_of_the_projection(client: TableMetaClient) -> None:
    table = scan(client, BOTH, ["added", "at"], [("code", "=", "30")]).read_all()
    assert table.to_pylist() == [{"added": "z", "at": MOMENT}]
    nothing = scan(client, plan(), ["id", "code"], [("id", "=", 1)]).read_all()
    assert (nothing.num_rows, nothing.column_names) == (0, ["id", "code"])


def test_commit_times_select_rows(client: TableMetaClient) -> None:
    times = frozenset({InstantTime("20260101000000002"), InstantTime("20260101000000003")})
    files = ("old.parquet", "new.parquet")

    assert scan(client, plan(*files, times=times), ["id"]).read_all()["id"].to_pylist() == [2, 3]
    both = scan(client, plan(*files, times=times), ["id"], [("id", "<", 3)]).read_all()
    assert both["id"].to_pylist() == [2]
    assert scan(client, plan(*files, times=frozenset())).read_all().num_rows == 0


@pytest.mark.parametrize("row_filter", [None, [("code", "in", ["10", "30"])]])
def test_a_file_unlike_the_oldest_and_the_newest_is_read_as_the_tables(
    client: TableMetaClient, row_filter: Any
) -> None:
    newest = plan("new.parquet").files[0]
    files = (
        *(replace(newest, instant=InstantTime(f"2025010100000000{n}")) for n in range(3)),
        plan("old.parquet").files[0],  # a text is a number there, and members are missing
        replace(newest, instant=InstantTime("20270101000000000")),
    )
    given = ReadPlan(files, LATEST)

    table = file_scan(client, given, None, row_filter).table(files)

    old = OLD_READ if row_filter is None else OLD_READ[:1]
    assert table.to_pylist() == [*NEW, *NEW, *NEW, *old, *NEW]
    assert table.equals(scan(client, given, None, row_filter).read_all().combine_chunks())


def test_a_column_whose_name_was_another_ones_is_not_taken_for_it(
    client: TableMetaClient, tmp_path: Path
) -> None:
    avro = {b"parquet.avro.schema": b'{"field-id": 1}'}

    def column(number: int) -> pa.Schema:
        given = pa.field("v", pa.int64(), metadata={b"PARQUET:field_id": str(number).encode()})
        return pa.schema([given], metadata=avro)

    for name, number in (("first", 7), ("middle", 3), ("last", 7)):
        rows = pa.table({"v": [number]}, schema=column(number))
        pq.write_table(rows, tmp_path / f"{name}.parquet")
    given = plan("first", "middle", "last", schema=column(7).remove_metadata())
    files = tuple(
        replace(file, path=f"{file.path}.parquet", instant=InstantTime(f"2026010100000000{n}"))
        for n, file in enumerate(given.files)
    )

    table = file_scan(client, replace(given, files=files)).table(files)

    assert table["v"].to_pylist() == [7, None, 7]


def test_a_damaged_file_between_others_is_named(client: TableMetaClient, tmp_path: Path) -> None:
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1 and no more")
    damaged = plan("damaged.parquet").files[0]
    newest = plan("new.parquet").files[0]
    files = (
        replace(newest, instant=InstantTime("20250101000000000")),
        damaged,
        replace(newest, instant=InstantTime("20270101000000000")),
    )

    with pytest.raises(DataFileError, match=r"damaged\.parquet|[Pp]arquet"):
        file_scan(client, ReadPlan(files, LATEST)).table(files)


def test_row_groups_outside_the_filter_are_not_read(
    client: TableMetaClient, tmp_path: Path
) -> None:
    path = tmp_path / "groups.parquet"
    rows = pa.table({"id": pa.array(range(300)), "text": ["x"] * 300})
    pq.write_table(rows, path, row_group_size=100, use_dictionary=False, compression="NONE")
    column = pq.read_metadata(path).row_group(2).column(1)
    data = bytearray(path.read_bytes())
    data[column.data_page_offset : column.data_page_offset + 40] = b"\xff" * 40
    path.write_bytes(data)
    damaged = plan("groups.parquet", schema=rows.schema)

    assert scan(client, damaged, None, [("id", "<", 150)]).read_all().num_rows == 150
    with pytest.raises(DataFileError):
        scan(client, damaged, None, [("id", "<", 250)]).read_all()


def test_batches_have_at_most_so_many_rows(client: TableMetaClient, tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array(range(1000))})
    pq.write_table(rows, tmp_path / "many.parquet")

    batches = list(scan(client, plan("many.parquet", schema=rows.schema), batch_rows=300))

    assert [batch.num_rows for batch in batches] == [300, 300, 300, 100]


def test_int96_timestamps_are_microseconds(client: TableMetaClient, tmp_path: Path) -> None:
    moment = datetime(2500, 1, 1, 0, 0, 0, 1, tzinfo=UTC)  # beyond nanoseconds in 64 bits
    rows = pa.table({"at": pa.array([moment], pa.timestamp("us", "UTC"))})
    pq.write_table(
        rows, tmp_path / "int96.parquet", use_deprecated_int96_timestamps=True, store_schema=False
    )
    assert pq.read_metadata(tmp_path / "int96.parquet").schema.column(0).physical_type == "INT96"

    table = scan(client, plan("int96.parquet", schema=rows.schema)).read_all()

    assert table["at"].to_pylist() == [moment]


def test_what_does_not_fit_is_refused_before_a_file_is_opened(client: TableMetaClient) -> None:
    missing = plan("nowhere.parquet")

    with pytest.raises(SchemaError, match="'colour'"):
        scan(client, missing, ["colour"])
    with pytest.raises(SchemaError, match="'colour'"):
        scan(client, missing, None, [("colour", "=", 1)])


@pytest.mark.parametrize("row_filter", [None, [("id", "=", 1)]])
def test_a_missing_file_is_named(client: TableMetaClient, row_filter: Any) -> None:
    reader = scan(client, plan("old.parquet", "nowhere.parquet"), None, row_filter)
    with pytest.raises(DataFileError, match=r"nowhere\.parquet"):
        reader.read_all()


def test_a_value_that_does_not_fit_the_latest_type_is_an_error(client: TableMetaClient) -> None:
    changed = LATEST.set(LATEST.get_field_index("added"), pa.field("added", pa.int64()))

    with pytest.raises(DataFileError, match="'z'"):
        scan(client, plan("new.parquet", schema=changed), ["added"]).read_all()


def wanted(expression: pc.Expression) -> Filter:
    found = to_filter(expression, LATEST)
    assert found is not None
    return found


def test_which_filters_go_down() -> None:
    for column in ("id", "price", "place", "places", "named", "added", "at"):
        assert can_push_down(wanted(pc.field(column).is_valid()), OLD_SCHEMA, LATEST), column
    assert not can_push_down(wanted(pc.field("code").is_valid()), OLD_SCHEMA, LATEST)
    assert can_push_down(wanted(pc.field("code").is_valid()), LATEST, LATEST)
    shrunk = pa.schema([("place", pa.struct([("a", pa.string())]))])
    assert not can_push_down(wanted(pc.field("place", "b").is_null()), shrunk, LATEST)


def test_columns_an_expression_depends_on() -> None:
    expression = (pc.field("id") > 1) | pc.field("place", "b").is_null()

    assert referenced_columns(expression, LATEST, LATEST.names) == {"id", "place"}
    assert referenced_columns(expression, LATEST, ["id", "code"]) == {"id"}
    assert wanted(expression).columns == {"id", "place"}
    assert wanted((pc.field("id") + 1 > 2) & pc.field("code").is_null()).columns == {"id", "code"}
