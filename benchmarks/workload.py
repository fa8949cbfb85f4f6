"""The rows of the benchmark: trips of twenty cities, made from their numbers alone.

Every value is a hash of the row's number, so any part of the data can be made again, equal on every
machine: 17 columns, about 198 bytes a row in Arrow. The upsert batches change rows of the table (a
newer ``ts``, new values elsewhere, the same city) and add new ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
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
"""Columns for which a dictionary pays, where a writer has such an option."""

INSERT_SHARE = 0.05
"""New rows of an upsert batch, as a share of the rows that it changes."""

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
CHANGED = BEGAN + timedelta(days=30)
"""Every row that an upsert is to leave in the table has this ``ts`` or a later one; every other row
an earlier one."""

STORED, NEWEST, OUTDONE, LATE = range(4)
"""Versions of a row: in the table; of a batch; of a batch that has a newer one of the same key; of
a batch, older than the one in the table."""
_BEGINS = (BEGAN, CHANGED, BEGAN + timedelta(days=15), BEGAN - timedelta(days=15))

_FILE_ROWS = 500_000
"""Rows of an input file at most: it is one row group, and one task where it is split by."""


@dataclass(frozen=True)
class Source:
    """What a table is made of.

    ``name``: of its folder. ``rows``: how many rows there are. ``cities``: how many partitions they
    are in.
    """

    name: str
    rows: int
    cities: int = len(CITIES)


@dataclass(frozen=True)
class Change:
    """What an upsert batch does to a table.

    ``rows``: how many rows of the table get a new version. ``city``: number of the only city they
    are in; ``None`` for rows of all cities. ``inserts``: new rows, as a share of ``rows``.
    ``versions``: whether the batch also has, in random order, an outdone version of every tenth
    key, and late versions of other rows: a twentieth of ``rows``.
    """

    rows: int
    city: int | None = None
    inserts: float = INSERT_SHARE
    versions: bool = False


@dataclass(frozen=True)
class Batch:
    """Rows in parquet files, one row group each.

    ``folder``: holds the files and nothing else. ``rows``: how many rows there are. ``inserts``:
    how many of them have keys that the table does not hold. ``kept``: how many of them are in the
    table in the end: fewer than ``rows`` with several versions.
    """

    folder: Path
    rows: int
    inserts: int
    kept: int

    @property
    def has_versions(self) -> bool:
        """Whether the ordering field has to decide between versions of a key."""
        return self.kept < self.rows

    @property
    def files(self) -> list[Path]:
        return sorted(self.folder.glob("*.parquet"))

    def read(self) -> pa.Table:
        """Return all rows, read by as many threads as there are cores."""
        return pa.concat_tables(pq.read_table(path) for path in self.files)


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))


def make_base(folder: Path, source: Source) -> Batch:
    """Write the rows of a table: numbers 0 to ``source.rows``."""
    numbers = np.arange(source.rows, dtype=np.uint64)
    return _write(folder, [(numbers, STORED)], source, inserts=source.rows)


def make_upsert(folder: Path, source: Source, change: Change) -> Batch:
    """Write a batch for a table; the rows that it changes are drawn at random."""
    random = np.random.default_rng(change.rows)
    stored = _in_city(np.arange(source.rows, dtype=np.uint64), source, change.city)
    late = change.rows // 20 if change.versions else 0
    if change.rows + late > len(stored):
        raise ValueError(f"{source.name} has {len(stored):,} rows to change, not {change.rows:,}")
    drawn = random.choice(stored, change.rows + late, replace=False)
    changed = drawn[: change.rows]
    added = _new_numbers(source, change.city, round(change.rows * change.inserts))
    parts = [(np.concatenate([changed, added]), NEWEST)]
    if change.versions:
        parts += [(changed[::10], OUTDONE), (drawn[change.rows :], LATE)]
    return _write(folder, parts, source, inserts=len(added), random=random)


def _new_numbers(source: Source, city: int | None, count: int) -> Numbers:
    """Return numbers that the table does not have."""
    # a city has its even share of all numbers, and twice that many are enough to find it in
    among = count if city is None else 2 * source.cities * (count + 100)
    numbers = np.arange(source.rows, source.rows + among, dtype=np.uint64)
    found = _in_city(numbers, source, city)[:count]
    if len(found) < count:
        raise AssertionError(f"found {len(found)} new rows of a city, {count} are wanted")
    return found


def _in_city(numbers: Numbers, source: Source, city: int | None) -> Numbers:
    if city is None:
        return numbers
    found: Numbers = numbers[_city(numbers) % np.uint64(source.cities) == city]
    return found


def make_rows(numbers: Numbers, version: int, cities: int = len(CITIES)) -> pa.Table:
    """Return the rows of these numbers; their keys and cities are the same in every version."""
    column = _columns(numbers, version)
    began = round(_BEGINS[version].timestamp()) * 10**6
    ts = began + (numbers % np.uint64(10**9)).astype(np.int64) * 1000
    return pa.table(
        {
            # an odd factor maps 64-bit numbers one to one: unique keys without order
            KEY: _digits(numbers * np.uint64(0x9E3779B97F4A7C15), 20),
            PARTITION: _choice(_city(numbers), CITIES[:cities]),
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


def _write(
    folder: Path,
    versions: Sequence[tuple[Numbers, int]],
    source: Source,
    inserts: int,
    random: np.random.Generator | None = None,
) -> Batch:
    """Write versions of rows, in random order where a generator is given."""
    numbers = np.concatenate([some for some, _ in versions])
    version = np.concatenate([np.full(len(some), number) for some, number in versions])
    order = np.arange(len(numbers)) if random is None else random.permutation(len(numbers))
    folder.mkdir(parents=True)
    # more files than cores, so that an engine that splits by file leaves no core idle
    count = min(len(order), max(2 * cores(), -(-len(order) // _FILE_ROWS)))
    for part, some in enumerate(np.array_split(order, count)):
        rows = _rows_of_versions(numbers[some], version[some], source.cities)
        pq.write_table(
            rows,
            folder / f"part-{part:04}.parquet",
            row_group_size=rows.num_rows,
            compression="zstd",
            compression_level=1,
            use_dictionary=list(LOW_CARDINALITY),
            store_schema=False,
        )
    return Batch(folder, len(numbers), inserts, kept=len(versions[0][0]))


def _rows_of_versions(numbers: Numbers, version: npt.NDArray[np.int64], cities: int) -> pa.Table:
    """Return rows in the order of their numbers, each in its own version."""
    places = [np.flatnonzero(version == one) for one in np.unique(version)]
    tables = [make_rows(numbers[some], int(version[some[0]]), cities) for some in places]
    if len(tables) == 1:
        return tables[0]
    return pa.concat_tables(tables).take(pa.array(np.argsort(np.concatenate(places))))


def _city(numbers: Numbers) -> Numbers:
    return _mix(numbers, 0, STORED)


def _columns(numbers: Numbers, version: int) -> Callable[[int], Numbers]:
    return lambda column: _mix(numbers, column, version)


def _mix(numbers: Numbers, column: int, version: int) -> Numbers:
    """Hash numbers to 64 bits (as splitmix64 does), differently for every column and version."""
    mixed = numbers + np.uint64((column * len(_BEGINS) + version + 1) * 0x632BE59BD9B4E019 % 2**64)
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
