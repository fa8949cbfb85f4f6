"""Rows that are updated, deleted and merged by conditions."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_core as hudi
from hudi_core.errors import (
    CommitConflictError,
    DuplicateRecordKeyError,
    InvalidOptionError,
    MergeCardinalityError,
    RecordKeyError,
    SchemaError,
)
from hudi_core.read.scan import FileScan
from tests.formats.service_tables import READERS
from tests.formats.two_steps import SHARED, Write, overlapping
from tests.tables import FORMATS, TABLES, new_table, rows_of
from tests.tables import SCHEMA as PARTED

NAMED_VALUES = pa.schema(
    [
        *(("id", pa.int64()), ("city", pa.string()), ("ts", pa.int32())),
        *(("v", pa.float64()), ("name", pa.string())),
    ]
)
Rows = list[tuple[Any, ...]]
some = partial(rows_of, NAMED_VALUES)


def held(table: hudi.Table | pa.Table) -> Rows:
    found = table if isinstance(table, pa.Table) else table.to_arrow()
    return sorted(
        (tuple(row[name] for name in NAMED_VALUES.names) for row in found.to_pylist()), key=repr
    )


def untouched(table: hudi.Table, rows: Rows, instants: int) -> None:
    """Require that a refused write left no trace."""
    again = hudi.Table.open(table.path)
    assert held(again) == rows
    assert len(again.timeline.instants) == instants
    folder = Path(table.path) / ".hoodie" / "timeline"
    assert not [one.name for one in folder.iterdir() if "inflight" in one.suffixes[-1]][instants:]


@pytest.fixture(params=TABLES)
def table(request: pytest.FixtureRequest, path: Path) -> hudi.Table:
    rome = (1, "rome", 10, 1.0, "a"), (2, "rome", 20, None, "b")
    oslo = (3, "oslo", 30, 3.0, None), (4, "oslo", 40, 4.0, "d")
    return new_table(path, some(*rome, *oslo), format=request.param)


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
def test_of_a_null_no_condition_is_true(path: Path, where: Any, ids: set[int]) -> None:
    table = new_table(path, NAMED_VALUES)
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
def test_a_quote_in_a_string_means_what_it_means_in_spark(path: Path, quoted: str) -> None:
    table = new_table(path, NAMED_VALUES, record_key=None)
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


def test_a_move_to_where_the_key_is_already_is_refused(path: Path) -> None:
    table = new_table(
        path, some((1, "rome", 1, 1.0, "a"), (1, "oslo", 1, 2.0, "b"), (2, "oslo", 1, 3.0, "c"))
    )
    rows = held(table)
    with pytest.raises(DuplicateRecordKeyError, match="'1'"):
        table.update({"city": "'oslo'"}, "city = 'rome'")
    untouched(table, rows, 1)
    # both move at once: neither is in the way
    table.update({"city": "CASE WHEN city = 'rome' THEN 'oslo' ELSE 'rome' END"}, "id = 1")
    assert held(table) == sorted(
        [(1, "oslo", 1, 1.0, "a"), (1, "rome", 1, 2.0, "b"), (2, "oslo", 1, 3.0, "c")], key=repr
    )


def test_files_without_a_match_are_left_alone(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table(path, NAMED_VALUES, options={"hoodie.parquet.small.file.limit": "0"})
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


def test_rows_of_one_key_are_changed_one_by_one(path: Path) -> None:
    # inserts look no keys up, and an update is not by key
    table = new_table(path, NAMED_VALUES, ordering_field=None)
    table.insert(some((1, "rome", 1, 1.0, "a"), (1, "rome", 2, 2.0, "b"), (2, "rome", 3, 3.0, "c")))
    table.insert(some((1, "rome", 4, 4.0, "d")))
    table.update({"v": "v * 10"}, "ts = 2")
    table.delete(where="ts = 4")
    assert held(table) == [
        (1, "rome", 1, 1.0, "a"),
        (1, "rome", 2, 20.0, "b"),
        (2, "rome", 3, 3.0, "c"),
    ]


def test_rows_without_a_record_key_keep_the_one_that_they_got(path: Path) -> None:
    table = new_table(path, NAMED_VALUES, record_key=None, ordering_field=None)
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


def test_clauses_are_asked_in_their_order(table: hudi.Table) -> None:
    source = pa.table(
        {"id": [1, 2, 3, 9, 10], "gone": [True, False, None, False, True], "w": [7.0] * 5}
    )
    merger = (
        table.merge(source, "t.id = s.id", source_alias="s", target_alias="t")
        .when_matched("s.gone")
        .delete()
        .when_matched(pc.field("t.v").is_null())
        .update({"v": pc.field("s.w") + pc.field("t.ts")})
        .when_matched()
        .update({"name": "concat(coalesce(name, '?'), '!')", "v": 0})
        .when_not_matched("not gone")
        .insert({"id": "id", "city": "'new'", "v": "w"})
        .when_not_matched_by_source("ts > 35")
        .update({"ts": None})
    )
    result = merger.execute()
    assert (result.inserted, result.updated, result.deleted) == (1, 3, 1)
    assert held(table) == sorted(
        [
            (2, "rome", 20, 27.0, "b"),
            (3, "oslo", 30, 0.0, "?!"),
            (4, "oslo", None, 4.0, "d"),
            (9, "new", None, 7.0, None),
        ],
        key=repr,
    )
    for read in READERS[table.format]:
        assert held(read(Path(table.path))) == held(table), read.__name__


@pytest.mark.parametrize("on", ["v", "target.v = source.v"])
def test_numbers_match_as_sql_compares_them(table: hudi.Table, on: str) -> None:
    table.upsert(some((1, "rome", 99, -0.0, "zero"), (2, "rome", 99, math.nan, "nan")))
    source = pa.table({"v": [0.0, math.nan], "name": ["of zero", "of nan"]})
    merger = table.merge(source, on).when_matched_update({"name": "source.name"})
    assert merger.execute().updated == 2
    names = table.to_arrow(["id", "name"], [("id", "in", [1, 2])]).sort_by("id")["name"]
    assert names.to_pylist() == ["of zero", "of nan"]


def test_several_source_rows_for_one_row_are_refused(table: hudi.Table) -> None:
    rows = held(table)
    twice = some((1, "rome", 1, 9.0, "x"), (1, "rome", 2, 8.0, "y"))
    for merger in (
        table.merge(twice, "id").when_matched_update_all(),
        table.merge(twice, "target.id = source.id").when_matched_delete(),
        # one of them would move it
        table.merge(twice, "id").when_matched_update({"city": "source.name"}),
    ):
        with pytest.raises(MergeCardinalityError) as caught:
            merger.execute()
        assert caught.value.rows == 1
        untouched(table, rows, 1)
    # of one row that two match, one of the two is what the clause is for
    table.merge(twice, "id").when_matched_update_all("source.v > 8.5").execute()
    assert held(table)[0] == (1, "rome", 1, 9.0, "x")


def test_one_source_row_changes_several_rows(table: hudi.Table) -> None:
    source = pa.table({"city": ["rome", None], "bonus": [5.0, 6.0]})
    result = (
        table.merge(source, "city").when_matched_update({"v": "coalesce(v, 0) + bonus"}).execute()
    )
    assert result.updated == 2
    assert [row[3] for row in held(table)] == [6.0, 5.0, 3.0, 4.0]
    near = table.merge(source, "target.v + 1 > source.bonus AND target.v < 6")
    assert near.when_matched_delete().execute().deleted == 1


def test_a_key_that_is_there_is_not_inserted_again(table: hudi.Table) -> None:
    rows = held(table)
    by_name = table.merge(some((1, "rome", 1, 1.0, "other")), "name").when_not_matched_insert_all()
    with pytest.raises(DuplicateRecordKeyError, match=r"'1'.*has a row"):
        by_name.execute()
    new = some((8, "rome", 1, 1.0, "n"), (8, "rome", 1, 2.0, "m"))
    with pytest.raises(DuplicateRecordKeyError, match=r"'8'.*several rows of the source"):
        table.merge(new, "id").when_not_matched_insert_all().execute()
    # what matches by key is left out by another condition
    both = table.merge(some((2, "rome", 1, 1.0, "n")), "target.id = source.id AND target.v > 100")
    with pytest.raises(DuplicateRecordKeyError, match="'2'"):
        both.when_not_matched_insert_all().execute()
    untouched(table, rows, 1)
    # a row that makes room in the same commit is not in the way
    swapped = table.merge(some((1, "rome", 5, 5.0, "z")), "name").when_not_matched_insert_all()
    swapped.when_not_matched_by_source_delete("id = 1").execute()
    assert held(table)[0] == (1, "rome", 5, 5.0, "z")


def test_null_parts_of_a_key_match_nothing_and_are_looked_for(path: Path) -> None:
    table = new_table(path, NAMED_VALUES, record_key=["id", "name"], partition_by=None)
    table.upsert(some((1, "rome", 1, 1.0, None)))
    source = some((1, "rome", 2, 2.0, None))
    with pytest.raises(DuplicateRecordKeyError):
        table.merge(source, ["id", "name"]).when_not_matched_insert_all().execute()
    assert held(table) == [(1, "rome", 1, 1.0, None)]


def test_not_a_number_equals_itself(path: Path) -> None:
    table = new_table(path, NAMED_VALUES, record_key="v", partition_by=None, ordering_field=None)
    nan = some((1, "rome", 1, float("nan"), "a"))
    table.upsert(nan)
    for on in ("v", "target.v = source.v"):
        merger = table.merge(nan, on).when_not_matched_insert_all()
        result = merger.when_matched_update({"ts": "target.ts + 1"}).execute()
        assert (result.inserted, result.updated) == (0, 1)
    assert table.delete(where="v > 100").deleted == 1


def test_days_are_compared_as_days(path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("day", pa.date32())])
    table = hudi.Table.create(path, schema, name="t", record_key="id", partition_by="day")
    days = [date(2026, 1, 31), date(2026, 2, 1), None]
    table.upsert(pa.table({"id": [1, 2, 3], "day": days}, schema=schema))
    assert table.update({"day": "date_add(day, 1)"}, "day = '2026-01-31'").inserted == 1
    assert table.delete(where="day BETWEEN DATE '2026-02-01' AND '2026-2-01'").deleted == 2
    assert table.to_arrow(["id"]).column("id").to_pylist() == [3]


def test_rows_with_the_delete_marker_are_deletes(path: Path) -> None:
    schema = pa.schema([*NAMED_VALUES, pa.field("_hoodie_is_deleted", pa.bool_())])
    table = hudi.Table.create(path, schema, name="t", record_key="id")
    table.upsert(pa.Table.from_pylist([{"id": 1}, {"id": 2}], schema))
    source = pa.Table.from_pylist(
        [{"id": 1, "_hoodie_is_deleted": True}, {"id": 5, "_hoodie_is_deleted": True}, {"id": 6}],
        schema,
    )
    merger = table.merge(source, "id").when_matched_update_all().when_not_matched_insert_all()
    result = merger.execute()
    assert (result.inserted, result.updated, result.deleted) == (1, 0, 1)
    assert sorted(table.to_arrow(["id"]).column("id").to_pylist()) == [2, 6]


@pytest.mark.parametrize(
    ("values", "where", "error", "said"),
    [
        ({"id": 5}, None, SchemaError, "'id' is part of the record key"),
        ({"nope": 5}, None, SchemaError, "'nope' cannot be set: the table has none"),
        ({"_hoodie_commit_time": "'x'"}, None, SchemaError, "Hudi keeps it"),
        ({"v": "other"}, None, SchemaError, "'other' in 'other' is in no table"),
        ({"v": "'text'"}, None, SchemaError, "has the type string, and the column is double"),
        ({"v": True}, None, SchemaError, "has the type bool"),
        ({"ts": 1.5}, None, SchemaError, "does not fit its type int32"),
        ({"ts": 3_000_000_000}, None, SchemaError, "does not fit"),
        ({"ts": "ts + 3000000000"}, None, SchemaError, "does not fit"),
        ({"name": 5}, None, SchemaError, "has the type int64, and the column is string"),
        ({"v": pc.field("gone") + 1}, None, SchemaError, "gone"),
        ({"v": "max(v)"}, None, SchemaError, "an aggregate"),
        ({"v": "(SELECT 1)"}, None, SchemaError, "a subquery"),
        ({"v": "sum(v) OVER ()"}, None, SchemaError, "an aggregate|a window"),
        ({"v": "no_such_function(v)"}, None, SchemaError, "no_such_function"),
        ({"v": "v +"}, None, SchemaError, "no expression in Spark's SQL"),
        ({"v": 1}, "v", SchemaError, "neither true nor false"),
        ({"v": 1}, pc.field("v") + 1, SchemaError, "filter"),
        ({"v": 1}, [("v", "like", 1)], SchemaError, "not an operator"),
        ({"v": 1}, [], SchemaError, "condition is empty"),
        ({}, None, SchemaError, "sets no column"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_written(
    path: Path, values: Any, where: Any, error: type[Exception], said: str
) -> None:
    table = new_table(path, some((1, "rome", 1, 1.0, "a")))
    rows = held(table)
    with pytest.raises(error, match=said):
        table.update(values, where)
    untouched(table, rows, 1)


def test_merges_that_make_no_sense_are_refused(path: Path) -> None:
    table = new_table(path, some((1, "rome", 1, 1.0, "a")))
    rows, source = held(table), some((1, "oslo", 2, 2.0, "b"))
    insert = {"id": "source.id"}
    with pytest.raises(InvalidOptionError, match="no clause"):
        table.merge(source, "id").execute()
    for merger, error, said in (
        (table.merge(source, "nope").when_matched_delete(), SchemaError, "'nope'"),
        (table.merge(source, ["nope"]).when_matched_delete(), SchemaError, "no column 'nope'"),
        (table.merge(source, []).when_matched_delete(), SchemaError, "no condition that matches"),
        (table.merge(source, "v = 1").when_matched_delete(), SchemaError, "'v'.*both tables"),
        (
            table.merge(source, "id").when_matched_update({"id": "source.id + 1"}),
            SchemaError,
            "key",
        ),
        (
            table.merge(source, "name").when_matched_update_all(),
            SchemaError,
            "record key.*except_cols",
        ),
        (table.merge(source, "id").when_not_matched_insert({"v": "1"}), RecordKeyError, "'id'"),
        (
            table.merge(source, "id").when_not_matched_insert({**insert, "v": "target.v"}),
            SchemaError,
            "target.v",
        ),
        (
            table.merge(source, "id").when_not_matched_by_source_update({"v": "source.v"}),
            SchemaError,
            "source.v",
        ),
        (
            table.merge(source.append_column("w", pa.array([1])), "id").when_matched_update_all(),
            SchemaError,
            "no column 'w'",
        ),
        (
            table.merge(source, "id", source_alias="target").when_matched_delete(),
            SchemaError,
            "alias",
        ),
    ):
        with pytest.raises(error, match=said):
            merger.execute()
    untouched(table, rows, 1)
    table.merge(source.append_column("w", pa.array([1])), "id").when_matched_update_all(
        except_cols=["w", "city"]
    ).execute()
    assert held(table) == [(1, "rome", 2, 2.0, "b")]


def test_a_delete_takes_rows_or_a_condition(path: Path) -> None:
    table = new_table(path, NAMED_VALUES)
    rows = some((1, "rome", 1, 1.0, "a"), (2, "rome", 1, 1.0, "a"))
    table.upsert(rows)
    for arguments in ({}, {"data": rows, "where": "true"}):
        with pytest.raises(InvalidOptionError, match="either rows or a condition"):
            table.delete(**arguments)
    assert table.delete(rows.slice(0, 1)).deleted == 1
    assert table.delete(where=pc.field("id") == 2).deleted == 1


@pytest.mark.parametrize("missing", ["sqlglot", "duckdb"])
def test_texts_name_their_extra(path: Path, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    table = new_table(path, some((1, "rome", 1, 1.0, "a")))
    real = importlib.import_module

    def without(name: str, *more: Any) -> Any:
        if name.partition(".")[0] == missing:
            raise ModuleNotFoundError(name)
        return real(name, *more)

    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(InvalidOptionError, match=rf"{missing}, which is not.*hudi-core\[sql\]"):
        table.delete(where="id = 1")
    assert table.delete(where=pc.field("id") == 1).deleted == 1


def test_texts_see_no_files(path: Path) -> None:
    table = new_table(path, some((1, "rome", 1, 1.0, "a")))
    with pytest.raises(SchemaError):
        table.update({"name": "(SELECT content FROM read_text('/etc/hostname'))"})
    with pytest.raises(SchemaError):
        table.update({"name": "getenv('HOME')"})


def test_values_are_assigned_as_sql_does(path: Path) -> None:
    schema = pa.schema(
        [
            ("id", pa.int64()), ("small", pa.int16()), ("price", pa.decimal128(9, 2)),
            ("day", pa.date32()), ("at", pa.timestamp("us", "UTC")), ("f", pa.float32()),
            ("tags", pa.list_(pa.string())), ("s", pa.struct([("a", pa.int32())])),
        ]
    )  # fmt: skip
    table = hudi.Table.create(path, schema, name="t", record_key="id")
    table.upsert(pa.Table.from_pylist([{"id": 1}], schema))
    table.update(
        {
            "small": "1 + 1",
            "price": "12.5",
            "day": "DATE '2026-01-31'",
            "f": 0.1,
            "tags": ["x", None],
            "s": {"a": 3},
        }
    )
    table.update({"price": pc.field("small") * 2, "small": Decimal(7), "at": date(2026, 1, 1)})
    table.update({"day": "date_add(day, 1)"}, "s.a = 3 AND size(tags) = 2")
    [row] = table.to_arrow(schema.names).to_pylist()
    assert (row["small"], row["price"], row["day"]) == (7, Decimal("4.00"), date(2026, 2, 1))
    assert (row["tags"], row["s"]) == (["x", None], {"a": 3})
    assert str(row["at"]) == "2026-01-01 00:00:00+00:00"
    assert row["f"] == pytest.approx(0.1)
    with pytest.raises(SchemaError, match="price"):
        table.update({"price": "0.001"})
    with pytest.raises(SchemaError, match=r"'s\.a' cannot be set"):
        table.update({"s.a": 1})


def upserting(row: tuple[Any, ...]) -> Write:
    return lambda table: table.upsert(some(row))


@pytest.mark.parametrize("format_name", TABLES)
def test_a_file_group_that_somebody_changed_meanwhile(
    path: Path, monkeypatch: pytest.MonkeyPatch, format_name: str
) -> None:
    table = new_table(path, NAMED_VALUES, format=format_name, options=SHARED)
    table.upsert(some((1, "rome", 1, 1.0, "a"), (2, "oslo", 1, 2.0, "b")))
    writes: tuple[Write, ...] = (
        lambda t: t.update({"v": "v + 1"}, "city = 'rome'"),
        lambda t: t.delete(where="id = 1"),
        lambda t: t.merge(some((1, "rome", 0, 5.0, "m")), "id").when_matched_update_all().execute(),
    )
    for mine in writes:
        with pytest.raises(CommitConflictError, match="file group"):
            overlapping(monkeypatch, table, mine, upserting((1, "rome", 9, 100.0, "theirs")))
        assert held(hudi.Table.open(table.path))[0] == (1, "rome", 9, 100.0, "theirs")
        # of another partition it is nobody's business
        overlapping(monkeypatch, table, mine, upserting((2, "oslo", 9, 7.0, "theirs")))
        table.upsert(some((1, "rome", 9, 1.0, "a")))
    assert hudi.Table.open(table.path).validate(keys=True).is_valid


@pytest.mark.parametrize("format_name", TABLES)
def test_of_two_merges_that_insert_one_key_one_is_given_up(
    path: Path, monkeypatch: pytest.MonkeyPatch, format_name: str
) -> None:
    table = new_table(path, NAMED_VALUES, format=format_name, options=SHARED)

    def merge(table: hudi.Table, name: str) -> hudi.CommitResult:
        rows = some((1, "rome", 1, 1.0, name))
        merger = table.merge(rows, "id").when_not_matched_insert_all()
        return merger.when_matched_update({"name": f"concat(target.name, '+{name}')"}).execute()

    with pytest.raises(CommitConflictError):
        overlapping(monkeypatch, table, lambda t: merge(t, "mine"), lambda t: merge(t, "theirs"))
    merge(hudi.Table.open(table.path, SHARED), "mine")
    assert held(hudi.Table.open(table.path)) == [(1, "rome", 1, 1.0, "theirs+mine")]


def test_a_keyless_merge_sees_rows_of_others(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table(path, NAMED_VALUES, record_key=None, ordering_field=None, options=SHARED)
    table.insert(some((0, "rome", 1, 1.0, "x")))

    def merge(table: hudi.Table) -> hudi.CommitResult:
        rows = some((1, "oslo", 1, 1.0, "n"))
        return table.merge(rows, "name").when_not_matched_insert_all().execute()

    with pytest.raises(CommitConflictError, match="added rows while this merge"):
        overlapping(monkeypatch, table, merge, merge)
    merge(hudi.Table.open(table.path, SHARED))
    assert len(held(hudi.Table.open(table.path))) == 2


def test_what_repeats_a_write_is_not_done_again(path: Path) -> None:
    table = new_table(path, some((1, "rome", 1, 1.0, "a")))
    for _ in range(2):
        result = table.update({"v": "v + 1"}, idempotency=("job", 1), extra_metadata={"by": "me"})
        assert result.updated == 1
    assert held(table) == [(1, "rome", 1, 2.0, "a")]


def test_a_validator_sees_the_rows_as_they_would_be(path: Path) -> None:
    table = new_table(path, some((1, "rome", 1, 1.0, "a")))

    def positive(rows: Any, _: Any) -> bool:
        return bool(rows.count_rows(pc.field("v") < 0) == 0)

    with pytest.raises(hudi.HudiError, match="positive"):
        table.update({"v": "-v"}, validators=[positive])
    assert held(table) == [(1, "rome", 1, 1.0, "a")]


@pytest.mark.parametrize("format_name", TABLES)
def test_change_feeds_tell_what_became_of_rows(path: Path, format_name: str) -> None:
    table = new_table(
        path, NAMED_VALUES, format=format_name, options={"hoodie.table.cdc.enabled": "true"}
    )
    first = table.upsert(
        some((1, "rome", 1, 1.0, "a"), (2, "rome", 1, 2.0, "b"), (3, "rome", 1, 3.0, "c"))
    )
    merger = table.merge(some((2, "rome", 0, 20.0, "b"), (9, "rome", 0, 9.0, "n")), "id")
    merger.when_matched_update({"v": "source.v"}).when_not_matched_insert_all().execute()
    table.delete(where="id = 3")
    table.update({"city": "'oslo'"}, "id = 1")
    found = table.changes(first.instant, images="struct").to_pylist()
    assert [
        (row["op"], row["before"] and row["before"]["id"], row["after"] and row["after"]["id"])
        for row in found
    ] == [("i", None, 9), ("u", 2, 2), ("d", 3, None), ("d", 1, None), ("i", None, 1)]
    [changed] = [row for row in found if row["op"] == "u"]
    assert (changed["before"]["v"], changed["after"]["v"]) == (2.0, 20.0)
    assert table.validate(keys=True).is_valid


VALUED: Final = PARTED.append(pa.field("value", pa.int64()))
valued = partial(rows_of, VALUED)
KINDS: Final[Mapping[str, Mapping[str, str]]] = {
    "no meta columns": {"hoodie.populate.meta.fields": "false"},
    "virtual key": {"hoodie.recordkey.virtual.enabled": "true"},
    "object store": {"hoodie.storage.strategy.class": "object_store"},
}


@pytest.mark.parametrize(
    ("kind", "table_format"),
    # a table of several formats has no storage path
    [(kind, name) for kind in KINDS for name in (FORMATS if "store" in kind else TABLES)],
)
def test_rows_change_by_condition(tmp_path: Path, path: Path, kind: str, table_format: str) -> None:
    options = {"hoodie.metadata.record.index.enable": "true"}
    if kind == "object store":
        options["hoodie.storage.path"] = str(tmp_path / "store")
    given = valued(("a", "x", 1, 1), ("b", "x", 1, 2), ("c", "y", 1, 3), ("d", "y", 1, 4))
    table = new_table(path, given, options | dict(KINDS[kind]), format=table_format)
    # the ordering field goes down, and the update counts all the same
    table.update({"value": pc.field("value") + 10, "ts": pa.scalar(0)}, pc.field("value") > 2)
    table.delete(where=[("id", "=", "a")])
    source = valued(("b", "x", 0, 77), ("e", "z", 0, 88))
    merge = table.merge(source, on=["id"])
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    table.update({"part": pa.scalar("q")}, [("id", "=", "c")])
    expected = valued(("b", "x", 0, 77), ("c", "q", 0, 13), ("d", "y", 0, 14), ("e", "z", 0, 88))
    now = hudi.Table.open(path)
    assert now.to_arrow(VALUED.names).sort_by("id").equals(expected)
    assert now.to_arrow(VALUED.names, filter=[("id", "=", "c")]).equals(expected.slice(1, 1))
    assert now.validate(keys=True).is_valid
