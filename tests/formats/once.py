"""What tests in several processes share: what one worker makes, and what Hypothesis has read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from filelock import FileLock

KNOWN_SOURCES: Final = {
    "HYPOTHESIS_STORAGE_DIRECTORY": str(Path(__file__).resolve().parents[2] / ".hypothesis")
}
"""A variable for processes that draw histories: else each reads all sources for their constants."""


def made_once(
    folders: pytest.TempPathFactory, name: str, make: Callable[[Path], dict[str, str]]
) -> dict[str, str]:
    """Texts by name that one worker makes in a folder, and every worker reads.

    ``make``: gets an empty folder.
    """
    place = folders.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        place = place.parent
    made = place / name
    with FileLock(place / f"{name}.lock"):
        if not made.is_dir():
            texts = make(folders.mktemp(name))
            part = place / f"{name}.part"
            part.mkdir()
            for key, text in texts.items():
                (part / key).write_text(text, encoding="utf-8")
            part.rename(made)
    return {one.name: one.read_text(encoding="utf-8") for one in made.iterdir()}
