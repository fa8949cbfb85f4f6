"""Measuring: cases, interleaved repeats, and what becomes of the seconds."""

from __future__ import annotations

import gc
import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cases import Case
from limit import Limit
from variant import Contents, Variant, restore, verify
from workload import Batch, Source, make_base, make_upsert

ONCE_ABOVE = 25_000
"""A slow variant upserts batches of more rows in one round only, without a warm-up."""


@dataclass
class Result:
    """The seconds of one variant in one case, and what its table held in the end."""

    case: str
    variant: str
    seconds: list[float] = field(default_factory=list)
    warm_up: float | None = None
    contents: Contents | None = None
    skipped: str | None = None

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


class Run:
    """One run: the same rows for all, one after the other, round after round.

    ``folder``: scratch space; must not exist. ``rows``: rows of the table. ``repeats``: rounds that
    count; one more is made before them and discarded. ``slow_cap``: largest upsert batch, in rows,
    that a slow variant is given.
    """

    def __init__(self, folder: Path, rows: int, repeats: int, slow_cap: int) -> None:
        self.folder = folder
        self.rows = rows
        self.repeats = repeats
        self.slow_cap = slow_cap
        self.load_averages: list[float] = []
        self._bases: dict[Source, Batch] = {}

    def run(self, case: Case, variants: Sequence[Variant]) -> list[Result]:
        """Measure every variant in one case."""
        source = case.source(self.rows)
        base = self._base(source)
        able = able_in(case, variants)
        if case.loads:
            return self._rounds(case, able, lambda one: self._loads(one, source), ())
        batch = make_upsert(self.folder / "input" / case.name, source, case.change(source))
        quick = [one for one in able if not one.slow or batch.rows <= self.slow_cap]
        for variant in quick:
            self._make_pristine(variant, source, base, batch)
        once = [one.name for one in quick if one.slow and batch.rows > ONCE_ABOVE]
        results = self._rounds(case, quick, lambda one: self._upserts(one, source, batch), once)
        reason = f"slow: {batch.rows:,} rows are more than --slow-cap {self.slow_cap:,}"
        skipped = [variant for variant in able if variant not in quick]
        return [*results, *(Result(case.name, one.name, skipped=reason) for one in skipped)]

    def _base(self, source: Source) -> Batch:
        if source not in self._bases:
            self._bases[source] = make_base(self.folder / "input" / source.name, source)
        return self._bases[source]

    def _rounds(
        self,
        case: Case,
        variants: Sequence[Variant],
        timed: Callable[[Variant], tuple[float, Contents]],
        once: Sequence[str],
    ) -> list[Result]:
        results = [Result(case.name, variant.name) for variant in variants]
        pairs = list(zip(variants, results, strict=True))
        for number in range(self.repeats * case.rounds + 1):
            self.load_averages.append(os.getloadavg()[0])
            for variant, result in _rotated(pairs, number):
                if variant.name in once and number != 1:
                    continue
                seconds, contents = timed(variant)
                result.contents = contents
                if number == 0:
                    result.warm_up = seconds
                else:
                    result.seconds.append(seconds)
                label = f"round {number}" if number else "warm-up"
                _say(f"{case.name:14} {label:8} {variant.name:24} {seconds:8.3f} s")
        return results

    def _loads(self, variant: Variant, source: Source) -> tuple[float, Contents]:
        table = self._table(variant, source)
        shutil.rmtree(table, ignore_errors=True)
        seconds = _time(lambda: variant.load(self._base(source), table))
        contents = verify(variant, table, source.rows, changed=0)
        shutil.rmtree(table)
        return seconds, contents

    def _upserts(self, variant: Variant, source: Source, batch: Batch) -> tuple[float, Contents]:
        table = self._table(variant, source)
        restore(self._pristine(variant, source), table)
        seconds = _time(lambda: variant.upsert(batch, table))
        if isinstance(variant, Limit):  # it changes nothing
            contents = verify(variant, table, source.rows, changed=0)
        else:
            contents = verify(variant, table, source.rows + batch.inserts, changed=batch.kept)
        shutil.rmtree(table)
        return seconds, contents

    def _make_pristine(self, variant: Variant, source: Source, base: Batch, batch: Batch) -> None:
        """Load a table once, where it will be upserted: some formats keep absolute paths."""
        pristine, table = self._pristine(variant, source), self._table(variant, source)
        if not pristine.exists():
            shutil.rmtree(table, ignore_errors=True)
            variant.load(base, table)
            verify(variant, table, source.rows, changed=0)
            shutil.copytree(table, pristine)
        if isinstance(variant, Limit):
            restore(pristine, table)
            variant.find_touched(batch, table)

    def _table(self, variant: Variant, source: Source) -> Path:
        return self.folder / "tables" / source.name / variant.name

    def _pristine(self, variant: Variant, source: Source) -> Path:
        return self.folder / "pristine" / source.name / variant.name


def able_in(case: Case, variants: Sequence[Variant]) -> list[Variant]:
    """Return the variants that a case measures."""
    able = [one for one in variants if (one.loads if case.loads else one.upserts)]
    return [one for one in able if case.variants is None or one.name in case.variants]


def _time(call: Callable[[], None]) -> float:
    # what others left to be written or collected is not this one's work
    gc.collect()
    os.sync()
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _rotated(
    pairs: Sequence[tuple[Variant, Result]], number: int
) -> Iterator[tuple[Variant, Result]]:
    """Yield all pairs, another one first in every round: none always comes after the same one."""
    for position in range(len(pairs)):
        yield pairs[(position + number) % len(pairs)]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
