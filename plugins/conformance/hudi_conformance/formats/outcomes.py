"""What became of the checks of a format: recorded while pytest runs its suite."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

import pytest

from hudi_conformance.formats.checks import CHECKS, Check
from hudi_conformance.pytest_plugin import CHECK, REFUSED

_MODULE: Final = """\
from {module} import {suite} as Suite


class TestFormat(Suite):
    pass
"""
Progress = Callable[[int, int], object]
"""Called with the number of tests that have ended, and of all."""


class Outcome(StrEnum):
    """What became of a check, the worst of its tests first.

    Attributes
    ----------
    FAILED
        The format does not keep the sentence.
    DEVIATION
        It does not, as its author states with the reason.
    PASS
        It does; of what it does not declare, the refusal was tested.
    REFUSED
        It declares nothing of what the check needs, and refuses it in time.
    """

    FAILED = "failed"
    DEVIATION = "deviation"
    PASS = "pass"
    REFUSED = "refused"


@dataclass(frozen=True)
class CheckResult:
    """A check, and what became of it.

    Attributes
    ----------
    check
        The check.
    outcome
        The worst of its tests.
    tests
        How many tests it has.
    reason
        Of a deviation, why; of a failure, what pytest printed.
    """

    check: Check
    outcome: Outcome
    tests: int
    reason: str = ""

    def to_document(self) -> dict[str, object]:
        """For a report in JSON."""
        return {
            "id": self.check.id,
            "sentence": self.check.sentence,
            "source": self.check.source,
            "outcome": str(self.outcome),
            "tests": self.tests,
            "reason": self.reason,
        }


@dataclass
class Recorder:
    """A plugin of pytest that keeps the outcome of each test of a check."""

    progress: Progress
    total: int = 0
    ended: int = 0
    found: dict[str, list[tuple[Outcome, str]]] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.total = len(session.items)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.others.append(report.longreprtext)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        said = dict(report.user_properties)
        if report.when == "teardown":
            self.ended += 1
            self.progress(self.ended, self.total)
        if report.when != "call" and report.passed:
            return
        if CHECK not in said:
            self.others.extend([report.longreprtext] if report.failed else [])
            return
        self.found.setdefault(str(said[CHECK]), []).append(_outcome(report, said))

    def results(self) -> list[CheckResult]:
        """The checks that were run, in the order of their ids."""
        order, results = list(Outcome), []
        for id_, outcomes in sorted(self.found.items()):
            worst, reason = min(outcomes, key=lambda one: order.index(one[0]))
            results.append(CheckResult(CHECKS[id_], worst, len(outcomes), reason))
        return results


def _outcome(report: pytest.TestReport, said: Mapping[str, object]) -> tuple[Outcome, str]:
    if report.failed:
        return Outcome.FAILED, report.longreprtext
    if report.skipped:
        # pytest says so of a deviation, which is expected to fail; no check is skipped otherwise
        return Outcome.DEVIATION, str(getattr(report, "wasxfail", report.longreprtext))
    return (Outcome.REFUSED if REFUSED in said else Outcome.PASS), ""


class SuiteError(Exception):
    """The suite of a format could not be run; says what pytest printed."""


def run_suite(
    suite: type,
    progress: Progress = lambda done, total: None,
    only: Sequence[str] = (),
    histories: int | None = None,
) -> list[CheckResult]:
    """Run the checks of a suite, in this process.

    Parameters
    ----------
    suite
        The class of a format, in a module that can be imported.
    progress
        Called after each test.
    only
        Ids of checks; all by default.
    histories
        How many random histories; a few by default, which are always the same.

    Raises
    ------
    SuiteError
        No check could be run, or something that is no check failed.
    """
    recorder, printed = Recorder(progress), io.StringIO()
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        place = Path(folder)
        # neither the settings nor the tests of the folder that it is run in
        (place / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        # a name of its own: modules of earlier runs in this process are still imported
        module = place / f"test_{place.name.replace('-', '_')}.py"
        module.write_text(
            _MODULE.format(module=suite.__module__, suite=suite.__qualname__), encoding="utf-8"
        )
        arguments = ["-q", "-p", "no:cacheprovider", "-c", str(place / "pytest.ini")]
        # several formats may be run in one process
        arguments += ["--import-mode", "importlib"]
        arguments += ["--rootdir", folder, "--basetemp", str(place / "tables"), str(module)]
        selected = [] if not only else ["--conformance-checks", ",".join(only)]
        if histories is not None:
            selected += ["--conformance-histories", str(histories)]
        with contextlib.redirect_stdout(printed), _without_options():
            pytest.main([*arguments, *selected], plugins=[recorder])
    if recorder.others or not recorder.found:
        raise SuiteError("\n".join(recorder.others) or printed.getvalue())
    return recorder.results()


@contextlib.contextmanager
def _without_options() -> Iterator[None]:
    saved = os.environ.pop("PYTEST_ADDOPTS", None)
    try:
        yield
    finally:
        if saved is not None:
            os.environ["PYTEST_ADDOPTS"] = saved
