"""Updates and deletes by conditions: which rows they change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_core as hudi
from hudi_core.errors import DuplicateRecordKeyError
from tests.formats.conditional_writes.conditional_tables import held, new_table, some, untouched
from tests.formats.service_tables import READERS

# --- what a statement does -----------------------------------------------------------------------


def test_an_update_is_not_late_whatever_the_ordering_field_says(table: hudi.Table) -> None:
    result = table.update({"ts": 1, "v": pc.field("v") * 10}, pc.field("id") == 4)
    assert (result.inserted, result.updated, result.deleted) == (0, 1, 0)
    table.update({"name": "'again'"}, "id = 4")
    assert held(table)[3] == (4, "oslo", 1, 40.0, "again")
    # an upsert that is later than that is no longer late
    table.upsert(some((4, "oslo", 2, 0.0, "z")))
    assert held(table)[3] == (4, "oslo", 2, 0.0, "z")
    for read in READERS[table.format]:
        assert held(read(Path(table.path))) == held(table), read.__name__


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("v > 1", {3, 4}),
        ("NOT (v > 1)", {1}),
        ("v IS NULL OR name = 'a'", {1, 2}),
        ("v NOT IN (1, 3)", {4}),
        ("name <> 'a'", {2, 4}),
        (pc.field("v") > 1, {3, 4}),
        (~(pc.field("v") > 1), {1}),
        ([("v", "not in", [1.0, 3.0])], {4}),
        ([("v", "is null", None), ("city", "=", "rome")], {2}),
        ("NULL", set()),
        ("true", {1, 2, 3, 4}),
        ("city = 'nowhere'", set()),
        ("_hoodie_record_key = '2'", {2}),
    ],
)
def test_of_a_null_no_condition_is_true(tmp_path: Path, where: Any, ids: set[int]) -> None:
    table = new_table(tmp_path / "t")
    rows = some(
        (1, "rome", 1, 1.0, "a"),
        (2, "rome", 1, None, "b"),
        (3, "x", 1, 3.0, None),
        (4, "x", 1, 4.0, "d"),
    )
    table.upsert(rows)
    assert table.delete(where=where).deleted == len(ids)
    assert {row[0] for row in held(table)} == {1, 2, 3, 4} - ids


@pytest.mark.parametrize("quoted", ["'it''s'", '"it\'s"', r"'it\'s'", "'\\u0069t''s'"])
def test_a_quote_in_a_string_means_what_it_means_in_spark(tmp_path: Path, quoted: str) -> None:
    table = new_table(tmp_path / "t", record_key=None)
    rows = [(1, "rome", 1, 1.0, "its"), (2, "rome", 1, 1.0, "it's"), (3, "rome", 1, 1.0, "a")]
    table.insert(some(*rows))
    assert table.delete(where="name LIKE '%''%'").deleted == 1
    table.update({"name": quoted}, where="name = 'a'")
    source = some((3, "rome", 1, 2.0, "its"))
    merger = table.merge(source, f"target.id = source.id AND target.name = {quoted}")
    merger.when_matched_update({"v": "source.v"}, f"target.name = {quoted}").execute()
    assert held(table) == [(1, "rome", 1, 1.0, "its"), (3, "rome", 1, 2.0, "it's")]


def test_a_partition_column_that_changes_moves_the_row(table: hudi.Table) -> None:
    result = table.update({"city": "CASE WHEN id = 1 THEN 'bern' ELSE city END"}, "id < 3")
    assert (result.inserted, result.updated, result.deleted) == (1, 1, 1)
    found = table.to_arrow(["id", "_hoodie_partition_path"]).to_pylist()
    assert {row["id"]: row["_hoodie_partition_path"] for row in found}[1] == "bern"
    assert [row[:2] for row in held(table)] == [(1, "bern"), (2, "rome"), (3, "oslo"), (4, "oslo")]
    assert table.validate(keys=True).is_valid
    for read in READERS[table.format]:
        assert held(read(Path(table.path))) == held(table), read.__name__


def test_a_move_to_where_the_key_is_already_is_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    table.upsert(some((1, "rome", 1, 1.0, "a"), (1, "oslo", 1, 2.0, "b"), (2, "oslo", 1, 3.0, "c")))
    rows = held(table)
    with pytest.raises(DuplicateRecordKeyError, match="'1'"):
        table.update({"city": "'oslo'"}, "city = 'rome'")
    untouched(table, rows, 1)
    # both move at once: neither is in the way
    table.update({"city": "CASE WHEN city = 'rome' THEN 'oslo' ELSE 'rome' END"}, "id = 1")
    assert held(table) == sorted(
        [(1, "oslo", 1, 1.0, "a"), (1, "rome", 1, 2.0, "b"), (2, "oslo", 1, 3.0, "c")], key=repr
    )


def test_files_without_a_match_are_neither_read_nor_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hudi_core.read.scan import FileScan  # noqa: PLC0415 - patched here alone

    table = new_table(tmp_path / "t", options={"hoodie.parquet.small.file.limit": "0"})
    for start in range(0, 40, 10):
        table.insert(some(*((n, "rome", n, float(n), "x") for n in range(start, start + 10))))
    table.insert(some((100, "oslo", 1, 5.0, "x")))
    read: list[str] = []
    real = FileScan.table

    def noted(self: FileScan, files: Any) -> pa.Table:
        read.extend(one.path for one in files)
        return real(self, files)

    monkeypatch.setattr(FileScan, "table", noted)
    before = {one.base_file.path for one in table.file_slices() if one.base_file}
    where = ("ts >= 25 AND ts < 27 AND city = 'rome'", pc.field("v") == 26)
    for condition in where:
        read.clear()
        result = table.update({"name": pa.scalar("y")}, condition)
        assert len(set(read)) == 1
        assert len(result.statuses) == 1
    read.clear()
    source = some((12, "rome", 0, 0.0, "merged"), (13, "rome", 0, 0.0, "merged"))
    table.merge(source, "id").when_matched_update_all().execute()
    assert len(set(read)) == 1
    read.clear()
    text = "target.id = source.id AND target.city = 'oslo'"
    assert not table.merge(source, text).when_matched_update_all().execute().statuses
    assert len(set(read)) <= 1
    after = {one.base_file.path for one in table.file_slices() if one.base_file}
    assert len(before & after) == 3
    assert table.count(pc.field("name") == "x") == 37


def test_rows_of_one_key_are_changed_one_by_one(tmp_path: Path) -> None:
    # inserts look no keys up, and an update is not by key
    table = new_table(tmp_path / "t", ordering_field=None)
    table.insert(some((1, "rome", 1, 1.0, "a"), (1, "rome", 2, 2.0, "b"), (2, "rome", 3, 3.0, "c")))
    table.insert(some((1, "rome", 4, 4.0, "d")))
    table.update({"v": "v * 10"}, "ts = 2")
    table.delete(where="ts = 4")
    assert held(table) == [
        (1, "rome", 1, 1.0, "a"),
        (1, "rome", 2, 20.0, "b"),
        (2, "rome", 3, 3.0, "c"),
    ]


def test_rows_without_a_record_key_keep_the_one_that_they_got(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", record_key=None, ordering_field=None)
    table.insert(some((1, "rome", 1, 1.0, "a"), (2, "rome", 2, 2.0, "b"), (2, "x", 2, 2.0, "b")))
    keys = dict(
        zip(*table.to_arrow(["id", "_hoodie_record_key"]).to_pydict().values(), strict=True)
    )
    source = some((1, "rome", 9, 9.0, "new"), (7, "rome", 9, 9.0, "new"), (7, "rome", 9, 9.0, "b"))
    result = table.merge(source, ["id"]).when_matched_update_all().when_not_matched_insert_all()
    done = result.execute()
    assert (done.inserted, done.updated) == (2, 1)
    found = table.to_arrow(["id", "_hoodie_record_key"]).to_pylist()
    assert {row["_hoodie_record_key"] for row in found if row["id"] == 1} == {keys[1]}
    assert len({row["_hoodie_record_key"] for row in found}) == 5
    # written back by the key that they have
    mine = table.to_arrow(["_hoodie_record_key", "v"], pc.field("id") == 7).set_column(
        1, "v", pa.array([0.5, 0.5])
    )
    merged = (
        table.merge(mine, "_hoodie_record_key").when_matched_update({"v": "source.v"}).execute()
    )
    assert merged.updated == 2
    assert [row[3] for row in held(table) if row[0] == 7] == [0.5, 0.5]
