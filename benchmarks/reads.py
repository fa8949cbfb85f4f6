"""Measure reads: a whole table, two of its columns, rows of one partition, changes, and by Spark.

``make bench-reads`` runs it; ``README.md`` says what is measured and how, and holds the results.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from delta_peer import Delta
from deltalake import DeltaTable
from iceberg_peer import Iceberg, opened_table
from metadata_timing import measure
from ours import Ours
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn
from run_of_cases import Compared, main
from spark_peer import session
from targets import Target
from workload import CITIES, PARTITION, Source, make_base

import hudi_core as hudi
from hudi_core.model.instant import Instant

ROWS = 2_000_000
WHOLE, COLUMNS, FILTERED = "whole", "two-columns", "one-partition"
UPDATED, DELETED = "changes-of-an-upsert", "changes-of-a-delete"
CHANGES = (UPDATED, DELETED)
BY_SPARK = "by-spark"
CASES = (WHOLE, COLUMNS, FILTERED, BY_SPARK, *CHANGES)
TWO = ["rider", "fare"]
CITY, LEAST = CITIES[3], 2
"""The partition of which rows are read, and the number that their ``passengers`` exceed."""
OURS, DELTA, ICEBERG = "hudi-core", "deltalake", "pyiceberg"
FAST_PATH, SAME_FILES = "hudi.read", "spark.read.parquet"
FEED, NET, SLICES = "change feed", "incremental with deletes", "the slices"
EVERY = 100
"""One row of so many is written again, and one of so many deleted."""
_WHERE = ("passengers", ">", LEAST)

TARGETS = (
    *(
        Target(case, OURS, peer, allowed)
        for case in (WHOLE, COLUMNS, FILTERED)
        for peer, allowed in ((DELTA, 1.0), (ICEBERG, None))
    ),
    Target(BY_SPARK, FAST_PATH, SAME_FILES, 1.05),
    *(Target(case, ours, SLICES, 1.3) for case in CHANGES for ours in (FEED, NET)),
)
Read = Callable[[], pa.Table]


class Found(Compared):
    """A finished run."""

    measures = ("ratio", "work")

    def circumstances(self) -> str:
        return self.text(("hudi-core", "deltalake", "pyiceberg", "pyarrow"))

    def targets(self) -> list[tuple[Target, float | None, float | None]]:
        """The targets of the cases that were run, with the ratios by the clock and of work."""
        clock = {(one.case, one.variant): one.median for one in self.timings}
        work = {(one.case, one.variant): one.median_work for one in self.timings}
        run = {case for case, _ in clock}
        return [(one, one.ratio(clock), one.ratio(work)) for one in TARGETS if one.case in run]


def run(folder: Path, cases: Sequence[str], scale: float, repeats: int) -> Found:
    """Run cases, on tables that every peer loads itself."""
    found = Found(scale)
    batch = make_base(folder / "rows", Source("base", max(2000, round(ROWS * scale))))
    paths = {name: folder / name for name in (OURS, DELTA, ICEBERG)}
    Ours("local", metadata=True).load(batch, paths[OURS])
    Delta().load(batch, paths[DELTA])
    Iceberg().load(batch, paths[ICEBERG])
    rows = batch.read()
    some = (pc.field(PARTITION) == CITY) & (pc.field("passengers") > LEAST)
    expected = {WHOLE: rows.num_rows, COLUMNS: rows.num_rows, FILTERED: rows.filter(some).num_rows}
    # the columns that all of them have: ours has five of its own besides
    names = rows.column_names
    del rows
    for case in (one for one in cases if one in expected):
        found.loads.append(os.getloadavg()[0])
        reads = _reads(case, paths, names)
        calls = {name: lambda read=read: read().num_rows for name, read in reads.items()}
        found.timings += measure(case, calls, repeats, expected[case])
    if BY_SPARK in cases:
        found.loads.append(os.getloadavg()[0])
        spark_reads = _by_spark(str(paths[OURS]), names)
        found.timings += measure(BY_SPARK, spark_reads, repeats, expected[WHOLE])
    if any(case in CHANGES for case in cases):
        table = hudi.Table.open(str(paths[OURS]))
        times = _changed(table, batch.read())
    for case in (one for one in cases if one in CHANGES):
        found.loads.append(os.getloadavg()[0])
        found.timings += measure(case, _compared(table, *times[case]), repeats)
    return found


def _by_spark(path: str, names: list[str]) -> dict[str, Callable[[], int]]:
    """All rows of all columns in Spark: by the fast path, and by Spark from the same files."""
    table = hudi.Table.open(path)
    files = [f"{path}/{one.base_file.path}" for one in table.file_slices() if one.base_file]

    def summed(rows: DataFrame) -> int:
        # every value is hashed: none is left unread, and no row is sent to the driver
        found = rows.select(fn.max(fn.xxhash64(*names)), fn.count("*")).first()
        assert found is not None
        return int(found[1])

    return {
        FAST_PATH: lambda: summed(hudi.read(session(), path)),
        SAME_FILES: lambda: summed(session().read.parquet(*files)),
    }


def _changed(table: hudi.Table, rows: pa.Table) -> dict[str, tuple[Instant, Instant]]:
    """Write some rows again and delete others, in all files; return the windows."""
    [first] = table.timeline.completed_writes()
    some = [pa.array(range(start, rows.num_rows, EVERY)) for start in (0, EVERY // 2)]
    second = table.upsert(rows.take(some[0])).instant
    third = table.delete(rows.take(some[1])).instant
    return {UPDATED: (first, second), DELETED: (second, third)}


def _compared(table: hudi.Table, begin: Instant, end: Instant) -> dict[str, Callable[[], int]]:
    """What changed in a window, beside plain reads of the files before and after."""
    files = [
        f"{table.path}/{one.base_file.path}"
        for time in (begin, end)
        for one in table.file_slices(as_of=time)
        if one.base_file is not None
    ]
    return {
        FEED: lambda: sum(batch.num_rows for batch in table.changes_batches(begin, end)),
        NET: lambda: sum(
            batch.num_rows for batch in table.incremental_batches(begin, end, deletes=True)
        ),
        SLICES: lambda: sum(pq.read_table(file).num_rows for file in files),
    }


def _reads(case: str, paths: dict[str, Path], names: list[str]) -> dict[str, Read]:
    """How each of them reads, from opening on."""
    path, delta_path = str(paths[OURS]), str(paths[DELTA])
    if case == FILTERED:
        where = [(PARTITION, "=", CITY), _WHERE]
        wanted = f"{PARTITION} = '{CITY}' and passengers > {LEAST}"
        return {
            OURS: lambda: hudi.Table.open(path).to_arrow(names, where),
            DELTA: lambda: DeltaTable(delta_path).to_pyarrow_table(filters=where),
            ICEBERG: lambda: opened_table(paths[ICEBERG]).scan(wanted).to_arrow(),
        }
    columns = TWO if case == COLUMNS else names
    return {
        OURS: lambda: hudi.Table.open(path).to_arrow(columns),
        DELTA: lambda: DeltaTable(delta_path).to_pyarrow_table(columns=columns),
        ICEBERG: lambda: (
            opened_table(paths[ICEBERG]).scan(selected_fields=tuple(columns)).to_arrow()
        ),
    }


if __name__ == "__main__":
    sys.exit(main(__doc__, "reads", CASES, 7, run))
