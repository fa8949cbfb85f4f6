"""The record index at a table: what it finds, what it costs, and what is left in it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi import HudiTableBuilder

import hudi_core as hudi
from hudi_core.base_file import footer as data_files
from hudi_core.errors import CorruptMetadataError, InvalidOptionError, StorageError
from hudi_core.index import locating
from hudi_core.index.record_index import Locations, RecordIndex, ShardLookup
from hudi_core.metadata.hfile import HFileReader
from hudi_core.metadata.hfile.layout import DATA_MAGIC
from hudi_core.metadata.layers import RecordsFile
from hudi_core.metadata.records import RecordLocation
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.model.files import FileGroupId, FileId, PartitionPath, derive_file_id
from hudi_core.model.instant_time import InstantTime
from hudi_core.txn.transaction import Transaction
from hudi_core.write import bulk_insert, planning
from tests.calls import calls_of
from tests.property.test_index_model import ApartEngine
from tests.tables import new_table

SCHEMA = pa.schema(
    [("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("value", pa.int64())]
)
WITHOUT = {"hoodie.index.type": "RECORD_INDEX"}
WITH = {
    **WITHOUT,
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "false",
}
MOVES = {"hoodie.record.index.update.partition.path": "true"}


def create(path: Path, options: dict[str, str]) -> hudi.Table:
    return new_table(path / "table", SCHEMA, options)


def rows(keys: Sequence[int], cities: Sequence[str], ts: int = 1) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{key:06d}" for key in keys],
            "city": [cities[key % len(cities)] for key in keys],
            "ts": [ts] * len(keys),
            "value": list(keys),
        },
        schema=SCHEMA,
    )


def indexed(table: hudi.Table) -> dict[str, tuple[str, str]]:
    client = hudi.Table.open(table.path)._session.opened.client
    found = {}
    for record in MetadataSnapshot.open(client).scan("record_index"):
        assert isinstance(record.payload, RecordLocation)
        found[record.key] = (record.payload.partition_name, record.payload.file_id)
    return found


def stored(table: hudi.Table) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for slice_ in table.file_slices():
        assert slice_.base_file is not None
        path = Path(table.path, slice_.base_file.path)
        keys = pq.ParquetFile(path).read(["_hoodie_record_key"]).column(0).to_pylist()
        found.update(dict.fromkeys(keys, (slice_.partition_path, slice_.file_id)))
    return found


def check(table: hudi.Table, count: int) -> None:
    """The index has the keys of the files and no other, and another reader counts as many."""
    held = stored(table)
    assert len(held) == count
    assert indexed(table) == held
    batches = HudiTableBuilder.from_base_uri(table.path).build().read()
    assert sorted(key for one in batches for key in one.column("id").to_pylist()) == sorted(held)


def test_the_index_follows_every_operation(tmp_path: Path) -> None:
    table = create(tmp_path, {**WITH, **MOVES})
    table.bulk_insert(rows(range(30), ["rome", "oslo", "lima"]))
    check(table, 30)
    result = table.upsert(rows(range(20, 40), ["oslo", "lima", "rome"], 2))
    assert (result.inserted, result.updated, result.deleted) == (20, 0, 10)
    check(table, 40)
    table.delete(rows(range(0, 40, 4), ["rome"]))
    check(table, 30)
    table.insert(rows(range(40, 50), ["rome", "oslo"]))
    check(table, 40)
    # what is replaced and comes again is not gone
    before = set(stored(table))
    there = {key for key, (partition, _) in stored(table).items() if partition == "rome"}
    table.insert_overwrite(rows(range(40, 80, 2), ["rome"]))
    kept = {f"k{key:06d}" for key in range(40, 80, 2)}
    check(table, len(before - there | kept))
    table.delete_partitions(["oslo"])
    check(table, len(stored(table)))
    table.insert_overwrite_table(rows(range(5), ["lima"]))
    check(table, 5)


def test_the_commit_reads_none_of_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(tmp_path, {**WITH, **MOVES})
    table.upsert(rows(range(30), ["rome", "oslo"]))

    def refused(*_: Any) -> Any:
        raise AssertionError("a data file was read for the metadata table")

    monkeypatch.setattr(data_files, "opened_file", refused)
    for engine in (None, ApartEngine()):
        table.upsert(rows(range(10, 50), ["oslo", "rome"], 2), engine=engine)
        table.delete(rows(range(10), ["rome"]), engine=engine)
        table.bulk_insert(rows(range(10), ["rome"]), engine=engine)
    monkeypatch.undo()
    check(table, 50)


def test_results_do_not_keep_the_keys(tmp_path: Path) -> None:
    result = create(tmp_path, WITH).upsert(rows(range(30), ["rome"]))
    assert [one.changed_keys for one in result.statuses] == [None]


def test_a_lookup_reads_the_blocks_it_touches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_shard = {"hoodie.metadata.global.record.level.index.min.filegroup.count": "1"}
    table = create(tmp_path, {**WITH, **one_shard})
    table.bulk_insert(rows(range(60_000), ["rome"]))
    opened = hudi.Table.open(table.path)._session.opened
    parts = calls_of(monkeypatch, HFileReader, "_content")
    calls = calls_of(monkeypatch, RecordsFile, "__call__")
    index = RecordIndex.open(opened.client, opened.timeline())
    (lookup,) = index.lookups(2)
    assert not [file for file, *_ in calls if file.size > 256 * 1024]
    found = lookup.find(pa.array(["k000003", "k000004", "k031000", "nowhere"]))
    assert found.keys.tolist() == [0, 1, 2]
    blocks = [block.offset for _, block, magic, *_ in parts if magic == DATA_MAGIC]
    read = [length for file, _, length in calls if file.size > 256 * 1024]
    assert len(blocks) == len(set(blocks)) == 3  # of more than fifty; one may hold `nowhere`
    size = max(one.stat().st_size for one in Path(table.path).rglob("*record-index*"))
    assert len(read) < 16
    assert sum(read) < size / 4


def test_only_files_that_hold_a_key_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(tmp_path, WITH)
    for first in range(0, 80, 10):
        table.bulk_insert(rows(range(first, first + 10), ["rome", "oslo"]))
    assert len(table.file_slices()) == 16
    read = calls_of(monkeypatch, locating, "read_record_keys")
    result = table.upsert(rows([12, 33, 90], ["rome", "oslo"], 2))
    assert (result.inserted, result.updated) == (1, 2)
    assert len(read) == 2


def test_many_keys_are_many_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create(tmp_path, WITH)
    table.bulk_insert(rows(range(500), ["rome", "oslo"]))
    monkeypatch.setattr("hudi_core.index.record_index._KEYS_PER_TASK", 100)
    found = calls_of(monkeypatch, ShardLookup, "find")
    result = table.upsert(rows(range(250, 750), ["rome", "oslo"], 2), engine=ApartEngine())
    assert (result.inserted, result.updated) == (250, 250)
    looked = [set(lookup.shards) for lookup, _ in found]
    assert len(looked) == 5
    assert set.union(*looked) == set(range(10))
    assert sum(map(len, looked)) == 10


def test_a_row_stays_unless_it_is_to_move(tmp_path: Path) -> None:
    """Hudi's default, other than that of the other global indexes."""
    table = create(tmp_path, WITH)
    table.upsert(rows([1], ["rome"]))
    result = table.upsert(rows([1], ["oslo"], 2))
    assert (result.inserted, result.updated, result.deleted) == (0, 1, 0)
    assert [one.partition_path for one in table.file_slices()] == ["rome"]
    assert table.to_arrow().column("city").to_pylist() == ["rome"]
    check(table, 1)


