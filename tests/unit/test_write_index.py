"""Indexes at a table: what they find, what moves, what they cost, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from hudi_core.config.properties import parse_properties
from hudi_core.config.write import WriteConfig
from hudi_core.errors import (
    CommitConflictError,
    ConfigError,
    CorruptMetadataError,
    DuplicateRecordKeyError,
    InvalidOptionError,
    OptionConflictError,
    SchemaError,
    UnsupportedTableError,
)
from hudi_core.index import locating, stored_filters, tagging
from hudi_core.index.bucket import bucket_numbers
from hudi_core.index.locating import FileCandidates
from hudi_core.index.record_index import Locations, RecordIndex, ShardLookup
from hudi_core.metadata.hfile.block import DATA_MAGIC
from hudi_core.metadata.hfile.reader import HFileReader
from hudi_core.metadata.log.layers import RecordsFile
from hudi_core.metadata.log.records import BloomFilterEntry, PartitionChange
from hudi_core.metadata.partitions import bloom_filters
from hudi_core.metadata.partitions.bloom_filters import BloomFilters
from hudi_core.model.buckets import Buckets, bucket_of_file
from hudi_core.model.files import FileGroupId, FileId, PartitionPath, derive_file_id
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.operation import UPSERT
from hudi_core.services.opening import open_table
from hudi_core.txn.table_lock import table_lock
from hudi_core.write import bulk_insert, planning
from hudi_core.write.client import WriteClient
from hudi_core.write.merge_handle import keep_stored_partition_columns
from hudi_core.write.steps import WriteSteps
from tests.calls import calls_of
from tests.property.test_index_model import ApartEngine, indexed_keys, stored_keys
from tests.tables import copied, new_table, pairs

INDEXED = pa.schema(
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
    return new_table(path / "table", INDEXED, options)


def indexed_rows(keys: Sequence[int], cities: Sequence[str], ts: int = 1) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{key:06d}" for key in keys],
            "city": [cities[key % len(cities)] for key in keys],
            "ts": [ts] * len(keys),
            "value": list(keys),
        },
        schema=INDEXED,
    )


def check(table: hudi.Table, count: int) -> None:
    """The index has the keys of the files and no other, and another reader counts as many."""
    held = stored_keys(table)
    assert len(held) == count
    assert indexed_keys(table) == held
    batches = HudiTableBuilder.from_base_uri(table.path).build().read()
    assert sorted(key for one in batches for key in one.column("id").to_pylist()) == sorted(held)


def test_the_commit_reads_none_of_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(tmp_path, {**WITH, **MOVES})
    table.upsert(indexed_rows(range(30), ["rome", "oslo"]))

    def refused(*_: Any) -> Any:
        raise AssertionError("a data file was read for the metadata table")

    monkeypatch.setattr(data_files, "opened_file", refused)
    for engine in (None, ApartEngine()):
        table.upsert(indexed_rows(range(10, 50), ["oslo", "rome"], 2), engine=engine)
        table.delete(indexed_rows(range(10), ["rome"]), engine=engine)
        table.bulk_insert(indexed_rows(range(10), ["rome"]), engine=engine)
    monkeypatch.undo()
    check(table, 50)


def test_results_do_not_keep_the_keys(tmp_path: Path) -> None:
    result = create(tmp_path, WITH).upsert(indexed_rows(range(30), ["rome"]))
    assert [one.changed_keys for one in result.statuses] == [None]


def test_a_lookup_reads_the_blocks_it_touches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_shard = {"hoodie.metadata.global.record.level.index.min.filegroup.count": "1"}
    table = create(tmp_path, {**WITH, **one_shard})
    table.bulk_insert(indexed_rows(range(60_000), ["rome"]))
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
        table.bulk_insert(indexed_rows(range(first, first + 10), ["rome", "oslo"]))
    assert len(table.file_slices()) == 16
    read = calls_of(monkeypatch, locating, "read_record_keys")
    result = table.upsert(indexed_rows([12, 33, 90], ["rome", "oslo"], 2))
    assert (result.inserted, result.updated) == (1, 2)
    assert len(read) == 2


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "RECORD_INDEX"])
def test_the_keys_of_a_file_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: str
) -> None:
    table = create(tmp_path, {**WITH, "hoodie.index.type": index})
    table.bulk_insert(indexed_rows(range(20), ["rome"]))
    read: list[str] = []

    class NotingFile(pq.ParquetFile):  # type: ignore[misc]  # pyarrow has no types
        def read(self, columns: Sequence[str], use_threads: bool = True) -> pa.Table:
            read.extend(columns)
            return super().read(columns=columns, use_threads=use_threads)

    monkeypatch.setattr("hudi_core.base_file.reader.pq.ParquetFile", NotingFile)
    result = table.upsert(indexed_rows([3, 90], ["rome"], 2))
    assert (result.inserted, result.updated) == (1, 1)
    assert read.count("id") == read.count("ts") == 1
    assert "_hoodie_record_key" not in read
    check(table, 21)


def test_many_keys_are_looked_for_in_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(tmp_path, WITH)
    count, some = 60_000, range(0, 60_000, 300)
    monkeypatch.setattr("hudi_core.index.record_index._FEW_BLOCKS", 16)
    table.bulk_insert(indexed_rows(range(count), ["rome", "oslo"]))
    opened = hudi.Table.open(table.path)._session.opened
    index = RecordIndex.open(opened.client, opened.timeline())
    assert index.reads_more_than_files(len(some), (), lambda: 2)
    assert not index.reads_more_than_files(16, (), lambda: 2)
    assert not index.reads_more_than_files(len(some), (), lambda: 100)
    asked = calls_of(monkeypatch, ShardLookup, "find")
    moved = indexed_rows(some, ["oslo", "rome"], 2)
    result = table.upsert(pa.concat_tables([moved, indexed_rows([count], ["oslo"])]))
    assert (result.inserted, result.updated) == (1, len(some))
    assert not asked
    check(table, count + 1)
    table.upsert(indexed_rows([3], ["rome"], 3))
    assert asked
    check(table, count + 1)


def test_many_keys_are_many_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create(tmp_path, WITH)
    table.bulk_insert(indexed_rows(range(500), ["rome", "oslo"]))
    monkeypatch.setattr("hudi_core.index.record_index._KEYS_PER_TASK", 100)
    found = calls_of(monkeypatch, ShardLookup, "find")
    result = table.upsert(indexed_rows(range(250, 750), ["rome", "oslo"], 2), engine=ApartEngine())
    assert (result.inserted, result.updated) == (250, 250)
    looked = [set(lookup.shards) for lookup, _ in found]
    assert len(looked) == 5
    assert set.union(*looked) == set(range(10))
    assert sum(map(len, looked)) == 10
    # no task gets keys of the shards of others, and hashes decide, not partitions
    asked = [len(keys) for _, keys in found]
    assert sum(asked) == 500
    assert max(asked) < 2 * 500 / len(asked)


def test_a_row_stays_unless_it_is_to_move(tmp_path: Path) -> None:
    """Hudi's default, other than that of the other global indexes."""
    table = create(tmp_path, WITH)
    table.upsert(indexed_rows([1], ["rome"]))
    result = table.upsert(indexed_rows([1], ["oslo"], 2))
    assert (result.inserted, result.updated, result.deleted) == (0, 1, 0)
    assert [one.partition_path for one in table.file_slices()] == ["rome"]
    assert table.to_arrow().column("city").to_pylist() == ["rome"]
    check(table, 1)


