"""A format that is wrong where a test says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hudi_conformance.formats.trace import install

import hudi_core as hudi
from tests.formats.two_steps import batch
from tests.formats.wrong_format import FAULTS
from tests.formats.wrong_plugins.wrong_tables import PLAIN, create


@pytest.fixture(autouse=True)
def without_faults() -> Iterator[None]:
    yield
    FAULTS.clear()


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("site")
    module = "tests.formats"
    install(
        folder,
        {"wrong": f"{module}.wrong_format:WrongFormat", "toy": f"{module}.toy_format:ToyFormat"},
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(folder))
        yield


@pytest.fixture(scope="module")
def shared(installed: None, tmp_path_factory: pytest.TempPathFactory) -> hudi.Table:
    """A table of which nothing is asked that changes its rows."""
    made = create(tmp_path_factory.mktemp("shared") / "t", **PLAIN)
    made.insert(batch(1, "a", "b", "x"))
    return made


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    made = create(tmp_path / "t", **PLAIN)
    made.insert(batch(1, "a", "b", "x"))
    return made
