"""Columns that grow, move and go, read by us, by Spark, by DuckDB and by hudi-rs.

hudi-rs finds columns by name and DuckDB is only given files: what they cannot follow is written
down here as what they answer today.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import duckdb
import hudi as hudi_rs
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import hudi_core as hudi
from hudi_core.errors import SchemaError, UnsupportedTableError
from hudi_core.schema.casting import PROMOTIONS, can_promote, promotion
from tests.hudi_tables import PLAIN
from tests.tables import new_table

Row = dict[str, Any]
KEY: Final = "id"
NEW_FILES: Final = {"hoodie.parquet.small.file.limit": "0"}


def sorted_rows(table: pa.Table) -> list[Row]:
    kept = [name for name in table.column_names if not name.startswith("_hoodie")]
    rows: list[Row] = table.select(kept).sort_by(KEY).to_pylist()
    return rows


def ours(table: hudi.Table) -> list[Row]:
    return sorted_rows(hudi.Table.open(table.path).to_arrow())


def by_hudi_rs(table: hudi.Table) -> list[Row]:
    batches = hudi_rs.HudiTableBuilder.from_base_uri(table.path).build().read()
    return sorted_rows(pa.Table.from_batches([pa.record_batch(each) for each in batches]))


def by_spark(table: hudi.Table, spark: SparkSession) -> list[Row]:
    return sorted_rows(table.read(spark).toArrow())


def by_duckdb(table: hudi.Table, names: list[str]) -> list[Row]:
    files = [each.base_file for each in table.file_slices()]
    paths = [f"{table.path}/{each.path}" for each in files if each is not None]
    query = f"SELECT {', '.join(names)} FROM read_parquet({paths}, union_by_name = true)"
    with duckdb.connect() as connection:
        return sorted_rows(connection.sql(query).to_arrow_table())


# --- promotions ------------------------------------------------------------------------------

INTS: Final = [1, -(2**31), None]
LONGS: Final = [1, -(2**63), None]
CENTS: Final = [Decimal("1.25"), Decimal("-999.99"), None]
DATES: Final = [dt.date(1, 1, 1), dt.date(9999, 12, 31), None]


def texts(values: list[Any]) -> list[str | None]:
    return [None if value is None else str(value) for value in values]


# from, to, values as they were, values as they are to be read
WIDER: Final[list[tuple[pa.DataType, pa.DataType, list[Any], list[Any]]]] = [
    (pa.int32(), pa.int64(), INTS, INTS),
    (pa.int32(), pa.float64(), INTS, [1.0, -(2.0**31), None]),
    (pa.int32(), pa.decimal128(10, 0), INTS, [Decimal(1), Decimal(-(2**31)), None]),
    (pa.int32(), pa.decimal128(14, 4), INTS, [Decimal(1), Decimal(-(2**31)), None]),
    (pa.int32(), pa.string(), INTS, texts(INTS)),
    (pa.int64(), pa.decimal128(20, 0), LONGS, [Decimal(1), Decimal(-(2**63)), None]),
    (pa.int64(), pa.decimal128(22, 2), LONGS, [Decimal(1), Decimal(-(2**63)), None]),
    (pa.int64(), pa.string(), LONGS, texts(LONGS)),
    (pa.float32(), pa.float64(), [0.5, math.inf, None], [0.5, math.inf, None]),
    (pa.decimal128(5, 2), pa.decimal128(9, 2), CENTS, CENTS),
    (pa.decimal128(5, 2), pa.decimal128(38, 2), CENTS, CENTS),
    (pa.decimal128(5, 2), pa.decimal128(9, 4), CENTS, CENTS),
    (pa.decimal128(18, 0), pa.decimal128(38, 20), [Decimal(7), None, Decimal(-7)], [7, None, -7]),
    (pa.date32(), pa.string(), DATES, ["0001-01-01", "9999-12-31", None]),
    (pa.string(), pa.binary(), ["ä", "", None], ["ä".encode(), b"", None]),
]
SHAPES: Final[dict[str, tuple[Callable[[pa.DataType], pa.DataType], Callable[[Any], Any], str]]] = {
    "plain": (lambda kind: kind, lambda value: value, ""),
    "inner": (lambda kind: pa.struct([("v", kind)]), lambda value: {"v": value}, ".v"),
    "items": (
        lambda kind: pa.list_(pa.field("element", kind)),
        lambda value: [value],
        ".list.element",
    ),
    "pairs": (
        lambda kind: pa.map_(pa.string(), kind),
        lambda value: [("k", value)],
        ".key_value.value",
    ),
}


def test_the_cases_cover_every_promotion_that_is_made() -> None:
    made = {each for each in PROMOTIONS if each.exact and each.hudi}
    assert {promotion(old, new) for old, new, _, _ in WIDER} == made


def test_promotions_in_every_place_by_every_reader(tmp_path: Path, spark: SparkSession) -> None:
    before: dict[str, pa.Array] = {KEY: pa.array(["a", "b", "c"])}
    promote: dict[str, pa.DataType] = {}
    wanted: list[Row] = [{KEY: key} for key in "abc"]
    for number, (old, new, stored, read) in enumerate(WIDER):
        for shape, (kind, value, below) in SHAPES.items():
            name = f"{shape}_{number}"
            before[name] = pa.array([value(each) for each in stored], kind(old))
            promote[name + below] = new
            for row, each in zip(wanted, read, strict=True):
                row[name] = value(each)
    data = pa.table(before)
    table = hudi.Table.create(str(tmp_path / "t"), data.schema, record_key=KEY, options=NEW_FILES)
    table.insert(data)
    table.alter(promote=promote)
    for name, kind in promote.items():
        assert table.schema.field(name.split(".")[0]).type != before[name.split(".")[0]].type, kind
    assert ours(table) == by_hudi_rs(table) == by_spark(table, spark) == wanted
    # a file with the new types beside the old one
    later = [{**row, KEY: key} for row, key in zip(wanted, "xyz", strict=True)]
    table.insert(pa.Table.from_pylist(later, table.schema))
    both = [*wanted, *later]
    assert ours(table) == by_hudi_rs(table) == by_spark(table, spark) == both
    # DuckDB unites texts and bytes by a cast of its own
    texts_to_bytes = f"_{len(WIDER) - 1}"
    names = [name for name in before if not name.endswith(texts_to_bytes)]
    assert by_duckdb(table, names) == [{name: row[name] for name in names} for row in both]
    # and once the old file is written again
    table.upsert(pa.Table.from_pylist(wanted[:1], table.schema))
    assert ours(table) == by_hudi_rs(table) == by_spark(table, spark) == both


def test_hudi_reads_floats_as_their_shortest_texts(tmp_path: Path, spark: SparkSession) -> None:
    schema = pa.schema([(KEY, pa.string()), ("f", pa.float32())])
    table = hudi.Table.create(str(tmp_path / "t"), schema, record_key=KEY)
    table.insert(pa.Table.from_pylist([{KEY: "a", "f": 0.1}], schema))
    table.alter(promote={"f": pa.float64()})
    (stored,) = pa.array([0.1], pa.float32()).cast(pa.float64()).to_pylist()
    assert ours(table) == by_spark(table, spark) == [{KEY: "a", "f": stored}]
    assert by_duckdb(table, [KEY, "CAST(f AS DOUBLE) AS f"]) == [{KEY: "a", "f": stored}]
    # as Hudi's Java readers do: they widen a float by way of its text
    assert by_hudi_rs(table) == [{KEY: "a", "f": 0.1}]


EVERY_TYPE: Final = (
    pa.bool_(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.decimal128(5, 2),
    pa.decimal128(30, 2),
    pa.date32(),
    pa.time64("us"),
    pa.timestamp("us"),
    pa.timestamp("us", "UTC"),
    pa.list_(pa.field("element", pa.int32())),
)


def test_all_other_changes_of_type_are_refused(tmp_path: Path) -> None:
    schema = pa.schema(
        [(KEY, pa.string()), *((f"c{n}", kind) for n, kind in enumerate(EVERY_TYPE))]
    )
    table = hudi.Table.create(str(tmp_path / "t"), schema, record_key=KEY)
    for number, old in enumerate(EVERY_TYPE):
        for new in EVERY_TYPE:
            if old == new or can_promote(old, new):
                continue
            with pytest.raises(SchemaError) as caught:
                table.alter(promote={f"c{number}": new})
            for word in (f"c{number}", str(old), str(new), "Add a column"):
                assert word in str(caught.value)
    assert not table.timeline.completed_writes()


def test_rows_with_wider_types_widen_the_table(tmp_path: Path, spark: SparkSession) -> None:
    schema = pa.schema(
        [
            (KEY, pa.string()),
            ("n", pa.int32()),
            ("f", pa.float32()),
            ("d", pa.decimal128(5, 2)),
            ("s", pa.struct([("n", pa.int32())])),
        ]
    )
    table = hudi.Table.create(str(tmp_path / "t"), schema, record_key=KEY, options=NEW_FILES)
    first = {KEY: "a", "n": 1, "f": 0.5, "d": Decimal("1.25"), "s": {"n": 1}}
    table.insert(pa.Table.from_pylist([first], schema))
    second = {KEY: "b", "n": 2**40, "f": 0.1, "d": Decimal("1.2525"), "s": {"n": 2**40}}
    wide = pa.schema(
        [
            (KEY, pa.string()),
            ("n", pa.int64()),
            ("f", pa.float64()),
            ("d", pa.decimal128(7, 4)),
            ("s", pa.struct([("n", pa.int64())])),
        ]
    )
    table.insert(pa.Table.from_pylist([second], wide))
    assert table.schema.types == wide.types
    assert ours(table) == by_hudi_rs(table) == by_spark(table, spark) == [first, second]
    # narrower rows are widened
    third = {KEY: "c", "n": 3, "f": 1.5, "d": Decimal("0.10"), "s": {"n": 3}}
    table.upsert(pa.Table.from_pylist([third], schema))
    assert table.schema.types == wide.types
    assert ours(table) == by_hudi_rs(table) == by_spark(table, spark) == [first, second, third]


# --- renames and drops -----------------------------------------------------------------------

COLUMNS: Final = pa.schema(
    [
        (KEY, pa.string()),
        ("city", pa.string()),
        ("a", pa.int64()),
        ("b", pa.int64()),
        ("s", pa.struct([("x", pa.int64()), ("y", pa.string())])),
        ("l", pa.list_(pa.struct([("p", pa.int64()), ("q", pa.int64())]))),
        ("m", pa.map_(pa.string(), pa.struct([("u", pa.string())]))),
    ]
)
FIRST: Final[Row] = {
    KEY: "1",
    "city": "rome",
    "a": 1,
    "b": 2,
    "s": {"x": 3, "y": "y"},
    "l": [{"p": 5, "q": 6}, None],
    "m": [("k", {"u": "u"})],
}
NULLS: Final[Row] = {
    KEY: "2",
    "city": "rome",
    "a": None,
    "b": None,
    "s": None,
    "l": None,
    "m": None,
}
MOVED: Final = {"a": "b", "b": "a", "s.x": "z", "l.list.element.p": "q", "l.list.element.q": "p"}


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    table = new_table(tmp_path / "t", COLUMNS, NEW_FILES, record_key=KEY)
    table.insert(pa.Table.from_pylist([FIRST, NULLS], COLUMNS))
    return table


def moved(row: Row) -> Row:
    point, items, pairs = row["s"], row["l"], row["m"]
    return {
        KEY: row[KEY],
        "city": row["city"],
        "b": row["a"],
        "a": row["b"],
        "s": point and {"z": point["x"], "y": point["y"]},
        "l": items and [each and {"q": each["p"], "p": each["q"]} for each in items],
        "m": pairs and [(key, {"v": each["u"]}) for key, each in pairs],
    }


def test_renames_at_any_depth(table: hudi.Table, spark: SparkSession) -> None:
    result = table.alter(rename={**MOVED, "m.key_value.value.u": "v"})
    assert (result.operation, result.files) == (hudi.WriteOperation.ALTER_SCHEMA, 0)
    wanted = [moved(FIRST), moved(NULLS)]
    assert ours(table) == by_spark(table, spark) == wanted
    # an old file and a new one, filters, and columns alone
    new = {**moved(FIRST), KEY: "3", "a": 20, "b": 10}
    table.insert(pa.Table.from_pylist([new], table.schema))
    assert ours(table) == by_spark(table, spark) == [*wanted, new]
    found = table.to_arrow(columns=[KEY], filter=[("b", "=", 1)])
    assert found.to_pylist() == [{KEY: "1"}]
    alone = table.to_arrow(columns=["a"]).column("a").to_pylist()
    assert sorted(alone, key=str) == [2, 20, None]  # which file comes first is not said
    assert [row.id for row in table.read(spark).where("a = 2").collect()] == ["1"]
    # rows that a merge keeps are written under the new names
    table.upsert(pa.Table.from_pylist([{**moved(NULLS), "a": 7}], table.schema))
    merged = [wanted[0], {**wanted[1], "a": 7}, new]
    assert ours(table) == by_spark(table, spark) == by_hudi_rs(table) == merged


def test_a_column_that_was_dropped_does_not_come_back(
    table: hudi.Table, spark: SparkSession
) -> None:
    ids = table.config.field_ids
    table.alter(drop=["a", "s.x"])
    without = [
        {**{name: value for name, value in row.items() if name != "a"}, "s": s}
        for row, s in ((FIRST, {"y": "y"}), (NULLS, None))
    ]
    assert ours(table) == by_spark(table, spark) == by_hudi_rs(table) == without
    table.alter(add_columns={"a": pa.int64(), "s.x": pa.int64()})
    assert table.config.field_ids["a"] > max(ids.values())
    again = [{**row, "a": None, "s": row["s"] and {**row["s"], "x": None}} for row in without]
    assert ours(table) == by_spark(table, spark) == again
    assert table.to_arrow(filter=[("a", "=", 1)]).num_rows == 0
    # neither in a file that is written again
    table.upsert(pa.Table.from_pylist([{**again[1], "a": 7}], table.schema))
    merged = [again[0], {**again[1], "a": 7}]
    assert ours(table) == by_spark(table, spark) == by_hudi_rs(table) == merged


def test_past_states_have_the_columns_of_today(table: hudi.Table, spark: SparkSession) -> None:
    first = table.timeline.completed_writes()[-1]
    table.alter(rename={"a": "c"}, drop="b")
    table.upsert(pa.Table.from_pylist([{**ours(table)[0], "c": 100}], table.schema))
    assert ours(table)[0]["c"] == 100
    past = sorted_rows(table.to_arrow(as_of=first))
    assert [row["c"] for row in past] == [1, None]
    assert sorted_rows(table.read(spark, as_of=first).toArrow()) == past
    changes = sorted_rows(table.incremental(begin=None, end=first))
    assert changes == sorted_rows(table.incremental(None, first, spark).toArrow()) == past


def test_names_are_all_that_hudi_rs_goes_by(table: hudi.Table) -> None:
    table.alter(rename={"a": "c"})
    assert [row["c"] for row in ours(table)] == [1, None]
    assert [row["c"] for row in by_hudi_rs(table)] == [None, None]
    table.alter(drop="b")
    table.alter(add_columns={"b": pa.int64()})
    assert [row["b"] for row in ours(table)] == [None, None]
    assert [row["b"] for row in by_hudi_rs(table)] == [2, None]
    # until the rows are written again
    table.upsert(table.to_arrow(columns=table.schema.names))
    assert by_hudi_rs(table) == ours(table)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rename": {KEY: "key"}}, [KEY, "record key"]),
        ({"drop": KEY}, [KEY, "record key"]),
        ({"promote": {KEY: pa.binary()}}, [KEY, "record key"]),
        ({"drop": ["city"]}, ["city", "partition"]),
        ({"rename": {"ts": "t"}}, ["ts", "ordering"]),
        ({"promote": {"ts": pa.int64()}}, ["ts", "ordering"]),
        ({"drop": "missing"}, ["missing", "ts, n, s, s.x"]),
        ({"rename": {"n": "s"}}, ["s", "several"]),
        ({"rename": {"n": "_hoodie_commit_time"}}, ["_hoodie_commit_time"]),
        ({"rename": {"n": "a-b"}}, ["a-b", "ASCII"]),
        ({"drop": ["s.x"]}, ["s", "Drop the struct"]),
        ({"drop": ["n", "n"]}, ["n", "once"]),
        ({"drop": ["n"], "rename": {"n": "o"}}, ["n", "once"]),
        ({"add_columns": {"n": pa.int64()}}, ["n", "several"]),
        ({"add_columns": {"n.x": pa.int64()}}, ["n.x", "struct"]),
        ({"add_columns": [pa.field("o", pa.int64(), nullable=False)]}, ["o", "null"]),
        ({"promote": {"s": pa.string()}}, ["s", "struct<x: int32>", "string"]),
        ({"promote": {"n": pa.int32()}}, ["as it is"]),
        ({}, ["as it is"]),
    ],
    ids=str,
)
def test_changes_that_cannot_be_made(
    change: dict[str, Any], words: list[str], tmp_path: Path
) -> None:
    schema = pa.schema(
        [
            (KEY, pa.string()),
            ("city", pa.string()),
            ("ts", pa.int32()),
            ("n", pa.int32()),
            ("s", pa.struct([("x", pa.int32())])),
        ]
    )
    table = new_table(tmp_path / "t", schema, record_key=KEY)
    with pytest.raises(SchemaError) as caught:
        table.alter(**change)
    for word in words:
        assert word in str(caught.value)
    assert not table.timeline.instants


# --- tables of Apache Hudi -------------------------------------------------------------------


def test_a_table_of_another_writer_keeps_ids_from_the_first_write(
    real_tables: Callable[[str], Path], tmp_path: Path, spark: SparkSession
) -> None:
    table = hudi.Table.open(str(real_tables(PLAIN)))
    assert not table.config.field_ids
    with pytest.raises(UnsupportedTableError, match="field ids"):
        table.alter(rename={"name": "called"})
    before = ours(table)
    table.alter(add_columns={"extra": pa.int64()})
    assert table.config.field_ids["extra"] == table.config.last_column_id
    wanted = [{**row, "extra": None} for row in before]
    assert ours(table) == by_spark(table, spark) == wanted
    changed = {**wanted[0], "extra": 5}
    table.upsert(pa.Table.from_pylist([changed], table.schema))
    assert ours(table) == by_spark(table, spark) == [changed, *wanted[1:]]
