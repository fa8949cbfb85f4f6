"""Instant files that Apache Hudi wrote: read as hudi-rs reads them, written back byte for byte."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastavro.schema import to_parsing_canonical_form
from hudi import HudiTable, HudiTableBuilder

from hudi_core.model.actions import (
    CompactionPlan,
    IndexCommitMetadata,
    IndexPlan,
    RequestedReplaceMetadata,
    RollbackMetadata,
    RollbackPlan,
)
from hudi_core.model.commit import CommitMetadata, ReplaceCommitMetadata
from hudi_core.model.instant import Action, Instant, State
from hudi_core.storage.posix import PosixStorage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.archived import ArchivedTimeline, with_history
from hudi_core.timeline.clock import TimelineClock
from hudi_core.timeline.serde import (
    decode_commit,
    decode_compaction_plan,
    decode_index_commit,
    decode_index_plan,
    decode_record,
    decode_replace_commit,
    decode_requested_replace,
    decode_rollback,
    decode_rollback_plan,
    encode,
    encode_datum,
)
from hudi_core.timeline.serde.records import read_container, schema_of
from tests.hudi_tables import ALL, COPY_ON_WRITE, PLAIN, TXNS, VERSION_6, RealTables

DECODERS: Final[dict[str, tuple[Callable[[bytes, str], Any], dict[str, Any]]]] = {
    "HoodieCommitMetadata": (decode_commit, schema_of(CommitMetadata)),
    "HoodieReplaceCommitMetadata": (decode_replace_commit, schema_of(ReplaceCommitMetadata)),
    "HoodieRequestedReplaceMetadata": (
        decode_requested_replace,
        schema_of(RequestedReplaceMetadata),
    ),
    "HoodieRollbackPlan": (decode_rollback_plan, schema_of(RollbackPlan)),
    "HoodieRollbackMetadata": (decode_rollback, schema_of(RollbackMetadata)),
    "HoodieCompactionPlan": (decode_compaction_plan, schema_of(CompactionPlan)),
    "HoodieIndexPlan": (decode_index_plan, schema_of(IndexPlan)),
    "HoodieIndexCommitMetadata": (decode_index_commit, schema_of(IndexCommitMetadata)),
}

LAYOUT_2: Final = [name for name in ALL if name not in VERSION_6]
COW_LAYOUT_2: Final = [name for name in LAYOUT_2 if name in COPY_ON_WRITE]
STAT_KEYS: Final = ("fileId", "path", "numWrites", "numDeletes", "prevCommit")


def timelines(base: Path) -> Iterator[ActiveTimeline]:
    """Yield the timeline of a table, and of its metadata table where there is one."""
    storage = PosixStorage(str(base), fsync=False)
    for folder in (".hoodie/timeline", ".hoodie/metadata/.hoodie/timeline"):
        if (base / folder).is_dir():
            yield ActiveTimeline(storage, folder)


def bodies(base: Path) -> Iterator[tuple[str, bytes]]:
    for active in timelines(base):
        scan = active.scan()
        assert scan.unknown == ()
        for instant in scan.files:
            data = active.read(instant)
            if data:
                yield active.path(instant), data


def rust(base: Path) -> HudiTable:
    return HudiTableBuilder.from_base_uri(str(base)).build()


def rows_by_commit(table: HudiTable) -> pa.Table:
    return pa.Table.from_batches(table.read()).sort_by(
        [(column, "ascending") for column in ("_hoodie_record_key", "_hoodie_commit_seqno")]
    )


@pytest.mark.parametrize("name", LAYOUT_2)
def test_records_written_back_have_equal_bytes(real_tables: RealTables, name: str) -> None:
    base, modelled = real_tables(name), 0
    for path, data in bodies(base):
        record = decode_record(data, path)
        decode, schema = DECODERS[record.name]
        value = decode(data, path)
        assert encode_datum(value, record.schema) == record.datum, path
        # our schema is the file's, so our own files have these bytes too
        own = to_parsing_canonical_form(schema)
        assert own == to_parsing_canonical_form(json.loads(read_container(data, path).schema))
        assert decode(encode(value), path) == value
        assert decode_record(encode(value), path).datum == record.datum
        modelled += 1
    # both timelines: a listing that finds nothing fails
    files = [*base.glob(".hoodie/timeline/*"), *base.glob(".hoodie/metadata/.hoodie/timeline/*")]
    stored = [file for file in files if file.is_file() and file.stat().st_size > 0]
    assert modelled == len(stored) >= 4


@pytest.mark.parametrize("name", COW_LAYOUT_2)
def test_hudi_rs_reads_files_that_we_wrote_back(real_tables: RealTables, name: str) -> None:
    base = real_tables(name)
    before = rust(base)
    expected, metadata = rows_by_commit(before), metadata_of(before)
    for path, data in bodies(base):
        record = decode_record(data, path)
        (base / path).write_bytes(encode(DECODERS[record.name][0](data, path)))

    after = rust(base)
    assert rows_by_commit(after).equals(expected)
    assert metadata_of(after) == metadata


def metadata_of(table: HudiTable) -> dict[str, Any]:
    timeline = table.get_timeline()
    instants = timeline.get_completed_commits() + timeline.get_completed_replacecommits()
    assert instants
    return {
        one.timestamp: json.loads(timeline.get_instant_metadata_in_json(one)) for one in instants
    }


@pytest.mark.parametrize("name", COPY_ON_WRITE)
def test_commits_and_their_stats_are_those_of_hudi_rs(real_tables: RealTables, name: str) -> None:
    base = real_tables(name)
    if name in VERSION_6:
        active = ActiveTimeline(PosixStorage(str(base), fsync=False), ".hoodie", 1)
    else:
        active = next(timelines(base))
    ours = {one.requested_time: active.read_commit(one) for one in active.load().completed_writes()}
    theirs = metadata_of(rust(base))

    assert list(ours) == sorted(theirs)
    for time, metadata in ours.items():
        assert digest(metadata) == digest_of_json(theirs[time])


def digest(metadata: CommitMetadata) -> dict[str, Any]:
    replaced = (
        metadata.partition_to_replace_file_ids
        if isinstance(metadata, ReplaceCommitMetadata)
        else {}
    )
    return {
        "operation": metadata.operation_type,
        "extra": dict(metadata.extra_metadata),
        "replaced": {partition: list(ids) for partition, ids in replaced.items()},
        "stats": sorted(
            (partition, one.file_id, one.path, one.num_writes, one.num_deletes, one.prev_commit)
            for partition, stats in metadata.partition_to_write_stats.items()
            for one in stats
        ),
    }


def digest_of_json(metadata: dict[str, Any]) -> dict[str, Any]:
    return {
        "operation": metadata["operationType"],
        "extra": metadata["extraMetadata"],
        "replaced": metadata.get("partitionToReplaceFileIds") or {},
        "stats": sorted(
            (partition, *(one[key] for key in STAT_KEYS))
            for partition, stats in metadata["partitionToWriteStats"].items()
            for one in stats
        ),
    }


def test_a_real_clustering_is_one_instant(real_tables: RealTables) -> None:
    active = next(timelines(real_tables(TXNS)))
    timeline = active.load()
    replaced = timeline.of_actions(Action.REPLACECOMMIT).instants
    files = [file.requested_time for file in active.scan().files]
    assert [files.count(one.requested_time) for one in replaced] == [3, 3]
    assert timeline.pending().instants == ()
    clustering = replaced[1]
    assert timeline.find(clustering.requested_time, Action.CLUSTERING) == clustering
    plan = decode_requested_replace(
        active.read(Instant(clustering.requested_time, Action.CLUSTERING, State.REQUESTED)), "x"
    )
    assert plan.clustering_plan is not None
    metadata = active.read_commit(clustering)
    assert isinstance(metadata, ReplaceCommitMetadata)
    groups = plan.clustering_plan.input_groups or ()
    planned = {one.file_id for group in groups for one in group.slices or ()}
    assert planned == {
        file_id for ids in metadata.partition_to_replace_file_ids.values() for file_id in ids
    }


def test_the_clock_continues_a_real_timeline(real_tables: RealTables) -> None:
    base = real_tables(TXNS)
    active = next(timelines(base))
    names = [file.name for file in (base / ".hoodie/timeline").iterdir()]
    newest = max(time for name in names for time in re.findall(r"\d{17}", name))
    assert active.load().latest_time() == newest
    assert TimelineClock(active).next_time() > newest


@pytest.mark.parametrize("name", [PLAIN, TXNS])
def test_hudi_rs_sees_an_instant_that_we_completed(
    real_tables: RealTables, name: str, tmp_path: Path
) -> None:
    base = tmp_path / "copy"
    shutil.copytree(real_tables(name), base)
    active, expected = next(timelines(base)), rows_by_commit(rust(base))
    clock = TimelineClock(active)
    before = active.load().completed_writes()

    instant = active.create_requested(Instant(clock.next_time(), Action.COMMIT, State.REQUESTED))
    instant = active.to_inflight(instant)
    assert len(rust(base).get_timeline().get_completed_commits()) < len(before) + 1
    schema = dict(active.read_commit(before[-1]).extra_metadata)
    done = active.complete(instant, clock.next_time(), encode(CommitMetadata({}, False, schema)))

    assert rust(base).get_timeline().get_latest_commit_timestamp() == done.requested_time
    assert rows_by_commit(rust(base)).equals(expected)


def test_archived_instants_of_a_real_table_stay_committed(real_tables: RealTables) -> None:
    base = real_tables(TXNS)
    active, expected = next(timelines(base)), rows_by_commit(rust(base))
    whole = active.load()
    archived = whole.completed_writes()[:4]
    bodies_before = [active.read(one) for one in archived]
    history = base / ".hoodie/timeline/history"
    path = history / f"{archived[0].requested_time}_{archived[-1].requested_time}_0.parquet"
    pq.write_table(
        pa.table(
            {
                "instantTime": [one.requested_time for one in archived],
                "completionTime": [one.completion_time for one in archived],
                "action": [one.action.value for one in archived],
                "metadata": pa.array(bodies_before, pa.binary()),
                "plan": pa.nulls(len(archived), pa.binary()),
                "version": pa.array([1] * len(archived), pa.int32()),
            }
        ),
        path,
    )
    entry = {"fileName": path.name, "fileLen": path.stat().st_size}
    (history / "manifest_1").write_text(json.dumps({"files": [entry]}, indent=2))
    (history / "_version_").write_text("1")
    gone = {instant.requested_time for instant in archived}
    for file in active.scan().files:
        if file.requested_time in gone:
            assert active.delete(file)

    left = active.load()
    found = ArchivedTimeline(active.storage, ".hoodie/timeline/history").load(bodies=True)
    assert [one.metadata for one in found] == bodies_before
    assert with_history(left, found) == whole
    assert len(left) == len(whole) - 4
    for instant in whole.completed_writes():
        assert left.is_committed(instant.requested_time)
    assert rows_by_commit(rust(base)).equals(expected)