@pytest.mark.parametrize("kind", ["RECORD_INDEX", "GLOBAL_RECORD_LEVEL_INDEX"])
def test_without_the_index_a_write_is_refused(tmp_path: Path, kind: str) -> None:
    table = create(tmp_path, {**WITHOUT, "hoodie.index.type": kind})
    for upsert in (partial(table.plan, "upsert"), table.upsert):
        with pytest.raises(InvalidOptionError, match="has no record index") as caught:
            upsert(indexed_rows([1], ["rome"]))
        assert f"hudi metadata index {table.path} record_index" in str(caught.value)
    assert not list(Path(table.path).rglob("*.parquet"))


def test_a_table_with_rows_gets_the_index_with_its_next_write(tmp_path: Path) -> None:
    table = create(tmp_path, {})
    table.insert(indexed_rows(range(20), ["rome", "oslo"]))
    batch = indexed_rows(range(10, 25), ["rome", "oslo"], 2)
    told = table.plan("upsert", batch, options=WITH)
    result = table.upsert(batch, options=WITH)
    assert (told.inserted, told.updated) == (result.inserted, result.updated) == (5, 10)
    check(table, 25)
    told = table.plan("upsert", indexed_rows(range(20, 30), ["rome", "oslo"], 3), options=WITH)
    assert (told.inserted, told.updated) == (5, 5)


