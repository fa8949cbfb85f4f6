"""Keys that only logs have, as Flink and Hudi's INMEMORY index leave them: writes find them."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory
from typing import Any, Final

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import (
    DuplicateRecordKeyError,
    HistoryExpiredError,
    KeyCollisionError,
    OptionConflictError,
    UnsupportedTableError,
)
from hudi_core.index.bucket import bucket_numbers
from hudi_core.log_format.block import BlockType
from hudi_core.model.buckets import Buckets, bucket_file_id, bucket_of_file
from hudi_core.model.commit import CommitMetadata, WriteStat
from hudi_core.model.files import FileGroupId, FileId, FileSlice
from hudi_core.storage.posix import PosixStorage
from hudi_core.storage.properties_file import update_properties
from hudi_core.write.steps import WriteSteps
from tests.foreign import by_hudi_rs
from tests.log_files import NO_METADATA_TABLE, data_block, delete_block, later, put_log
from tests.tables import new_table

ROWS: Final = pa.table(
    {"id": [f"k{one}" for one in range(6)], "city": ["A", "B"] * 3, "v": [0] * 6, "ts": [1] * 6}
)
INDEXES: Final[dict[str, dict[str, str]]] = {
    "SIMPLE": {},
    "BLOOM": {},
    "GLOBAL_SIMPLE": {},
    "GLOBAL_BLOOM": {},
    "BLOOM by the metadata table": {
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.index.bloom.filter.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.bloom.index.use.metadata": "true",
    },
    "GLOBAL_RECORD_LEVEL_INDEX": {
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.record.index.enable": "true",
    },
    "RECORD_LEVEL_INDEX": {
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.record.level.index.enable": "true",
    },
}


def of(city: str, *keys: str, v: int = 9, ts: int = 5) -> list[dict[str, Any]]:
    return [{"id": key, "city": city, "v": v, "ts": ts} for key in keys]


def stored(rows: list[dict[str, Any]], time: str) -> list[dict[str, Any]]:
    """Rows of a log, with their meta columns."""
    return [
        {
            "_hoodie_commit_time": time,
            "_hoodie_commit_seqno": f"{time}_0_{number}",
            "_hoodie_record_key": row["id"],
            "_hoodie_partition_path": row["city"],
            "_hoodie_file_name": "f",
            **row,
        }
        for number, row in enumerate(rows)
    ]


def slice_of(table: hudi.Table, city: str) -> FileSlice:
    [found] = [one for one in table.file_slices() if one.partition_path == city]
    return found


def with_keys_in_logs(path: Path, **settings: Any) -> hudi.Table:
    """A table whose logs have the keys `a0` to `a2`, of which `a2` was deleted again, and `k0`."""
    table = new_table(path, ROWS, NO_METADATA_TABLE, table_type="MERGE_ON_READ", **settings)
    for city, rows in (("A", of("A", "a0", "a2", "k0", v=1, ts=2)), ("B", of("B", "a1", v=1))):
        into = slice_of(table, city)
        time = later(into.base_instant, 1000 if city == "A" else 2000)
        fields = list(ROWS.schema)
        block = data_block(time, stored(rows, time), fields, kind=BlockType.PARQUET)
        put_log(table, into, time, block, inserts=len(rows) - (city == "A"))
    into = slice_of(table, "A")
    time = later(into.base_instant, 3000)
    put_log(table, into, time, delete_block(time, {"a2": None}), inserts=0)
    return hudi.Table.open(path, NO_METADATA_TABLE)


def values(table: hudi.Table) -> dict[str, tuple[str, int]]:
    """City and value of each key; hudi-rs reads the same."""
    found = table.to_arrow(["id", "city", "v"]).to_pylist()
    with TemporaryDirectory() as folder:
        # hudi-rs 0.5 leaves file groups of logs alone out where a metadata table lists files
        path = copytree(table.path, Path(folder, "t"))
        if any(one.base_file is None for one in table.file_slices()):
            update_properties(PosixStorage(str(path)), {"hoodie.table.metadata.partitions": None})
        theirs = [{name: row[name] for name in ("id", "city", "v")} for row in by_hudi_rs(path)]
    assert sorted(map(str, theirs)) == sorted(map(str, found))
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: (row["city"], row["v"]) for row in found}


def options_of(index: str) -> dict[str, str]:
    kind = index.partition(" ")[0]
    return {**NO_METADATA_TABLE, "hoodie.index.type": kind, **INDEXES[index]}


@pytest.mark.parametrize("ordering", ["ts", None])
@pytest.mark.parametrize("index", INDEXES)
def test_an_upsert_finds_them(tmp_path: Path, index: str, ordering: str | None) -> None:
    table = with_keys_in_logs(tmp_path / "t", ordering_field=ordering)
    before = values(table)
    assert (len(before), before["a0"], "a2" in before) == (8, ("A", 1), False)
    rows = [*of("A", "a0", "a2", "k0", "new"), *of("B", "a1", "k1")]
    done = table.upsert(rows, options=options_of(index))
    assert (done.updated, done.inserted) == (4, 2)
    expected = before | {row["id"]: (row["city"], 9) for row in rows}
    assert values(table) == expected
    assert table.validate(keys=True).is_valid
    done = table.delete(of("A", "a0") + of("B", "a1", "k3"), options=options_of(index))
    assert done.deleted == 3
    gone = {"a0", "a1", "k3"}
    expected = {key: found for key, found in expected.items() if key not in gone}
    assert values(table) == expected
    table.compact()
    assert values(table) == expected
    assert table.validate(keys=True).is_valid


@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "GLOBAL_RECORD_LEVEL_INDEX"])
def test_they_move_to_other_partitions(tmp_path: Path, index: str) -> None:
    table = with_keys_in_logs(tmp_path / "t")
    expected = values(table) | {"a0": ("B", 9), "a1": ("A", 9)}
    options = options_of(index) | {"hoodie.record.index.update.partition.path": "true"}
    table.upsert([*of("B", "a0"), *of("A", "a1")], options=options)
    assert values(table) == expected
    # a late row stays where the key is
    table.upsert(of("A", "a0", ts=0), options=options)
    assert values(table) == expected
    table.compact()
    assert values(table) == expected


def test_statements_find_them(tmp_path: Path) -> None:
    table = with_keys_in_logs(tmp_path / "t")
    rows = pa.Table.from_pylist([*of("A", "a0", "new"), *of("B", "a1")], table.schema)
    merge = table.merge(rows, "id").when_matched_update_all().when_not_matched_insert_all()
    done = merge.execute()
    assert (done.updated, done.inserted) == (2, 1)
    assert table.update({"v": "7"}, where="id = 'a1'").updated == 1
    found = values(table)
    assert (found["a0"], found["a1"], found["new"]) == (("A", 9), ("B", 7), ("A", 9))
    with pytest.raises(DuplicateRecordKeyError):
        table.insert(of("A", "a0"), options={"hoodie.datasource.insert.dup.policy": "fail"})
    dropped = {"hoodie.datasource.insert.dup.policy": "drop"}
    assert table.insert(of("A", "a0", "newer"), options=dropped).inserted == 1
    assert len(values(table)) == len(found) + 1


def test_logs_of_updates_alone_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commits say which logs have new keys."""
    seen: list[set[FileGroupId]] = []
    real = WriteSteps._groups_with_added_keys

    def adding(self: WriteSteps, slices: Any) -> Any:
        found = real(self, slices)
        seen.append(set(found))
        return found

    monkeypatch.setattr(WriteSteps, "_groups_with_added_keys", adding)
    table = new_table(tmp_path / "t", ROWS, table_type="MERGE_ON_READ")
    for turn in range(3):
        new = [f"new{turn}"] if turn else []
        table.upsert(of("A", "k0", "k2", *new, ts=turn + 2))
    assert any(one.log_files for one in table.file_slices())
    assert seen == [set()] * len(seen)
    table = with_keys_in_logs(tmp_path / "other")
    table.upsert(of("A", "k0"))
    assert {group.partition_path for group in seen[-1]} == {"A"}


