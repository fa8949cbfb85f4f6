"""Memory of the driver while a record index is written: first loads, and upserts of more keys.

Usage: ``metadata_memory.py [ROWS]``: loads ROWS rows (10^6) and a tenth of them, and upserts a
tenth of the larger table and as many rows as it has, half of them new, each in a process of its own
with two tasks of Spark at a time. What is measured is the Python process of the driver, at its peak
and above what it had after a small write; rows are made by Spark's tasks.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from memory_probe import resident
from pyspark.sql import DataFrame, SparkSession
from spark_peer import session

import hudi_core as hudi

_MIB: Final = 1 << 20
_PARTS: Final = 8
_OPTIONS: Final = {
    "hoodie.table.name": "keys",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX",
}


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    print("| case | keys | seconds | MiB at the peak | MiB above a small write |")
    print("| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        found = [
            _probe(folder, "first load", rows // 10),
            _probe(folder, "first load", rows),
            _probe(folder, "upsert", rows // 10, rows),
            _probe(folder, "upsert", rows, rows),
        ]
    for small, large in (found[:2], found[2:]):
        print(f"\n{large['case']}: peak x {large['peak'] / small['peak']:.2f} for 10 x the keys")


def _probe(folder: str, case: str, keys: int, loaded: int = 0) -> dict[str, Any]:
    command = [sys.executable, __file__, "--probe", folder, case, str(keys), str(loaded)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    above = found["peak"] - found["before"]
    print(
        f"| {case} | {keys:,} | {found['seconds']:.1f} | {found['peak'] // _MIB} "
        f"| {above // _MIB} |",
        flush=True,
    )
    return found


def probe(folder: str, case: str, keys: int, loaded: int) -> None:
    """One case; prints a line of JSON."""
    spark = session()
    small = f"{folder}/small-{case}-{keys}"
    for operation in ("bulk_insert", "upsert"):
        _write(_rows(spark, 1000, 0), small, operation)
    path = f"{folder}/{case}-{keys}"
    if loaded:
        path = f"{folder}/first load-{loaded}"
        data = _rows(spark, keys, 1, loaded)
    else:
        data = _rows(spark, keys, 0)
    Path("/proc/self/clear_refs").write_text("5")
    before, started = resident("VmRSS"), time.monotonic()
    _write(data, path, "upsert" if loaded else "bulk_insert")
    seconds, peak = time.monotonic() - started, resident("VmHWM")
    stated = {"case": case, "before": before, "peak": peak, "seconds": seconds}
    spark.stop()
    print(json.dumps(stated))


def _rows(spark: SparkSession, count: int, value: int, among: int = 0) -> DataFrame:
    """Rows with keys spread over those of a table; half of them new where there is one."""
    step = 2 * among // count if among else 1
    numbers = spark.range(0, count * step, step, _PARTS)
    return numbers.selectExpr(
        "concat('key-', lpad(cast(id as string), 12, '0')) as id", f"{value} + id % 97 as value"
    )


def _write(data: DataFrame, path: str, operation: str) -> None:
    options = {**_OPTIONS, "hoodie.datasource.write.operation": operation}
    hudi.write(data, path, mode="append", options=options)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--probe"]:
        probe(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
    else:
        main()