def test_what_the_index_says_is_checked_at_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys that a rolled back write of another engine left."""
    table = create(tmp_path, WITH)
    table.upsert(indexed_rows(range(4), ["rome"]))
    (slice_,) = table.file_slices()
    groups = (FileGroupId(slice_.partition_path, slice_.file_id),)
    wrong = Locations(np.array([0, 1], np.int32), np.array([0, 0], np.int32), groups)
    monkeypatch.setattr(ShardLookup, "find", lambda *_: wrong)
    result = table.upsert(indexed_rows([7, 8], ["rome"]))
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
    table.upsert(indexed_rows(range(4), ["rome", "oslo"]))
    files, expected = sorted(tmp_path.rglob("*.parquet")), stored_keys(table)
    groups = (FileGroupId(PartitionPath(group[0]), group[1]),)
    wrong = Locations(np.array([0], np.int32), np.array([0], np.int32), groups)
    monkeypatch.setattr(ShardLookup, "find", lambda *_: wrong)
    for change in (table.upsert, table.delete):
        with pytest.raises(CorruptMetadataError, match=f"{GONE} of partition '{group[0]}'.*repair"):
            change(indexed_rows([1], ["oslo"], 2))
    monkeypatch.undo()
    assert sorted(tmp_path.rglob("*.parquet")) == files
    table.repair()
    assert table.upsert(indexed_rows([1], ["oslo"], 2)).updated == 1
    assert stored_keys(table) == expected


def without_numbers(instant: InstantTime, task: int, group: int) -> FileId:
    return FileId(derive_file_id(instant, task, group)[:36])


def test_file_groups_without_a_number_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flink names its file groups by a UUID alone."""
    for module in (planning, bulk_insert):
        monkeypatch.setattr(module, "derive_file_id", without_numbers)
    table = create(tmp_path, WITH)
    table.upsert(indexed_rows(range(4), ["rome", "oslo"]))
    table.bulk_insert(indexed_rows(range(4, 8), ["rome", "oslo"]))
    assert {len(one.file_id) for one in table.file_slices()} == {36}
    result = table.upsert(indexed_rows(range(6), ["rome", "oslo"], 2))
    assert (result.inserted, result.updated) == (0, 6)
    assert table.delete(indexed_rows([1, 5], ["rome", "oslo"])).deleted == 2
    check(table, 6)
    assert table.validate().differences == ()


def test_several_rows_of_a_key_that_become_one(tmp_path: Path) -> None:
    """Inserts look nothing up, and may leave a key several times in one file."""
    table = create(tmp_path, WITH)
    table.insert(pa.concat_tables([indexed_rows([1, 2], ["rome"], ts) for ts in (1, 2, 3)]))
    assert table.to_arrow().num_rows == 6
    table.upsert(indexed_rows([1], ["rome"], 4))
    assert indexed_keys(table) == stored_keys(table)
    # a late row takes the place of those that are older only: the key stays
    table.upsert(indexed_rows([2], ["rome"], 2))
    assert indexed_keys(table) == stored_keys(table)
    assert len(stored_keys(table)) == 2
    table.delete(indexed_rows([1, 2], ["rome"]))
    assert indexed_keys(table) == {}


def test_a_key_that_comes_to_two_partitions_at_once(tmp_path: Path) -> None:
    """The index knows one of them, and says it once."""
    table = create(tmp_path, WITH)
    table.insert(pa.concat_tables([indexed_rows([1, 2], ["rome"]), indexed_rows([1, 3], ["oslo"])]))
    found = indexed_keys(table)
    assert sorted(found) == ["k000001", "k000002", "k000003"]
    groups = {(one.partition_path, one.file_id) for one in table.file_slices()}
    assert len(groups) == 2
    assert set(found.values()) == groups


# --- global indexes at a table: what moves, what stays, what is refused, and what is read for it
INDEX = "hoodie.index.type"
RECORD_INDEX = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
}
STAY = {"hoodie.simple.index.update.partition.path": "false"}
GLOBAL_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("day", pa.date32()),
        ("ts", pa.int64()),
        ("value", pa.int64()),
    ]
)


def roaming(path: Path, index: str = "GLOBAL_SIMPLE", **options: str) -> hudi.Table:
    return new_table(
        path / "table", GLOBAL_SCHEMA, {INDEX: index, **options}, partition_by=["city", "day"]
    )


def row(key: str, city: str | None, ts: int, value: int = 0, day: int | None = 1) -> dict[str, Any]:
    when = pa.scalar(day, pa.date32()).as_py()
    return {"id": key, "city": city, "day": when, "ts": ts, "value": value}


def table_of(*made: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(made), GLOBAL_SCHEMA)


def held(table: hudi.Table) -> list[tuple[Any, ...]]:
    return pairs(table.to_arrow(), "id", "_hoodie_partition_path", "city", "ts", "value")


