"""Filters on the record key: the record index names the files, or nothing is left out by it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_core as hudi
from hudi_core.config.write import WriteConfig
from hudi_core.errors import CorruptMetadataError, InvalidOptionError
from hudi_core.metadata import writer
from hudi_core.metadata.index_definitions import put_definitions, read_definitions
from hudi_core.metadata.partitions.key_changes import KeyChanges
from hudi_core.metadata.partitions.record_index import RecordIndexPartition
from hudi_core.metadata.records import PartitionChange
from hudi_core.metadata.unique_keys import has_repeated_keys, has_unique_keys, without_note
from hudi_core.services.metadata import MetadataOperator
from hudi_core.txn.table_lock import table_lock

SCHEMA = pa.schema(
    [("id", pa.string()), ("n", pa.int32()), ("city", pa.string()), ("ts", pa.int64())]
)
ROUTES = {
    "whole": {
        "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX",
        "hoodie.record.index.update.partition.path": "true",
        "hoodie.metadata.global.record.level.index.enable": "true",
        "hoodie.metadata.global.record.level.index.min.filegroup.count": "3",
    },
    "by partition": {
        "hoodie.index.type": "RECORD_LEVEL_INDEX",
        "hoodie.metadata.record.level.index.enable": "true",
        "hoodie.metadata.record.level.index.min.filegroup.count": "2",
    },
}
# what is left out is left out by the index alone
PLAIN = {"hoodie.fs.fsync": "false", "hoodie.metadata.index.column.stats.enable": "false"}
OFF = {"hoodie.metadata.enable": "false"}
CITIES = 6


def rows(numbers: Sequence[int], ts: int = 1, shift: int = 0) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{number}" for number in numbers],
            "n": list(numbers),
            "city": [f"c{(number + shift) % CITIES}" for number in numbers],
            "ts": [ts] * len(numbers),
        },
        SCHEMA,
    )


def create(
    path: Path,
    kind: str = "whole",
    record_key: str | list[str] = "id",
    partition_by: str | None = "city",
    **options: str,
) -> hudi.Table:
    return hudi.Table.create(
        str(path / "t"),
        SCHEMA,
        name="t",
        record_key=record_key,
        partition_by=partition_by,
        ordering_field="ts",
        options={**PLAIN, **ROUTES[kind], **options},
    )


def planned(table: hudi.Table, row_filter: Any, **options: Any) -> list[str]:
    """Partitions of the files that a read opens."""
    return sorted(one.partition_path for one in table.file_slices(filter=row_filter, **options))


def found(table: hudi.Table, row_filter: Any, **options: Any) -> list[tuple[Any, ...]]:
    some = table.to_arrow(filter=row_filter, **options).select(SCHEMA.names).to_pylist()
    return sorted(tuple(row.values()) for row in some)


def answers_are_equal(table: hudi.Table, row_filter: Any) -> None:
    without = hudi.Table.open(table.path, options=OFF)
    assert found(table, row_filter) == found(without, row_filter)


@pytest.mark.parametrize("kind", list(ROUTES))
@pytest.mark.parametrize("format_", ["native", "iceberg", "delta"])
def test_only_files_of_the_keys_are_planned(tmp_path: Path, kind: str, format_: str) -> None:
    table = create(tmp_path, kind, **{"hoodie.table.format": format_})
    table.upsert(rows(range(24)))
    table.upsert(rows([3, 9], 2))
    key, ts, meta = pc.field("id"), pc.field("ts"), pc.field("_hoodie_record_key")
    for wanted, partitions in (
        (key == "k3", ["c3"]),
        (meta == "k3", ["c3"]),
        (key.isin(["k3", "k10", "none"]), ["c3", "c4"]),
        ((key == "k3") & (ts == 2), ["c3"]),
        ((key == "k3") | (key == "k5"), ["c3", "c5"]),
        ((key == "k3") & ((key == "k3") | (ts == 1)), ["c3"]),
        (key.isin(["k3", "k4"]) & key.isin(["k4", "k5"]), ["c4"]),
        ((key == "k3") & (pc.field("city") == "c4"), []),
        (key == "none", []),
    ):
        assert planned(table, wanted) == partitions, wanted
        answers_are_equal(table, wanted)
    everything = [f"c{number}" for number in range(CITIES)]
    for wanted in (key != "k3", key > "k3", (key == "k3") | (ts == 2), ~(key == "k3"), ts == 2):
        if format_ == "native":
            assert planned(table, wanted) == everything
        answers_are_equal(table, wanted)
    assert [row[0] for row in found(table, key == "k3")] == ["k3"]
    assert table.count(key == "k3") == 1
    assert table.scan(filter=[("id", "in", ["k3", "k4"])]).count_rows() == 2


@pytest.mark.parametrize(
    ("record_key", "wanted", "partitions"),
    [
        (["id", "n"], [("id", "=", "k3"), ("n", "=", 3)], ["c3"]),
        (["id", "n"], [("id", "in", ["k3", "k4"]), ("n", "in", [3, 4])], ["c3", "c4"]),
        (["id", "n"], [("_hoodie_record_key", "=", "id:k3,n:3")], ["c3"]),
        (["id", "n"], [("id", "=", "k3"), ("n", "=", 4)], []),
        # half a key tells nothing
        (["id", "n"], [("id", "=", "k3")], [f"c{number}" for number in range(CITIES)]),
        ("n", [("n", "=", 3)], ["c3"]),
        ("n", [("n", "=", 77)], []),
        # numbers with a point are spelled in several ways, which are equal
        ("ts", [("ts", "=", 1)], ["c0"]),
    ],
)
def test_keys_are_made_as_the_table_makes_them(
    tmp_path: Path, record_key: str | list[str], wanted: Any, partitions: list[str]
) -> None:
    table = create(tmp_path, record_key=record_key)
    table.upsert(rows(range(24)) if record_key != "ts" else rows([0]))
    assert planned(table, wanted) == partitions
    answers_are_equal(table, wanted)


@pytest.mark.parametrize("named", ["true", "false"])
def test_both_forms_of_a_complex_key_of_one_field_are_asked_for(tmp_path: Path, named: str) -> None:
    table = create(
        tmp_path,
        **{
            "hoodie.table.keygenerator.type": "COMPLEX",
            "hoodie.write.complex.keygen.new.encoding": named,
        },
    )
    table.upsert(rows(range(24)))
    keys = {key[:3] for key in table.to_arrow(["_hoodie_record_key"]).column(0).to_pylist()}
    assert ("id:" in keys) is (named == "false")
    assert planned(table, [("id", "=", "k3")]) == ["c3"]
    answers_are_equal(table, [("id", "=", "k3")])


def test_an_empty_value_is_no_key_of_its_own(tmp_path: Path) -> None:
    table = create(tmp_path, record_key=["id", "city"])
    table.upsert(rows(range(6)))
    some = rows([7]).set_column(0, "id", pa.array([""]))
    table.upsert(some)
    assert planned(table, [("id", "=", ""), ("city", "=", "c1")]) == ["c1"]
    assert len(found(table, [("id", "=", ""), ("city", "=", "c1")])) == 1
    single = create(tmp_path / "single")
    single.upsert(rows(range(6)))
    assert found(single, [("id", "=", "")]) == []


def test_the_index_follows_rows(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.upsert(rows(range(24)))
    for change, key, partitions in (
        (lambda: table.upsert(rows([3], 2, 2)), "k3", ["c5"]),
        (lambda: table.delete(rows([3], 3, 2)), "k3", []),
        (lambda: table.delete_partitions(["c4"]), "k4", []),
        (lambda: table.insert_overwrite(rows([30])), "k6", []),
        (lambda: table.upsert(rows([6])), "k6", ["c0"]),
        (table.optimize, "k6", ["c0"]),
    ):
        change()
        assert planned(table, [("id", "=", key)]) == partitions
        answers_are_equal(table, [("id", "=", key)])


@pytest.mark.parametrize("kind", list(ROUTES))
@pytest.mark.parametrize("operation", ["insert", "bulk_insert"])
def test_keys_that_come_twice_are_all_found(tmp_path: Path, kind: str, operation: str) -> None:
    table = create(tmp_path, kind, **{"hoodie.parquet.small.file.limit": "0"})
    table.upsert(rows(range(24)))
    getattr(table, operation)(rows([100, 101]))
    assert planned(table, [("id", "=", "k3")]) == ["c3"]
    # in the same partition, in a file of its own
    getattr(table, operation)(rows([3], 5))
    assert len(found(table, [("id", "=", "k3")])) == 2
    answers_are_equal(table, [("id", "=", "k3")])
    # it stays like that until the index is built again, without repeated keys
    table.delete(rows([3], 6))
    assert len(planned(table, [("id", "=", "k5")])) > 1
    operator(table).drop("record_index")
    operator(table).index("record_index")
    table = hudi.Table.open(table.path)
    assert planned(table, [("id", "=", "k5")]) == ["c5"]


def test_a_key_in_two_partitions_is_one_of_each(tmp_path: Path) -> None:
    table = create(tmp_path, "by partition")
    table.upsert(rows(range(24)))
    table.insert(rows([3], 5, 1))
    assert planned(table, [("id", "=", "k3")]) == ["c3", "c4"]
    assert planned(table, [("id", "=", "k3"), ("city", "=", "c4")]) == ["c4"]
    answers_are_equal(table, [("id", "=", "k3")])


def test_repeated_rows_of_one_file_are_no_trouble(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.upsert(rows(range(24)))
    table.insert(rows([3], 5))  # goes to the small file that has it
    assert planned(table, [("id", "=", "k3")]) == ["c3"]
    assert len(found(table, [("id", "=", "k3")])) == 2


def test_a_partition_local_upsert_may_repeat_a_key(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.upsert(rows(range(24)))
    simple = {"hoodie.index.type": "SIMPLE"}
    table.upsert(rows([4], 2), options=simple)
    assert planned(table, [("id", "=", "k4")]) == ["c4"]
    table.upsert(rows([4], 3, 1), options=simple)
    assert [row[2] for row in found(table, [("id", "=", "k4")])] == ["c4", "c5"]


def operator(table: hudi.Table) -> MetadataOperator:
    opened = hudi.Table.open(table.path, options=ROUTES["whole"])._session.opened
    config = WriteConfig.from_options(opened.client.options)
    if read_definitions(opened.client.storage, opened.client.config).is_partitioned("record_index"):
        opened = hudi.Table.open(table.path, options=ROUTES["by partition"])._session.opened
        config = WriteConfig.from_options(opened.client.options)
    return MetadataOperator(opened, table_lock(opened, config), config)


def noted(table: hudi.Table) -> tuple[bool, bool]:
    client = hudi.Table.open(table.path)._session.opened.client
    known = read_definitions(client.storage, client.config)
    return has_unique_keys(known), has_repeated_keys(known)


def test_what_another_engine_wrote_is_not_relied_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(tmp_path, **{"hoodie.parquet.small.file.limit": "0"})
    table.upsert(rows(range(24)))
    with monkeypatch.context() as patch:
        # it keeps the index, and neither watches keys nor says so
        patch.setattr(writer, "WATCHED", "somebody's")
        patch.setattr(KeyChanges, "note_repeated", lambda _: None)
        table.clean()
        assert planned(table, [("id", "=", "k3")]) == ["c3"]
        table.insert(rows([3], 5, 1))
        assert noted(table) == (True, False)
        assert [row[2] for row in found(table, [("id", "=", "k3")])] == ["c3", "c4"]
    # the next write of ours knows nothing of it either, and says so
    table.upsert(rows([50]))
    assert noted(table) == (False, False)
    assert [row[2] for row in found(table, [("id", "=", "k3")])] == ["c3", "c4"]
    table.upsert(rows([51]))
    assert len(planned(table, [("id", "=", "k51")])) > 1


VIRTUAL = {
    "no meta columns": {"hoodie.populate.meta.fields": "false"},
    "no key column": {"hoodie.recordkey.virtual.enabled": "true"},
}


@pytest.mark.parametrize("kind", ROUTES)
@pytest.mark.parametrize("level", VIRTUAL)
def test_an_index_that_hudi_does_not_keep_is_not_relied_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: str, kind: str
) -> None:
    """Hudi-Spark indexes no rows of a table without meta columns; see `make interop`."""
    table = create(tmp_path, kind, **VIRTUAL[level])
    table.upsert(rows(range(24)))
    table.upsert(rows([3], 2))
    assert planned(table, [("id", "=", "k3")]) == ["c3"]
    with monkeypatch.context() as patch:
        patch.setattr(writer, "WATCHED", "somebody's")
        patch.setattr(KeyChanges, "note_repeated", lambda _: None)
        patch.setattr(RecordIndexPartition, "of_commit", lambda *_: PartitionChange())
        table.insert(rows([30], 5))
    assert [row[2] for row in found(table, [("id", "=", "k30")])] == ["c0"]

    def refused() -> None:
        before = hudi.Table.open(table.path).timeline.completed_writes()[-1]
        for write in (table.upsert, table.delete):
            with pytest.raises(InvalidOptionError, match="Hudi keeps no record index"):
                write(rows([30], 6))
        assert hudi.Table.open(table.path).timeline.completed_writes()[-1] == before

    refused()
    # other writes keep what there is of it, and it is no more relied on than before
    table.upsert(rows([31, 3], 6), options={"hoodie.index.type": "SIMPLE"})
    refused()
    assert [row[2] for row in found(table, [("id", "=", "k30")])] == ["c0"]
    metadata = operator(table)
    metadata.drop("record_index")
    metadata.index("record_index")
    table = hudi.Table.open(table.path, ROUTES[kind])
    table.upsert(rows([30], 7))
    assert [(row[0], row[3]) for row in found(table, [("id", "=", "k30")])] == [("k30", 7)]
    assert planned(table, [("id", "=", "k30")]) == ["c0"]


def test_an_index_that_nobody_watched_is_not_relied_on(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.upsert(rows(range(24)))
    client = table._session.opened.client
    put_definitions(client.storage, without_note(read_definitions(client.storage, client.config)))
    assert len(planned(table, [("id", "=", "k3")])) == CITIES


def test_past_states_are_read_without_it(tmp_path: Path) -> None:
    table = create(tmp_path)
    first = table.upsert(rows(range(24))).instant.requested_time
    table.upsert(rows([3], 2, 1))
    table.delete(rows([4]))
    assert [row[2] for row in found(table, [("id", "=", "k3")], as_of=first)] == ["c3"]
    assert [row[2] for row in found(table, [("id", "=", "k4")], as_of=first)] == ["c4"]
    assert [row[2] for row in found(table, [("id", "=", "k3")])] == ["c4"]


@pytest.mark.parametrize("format_", ["native", "iceberg", "delta"])
@pytest.mark.parametrize("change", ["move", "compact", "rebuild"])
def test_a_reader_sees_its_own_state(tmp_path: Path, change: str, format_: str) -> None:
    often = {"hoodie.metadata.compact.max.delta.commits": "1"} if change == "compact" else {}
    table = create(tmp_path, **{"hoodie.table.format": format_}, **often)
    table.upsert(rows(range(24)))
    dataset = table.scan()
    assert dataset.schema.names  # its timeline is loaded
    table.upsert(rows([3], 2, 1))
    table.delete(rows([4]))
    if change == "rebuild":
        operator(table).drop("record_index")
        operator(table).index("record_index")
    assert [row[2] for row in found(table, [("id", "=", "k3")])] == ["c4"]
    assert found(table, [("id", "=", "k4")]) == []
    for key, city in (("k3", "c3"), ("k4", "c4")):
        old = dataset.to_table(filter=pc.field("id") == key)
        assert old.column("city").to_pylist() == [city]


def test_what_was_built_last_of_all_serves(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.upsert(rows(range(24)))
    operator(table).delete(backup=False)
    operator(table).create()
    table = hudi.Table.open(table.path)
    assert planned(table, [("id", "=", "k3")]) == ["c3"]


def test_very_many_keys_are_not_looked_up(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.upsert(rows(range(24)))
    keys = [f"k{number}" for number in range(5, 10_006)]
    assert len(planned(table, [("id", "in", keys)])) == CITIES


def test_a_damaged_index_is_named(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.upsert(rows(range(24)))
    for file in Path(table.path, ".hoodie/metadata/record_index").glob("*.hfile"):
        file.write_bytes(b"damaged")
    for file in Path(table.path, ".hoodie/metadata/record_index").glob(".record*"):
        file.write_bytes(b"damaged")
    table = hudi.Table.open(table.path)
    with pytest.raises(CorruptMetadataError, match="record_index"):
        table.to_arrow(filter=[("id", "=", "k3")])
    assert len(found(hudi.Table.open(table.path, options=OFF), [("id", "=", "k3")])) == 1


def test_without_an_index_nothing_is_asked(tmp_path: Path) -> None:
    table = create(tmp_path, **{"hoodie.metadata.global.record.level.index.enable": "false"})
    table.upsert(rows(range(24)), options={"hoodie.index.type": "SIMPLE"})
    assert len(planned(table, [("id", "=", "k3")])) == CITIES
