"""Global indexes at a table: what moves, what stays, what is refused, and what is read for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import DuplicateRecordKeyError, SchemaError
from hudi_core.index.locating import FileCandidates
from hudi_core.write.merge_handle import keep_stored_partition_columns
from tests.calls import calls_of
from tests.tables import new_table, pairs

INDEX = "hoodie.index.type"
RECORD_INDEX = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
}
STAY = {"hoodie.simple.index.update.partition.path": "false"}
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("day", pa.date32()),
        ("ts", pa.int64()),
        ("value", pa.int64()),
    ]
)


def create(path: Path, index: str = "GLOBAL_SIMPLE", **options: str) -> hudi.Table:
    return new_table(
        path / "table", SCHEMA, {INDEX: index, **options}, partition_by=["city", "day"]
    )


def row(key: str, city: str | None, ts: int, value: int = 0, day: int | None = 1) -> dict[str, Any]:
    when = pa.scalar(day, pa.date32()).as_py()
    return {"id": key, "city": city, "day": when, "ts": ts, "value": value}


def table_of(*made: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(made), SCHEMA)


def held(table: hudi.Table) -> list[tuple[Any, ...]]:
    return pairs(table.to_arrow(), "id", "_hoodie_partition_path", "city", "ts", "value")


@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX"])
def test_no_rows_change_nothing(tmp_path: Path, index: str) -> None:
    table = create(tmp_path, index, **(RECORD_INDEX if index == "RECORD_INDEX" else {}))
    nothing = SCHEMA.empty_table()
    for _ in range(2):
        before = held(table)
        for operation in (table.upsert, table.delete, table.insert):
            result = operation(nothing)
            assert (result.inserted, result.updated, result.deleted) == (0, 0, 0)
        assert held(table) == before
        table.upsert(table_of(row("a", "rome", 1)))


def test_a_row_moves_with_its_partition(tmp_path: Path) -> None:
    table = create(tmp_path)
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


def test_a_late_row_neither_moves_nor_overwrites(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.upsert(table_of(row("a", "rome", 5, 1)))
    result = table.upsert(table_of(row("a", "oslo", 4, 9)))
    assert (result.inserted, result.updated, result.deleted) == (0, 0, 0)
    assert held(table) == [("a", "rome/1970-01-02", "rome", 5, 1)]
    # a tie goes to the incoming row
    table.upsert(table_of(row("a", "oslo", 5, 9)))
    assert held(table) == [("a", "oslo/1970-01-02", "oslo", 5, 9)]


def test_a_row_that_stays_keeps_folder_and_columns_alike(tmp_path: Path) -> None:
    table = create(tmp_path, **STAY)
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


def test_one_key_is_one_row_in_a_batch_over_all_partitions(tmp_path: Path) -> None:
    table = create(tmp_path)
    batch = [row("a", city, ts, ts) for city, ts in (("rome", 3), ("oslo", 7), ("lima", 7))]
    assert table.upsert(table_of(*batch)).inserted == 1
    # the later one of equals
    assert held(table) == [("a", "lima/1970-01-02", "lima", 7, 7)]


def test_several_stored_rows_of_a_key_become_one(tmp_path: Path) -> None:
    """Inserts look nothing up, and may have left a key in several partitions."""
    table = create(tmp_path)
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
    table = create(tmp_path, **{"hoodie.combine.before.upsert": combine})
    table.upsert(table_of(row("a", "rome", 1)))
    result = table.upsert(table_of(row("a", "oslo", 3, 3), row("a", "lima", 2, 2)))
    assert (result.inserted, result.deleted) == (1, 1)
    # of rows that are not combined the last counts, whatever their order
    last = ("a", "lima/1970-01-02", "lima", 2, 2)
    assert held(table) == [("a", "oslo/1970-01-02", "oslo", 3, 3) if combine == "true" else last]


def test_inserts_that_drop_duplicates_look_into_all_partitions(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.upsert(table_of(row("a", "rome", 1)))
    policy = "hoodie.datasource.insert.dup.policy"
    batch = table_of(row("a", "oslo", 9), row("b", "oslo", 9))
    with pytest.raises(DuplicateRecordKeyError, match="'id:a'"):
        table.insert(batch, options={policy: "fail"})
    assert table.insert(batch, options={policy: "drop"}).inserted == 1
    assert [one[:2] for one in held(table)] == [("a", "rome/1970-01-02"), ("b", "oslo/1970-01-02")]


def test_rows_that_lack_columns_cannot_move(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.upsert(table_of(row("a", "rome", 1, 7)))
    keep = {"hoodie.table.partial.update.mode": "KEEP_VALUES"}
    partial = table_of(row("a", "oslo", 2)).drop_columns(["value"])
    with pytest.raises(SchemaError, match="lack the column 'value', and a row that moves"):
        table.upsert(partial, options=keep)
    table.upsert(partial, options={**keep, **STAY})
    assert held(table) == [("a", "rome/1970-01-02", "rome", 2, 7)]


def test_a_dry_run_tells_what_moves(tmp_path: Path) -> None:
    table = create(tmp_path)
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
    table = create(tmp_path, index)
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
