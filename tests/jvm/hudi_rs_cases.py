"""What hudi-rs makes of merge-on-read tables that Hudi-Spark alone wrote.

Controls of what is left out where hudi-rs judges logs: it fails, or reads other rows, of tables by
any writer. Where a case is red because hudi-rs is right, our tables must be read right as well.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

import hudi_core as hudi
from tests.foreign import Row, by_hudi_rs
from tests.jvm.engines import Engine, EngineError
from tests.jvm.report import OwnFailureError, own_failure
from tests.jvm.writers import HudiSpark, Shape
from tests.tables import rows_of

VERSIONS: Final = pytest.mark.parametrize("version", ["8", "9"])
BLOCKS: Final = pytest.mark.parametrize("blocks", ["avro", "parquet"])
NESTED: Final[dict[str, tuple[pa.DataType, Any]]] = {
    "list": (pa.list_(pa.string()), ["x"]),
    "struct": (pa.struct([("level", pa.int32())]), {"level": 1}),
    "map": (pa.map_(pa.string(), pa.int32()), [("a", 1)]),
}
BUCKET: Final = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
ORDERED: Final = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("word", pa.string())])


def merge_on_read(version: str, blocks: str, **more: str) -> Shape:
    """A table of the type, ordered by `ts`, whose services nobody runs."""
    options = {
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.logfile.data.block.format": blocks,
        "hoodie.compact.inline": "false",
        "hoodie.metadata.enable": "false",
        **more,
    }
    return Shape(version, ordering="ts", options=options)


def of_hudi_rs(path: Path, columns: list[str]) -> list[Row]:
    """Rows as hudi-rs reads them, sorted, unless it fails."""
    try:
        found = by_hudi_rs(path)
    except Exception as error:
        raise OwnFailureError(str(error)) from error
    return sorted(({name: row[name] for name in columns} for row in found), key=repr)


@VERSIONS
@BLOCKS
@pytest.mark.parametrize("older", ["base file", "logs"])
def test_lists_from_before_a_new_column(
    hudi_spark: Engine, tmp_path: Path, older: str, blocks: str, version: str
) -> None:
    write, path, shape = HudiSpark(hudi_spark), tmp_path / "t", merge_on_read(version, blocks)
    schema = nested_schema("list")
    write("insert", rows_of(schema, ("a", 1, ["x"]), ("b", 1, None), ("c", 1, [])), path, shape)
    if older == "logs":
        write("upsert", rows_of(schema, ("a", 2, ["x", "y"]), ("b", 2, ["z"])), path, shape)
    is_read_with_a_new_column(write, path, shape, "list")


NAMED: Final = own_failure("hudi-rs names what is in lists and maps otherwise than the table does")


@VERSIONS
@pytest.mark.parametrize(
    ("kind", "blocks"),
    [
        pytest.param("list", "avro", marks=NAMED),
        pytest.param("list", "parquet", marks=NAMED),
        pytest.param("map", "avro", marks=NAMED),
        ("map", "parquet"),
        ("struct", "avro"),
        ("struct", "parquet"),
    ],
)
def test_new_rows_in_logs_from_before_a_new_column(
    hudi_spark: Engine, tmp_path: Path, kind: str, blocks: str, version: str
) -> None:
    """It takes such a row for an update of some columns; ours are read in Parquet blocks."""
    write, path, shape = HudiSpark(hudi_spark), tmp_path / "t", merge_on_read(version, blocks)
    shape, value = shape.with_options(BUCKET), NESTED[kind][1]
    write("insert", rows_of(nested_schema(kind), ("c", 1, value)), path, shape)
    write("upsert", rows_of(nested_schema(kind), ("d", 2, value)), path, shape)
    is_read_with_a_new_column(write, path, shape, kind)


def nested_schema(kind: str) -> pa.Schema:
    """Columns of a table with nested values."""
    return pa.schema([("id", pa.string()), ("ts", pa.int64()), ("nested", NESTED[kind][0])])


def is_read_with_a_new_column(write: HudiSpark, path: Path, shape: Shape, kind: str) -> None:
    """Add a column, and compare what everybody reads."""
    added = nested_schema(kind).append(pa.field("note", pa.string()))
    write("upsert", rows_of(added, ("c", 3, NESTED[kind][1], "n")), path, shape)
    ours = hudi.Table.open(path).to_arrow(added.names).sort_by("id").to_pylist()
    assert write.engine.read(path).select(added.names).sort_by("id").to_pylist() == ours
    assert of_hudi_rs(path, added.names) == ours


@own_failure("Hudi-Spark fails to compare a null, and hudi-rs takes it for 0")
@VERSIONS
@BLOCKS
def test_any_two_ordering_values(
    hudi_spark: Engine, tmp_path: Path, blocks: str, version: str
) -> None:
    """Each stored value meets each, null among them."""
    write, path, shape = HudiSpark(hudi_spark), tmp_path / "t", merge_on_read(version, blocks)
    pairs = list(product([None, -1, 0, 5], repeat=2))
    for operation, place in (("insert", 0), ("upsert", 1)):
        given = [(f"{at:02}", pair[place], operation) for at, pair in enumerate(pairs)]
        write(operation, rows_of(ORDERED, *given), path, shape)
    ours = hudi.Table.open(path).to_arrow(ORDERED.names).sort_by("id").to_pylist()
    counts = [had is None or new is None or new >= had for had, new in pairs]
    assert [row["word"] for row in ours] == [("insert", "upsert")[one] for one in counts]
    error = ""
    try:
        hudi_spark.read(path)
    except EngineError as found:
        error = str(found)
    other = [pairs[at] for at, row in enumerate(of_hudi_rs(path, ORDERED.names)) if row != ours[at]]
    if error or other:
        assert other == [(None, -1), (5, None)]
        assert "java.lang.Integer cannot be cast to class java.lang.Long" in error
        raise OwnFailureError(error)


@own_failure("hudi-rs takes the columns that the update lacks from the base file")
@VERSIONS
@BLOCKS
def test_a_full_row_behind_a_partial_update(
    hudi_spark: Engine, tmp_path: Path, blocks: str, version: str
) -> None:
    """The full row has the lower ordering value: of it are the columns that the update lacks."""
    write, path, shape = HudiSpark(hudi_spark), tmp_path / "t", merge_on_read(version, blocks)
    schema = ORDERED.append(pa.field("more", pa.string()))
    write("insert", rows_of(schema, ("a", 1, "old", "old"), ("b", 1, "old", "old")), path, shape)
    name = f"partial_{blocks}_{version}"
    hudi_spark.sql(f"create table {name} using hudi location 'file://{path}'")
    settings = {one: value for one, value in shape.given.items() if "name" not in one}
    with hudi_spark.configured(settings):
        hudi_spark.sql(
            f"merge into {name} t using (select 'a' as id, 9L as ts, 'part' as word) s"
            " on t.id = s.id when matched then update set ts = s.ts, word = s.word"
        )
    write("upsert", rows_of(schema, ("a", 5, "full", "full")), path, shape)
    ours = hudi.Table.open(path).to_arrow(schema.names).sort_by("id").to_pylist()
    assert hudi_spark.read(path).select(schema.names).sort_by("id").to_pylist() == ours
    assert ours[0] == {"id": "a", "ts": 9, "word": "part", "more": "full"}
    found = of_hudi_rs(path, schema.names)
    if found != ours:
        assert found == [{**ours[0], "more": "old"}, ours[1]]
        raise OwnFailureError(str(found))
