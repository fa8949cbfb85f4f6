"""Writers in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any

import pytest

from tests.crash.campaign import workers

SCRIPT = Path(__file__).with_name("writer_nursery.py")


class Nursery:
    """Talks to the process that forks writers; see the script."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, **job: Any) -> dict[str, Any]:
        """Give a job to a writer, or wait for one, and return the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the nursery died"
        answer: dict[str, Any] = json.loads(line)
        return answer


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """Give the process that forks writers."""
    with subprocess.Popen(
        [sys.executable, str(SCRIPT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Nursery(process)
        assert process.stdin is not None
        process.stdin.close()


@pytest.fixture(scope="session")
def pool() -> Iterator[Pool]:
    """Give the process that runs cases of the rigs, on disk and on a store."""
    with workers(1) as started:
        yield started
