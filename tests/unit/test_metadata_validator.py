"""Damage of metadata tables is found, named and repaired."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.actions.archive import archive
from hudi_core.actions.archive_plan import ArchiveRules, plan_archive
from hudi_core.avro.wrappers import Wrapped
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import (
    ConcurrentWriterError,
    CorruptMetadataError,
    DataFileError,
    IncompleteListingError,
    LostCompletionError,
    TableServiceError,
    UnsupportedTableError,
)
from hudi_core.hashing.java_hash import shards_of
from hudi_core.log_format.block import BlockType, find_log_blocks
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.log import completeness
from hudi_core.metadata.log.completeness import require_complete
from hudi_core.metadata.log.groups import GroupFile, ListedGroup
from hudi_core.metadata.log.records import (
    BloomFilterEntry,
    ColumnRange,
    FileEntry,
    FileList,
    MetadataRecord,
    PartitionChange,
    RecordLocation,
    RecordType,
    SecondaryEntry,
)
from hudi_core.metadata.log.writer import write_deltacommit
from hudi_core.metadata.maintenance.validator import ValidationReport, validate
from hudi_core.metadata.partition_types import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
)
from hudi_core.metadata.partitions.names import Check
from hudi_core.metadata.partitions.registry import partition_of
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.metadata.state import MetadataState
from hudi_core.metadata.table import (
    BESIDE_FOLDER,
    METADATA_FOLDER,
    StoredPartitions,
    metadata_client,
)
from hudi_core.model.commit import CommitMetadata, WriteStat
from hudi_core.model.difference import Difference
from hudi_core.model.files import BaseFileName, FileId, FileStatus, PartitionPath
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.services.metadata import look_up_keys
from hudi_core.services.opening import open_table
from hudi_core.storage.options import StorageOptions
from hudi_core.storage.posix import PosixStorage
from hudi_core.timeline.serde import encode
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn.heartbeat import Heartbeat, heartbeat_path
from tests.cli_runs import run, run_json
from tests.foreign import by_hudi_rs
from tests.hudi_tables import TRIPS, TXNS
from tests.operators import operator
from tests.tables import SCHEMA, copied, new_table

OPTIONS = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
}
SECONDARY = "secondary_index_of_ts"


def part_rows(*parts: str, ts: int = 1) -> pa.Table:
    found = [{"id": f"{part}{n}", "part": part, "ts": ts + n} for part in parts for n in range(3)]
    return pa.Table.from_pylist(found, SCHEMA)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give a table with every partition a metadata table can have here, of two commits."""
    copied(tmp_path / "t", indexed)
    return tmp_path / "t"


def indexed(path: Path) -> hudi.Table:
    table = new_table(path, SCHEMA, OPTIONS)
    table.upsert(part_rows("x", "y"))
    operator(path, OPTIONS).index(SECONDARY, "ts")
    table.upsert(part_rows("x", ts=5))
    return table


def client_of(path: Path) -> TableMetaClient:
    return open_table(str(path), {}).client


def plant(path: Path, partition: str, *records: MetadataRecord, deleted: str | None = None) -> None:
    """Commit records to the metadata table with an instant that changes nothing."""
    client = client_of(path)
    both = MetadataState.load(client)
    assert both is not None
    requested = Instant(both.next_time(), Action.COMMIT, State.REQUESTED)
    inflight = client.active.to_inflight(client.active.create_requested(requested))
    both = both.with_data_timeline(client.timeline())
    change = PartitionChange(records, () if deleted is None else (deleted,))
    write_deltacommit(both, requested.requested_time, {partition: change})
    client.active.complete(inflight, both.next_time(), encode(CommitMetadata()))


def a_record(path: Path, partition: str, fits: Callable[[Any], bool] = bool) -> MetadataRecord:
    snapshot = MetadataSnapshot.open(client_of(path))
    return next(one for one in snapshot.scan(partition) if fits(one.payload))


def found_in(path: Path, partition: str) -> Difference:
    report = validate(client_of(path))
    assert not report.is_valid
    assert {one.source for one in report.findings} == {partition}
    [finding] = report.findings
    assert str(finding)
    return finding


def test_what_writers_keep_is_valid(path: Path) -> None:
    report = validate(client_of(path))
    assert report == ValidationReport((), report.checked, {}, {})
    assert report.checked == {
        FILES: 3,
        COLUMN_STATS: 18,
        PARTITION_STATS: 12,
        BLOOM_FILTERS: 3,
        RECORD_INDEX: 6,
        SECONDARY: 6,
    }


@pytest.mark.parametrize("name", [TXNS, TRIPS])
def test_what_hudi_wrote_is_valid(name: str, real_tables: Callable[[str], Path]) -> None:
    report = validate(client_of(real_tables(name)))
    assert report.findings == ()
    assert {FILES, COLUMN_STATS, PARTITION_STATS} <= report.checked.keys()


def a_file(path: Path, partition: str) -> Path:
    return min((path / partition).glob("*.parquet"))


def test_a_file_that_is_lost(path: Path) -> None:
    lost = a_file(path, "y")
    lost.unlink()
    report = validate(client_of(path), [Check.FILES])
    assert [(one.expected, one.subject) for one in report.findings] == [
        (None, f"{lost.name} of partition 'y'")
    ]


