"""One upsert in a process of its own, which says how much memory it took; see :mod:`memory`.

Usage: ``memory_probe.py SMALL_TABLE SMALL_BATCH TABLE BATCH``; prints one line of JSON. The small
table is upserted before: what a first call loads and starts is not the second one's memory.
"""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import hudi_core as hudi


def main() -> None:
    small_table, small_batch, table, batch = sys.argv[1:]
    _upsert(small_table, _read(small_batch))
    rows = _read(batch)
    gc.collect()
    pa.default_memory_pool().release_unused()
    # from here on the kernel restarts the peak
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    _upsert(table, rows)
    print(json.dumps({"before": before, "peak": resident("VmHWM"), "batch": rows.nbytes}))


def _read(batch: str) -> pa.Table:
    return pa.concat_tables(pq.read_table(path) for path in sorted(Path(batch).glob("*.parquet")))


def _upsert(table: str, rows: pa.Table) -> None:
    hudi.Table.open(table).upsert(rows, engine=hudi.LocalEngine(parallelism=1))


def resident(name: str) -> int:
    """Return a line of ``/proc/self/status`` in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    raise SystemExit(f"this system does not show {name}: memory is measured on Linux only")


if __name__ == "__main__":
    main()
