"""Writes to a table of Apache Hudi's with six partitions in its metadata table: all are kept right.

hudi-rs reads the rows, which it lists from the metadata table; every other partition is compared
with the data files.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hudi_core as hudi
from hudi_core.errors import UnsupportedTableError
from hudi_core.metadata.keys import column_stats_key, secondary_key
from hudi_core.metadata.log.records import ColumnRange, FileList, RecordLocation
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.model.files import BaseFileName, PartitionPath
from hudi_core.storage.posix import PosixStorage
from hudi_core.storage.properties_file import update_properties
from tests.foreign import by_hudi_rs
from tests.hudi_tables import TXNS
from tests.property.test_metadata_model import client_of
from tests.unit.test_metadata_ranges import unwrap

FAST = {"hoodie.fs.fsync": "false"}
COLUMNS = (
    *("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key", "txn_id"),
    *("account_id", "txn_ts", "txn_datetime", "txn_date", "amount", "currency", "txn_type"),
    *("merchant_name", "is_international", "fee_amount", "txn_metadata", "region"),
)
Row = dict[str, Any]


@pytest.fixture
def path(real_tables: Callable[[str], Path], tmp_path: Path) -> Path:
    copied = tmp_path / "t"
    shutil.copytree(real_tables(TXNS), copied)
    return copied


def foreign_rows(path: Path) -> dict[str, Row]:
    return {row["txn_id"]: row for row in by_hudi_rs(path)}


def data_of(row: Row) -> Row:
    return {name: value for name, value in row.items() if not name.startswith("_hoodie_")}


def current_files(path: Path, table: hudi.Table) -> dict[tuple[str, str], str]:
    """Return the files that the table's rows are in, with their file groups."""
    found = table.to_arrow(columns=["_hoodie_partition_path", "_hoodie_file_name"]).to_pylist()
    files: dict[tuple[str, str], str] = {}
    for row in found:
        name = BaseFileName.parse(row["_hoodie_file_name"])
        assert name is not None
        files[row["_hoodie_partition_path"], row["_hoodie_file_name"]] = name.file_id
    assert all((path / partition / name).exists() for partition, name in files)
    return files


def check_all(path: Path, table: hudi.Table, touched: set[str]) -> None:
    """Compare each of the six partitions with the data files."""
    snapshot = MetadataSnapshot.open(client_of(path))
    assert len(snapshot.partitions) == 6
    current = current_files(path, table)
    check_list(path, snapshot)
    check_ranges(path, snapshot)
    check_partitions(snapshot, current, touched)
    locations = {}
    merchants, dates = set(), set()
    for (partition, name), file_id in current.items():
        rows = pq.ParquetFile(path / partition / name).read().to_pylist()
        for row in rows:
            locations[row["_hoodie_record_key"]] = (partition, file_id)
            merchants.add(secondary_key(row["merchant_name"], row["_hoodie_record_key"]))
            days = (row["txn_date"] - date(1970, 1, 1)).days
            dates.add(secondary_key(str(days), row["_hoodie_record_key"]))
    found = {record.key: record.payload for record in snapshot.scan("record_index")}
    assert {
        key: (one.partition_name, one.file_id)
        for key, one in found.items()
        if isinstance(one, RecordLocation)
    } == locations
    assert {one.key for one in snapshot.scan("secondary_index_merchant_idx")} == merchants
    assert {one.key for one in snapshot.scan("secondary_index_txn_date_idx")} == dates


def check_list(path: Path, snapshot: MetadataSnapshot) -> None:
    for record in snapshot.scan("files"):
        assert isinstance(record.payload, FileList)
        if record.key == "__all_partitions__":
            assert set(record.payload.files) == {one.name for one in path.glob("region=*")}
            continue
        stored = {one.name: one.stat().st_size for one in (path / record.key).glob("*.parquet")}
        assert {name: one.size for name, one in record.payload.files.items()} == stored


def check_ranges(path: Path, snapshot: MetadataSnapshot) -> None:
    found = {record.key: record.payload for record in snapshot.scan("column_stats")}
    files = list(path.glob("region=*/*.parquet"))
    assert len(found) == len(files) * len(COLUMNS)
    for file in files:
        table = pq.ParquetFile(file).read()
        for column in COLUMNS:
            key = column_stats_key(column, PartitionPath(file.parent.name), file.name)
            values = table.column(column)
            assert told(found[key], values.type) == computed(values)


def told(payload: object, kind: pa.DataType) -> tuple[Any, ...]:
    assert isinstance(payload, ColumnRange)
    low, high = (
        bound and unwrap(bound, payload.value_type, kind)
        for bound in (payload.min_value, payload.max_value)
    )
    return low, high, payload.value_count, payload.null_count


