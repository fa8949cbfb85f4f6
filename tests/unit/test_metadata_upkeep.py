"""The metadata table kept in step with its table, and its own services."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hudi as hudi_rs
import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.actions.clean import complete_clean, delete_cleaned, request_clean, start_clean
from hudi_core.actions.compaction import plan_compaction, request_compaction
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.stored_table import stored_config
from hudi_core.errors import (
    CorruptMetadataError,
    HudiError,
    InvalidOptionError,
    StorageError,
    TableServiceError,
)
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.hfile.reader import HFileReader
from hudi_core.metadata.index_definitions import DEFAULT_PATH, PATH_KEY, read_definitions
from hudi_core.metadata.log import undo
from hudi_core.metadata.log.record_codec import RecordDecoder
from hudi_core.metadata.log.records import (
    ColumnRange,
    FileEntry,
    FileList,
    MetadataRecord,
    PartitionChange,
    RecordType,
)
from hudi_core.metadata.log.undo import is_compacted
from hudi_core.metadata.log.writer import write_deltacommit
from hudi_core.metadata.maintenance.compaction import (
    compact_if_due,
    compaction_waits_for,
    deltas_since_compaction,
    require_no_backlog,
)
from hudi_core.metadata.maintenance.services import archive_if_due, clean_if_due, run_services
from hudi_core.metadata.maintenance.validator import validate
from hudi_core.metadata.partition_types import COLUMN_STATS, FILES, PARTITION_STATS
from hudi_core.metadata.partitions.files import list_records, partitions_record
from hudi_core.metadata.session import MetadataSession, record_clean
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.metadata.state import MetadataState
from hudi_core.metadata.table import StoredPartitions, metadata_client
from hudi_core.model.actions import ActionInstant, CleanerPlan, CleanFileInfo
from hudi_core.model.files import FileId, PartitionPath
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.storage.posix import PosixStorage
from hudi_core.storage.properties_file import read_properties, update_properties
from hudi_core.timeline.clock import TimelineClock
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn.heartbeat import Heartbeat
from hudi_core.view.file_system import FileSystemView
from hudi_core.view.storage_lister import StorageLister
from tests.calls import calls_of
from tests.foreign import by_hudi_rs
from tests.hudi_tables import TRIPS, TXNS
from tests.property.test_metadata_model import check_metadata, client_of
from tests.tables import new_table
from tests.unit.mortal_tables import DEATHS_FAR_APART, at, deaths, open_client
from tests.unit.test_read_filters import add_index

CITIES = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64())])
COLUMNS = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key", *CITIES.names)
OFF = {"hoodie.metadata.enable": "false"}
ON = {**OFF, "hoodie.metadata.enable": "true"}
TOGETHER = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": "in_process",
}


put_if_absent = PosixStorage.put_if_absent


def in_rome(*ids: str, city: str = "rome") -> pa.Table:
    return pa.table({"id": ids, "city": [city] * len(ids), "ts": [1] * len(ids)}, CITIES)


def create(path: Path, options: dict[str, str]) -> hudi.Table:
    return new_table(path, CITIES, options, ordering_field=None)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t"


def ids(path: Path) -> list[str]:
    """Return the keys that readers see, this project's and hudi-rs."""
    own = sorted(hudi.Table.open(str(path)).to_arrow()["id"].to_pylist())
    assert sorted(row["id"] for row in by_hudi_rs(path)) == own
    return own


def check(path: Path) -> None:
    check_metadata(path, must=True, columns=COLUMNS)


def test_a_table_gets_its_metadata_table_when_it_is_created(path: Path) -> None:
    create(path, ON)
    assert StoredPartitions.of(client_of(path).config).complete == (
        "column_stats",
        "files",
        "partition_stats",
    )
    assert ids(path) == []
    hudi.Table.open(str(path), OFF).insert(in_rome("a"))
    check(path)
    assert ids(path) == ["a"]


def test_a_writer_that_was_there_before_keeps_it_too(path: Path) -> None:
    old = create(path, OFF)
    old.insert(in_rome("a"))
    hudi.Table.open(str(path), ON).insert(in_rome("b"))
    old.insert(in_rome("c", city="oslo"))
    check(path)
    assert ids(path) == ["a", "b", "c"]
    assert sorted(old.to_arrow()["id"].to_pylist()) == ["a", "b", "c"]


