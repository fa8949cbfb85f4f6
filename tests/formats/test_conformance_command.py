"""`hudi conformance`, and the table format of the plugin guide, which passes the kit."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import pytest
from hudi_conformance.formats import CHECKS
from hudi_conformance.formats.outcomes import Outcome
from hudi_conformance.formats.report import matrix

from hudi_core.model.capability import SCHEMA_EVOLUTION
from hudi_core.spi import HOOKS, Capability, RecordingFormat
from tests.documented_format import PAGE as GUIDE
from tests.documented_format import blocks, module
from tests.documented_format import install as install_documented
from tests.forked_commands import ForkedCommands
from tests.formats.once import KNOWN_SOURCES
from tests.formats.test_conformance_kit import OPT_IN
from tests.samples import IS_WHOLE, turn

ROOT = Path(__file__).resolve().parents[2]
MAIN = "from hudi_core.cli import main; main()"
PAGE = ROOT / "docs" / "conformance.md"


class Run(Protocol):
    """Runs a command in a folder: the exit code, the document, and all that was printed.

    ``more`` are variables of its environment.
    """

    def __call__(
        self, folder: Path, *words: str, more: Mapping[str, str] | None = None
    ) -> tuple[int, dict[str, Any], str]: ...


@pytest.fixture
def run(commands: ForkedCommands) -> Run:
    def done(
        folder: Path, *words: str, more: Mapping[str, str] | None = None
    ) -> tuple[int, dict[str, Any], str]:
        environment = {
            **os.environ,
            **KNOWN_SOURCES,
            "PYTHONPATH": os.pathsep.join([str(folder), *sys.path]),
            **(more or {}),
        }
        said = commands.run(
            MAIN, "conformance", *words, "--json", cwd=folder, environment=environment
        )
        return said.returncode, json.loads(said.stdout), said.stdout + said.stderr

    return done


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


def test_a_format_that_keeps_the_checks(run: Run, tmp_path: Path) -> None:
    install(tmp_path, "tests.formats.toy_format:ToyFormat")
    words = ("run", "mine", "--checks", "F01,F07", "--report", "report.json")
    code, document, printed = run(tmp_path, *words)
    assert code == 0, printed
    assert outcomes(document) == {"F01": "pass", "F07": "pass"}
    assert json.loads((tmp_path / "report.json").read_text()) == document
    assert document["contract"] == "1.0"


def test_the_number_of_random_histories_is_chosen(run: Run, tmp_path: Path) -> None:
    install(tmp_path, "tests.formats.toy_services:ServingToy")
    code, document, printed = run(tmp_path, "run", "mine", "--checks", "F52", "--histories", "1")
    assert code == 0, printed
    assert outcomes(document) == {"F52": "pass"}


def test_what_a_format_does_not_declare_is_refused(run: Run, tmp_path: Path) -> None:
    install(tmp_path, "tests.formats.toy_format:ModestFormat")
    code, document, printed = run(tmp_path, "run", "mine", "--checks", "F07,F39")
    assert code == 0, printed
    assert outcomes(document) == {"F07": "pass", "F39": "refused"}


def test_a_mistake_fails_with_what_pytest_says(run: Run, tmp_path: Path) -> None:
    install(tmp_path, "tests.formats.wrong_formats:DeletesLiveFiles")
    code, document, printed = run(tmp_path, "run", "mine", "--checks", "F07,F19")
    assert code == 4, printed
    assert outcomes(document) == {"F07": "pass", "F19": "failed"}
    [failed] = [one for one in document["checks"] if one["id"] == "F19"]
    assert CHECKS["F19"].sentence in printed
    assert failed["reason"]


def test_a_deviation_is_named_with_its_reason(run: Run, tmp_path: Path) -> None:
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
def test_a_suite_that_is_not_there_is_named(
    run: Run, tmp_path: Path, suite: str, what: str
) -> None:
    install(tmp_path, "tests.formats.toy_format:ToyFormat")
    points = tmp_path / "mine-1.0.dist-info" / "entry_points.txt"
    points.write_text(f"[hudi.conformance]\nmine = {suite}\n" if suite else "")
    code, document, _ = run(tmp_path, "run", "mine")
    assert (code, document["error"]["type"]) == (1, "SuiteNotFoundError")
    assert what in document["error"]["message"]


def test_formats_that_are_run_in_one_process_are_told_apart(
    commands: ForkedCommands, tmp_path: Path
) -> None:
    code = (
        "from hudi_conformance.formats.report import run_format\n"
        "for name in ('delta', 'native'):\n"
        "    found = run_format(name, only=['F07', 'F42'])\n"
        "    print(name, *(one.check.id for one in found.results))\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = commands.run(code, cwd=tmp_path, environment=environment)
    assert done.stdout.splitlines() == ["delta F07 F42", "native F07"], done.stderr


def test_the_suites_and_all_checks_are_listed(run: Run, tmp_path: Path) -> None:
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


WHOLE = {"journal": "journal_format:WholeJournalFormat"}
ALLOWED = {"hudi_core", "hudi_core.spi", "hudi_core.spi.files"}


def lines_of_code(code: str) -> int:
    """Lines that are neither blank, nor a comment, nor of a docstring."""
    said: set[int] = set()
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                said.update(range(node.lineno, (node.end_lineno or 0) + 1))
    lines = enumerate(code.splitlines(), 1)
    return sum(1 for n, one in lines if n not in said and one.strip() and one.strip()[0] != "#")


def page_rows(heading: str) -> list[list[str]]:
    """Cells of the rows of the page's table whose first column has a heading."""
    page = GUIDE.read_text(encoding="utf-8")
    [table] = re.findall(rf"^\| {heading} \|.*\n\|[- |]+\n((?:\|.*\n)+)", page, re.MULTILINE)
    return [[cell.strip() for cell in row[1:-1].split("|")] for row in table.splitlines()]


