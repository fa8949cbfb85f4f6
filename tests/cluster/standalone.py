"""A Spark cluster of processes on this machine: a master, workers, and the executors they start.

All of it comes from PySpark's own jars and listens on the loopback device alone.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import psutil
import pyspark

T = TypeVar("T")

HOST: Final = "127.0.0.1"
WORKER_HOSTS: Final = ("127.0.0.1", "127.0.0.2")
"""Spark runs a task a second time beside itself on another host only."""
SPARK_HOME: Final = Path(pyspark.__file__).parent
EXECUTOR: Final = "CoarseGrainedExecutorBackend"
PYTHON: Final = Path(__file__).parents[1] / "spark_workers" / "python"
_URL: Final = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED: Final = "Successfully registered with master"
_PATIENCE_S: Final = 120
_LASTING: Final = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Runs a program that the kernel ends with the process of the tests, however that ends."""


@dataclass
class Cluster:
    """A running cluster.

    ``url``: what ``SparkSession.builder.master`` takes. ``workers``: the processes that start
    executors.
    """

    url: str
    workers: list[psutil.Process] = field(default_factory=list)

    def executors(self) -> list[psutil.Process]:
        """The executors of now: one in each worker, while an application runs."""
        return [
            child
            for worker in self.workers
            for child in _children(worker)
            if EXECUTOR in " ".join(_words(child))
        ]

    def wait_for_executors(self, number: int) -> list[psutil.Process]:
        """The executors, once there are so many."""

        def ask() -> list[psutil.Process] | None:
            found = self.executors()
            return found if len(found) >= number else None

        return _waited(ask)

    def wait_until_idle(self) -> None:
        """Wait for the executors of a dead application to be gone."""
        _waited(lambda: not self.executors() or None)

    def python_workers(self, executor: psutil.Process) -> list[psutil.Process]:
        """The processes of Python below an executor."""
        return _children(executor, recursive=True)


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Run a master and two workers, each with one core; all are stopped at the end.

    ``folder``: where logs and the workers' own files go.
    """
    started: list[subprocess.Popen[bytes]] = []
    environment = {
        **os.environ,
        "SPARK_SCALA_VERSION": "2.13",
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_DIRS": str(folder / "spill"),
        "PYSPARK_PYTHON": str(PYTHON),
        "SPARK_DAEMON_MEMORY": "256m",
        # executors that are killed again and again are started again and again
        "SPARK_MASTER_OPTS": "-Dspark.deploy.maxExecutorRetries=-1",
    }

    def start(name: str, host: str, *words: str) -> Path:
        log = folder / f"{name}.log"
        command = [sys.executable, "-c", _LASTING, str(SPARK_HOME / "bin" / "spark-class"), *words]
        command += ["--host", host, "--port", "0", "--webui-port", "0"]
        with log.open("wb") as output:
            started.append(
                subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env={**environment, "SPARK_LOCAL_IP": host},
                    cwd=folder,
                )
            )
        return log

    try:
        log = start("master", HOST, "org.apache.spark.deploy.master.Master")
        found = _waited(lambda: _URL.search(log.read_text(errors="replace")))
        running = Cluster(found[1])
        logs = [
            start(
                f"worker-{number}",
                host,
                *("org.apache.spark.deploy.worker.Worker", running.url),
                *("--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"work-{number}")),
            )
            for number, host in enumerate(WORKER_HOSTS)
        ]
        for one in logs:
            _waited(partial(_said, one, _REGISTERED))
        running.workers = [psutil.Process(one.pid) for one in started[1:]]
        yield running
    finally:
        _stop([psutil.Process(one.pid) for one in started if one.poll() is None])
        for process in started:
            process.wait(_PATIENCE_S)


def killed(process: psutil.Process) -> bool:
    """Kill a process at once; whether it was still there."""
    try:
        process.send_signal(signal.SIGKILL)
    except psutil.NoSuchProcess:
        return False
    return True


def kill_tree(process: psutil.Process) -> None:
    """Kill a process at once, with all that it started."""
    for one in [process, *_children(process, recursive=True)]:
        killed(one)


def _said(log: Path, words: str) -> bool | None:
    return words in log.read_text(errors="replace") or None


def _stop(processes: list[psutil.Process]) -> None:
    below = [child for one in processes for child in _children(one, recursive=True)]
    for one in [*processes, *below]:
        killed(one)


def _children(process: psutil.Process, *, recursive: bool = False) -> list[psutil.Process]:
    try:
        return process.children(recursive=recursive)
    except psutil.NoSuchProcess:
        return []


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return []


def _waited(ask: Callable[[], T | None]) -> T:
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        if (found := ask()) is not None:
            return found
        time.sleep(0.1)
    raise TimeoutError("The cluster does not get there.")
