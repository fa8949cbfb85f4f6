"""Calls beside their yardstick, and what they took: by the clock, and in work of the process."""

from __future__ import annotations

import gc
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from report import seconds_text


@dataclass
class Timing:
    """The calls of one variant of a case; a list has one number for each.

    ``case``, ``variant``: what was measured. ``answer``: what it returned each time: a count, which
    shows that it did its work. ``seconds``, ``work``: by the clock; and of processors, of all
    threads.
    """

    case: str
    variant: str
    answer: int = 0
    seconds: list[float] = field(default_factory=list)
    work: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def median_work(self) -> float:
        return statistics.median(self.work)

    def call(self, made: Callable[[], int], flush: bool = False) -> None:
        """Call once, and note what it took.

        ``flush``: whether others' data is to be on the disk before: for calls that write.
        """
        gc.collect()
        if flush:
            os.sync()
        began, worked = time.perf_counter(), time.process_time()
        self.answer = made()
        self.seconds.append(time.perf_counter() - began)
        self.work.append(time.process_time() - worked)


def measure(
    case: str, calls: Mapping[str, Callable[[], int]], repeats: int, expected: int | None = None
) -> list[Timing]:
    """Call variants in turn, round after round, each round another one first; the first is dropped.

    ``expected``: what each of them has to return.
    """
    timings = {name: Timing(case, name) for name in calls}
    names = list(calls)
    for number in range(repeats + 1):
        start = number % len(names)
        for name in names[start:] + names[:start]:
            if number == 0:
                Timing(case, name).call(calls[name])
                continue
            timings[name].call(calls[name])
            if expected is not None and timings[name].answer != expected:
                raise AssertionError(f"{case}: {name} found {timings[name].answer}, not {expected}")
    found = list(timings.values())
    for one in found:
        say(f"{case:12} {one.variant:32} {one.median:8.4f} s")
    return found


def ratio_of(some: Sequence[float], others: Sequence[float]) -> float:
    """Return how many times as long some calls took as others.

    Calls of one round follow each other, so that what slows the machine for a while slows both: the
    ratio is the median of those of the rounds. Where there are not as many of the one as of the
    other, it is that of their medians.
    """
    if len(some) == len(others):
        return statistics.median(one / other for one, other in zip(some, others, strict=True))
    return statistics.median(some) / statistics.median(others)


def table_of(timings: Sequence[Timing]) -> Iterable[list[str]]:
    """Yield the results of one case, the fastest first."""
    yield ["variant", "median s", "min", "max", "processor s", "answer"]
    for one in sorted(timings, key=lambda timing: timing.median):
        texts = [one.median, min(one.seconds), max(one.seconds), statistics.median(one.work)]
        yield [one.variant, *map(_short, texts), f"{one.answer:,}"]


def _short(seconds: float) -> str:
    return f"{seconds:.4f}" if seconds < 0.1 else seconds_text(seconds)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
