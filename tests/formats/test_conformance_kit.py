"""The kit finds mistakes: formats that have one each fail the check that is meant for it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from hudi_conformance.formats import CHECKS, Deviation, TableFormatSuite, TwoStepFormatSuite
from hudi_conformance.formats.checks import check_of
from hudi_conformance.formats.trace import install_formats

from tests.formats.once import KNOWN_SOURCES, made_once
from tests.formats.toy_format import ToyFormat
from tests.formats.toy_vectors import SplitToy
from tests.formats.wrong_formats import MISTAKES, DeletesLiveFiles, Mistake
from tests.formats.wrong_services import WRONG_SERVICES
from tests.formats.wrong_vectors import WRONG_VECTORS
from tests.samples import taken

OPT_IN: Final = """\
import shutil

from hudi_conformance.formats import Deviation, TwoStepFormat, TwoStepFormatSuite
from tests.formats.test_conformance import by_toy, intrude_on_toy


class TestMine(TwoStepFormatSuite):
    format = TwoStepFormat(
        "mine", by_toy, lambda path: shutil.rmtree(path / ".hoodie" / "toy"), intrude_on_toy
    )
"""
EVERY_MISTAKE: Final = (*MISTAKES, *WRONG_SERVICES, *WRONG_VECTORS)
_OUTCOME: Final = re.compile(r"^test_formats\.py::Test(\w+)::(\w+)\S* ([A-Z]+)", re.MULTILINE)
_HEADING: Final = re.compile(r"^_+ (?:ERROR at \w+ of )?Test(\w+)\.test_\S+ _+$", re.MULTILINE)


@dataclass(frozen=True)
class Author:
    """Somebody with a format, and what is wanted of it.

    ``name``: of the suite and, in small letters, of the format. ``checks``: ids of those that are
    run. ``more``: lines of the suite.
    """

    name: str
    format: type[object]
    checks: Collection[str]
    more: str = ""

    @property
    def tests(self) -> set[str]:
        """The tests of the checks."""
        return {
            name
            for suite in TwoStepFormatSuite.__mro__
            for name, member in vars(suite).items()
            if (found := check_of(member)) is not None and found.id in self.checks
        }


KNOWN: Final = Author(
    "Known",
    DeletesLiveFiles,
    {"F19"},
    'deviations = {"F19": Deviation("cleans everything", raises=BaseException)}',
)
NO_LONGER: Final = Author(
    "NoLonger", ToyFormat, {"F19"}, 'deviations = {"F19": Deviation("cleans everything")}'
)


def authors(mistakes: Sequence[Mistake]) -> Sequence[Author]:
    """Return who makes some mistakes, and who knows of one.

    The last makes none, and has the checks of all others: it sees what they may have left behind.
    """
    wrong = [Author(one.format.__name__, one.format, {one.check}) for one in mistakes]
    right = Author("Right", SplitToy, {one.check for one in mistakes})
    return *wrong, KNOWN, NO_LONGER, right


@dataclass(frozen=True)
class Verdict:
    """What one run says of one format.

    ``tests``: what was run. ``outcomes``: of all cases of these tests. ``printed``: of the cases
    that failed.
    """

    tests: set[str]
    outcomes: set[str]
    printed: str


def module(everybody: Sequence[Author]) -> Iterator[str]:
    """Tests of all formats, as their authors would write them."""
    yield OPT_IN.partition("\n\n\n")[0]
    for one in everybody:
        head, _, body = OPT_IN.partition("\n\n\n")[2].partition("\n")
        yield f"\n\n{head.replace('Mine', one.name)}"
        yield body.replace('"mine"', f'"{one.name.lower()}"') + f"    {one.more}"


def run(folder: Path, everybody: Sequence[Author]) -> dict[str, str]:
    """Run the checks of all formats in one process; return what is printed."""
    targets = {
        one.name.lower(): f"{one.format.__module__}:{one.format.__name__}" for one in everybody
    }
    install_formats(folder, targets, "mine")
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    (folder / "test_formats.py").write_text("\n".join(module(everybody)))
    suites = [f"test_formats.py::Test{one.name}" for one in everybody]
    chosen = [
        f"{suite}::{test}"
        for suite, one in zip(suites, everybody, strict=True)
        for test in sorted(one.tests)
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *chosen],
        cwd=folder,
        env=os.environ
        | KNOWN_SOURCES
        | {"PYTHONPATH": os.pathsep.join([str(folder), *sys.path]), "COLUMNS": "80"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return {"printed": done.stdout}


@pytest.fixture(scope="module")
def everybody(request: pytest.FixtureRequest) -> Sequence[Author]:
    """The authors of the mistakes that this run looks for."""
    return authors(
        taken(request, "test_a_mistake_is_found_by_its_check", "mistake") or EVERY_MISTAKE
    )


@pytest.fixture(scope="module")
def verdicts(
    everybody: Sequence[Author], tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Verdict]:
    """What is said of each format, by the name of its suite."""
    judged = partial(run, everybody=everybody)
    printed = made_once(tmp_path_factory, "wrong-formats", judged)["printed"]
    tests: dict[str, set[str]] = {one.name: set() for one in everybody}
    outcomes: dict[str, set[str]] = {one.name: set() for one in everybody}
    for name, test, outcome in _OUTCOME.findall(printed):
        tests[name].add(test)
        outcomes[name].add(outcome)
    # the heading of a case that failed, with the name of the suite; and what is below it
    _, *parts = _HEADING.split(printed.partition(" short test summary ")[0])
    failed = [*zip(parts[::2], parts[1::2], strict=True)]
    return {
        name: Verdict(
            tests[name], outcomes[name], "\n".join(text for whose, text in failed if whose == name)
        )
        for name in outcomes
    }


@pytest.mark.parametrize("mistake", EVERY_MISTAKE, ids=lambda one: one.format.__name__)
def test_a_mistake_is_found_by_its_check(verdicts: Mapping[str, Verdict], mistake: Mistake) -> None:
    found = verdicts[mistake.format.__name__]
    assert "FAILED" in found.outcomes or "ERROR" in found.outcomes, found
    assert str(CHECKS[mistake.check]) in found.printed
    assert mistake.words in found.printed


def test_the_same_format_without_the_mistakes_passes(
    everybody: Sequence[Author], verdicts: Mapping[str, Verdict]
) -> None:
    right = everybody[-1]
    found = verdicts[right.name]
    assert found.outcomes == {"PASSED"}, found.printed
    assert found.tests == right.tests
    assert len(right.tests) == len(right.checks)


def test_a_deviation_is_expected_to_fail(verdicts: Mapping[str, Verdict]) -> None:
    found = verdicts[KNOWN.name]
    assert (found.outcomes, found.tests) == ({"XFAIL"}, KNOWN.tests), found.printed


def test_a_deviation_that_passes_is_an_error(verdicts: Mapping[str, Verdict]) -> None:
    found = verdicts[NO_LONGER.name]
    assert (found.outcomes, "XPASS(strict)" in found.printed) == ({"FAILED"}, True), found.printed


def test_a_check_cannot_be_replaced() -> None:
    with pytest.raises(TypeError, match="F01"):

        class Softer(TableFormatSuite):
            def test_a_write_calls_its_hook_once(self) -> None:  # type: ignore[override]
                """Passes whatever the format does."""


def test_a_deviation_from_no_check_is_an_error() -> None:
    with pytest.raises(TypeError, match="F99"):

        class Unknown(TableFormatSuite):
            deviations = {"F99": Deviation("no such check")}  # noqa: RUF012
