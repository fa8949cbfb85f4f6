"""Rows by splits, as other programs read the same tables, in every format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyiceberg.table import StaticTable

import hudi_core as hudi
from hudi_core.connector import Connector
from tests.foreign import by_hudi_rs

Row = dict[str, Any]

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("day", pa.date32()),
        pa.field("city", pa.string()),
        pa.field("fare", pa.float64()),
    ]
)
OPTIONS = {
    "hoodie.fs.fsync": False,
    "hoodie.datasource.write.partitionpath.urlencode": True,
    "hoodie.parquet.block.size": 4_000,
}
CITIES = ("Rome", "Oslo", "naïve", "a b")


def rows(ids: range, fare: float) -> pa.Table:
    return pa.table(
        {
            "id": list(ids),
            "day": pa.array([20_000 + n % 3 for n in ids], pa.int32()).cast(pa.date32()),
            "city": [CITIES[n % 4] for n in ids],
            "fare": [None if n % 11 == 0 else n * fare for n in ids],
        },
        SCHEMA,
    )


def by_pyiceberg(path: Path) -> list[Row]:
    found: list[Row] = StaticTable.from_metadata(str(path)).scan().to_arrow().to_pylist()
    return found


def by_deltalake(path: Path) -> list[Row]:
    found: list[Row] = DeltaTable(str(path)).to_pyarrow_table().to_pylist()
    return found


JUDGES: dict[str, Callable[[Path], list[Row]]] = {
    "native": by_hudi_rs,
    "iceberg": by_pyiceberg,
    "delta": by_deltalake,
}
WANTED: list[tuple[list[tuple[str, str, Any]], Callable[[Row], bool]]] = [
    ([], lambda _: True),
    ([("city", "=", "Rome")], lambda row: row["city"] == "Rome"),
    (
        [("city", "in", ["Oslo", "a b"]), ("id", ">", 500)],
        lambda row: row["city"] in ("Oslo", "a b") and row["id"] > 500,
    ),
    ([("fare", ">=", 300.0)], lambda row: row["fare"] is not None and row["fare"] >= 300),
    ([("fare", "is null", None)], lambda row: row["fare"] is None),
    ([("day", "=", "2024-10-05")], lambda row: str(row["day"]) == "2024-10-05"),
    ([("id", "in", [1, 2, 999, 5000])], lambda row: row["id"] in (1, 2, 999, 5000)),
]


def bag(found: list[Row]) -> Counter[str]:
    return Counter(str([row[name] for name in SCHEMA.names]) for row in found)


@pytest.mark.parametrize("partition_by", [None, "city", ["day", "city"]], ids=str)
@pytest.mark.parametrize("name", JUDGES)
def test_all_read_the_same_rows(tmp_path: Path, name: str, partition_by: Any) -> None:
    path = tmp_path / "t"
    table = hudi.Table.create(
        path, SCHEMA, record_key="id", partition_by=partition_by, format=name, options=OPTIONS
    )
    first = table.insert(rows(range(1000), 0.5), options=OPTIONS)
    table.upsert(rows(range(200, 300), 4.0), options=OPTIONS)
    table.delete(rows(range(50), 0))
    table.insert(rows(range(1000, 1100), 0.5), options=OPTIONS)
    judged = JUDGES[name](path)
    connector = Connector({"hudi.target-split-size": "2kB"})
    assert connector.table(path).format == name
    for conditions, accepts in WANTED:
        with connector.scan(path, conditions) as source:
            splits = [split.to_json() for split in source]
        found = [row for split in splits for row in connector.read(split).read_all().to_pylist()]
        assert bag(found) == bag([row for row in judged if accepts(row)]), conditions
    with connector.scan(path, as_of=first.instant) as source:
        past = [row for split in source for row in connector.read(split).read_all().to_pylist()]
    assert bag(past) == bag(rows(range(1000), 0.5).to_pylist())