@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX"])
def test_no_rows_change_nothing(tmp_path: Path, index: str) -> None:
    table = roaming(tmp_path, index, **(RECORD_INDEX if index == "RECORD_INDEX" else {}))
    nothing = GLOBAL_SCHEMA.empty_table()
    for _ in range(2):
        before = held(table)
        for operation in (table.upsert, table.delete, table.insert):
            result = operation(nothing)
            assert (result.inserted, result.updated, result.deleted) == (0, 0, 0)
        assert held(table) == before
        table.upsert(table_of(row("a", "rome", 1)))


def test_a_row_moves_with_its_partition(tmp_path: Path) -> None:
    table = roaming(tmp_path)
    table.upsert(table_of(row("a", "rome", 1), row("b", "rome", 1)))
    result = table.upsert(table_of(row("a", "oslo", 2, 5)))
    assert (result.inserted, result.updated, result.deleted) == (1, 0, 1)
    assert held(table) == [
        ("a", "oslo/1970-01-02", "oslo", 2, 5),
        ("b", "rome/1970-01-02", "rome", 1, 0),
    ]
    # what is left behind keeps its commit, what moved belongs to the new one
    times = {one["id"]: one["_hoodie_commit_time"] for one in table.to_arrow().to_pylist()}
    assert times["a"] == result.instant.requested_time > times["b"]


def test_a_row_that_stays_keeps_folder_and_columns_alike(tmp_path: Path) -> None:
    table = roaming(tmp_path, **STAY)
    table.upsert(table_of(row("a", "rome", 1), row("n", None, 1, 0, None)))
    result = table.upsert(table_of(row("a", "oslo", 2, 5, 9), row("n", "oslo", 2, 6, 9)))
    assert (result.inserted, result.updated, result.deleted) == (0, 2, 0)
    default = "__HIVE_DEFAULT_PARTITION__"
    assert held(table) == [
        ("a", "rome/1970-01-02", "rome", 2, 5),
        ("n", f"{default}/{default}", None, 2, 6),
    ]
    # readers that prune find it where it is
    assert table.to_arrow(filter=[("city", "=", "rome")]).num_rows == 1
    assert table.to_arrow(filter=[("city", "=", "oslo")]).num_rows == 0


def test_several_stored_rows_of_a_key_become_one(tmp_path: Path) -> None:
    """Inserts look nothing up, and may have left a key in several partitions."""
    table = roaming(tmp_path)
    table.insert(table_of(row("a", "rome", 1), row("a", "oslo", 2), row("a", "oslo", 3)))
    result = table.upsert(table_of(row("a", "lima", 4, 8)))
    assert (result.inserted, result.updated, result.deleted) == (1, 0, 3)
    assert held(table) == [("a", "lima/1970-01-02", "lima", 4, 8)]
    # of those that are later than the incoming row, the row is none
    table.insert(table_of(row("a", "rome", 9)))
    table.upsert(table_of(row("a", "oslo", 5)))
    assert held(table) == [("a", "rome/1970-01-02", "rome", 9, 0)]


@pytest.mark.parametrize("combine", ["true", "false"])
def test_rows_that_are_not_combined_still_move_once(tmp_path: Path, combine: str) -> None:
    table = roaming(tmp_path, **{"hoodie.combine.before.upsert": combine})
    table.upsert(table_of(row("a", "rome", 1)))
    result = table.upsert(table_of(row("a", "oslo", 3, 3), row("a", "lima", 2, 2)))
    assert (result.inserted, result.deleted) == (1, 1)
    # of rows that are not combined the last counts, whatever their order
    last = ("a", "lima/1970-01-02", "lima", 2, 2)
    assert held(table) == [("a", "oslo/1970-01-02", "oslo", 3, 3) if combine == "true" else last]


def test_inserts_that_drop_duplicates_look_into_all_partitions(tmp_path: Path) -> None:
    table = roaming(tmp_path)
    table.upsert(table_of(row("a", "rome", 1)))
    policy = "hoodie.datasource.insert.dup.policy"
    batch = table_of(row("a", "oslo", 9), row("b", "oslo", 9))
    with pytest.raises(DuplicateRecordKeyError, match="'id:a'"):
        table.insert(batch, options={policy: "fail"})
    assert table.insert(batch, options={policy: "drop"}).inserted == 1
    assert [one[:2] for one in held(table)] == [("a", "rome/1970-01-02"), ("b", "oslo/1970-01-02")]


def test_rows_that_lack_columns_cannot_move(tmp_path: Path) -> None:
    table = roaming(tmp_path)
    table.upsert(table_of(row("a", "rome", 1, 7)))
    keep = {"hoodie.table.partial.update.mode": "KEEP_VALUES"}
    partial = table_of(row("a", "oslo", 2)).drop_columns(["value"])
    with pytest.raises(SchemaError, match="lack the column 'value', and a row that moves"):
        table.upsert(partial, options=keep)
    table.upsert(partial, options={**keep, **STAY})
    assert held(table) == [("a", "rome/1970-01-02", "rome", 2, 7)]


