"""Measure rows of very many columns, and rows of very long strings, beside other writers.

``make bench-wide`` runs it. With an argument ``probe`` it is one write in a process of its own,
which says how much memory it took.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake
from memory_probe import resident
from metadata_timing import measure, ratio_of, say
from run_of_cases import Compared, Section, main
from targets import Target

import hudi_core as hudi

WIDE, HEAVY = "wide", "heavy"
CASES = (WIDE, HEAVY)
COLUMNS, ROWS = 2_000, 1_000
STRINGS, STRING_BYTES = 64, 4 << 20
NEW, SMALL, UPSERT = "insert, new table", "insert, into a small file", "upsert of all rows"
DELTALAKE, PYARROW = "deltalake, append", "pyarrow's writer"
INSERT, BULK, BOTH = "insert", "bulk_insert", "pyarrow, read and write"
REPEATS = 5
_SIZES = {"hoodie.fs.fsync": "false"}


@dataclass
class Growth:
    """How far a write lets a process grow; one number for each process."""

    variant: str
    bytes: list[int] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.bytes)


@dataclass
class Found(Compared):
    """A finished run; the first ratio is of processor time, or of memory."""

    measures = ("ratio", "clock")
    growths: list[Growth] = field(default_factory=list)

    def circumstances(self) -> str:
        return self.text(("hudi-core", "pyarrow", "deltalake"))

    def targets(self) -> list[tuple[Target, float | None, float | None]]:
        found: list[tuple[Target, float | None, float | None]] = []
        run = {one.variant: one for one in self.timings}
        for name, allowed in ((NEW, 5.0), (SMALL, 5.0), (UPSERT, None)) if run else ():
            ours, other = run[name], run[DELTALAKE]
            ratios = ratio_of(ours.work, other.work), ratio_of(ours.seconds, other.seconds)
            found.append((Target(WIDE, name, DELTALAKE, allowed), *ratios))
        grown = {one.variant: one.median for one in self.growths}
        pairs = ((INSERT, PYARROW, 1.5), (BULK, PYARROW, 1.5), (UPSERT, BOTH, 1.5))
        for name, yardstick, allowed in pairs if grown else ():
            ratio = grown[name] / grown[yardstick]
            found.append((Target(HEAVY, name, yardstick, allowed), ratio, None))
        return found

    def tables(self) -> list[Section]:
        rows = [["variant", "median MB", "min", "max"]]
        for one in sorted(self.growths, key=lambda one: one.median):
            sizes = one.median, min(one.bytes), max(one.bytes)
            rows.append([one.variant, *(f"{size / (1 << 20):.0f}" for size in sizes)])
        return [*super().tables(), *([(HEAVY, rows)] if self.growths else [])]

    def document(self) -> dict[str, Any]:
        return super().document() | {"growths": [asdict(one) for one in self.growths]}


def run(folder: Path, cases: Sequence[str], scale: float, repeats: int) -> Found:
    """Write wide rows in turn with deltalake, and heavy ones in processes of their own."""
    found = Found(scale)
    for case in cases:
        found.loads.append(os.getloadavg()[0])
        if case == WIDE:
            found.timings += measure(WIDE, _wide_calls(folder, scale, repeats), repeats, ROWS)
        else:
            count = max(1, round(STRINGS * scale))
            for variant in (INSERT, BULK, UPSERT, PYARROW, BOTH):
                found.growths.append(_grown(folder, variant, count, repeats))
        found.loads.append(os.getloadavg()[0])
    return found


# --- rows of many columns -------------------------------------------------------------------------


def _wide_calls(folder: Path, scale: float, repeats: int) -> dict[str, Callable[[], int]]:
    columns = max(4, round(COLUMNS * scale))
    numbers = iter(range(1 << 20))
    first = wide_rows(columns, 0)

    def new_table() -> hudi.Table:
        path = folder / f"wide-{next(numbers)}"
        return hudi.Table.create(str(path), first, name="wide", record_key="id", options=_SIZES)

    small = new_table()
    small.insert(first)

    def insert(table: hudi.Table) -> int:
        table.insert(wide_rows(columns, 1 + next(numbers)))
        return ROWS

    def upsert() -> int:
        small.upsert(first)
        return ROWS

    def append() -> int:
        write_deltalake(folder / "delta", wide_rows(columns, 1 + next(numbers)), mode="append")
        return ROWS

    # tables are created before the clock runs, one for the round that does not count
    fresh = [new_table() for _ in range(repeats + 1)]
    return {
        NEW: lambda: insert(fresh.pop()),
        SMALL: lambda: insert(small),
        UPSERT: upsert,
        DELTALAKE: append,
    }


_COLUMNS: dict[int, pa.Table] = {}


def wide_rows(columns: int, number: int) -> pa.Table:
    """Rows of columns of four types, with keys that no other number has."""
    if columns not in _COLUMNS:
        random = np.random.default_rng(0)
        made: dict[str, pa.Array] = {}
        for one in range(columns - 1):
            integers = pa.array(random.integers(0, 1 << 40, ROWS))
            strings = pa.array(random.integers(0, 50, ROWS)).cast(pa.string())
            kinds = (
                integers,
                pa.array(random.random(ROWS)),
                strings,
                integers.cast(pa.timestamp("us", "UTC")),
            )
            made[f"c{one}"] = kinds[one % 4]
        _COLUMNS[columns] = pa.table(made)
    keys = pa.array([f"k{number}-{row:07}" for row in range(ROWS)])
    return _COLUMNS[columns].add_column(0, "id", keys)


# --- rows of many bytes ---------------------------------------------------------------------------


def _grown(folder: Path, variant: str, count: int, repeats: int) -> Growth:
    growth = Growth(variant)
    for _ in range(repeats):
        with tempfile.TemporaryDirectory(dir=folder) as place:
            command = [sys.executable, __file__, "probe", variant, str(count), place]
            done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=os.environ)
            growth.bytes.append(int(json.loads(done.stdout)["growth"]))
    say(f"{HEAVY:12} {variant:32} {growth.median / (1 << 20):8.0f} MB")
    return growth


def probe(variant: str, count: int, place: str) -> int:
    """Write once, and print how far that let the process grow."""
    _write(variant, heavy_rows(1, 1 << 10), f"{place}/before")()
    rows = heavy_rows(count, STRING_BYTES)
    write = _write(variant, rows, f"{place}/table")
    gc.collect()
    pa.default_memory_pool().release_unused()
    # from here on the kernel restarts the peak
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    write()
    print(json.dumps({"growth": resident("VmHWM") - before}))
    return 0


def _write(variant: str, rows: pa.Table, path: str) -> Callable[[], object]:
    """A write; what has to be there before it is made at once."""
    if variant == PYARROW:
        return lambda: pq.write_table(rows, path, compression="zstd", compression_level=1)
    if variant == BOTH:
        pq.write_table(rows, path, compression="zstd", compression_level=1)
        copy = f"{path}.copy"
        return lambda: pq.write_table(
            pq.read_table(path), copy, compression="zstd", compression_level=1
        )
    table = hudi.Table.create(path, rows, name="heavy", record_key="id", options=_SIZES)
    engine = hudi.LocalEngine(parallelism=1)
    if variant == UPSERT:
        table.insert(rows, engine=engine)
        return lambda: table.upsert(rows, engine=engine)
    return lambda: (table.insert if variant == INSERT else table.bulk_insert)(rows, engine=engine)


def heavy_rows(count: int, size: int) -> pa.Table:
    """Rows with a string of so many bytes, which compresses by a third."""
    letters = np.random.default_rng(0).integers(97, 123, count * size, np.uint8)
    ends = pa.py_buffer(np.arange(count + 1, dtype=np.int32) * size)
    bodies = pa.StringArray.from_buffers(count, ends, pa.py_buffer(letters))
    return pa.table({"id": [f"k{row:05}" for row in range(count)], "body": bodies})


if __name__ == "__main__":
    if sys.argv[1:2] == ["probe"]:
        sys.exit(probe(sys.argv[2], int(sys.argv[3]), sys.argv[4]))
    sys.exit(main(__doc__, "wide", CASES, REPEATS, run))
