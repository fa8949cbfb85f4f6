"""A cluster for all cases, a session on it for each module, and tables on disk and on S3."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cluster.sessions import session
from tests.cluster.standalone import Cluster, cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.crash.place import Place
    from tests.moto_s3 import S3Service

_LINES = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Keep what campaigns count."""
    config.stash[_LINES] = []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what campaigns counted."""
    lines = terminalreporter.config.stash.get(_LINES, [])
    if lines:
        terminalreporter.section("campaigns")
        for line in lines:
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def counted(pytestconfig: pytest.Config) -> list[str]:
    """Lines that are printed at the end of the run."""
    return pytestconfig.stash[_LINES]


@pytest.fixture(scope="session")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Give a master with two workers."""
    with cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def spark(
    standalone: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    """Give a session whose executors are processes of the workers."""
    standalone.wait_until_idle()
    found = session(standalone.url, tmp_path_factory.mktemp("driver"))
    standalone.wait_for_executors(2)
    yield found
    found.stop()


@pytest.fixture
def place(request: pytest.FixtureRequest, s3: S3Service, tmp_path: Path) -> Place:
    """Give a place for a table, in the store that the case is called with."""
    from tests.cluster.written import s3_place  # noqa: PLC0415 - imports PySpark
    from tests.crash.place import LocalPlace  # noqa: PLC0415

    if request.param == "local":
        return LocalPlace(tmp_path / "t")
    return s3_place(s3.endpoint, s3.new_root(f"tables/{uuid.uuid4().hex}"))
