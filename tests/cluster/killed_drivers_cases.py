"""Drivers are killed amid writes and services, and new ones go on; nothing is lost or left."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import psutil
import pytest

from tests.cluster.sessions import counted_events
from tests.cluster.standalone import Cluster, kill_tree, killed
from tests.cluster.written import (
    SERVICES,
    STEPS,
    STORES,
    made,
    require_right,
    require_right_rows,
)
from tests.crash.check_table import ACKED, FAILED, OPEN, Tried
from tests.crash.place import Place, S3Place
from tests.crash.rows import as_table, putting
from tests.crash.tables import OPTIONS
from tests.tables import FORMATS

SEED = int(os.environ.get("HUDI_SEED", "15"))
DRIVERS = int(os.environ.get("HUDI_DRIVERS", "3"))
LONGEST_S = 4.0
_COUNT = 4
_PATIENCE_S = 240
_WORDS = {"acked": ACKED, "failed": FAILED, "unknown": OPEN}


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("place", STORES, indirect=True)
@pytest.mark.timeout(900)
def test_drivers_are_killed(
    steps: str,
    format_name: str,
    place: Place,
    standalone: Cluster,
    counted: list[str],
    tmp_path: Path,
) -> None:
    store = "s3" if isinstance(place, S3Place) else "local"
    print(f"seed {SEED}")
    chance = Random(f"{SEED}-{format_name}-{store}-{steps}-drivers")
    made(place, format_name)
    tried: dict[int, Tried] = {}
    ways = Counter[str]()
    began = time.monotonic()
    for _ in range(DRIVERS):
        standalone.wait_until_idle()
        first = len(tried)
        diary = tmp_path / f"diary-{first}"
        process = started(standalone, place, diary, tmp_path, first, steps)
        try:
            strike(process, diary, chance, ways, standalone)
        finally:
            if process.poll() is None:
                kill_tree(psutil.Process(process.pid))
            process.wait(60)
        for number, word in read(diary).items():
            step = STEPS[steps](SEED, number)
            tried[number] = Tried(step.name, step.effect, word)
        standalone.wait_until_idle()
        # what a dead driver has begun is there wholly, or not at all
        require_right_rows(place, list(tried.values()))
    seconds = time.monotonic() - began

    last = Tried("last", putting({"last": ("y", 8)}), ACKED)
    time.sleep(3)  # a dead one's last sign of life on S3
    table = place.open({**OPTIONS, **SERVICES})
    table.upsert(as_table({"last": ("y", 8)}))
    table.clean()
    require_right(place, [*tried.values(), last])
    counts = Counter(one.told for one in tried.values())
    events = counted_events(tmp_path / "driver")
    counted.append(
        f"{steps}, {format_name} on {store}, seed {SEED}: "
        f"{DRIVERS} drivers killed in {seconds:.0f} s; "
        f"{counts[ACKED]} acknowledged, {counts[FAILED]} failed, {counts[OPEN]} unknown; "
        + ", ".join(f"{count} x {way}" for way, count in sorted(ways.items()))
        + f"; {events['tasks']} tasks"
    )


def started(
    cluster: Cluster, place: Place, diary: Path, folder: Path, first: int, steps: str
) -> subprocess.Popen[bytes]:
    """Start a driver whose steps begin with a number."""
    asked = {
        "url": cluster.url,
        "folder": str(folder / "driver"),
        "diary": str(diary),
        "seed": SEED,
        "first": first,
        "steps": steps,
        "count": _COUNT,
        "s3": dataclasses.asdict(place) if isinstance(place, S3Place) else None,
        "path": place.root,
    }
    with (folder / f"driver-{first}.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.cluster.driver", json.dumps(asked)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def strike(
    process: subprocess.Popen[bytes],
    diary: Path,
    chance: Random,
    ways: Counter[str],
    cluster: Cluster,
) -> None:
    """Kill a driver amid one of its steps; before that, maybe an executor."""
    # the first step waits for executors, which would be struck most
    amid = chance.choice((1, 1, 2))
    begun = waited(lambda: lines_of(diary).count("began") > amid or process.poll() is not None)
    assert begun, "the driver does not begin"
    assert process.poll() is None, "the driver ended by itself"
    time.sleep(chance.uniform(0.0, LONGEST_S))
    if chance.random() < 0.3 and (executors := cluster.executors()):
        ways["executor before it"] += killed(executors[0])
        time.sleep(chance.uniform(0.0, 1.0))
    way = chance.choice(("Python and JVM", "Python"))
    ways[way] += 1
    if way == "Python":
        process.send_signal(signal.SIGKILL)  # its JVM sees that, and ends
    else:
        kill_tree(psutil.Process(process.pid))


def lines_of(diary: Path) -> list[str]:
    """The first words of a diary's lines."""
    if not diary.exists():
        return []
    return [line.partition(" ")[0] for line in diary.read_text().splitlines()]


def read(diary: Path) -> dict[int, str]:
    """How the steps of a driver ended, by number."""
    ended: dict[int, str] = {}
    for line in diary.read_text().splitlines():
        word, _, number = line.partition(" ")
        if word == "began":
            ended[int(number)] = OPEN
        elif word in _WORDS:
            ended[int(number)] = _WORDS[word]
    return ended


def waited(ask: Callable[[], bool]) -> bool:
    """Whether something comes to be."""
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        if ask():
            return True
        time.sleep(0.05)
    return False