def methods(code: str, name: str) -> set[str]:
    """Names that a class of the code defines."""
    [found] = [one for one in ast.parse(code).body if getattr(one, "name", None) == name]
    assert isinstance(found, ast.ClassDef)
    names = {one.name for one in found.body if isinstance(one, ast.FunctionDef)}
    for one in found.body:
        if isinstance(one, ast.Assign):
            names |= {target.id for target in one.targets if isinstance(target, ast.Name)}
    return names


def test_it_is_as_short_as_the_page_says() -> None:
    [said] = re.findall(r"These (\d+) lines of code", GUIDE.read_text(encoding="utf-8"))
    assert lines_of_code(module("journal_format", 1)) == int(said) <= 90


def test_it_has_every_hook_that_a_format_has_to_have() -> None:
    required = {name for name, hook in HOOKS.items() if hook.is_required}
    own = required - {*vars(RecordingFormat)} | {"record", "spi_version"}
    assert methods(module("journal_format", 1), "JournalFormat") == own


def test_the_page_names_every_hook_and_what_needs_it() -> None:
    words = {"every format": None, "none": frozenset(), "any change of columns": SCHEMA_EVOLUTION}
    found = [
        (name, row[1]) for row in page_rows("hooks") for name in re.findall(r"`(\w+)`", row[0])
    ]
    assert {name: words.get(who, {*re.findall(r"`(\w+)`", who)}) for name, who in found} == {
        name: None if hook.is_required else hook.needed_by for name, hook in HOOKS.items()
    }
    assert len(found) == len(HOOKS)


def test_the_page_names_every_ability() -> None:
    found = [name for row in page_rows("ability") for name in re.findall(r"`(\w+)`", row[0])]
    assert sorted(found) == sorted(Capability)


def test_it_imports_what_a_plugin_may() -> None:
    for node in ast.walk(ast.parse(module("journal_format"))):
        if isinstance(node, ast.ImportFrom):
            assert node.module in ALLOWED or node.module in sys.stdlib_module_names | {"posixpath"}
        elif isinstance(node, ast.Import):
            assert {one.name for one in node.names} <= sys.stdlib_module_names


@pytest.mark.impure
def test_its_code_has_the_layout_of_the_project() -> None:
    for name in ("journal_format", "journal_suite"):
        for action in (["check"], ["format", "--check"]):
            options = ["--isolated", "--line-length=100", f"--stdin-filename={name}.py", "-"]
            done = subprocess.run(
                [sys.executable, "-m", "ruff", *action, *options],
                input=module(name),
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_keeps_its_word(tmp_path: Path) -> None:
    """Its examples run in order; the second part of the format is there from its block on."""
    site = tmp_path / "site"
    site.mkdir()
    examples = [(text, line) for title, text, line in blocks("python") if not title]
    [second] = [line for title, _, line in blocks("python") if title.endswith("continued")]
    for is_whole in (False, True):
        install_documented(site, *((WHOLE,) if is_whole else (None, 1)))
        code = "\n".join(text for text, line in examples if is_whole or line < second)
        folder = tmp_path / f"whole-{is_whole}"
        folder.mkdir()
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(site), *sys.path])},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_it_passes_every_check_of_what_it_declares(run: Run, tmp_path: Path) -> None:
    install_documented(tmp_path, WHOLE)
    more = {} if IS_WHOLE else {"PYTEST_PLUGINS": "tests.formats.few_cases"}
    code, document, printed = run(tmp_path, "run", "journal", more=more)
    assert code == 0, printed
    found = outcomes(document)
    assert list(found) == (sorted(CHECKS) if IS_WHOLE else sorted(CHECKS)[turn() % 3 :: 3])
    assert Counter(found.values())["pass"] >= (40 if IS_WHOLE else 10)
    assert set(found.values()) == {"pass", "refused"}
