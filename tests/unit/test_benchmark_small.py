"""The benchmark of small commits measures upserts that took place."""

from __future__ import annotations

import json
from pathlib import Path

from tests.samples import IS_WHOLE
from tests.unit.benchmark_runs import run

CASE = "small_commits_s3" if IS_WHOLE else "small_commits"


def test_every_variant_upserts(tmp_path: Path) -> None:
    scratch, page = tmp_path / "scratch", tmp_path / "README.md"
    scratch.mkdir()

    chosen = ("--cases", CASE, "--scale", "0.005")
    done = run("small_commits.py", *chosen, "--json", "--markdown", page, "--scratch", scratch)

    assert done.returncode == 0, done.stderr
    assert list(scratch.iterdir()) == []
    found = json.loads(done.stdout)
    ours = ("native", "native, no metadata table", "iceberg", "delta")
    names = (*ours, "native, with table services", "deltalake", "pyiceberg")
    answers = {(one["case"], one["variant"]): one["answer"] for one in found["timings"]}
    assert answers == {(CASE, name): 20_000 for name in names}
    assert all(one["ratio"] > 0 for one in found["targets"])
    assert f"### {CASE}" in page.read_text()
