"""Measure what a table saves that does not store its record keys, and what making them costs.

``make bench-virtual`` runs it. The same rows go into three tables: with stored keys, without the
column of the key (``hoodie.recordkey.virtual.enabled``), and without any meta column
(``hoodie.populate.meta.fields=false``). Then the same batches are upserted into each, one table
after the other in every round; the median of the rounds counts.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import hudi_core as hudi

LEVELS: Mapping[str, Mapping[str, str]] = {
    "stored": {},
    "key virtual": {"hoodie.recordkey.virtual.enabled": "true"},
    "no meta columns": {"hoodie.populate.meta.fields": "false"},
}
SHAPES: Mapping[str, tuple[str, ...]] = {
    "one column of text": ("id",),
    "a number": ("number",),
    "two columns": ("id", "number"),
}
CITIES = 8


def rows_of(numbers: np.ndarray[tuple[int], np.dtype[np.int64]], ts: int) -> pa.Table:
    """Rows of some numbers; their strings are as long as those of UUIDs."""
    texts = pa.array(numbers).cast(pa.string())
    scattered = pa.array((numbers * 2_654_435_761) % (1 << 32)).cast(pa.string())
    return pa.table(
        {
            "id": pc.binary_join_element_wise("ride", scattered, texts, "-"),
            "number": numbers,
            "city": pa.DictionaryArray.from_arrays(
                pa.array(numbers % CITIES, pa.int32()), [f"city {one}" for one in range(CITIES)]
            ).cast(pa.string()),
            "ts": np.full(len(numbers), ts),
            "fare": (numbers * 37 % 10_007) / 100,
            "distance": (numbers * 101 % 100_003) / 1000,
        }
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=5, help="upserts (default: %(default)s)")
    parser.add_argument("--index", default="SIMPLE", help="hoodie.index.type")
    given = parser.parse_args()
    print(f"{given.rows:,} rows, upserts of 1 % of them, index {given.index}")
    print(f"{'key':20}{'table':18}{'bytes':>14}{'saved':>8}{'upsert, s':>12}{'ratio':>8}")
    for shape, keys in SHAPES.items():
        with tempfile.TemporaryDirectory(prefix="hudi-virtual-") as folder:
            compare(Path(folder), shape, keys, given.rows, given.rounds, given.index)
    return 0


def compare(
    folder: Path, shape: str, keys: tuple[str, ...], rows: int, rounds: int, index: str
) -> None:
    """Print a line for each kind of table."""
    everything = rows_of(np.arange(rows), 0)
    tables = {
        level: hudi.Table.create(
            str(folder / level.replace(" ", "_")),
            everything.schema,
            name="t",
            record_key=list(keys),
            partition_by="city",
            ordering_field="ts",
            options={"hoodie.fs.fsync": "false", "hoodie.index.type": index, **options},
        )
        for level, options in LEVELS.items()
    }
    sizes = {}
    for level, table in tables.items():
        table.bulk_insert(everything)
        sizes[level] = sum(one.total_size for one in table.file_slices())
    seconds: dict[str, list[float]] = {level: [] for level in LEVELS}
    random = np.random.default_rng(1)
    for number in range(rounds + 1):
        changed = rows_of(np.sort(random.choice(rows, rows // 100, replace=False)), number + 1)
        for level, table in tables.items():
            begin = time.perf_counter()
            table.upsert(changed)
            if number:  # the first one loads modules and warms caches
                seconds[level].append(time.perf_counter() - begin)
    medians = {level: statistics.median(some) for level, some in seconds.items()}
    for level in LEVELS:
        saved = 1 - sizes[level] / sizes["stored"]
        ratio = medians[level] / medians["stored"]
        print(
            f"{shape:20}{level:18}{sizes[level]:14,}{saved:8.1%}{medians[level]:12.3f}{ratio:8.2f}"
        )


if __name__ == "__main__":
    sys.exit(main())
