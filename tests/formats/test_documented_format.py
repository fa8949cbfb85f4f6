"""The table format of the plugin guide: its code runs from the page, and passes the kit."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hudi_conformance.formats import CHECKS

from hudi_core.model.capability import SCHEMA_EVOLUTION
from hudi_core.spi import HOOKS, Capability, RecordingFormat
from tests.documented_format import PAGE, blocks, install, module
from tests.formats.test_conformance_command import outcomes, run
from tests.samples import IS_WHOLE

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


def rows(heading: str) -> list[list[str]]:
    """Cells of the rows of the page's table whose first column has a heading."""
    page = PAGE.read_text(encoding="utf-8")
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
    [said] = re.findall(r"These (\d+) lines of code", PAGE.read_text(encoding="utf-8"))
    assert lines_of_code(module("journal_format", 1)) == int(said) <= 90


def test_it_has_every_hook_that_a_format_has_to_have() -> None:
    required = {name for name, hook in HOOKS.items() if hook.is_required}
    own = required - {*vars(RecordingFormat)} | {"record", "spi_version"}
    assert methods(module("journal_format", 1), "JournalFormat") == own


def test_the_page_names_every_hook_and_what_needs_it() -> None:
    words = {"every format": None, "none": frozenset(), "any change of columns": SCHEMA_EVOLUTION}
    found = [(name, row[1]) for row in rows("hooks") for name in re.findall(r"`(\w+)`", row[0])]
    assert {name: words.get(who, {who.strip("`")}) for name, who in found} == {
        name: None if hook.is_required else hook.needed_by for name, hook in HOOKS.items()
    }
    assert len(found) == len(HOOKS)


def test_the_page_names_every_ability() -> None:
    found = [name for row in rows("ability") for name in re.findall(r"`(\w+)`", row[0])]
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
        install(site, *((WHOLE,) if is_whole else (None, 1)))
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
def test_it_passes_every_check_of_what_it_declares(tmp_path: Path) -> None:
    install(tmp_path, WHOLE)
    more = {} if IS_WHOLE else {"PYTEST_PLUGINS": "tests.formats.few_cases"}
    code, document, printed = run(tmp_path, "run", "journal", more=more)
    assert code == 0, printed
    found = outcomes(document)
    assert found.keys() == CHECKS.keys()
    assert Counter(found.values())["pass"] >= 40
    assert set(found.values()) == {"pass", "refused"}
