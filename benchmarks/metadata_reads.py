"""Listing and planning through the metadata table, each beside what reads the same without it."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from metadata_table import CLOCK, CLOCKS_A_FILE, DAY, NOISE, ManyFiles
from metadata_timing import Timing, measure

import hudi_core as hudi
from hudi_core.metadata.statistics.range_cache import SHARED
from hudi_core.model.files import PartitionPath
from hudi_core.services.opening import open_table

LISTING, PLANNING, MEMORY = "listing", "planning", "memory"
OFF = {"hoodie.metadata.enable": "false"}


def list_partition(table: ManyFiles) -> int:
    """Open a table and return how many files one of its partitions has."""
    partition = PartitionPath(table.day(table.partitions // 2))
    return len(open_table(str(table.path), {}).lister().list_files([partition])[partition])


def slices_of_partition(table: ManyFiles) -> int:
    """Open a table and plan to read one of its partitions."""
    wanted = pc.field(DAY) == table.day(table.partitions // 2)
    return len(hudi.Table.open(str(table.path)).file_slices(filter=wanted))


def measure_listing(table: ManyFiles, repeats: int) -> list[Timing]:
    """Measure opening a table and listing one partition against listing all of it."""
    selector = pafs.FileSelector(str(table.path), recursive=True)

    def walk() -> int:
        found = pafs.LocalFileSystem().get_file_info(selector)
        return sum(one.base_name.endswith(".parquet") for one in found)

    def stored() -> int:
        opened = open_table(str(table.path), OFF)
        lister = opened.lister()
        listed = lister.list_files(lister.list_partitions()).values()
        return sum(one.path.endswith(".parquet") for files in listed for one in files)

    some = measure(
        LISTING,
        {
            "open, list one partition": lambda: list_partition(table),
            "open, plan one partition": lambda: slices_of_partition(table),
        },
        repeats,
        table.in_partition,
    )
    # two rows have a file of their own
    every = {"storage, by this project": stored, "storage, by pyarrow": walk}
    return [*some, *measure(LISTING, every, max(1, repeats // 2), table.files + 2)]


def measure_planning(table: ManyFiles, folder: Path, repeats: int) -> list[Timing]:
    """Measure planning by a column that leaves out nine of ten files, in every partition."""
    least = table.files * 0.9
    whole, column = folder / "all.parquet", folder / "column.parquet"
    write_statistics(table, whole, pq.read_schema(table.parquet[0]).names)
    write_statistics(table, column, [NOISE])

    def plan() -> int:
        # the first of the two rows of a file has the lesser value
        found = hudi.Table.open(str(table.path)).file_slices(filter=pc.field(NOISE) >= least)
        return len(found)

    def plan_first() -> int:
        # as the first query of a process: what earlier ones decoded is forgotten
        SHARED.clear()
        return plan()

    def read(path: Path) -> Callable[[], int]:
        return lambda: pq.read_table(path).filter(pc.field(f"{NOISE}_max") >= least).num_rows

    def plan_few() -> int:
        first = table.files // 2 * CLOCKS_A_FILE
        wanted = (pc.field(CLOCK) >= first) & (pc.field(CLOCK) < first + 10 * CLOCKS_A_FILE)
        found = hudi.Table.open(str(table.path)).file_slices(filter=wanted)
        return len(found) * table.files // 100

    calls = {
        "filter that fits in all partitions": plan,
        "the same, first query of a process": plan_first,
        "filter that fits in one partition": plan_few,
        "pyarrow, statistics of the column": read(column),
        "pyarrow, statistics of all columns": read(whole),
    }
    return measure(PLANNING, calls, repeats, table.files // 10)


def write_statistics(table: ManyFiles, path: Path, columns: list[str]) -> None:
    """Write what the metadata table knows of every file into one parquet file, a row for each."""
    files, sizes = [], []
    ranges: dict[str, tuple[list[Any], ...]] = {name: ([], [], [], []) for name in columns}
    for file in table.parquet:
        footer = pq.read_metadata(file)
        group = footer.row_group(0)
        files.append(str(file.relative_to(table.path)))
        sizes.append(file.stat().st_size)
        for name, (low, high, nulls, values) in ranges.items():
            column = group.column(footer.schema.names.index(name))
            low.append(column.statistics.min)
            high.append(column.statistics.max)
            nulls.append(column.statistics.null_count)
            values.append(footer.num_rows)
    data = {"file": files, "size": sizes}
    for name, lists in ranges.items():
        data |= dict(
            zip(
                [f"{name}_{what}" for what in ("min", "max", "nulls", "values")],
                lists,
                strict=True,
            )
        )
    pq.write_table(pa.table(data), path)


@dataclass
class Growth:
    """What planning adds to a process.

    ``bytes``: one number for each process.
    """

    variant: str
    bytes: list[int] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.bytes)


def measure_growth(table: ManyFiles, repeats: int) -> Growth:
    """Measure how far planning the same ten files lets a process grow (``VmHWM``)."""
    growth = Growth(f"{table.files:,} files")
    first = table.in_partition * (table.partitions // 2) * CLOCKS_A_FILE
    script = Path(__file__).with_name("metadata_probe.py")
    for _ in range(repeats):
        done = subprocess.run(
            [sys.executable, script, table.path, str(first), str(first + 10 * CLOCKS_A_FILE)],
            stdout=subprocess.PIPE,
            check=True,
            # Arrow's own allocator takes memory in steps of 2 MB, be it used or not
            env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"},
        )
        answer = json.loads(done.stdout)
        if answer["files"] != 10:
            raise AssertionError(f"the plan has {answer['files']} files, not 10")
        growth.bytes.append(answer["peak"] - answer["before"])
    return growth