def test_a_file_of_another_size(path: Path) -> None:
    changed = a_file(path, "y")
    size = changed.stat().st_size
    with changed.open("ab") as file:
        file.write(b"x")
    report = validate(client_of(path), [Check.FILES])
    [finding] = report.findings
    assert (finding.expected, finding.found) == (f"{size + 1} bytes", f"{size} bytes")
    assert validate(client_of(path), [Check.FILES], [PartitionPath("x")]).is_valid


def test_a_file_that_is_not_listed(path: Path) -> None:
    name = a_file(path, "y").name
    gone = FileList({name: FileEntry(0, is_deleted=True)})
    plant(path, FILES, MetadataRecord("y", RecordType.FILES, gone))
    report = validate(client_of(path), [Check.FILES])
    [finding] = report.findings
    assert (finding.subject, finding.found) == (f"{name} of partition 'y'", None)


def test_old_files_are_left_out_where_the_newest_are_asked_for(path: Path) -> None:
    old, new = sorted((path / "x").glob("*.parquet"), key=lambda one: one.name[-25:])
    old.unlink()
    assert validate(client_of(path), [Check.LATEST_FILES]).is_valid
    assert not validate(client_of(path), [Check.FILES]).is_valid
    new.unlink()
    assert not validate(client_of(path), [Check.LATEST_FILES]).is_valid


def test_a_partition_that_is_not_listed(path: Path) -> None:
    gone = FileList({"y": FileEntry(0, is_deleted=True)})
    plant(path, FILES, MetadataRecord("__all_partitions__", RecordType.ALL_PARTITIONS, gone))
    found = a_record(path, FILES, lambda payload: "y" not in payload.files)
    assert found.key == "__all_partitions__"
    name = a_file(path, "y").name
    plant(path, FILES, MetadataRecord("y", RecordType.FILES, FileList({name: FileEntry(0, True)})))
    report = validate(client_of(path), [Check.FILES])
    assert [one.subject for one in report.findings] == [f"{name} of partition 'y'"]


def of_ts(payload: Any) -> bool:
    return isinstance(payload, ColumnRange) and payload.column_name == "ts"


@pytest.mark.parametrize(
    "change",
    [
        {"min_value": Wrapped("LongWrapper", 2)},
        {"max_value": Wrapped("LongWrapper", 100)},
        {"null_count": 1},
        {"value_count": 4},
    ],
    ids=str,
)
def test_a_wrong_range_of_a_column(path: Path, change: dict[str, Any]) -> None:
    record = a_record(path, COLUMN_STATS, of_ts)
    assert isinstance(record.payload, ColumnRange)
    plant(path, COLUMN_STATS, replace(record, payload=replace(record.payload, **change)))
    finding = found_in(path, COLUMN_STATS)
    assert finding.subject == f"column ts of {record.payload.file_name}"
    assert None not in (finding.expected, finding.found)


def test_a_range_that_is_missing_and_one_of_no_file(path: Path) -> None:
    record = a_record(path, COLUMN_STATS, of_ts)
    assert isinstance(record.payload, ColumnRange)
    gone = replace(record.payload, is_deleted=True)
    plant(path, COLUMN_STATS, replace(record, payload=gone))
    assert found_in(path, COLUMN_STATS).found is None
    plant(path, COLUMN_STATS, record)
    assert validate(client_of(path)).is_valid
    other = replace(record.payload, file_name="a-0_0-0-0_20260101000000000.parquet")
    plant(path, COLUMN_STATS, replace(record, key="none", payload=other))
    assert found_in(path, COLUMN_STATS).expected is None


def test_ranges_of_partitions_may_be_wider_and_never_narrower(path: Path) -> None:
    record = a_record(path, PARTITION_STATS, of_ts)
    assert isinstance(record.payload, ColumnRange)
    wide: dict[str, Any] = {
        "min_value": Wrapped("LongWrapper", -5),
        "max_value": Wrapped("LongWrapper", 50),
        "is_tight_bound": True,
    }
    plant(path, PARTITION_STATS, replace(record, payload=replace(record.payload, **wide)))
    assert validate(client_of(path)).is_valid
    narrow = {**wide, "max_value": Wrapped("LongWrapper", -4)}
    plant(path, PARTITION_STATS, replace(record, payload=replace(record.payload, **narrow)))
    assert found_in(path, PARTITION_STATS).subject.startswith("column ts of ")


def test_a_wrong_bloom_filter(path: Path) -> None:
    record = a_record(path, BLOOM_FILTERS)
    assert isinstance(record.payload, BloomFilterEntry)
    wrong = replace(record.payload, bloom=record.payload.bloom[::-1])
    plant(path, BLOOM_FILTERS, replace(record, payload=wrong))
    found_in(path, BLOOM_FILTERS)


def test_wrong_keys_of_the_record_index(path: Path) -> None:
    record = a_record(path, RECORD_INDEX)
    assert isinstance(record.payload, RecordLocation)
    elsewhere = replace(record.payload, partition_name="nowhere")
    plant(path, RECORD_INDEX, replace(record, payload=elsewhere))
    finding = found_in(path, RECORD_INDEX)
    assert finding.subject == f"record key {record.key!r}"
    # the number of keys is right
    assert validate(client_of(path), [Check.RECORD_INDEX_COUNT]).is_valid
    plant(path, RECORD_INDEX, deleted=record.key)
    assert found_in(path, RECORD_INDEX).found is None
    [count] = validate(client_of(path), [Check.RECORD_INDEX_COUNT]).findings
    assert (count.expected, count.found) == ("6", "5")
    plant(path, RECORD_INDEX, record)
    assert validate(client_of(path)).is_valid
    plant(path, RECORD_INDEX, replace(record, key="nobody"))
    assert found_in(path, RECORD_INDEX).expected is None


