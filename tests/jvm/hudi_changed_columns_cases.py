"""Hudi-Spark: tables whose columns have changed.

Files of one table hold columns as they were when they were written. Hudi-Spark reads them by the
names that the table has now, and filters find the same rows every way. Where it follows names and
not field ids, that is what the cases expect: a renamed column is null in older files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

import hudi_core as hudi
from tests.interop.test_schema_evolution import SHAPES, WIDER
from tests.interop.typed_values import Row, by_key, plain
from tests.jvm.engines import Engine
from tests.jvm.filters import Filter, compare, is_not_null, is_null
from tests.jvm.report import own_failure
from tests.jvm.skipping import differences, filtered, judged, wanted
from tests.jvm.writers import Shape, ours

VERSIONS: Final = ("8", "9")
PARTITIONED: Final = {"one folder": "", "partitioned": "city"}


def judge_alone(engine: Engine, path: Path, filters: Sequence[Filter], rows: Sequence[Row]) -> None:
    """Judge filters of a table that only this project can make."""
    unequal = differences(filtered(engine, path, filters).found, wanted(filters, rows))
    assert not unequal, unequal


@pytest.mark.parametrize("layout", PARTITIONED)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_column_that_rows_bring(
    hudi_spark: Engine, tmp_path: Path, version: str, layout: str
) -> None:
    """Rows with a new column, beside files of the partition that lack it."""
    kind = pa.int64()
    batches = [
        pa.table({"id": [1, 3, 4], "city": ["A", "A", "B"]}),
        pa.table({"id": [5, 6], "city": ["A", "C"], "added": [5, 6]}),
    ]
    filters = [
        *(compare("added", sign, 5, kind) for sign in ("=", ">=", "<", "!=")),
        *(is_null("added"), is_not_null("added")),
        *(compare("id", ">", 3, kind), compare("city", "=", "A", pa.string())),
    ]
    shape = Shape(version, partition=PARTITIONED[layout])
    judged(hudi_spark, tmp_path, shape, batches, filters)


BY_ROWS: Final[Mapping[str, tuple[pa.DataType, pa.DataType, Sequence[Any]]]] = {
    "int to long": (pa.int32(), pa.int64(), (1, 3, 2**40)),
    "float to double": (pa.float32(), pa.float64(), (0.5, 1.5, 1e300)),
    "decimal": (
        pa.decimal128(5, 2),
        pa.decimal128(9, 2),
        (Decimal("-1.50"), Decimal("3.25"), Decimal("1234567.89")),
    ),
}


@pytest.mark.parametrize("layout", PARTITIONED)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "change",
    [
        "int to long",
        "float to double",
        pytest.param(
            "decimal",
            marks=own_failure("Spark cannot compare a decimal with one that has too many digits"),
        ),
    ],
)
def test_a_type_that_rows_widen(
    hudi_spark: Engine, tmp_path: Path, change: str, version: str, layout: str
) -> None:
    """Rows of a wider type, beside files of the narrower one."""
    old, new, (low, high, wide) = BY_ROWS[change]
    narrow = pa.array([low, high, low, None], old)
    batches = [
        pa.table({"id": [1, 2, 3, 4], "city": list("AABC"), "x": narrow}),
        pa.table({"id": [5, 6, 7], "city": list("ABC"), "x": pa.array([wide, high, None], new)}),
    ]
    filters = [
        *(compare("x", sign, high, new) for sign in ("=", ">", "<=")),
        *(compare("x", "=", wide, new), compare("x", "<", wide, new)),
        *(is_null("x"), is_not_null("x")),
    ]
    shape = Shape(version, partition=PARTITIONED[layout])
    judged(hudi_spark, tmp_path, shape, batches, filters)


# --- changes by alter -----------------------------------------------------------------------------

PROMOTED: Final = [each for each in WIDER if each[0] != pa.float32()]
"""Hudi widens a float by way of its text, which :func:`test_a_float_that_alter_widens` expects."""


def promotions(shapes: Sequence[str]) -> tuple[pa.Table, dict[str, pa.DataType], list[Row]]:
    """Columns of each type in some places, what they become, and the rows as they are then."""
    columns: dict[str, pa.Array] = {"id": pa.array([0, 1, 2]), "city": pa.array(["A", "B", "A"])}
    promote: dict[str, pa.DataType] = {}
    rows: list[Row] = [{"id": number, "city": city} for number, city in enumerate("ABA")]
    for number, (old, new, stored, read) in enumerate(PROMOTED):
        for shape in shapes:
            kind, value, below = SHAPES[shape]
            name = f"{shape}_{number}"
            columns[name] = pa.array([value(each) for each in stored], kind(old))
            promote[name + below] = new
            for row, each in zip(rows, read, strict=True):
                row[name] = value(each)
    return pa.table(columns), promote, rows


@pytest.mark.parametrize("state", ["nothing written since", "rows of both types"])
@pytest.mark.parametrize("layout", PARTITIONED)
@pytest.mark.parametrize("version", VERSIONS)
def test_types_that_alter_widens(
    hudi_spark: Engine, tmp_path: Path, version: str, layout: str, state: str
) -> None:
    """Filters on columns of every type that can grow, before and after rows of the wider type."""
    data, promote, rows = promotions(["plain"])
    path = tmp_path / "table"
    ours("insert", data, path, Shape(version, partition=PARTITIONED[layout]))
    table = hudi.Table.open(str(path))
    table.alter(promote=promote)
    if state == "rows of both types":
        later = [{**row, "id": row["id"] + 10} for row in rows]
        new_files = {"hoodie.parquet.small.file.limit": "0"}
        table.insert(pa.Table.from_pylist(later, table.schema), options=new_files)
        rows = [*rows, *later]
    filters = []
    for number, (_, new, _, read) in enumerate(PROMOTED):
        if new == pa.binary() and (version, layout) == ("9", "partitioned"):
            continue  # Hudi-Spark fails on tables of its own, too: see hudi_skipping_cases.py
        first, second = (each for each in read if each is not None)
        filters += [
            compare(f"plain_{number}", "=", first, new),
            compare(f"plain_{number}", "<=", second, new),
            is_not_null(f"plain_{number}"),
        ]
    judge_alone(hudi_spark, path, filters, rows)


@pytest.mark.parametrize("version", VERSIONS)
def test_types_that_alter_widens_in_every_place(
    hudi_spark: Engine, tmp_path: Path, version: str
) -> None:
    """Values of columns that grew: plain ones, members, items and values of maps."""
    data, promote, rows = promotions(list(SHAPES))
    path = tmp_path / "table"
    ours("insert", data, path, Shape(version))
    table = hudi.Table.open(str(path))
    table.alter(promote=promote)
    assert same(hudi_spark.read(path), rows)
    later = [{**row, "id": row["id"] + 10} for row in rows]
    table.insert(pa.Table.from_pylist(later, table.schema))
    assert same(hudi_spark.read(path), [*rows, *later])


@pytest.mark.parametrize("version", VERSIONS)
def test_a_float_that_alter_widens(hudi_spark: Engine, tmp_path: Path, version: str) -> None:
    """A float becomes the double of its shortest text, whatever this project reads."""
    path = tmp_path / "table"
    ours("insert", pa.table({"id": [1], "f": pa.array([0.1], pa.float32())}), path, Shape(version))
    hudi.Table.open(str(path)).alter(promote={"f": pa.float64()})
    assert same(hudi_spark.read(path), [{"id": 1, "f": 0.1}])


def same(found: pa.Table, rows: Sequence[Row]) -> bool:
    """Compare rows by their ids, column by column."""
    right = {row["id"]: {n: plain(v) for n, v in row.items() if n != "id"} for row in rows}
    assert by_key(found) == right
    return True


NESTED: Final = pa.schema(
    [
        ("id", pa.int64()),
        ("city", pa.string()),
        ("a", pa.int64()),
        ("b", pa.string()),
        ("s", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        ("l", pa.list_(pa.field("element", pa.struct([("p", pa.int64())])))),
    ]
)
FIRST: Final[list[Row]] = [
    {"id": 1, "city": "A", "a": 1, "b": "one", "s": {"x": 1, "y": "u"}, "l": [{"p": 1}, None]},
    {"id": 2, "city": "A", "a": None, "b": None, "s": None, "l": None},
    {"id": 3, "city": "B", "a": 3, "b": "three", "s": {"x": None, "y": None}, "l": []},
]
STATS: Final = {
    "hoodie.metadata.index.column.stats.column.list": "id,city,a,b,s.x,s.y,c,a2,s.z,s.n"
}


def changed(
    path: Path, version: str, layout: str, alter: Callable[[hudi.Table], Any], later: list[Row]
) -> hudi.Table:
    """Make a table, change its columns, and insert more rows."""
    shape = Shape(version, partition=PARTITIONED[layout], options=STATS)
    ours("insert", pa.Table.from_pylist(FIRST, NESTED), path, shape)
    table = hudi.Table.open(str(path), {"hoodie.parquet.small.file.limit": "0"})
    alter(table)
    table.insert(pa.Table.from_pylist(later, table.schema))
    return table


@pytest.mark.parametrize("layout", PARTITIONED)
@pytest.mark.parametrize("version", VERSIONS)
def test_added_columns_and_members(
    hudi_spark: Engine, tmp_path: Path, version: str, layout: str
) -> None:
    """Columns and members that alter adds are null in older files."""
    path = tmp_path / "table"
    later = [{**FIRST[0], "id": 5, "c": 5, "s": {"x": 5, "y": "v", "n": 5}}]
    added = {"c": pa.int64(), "s.n": pa.int64(), "l.list.element.q": pa.string()}
    changed(path, version, layout, lambda table: table.alter(add_columns=added), later)
    rows: list[Row] = [
        {
            **row,
            "c": row.get("c"),
            "s": row["s"] and {"n": None, **row["s"]},
            "l": row["l"] and [each and {"q": None, **each} for each in row["l"]],
        }
        for row in [*FIRST, *later]
    ]
    assert same(hudi_spark.read(path), rows)
    kind = pa.int64()
    filters = [
        *(compare("c", "=", 5, kind), compare("c", "<", 9, kind), is_null("c")),
        *(compare("s.n", "=", 5, kind), is_not_null("s.n"), compare("s.x", ">", 0, pa.int32())),
        *(compare("a", "=", 1, kind), compare("s.y", "<=", "u", pa.string())),
    ]
    judge_alone(hudi_spark, path, filters, rows)


@pytest.mark.parametrize("layout", PARTITIONED)
@pytest.mark.parametrize("version", VERSIONS)
def test_renamed_columns(hudi_spark: Engine, tmp_path: Path, version: str, layout: str) -> None:
    """Renamed columns and members are null in older files, and no filter says otherwise."""
    path = tmp_path / "table"
    new = {**FIRST[0], "id": 5, "a2": 7, "s": {"z": 7, "y": "v"}}
    del new["a"]
    changed(path, version, layout, lambda table: table.alter(rename={"a": "a2", "s.x": "z"}), [new])
    rows: list[Row] = [
        {
            **{name: value for name, value in row.items() if name != "a"},
            "a2": row.get("a2"),
            "s": row["s"] and {"z": row["s"].get("z"), "y": row["s"]["y"]},
        }
        for row in [*FIRST, new]
    ]
    assert same(hudi_spark.read(path), rows)
    kind = pa.int64()
    filters = [
        *(compare("a2", "=", 7, kind), compare("a2", "=", 1, kind), is_null("a2")),
        *(compare("s.z", "=", 7, pa.int32()), compare("s.z", "<", 7, pa.int32())),
        *(compare("b", "=", "one", pa.string()), compare("s.y", "=", "u", pa.string())),
    ]
    judge_alone(hudi_spark, path, filters, rows)


@pytest.mark.parametrize("layout", PARTITIONED)
@pytest.mark.parametrize("version", VERSIONS)
def test_dropped_columns(hudi_spark: Engine, tmp_path: Path, version: str, layout: str) -> None:
    """Dropped columns and members are gone; filters on the others find what there is."""
    path = tmp_path / "table"
    new = {"id": 5, "city": "A", "b": "five", "s": {"y": "v"}, "l": None}
    changed(path, version, layout, lambda table: table.alter(drop=["a", "s.x"]), [new])
    rows: list[Row] = [
        {
            **{name: value for name, value in row.items() if name != "a"},
            "s": row["s"] and {"y": row["s"]["y"]},
        }
        for row in [*FIRST, new]
    ]
    assert same(hudi_spark.read(path), rows)
    text = pa.string()
    filters = [
        *(compare("b", "=", "one", text), compare("b", ">", "f", text), is_null("b")),
        *(compare("s.y", "=", "u", text), compare("s.y", ">", "u", text)),
    ]
    judge_alone(hudi_spark, path, filters, rows)


@pytest.mark.parametrize("layout", PARTITIONED)
@pytest.mark.parametrize("version", VERSIONS)
def test_columns_that_come_again_after_everything_was_rewritten(
    hudi_spark: Engine, tmp_path: Path, version: str, layout: str
) -> None:
    """A column that was dropped and added with another type, once no file has the old one."""
    path = tmp_path / "table"

    def again(table: hudi.Table) -> None:
        table.alter(drop="a")
        table.alter(add_columns={"a": pa.string()})

    table = changed(path, version, layout, again, [{**FIRST[0], "id": 5, "a": "x"}])
    rows: list[Row] = [{**row, "a": None if row["a"] is None else str(row["a"])} for row in FIRST]
    table.insert_overwrite_table(pa.Table.from_pylist(rows, table.schema))
    assert same(hudi_spark.read(path), rows)
    text = pa.string()
    filters = [
        *(compare("a", "=", "3", text), compare("a", "<", "3", text), is_null("a")),
        compare("b", "=", "one", text),
    ]
    judge_alone(hudi_spark, path, filters, rows)
