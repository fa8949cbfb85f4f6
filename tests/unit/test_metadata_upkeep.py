"""Writers that know nothing of the metadata table's making, that come late, or that vanish."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import CorruptMetadataError, HudiError, InvalidOptionError, StorageError
from hudi_core.metadata import undo
from hudi_core.metadata.index_definitions import DEFAULT_PATH, PATH_KEY, read_definitions
from hudi_core.metadata.partition_types import COLUMN_STATS, FILES
from hudi_core.metadata.partitions.files import list_records, partitions_record
from hudi_core.metadata.record_codec import RecordDecoder
from hudi_core.metadata.records import ColumnRange, FileEntry, MetadataRecord, PartitionChange
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.metadata.state import MetadataState
from hudi_core.metadata.table import StoredPartitions, metadata_client
from hudi_core.metadata.validator import validate
from hudi_core.metadata.writer import write_deltacommit
from hudi_core.model.files import PartitionPath
from hudi_core.model.instant import Action, Instant, State
from hudi_core.storage.disk import Disk
from hudi_core.storage.posix import PosixStorage
from hudi_core.storage.properties_file import read_properties, update_properties
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn.heartbeat import Heartbeat
from tests.foreign import by_hudi_rs
from tests.property.test_metadata_model import check_metadata, client_of
from tests.tables import new_table
from tests.unit.mortal_tables import at
from tests.unit.test_secondary_index_reads import add_index

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64())])
COLUMNS = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key", *SCHEMA.names)
OFF = {"hoodie.metadata.enable": "false"}
ON = {**OFF, "hoodie.metadata.enable": "true"}
TOGETHER = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": "in_process",
}


put_if_absent = PosixStorage.put_if_absent


def rows(*ids: str, city: str = "rome") -> pa.Table:
    return pa.table({"id": ids, "city": [city] * len(ids), "ts": [1] * len(ids)}, SCHEMA)


def create(path: Path, options: dict[str, str]) -> hudi.Table:
    return new_table(path, SCHEMA, options, ordering_field=None)


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
    hudi.Table.open(str(path), OFF).insert(rows("a"))
    check(path)
    assert ids(path) == ["a"]


def test_a_writer_that_was_there_before_keeps_it_too(path: Path) -> None:
    old = create(path, OFF)
    old.insert(rows("a"))
    hudi.Table.open(str(path), ON).insert(rows("b"))
    old.insert(rows("c", city="oslo"))
    check(path)
    assert ids(path) == ["a", "b", "c"]
    assert sorted(old.to_arrow()["id"].to_pylist()) == ["a", "b", "c"]


def test_a_write_that_was_under_way_when_it_was_made_is_in_it(path: Path) -> None:
    slow = create(path, {**OFF, **TOGETHER})
    other = hudi.Table.open(str(path), {**ON, **TOGETHER})

    def batches() -> Iterator[pa.RecordBatch]:
        other.insert(rows("b", city="oslo"))
        yield from rows("a").to_batches()

    slow.insert(pa.RecordBatchReader.from_batches(SCHEMA, batches()))
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
    table.insert(rows("a"))
    with kept_back(folder) as late, pytest.raises(HudiError):
        getattr(table, write)(rows("b") if write == "insert" else [{"city": "rome"}])
    table.insert(rows("c"))
    (land,) = late
    land()
    assert sorted(hudi.Table.open(str(path)).to_arrow()["id"].to_pylist()) == ["a", "c"]
    table.insert(rows("d"))
    check(path)
    assert ids(path) == ["a", "c", "d"]


def test_a_commit_of_an_instant_that_the_table_does_not_have_is_undone(path: Path) -> None:
    table = create(path, ON)
    result = table.insert(rows("a"))
    client = client_of(path)
    tables = MetadataState.load(client)
    assert tables is not None
    time, rome = tables.next_time(), PartitionPath("rome")
    lists = {rome: {"x_0-0-0_20260101000000000.parquet": FileEntry(5)}}
    change = PartitionChange((partitions_record(lists), *list_records(lists)))
    write_deltacommit(tables, time, {FILES: change})
    assert result.instant.requested_time < time
    table.insert(rows("b"))
    own = metadata_client(client).timeline()
    assert own.find(time, Action.DELTACOMMIT) is None
    assert own.of_actions(Action.ROLLBACK).instants
    check(path)
    assert ids(path) == ["a", "b"]


def test_a_commit_of_a_live_writer_is_left_alone(path: Path) -> None:
    """Hudi on Spark begins it with the write, without the table's lock."""
    table = create(path, {**ON, **TOGETHER})
    table.insert(rows("a"))
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
        table.insert(rows("b"))
        pending = own.timeline().find(time, Action.DELTACOMMIT)
        assert pending is not None
        assert pending.state is State.INFLIGHT
    finally:
        heart.stop()
    table.insert(rows("c"))
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
    table.insert(rows("a"))
    assert StoredPartitions.of(client_of(path).config).complete == ("bloom_filters", "files")
    later = hudi.Table.open(str(path), ON)
    later.insert(rows("b"))
    assert "column_stats" in StoredPartitions.of(client_of(path).config).complete
    check(path)
    assert ids(path) == ["a", "b"]


