"""The documentation builds without a warning, has no stub, and loads nothing from elsewhere."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import hudi_core.errors
from hudi_core import spi
from hudi_core.cli.app import app
from hudi_core.hookspecs import HOOKS
from hudi_core.spi import files

ROOT = Path(__file__).resolve().parents[2]
LOADED = re.compile(
    r'<(?:script|img|iframe|source)\b[^>]*\bsrc="([^"]*)"|<link\b[^>]*\bhref="([^"]*)"'
)
FEWEST_WORDS = 60
ANSWERS = {
    "install.html": "pip install .",
    "install.html#java": "JAVA_HOME",
    "quick_start_hudi.html": "hudi.write(trips",
    "quick_start_arrow.html": "hudi.Table.create(",
    "engines.html": "hudi.duckdb(",
    "operations.html#erase-a-row": "table.purge()",
    "operations.html#compact-small-files": "table.optimize()",
    "operations.html#a-bad-load": "table.restore(",
    "writers.html": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "limits.html": "MERGE_ON_READ",
    "plugins.html": "class JournalFormat(spi.RecordingFormat)",
}
"""What a reader who is new finds behind the links of the front page."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr, done.stderr
    return folder


def text_of(page: Path) -> str:
    """The words of a page, without navigation."""
    article = re.search(r"<article.*?</article>", page.read_text(encoding="utf-8"), re.DOTALL)
    assert article, page.name
    return html.unescape(re.sub(r"<[^>]*>", " ", article[0]))


def test_no_page_loads_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    loaded = {one[0] or one[1] for page in pages for one in LOADED.findall(page.read_text("utf-8"))}
    assert len(pages) > 40
    assert loaded
    assert not [one for one in loaded if re.match(r"(https?:)?//", one)]
    styles = "".join(one.read_text("utf-8") for one in site.rglob("*.css"))
    assert not re.findall(r"url\(\s*['\"]?(?:https?:)?//", styles)


def test_search_works_where_pages_are_opened_as_files(site: Path) -> None:
    index = (site / "search" / "search_index.js").read_text("utf-8")
    assert index.startswith("var __index = {")
    assert all(word in index for word in ("MinIO", "GDPR", "Airflow", "drop a column"))
    front = (site / "index.html").read_text("utf-8")
    worker, bundle = front.index("assets/iframe-worker.js"), front.index("/bundle.")
    assert worker < bundle, "the bundle takes the worker that it finds"
    assert (site / "assets" / "iframe-worker.js").exists()


def test_names_in_tables_go_on_in_the_next_line(site: Path) -> None:
    page = (site / "configuration.html").read_text("utf-8")
    assert "hoodie.<wbr>cleaner.<wbr>commits.<wbr>retained" in page


def test_no_page_is_a_stub(site: Path) -> None:
    words = {page.name: len(text_of(page).split()) for page in site.glob("*.html")}
    del words["404.html"]
    assert not {name: count for name, count in words.items() if count < FEWEST_WORDS}


@pytest.mark.parametrize("link", ANSWERS)
def test_the_front_page_leads_to_the_answers(site: Path, link: str) -> None:
    front = re.search(r"<article.*?</article>", (site / "index.html").read_text("utf-8"), re.DOTALL)
    assert front
    assert f'href="{link}"' in front[0]
    name, _, anchor = link.partition("#")
    page = (site / name).read_text("utf-8")
    begin = f'<h2 id="{anchor}".*?(?=<h2 |</article>)' if anchor else "<article.*?</article>"
    found = re.search(begin, page, re.DOTALL)
    assert found, link
    assert ANSWERS[link] in html.unescape(re.sub(r"<[^>]*>", "", found[0]))


def test_every_command_is_in_the_reference(site: Path) -> None:
    page = text_of(site / "command_line.html")

    def names(group: object, path: str) -> list[str]:
        found: list[str] = []
        for name, command in getattr(group, "commands", {}).items():
            found += names(command, f"{path} {name}") or [f"{path} {name}"]
        return found

    commands = names(typer.main.get_command(app), "hudi")
    assert len(commands) > 30
    assert not [one for one in commands if one not in page]


def test_every_hook_is_a_heading(site: Path) -> None:
    page = (site / "hooks.html").read_text("utf-8")
    headings = [
        html.unescape(re.sub(r"<[^>]*>", " ", one)).split()
        for one in re.findall(r"<h3[^>]*>(.*?)</h3>", page, re.DOTALL)
    ]
    assert len(HOOKS) > 20
    assert not [hook for hook in HOOKS if not any(hook in words for words in headings)]


def test_every_name_for_authors_is_on_its_page(site: Path) -> None:
    words = {*re.findall(r"\w+", text_of(site / "spi.html"))}
    assert not [one for one in (*spi.__all__, *files.__all__) if one not in words]


def test_every_error_is_in_the_listing(site: Path) -> None:
    page = text_of(site / "troubleshooting.html")
    errors = [one for one in hudi_core.errors.__all__ if one.endswith("Error")]
    assert len(errors) > 50
    assert not [one for one in errors if one not in page]
    assert "Open it with Table.open, or use another path." in page
