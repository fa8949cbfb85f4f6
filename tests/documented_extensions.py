"""The extensions that ``docs/extension_points.md`` shows, as one module."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from pathlib import Path

import pytest

from tests.fake_distributions import write_entry_points

PAGE = Path(__file__).resolve().parents[1] / "docs" / "extension_points.md"
MODULE = "acme_hudi"


def code() -> str:
    """Return the examples of the page, joined."""
    return "\n\n".join(_blocks("python"))


def entry_points() -> dict[str, dict[str, str]]:
    """Return the entry points of the page: names and targets by group."""
    [block] = _blocks("toml")
    found: dict[str, dict[str, str]] = tomllib.loads(block)["project"]["entry-points"]
    return found


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the distribution of the page on the path of this process and its children."""
    info = folder / f"{MODULE}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-hudi\nVersion: 1.0\n")
    write_entry_points(info, entry_points())
    (folder / f"{MODULE}.py").write_text(code())
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    path = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", str(folder) if path is None else f"{folder}:{path}")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
