"""The benchmark of the table formats measures steps that took place, and tells their share."""

from __future__ import annotations

import json
from pathlib import Path

from tests.samples import IS_WHOLE
from tests.unit.benchmark_runs import module, run, some_cases


def test_every_case_runs(tmp_path: Path) -> None:
    scratch, page = tmp_path / "scratch", tmp_path / "README.md"
    scratch.mkdir()

    sizes = ("--scale", "0.005", "--repeats", "1", *some_cases("step", "listing"))
    done = run("formats.py", *sizes, "--json", "--markdown", page, "--scratch", scratch)

    assert done.returncode == 0, done.stderr
    assert list(scratch.iterdir()) == []
    found = json.loads(done.stdout)
    answers = {(one["case"], one["variant"]): one["answer"] for one in found["timings"]}
    assert answers["step", "native: plan"] == 20
    for name in ("iceberg", "delta"):
        assert answers["step", f"{name}: step"] == 20
        assert answers["listing", f"{name}: ours"] >= answers["listing", f"{name}: library"] >= 100
        if IS_WHOLE:
            assert answers["history", f"{name}: after 5 commits"] == 20
            assert answers["both", f"{name}: without"] == 20
    if IS_WHOLE:
        assert answers["planning", "sql: plan"] == answers["planning", "delta: plan"] >= 1000
    assert all(one["ratio"] > 0 for one in found["targets"])
    assert "### listing" in page.read_text()


def test_a_step_may_take_a_tenth_or_a_tenth_of_a_second() -> None:
    formats, timing = module("formats"), module("metadata_timing")
    timings = [
        timing.Timing("step", "iceberg: upsert", 20, [0.5], [1.0]),
        timing.Timing("step", "iceberg: step", 20, [0.09], [1.0]),
        timing.Timing("step", "delta: upsert", 20, [4.0], [1.0]),
        timing.Timing("step", "delta: step", 20, [0.5], [1.0]),
        timing.Timing("step", "native: upsert", 20, [3.0], [1.0]),
        timing.Timing("step", "native: plan", 20, [1.2], [1.0]),
    ]
    rows = formats.Found(1.0, timings, [1.0]).sections({})[0][1][1:]

    verdicts = {row[0]: (row[2], row[3]) for row in rows}

    assert verdicts["step: iceberg: step / iceberg: upsert"] == ("0.200", "met")
    assert verdicts["step: delta: step / delta: upsert"] == ("0.100", "missed")
    assert verdicts["step: native: plan / native: upsert"] == ("0.500", "met")
