"""The commands on the page about the metadata table write what the page says they write."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hudi_core.cli import app

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metadata.md"


def blocks(language: str) -> list[str]:
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def plain(text: str, folder: Path) -> list[str]:
    """Return lines without what depends on the moment, the place, and the width of a terminal."""
    text = re.sub(r"duration=[0-9.]+sec", "duration", text.replace(f"{folder}/", ""))
    text = re.sub(r"[0-9]{17}", "<instant>", text)
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line.strip("─ ")]


def test_commands_write_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    for code in blocks("python"):
        exec(compile(code, PAGE, "exec"), names)
    [session] = blocks("console")
    steps = re.findall(r"^\$ hudi (.*)\n((?:(?!\$ ).*\n)*)", session, re.MULTILINE)
    assert len(steps) >= 8
    for command, expected in steps:
        result = CliRunner().invoke(app, command.split())
        assert result.exit_code == 0, (command, result.stderr)
        assert plain(result.stdout, tmp_path) == plain(expected, tmp_path), command


def test_every_command_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    result = CliRunner().invoke(app, ["metadata", "--help"])
    names = re.findall(r"^[│ ]*([a-z]+(?:-[a-z]+)*) {2,}[A-Z]", result.stdout, re.MULTILINE)
    assert {"create", "lookup-record-index", "set"} <= {*names}
    assert all(f"`{name}" in text or f", `{name}" in text for name in names)
