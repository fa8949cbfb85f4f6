"""The rows of the benchmark: trips of twenty cities, made from their numbers alone.

Every value is a hash of the row's number, so any part of the data can be made anew, equal on every
machine: 17 columns, about 198 bytes a row in Arrow. The upsert batches change random rows of the
table (a newer ``ts``, new values elsewhere, the same city) and add new ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

Numbers = npt.NDArray[np.uint64]

CITIES = (
    *("Amsterdam", "Athens", "Berlin", "Bilbao", "Bremen", "Brussels", "Dublin", "Florence"),
    *("Geneva", "Hamburg", "Helsinki", "Krakow", "Lisbon", "London", "Madrid", "Milan"),
    *("Oslo", "Porto", "Vienna", "Zurich"),
)
VEHICLES = ("bike", "compact", "estate", "saloon", "van")
PAYMENTS = ("app", "card", "cash", "voucher")

KEY, PARTITION, ORDERING = "id", "city", "ts"
LOW_CARDINALITY = (PARTITION, "vehicle", "payment", "passengers")
"""Columns for which a dictionary pays, for whoever can be told."""

INSERT_SHARE = 0.05
"""New rows of an upsert batch, as a share of the rows that it changes."""

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
CHANGED = BEGAN + timedelta(days=30)
"""Every row of an upsert batch has this ``ts`` or a later one, every other row an earlier one."""


@dataclass(frozen=True)
class Batch:
    """Rows in parquet files, one row group each.

    Attributes
    ----------
    folder
        Holds the files and nothing else.
    rows
        How many rows there are.
    inserts
        How many of them have keys that the table does not hold.
    """

    folder: Path
    rows: int
    inserts: int

    @property
    def files(self) -> list[Path]:
        return sorted(self.folder.glob("*.parquet"))

    def read(self) -> pa.Table:
        """Return all rows, read by as many threads as there are cores."""
        return pa.concat_tables(pq.read_table(path) for path in self.files)


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))


def make_base(folder: Path, rows: int) -> Batch:
    """Write the rows of the table: numbers 0 to ``rows``."""
    numbers = np.arange(rows, dtype=np.uint64)
    return Batch(_write(folder, numbers, version=0), rows, rows)


def make_upsert(folder: Path, table_rows: int, share: float) -> Batch:
    """Write a batch that changes ``share`` of the table's rows, drawn at random, and adds some."""
    random = np.random.default_rng(round(share * 1e6))
    updates = round(table_rows * share)
    inserts = round(updates * INSERT_SHARE)
    changed = random.choice(table_rows, updates, replace=False).astype(np.uint64)
    added = np.arange(table_rows, table_rows + inserts, dtype=np.uint64)
    numbers = np.concatenate([changed, added])
    random.shuffle(numbers)
    return Batch(_write(folder, numbers, version=1), len(numbers), inserts)


def make_rows(numbers: Numbers, version: int) -> pa.Table:
    """Return the rows of these numbers; their keys and cities are the same in every version."""
    column = _columns(numbers, version)
    began = round((CHANGED if version else BEGAN).timestamp()) * 10**6
    ts = began + (numbers % np.uint64(10**9)).astype(np.int64) * 1000
    return pa.table(
        {
            # an odd factor maps 64-bit numbers one to one: unique keys without order
            KEY: _digits(numbers * np.uint64(0x9E3779B97F4A7C15), 20),
            PARTITION: _choice(_mix(numbers, 0, 0), CITIES),
            ORDERING: pa.array(ts).cast(pa.timestamp("us", "UTC")),
            "rider": _digits(column(1) % np.uint64(10**9), 12),
            "driver": _digits(column(2) % np.uint64(10**7), 12),
            "vehicle": _choice(column(3), VEHICLES),
            "begin_lat": pa.array(_fraction(column(4)) * 180 - 90),
            "begin_lon": pa.array(_fraction(column(5)) * 360 - 180),
            "end_lat": pa.array(_fraction(column(6)) * 180 - 90),
            "end_lon": pa.array(_fraction(column(7)) * 360 - 180),
            "fare": _decimal(column(8) % np.uint64(20_000)),
            "tip": pa.array(_fraction(column(9)) * 20),
            "distance": pa.array(_fraction(column(10)) * 40),
            "passengers": pa.array((column(11) % np.uint64(6)).astype(np.int32)),
            "payment": _choice(column(12), PAYMENTS),
            "started": pa.array(ts - 10**6 * (column(13) % np.uint64(7200)).astype(np.int64)).cast(
                pa.timestamp("us", "UTC")
            ),
            "note": _digits(column(14), 26),
        }
    )


def _write(folder: Path, numbers: Numbers, version: int) -> Path:
    folder.mkdir(parents=True)
    # more files than cores, so that nobody who splits by file has to leave a core idle
    for part, some in enumerate(np.array_split(numbers, 2 * cores())):
        rows = make_rows(some, version)
        pq.write_table(
            rows,
            folder / f"part-{part:04}.parquet",
            row_group_size=max(1, rows.num_rows),
            compression="zstd",
            compression_level=1,
            use_dictionary=list(LOW_CARDINALITY),
            store_schema=False,
        )
    return folder


def _columns(numbers: Numbers, version: int) -> Callable[[int], Numbers]:
    return lambda column: _mix(numbers, column, version)


def _mix(numbers: Numbers, column: int, version: int) -> Numbers:
    """Hash numbers to 64 bits (as splitmix64 does), differently for every column and version."""
    mixed = numbers + np.uint64((column * 2 + version + 1) * 0x632BE59BD9B4E019 % 2**64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _fraction(hashes: Numbers) -> npt.NDArray[np.float64]:
    return (hashes >> np.uint64(11)).astype(np.float64) / 2.0**53


def _digits(numbers: Numbers, width: int) -> Any:
    return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width, "0")


def _choice(hashes: Numbers, words: tuple[str, ...]) -> Any:
    positions = pa.array((hashes % np.uint64(len(words))).astype(np.int32))
    return pa.array(words).take(positions)


def _decimal(cents: Numbers) -> Any:
    # 128-bit integers, low half first; the high half of small numbers is zero
    halves = np.zeros((len(cents), 2), dtype=np.uint64)
    halves[:, 0] = cents
    return pa.Array.from_buffers(pa.decimal128(10, 2), len(cents), [None, pa.py_buffer(halves)])