def test_a_write_that_was_under_way_when_it_was_made_is_in_it(path: Path) -> None:
    slow = create(path, {**OFF, **TOGETHER})
    other = hudi.Table.open(str(path), {**ON, **TOGETHER})

    def batches() -> Iterator[pa.RecordBatch]:
        other.insert(in_rome("b", city="oslo"))
        yield from in_rome("a").to_batches()

    slow.insert(pa.RecordBatchReader.from_batches(CITIES, batches()))
    check(path)
    assert ids(path) == ["a", "b"]


@contextmanager
def kept_back(folder: str) -> Iterator[list[Callable[[], None]]]:
    """Let the store hold back the first completed file of a timeline, and tell of a failure."""
    late: list[Callable[[], None]] = []

    def slow(self: PosixStorage, path: str, data: bytes) -> None:
        place, _, name = path.rpartition("/")
        if late or place != folder or "_" not in name:
            return put_if_absent(self, path, data)
        late.append(lambda: put_if_absent(self, path, data))
        raise StorageError("The connection broke", "Try again.")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(PosixStorage, "put_if_absent", slow)
        yield late


@pytest.mark.parametrize("folder", [".hoodie/timeline", ".hoodie/metadata/.hoodie/timeline"])
@pytest.mark.parametrize("write", ["insert", "delete_partitions"])
def test_what_lands_after_its_rollback_is_not_listed(folder: str, write: str, path: Path) -> None:
    table = create(path, ON)
    table.insert(in_rome("a"))
    with kept_back(folder) as late, pytest.raises(HudiError):
        getattr(table, write)(in_rome("b") if write == "insert" else [{"city": "rome"}])
    table.insert(in_rome("c"))
    (land,) = late
    land()
    assert sorted(hudi.Table.open(str(path)).to_arrow()["id"].to_pylist()) == ["a", "c"]
    table.insert(in_rome("d"))
    check(path)
    assert ids(path) == ["a", "c", "d"]


def test_a_commit_of_an_instant_that_the_table_does_not_have_is_undone(path: Path) -> None:
    table = create(path, ON)
    result = table.insert(in_rome("a"))
    client = client_of(path)
    tables = MetadataState.load(client)
    assert tables is not None
    time, rome = tables.next_time(), PartitionPath("rome")
    lists = {rome: {"x_0-0-0_20260101000000000.parquet": FileEntry(5)}}
    change = PartitionChange((partitions_record(lists), *list_records(lists)))
    write_deltacommit(tables, time, {FILES: change})
    assert result.instant.requested_time < time
    table.insert(in_rome("b"))
    own = metadata_client(client).timeline()
    assert own.find(time, Action.DELTACOMMIT) is None
    assert own.of_actions(Action.ROLLBACK).instants
    check(path)
    assert ids(path) == ["a", "b"]


def test_a_commit_of_a_live_writer_is_left_alone(path: Path) -> None:
    """Hudi on Spark begins it with the write, without the table's lock."""
    table = create(path, {**ON, **TOGETHER})
    table.insert(in_rome("a"))
    client = client_of(path)
    tables = MetadataState.load(client)
    assert tables is not None
    own, time = metadata_client(client), tables.next_time()
    for active, action in ((client.active, Action.COMMIT), (own.active, Action.DELTACOMMIT)):
        begun = Instant(time, action, State.REQUESTED)
        active.create_requested(begun, b"")
        active.to_inflight(begun, b"")
    heart = Heartbeat(client.scratch, time, 60_000)
    heart.start()
    try:
        table.insert(in_rome("b"))
        pending = own.timeline().find(time, Action.DELTACOMMIT)
        assert pending is not None
        assert pending.state is State.INFLIGHT
    finally:
        heart.stop()
    table.insert(in_rome("c"))
    assert own.timeline().find(time, Action.DELTACOMMIT) is None
    check(path)
    assert ids(path) == ["a", "b", "c"]


def test_partitions_are_what_the_options_ask_for(path: Path) -> None:
    options = {
        **ON,
        "hoodie.metadata.index.column.stats.enable": "false",
        "hoodie.metadata.index.bloom.filter.enable": "true",
    }
    table = create(path, options)
    table.insert(in_rome("a"))
    assert StoredPartitions.of(client_of(path).config).complete == ("bloom_filters", "files")
    later = hudi.Table.open(str(path), ON)
    later.insert(in_rome("b"))
    assert "column_stats" in StoredPartitions.of(client_of(path).config).complete
    check(path)
    assert ids(path) == ["a", "b"]


