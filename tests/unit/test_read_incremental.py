"""Incremental queries over a table made by hand: windows, cleaned files, archived commits."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.config.table import TableConfig
from hudi_core.errors import (
    CorruptMetadataError,
    HistoryExpiredError,
    InvalidInstantTimeError,
    UnsafePathError,
    UnsupportedTableError,
)
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.lister import table_lister
from hudi_core.model.actions import CleanMetadata, CleanPartitionMetadata
from hudi_core.model.commit import CommitMetadata, ReplaceCommitMetadata, WriteStat
from hudi_core.model.files import BasePath
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import TimelineView
from hudi_core.read.incremental import IncrementalQuery
from hudi_core.schema.table_schema import TableSchema
from hudi_core.storage.options import StorageOptions
from hudi_core.storage.posix import PosixStorage
from hudi_core.timeline.serde import encode

SCHEMA = TableSchema.create(pa.schema([("id", pa.int64()), ("region", pa.string())]))


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
            create_schema=SCHEMA.to_avro("t"),
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
        schema = SCHEMA.with_meta()
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
    assert table.ids(at(50)) == []


def test_a_window_that_ends_before_it_begins_is_empty(table: Builder) -> None:
    table.write(10, 20, {EU_A: {1: 10}})

    assert table.ids(at(30), at(5)) == []


def test_rows_that_a_rewrite_copied_do_not_come_again(table: Builder) -> None:
    table.write(10, 15, {EU_A: {1: 10, 2: 10}})
    table.write(20, 25, {EU_A: {1: 10, 2: 20, 3: 20}})

    assert table.ids(at(15)) == [2, 3]
    assert table.ids() == [1, 2, 3]
    plan = table.query().plan()
    assert [file.instant for file in plan.files] == [at(20)]


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

    assert table.ids(at(10)) == [3]
    assert table.ids(at(20)) == [1, 3]
    assert table.ids(None, at(20)) == [2]
    assert table.ids(at(20), at(10)) == [1]
    # of no write: as it is
    assert table.ids(at(11)) == [1, 2, 3]


def test_an_archived_write_that_completed_late_is_found(table: Builder) -> None:
    table.write(10, 50, {EU_A: {1: 10}})
    table.write(20, 25, {EU_B: {2: 20}})
    table.archive(10)

    assert table.ids(at(30)) == [1]


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
    "path",
    [
        "us/" + base("aaaa-0", at(10)),
        "eu/../../" + base("aaaa-0", at(10)),
        "/etc/passwd",
        "eu/notes.txt",
    ],
)
def test_a_path_outside_its_partition_is_damage(table: Builder, path: str) -> None:
    stat = WriteStat(file_id="aaaa-0", path=path, partition_path="eu")
    table.record(10, 15, CommitMetadata({"eu": (stat,)}))

    with pytest.raises(CorruptMetadataError, match="no base file of partition 'eu'"):
        table.query().plan()


def test_a_partition_outside_the_table_is_refused(table: Builder) -> None:
    partition = "../elsewhere"
    stat = WriteStat(
        file_id="aaaa-0", path=f"{partition}/{base('aaaa-0', at(10))}", partition_path=partition
    )
    table.record(10, 15, CommitMetadata({partition: (stat,)}))

    with pytest.raises(UnsafePathError):
        table.query().plan()


def test_tables_without_meta_columns_are_refused(table: Builder) -> None:
    config = dataclasses.replace(table.config, populate_meta_fields=False)
    client = dataclasses.replace(table.client, config=config)

    with pytest.raises(UnsupportedTableError, match=r"hoodie\.populate\.meta\.fields"):
        query_of(client, client.timeline())


def test_what_happened_to_a_row_comes_once(table: Builder) -> None:
    table.write(10, 15, {EU_A: {1: 10, 2: 10, 3: 10, 4: 10}})
    table.write(20, 25, {EU_A: {1: 10, 3: 20, 5: 20, 6: 20}})  # 2 and 4 are deleted
    table.write(30, 35, {EU_A: {1: 10, 3: 30, 5: 20, 2: 30}})  # 6 too; 2 is back

    assert table.net() == {1: "insert", 2: "insert", 3: "insert", 5: "insert"}
    assert table.net(at(15)) == {2: "update", 3: "update", 4: "delete", 5: "insert"}
    assert table.net(at(25)) == {2: "insert", 3: "update", 6: "delete"}
    assert [one for _, one in table.feed(at(25))] == ["d", "i", "u"]
    assert [one for _, one in table.feed(None, at(25))] == ["i"] * 4 + ["d", "d", "i", "i", "u"]


def test_a_row_in_another_file_of_its_partition_is_the_same(table: Builder) -> None:
    table.write(10, 15, {EU_A: {1: 10, 2: 10}, US_A: {1: 10}})
    table.write(20, 25, {EU_B: {1: 20}}, {"eu": ("aaaa-0",)})

    assert table.net(at(15)) == {1: "update", 2: "delete"}
    assert [one for _, one in table.feed(at(15))] == ["d", "d", "i"]  # file group by file group


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