def test_a_dry_run_tells_what_moves(tmp_path: Path) -> None:
    table = roaming(tmp_path)
    table.upsert(table_of(row("a", "rome", 1), row("b", "rome", 1)))
    batch = table_of(row("a", "oslo", 2), row("b", "rome", 2), row("c", "rome", 2))
    told = table.plan("upsert", batch)
    done = table.upsert(batch)
    assert (told.inserted, told.updated, told.deleted) == (2, 1, 1)
    assert (done.inserted, done.updated, done.deleted) == (2, 1, 1)


@pytest.mark.parametrize(("index", "columns"), [("SIMPLE", 8), ("BLOOM", 1), ("GLOBAL_BLOOM", 1)])
def test_bloom_reads_the_keys_of_few_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: str, columns: int
) -> None:
    table = roaming(tmp_path, index)
    for number in range(8):
        batch = [row(f"k{number}{one:03d}", "rome", 1) for one in range(0, 200, 2)]
        table.bulk_insert(table_of(*batch))
    read = calls_of(monkeypatch, FileCandidates, "keys")
    result = table.upsert(table_of(row("k3010", "rome", 2), row("k5011", "rome", 2)))
    assert (result.inserted, result.updated) == (1, 1)
    assert len(read) == columns


def test_nested_partition_columns_stay_too() -> None:
    """Tables partitioned by a field of a struct come from other writers."""

    def places(*cities: str | None) -> pa.Table:
        return pa.table(
            {"place": [city and {"city": city, "zip": ord(city[0])} for city in cities]}
        )

    stored, incoming = places("rome", "oslo"), places("lima", None, "new")
    met, strange = np.array([0, 1]), np.array([True, True])
    assert keep_stored_partition_columns(incoming, strange, met, stored, ["place.city"]).column(
        "place"
    ).to_pylist() == [
        {"city": "rome", "zip": ord("l")},
        {"city": "oslo", "zip": None},
        {"city": "new", "zip": ord("n")},
    ]


# --- the BLOOM index asks the filters of the metadata table, and leaves footers closed
KEYED = pa.schema([("id", pa.string()), ("city", pa.string()), ("n", pa.int64())])
FILTERS = {"hoodie.metadata.index.bloom.filter.enable": "true"}
FAST = {"hoodie.parquet.small.file.limit": "0"}
UNASKED = {"hoodie.bloom.index.use.metadata": "false"}
FILES = 8


class Opened:
    """Paths whose footers were opened for an index, and whose keys were read."""

    def __init__(self) -> None:
        self.footers: list[str] = []
        self.keys: list[str] = []


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    seen = Opened()
    for name, paths in (("read_known_keys", seen.footers), ("read_record_keys", seen.keys)):
        original = getattr(locating, name)

        def note(context: Any, path: str, *rest: Any, o: Any = original, p: Any = paths) -> Any:
            p.append(path)
            return o(context, path, *rest)

        monkeypatch.setattr(locating, name, note)
    return seen


def keyed(keys: Sequence[str], n: int) -> pa.Table:
    return pa.table({"id": keys, "city": ["oslo"] * len(keys), "n": [n] * len(keys)})


def interleaved(number: int) -> list[str]:
    """Keys of a file whose range holds those of all others."""
    return [f"a{number}", *(f"k{one * FILES + number:04}" for one in range(20)), f"z{number}"]


def files_of(path: Path, **options: str) -> hudi.Table:
    return copied(path, overlapping, {"hoodie.index.type": "BLOOM", **FAST, **FILTERS, **options})


def overlapping(path: Path, options: dict[str, str]) -> hudi.Table:
    table = new_table(path, KEYED, options)
    for number in range(FILES):
        table.bulk_insert(keyed(interleaved(number), 0))
    return table


