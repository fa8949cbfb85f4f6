"""Measure tables that live for thousands of commits, and the planning of a clean.

``make bench-long`` runs it. A table of each format is upserted again and again, with table services
as they are by default: commits, opening, and what is on disk, at several ages. Each age is measured
beside a table of the first age, in turn, so that a noisy machine is noisy to both. A clean of a
table of many files, ten of which have changed, is planned beside one that lists all of them.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from small_commits import SCHEMA, rows

import hudi_core as hudi

FORMATS = ("native", "iceberg", "delta")
AGES = (100, 1_000, 5_000)
GROWTH = 1.2
"""What a commit, and opening, may cost at any age, where the first age is 1."""
PLANNING = 0.05
"""Of a plan that lists all files, what one may cost that looks at ten changed ones."""
PARTITIONS, FILES, CHANGED = 100, 100, 10
_ROUNDS = 15
_ROWS, _BATCH = 2_000, 100
_QUICK = {"hoodie.fs.fsync": "false"}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=FORMATS)
    parser.add_argument("--ages", nargs="+", type=int, default=AGES, help="default: %(default)s")
    parser.add_argument("--partitions", type=int, default=PARTITIONS, help="default: %(default)s")
    given = parser.parse_args()
    missed = 0
    with tempfile.TemporaryDirectory(prefix="hudi-long-") as folder:
        for format_name in given.formats:
            missed += measure_ages(Path(folder), format_name, sorted(given.ages))
        missed += measure_planning(Path(folder) / "planned", given.partitions)
    return 1 if missed else 0


def measure_ages(folder: Path, format_name: str, ages: Sequence[int]) -> int:
    """Let a table grow old; return how many targets it missed."""
    path, young = folder / format_name, folder / f"{format_name}-young"
    table = hudi.Table.create(
        str(path),
        SCHEMA,
        record_key="id",
        partition_by="city",
        ordering_field="ts",
        format=format_name,
        options=_QUICK,
    )
    table.bulk_insert(rows(range(_ROWS), 0, of=_ROWS))
    missed = age = 0
    for next_age in ages:
        while age < next_age:
            age += 1
            upsert(table, age)
        if not young.exists():
            # formats know absolute paths: the copy takes the place of the table while it is
            # measured
            shutil.copytree(path, young)
        found = beside(path, young, age)
        missed += sum(ratio > GROWTH for ratio in found[:2])
        files = [one for one in path.rglob("*") if one.is_file()]
        size = sum(one.stat().st_size for one in files) / 1e6
        print(
            f"{format_name:8} {age:6} commits: a commit {found[0]:.2f}, opening {found[1]:.2f} of "
            f"those at {ages[0]}; {len(files)} files, {size:.1f} MB",
            flush=True,
        )
    return missed


def beside(path: Path, young: Path, age: int) -> tuple[float, float]:
    """Seconds of a processor of a commit and of opening, as ratios to those of a young table."""
    commits: dict[Path, list[float]] = {path: [], young: []}
    opens: dict[Path, list[float]] = {path: [], young: []}
    kept = path.with_name(f"{path.name}-kept")
    for number in range(_ROUNDS):
        for one in (path, young):
            if one is young:
                path.rename(kept)
                young.rename(path)
            table = hudi.Table.open(path, _QUICK)
            opens[one].append(spent(partial(opened, path)))
            commits[one].append(spent(partial(upsert, table, age + number)))
            if one is young:
                path.rename(young)
                kept.rename(path)
    return ratio(commits, path, young), ratio(opens, path, young)


def opened(path: Path) -> int:
    return len(hudi.Table.open(path, _QUICK).file_slices())


def ratio(found: dict[Path, list[float]], path: Path, young: Path) -> float:
    return statistics.median(found[path]) / statistics.median(found[young])


def spent(run: Callable[[], object]) -> float:
    """Seconds of the processor, of this process."""
    begin = time.process_time()
    run()
    return time.process_time() - begin


def upsert(table: hudi.Table, number: int) -> None:
    start = number * 37 % _ROWS
    table.upsert(rows(range(start, start + _BATCH), number, of=_ROWS))


def measure_planning(path: Path, partitions: int) -> int:
    """Plan a clean of a table of many files; return how many targets were missed."""
    table = hudi.Table.create(
        str(path),
        SCHEMA,
        record_key="id",
        partition_by="city",
        ordering_field="ts",
        options={
            **_QUICK,
            "hoodie.table.services.enabled": "false",
            "hoodie.copyonwrite.insert.auto.split": "false",
            "hoodie.copyonwrite.insert.split.size": "1",
            "hoodie.metadata.index.column.stats.enable": "false",
        },
    )
    count = partitions * FILES
    table.insert(rows(range(count), 0, of=count, cities=partitions))
    retained = {"hoodie.cleaner.commits.retained": "1"}
    changed = range(0, count, count // CHANGED)
    for ts in (1, 2):
        table.upsert(rows(changed, ts, of=count, cities=partitions))
    table.clean(options=retained)
    for ts in (3, 4):
        table.upsert(rows(changed, ts, of=count, cities=partitions))
    full = {**retained, "hoodie.cleaner.incremental.mode": "false"}
    seconds: dict[str, list[float]] = {"changed": [], "all": []}
    for _ in range(_ROUNDS):
        for name, options in (("changed", retained), ("all", full)):
            seconds[name].append(spent(partial(table.clean, options=options, dry_run=True)))
    assert len(table.clean(options=retained, dry_run=True).files) >= CHANGED
    found = statistics.median(seconds["changed"]) / statistics.median(seconds["all"])
    print(
        f"planning a clean of {CHANGED} changed files of {count:,}: {found:.3f} of a "
        f"plan that lists all ({statistics.median(seconds['all']):.2f} s)",
        flush=True,
    )
    return int(found > PLANNING)


if __name__ == "__main__":
    sys.exit(main())
