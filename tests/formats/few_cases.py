"""A plugin of pytest for processes that tests start: some cases of every check.

All cases are run over the formats of the project. Of a check of whichever format the plugin is
loaded for, every third case is run, and at least one; two random histories are drawn in place of
three. Nothing waits for the disk: no test cuts the power.
"""

from __future__ import annotations

import os
from collections import defaultdict

import pytest
from hudi_conformance.formats import histories
from hudi_conformance.formats.checks import check_of

ONE_IN = 3
histories.FEW = 2  # type: ignore[misc]
os.fsync = lambda fd: None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave cases out."""
    cases: defaultdict[object, list[pytest.Item]] = defaultdict(list)
    for item in items:
        cases[check_of(getattr(item, "function", None)) or item].append(item)
    kept = {id(item) for found in cases.values() for item in found[::ONE_IN]}
    items[:] = [item for item in items if id(item) in kept]
