"""The order of a run: modules whose tests share a service that starts slowly come first, together.

With several workers each begins with one stretch of the tests and takes from the end of another's
when it has no more. What stands together at the beginning stays with one worker: so one of them
starts Spark, and not all.
"""

from __future__ import annotations

import importlib
import os
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

SLOW_TO_START: Final = (
    "spark",
    "wheels",
    "metastore",
    "s3",
    "s3_process",
    "zookeeper",
    "careless_s3",
)
"""Fixtures of the session, the slowest first; tests of wheels would else end the run, alone."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """One worker more than there are processors: a quarter of a run waits for something else.

    For Java, for leases that end, and for processes that tests start.
    """
    if config.getoption("numprocesses") != "auto":
        return None  # as asked for
    return len(os.sched_getaffinity(0)) + 1


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Let each worker of a whole run import a part of the modules before all of them import all.

    At first pytest rewrites the assertions of a module, which takes ten times as long as to read
    what another worker has written.
    """
    config = session.config
    worker = getattr(config, "workerinput", None)
    if worker is None or config.args != config.getini("testpaths"):
        return
    root, number = Path(__file__).parent, int(worker["workerid"].removeprefix("gw"))
    for path in sorted(root.rglob("test_*.py"))[number :: worker["workercount"]]:
        with suppress(Exception):  # raised again where pytest collects it
            importlib.import_module(".".join(path.relative_to(root.parent).with_suffix("").parts))


def rank(fixtures: Iterable[str]) -> int:
    """Place of a module in the order, by the names of all fixtures of its tests."""
    names = set(fixtures)
    ranks = (place for place, name in enumerate(SLOW_TO_START) if name in names)
    return next(ranks, len(SLOW_TO_START))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort by module, as fixtures of a module are made once only where its tests stay together."""
    fixtures: defaultdict[str, set[str]] = defaultdict(set)
    for item in items:
        fixtures[module(item)].update(getattr(item, "fixturenames", ()))
        for mark in item.iter_markers("asks_for"):
            fixtures[module(item)].update(mark.args)
    ranks = {name: rank(names) for name, names in fixtures.items()}
    items.sort(key=lambda item: ranks[module(item)])


def module(item: pytest.Item) -> str:
    """Path of the file of a test, in the repository."""
    return item.nodeid.partition("::")[0]
