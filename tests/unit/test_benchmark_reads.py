"""The benchmark of reads has all of them find the same rows."""

from __future__ import annotations

import json
from pathlib import Path

from tests.samples import IS_WHOLE
from tests.unit.benchmark_runs import run, some_cases

FEW = ("whole", "one-partition", "changes-of-an-upsert")


def test_every_case_runs(tmp_path: Path) -> None:
    scratch, page = tmp_path / "scratch", tmp_path / "README.md"
    scratch.mkdir()

    sizes = ("--scale", "0.001", "--repeats", "1", *some_cases(*FEW))
    done = run("reads.py", *sizes, "--json", "--markdown", page, "--scratch", scratch)

    assert done.returncode == 0, done.stderr
    assert list(scratch.iterdir()) == []
    found = json.loads(done.stdout)
    answers = {(one["case"], one["variant"]): one["answer"] for one in found["timings"]}
    assert len(answers) == (17 if IS_WHOLE else 9)
    for case in ("changes-of-an-upsert", *(("changes-of-a-delete",) if IS_WHOLE else ())):
        feed, net = (answers[case, name] for name in ("change feed", "incremental with deletes"))
        assert feed == net == answers["whole", "hudi-core"] / 100
    assert len({answer for (case, _), answer in answers.items() if case == "one-partition"}) == 1
    if IS_WHOLE:
        assert {answer for (case, _), answer in answers.items() if case == "by-spark"} == {2000}
    assert all(one["ratio"] > 0 and one["work"] > 0 for one in found["targets"])
    assert "### one-partition" in page.read_text()
