"""Executors are killed amid writes and services; tasks run twice at a time; nothing is lost."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import psutil
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import hudi_core as hudi
from hudi_core.errors import CommitStateUnknownError, HudiError
from tests.cluster.sessions import counted_events, session
from tests.cluster.standalone import Cluster, killed
from tests.cluster.written import SERVICES, STEPS, STORES, made, require_right
from tests.crash.check_table import ACKED, FAILED, OPEN, Tried
from tests.crash.place import Place
from tests.crash.rows import as_table, putting
from tests.crash.tables import OPTIONS
from tests.tables import FORMATS

SEED = int(os.environ.get("HUDI_SEED", "15"))
COUNT = int(os.environ.get("HUDI_STEPS", "8"))
LONGEST_S = 3.0
PAUSE_S = 3.5


@dataclass
class Strikes:
    """What is done to executors while a step runs.

    ``chance``: draws who is struck, how and when. ``done``: how often each was.
    """

    cluster: Cluster
    chance: Random
    done: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def during(self) -> Iterator[None]:
        """Strike once or twice while something runs."""
        over = threading.Event()
        plan = [
            (self.chance.uniform(0.05, LONGEST_S), self.chance.choice(KINDS), self.chance.random())
            for _ in range(self.chance.choice((1, 1, 2)))
        ]

        def strike() -> None:
            for delay, kind, which in sorted(plan):
                if over.wait(delay):
                    return
                executors = self.cluster.executors()
                if executors:
                    self._strike(kind, executors[int(which * len(executors))])

        thread = threading.Thread(target=strike)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _strike(self, kind: str, executor: psutil.Process) -> None:
        self.done[kind] += 1
        if kind == "executor":
            killed(executor)
            return
        below = self.cluster.python_workers(executor)
        if kind == "python":
            for one in below:
                killed(one)
            return
        _send(below, signal.SIGSTOP)
        try:
            time.sleep(PAUSE_S)
        finally:
            _send(below, signal.SIGCONT)


KINDS = ("executor", "executor", "python", "pause")


def _send(processes: list[psutil.Process], sign: signal.Signals) -> None:
    for one in processes:
        try:
            one.send_signal(sign)
        except psutil.NoSuchProcess:
            continue


@pytest.fixture(scope="module")
def spark(
    standalone: Cluster, tmp_path_factory: pytest.TempPathFactory, counted: list[str]
) -> Iterator[SparkSession]:
    """Give a session whose tasks are counted in the end."""
    standalone.wait_until_idle()
    folder = tmp_path_factory.mktemp("driver")
    found = session(standalone.url, folder)
    standalone.wait_for_executors(2)
    yield found
    found.stop()
    counts = sorted(counted_events(folder).items())
    counted.append("executors killed: " + ", ".join(f"{count} {kind}" for kind, count in counts))


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("place", STORES, indirect=True)
@pytest.mark.timeout(900)
def test_executors_are_killed(
    steps: str,
    format_name: str,
    place: Place,
    spark: SparkSession,
    standalone: Cluster,
    counted: list[str],
    request: pytest.FixtureRequest,
) -> None:
    store = "local" if isinstance(getattr(place, "path", None), Path) else "s3"
    print(f"seed {SEED}")
    made(place, format_name)
    strikes = Strikes(standalone, Random(f"{SEED}-{format_name}-{store}-{steps}"))
    tried: list[Tried] = []
    began = time.monotonic()
    for number in range(COUNT):
        step = STEPS[steps](SEED, number)
        one = Tried(step.name, step.effect)
        tried.append(one)
        with strikes.during():
            one.told = outcome(lambda: step.run(opened(place), spark))  # noqa: B023
    seconds = time.monotonic() - began

    # no task of a write that is over goes on
    for executor in standalone.executors():
        killed(executor)
    last = Tried("last", putting({"last": ("y", 8)}), ACKED)
    opened(place).upsert(as_table({"last": ("y", 8)}))
    opened(place).clean()
    require_right(place, [*tried, last])
    counts = Counter(one.told for one in tried)
    counted.append(
        f"{steps}, {format_name} on {store}, seed {SEED}: {len(tried)} steps in {seconds:.0f} s, "
        f"{counts[ACKED]} acknowledged, {counts[FAILED]} failed, {counts[OPEN]} unknown; "
        + ", ".join(f"{count} x {kind}" for kind, count in sorted(strikes.done.items()))
    )
    assert counts[ACKED] >= COUNT / 2, "Spark makes lost tasks good"
    assert sum(strikes.done.values()) >= COUNT / 2, "too few were struck"


def opened(place: Place) -> hudi.Table:
    return place.open({**OPTIONS, **SERVICES})


def outcome(step: object) -> str:
    """How a step ends for its caller."""
    assert callable(step)
    try:
        step()
    except CommitStateUnknownError:
        return OPEN
    except (HudiError, PySparkException) as error:
        print(type(error).__name__, error)
        return FAILED
    return ACKED
