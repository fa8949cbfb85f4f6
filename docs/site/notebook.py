"""The page of a notebook: its prose, and the code of its cells."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

NOTEBOOK: Final = "examples/quick_start.ipynb"
_WHERE: Final = (
    "This page is [a notebook](quick_start.ipynb) (`examples/quick_start.ipynb` in a checkout): "
    "Jupyter, VS Code and others open it, and show the value of the last line of each cell."
)


def page(root: Path) -> str:
    """The whole page."""
    notebook = json.loads((root / NOTEBOOK).read_text(encoding="utf-8"))
    title, *others = _parts(notebook)
    return "\n\n".join([title, _WHERE, *others]) + "\n"


def _parts(notebook: dict[str, Any]) -> Iterator[str]:
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        yield text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```"
