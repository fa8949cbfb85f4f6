"""Merges: which clause changes which row."""

from __future__ import annotations

import math
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_core as hudi
from hudi_core.errors import DuplicateRecordKeyError, MergeCardinalityError
from tests.formats.conditional_writes.conditional_tables import (
    SCHEMA,
    held,
    new_table,
    some,
    untouched,
)
from tests.formats.service_tables import READERS

# --- merges --------------------------------------------------------------------------------------


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


def test_null_parts_of_a_key_match_nothing_and_are_looked_for(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", record_key=["id", "name"], partition_by=None)
    table.upsert(some((1, "rome", 1, 1.0, None)))
    source = some((1, "rome", 2, 2.0, None))
    with pytest.raises(DuplicateRecordKeyError):
        table.merge(source, ["id", "name"]).when_not_matched_insert_all().execute()
    assert held(table) == [(1, "rome", 1, 1.0, None)]


def test_not_a_number_equals_itself(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", record_key="v", partition_by=None, ordering_field=None)
    nan = some((1, "rome", 1, float("nan"), "a"))
    table.upsert(nan)
    for on in ("v", "target.v = source.v"):
        merger = table.merge(nan, on).when_not_matched_insert_all()
        result = merger.when_matched_update({"ts": "target.ts + 1"}).execute()
        assert (result.inserted, result.updated) == (0, 1)
    assert table.delete(where="v > 100").deleted == 1


def test_days_are_compared_as_days(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("day", pa.date32())])
    table = hudi.Table.create(
        str(tmp_path / "t"), schema, name="t", record_key="id", partition_by="day"
    )
    days = [date(2026, 1, 31), date(2026, 2, 1), None]
    table.upsert(pa.table({"id": [1, 2, 3], "day": days}, schema=schema))
    assert table.update({"day": "date_add(day, 1)"}, "day = '2026-01-31'").inserted == 1
    assert table.delete(where="day BETWEEN DATE '2026-02-01' AND '2026-2-01'").deleted == 2
    assert table.to_arrow(["id"]).column("id").to_pylist() == [3]


def test_rows_with_the_delete_marker_are_deletes(tmp_path: Path) -> None:
    schema = pa.schema([*SCHEMA, pa.field("_hoodie_is_deleted", pa.bool_())])
    table = hudi.Table.create(str(tmp_path / "t"), schema, name="t", record_key="id")
    table.upsert(pa.Table.from_pylist([{"id": 1}, {"id": 2}], schema))
    source = pa.Table.from_pylist(
        [{"id": 1, "_hoodie_is_deleted": True}, {"id": 5, "_hoodie_is_deleted": True}, {"id": 6}],
        schema,
    )
    merger = table.merge(source, "id").when_matched_update_all().when_not_matched_insert_all()
    result = merger.execute()
    assert (result.inserted, result.updated, result.deleted) == (1, 0, 1)
    assert sorted(table.to_arrow(["id"]).column("id").to_pylist()) == [2, 6]
