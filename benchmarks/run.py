"""Measure bulk_insert and upsert against plain Spark, deltalake and pyiceberg, on the same rows.

``make bench`` runs it; ``README.md`` says what is measured and how, and holds the results.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from cases import CASES, MEMORY, SUITES, names_of
from delta_peer import Delta
from hudi_peer import HudiSession, HudiSpark, hudi_session, peer_versions
from iceberg_peer import Iceberg
from limit import Limit
from measure import Result, Run, able_in
from memory import GROUPS, MemoryResult, measure_memory
from ours import Ours
from page import causes, write_section
from report import Machine, Report
from spark_peer import SparkFiles
from variant import Variant

HERE = Path(__file__).resolve().parent
SCRATCH = HERE.parent / ".bench"
SLOW_CAP = 250_000


def main() -> int:
    arguments = parse()
    SCRATCH.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=arguments.scratch or SCRATCH, prefix="run-"))
    session = hudi_session(folder / "hudi-spark")
    try:
        return measure(arguments, folder, session)
    finally:
        session.stop()
        shutil.rmtree(folder)


def measure(arguments: argparse.Namespace, folder: Path, session: HudiSession) -> int:
    variants = beside_hudi_spark(session) if arguments.hudi_spark else all_variants()
    names = chosen_cases(arguments.cases, arguments.only)
    chosen = {
        case: [
            one
            for one in able_in(case, variants)
            if wanted(f"{case.name}/{one.name}", arguments.only)
        ]
        for case in CASES
        if case.name in names
    }
    groups = [
        count for count in GROUPS if MEMORY in names and wanted(memory_name(count), arguments.only)
    ]
    if not any(chosen.values()) and not groups:
        print("nothing is left to measure; --list shows what there is", file=sys.stderr)
        print("--cases and --only choose from it", file=sys.stderr)
        return 2
    if arguments.list:
        for case, some in chosen.items():
            for variant in some:
                print(f"{case.name}/{variant.name}")
        for count in groups:
            print(memory_name(count))
        return 0
    run = Run(folder, arguments.rows, arguments.repeats, arguments.slow_cap)
    results: list[Result] = []
    for case, some in chosen.items():
        if some:
            results += run.run(case, some)
    memory: list[MemoryResult] = [
        measure_memory(folder / "memory", arguments.rows, arguments.repeats, count)
        for count in groups
    ]
    page = arguments.markdown or HERE / "README.md"
    report = Report(
        Machine.here(peer_versions(session)),
        arguments.rows,
        arguments.repeats,
        run.load_averages,
        results,
        memory,
        variants,
        causes(page),
    )
    print(report.json() if arguments.json else report.text())
    if arguments.markdown:
        write_section(page, report.section, report.markdown())
    return 0


def chosen_cases(cases: str | None, only: Sequence[str] | None) -> list[str]:
    """Return names of cases: those asked for, or the short ones and what ``only`` names."""
    if cases is not None:
        return names_of(cases)
    named = [pattern.partition("/")[0] for pattern in only or () if "/" in pattern]
    return names_of(",".join(["short", *(name for name in named if name in names_of("*"))]))


def memory_name(groups: int) -> str:
    """Return the name of a measurement of memory, as ``--only`` and ``--list`` have it."""
    return f"{MEMORY}/{groups}-groups"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--rows", type=int, default=2_000_000, help="rows of the table (default: %(default)s)")
    add("--repeats", type=int, default=3, help="rounds that count (default: %(default)s)")
    add(
        "--cases",
        metavar="NAMES",
        help=f"cases or patterns separated by commas; {', '.join(SUITES)} mean several "
        "(default: short, and those that --only names)",
    )
    add("--only", action="append", metavar="PATTERN", help="case/variant, such as 'upsert_1/*'")
    add("--list", action="store_true", help="list cases and variants, and measure nothing")
    add("--skip-slow", dest="slow_cap", action="store_const", const=0, help="no slow upserts")
    add(
        "--slow-cap",
        type=int,
        metavar="ROWS",
        help="largest batch that a slow variant upserts (default: %(default)s)",
    )
    add(
        "--hudi-spark",
        action="store_true",
        help="measure Apache Hudi's own Spark runtime, and this project beside it",
    )
    add("--json", action="store_true", help="write JSON to the standard output")
    add("--markdown", type=Path, metavar="FILE", help="refresh the results section of this file")
    add(
        "--scratch", type=Path, metavar="FOLDER", help="where the tables are made (default: .bench)"
    )
    parser.set_defaults(slow_cap=SLOW_CAP)
    arguments = parser.parse_args()
    if arguments.rows < 1000 or arguments.repeats < 1:
        parser.error("at least 1000 rows and one repeat are needed")
    return arguments


def all_variants() -> Sequence[Variant]:
    ours = Ours("local")
    return (
        Limit(ours),
        ours,
        Ours("spark"),
        SparkFiles(partitioned=False),
        SparkFiles(partitioned=True),
        SparkFiles(partitioned=True, meta_columns=True),
        Delta(),
        Iceberg(),
    )


def beside_hudi_spark(session: HudiSession) -> Sequence[Variant]:
    return tuple(
        variant
        for metadata in (False, True)
        for variant in (
            Ours("local", metadata=metadata),
            Ours("spark", metadata=metadata),
            HudiSpark(session, metadata=metadata),
        )
    )


def wanted(name: str, patterns: Sequence[str] | None) -> bool:
    return not patterns or any(
        fnmatchcase(name, pattern) or fnmatchcase(name, f"*{pattern}*") for pattern in patterns
    )


if __name__ == "__main__":
    sys.exit(main())
