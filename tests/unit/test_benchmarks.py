"""The benchmarks measure what took place, and keep the page around their results."""

from __future__ import annotations

import gc
import importlib
import io
import json
import os
import runpy
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.samples import IS_WHOLE, sampled
from tests.tables import FORMATS

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
QUICK = ("--only", "local", "--only", "deltalake", "--only", "limit")
"""What needs no Java."""


def run(program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a program: in this process, unless campaigns run as a whole.

    Most of a small run as a program is imports, and waiting for the disk: its sample runs in the
    process of the tests, which imported most of it before, and flushes nothing.
    """
    done = (as_program if IS_WHOLE else _run_here)(program, "--json", "--repeats", "1", *arguments)
    assert done.returncode == 0, done.stderr
    return done


def answers_of(
    tmp_path: Path, program: str, *arguments: str, page: str = ""
) -> tuple[dict[tuple[str, str], Any], dict[str, Any], str]:
    """Answers by case and variant, all that a program found, and its page."""
    scratch, written = tmp_path / "scratch", tmp_path / "README.md"
    scratch.mkdir()
    if page:
        written.write_text(page)
    done = run(program, *arguments, "--markdown", written, "--scratch", scratch)
    assert list(scratch.iterdir()) == []
    found = json.loads(done.stdout)
    assert all(one["ratio"] > 0 for one in found["targets"])
    answers = {(one["case"], one["variant"]): one["answer"] for one in found["timings"]}
    return answers, found, written.read_text()


def as_program(program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own."""
    return subprocess.run(
        [sys.executable, FOLDER / program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def _run_here(program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    words = [str(FOLDER / program), *map(str, arguments)]
    told, said = io.StringIO(), io.StringIO()
    code: object = 0
    with _undisturbed(words), redirect_stdout(told), redirect_stderr(said):
        try:
            runpy.run_path(words[0], run_name="__main__")
        except SystemExit as end:
            code = end.code
    if code is not None and not isinstance(code, int):  # a text, which Python prints, and ends by 1
        said.write(str(code))
        code = 1
    return subprocess.CompletedProcess(words, code or 0, told.getvalue(), said.getvalue())


@contextmanager
def _undisturbed(words: list[str]) -> Iterator[None]:
    """Let a program have its arguments, no disk to wait for, and its own garbage alone."""
    with pytest.MonkeyPatch.context() as patched, warnings.catch_warnings():
        warnings.simplefilter("default")
        patched.setattr(sys, "argv", words)
        patched.setattr(sys, "path", [str(FOLDER), *sys.path])
        for flush in ("sync", "fsync"):
            patched.setattr(os, flush, lambda *_: None)
        gc.freeze()
        try:
            yield
        finally:
            gc.unfreeze()


def some_cases(*few: str) -> tuple[str, ...]:
    """The arguments for a few cases; for all of them where campaigns run as a whole."""
    return () if IS_WHOLE else ("--cases", *few)


def module(name: str) -> Any:
    """Import a module of the folder, which is no package, as its programs do."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "path", [str(FOLDER), *sys.path])
        return importlib.import_module(name)


PAGE = "before\n<!-- results:begin -->\nold\n<!-- results:end -->\nafter\n"


# --- a benchmark each: its cases run, and who answers the same question finds the same


def upserts(tmp_path: Path) -> None:
    """Every variant holds the rows it should, and the page around the results stays."""
    page, scratch = tmp_path / "README.md", tmp_path / "scratch"
    page.write_text(PAGE)
    scratch.mkdir()
    sizes = ("--rows", "2000", "--slow-cap", "100", "--only", "pyiceberg", *QUICK)
    done = run("run.py", *sizes, "--markdown", page, "--scratch", scratch)
    assert list(scratch.iterdir()) == []
    results = {(one["case"], one["variant"]): one for one in json.loads(done.stdout)["results"]}
    every = ("hudi-core-local", "deltalake", "pyiceberg", "limit")
    assert results.keys() == {
        *(("bulk_insert", name) for name in every[:3]),
        *((case, name) for case in ("upsert_1", "upsert_10") for name in every),
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
    text = page.read_text()
    assert text.startswith("before\n<!-- results:begin -->\n")
    assert text.endswith("\n<!-- results:end -->\nafter\n")
    assert "old" not in text.splitlines()
    assert "### upsert_10" in text
    assert "| deltalake | a folder per city |" in text


def more_upserts(tmp_path: Path) -> None:
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
    cases = ",".join([*(case for case, _, _ in expected), "memory"])
    only = ("--only", "memory" if IS_WHOLE else "memory/8", *QUICK)
    done = run("run.py", "--cases", cases, "--rows", "4000", "--scratch", tmp_path, *only)
    document = json.loads(done.stdout)
    results = {(one["case"], one["variant"]): one for one in document["results"]}
    for case, rows, changed in expected:
        for variant in ("hudi-core-local", "deltalake"):
            found = results[case, variant]["contents"]
            assert (found["rows"], found["changed"], found["late"]) == (rows, changed, 0)
    assert [one["groups"] for one in document["memory"]] == ([1, 8] if IS_WHOLE else [8])
    assert {one["verdict"] for one in document["targets"]} >= {"not measured"}


def connector(tmp_path: Path) -> None:
    few = some_cases("unchanged-native", "thrift-pages")
    answers, found, page = answers_of(tmp_path, "connector.py", "--scale", "0.01", *few)
    assert len(answers) == (21 if IS_WHOLE else 6)
    for format_ in FORMATS if IS_WHOLE else ("native",):
        plans = [one for (case, _), one in answers.items() if case == f"unchanged-{format_}"]
        again, opened, filtered_again, filtered = plans
        assert again == opened > filtered_again == filtered > 0
    if IS_WHOLE:
        assert answers["all-splits", "background"] == answers["all-splits", "synchronous"] == 2000
        assert 0 < answers["first-splits", "background"] <= 2000
        narrow = {rows for (case, _), rows in answers.items() if case == "two-of-22-columns"}
        assert narrow == {20_000}
    assert answers["thrift-pages", "pages"] == answers["thrift-pages", "generic"] > 0
    assert all(one["work"] > 0 for one in found["targets"])
    assert "### thrift-pages" in page


def formats(tmp_path: Path) -> None:
    few = some_cases("step", "listing")
    answers, _, page = answers_of(tmp_path, "formats.py", "--scale", "0.005", *few)
    assert answers["step", "native: plan"] == 20
    for name in ("iceberg", "delta"):
        assert answers["step", f"{name}: step"] == 20
        assert answers["listing", f"{name}: ours"] >= answers["listing", f"{name}: library"] >= 100
        if IS_WHOLE:
            assert answers["history", f"{name}: after 5 commits"] == 20
            assert answers["both", f"{name}: without"] == 20
    if IS_WHOLE:
        assert answers["planning", "sql: plan"] == answers["planning", "delta: plan"] >= 1000
    assert "### listing" in page


def metadata(tmp_path: Path) -> None:
    cases = ("listing", "planning", "lookups", "cached-lookups", "bloom")[: None if IS_WHOLE else 3]
    sizes = ("--scale", "0.002", "--cases", *cases)
    given = PAGE.replace("results", "metadata")
    answers, _, page = answers_of(tmp_path, "metadata.py", *sizes, page=given)
    assert answers["listing", "open, list one partition"] == 100
    assert answers["listing", "storage, by pyarrow"] == 202
    assert {answer for (case, _), answer in answers.items() if case == "planning"} == {20}
    assert {answer for (case, _), answer in answers.items() if "lookups" in case} == {9, 900}
    if IS_WHOLE:
        assert answers["cached lookups", "record index, sorted cache"] == 900
        assert {answer for (case, _), answer in answers.items() if case == "bloom"} == {10}
    assert "### planning" in page
    assert page.startswith("before\n")
    assert page.endswith("after\n")


def reads(tmp_path: Path) -> None:
    few = some_cases("whole", "one-partition", "changes-of-an-upsert")
    answers, found, page = answers_of(tmp_path, "reads.py", "--scale", "0.001", *few)
    assert len(answers) == (17 if IS_WHOLE else 9)
    for case in ("changes-of-an-upsert", *(("changes-of-a-delete",) if IS_WHOLE else ())):
        feed, net = (answers[case, name] for name in ("change feed", "incremental with deletes"))
        assert feed == net == answers["whole", "hudi-core"] / 100
    assert len({answer for (case, _), answer in answers.items() if case == "one-partition"}) == 1
    if IS_WHOLE:
        assert {answer for (case, _), answer in answers.items() if case == "by-spark"} == {2000}
    assert all(one["work"] > 0 for one in found["targets"])
    assert "### one-partition" in page


def reads_with_logs(tmp_path: Path) -> None:
    few = some_cases("keys", "one-slice", "avro-block", "memory")
    answers, found, page = answers_of(tmp_path, "merge_on_read.py", "--scale", "0.002", *few)
    assert answers["keys", "hudi-core"] == answers["keys", "hudi-rs"] == 2000
    assert answers["one-slice", "hudi-core"] == answers["one-slice", "base files alone"] == 20
    assert answers["avro-block", "Avro"] == answers["avro-block", "Parquet"] == 1000
    assert all(one["work"] > 0 for one in found["targets"])
    assert "### memory" in page


def writes_of_logs(tmp_path: Path) -> None:
    few = some_cases("update_1", "compaction", "split_1")
    answers, found, page = answers_of(tmp_path, "log_writes.py", "--scale", "0.002", *few)
    assert set(answers.values()) == {1}
    assert all(one["work"] > 0 for one in found["targets"])
    assert "### compaction" in page


def small_commits(tmp_path: Path) -> None:
    case = "small_commits_s3" if IS_WHOLE else "small_commits"
    chosen = ("--cases", case, "--scale", "0.005")
    answers, _, page = answers_of(tmp_path, "small_commits.py", *chosen)
    ours = ("native", "native, no metadata table", "iceberg", "delta")
    names = (*ours, "native, with table services", "native, in logs", "deltalake", "pyiceberg")
    assert answers == {(case, name): 20_000 for name in names}
    assert f"### {case}" in page


def wide(tmp_path: Path) -> None:
    answers, _, page = answers_of(tmp_path, "wide.py", "--scale", "0.02")
    assert {answer for (case, _), answer in answers.items() if case == "wide"} == {1000}
    assert "### wide" in page


def scale(tmp_path: Path) -> None:
    steps = ("open", "plan_both", "upsert")
    sizes = ("--files", "300", "600", "--commits", "10", "--scratch", tmp_path)
    found = json.loads(run("scale.py", *sizes, "--steps", *steps).stdout)["steps"]
    assert {(one["name"], one["files"]) for one in found} == set(product(steps, (300, 600)))
    assert {one["answer"] for one in found if one["name"] == "plan_both"} == {1}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "runs",
    [
        *(upserts, more_upserts, connector, formats, metadata, reads, reads_with_logs),
        *(writes_of_logs, small_commits),
        *((wide, scale) if IS_WHOLE else ()),
    ],
    ids=lambda one: one.__name__,
)
def test_every_case_runs(runs: Callable[[Path], None], tmp_path: Path) -> None:
    runs(tmp_path)


# --- what all of them share


def test_a_pattern_that_fits_nothing_is_refused(tmp_path: Path) -> None:
    done = _run_here("run.py", "--only", "paimon", "--scratch", tmp_path)
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


def test_a_step_may_take_a_tenth_or_a_tenth_of_a_second() -> None:
    formats, timing = module("formats"), module("metadata_timing")
    timings = [
        timing.Timing("step", f"{name}: {of}", 20, [seconds], [1.0])
        for name, of, seconds in (
            ("iceberg", "upsert", 0.5),
            ("iceberg", "step", 0.09),
            ("delta", "upsert", 4.0),
            ("delta", "step", 0.5),
            ("native", "upsert", 3.0),
            ("native", "plan", 1.2),
        )
    ]
    rows = formats.Found(1.0, timings, [1.0]).sections({})[0][1][1:]
    verdicts = {row[0]: (row[2], row[3]) for row in rows}
    assert verdicts["step: iceberg: step / iceberg: upsert"] == ("0.200", "met")
    assert verdicts["step: delta: step / delta: upsert"] == ("0.100", "missed")
    assert verdicts["step: native: plan / native: upsert"] == ("0.500", "met")


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
