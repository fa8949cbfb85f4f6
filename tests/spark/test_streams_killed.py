"""The driver of streaming queries is killed at random moments, again and again.

No batch is lost or doubled, and the query that follows the table catches up.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import hudi_core as hudi
from tests.samples import IS_WHOLE, sampled
from tests.spark import streaming_driver
from tests.spark.judges import judged
from tests.tables import FORMATS

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(7200)]

KILLS = 20 if IS_WHOLE else 1
LONGEST = 5
"""Batches before a kill."""
ROWS = 20
"""Rows of a file, which is a batch."""
DRIVER = Path(streaming_driver.__file__)
PATIENCE_S = 300
"""How long nothing may happen, before the test gives up."""


class Producer:
    """Adds files to the folder of incoming rows, as long as queries run."""

    def __init__(self, folder: Path, table_format: str) -> None:
        self.done = folder / f"{table_format}-in" / "commits"
        self.folder = folder / "incoming"
        self.folder.mkdir()
        self.files = 0

    def add(self) -> None:
        first = self.files * ROWS
        text = "".join(
            json.dumps({"id": first + n, "file": self.files}) + "\n" for n in range(ROWS)
        )
        new = self.folder / f".{self.files:05d}"
        new.write_text(text)
        new.rename(self.folder / f"{self.files:05d}.json")
        self.files += 1

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Add a file whenever few of them wait."""
        stop = threading.Event()

        def produce() -> None:
            while not stop.wait(0.1):
                if self.files < len(list(self.done.glob("[0-9]*"))) + 3:
                    self.add()

        thread = threading.Thread(target=produce)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


@contextmanager
def started(folder: Path, table_format: str, *more: str) -> Iterator[subprocess.Popen[str]]:
    """A driver at work; what it prints beside its batches goes to ``driver.log``."""
    command = [sys.executable, str(DRIVER), str(folder), table_format, *more]
    with (
        (folder / "driver.log").open("a") as errors,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
        ) as driver,
    ):
        yield driver


def wait_for_batches(driver: subprocess.Popen[str], count: int, folder: Path) -> None:
    """Wait until the driver has said ``count`` times that batches are done.

    Where two queries share a session, Spark now and then fails to serialize the tasks of one of
    them: a death like any other.
    """
    assert driver.stdout is not None
    giving_up = threading.Timer(PATIENCE_S, driver.kill)
    giving_up.start()
    try:
        said = 0
        for line in driver.stdout:
            said += line.startswith("batches")
            if said > count:
                return
    finally:
        giving_up.cancel()
    log = (folder / "driver.log").read_text()
    if "Task serialization failed" not in log:
        errors = [line for line in log.splitlines() if not line.startswith("\tat ")]
        pytest.fail("the driver ended:\n" + "\n".join(errors)[-4000:])


def kill(driver: subprocess.Popen[str], *, workers: bool) -> None:
    """Kill the driver and its JVM, and with ``workers`` the Python processes beside them too.

    Those that stay may be in the middle of a commit, until they notice.
    """
    os.killpg(driver.pid, signal.SIGKILL)
    if workers:
        for pid in members_of(driver.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    driver.wait()


def members_of(session: int) -> list[int]:
    """The processes of a session: Spark's Python workers are a group of their own in it."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            if stat.read_text().rpartition(")")[2].split()[3] == str(session):
                found.append(int(stat.parent.name))
    return found


@pytest.mark.asks_for(*(() if IS_WHOLE else ("spark",)))
@pytest.mark.parametrize("table_format", sampled(FORMATS, len(FORMATS)))
def test_killed_and_restarted(
    tmp_path: Path, table_format: str, request: pytest.FixtureRequest
) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print("seed", seed)
    dice = random.Random(seed)
    producer = Producer(tmp_path, table_format)
    producer.add()
    for number in range(KILLS):
        with started(tmp_path, table_format) as driver:
            try:
                with producer.at_work():
                    wait_for_batches(driver, dice.randrange(LONGEST), tmp_path)
                    time.sleep(dice.uniform(0, 1))
            finally:
                kill(driver, workers=number % 2 == 0)
    if IS_WHOLE:
        with started(tmp_path, table_format, "finish") as last:
            output, _ = last.communicate(timeout=2 * PATIENCE_S)
        assert last.returncode == 0, output + (tmp_path / "driver.log").read_text()[-4000:]
    else:  # by the Spark that there is: to start one more takes as long as all batches
        streaming_driver.finish(request.getfixturevalue("spark"), tmp_path, table_format)

    expected = Counter(dict.fromkeys(range(producer.files * ROWS), 1))
    for name in (table_format, f"{table_format}-copy"):
        found = Counter(row["id"] for row in judged(tmp_path / name, table_format))
        assert found == expected, name
    # each batch is one commit; Spark may take a file more into a batch after a death
    batches = 1 + max(int(one.name) for one in producer.done.glob("[0-9]*"))
    history = hudi.Table.open(tmp_path / table_format).history()
    assert sum(one.operation == "INSERT" for one in history) == batches
    undone = sum(one.action == "rollback" for one in history)
    print(f"{batches} batches, {KILLS} kills, {undone} rolled back")
