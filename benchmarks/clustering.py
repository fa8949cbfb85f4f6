"""Measure clusterings beside pyarrow's own read, sort and write, deltalake's and Hudi-Spark's.

``make bench-clustering`` runs it; ``--hudi-spark`` (after ``make interop`` has brought it) adds
Hudi's own ``run_clustering``, on the same rows in a table of the native format, with its session
started before. All others rewrite the same files, those of a Delta table of this
project: each partition into one file, sorted by one column, or along a curve of two. Without fsync;
the fastest of the rounds counts, as others only add to it. pyarrow writes no bloom filters and no
metadata; it works on as many partitions at a time as this project does.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import DeltaTable, WriterProperties
from hudi_peer import hudi_session
from workload import KEY, ORDERING, PARTITION, STORED, cores, make_rows

import hudi_core as hudi

BATCHES = 8
CITIES = 4
COLUMNS = ("fare", ORDERING)
OPTIONS = {"hoodie.fs.fsync": "false", "hoodie.parquet.small.file.limit": "0"}
SHARE = 0.7
"""Of pyarrow's speed, the least that a clustering by one column must have."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000, help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--hudi-spark", action="store_true", help="beside Hudi's own clustering")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hudi-clustering-") as folder:
        made = Path(folder) / "made"
        files, size = make(made, arguments.rows, "delta")
        print(f"{arguments.rows:,} rows in {files} files, {size / 1e6:.0f} MB; seconds:")
        ways: dict[str, Callable[[Path], object]] = {
            "pyarrow, one column": by_pyarrow,
            "here, one column": lambda path: cluster(path, COLUMNS[:1], "linear"),
            "deltalake, z-order": by_deltalake,
            "here, z-order": lambda path: cluster(path, COLUMNS, "z-order"),
            "here, hilbert": lambda path: cluster(path, COLUMNS, "hilbert"),
            "here, unsorted": lambda path: cluster(path, (), "linear"),
        }
        seconds = {}
        for name, rewrite in ways.items():
            seconds[name] = fastest(made, Path(folder) / "copy", rewrite, arguments.rounds)
            print(f"{name:26} {seconds[name]:7.2f}", flush=True)
        if arguments.hudi_spark:
            for name, found in beside_hudi(Path(folder), arguments.rows, arguments.rounds):
                seconds[name] = found
                print(f"{name:26} {found:7.2f}", flush=True)
    share = seconds["pyarrow, one column"] / seconds["here, one column"]
    ahead = seconds["deltalake, z-order"] / seconds["here, z-order"]
    print(f"{share:.0%} of pyarrow's speed (at least {SHARE:.0%}), {ahead:.1f}x that of deltalake")
    if arguments.hudi_spark:
        beside = seconds["Hudi-Spark, one column"] / seconds["here, native, one column"]
        print(f"{beside:.1f}x that of Hudi-Spark")
        ahead = min(ahead, beside)
    return 0 if share >= SHARE and ahead >= 1 else 1


def make(path: Path, rows: int, table_format: str) -> tuple[int, int]:
    """Make the table; return how many files it has, and their bytes."""
    numbers = np.arange(rows, dtype=np.uint64)
    first = make_rows(numbers[:1], STORED, CITIES)
    table = hudi.Table.create(
        str(path),
        first.schema,
        record_key=KEY,
        partition_by=PARTITION,
        ordering_field=ORDERING,
        format=table_format,
        options=OPTIONS,
    )
    for part in np.array_split(numbers, BATCHES):
        table.bulk_insert(make_rows(part, STORED, CITIES))
    found = [one.base_file for one in table.file_slices() if one.base_file is not None]
    return len(found), sum(one.size for one in found)


def fastest(made: Path, copy: Path, rewrite: Callable[[Path], object], rounds: int) -> float:
    """Seconds of the fastest round, each on a fresh copy of the table."""
    found = []
    for _ in range(rounds):
        shutil.copytree(made, copy)
        begin = time.perf_counter()
        rewrite(copy)
        found.append(time.perf_counter() - begin)
        shutil.rmtree(copy)
    return min(found)


def cluster(path: Path, columns: Sequence[str], layout: str) -> None:
    done = hudi.Table.open(path, OPTIONS).cluster(sort_by=list(columns), layout=layout)
    assert done.outputs == CITIES, done


def beside_hudi(folder: Path, rows: int, rounds: int) -> Iterator[tuple[str, float]]:
    """Yield the seconds of Hudi's clustering and of ours, of one table of the native format."""
    made = folder / "native"
    make(made, rows, "native")
    session = hudi_session(folder / "session")

    def by_hudi(path: Path) -> None:
        session.sql(
            f"call run_clustering(path => '{path}', op => 'scheduleAndExecute', "
            f"order => '{COLUMNS[0]}')"
        )
        assert len(hudi.Table.open(path, OPTIONS).file_slices()) == CITIES

    def here(path: Path) -> None:
        cluster(path, COLUMNS[:1], "linear")

    try:
        fastest(made, folder / "copy", by_hudi, 1)  # starts the session, and warms it
        yield "Hudi-Spark, one column", fastest(made, folder / "copy", by_hudi, rounds)
    finally:
        session.stop()
    yield "here, native, one column", fastest(made, folder / "copy", here, rounds)


def by_pyarrow(path: Path) -> None:
    """Read, sort and write each partition, as many at a time as there are processors."""

    def rewrite(folder: Path) -> None:
        files = sorted(str(file) for file in folder.glob("*.parquet"))
        rows: pa.Table = ds.dataset(files, format="parquet").to_table()
        ordered = rows.sort_by([(COLUMNS[0], "ascending")])
        pq.write_table(ordered, folder / "new", compression="zstd", compression_level=1)

    folders = [one for one in path.iterdir() if one.is_dir() and one.name[0] not in "._"]
    assert len(folders) == CITIES, folders
    with ThreadPoolExecutor(cores()) as pool:
        list(pool.map(rewrite, folders))


def by_deltalake(path: Path) -> None:
    properties = WriterProperties(compression="ZSTD", compression_level=1)
    done = DeltaTable(str(path)).optimize.z_order(COLUMNS, writer_properties=properties)
    assert done["numFilesAdded"] == CITIES, done


if __name__ == "__main__":
    sys.exit(main())
