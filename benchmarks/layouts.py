"""Measure the object-store layout beside the default one: resolving paths, writing and reading.

``make bench-layouts`` runs it. Paths are resolved beside the listing of the metadata table that
they come from. Writes and reads are of the same rows, with the data files in 256 prefixes and in
the table's folder, on the same disk, in turn; ratios are medians of the rounds'.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from metadata_table import ManyFiles
from metadata_timing import Timing, measure, ratio_of
from workload import KEY, ORDERING, PARTITION, STORED, make_rows

import hudi_core as hudi
from hudi_core.config.placement import Placement, placement_of
from hudi_core.model.files import FileStatus
from hudi_core.services.opening import open_table
from hudi_core.storage.layout import layout_of

FILES, PARTITIONS = 100_000, 1000
CITIES = 16
OPTIONS = {"hoodie.fs.fsync": "false"}
RESOLVED_SHARE, RESOLVED_SECONDS = 0.05, 0.1
"""Resolving takes no more than the one of reading the listing, or no more than the other."""
ALLOWED = 1.05
"""What writes and reads may take, as a multiple of those of the default layout."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--scale", type=float, default=1.0, help="of the listing; default: 1")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hudi-layouts-") as folder:
        met = [
            resolve(Path(folder) / "many", arguments.scale, arguments.rounds),
            *write_and_read(Path(folder) / "rows", arguments.rows, arguments.rounds),
        ]
    return 0 if all(met) else 1


def resolve(path: Path, scale: float, rounds: int) -> bool:
    """Compare resolving the paths of a table with reading its listing."""
    partitions = max(10, round(PARTITIONS * scale))
    table = ManyFiles(path, partitions, partitions * (FILES // PARTITIONS))
    table.make()
    layout = layout_of(str(path), "many", placement(str(path.parent / "store")))
    paths = [one.path for files in listed(path).values() for one in files]

    def read() -> int:
        return sum(map(len, listed(path).values()))

    def places() -> int:
        return sum(len(run.paths) for run in layout.runs(paths))

    calls: dict[str, Callable[[], int]] = {"read the listing": read, "resolve its paths": places}
    reading, resolving = measure("resolve", calls, rounds, len(paths))
    # neither waits for anything: what the processor does counts, whatever else is running
    share = ratio_of(resolving.work, reading.work)
    is_met = share <= RESOLVED_SHARE or resolving.median_work <= RESOLVED_SECONDS
    say(
        f"{len(paths):,} paths: {resolving.median_work * 1000:.0f} ms of a processor "
        f"({resolving.median * 1000:.0f} ms by the clock), {share:.1%} of reading the listing "
        f"(at most {RESOLVED_SECONDS * 1000:.0f} ms, or {RESOLVED_SHARE:.0%})",
        is_met,
    )
    return is_met


def listed(path: Path) -> dict[str, list[FileStatus]]:
    """The files of a table by partition, read from its metadata table."""
    lister = open_table(str(path), {}).lister()
    found = lister.list_files(lister.list_partitions())
    return {str(partition): list(files) for partition, files in found.items()}


def placement(root: str) -> Placement:
    """The object-store layout with its defaults."""
    return placement_of(
        {"hoodie.storage.path": root, "hoodie.storage.strategy.class": "object_store"}
    )


def write_and_read(folder: Path, rows: int, rounds: int) -> list[bool]:
    """Compare the same writes and reads of two tables that differ in their layout."""
    numbers = np.arange(rows, dtype=np.uint64)
    stored = make_rows(numbers, STORED, CITIES)
    changed = stored.slice(0, max(1, rows // 10))

    def write(kind: str) -> int:
        shutil.rmtree(folder, ignore_errors=True)
        table = new_table(folder, kind)
        table.bulk_insert(stored)
        return int(table.upsert(changed).updated)

    def read(kind: str) -> int:
        table = hudi.Table.open(str(folder / f"kept-{kind}"), OPTIONS)
        return int(table.to_arrow().num_rows)

    def new_table(folder: Path, kind: str) -> hudi.Table:
        options = dict(OPTIONS)
        if kind == "object_store":
            options["hoodie.storage.path"] = str(folder / "store")
            options["hoodie.storage.strategy.class"] = kind
        return hudi.Table.create(
            str(folder / f"kept-{kind}"),
            stored.schema,
            record_key=KEY,
            partition_by=PARTITION,
            ordering_field=ORDERING,
            options=options,
        )

    kinds = ("default", "object_store")
    met = [compared(measure("write", {kind: bind(write, kind) for kind in kinds}, rounds))]
    shutil.rmtree(folder, ignore_errors=True)
    for kind in kinds:
        new_table(folder, kind).bulk_insert(stored)
    reads = {kind: bind(read, kind) for kind in kinds}
    met.append(compared(measure("read", reads, 3 * rounds, rows)))
    return met


def bind(function: Callable[[str], int], kind: str) -> Callable[[], int]:
    return lambda: function(kind)


def compared(timings: list[Timing]) -> bool:
    """Show the ratio of the two layouts; return whether it is small enough."""
    plain, placed = timings
    ratio = ratio_of(placed.seconds, plain.seconds)
    work = ratio_of(placed.work, plain.work)
    say(
        f"{plain.case}: {ratio:.3f} of the default layout's seconds, {work:.3f} of its processor "
        f"time (at most {ALLOWED})",
        ratio <= ALLOWED,
    )
    return ratio <= ALLOWED


def say(text: str, is_met: bool) -> None:
    print(f"{text}: {'met' if is_met else 'missed'}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
