"""Every crash at every step, random histories, and many writers at once: ``make prove``.

Prints a table with the runs, the seconds of the processor and the violations of every action and
format, and ends with 1 when a promise was broken or a step is not on record. Random histories and
writers follow, each of which ends at the first broken promise with what led there.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.crash import many_writers, random_commits, random_past
from tests.crash.campaign import (
    HOWS,
    STEPS_FILE,
    all_cases,
    count,
    count_requests,
    run,
    sample,
    scenes,
    steps_by_name,
    workers,
)
from tests.crash.counting_storage import pinned
from tests.crash.journal import Journal
from tests.crash.kinds import KINDS, LOGGED_KINDS, STORED
from tests.crash.rig import Case, Verdict
from tests.crash.s3_campaign import S3_FORMATS, S3_STEPS_FILE, requests_by_name, s3_cases, s3_scenes
from tests.crash.s3_rig import S3Verdict
from tests.crash.s3_scenes import S3_SCENES, S3Case
from tests.crash.scenes import SCENES
from tests.crash.table_states import run_histories
from tests.crash.tables import ALL_FORMATS

_FORMATS = (*ALL_FORMATS, *S3_FORMATS)
_SCENES = tuple({**SCENES, **S3_SCENES})
_PARTS = ("crashes", "histories", "past", "commits", "writers")
_HISTORIES: Final = 100
_COMMITS: Final = 500
_SEEDS: Final = 10
_SHOWN = 5
_TOLD_EVERY = 500


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaigns; return the exit status."""
    options = _parser().parse_args(arguments)
    status = crash(options) if "crashes" in options.parts else 0
    for part in options.parts:
        started = time.monotonic()
        for line in _OTHERS[part]() if part in _OTHERS else ():
            print(line, flush=True)
        if part in _OTHERS:
            print(f"{part}: {(time.monotonic() - started) / 60:.1f} minutes", flush=True)
    return status


def _histories() -> Iterator[str]:
    for kinds in (KINDS, LOGGED_KINDS):
        done = run_histories(_HISTORIES, is_new=True, kinds=kinds)
        yield f"{done.pop('histories')} histories of a state machine: {dict(sorted(done.items()))}"


def _commits() -> Iterator[str]:
    yield from random_commits.campaign(ALL_FORMATS, _COMMITS, [1])
    kinds = [*(one for one in KINDS if one != STORED), *LOGGED_KINDS]
    yield from random_commits.campaign(
        ALL_FORMATS, _COMMITS // 5, [1, 2], is_tight=True, kinds=kinds
    )


_OTHERS: Final[Mapping[str, Callable[[], Iterator[str]]]] = {
    "histories": _histories,
    "past": lambda: random_past.campaign(
        ALL_FORMATS,
        random_past.STEPS // len(random_past.SEEDS) + 1,
        random_past.SEEDS,
        (STORED, *LOGGED_KINDS),
    ),
    "commits": _commits,
    "writers": lambda: many_writers.campaign(many_writers.ALL_FORMATS, _SEEDS, 4, 50),
}


def crash(options: argparse.Namespace) -> int:
    """Let writers die at every step; return the exit status."""
    started = time.monotonic()
    with workers(options.jobs) as pool:
        counted = count(pool, scenes(options.formats, options.scenes))
        on_store = count_requests(pool, s3_scenes(options.formats, options.scenes))
        unknown = pinned(STEPS_FILE, steps_by_name(counted))
        unknown |= pinned(S3_STEPS_FILE, requests_by_name(on_store))
        cases: list[Case | S3Case] = []
        cases += all_cases(counted, options.hows, options.second, is_whole=options.whole)
        cases += s3_cases(on_store, is_whole=options.whole)
        if options.sample is not None:
            cases = sample(cases, options.sample)
        journal = Journal(options.journal)
        verdicts, left = journal.split(cases)
        try:
            for verdict in run(pool, left):
                verdicts.append(verdict)
                journal.write(verdict)
                if verdict.violations:
                    print(f"{verdict.case}: {_short(verdict)}", flush=True)
                if not len(verdicts) % _TOLD_EVERY:
                    print(f"{len(verdicts)} of {len(cases)} runs", file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            pool.terminate()
            print(f"stopped after {len(verdicts)} of {len(cases)} runs")
    print(_table([*(one.verdict for one in counted), *on_store], verdicts))
    for name, said in sorted(unknown.items()):
        print(f"the steps of {name} are not those on record: {'; '.join(said)}")
    broken = sum(1 for verdict in verdicts if verdict.violations)
    minutes = (time.monotonic() - started) / 60
    print(f"{len(verdicts)} runs in {minutes:.1f} minutes, {broken} with violations")
    return 1 if broken or unknown or len(verdicts) < len(cases) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make prove", description=__doc__)
    parser.add_argument(
        "--parts", nargs="+", choices=_PARTS, default=_PARTS, help="all but crashes have no options"
    )
    parser.add_argument("--formats", nargs="+", choices=_FORMATS, default=_FORMATS)
    parser.add_argument("--scenes", nargs="+", choices=_SCENES, default=_SCENES)
    parser.add_argument("--hows", nargs="+", choices=HOWS, default=HOWS)
    parser.add_argument(
        "--whole", action="store_true", help="let every step fail in every way, twice the runs"
    )
    parser.add_argument("--second", type=int, default=20, help="second crashes per scene")
    parser.add_argument("--sample", type=int, help="run so many of the cases, always the same")
    parser.add_argument(
        "--journal", type=Path, help="a file: what it says was run is not run again"
    )
    parser.add_argument("--jobs", type=int, help="processes; by default one for each processor")
    return parser


def _short(verdict: Verdict | S3Verdict) -> str:
    return " | ".join(one[:600] for one in verdict.violations[:_SHOWN])


def _table(counted: Iterable[Verdict | S3Verdict], verdicts: Iterable[Verdict | S3Verdict]) -> str:
    groups: dict[tuple[str, str], list[Verdict | S3Verdict]] = defaultdict(list)
    for verdict in verdicts:
        groups[verdict.case.format_name, verdict.case.scene].append(verdict)
    steps = {(one.case.format_name, one.case.scene): len(one.steps) for one in counted}
    lines = [
        f"{'format':11} {'action':20} {'steps':>6} {'runs':>6} {'cpu s':>7} {'violations':>10}"
    ]
    for (format_name, scene), found in groups.items():
        seconds = sum(one.cpu_s for one in found)
        broken = sum(1 for one in found if one.violations)
        known = steps[format_name, scene]
        lines.append(
            f"{format_name:11} {scene:20} {known:6} {len(found):6} {seconds:7.1f} {broken:10}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