BY_HAND: Final = {"hoodie.compact.inline": "false"}


def with_groups_of_logs_alone(path: Path, **settings: Any) -> hudi.Table:
    """A table with two such groups of city A: `a0`, `a1`; `a2` and `a3`, which was deleted."""
    table = new_table(path, ROWS, NO_METADATA_TABLE, table_type="MERGE_ON_READ", **settings)
    into = slice_of(table, "A")
    steps: list[tuple[str, int, list[str]]] = [
        ("one-0", 1000, ["a0", "a1"]),
        ("two-0", 2000, ["a2", "a3"]),
    ]
    for file_id, milliseconds, keys in steps:
        time = later(into.base_instant, milliseconds)
        group = FileGroupId(into.partition_path, FileId(file_id))
        rows = stored(of("A", *keys, v=1), time)
        block = data_block(time, rows, list(ROWS.schema), kind=BlockType.PARQUET)
        put_log(table, FileSlice(group, time, None, ()), time, block, inserts=len(keys))
    group = FileGroupId(into.partition_path, FileId("two-0"))
    time = later(into.base_instant, 3000)
    put_log(table, FileSlice(group, time, None, ()), time, delete_block(time, {"a3": None}))
    table = hudi.Table.open(path, NO_METADATA_TABLE | BY_HAND)
    assert sum(one.base_file is None for one in table.file_slices()) == 2
    return table


