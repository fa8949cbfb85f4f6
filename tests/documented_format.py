"""The table format that ``plugins/README.md`` shows, as a project that is installed."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.fake_distributions import write_entry_points

PAGE: Final = Path(__file__).resolve().parents[1] / "plugins" / "README.md"
_BLOCK: Final = re.compile(r'^```(\w+)(?: title="([^"]*)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)


def blocks(language: str) -> list[tuple[str, str, int]]:
    """Return title, text, and the number of lines before it, of each block of a language."""
    page = PAGE.read_text(encoding="utf-8")
    return [
        (found[2] or "", found[3], page.count("\n", 0, found.start(3)))
        for found in _BLOCK.finditer(page)
        if found[1] == language
    ]


def module(name: str, parts: int | None = None) -> str:
    """Return the first parts of a module that the page shows, or all of it."""
    shown = [text for title, text, _ in blocks("python") if title.partition(",")[0] == f"{name}.py"]
    assert shown, name
    return "\n\n".join(shown[:parts])


def install(folder: Path, more: Mapping[str, str] | None = None, parts: int | None = None) -> None:
    """Put the project of the page into a folder of the path.

    ``more``: targets by names of formats, in place of those in the page's ``pyproject.toml``.
    ``parts``: how many of the blocks of the format's module.
    """
    whole = next(text for _, text, _ in blocks("toml") if "[build-system]" in text)
    project = tomllib.loads(whole)["project"]
    points: dict[str, dict[str, str]] = project["entry-points"]
    points["hudi.table_formats"] |= more or {}
    info = folder / "hudi_journal_format-0.1.0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    write_entry_points(info, points)
    (folder / "journal_format.py").write_text(module("journal_format", parts))
    (folder / "journal_suite.py").write_text(module("journal_suite"))
