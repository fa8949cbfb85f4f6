"""Rows that share a key: each is merged for itself, and ``validate --keys`` counts them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

import hudi_core as hudi
from hudi_core.cli import app
from hudi_core.engine.spark import SparkEngine
from hudi_core.services.differences import Source
from tests.formats.service_tables import operator
from tests.tables import new_table

NAMES = ("id", "city", "ts", "v", "_hoodie_is_deleted")
SCHEMA = pa.schema(
    [("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("v", pa.string())]
)
NEW_FILES = {"hoodie.parquet.small.file.limit": "0"}
WHOLE = {"hoodie.index.type": "RECORD_INDEX", "hoodie.metadata.record.index.enable": "true"}
BY_PARTITION = {
    "hoodie.index.type": "RECORD_LEVEL_INDEX",
    "hoodie.metadata.record.level.index.enable": "true",
}

Row = tuple[Any, ...]


def rows(*made: Row) -> pa.Table:
    names = NAMES[: len(made[0])]
    return pa.table({name: [row[at] for row in made] for at, name in enumerate(names)})


def make(path: Path, ordering: str | None = "ts", **options: str) -> hudi.Table:
    return new_table(path, SCHEMA, options, ordering_field=ordering)


def held(table: hudi.Table) -> list[Row]:
    found = table.to_arrow(list(SCHEMA.names)).to_pylist()
    return sorted(tuple(row.values()) for row in found)


def stored(path: Path, ordering: str | None, *, in_files: bool, **options: str) -> hudi.Table:
    """A table with a key in three rows: of one file, or of a file each."""
    table = make(path, ordering, **options)
    own = [("a", "x", 5, "p"), ("a", "x", 7, "q"), ("a", "x", 6, "r"), ("b", "x", 6, "s")]
    if not in_files:
        table.insert(rows(*own))
    for row in own if in_files else ():
        table.insert(rows(row), options=NEW_FILES)
    return table


LATE: list[Row] = [("a", "x", 5, "p"), ("a", "x", 6, "r")]
OTHER: Row = ("b", "x", 6, "s")


@pytest.mark.parametrize("in_files", [False, True], ids=["one file", "three files"])
@pytest.mark.parametrize(
    ("ordering", "row", "counts", "left"),
    [
        ("ts", ("a", "x", 8, "n"), (3, 0), [("a", "x", 8, "n")] * 3),
        ("ts", ("a", "x", 6, "n"), (2, 0), [("a", "x", 6, "n")] * 2 + [("a", "x", 7, "q")]),
        ("ts", ("a", "x", 4, "n"), (0, 0), [*LATE, ("a", "x", 7, "q")]),
        (None, ("a", "x", 1, "n"), (3, 0), [("a", "x", 1, "n")] * 3),
        ("ts", ("a", "x", 6, "n", True), (0, 2), [("a", "x", 7, "q")]),
        (None, ("a", "x", 1, "n", True), (0, 3), []),
    ],
)
def test_each_stored_row_of_a_key_is_merged_for_itself(
    in_files: bool,
    ordering: str | None,
    row: Row,
    counts: tuple[int, int],
    left: list[Row],
    tmp_path: Path,
) -> None:
    table = stored(tmp_path / "t", ordering, in_files=in_files)
    result = table.upsert(rows(row))
    assert (result.inserted, result.updated, result.deleted) == (0, *counts)
    assert held(table) == sorted([*left, OTHER])
    files = Counter(table.to_arrow()["_hoodie_file_name"].to_pylist())
    for stat in (status.stat for status in result.statuses):
        assert stat.num_writes == files[str(stat.path).rpartition("/")[2]]
    assert sum(status.stat.num_deletes or 0 for status in result.statuses) == counts[1]


def test_a_delete_by_key_deletes_all_of_its_rows(tmp_path: Path) -> None:
    table = stored(tmp_path / "t", "ts", in_files=False)
    assert table.delete(rows(("a", "x", 0, ""))).deleted == 3
    assert held(table) == [OTHER]


@pytest.mark.spark
def test_spark_merges_each_stored_row_too(spark: SparkSession, tmp_path: Path) -> None:
    table = stored(tmp_path / "t", "ts", in_files=False)
    frame = spark.createDataFrame(rows(("a", "x", 6, "n")))
    result = table.upsert(frame, engine=SparkEngine(spark, tasks_on_driver=False))
    assert (result.inserted, result.updated, result.deleted) == (0, 2, 0)
    assert held(table) == [("a", "x", 6, "n")] * 2 + [("a", "x", 7, "q"), OTHER]


# --- telling of them ------------------------------------------------------------------------------


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_keys_of_several_rows_are_counted_when_asked_for(tmp_path: Path) -> None:
    table = stored(tmp_path / "t", "ts", in_files=True)
    table.insert(rows(("a", "y", 1, "t"), ("c", "y", 1, "u"), ("c", "y", 1, "u")))

    assert table.validate().repeated_keys is None
    found = table.validate(keys=True).repeated_keys
    assert found is not None
    assert (found.keys, found.rows, found.are_forbidden) == (2, 5, False)
    assert [(one.key, len(set(one.paths))) for one in found.examples] == [("a", 3), ("c", 1)]

    said = run("table", "validate", tmp_path / "t", "--keys")
    assert said.exit_code == 0, said.output
    assert "Keys that several rows have: 2 in 5 rows: 'a' 3 times (x/" in said.output
    document = json.loads(run("table", "validate", tmp_path / "t", "--keys", "--json").output)
    assert document["valid"]
    assert document["repeated_keys"]["rows"] == 5
    plain = json.loads(run("table", "validate", tmp_path / "t", "--json").output)
    assert plain["repeated_keys"] is None


def twice_in_a_partition(table: hudi.Table) -> None:
    table.insert(rows(("a", "x", 5, "p"), ("b", "x", 1, "r")))
    table.insert(rows(("a", "x", 6, "q")), options=NEW_FILES)


def in_two_partitions(table: hudi.Table) -> None:
    table.insert(rows(("a", "x", 5, "p"), ("a", "y", 5, "p")))


@pytest.mark.parametrize(
    ("options", "fill", "is_valid"),
    [
        (WHOLE, twice_in_a_partition, False),
        (WHOLE, in_two_partitions, False),
        (BY_PARTITION, twice_in_a_partition, False),
        (BY_PARTITION, in_two_partitions, True),
        ({}, twice_in_a_partition, True),
    ],
)
def test_a_record_index_forbids_keys_of_several_rows(
    options: dict[str, str], fill: Callable[[hudi.Table], None], is_valid: bool, tmp_path: Path
) -> None:
    table = make(tmp_path / "t", **options)
    fill(table)
    said = run("table", "validate", tmp_path / "t", "--keys")
    assert said.exit_code == (0 if is_valid else 4), said.output
    report = table.validate(keys=True)
    assert report.is_valid is is_valid
    said_of = [one.subject for one in report.of(Source.STORAGE)]
    assert said_of == ([] if is_valid else ["record keys"])


def test_a_record_index_goes_on_with_several_rows_of_a_key(tmp_path: Path) -> None:
    table = stored(tmp_path / "t", "ts", in_files=False, **WHOLE)
    operator(tmp_path / "t").index("secondary_index_v", "v")
    table = hudi.Table.open(str(tmp_path / "t"), WHOLE)
    table.upsert(rows(("a", "x", 6, "n"), ("b", "x", 9, "m"), ("c", "x", 1, "o")))
    assert held(table) == [
        *[("a", "x", 6, "n")] * 2,
        ("a", "x", 7, "q"),
        ("b", "x", 9, "m"),
        ("c", "x", 1, "o"),
    ]
    assert table.validate().is_valid
    assert table.to_arrow(["id"], filter=[("v", "=", "n")]).num_rows == 2
    table.delete(rows(("a", "x", 0, "")))
    assert {row[0] for row in held(table)} == {"b", "c"}
    assert table.validate(keys=True).is_valid
