"""Run by a test in an environment of wheels and what they require, before what it runs further.

Every operation goes through ``df.write.format("hudi")`` to one table and through the Python API to
another; both must hold the same rows after each step, and ``spark.read.format("hudi")`` must read
what the Python API reads.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

import hudi_core as hudi

Row = dict[str, Any]
TYPED_COLUMNS = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("ts", pa.int64()),
        ("amount", pa.decimal128(12, 2)),
        ("at", pa.timestamp("us", tz="UTC")),
        ("day", pa.date32()),
        ("tags", pa.list_(pa.string())),
    ]
)
KEY = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.table.name": "doors",
}
CITY = {"hoodie.datasource.write.partitionpath.field": "city"}
HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
CASES = {"flat-v8": {**KEY}, "hive-v9": {**KEY, **CITY, **HIVE, "hoodie.write.table.version": "9"}}
STEPS: list[tuple[str, range, int, dict[str, str]]] = [
    ("bulk_insert", range(20), 10, {}),
    ("insert", range(20, 26), 10, {}),
    ("upsert", range(15, 30), 11, {}),
    ("upsert", range(4), 9, {}),
    ("delete", range(3), 0, {}),
    ("insert_overwrite", range(40, 43), 12, {}),
    ("insert_overwrite_table", range(50, 60), 13, {}),
]
DROP_ROME = {"hoodie.datasource.write.partitions.to.delete": "city=rome"}


def typed_rows(numbers: Iterable[int], ts: int) -> pa.Table:
    made = [
        {
            "id": f"k{n:03d}",
            "city": ("rome", "oslo", "são paulo")[n % 3],
            "ts": ts,
            "amount": None if n % 5 == 0 else n + ts,
            "at": pa.scalar(1_767_225_600_000_000 + n, pa.timestamp("us", "UTC")).as_py(),
            "day": pa.scalar(19_000 + n, pa.date32()).as_py(),
            "tags": [None, [], ["a", None]][n % 3],
        }
        for n in numbers
    ]
    return pa.Table.from_pylist(made, TYPED_COLUMNS)


def held(found: pa.Table) -> list[Row]:
    """Keep what does not depend on when and where a row was written."""
    names = ["_hoodie_record_key", "_hoodie_partition_path", *TYPED_COLUMNS.names]
    return sorted(found.select(names).to_pylist(), key=lambda row: str(row["id"]))


def same_through_both(spark: SparkSession, folder: Path, case: str) -> None:
    door, api = str(folder / f"{case}-door"), str(folder / f"{case}-api")
    options = CASES[case]
    drop = [("delete_partition", range(1), 0, DROP_ROME)] if case == "hive-v9" else []
    for operation, numbers, ts, more in [*STEPS, *drop]:
        given = {**options, **more, "hoodie.datasource.write.operation": operation}
        batch = typed_rows(numbers, ts)
        frame = spark.createDataFrame(batch).repartition(3)
        frame.write.format("hudi").options(**given).mode("append").save(door)
        hudi.write(batch, api, "append", given)
        assert held(hudi.read(None, door)) == held(hudi.read(None, api)), (case, operation)

    there, here = hudi.Table.open(door), hudi.Table.open(api)
    instants = there.timeline.completed_writes()
    assert [each.action for each in instants] == [
        each.action for each in here.timeline.completed_writes()
    ]
    read = spark.read.format("hudi")
    assert held(read.load(door).toArrow()) == held(here.to_arrow())
    for instant in instants:
        past = read.option("as.of.instant", instant.requested_time).load(door).toArrow()
        assert held(past) == held(there.to_arrow(as_of=instant))
    span = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": instants[0].completion_time or "",
        "hoodie.datasource.read.end.instanttime": instants[2].completion_time or "",
    }
    changed = spark.read.format("hudi").options(**span).load(door).toArrow()
    assert changed.num_rows == 15
    assert held(changed) == held(there.incremental(instants[0], instants[2]))


def session_in(folder: Path) -> SparkSession:
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.session.timeZone", "America/New_York")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.local.dir", str(folder / "local"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    return session
