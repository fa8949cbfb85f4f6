"""Connectors that live long, while the tables that they read are moved, converted and replaced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import NotATableError, OutdatedScanError
from hudi_core.read.connector.handles import TableName
from hudi_core.read.connector.predicate import ALL
from hudi_core.storage.posix import PosixStorage
from hudi_core.storage.properties_file import PROPERTIES_PATH
from hudi_core.trino.service import TrinoService
from hudi_core.trino.signing import TokenSigner

FORMATS = ("native", "iceberg", "delta")
SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("v", pa.float64())])
HOME = {"hoodie.storage.strategy.class": "default"}
TRIPS = TableName("lake", "trips")


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "city": [f"c{n % 3}" for n in ids], "v": [1.0] * len(ids)}, SCHEMA)


def make(path: Path, format_name: str = "native", **options: str) -> hudi.Table:
    made = hudi.Table.create(
        path,
        SCHEMA,
        record_key="id",
        partition_by="city",
        format=format_name,
        options={"hoodie.fs.fsync": "false", **options},
    )
    made.insert(rows(1, 2, 3))
    return hudi.Table.open(made.path)


def layout(path: Path) -> dict[str, str]:
    return {
        "hoodie.storage.strategy.class": "object_store",
        "hoodie.storage.path": str(path.absolute()),
    }


def planned(connector: hudi.Connector, path: str) -> list[str]:
    with connector.scan(path) as source:
        return [split.to_json() for split in source]


def read(connector: hudi.Connector, splits: list[str], *columns: str) -> list[Any]:
    parts = [connector.read(split, columns).read_all() for split in splits]
    return sorted(tuple(row.values()) for part in parts for row in part.to_pylist())


def scanned(connector: hudi.Connector, table: hudi.Table, *columns: str) -> list[Any]:
    return read(connector, planned(connector, table.path), *columns)


KEYS = [(1, "1"), (2, "2"), (3, "3")]
NO_KEYS = [(1, None), (2, None), (3, None)]


@pytest.mark.parametrize("format_name", FORMATS)
def test_a_scan_finds_files_that_were_moved(tmp_path: Path, format_name: str) -> None:
    table, connector = make(tmp_path / "t", format_name), hudi.Connector()
    assert scanned(connector, table, "id") == [(1,), (2,), (3,)]
    table.convert_storage(layout(tmp_path / "elsewhere"))
    assert scanned(connector, table, "id") == [(1,), (2,), (3,)]
    table.upsert(rows(4))
    assert scanned(connector, table, "id") == [(1,), (2,), (3,), (4,)]
    table.convert_storage(HOME)
    assert scanned(connector, table, "id", "$path")[0][1].startswith(f"{table.path}/")


@pytest.mark.parametrize("after", FORMATS)
def test_a_scan_sees_a_conversion(tmp_path: Path, after: str) -> None:
    table = make(tmp_path / "t", "iceberg" if after == "delta" else "delta")
    connector = hudi.Connector()
    handle = connector.table(table.path)
    assert scanned(connector, table, "id") == [(1,), (2,), (3,)]
    table.convert(after)
    table.upsert(rows(4))
    assert scanned(connector, table, "id") == [(1,), (2,), (3,), (4,)]
    with connector.scan(handle) as source:  # that of the former format
        assert len(list(source)) == 3
    assert connector.table(table.path).format == after


@pytest.mark.parametrize("format_name", FORMATS)
def test_a_scan_sees_where_record_keys_are(tmp_path: Path, format_name: str) -> None:
    table, connector = make(tmp_path / "t", format_name), hudi.Connector()
    columns = ("id", "_hoodie_record_key")
    assert scanned(connector, table, *columns) == KEYS
    table.rewrite_keys(keep_files=True)
    assert scanned(connector, table, *columns) == NO_KEYS
    table.rewrite_keys()
    assert scanned(connector, table, *columns) == NO_KEYS
    before = table.timeline.completed_writes()[-1]
    table.rewrite_keys(materialise=True)
    assert scanned(connector, table, *columns) == KEYS
    # files of the older state have none, and theirs are made
    with connector.scan(table.path, as_of=before) as source:
        assert read(connector, [split.to_json() for split in source], *columns) == KEYS


def test_a_table_that_took_the_place_of_another_is_read_as_it_is(tmp_path: Path) -> None:
    table = make(tmp_path / "t", **{"hoodie.recordkey.virtual.enabled": "true"})
    connector = hudi.Connector({"hudi.query-partition-filter-required": True})
    handle = connector.table(table.path)
    with connector.scan(handle, [("city", "=", "c1")]) as source:
        assert read(connector, [s.to_json() for s in source], "id", "_hoodie_record_key") == [
            (1, None)
        ]
    table.drop()
    with pytest.raises(NotATableError):
        connector.scan(handle)
    other = hudi.Table.create(
        tmp_path / "t",
        pa.schema([("city", pa.string()), ("id", pa.string())]),
        record_key="id",
        options=layout(tmp_path / "elsewhere"),
    )
    other.insert(pa.table({"city": ["x"], "id": ["y"]}))
    # it has no partitions, whatever the handle says
    with connector.scan(handle) as source:
        found = read(connector, [s.to_json() for s in source], "id", "city", "_hoodie_record_key")
    assert found == [("y", "x", "y")]
    assert not [one.name for one in connector.columns(handle) if one.is_partition_key]


# --- scans that are under way --------------------------------------------------------------------


def test_splits_of_files_that_were_moved_are_refused_by_name(tmp_path: Path) -> None:
    table, connector = make(tmp_path / "t"), hudi.Connector()
    splits = planned(connector, table.path)
    assert read(connector, splits[:1], "id")
    table.convert_storage(layout(tmp_path / "elsewhere"))
    for worker in (connector, hudi.Connector()):
        with pytest.raises(OutdatedScanError, match="Plan the scan again") as refused:
            read(worker, splits, "id")
        assert refused.value.base_path == table.path
    # where they are back, so are the splits
    table.convert_storage(HOME)
    assert read(hudi.Connector(), splits, "id") == [(1,), (2,), (3,)]


@pytest.mark.parametrize(
    ("options", "change", "keys"),
    [
        ({}, {"keep_files": True}, KEYS),
        ({"hoodie.recordkey.virtual.enabled": "true"}, {"materialise": True}, NO_KEYS),
    ],
    ids=["hidden", "materialised"],
)
def test_splits_return_the_keys_that_the_scan_was_planned_with_or_are_refused(
    tmp_path: Path, options: dict[str, str], change: dict[str, bool], keys: list[Any]
) -> None:
    table, connector = make(tmp_path / "t", **options), hudi.Connector()
    splits = planned(connector, table.path)
    columns = ("id", "_hoodie_record_key")
    assert read(connector, splits[:1], *columns)
    table.rewrite_keys(**change)  # type: ignore[arg-type]
    assert read(connector, splits, *columns) == keys
    with pytest.raises(OutdatedScanError):
        read(hudi.Connector(), splits, *columns)


CHANGES: dict[str, Callable[[hudi.Table], object]] = {
    "rows": lambda table: table.upsert(rows(1, 4)),
    "a column": lambda table: table.alter(add_columns={"w": pa.int64()}),
    "a name": lambda table: table.alter(rename={"v": "w"}),
    "an index": lambda table: table.upsert(
        rows(4), options={"hoodie.metadata.record.index.enable": "true"}
    ),
    "the format": lambda table: table.convert("iceberg"),
    "the version": lambda table: table.upgrade(9),
}


@pytest.mark.parametrize("what", CHANGES)
def test_splits_are_read_by_others_after_what_leaves_their_files(tmp_path: Path, what: str) -> None:
    table = make(tmp_path / "t")
    splits = planned(hudi.Connector(), table.path)
    CHANGES[what](table)
    found = read(hudi.Connector(), splits, "id", "v", "_hoodie_record_key")
    assert found == [(n, 1.0, str(n)) for n in (1, 2, 3)]


def test_a_worker_opens_a_table_once_for_all_splits_of_its_scans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, connector = make(tmp_path / "t"), hudi.Connector()
    counted: Counter[str] = Counter()
    plain = PosixStorage.read

    def reading(storage: PosixStorage, path: str, max_bytes: int | None = None) -> bytes:
        counted[path] += path == PROPERTIES_PATH
        return plain(storage, path, max_bytes)

    monkeypatch.setattr(PosixStorage, "read", reading)
    handle = connector.table(table.path)
    counted.clear()
    for opened in (1, 0, 0):  # each plan looks at them, and the first split
        with connector.scan(handle) as source:
            splits = [split.to_json() for split in source]
        planning = counted.pop(PROPERTIES_PATH)
        assert planning == 1
        for _ in range(2):
            assert read(connector, splits, "id") == [(1,), (2,), (3,)]
        assert counted.pop(PROPERTIES_PATH, 0) == opened


def test_pages_of_one_scan_are_not_planned_on_two_tables(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    signer = TokenSigner([b"k" * 32], 3600)
    servers = [TrinoService(hudi.Connector(), {TRIPS: table.path}, signer=signer) for _ in range(2)]
    first = servers[0].splits(TRIPS, ALL, 1, None)
    assert len(first.splits) == 1
    assert first.token is not None
    assert len(servers[1].splits(TRIPS, ALL, 5, first.token).splits) == 2
    table.rewrite_keys(keep_files=True)
    other = TrinoService(hudi.Connector(), {TRIPS: table.path}, signer=signer)
    with pytest.raises(OutdatedScanError):
        other.splits(TRIPS, ALL, 5, first.token)
