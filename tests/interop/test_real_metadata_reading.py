"""Metadata tables that Apache Hudi wrote, read through: listings, ranges, skipped files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

import hudi as hudi_rs
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hudi_core as hudi
from hudi_core.errors import CorruptMetadataError, UnsupportedTableError
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.lister import MetadataLister, ValidatingLister
from hudi_core.metadata.partition_types import COLUMN_STATS, FILES, PARTITION_STATS
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.model.file_columns import FileColumns
from hudi_core.model.files import BaseFileName, FileStatus, LogFileName, PartitionPath
from hudi_core.view.file_system import FileSystemView, replaced_groups
from hudi_core.view.storage_lister import StorageLister
from tests.hudi_tables import TIMESTAMP, TRIPS, TXNS, WITH_METADATA, RealTables
from tests.property.test_metadata_model import client_of

COW = (TIMESTAMP, TXNS)
COMPACTED = (TXNS, TRIPS)
Row = dict[str, Any]


def storage_lister(client: TableMetaClient) -> StorageLister:
    return StorageLister(client.storage, client.config.is_partitioned)


@pytest.mark.parametrize("name", WITH_METADATA)
def test_listing_equals_the_committed_files_in_storage(name: str, real_tables: RealTables) -> None:
    client = client_of(real_tables(name))
    ours, theirs = MetadataLister(client), storage_lister(client)
    timeline = client.timeline()

    assert ours.list_partitions() == theirs.list_partitions()
    partitions = ours.list_partitions()
    listed, stored = ours.list_files(partitions), theirs.list_files(partitions)
    for partition in partitions:
        committed = {
            file.name: file.size
            for file in stored[partition]
            if (parsed := BaseFileName.parse(file.name) or LogFileName.parse(file.name))
            and timeline.is_committed(parsed.instant)
        }
        assert {file.name: file.size for file in listed[partition]} == committed
        assert committed
    checked = ValidatingLister(ours, theirs)
    checked.list_partitions()
    checked.list_files(partitions)
    assert checked.differences == ()


@pytest.mark.parametrize("name", WITH_METADATA)
def test_slices_equal_hudi_rs(name: str, real_tables: RealTables) -> None:
    path = real_tables(name)
    client = client_of(path)
    timeline = client.timeline()
    view = FileSystemView(
        MetadataLister(client), timeline, replaced_groups(timeline, client.read_commit)
    )

    found = sorted(
        (one.partition_path, one.file_id, one.base_instant, base.path, base.size)
        for one in view.latest_slices()
        if (base := one.base_file) is not None
    )

    oracle = sorted(
        (
            one.partition_path,
            one.file_id,
            one.creation_instant_time,
            one.base_file_relative_path(),
            one.base_file_size,
        )
        for one in hudi_rs.HudiTable(str(path)).get_file_slices()
    )
    assert found == oracle


@pytest.mark.parametrize("name", COW)
def test_tables_are_read_without_listing_their_folders(
    name: str, real_tables: RealTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = real_tables(name)
    expected = hudi.Table.open(str(path), {"hoodie.metadata.enable": "false"}).to_arrow()

    def only_metadata(self: StorageLister, partitions: Iterable[str]) -> Any:
        assert list(partitions) == [FILES]
        return original(self, [PartitionPath(FILES)])

    original = StorageLister.list_files
    monkeypatch.setattr(StorageLister, "list_files", only_metadata)
    found = hudi.Table.open(str(path)).to_arrow()

    key = [("_hoodie_record_key", "ascending")]
    assert found.sort_by(key).equals(expected.sort_by(key))


@pytest.mark.parametrize("name", WITH_METADATA)
def test_ranges_recompute_from_the_files(name: str, real_tables: RealTables) -> None:
    path = real_tables(name)
    client = client_of(path)
    lister = MetadataLister(client)
    files = sorted(path.rglob("*.parquet"))
    partitions = [
        PartitionPath("" if file.parent == path else str(file.parent.relative_to(path)))
        for file in files
    ]
    listed: dict[PartitionPath, list[FileStatus]] = {one: [] for one in sorted(set(partitions))}
    for partition, file in zip(partitions, files, strict=True):
        listed[partition].append(FileStatus(str(file.relative_to(path)), file.stat().st_size))
    columns = FileColumns.of_statuses(listed)
    files = [path / one for one in columns.paths().to_pylist()]
    known = 0
    for field in client.schema.with_meta():
        ranges = lister.file_ranges(columns, field.name, field.type)
        assert ranges is not None
        for n, file in enumerate(files):
            if not ranges.minimum[n].is_valid:
                continue
            with pq.ParquetFile(file) as stored:
                values = stored.read([field.name]).column(0).cast(field.type)
            bounds = pc.min_max(values)
            assert ranges.minimum[n].equals(bounds["min"]), (field, file)
            assert ranges.maximum[n].equals(bounds["max"]), (field, file)
            assert bool(ranges.may_be_null[n]) == (values.null_count > 0)
            assert bool(ranges.may_have_value[n]) == (values.null_count < len(values))
            known += 1
    assert known >= 15 * len(files) or name == TRIPS
    assert known > 15


@pytest.mark.parametrize("name", COW)
def test_ranges_of_partitions_hold_for_their_rows(name: str, real_tables: RealTables) -> None:
    path = real_tables(name)
    client = client_of(path)
    lister = MetadataLister(client)
    rows = hudi.Table.open(str(path)).to_arrow()
    partitions = lister.list_partitions()
    known = 0
    for field in client.schema.with_meta():
        ranges = lister.partition_ranges(partitions, field.name, field.type)
        assert ranges is not None
        for n, partition in enumerate(partitions):
            if ranges.minimum[n].is_valid:
                mine = rows.filter(pc.field("_hoodie_partition_path") == partition)[field.name]
                bounds = pc.min_max(mine)
                assert ranges.minimum[n].as_py() <= bounds["min"].as_py(), field
                assert ranges.maximum[n].as_py() >= bounds["max"].as_py(), field
                known += 1
    assert known >= 45


def holds(key: str) -> Callable[[Row, Row], bool]:
    return lambda low, high: bool(low["txn_id"] <= key <= high["txn_id"])


FILTERS: dict[str, tuple[Any, Callable[[Row, Row], bool]]] = {
    "key": ([("txn_id", "=", "TXN-001")], holds("TXN-001")),
    "below all": ([("amount", "<", 0)], lambda low, high: low["amount"] < 0),
    "above some": ([("amount", ">", "500.00")], lambda low, high: high["amount"] > 500),
    "null": ([("currency", "is null", None)], lambda low, high: low["currency"] is None),
    "keys": (
        [("_hoodie_record_key", "in", ["TXN-007", "TXN-008"])],
        lambda low, high: holds("TXN-007")(low, high) or holds("TXN-008")(low, high),
    ),
    "above all": ([("region", "=", "us"), ("txn_datetime", ">", "2030-01-01")], lambda *_: False),
    "either": (
        (pc.field("amount") > Decimal("2000.00")) | (pc.field("txn_id") == "TXN-011"),
        lambda low, high: high["amount"] > 2000 or holds("TXN-011")(low, high),
    ),
}
"""Filters, and whether they leave a file of these lowest and highest values, or a row."""


@pytest.mark.parametrize("name", FILTERS)
def test_filters_leave_out_files(name: str, real_tables: RealTables) -> None:
    row_filter, is_left = FILTERS[name]
    path = str(real_tables(TXNS))
    table = hudi.Table.open(path)
    listed = hudi.Table.open(path, {"hoodie.metadata.enable": "false"})
    key = [("_hoodie_record_key", "ascending")]
    files: dict[str, list[Row]] = {}
    for row in listed.to_arrow().to_pylist():
        files.setdefault(row["_hoodie_file_name"], []).append(row)

    found = table.to_arrow(filter=row_filter)

    assert found.sort_by(key).equals(listed.to_arrow(filter=row_filter).sort_by(key))
    rows = [row for some in files.values() for row in some if is_left(row, row)]
    assert found.num_rows == len(rows)
    left = [some for some in files.values() if is_left(bound(min, some), bound(max, some))]
    assert len(table.file_slices(filter=row_filter)) == len(left) < len(files) == 5
    assert len(listed.file_slices(filter=[("amount", "<", 0)])) == len(files)


def bound(of: Callable[[list[Any]], Any], rows: list[Row]) -> Row:
    names = ("txn_id", "amount", "currency")
    return {name: of([row[name] for row in rows]) for name in names}


def test_columns_that_changed_their_type_have_no_range_in_older_files(
    real_tables: RealTables,
) -> None:
    """Some files of this table hold ``ts_epoch`` as a number, later ones as a text."""
    table = hudi.Table.open(str(real_tables(COW[0])))
    listed = hudi.Table.open(table.path, {"hoodie.metadata.enable": "false"})
    for value in ("1705311000", "1705367700", "1"):
        row_filter = [("ts_epoch", "=", value)]
        assert (
            table.to_arrow(filter=row_filter).num_rows
            == listed.to_arrow(filter=row_filter).num_rows
        )
    assert len(table.file_slices(filter=[("ts_epoch", "=", "1")])) < len(table.file_slices())


@pytest.mark.parametrize("name", WITH_METADATA)
def test_any_partition_is_a_table(name: str, real_tables: RealTables) -> None:
    path = real_tables(name)
    table = hudi.Table.open(str(path))
    snapshot = MetadataSnapshot.open(client_of(path))
    assert set(snapshot.partitions) == set(table.config.metadata_partitions)
    for partition in snapshot.partitions:
        records = list(snapshot.scan(partition))
        found = table.metadata(partition)
        if partition != FILES:
            assert found.num_rows == len(records) > 0
        if partition in (COLUMN_STATS, PARTITION_STATS):
            assert pc.all(pc.is_valid(found["column_name"])).as_py()
            assert found["min_value"].null_count < len(found)
        # what is looked up by key is what was scanned
        assert snapshot.lookup(partition, [one.key for one in records]) == {
            one.key: one for one in records
        }
    files = table.metadata("files")
    assert files.column_names == ["partition_path", "file_name", "size"]
    parquet = {file.name: file.stat().st_size for file in path.rglob("*.parquet")}
    listed = dict(zip(files["file_name"].to_pylist(), files["size"].to_pylist(), strict=True))
    assert {n: s for n, s in listed.items() if n.endswith(".parquet")} == parquet
    with pytest.raises(UnsupportedTableError, match=r"'no such index'.*It keeps column_stats"):
        table.metadata("no such index")


@pytest.mark.parametrize("name", COMPACTED)
def test_a_lost_base_file_is_named(name: str, real_tables: RealTables) -> None:
    path = real_tables(name)
    newest = max(
        (path / ".hoodie/metadata/files").glob("*.hfile"), key=lambda one: one.name.split("_")[-1]
    )
    newest.unlink()
    with pytest.raises(CorruptMetadataError, match=f"{newest.name}.*it is missing"):
        MetadataLister(client_of(path)).list_partitions()


@pytest.mark.parametrize("name", WITH_METADATA)
def test_a_pending_instant_is_not_seen(name: str, real_tables: RealTables) -> None:
    path = real_tables(name)
    client = client_of(path)
    last = client.timeline().completed_writes()[-1]
    before = {
        file.name
        for files in MetadataLister(client)
        .list_files(MetadataLister(client).list_partitions())
        .values()
        for file in files
    }
    client.storage.delete(client.active.path(last))
    lister = MetadataLister(client)
    after = {
        file.name
        for files in lister.list_files(lister.list_partitions()).values()
        for file in files
    }
    assert {one for one in before if last.requested_time in one}
    assert not {one for one in after if last.requested_time in one}
