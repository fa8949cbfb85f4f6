"""Engines of the Java world, one session of each for all cases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.jvm.engines import DELTA, HUDI, ICEBERG, Engine, Kind
from tests.jvm.report import PATTERN, Report

REPORT = pytest.StashKey[Report]()


def pytest_configure(config: pytest.Config) -> None:
    """Keep what becomes of the cases, in a run of them."""
    if config.getini("python_files") == [PATTERN]:
        config.stash[REPORT] = Report()
        config.pluginmanager.register(config.stash[REPORT])


def session(kind: Kind, config: pytest.Config, folders: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = Engine(kind, folders.mktemp(kind.name))
    yield engine
    engine.stop()
    if REPORT in config.stash:
        config.stash[REPORT].versions[kind.name] = engine.versions


@pytest.fixture(scope="session")
def hudi_spark(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    """Give Spark with Apache Hudi's own bundle."""
    yield from session(HUDI, pytestconfig, tmp_path_factory)


@pytest.fixture(scope="session")
def iceberg_spark(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    """Give Spark with Apache Iceberg's own runtime."""
    yield from session(ICEBERG, pytestconfig, tmp_path_factory)


@pytest.fixture(scope="session")
def delta_spark(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    """Give Spark with Delta Lake's own package."""
    yield from session(DELTA, pytestconfig, tmp_path_factory)