def test_columns_are_those_that_are_named_and_those_that_were(path: Path) -> None:
    named = {**ON, "hoodie.metadata.index.column.stats.column.list": "ts"}
    table = create(path, named)
    table.insert(in_rome("a"))
    kept = (*COLUMNS[:3], "ts")
    client = client_of(path)
    assert read_definitions(client.storage, client.config).columns(COLUMN_STATS) == kept
    check_metadata(path, must=True, columns=kept)
    few = {**ON, "hoodie.metadata.index.column.stats.max.columns.to.index": "1"}
    hudi.Table.open(str(path), few).insert(in_rome("b", city="oslo"))
    found = {
        one.payload.column_name
        for one in MetadataSnapshot.open(client_of(path)).scan(COLUMN_STATS)
        if isinstance(one.payload, ColumnRange)
    }
    assert found == {*kept, "id"}


def test_a_table_has_one_record_index(path: Path) -> None:
    table = create(path, OFF)
    options = {
        **ON,
        "hoodie.metadata.record.level.index.enable": "true",
        "hoodie.metadata.record.index.enable": "true",
    }
    with pytest.raises(InvalidOptionError, match="Give only one of them"):
        hudi.Table.open(str(path), options).insert(in_rome("a"))
    assert table.to_arrow().num_rows == 0


