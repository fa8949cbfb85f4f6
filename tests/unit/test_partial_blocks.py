"""Blocks of partial updates: which columns they have, and when rows are whole instead."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

from hudi_core import Table
from hudi_core.log_format.block import BlockType, HeaderKey, LogBlock, read_log_blocks
from hudi_core.schema.table_schema import META_COLUMNS
from tests.foreign import by_hudi_rs

COLUMNS: Final = pa.schema(
    [
        ("id", pa.string()),
        ("ts", pa.int64()),
        ("a", pa.int64()),
        ("b", pa.string()),
        ("c", pa.list_(pa.float64())),
    ]
)
PARTIAL: Final = {"hoodie.spark.sql.merge.into.partial.updates": "true"}
KEEPS: Final = {"hoodie.table.partial.update.mode": "KEEP_VALUES"}
VERSIONS: Final = pytest.mark.parametrize("version", ["8", "9"])
BLOCKS: Final = pytest.mark.parametrize("form", ["parquet", "avro"])
MODES: Final = pytest.mark.parametrize("mode", ["EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"])
Act = Callable[[Table], object]


def made(path: Path, options: Mapping[str, str], schema: pa.Schema = COLUMNS) -> list[Table]:
    """A table of each type with four rows."""
    rows = [
        {"id": key, "ts": 5, "a": number, "b": f"b{number}", "c": [0.5 * number]}
        for number, key in enumerate("klmn")
    ]
    tables = []
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        table = Table.create(
            path / kind,
            schema,
            record_key="id",
            ordering_field="ts",
            table_type=kind,
            options={"hoodie.compact.inline": "false", **PARTIAL, **options},
        )
        table.insert(pa.Table.from_pylist(rows, schema))
        tables.append(table)
    return tables


def blocks(table: Table) -> list[LogBlock]:
    """All blocks of the table, which has logs in one slice."""
    logs = [log.status for one in Table.open(table.path).file_slices() for log in one.log_files]
    paths = [Path(table.path, log.path) for log in logs]
    return [block for path in paths for block in read_log_blocks(path.read_bytes(), str(path))]


def columns(block: LogBlock) -> tuple[bool, list[str]]:
    """Whether a block is of partial updates, and its columns but the meta columns."""
    fields = [field["name"] for field in json.loads(block.header[HeaderKey.SCHEMA])["fields"]]
    assert fields[:5] == list(META_COLUMNS)
    return block.header.get(HeaderKey.IS_PARTIAL) == "true", fields[5:]


def agreed_rows(table: Table) -> list[dict[str, Any]]:
    """The rows, by ours and by hudi-rs."""
    found: list[dict[str, Any]] = (
        Table.open(table.path).to_arrow(COLUMNS.names).sort_by("id").to_pylist()
    )
    theirs = [{name: row[name] for name in COLUMNS.names} for row in by_hudi_rs(table.path)]
    assert sorted(theirs, key=lambda row: str(row["id"])) == found
    return found


def same(tables: list[Table], act: Act) -> list[dict[str, Any]]:
    """Do something to a table of each type, which then have the same rows."""
    for table in tables:
        act(table)
    written, logged = map(agreed_rows, tables)
    assert logged == written
    return logged


@VERSIONS
@BLOCKS
@MODES
def test_statements_write_the_columns_that_they_set(
    tmp_path: Path, version: str, form: str, mode: str
) -> None:
    tables = made(
        tmp_path,
        {
            "hoodie.write.table.version": version,
            "hoodie.logfile.data.block.format": form,
            "hoodie.record.merge.mode": mode,
        },
    )

    same(tables, lambda table: table.update({"a": "a + 10"}, where="id < 'm'"))
    source = pa.table({"id": ["l", "m", "z"], "b": ["one", "two", "three"], "ts": [6, 7, 8]})

    def merge(table: Table) -> None:
        merger = table.merge(source, on="id").when_matched_update({"b": "source.b"})
        names = ("id", "ts", "b")
        merger.when_not_matched_insert({name: f"source.{name}" for name in names}).execute()

    found = same(tables, merge)

    assert [row["a"] for row in found] == [10, 11, 2, 3, None]
    assert [row["b"] for row in found] == ["b0", "one", "two", "b3", "three"]
    assert [row["c"] for row in found] == [[0.0], [0.5], [1.0], [1.5], None]
    logged = tables[1]
    # the new row is in a base file of its own
    assert [columns(block) for block in blocks(logged)] == [
        (True, ["ts", "a"]),
        (True, ["ts", "b"]),
    ]
    assert all(HeaderKey.RECORD_POSITIONS in block.header for block in blocks(logged))
    logged.compact()
    assert agreed_rows(logged) == found


def test_partial_upserts_write_the_columns_that_they_have(tmp_path: Path) -> None:
    tables = made(tmp_path, {})
    given = pa.table({"id": ["k", "l", "m"], "ts": [6, 4, 5], "a": [60, 40, 50]})

    found = same(tables, lambda table: table.upsert(given, options=KEEPS))

    assert [row["a"] for row in found] == [60, 1, 50, 3]  # the second is late
    assert [row["b"] for row in found] == ["b0", "b1", "b2", "b3"]
    assert [columns(block) for block in blocks(tables[1])] == [(True, ["id", "ts", "a"])]


def test_one_row_after_the_other_changes_other_columns(tmp_path: Path) -> None:
    tables = made(tmp_path, {})

    same(tables, lambda table: table.update({"a": "7"}, where="id = 'k'"))
    same(tables, lambda table: table.update({"b": "'x'", "ts": "9"}, where="id = 'k'"))
    whole = pa.table({"id": ["k"], "ts": [9], "a": [None], "b": ["y"], "c": [[2.0]]})
    same(tables, lambda table: table.upsert(whole.cast(COLUMNS)))
    found = same(tables, lambda table: table.update({"a": "a", "c": "NULL"}, where="id = 'k'"))

    assert found[0] == {"id": "k", "ts": 9, "a": None, "b": "y", "c": None}
    assert [is_partial for is_partial, _ in map(columns, blocks(tables[1]))] == [
        True,
        True,
        False,
        True,
    ]


def test_new_rows_have_whole_blocks_beside_updates(tmp_path: Path) -> None:
    tables = made(tmp_path, {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"})
    given = pa.table({"id": ["k", "z"], "ts": [6, 6], "b": ["new", "new"]})

    found = same(tables, lambda table: table.upsert(given, options=KEEPS))

    assert [row["a"] for row in found] == [0, 1, 2, 3, None]
    every = ["id", "ts", "a", "b", "c"]
    assert [columns(block) for block in blocks(tables[1])] == [
        (True, ["id", "ts", "b"]),
        (False, every),
    ]
    # a row that only logs have is updated as others are
    found = same(tables, lambda table: table.update({"a": "1"}, where="id >= 'n'"))
    assert [row["a"] for row in found] == [0, 1, 2, 1, 1]
    assert columns(blocks(tables[1])[-1]) == (True, ["ts", "a"])


@pytest.mark.parametrize("memory", ["1", "1000000"])
def test_rows_that_only_logs_have_are_found_again(tmp_path: Path, memory: str) -> None:
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
    tables = made(tmp_path, {**buckets, "hoodie.memory.merge.max.size": memory})
    new = [{"id": key, "ts": 5, "a": ord(key), "b": key, "c": [1.0]} for key in "zywvxt"]
    changed = pa.table({"id": ["y", "w", "t"], "ts": [6, 6, 6], "b": ["q", "r", "s"]})

    same(tables, lambda table: table.upsert(pa.Table.from_pylist(new, COLUMNS)))
    same(tables, lambda table: table.update({"b": "'up'"}, where="id IN ('z', 'v')"))
    found = same(tables, lambda table: table.upsert(changed, options=KEEPS))
    assert [row["a"] for row in found[4:]] == [ord(key) for key in "tvwxyz"]

    same(tables, lambda table: table.delete(where="id IN ('y', 'k')"))
    found = same(tables, lambda table: table.update({"c": "array(a, 0)"}, where="id > 'l'"))
    assert [row["c"] for row in found[3:]] == [[float(ord(key)), 0.0] for key in "tvwxz"]


@pytest.mark.parametrize("memory", ["1", "1000000"])
def test_statements_find_rows_of_several_logs(tmp_path: Path, memory: str) -> None:
    tables = made(tmp_path, {"hoodie.memory.merge.max.size": memory})
    for where in ("id = 'n'", "id = 'k'", "id = 'm'"):
        same(tables, partial(Table.update, set={"a": "a + 10"}, where=where))

    found = same(tables, lambda table: table.update({"b": "id"}, where="a > 10"))
    assert [row["b"] for row in found] == ["b0", "b1", "m", "n"]
    found = same(tables, lambda table: table.delete(where="id = 'k'"))
    assert [(row["id"], row["a"]) for row in found] == [("l", 1), ("m", 12), ("n", 13)]


def test_a_deleted_row_comes_again_whole(tmp_path: Path) -> None:
    tables = made(tmp_path, {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"})
    given = pa.table({"id": ["k", "l"], "ts": [1, 1], "a": [8, 9]})

    same(tables, lambda table: table.delete(where="id = 'k'"))
    found = same(tables, lambda table: table.upsert(given, options=KEEPS))

    assert found[0] == {"id": "k", "ts": 1, "a": 8, "b": None, "c": None}
    assert found[1] == {"id": "l", "ts": 1, "a": 9, "b": "b1", "c": [0.5]}
    data = [block for block in blocks(tables[1]) if block.type != BlockType.DELETE]
    assert [columns(block)[0] for block in data] == [True, False]


@pytest.mark.parametrize(
    "options",
    [
        {"hoodie.spark.sql.merge.into.partial.updates": "false"},
        {"hoodie.populate.meta.fields": "false"},
        {"hoodie.write.table.version": "9", **dict.fromkeys(KEEPS, "IGNORE_DEFAULTS")},
        {
            "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model."
            "PartialUpdateAvroPayload"
        },
    ],
    ids=["off", "virtual keys", "filled", "payload"],
)
def test_rows_are_whole_where_columns_could_not_say_it(
    tmp_path: Path, options: dict[str, str]
) -> None:
    table = made(tmp_path, options)[1]

    table.update({"a": "7"}, where="id = 'k'")

    [block] = blocks(table)
    assert columns(block) == (False, COLUMNS.names)


def test_rows_are_whole_unless_asked_for_and_beside_marks_of_deletes(tmp_path: Path) -> None:
    marked = COLUMNS.append(pa.field("_hoodie_is_deleted", pa.bool_()))
    beside = made(tmp_path / "marked", {}, marked)[1]
    usual = Table.create(tmp_path / "usual", COLUMNS, record_key="id", table_type="MERGE_ON_READ")
    usual.insert(pa.Table.from_pylist([{"id": "k", "ts": 1}], COLUMNS))

    for table in (beside, usual):
        table.update({"a": "7"}, where="id = 'k'")

    assert [columns(block)[0] for block in blocks(beside)] == [False]
    assert [columns(block)[0] for block in blocks(usual)] == [False]


def test_files_are_left_out_by_all_columns_of_updated_rows(tmp_path: Path) -> None:
    tables = made(tmp_path, {"hoodie.metadata.index.column.stats.enable": "true"})
    same(tables, lambda table: table.update({"a": "100"}, where="id = 'k'"))
    logged = Table.open(tables[1].path)

    found = logged.to_arrow(["id"], filter=[("a", "=", 100), ("b", "=", "b0")])
    assert found["id"].to_pylist() == ["k"]
    # the log has ranges of the columns that its block lacks, for readers that look at both
    [log] = logged.file_slices()[0].log_files
    ranges = {
        row["column_name"]: (row["min_value"], row["max_value"])
        for row in logged.metadata("column_stats").to_pylist()
        if row["file_name"] == log.status.name
    }
    assert ranges["a"] == ("100", "100")
    assert ranges["b"] == ("b0", "b0")
    assert logged.validate(keys=True).is_valid
