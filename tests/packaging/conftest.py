"""Wheels, built once in a run."""

from __future__ import annotations

import os

import pytest

from tests.packaging.built_wheels import Wheels


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    """The wheels of all projects, shared by the workers of the run."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    home = folder / "wheels"
    home.mkdir(exist_ok=True)
    return Wheels(home)
