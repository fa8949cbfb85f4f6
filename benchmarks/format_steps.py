"""What telling the format takes: of files that a commit touches, and of commits before it."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from metadata_table import ManyFiles, some_of_each
from metadata_timing import Timing, say

import hudi_core as hudi
from hudi_core.actions.archive import archive
from hudi_core.services.opening import open_table

STEP, HISTORY, BOTH = "step", "history", "both"
NATIVE = "native"
FORMATS = ("iceberg", "delta")
KEPT = 30
"""Snapshots, or versions, that the format keeps while its history grows."""
_TOUCHED = 20
_SCHEMA = pa.schema({"id": pa.string(), "city": pa.string(), "ts": pa.int64()})
_OPTIONS = {"hoodie.parquet.small.file.limit": "0"}


def measure_touched(folder: Path, files: int, repeats: int) -> list[Timing]:
    """Measure upserts of 20 files of many, and the format's steps among them; then of more files.

    The table has two partitions, so that a manifest that names one of their files names very many.
    """
    found: list[Timing] = []
    for name in (NATIVE, *FORMATS):
        many = ManyFiles(folder / name, 2, files, every_column=True)
        many.make()
        if name != NATIVE:
            hudi.Table.open(str(many.path)).convert(name)
        more = () if name == NATIVE else (files // 50, files // 10)
        for touched in (_TOUCHED, *(count for count in more if count > _TOUCHED)):
            rows = some_of_each(many, touched)
            ending = "" if touched == _TOUCHED else f", {touched:,} files"
            whole, step, plan = (
                Timing(STEP, f"{name}: {one}{ending}") for one in ("upsert", "step", "plan")
            )
            for number in range(repeats + 1):
                _upsert(many.path, rows, (whole, step, plan) if number else ())
            found += [whole, plan] if name == NATIVE else [whole, step]
            say(f"{STEP:12} {step.variant:32} {step.median:8.4f} s of {whole.median:.4f} s")
    return found


def measure_history(folder: Path, commits: Sequence[int]) -> list[Timing]:
    """Measure steps after so many commits, of which the format keeps the last thirty."""
    found = []
    for name in FORMATS:
        path = folder / name
        table = hudi.Table.create(
            str(path),
            _SCHEMA,
            record_key="id",
            partition_by="city",
            format=name,
            options=_OPTIONS,
        )
        table.bulk_insert(_cities(0))
        for number in range(1, max(commits) + 6):
            timing = next(
                (
                    Timing(HISTORY, f"{name}: after {one:,} commits")
                    for one in commits
                    if number == one
                ),
                None,
            )
            if timing is not None:
                for more in range(5):
                    _upsert(path, _cities(number + more), (None, timing))
                found.append(timing)
                say(f"{HISTORY:12} {timing.variant:32} {timing.median:8.4f} s")
            else:
                _upsert(path, _cities(number), ())
            _forget(path)
    return found


def measure_both(folder: Path, repeats: int) -> list[Timing]:
    """Measure whole upserts of twenty files with the metadata table beside the format, and without.

    The native format without it is what both come on top of.
    """
    found = []
    tables: dict[str, tuple[Path, dict[str, str]]] = {}
    for name in (NATIVE, *FORMATS):
        for ending, flag in (("without", "false"), ("with metadata table", "true")):
            options = {**_OPTIONS, "hoodie.metadata.enable": flag}
            path = folder / f"{name}-{flag}"
            made = hudi.Table.create(
                str(path),
                _SCHEMA,
                record_key="id",
                partition_by="city",
                format=name,
                options=options,
            )
            made.bulk_insert(_cities(0))
            tables[f"{name}: {ending}"] = (path, options)
    timings = {variant: Timing(BOTH, variant) for variant in tables}
    for number in range(2 * repeats + 1):
        for variant, (path, options) in tables.items():
            timing = timings[variant] if number else None
            _upsert(path, _cities(number + 1), (timing, None), options)
    for variant, timing in timings.items():
        say(f"{BOTH:12} {variant:32} {timing.median:8.4f} s")
        found.append(timing)
    return found


def _upsert(
    path: Path,
    rows: pa.Table,
    told: Sequence[Timing | None],
    options: dict[str, str] | None = None,
) -> None:
    """Upsert rows; note what the whole took, then the format's step, then planning."""
    os.sync()
    began, worked = time.perf_counter(), time.process_time()
    result = hudi.Table.open(str(path), options).upsert(rows)
    took, work = time.perf_counter() - began, time.process_time() - worked
    planned = result.timings["stage"] + result.timings["tag"]
    for timing, seconds in zip(told, (took, result.timings["publish"], planned), strict=False):
        if timing is not None:
            timing.seconds.append(seconds)
            timing.work.append(work if seconds == took else seconds)
            timing.answer = len(result.statuses)


def _cities(number: int) -> pa.Table:
    """Return a row for each of twenty cities, each in a file of its own."""
    rows = [{"id": f"{city}", "city": f"city-{city:02}", "ts": number} for city in range(_TOUCHED)]
    return pa.Table.from_pylist(rows, _SCHEMA)


def _forget(path: Path) -> None:
    """Archive what is older than the commits to keep, and have the format forget it."""
    table = open_table(str(path), {})
    done = [one for one in table.timeline().instants if one.is_completed]
    if len(done) > KEPT:
        table.host.archive_instants(table.client, archive(table.client, done[:-KEPT]))
