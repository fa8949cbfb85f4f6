"""Which cells of matrices and campaigns a run takes, and whether all of them were asked for.

``make test`` takes a third of the cells of each parametrised test that needs more than this
process, and a sample of each campaign. The turn chooses them: a number of the tree's hash, so that
commits take turns. ``HUDI_TURN`` repeats one; ``make campaigns`` takes all.
"""

from __future__ import annotations

import os
import subprocess
from collections import defaultdict
from collections.abc import Container, Iterable, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Final, TypeVar
from zlib import crc32

import pytest

T = TypeVar("T")
U = TypeVar("U")

IS_WHOLE: Final = os.environ.get("HUDI_CAMPAIGN") == "whole"
"""Whether campaigns run as a whole (``make campaigns``)."""
TAKES_A_THIRD: Final = os.environ.get("HUDI_CAMPAIGN") == "third"
"""Whether parametrised tests take a third of their cells (``make test``); else all run."""


@cache
def turn() -> int:
    """Number that chooses the cells: ``HUDI_TURN``, or of the tree that is checked out."""
    if chosen := os.environ.get("HUDI_TURN"):
        return int(chosen)
    command = ["git", "rev-parse", "HEAD^{tree}"]
    try:
        tree = subprocess.run(
            command, cwd=Path(__file__).parent, check=True, capture_output=True, text=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return 0  # no checkout
    return int(tree[:6], 16)


def sampled(cases: Sequence[T], one_in: int, first: int = 0) -> list[T]:
    """Every ``one_in``-th of the cases of a campaign, or all of them where that is asked for."""
    return list(cases) if IS_WHOLE else list(cases[(turn() + first) % one_in :: one_in])


def paired(some: Iterable[T], others: Iterable[U], first: int = 0) -> list[tuple[T, U]]:
    """Each of some with one of the others in turn, or every pair where that is asked for."""
    ones, rest = list(some), list(others)
    if IS_WHOLE:
        return list(product(ones, rest))
    return [(one, rest[(turn() + first + n) % len(rest)]) for n, one in enumerate(ones)]


def pytest_report_header() -> str | None:
    """Say which cells run, and how to run them again."""
    if not TAKES_A_THIRD:
        return None
    return f"cells: a third of each matrix; these again: HUDI_TURN={turn()} make test"


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Hand the turn on to the processes that run the tests, and to Hypothesis."""
    os.environ["HUDI_TURN"] = str(turn())
    if TAKES_A_THIRD and config.option.hypothesis_seed is None:
        # three sets of examples, as there are three sets of cells
        config.option.hypothesis_seed = str(turn() % 3)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the cells whose turn it is not."""
    if not TAKES_A_THIRD:
        return
    merged = {item.nodeid for item in items if item.get_closest_marker("one_matrix")}
    cells = (item.nodeid for item in items if takes_turns(item))
    others = cells_of_other_turns(cells, turn(), merged)
    left_out: list[pytest.Item] = []
    kept: list[pytest.Item] = []
    for item in items:
        is_out = item.nodeid in others and not item.get_closest_marker("found_a_fault")
        (left_out if is_out else kept).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


def takes_turns(item: pytest.Item) -> bool:
    """Whether the cells of a test are left out in turns: those that are pure take no time."""
    pure, marked = (item.get_closest_marker(name) for name in ("pure", "takes_turns"))
    return pure is None or marked is not None


def taken(request: pytest.FixtureRequest, test: str, name: str) -> list[Any]:
    """Values of an argument of a test in the cells that this run takes of it, cell by cell.

    For what its module prepares for all cells at once.
    """
    return [
        item.callspec.params[name]
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and item.originalname == test
        and item.path == request.path
    ]


def cells_of_other_turns(names: Iterable[str], now: int, merged: Container[str] = ()) -> set[str]:
    """Of each test with several cells, those that do not run: two thirds, but never all.

    ``merged``: names of which those of one module are the cells of one matrix.
    """
    matrices: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        matrices[name.partition("::" if name in merged else "[")[0]].append(name)
    others: set[str] = set()
    for test, cells in matrices.items():
        ways = min(3, len(cells))
        taken = (crc32(test.encode()) + now) % ways
        shuffled = sorted(cells, key=lambda cell: crc32(cell.encode()))
        others.update(cell for n, cell in enumerate(shuffled) if n % ways != taken)
    return others
