"""A record index that is kept by partitions: its file groups, what it finds, and what it costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

import hudi_core as hudi
from hudi_core.errors import StorageError
from hudi_core.index.record_index import ShardLookup
from hudi_core.metadata.partition_types import GroupPlace, group_place, shard_file_id
from hudi_core.model.commit import CommitMetadata
from hudi_core.model.files import FileId, PartitionPath
from hudi_core.storage.posix import PosixStorage
from hudi_core.timeline.serde import decode_commit, encode
from hudi_core.txn.transaction import Transaction
from tests.calls import calls_of
from tests.property.test_partitioned_index_model import indexed, stored
from tests.unit.partitioned_index_tables import MIN, ON, check, create, group_ids, rows

# --- file groups ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "spelled"),
    [
        ("rome", "record-index-rome-0003-0"),
        ("2026/11/21", "record-index-2026%2F11%2F21-0003-0"),
        ("dt=2026-11-21", "record-index-dt%3D2026%2D11%2D21-0003-0"),
        ("a_b", "record-index-a%5Fb-0003-0"),
        ("1.5", "record-index-1.5-0003-0"),
        ("São Paulo", "record-index-São Paulo-0003-0"),
        ("a%2Fb", "record-index-a%252Fb-0003-0"),
        ("", "record-index--0003-0"),
    ],
)
def test_file_groups_are_named_after_their_partition(path: str, spelled: str) -> None:
    assert shard_file_id("record_index", 3, PartitionPath(path)) == spelled
    assert group_place("record_index", FileId(spelled)) == GroupPlace(PartitionPath(path), 3)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), st.integers(0, 9999))
def test_no_two_partitions_share_a_file_group(path: str, shard: int) -> None:
    spelled = shard_file_id("record_index", shard, PartitionPath(path))
    assert group_place("record_index", spelled) == GroupPlace(PartitionPath(path), shard)
    assert spelled.count("-") == 4
    assert not set(spelled) & {"/", "_", "\0"}
    assert unquote(spelled) == f"record-index-{path}-{shard:04d}-0"


def test_file_groups_of_the_whole_table_belong_to_no_partition() -> None:
    whole = shard_file_id("record_index", 12)
    assert group_place("record_index", whole) == GroupPlace(None, 12)
    assert group_place("column_stats", FileId("record-index-a-0001-0")) is None
    assert group_place("column_stats", FileId("col-stats-0001-0")) == GroupPlace(None, 1)


# --- writes ---------------------------------------------------------------------------------------


def test_a_key_is_unique_in_its_partition(tmp_path: Path) -> None:
    table = create(tmp_path, {**ON, MIN: "2"})
    table.upsert(rows([1, 2], "rome"))
    table.upsert(rows([2, 3], "a/b-c"))
    result = table.upsert(pa.concat_tables([rows([2, 4], "rome", 2), rows([3], "a/b-c", 2)]))
    assert (result.inserted, result.updated) == (1, 2)
    assert sorted(table.to_arrow().select(["id", "city", "value"]).to_pylist(), key=str) == sorted(
        [
            {"id": f"k00000{key}", "city": city, "value": value}
            for key, city, value in [
                *((1, "rome", 1), (2, "rome", 2), (4, "rome", 2)),
                *((2, "a/b-c", 1), (3, "a/b-c", 2)),
            ]
        ],
        key=str,
    )
    assert group_ids(table) == {
        f"record-index-{path}-{shard:04d}-0" for path in ("rome", "a%2Fb%2Dc") for shard in (0, 1)
    }
    check(table, 2)
    table.delete(rows([2], "rome"))
    table.delete_partitions(["a/b-c"])
    check(table, 2)
    assert {key for _, key in indexed(table, 2)} == {"k000001", "k000004"}
    # what was deleted comes back to the file groups that are there
    table.upsert(rows([9], "a/b-c"))
    check(table, 2)


def test_a_table_without_partitions_has_one_set_of_file_groups(tmp_path: Path) -> None:
    table = create(tmp_path, ON, None)
    assert group_ids_or_none(table) == set()
    table.upsert(rows(range(5), "rome"))
    result = table.upsert(rows(range(3, 8), "oslo", 2))
    assert (result.inserted, result.updated) == (3, 2)
    assert group_ids(table) == {"record-index--0000-0"}
    check(table)


def group_ids_or_none(table: hudi.Table) -> set[str]:
    folder = Path(table.path, ".hoodie/metadata/record_index")
    return set() if not folder.exists() else group_ids(table)


def test_an_index_of_an_empty_table_has_no_file_group(tmp_path: Path) -> None:
    table = create(tmp_path, ON)
    table.upsert(rows([], "rome"))
    assert group_ids(table) == set()
    assert table.metadata("record_index").num_rows == 0
    table.upsert(rows(range(5), "rome"))
    check(table)


def test_a_lookup_asks_the_partitions_of_the_rows_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(tmp_path, {**ON, MIN: "2"})
    for city in ("rome", "oslo", "lima"):
        table.bulk_insert(rows(range(20), city))
    found = calls_of(monkeypatch, ShardLookup, "find")
    result = table.upsert(
        pa.concat_tables([rows([1, 90], "oslo", 2), rows([1, 2], "lima"), rows([1], "new")])
    )
    assert (result.inserted, result.updated) == (2, 3)
    asked = [[str(one.slice.file_id) for one in lookup.shards.values()] for lookup, _ in found]
    assert sorted(map(sorted, asked)) == [
        [f"record-index-{city}-000{shard}-0" for shard in (0, 1)] for city in ("lima", "oslo")
    ]


@pytest.mark.parametrize("late", [False, True])
def test_a_write_that_fails_leaves_no_key_and_no_file_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    table = create(tmp_path, {**ON, MIN: "2"})
    table.upsert(rows(range(4), "rome"))

    def failing(*_: Any) -> Any:
        raise StorageError("the store failed", "Try again.")

    monkeypatch.setattr(Transaction, "_complete" if late else "_record", failing)
    with pytest.raises(StorageError):
        table.upsert(rows(range(4), "oslo"))
    monkeypatch.undo()
    table.upsert(rows(range(2), "rome", 2))
    check(table, 2)
    result = table.upsert(rows(range(4), "oslo", 2))
    assert result.inserted == 4
    check(table, 2)


def test_file_groups_outlive_the_write_that_made_them(tmp_path: Path) -> None:
    """Of two writers that bring a partition the first makes its file groups, and is undone."""
    both = {
        **ON,
        "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
        "hoodie.write.lock.provider": "in_process",
    }
    table = create(tmp_path, {**both, MIN: "3"})
    table.upsert(rows(range(4), "rome"))
    begun: list[Transaction] = []

    def forsaken(transaction: Transaction) -> None:
        begun.append(transaction)

    put = PosixStorage.put_if_absent

    def dying(self: PosixStorage, path: str, data: bytes) -> None:
        if path.startswith(".hoodie/timeline/") and path.endswith(".commit"):
            raise KeyboardInterrupt
        put(self, path, data)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(PosixStorage, "put_if_absent", dying)
        patched.setattr(Transaction, "abort", forsaken)
        with pytest.raises(KeyboardInterrupt):
            table.upsert(rows(range(10), "oslo"))
    # the one shard that has the key, and the two that have none: all are there without the first
    other = hudi.Table.open(table.path, options={**both, MIN: "1"})
    other.upsert(rows([7], "oslo", 2))
    begun[0].heartbeat.stop()
    other.upsert(rows([7, 8], "oslo", 3))
    assert {one for one in group_ids(table) if "oslo" in one} == {
        f"record-index-oslo-{shard:04d}-0" for shard in range(3)
    }
    check(table, 3)
    assert table.upsert(rows(range(10), "oslo", 4)).updated == 2
    check(table, 3)


def test_names_that_other_writers_gave_are_kept(tmp_path: Path) -> None:
    """What they escape more than we do means the same partition."""
    table = create(tmp_path, ON)
    table.upsert(rows(range(4), "a.b"))
    folder = Path(table.path, ".hoodie/metadata/record_index")
    (log,) = folder.glob(".record-index-a.b-*")
    renamed = log.name.replace("a.b", "a%2Eb")
    log.rename(folder / renamed)
    timeline = Path(table.path, ".hoodie/metadata/.hoodie/timeline")
    for instant in timeline.glob("*.deltacommit"):
        data = instant.read_bytes()
        if log.name.encode() in data:
            # names one letter longer would need another length: the instant tells no files then
            _without_index_files(instant)
    table.upsert(rows(range(2, 6), "a.b", 2))
    assert group_ids(table) == {"record-index-a%2Eb-0000-0"}
    assert indexed(table, 1) == stored(table)


def _without_index_files(path: Path) -> None:
    body = decode_commit(path.read_bytes(), str(path))
    assert isinstance(body, CommitMetadata)
    stats = {
        name: found
        for name, found in body.partition_to_write_stats.items()
        if name != "record_index"
    }
    path.write_bytes(
        encode(
            CommitMetadata(
                stats, extra_metadata=body.extra_metadata, operation_type=body.operation_type
            )
        )
    )
