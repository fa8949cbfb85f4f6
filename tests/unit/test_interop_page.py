"""The page about Hudi-Spark, Iceberg-Spark and Delta-Spark tells of cases that there are."""

from __future__ import annotations

import ast
import re

import pytest

from tests.jvm.report import (
    HERE,
    OWN,
    PAGE,
    PATTERN,
    RIGHT,
    WRONG,
    Report,
    functions_of,
    lines_of,
    page,
)


def test_the_page_tells_of_no_other_cases() -> None:
    there = {
        (path.name, function.name)
        for path in HERE.glob(PATTERN)
        for function in functions_of(ast.parse(path.read_text(encoding="utf-8")))
    }
    told = {(one.file, one.function) for one in lines_of(PAGE.read_text(encoding="utf-8"))}
    assert told
    assert told <= there, "run `make interop ARGS='-k FILE'` with the files that have changed"


def test_a_case_whose_process_died_stays_wrong() -> None:
    report, case = Report(), "tests/jvm/delta_cases.py::test_checkpoints"
    for outcome in ("failed", "passed"):
        told = pytest.TestReport(case, ("", None, ""), {}, outcome, longrepr=None, when="call")
        report.pytest_runtest_logreport(told)
    assert report.outcomes == {"delta_cases.py::test_checkpoints": WRONG}


def test_a_page_counts_cases_and_keeps_sections() -> None:
    changes = "iceberg_cases.py::test_columns_that_it_changes"
    changed = "iceberg_cases.py::test_changed_columns"
    outcomes = {f"{changes}[add column]": RIGHT, f"{changes}[drop | column]": WRONG}
    first = page({**outcomes, changed: "it says no"}, {"Iceberg-Spark": {"PySpark": "4.0.5"}})
    assert re.search(r"3 cases in 1 of \d+ files: 1\nright, 1 wrong, and 1 in", first)
    assert f"| 1 | {WRONG} (`drop | column`) |" in first
    assert f"| 1 | {OWN}: it says no |" in first
    second = page({"delta_cases.py::test_checkpoints": RIGHT}, {}, first)
    assert re.search(r"4 cases in 2 of \d+ files: 2\nright, 1 wrong, and 1 in", second)
    assert "PySpark 4.0.5" in second
    names = ("test_checkpoints", "test_columns_that_it_changes", "test_changed_columns")
    assert {(one.function, one.count) for one in lines_of(second)} == {(name, 1) for name in names}
    assert "yet of the cases of `by_name_cases.py`, `delta_log_cases.py`, `hudi_" in second
    assert page({changed: RIGHT}, {}, second).count("\n## ") == 2