def test_wrong_entries_of_a_secondary_index(path: Path) -> None:
    record = a_record(path, SECONDARY)
    plant(path, SECONDARY, replace(record, payload=SecondaryEntry(is_deleted=True)))
    assert found_in(path, SECONDARY).found is None
    plant(path, SECONDARY, record)
    plant(path, SECONDARY, replace(record, key="99$nobody"))
    finding = found_in(path, SECONDARY)
    assert (finding.subject, finding.expected) == ("record key 'nobody'", None)


def test_a_stale_metadata_table_is_an_error(path: Path) -> None:
    client = client_of(path)
    metadata = metadata_client(client)
    last = metadata.timeline().completed_writes()[-1]
    metadata.active.delete(last)
    with pytest.raises(CorruptMetadataError, match="hudi table repair --metadata"):
        validate(client)


# --- the metadata table rebuilt from all files: compared first, then put in the place of the old
ALL_ON = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
    "hoodie.metadata.index.bloom.filter.enable": "true",
}
ALL = ("bloom_filters", "column_stats", "files", "partition_stats", "record_index", SECONDARY)


def with_history(path: Path) -> hudi.Table:
    """Make a table with a history: upserts, deletes, a replaced partition, a clustering, a
    rollback, and every partition that a metadata table can have."""
    table = new_table(path, SCHEMA, ALL_ON)
    table.upsert(part_rows("x", "y", "z"))
    operator(path, OPTIONS).index(SECONDARY, "ts")
    table.upsert(part_rows("x", ts=5))
    table.delete(part_rows("y").slice(0, 1))
    table.insert_overwrite(part_rows("z", ts=7))
    table.insert(part_rows("w"))
    table.cluster(sort_by="ts", partitions=["x"])
    table.upsert(part_rows("w", ts=9))
    table.rollback(table.timeline.completed_writes()[-1])
    return table


@pytest.fixture
def history(tmp_path: Path) -> Path:
    copied(tmp_path / "t", with_history)
    return tmp_path / "t"


def opened(path: Path) -> hudi.Table:
    return hudi.Table.open(str(path), ALL_ON)


def answers(path: Path) -> dict[str, Any]:
    """Return what each partition of the metadata table says, in the words of its readers."""
    client = client_of(path)
    names = StoredPartitions.of(client.config).complete
    snapshot = MetadataSnapshot.open(client)
    said: dict[str, Any] = {}
    for name in names:
        kind = partition_of(name)
        assert kind is not None
        # of a key not when it came: a file does not tell
        said[name] = {one.key: kind.fact(one) for one in snapshot.scan(name)}
    # who reads it, and plans by it
    table = opened(path)
    said["slices"] = sorted(str(one) for one in table.file_slices(filter=[("ts", ">=", 5)]))
    said["by value"] = sorted(str(one) for one in table.file_slices(filter=[("ts", "=", 7)]))
    return said


def contents(path: Path) -> dict[str, bytes]:
    """Return the files of a table's own folder."""
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in sorted((path / ".hoodie").rglob("*"))
        if file.is_file()
    }


