"""The benchmark runs, counts what it wrote, and keeps the page around its results."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

RUN = Path(__file__).resolve().parents[2] / "benchmarks" / "run.py"
PAGE = "before\n<!-- results:begin -->\nold\n<!-- results:end -->\nafter\n"


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, RUN, *arguments], capture_output=True, text=True, check=False, timeout=300
    )


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, str, Path]:
    scratch = tmp_path_factory.mktemp("scratch")
    page = tmp_path_factory.mktemp("page") / "README.md"
    page.write_text(PAGE)
    # what needs no Java
    only = ["--only", "local", "--only", "deltalake", "--only", "pyiceberg", "--only", "limit"]
    done = run(
        *("--rows", "2000", "--repeats", "1", "--slow-cap", "100", "--json", *only),
        *("--markdown", page, "--scratch", scratch),
    )
    assert done.returncode == 0, done.stderr
    assert list(scratch.iterdir()) == []
    return json.loads(done.stdout), page.read_text(), page


def test_every_variant_holds_the_rows_it_should(measured: tuple[Any, str, Path]) -> None:
    results = {(one["case"], one["variant"]): one for one in measured[0]["results"]}
    quick = {"hudi-core-local", "deltalake", "limit"}
    assert results.keys() == {
        *(("bulk_insert", name) for name in ("hudi-core-local", "deltalake", "pyiceberg")),
        *(("upsert_1", name) for name in (*quick, "pyiceberg")),
        *(("upsert_10", name) for name in (*quick, "pyiceberg")),
    }
    for case, rows, changed in (
        ("bulk_insert", 2000, 0),
        ("upsert_1", 2001, 21),
        ("upsert_10", 2010, 210),
    ):
        found = results[case, "hudi-core-local"]["contents"]
        assert (found["rows"], found["keys"], found["changed"]) == (rows, rows, changed)
        assert found["files"] == 20
        assert len(results[case, "deltalake"]["seconds"]) == 1
    slow = results["upsert_10", "pyiceberg"]
    assert slow["seconds"] == []
    assert "--slow-cap 100" in slow["skipped"]
    assert results["upsert_1", "deltalake"]["ratios"]["deltalake"] == 1


def test_the_page_around_the_results_stays(measured: tuple[Any, str, Path]) -> None:
    text = measured[1]
    assert text.startswith("before\n<!-- results:begin -->\n")
    assert text.endswith("\n<!-- results:end -->\nafter\n")
    assert "old" not in text.splitlines()
    assert "### upsert_10" in text
    assert "| deltalake | a folder per city |" in text


def test_a_pattern_that_fits_nothing_is_refused() -> None:
    done = run("--only", "paimon")
    assert done.returncode == 2
    assert "--only" in done.stderr
