"""One plan in a process of its own, which says how much memory it took.

Usage: ``metadata_probe.py TABLE FIRST STOP``: plans the files with a clock from FIRST to before
STOP, and prints one line of JSON. It opens the table before, without a question: what a first call
loads is not the plan's memory.
"""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path

import pyarrow.compute as pc
from memory_probe import resident
from metadata_table import CLOCK

import hudi_core as hudi


def main() -> None:
    path, first, stop = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    wanted = (pc.field(CLOCK) >= first) & (pc.field(CLOCK) < stop)
    hudi.Table.open(path)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    files = len(hudi.Table.open(path).file_slices(filter=wanted))
    print(json.dumps({"before": before, "peak": resident("VmHWM"), "files": files}))


if __name__ == "__main__":
    main()
