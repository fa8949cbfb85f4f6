"""Changes as Hudi-Spark's change data capture queries return them, and as ours do.

Hudi's images of one row differ by the file they come from: with meta columns or without, with nulls
or without, and decimals and bytes in forms of their own. So they are compared by what all of these
forms say.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from tests.jvm.engines import Engine

MODES = ("OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER")
TYPED_COLUMNS = pa.schema(
    [
        ("id", pa.int32()),
        ("city", pa.string()),
        ("name", pa.string()),
        ("x", pa.float64()),
        ("b", pa.bool_()),
        ("d", pa.date32()),
        ("t", pa.timestamp("us", "UTC")),
        ("l", pa.list_(pa.int32())),
        ("s", pa.struct([("a", pa.int64()), ("z", pa.string())])),
        ("m", pa.map_(pa.string(), pa.int32())),
        ("p", pa.decimal128(10, 2)),
        ("raw", pa.binary()),
        ("ts", pa.int64()),
    ]
)
OTHERWISE = ("p", "raw")
"""Columns that Hudi spells in several ways."""


def row(number: int, city: str, ts: int, name: str = 'é"\\n\n/') -> dict[str, Any]:
    if number == 3:
        return {"id": number, "city": city, "ts": ts}
    return {
        "id": number,
        "city": city,
        "name": name,
        "x": 1e20,
        "b": True,
        "d": date(2026, 1, 2),
        "t": datetime(2026, 1, 2, 3, 4, 5, 678901, UTC),
        "l": [1, 2, 3],
        "s": {"a": 5, "z": None},
        "m": [("k", 1), ("j", 2)],
        "raw": b"\x01\xff",
        "ts": ts,
    }


def typed_rows(*found: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(found), TYPED_COLUMNS)


HISTORY: tuple[tuple[str, pa.Table], ...] = (
    ("insert", typed_rows(row(1, "A", 1), row(2, "B", 1), row(3, "A", 1), row(5, "C", 1))),
    ("upsert", typed_rows(row(1, "A", 2, "new"), row(4, "A", 2))),
    ("delete", typed_rows(row(3, "A", 3))),
    ("delete", typed_rows(row(5, "C", 3))),
    ("insert", typed_rows(row(7, "A", 3))),
    ("insert_overwrite", typed_rows(row(2, "B", 4, "over"), row(6, "B", 4))),
)


def options(mode: str, version: str) -> dict[str, str]:
    return {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.table.ordering.fields": "ts",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.write.table.version": version,
        "hoodie.write.auto.upgrade": "false",
        "hoodie.table.cdc.enabled": "true",
        "hoodie.table.cdc.supplemental.logging.mode": mode,
    }


def by_hudi(engine: Engine, path: Path) -> Counter[tuple[str | None, ...]]:
    feed = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.query.incremental.format": "cdc",
        "hoodie.datasource.read.begin.instanttime": "0",
    }
    return plain(engine.read(path, feed))


def plain(feed: pa.Table) -> Counter[tuple[str | None, ...]]:
    return Counter(
        (one["op"], one["ts_ms"], image(one["before"]), image(one["after"]))
        for one in feed.to_pylist()
    )


def image(text: str | None) -> str | None:
    found = None if text is None else json.loads(text)
    if found is None:
        return None
    kept = {
        name: value
        for name, value in found.items()
        if value is not None and not name.startswith("_hoodie_") and name not in OTHERWISE
    }
    if "s" in kept:
        kept["s"] = {name: value for name, value in kept["s"].items() if value is not None}
    return json.dumps(kept, sort_keys=True)


@pytest.mark.parametrize("mode", MODES)
def test_our_logs_of_changes(hudi_spark: Engine, tmp_path: Path, mode: str) -> None:
    """Hudi-Spark's query of our table, which logs its changes; both write on."""
    path, given = tmp_path / "t", options(mode, "9")
    table = hudi.Table.create(path, TYPED_COLUMNS, options={**given, "hoodie.fs.fsync": "false"})
    for operation, batch in HISTORY:
        getattr(table, operation)(batch)
    table.delete_partitions([{"city": "A"}])
    assert len(list(path.rglob(".*.cdc"))) == 4
    told = plain(table.changes())
    assert sum(told.values()) == 15
    assert by_hudi(hudi_spark, path) == told
    upsert = {**given, "hoodie.datasource.write.operation": "upsert"}
    hudi_spark.save(typed_rows(row(2, "B", 5, "last"), row(8, "B", 5)), path, upsert)
    table = hudi.Table.open(path)
    assert by_hudi(hudi_spark, path) == plain(table.changes())
    assert table.validate().is_valid


@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize("mode", MODES)
def test_hudis_logs_of_changes(hudi_spark: Engine, tmp_path: Path, mode: str, version: str) -> None:
    """Our query of Hudi-Spark's table, which logs its changes; we write on."""
    path, given = tmp_path / "t", options(mode, version)
    for number, (operation, batch) in enumerate(HISTORY):
        # of rows that it inserts into a file that is there it keeps no log, and its query fails
        known = "upsert" if number and operation == "insert" else operation
        hudi_spark.save(batch, path, {**given, "hoodie.datasource.write.operation": known})
    table = hudi.Table.open(path)
    assert plain(table.changes()) == by_hudi(hudi_spark, path)
    table.upsert(typed_rows(row(2, "B", 5, "last"), row(8, "B", 5)))
    table.delete(typed_rows(row(6, "B", 6)))
    assert plain(table.changes()) == by_hudi(hudi_spark, path)
    assert table.validate().is_valid
