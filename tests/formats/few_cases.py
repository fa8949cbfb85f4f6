"""A plugin of pytest for processes that tests start: a third of the checks, in some cases.

All are run over the formats of the project. Of the format that the plugin is loaded for, each
commit runs another third of the checks (``HUDI_TURN``), of each every third case, and at least one;
two random histories are drawn in place of three. Nothing waits for the disk.
"""

from __future__ import annotations

import os
from collections import defaultdict

import pytest
from hudi_conformance.formats import histories
from hudi_conformance.formats.checks import Check, check_of

ONE_IN = 3
TURN = int(os.environ["HUDI_TURN"])
histories.FEW = 2  # type: ignore[misc]
os.fsync = lambda fd: None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave cases out."""
    cases: defaultdict[object, list[pytest.Item]] = defaultdict(list)
    for item in items:
        cases[check_of(getattr(item, "function", None)) or item].append(item)
    turns = sorted(check.id for check in cases if isinstance(check, Check))[TURN % ONE_IN :: ONE_IN]
    kept = {
        id(item)
        for check, found in cases.items()
        if not isinstance(check, Check) or check.id in turns
        for item in found[::ONE_IN]
    }
    items[:] = [item for item in items if id(item) in kept]
