"""Measure what a table's format adds: its step of a commit, and listing from its metadata.

``make bench-formats`` runs it; ``README.md`` says what is measured and how, and holds the results.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from format_listing import LISTING, measure_listing
from format_planning import OTHERS, PLANNING, SQL, measure_planning
from format_steps import (
    BOTH,
    FORMATS,
    HISTORY,
    NATIVE,
    STEP,
    measure_both,
    measure_history,
    measure_touched,
)
from run_of_cases import Compared, main
from targets import Target

FILES = 10_000
COMMITS = (10, 100, 1000)
MANY_FILES = 100_000
CASES = (STEP, HISTORY, BOTH, LISTING, PLANNING)
ALLOWED_SECONDS, ALLOWED_SHARE = 0.1, 0.1
"""Of a step, whichever is more: by itself, and of the upsert it is part of."""
PLANNING_SECONDS = 1.5
"""To find 20 rows among 10,000 files."""


class Found(Compared):
    """A finished run."""

    def circumstances(self) -> str:
        return self.text(("hudi-core", "pyiceberg", "deltalake", "sqlalchemy"))

    def targets(self) -> list[tuple[Target, float | None]]:
        """Return the targets of the cases that were run, with the measured ratios."""
        values = {(one.case, one.variant): one.median for one in self.timings}
        found: list[Target] = []
        native = values.get((STEP, f"{NATIVE}: upsert"))
        if native is not None:
            share = round(PLANNING_SECONDS / native, 3)
            found.append(Target(STEP, f"{NATIVE}: plan", f"{NATIVE}: upsert", share))
        for name in FORMATS:
            whole = values.get((STEP, f"{name}: upsert"))
            if whole is not None:
                share = max(ALLOWED_SHARE, ALLOWED_SECONDS / whole)
                found.append(Target(STEP, f"{name}: step", f"{name}: upsert", round(share, 3)))
            some = [one for one in self.timings if one.case == HISTORY]
            of_format = [one.variant for one in some if one.variant.startswith(f"{name}: ")]
            if len(of_format) > 1:
                found.append(Target(HISTORY, of_format[-1], of_format[0], 1.2))
            found.append(Target(BOTH, f"{name}: with metadata table", f"{name}: without", None))
            found.append(Target(LISTING, f"{name}: ours", f"{name}: library", None))
        found += [Target(PLANNING, f"{SQL}: plan", f"{name}: plan", 0.5) for name in OTHERS]
        run = {case for case, _ in values}
        return [(one, one.ratio(values)) for one in found if one.case in run]


def run(folder: Path, cases: Sequence[str], scale: float, repeats: int) -> Found:
    """Run cases, one after the other; each makes its own tables."""
    found = Found(scale)
    files = max(100, round(FILES * scale) // 100 * 100)
    for case in cases:
        found.loads.append(os.getloadavg()[0])
        if case == STEP:
            found.timings += measure_touched(folder / STEP, files, repeats)
        elif case == HISTORY:
            commits = [max(4, round(one * scale)) for one in COMMITS]
            found.timings += measure_history(folder / HISTORY, sorted(set(commits)))
        elif case == BOTH:
            found.timings += measure_both(folder / BOTH, repeats)
        elif case == LISTING:
            found.timings += measure_listing(folder / LISTING, files, repeats)
        else:
            many = max(1000, round(MANY_FILES * scale) // 1000 * 1000)
            found.timings += measure_planning(folder / PLANNING, many, repeats)
    return found


if __name__ == "__main__":
    sys.exit(main(__doc__, "formats", CASES, 5, run))
