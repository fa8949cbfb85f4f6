"""Measure the metadata table: listing, planning, upkeep, lookups and memory, with their yardsticks.

``make bench-metadata`` runs it; ``README.md`` says what is measured and how, and holds the results.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from metadata_reads import (
    LISTING,
    MEMORY,
    PLANNING,
    Growth,
    measure_growth,
    measure_listing,
    measure_planning,
)
from metadata_table import ManyFiles
from metadata_timing import ratio_of, say
from metadata_writes import (
    CACHED_LOOKUPS,
    FEW_LOOKUPS,
    FILTERS,
    LOOKUPS,
    REPAIR,
    UPKEEP,
    measure_cached_lookups,
    measure_filters,
    measure_lookups,
    measure_repair,
    measure_upkeep,
)
from object_store import object_store
from run_of_cases import Compared, Section, main
from targets import Target

FILES, PARTITIONS, PLANNED_FILES = 100_000, 1000, 10_000
UPSERT_ROWS, KEYS, SOUGHT = 2_000_000, 1_000_000, 100_000
CACHED_KEYS = 10_000_000
FILTERED_FILES, REPAIRED_FILES = 400, 1000
CACHED = "cached-lookups"
CASES = (LISTING, PLANNING, REPAIR, UPKEEP, LOOKUPS, CACHED, FILTERS, MEMORY)
_ONE, _SKEWED = "open, list one partition", "filter that fits in all partitions"

TARGETS = (
    Target(LISTING, _ONE, "storage, by this project", 1 / 50),
    Target(LISTING, _ONE, "storage, by pyarrow", 1 / 50),
    Target(LISTING, "open, plan one partition", "storage, by pyarrow", None),
    Target(PLANNING, _SKEWED, "pyarrow, statistics of all columns", 2.0),
    Target(PLANNING, _SKEWED, "pyarrow, statistics of the column", None),
    Target(
        PLANNING,
        "the same, first query of a process",
        "pyarrow, statistics of all columns",
        None,
    ),
    Target(PLANNING, "filter that fits in one partition", _SKEWED, None),
    Target(REPAIR, "threads", "file after file", None),
    Target(UPKEEP, "files and column_stats", "without", 1.10),
    Target(UPKEEP, "with partition_stats, as by default", "without", None),
    Target(LOOKUPS, "record index, HFiles", "scan of the key column", 1.0),
    Target(FEW_LOOKUPS, "record index, HFiles", "scan of the key column", None),
    Target(CACHED_LOOKUPS, "record index, sorted cache", "scan of the key column", 1.0),
    Target(CACHED_LOOKUPS, "record index, HFiles", "scan of the key column", None),
    Target(FILTERS, "filters in the metadata table", "filters in the footers", 1.0),
)
"""Memory has one of its own, as its names depend on the size."""
MEMORY_ALLOWED = 1.25


@dataclass
class Found(Compared):
    """A finished run.

    ``growths``: of the memory that plans take.
    """

    measures = ("ratio", "work")
    growths: list[Growth] = field(default_factory=list)

    def circumstances(self) -> str:
        return self.text(("hudi-core", "pyarrow"))

    def targets(self) -> list[tuple[Target, float | None, float | None]]:
        """Return the targets of the cases that were run, with the measured ratios: by the clock,
        and of the processors' work, which other processes disturb less."""
        clock = {(one.case, one.variant): one.seconds for one in self.timings}
        work = {(one.case, one.variant): one.work for one in self.timings}
        grown = {(MEMORY, one.variant): [one.median] for one in self.growths}
        targets = list(TARGETS)
        if len(self.growths) > 1:
            few, many = self.growths
            targets.append(Target(MEMORY, many.variant, few.variant, MEMORY_ALLOWED))
        run = {case for case, _ in clock | grown}
        return [
            (one, _ratio(one, clock | grown), _ratio(one, work))
            for one in targets
            if one.case in run
        ]

    def sections(self, known: dict[str, str]) -> list[Section]:
        """Headings with tables, the targets first and memory last."""
        found = super().sections(known)
        if self.growths:
            rows = [
                [one.variant, *(f"{size / 1e6:.1f}" for size in (one.median, max(one.bytes)))]
                for one in self.growths
            ]
            found.append((MEMORY, [["table of", "growth MB", "max"], *rows]))
        return found

    def document(self) -> dict[str, Any]:
        """Every measurement, and the targets."""
        return super().document() | {"memory": [asdict(one) for one in self.growths]}


def _ratio(target: Target, measured: Mapping[tuple[str, str], Sequence[float]]) -> float | None:
    """The measured value of a target; ``None`` where a part of it was not."""
    some = measured.get((target.case, target.variant))
    others = measured.get((target.case, target.yardstick))
    return ratio_of(some, others) if some and others else None


def run(folder: Path, cases: Sequence[str], scale: float, repeats: int) -> Found:
    """Run cases, one after the other; tables are made once."""
    found = Found(scale)
    small = ManyFiles(
        folder / "small",
        100,
        max(200, round(PLANNED_FILES * scale) // 100 * 100),
        every_column=True,
    )
    large = ManyFiles(
        folder / "large",
        max(2, round(PARTITIONS * scale)),
        max(2, round(PARTITIONS * scale)) * (FILES // PARTITIONS),
    )
    if PLANNING in cases or MEMORY in cases:
        say(f"a table of {small.files:,} files")
        small.make()
    if LISTING in cases or MEMORY in cases:
        say(f"a table of {large.files:,} files")
        large.make()
    for case in cases:
        found.loads.append(os.getloadavg()[0])
        if case == LISTING:
            found.timings += measure_listing(large, 2 * repeats)
        elif case == PLANNING:
            found.timings += measure_planning(small, folder, 2 * repeats)
        elif case == REPAIR:
            files = max(40, round(REPAIRED_FILES * scale) // 2 * 2)
            found.timings += measure_repair(folder / REPAIR, files, repeats)
        elif case == UPKEEP:
            rows = max(20_000, round(UPSERT_ROWS * scale))
            found.timings += measure_upkeep(folder / UPKEEP, rows, repeats)
        elif case == LOOKUPS:
            keys, sought = max(10_000, round(KEYS * scale)), max(1000, round(SOUGHT * scale))
            found.timings += measure_lookups(folder / LOOKUPS, keys, sought, repeats)
        elif case == CACHED:
            keys, sought = (
                max(100_000, round(CACHED_KEYS * scale)),
                max(1000, round(SOUGHT * scale)),
            )
            found.timings += measure_cached_lookups(folder / CACHED, keys, sought, repeats)
        elif case == FILTERS:
            files = max(20, round(FILTERED_FILES * scale))
            with object_store(folder) as store:
                found.timings += measure_filters(store, files, repeats)
        else:
            found.growths = [measure_growth(one, repeats) for one in (small, large)]
    return found


if __name__ == "__main__":
    sys.exit(main(__doc__, "metadata", CASES, 3, run))
