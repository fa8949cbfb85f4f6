"""Services, indexes and undoing of tables whose changed rows are in log files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_core as hudi
from hudi_core.errors import (
    CommitConflictError,
    DataFileError,
    HistoryExpiredError,
    LostCompletionError,
    StageConflictError,
    TableServiceError,
)
from hudi_core.metadata.partition_types import BLOOM_FILTERS, COLUMN_STATS, FILES, PARTITION_STATS
from hudi_core.model.dry_run import FileChange
from hudi_core.model.files import LogFileName
from tests.clock_set_back import clock_set_back
from tests.foreign import by_hudi_rs
from tests.operators import operator
from tests.tables import SCHEMA, new_table, pairs, rows

INDEXES: Final = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
}
SEVERAL: Final = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
NONE: Final = {"hoodie.metadata.enable": "false"}
LOGGED: Final = [("a", "x", 0), ("b", "x", 9), ("d", "y", 0)]
"""Rows of :func:`logged`."""


def logged(path: Path, options: Mapping[str, str] = INDEXES) -> hudi.Table:
    """A table of which one row was changed and one deleted, each by a log of its own."""
    table = new_table(path, SCHEMA, options, table_type="MERGE_ON_READ")
    table.insert(rows("a", "b", "c", "d", part=["x", "x", "y", "y"], ts=0, schema=SCHEMA))
    table.upsert(rows("b", part="x", ts=9, schema=SCHEMA))
    table.delete(rows("c", part="y", ts=9, schema=SCHEMA))
    return hudi.Table.open(path, options)


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    return logged(tmp_path / "t")


def shown(table: hudi.Table) -> list[tuple[Any, ...]]:
    """The rows of a table, once it is found to be right and hudi-rs to agree."""
    again = hudi.Table.open(table.path)
    found = pairs(again.to_arrow(), "id", "part", "ts")
    theirs = [(one["id"], one["part"], one["ts"]) for one in by_hudi_rs(table.path)]
    assert sorted(theirs) == found
    report = again.validate(keys=True)
    assert report.differences == ()
    assert not [one for one in report.skipped if one.startswith("records of ")]
    return found


def logs_of(table: hudi.Table) -> list[Path]:
    return sorted(
        one
        for one in Path(table.path).rglob(".*.log.*")
        if ".hoodie" not in one.parts and LogFileName.parse(one.name) is not None
    )


def time_of(table: hudi.Table, number: int) -> str:
    return str(table.timeline.completed_writes()[number].requested_time)


# --- the metadata table ---------------------------------------------------------------------------


def test_a_commit_to_logs_is_in_the_metadata_table(table: hudi.Table) -> None:
    [changed, deleted] = sorted(logs_of(table), key=lambda one: one.parent.name)
    listed = table.metadata(FILES).to_pylist()
    sizes = {one["file_name"]: one["size"] for one in listed}
    assert [sizes[one.name] for one in (changed, deleted)] == [
        one.stat().st_size for one in (changed, deleted)
    ]
    ranges = table.metadata(COLUMN_STATS).to_pylist()
    own = [one for one in ranges if one["file_name"] == changed.name]
    assert [
        (one["min_value"], one["max_value"], one["value_count"])
        for one in own
        if one["column_name"] == "ts"
    ] == [("9", "9", 1)]
    # which rows a log of deletes has, no range can say
    assert not [one for one in ranges if one["file_name"] == deleted.name]
    whole = {
        (one["file_name"], one["column_name"]): (one["min_value"], one["max_value"])
        for one in table.metadata(PARTITION_STATS).to_pylist()
    }
    assert whole["x", "ts"] == ("0", "9")
    assert whole["y", "ts"] == ("0", "0")
    assert table.metadata(BLOOM_FILTERS).num_rows == 2
    assert shown(table) == LOGGED


def test_rows_are_found_where_logs_moved_them(table: hudi.Table) -> None:
    assert table.to_arrow(["id"], pc.field("ts") > 5).column("id").to_pylist() == ["b"]
    table.upsert(rows("a", part="x", ts=20, schema=SCHEMA))
    table.delete(rows("a", part="x", ts=21, schema=SCHEMA))
    # what is left in the partition is not known any more, but what can be there is
    table.upsert(rows("d", "e", part="y", ts=30, schema=SCHEMA))
    again = hudi.Table.open(table.path)
    found = again.to_arrow(["id"], pc.field("ts") > 5).column("id").to_pylist()
    assert sorted(found) == ["b", "d", "e"]
    assert shown(table) == [("b", "x", 9), ("d", "y", 30), ("e", "y", 30)]


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE"])
def test_a_row_that_a_merge_brings_back_goes_where_it_was(index: str, tmp_path: Path) -> None:
    """An index that looks into base files alone would find its key in two file groups."""
    table = logged(tmp_path / "t", {"hoodie.index.type": index})
    groups = {one.group for one in table.file_slices()}
    given = rows("c", part="y", ts=1, schema=SCHEMA)
    table.merge(given, on="id").when_not_matched_insert_all().execute()
    assert {one.group for one in hudi.Table.open(table.path).file_slices()} == groups
    assert shown(table) == sorted([*LOGGED, ("c", "y", 1)])


@pytest.mark.parametrize("ordering", ["ts", None])
def test_a_row_that_moves_back_goes_where_it_was(ordering: str | None, tmp_path: Path) -> None:
    options = {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.parquet.small.file.limit": "0"}
    kind = "MERGE_ON_READ"
    table = new_table(tmp_path / "t", SCHEMA, options, table_type=kind, ordering_field=ordering)
    table.insert(rows("a", "b", part="x", ts=0, schema=SCHEMA))
    groups = {one.group for one in table.file_slices()}
    table.upsert(rows("a", part="y", ts=1, schema=SCHEMA))
    table.upsert(rows("a", part="x", ts=2, schema=SCHEMA))
    found = hudi.Table.open(table.path).file_slices()
    assert {one.group for one in found if one.group.partition_path == "x"} == groups
    assert shown(table) == [("a", "x", 2), ("b", "x", 0)]


@pytest.mark.parametrize("version", [8, 9])
def test_a_rebuilt_metadata_table_is_the_same(version: int, tmp_path: Path) -> None:
    table = logged(tmp_path / "t", {**INDEXES, "hoodie.write.table.version": str(version)})
    rebuilt = table.repair_metadata().rebuilt
    assert rebuilt is not None
    assert (rebuilt.files, rebuilt.differences, rebuilt.orphans) == (4, (), ())
    assert shown(table) == LOGGED
    table.upsert(rows("a", "n", part="x", ts=12, schema=SCHEMA))
    assert shown(table) == [("a", "x", 12), ("b", "x", 9), ("d", "y", 0), ("n", "x", 12)]


def test_a_log_of_a_lost_attempt_is_not_listed(table: hudi.Table) -> None:
    log = logs_of(table)[0]
    other = log.with_name(log.name.replace("-", "-1", 1)[:-1] + "7")
    other.write_bytes(log.read_bytes())
    rebuilt = table.repair_metadata().rebuilt
    assert rebuilt is not None
    assert rebuilt.orphans == (str(other.relative_to(table.path)),) or not rebuilt.orphans
    assert other.name not in table.metadata(FILES).column("file_name").to_pylist()


ADDED: Final = (
    *(("record_index", None), ("secondary_index_ts", "ts"), ("column_stats", None)),
    *(("partition_stats", None), ("bloom_filters", None)),
)
NEEDED: Final = {"secondary_index_ts": "record_index", "partition_stats": "column_stats"}


@pytest.mark.parametrize(("index", "column"), ADDED)
def test_indexes_are_built_of_merged_rows(index: str, column: str | None, tmp_path: Path) -> None:
    table = logged(tmp_path / "t", {"hoodie.metadata.index.column.stats.enable": "false"})
    if index in NEEDED:
        operator(table.path, {}).index(NEEDED[index])
    operator(table.path, {}).index(index, column)
    assert shown(table) == LOGGED
    table = hudi.Table.open(table.path)
    table.upsert(rows("a", "c", part=["x", "y"], ts=11, schema=SCHEMA))
    assert shown(table) == [("a", "x", 11), ("b", "x", 9), ("c", "y", 11), ("d", "y", 0)]
    table.delete(rows("b", part="x", ts=12, schema=SCHEMA))
    assert shown(table) == [("a", "x", 11), ("c", "y", 11), ("d", "y", 0)]


def test_an_index_of_a_function(tmp_path: Path) -> None:
    table = logged(tmp_path / "t")
    options = {"expr": "from_unixtime", "format": "yyyy-MM-dd"}
    operator(table.path, INDEXES).index("expr_index_day", "ts", "column_stats", options)
    assert shown(table) == LOGGED
    table = hudi.Table.open(table.path)
    table.upsert(rows("a", part="x", ts=86_400 * 400, schema=SCHEMA))
    assert shown(table)[0] == ("a", "x", 86_400 * 400)


def test_an_index_that_comes_while_a_write_is_under_way(tmp_path: Path) -> None:
    table = logged(
        tmp_path / "t", {**SEVERAL, "hoodie.metadata.index.column.stats.enable": "false"}
    )
    given = rows("a", "n", part="x", ts=13, schema=SCHEMA)

    def batches() -> Iterator[pa.RecordBatch]:
        operator(table.path, SEVERAL).index("record_index")
        yield from given.to_batches()

    table.upsert(pa.RecordBatchReader.from_batches(given.schema, batches()))
    assert shown(table) == [("a", "x", 13), ("b", "x", 9), ("d", "y", 0), ("n", "x", 13)]


# --- groups that go with their logs ---------------------------------------------------------------


def test_overwritten_groups_go_with_their_logs(table: hudi.Table) -> None:
    # the key of a row that a log deletes may be elsewhere by now
    table.insert(rows("c", part="x", ts=3, schema=SCHEMA))
    done = table.delete_partitions(["y"])
    assert done.deleted == 1
    assert shown(table) == [("a", "x", 0), ("b", "x", 9), ("c", "x", 3)]
    table.upsert(rows("c", part="x", ts=4, schema=SCHEMA))
    assert shown(table) == [("a", "x", 0), ("b", "x", 9), ("c", "x", 4)]
    table.insert_overwrite(rows("z", part="x", ts=1, schema=SCHEMA))
    assert shown(table) == [("z", "x", 1)]
    table.insert_overwrite_table(rows("a", part="y", ts=1, schema=SCHEMA))
    assert shown(table) == [("a", "y", 1)]
    before = len(logs_of(table))
    assert before
    table.clean(options={"hoodie.cleaner.commits.retained": "1"})
    assert len(logs_of(table)) < before
    assert shown(table) == [("a", "y", 1)]


def test_what_an_overwrite_takes_away_are_merged_rows(table: hudi.Table) -> None:
    before = table.timeline.completed_writes()[-1]
    table.insert_overwrite(rows("e", part="x", ts=1, schema=SCHEMA))
    table.delete_partitions([{"part": "y"}])
    fed = [one["before"] for one in table.changes(before).to_pylist() if one["op"] == "d"]
    taken = [json.loads(one) for one in fed if one is not None]
    assert sorted((one["id"], one["ts"]) for one in taken) == [("a", 0), ("b", 9), ("d", 0)]
    for changed in (table.incremental(before, deletes=True), table.diff(before)):
        gone = pairs(changed.filter(pc.field("_change_type") == "delete"), "id", "ts")
        assert gone == [("a", 0), ("b", 9), ("d", 0)]


@pytest.mark.parametrize("operation", ["upsert", "delete"])
def test_a_dry_run_says_what_goes_into_logs(operation: str, table: hudi.Table) -> None:
    given = rows("a", "b", part="x", ts=20, schema=SCHEMA)
    dry = table.plan(operation, given)
    result = getattr(table, operation)(given)
    [file], [status] = dry.files, result.statuses
    assert (file.change, file.file_id) == (FileChange.APPEND, status.file_id)
    assert status.stat.log_files
    assert (dry.updated, dry.deleted) == (result.updated, result.deleted)
    assert dry.bytes_written


def test_a_dry_run_counts_merged_rows(table: hudi.Table) -> None:
    [file] = table.plan("delete_partitions", ["y"]).files
    assert file.deleted == 1


def test_partitions_that_expire(tmp_path: Path) -> None:
    with clock_set_back(30):
        table = logged(tmp_path / "t")
    hudi.Table.open(table.path).upsert(rows("d", part="y", ts=5, schema=SCHEMA))
    expired = hudi.Table.open(table.path).expire_partitions(10)
    assert list(expired.partitions) == ["x"]
    assert shown(table) == [("d", "y", 5)]


# --- what a commit would leave ------------------------------------------------------------------


def test_a_stage_shows_what_its_logs_would_change(table: hudi.Table) -> None:
    stage = table.stage(rows("a", "n", part="x", ts=40, schema=SCHEMA))
    wanted = [("a", "x", 40), ("b", "x", 9), ("d", "y", 0), ("n", "x", 40)]
    assert pairs(stage.to_arrow(), "id", "part", "ts") == wanted
    assert stage.count() == 4
    # a row that no statistics of its file group know of yet
    found = stage.to_arrow(["id"], pc.field("ts") > 20).column("id").to_pylist()
    assert sorted(found) == ["a", "n"]
    assert shown(table) == LOGGED
    stage.publish()
    assert shown(table) == wanted


def test_a_stage_is_out_of_date_once_logs_came(table: hudi.Table) -> None:
    stage = table.stage(rows("a", part="x", ts=40, schema=SCHEMA))
    hudi.Table.open(table.path).upsert(rows("b", part="x", ts=41, schema=SCHEMA))
    with pytest.raises(StageConflictError):
        stage.publish()


def test_validators_see_rows_of_new_logs(table: hudi.Table) -> None:
    seen: list[list[Any]] = []

    def look(after: Any, _: Any) -> None:
        seen.append(pairs(after.to_table(), "id", "ts"))

    table.upsert(rows("a", part="x", ts=40, schema=SCHEMA), validators=[look])
    table.delete(rows("b", part="x", ts=41, schema=SCHEMA), validators=[look])
    assert seen == [[("a", 40), ("b", 9), ("d", 0)], [("a", 40), ("d", 0)]]


# --- undoing --------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [INDEXES, NONE], ids=["indexes", "no metadata table"])
def test_rollbacks_and_restores_delete_logs(options: Mapping[str, str], tmp_path: Path) -> None:
    table = logged(tmp_path / "t", options)
    [first, _] = sorted(logs_of(table), key=lambda one: one.parent.name)
    table.rollback(time_of(table, -1))
    assert shown(table) == [("a", "x", 0), ("b", "x", 9), ("c", "y", 0), ("d", "y", 0)]
    assert logs_of(table) == [first]
    table.upsert(rows("a", "d", part=["x", "y"], ts=7, schema=SCHEMA))
    table.restore(time_of(table, 0))
    assert logs_of(table) == []
    assert shown(table) == [(key, part, 0) for key, part in zip("abcd", "xxyy", strict=True)]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_an_index_that_was_built_of_a_write_keeps_it(kind: str, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", SCHEMA, {}, table_type=kind)
    table.insert(rows("a", part="x", ts=0, schema=SCHEMA))
    table.upsert(rows("a", "n", part="x", ts=1, schema=SCHEMA))
    operator(table.path, {}).index("record_index")
    table = hudi.Table.open(table.path)
    with pytest.raises(TableServiceError, match="built after it"):
        table.rollback(time_of(table, -1))
    table.restore(time_of(table, 0))
    assert shown(table) == [("a", "x", 0)]
    table.upsert(rows("n", part="x", ts=2, schema=SCHEMA))
    assert shown(table) == [("a", "x", 0), ("n", "x", 2)]
    table.rollback(time_of(table, -1))
    assert shown(table) == [("a", "x", 0)]


def test_a_savepoint_keeps_the_logs_of_its_state(table: hudi.Table) -> None:
    saved = table.savepoint(time_of(table, 1))
    assert saved.files == 3
    table.upsert(rows("a", part="x", ts=8, schema=SCHEMA))
    table.insert_overwrite_table(rows("q", part="x", ts=1, schema=SCHEMA))
    table.upsert(rows("q", part="x", ts=2, schema=SCHEMA))
    table.clean(options={"hoodie.cleaner.commits.retained": "1"})
    assert pairs(table.to_arrow(as_of=saved.instant.requested_time), "id", "ts") == [
        *(("a", 0), ("b", 9), ("c", 0), ("d", 0))
    ]
    table.restore(saved.instant.requested_time)
    assert shown(table) == [("a", "x", 0), ("b", "x", 9), ("c", "y", 0), ("d", "y", 0)]


def test_a_state_whose_logs_are_cleaned_is_gone(table: hudi.Table) -> None:
    time = time_of(table, -1)
    table.insert_overwrite_table(rows("q", part="x", ts=1, schema=SCHEMA))
    table.upsert(rows("q", part="x", ts=2, schema=SCHEMA))
    table.clean(options={"hoodie.cleaner.commits.retained": "1"})
    with pytest.raises(HistoryExpiredError):
        table.restore(time)
    assert shown(table) == [("q", "x", 2)]


def test_a_log_that_a_clean_deletes_meanwhile_is_named(table: hudi.Table) -> None:
    for log in Path(table.path).rglob(".*.log.*"):
        if ".hoodie" not in log.parts:
            log.unlink()
    for read in (table.to_arrow, table.count, lambda: list(table.to_batches())):
        with pytest.raises(DataFileError, match=r"\.log\.1_.* Open the table again"):
            read()


def test_many_logs_are_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    options = {**NONE, "hoodie.compact.inline": "false", "hoodie.clean.automatic": "false"}
    table = logged(tmp_path / "t", options)
    for ts in range(10, 29):
        table.upsert(rows("b", part="x", ts=ts, schema=SCHEMA))
    assert "log files" not in caplog.text
    table.upsert(rows("b", "d", part=["x", "y"], ts=29, schema=SCHEMA))
    table.upsert(rows("b", "d", part=["x", "y"], ts=30, schema=SCHEMA))
    assert "1 of 2 file groups" in caplog.text
    assert f"up to 21, which every read merges; run `hudi compact {table.path}`" in caplog.text


def test_archived_deltacommits_count(table: hudi.Table) -> None:
    few = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    few["hoodie.cleaner.commits.retained"] = "1"
    for ts in range(10, 16):
        table.upsert(rows("a", part="x", ts=ts, schema=SCHEMA))
    table.clean(options=few)
    assert len(table.archive(options=few).instants) > 3
    assert shown(table) == [("a", "x", 15), ("b", "x", 9), ("d", "y", 0)]
    table.upsert(rows("a", part="x", ts=20, schema=SCHEMA))
    assert shown(table) == [("a", "x", 20), ("b", "x", 9), ("d", "y", 0)]


def test_a_lost_completion_is_put_back_from_logs(table: hudi.Table) -> None:
    table.upsert(rows("a", "n", part="x", ts=11, schema=SCHEMA))
    before = shown(table)
    [lost] = Path(table.path, ".hoodie/timeline").glob(f"{time_of(table, -1)}_*.deltacommit")
    lost.unlink()
    report = hudi.Table.open(table.path).validate()
    assert any("lost" in str(one) for one in report.differences)
    with pytest.raises(LostCompletionError):
        hudi.Table.open(table.path).upsert(rows("a", part="x", ts=12, schema=SCHEMA))
    assert hudi.Table.open(table.path).repair().commits
    assert shown(table) == before


def test_a_lost_completion_that_a_compaction_shows(tmp_path: Path) -> None:
    table = logged(tmp_path / "t", NONE)
    time = time_of(table, -1)
    table.compact(schedule_only=True)
    [lost] = Path(table.path, ".hoodie/timeline").glob(f"{time}_*.deltacommit")
    lost.unlink()
    with pytest.raises(LostCompletionError, match="builds on"):
        hudi.Table.open(table.path).upsert(rows("a", part="x", ts=12, schema=SCHEMA))
    hudi.Table.open(table.path).repair()
    hudi.Table.open(table.path).run_compactions()
    assert shown(table) == LOGGED


# --- beside compactions ---------------------------------------------------------------------------


def test_a_write_that_a_compaction_is_to_merge_stays(table: hudi.Table) -> None:
    table.compact(schedule_only=True)
    [pending] = [one for one in table.timeline.instants if not one.is_completed]
    with pytest.raises(TableServiceError, match="planned to merge"):
        table.rollback(time_of(table, -1))
    table.rollback(pending.requested_time)
    table.rollback(time_of(table, -1))
    assert shown(table) == [("a", "x", 0), ("b", "x", 9), ("c", "y", 0), ("d", "y", 0)]


def test_a_clean_keeps_what_a_compaction_reads(table: hudi.Table) -> None:
    few = {"hoodie.cleaner.commits.retained": "1"}
    table.compact(schedule_only=True)
    table = hudi.Table.open(table.path, {"hoodie.compact.inline": "false"})
    before = logs_of(table)
    for ts in range(30, 33):
        table.upsert(rows("a", part="x", ts=ts, schema=SCHEMA))
    table.insert_overwrite(rows("e", part="z", ts=1, schema=SCHEMA))
    table.insert_overwrite(rows("e", part="z", ts=2, schema=SCHEMA))
    table.upsert(rows("e", part="z", ts=3, schema=SCHEMA))
    cleaned = table.clean(options=few)
    # one that is pending holds no other clean up
    assert [one.startswith("z/") for one in cleaned.files] == [True]
    assert set(before) <= set(logs_of(table))
    hudi.Table.open(table.path).run_compactions()
    assert shown(table) == [("a", "x", 32), ("b", "x", 9), ("d", "y", 0), ("e", "z", 3)]
    table.upsert(rows("e", part="z", ts=4, schema=SCHEMA))
    table.clean(options=few)
    assert not set(before) & set(logs_of(table))
    assert shown(table)[-1] == ("e", "z", 4)


def test_a_restore_over_compactions(table: hudi.Table) -> None:
    to = time_of(table, -1)
    table.compact()
    table.upsert(rows("b", part="x", ts=30, schema=SCHEMA))
    table.compact(schedule_only=True)
    table.upsert(rows("a", part="x", ts=31, schema=SCHEMA))
    table.restore(to)
    assert shown(table) == LOGGED
    assert all(one.is_completed for one in table.timeline.instants)
    table.upsert(rows("a", part="x", ts=33, schema=SCHEMA))
    table.compact()
    assert shown(table) == [("a", "x", 33), ("b", "x", 9), ("d", "y", 0)]


def test_a_deltacommit_that_a_compaction_crossed_is_archived_after_its_logs(
    table: hudi.Table,
) -> None:
    options = {**SEVERAL, "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    options["hoodie.cleaner.commits.retained"] = "1"
    given = rows("b", part="x", ts=50, schema=SCHEMA)

    def batches() -> Iterator[pa.RecordBatch]:
        hudi.Table.open(table.path, SEVERAL).compact()
        yield from given.to_batches()

    table.upsert(pa.RecordBatchReader.from_batches(given.schema, batches()), options=SEVERAL)
    assert shown(table) == [("a", "x", 0), ("b", "x", 50), ("d", "y", 0)]
    crossed = time_of(table, -1)
    # compactions of other file groups
    for ts in range(60, 70):
        table.upsert(rows("d", part="y", ts=ts, schema=SCHEMA), options=options)
    kept = [one.requested_time for one in table.timeline.completed_writes()]
    assert crossed in kept or not [one for one in logs_of(table) if crossed in one.name]
    assert shown(table) == [("a", "x", 0), ("b", "x", 50), ("d", "y", 69)]


# --- beside other writers -------------------------------------------------------------------------


@pytest.mark.parametrize("is_run", [False, True], ids=["then run", "run meanwhile"])
def test_a_state_that_a_compaction_crossed_stays_as_it_was(is_run: bool, table: hudi.Table) -> None:
    before = table.timeline.completed_writes()[-1]
    given = rows("b", part="x", ts=50, schema=SCHEMA)

    def batches() -> Iterator[pa.RecordBatch]:
        hudi.Table.open(table.path, SEVERAL).compact(schedule_only=not is_run)
        yield from given.to_batches()

    reader = pa.RecordBatchReader.from_batches(given.schema, batches())
    crossed = table.upsert(reader, options=SEVERAL).instant
    written = [("a", "x", 0), ("b", "x", 50), ("d", "y", 0)]
    for _ in range(2):
        now = hudi.Table.open(table.path)
        assert pairs(now.to_arrow(as_of=crossed), "id", "part", "ts") == written
        assert pairs(now.to_arrow(as_of=before), "id", "part", "ts") == LOGGED
        [changed] = now.changes(before).to_pylist()
        images = [json.loads(changed[side])["ts"] for side in ("before", "after")]
        assert images == [9, 50]
        assert pairs(now.diff(before, crossed), "id", "ts") == [("b", 50)]
        now.run_compactions()
    now.savepoint(crossed)
    now.upsert(rows("b", part="x", ts=51, schema=SCHEMA))
    now.compact()
    now.clean(options={"hoodie.cleaner.commits.retained": "1"})
    assert pairs(now.to_arrow(as_of=crossed), "id", "part", "ts") == written
    if not is_run:  # a commit that overlaps it cannot be taken out
        now.restore(crossed)
        assert shown(now) == written


@pytest.mark.parametrize("early", ["true", "false"])
def test_two_writers_of_logs_of_one_group(early: str, table: hudi.Table) -> None:
    options = {
        **SEVERAL,
        "hoodie.write.concurrency.early.conflict.detection.enable": early,
    }
    given = rows("b", part="x", ts=50, schema=SCHEMA)

    def batches() -> Iterator[pa.RecordBatch]:
        hudi.Table.open(table.path, SEVERAL).upsert(rows("a", part="x", ts=49, schema=SCHEMA))
        yield from given.to_batches()

    reader = pa.RecordBatchReader.from_batches(given.schema, batches())
    with pytest.raises(CommitConflictError, match="file group"):
        table.upsert(reader, options=options)
    assert shown(table) == [("a", "x", 49), ("b", "x", 9), ("d", "y", 0)]


def test_two_writers_of_logs_of_two_groups(table: hudi.Table) -> None:
    given = rows("b", part="x", ts=50, schema=SCHEMA)

    def batches() -> Iterator[pa.RecordBatch]:
        other = hudi.Table.open(table.path, SEVERAL)
        other.upsert(rows("d", "n", part=["y", "y"], ts=49, schema=SCHEMA))
        yield from given.to_batches()

    table.upsert(pa.RecordBatchReader.from_batches(given.schema, batches()), options=SEVERAL)
    assert shown(table) == [("a", "x", 0), ("b", "x", 50), ("d", "y", 49), ("n", "y", 49)]


def test_ranges_of_a_partition_whose_log_is_older_than_a_name(tmp_path: Path) -> None:
    place = pa.struct([("level", pa.int64())])
    wide = pa.schema([*SCHEMA, ("seen", pa.int64()), ("place", place)])
    options = {
        **INDEXES,
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.compact.inline": "false",
        "hoodie.metadata.index.column.stats.column.list": "ts,seen,place.level,read,place.floor",
    }
    table = new_table(tmp_path / "t", wide, options, table_type="MERGE_ON_READ")

    def given(key: str, number: int, seen: str, level: str) -> pa.Table:
        row = {"id": key, "part": "x", "ts": number, seen: number, "place": {level: number}}
        schema = hudi.Table.open(table.path).schema
        return pa.Table.from_pylist([row], pa.schema(schema))

    table.insert(given("a", 1, "seen", "level"))
    table.upsert(given("a", 7, "seen", "level"))
    table.alter(rename={"seen": "read", "place.level": "floor"})
    for key, number in (("b", 8), ("c", 9)):
        hudi.Table.open(table.path, options).insert(given(key, number, "read", "floor"))
    found = hudi.Table.open(table.path)
    assert logs_of(found)
    assert found.validate().differences == ()
    assert pairs(found.to_arrow(filter=[("read", "<", 9)]), "id") == [("a",), ("b",)]
    found.repair_metadata()
    assert hudi.Table.open(table.path).validate().differences == ()
