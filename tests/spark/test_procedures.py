"""Hudi's SQL procedures as functions of a session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import hudi_core as hudi
from hudi_core.errors import (
    InstantNotFoundError,
    InvalidOptionError,
    NotATableError,
    TableServiceError,
)

pytestmark = pytest.mark.spark

OPTIONS = {
    "hoodie.table.name": "p",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.clean.automatic": "false",
    "hoodie.metadata.compact.max.delta.commits": "2",
}


def city_rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "city": ["rome" if n % 2 else "oslo" for n in ids]})


def dicts(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict() for row in frame.collect()]


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A table with three commits: two files, one of them written three times."""
    where = tmp_path / "p"
    for ids in ((1, 2), (1,), (1, 3)):
        hudi.write(city_rows(*ids), where, options=OPTIONS, extra_metadata={"batch": str(len(ids))})
    return str(where)


def times(path: str) -> list[str]:
    return [one.requested_time for one in hudi.Table.open(path).timeline.completed_writes()]


def test_commits(spark: SparkSession, path: str) -> None:
    call = hudi.procedures(spark)
    found = dicts(call.show_commits(path))
    assert [row["commit_time"] for row in found] == times(path)[::-1]
    last, _, first = found
    assert (first["total_files_added"], first["total_files_updated"]) == (2, 0)
    assert (last["total_files_added"], last["total_files_updated"]) == (0, 1)
    assert (last["total_records_written"], last["total_update_records_written"]) == (2, 1)
    assert last["action"] == "commit"
    assert last["total_partitions_written"] == 1
    assert last["total_bytes_written"] > 0
    assert len(dicts(call.show_commits(path, limit=1))) == 1

    files = dicts(call.show_commits_metadata(path))
    assert [row["partition"] for row in files] == ["rome", "rome", "oslo", "rome"]
    assert files[0]["previous_commit"] == times(path)[1]
    assert files[0]["num_inserts"] == 1

    kept = dicts(call.show_commit_extra_metadata(path, metadata_key="batch"))
    assert kept == [
        {
            "instant_time": times(path)[-1],
            "action": "commit",
            "metadata_key": "batch",
            "metadata_value": "2",
        }
    ]
    second = call.show_commit_extra_metadata(path, instant_time=times(path)[1])
    assert {row["metadata_key"]: row["metadata_value"] for row in dicts(second)}["batch"] == "1"
    with pytest.raises(InstantNotFoundError):
        call.show_commit_extra_metadata(path, instant_time="20200101000000000")


def test_the_timeline_and_a_rollback(spark: SparkSession, path: str) -> None:
    call, last = hudi.procedures(spark), times(path)[-1]
    assert dicts(call.rollback_to_instant(path, last)) == [{"rollback_result": True}]
    found = dicts(call.show_timeline(path))
    rollback = found[0]
    assert (rollback["action"], rollback["state"]) == ("rollback", "COMPLETED")
    assert rollback["rollback_info"] == f"Rolled back {last}"
    assert rollback["timeline_type"] == "ACTIVE"
    assert [row["instant_time"] for row in found[1:]] == times(path)[::-1]
    assert hudi.Table.open(path).count() == 2


def test_the_timeline_has_savepoints_beside_their_commits(spark: SparkSession, path: str) -> None:
    call, (first, second, last) = hudi.procedures(spark), times(path)
    call.create_savepoint(path, second)
    found = [(row["instant_time"], row["action"]) for row in dicts(call.show_timeline(path))]
    assert found == [(last, "commit"), (second, "savepoint"), (second, "commit"), (first, "commit")]


def test_archived_instants(spark: SparkSession, path: str) -> None:
    call = hudi.procedures(spark)
    first = times(path)[0]
    for _ in range(2):
        hudi.write(city_rows(1), path, options=OPTIONS)
    call.run_clean(path, retain_commits=1)
    done = call.archive_commits(path, min_commits=2, max_commits=3, retain_commits=1)
    assert dicts(done) == [{"result": 0}]
    assert first not in [row["instant_time"] for row in dicts(call.show_timeline(path))]
    found = {row["instant_time"]: row for row in dicts(call.show_timeline(path, showArchived=True))}
    assert found[first]["timeline_type"] == "ARCHIVED"


def test_cleans(spark: SparkSession, path: str) -> None:
    call = hudi.procedures(spark)
    assert dicts(call.show_cleans(path)) == []
    [done] = dicts(
        call.run_clean(path, clean_policy="KEEP_LATEST_FILE_VERSIONS", file_versions_retained=1)
    )
    assert done["total_files_deleted"] == 2
    [again] = dicts(call.run_clean(path, options="hoodie.cleaner.commits.retained=1"))
    assert again["total_files_deleted"] == 0
    _, shown = dicts(call.show_cleans(path))
    assert shown["total_files_deleted"] == 2
    assert shown["action"] == "clean"
    assert shown["start_clean_time"] == done["start_clean_time"]


def test_clustering(spark: SparkSession, path: str) -> None:
    call = hudi.procedures(
        spark, {"hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true"}
    )
    [planned] = dicts(call.run_clustering(path, order="id", op="schedule"))
    assert planned["state"] == "REQUESTED"
    assert planned["involved_partitions"] == "*"
    [done] = dicts(
        call.run_clustering(
            path, op="execute", instants=planned["timestamp"], show_involved_partition=True
        )
    )
    assert done["state"] == "COMPLETED"
    assert done["involved_partitions"] == "oslo,rome"
    assert done["input_group_size"] == 2
    assert dicts(call.show_commits(path))[0]["action"] == "replacecommit"
    with pytest.raises(InvalidOptionError, match="no such operation"):
        call.run_clustering(path, op="all")


