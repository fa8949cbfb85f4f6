"""Random operations on tables with a metadata table: after each, it tells what is there.

The list of files equals a listing of the storage, ranges of columns equal the footers, ranges of
partitions equal those of their files, and hudi-rs, which lists from the metadata table, reads the
rows of the model. Writes that fail halfway are among the operations.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hudi import HudiTableBuilder
from hypothesis import given

import hudi_core as hudi
from hudi_core.config.stored_table import stored_config
from hudi_core.errors import HudiError, StorageError, TableServiceError
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.keys import (
    bloom_filter_key,
    column_stats_key,
    partition_path,
    partition_stats_key,
)
from hudi_core.metadata.log.records import BloomFilterEntry, ColumnRange, FileList, RecordLocation
from hudi_core.metadata.maintenance.validator import validate
from hudi_core.metadata.partition_types import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
)
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.metadata.table import METADATA_FOLDER, StoredPartitions
from hudi_core.model.files import BaseFileName, BasePath, FileId, PartitionPath
from hudi_core.storage.options import StorageOptions
from hudi_core.storage.posix import PosixStorage
from hudi_core.storage.properties_file import read_properties
from hudi_core.view.file_system import FileSystemView, replaced_groups
from hudi_core.view.storage_lister import StorageLister
from tests.property.histories import Model, Step, content, examples, perform, small_files
from tests.property.test_table_model import MODEL_COLUMNS, NAMES, steps
from tests.tables import new_table

COLUMNS = (
    *("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key"),
    *("id", "city", "ts", "value"),
)
Files = dict[PartitionPath, dict[str, int]]


KEYED = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
}

COMPACTED = {"hoodie.metadata.compact.max.delta.commits": "2"}


def metadata_table(path: Path, version: int, event_time: bool, **options: str) -> hudi.Table:
    given_options = {
        "hoodie.metadata.enable": "true",
        "hoodie.write.table.version": str(version),
        "hoodie.datasource.write.partitionpath.urlencode": "true",
        **options,
    }
    ordering = "ts" if event_time else None
    return new_table(path, MODEL_COLUMNS, small_files(3) | given_options, ordering_field=ordering)


def client_of(path: Path) -> TableMetaClient:
    storage = PosixStorage(str(path), fsync=False)
    config = stored_config(read_properties(storage))
    return TableMetaClient(BasePath(str(path)), storage, config, StorageOptions())


def check_metadata(path: Path, must: bool, columns: tuple[str, ...] = COLUMNS) -> None:
    """Compare every partition of the metadata table with what the storage holds."""
    client = client_of(path)
    if FILES not in StoredPartitions.of(client.config).complete:
        assert not must
        return
    snapshot, timeline = MetadataSnapshot.open(client), client.timeline()
    lister = StorageLister(client.storage, client.config.is_partitioned)
    listed = lister.list_files(lister.list_partitions())
    stored = {
        partition: files
        for partition, found in listed.items()
        if (
            files := {
                file.name: file.size
                for file in found
                if (name := BaseFileName.parse(file.name)) and timeline.is_committed(name.instant)
            }
        )
    }
    assert lists_of(snapshot) == stored
    view = FileSystemView(lister, timeline, replaced_groups(timeline, client.read_commit))
    current = {
        (one.partition_path, one.base_file.status.name): one.file_id
        for one in view.latest_slices()
        if one.base_file
    }
    if COLUMN_STATS in snapshot.partitions:
        check_ranges(path, snapshot, stored, columns)
    if PARTITION_STATS in snapshot.partitions:
        check_partition_ranges(snapshot, set(stored), set(current), columns)
    if BLOOM_FILTERS in snapshot.partitions:
        check_blooms(path, snapshot, stored)
    if RECORD_INDEX in snapshot.partitions:
        check_locations(path, snapshot, current)


def lists_of(snapshot: MetadataSnapshot) -> Files:
    found = {}
    for record in snapshot.scan(FILES):
        assert isinstance(record.payload, FileList)
        if record.key == "__all_partitions__":
            partitions = {partition_path(name) for name in record.payload.files}
        elif record.payload.files:
            found[partition_path(record.key)] = {
                name: one.size for name, one in record.payload.files.items()
            }
    assert found.keys() <= partitions
    return found


def check_ranges(
    path: Path, snapshot: MetadataSnapshot, stored: Files, columns: tuple[str, ...]
) -> None:
    found = {record.key: record.payload for record in snapshot.scan(COLUMN_STATS)}
    wanted = {}
    for partition, files in stored.items():
        for name in files:
            table = pq.ParquetFile(path / partition / name).read()
            # a file without rows has no row group, and its footer no statistics
            for column in columns if table.num_rows else ():
                wanted[column_stats_key(column, partition, name)] = told(table.column(column))
    assert {key: range_of(one) for key, one in found.items()} == wanted


def told(values: pa.ChunkedArray) -> tuple[Any, ...]:
    bounds = pc.min_max(values)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    return low, high, len(values), values.null_count


def range_of(payload: object) -> tuple[Any, ...]:
    assert isinstance(payload, ColumnRange)
    assert not payload.is_deleted
    low, high = payload.min_value, payload.max_value
    return low and low.value, high and high.value, payload.value_count, payload.null_count


def check_partition_ranges(
    snapshot: MetadataSnapshot,
    partitions: set[PartitionPath],
    current: set[tuple[PartitionPath, str]],
    columns: tuple[str, ...],
) -> None:
    found = {record.key: record.payload for record in snapshot.scan(PARTITION_STATS)}
    wanted = {}
    for partition in partitions:
        names = [name for place, name in current if place == partition]
        for column in columns if names else ():
            keys = [column_stats_key(column, partition, name) for name in names]
            parts = [range_of(one.payload) for one in snapshot.lookup(COLUMN_STATS, keys).values()]
            if not parts:
                continue  # none of its files has a row
            lows = [part[0] for part in parts if part[0] is not None]
            highs = [part[1] for part in parts if part[1] is not None]
            wanted[partition_stats_key(column, partition)] = (
                min(lows, default=None),
                max(highs, default=None),
                sum(part[2] for part in parts),
                sum(part[3] for part in parts),
            )
    assert {key: range_of(one) for key, one in found.items()} == wanted
    assert all(one.is_tight_bound for one in found.values() if isinstance(one, ColumnRange))


def check_blooms(path: Path, snapshot: MetadataSnapshot, stored: Files) -> None:
    found = {record.key: record.payload for record in snapshot.scan(BLOOM_FILTERS)}
    wanted = {}
    for partition, files in stored.items():
        for name in files:
            footer = pq.ParquetFile(path / partition / name).metadata.metadata
            wanted[bloom_filter_key(partition, name)] = footer[b"org.apache.hudi.bloomfilter"]
    assert all(wanted.values())
    assert {
        key: one.bloom for key, one in found.items() if isinstance(one, BloomFilterEntry)
    } == wanted


def check_locations(
    path: Path, snapshot: MetadataSnapshot, current: dict[tuple[PartitionPath, str], FileId]
) -> None:
    found = {record.key: record.payload for record in snapshot.scan(RECORD_INDEX)}
    wanted: dict[str, tuple[str, str]] = {}
    for (partition, name), file_id in current.items():
        keys = pq.ParquetFile(path / partition / name).read(["_hoodie_record_key"]).column(0)
        wanted |= dict.fromkeys(keys.to_pylist(), (partition, file_id))
    assert {
        key: (one.partition_name, one.file_id)
        for key, one in found.items()
        if isinstance(one, RecordLocation)
    } == wanted


def by_metadata(path: Path) -> list[dict[str, Any]]:
    """Rows that hudi-rs reads by the list of files."""
    table = HudiTableBuilder.from_base_uri(str(path)).with_option("hoodie.metadata.enable", "true")
    return [row for batch in table.build().read() for row in batch.to_pylist()]


def undo(table: hudi.Table, result: hudi.CommitResult, keyed: bool) -> bool:
    """Roll a write back, and tell whether that could be."""
    try:
        table.rollback(result.instant)
    except TableServiceError as error:
        refusal = str(error)
    else:
        return True
    # a compaction came first, and from a base file no key can be taken
    assert keyed
    assert "compaction" in refusal
    return False


FAILURES = (None, None, "log", "metadata", "completion", "undo")
"""What fails, once: a log file, the end of the metadata table's commit, the end of the write; or
the write succeeds and is rolled back."""
_COMPLETED = {"metadata": ".hoodie/metadata/.hoodie/timeline", "completion": ".hoodie/timeline"}
_put_if_absent = PosixStorage.put_if_absent


def is_hit(path: str, failure: str | None) -> bool:
    folder, _, name = path.rpartition("/")
    if failure == "log":
        return folder.startswith(".hoodie/metadata/") and ".log." in name
    return folder == _COMPLETED.get(failure or "") and "_" in name


def test_files_without_rows_have_no_ranges(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = metadata_table(path, 9, False)
    rows = [
        {"id": key, "city": city, "ts": 1, "value": 1.0, "tags": None}
        for key, city in (("k1", "rome"), ("k2", "oslo"))
    ]
    table.insert(pa.Table.from_pylist(rows, MODEL_COLUMNS))
    table.delete(pa.Table.from_pylist(rows[:1], MODEL_COLUMNS))
    assert [
        file for file in (path / "rome").glob("*.parquet") if not pq.read_metadata(file).num_rows
    ]
    check_metadata(path, must=True)


@contextmanager
def failing(failure: str | None) -> Iterator[list[str]]:
    """Let the store fail at one put, if at all, and yield at which paths it did."""
    hit: list[str] = []

    def put(self: PosixStorage, path: str, data: bytes) -> None:
        if not hit and is_hit(path, failure):
            hit.append(path)
            raise StorageError("The connection broke", "Try again.")
        _put_if_absent(self, path, data)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(PosixStorage, "put_if_absent", put)
        yield hit


def attempt(table: hudi.Table, step: Step, failure: str | None) -> hudi.CommitResult | None:
    """Do a step; ``None`` when it failed, as it must where the store fails."""
    with failing(failure) as hit:
        try:
            result = perform(table, step, MODEL_COLUMNS)
        except HudiError:
            assert hit
            return None
    assert not hit
    return result


@given(
    plan=steps(),
    failures=st.lists(st.sampled_from(FAILURES), min_size=5, max_size=5),
    event_time=st.booleans(),
    version=st.sampled_from([8, 9]),
    late=st.booleans(),
    keyed=st.booleans(),
    compacted=st.booleans(),
)
@examples(20, 10)
def test_the_metadata_table_follows_the_model(
    tmp_path_factory: pytest.TempPathFactory,
    plan: list[Step],
    failures: list[str | None],
    event_time: bool,
    version: int,
    late: bool,
    keyed: bool,
    compacted: bool,
) -> None:
    path = tmp_path_factory.mktemp("metadata") / "table"
    index = (KEYED if keyed else {}) | (COMPACTED if compacted else {})
    enable = {"hoodie.metadata.enable": "false"} if late else {}
    table = metadata_table(path, version, event_time, **index, **enable)
    model = Model(event_time=event_time)
    for number, (drawn, failure) in enumerate(zip(plan, failures, strict=False)):
        if late and number:
            # the second write makes the metadata table of a table that has rows
            options = {"hoodie.metadata.enable": "true", "hoodie.fs.fsync": "false", **index}
            table = hudi.Table.open(str(path), options=options)
        step = model.runnable(drawn)
        if not step.rows:
            continue
        result = attempt(table, step, failure)
        is_undone = failure == "undo" and result is not None and undo(table, result, keyed)
        if result is not None and not is_undone:
            model.apply(step)
        is_made = not late or (number > 0 and result is not None)
        check_metadata(path, must=is_made)
        assert content(table.to_arrow().to_pylist(), NAMES) == model.content(NAMES)
        assert content(by_metadata(path), NAMES) == model.content(NAMES)
    if StoredPartitions.of(client_of(path).config).complete:
        shutil.rmtree(path / METADATA_FOLDER)
        done = hudi.Table.open(str(path)).repair_metadata().rebuilt
        assert done is not None
        check_metadata(path, must=True)
        assert validate(client_of(path)).is_valid
        assert content(by_metadata(path), NAMES) == model.content(NAMES)
