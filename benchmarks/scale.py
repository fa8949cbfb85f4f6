"""Measure tables too large for one disk: planning, writes and services by the number of files.

``make bench-scale`` runs it; ``README.md`` says what is measured, and ``docs/sizing.md`` has the
results.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from metadata_timing import say
from page import write_section
from report import Machine, aligned, markdown_rows
from run_of_cases import SCRATCH
from scale_plot import Line, plot
from scale_probe import STEPS
from scale_table import FILE_BYTES, IN_PARTITION, LargeTable

FILES = (10_000, 100_000)
"""As many by default; ``--files`` names others, of which a million take a quarter of an hour."""
COMMITS = (10, 1_000)
"""On the timeline of a table of the least number of files."""
SMALL = 1_000
DOCS = Path(__file__).resolve().parent.parent / "docs"
_ALLOWED = {"plan_both": (1.5, 1.3), "plan_partition": (1.5, 1.3), "upsert": (1.3, 1.3)}
"""Ratio of time, and of the memory of the process, that the most files may take of the least."""
_OF_COMMITS = ("open", "plan_both", "upsert", "conflicts", "recovery")
_SLOW = ("all_splits", "commit_file", "plan_scattered", "compaction")
"""Steps that look at every file."""
_MOST_FILES = {"commit_file": 100_000}
_PETABYTE = 10**15
_EXECUTORS = 1_000


@dataclass
class Step:
    """What one step took on one table.

    ``work`` is seconds of the processor, of all threads; ``grown`` the bytes that the process grew
    by, and ``peak`` all it had; ``requests`` by kind.
    """

    name: str
    files: int
    commits: int
    answer: int
    seconds: float
    work: float
    grown: int
    peak: int
    requests: Mapping[str, int]

    @classmethod
    def of(cls, name: str, table: LargeTable, rounds: Sequence[Mapping[str, Any]]) -> Step:
        """The medians of some rounds."""
        middle = {
            key: statistics.median(one[key] for one in rounds)
            for key in ("seconds", "work", "bytes", "peak")
        }
        return cls(
            name,
            table.files,
            table.commits,
            int(rounds[0]["answer"]),
            middle["seconds"],
            middle["work"],
            int(middle["bytes"]),
            int(middle["peak"]),
            rounds[0]["requests"],
        )


@dataclass
class Found:
    """A finished run: steps, and bytes of the metadata table by number of files."""

    steps: list[Step] = field(default_factory=list)
    metadata_bytes: dict[int, int] = field(default_factory=dict)
    loads: list[float] = field(default_factory=list)

    def step(self, name: str, files: int, commits: int = COMMITS[0]) -> Step | None:
        """What a step took, if it was taken."""
        wanted = (name, files, commits)
        return next((o for o in self.steps if (o.name, o.files, o.commits) == wanted), None)

    @property
    def sizes(self) -> list[int]:
        """The numbers of files, ascending."""
        return sorted(self.metadata_bytes)

    def circumstances(self) -> str:
        """When and where the run was."""
        machine = Machine.here({})
        versions = [f"{name} {machine.versions[name]}" for name in ("hudi-core", "pyarrow")]
        return (
            f"{machine.when}: {machine.cores} cores, {machine.memory_gb} GB, {machine.system}, "
            f"load {statistics.median(self.loads):.1f} (median). Python {machine.python}, "
            f"{', '.join(versions)}. "
            "Times are those of the processor, of all threads."
        )

    def growth(self) -> list[list[str]]:
        """A row for each step, with what it takes at each number of files."""
        sizes = self.sizes
        heads = [f"{size:,} files" for size in sizes]
        growth = f"{sizes[-1]:,} / {sizes[0]:,}"
        table = [["step", *heads, growth, "memory of the process", "growth", "requests", ""]]
        for name in STEPS:
            some = [one for size in sizes if (one := self.step(name, size))]
            if len(some) == len(sizes):
                table.append(self._row(name, some))
            elif some:
                times = [*(_time(one.work) for one in some), *["-"] * (len(sizes) - len(some))]
                peaks = " / ".join(f"{one.peak / 2**20:.0f}" for one in some)
                table.append([name, *times, "-", f"{peaks} MiB", "-", "-", ""])
        return table

    def _row(self, name: str, some: Sequence[Step]) -> list[str]:
        time, memory = some[-1].work / some[0].work, some[-1].peak / some[0].peak
        verdict = ""
        if name in _ALLOWED:
            most_time, most_memory = _ALLOWED[name]
            is_met = time <= most_time and memory <= most_memory
            verdict = f"{'met' if is_met else 'missed'} ({most_time} and {most_memory} allowed)"
        return [
            name,
            *(_time(one.work) for one in some),
            f"{time:.2f}",
            " / ".join(f"{one.peak / 2**20:.0f}" for one in some) + " MiB",
            f"{memory:.2f}",
            " / ".join(str(sum(one.requests.values())) for one in some),
            verdict,
        ]

    def ages(self) -> list[list[str]]:
        """A row for each step that was taken on tables of several numbers of commits."""
        files = self.sizes[0]
        commits = sorted({one.commits for one in self.steps if one.files == files})
        table = [["step", *(f"{one:,} commits" for one in commits), "growth"]]
        for name in _OF_COMMITS:
            some = [one for count in commits if (one := self.step(name, files, count))]
            if len(some) == len(commits) > 1:
                growth = some[-1].work / some[0].work
                table.append([name, *(_time(one.work) for one in some), f"{growth:.2f}"])
        return table

    def on_paper(self) -> list[list[str]]:
        """What a petabyte would take, from what was measured."""
        large = self.sizes[-1]
        files = _PETABYTE // FILE_BYTES
        more = files / large
        table = [["of a petabyte", "", "how"]]

        def add(what: str, value: str, how: str) -> None:
            table.append([what, value, how])

        add("files", f"{files:,}", f"of {FILE_BYTES >> 20} MiB each")
        add("partitions", f"{files // IN_PARTITION:,}", f"of {IN_PARTITION} files each")
        size = self.metadata_bytes[large] * more
        add(
            "metadata table",
            f"{size / 1e9:.1f} GB",
            f"{self.metadata_bytes[large] / large:.0f} bytes a file, with ranges of five columns",
        )
        for name, what in (
            ("plan_both", "plan a read of one partition and one value"),
            ("plan_column", "plan a read of one value"),
            ("all_splits", "plan a read of everything"),
            ("upsert", "commit an upsert of 20 files"),
            ("compaction", "compact the metadata table, every tenth commit"),
        ):
            if (one := self.step(name, large)) is not None:
                linear = name not in ("plan_both", "upsert")
                value = one.work * (more if linear else 1)
                how = f"{_time(one.work)} at {large:,} files" + (", linear" if linear else ", flat")
                add(what, _time(value), how)
        tasks = files / _EXECUTORS
        add("files for each executor", f"{tasks:,.0f}", f"{_EXECUTORS:,} executors, evenly")
        seconds = tasks * FILE_BYTES / 100e6
        add(
            "rewrite everything",
            f"{seconds / 3600:.1f} h",
            "each executor reads and writes 100 MB a second; nothing waits for the store",
        )
        add(
            "statuses of that at the driver",
            f"{files * 2_000 / 1e9:.1f} GB",
            "2 kB for each file as an object: rewrite a part of the partitions at a time",
        )
        return table

    def document(self) -> dict[str, Any]:
        """Everything that was measured."""
        return {
            "steps": [asdict(one) for one in self.steps],
            "metadata_bytes": {str(size): found for size, found in self.metadata_bytes.items()},
        }

    def put_plots(self, folder: Path) -> None:
        """Write the curves of time and memory."""
        names = [name for name in STEPS if all(self.step(name, size) for size in self.sizes)]
        times, memory = [], []
        for name in names:
            some = [one for size in self.sizes if (one := self.step(name, size))]
            times.append(Line(name, [(one.files, one.work * 1e3) for one in some]))
            memory.append(Line(name, [(one.files, one.peak / 2**20) for one in some]))
        (folder / "scale-time.svg").write_text(plot("ms of the processor, by files", times))
        (folder / "scale-memory.svg").write_text(plot("MiB of the process, by files", memory))


def _time(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 600 else f"{seconds / 60:.0f} min"


def run(
    folder: Path, files: Sequence[int], commits: Sequence[int], steps: Sequence[str], repeats: int
) -> Found:
    """Make the tables, and take every step on each."""
    found = Found()
    small = LargeTable(folder / "small", SMALL, COMMITS[0])
    small.make()
    tables = [LargeTable(folder / f"{size}", size, COMMITS[0]) for size in sorted(files)]
    tables += [LargeTable(folder / f"old-{one}", min(files), one) for one in commits[1:]]
    for table in tables:
        say(f"making {table.files:,} files, {table.commits:,} commits")
        table.make()
        is_old = table.commits != COMMITS[0]
        if not is_old:
            found.metadata_bytes[table.files] = _bytes_below(table.path / ".hoodie/metadata")
        for name in steps:
            if (is_old and name not in _OF_COMMITS) or table.files > _MOST_FILES.get(name, 10**9):
                continue
            rounds = 1 if name in _SLOW and table.files > FILES[0] else repeats
            found.loads.append(os.getloadavg()[0])
            found.steps.append(_taken(name, rounds, small, table))
            say(f"{name:16} {table.files:>9,} {_time(found.steps[-1].work)}")
        shutil.rmtree(table.path)
    return found


def _bytes_below(folder: Path) -> int:
    return sum(one.stat().st_size for one in folder.rglob("*.hfile"))


def _taken(name: str, rounds: int, small: LargeTable, table: LargeTable) -> Step:
    program = Path(__file__).with_name("scale_probe.py")
    done = subprocess.run(
        [sys.executable, program, name, str(rounds), small.path, table.path],
        stdout=subprocess.PIPE,
        check=True,
        # Arrow's own allocator takes memory in steps of 2 MB, be it used or not
        env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"},
    )
    return Step.of(name, table, json.loads(done.stdout))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--files", nargs="+", type=int, default=FILES, help="default: %(default)s")
    add("--commits", nargs="+", type=int, default=COMMITS, help="default: %(default)s")
    add("--steps", nargs="+", choices=STEPS, default=list(STEPS), help="default: all")
    add("--repeats", type=int, default=3, help="rounds that count (default: %(default)s)")
    add("--json", action="store_true", help="write JSON to the standard output")
    add("--markdown", type=Path, metavar="FILE", help="refresh the results section of this file")
    add("--plots", type=Path, metavar="FOLDER", help="where the curves are written")
    add("--scratch", type=Path, metavar="FOLDER", help="where tables are made (default: .bench)")
    given = parser.parse_args()
    SCRATCH.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=given.scratch or SCRATCH, prefix="scale-"))
    try:
        found = run(folder, given.files, given.commits, given.steps, given.repeats)
    finally:
        shutil.rmtree(folder)
    sections = [
        ("By files", found.growth()),
        ("By commits", found.ages()),
        ("A petabyte, on paper", found.on_paper()),
    ]
    if given.json:
        print(json.dumps(found.document(), indent=2))
    else:
        print(found.circumstances())
        for heading, table in sections:
            print("", heading, *aligned(table), sep="\n")
    if given.plots:
        found.put_plots(given.plots)
    if given.markdown:
        lines = [found.circumstances()]
        for heading, table in sections:
            lines += ["", f"### {heading}", "", *markdown_rows(table)]
        write_section(given.markdown, "scale", "\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
