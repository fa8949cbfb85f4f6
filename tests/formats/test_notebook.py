"""The notebook runs, and what the page on Delta tables shows works."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

NOTEBOOK: Final = Path(__file__).resolve().parents[2] / "examples" / "quick_start.ipynb"
KERNEL: Final = """
import ast, json, sys

names, shown = {"__name__": "__main__"}, {}
for cell in json.load(sys.stdin)["cells"]:
    if cell["cell_type"] != "code":
        continue
    tree, last = ast.parse("".join(cell["source"])), None
    if isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    exec(compile(tree, cell["id"], "exec"), names)
    if last is not None:
        value = eval(compile(last, cell["id"], "eval"), names)
        shown[cell["id"]] = value._repr_html_() if hasattr(value, "_repr_html_") else repr(value)
json.dump(shown, sys.stdout)
"""
"""What a kernel does with the cells of a notebook; what each of them shows, by its id."""
SHOWN: Final = {
    "create": "3",
    "upsert": "{'id': [1, 2, 3, 4], 'fare': [14.0, 9.0, 30.0, 7.5]}",
    "duckdb": "[('Oslo', 44.0), ('Rome', 16.5)]",
    "as-of": "{'id': [1, 2, 3], 'fare': [12.5, 9.0, 30.0]}",
    "incremental": "{'id': [1, 4], 'fare': [14.0, 7.5]}",
    "deletes": "[{'id': 3, '_change_type': 'delete'}]",
    "iceberg": "[9.0, 14.0, 30.0]",
    "delta": "[9.0, 14.0, 30.0]",
}


@pytest.fixture(scope="module")
def notebook() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("notebook")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", KERNEL],
        input=NOTEBOOK.read_text(encoding="utf-8"),
        cwd=folder,
        env={"PYTHONPATH": ":".join(sys.path), "PATH": "/usr/bin:/bin", "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


def test_it_shows_what_it_says(shown: dict[str, str]) -> None:
    assert {cell: shown.get(cell) for cell in SHOWN} == SHOWN
    for frame in ("polars", "pandas"):
        assert "14.0" in shown[frame]
        assert "9.0" not in shown[frame]


def test_its_picture_is_drawn(shown: dict[str, str]) -> None:
    assert "&lt;svg" in shown["picture"]
    assert shown["picture"].count("commit&lt;/title&gt;") == 2


def test_it_is_a_notebook_without_outputs(notebook: dict[str, Any]) -> None:
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    cells = notebook["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)
    assert {cell["cell_type"] for cell in cells} == {"code", "markdown"}
    for cell in cells:
        assert all(line.endswith("\n") for line in cell["source"][:-1])
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)


PAGE = Path(__file__).resolve().parents[2] / "docs" / "delta.md"


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    snippets = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert snippets
    for snippet in snippets:
        exec(compile(snippet, str(PAGE), "exec"), {})