def files_of(table: hudi.Table, file_id: str) -> tuple[bool, int]:
    """Whether a file group has a base file, and how many logs it has."""
    [found] = [one for one in table.file_slices() if one.file_id == file_id]
    return found.base_file is not None, len(found.log_files)


@pytest.mark.parametrize("ordering", ["ts", None])
@pytest.mark.parametrize("index", INDEXES)
def test_groups_of_logs_alone(tmp_path: Path, index: str, ordering: str | None) -> None:
    """They are written into by any index, by logs; and again as any other after a compaction."""
    table = with_groups_of_logs_alone(tmp_path / "t", ordering_field=ordering)
    expected = values(table)
    assert {key for key in expected if key[0] == "a"} == {"a0", "a1", "a2"}
    options = options_of(index) | BY_HAND
    rows = [*of("A", "a0", "a2", "a3", "k0", "new"), *of("B", "k1")]
    done = table.upsert(rows, options=options)
    assert (done.updated, done.inserted) == (4, 2)
    expected |= {row["id"]: (row["city"], 9) for row in rows}
    assert values(table) == expected
    assert (files_of(table, "one-0"), files_of(table, "two-0")) == ((False, 2), (False, 3))
    assert table.validate(keys=True).is_valid
    assert table.upsert(of("A", "a1", v=5), options=options).updated == 1
    done = table.delete(of("A", "a0", "a2"), options=options)
    assert done.deleted == 2
    expected["a1"] = ("A", 5)
    expected = {key: found for key, found in expected.items() if key not in {"a0", "a2"}}
    assert values(table) == expected
    # of all rows of one group, of which none is left
    assert table.upsert(of("A", "a2", ts=6), options=options).inserted == 1
    expected["a2"] = ("A", 9)
    assert values(table) == expected
    table.compact()
    assert values(table) == expected
    assert table.upsert(of("A", "a1", "a2", v=7, ts=7), options=options).updated == 2
    assert values(table) == expected | {"a1": ("A", 7), "a2": ("A", 7)}
    assert table.validate(keys=True).is_valid