def updated(table: hudi.Table, n: int) -> set[str]:
    found = table.to_arrow(["id", "n"]).to_pylist()
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"] for row in found if row["n"] == n}


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("index", ["BLOOM", "GLOBAL_BLOOM"])
@pytest.mark.parametrize("ranges", ["true", "false"])
def test_no_footer_is_opened(
    index: str,
    wide: bool,
    ranges: str,
    tmp_path: Path,
    opened: Opened,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stats = {"hoodie.metadata.index.column.stats.enable": ranges}
    table = files_of(tmp_path / "t", **{"hoodie.index.type": index}, **stats)
    monkeypatch.setattr(tagging, "_FILES_PER_TASK", 3 if wide else 32)
    engine = ApartEngine() if wide else None
    wanted = ["k0003", "k0011", "k0500", "new"]

    result = table.upsert(keyed(wanted, 1), options=UNASKED, engine=engine)

    assert (result.updated, result.inserted) == (2, 2)
    assert len(opened.footers) == FILES
    assert len(opened.keys) == 1
    opened.footers.clear()
    opened.keys.clear()

    result = table.upsert(keyed([*wanted, "k0001", "other"], 2), engine=engine)

    # the new keys of the first upsert have a file of their own
    assert (result.updated, result.inserted) == (5, 1)
    assert opened.footers == []
    assert len(opened.keys) == 3
    assert updated(table, 2) == {*wanted, "k0001", "other"}
    assert table.validate().is_valid


def test_files_without_a_filter_are_asked_themselves(
    tmp_path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = files_of(tmp_path / "t")
    with monkeypatch.context() as patch:
        patch.setattr(BloomFilters, "of_commit", lambda *_: PartitionChange())
        table.bulk_insert(keyed(["a8", "k9000", "z8"], 0))
    footerless = {"hoodie.parquet.bloom.filter.enabled": "false"}
    table.bulk_insert(keyed(["a9", "k9001", "k9002", "z9"], 0), options=footerless)
    result = table.upsert(keyed(["k9000", "k9001", "none"], 1))
    assert (result.updated, result.inserted) == (2, 1)
    assert len(opened.footers) == 2
    assert updated(table, 1) == {"k9000", "k9001", "none"}


@pytest.mark.parametrize(
    "entry",
    [
        BloomFilterEntry("SIMPLE", "20260101000000000", b"of another kind"),
        BloomFilterEntry("DYNAMIC_V0", "20260101000000000", b""),
        BloomFilterEntry("DYNAMIC_V0", "", b"", is_deleted=True),
    ],
)
def test_a_filter_that_says_nothing_rules_nothing_out(
    entry: BloomFilterEntry, tmp_path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = files_of(tmp_path / "t")
    with monkeypatch.context() as patch:
        original = bloom_filters._record

        def other(partition: Any, name: str, _: Any) -> Any:
            return original(partition, name, entry)

        patch.setattr(bloom_filters, "_record", other)
        table.bulk_insert(keyed(["a8", "k9000", "z8"], 0))
    result = table.upsert(keyed(["k9000"], 1))
    assert (result.updated, result.inserted) == (1, 0)
    assert len(opened.footers) == 1


def test_a_damaged_filter_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = files_of(tmp_path / "t")
    with monkeypatch.context() as patch:
        original = bloom_filters._entry
        patch.setattr(
            bloom_filters, "_entry", lambda file, time, _: original(file, time, b"not base64!")
        )
        table.bulk_insert(keyed(["a8", "k9000", "z8"], 0))
    with pytest.raises(CorruptMetadataError, match=r"bloom_filters.*repair"):
        table.upsert(keyed(["k9000"], 1))
    assert table.upsert(keyed(["k9000"], 1), options=UNASKED).updated == 1


@pytest.mark.parametrize(
    "options", [UNASKED, {"hoodie.metadata.enable": "false"}, {"hoodie.metadata.validate": "true"}]
)
def test_options_have_the_footers_opened(
    options: dict[str, str], tmp_path: Path, opened: Opened
) -> None:
    table = files_of(tmp_path / "t")
    assert table.upsert(keyed(["k0001", "other"], 1), options=options).updated == 1
    assert len(opened.footers) == FILES


def test_a_table_without_filters_has_its_footers_opened(tmp_path: Path, opened: Opened) -> None:
    table = files_of(tmp_path / "t", **{"hoodie.metadata.index.bloom.filter.enable": "false"})
    assert table.upsert(keyed(["k0001", "other"], 1)).updated == 1
    assert len(opened.footers) == FILES
    opened.footers.clear()
    # built later, it serves the next write
    table.upsert(keyed(["k0002", "z100"], 2), options=FILTERS)
    opened.footers.clear()
    assert table.upsert(keyed(["k0001", "other"], 3)).updated == 2
    assert opened.footers == []


def test_filters_are_looked_up_for_some_files_at_once(
    tmp_path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = files_of(tmp_path / "t")
    batches = calls_of(monkeypatch, stored_filters.KnownFooters, "_load")
    size = max(one.base_file.size for one in table.file_slices() if one.base_file is not None)
    monkeypatch.setattr(stored_filters, "_BYTES_AT_ONCE", 2 * size + 1)
    assert table.upsert(keyed(["k0001", "k0004"], 1)).updated == 2
    assert [len(ordinals) for _, ordinals in batches] == [3, 3, 2]
    assert opened.footers == []


# --- tables with buckets: what is kept with them, what contradicts it, and where rows go
NUMBER = "hoodie.bucket.index.num.buckets"
FIELDS = "hoodie.bucket.index.hash.field"
BUCKETS = {INDEX: "BUCKET", NUMBER: "4"}
BUCKET_SCHEMA = pa.schema(
    [("id", pa.string()), ("line", pa.int32()), ("city", pa.string()), ("value", pa.int64())]
)


def bucketed(path: Path, options: Mapping[str, object], *key: str) -> hudi.Table:
    return new_table(path / "table", BUCKET_SCHEMA, options, record_key=key or "id")


def lines(*numbers: int, value: int = 0) -> pa.Table:
    made = [
        {"id": f"k{number}", "line": number % 3, "city": f"c{number % 2}", "value": value}
        for number in numbers
    ]
    return pa.Table.from_pylist(made, BUCKET_SCHEMA)


def properties(table: hudi.Table) -> dict[str, str]:
    path = Path(table.path) / ".hoodie" / "hoodie.properties"
    return parse_properties(path.read_bytes(), str(path))


def groups(table: hudi.Table) -> dict[tuple[str, int | None], str]:
    found = [
        ((one.partition_path, bucket_of_file(one.file_id)), one.file_id)
        for one in table.file_slices()
    ]
    assert len(dict(found)) == len(found)
    return dict(found)


def values(table: hudi.Table) -> dict[str, list[int]]:
    held: dict[str, list[int]] = {}
    for row in table.to_arrow().to_pylist():
        held.setdefault(row["id"], []).append(row["value"])
    return held


def test_buckets_are_kept_with_the_table(tmp_path: Path) -> None:
    table = bucketed(tmp_path, {**BUCKETS, FIELDS: "line"}, "id", "line")
    kept = properties(table)
    assert (kept[INDEX], kept[NUMBER], kept[FIELDS]) == ("BUCKET", "4", "line")
    opened = hudi.Table.open(table.path)
    assert opened.config.buckets == Buckets(4, ("line",))
    # no option is needed from then on
    opened.upsert(lines(*range(20)))
    assert {bucket for _, bucket in groups(opened)} == set(
        bucket_numbers(pa.array([f"id:k1,line:{line}" for line in range(3)]), Buckets(4, ("line",)))
    )


def test_the_defaults_are_hudis(tmp_path: Path) -> None:
    table = bucketed(tmp_path, {INDEX: "bucket"}, "id", "line")
    assert table.config.buckets == Buckets(256, ("id", "line"))


@pytest.mark.parametrize(
    ("option", "value", "stored"),
    [
        (NUMBER, "5", "4"),
        (FIELDS, "line", "id"),
        (INDEX, "SIMPLE", "BUCKET"),
        (INDEX, "GLOBAL_BLOOM", "BUCKET"),
    ],
)
def test_contradictions_name_both(tmp_path: Path, option: str, value: str, stored: str) -> None:
    table = bucketed(tmp_path, BUCKETS, "id", "line")
    table.upsert(lines(1))
    given = {option: value} if option != FIELDS else {option: value, NUMBER: "4"}
    with pytest.raises(OptionConflictError) as caught:
        table.upsert(lines(2), options=given)
    assert (caught.value.key, caught.value.given) == (option, value)
    assert stored in str(caught.value.stored)
    assert values(table).keys() == {"k1"}


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({**BUCKETS, FIELDS: "city"}, FIELDS),
        ({**BUCKETS, NUMBER: "0"}, NUMBER),
        ({**BUCKETS, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}, None),
    ],
)
def test_what_cannot_be(tmp_path: Path, options: dict[str, str], key: str | None) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        bucketed(tmp_path, options)
    assert caught.value.key == (key or "hoodie.index.bucket.engine")
    assert not (tmp_path / "table").exists()


def test_a_table_without_a_record_key_has_no_buckets(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="computed from the record key"):
        hudi.Table.create(str(tmp_path / "table"), BUCKET_SCHEMA, name="t", options=BUCKETS)


def test_an_empty_table_takes_the_buckets_of_its_first_write(tmp_path: Path) -> None:
    table = bucketed(tmp_path, {})
    assert INDEX not in properties(table)
    table.upsert(lines(*range(10)), options=BUCKETS)
    assert properties(table)[NUMBER] == "4"
    with pytest.raises(OptionConflictError):
        table.upsert(lines(1), options={**BUCKETS, NUMBER: "8"})
    table.upsert(lines(*range(10), value=1))
    assert values(table) == {f"k{number}": [1] for number in range(10)}


def test_a_table_that_was_written_otherwise_takes_none(tmp_path: Path) -> None:
    table = bucketed(tmp_path, {})
    table.insert(lines(1, 2, 3))
    with pytest.raises(UnsupportedTableError, match="which is none of its 4 buckets"):
        table.upsert(lines(1), options=BUCKETS)
    assert INDEX not in properties(table)
    table.upsert(lines(1, value=5))
    assert values(table)["k1"] == [5]


def test_fewer_buckets_than_the_files_tell(tmp_path: Path) -> None:
    """A foreign writer may keep the number of buckets to itself."""
    table = bucketed(tmp_path, BUCKETS)
    table.upsert(lines(*range(30)))
    path = Path(table.path) / ".hoodie" / "hoodie.properties"
    kept = [line for line in path.read_text().splitlines() if "bucket" not in line.lower()]
    path.write_text("\n".join(kept) + "\n")
    with pytest.raises(UnsupportedTableError, match=NUMBER):
        hudi.Table.open(table.path).upsert(lines(1), options={INDEX: "BUCKET", NUMBER: "2"})
    table = hudi.Table.open(table.path, options=BUCKETS)
    before = groups(table)
    table.upsert(lines(*range(30), value=2))
    assert groups(table) == before
    assert values(table) == {f"k{number}": [2] for number in range(30)}


@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "upsert"])
def test_rows_join_the_group_of_their_bucket(tmp_path: Path, operation: str) -> None:
    table = bucketed(tmp_path, BUCKETS)
    write = getattr(table, operation)
    first = write(lines(*range(0, 40, 2)))
    assert first.inserted == 20
    before = groups(table)
    assert len(before) == 4  # one partition, four buckets
    # however small or large: there is one group per bucket
    second = write(lines(*range(40)), options={"hoodie.parquet.small.file.limit": "0"})
    after = groups(table)
    assert {place: after[place] for place in before} == before
    assert len(after) == 8
    doubled = 0 if operation == "upsert" else 20
    assert (second.inserted, second.updated) == (20 + doubled, 20 - doubled)
    found = values(table)
    assert sum(len(each) for each in found.values()) == 40 + doubled
    for row in table.to_arrow().to_pylist():
        (bucket,) = bucket_numbers(pa.array([row["id"]]), Buckets(4, ("id",)))
        assert row["_hoodie_file_name"].startswith(f"{bucket:08d}-")