Damage = Callable[[Path], Any]
DAMAGES: list[Damage] = [
    lambda path: (path / ".hoodie/metadata/.hoodie/hoodie.properties").unlink(),
    lambda path: (path / DEFAULT_PATH).write_text("{"),
    lambda path: update_properties(client_of(path).storage, {PATH_KEY: "../elsewhere"}),
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_named_before_anything_is_written(damage: Damage, path: Path) -> None:
    table = create(path, ON)
    table.insert(in_rome("a"))
    damage(path)
    before = sorted(path.rglob("*.parquet"))
    with pytest.raises(CorruptMetadataError):
        hudi.Table.open(str(path), ON).insert(in_rome("b"))
    assert sorted(path.rglob("*.parquet")) == before


def test_partitions_are_built_at_times_before_every_other(path: Path) -> None:
    create(path, ON)
    built = metadata_client(client_of(path)).timeline().completed_writes()
    assert [one.requested_time for one in built] == [f"{number:017d}" for number in range(3)]
    assert read_properties(client_of(path).storage)[PATH_KEY] == DEFAULT_PATH


def test_a_commit_changes_the_metadata_table_by_one_file_for_each_group(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(path, ON)
    table.insert(pa.concat_tables(in_rome(f"k{number}", city=f"c{number}") for number in range(30)))
    put: list[str] = []

    def counting(self: PosixStorage, name: str, data: bytes) -> None:
        put.append(name)
        put_if_absent(self, name, data)

    monkeypatch.setattr(PosixStorage, "put_if_absent", counting)
    table.upsert(in_rome("k3", city="c3"))
    own = [name.removeprefix(".hoodie/metadata/") for name in put if "/metadata/" in name]
    # requested, inflight, completed; one file of `files`, two of ranges, one of partitions' ranges
    assert [name.partition("/")[0] for name in own[:2]] == [".hoodie"] * 2
    assert own[-1].startswith(".hoodie/timeline/")
    assert sorted(name.partition("/")[0] for name in own[2:-1]) == [
        *("column_stats", "column_stats", "files", "partition_stats")
    ]
    # and only then the write itself
    last = next(name for name in reversed(put) if name.startswith(".hoodie/timeline/"))
    assert put.index(last) > put.index(f".hoodie/metadata/{own[-1]}")


def test_what_is_kept_survives_a_power_failure(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create(path, ON)
    files: Counter[str] = Counter()
    folders: list[str] = []
    sync = os.fsync

    def fsync(descriptor: int) -> None:
        found = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if "metadata" in found.parts:
            folders.extend([found.name] if found.is_dir() else [])
            files[found.parent.name] += found.is_file()
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    table.insert(in_rome("a"), options={"hoodie.fs.fsync": "true"})
    # requested and inflight files are empty: their names are flushed, before and after all others
    assert files.pop("timeline") == 1
    assert set(+files) == {"files", "column_stats", "partition_stats"}
    assert (folders[0], folders[-1]) == ("timeline", "timeline")
    assert set(folders) == {"timeline", *+files}


def test_a_small_commit_reads_ranges_of_the_files_that_it_replaces(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded = calls_of(monkeypatch, RecordDecoder, "decode")
    split = {
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.copyonwrite.insert.auto.split": "false",
        "hoodie.copyonwrite.insert.split.size": "2",
    }
    found = []
    for count in (80, 160):
        table = create(path / str(count), ON | split)
        table.insert(in_rome(*(f"k{number:03}" for number in range(count))))
        decoded.clear()
        # the other row of its file keeps what is the same in all
        table.upsert(in_rome("k005"))
        table.insert(in_rome("l"))
        found.append(len(decoded))
    assert found[0] == found[1] < 40
    decoded.clear()
    # the least key goes, so that of the two columns with it all files are asked
    table.delete(in_rome("k000"))
    assert 162 <= len(decoded) < 240
    check(path / "160")


@pytest.mark.parametrize("level", ["global", "partitioned"])
def test_key_indexes_that_are_added_while_a_write_is_under_way_have_its_keys(
    path: Path, level: str
) -> None:
    """Its tasks keep no account of keys for them."""
    slow = create(path, {**ON, **TOGETHER})
    slow.insert(pa.concat_tables([in_rome("a", "b", "c"), in_rome("d", city="oslo")]))
    slow.delete(in_rome("c"))
    name = "global.record.level" if level == "global" else "record.level"
    indexed = {**ON, **TOGETHER, f"hoodie.metadata.{name}.index.enable": "true"}

    def batches() -> Iterator[pa.RecordBatch]:
        other = hudi.Table.open(str(path), indexed)
        other.insert(in_rome("e", city="bern"))
        if level == "global":
            add_index(other, "ts", **TOGETHER)
        changed = in_rome("b", "n").set_column(2, "ts", pa.array([5, 6]))
        yield from pa.concat_tables([changed, in_rome("o", city="oslo")]).to_batches()

    slow.upsert(pa.RecordBatchReader.from_batches(CITIES, batches()))
    report = validate(client_of(path))
    assert report.is_valid, report.findings
    assert report.checked["record_index"] == 6
    assert report.checked.get("secondary_index_ts", 6) == 6
    hudi.Table.open(str(path), indexed).delete(in_rome("a", "n"))
    assert validate(client_of(path)).is_valid


def test_what_hudis_restore_brings_up_to_date_is_no_orphan() -> None:
    """It is a commit of the metadata table at a time of its own, within the restore."""

    def done(time: int, action: Action, completion: int) -> Instant:
        return Instant(at(time), action, State.COMPLETED, at(completion))

    own = Timeline.of([done(time, Action.DELTACOMMIT, time + 1) for time in (10, 22, 40)])
    writes = [done(10, Action.COMMIT, 11)]
    assert [one.requested_time for one in undo._orphans(own, Timeline.of(writes))] == [
        at(22),
        at(40),
    ]
    restored = Timeline.of([*writes, done(20, Action.RESTORE, 30)])
    assert [one.requested_time for one in undo._orphans(own, restored)] == [at(40)]


# --- what is taken out of the metadata table: files that a clean deletes, and commits that are
OPTIONS = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
}


def removed_rows(ids: str, city: str, ts: int = 1) -> pa.Table:
    return pa.table({"id": list(ids), "city": [city] * len(ids), "ts": [ts] * len(ids)}, CITIES)


@pytest.fixture
def removed_path(path: Path) -> Path:
    table = create(path, OPTIONS)
    table.upsert(removed_rows("abc", "rome"))
    table.upsert(removed_rows("xyz", "oslo"))
    table.upsert(removed_rows("ab", "rome", 2))
    table.delete_partitions(["oslo"])
    return path


def clean(path: Path, files: dict[str, list[str]], dropped: tuple[str, ...] = ()) -> None:
    """Delete files as a clean does, with the metadata table told before the clean is complete."""
    client = client_of(path)
    infos = {
        partition: tuple(CleanFileInfo(f"{path}/{partition}/{name}", False) for name in names)
        for partition, names in files.items()
    }
    last = client.timeline().completed_writes()[-1]
    plan = CleanerPlan(
        ActionInstant(last.action.value, last.requested_time, State.COMPLETED.value),
        last.requested_time,
        "KEEP_LATEST_COMMITS",
        {},
        file_paths_to_be_deleted_per_partition=infos,
        partitions_to_be_deleted=dropped,
    )
    clock = TimelineClock(client.active)
    work = start_clean(client, request_clean(client, clock.next_time(), plan))
    assert work is not None
    metadata = delete_cleaned(client, work)
    tables = MetadataState.load(client)
    assert tables is not None
    session = MetadataSession(tables, MetadataConfig.from_options(OPTIONS))
    record_clean(session, work.instant.requested_time, metadata)
    complete_clean(client, work, clock.next_time(), metadata)


def files_of(path: Path, partition: str) -> list[str]:
    """Return the names of a partition's files, the oldest first."""
    return sorted(
        (one.name for one in (path / partition).glob("*.parquet")),
        key=lambda name: name.rsplit("_", 1)[1],
    )


def test_a_clean_takes_its_files_out_of_every_partition(removed_path: Path) -> None:
    old, new = files_of(removed_path, "rome")
    clean(removed_path, {"rome": [old]})
    assert files_of(removed_path, "rome") == [new]
    check_metadata(removed_path, must=True, columns=COLUMNS)
    assert validate(client_of(removed_path)).is_valid
    assert ids(removed_path) == ["a", "b", "c"]
    for partition in ("files", "column_stats", "bloom_filters"):
        assert old not in str(hudi.Table.open(str(removed_path)).metadata(partition).to_pylist())


def test_a_clean_that_drops_a_partition(removed_path: Path) -> None:
    (gone,) = files_of(removed_path, "oslo")
    clean(removed_path, {"oslo": [gone]}, ("oslo",))
    assert not (removed_path / "oslo" / ".hoodie_partition_metadata").exists()
    (listed,) = [
        record.payload
        for record in MetadataSnapshot.open(client_of(removed_path)).scan("files")
        if record.key == "__all_partitions__"
    ]
    assert isinstance(listed, FileList)
    assert [*listed.files] == ["rome"]
    assert validate(client_of(removed_path)).is_valid
    stats = hudi.Table.open(str(removed_path)).metadata("partition_stats").to_pylist()
    assert {one["file_name"] for one in stats} == {"rome"}
    assert ids(removed_path) == ["a", "b", "c"]
    # a partition that comes back is one again
    hudi.Table.open(str(removed_path), options=OPTIONS).upsert(removed_rows("x", "oslo"))
    check_metadata(removed_path, must=True, columns=COLUMNS)
    assert ids(removed_path) == ["a", "b", "c", "x"]


# --- undoing
def time(second: int) -> InstantTime:
    return InstantTime(f"202611211200{second:02d}000")


def completed(begun: int, done: int, action: Action = Action.DELTACOMMIT) -> Instant:
    return Instant(time(begun), action, State.COMPLETED, time(done))


@pytest.mark.parametrize(
    ("compaction", "has_it"),
    [
        # what counts is when the deltacommit was there, and when the compaction looked
        (completed(4, 9, Action.COMMIT), True),
        (completed(3, 9, Action.COMMIT), True),
        (completed(2, 9, Action.COMMIT), False),
        (completed(1, 9, Action.COMMIT), False),
        (Instant(time(4), Action.COMPACTION, State.INFLIGHT), True),
        (Instant(time(4), Action.COMPACTION, State.REQUESTED), True),
        (Instant(time(2), Action.COMPACTION, State.REQUESTED), False),
        (completed(4, 9), False),
    ],
)
def test_a_compaction_has_what_was_complete_when_it_was_requested(
    compaction: Instant, has_it: bool
) -> None:
    timeline = Timeline.of([completed(1, 3), compaction])
    assert is_compacted(timeline, time(1)) is has_it


def test_what_is_not_complete_is_in_no_compaction() -> None:
    pending = Instant(time(1), Action.DELTACOMMIT, State.INFLIGHT)
    assert not is_compacted(Timeline.of([pending, completed(4, 9, Action.COMMIT)]), time(1))
    assert not is_compacted(Timeline.of([completed(4, 9, Action.COMMIT)]), time(1))


# --- what commits say of the records
def fields(metadata: TableMetaClient) -> dict[str, set[tuple[str, ...]]]:
    """Return the fields that the schemas of a table's commits name, by operation."""
    found: dict[str, set[tuple[str, ...]]] = {}
    for instant in metadata.timeline().completed_writes():
        body = metadata.read_commit(instant)
        assert body.schema_json is not None
        schema: dict[str, Any] = json.loads(body.schema_json)
        names = tuple(one["name"] for one in schema["fields"])
        found.setdefault(str(body.operation_type), set()).add(names)
    return found


@pytest.mark.parametrize(("name", "version"), [(TXNS, "9"), (TRIPS, "8")])
def test_commits_keep_the_schema_that_those_of_hudi_keep(
    real_tables: Callable[[str], Path], tmp_path: Path, name: str, version: str
) -> None:
    theirs = fields(metadata_client(client_of(real_tables(name))))
    table = new_table(
        tmp_path / "ours",
        CITIES,
        {
            **OPTIONS,
            "hoodie.write.table.version": version,
            "hoodie.metadata.compact.max.delta.commits": "2",
        },
        partition_by=None,
        ordering_field=None,
    )
    for number in range(4):
        table.upsert(removed_rows("abc", "rome", number))
    ours = fields(metadata_client(client_of(Path(table.path))))
    assert "COMPACT" in ours
    assert "COMPACT" in theirs
    assert len(set.union(*theirs.values())) == 1
    assert set.union(*ours.values()) == set.union(*theirs.values())


# --- compaction, cleaning and archiving of metadata tables: real ones, judged by hudi-rs
def config(
    *, compact: int = 3, retained: int = 1, least: int = 1, most: int = 2, **more: object
) -> MetadataConfig:
    keys = {
        "compact.max.delta.commits": compact,
        "cleaner.commits.retained": retained,
        "keep.min.commits": least,
        "keep.max.commits": most,
        **more,
    }
    return MetadataConfig.from_options(
        {f"hoodie.metadata.{key}": str(value) for key, value in keys.items()}
    )


def opened(path: Path) -> TableMetaClient:
    stored = read_properties(open_client(path).storage)
    return open_client(path, stored_config(stored, str(path)))


def lock(client: TableMetaClient) -> MetadataState:
    tables = MetadataState.load(client)
    assert tables is not None
    return tables


def scans(client: TableMetaClient) -> dict[str, list[MetadataRecord]]:
    snapshot = MetadataSnapshot.open(client)
    return {one: list(snapshot.scan(one)) for one in snapshot.partitions}


def foreign_rows(path: Path) -> pa.Table:
    """Return the rows as hudi-rs reads them, which lists from the metadata table."""
    batches = hudi_rs.HudiTableBuilder.from_base_uri(str(path)).build().read()
    return pa.Table.from_batches(batches).sort_by("_hoodie_commit_seqno")


def add_instant(client: TableMetaClient, changes: Mapping[str, PartitionChange]) -> Instant:
    """Commit something to both tables."""
    both = lock(client)
    requested = client.active.create_requested(
        Instant(both.next_time(), Action.COMMIT, State.REQUESTED)
    )
    client.active.to_inflight(requested)
    both = both.with_data_timeline(client.timeline())
    write_deltacommit(both, requested.requested_time, changes)
    now = both.with_data_timeline(client.timeline()).next_time()
    return client.active.complete(requested, now, some_commit(client))


def some_commit(client: TableMetaClient) -> bytes:
    """Return the body of a commit that hudi-rs finds a schema by."""
    commits = client.timeline().completed().of_actions(Action.COMMIT).instants
    return client.active.read(commits[0])


def added(name: str) -> str:
    """Return the name of a file that no reader counts."""
    return f"{name}-0_0-0-0_29990101000000000.parquet"


def more_files(partition: str, **files: int) -> dict[str, PartitionChange]:
    entries = {added(name): FileEntry(size) for name, size in files.items()}
    record = MetadataRecord(partition, RecordType.FILES, FileList(entries))
    return {FILES: PartitionChange((record,))}


@pytest.mark.parametrize("name", [TXNS, TRIPS])
def test_compacted_files_hold_what_was_merged(
    name: str, real_tables: Callable[[str], Path]
) -> None:
    path = real_tables(name)
    rows = foreign_rows(path)
    client = opened(path)
    before = scans(client)
    metadata = metadata_client(client)
    done = compact_if_due(lock(client), config(compact=1))
    assert done is not None
    assert done.action is Action.COMMIT
    assert scans(client) == before
    assert foreign_rows(path).equals(rows)
    body = metadata.read_commit(done)
    assert (body.compacted, body.operation_type) == (True, "COMPACT")
    found: dict[str, dict[str, MetadataRecord | None]] = {}
    for stat in body.stats:
        data = metadata.storage.read(stat.path or "")
        reader = HFileReader.from_bytes(data, stat.path or "")
        decoder = RecordDecoder(reader.schema, stat.path or "")
        entries = {key.decode(): decoder.decode(key, value) for key, value in reader.entries()}
        assert (stat.num_writes, stat.file_size_in_bytes) == (len(entries), len(data))
        assert reader.meta_block("bloomFilter")
        found.setdefault(stat.partition_path or "", {}).update(entries)
    assert found.keys() <= before.keys()
    for partition, merged in found.items():
        whole = {record.key: record for record in before[partition]}
        assert merged == {key: whole[key] for key in merged}
    assert found[FILES] == {record.key: record for record in before[FILES]}
    snapshot = MetadataSnapshot.open(client)
    assert not any(
        group.slice.log_files for one in snapshot.partitions for group in snapshot.groups(one)
    )


def test_files_compacted_twice_are_taken_over_under_their_new_name(
    real_tables: Callable[[str], Path],
) -> None:
    path = real_tables(TXNS)
    client = opened(path)
    assert compact_if_due(lock(client), config(compact=1))
    before = scans(client)
    add_instant(client, more_files("region=eu", a=1))
    second = compact_if_due(lock(client), config(compact=1))
    assert second is not None
    metadata = metadata_client(client)
    [stat] = metadata.read_commit(second).stats
    assert (stat.partition_path, stat.num_update_writes, stat.num_inserts) == (FILES, 1, 0)
    data = metadata.storage.read(stat.path or "")
    name = (stat.path or "").rpartition("/")[2].encode()
    values = dict(HFileReader.from_bytes(data, "x").entries())
    assert all(value[6:].startswith(name) for value in values.values())
    after = scans(client)
    changed = [one for one in after[FILES] if one not in before[FILES]]
    assert [one.key for one in changed] == ["region=eu"]
    assert isinstance(changed[0].payload, FileList)
    assert changed[0].payload.files[added("a")] == FileEntry(1)
    assert {**after, FILES: ()} == {**before, FILES: ()}


def test_compaction_is_due_after_so_many_deltacommits(real_tables: Callable[[str], Path]) -> None:
    client = opened(real_tables(TXNS))
    timeline = metadata_client(client).timeline()
    waiting = deltas_since_compaction(timeline)
    [compaction] = timeline.completed().of_actions(Action.COMMIT).instants
    begun = [one.requested_time for one in waiting]
    # the writes that had an index built and the compaction made are complete after it
    assert begun[0] == "00000000000000004"
    assert begun[1] < compaction.requested_time < begun[2]
    assert compact_if_due(lock(client), config(compact=len(waiting) + 1)) is None
    assert compact_if_due(lock(client), config(compact=len(waiting))) is not None
    assert deltas_since_compaction(metadata_client(client).timeline()) == []
    assert compact_if_due(lock(client), config(compact=1)) is None


def test_compaction_waits_for_what_is_pending(real_tables: Callable[[str], Path]) -> None:
    path = real_tables(TXNS)
    client = opened(path)
    rows, before = foreign_rows(path), scans(client)
    both = lock(client)
    pending = Instant(both.next_time(), Action.COMMIT, State.REQUESTED)
    client.active.create_requested(pending)
    inflight = client.active.to_inflight(pending)
    assert compaction_waits_for(client.timeline(), metadata_client(client).timeline()) is None
    write_deltacommit(lock(client), pending.requested_time, more_files("region=eu", a=1))
    assert compaction_waits_for(client.timeline(), metadata_client(client).timeline()) == inflight
    assert compact_if_due(lock(client), config(compact=1)) is None
    assert scans(client) == before
    assert foreign_rows(path).equals(rows)
    few = config(**{"max.deltacommits.when_pending": 3})
    with pytest.raises(TableServiceError, match=str(pending.requested_time)):
        require_no_backlog(few, client.timeline(), metadata_client(client).timeline())
    require_no_backlog(config(), client.timeline(), metadata_client(client).timeline())
    client.active.complete(inflight, lock(client).next_time(), some_commit(client))
    require_no_backlog(few, client.timeline(), metadata_client(client).timeline())
    assert compact_if_due(lock(client), config(compact=1)) is not None


def test_a_compaction_that_was_begun_leaves_later_commits_out(
    real_tables: Callable[[str], Path],
) -> None:
    path = real_tables(TXNS)
    client = opened(path)
    metadata = metadata_client(client)
    lister = StorageLister(metadata.storage, partitioned=True)
    view = FileSystemView(lister, metadata.timeline(), {})
    plan = plan_compaction(view.latest_slices())
    assert plan is not None
    request_compaction(metadata, lock(client).next_time(), plan)
    add_instant(client, more_files("region=eu", a=1))
    rows, before = foreign_rows(path), scans(client)
    run_services(lock(client), config(compact=100, most=100))
    assert not metadata.timeline().pending().instants
    snapshot = MetadataSnapshot.open(client)
    [files] = snapshot.groups(FILES)
    assert len(files.slice.log_files) == 1
    assert scans(client) == before
    assert foreign_rows(path).equals(rows)


def test_a_file_that_is_lost_stops_the_compaction(real_tables: Callable[[str], Path]) -> None:
    client = opened(real_tables(TXNS))
    metadata = metadata_client(client)
    lister = StorageLister(metadata.storage, partitioned=True)
    plan = plan_compaction(FileSystemView(lister, metadata.timeline(), {}).latest_slices())
    assert plan is not None
    request_compaction(metadata, lock(client).next_time(), plan)
    [operation] = [one for one in plan.operations or () if one.partition_path == FILES]
    lost = f"{FILES}/{(operation.delta_file_paths or ())[-1]}"
    metadata.storage.delete(lost)
    with pytest.raises(CorruptMetadataError, match="hudi table repair --metadata") as error:
        run_services(lock(client), config())
    assert error.value.path.endswith(lost)


def test_old_slices_are_cleaned_once_no_commit_reads_them(
    real_tables: Callable[[str], Path],
) -> None:
    path = real_tables(TXNS)
    client = opened(path)
    rows, before = foreign_rows(path), scans(client)
    metadata = metadata_client(client)
    assert clean_if_due(lock(client), config(retained=20)) is None
    for _ in range(2):
        assert compact_if_due(lock(client), config(compact=1)) is not None
        # two instants after a compaction are too few: readers of older slices may be at work
        for _ in range(2):
            add_instant(client, {})
        assert clean_if_due(lock(client), config(retained=1)) is None
        add_instant(client, {})
        done = clean_if_due(lock(client), config(retained=1))
        assert done is not None
        assert done.action is Action.CLEAN
        assert foreign_rows(path).equals(rows)
        add_instant(client, more_files("region=eu", a=1))
    assert clean_if_due(lock(client), config(retained=1)) is None
    old = {
        one.base_instant
        for group in FileSystemView(
            StorageLister(metadata.storage, True), metadata.timeline(), {}
        ).file_groups([PartitionPath(FILES)])
        for one in group.slices
    }
    assert len(old) == 1
    after = scans(client)
    assert {**after, FILES: ()} == {**before, FILES: ()}


def test_instants_are_archived_up_to_the_first_of_the_table(
    real_tables: Callable[[str], Path],
) -> None:
    path = real_tables(TXNS)
    client = opened(path)
    rows, before = foreign_rows(path), scans(client)
    moved = archive_if_due(lock(client), config())
    # the first building alone is older than the table's first write
    assert [one.requested_time[:16] for one in moved] == ["0" * 16] * len(moved)
    assert moved
    assert scans(client) == before
    assert foreign_rows(path).equals(rows)
    assert archive_if_due(lock(client), config(most=100)) == ()


@pytest.fixture
def small(real_tables: Callable[[str], Path]) -> Path:
    """Give the real table with two partitions of its metadata table, a compaction due."""
    path = real_tables(TXNS)
    client = opened(path)
    kept = (FILES, PARTITION_STATS)
    update_properties(client.storage, {"hoodie.table.metadata.partitions": ",".join(kept)})
    for folder in metadata_client(client).storage.list_folders():
        if folder not in (*kept, ".hoodie"):
            shutil.rmtree(path / ".hoodie/metadata" / folder)
    return path


def settled(client: TableMetaClient) -> Any:
    timeline = metadata_client(client).timeline()
    assert not timeline.pending().instants
    assert not timeline.unknown
    kinds = [one.action for one in timeline.completed()]
    return kinds.count(Action.COMMIT), kinds.count(Action.CLEAN)


@pytest.mark.slow
def test_services_may_die_at_any_step(small: Path, tmp_path: Path) -> None:
    client = opened(small)
    rows, before = foreign_rows(small), scans(client)
    for _ in range(3):
        add_instant(client, {})

    def act(dying: TableMetaClient) -> None:
        run_services(lock(dying), config())

    seen = 0
    whole = small.parent / "whole"
    shutil.copytree(small, whole)
    act(opened(whole))
    expected = settled(opened(whole))
    assert expected == (2, 1)
    config_of_small = opened(small).config
    for path in deaths(small, tmp_path / "copies", act, DEATHS_FAR_APART, config=config_of_small):
        seen += 1
        client = opened(path)
        assert scans(client) == before
        assert foreign_rows(path).equals(rows)
        act(client)
        act(client)
        assert settled(client) == expected
        assert scans(client) == before
        assert foreign_rows(path).equals(rows)
    assert seen * DEATHS_FAR_APART > 60


def test_ids_of_file_groups_name_the_task(real_tables: Callable[[str], Path]) -> None:
    client = opened(real_tables(TXNS))
    done = compact_if_due(lock(client), config(compact=1))
    assert done is not None
    metadata = metadata_client(client)
    paths = {stat.file_id: stat.path for stat in metadata.read_commit(done).stats}
    expected = f"record_index/record-index-0003-0_3-0-0_{done.requested_time}.hfile"
    assert paths[FileId("record-index-0003-0")] == expected