@pytest.mark.parametrize("kind", ["RECORD_INDEX", "GLOBAL_RECORD_LEVEL_INDEX"])
def test_without_the_index_a_write_is_refused(tmp_path: Path, kind: str) -> None:
    table = create(tmp_path, {**WITHOUT, "hoodie.index.type": kind})
    for upsert in (partial(table.plan, "upsert"), table.upsert):
        with pytest.raises(InvalidOptionError, match="has no record index") as caught:
            upsert(rows([1], ["rome"]))
        assert f"hudi metadata index {table.path} record_index" in str(caught.value)
    assert not list(Path(table.path).rglob("*.parquet"))


def test_a_table_with_rows_gets_the_index_with_its_next_write(tmp_path: Path) -> None:
    table = create(tmp_path, {})
    table.insert(rows(range(20), ["rome", "oslo"]))
    batch = rows(range(10, 25), ["rome", "oslo"], 2)
    told = table.plan("upsert", batch, options=WITH)
    result = table.upsert(batch, options=WITH)
    assert (told.inserted, told.updated) == (result.inserted, result.updated) == (5, 10)
    check(table, 25)
    told = table.plan("upsert", rows(range(20, 30), ["rome", "oslo"], 3), options=WITH)
    assert (told.inserted, told.updated) == (5, 5)


