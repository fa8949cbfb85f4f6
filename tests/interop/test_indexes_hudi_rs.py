"""Histories with every index, way to partition and table version, as hudi-rs reads them.

hudi-rs shares no code with this project; what it reads must equal a dictionary kept beside the
table, row by row and with the folder each row is in.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from tests.foreign import by_hudi_rs
from tests.samples import sampled
from tests.tables import new_table

Row = dict[str, Any]

INDEXED = pa.schema(
    [
        ("id", pa.string()),
        ("line", pa.int32()),
        ("city", pa.string()),
        ("ts", pa.int64()),
        ("value", pa.float64()),
    ]
)
CITIES = ("rome", "oslo", "São Paulo")
INDEXES = ("SIMPLE", "GLOBAL_SIMPLE", "BLOOM", "GLOBAL_BLOOM", "BUCKET")
HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
LAYOUTS: dict[str, tuple[Sequence[str], Sequence[str], dict[str, str]]] = {
    "nonpartitioned": (["id"], [], {}),
    "plain": (["id"], ["city"], {}),
    "hive-several-keys": (["id", "line"], ["city"], HIVE),
    "two-levels": (["id", "line"], ["city", "line"], HIVE),
}


def row(number: int, ts: int, city: str | None = None) -> Row:
    return {
        "id": f"k{number:02d},{number}:x",  # separators of composite keys
        "line": number % 2,
        "city": city or CITIES[number % len(CITIES)],
        "ts": ts,
        "value": number + ts / 10,
    }


def folder(found: Row, partition: Sequence[str], hive: bool) -> str:
    return "/".join(f"{name}={found[name]}" if hive else str(found[name]) for name in partition)


def theirs(table: hudi.Table) -> list[Row]:
    return sorted(by_hudi_rs(table.path), key=lambda one: one["id"])


def check(table: hudi.Table, held: dict[str, Row], partition: Sequence[str], hive: bool) -> None:
    found = theirs(table)
    assert [{name: one[name] for name in INDEXED.names} for one in found] == [
        held[key] for key in sorted(held)
    ]
    for one in found:
        assert one["_hoodie_partition_path"] == folder(one, partition, hive)
        assert (
            Path(table.path) / one["_hoodie_partition_path"] / one["_hoodie_file_name"]
        ).is_file()
    assert found == sorted(table.to_arrow().to_pylist(), key=lambda one: str(one["id"]))


@pytest.mark.parametrize(
    ("index", "layout", "version"), sampled(list(product(INDEXES, LAYOUTS, ["8", "9"])), 3)
)
def test_hudi_rs_agrees(tmp_path: Path, index: str, layout: str, version: str) -> None:
    key, partition, options = LAYOUTS[layout]
    table = new_table(
        tmp_path / "table",
        INDEXED,
        {
            **options,
            "hoodie.index.type": index,
            "hoodie.bucket.index.num.buckets": "3",
            "hoodie.write.table.version": version,
            "hoodie.copyonwrite.insert.auto.split": "false",
            "hoodie.copyonwrite.insert.split.size": "4",
            "hoodie.fs.fsync": "false",
        },
        record_key=key,
        partition_by=partition or None,
    )
    held: dict[str, Row] = {}

    def write(operation: str, *batch: Row) -> None:
        getattr(table, operation)(pa.Table.from_pylist(list(batch), INDEXED))
        for one in batch:
            if operation == "delete":
                held.pop(one["id"], None)
            elif one["id"] not in held or one["ts"] >= held[one["id"]]["ts"]:
                held[one["id"]] = one
        check(table, held, partition, bool(options))

    write("bulk_insert", *(row(number, 5) for number in range(12)))
    write("upsert", *(row(number, 6) for number in range(5, 16)))
    write("upsert", row(0, 4), row(1, 7), row(20, 4))
    write("insert", *(row(number, 5) for number in range(30, 34)))
    write("delete", row(2, 0), row(31, 0), row(99, 0))
    write("upsert", row(2, 8), row(30, 8))
    if index.startswith("GLOBAL"):
        write("upsert", row(3, 9, "oslo"), row(4, 9, "rome"), row(5, 1, "rome"))