@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "GLOBAL_RECORD_LEVEL_INDEX"])
def test_rows_move_out_of_groups_of_logs_alone(tmp_path: Path, index: str) -> None:
    table = with_groups_of_logs_alone(tmp_path / "t")
    expected = values(table) | {"a0": ("B", 9)}
    options = options_of(index) | {"hoodie.record.index.update.partition.path": "true"}
    # a late row stays where the key is
    done = table.upsert([*of("B", "a0"), *of("B", "a1", ts=0)], options=options)
    assert values(table) == expected
    assert done.inserted == 1
    table.compact()
    assert values(table) == expected


def test_statements_on_groups_of_logs_alone(tmp_path: Path) -> None:
    table = with_groups_of_logs_alone(tmp_path / "t")
    assert table.update({"v": "v + 1"}, where="city = 'A'").updated == 6
    assert table.delete(where="id in ('a1', 'k1')").deleted == 2
    rows = pa.Table.from_pylist([*of("A", "a0", "newer"), *of("B", "k3")], table.schema)
    merge = table.merge(rows, "id").when_matched_update_all().when_not_matched_insert_all()
    done = merge.execute()
    assert (done.updated, done.inserted) == (2, 1)
    found = values(table)
    assert {key: found[key] for key in ("a0", "a2", "k0", "newer", "k3")} == {
        "a0": ("A", 9),
        "a2": ("A", 2),
        "k0": ("A", 1),
        "newer": ("A", 9),
        "k3": ("B", 9),
    }
    assert {"a1", "a3", "k1"}.isdisjoint(found)
    with pytest.raises(DuplicateRecordKeyError):
        table.insert(of("A", "a0"), options={"hoodie.datasource.insert.dup.policy": "fail"})
    # a slice is rewritten where a log cannot say the outcome: an ordering value that is set back
    assert table.update({"ts": "0", "v": "3"}, where="id = 'a2'").updated == 1
    assert files_of(table, "two-0") == (True, 0)
    assert values(table) == found | {"a2": ("A", 3)}
    client = table._session.opened.client
    [stat] = client.active.read_commit(client.timeline().completed_writes()[-1]).stats
    assert (stat.prev_commit, stat.prev_base_file) == ("null", None)


def test_a_write_of_groups_of_logs_alone_is_planned(tmp_path: Path) -> None:
    table = with_groups_of_logs_alone(tmp_path / "t")
    plan = table.plan("upsert", of("A", "a0", "a2", "new"))
    assert (plan.updated, plan.inserted) == (2, 1)
    done = table.upsert(of("A", "a0", "a2", "new"))
    assert (done.updated, done.inserted) == (2, 1)


def test_a_clean_of_groups_of_logs_alone_ends_travel(tmp_path: Path) -> None:
    table = with_groups_of_logs_alone(tmp_path / "t")
    past = table.timeline.completed_writes()[-1].requested_time
    before = table.to_arrow(as_of=past)
    table.compact()
    assert table.to_arrow(as_of=past).sort_by("id") == before.sort_by("id")
    table.upsert(of("B", "k1"))
    versions = {
        "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
        "hoodie.cleaner.fileversions.retained": "1",
    }
    assert any(".log." in path for path in table.clean(options=versions).files)
    with pytest.raises(HistoryExpiredError):
        table.to_arrow(as_of=past)


BUCKETS: Final = {
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
    **BY_HAND,
}


