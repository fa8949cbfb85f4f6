"""The benchmark runs, counts what it wrote, and keeps the page around its results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.samples import IS_WHOLE, sampled
from tests.unit.benchmark_runs import as_program, module, run

PAGE = "before\n<!-- results:begin -->\nold\n<!-- results:end -->\nafter\n"


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, str, Path]:
    scratch = tmp_path_factory.mktemp("scratch")
    page = tmp_path_factory.mktemp("page") / "README.md"
    page.write_text(PAGE)
    # what needs no Java
    only: list[str | Path] = [
        "--only",
        "local",
        "--only",
        "deltalake",
        "--only",
        "pyiceberg",
        "--only",
        "limit",
    ]
    done = run(
        "run.py",
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


@pytest.mark.impure
def test_a_pattern_that_fits_nothing_is_refused() -> None:
    done = as_program("run.py", "--only", "paimon")
    assert done.returncode == 2
    assert "--only" in done.stderr


def test_a_target_is_met_up_to_its_ratio() -> None:
    target = module("targets").Target("upsert_1", "a", "b", 0.5)
    for seconds, verdict in ((1.0, "met"), (1.01, "missed")):
        ratio = target.ratio({("upsert_1", "a"): seconds, ("upsert_1", "b"): 2.0})
        assert target.verdict(ratio) == verdict
    assert target.verdict(target.ratio({("upsert_1", "a"): 1.0})) == "not measured"


def test_causes_are_read_outside_of_the_results_only(tmp_path: Path) -> None:
    results = module("page")
    page = tmp_path / "README.md"
    cause = "- `upsert_1: a / b`: because\n"
    page.write_text(f"{cause}{PAGE.replace('old', cause.replace('a /', 'c /'))}")
    assert results.causes(page) == {"upsert_1: a / b": "because"}
    results.write_section(page, "results", "new")
    assert page.read_text() == cause + PAGE.replace("old", "new")


def test_every_case_holds_the_rows_it_should(tmp_path: Path) -> None:
    only: list[str | Path] = [
        "--only",
        "local",
        "--only",
        "deltalake",
        "--only",
        "limit",
        "--only",
        "memory" if IS_WHOLE else "memory/8",
    ]
    expected = sampled(
        [
            ("upsert_50", 4100, 2100),
            ("upsert_skew", 4002, 42),
            ("big_files_10", 4020, 420),
            ("upsert_one_row", 100_000, 1),
        ],
        4,
        2,
    )
    groups = [1, 8] if IS_WHOLE else [8]
    cases = ",".join([*(case for case, _, _ in expected), "memory"])
    done = run(
        "run.py",
        *("--cases", cases, "--rows", "4000"),
        *("--repeats", "1", "--json", "--scratch", tmp_path, *only),
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    results = {(one["case"], one["variant"]): one for one in document["results"]}
    for case, rows, changed in expected:
        for variant in ("hudi-core-local", "deltalake"):
            found = results[case, variant]["contents"]
            assert (found["rows"], found["changed"], found["late"]) == (rows, changed, 0)
    assert [one["groups"] for one in document["memory"]] == groups
    assert {one["verdict"] for one in document["targets"]} >= {"not measured"}
