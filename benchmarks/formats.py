"""Measure what a table's format adds: its step of a commit, and listing from its metadata.

``make bench-formats`` runs it; ``README.md`` says what is measured and how, and holds the results.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from format_listing import LISTING, measure_listing
from format_steps import (
    BOTH,
    FORMATS,
    HISTORY,
    STEP,
    measure_both,
    measure_history,
    measure_touched,
)
from metadata_timing import Timing, table_of
from page import causes, write_section
from report import UNEXPLAINED, Machine, aligned, markdown_rows
from targets import Target

HERE = Path(__file__).resolve().parent
SCRATCH = HERE.parent / ".bench"
FILES = 10_000
COMMITS = (10, 100, 1000)
CASES = (STEP, HISTORY, BOTH, LISTING)
ALLOWED_SECONDS, ALLOWED_SHARE = 0.1, 0.1
"""Of a step, whichever is more: by itself, and of the upsert it is part of."""


@dataclass
class Found:
    """A finished run."""

    scale: float
    timings: list[Timing] = field(default_factory=list)
    loads: list[float] = field(default_factory=list)

    def circumstances(self) -> str:
        machine = Machine.here()
        sizes = "" if self.scale == 1 else f"{self.scale:g} of the sizes the targets mean; "
        versions = ", ".join(
            f"{name} {machine.versions[name]}"
            for name in ("hudi-core", "pyiceberg", "deltalake")
            if name in machine.versions
        )
        return (
            f"{machine.when}: {sizes}{machine.cores} cores, {machine.memory_gb} GB, "
            f"{machine.system}, load {statistics.median(self.loads):.1f} (median) and "
            f"{max(self.loads):.1f} (greatest). Python {machine.python}, {versions}."
        )

    def targets(self) -> list[tuple[Target, float | None]]:
        """Return the targets of the cases that were run, with the measured ratios."""
        values = {(one.case, one.variant): one.median for one in self.timings}
        found: list[Target] = []
        for name in FORMATS:
            whole = values.get((STEP, f"{name}: upsert"))
            if whole is not None:
                share = max(ALLOWED_SHARE, ALLOWED_SECONDS / whole)
                found.append(Target(STEP, f"{name}: step", f"{name}: upsert", round(share, 3)))
            some = [one for one in self.timings if one.case == HISTORY]
            of_format = [one.variant for one in some if one.variant.startswith(f"{name}: ")]
            if len(of_format) > 1:
                found.append(Target(HISTORY, of_format[-1], of_format[0], 1.5))
            found.append(Target(BOTH, f"{name}: with metadata table", f"{name}: without", None))
            found.append(Target(LISTING, f"{name}: ours", f"{name}: library", None))
        run = {case for case, _ in values}
        return [(one, one.ratio(values)) for one in found if one.case in run]

    def sections(self, known: dict[str, str]) -> list[tuple[str, list[list[str]]]]:
        """Return headings with tables, the targets first."""
        table = [["target", "ratio", "allowed", "", "cause"]]
        for target, ratio in self.targets():
            verdict = target.verdict(ratio)
            cause = known.get(target.name, UNEXPLAINED) if verdict == "missed" else ""
            numbers = ["-" if one is None else f"{one:.3f}" for one in (ratio, target.allowed)]
            table.append([target.name, *numbers, verdict, cause])
        found = [("Targets", table)]
        for case in dict.fromkeys(one.case for one in self.timings):
            some = [one for one in self.timings if one.case == case]
            found.append((case, list(table_of(some))))
        return found


def main() -> int:
    arguments = parse()
    SCRATCH.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=arguments.scratch or SCRATCH, prefix="formats-"))
    try:
        found = run(folder, arguments.cases, arguments.scale, arguments.repeats)
    finally:
        shutil.rmtree(folder)
    page = arguments.markdown or HERE / "README.md"
    sections = found.sections(causes(page))
    if arguments.json:
        document = {"scale": found.scale, "timings": [asdict(one) for one in found.timings]}
        document["targets"] = [
            {**asdict(target), "ratio": ratio, "verdict": target.verdict(ratio)}
            for target, ratio in found.targets()
        ]
        print(json.dumps(document, indent=2))
    else:
        print(found.circumstances())
        for heading, table in sections:
            print("", heading, *aligned(table), sep="\n")
    if arguments.markdown:
        lines = [found.circumstances()]
        for heading, table in sections:
            lines += ["", f"### {heading}", "", *markdown_rows(table)]
        write_section(page, "formats", "\n".join(lines))
    return 0


def run(folder: Path, cases: Sequence[str], scale: float, repeats: int) -> Found:
    """Run cases, one after the other; each makes its own tables."""
    found = Found(scale)
    files = max(200, round(FILES * scale) // 100 * 100)
    for case in cases:
        found.loads.append(os.getloadavg()[0])
        if case == STEP:
            found.timings += measure_touched(folder / STEP, files, repeats)
        elif case == HISTORY:
            commits = [max(4, round(one * scale)) for one in COMMITS]
            found.timings += measure_history(folder / HISTORY, sorted(set(commits)))
        elif case == BOTH:
            found.timings += measure_both(folder / BOTH, repeats)
        else:
            found.timings += measure_listing(folder / LISTING, files, repeats)
    return found


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--scale", type=float, default=1.0, help="share of the full sizes (default: all)")
    add("--repeats", type=int, default=5, help="rounds that count (default: %(default)s)")
    add("--cases", nargs="+", choices=CASES, default=list(CASES), help="default: all")
    add("--json", action="store_true", help="write JSON to the standard output")
    add("--markdown", type=Path, metavar="FILE", help="refresh the results section of this file")
    add("--scratch", type=Path, metavar="FOLDER", help="where tables are made (default: .bench)")
    arguments = parser.parse_args()
    if not 0 < arguments.scale <= 1 or arguments.repeats < 1:
        parser.error("a scale of up to 1 and at least one repeat are needed")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
