"""One read of a table in batches, in a process of its own, which says how far it grew.

Usage: ``read_probe.py TABLE LIMIT``; prints bytes. ``LIMIT`` is that of log rows in memory, in
bytes, empty for the default. One column is read before: what a first call loads is not the read's
memory.
"""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import pyarrow as pa
from memory_probe import resident

import hudi_core as hudi


def main() -> None:
    path, limit = sys.argv[1:]
    table = hudi.Table.open(
        path, options={"hoodie.memory.merge.max.size": limit} if limit else None
    )
    for _ in table.to_batches(["fare"]):
        pass
    gc.collect()
    pa.default_memory_pool().release_unused()
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    for _ in table.to_batches():
        pass
    print(resident("VmHWM") - before)


if __name__ == "__main__":
    main()
