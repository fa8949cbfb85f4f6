"""What becomes of duplicates and of rows that lack columns or keys, through both doors of Spark.

``api`` is the Python API with a DataFrame, ``source`` is ``df.write.format("hudi")``. Rows are
those that hudi-rs reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import hudi_core as hudi
from hudi_core.errors import HudiError
from tests.foreign import by_hudi_rs

pytestmark = pytest.mark.spark

Row = dict[str, Any]
TAGGED = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("ts", pa.int64()),
        ("value", pa.float64()),
        ("tags", pa.list_(pa.string())),
    ]
)
KEYLESS = {
    "hoodie.table.name": "policies",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.fs.fsync": "false",
}
KEYED = {
    **KEYLESS,
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.table.ordering.fields": "ts",
}
POLICY = "hoodie.datasource.insert.dup.policy"
KEEP = {"hoodie.table.partial.update.mode": "KEEP_VALUES"}


class Door:
    """A table and one way to write to it."""

    def __init__(self, name: str, spark: SparkSession, path: Path) -> None:
        self.name, self.spark, self.path = name, spark, str(path / "table")
        self.options: Mapping[str, str] = KEYED

    def frame(self, *made: tuple[Any, ...], columns: int = 3, **more: pa.Array) -> DataFrame:
        """Make a DataFrame of two tasks; rows may leave the last columns out."""
        schema = pa.schema(list(TAGGED)[:columns])
        table = pa.Table.from_pylist(
            [dict(zip(schema.names, row, strict=True)) for row in made], schema
        )
        for name, values in more.items():
            table = table.append_column(name, values)
        return self.spark.createDataFrame(table)

    def write(self, operation: str, rows: DataFrame, *options: Mapping[str, str]) -> None:
        """Write; the empty operation is the default one."""
        given = {"hoodie.datasource.write.operation": operation} if operation else {}
        for some in (self.options, *options):
            given.update(some)
        if self.name == "api":
            hudi.write(rows, self.path, "append", given)
        else:
            rows.write.format("hudi").options(**given).mode("append").save(self.path)

    def create(self, *rows: tuple[Any, ...]) -> None:
        """Create a table with all columns, and rows of the first three of them."""
        full = [(*row, row[2] / 2, [row[0]]) for row in rows]
        self.write("insert", self.frame(*full, columns=5))

    def refuses(self, wanted: str, write: Callable[[], None]) -> None:
        """Check that a write fails with an error, and leaves the timeline as it was."""
        before = self.instants()
        with pytest.raises((HudiError, PySparkException)) as caught:
            write()
        assert wanted in f"{type(caught.value).__name__}: {caught.value}"
        assert self.instants() == before

    def instants(self) -> list[str]:
        if not Path(self.path).exists():
            return []
        return [one.requested_time for one in hudi.Table.open(self.path).timeline.instants]

    def rows(self) -> list[Row]:
        return by_hudi_rs(self.path)

    def held(self, *names: str) -> list[tuple[Any, ...]]:
        wanted = names or ("id", "city", "ts")
        return sorted((tuple(row[name] for name in wanted) for row in self.rows()), key=str)


@pytest.fixture(params=["api", "source"])
def door(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Door:
    return Door(request.param, spark, tmp_path)


OLD = [("a", "rome", 5), ("b", "rome", 5), ("c", "oslo", 5)]
MIXED = [("a", "rome", 9), ("d", "rome", 7), ("d", "rome", 8), ("d", "rome", 6), ("e", "bari", 1)]


def filled(rows: list[tuple[str, str, int]]) -> list[tuple[Any, ...]]:
    return [(*row, None, None) for row in rows]


# --- duplicates -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "left"),
    [
        ({}, [*OLD, *MIXED]),
        ({POLICY: "none"}, [*OLD, *MIXED]),
        ({POLICY: "drop"}, [*OLD, ("d", "rome", 8), ("e", "bari", 1)]),
        (
            {"hoodie.datasource.write.insert.drop.duplicates": "true"},
            [*OLD, ("d", "rome", 8), ("e", "bari", 1)],
        ),
        (
            {"hoodie.merge.allow.duplicate.on.inserts": "false"},
            [("a", "rome", 9), *OLD[1:], ("d", "rome", 8), ("e", "bari", 1)],
        ),
    ],
    ids=["default", "none", "drop", "drop-duplicates", "update-on-insert"],
)
def test_inserts_of_known_keys(
    door: Door, option: dict[str, str], left: list[tuple[str, str, int]]
) -> None:
    door.create(*OLD)
    door.write("insert", door.frame(*filled(MIXED), columns=5), option)
    assert door.held() == sorted(left)


def test_inserts_that_fail_on_known_keys(door: Door) -> None:
    door.create(*OLD)
    known = door.frame(*filled(MIXED), columns=5)
    door.refuses("DuplicateRecordKeyError", partial(door.write, "insert", known, {POLICY: "fail"}))
    assert door.held() == OLD
    new = door.frame(*filled([("a", "oslo", 1), ("f", "rome", 1)]), columns=5)
    door.write("insert", new, {POLICY: "fail"})
    assert len(door.rows()) == 5


@pytest.mark.parametrize(
    "operation", ["insert", "bulk_insert", "insert_overwrite", "insert_overwrite_table"]
)
@pytest.mark.parametrize("combine", ["true", "false"])
def test_inserting_operations_combine_when_asked_to(
    door: Door, operation: str, combine: str
) -> None:
    door.create(*OLD)
    # the rows of a key come in different tasks
    batch = [("x", "bari", 4), ("y", "bari", 1), ("x", "bari", 2), ("x", "bari", 3)]
    option = {"hoodie.combine.before.insert": combine}
    door.write(operation, door.frame(*filled(batch), columns=5), option)
    best = [("x", "bari", 4), ("y", "bari", 1)]
    kept = [] if operation == "insert_overwrite_table" else OLD
    assert door.held() == sorted([*kept, *(best if combine == "true" else batch)])


@pytest.mark.parametrize("combine", ["true", "false"])
def test_upsert_and_delete_combine_unless_told_not_to(door: Door, combine: str) -> None:
    door.create(*OLD)
    option = {"hoodie.combine.before.upsert": combine, "hoodie.combine.before.delete": combine}
    batch = [("x", "rome", 3), ("a", "rome", 7), ("x", "rome", 4), ("x", "rome", 2)]
    door.write("upsert", door.frame(*filled(batch), columns=5), option)
    # rows that are not combined and go to a file that is there: the last one counts
    new = [("x", "rome", 4 if combine == "true" else 2)]
    assert door.held() == sorted([("a", "rome", 7), *OLD[1:], *new])
    keys = door.frame(("x", "rome"), ("nobody", "rome"), ("x", "rome"), columns=2)
    door.write("delete", keys, option)
    assert door.held() == sorted([("a", "rome", 7), *OLD[1:]])


def test_change_data_of_a_job_with_hudis_options(door: Door) -> None:
    """The same options make the table and write to it."""
    door.options = {
        **KEYED,
        "hoodie.table.ordering.fields": "ts,value",
        "hoodie.write.table.version": "9",
        "hoodie.datasource.write.payload.class": (
            "org.apache.hudi.common.model.EventTimeAvroPayload"
        ),
        "hoodie.payload.delete.field": "tags_text",
        "hoodie.payload.delete.marker": "D",
    }

    def rows(*made: tuple[str, int, float, str]) -> DataFrame:
        full = [(key, "rome", ts, value, [key]) for key, ts, value, _ in made]
        texts = pa.array([text for *_, text in made])
        return door.frame(*full, columns=5, tags_text=texts)

    door.write("upsert", rows(("a", 5, 1.0, "I"), ("b", 5, 1.0, "I"), ("c", 5, 1.0, "I")))
    door.write(
        "upsert",
        rows(("a", 5, 0.5, "U"), ("b", 5, 2.0, "U"), ("c", 5, 1.5, "D"), ("b", 5, 1.5, "D")),
    )
    # hudi-rs cannot open a table that keeps several ordering fields
    found = hudi.Table.open(door.path).to_arrow(["id", "ts", "value"]).to_pylist()
    assert sorted(tuple(row.values()) for row in found) == [("a", 5, 1.0), ("b", 5, 2.0)]


# --- rows that lack columns -----------------------------------------------------------------------


def test_what_rows_lack_is_kept(door: Door) -> None:
    door.create(*OLD)
    batch = [
        ("a", "rome", 8),
        ("new", "rome", 1),
        ("b", "rome", 4),  # late
        ("z", "bari", 1),
        ("a", "rome", 7),
    ]
    door.write("upsert", door.frame(*batch), KEEP)
    names = ("id", "ts", "value", "tags")
    assert door.held(*names) == [
        ("a", 8, 2.5, ["a"]),
        ("b", 5, 2.5, ["b"]),
        ("c", 5, 2.5, ["c"]),
        ("new", 1, None, None),
        ("z", 1, None, None),
    ]
    door.write("upsert", door.frame(("a", "rome", 9, 1.25), columns=4), KEEP)
    assert door.held(*names)[0] == ("a", 9, 1.25, ["a"])
    flags = door.frame(
        ("a", "rome", 9), ("c", "oslo", 6), _hoodie_is_deleted=pa.array([True, None])
    )
    door.write("upsert", flags, KEEP)
    assert door.held(*names)[:2] == [("b", 5, 2.5, ["b"]), ("c", 6, 2.5, ["c"])]


def test_rows_that_lack_columns_are_refused_otherwise(door: Door) -> None:
    door.create(*OLD)
    less = door.frame(("a", "rome", 8))
    none = {"hoodie.table.partial.update.mode": "NONE"}
    for operation, options in (("upsert", {}), ("upsert", none), ("insert", KEEP)):
        door.refuses("SchemaError", partial(door.write, operation, less, options))
    unordered = door.frame(("a", "rome"), columns=2)
    door.refuses("orders the versions", partial(door.write, "upsert", unordered, KEEP))
    moving = {"hoodie.index.type": "GLOBAL_SIMPLE"}
    door.refuses("cannot keep stored values", partial(door.write, "upsert", less, KEEP, moving))
    assert door.held() == OLD


# --- rows without keys ----------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["8", "9"])
def test_rows_without_keys_all_stay(door: Door, version: str) -> None:
    door.options = {**KEYLESS, "hoodie.write.table.version": version}
    alike = [("a", "rome", 1), ("a", "rome", 1), ("b", "oslo", 2), ("a", "rome", 1)]
    expected: list[tuple[Any, ...]] = []
    for operation in ("bulk_insert", "insert", "insert", "insert_overwrite"):
        door.write(operation, door.frame(*alike))
        expected = sorted([*([] if operation == "insert_overwrite" else expected), *alike])
        found = door.rows()
        assert door.held() == expected
        keys = [row["_hoodie_record_key"] for row in found]
        assert len(set(keys)) == len(keys)
        assert keys == [row["_hoodie_commit_seqno"] for row in found]
        times = [row["_hoodie_commit_time"] for row in found]
        assert [key.split("_")[0] for key in keys] == times


def test_what_needs_keys_is_refused(door: Door) -> None:
    door.options = KEYLESS
    rows = door.frame(("a", "rome", 1), ("b", "rome", 2))
    door.write("", rows)  # insert is the default
    door.write("", rows)
    assert len(door.rows()) == 4
    for operation, word in (("upsert", "upserted"), ("delete", "deleted")):
        door.refuses(f"cannot be {word}", partial(door.write, operation, rows))
    for key, value in (("hoodie.combine.before.insert", "true"), (POLICY, "drop")):
        door.refuses("no two rows have the same", partial(door.write, "", rows, {key: value}))
    assert len(door.rows()) == 4
