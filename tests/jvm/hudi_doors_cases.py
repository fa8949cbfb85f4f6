"""What Hudi-Spark makes of keys that rows bring along, of long keys, and of whole seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

import hudi_core as hudi
from hudi_core.model.instant_time import to_datetime
from tests.jvm.engines import Engine

KEYLESS = {
    "hoodie.table.name": "keyless",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.write.auto.upgrade": "false",
}
RIDES = pa.table(
    {"rider": ["A", "B", "C"], "city": ["x", "y", "x"], "fare": [1.0, 2.0, 3.0], "ts": [1, 2, 3]}
)


def paid(engine: Engine, path: Path) -> list[tuple[Any, ...]]:
    """The fares as both engines read them, with the keys of the rows."""
    names = ["rider", "fare", "_hoodie_record_key"]
    theirs = engine.values(path, names)
    own = hudi.read(None, path).select(names).to_pylist()
    assert sorted((tuple(row.values()) for row in own), key=repr) == theirs
    return theirs


def costing(rows: pa.Table, fare: float) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index("fare"), "fare", [[fare] * rows.num_rows])


def test_rows_of_a_keyless_table_are_updated_by_either(hudi_spark: Engine, tmp_path: Path) -> None:
    """The quick start: read, change, append; the writers take turns."""
    path = tmp_path / "t"
    hudi.write(RIDES, path, options=KEYLESS)
    first = paid(hudi_spark, path)
    assert [row[:2] for row in first] == [("A", 1.0), ("B", 2.0), ("C", 3.0)]

    theirs = costing(hudi_spark.read(path, where="rider = 'B'"), 20.0)
    hudi_spark.save(theirs, path, KEYLESS)
    ours = costing(hudi.Table.open(path).to_arrow(filter=[("rider", "=", "A")]), 10.0)
    hudi.write(ours, path, options=KEYLESS)
    second = paid(hudi_spark, path)
    assert [row[:2] for row in second] == [("A", 10.0), ("B", 20.0), ("C", 3.0)]
    assert [row[2] for row in second] == [row[2] for row in first]

    delete = {**KEYLESS, "hoodie.datasource.write.operation": "delete"}
    hudi_spark.save(hudi_spark.read(path, where="rider = 'A'"), path, delete)
    hudi.write(hudi_spark.read(path, where="rider = 'C'"), path, options=delete)
    assert [row[:2] for row in paid(hudi_spark, path)] == [("B", 20.0)]


def test_a_keyless_table_of_theirs(hudi_spark: Engine, tmp_path: Path) -> None:
    path = tmp_path / "t"
    eight = {"hoodie.write.table.version": "8", "hoodie.table.timeline.timezone": "UTC"}
    hudi_spark.save(RIDES, path, {**KEYLESS, **eight}, mode="overwrite")
    first = paid(hudi_spark, path)
    table = hudi.Table.open(path)
    table.upsert(costing(table.to_arrow(filter=[("rider", "=", "C")]), 30.0))
    assert table.delete(table.to_arrow(filter=[("rider", "=", "A")])).deleted == 1
    second = paid(hudi_spark, path)
    assert [row[:2] for row in second] == [("B", 2.0), ("C", 30.0)]
    assert {row[2] for row in second} < {row[2] for row in first}


def test_long_keys_are_found_by_their_bloom_index(hudi_spark: Engine, tmp_path: Path) -> None:
    """Filters of files of long keys have fewer hashes than Hudi gives its own."""
    path = tmp_path / "t"
    keys = [f"{n}é" * 3000 for n in range(6)]
    rows = pa.table({"id": keys[:5], "v": range(5)})
    hudi.Table.create(path, rows, record_key="id").bulk_insert(rows)
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.index.type": "BLOOM",
        "hoodie.write.auto.upgrade": "false",
    }
    hudi_spark.save(pa.table({"id": keys[3:], "v": [30, 40, 50]}), path, options)
    expected = [(0,), (1,), (2,), (30,), (40,), (50,)]
    assert hudi_spark.values(path, ["v"]) == expected
    found = hudi.read(None, path).column("v").to_pylist()
    assert sorted(found) == [value for (value,) in expected]


def test_times_of_whole_seconds(hudi_spark: Engine, tmp_path: Path) -> None:
    path = tmp_path / "t"
    hudi.write(RIDES, path, options=KEYLESS)
    [commit] = hudi.Table.open(path).timeline.completed_writes()
    whole = f"{to_datetime(commit.requested_time):%Y-%m-%d %H:%M:%S}"
    for time in (whole, commit.requested_time):
        option = {"as.of.instant": time}
        assert len(hudi_spark.values(path, ["rider"], options=option)) == 3
        assert hudi.read(None, path, option).num_rows == 3
    # of 14 digits both take the text as it is, which comes before all times of that second
    assert (
        hudi_spark.values(path, ["rider"], options={"as.of.instant": commit.requested_time[:14]})
        == []
    )
