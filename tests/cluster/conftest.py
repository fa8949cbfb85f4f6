"""A cluster for all cases, a session on it for each module, and tables on disk and on S3."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cluster.sessions import session
from tests.cluster.standalone import Cluster, cluster
from tests.cluster.written import S3Bucket
from tests.crash.place import LocalPlace, Place
from tests.crash.s3_service import s3_service

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
def spark(standalone: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Give a session whose executors are processes of the workers."""
    standalone.wait_until_idle()
    found = session(standalone.url, tmp_path_factory.mktemp("driver"))
    standalone.wait_for_executors(2)
    yield found
    found.stop()


@pytest.fixture(scope="session")
def bucket() -> Iterator[S3Bucket]:
    """Give a bucket in a store in a process of its own, as readers in Rust keep Python waiting."""
    with s3_service() as service:
        yield S3Bucket(service.endpoint)


@pytest.fixture
def place(request: pytest.FixtureRequest, bucket: S3Bucket, tmp_path: Path) -> Place:
    """Give a place for a table, in the store that the case is called with."""
    return LocalPlace(tmp_path / "t") if request.param == "local" else bucket.new_place()
