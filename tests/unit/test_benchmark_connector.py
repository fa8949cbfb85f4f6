"""The benchmark of the connector has both ways find the same splits and rows."""

from __future__ import annotations

import json
from pathlib import Path

from tests.samples import IS_WHOLE
from tests.unit.benchmark_runs import run, some_cases

FEW = ("unchanged-native", "thrift-pages")


def test_every_case_runs(tmp_path: Path) -> None:
    scratch, page = tmp_path / "scratch", tmp_path / "README.md"
    scratch.mkdir()

    sizes = ("--scale", "0.01", "--repeats", "1", *some_cases(*FEW))
    done = run("connector.py", *sizes, "--json", "--markdown", page, "--scratch", scratch)

    assert done.returncode == 0, done.stderr
    assert list(scratch.iterdir()) == []
    found = json.loads(done.stdout)
    answers = {(one["case"], one["variant"]): one["answer"] for one in found["timings"]}
    assert len(answers) == (21 if IS_WHOLE else 6)
    for format_ in ("native", "iceberg", "delta") if IS_WHOLE else ("native",):
        plans = {
            name: one for (case, name), one in answers.items() if case == f"unchanged-{format_}"
        }
        again, opened, filtered_again, filtered = plans.values()
        assert again == opened > filtered_again == filtered > 0
    if IS_WHOLE:
        assert answers["all-splits", "background"] == answers["all-splits", "synchronous"] == 2000
        assert 0 < answers["first-splits", "background"] <= 2000
        narrow = {rows for (case, _), rows in answers.items() if case == "two-of-22-columns"}
        assert narrow == {20_000}
    assert answers["thrift-pages", "pages"] == answers["thrift-pages", "generic"] > 0
    assert all(one["ratio"] > 0 and one["work"] > 0 for one in found["targets"])
    assert "### thrift-pages" in page.read_text()