def test_columns_are_those_that_are_named_and_those_that_were(path: Path) -> None:
    named = {**ON, "hoodie.metadata.index.column.stats.column.list": "ts"}
    table = create(path, named)
    table.insert(rows("a"))
    kept = (*COLUMNS[:3], "ts")
    client = client_of(path)
    assert read_definitions(client.storage, client.config).columns(COLUMN_STATS) == kept
    check_metadata(path, must=True, columns=kept)
    few = {**ON, "hoodie.metadata.index.column.stats.max.columns.to.index": "1"}
    hudi.Table.open(str(path), few).insert(rows("b", city="oslo"))
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
        hudi.Table.open(str(path), options).insert(rows("a"))
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
    table.insert(rows("a"))
    damage(path)
    before = sorted(path.rglob("*.parquet"))
    with pytest.raises(CorruptMetadataError):
        hudi.Table.open(str(path), ON).insert(rows("b"))
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
    table.insert(pa.concat_tables(rows(f"k{number}", city=f"c{number}") for number in range(30)))
    put: list[str] = []

    def counting(self: PosixStorage, name: str, data: bytes) -> None:
        put.append(name)
        put_if_absent(self, name, data)

    monkeypatch.setattr(PosixStorage, "put_if_absent", counting)
    table.upsert(rows("k3", city="c3"))
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
    flushed: list[str] = []
    write = Disk.write_new

    def write_new(disk: Disk, name: str, data: bytes, *, sync: bool) -> None:
        if sync and "/metadata/" in name:
            flushed.append(Path(name).parent.name)
        write(disk, name, data, sync=sync)

    monkeypatch.setattr(Disk, "write_new", write_new)
    table.insert(rows("a"), options={"hoodie.fs.fsync": "true"})
    assert flushed.count("timeline") == 3
    assert set(flushed) == {"timeline", "files", "column_stats", "partition_stats"}


def test_a_small_commit_reads_ranges_of_the_files_that_it_replaces(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[bytes] = []
    decode = RecordDecoder.decode

    def counting(self: RecordDecoder, key: bytes, value: bytes) -> MetadataRecord | None:
        decoded.append(key)
        return decode(self, key, value)

    monkeypatch.setattr(RecordDecoder, "decode", counting)
    split = {
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.copyonwrite.insert.auto.split": "false",
        "hoodie.copyonwrite.insert.split.size": "2",
    }
    found = []
    for count in (80, 160):
        table = create(path / str(count), ON | split)
        table.insert(rows(*(f"k{number:03}" for number in range(count))))
        decoded.clear()
        # the other row of its file keeps what is the same in all
        table.upsert(rows("k005"))
        table.insert(rows("l"))
        found.append(len(decoded))
    assert found[0] == found[1] < 40
    decoded.clear()
    # the least key goes, so that of the two columns with it all files are asked
    table.delete(rows("k000"))
    assert 162 <= len(decoded) < 240
    check(path / "160")


@pytest.mark.parametrize("level", ["global", "partitioned"])
def test_key_indexes_that_are_added_while_a_write_is_under_way_have_its_keys(
    path: Path, level: str
) -> None:
    """Its tasks keep no account of keys for them."""
    slow = create(path, {**ON, **TOGETHER})
    slow.insert(pa.concat_tables([rows("a", "b", "c"), rows("d", city="oslo")]))
    slow.delete(rows("c"))
    name = "global.record.level" if level == "global" else "record.level"
    indexed = {**ON, **TOGETHER, f"hoodie.metadata.{name}.index.enable": "true"}

    def batches() -> Iterator[pa.RecordBatch]:
        other = hudi.Table.open(str(path), indexed)
        other.insert(rows("e", city="bern"))
        if level == "global":
            add_index(other, "ts", **TOGETHER)
        changed = rows("b", "n").set_column(2, "ts", pa.array([5, 6]))
        yield from pa.concat_tables([changed, rows("o", city="oslo")]).to_batches()

    slow.upsert(pa.RecordBatchReader.from_batches(SCHEMA, batches()))
    report = validate(client_of(path))
    assert report.is_valid, report.findings
    assert report.checked["record_index"] == 6
    assert report.checked.get("secondary_index_ts", 6) == 6
    hudi.Table.open(str(path), indexed).delete(rows("a", "n"))
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