def computed(values: pa.ChunkedArray) -> tuple[Any, ...]:
    bounds = pc.min_max(values)
    return (
        internal(bounds["min"].as_py()),
        internal(bounds["max"].as_py()),
        len(values),
        values.null_count,
    )


def internal(value: Any) -> Any:
    match value:
        case datetime():
            return round(value.timestamp() * 1_000_000)
        case date():
            return (value - date(1970, 1, 1)).days
    return value


def check_partitions(
    snapshot: MetadataSnapshot, current: dict[tuple[str, str], str], touched: set[str]
) -> None:
    """Compare the partitions that were written to; Hudi's own counts are of replaced files too."""
    ranges: dict[tuple[str, str], list[ColumnRange]] = {}
    for record in snapshot.scan("column_stats"):
        one = record.payload
        assert isinstance(one, ColumnRange)
        for partition, name in current:
            if name == one.file_name and one.column_name:
                ranges.setdefault((partition, one.column_name), []).append(one)
    checked = 0
    for record in snapshot.scan("partition_stats"):
        one = record.payload
        assert isinstance(one, ColumnRange)
        if one.file_name not in touched:
            continue
        parts = ranges[one.file_name, one.column_name or ""]
        assert one.is_tight_bound
        assert one.value_count == sum(part.value_count or 0 for part in parts)
        assert one.null_count == sum(part.null_count or 0 for part in parts)
        lows = [part.min_value.value for part in parts if part.min_value is not None]
        if lows and not isinstance(lows[0], bytes):
            assert one.min_value is not None
            assert one.min_value.value == min(lows)
        checked += 1
    assert checked == len(touched) * len(COLUMNS)


def test_writes_keep_every_partition_right(path: Path) -> None:
    table = hudi.Table.open(str(path), options=FAST)
    before = {key: data_of(row) for key, row in foreign_rows(path).items()}
    assert len(before) == 12
    first, second, third = (before[key] for key in ("TXN-001", "TXN-007", "TXN-011"))
    schema = table.schema
    new = {
        **first,
        "txn_id": "TXN-1\u00e9$",
        "merchant_name": "A\\B$C",
        "txn_date": date(2031, 5, 6),
    }
    changed = {**second, "txn_ts": second["txn_ts"] + 1, "merchant_name": None}
    table.upsert(pa.Table.from_pylist([new, changed], schema))
    expected = {**before, new["txn_id"]: new, "TXN-007": changed}
    assert {key: data_of(row) for key, row in foreign_rows(path).items()} == expected
    check_all(path, table, {first_partition(first), first_partition(second)})

    table.delete(pa.Table.from_pylist([third, changed], schema))
    del expected["TXN-011"], expected["TXN-007"]
    assert {key: data_of(row) for key, row in foreign_rows(path).items()} == expected
    check_all(path, table, {first_partition(one) for one in (first, second, third)})

    replaced = table.insert_overwrite(pa.Table.from_pylist([new], schema))
    check_all(path, table, {first_partition(first)})
    table.rollback(replaced.instant)
    assert {key: data_of(row) for key, row in foreign_rows(path).items()} == expected
    check_all(path, table, {first_partition(first)})


def first_partition(row: Row) -> str:
    return f"region={row['region']}"


def test_rows_that_move_are_found_where_they_are(path: Path) -> None:
    options = {**FAST, "hoodie.index.type": "GLOBAL_SIMPLE"}
    table = hudi.Table.open(str(path), options=options)
    row = data_of(foreign_rows(path)["TXN-001"])
    moved = {**row, "region": "apac", "txn_ts": row["txn_ts"] + 1}
    assert row["region"] != "apac"
    table.upsert(pa.Table.from_pylist([moved], table.schema))
    assert data_of(foreign_rows(path)["TXN-001"]) == moved
    assert len(foreign_rows(path)) == 12
    check_all(path, table, {"region=apac", first_partition(row)})


def test_an_expression_index_refuses_writes_by_name(path: Path) -> None:
    table = hudi.Table.open(str(path), options=FAST)
    rows = pa.Table.from_pylist([data_of(foreign_rows(path)["TXN-001"])], table.schema)
    names = "expr_index_by_day,files"
    update_properties(PosixStorage(str(path)), {"hoodie.table.metadata.partitions": names})
    before = _files(path)
    with pytest.raises(UnsupportedTableError, match="expr_index_by_day"):
        table.upsert(rows)
    with pytest.raises(UnsupportedTableError, match="expr_index_by_day"):
        hudi.Table.open(str(path), options=FAST).upsert(rows)
    assert _files(path) == before


def _files(path: Path) -> list[Path]:
    """Everything in a table's folder but its lock."""
    return sorted(one for one in path.rglob("*") if ".locks" not in one.parts)