def test_replaced_buckets_get_new_groups(tmp_path: Path) -> None:
    table = bucketed(tmp_path, BUCKETS)
    table.upsert(lines(*range(20)))
    before = groups(table)
    table.insert_overwrite(lines(*range(0, 20, 2), value=3))
    after = groups(table)
    assert {place for place in before if place[0] == "c1"} <= after.keys()
    replaced = [place for place in after if place[0] == "c0"]
    assert replaced
    assert not {after[place] for place in replaced} & set(before.values())
    table.upsert(lines(*range(20), value=4))
    assert values(table) == {f"k{number}": [4] for number in range(20)}


def test_two_groups_for_one_bucket_are_refused(tmp_path: Path) -> None:
    # who lists the storage finds it; a metadata table does not know it
    table = bucketed(tmp_path, {**BUCKETS, "hoodie.metadata.enable": "false"})
    table.upsert(lines(2))
    (slice_,) = table.file_slices()
    twin = slice_.file_id[:-3] + ("f" if slice_.file_id[-3] != "f" else "e") + "-0"
    assert slice_.base_file is not None
    folder = Path(table.path)
    original = folder / slice_.base_file.path
    original.with_name(original.name.replace(slice_.file_id, twin)).write_bytes(
        original.read_bytes()
    )
    with pytest.raises(UnsupportedTableError, match="two file groups for bucket"):
        hudi.Table.open(table.path, {"hoodie.metadata.enable": "false"}).upsert(lines(2, value=1))


def test_two_writers_cannot_both_make_a_bucket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
    table = bucketed(tmp_path, {**BUCKETS, NUMBER: "1", **options})
    opened = open_table(table.path, options)
    config = WriteConfig.from_options(options)
    real = WriteSteps.run
    raced: list[Any] = []

    def run(steps: Any, data: Any) -> Any:
        if not raced:
            raced.append(None)
            raced[0] = hudi.Table.open(table.path, options=options).upsert(lines(2))
        return real(steps, data)

    monkeypatch.setattr(WriteSteps, "run", run)
    writer = WriteClient(opened, table_lock(opened, config), hudi.LocalEngine(), config)
    with pytest.raises(CommitConflictError, match="file group 00000000-"):
        writer.write(lines(4), UPSERT)
    assert values(table).keys() == {"k2"}
    assert issubclass(UnsupportedTableError, ConfigError)
