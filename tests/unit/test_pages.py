"""The code on every page runs, in order, as a reader would type it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hudi_core as hudi

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
