"""`hudi conformance` as the author of a format uses it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hudi_conformance.formats import CHECKS
from hudi_conformance.formats.outcomes import Outcome
from hudi_conformance.formats.report import matrix

from tests.formats.once import KNOWN_SOURCES
from tests.formats.test_conformance_kit import OPT_IN

ROOT = Path(__file__).resolve().parents[2]
MAIN = "from hudi_core.cli import main; main()"
PAGE = ROOT / "docs" / "conformance.md"


def run(
    folder: Path, *words: str, more: Mapping[str, str] | None = None
) -> tuple[int, dict[str, Any], str]:
    """Run a command in a folder; return the exit code, the document, and all that was printed.

    ``more`` are variables of its environment.
    """
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "conformance", *words, "--json"],
        cwd=folder,
        env={
            **os.environ,
            **KNOWN_SOURCES,
            "PYTHONPATH": os.pathsep.join([str(folder), *sys.path]),
            **(more or {}),
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    return done.returncode, json.loads(done.stdout), done.stdout + done.stderr


def install(folder: Path, target: str, more: str = "") -> None:
    """Install a format and its suite under the name ``mine``."""
    info = folder / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    points = (
        f"[hudi.table_formats]\nmine = {target}\n[hudi.conformance]\nmine = mine_suite:TestMine\n"
    )
    (info / "entry_points.txt").write_text(points)
    (folder / "mine_suite.py").write_text(OPT_IN + more)


def outcomes(document: Mapping[str, Any]) -> dict[str, str]:
    return {one["id"]: one["outcome"] for one in document["checks"]}


def test_a_format_that_keeps_the_checks(tmp_path: Path) -> None:
    install(tmp_path, "tests.formats.toy_format:ToyFormat")
    words = ("run", "mine", "--checks", "F01,F07", "--report", "report.json")
    code, document, printed = run(tmp_path, *words)
    assert code == 0, printed
    assert outcomes(document) == {"F01": "pass", "F07": "pass"}
    assert json.loads((tmp_path / "report.json").read_text()) == document
    assert document["contract"] == "1.0"


def test_the_number_of_random_histories_is_chosen(tmp_path: Path) -> None:
    install(tmp_path, "tests.formats.toy_services:ServingToy")
    code, document, printed = run(tmp_path, "run", "mine", "--checks", "F52", "--histories", "1")
    assert code == 0, printed
    assert outcomes(document) == {"F52": "pass"}


def test_what_a_format_does_not_declare_is_refused(tmp_path: Path) -> None:
    install(tmp_path, "tests.formats.toy_format:ModestFormat")
    code, document, printed = run(tmp_path, "run", "mine", "--checks", "F07,F39")
    assert code == 0, printed
    assert outcomes(document) == {"F07": "pass", "F39": "refused"}


def test_a_mistake_fails_with_what_pytest_says(tmp_path: Path) -> None:
    install(tmp_path, "tests.formats.wrong_formats:DeletesLiveFiles")
    code, document, printed = run(tmp_path, "run", "mine", "--checks", "F07,F19")
    assert code == 4, printed
    assert outcomes(document) == {"F07": "pass", "F19": "failed"}
    [failed] = [one for one in document["checks"] if one["id"] == "F19"]
    assert CHECKS["F19"].sentence in printed
    assert failed["reason"]


def test_a_deviation_is_named_with_its_reason(tmp_path: Path) -> None:
    known = '    deviations = {"F19": Deviation("cleans everything", raises=BaseException)}\n'
    install(tmp_path, "tests.formats.wrong_formats:DeletesLiveFiles", known)
    code, document, printed = run(tmp_path, "run", "mine", "--checks", "F19")
    assert code == 0, printed
    assert [(one["outcome"], one["reason"]) for one in document["checks"]] == [
        ("deviation", "cleans everything")
    ]
    assert "- F19, mine: cleans everything." in matrix([document])


@pytest.mark.parametrize(
    ("suite", "what"),
    [
        ("", "No package registers a conformance suite for the format 'mine'"),
        ("mine_suite:Other", "cannot be imported"),
        ("pathlib:Path", "is no conformance suite"),
    ],
)
def test_a_suite_that_is_not_there_is_named(tmp_path: Path, suite: str, what: str) -> None:
    install(tmp_path, "tests.formats.toy_format:ToyFormat")
    points = tmp_path / "mine-1.0.dist-info" / "entry_points.txt"
    points.write_text(f"[hudi.conformance]\nmine = {suite}\n" if suite else "")
    code, document, _ = run(tmp_path, "run", "mine")
    assert (code, document["error"]["type"]) == (1, "SuiteNotFoundError")
    assert what in document["error"]["message"]


def test_formats_that_are_run_in_one_process_are_told_apart(tmp_path: Path) -> None:
    code = (
        "from hudi_conformance.formats.report import run_format\n"
        "for name in ('delta', 'native'):\n"
        "    found = run_format(name, only=['F07', 'F42'])\n"
        "    print(name, *(one.check.id for one in found.results))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == ["delta F07 F42", "native F07"], done.stderr


def test_the_suites_and_all_checks_are_listed(tmp_path: Path) -> None:
    code, document, _ = run(tmp_path, "list")
    assert code == 0
    assert {"native", "iceberg", "delta"} <= set(document["suites"])
    assert document["checks"] == {one.id: one.sentence for one in CHECKS.values()}


def test_the_page_has_the_checks_as_they_are() -> None:
    lines = [one.split(" | ") for one in PAGE.read_text().splitlines() if one.startswith("| F")]
    assert [(cells[0].strip("| "), cells[1]) for cells in lines] == [
        (one.id, one.sentence) for one in sorted(CHECKS.values(), key=lambda one: one.id)
    ]
    known = {str(one) for one in Outcome} - {"failed"}
    # of a format without metadata of its own not all are asked
    assert {cell.strip(" |") for cells in lines for cell in cells[2:]} <= {*known, ""}