def read_rows(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = opened(path).to_arrow(["id", "part", "ts"]).to_pylist()
    return sorted(found, key=str)


# --- equal answers
@pytest.mark.parametrize("engine", [LocalEngine(1), LocalEngine(4)], ids=["one", "threads"])
@pytest.mark.parametrize("is_there", [True, False], ids=["in place", "moved away"])
def test_a_repair_gives_equal_answers(history: Path, is_there: bool, engine: LocalEngine) -> None:
    before, seen = answers(history), read_rows(history)
    timeline = opened(history).timeline.instants
    if not is_there:
        shutil.move(history / METADATA_FOLDER, history.parent / "elsewhere")

    done = opened(history).repair_metadata(engine=engine)

    assert done.partitions == ALL
    assert done.rebuilt is not None
    assert (done.rebuilt.unreadable is None) is is_there
    assert (done.rebuilt.differences, done.rebuilt.orphans, done.rebuilt.gone) == ((), (), ())
    assert done.rebuilt.records == {name: len(before[name]) for name in ALL}
    assert answers(history) == before
    assert validate(client_of(history)).is_valid
    assert not (history / BESIDE_FOLDER).exists()
    assert opened(history).timeline.instants == timeline
    assert read_rows(history) == seen
    by_others = [{name: row[name] for name in SCHEMA.names} for row in by_hudi_rs(history)]
    assert sorted(by_others, key=str) == seen
    # and it is kept from there on
    opened(history).upsert(part_rows("x", "y", ts=20))
    assert validate(client_of(history)).is_valid


def test_a_dry_run_reads_all_and_changes_nothing(history: Path) -> None:
    shutil.rmtree(history / METADATA_FOLDER / "files")
    before = contents(history)
    done = opened(history).repair_metadata(dry_run=True)
    assert contents(history) == before
    assert done.rebuilt is not None
    assert done.partitions == ALL
    assert done.rebuilt.unreadable is not None
    assert "files" in done.rebuilt.unreadable


def test_what_the_one_in_use_says_otherwise_is_shown(history: Path) -> None:
    ghost = f"{'2' * 36}-0_0-0-0_20200101000000000.parquet"
    listed = FileList({ghost: FileEntry(5)})
    plant(history, FILES, MetadataRecord("x", RecordType.FILES, listed))
    live = opened(history).repair_metadata(dry_run=True)
    done = opened(history).repair_metadata()
    for one in (live, done):
        assert one.rebuilt is not None
        assert one.rebuilt.unreadable is None
        [shown] = one.rebuilt.differences
        assert (shown.expected, shown.found) == (None, "5 bytes")
        assert ghost in shown.subject
    assert validate(client_of(history)).is_valid


def test_the_command_shows_what_it_did(history: Path) -> None:
    repair = ("table", "repair", history, "--metadata")
    said = run(*repair, "--dry-run")
    assert said.exit_code == 0, said.output
    assert "Would rebuild the metadata table" in said.output
    shutil.rmtree(history / METADATA_FOLDER)
    document = run_json(*repair)
    assert tuple(document["partitions"]) == ALL
    assert document["files"] == document["records"]["bloom_filters"]
    assert document["differences"] == []
    assert "missing" in document["not_compared"]
    assert run(*repair, "--force").exit_code == 2


@pytest.mark.parametrize("table_format", ["iceberg", "delta"])
def test_tables_of_every_format_are_repaired_alike(tmp_path: Path, table_format: str) -> None:
    table = new_table(tmp_path / "t", SCHEMA, ALL_ON, ordering_field=None, format=table_format)
    table.upsert(part_rows("x", "y"))
    table.insert_overwrite(part_rows("y", ts=3))
    before, version = answers(tmp_path / "t"), table.history().num_rows
    shutil.rmtree(tmp_path / "t" / METADATA_FOLDER)
    table.repair_metadata()
    assert answers(tmp_path / "t") == before
    assert table.history().num_rows == version
    table.upsert(part_rows("y", ts=9))
    assert table.validate().is_valid


# --- wrong listings
class LateStorage(PosixStorage):
    """A store that lists late: some files exist and are not listed yet."""

    hidden = ""

    def __init__(self, root: str, _: StorageOptions, *, fsync: bool) -> None:
        super().__init__(root, fsync)

    def list(self, *args: Any, **kwargs: Any) -> Iterator[FileStatus]:
        """Leave out what is hidden."""
        for one in super().list(*args, **kwargs):
            if not one.path.startswith(self.hidden):
                yield one

    def list_folders(self, prefix: str = "") -> Sequence[str]:
        """Leave out folders that are hidden."""
        return tuple(one for one in super().list_folders(prefix) if not one.startswith(self.hidden))


@pytest.fixture(params=["file", "prefix"])
def hidden(request: pytest.FixtureRequest, history: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Hide a live file, or a whole folder, from whoever lists."""
    live = opened(history).file_slices()[0].base_file
    assert live is not None
    name = live.path if request.param == "file" else live.path.rpartition("/")[0]
    monkeypatch.setattr(LateStorage, "hidden", name)
    monkeypatch.setattr("hudi_core.services.opening.open_storage", LateStorage)
    return live.path


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("is_there", [True, False], ids=["in place", "moved away"])
def test_a_listing_that_misses_a_file_is_refused_before_the_swap(
    history: Path, hidden: str, is_there: bool, dry_run: bool
) -> None:
    if not is_there:
        shutil.rmtree(history / METADATA_FOLDER)
    before = contents(history)
    with pytest.raises(IncompleteListingError, match="is not listed") as raised:
        opened(history).repair_metadata(dry_run=dry_run)
    assert raised.value.retryable
    assert any(hidden in one for one in raised.value.missing)
    # the lock file is there once it was taken
    left = {name: data for name, data in contents(history).items() if name in before}
    assert left == before
    assert not (history / BESIDE_FOLDER).exists()


def test_files_of_archived_writes_are_missed_as_well(
    history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = opened(history)
    for ts in range(30, 36):
        table.upsert(part_rows("x", ts=ts))
    table.clean(options={"hoodie.cleaner.commits.retained": "1"})
    table.archive(options={"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"})
    writes = {one.requested_time for one in table.timeline.completed_writes()}
    live = next(
        one.base_file
        for one in table.file_slices()
        if one.base_file is not None and one.base_instant not in writes
    )
    monkeypatch.setattr(LateStorage, "hidden", live.path)
    monkeypatch.setattr("hudi_core.services.opening.open_storage", LateStorage)
    with pytest.raises(IncompleteListingError):
        opened(history).repair_metadata()
    monkeypatch.setattr(LateStorage, "hidden", "nothing")
    opened(history).repair_metadata()
    assert validate(client_of(history)).is_valid


def test_a_file_of_another_size_is_refused(history: Path) -> None:
    live = opened(history).file_slices()[0].base_file
    assert live is not None
    with (history / live.path).open("ab") as file:
        file.write(b"!")
    with pytest.raises(IncompleteListingError, match=f"is listed with {live.size + 1}"):
        opened(history).repair_metadata()


def test_a_damaged_data_file_is_refused_and_the_one_in_use_stays(history: Path) -> None:
    live = opened(history).file_slices()[0].base_file
    assert live is not None
    (history / live.path).write_bytes(b"\0" * live.size)
    before = answers(history)
    with pytest.raises(DataFileError):
        opened(history).repair_metadata()
    assert answers(history) == before
    assert not (history / BESIDE_FOLDER).exists()


@pytest.mark.parametrize("is_new_group", [True, False])
def test_a_file_that_no_write_names_is_not_listed(history: Path, is_new_group: bool) -> None:
    """A task that was given up closed its file after the write was complete."""
    before, seen = answers(history), read_rows(history)
    live = next(one.base_file for one in opened(history).file_slices() if one.base_file)
    name = live.name
    stray = (
        replace(name, file_id=FileId(f"{'1' * 36}-0"))
        if is_new_group
        else replace(name, write_token="9-9-9")
    )
    folder = live.path.rpartition("/")[0]
    shutil.copy(history / live.path, history / folder / str(stray))
    shutil.rmtree(history / METADATA_FOLDER)

    done = opened(history).repair_metadata()

    assert done.rebuilt is not None
    assert done.rebuilt.orphans == (f"{folder}/{stray}",)
    assert answers(history) == before
    assert read_rows(history) == seen
    assert validate(client_of(history)).is_valid


# --- beside others
def pending(path: Path) -> tuple[TableMetaClient, Instant]:
    client = client_of(path)
    time = client.clock.next_time(client.timeline())
    requested = client.active.create_requested(Instant(time, Action.COMMIT, State.REQUESTED))
    return client, client.active.to_inflight(requested)


def test_a_live_writer_is_not_disturbed(history: Path) -> None:
    client, instant = pending(history)
    heart = Heartbeat(client.scratch, instant.requested_time, 60_000)
    heart.start()
    try:
        before = answers(history)
        with pytest.raises(ConcurrentWriterError):
            opened(history).repair_metadata()
        assert answers(history) == before
    finally:
        heart.stop()


def test_what_a_dead_writer_left_is_not_listed_and_left_to_the_next_write(history: Path) -> None:
    before = answers(history)
    client, instant = pending(history)
    client.storage.put(heartbeat_path(instant.requested_time), b"{}")
    os.utime(history / heartbeat_path(instant.requested_time), (0, 0))
    live = next(one.base_file for one in opened(history).file_slices() if one.base_file)
    stray = replace(live.name, instant=instant.requested_time)
    shutil.copy(history / live.path, history / live.path.rpartition("/")[0] / str(stray))
    shutil.rmtree(history / METADATA_FOLDER)

    done = opened(history).repair_metadata()

    assert done.rebuilt is not None
    assert answers(history) == before
    assert [one.requested_time for one in client_of(history).timeline().pending()] == [
        instant.requested_time
    ]
    opened(history).upsert(part_rows("x", ts=50))
    assert not list(client_of(history).timeline().pending())
    assert validate(client_of(history)).is_valid


def test_a_lost_completed_file_is_refused(history: Path) -> None:
    """Without it the files of a commit that others have seen would not be listed."""
    table = opened(history)
    table.upsert(part_rows("x", ts=60))
    lost = table.timeline.completed_writes()[-1]
    table.upsert(part_rows("x", ts=61))
    (history / client_of(history).active.path(lost)).unlink()
    shutil.rmtree(history / METADATA_FOLDER)
    for dry_run in (True, False):
        with pytest.raises(LostCompletionError, match=lost.requested_time):
            opened(history).repair_metadata(dry_run=dry_run)


def test_a_table_without_a_metadata_table_is_refused(tmp_path: Path) -> None:
    off = {**ALL_ON, "hoodie.metadata.enable": "false"}
    table = new_table(tmp_path / "t", SCHEMA, off, partition_by=None, ordering_field=None)
    with pytest.raises(TableServiceError, match="hudi metadata create"):
        table.repair_metadata()


# --- what was lost of a metadata table, or cut off, is noticed: file groups, and blocks of logs
LOST_SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64())])
GROUPS = "hoodie.metadata.record.index.min.filegroup.count"
SHARDED = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    GROUPS: "4",
}
COMPACTED = {**SHARDED, "hoodie.metadata.compact.max.delta.commits": "2"}
KEYS = [f"k{number}" for number in range(60)]
IN_LAST = [key for key in KEYS if shards_of(pa.array([key]), 4)[0] == 3]
ELSEWHERE = [key for key in KEYS if key not in IN_LAST]


@pytest.fixture(autouse=True)
def _nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every test read what instants recorded, as a process does that just began."""
    monkeypatch.setattr(completeness, "_known", {})


def keyed(keys: list[str]) -> pa.Table:
    return pa.table({"id": keys, "v": [0] * len(keys)}, schema=LOST_SCHEMA)


def create(path: Path, keys: list[str], options: dict[str, str] = SHARDED) -> hudi.Table:
    table = new_table(path, LOST_SCHEMA, options)
    table.upsert(keyed(keys))
    return table


def lose_last_group(path: Path) -> None:
    files = list((path / ".hoodie/metadata/record_index").glob("*record-index-0003-0*"))
    assert files
    for file in files:
        file.unlink()


def check_loss_is_noticed(path: Path) -> None:
    for keys in (["k0"], [IN_LAST[0]]):
        with pytest.raises(
            CorruptMetadataError, match=r"record.index.*0003.*table repair --metadata"
        ):
            look_up_keys(client_of(path), keys)
    before = sorted(file.name for file in (path / ".hoodie/metadata/record_index").iterdir())
    with pytest.raises(CorruptMetadataError, match=r"record.index.*0003.*table repair --metadata"):
        hudi.Table.open(str(path), SHARDED).upsert(keyed(["new", *IN_LAST[:3]]))
    assert sorted(file.name for file in (path / ".hoodie/metadata/record_index").iterdir()) == (
        before
    )
    # as the error says
    operator(path, SHARDED).delete()
    operator(path, SHARDED).create()
    client = client_of(path)
    assert validate(client).is_valid
    assert look_up_keys(client, IN_LAST[:1]).keys() <= {IN_LAST[0]}


@pytest.mark.parametrize("keys", [KEYS, ELSEWHERE], ids=["full", "empty"])
def test_the_last_file_group_of_a_new_partition(keys: list[str], tmp_path: Path) -> None:
    create(tmp_path / "t", keys)
    lose_last_group(tmp_path / "t")
    check_loss_is_noticed(tmp_path / "t")


@pytest.mark.parametrize("keys", [KEYS, ELSEWHERE], ids=["full", "empty"])
def test_the_last_file_group_of_a_partition_that_was_added(keys: list[str], tmp_path: Path) -> None:
    path = tmp_path / "t"
    create(path, keys)
    operator(path, SHARDED).drop(RECORD_INDEX)
    operator(path, SHARDED).index(RECORD_INDEX)
    lose_last_group(path)
    check_loss_is_noticed(path)


def test_the_last_file_group_that_compactions_had_nothing_to_do_for(tmp_path: Path) -> None:
    path = tmp_path / "t"
    create(path, KEYS, COMPACTED)
    for number in range(6):
        hudi.Table.open(str(path), COMPACTED).upsert(keyed([ELSEWHERE[number], f"n{number}"]))
    bases = {
        file.name.rsplit("_", 1)[1]
        for file in (path / ".hoodie/metadata/record_index").glob("record-index-*.hfile")
    }
    assert len(bases) > 2
    lose_last_group(path)
    check_loss_is_noticed(path)


def stated(path: Path, action: Action) -> list[dict[str, dict[str, int]]]:
    """What instants of the metadata table state, in the order of their times."""
    metadata = metadata_client(client_of(path))
    writes = metadata.timeline().completed().of_actions(action)
    bodies = [metadata.read_commit(one).extra_metadata for one in writes]
    return [json.loads(body[completeness.SHARDS]) for body in bodies if completeness.SHARDS in body]


def test_builds_and_compactions_state_all_file_groups(tmp_path: Path) -> None:
    path = tmp_path / "t"
    create(path, KEYS, {**COMPACTED, "hoodie.metadata.compact.max.delta.commits": "6"})
    parts = ["column_stats", "files", RECORD_INDEX]
    assert sorted(one for made in stated(path, Action.DELTACOMMIT) for one in made) == parts
    hudi.Table.open(str(path), COMPACTED).upsert(keyed(KEYS[:1]))  # no key is new: no record either
    (compaction,) = stated(path, Action.COMMIT)
    assert sorted(compaction) == parts
    hudi.Table.open(str(path), COMPACTED).upsert(keyed(KEYS[:1]))
    hudi.Table.open(str(path), COMPACTED).upsert(keyed(KEYS[:1]))
    _, compaction = stated(path, Action.COMMIT)
    folder = path / ".hoodie/metadata/record_index"
    newest = sorted(folder.glob("record-index-*.hfile"), key=lambda one: one.name[-23:])[-4:]
    assert compaction[RECORD_INDEX] == {one.name: one.stat().st_size for one in newest}
    assert compaction["files"] == {}


def test_file_groups_that_only_an_archived_compaction_wrote(tmp_path: Path) -> None:
    path = tmp_path / "t"
    options = {
        **COMPACTED,
        "hoodie.metadata.keep.min.commits": "2",
        "hoodie.metadata.keep.max.commits": "3",
    }
    create(path, KEYS, options)
    for _ in range(6):
        hudi.Table.open(str(path), options).upsert(keyed(KEYS[:1]))
        client = open_table(str(path), options).client
        archive(client, plan_archive(client.timeline(), ArchiveRules(2, 3), None))
    folder = path / ".hoodie/metadata"
    (wrote,) = {one.name[-23:-6] for one in folder.glob("record_index/record-index-*.hfile")}
    assert not [*folder.glob(f".hoodie/timeline/{wrote}*")]
    lose_last_group(path)
    check_loss_is_noticed(path)


@pytest.mark.parametrize("partition", [RECORD_INDEX, "column_stats"])
def test_the_base_file_below_logs_that_came_later(partition: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    create(path, KEYS, COMPACTED)
    hudi.Table.open(str(path), COMPACTED).upsert(keyed(KEYS))
    hudi.Table.open(str(path), SHARDED).upsert(keyed([f"n{number}" for number in range(40)]))
    folder = path / ".hoodie/metadata" / partition
    newest = max(folder.glob("*-0001-0_*.hfile"), key=lambda one: one.name[-23:])
    assert [*folder.glob(".*-0001-0_*.log.*")]
    for base in folder.glob("*-0001-0_*.hfile"):
        base.unlink()
    with pytest.raises(
        CorruptMetadataError, match=r"it is missing.*table repair --metadata"
    ) as raised:
        validate(client_of(path))
    assert raised.value.path == str(newest)


def test_a_table_without_statements(tmp_path: Path) -> None:
    """As earlier releases and other engines write them: what commits wrote must be there."""
    path = tmp_path / "t"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(completeness, "SHARDS", "nobody.knows")
        create(path, KEYS, COMPACTED)
        for number in range(4):
            hudi.Table.open(str(path), COMPACTED).upsert(keyed([ELSEWHERE[number], f"n{number}"]))
    completeness._known.clear()
    assert not stated(path, Action.COMMIT)
    shutil.copytree(path, tmp_path / "kept")
    assert len(look_up_keys(client_of(path), KEYS)) == 60
    lose_last_group(path)
    check_loss_is_noticed(path)

    shutil.rmtree(path)
    shutil.copytree(tmp_path / "kept", path)
    completeness._known.clear()
    for _ in range(2):
        hudi.Table.open(str(path), COMPACTED).upsert(keyed(["later", *KEYS[:20]]))
    assert stated(path, Action.COMMIT)
    assert validate(client_of(path)).is_valid


def test_a_partition_built_anew_has_other_file_groups(tmp_path: Path) -> None:
    path = tmp_path / "t"
    create(path, KEYS)
    hudi.Table.open(str(path), SHARDED).upsert(keyed(["later", *KEYS[:20]]))
    for groups in ("2", "4", "1"):
        operator(path, SHARDED).drop(RECORD_INDEX)
        operator(path, {**SHARDED, GROUPS: groups}).index(RECORD_INDEX)
        found = look_up_keys(client_of(path), [*KEYS, "later"])
        assert len(found) == 61
        for number in range(4):
            key = f"{groups}-{number}"
            hudi.Table.open(str(path), COMPACTED).upsert(keyed([key]))
            assert look_up_keys(client_of(path), [key])
        assert validate(client_of(path)).is_valid


def test_an_empty_partition_built_anew(tmp_path: Path) -> None:
    path = tmp_path / "t"
    create(path, KEYS[:1])
    hudi.Table.open(str(path), SHARDED).upsert(keyed(KEYS))
    hudi.Table.open(str(path), SHARDED).delete(keyed(KEYS))
    operator(path, SHARDED).drop(RECORD_INDEX)
    operator(path, SHARDED).index(RECORD_INDEX)
    assert look_up_keys(client_of(path), KEYS) == {}
    hudi.Table.open(str(path), SHARDED).upsert(keyed(KEYS))
    assert len(look_up_keys(client_of(path), KEYS)) == 60


def test_a_log_cut_off_between_two_blocks(tmp_path: Path) -> None:
    path = tmp_path / "t"
    create(path, KEYS)
    hudi.Table.open(str(path), SHARDED).insert_overwrite_table(keyed([*KEYS[:20], "more"]))
    logs = sorted((path / ".hoodie/metadata/record_index").glob(".record-index-*.log.*"))
    cut = 0
    for log in logs:
        data = log.read_bytes()
        blocks = list(find_log_blocks(lambda at, size: data[at : at + size], len(data), str(log)))  # noqa: B023 - used at once
        if [one.type for one in blocks] != [BlockType.HFILE, BlockType.DELETE]:
            continue
        cut += 1
        copy = tmp_path / f"copy-{cut}"
        shutil.copytree(path, copy)
        # a block ends with its own size, behind what it holds
        size = int.from_bytes(data[6:14], "big") + 14
        (copy / log.relative_to(path)).write_bytes(data[:size])
        table = hudi.Table.open(str(copy), SHARDED)
        assert table.to_arrow().num_rows == 21
        with pytest.raises(
            CorruptMetadataError, match=r"log.*bytes.*table repair --metadata"
        ) as raised:
            look_up_keys(client_of(copy), KEYS)
        assert raised.value.path == str(copy / log.relative_to(path))
    assert cut


@pytest.mark.parametrize("is_built_anew", [True, False])
def test_a_partition_built_anew_is_not_what_was_before(is_built_anew: bool) -> None:
    times = [InstantTime("20260101000000000"), InstantTime("20260102000000000")]
    path = f"{RECORD_INDEX}/.record-index-a-0000-0_{times[0]}.log.1_0-0-0"
    stat = WriteStat(FileId("record-index-a-0000-0"), path, partition_path=RECORD_INDEX)
    anew = completeness.BULK_INSERT if is_built_anew else "UPSERT_PREPPED"
    bodies = {
        times[0]: CommitMetadata({RECORD_INDEX: (stat,)}, operation_type="UPSERT_PREPPED"),
        times[1]: CommitMetadata(operation_type=anew),
    }
    timeline = Timeline(
        tuple(Instant(time, Action.DELTACOMMIT, State.COMPLETED, time) for time in times)
    )

    def refuse(counted: set[InstantTime]) -> None:
        records = completeness.CommitRecords(
            f"root-{is_built_anew}",
            timeline,
            counted.__contains__,
            lambda write: bodies[write.requested_time],
        )
        require_complete(RECORD_INDEX, (), records)

    if is_built_anew:
        refuse({*times})
    else:
        with pytest.raises(CorruptMetadataError, match="record-index-a-0000-0 is missing"):
            refuse({*times})
    # what is not complete yet, or was undone, has made nothing
    refuse({times[1]})


@pytest.mark.parametrize("suffix", ["001", "001006"])
def test_compactions_of_hudi_before_version_8_merge_what_was_requested_before(suffix: str) -> None:
    """The deltacommit is complete later than the time of the compaction that merged it."""
    begun, done = InstantTime("20260101000000000"), InstantTime("20260101000007000")
    merged = InstantTime(begun + suffix)
    group = FileId("record-index-0000-0")
    log = f"{RECORD_INDEX}/.{group}_00000000000000013.log.1_0-0-0"
    made = f"{RECORD_INDEX}/{group}_0-0-0_{merged}.hfile"
    bodies = {
        time: CommitMetadata({RECORD_INDEX: (WriteStat(group, path, partition_path=RECORD_INDEX),)})
        for time, path in ((begun, log), (merged, made))
    }
    timeline = Timeline(
        (
            Instant(begun, Action.DELTACOMMIT, State.COMPLETED, done),
            Instant(merged, Action.COMMIT, State.COMPLETED, InstantTime("20260101000008000")),
        )
    )
    records = completeness.CommitRecords(
        f"root-{suffix}", timeline, lambda _: True, lambda write: bodies[write.requested_time]
    )
    name = BaseFileName.parse(made.rpartition("/")[2])
    assert name is not None
    files = {str(name): GroupFile(name.instant, 1, is_log=False)}
    require_complete(RECORD_INDEX, [ListedGroup(RECORD_INDEX, group, files)], records)
    with pytest.raises(CorruptMetadataError, match="is missing"):
        require_complete(RECORD_INDEX, [ListedGroup(RECORD_INDEX, group, {})], records)


class Forgetful(dict[tuple[str, str, str], completeness.RecordedFiles]):
    """What is known while other threads make room in it."""

    def __setitem__(self, key: tuple[str, str, str], value: completeness.RecordedFiles) -> None:
        super().__setitem__(key, value)
        self.clear()


def test_what_another_thread_forgets_is_known_to_who_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(completeness, "_known", Forgetful())
    path = tmp_path / "t"
    create(path, KEYS)
    assert IN_LAST[0] in look_up_keys(client_of(path), IN_LAST[:1])


# --- tables that were open when their metadata table, or a part of it, was dropped: nothing is
NUMBERS = pa.schema([("id", pa.string()), ("city", pa.string()), ("n", pa.int64())])
DROPPED_OPTIONS = {
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.index.type": "RECORD_INDEX",
}
FILTER = [("n", "=", 3), ("city", "=", "oslo")]
PARTITIONS: tuple[str, ...] = (
    "files",
    "column_stats",
    "partition_stats",
    "record_index",
    "secondary_index_n",
)


def metadata(*arguments: str) -> None:
    done = run("metadata", *arguments)
    assert done.exit_code == 0, done.output


@pytest.fixture
def dropped_path(tmp_path: Path) -> str:
    return copied(tmp_path / "t", with_secondary_index).path


def with_secondary_index(path: Path) -> hudi.Table:
    table = new_table(path, NUMBERS, DROPPED_OPTIONS)
    for number in range(4):
        city = "oslo" if number % 2 else "rome"
        table.bulk_insert(pa.table({"id": [f"k{number}"], "city": [city], "n": [number]}, NUMBERS))
    metadata("index", str(path), "secondary_index_n", "--column", "n")
    return table


def read(table: hudi.Table) -> list[str]:
    """Read all, and what a filter leaves; return which partitions of the metadata table there are
    for who asks."""
    assert sorted(table.to_arrow()["n"].to_pylist()) == [0, 1, 2, 3]
    assert table.to_arrow(filter=FILTER)["id"].to_pylist() == ["k3"]
    assert len(table.file_slices()) == 4
    found = []
    for partition in PARTITIONS:
        try:
            table.metadata(partition)
        except UnsupportedTableError:
            continue
        found.append(partition)
    return found


@pytest.mark.parametrize("partition", [None, *PARTITIONS[1:]])
@pytest.mark.parametrize("listed_too", ["false", "true"])
def test_a_table_that_was_open_does_without(
    dropped_path: str, partition: str | None, listed_too: str
) -> None:
    options = {"hoodie.metadata.validate": listed_too}
    used, fresh = hudi.Table.open(dropped_path, options), hudi.Table.open(dropped_path, options)
    assert read(used) == [*PARTITIONS]
    if partition is None:
        metadata("delete", dropped_path)
        gone = PARTITIONS
    else:
        # lookups by a secondary index go through the record index
        gone = PARTITIONS[:2:-1] if partition == "record_index" else (partition,)
        for one in gone:
            metadata("drop", dropped_path, one)
    for table in (used, fresh, hudi.Table.open(dropped_path)):
        left = read(table)
        assert not set(gone) & set(left)
        assert bool(left) == (partition is not None)


def test_a_metadata_table_that_was_made_anew_is_read(dropped_path: str) -> None:
    table = hudi.Table.open(dropped_path)
    metadata("delete", dropped_path)
    metadata("create", dropped_path)
    assert "files" in read(table)


def test_what_nobody_dropped_is_damaged(dropped_path: str) -> None:
    table = hudi.Table.open(dropped_path)
    shutil.rmtree(Path(dropped_path) / ".hoodie/metadata/column_stats")
    with pytest.raises(CorruptMetadataError):
        table.to_arrow(filter=FILTER)
    shutil.rmtree(Path(dropped_path) / ".hoodie/metadata")
    for look in (table.to_arrow, table.file_slices, lambda: table.metadata("files")):
        with pytest.raises(CorruptMetadataError):
            look()
