"""A record index that is kept by partitions."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import unquote

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

import hudi_core as hudi
from hudi_core.errors import CorruptMetadataError, InvalidOptionError
from hudi_core.index.record_index import ShardLookup
from hudi_core.metadata.index_definitions import read_definitions
from hudi_core.metadata.log import completeness
from hudi_core.metadata.maintenance.validator import validate
from hudi_core.metadata.partition_types import GroupPlace, group_place, shard_file_id
from hudi_core.metadata.partitions.names import Check
from hudi_core.model.commit import CommitMetadata
from hudi_core.model.files import FileId, PartitionPath
from hudi_core.services.metadata import look_up_keys
from hudi_core.storage.posix import PosixStorage
from hudi_core.timeline.serde import decode_commit, encode
from hudi_core.txn.transaction import Transaction
from tests.calls import calls_of
from tests.cli_runs import run_json
from tests.crash.counting_storage import KILLS, CountedSteps, Fault, in_fork
from tests.operators import operator
from tests.property.test_partitioned_index_model import indexed, stored
from tests.samples import sampled
from tests.unit.partitioned_index_tables import (
    GLOBAL,
    MIN,
    ON,
    PLAIN,
    check,
    create,
    group_ids,
    keyed,
)


# --- file groups
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


# --- writes
def test_a_table_without_partitions_has_one_set_of_file_groups(tmp_path: Path) -> None:
    table = create(tmp_path, ON, None)
    assert group_ids_or_none(table) == set()
    table.upsert(keyed(range(5), "rome"))
    result = table.upsert(keyed(range(3, 8), "oslo", 2))
    assert (result.inserted, result.updated) == (3, 2)
    assert group_ids(table) == {"record-index--0000-0"}
    check(table)


def group_ids_or_none(table: hudi.Table) -> set[str]:
    folder = Path(table.path, ".hoodie/metadata/record_index")
    return set() if not folder.exists() else group_ids(table)


def test_an_index_of_an_empty_table_has_no_file_group(tmp_path: Path) -> None:
    table = create(tmp_path, ON)
    table.upsert(keyed([], "rome"))
    assert group_ids(table) == set()
    assert table.metadata("record_index").num_rows == 0
    table.upsert(keyed(range(5), "rome"))
    check(table)


def test_a_lookup_asks_the_partitions_of_the_rows_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(tmp_path, {**ON, MIN: "2"})
    for city in ("rome", "oslo", "lima"):
        table.bulk_insert(keyed(range(20), city))
    found = calls_of(monkeypatch, ShardLookup, "find")
    result = table.upsert(
        pa.concat_tables([keyed([1, 90], "oslo", 2), keyed([1, 2], "lima"), keyed([1], "new")])
    )
    assert (result.inserted, result.updated) == (2, 3)
    asked = [[str(one.slice.file_id) for one in lookup.shards.values()] for lookup, _ in found]
    assert sorted(map(sorted, asked)) == [
        [f"record-index-{city}-000{shard}-0" for shard in (0, 1)] for city in ("lima", "oslo")
    ]


def test_file_groups_outlive_the_write_that_made_them(tmp_path: Path) -> None:
    """Of two writers that bring a partition the first makes its file groups, and is undone."""
    both = {
        **ON,
        "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
        "hoodie.write.lock.provider": "in_process",
    }
    table = create(tmp_path, {**both, MIN: "3"})
    table.upsert(keyed(range(4), "rome"))
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
            table.upsert(keyed(range(10), "oslo"))
    # the one shard that has the key, and the two that have none: all are there without the first
    other = hudi.Table.open(table.path, options={**both, MIN: "1"})
    other.upsert(keyed([7], "oslo", 2))
    begun[0].heartbeat.stop()
    other.upsert(keyed([7, 8], "oslo", 3))
    assert {one for one in group_ids(table) if "oslo" in one} == {
        f"record-index-oslo-{shard:04d}-0" for shard in range(3)
    }
    check(table, 3)
    assert table.upsert(keyed(range(10), "oslo", 4)).updated == 2
    check(table, 3)


def test_names_that_other_writers_gave_are_kept(tmp_path: Path) -> None:
    """What they escape more than we do means the same partition."""
    table = create(tmp_path, ON)
    table.upsert(keyed(range(4), "a.b"))
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
    table.upsert(keyed(range(2, 6), "a.b", 2))
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


# --- A record index that is kept by partitions: built, dropped, damaged, asked by tools, cut
# --- building and dropping
def test_it_is_built_and_dropped_like_any_partition(tmp_path: Path) -> None:
    table = create(tmp_path, {**PLAIN, "hoodie.metadata.enable": "true"})
    for city in ("rome", "a/b", "oslo"):
        table.insert(keyed(range(6), city))
    table.delete_partitions(["oslo"])
    operator(table.path, ON).index("record_index")
    client = hudi.Table.open(table.path)._session.opened.client
    definition = read_definitions(client.storage, client.config).raw["record_index"]
    watched = {"hudi.core.repeated-keys": "false"}
    assert definition["indexOptions"] == {"isPartitioned": "true", **watched}
    assert definition["indexName"] == definition["indexType"] == "record_index"
    # those of a partition without rows are there, too: other engines make those of new ones only
    assert group_ids(table) == {f"record-index-{path}-0000-0" for path in ("rome", "a%2Fb", "oslo")}
    check(table)
    table = hudi.Table.open(table.path, options=ON)
    assert table.upsert(keyed(range(3, 9), "a/b", 2)).updated == 3
    check(table)
    operator(table.path, PLAIN).drop("record_index")
    assert not Path(table.path, ".hoodie/metadata/record_index").exists()
    client = hudi.Table.open(table.path)._session.opened.client
    assert "record_index" not in read_definitions(client.storage, client.config).raw
    # the next write that asks for it builds it
    table.upsert(keyed([1], "rome", 3))
    check(table)


def test_the_number_of_file_groups_follows_the_rows_of_a_partition(tmp_path: Path) -> None:
    table = create(tmp_path, {**PLAIN, "hoodie.metadata.enable": "false"})
    table.insert(keyed(range(100), "big"))
    table.insert(keyed(range(2), "small"))
    options = {
        **ON,
        "hoodie.metadata.record.index.max.filegroup.size": "2000",
        "hoodie.metadata.record.level.index.max.filegroup.count": "4",
    }
    operator(table.path, options).create()
    found = sorted(group_ids(table))
    assert found == [
        *(f"record-index-big-{number:04d}-0" for number in range(4)),
        "record-index-small-0000-0",
    ]
    table = hudi.Table.open(table.path, options=ON)
    assert table.upsert(keyed(range(50, 150), "big", 2)).updated == 50


@pytest.mark.parametrize(
    ("have", "index", "refusal"),
    [
        (GLOBAL, "RECORD_LEVEL_INDEX", "of the whole table, and this needs one that is kept by"),
        (ON, "RECORD_INDEX", "kept by partitions, and this needs one that is of the whole"),
    ],
)
def test_the_other_kind_of_record_index_does_not_do(
    tmp_path: Path, have: dict[str, str], index: str, refusal: str
) -> None:
    table = create(tmp_path, have)
    table.insert(keyed(range(4), "rome"))
    table = hudi.Table.open(table.path, options={**PLAIN, "hoodie.index.type": index})
    for upsert in (partial(table.plan, "upsert"), table.upsert):
        with pytest.raises(InvalidOptionError, match=refusal):
            upsert(keyed([1], "rome"))
    # what reads the files does, and keeps the index
    simple = hudi.Table.open(table.path, options={**PLAIN, "hoodie.index.type": "SIMPLE"})
    assert simple.upsert(keyed([1, 9], "rome", 2)).updated == 1
    assert validate(hudi.Table.open(table.path)._session.opened.client).is_valid


@pytest.mark.parametrize(("have", "asked"), [(GLOBAL, ON), (ON, GLOBAL)])
def test_asking_for_the_other_kind_names_both(
    tmp_path: Path, have: dict[str, str], asked: dict[str, str]
) -> None:
    table = create(tmp_path, have)
    table.insert(keyed(range(4), "rome"))
    with pytest.raises(InvalidOptionError, match="hudi metadata drop"):
        hudi.Table.open(table.path, options=asked).insert(keyed([9], "rome"))
    assert table.to_arrow().num_rows == 4


def test_without_the_index_a_write_is_refused(tmp_path: Path) -> None:
    table = create(tmp_path, {**PLAIN, "hoodie.index.type": "RECORD_LEVEL_INDEX"})
    with pytest.raises(InvalidOptionError, match="has no record index") as caught:
        table.upsert(keyed([1], "rome"))
    assert "hoodie.metadata.record.level.index.enable=true" in str(caught.value)
    assert not list(Path(table.path).rglob("*.parquet"))


# --- damage and tools
def test_a_lost_file_group_is_named(tmp_path: Path) -> None:
    table = create(tmp_path, {**ON, MIN: "2"})
    table.upsert(keyed(range(9), "rome"))
    table.upsert(keyed(range(9), "oslo"))
    for lost in ("record-index-rome-0000-0", "record-index-oslo-0001-0"):
        (log,) = Path(table.path, ".hoodie/metadata/record_index").glob(f".{lost}*")
        content = log.read_bytes()
        log.unlink()
        with pytest.raises(CorruptMetadataError, match="missing"):
            table.upsert(keyed([1], "rome", 2))
        log.write_bytes(content)
    check(table, 2)


def test_an_index_without_rows_is_no_damage_to_a_compaction(
    tmp_path: Path, own_messages: Callable[[], list[str]]
) -> None:
    table = create(tmp_path, {**ON, "hoodie.metadata.compact.max.delta.commits": "1"})
    table.upsert(keyed([], "rome"))
    folder = Path(table.path, ".hoodie/metadata/.hoodie/timeline")
    assert [*folder.glob("*.commit")]
    assert own_messages() == []
    table.upsert(keyed([1], "rome"))
    check(table)


@pytest.mark.parametrize("index", ["RECORD_LEVEL_INDEX", "SIMPLE"])
def test_an_index_that_lost_all_is_not_taken_for_an_empty_one(tmp_path: Path, index: str) -> None:
    table = create(tmp_path, ON)
    folder = Path(table.path, ".hoodie/metadata/record_index")
    for city in ("rome", "oslo"):
        table.upsert(keyed(range(3), city))
    for file in folder.glob("*record-index-*"):
        file.unlink()
    with pytest.raises(
        CorruptMetadataError, match=r"record-index-oslo.* is missing.*repair --metadata"
    ):
        hudi.Table.open(table.path, {**ON, "hoodie.index.type": index}).upsert(keyed([9], "rome"))
    with pytest.raises(CorruptMetadataError, match=r"record-index-oslo.* is missing"):
        look_up_keys(hudi.Table.open(table.path)._session.opened.client, ["k000001"])
    assert not [*folder.glob("*record-index-*")]
    assert table.to_arrow().num_rows == 6
    repaired = hudi.Table.open(table.path, ON)
    repaired.repair_metadata()
    repaired.upsert(keyed([9], "rome"))
    check(repaired)
    assert repaired.count() == 7


def test_an_index_built_anew_without_partitions_has_lost_nothing(tmp_path: Path) -> None:
    table = create(tmp_path, ON)
    tools = operator(table.path, ON)
    tools.drop("record_index")
    tools.index("record_index")
    assert group_ids(table) == set()
    hudi.Table.open(table.path, ON).upsert(keyed([1], "rome"))
    check(table)


def test_validation_tells_wrong_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # compressed, the two may differ in size, which would be noticed first
    monkeypatch.setattr(completeness, "_recorded", lambda *_: ())
    table = create(tmp_path, ON)
    table.upsert(keyed(range(3), "rome"))
    table.upsert(keyed(range(3), "oslo"))
    folder = Path(table.path, ".hoodie/metadata/record_index")
    (rome,), (oslo,) = folder.glob(".record-index-rome*"), folder.glob(".record-index-oslo*")
    # each has the keys of the other, under its own name
    other, own = rome.read_bytes(), oslo.read_bytes()
    instants = [one.name.split("_")[1][:17].encode() for one in (rome, oslo)]
    rome.write_bytes(own.replace(instants[1], instants[0]))
    oslo.write_bytes(other.replace(instants[0], instants[1]))
    report = validate(hudi.Table.open(table.path)._session.opened.client)
    assert len(report.findings) == 6
    assert all("in file group" in str(one) for one in report.findings)
    counted = validate(
        hudi.Table.open(table.path)._session.opened.client, [Check.RECORD_INDEX_COUNT]
    )
    assert counted.is_valid
    assert counted.checked == {"record_index": 6}


def test_keys_are_looked_up_in_one_partition_or_in_all(tmp_path: Path) -> None:
    table = create(tmp_path, ON)
    table.upsert(keyed([1, 2], "rome"))
    table.upsert(keyed([2, 3], "oslo"))
    client = hudi.Table.open(table.path)._session.opened.client
    found = look_up_keys(client, ["k000002", "k000003", "none"])
    assert {key: sorted(one.partition_name for one in some) for key, some in found.items()} == {
        "k000002": ["oslo", "rome"],
        "k000003": ["oslo"],
    }
    assert [*look_up_keys(client, ["k000002", "k000003"], "rome")] == ["k000002"]
    keys = ("--record-key", "k000002", "--record-key", "none", "--partition", "rome")
    told = run_json("metadata", "lookup-record-index", table.path, *keys)
    assert [one["partition"] for one in told["locations"]] == ["rome", None]


def test_a_secondary_index_beside_it_is_kept_and_not_relied_on(tmp_path: Path) -> None:
    table = create(tmp_path, ON)
    table.upsert(keyed(range(4), "rome"))
    operator(table.path, ON).index("secondary_index_value", "value")
    table.upsert(keyed(range(2, 8), "rome", 5))
    table.upsert(keyed(range(3), "oslo", 5))
    check(table)
    assert table.to_arrow(filter=[("value", "=", 5)]).num_rows == 9


# --- crashes
def bring_a_partition(path: str, fault: Fault | None = None) -> int:
    """Write to a new partition and to an old one; return how many steps that takes."""
    table = hudi.Table.open(path, options={**ON, MIN: "2"})
    with CountedSteps(fault) as steps:
        table.upsert(pa.concat_tables([keyed(range(6), "oslo", 2), keyed([3, 9], "rome", 2)]))
    return len(steps.names)


@pytest.mark.slow
def test_a_writer_may_die_while_it_brings_a_partition(tmp_path: Path) -> None:
    template = create(tmp_path / "template", {**ON, MIN: "2"})
    template.upsert(keyed(range(4), "rome"))
    shutil.copytree(template.path, tmp_path / "whole")
    total = bring_a_partition(str(tmp_path / "whole"))
    assert total > 20
    killed = 0
    steps = sampled(range(1, total + 1), 7)
    for number, at in enumerate(steps):
        path = str(tmp_path / f"{at}")
        shutil.copytree(template.path, path)
        outcome = in_fork(bring_a_partition, path, Fault(at, KILLS[number % len(KILLS)]))
        killed += outcome.is_killed
        table = hudi.Table.open(path, options={**ON, MIN: "2"})
        before = len(stored(table))
        assert before in (4, 11)  # none of it, or all
        check(table, 2)
        # with another number of file groups than those that are left may have been made for
        result = hudi.Table.open(path, options={**ON, MIN: "1"}).upsert(keyed(range(5), "oslo", 3))
        assert result.updated == (5 if before == 11 else 0)
        groups = len([one for one in group_ids(table) if "oslo" in one])
        assert groups == (2 if before == 11 else 1)
        shutil.rmtree(path)
    assert killed > len(steps) // 2
