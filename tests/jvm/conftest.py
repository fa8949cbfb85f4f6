"""Engines of the Java world, one session of each for all cases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.jvm.engines import DELTA, HUDI, ICEBERG, Engine


@pytest.fixture(scope="session")
def hudi_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Give Spark with Apache Hudi's own bundle."""
    engine = Engine(HUDI, tmp_path_factory.mktemp("hudi-spark"))
    yield engine
    engine.stop()


@pytest.fixture(scope="session")
def iceberg_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Give Spark with Apache Iceberg's own runtime."""
    engine = Engine(ICEBERG, tmp_path_factory.mktemp("iceberg-spark"))
    yield engine
    engine.stop()


@pytest.fixture(scope="session")
def delta_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Give Spark with Delta Lake's own package."""
    engine = Engine(DELTA, tmp_path_factory.mktemp("delta-spark"))
    yield engine
    engine.stop()
