"""Reports of formats: JSON for programs, and a matrix in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from hudi_conformance.formats.checks import CHECKS
from hudi_conformance.formats.outcomes import CheckResult, Outcome, Progress, run_suite
from hudi_conformance.formats.registered import suite_of
from hudi_core.spi import SPI_VERSION
from hudi_core.spi.testing import load_format


@dataclass(frozen=True)
class FormatReport:
    """What the checks of a format came to.

    Attributes
    ----------
    name
        The format.
    capabilities
        What it declares, sorted.
    results
        The checks that were run, by id.
    """

    name: str
    capabilities: Sequence[str]
    results: Sequence[CheckResult]

    @property
    def is_right(self) -> bool:
        """Whether no check failed."""
        return all(one.outcome is not Outcome.FAILED for one in self.results)

    def counts(self) -> Mapping[Outcome, int]:
        """How many checks came to each outcome."""
        outcomes = [one.outcome for one in self.results]
        return {outcome: outcomes.count(outcome) for outcome in Outcome}

    def to_document(self) -> dict[str, Any]:
        """For programs."""
        return {
            "format": self.name,
            "contract": SPI_VERSION,
            "hudi_core": version("hudi-core"),
            "hudi_conformance": version("hudi-conformance"),
            "capabilities": list(self.capabilities),
            "checks": [one.to_document() for one in self.results],
        }


def run_format(
    name: str,
    progress: Progress = lambda done, total: None,
    only: Sequence[str] = (),
    histories: int | None = None,
) -> FormatReport:
    """Run the registered suite of a format.

    Parameters
    ----------
    name
        The format.
    progress
        Called after each test.
    only
        Ids of checks; all by default.
    histories
        How many random histories; a few by default, which are always the same.

    Raises
    ------
    SuiteNotFoundError
        No package registers one.
    SuiteError
        It could not be run.
    """
    results = run_suite(suite_of(name), progress, only, histories)
    return FormatReport(name, sorted(map(str, load_format(name).capabilities)), results)


def matrix(documents: Iterable[Mapping[str, Any]]) -> str:
    """A table in Markdown: a line for each check, a column for each format.

    Parameters
    ----------
    documents
        Of :meth:`FormatReport.to_document`.
    """
    reports = sorted(documents, key=lambda one: str(one["format"]))
    found = {(report["format"], one["id"]): one for report in reports for one in report["checks"]}
    names = [report["format"] for report in reports]
    lines = ["| check | what a format must do | " + " | ".join(names) + " |"]
    lines.append("| --- " * (len(names) + 2) + "|")
    notes: list[str] = []
    for id_, check in sorted(CHECKS.items()):
        cells = []
        for name in names:
            one = found.get((name, id_))
            cells.append("" if one is None else one["outcome"])
            if one is not None and one["outcome"] == Outcome.DEVIATION:
                notes.append(f"- {id_}, {name}: {one['reason']}.")
        lines.append(f"| {id_} | {check.sentence} | {' | '.join(cells)} |")
    return "\n".join([*lines, *(["", *notes] if notes else []), ""])
