"""Measure how long one row takes whose record key is long.

``make bench-keys`` runs it. Each round upserts one new row into a table of few rows, without fsync;
the fastest of the rounds counts, as others only add to it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa

import hudi_core as hudi

LENGTHS = (10, 1_000, 10_000, 100_000)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="upserts (default: %(default)s)")
    rounds = parser.parse_args().rounds
    print("bytes of the key    ms for the row")
    for length in LENGTHS:
        with tempfile.TemporaryDirectory(prefix="hudi-keys-") as folder:
            print(f"{length:16,}    {1000 * fastest(Path(folder) / 't', length, rounds):14.1f}")
    return 0


def fastest(path: Path, length: int, rounds: int) -> float:
    """Seconds of the fastest upsert of one row."""
    seconds = []
    for number in range(rounds + 1):
        if number % 2 == 0:
            # a table of its own for every other row: all keys of a small file are hashed again
            table = hudi.Table.create(
                path.with_name(f"t{number}"),
                pa.schema([("id", pa.string()), ("v", pa.int64())]),
                record_key="id",
                options={"hoodie.fs.fsync": "false"},
            )
        row = pa.table({"id": [str(number) + "k" * (length - 1)], "v": [number]})
        begin = time.perf_counter()
        table.upsert(row)
        seconds.append(time.perf_counter() - begin)
    return min(seconds[1:])  # the first one loads modules


if __name__ == "__main__":
    sys.exit(main())
