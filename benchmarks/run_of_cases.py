"""What the benchmarks of cases with calls have in common: arguments, scratch folder, results."""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from metadata_timing import Timing, table_of
from page import causes, write_section
from report import UNEXPLAINED, Machine, aligned, markdown_rows
from targets import Target

HERE = Path(__file__).resolve().parent
SCRATCH = HERE.parent / ".bench"
Section = tuple[str, list[list[str]]]


@dataclass
class Circumstances:
    """A run, as far as it has come.

    ``scale``: share of the sizes that the targets mean. ``timings``: of all its cases. ``loads``:
    what the machine had to do when each case began.
    """

    scale: float
    timings: list[Timing] = field(default_factory=list)
    loads: list[float] = field(default_factory=list)

    def text(self, packages: Sequence[str]) -> str:
        """Return when and where the run was, and with which versions of some packages."""
        machine = Machine.here({})
        sizes = "" if self.scale == 1 else f"{self.scale:g} of the sizes the targets mean; "
        versions = ", ".join(f"{name} {machine.versions[name]}" for name in packages)
        return (
            f"{machine.when}: {sizes}{machine.cores} cores, {machine.memory_gb} GB, "
            f"{machine.system}, load {statistics.median(self.loads):.1f} (median) and "
            f"{max(self.loads):.1f} (greatest). Python {machine.python}, {versions}."
        )

    def tables(self) -> list[Section]:
        """Return each case with its results."""
        return [
            (case, list(table_of([one for one in self.timings if one.case == case])))
            for case in dict.fromkeys(one.case for one in self.timings)
        ]


class Compared(Circumstances, ABC):
    """A run whose calls are compared with yardsticks.

    ``measures``: names of the measured ratios, that by the clock first: it is what targets are
    about.
    """

    measures: ClassVar[Sequence[str]] = ("ratio",)

    @abstractmethod
    def targets(self) -> Sequence[tuple[Target, *tuple[float | None, ...]]]:
        """The targets of the cases that were run, each with the ratios of :attr:`measures`."""

    def sections(self, known: dict[str, str]) -> list[Section]:
        """Headings with tables, the targets first."""
        titles = [name if name == "ratio" else f"of {name}" for name in self.measures]
        table = [["target", *titles, "allowed", "", "cause"]]
        for target, *ratios in self.targets():
            table.append(target_row(target, ratios[0], (*ratios, target.allowed), known))
        return [("Targets", table), *self.tables()]

    def document(self) -> dict[str, Any]:
        """Every measurement, and the targets."""
        targets = [
            {
                **asdict(target),
                **dict(zip(self.measures, ratios, strict=True)),
                "verdict": target.verdict(ratios[0]),
            }
            for target, *ratios in self.targets()
        ]
        return as_json(self.timings, self.scale) | {"targets": targets}


class Found(Protocol):
    """A finished run of one benchmark."""

    def circumstances(self) -> str: ...

    def sections(self, known: dict[str, str]) -> list[Section]: ...

    def document(self) -> dict[str, Any]: ...


def target_row(
    target: Target, ratio: float | None, numbers: Sequence[float | None], known: dict[str, str]
) -> list[str]:
    """Return a row of the table of targets: name, numbers, verdict, and why it was missed."""
    verdict = target.verdict(ratio)
    cause = known.get(target.name, UNEXPLAINED) if verdict == "missed" else ""
    texts = ["-" if one is None else f"{one:.3f}" for one in numbers]
    return [target.name, *texts, verdict, cause]


def as_json(timings: Sequence[Timing], scale: float) -> dict[str, Any]:
    """Return every single measurement."""
    return {"scale": scale, "timings": [asdict(one) for one in timings]}


def main(
    doc: str | None,
    name: str,
    cases: Sequence[str],
    repeats: int,
    run: Callable[[Path, Sequence[str], float, int], Found],
) -> int:
    """Run cases, and show what they found.

    ``doc``: what the benchmark is, in its first line. ``name``: of its section in the page of
    results. ``repeats``: rounds that count, where nothing else is said. ``run``: runs cases in a
    folder, at a scale, so many times.
    """
    arguments = _parse(doc, cases, repeats)
    SCRATCH.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=arguments.scratch or SCRATCH, prefix=f"{name}-"))
    try:
        found = run(folder, arguments.cases, arguments.scale, arguments.repeats)
    finally:
        shutil.rmtree(folder)
    page = arguments.markdown or HERE / "README.md"
    sections = found.sections(causes(page))
    if arguments.json:
        print(json.dumps(found.document(), indent=2))
    else:
        print(found.circumstances())
        for heading, table in sections:
            print("", heading, *aligned(table), sep="\n")
    if arguments.markdown:
        lines = [found.circumstances()]
        for heading, table in sections:
            lines += ["", f"### {heading}", "", *markdown_rows(table)]
        write_section(page, name, "\n".join(lines))
    return 0


def _parse(doc: str | None, cases: Sequence[str], repeats: int) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    add = parser.add_argument
    add("--scale", type=float, default=1.0, help="share of the full sizes (default: all)")
    add("--repeats", type=int, default=repeats, help="rounds that count (default: %(default)s)")
    add("--cases", nargs="+", choices=cases, default=list(cases), help="default: all")
    add("--json", action="store_true", help="write JSON to the standard output")
    add("--markdown", type=Path, metavar="FILE", help="refresh the results section of this file")
    add("--scratch", type=Path, metavar="FOLDER", help="where tables are made (default: .bench)")
    arguments = parser.parse_args()
    if not 0 < arguments.scale <= 1 or arguments.repeats < 1:
        parser.error("a scale of up to 1 and at least one repeat are needed")
    return arguments
