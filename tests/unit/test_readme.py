"""The code in the README runs, in order, as a reader would type it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

README = Path(__file__).resolve().parents[2] / "README.md"


def blocks() -> list[tuple[int, str]]:
    """Return each Python block with the number of lines before it."""
    text = README.read_text(encoding="utf-8")
    found = re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(text.count("\n", 0, match.start(1)), match[1]) for match in found]


@pytest.mark.spark
def test_the_readme_keeps_its_word(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(blocks()) >= 2
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "readme"}
    for line, code in blocks():
        # the lines before keep the numbers in a traceback those of the page
        exec(compile("\n" * line + code, README, "exec"), names)