def test_compactions(spark: SparkSession, tmp_path: Path) -> None:
    """Log files are merged on the executors."""
    path = str(tmp_path / "m")
    options = {
        **OPTIONS,
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.compact.inline": "false",
    }
    for ids in ((1, 2), (1,), (2,)):
        hudi.write(city_rows(*ids), path, mode="append", options=options)
    call = hudi.procedures(spark, {"hoodie.compact.inline": "false"})
    assert dicts(call.show_compaction(path)) == []
    [planned] = dicts(call.run_compaction(path, "schedule"))
    assert (planned["state"], planned["operation_size"]) == ("REQUESTED", 2)
    shown = dicts(call.show_compaction(path))
    assert {row["partition_path"] for row in shown} == {"oslo", "rome"}
    assert {row["state"] for row in shown} == {"REQUESTED"}
    assert {row["total_log_files_per_partition"] for row in shown} == {1}
    hudi.Table.open(path, {"hoodie.compact.inline": "false"}).upsert(city_rows(1))
    [done] = dicts(call.run_compaction(path, "run", timestamp=planned["timestamp"]))
    assert (done["timestamp"], done["state"]) == (planned["timestamp"], "COMPLETED")
    [done] = dicts(call.run_compaction(path, "RUN"))
    assert done["operation_size"] == 1
    assert dicts(call.run_compaction(path, "execute")) == []
    last, *shown = dicts(call.show_compaction(path))
    assert (last["compaction_time"], last["action"], last["partition_path"]) == (
        done["timestamp"],
        "commit",
        "rome",
    )
    assert sorted(row["partition_path"] for row in shown) == ["oslo", "rome"]
    assert all(row["total_write_bytes_per_partition"] for row in (last, *shown))
    assert len(dicts(call.show_compaction(path, limit=1))) == 1
    assert hudi.Table.open(path).count() == 2
    with pytest.raises(InvalidOptionError, match="no such operation"):
        call.run_compaction(path, "compact")
    with pytest.raises(InvalidOptionError, match="a plan of its own"):
        call.run_compaction(path, "schedule", instants="20200101000000000")


def test_compactions_of_other_tables(spark: SparkSession, path: str) -> None:
    call = hudi.procedures(spark)
    for refused in (call.show_compaction, lambda table: call.run_compaction(table, "run")):
        with pytest.raises(TableServiceError, match="COPY_ON_WRITE"):
            refused(path)


def test_clusterings_that_are_named(spark: SparkSession, path: str) -> None:
    call = hudi.procedures(
        spark, {"hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true"}
    )
    [planned] = dicts(call.run_clustering(path, op="schedule"))
    before = hudi.Table.open(path).timeline.instants
    named = planned["timestamp"]
    refused: list[tuple[dict[str, str], str]] = [
        ({"instants": named, "op": "schedule"}, "a plan of its own"),
        ({"instants": named, "op": "scheduleAndExecute"}, "a plan of its own"),
        ({"instants": f"{named},"}, "it names none"),
        ({"instants": ""}, "it names none"),
        ({"instants": named, "order": "id"}, "has its plan"),
        ({"op": "execute", "selected_partitions": "rome"}, "has its plan"),
    ]
    for arguments, message in refused:
        with pytest.raises(InvalidOptionError, match=message):
            call.run_clustering(path, **arguments)  # type: ignore[arg-type]
    with pytest.raises(InstantNotFoundError):
        call.run_clustering(path, instants="20200101000000000")
    assert hudi.Table.open(path).timeline.instants == before
    [done] = dicts(call.run_clustering(path, instants=named))
    assert (done["timestamp"], done["state"]) == (named, "COMPLETED")
    assert len(hudi.Table.open(path).timeline.instants) == len(before)


def test_savepoints(spark: SparkSession, path: str) -> None:
    call, (first, second, _) = hudi.procedures(spark), times(path)
    assert dicts(call.create_savepoint(path, first, user="me", comments="before")) == [
        {"create_savepoint_result": True}
    ]
    call.create_savepoint(path, second)
    found = dicts(call.show_savepoints(path))
    assert [row["savepoint_time"] for row in found] == [second, second, first, first]
    assert found[-1]["savepointed_by"] == "me"
    assert found[-1]["comments"] == "before"
    assert {row["partition_path"] for row in found} == {"rome", "oslo"}
    assert all(row["savepoint_data_file"].endswith(".parquet") for row in found)
    assert dicts(call.delete_savepoint(path)) == [{"delete_savepoint_result": True}]
    with pytest.raises(InstantNotFoundError):
        call.rollback_to_savepoint(path, second)
    assert dicts(call.rollback_to_savepoint(path)) == [{"rollback_savepoint_result": True}]
    assert times(path) == [first]
    call.delete_savepoint(path, first)
    with pytest.raises(InstantNotFoundError):
        call.delete_savepoint(path)


def test_partitions_that_expire(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "days"
    options = {**OPTIONS, "hoodie.datasource.write.partitionpath.field": "city"}
    hudi.write(city_rows(1, 2), path, options=options)
    call = hudi.procedures(spark)
    assert dicts(call.run_ttl(str(path), retain_days=30)) == []
    assert call.run_ttl(str(path), retain_days=30).columns == ["deleted_partitions"]


def test_tables_by_name(spark: SparkSession, path: str) -> None:
    call = hudi.procedures(spark)
    spark.sql(f"CREATE TABLE by_name USING hudi LOCATION '{path}'")
    try:
        assert dicts(call.show_commits("by_name")) == dicts(call.show_commits(path))
    finally:
        spark.sql("DROP TABLE by_name")
    with pytest.raises(NotATableError, match="no table of the catalog"):
        call.show_commits("by_name")
    with pytest.raises(InvalidOptionError, match="no key=value"):
        call.run_clean(path, options="retain")
