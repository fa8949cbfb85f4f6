"""Filters on the record key: the record index names the files, or nothing is left out by it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_core as hudi
from hudi_core.errors import CorruptMetadataError, InvalidOptionError
from hudi_core.metadata.index_definitions import put_definitions, read_definitions
from hudi_core.metadata.key_index.unique_keys import (
    has_repeated_keys,
    has_unique_keys,
    without_note,
)
from hudi_core.metadata.log import writer
from hudi_core.metadata.log.records import PartitionChange
from hudi_core.metadata.partitions.key_changes import KeyChanges
from hudi_core.metadata.partitions.record_index import RecordIndexPartition
from hudi_core.services.metadata import MetadataOperator
from tests.operators import operator
from tests.tables import FORMATS, TABLES, copied, new_table, pairs, rows

NUMBERED = pa.schema({"id": "string", "n": "int32", "city": "string", "ts": "int64"})
WHOLE, PARTLY = (f"hoodie.metadata.{name}record.level.index." for name in ("global.", ""))
ROUTES = {
    "whole": {
        "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX",
        "hoodie.record.index.update.partition.path": "true",
        f"{WHOLE}enable": "true",
        f"{WHOLE}min.filegroup.count": "3",
    },
    "by partition": {
        "hoodie.index.type": "RECORD_LEVEL_INDEX",
        f"{PARTLY}enable": "true",
        f"{PARTLY}min.filegroup.count": "2",
    },
}
# what is left out is left out by the index alone
PLAIN = {"hoodie.metadata.index.column.stats.enable": "false"}
OFF = {"hoodie.metadata.enable": "false"}
CITIES = 6


def numbered(numbers: Sequence[int], ts: int = 1, shift: int = 0) -> pa.Table:
    cities = [f"c{(number + shift) % CITIES}" for number in numbers]
    keys = [f"k{number}" for number in numbers]
    return rows(*keys, schema=NUMBERED, n=list(numbers), city=cities, ts=ts)


def create(
    path: Path, kind: str = "whole", record_key: str | list[str] = "id", **options: str
) -> hudi.Table:
    given = {**PLAIN, **ROUTES[kind], **options}
    return new_table(path / "t", NUMBERED, given, record_key=record_key)


def filled(path: Path, *given: str, **options: str) -> hudi.Table:
    return copied(path / "t", newly_filled, *given, **options)


def newly_filled(path: Path, *given: str, **options: str) -> hudi.Table:
    table = create(path.parent, *given, **options)
    table.upsert(numbered(range(24)))
    return table


def key(*numbers: int) -> list[tuple[str, str, list[str]]]:
    """A filter for rows of some keys."""
    return [("id", "in", [f"k{number}" for number in numbers])]


def cities(table: hudi.Table, number: int, **options: Any) -> list[str]:
    """Cities of the rows of a key."""
    return [row[2] for row in found(table, key(number), **options)]


def unwatched(patch: pytest.MonkeyPatch) -> None:
    """Let a writer keep the index, neither watch keys nor say so."""
    patch.setattr(writer, "WATCHED", "somebody's")
    patch.setattr(KeyChanges, "note_repeated", lambda _: None)


def planned(table: hudi.Table, row_filter: Any, **options: Any) -> list[str]:
    """Partitions of the files that a read opens."""
    return sorted(one.partition_path for one in table.file_slices(filter=row_filter, **options))


def found(table: hudi.Table, row_filter: Any, **options: Any) -> list[tuple[Any, ...]]:
    return pairs(table.to_arrow(NUMBERED.names, row_filter, **options))


def answers_are_equal(table: hudi.Table, row_filter: Any) -> None:
    without = hudi.Table.open(table.path, options=OFF)
    assert found(table, row_filter) == found(without, row_filter)


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    return filled(tmp_path)


@pytest.mark.parametrize("kind", list(ROUTES))
@pytest.mark.parametrize("format_", FORMATS)
def test_only_files_of_the_keys_are_planned(tmp_path: Path, kind: str, format_: str) -> None:
    table = filled(tmp_path, kind, **{"hoodie.table.format": format_})
    table.upsert(numbered([3, 9], 2))
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
    table.upsert(numbered(range(24)) if record_key != "ts" else numbered([0]))
    assert planned(table, wanted) == partitions
    answers_are_equal(table, wanted)


@pytest.mark.parametrize("named", ["true", "false"])
def test_both_forms_of_a_complex_key_of_one_field_are_asked_for(tmp_path: Path, named: str) -> None:
    encoding = {"hoodie.write.complex.keygen.new.encoding": named}
    table = filled(tmp_path, **{"hoodie.table.keygenerator.type": "COMPLEX", **encoding})
    keys = {key[:3] for key in table.to_arrow(["_hoodie_record_key"]).column(0).to_pylist()}
    assert ("id:" in keys) is (named == "false")
    assert planned(table, key(3)) == ["c3"]
    answers_are_equal(table, key(3))


def test_an_empty_value_is_no_key_of_its_own(tmp_path: Path) -> None:
    table = create(tmp_path, record_key=["id", "city"])
    table.upsert(numbered(range(6)))
    table.upsert(numbered([7]).set_column(0, "id", pa.array([""])))
    assert planned(table, [("id", "=", ""), ("city", "=", "c1")]) == ["c1"]
    assert len(found(table, [("id", "=", ""), ("city", "=", "c1")])) == 1
    assert found(filled(tmp_path / "single"), [("id", "=", "")]) == []


def test_the_index_follows_rows(table: hudi.Table) -> None:
    for change, number, partitions in (
        (lambda: table.upsert(numbered([3], 2, 2)), 3, ["c5"]),
        (lambda: table.delete(numbered([3], 3, 2)), 3, []),
        (lambda: table.delete_partitions(["c4"]), 4, []),
        (lambda: table.insert_overwrite(numbered([30])), 6, []),
        (lambda: table.upsert(numbered([6])), 6, ["c0"]),
        (table.optimize, 6, ["c0"]),
    ):
        change()
        assert planned(table, key(number)) == partitions
        answers_are_equal(table, key(number))


@pytest.mark.parametrize("kind", list(ROUTES))
@pytest.mark.parametrize("operation", ["insert", "bulk_insert"])
def test_keys_that_come_twice_are_all_found(tmp_path: Path, kind: str, operation: str) -> None:
    table = filled(tmp_path, kind, **{"hoodie.parquet.small.file.limit": "0"})
    getattr(table, operation)(numbered([100, 101]))
    assert planned(table, key(3)) == ["c3"]
    # in the same partition, in a file of its own
    getattr(table, operation)(numbered([3], 5))
    assert len(found(table, key(3))) == 2
    answers_are_equal(table, key(3))
    # it stays like that until the index is built again, without repeated keys
    table.delete(numbered([3], 6))
    assert len(planned(table, key(5))) > 1
    built_again(table)
    assert planned(hudi.Table.open(table.path), key(5)) == ["c5"]


def test_a_key_in_two_partitions_is_one_of_each(tmp_path: Path) -> None:
    table = filled(tmp_path, "by partition")
    table.insert(numbered([3], 5, 1))
    assert planned(table, key(3)) == ["c3", "c4"]
    assert planned(table, [*key(3), ("city", "=", "c4")]) == ["c4"]
    answers_are_equal(table, key(3))


def test_repeated_rows_of_one_file_are_no_trouble(table: hudi.Table) -> None:
    table.insert(numbered([3], 5))  # goes to the small file that has it
    assert planned(table, key(3)) == ["c3"]
    assert len(found(table, key(3))) == 2


def test_a_partition_local_upsert_may_repeat_a_key(tmp_path: Path) -> None:
    table, simple = filled(tmp_path), {"hoodie.index.type": "SIMPLE"}
    table.upsert(numbered([4], 2), options=simple)
    assert planned(table, key(4)) == ["c4"]
    table.upsert(numbered([4], 3, 1), options=simple)
    assert cities(table, 4) == ["c4", "c5"]


def index_operator(table: hudi.Table) -> MetadataOperator:
    client = hudi.Table.open(table.path)._session.opened.client
    is_partly = read_definitions(client.storage, client.config).is_partitioned("record_index")
    return operator(table.path, ROUTES["by partition" if is_partly else "whole"])


def built_again(table: hudi.Table) -> None:
    metadata = index_operator(table)
    metadata.drop("record_index")
    metadata.index("record_index")


def noted(table: hudi.Table) -> tuple[bool, bool]:
    client = hudi.Table.open(table.path)._session.opened.client
    known = read_definitions(client.storage, client.config)
    return has_unique_keys(known), has_repeated_keys(known)


def test_what_other_engines_wrote_is_no_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = filled(tmp_path, **{"hoodie.parquet.small.file.limit": "0"})
    with monkeypatch.context() as patch:
        unwatched(patch)
        table.clean()
        assert planned(table, key(3)) == ["c3"]
        table.insert(numbered([3], 5, 1))
        assert noted(table) == (True, False)
        assert cities(table, 3) == ["c3", "c4"]
    # the next write of ours knows nothing of it either, and says so
    table.upsert(numbered([50]))
    assert noted(table) == (False, False)
    assert cities(table, 3) == ["c3", "c4"]
    table.upsert(numbered([51]))
    assert len(planned(table, key(51))) > 1


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
    table = filled(tmp_path, kind, **VIRTUAL[level])
    table.upsert(numbered([3], 2))
    assert planned(table, key(3)) == ["c3"]
    with monkeypatch.context() as patch:
        unwatched(patch)
        patch.setattr(RecordIndexPartition, "of_commit", lambda *_: PartitionChange())
        table.insert(numbered([30], 5))
    assert cities(table, 30) == ["c0"]

    def refused() -> None:
        before = hudi.Table.open(table.path).timeline.completed_writes()[-1]
        for write in (table.upsert, table.delete):
            with pytest.raises(InvalidOptionError, match="Hudi keeps no record index"):
                write(numbered([30], 6))
        assert hudi.Table.open(table.path).timeline.completed_writes()[-1] == before

    refused()
    # other writes keep what there is of it, and it is no more relied on than before
    table.upsert(numbered([31, 3], 6), options={"hoodie.index.type": "SIMPLE"})
    refused()
    assert cities(table, 30) == ["c0"]
    built_again(table)
    table = hudi.Table.open(table.path, ROUTES[kind])
    table.upsert(numbered([30], 7))
    assert [(row[0], row[3]) for row in found(table, key(30))] == [("k30", 7)]
    assert planned(table, key(30)) == ["c0"]


def test_an_index_that_nobody_watched_is_not_relied_on(table: hudi.Table) -> None:
    client = table._session.opened.client
    put_definitions(client.storage, without_note(read_definitions(client.storage, client.config)))
    assert len(planned(table, key(3))) == CITIES


def test_past_states_are_read_without_it(tmp_path: Path) -> None:
    table = create(tmp_path)
    first = table.upsert(numbered(range(24))).instant.requested_time
    table.upsert(numbered([3], 2, 1))
    table.delete(numbered([4]))
    assert cities(table, 3, as_of=first) == ["c3"]
    assert cities(table, 4, as_of=first) == ["c4"]
    assert cities(table, 3) == ["c4"]


@pytest.mark.parametrize("format_", TABLES)
@pytest.mark.parametrize("change", ["move", "compact", "rebuild"])
def test_a_reader_sees_its_own_state(tmp_path: Path, change: str, format_: str) -> None:
    often = {"hoodie.metadata.compact.max.delta.commits": "1"} if change == "compact" else {}
    table = filled(tmp_path, **{"hoodie.table.format": format_}, **often)
    dataset = table.scan()
    assert dataset.schema.names  # its timeline is loaded
    table.upsert(numbered([3], 2, 1))
    table.delete(numbered([4]))
    if change == "rebuild":
        built_again(table)
    assert cities(table, 3) == ["c4"]
    assert found(table, key(4)) == []
    for name, city in (("k3", "c3"), ("k4", "c4")):
        old = dataset.to_table(filter=pc.field("id") == name)
        assert old.column("city").to_pylist() == [city]


def test_what_was_built_last_of_all_serves(table: hudi.Table) -> None:
    index_operator(table).delete(backup=False)
    index_operator(table).create()
    assert planned(hudi.Table.open(table.path), key(3)) == ["c3"]


def test_very_many_keys_are_not_looked_up(tmp_path: Path) -> None:
    assert len(planned(filled(tmp_path), key(*range(5, 10_006)))) == CITIES


def test_a_damaged_index_is_named(table: hudi.Table) -> None:
    folder = Path(table.path, ".hoodie/metadata/record_index")
    for file in (*folder.glob("*.hfile"), *folder.glob(".record*")):
        file.write_bytes(b"damaged")
    table = hudi.Table.open(table.path)
    with pytest.raises(CorruptMetadataError, match="record_index"):
        table.to_arrow(filter=key(3))
    assert len(found(hudi.Table.open(table.path, options=OFF), key(3))) == 1


def test_without_an_index_nothing_is_asked(tmp_path: Path) -> None:
    table = create(tmp_path, **{f"{WHOLE}enable": "false"})
    table.upsert(numbered(range(24)), options={"hoodie.index.type": "SIMPLE"})
    assert len(planned(table, key(3))) == CITIES