@pytest.mark.parametrize("ordering", ["ts", None])
def test_buckets_that_logs_began(tmp_path: Path, ordering: str | None) -> None:
    """As Hudi writes them: the first rows of a bucket go into a log."""
    rows = pa.table({"id": ["k0"], "city": ["A"], "v": [0], "ts": [1]})
    table = new_table(
        tmp_path / "t",
        rows,
        {**NO_METADATA_TABLE, **BUCKETS},
        table_type="MERGE_ON_READ",
        ordering_field=ordering,
    )
    [into] = table.file_slices()
    own = bucket_of_file(into.file_id)
    keys = [f"a{number}" for number in range(8)]
    numbers = bucket_numbers(pa.array([*keys]), Buckets(2, ("id",))).tolist()
    others = [key for key, number in zip(keys, numbers, strict=True) if number != own]
    assert len(others) > 2
    group = FileGroupId(
        into.partition_path, bucket_file_id(into.base_instant, into.partition_path, 1 - (own or 0))
    )
    time = later(into.base_instant, 1000)
    block = data_block(time, stored(of("A", *others[:2], v=1), time), list(ROWS.schema))
    put_log(table, FileSlice(group, time, None, ()), time, block, inserts=2)
    table = hudi.Table.open(tmp_path / "t", NO_METADATA_TABLE)
    expected = values(table)
    wrong = BUCKETS | {"hoodie.bucket.index.num.buckets": "3"}
    with pytest.raises((UnsupportedTableError, OptionConflictError)):
        table.upsert(of("A", others[0]), options=wrong)
    done = table.upsert(of("A", "k0", others[0], others[2]), options=BUCKETS)
    assert (done.updated, done.inserted) == (2, 1)
    expected |= dict.fromkeys(("k0", others[0], others[2]), ("A", 9))
    assert values(table) == expected
    assert files_of(table, group.file_id) == (False, 2)
    assert table.delete(of("A", others[1]), options=BUCKETS).deleted == 1
    del expected[others[1]]
    assert values(table) == expected
    table.upsert(of("A", others[1], ts=6), options=BUCKETS)
    assert values(table) == expected | {others[1]: ("A", 9)}
    table.compact()
    assert values(table) == expected | {others[1]: ("A", 9)}
    assert len(table.file_slices()) == 2


def test_notes_of_a_commit_keep_its_logs_with_new_keys(tmp_path: Path) -> None:
    """And sizes of base files alone, by which new ones are planned."""
    table = with_keys_in_logs(tmp_path / "t")
    client = table._session.opened.client
    kept = [client.active.read_notes(one) for one in client.timeline().completed_writes()]
    logs = [[stat.num_inserts for stat in one.stats if stat.log_files] for one in kept]
    assert logs == [[], [2], [1], []]
    metadata = CommitMetadata(
        {
            "A": (
                WriteStat(total_write_bytes=100, num_writes=10),
                WriteStat(total_write_bytes=7, num_writes=7, num_inserts=0, log_files=("l",)),
            )
        }
    )
    [write, *_] = client.timeline().completed_writes()
    client.active.note(write, metadata)
    [summary] = client.active.read_notes(write).stats
    assert (summary.total_write_bytes, summary.num_writes) == (100, 10)


def test_a_key_that_is_spelled_like_that_of_a_logged_row(tmp_path: Path) -> None:
    """Rows of logs are compared by the columns of their keys, as those of base files are."""
    schema = pa.schema([("p", pa.string()), ("q", pa.string()), ("v", pa.int64())])
    first = pa.table({"p": ["x"], "q": ["y"], "v": [0]}, schema)
    table = new_table(
        tmp_path / "t",
        first,
        NO_METADATA_TABLE,
        record_key=["p", "q"],
        table_type="MERGE_ON_READ",
    )
    [into] = table.file_slices()
    time = later(into.base_instant, 1000)
    logged = {"p": "1,q:2", "q": "3", "v": 1}
    meta = {
        "_hoodie_commit_time": time,
        "_hoodie_commit_seqno": f"{time}_0_0",
        "_hoodie_record_key": "p:1,q:2,q:3",
        "_hoodie_partition_path": "",
        "_hoodie_file_name": "f",
    }
    put_log(table, into, time, data_block(time, [meta | logged], list(schema)), inserts=1)
    table = hudi.Table.open(tmp_path / "t", NO_METADATA_TABLE)
    assert table.upsert([logged | {"v": 2}, {"p": "x", "q": "y", "v": 3}]).updated == 2
    with pytest.raises(KeyCollisionError):
        table.upsert([{"p": "1", "q": "2,q:3", "v": 4}])
    assert sorted(table.to_arrow(["v"])["v"].to_pylist()) == [2, 3]
