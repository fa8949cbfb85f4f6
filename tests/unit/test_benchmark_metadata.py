"""The benchmark of the metadata table finds what there is, and tells ratios of its medians."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.samples import IS_WHOLE
from tests.unit.benchmark_runs import module, run

PAGE = "before\n<!-- metadata:begin -->\nold\n<!-- metadata:end -->\nafter\n"


def test_all_who_answer_a_question_find_the_same(tmp_path: Path) -> None:
    scratch, page = tmp_path / "scratch", tmp_path / "README.md"
    scratch.mkdir()
    page.write_text(PAGE)

    sizes = ("--scale", "0.002", "--repeats", "1")
    cases = ("listing", "planning", "lookups", "cached-lookups", "bloom")
    cases = ("--cases", *(cases if IS_WHOLE else cases[:3]))
    place = ("--markdown", page, "--scratch", scratch)
    done = run("metadata.py", *sizes, *cases, "--json", *place)

    assert done.returncode == 0, done.stderr
    assert list(scratch.iterdir()) == []
    found = json.loads(done.stdout)
    answers = {(one["case"], one["variant"]): one["answer"] for one in found["timings"]}
    assert answers["listing", "open, list one partition"] == 100
    assert answers["listing", "storage, by pyarrow"] == 202
    assert {answer for (case, _), answer in answers.items() if case == "planning"} == {20}
    assert {answer for (case, _), answer in answers.items() if "lookups" in case} == {9, 900}
    if IS_WHOLE:
        assert answers["cached lookups", "record index, sorted cache"] == 900
        assert {answer for (case, _), answer in answers.items() if case == "bloom"} == {10}
    assert all(one["ratio"] > 0 for one in found["targets"])
    assert "### planning" in page.read_text()
    assert page.read_text().startswith("before\n")
    assert page.read_text().endswith("after\n")


def test_a_wrong_answer_ends_a_run() -> None:
    timing = module("metadata_timing")
    with pytest.raises(AssertionError, match="b found 2, not 1"):
        timing.measure("case", {"a": lambda: 1, "b": lambda: 2}, 2, 1)


def test_ratios_are_of_medians_and_of_work() -> None:
    metadata, timing = module("metadata"), module("metadata_timing")
    timings = [
        timing.Timing("upkeep", "files and column_stats", 1, [9.0, 2.2, 1.0], [3.0]),
        timing.Timing("upkeep", "without", 1, [2.0], [2.0]),
    ]
    growths = [metadata.Growth("few", [100]), metadata.Growth("many", [150])]
    found = metadata.Found(1.0, timings, [1.0], growths)

    told = {target.name: (ratio, work) for target, ratio, work in found.targets()}

    assert told["upkeep: files and column_stats / without"] == pytest.approx((1.1, 1.5))
    assert told["memory: many / few"] == (1.5, None)
    verdicts = {row[0]: row[4] for row in found.sections({})[0][1][1:]}
    assert verdicts["memory: many / few"] == "missed"