@pytest.mark.parametrize("late", [False, True])
def test_a_write_that_fails_leaves_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    table = create(tmp_path, {**WITH, **MOVES})
    table.upsert(rows(range(20), ["rome", "oslo"]))

    def failing(*_: Any) -> Any:
        raise StorageError("the store failed", "Try again.")

    # before the metadata table has the write, or after
    monkeypatch.setattr(Transaction, "_complete" if late else "_record", failing)
    with pytest.raises(StorageError):
        table.upsert(rows(range(10, 30), ["oslo", "rome"], 2))
    monkeypatch.undo()
    check(table, 20)
    result = table.upsert(rows(range(10, 30), ["oslo", "rome"], 2))
    assert (result.inserted, result.deleted) == (20, 10)
    check(table, 30)


def test_what_the_index_says_is_checked_at_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys that a rolled back write of another engine left."""
    table = create(tmp_path, WITH)
    table.upsert(rows(range(4), ["rome"]))
    (slice_,) = table.file_slices()
    groups = (FileGroupId(slice_.partition_path, slice_.file_id),)
    wrong = Locations(np.array([0, 1], np.int32), np.array([0, 0], np.int32), groups)
    monkeypatch.setattr(ShardLookup, "find", lambda *_: wrong)
    result = table.upsert(rows([7, 8], ["rome"]))
    monkeypatch.undo()
    assert (result.inserted, result.updated) == (2, 0)
    check(table, 6)


GONE = FileId("00000000-0000-0000-0000-000000000000-0")


@pytest.mark.parametrize("group", [("oslo", GONE), ("rome", GONE), ("bonn", GONE)])
def test_a_file_group_that_is_not_there_is_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: tuple[str, FileId]
) -> None:
    """Or its keys would be taken for new ones, and be in the table twice."""
    table = create(tmp_path, WITH)
    table.upsert(rows(range(4), ["rome", "oslo"]))
    files, expected = sorted(tmp_path.rglob("*.parquet")), stored(table)
    groups = (FileGroupId(PartitionPath(group[0]), group[1]),)
    wrong = Locations(np.array([0], np.int32), np.array([0], np.int32), groups)
    monkeypatch.setattr(ShardLookup, "find", lambda *_: wrong)
    for change in (table.upsert, table.delete):
        with pytest.raises(CorruptMetadataError, match=f"{GONE} of partition '{group[0]}'.*repair"):
            change(rows([1], ["oslo"], 2))
    monkeypatch.undo()
    assert sorted(tmp_path.rglob("*.parquet")) == files
    table.repair()
    assert table.upsert(rows([1], ["oslo"], 2)).updated == 1
    assert stored(table) == expected


def without_numbers(instant: InstantTime, task: int, group: int) -> FileId:
    return FileId(derive_file_id(instant, task, group)[:36])


def test_file_groups_without_a_number_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flink names its file groups by a UUID alone."""
    for module in (planning, bulk_insert):
        monkeypatch.setattr(module, "derive_file_id", without_numbers)
    table = create(tmp_path, WITH)
    table.upsert(rows(range(4), ["rome", "oslo"]))
    table.bulk_insert(rows(range(4, 8), ["rome", "oslo"]))
    assert {len(one.file_id) for one in table.file_slices()} == {36}
    result = table.upsert(rows(range(6), ["rome", "oslo"], 2))
    assert (result.inserted, result.updated) == (0, 6)
    assert table.delete(rows([1, 5], ["rome", "oslo"])).deleted == 2
    check(table, 6)
    assert table.validate().differences == ()


def test_several_rows_of_a_key_that_become_one(tmp_path: Path) -> None:
    """Inserts look nothing up, and may leave a key several times in one file."""
    table = create(tmp_path, WITH)
    table.insert(pa.concat_tables([rows([1, 2], ["rome"], ts) for ts in (1, 2, 3)]))
    assert table.to_arrow().num_rows == 6
    table.upsert(rows([1], ["rome"], 4))
    assert indexed(table) == stored(table)
    # a late row takes the place of those that are older only: the key stays
    table.upsert(rows([2], ["rome"], 2))
    assert indexed(table) == stored(table)
    assert len(stored(table)) == 2
    table.delete(rows([1, 2], ["rome"]))
    assert indexed(table) == {}


def test_a_key_that_comes_to_two_partitions_at_once(tmp_path: Path) -> None:
    """The index knows one of them, and says it once."""
    table = create(tmp_path, WITH)
    table.insert(pa.concat_tables([rows([1, 2], ["rome"]), rows([1, 3], ["oslo"])]))
    found = indexed(table)
    assert sorted(found) == ["k000001", "k000002", "k000003"]
    groups = {(one.partition_path, one.file_id) for one in table.file_slices()}
    assert len(groups) == 2
    assert set(found.values()) == groups
