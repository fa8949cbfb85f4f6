"""Changes of real tables: forms of the images, options, filters."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import DataFileError, InvalidOptionError, SchemaError
from hudi_core.read.json_text import json_rows
from tests.tables import new_table

FEED = {
    "hoodie.datasource.query.type": "incremental",
    "hoodie.datasource.query.incremental.format": "cdc",
    "hoodie.datasource.read.begin.instanttime": "earliest",
}


def rows(*ids: int, value: str = "a") -> pa.Table:
    return pa.table({"id": list(ids), "city": ["rome"] * len(ids), "value": [value] * len(ids)})


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    made = hudi.Table.create(tmp_path / "t", rows(1), record_key="id", partition_by="city")
    made.insert(rows(1, 2))
    made.upsert(rows(2, 3, value="b"))
    made.delete(rows(1))
    return made


def test_json_of_every_type() -> None:
    given = pa.table(
        {
            "i": pa.array([1, None], pa.int32()),
            'na"me': pa.array(['q"\\\n\x01é\U0001f600', None]),
            "empty": pa.array(["", None], pa.large_string()),
            "x": pa.array([1e20, None], pa.float64()),
            "f": pa.array([1.1, 2.0], pa.float32()),
            "n": pa.array([float("nan"), float("-inf")]),
            "b": pa.array([True, None]),
            "d": pa.array([date(2026, 1, 2), None]),
            "t": pa.array([datetime(2026, 1, 2, 3, 4, 5, 6, UTC), None], pa.timestamp("us", "UTC")),
            "l": pa.array([-86400000, None], pa.int64()).cast(pa.timestamp("ms")),
            "u": pa.array([time(1, 2, 3), None], pa.time32("ms")),
            "p": pa.array([Decimal("12.30"), None], pa.decimal128(10, 2)),
            "r": pa.array([b"\x01\xffab", None]),
            "list": pa.array([[[1], None, []], None], pa.list_(pa.list_(pa.int8()))),
            "s": pa.array([{"a": None, "z": ["x"]}, None]),
            "m": pa.array([[("k", 1), ("j", None)], None], pa.map_(pa.string(), pa.int64())),
            "w": pa.array([[(date(1970, 1, 2), "x")], []], pa.map_(pa.date32(), pa.string())),
            "c": pa.array(["x", None]).dictionary_encode(),
        }
    )
    first, second = (json.loads(text) for text in json_rows(given).to_pylist())
    assert first == {
        "i": 1,
        'na"me': 'q"\\\n\x01é\U0001f600',
        "empty": "",
        "x": 1e20,
        "f": 1.1,
        "n": "NaN",
        "b": True,
        "d": 20455,
        "t": 1767323045000006,
        "l": -86400000000,
        "u": 3723000000,
        "p": 12.3,
        "r": "Af9hYg==",
        "list": [[1], None, []],
        "s": {"a": None, "z": ["x"]},
        "m": {"k": 1, "j": None},
        "w": {"1": "x"},
        "c": "x",
    }
    present = {name: value for name, value in second.items() if value is not None}
    assert present == {"f": 2.0, "n": "-Infinity", "w": {}}
    assert '"f":2.0,' in json_rows(given)[1].as_py()
    assert json_rows(given.slice(1, 1)).to_pylist() == json_rows(given).to_pylist()[1:]
    assert json_rows(pa.table({"x": []})).to_pylist() == []


def test_images_are_texts_or_structs(table: hudi.Table) -> None:
    _, second, third = table.timeline.completed_writes()
    texts = table.changes(second).to_pylist()
    [structs] = table.changes(second, images="struct", columns="id").to_pylist()
    before = '{"id":1,"city":"rome","value":"a"}'
    deleted = {"op": "d", "ts_ms": third.requested_time}
    assert texts == [{**deleted, "before": before, "after": None}]
    assert structs == {**deleted, "before": {"id": 1}, "after": None}
    with pytest.raises(InvalidOptionError, match="images"):
        table.changes(images="xml")  # type: ignore[arg-type]


def test_no_columns_at_all(table: hudi.Table) -> None:
    told = [
        (row["op"], row["before"], row["after"])
        for row in table.changes(columns=[], images="struct").to_pylist()
    ]
    assert told == [
        ("i", None, {}),
        ("i", None, {}),
        ("i", None, {}),
        ("u", {}, {}),
        ("d", {}, None),
    ]
    texts = table.changes_batches(columns=[], filter=[("value", "=", "b")]).read_all()
    assert [(row["op"], row["before"], row["after"]) for row in texts.to_pylist()] == [
        ("u", "{}", "{}"),
        ("i", None, "{}"),
    ]
    # what is left of rows is their number
    first, *_ = table.timeline.completed_writes()
    assert table.to_arrow(columns=[]).num_rows == table.count() == 2
    assert table.to_arrow(columns=[], filter=[("id", "=", 3)]).num_rows == 1
    assert table.incremental(first, columns=[]).num_rows == 2
    net = table.incremental(first, columns=[], deletes=True)
    assert sorted(net["_change_type"].to_pylist()) == ["delete", "insert", "update"]


def test_the_feed_by_hudis_options(table: hudi.Table) -> None:
    found = hudi.read(None, table.path, FEED)
    assert found.equals(table.changes_batches().read_all())
    assert found.column_names == ["op", "ts_ms", "before", "after"]
    assert sorted(found["op"].to_pylist()) == ["d", "i", "i", "i", "u"]
    end = table.timeline.completed_writes()[0].completion_time
    until = {**FEED, "hoodie.datasource.read.end.instanttime": end}
    assert hudi.read(None, table.path, until)["op"].to_pylist() == ["i", "i"]
    assert hudi.read(None, f"{table.path}/rome", FEED).num_rows == 5


def test_a_filter_of_changes(table: hudi.Table) -> None:
    first, *_ = table.timeline.completed_writes()
    was_or_is = table.changes(first, filter=[("value", "=", "a")], columns="id", images="struct")
    assert [(row["op"], row["before"]["id"]) for row in was_or_is.to_pylist()] == [
        ("u", 2),
        ("d", 1),
    ]
    shown = table.incremental(first, deletes=True, filter=[("value", "=", "a")], columns="id")
    assert shown.to_pylist() == [{"id": 1, "_change_type": "delete"}]
    assert table.changes(first, filter=[("city", "=", "oslo")]).num_rows == 0


def test_a_column_of_the_name_is_refused(tmp_path: Path) -> None:
    given = pa.table({"id": [1], "_change_type": ["x"]})
    table = new_table(tmp_path / "t", given)
    with pytest.raises(SchemaError, match="has a column _change_type"):
        table.incremental(deletes=True)
    assert table.incremental().num_rows == 1
    assert table.changes().num_rows == 1


@pytest.mark.parametrize("format_name", ["native", "iceberg", "delta"])
def test_files_that_a_filter_excludes_are_not_read(tmp_path: Path, format_name: str) -> None:
    options = {
        "hoodie.copyonwrite.insert.auto.split": "false",
        "hoodie.copyonwrite.insert.split.size": "2",
        "hoodie.parquet.small.file.limit": "0",
    }
    given = pa.table({"id": [1, 2, 3, 4]})
    table = new_table(tmp_path / "t", given.schema, options, format=format_name)
    first = table.bulk_insert(given.slice(0, 2))
    table.bulk_insert(given.slice(2))
    [other] = {status.stat.path for status in first.statuses}
    few: list[Any] = [("id", ">", 2)]
    Path(table.path, str(other)).unlink()

    assert table.incremental(filter=few, columns="id")["id"].to_pylist() == [3, 4]
    assert table.changes(filter=few).num_rows == 2
    with pytest.raises(DataFileError):
        table.incremental()
