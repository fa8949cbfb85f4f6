"""The code and the commands on pages do what the pages say."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import hudi_core as hudi
from hudi_core.cli import app

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]


def blocks(page: Path) -> list[tuple[int, str]]:
    """Return each Python block with the number of lines before it."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(text.count("\n", 0, match.start(1)), match[1]) for match in found]


WITH_CODE = [page for page in PAGES if blocks(page)]


def test_the_pages_that_show_code() -> None:
    assert {"README.md", "spark.md"} <= {page.name for page in WITH_CODE}


@pytest.mark.spark
@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.name)
def test_a_page_keeps_its_word(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": page.stem}
    for line, code in blocks(page):
        # the lines before keep the numbers in a traceback those of the page
        exec(compile("\n" * line + code, page, "exec"), names)


# what formats record of an instant; what follows is a group of entry points
KEYS = {"action", "catalog", "instant", "operation", "state"}
GROUP = re.compile(r"[a-z]+_[a-z]+s|indexes")


def test_names_of_the_library_on_pages_are_there() -> None:
    missing = {
        (page.name, name)
        for page in PAGES
        for name in re.findall(r"`hudi\.([A-Za-z_]+)(?=[`(])", page.read_text(encoding="utf-8"))
        if not (hasattr(hudi, name) or name in KEYS or GROUP.fullmatch(name))
    }
    assert missing == set()


# --- commands on pages write what the pages say they write
METADATA = ROOT / "docs" / "metadata.md"
LOGS = ROOT / "docs" / "merge_on_read.md"


def fenced(page: Path) -> list[tuple[str, str]]:
    """Languages and blocks of a page, in its order."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"^```(python|console)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(match[1], match[2]) for match in found]


def plain(text: str, folder: Path) -> list[str]:
    """Return lines without what depends on the moment, the place, and the width of a terminal."""
    text = re.sub(r"duration=[0-9.]+sec", "duration", text.replace(f"{folder}/", ""))
    text = re.sub(r"[0-9]{17}", "<instant>", text)
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line.strip("─ ")]


def without_sizes(text: str, folder: Path) -> list[str]:
    """The same without names of file groups and numbers of bytes, and what depends on them."""
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<file>", text)
    text = re.sub(r"\b[0-9]{1,3}(,[0-9]{3})+\b", "<bytes>", text)
    return [" ".join(line.split()) for line in plain(text, folder)]


@pytest.mark.parametrize(
    ("page", "least", "compared"),
    [(METADATA, 8, plain), (LOGS, 2, without_sizes)],
    ids=["metadata", "merge_on_read"],
)
def test_commands_write_what_the_page_says(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    page: Path,
    least: int,
    compared: Callable[[str, Path], list[str]],
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    steps = 0
    for language, block in fenced(page):
        if language == "python":
            exec(compile(block, page, "exec"), names)
            continue
        for command, expected in re.findall(
            r"^\$ hudi (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE
        ):
            result = CliRunner().invoke(app, command.split())
            assert result.exit_code == 0, (command, result.stderr)
            assert compared(result.stdout, tmp_path) == compared(expected, tmp_path), command
            steps += 1
    assert steps >= least


def test_every_command_is_on_the_page() -> None:
    text = METADATA.read_text(encoding="utf-8")
    result = CliRunner().invoke(app, ["metadata", "--help"])
    names = re.findall(r"^[│ ]*([a-z]+(?:-[a-z]+)*) {2,}[A-Z]", result.stdout, re.MULTILINE)
    assert {"create", "lookup-record-index", "set"} <= {*names}
    assert all(f"`{name}" in text or f", `{name}" in text for name in names)
