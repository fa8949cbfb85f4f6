"""What a run found, as a table for people, Markdown for the README, and JSON."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil
from cases import MEMORY
from measure import Result
from memory import MemoryResult
from targets import TARGET_ROWS, TARGETS, Target
from variant import Variant
from workload import cores

PACKAGES = (
    "hudi-core",
    "pyspark",
    "pyarrow",
    "deltalake",
    "pyiceberg",
    "hudi",
    "numpy",
    "sqlalchemy",
)
_HUDI_BASES = ("hudi-spark", "hudi-spark-metadata")
_LOAD_BASES = ("spark-flat", "spark-partitioned", "spark-partitioned-meta", *_HUDI_BASES)
_UPSERT_BASES = ("limit", "deltalake", *_HUDI_BASES)

UNEXPLAINED = "no cause written down yet"


@dataclass(frozen=True)
class Machine:
    """Where a run took place."""

    when: str
    cores: int
    memory_gb: int
    system: str
    python: str
    java: str
    versions: dict[str, str]

    @classmethod
    def here(cls, peers: Mapping[str, str]) -> Machine:
        """Return this machine.

        ``peers``: versions of what ran in other environments.
        """
        return cls(
            when=datetime.now(UTC).strftime("%Y-%m-%d"),
            cores=cores(),
            memory_gb=round(psutil.virtual_memory().total / 2**30),
            system=f"{platform.system()} {platform.machine()}",
            python=platform.python_version(),
            java=_java(),
            versions={name: version(name) for name in PACKAGES} | dict(peers),
        )


@dataclass(frozen=True)
class Report:
    """A finished run."""

    machine: Machine
    rows: int
    repeats: int
    load_averages: list[float]
    results: list[Result]
    memory: list[MemoryResult]
    variants: Sequence[Variant]
    causes: Mapping[str, str]

    @property
    def section(self) -> str:
        """The part of the page that this run replaces: large files are run on their own, and so
        is Hudi-Spark."""
        if any(one.name in _HUDI_BASES for one in self.variants):
            return "hudi-spark"
        cases = self._cases()
        return "big-files" if cases and all("big" in case for case in cases) else "results"

    def text(self) -> str:
        """Return the results for a terminal."""
        lines = [self._circumstances()]
        for case in self._cases():
            lines += ["", case, *aligned(self._table(case))]
        if self.memory:
            lines += ["", MEMORY, *aligned(self._memory())]
        lines += ["", f"targets{self._target_note()}", *aligned(self._targets())]
        lines += ["", "how", *aligned(self._how())]
        return "\n".join(lines)

    def markdown(self) -> str:
        """Return the results section of the README."""
        lines = [self._circumstances(), "", f"### Targets{self._target_note()}", ""]
        lines += markdown_rows(self._targets())
        for case in self._cases():
            lines += ["", f"### {case}", "", *markdown_rows(self._table(case))]
        if self.memory:
            lines += ["", f"### {MEMORY}", "", *markdown_rows(self._memory())]
        lines += ["", "### How each of them works", "", *markdown_rows(self._how())]
        return "\n".join(lines)

    def json(self) -> str:
        """Return everything, the seconds of every round included."""
        document = {
            "machine": asdict(self.machine),
            "rows": self.rows,
            "repeats": self.repeats,
            "load_averages": self.load_averages,
            "results": [self._document(result) for result in self.results],
            "memory": [asdict(one) for one in self.memory],
            "targets": [
                asdict(target) | {"ratio": ratio, "verdict": target.verdict(ratio)}
                for target in self._declared()
                for ratio in [target.ratio(self._values())]
            ],
            "variants": {one.name: asdict(one.traits) for one in self.variants},
        }
        return json.dumps(document, indent=2)

    def _document(self, result: Result) -> dict[str, Any]:
        document = asdict(result)
        if result.seconds:
            document["median"] = result.median
            document["ratios"] = {
                base: result.median / seconds for base, seconds in self._bases(result.case).items()
            }
        return document

    def _circumstances(self) -> str:
        machine = self.machine
        versions = ", ".join(f"{name} {number}" for name, number in machine.versions.items())
        loads = self.load_averages or [os.getloadavg()[0]]
        load = statistics.median(loads)
        return (
            f"{machine.when}: {self.rows:,} rows, median of {self.repeats} after a warm-up; "
            f"{machine.cores} cores, {machine.memory_gb} GB, {machine.system}, "
            f"load {load:.1f} (median) and {max(loads):.1f} (greatest). "
            f"Python {machine.python}, Java {machine.java}, {versions}."
        )

    def _cases(self) -> list[str]:
        return list(dict.fromkeys(result.case for result in self.results))

    def _bases(self, case: str) -> dict[str, float]:
        wanted = _LOAD_BASES if case == "bulk_insert" else _UPSERT_BASES
        medians = {one.variant: one.median for one in self._of(case) if one.seconds}
        return {name: medians[name] for name in wanted if name in medians}

    def _of(self, case: str) -> list[Result]:
        return [result for result in self.results if result.case == case]

    def _table(self, case: str) -> list[list[str]]:
        bases = self._bases(case)
        heads = ["variant", "median s", "min", "max", *(f"x {name}" for name in bases)]
        table = [[*heads, "rows", "changed", "files", "MB"]]
        for result in sorted(self._of(case), key=lambda one: (not one.seconds, one.seconds)):
            if not result.seconds or result.contents is None:
                table.append([result.variant, f"not run ({result.skipped})"])
                continue
            seconds, contents = result.seconds, result.contents
            once = " (once)" if len(seconds) < self.repeats else ""
            table.append(
                [
                    result.variant,
                    seconds_text(result.median) + once,
                    *(seconds_text(one) for one in (min(seconds), max(seconds))),
                    *(f"{result.median / base:.2f}" for base in bases.values()),
                    f"{contents.rows:,}",
                    f"{contents.changed:,}",
                    str(contents.files),
                    f"{contents.bytes / 1e6:.1f}",
                ]
            )
        return table

    def _values(self) -> dict[tuple[str, str], float]:
        """Values that targets compare: medians of seconds, and of the growth of a process."""
        seconds = {(one.case, one.variant): one.median for one in self.results if one.seconds}
        return seconds | {(MEMORY, one.variant): one.growth for one in self.memory}

    def _target_note(self) -> str:
        if self.rows == TARGET_ROWS or self.section == "big-files":
            return ""
        return f" (meant for {TARGET_ROWS:,} rows, not {self.rows:,})"

    def _declared(self) -> list[Target]:
        """Return the targets of the variants that there are in this run."""
        names = {one.name for one in self.variants}
        return [
            one for one in TARGETS if one.case == MEMORY or {one.variant, one.yardstick} <= names
        ]

    def _targets(self) -> list[list[str]]:
        measured = {*self._cases(), *([MEMORY] if self.memory else [])}
        table = [["target", "ratio", "allowed", "", "cause"]]
        for target in self._declared():
            if target.case not in measured:
                continue
            ratio = target.ratio(self._values())
            verdict = target.verdict(ratio)
            cause = self.causes.get(target.name, UNEXPLAINED) if verdict == "missed" else ""
            table.append(
                [
                    target.name,
                    "-" if ratio is None else f"{ratio:.2f}",
                    "-" if target.allowed is None else f"{target.allowed:.2f}",
                    verdict,
                    cause,
                ]
            )
        return table

    def _memory(self) -> list[list[str]]:
        heads = [
            "partition of",
            "growth MB",
            "min",
            "max",
            "a further group",
            "peak MB",
            "batch MB",
        ]
        table = [[*heads, "one group: rows", "decoded MB", "file MB"]]
        for one in self.memory:
            growths = [peak - before for peak, before in zip(one.peak, one.before, strict=True)]
            first, peak = self.memory[0], statistics.median(one.peak)
            more = one.groups - first.groups
            table.append(
                [
                    one.variant,
                    *(f"{size / 1e6:.1f}" for size in (one.growth, min(growths), max(growths))),
                    f"{(one.growth - first.growth) / more / 1e6:.1f}" if more else "-",
                    *(f"{size / 1e6:.1f}" for size in (peak, one.batch_bytes)),
                    f"{one.group_rows:,}",
                    *(f"{size / 1e6:.1f}" for size in (one.group_bytes, one.file_bytes)),
                ]
            )
        return table

    def _how(self) -> list[list[str]]:
        measured = {result.variant for result in self.results}
        traits = {one.name: asdict(one.traits) for one in self.variants if one.name in measured}
        heads = ["variant", "layout", "index", "ordering field", "codec", "statistics", "fsync"]
        return [heads, *([name, *facts.values()] for name, facts in traits.items())]


def aligned(table: Sequence[Sequence[str]]) -> Iterable[str]:
    # a row that is shorter than its heads says why there is nothing to say
    whole = [row for row in table if len(row) == len(table[0])]
    widths = [max(map(len, column)) for column in zip(*whole, strict=True)]
    for row in table:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        yield f"  {'  '.join(cells)}".rstrip()


def markdown_rows(table: Sequence[Sequence[str]]) -> Iterable[str]:
    heads, *rows = table
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for row in rows:
        cells = (cell.replace("|", "\\|") for cell in row)
        yield f"| {' | '.join([*cells, *[''] * (len(heads) - len(row))])} |"


def seconds_text(value: float) -> str:
    return f"{value:.3f}" if value < 1 else f"{value:.2f}"


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else "java"
    try:
        printed = subprocess.run(
            [java, "-version"], capture_output=True, text=True, check=True
        ).stderr
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return printed.partition('"')[2].partition('"')[0] or "unknown"
