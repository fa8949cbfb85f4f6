"""The validator finds what is planted in metadata tables, of every kind, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.avro.wrappers import Wrapped
from hudi_core.config.write import WriteConfig
from hudi_core.errors import CorruptMetadataError
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.partition_types import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
)
from hudi_core.metadata.partitions.names import Check
from hudi_core.metadata.records import (
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
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.metadata.state import MetadataState
from hudi_core.metadata.table import metadata_client
from hudi_core.metadata.validator import ValidationReport, validate
from hudi_core.metadata.writer import write_deltacommit
from hudi_core.model.commit import CommitMetadata
from hudi_core.model.difference import Difference
from hudi_core.model.files import PartitionPath
from hudi_core.model.instant import Action, Instant, State
from hudi_core.services.metadata import MetadataOperator
from hudi_core.services.opening import open_table
from hudi_core.timeline.serde import encode
from hudi_core.txn.table_lock import table_lock
from tests.hudi_tables import TRIPS, TXNS
from tests.tables import new_table

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64())])
OPTIONS = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
}
SECONDARY = "secondary_index_of_ts"


def rows(*parts: str, ts: int = 1) -> pa.Table:
    found = [{"id": f"{part}{n}", "part": part, "ts": ts + n} for part in parts for n in range(3)]
    return pa.Table.from_pylist(found, SCHEMA)


def operator(path: Path) -> MetadataOperator:
    table = open_table(str(path), OPTIONS)
    config = WriteConfig.from_options(OPTIONS)
    return MetadataOperator(table, table_lock(table, config), config)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give a table with every partition a metadata table can have here, of two commits."""
    table = new_table(tmp_path / "t", SCHEMA, OPTIONS)
    table.upsert(rows("x", "y"))
    operator(tmp_path / "t").index(SECONDARY, "ts")
    table.upsert(rows("x", ts=5))
    return tmp_path / "t"


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
