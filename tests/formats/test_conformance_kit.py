"""The kit finds mistakes: formats that have one each fail the check that is meant for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hudi_conformance.formats import CHECKS, Deviation, TableFormatSuite, TwoStepFormatSuite
from hudi_conformance.formats.checks import check_of
from hudi_conformance.formats.trace import install_formats

from tests.formats.wrong_formats import MISTAKES, Mistake
from tests.formats.wrong_services import WRONG_SERVICES

ROOT = Path(__file__).resolve().parents[2]
OPT_IN = """\
import shutil

from hudi_conformance.formats import Deviation, TwoStepFormat, TwoStepFormatSuite
from tests.formats.test_conformance import by_toy, intrude_on_toy


class TestMine(TwoStepFormatSuite):
    format = TwoStepFormat(
        "mine", by_toy, lambda path: shutil.rmtree(path / ".hoodie" / "toy"), intrude_on_toy
    )
"""


def run(folder: Path, target: str, *checks: str, more: str = "") -> tuple[int, str]:
    """Run checks over a format as its author would; return the exit code and what is printed."""
    install_formats(folder, {"mine": target}, "mine")
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    (folder / "test_mine.py").write_text(OPT_IN + more)
    tests = [
        name
        for suite in TwoStepFormatSuite.__mro__
        for name, member in vars(suite).items()
        if (found := check_of(member)) is not None and found.id in checks
    ]
    assert len(tests) == len(set(checks))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "-k", " or ".join(tests), "test_mine.py"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), *sys.path])},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    "mistake", [*MISTAKES, *WRONG_SERVICES], ids=lambda one: one.format.__name__
)
def test_a_mistake_is_found_by_its_check(tmp_path: Path, mistake: Mistake) -> None:
    target = f"{mistake.format.__module__}:{mistake.format.__name__}"
    code, printed = run(tmp_path, target, mistake.check)
    assert code == 1, printed
    assert str(CHECKS[mistake.check]) in printed
    assert mistake.words in printed


def test_the_same_format_without_the_mistakes_passes(tmp_path: Path) -> None:
    checks = {one.check for one in (*MISTAKES, *WRONG_SERVICES)}
    code, printed = run(tmp_path, "tests.formats.toy_services:ServingToy", *checks)
    assert code == 0, printed


def test_a_deviation_is_expected_to_fail(tmp_path: Path) -> None:
    known = '    deviations = {"F19": Deviation("cleans everything", raises=BaseException)}\n'
    wrong = "tests.formats.wrong_formats:DeletesLiveFiles"
    code, printed = run(tmp_path, wrong, "F19", more=known)
    assert (code, "xfailed" in printed) == (0, True), printed


def test_a_deviation_that_passes_is_an_error(tmp_path: Path) -> None:
    known = '    deviations = {"F19": Deviation("cleans everything")}\n'
    code, printed = run(tmp_path, "tests.formats.toy_format:ToyFormat", "F19", more=known)
    assert (code, "XPASS(strict)" in printed) == (1, True), printed


def test_a_check_cannot_be_replaced() -> None:
    with pytest.raises(TypeError, match="F01"):

        class Softer(TableFormatSuite):
            def test_a_write_calls_its_hook_once(self) -> None:  # type: ignore[override]
                """Passes whatever the format does."""


def test_a_deviation_from_no_check_is_an_error() -> None:
    with pytest.raises(TypeError, match="F99"):

        class Unknown(TableFormatSuite):
            deviations = {"F99": Deviation("no such check")}  # noqa: RUF012
