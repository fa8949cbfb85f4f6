"""Expression indexes: what they hold, who keeps them, and what is refused."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_core as hudi
from hudi_core.errors import TableServiceError, UnsupportedTableError
from tests.cli_runs import run
from tests.tables import copied, new_table, rows

PEOPLE = pa.schema(
    {
        "id": pa.string(),
        "name": pa.string(),
        "ts": pa.timestamp("us", "UTC"),
        "day": pa.date32(),
        "seconds": pa.int64(),
        "city": pa.string(),
    }
)
OPTIONS = {
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.clean.automatic": "false",
    # what is left out is left out by the index alone
    "hoodie.metadata.index.column.stats.column.list": "id",
}
INDEXES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "lower_name": ("name", {"expr": "lower"}),
    "name_begin": ("name", {"expr": "substring", "pos": "1", "len": "2"}),
    "ts_day": ("ts", {"expr": "date_format", "format": "yyyy-MM-dd"}),
    "day_month": ("day", {"expr": "month"}),
    "when": ("seconds", {"expr": "from_unixtime", "format": "yyyy-MM"}),
}


def person(key: str, name: str | None, year: int | None, city: str = "oslo") -> pa.Table:
    at = None if year is None else dt.datetime(year, 5, 6, 7, 8, 9, tzinfo=dt.UTC)
    day, seconds = (None, None) if at is None else (at.date(), int(at.timestamp()))
    return rows(key, schema=PEOPLE, name=name, ts=at, day=day, seconds=seconds, city=city)


def create(path: Path, version: str = "8", **more: str) -> hudi.Table:
    options = {**OPTIONS, "hoodie.write.table.version": version, **more}
    return new_table(path, PEOPLE, options, ordering_field=None)


def reopened(table: hudi.Table) -> hudi.Table:
    return hudi.Table.open(table.path, options=OPTIONS)


def filled(path: Path, version: str = "8", **more: str) -> hudi.Table:
    return copied(path, newly_filled, version, **more)


def indexed(path: Path, version: str = "8") -> hudi.Table:
    return copied(path, newly_indexed, version)


def definitions(table: hudi.Table, index: str = "", **changes: Any) -> Any:
    """Definitions of the indexes of a table, with changes to one of them."""
    path = Path(table.path, ".hoodie/.index_defs/index.json")
    found = json.loads(path.read_text())
    if changes:
        found["indexDefinitions"][f"expr_index_{index}"] |= changes
        path.write_text(json.dumps(found))
    return found["indexDefinitions"]


def newly_filled(path: Path, version: str, **more: str) -> hudi.Table:
    table = create(path, version, **more)
    table.insert(pa.concat_tables([person("a", "Anna", 2020), person("b", "BERT", 2021)]))
    table.insert(person("c", None, None))
    table.insert(person("d", "Dora", 2024, "rome"))
    return table


def require_right(table: hudi.Table) -> None:
    report = reopened(table).validate()
    assert report.is_valid, report.differences


def ranges(table: hudi.Table, index: str) -> set[tuple[str | None, str | None]]:
    found = table.metadata(f"expr_index_{index}")
    files = found.filter(pc.ends_with(found["file_name"], ".parquet"))
    return set(zip(files["min_value"].to_pylist(), files["max_value"].to_pylist(), strict=True))


def newly_indexed(path: Path, version: str) -> hudi.Table:
    table = newly_filled(path, version)
    for name, (column, options) in INDEXES.items():
        table.create_index(name, column, using="column_stats", options=options)
    return table


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    return indexed(tmp_path / "t")


@pytest.mark.parametrize("version", ["8", "9"])
def test_an_index_is_built_of_the_files_there(tmp_path: Path, version: str) -> None:
    table = indexed(tmp_path / "t", version)
    assert ranges(table, "lower_name") == {("anna", "bert"), (None, None), ("dora", "dora")}
    assert ranges(table, "name_begin") == {("An", "BE"), (None, None), ("Do", "Do")}
    # a day may be another one in the time zone of a session
    days = {("2020-05-05", "2021-05-07"), (None, None), ("2024-05-05", "2024-05-07")}
    assert ranges(table, "ts_day") == days
    assert ranges(table, "day_month") == {("1", "12"), (None, None), ("5", "5")}
    assert ranges(table, "when") == {("2020-05", "2021-05"), (None, None), ("2024-05", "2024-05")}
    require_right(table)


@pytest.mark.parametrize("version", ["8", "9"])
def test_definitions_are_those_of_hudi(tmp_path: Path, version: str) -> None:
    table = indexed(tmp_path / "t", version)
    assert definitions(table)["expr_index_ts_day"] == {
        "indexName": "expr_index_ts_day",
        "indexType": "column_stats",
        "indexFunction": "date_format",
        "sourceFields": ["ts"],
        "indexOptions": {"expr": "date_format", "format": "yyyy-MM-dd"},
        "version": "V2" if version == "9" else "V1",
    }
    assert "expr_index_ts_day" in table.config.metadata_partitions


@pytest.mark.parametrize("version", ["8", "9"])
def test_every_action_keeps_it(tmp_path: Path, version: str) -> None:
    table = indexed(tmp_path / "t", version)
    table.upsert(pa.concat_tables([person("a", "Zoe", 1999), person("e", "Émile", 2030, "bonn")]))
    assert {("bert", "zoe"), ("émile", "émile")} <= ranges(table, "lower_name")
    require_right(table)
    table.delete(person("b", None, None).select(["id", "city"]))
    require_right(table)
    table.insert_overwrite(person("f", "Fay", 2001, "rome"))
    require_right(table)
    replaced = table.delete_partitions(["bonn"])
    require_right(table)
    table.rollback(replaced.instant)
    require_right(table)
    assert ("émile", "émile") in ranges(table, "lower_name")
    table.cluster()
    require_right(table)
    table.savepoint()
    table.insert(person("g", "Gil", 2040))
    assert ("gil", "gil") in ranges(table, "lower_name")
    table.restore(table.savepoints[-1].instant)
    assert ("gil", "gil") not in ranges(table, "lower_name")
    require_right(table)
    table.clean(options={"hoodie.clean.commits.retained": "1"})
    require_right(table)


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_rebuilt_metadata_table_has_it(table: hudi.Table, is_lost: bool) -> None:
    before = {name: ranges(table, name) for name in INDEXES}
    if is_lost:
        shutil.rmtree(Path(table.path, ".hoodie/metadata"))
    table.repair_metadata()
    table = reopened(table)
    assert {name: ranges(table, name) for name in INDEXES} == before
    table.upsert(person("a", "Zoe", 1999))
    require_right(table)


def test_an_upgraded_table_has_it(table: hudi.Table) -> None:
    table.upgrade(9)
    table = reopened(table)
    assert ("anna", "bert") in ranges(table, "lower_name")
    assert planned(table, [("name", "=", "Dora")]) == ({"d"}, 1)
    table.upsert(person("a", "Zoe", 1999))
    require_right(table)


def test_it_is_dropped(table: hudi.Table) -> None:
    table.drop_index("lower_name")
    assert "expr_index_lower_name" not in table.config.metadata_partitions
    assert "expr_index_lower_name" not in definitions(table)
    assert not Path(table.path, ".hoodie/metadata/expr_index_lower_name").exists()
    table.upsert(person("a", "Zoe", 1999))
    require_right(table)
    with pytest.raises(TableServiceError, match="no partition lower_name"):
        table.drop_index("lower_name")


def test_an_empty_table_has_an_index_before_its_first_rows(tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    table.create_index("low", "name", options={"expr": "lower"})
    table.insert(person("a", "Anna", 2020))
    table.insert(person("b", "Bo", 2020, "rome"))
    found = table.metadata("expr_index_low").to_pylist()
    names = {one["file_name"]: one["max_value"] for one in found}
    assert (names["oslo"], names["rome"]) == ("anna", "bo")
    require_right(table)


def test_the_range_of_a_partition_widens(table: hudi.Table) -> None:
    table.upsert(person("a", "Zoe", 1999))
    found = table.metadata("expr_index_lower_name").to_pylist()
    [oslo] = [one for one in found if one["file_name"] == "oslo"]
    assert (oslo["min_value"], oslo["max_value"]) == ("anna", "zoe")


def test_a_wrong_range_is_found(table: hudi.Table) -> None:
    definitions(table, "lower_name", indexFunction="upper")
    report = reopened(table).validate()
    assert all("expr_index_lower_name" in str(one) for one in report.differences)
    assert any("upper(name) of" in one.subject for one in report.differences)
    assert any("of the partition" in one.subject for one in report.differences)


# --- reading
def ids(table: hudi.Table, condition: Any, **more: Any) -> list[str]:
    return sorted(table.to_arrow("id", condition, **more).column(0).to_pylist())


def planned(table: hudi.Table, condition: Any) -> tuple[set[str], int]:
    reader = reopened(table)
    return set(ids(reader, condition)), len(reader.file_slices(filter=condition))


@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize(
    ("condition", "expected", "files"),
    [
        ([("name", "=", "Dora")], {"d"}, 1),
        ([("name", "in", ["Dora", "Xaver"])], {"d"}, 1),
        ([("name", "=", "DORA")], set(), 0),
        ([("name", ">=", "C")], {"d"}, 1),
        ([("name", "<", "B")], {"a"}, 1),
        ([("ts", ">", dt.datetime(2023, 1, 1, tzinfo=dt.UTC))], {"d"}, 1),
        ([("ts", "=", dt.datetime(2020, 5, 6, 7, 8, 9, tzinfo=dt.UTC))], {"a"}, 1),
        ([("ts", "<", dt.datetime(2019, 1, 1, tzinfo=dt.UTC))], set(), 0),
        ([("day", "=", dt.date(2024, 5, 6))], {"d"}, 2),
        ([("day", "=", dt.date(2024, 6, 6))], set(), 1),
        ([("seconds", "<", 1_600_000_000)], {"a"}, 1),
        ([("name", "!=", "Dora")], {"a", "b"}, 3),
        ([("name", "is null", None)], {"c"}, 3),
        ([("name", "not in", ["Anna"])], {"b", "d"}, 3),
        (pc.field("name").is_null() | (pc.field("name") == "Dora"), {"c", "d"}, 3),
        (~(pc.field("name") == "Dora"), {"a", "b"}, 3),
    ],
)
def test_filters(
    tmp_path: Path, version: str, condition: Any, expected: set[str], files: int
) -> None:
    table = indexed(tmp_path / "t", version)
    assert planned(table, condition) == (expected, files)
    plain = hudi.Table.open(table.path, options={**OPTIONS, "hoodie.metadata.enable": "false"})
    assert set(ids(plain, condition)) == expected


def test_past_states_are_pruned_by_their_own_files(table: hudi.Table) -> None:
    before = table.timeline.completed_writes()[-1].requested_time
    table.upsert(person("d", "Zoe", 1999, "rome"))
    condition = [("name", "=", "Dora")]
    assert ids(reopened(table), condition, as_of=before) == ["d"]
    assert planned(table, condition) == (set(), 0)


def test_a_name_that_stood_for_another_column_prunes_nothing(table: hudi.Table) -> None:
    table.alter(rename={"name": "former"})
    table.alter(add_columns=[pa.field("name", pa.string())])
    table = reopened(table)
    assert ids(table, [("former", "=", "Dora")]) == ["d"]
    table.insert(rows("z", schema=table.schema, name="Late", former="x", city="oslo"))
    assert planned(table, [("name", "=", "Late")])[0] == {"z"}


# --- what is refused
@pytest.mark.parametrize(
    ("column", "using", "options", "words"),
    [
        ("nothing", None, {"expr": "lower"}, "needs a column"),
        ("name", "column_stats", {}, r"the function \(none\) is none of"),
        ("name", "column_stats", {"expr": "identity"}, "identity is none of"),
        ("name", "column_stats", {"expr": "regexp_replace", "pattern": "a"}, "regexp_replace"),
        ("name", "column_stats", {"expr": "year"}, "year of a column of type string"),
        ("ts", "column_stats", {"expr": "lower"}, "lower of a column of type timestamp"),
        ("ts", "column_stats", {"expr": "date_format"}, "needs the option format"),
        ("ts", "column_stats", {"expr": "date_format", "format": "dd.MM.yyyy"}, "is not computed"),
        ("ts", "column_stats", {"expr": "date_format", "format": "EEE"}, "is not computed"),
        ("ts", "column_stats", {"expr": "year", "format": "yyyy"}, "year has no option format"),
        ("day", "column_stats", {"expr": "date_add", "days": "many"}, "is not computed"),
        ("day", "bloom_filters", {"expr": "year"}, "type bloom_filters"),
    ],
)
def test_what_there_can_be_no_index_of(
    tmp_path: Path, column: str, using: str | None, options: Mapping[str, str], words: str
) -> None:
    table = filled(tmp_path / "t")
    before = sorted((tmp_path / "t/.hoodie").rglob("*.indexing*"))
    with pytest.raises(TableServiceError, match=words):
        table.create_index("expr_index_x", column, using=using, options=options)
    assert sorted((tmp_path / "t/.hoodie").rglob("*.indexing*")) == before
    require_right(table)


def test_a_secondary_index_has_no_function(tmp_path: Path) -> None:
    table = filled(tmp_path / "t")
    with pytest.raises(TableServiceError, match="of no function"):
        table.create_index("secondary_index_x", "name", options={"expr": "lower"})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"indexFunction": "regexp_extract"}, "regexp_extract is none of"),
        ({"indexType": "bloom_filters"}, "type bloom_filters"),
        ({"indexOptions": {"expr": "lower", "locale": "tr"}}, "has no option locale"),
        ({"sourceFields": ["name", "id"]}, "of name, id, not of one column"),
    ],
)
def test_an_index_that_is_not_kept(table: hudi.Table, change: dict[str, Any], words: str) -> None:
    definitions(table, "lower_name", **change)
    before = sorted(Path(table.path).rglob("*.parquet"))
    with pytest.raises(UnsupportedTableError, match=words) as caught:
        reopened(table).upsert(person("a", "Zoe", 1999))
    assert "expr_index_lower_name" in str(caught.value)
    assert "DROP INDEX" in str(caught.value)
    assert sorted(Path(table.path).rglob("*.parquet")) == before
    assert hudi.Table.open(table.path).count() == 4


def test_the_type_of_its_column_stays(tmp_path: Path) -> None:
    table = new_table(tmp_path / "o", pa.schema({"id": "string", "seconds": "int32"}), OPTIONS)
    table.create_index("when", "seconds", options={"expr": "from_unixtime"})
    with pytest.raises(UnsupportedTableError, match="expr_index_when of seconds, whose type"):
        table.alter(promote={"seconds": pa.int64()})


# --- the command line
def test_the_command_line_adds_and_drops_it(tmp_path: Path) -> None:
    path = filled(tmp_path / "t").path

    def carried_out(command: str, *arguments: str) -> str:
        done = run("metadata", command, path, *arguments)
        assert done.exit_code == 0, done.output
        return done.output

    given = ["--column", "ts", "--using", "column_stats"]
    given += ["--index-option", "expr=date_format", "--index-option", "format=yyyy-MM"]
    carried_out("index", "expr_index_month", *given)
    assert ("2020-05", "2021-05") in ranges(hudi.Table.open(path), "month")
    assert "expr_index_month" in carried_out("validate", "--validate-expression-index")
    carried_out("drop", "expr_index_month")
    assert "expr_index_month" not in hudi.Table.open(path).config.metadata_partitions


@pytest.mark.parametrize("shards", ["1", "8"])
@pytest.mark.parametrize("is_used", [True, False], ids=["used", "unused"])
def test_an_open_dataset_outlives_its_index(tmp_path: Path, is_used: bool, shards: str) -> None:
    # most of eight shards have no base file, as there are fewer data files
    more = {"hoodie.metadata.index.expression.file.group.count": shards}
    table = filled(tmp_path / "t", **more)
    table.create_index("name", "name", using="column_stats", options={"expr": "lower"})
    stays = table.scan()
    wanted = pc.field("name") == "Anna"
    if is_used:
        assert stays.to_table(["id"], wanted)["id"].to_pylist() == ["a"]
    other = hudi.Table.open(table.path, options=OPTIONS | more)
    other.drop_index("name")
    other.create_index("name", "name", using="column_stats", options={"expr": "upper"})

    for _ in range(2):
        assert stays.to_table(["id"], wanted)["id"].to_pylist() == ["a"]
    assert ids(table, wanted) == ["a"]


@pytest.mark.parametrize("how", ["promoted", "added again"])
@pytest.mark.parametrize(
    "options",
    [{"expr": "lower"}, {"expr": "length"}, {"expr": "substring", "pos": "2", "len": "2"}],
    ids=lambda options: options["expr"],
)
def test_files_from_before_texts_were_there(
    tmp_path: Path, how: str, options: dict[str, str]
) -> None:
    some = rows("a", "b", v=pa.array([12, 345], pa.int32()), city="oslo")
    table = new_table(tmp_path / "t", some, OPTIONS)
    if how == "promoted":
        table.alter(promote={"v": pa.string()})
    else:
        table.alter(drop="v")
        table.alter(add_columns={"v": pa.string()})
    table.create_index("v", "v", using="column_stats", options=options)
    table.insert(rows("c", schema=table.schema, v="Hi", city="oslo"))
    kept = {"12": ["a"], "345": ["b"]} if how == "promoted" else {"12": [], "345": []}
    for text, keys in {**kept, "Hi": ["c"]}.items():
        assert ids(table, [("v", "=", text)]) == keys
    require_right(table)
