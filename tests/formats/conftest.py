"""Tables that many tests begin with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

import hudi_core as hudi
from tests.formats.service_tables import two_writes
from tests.tables import TABLES


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Folder of the test's table."""
    return tmp_path / "t"


@pytest.fixture(params=TABLES)
def table(path: Path, request: pytest.FixtureRequest) -> hudi.Table:
    return two_writes(path, request.param)


@pytest.fixture
def native(path: Path) -> hudi.Table:
    return two_writes(path)


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[tuple[SqlCatalog, dict[str, str]]]:
    """A catalog, and options by which an Iceberg table is ``lake.t`` in it."""
    uri = f"sqlite:///{tmp_path}/catalog.db"
    given = {"type": "sql", "uri": uri, "identifier": "lake.t", "create-namespace": "true"}
    catalog = SqlCatalog("hudi", uri=uri, warehouse=f"file://{tmp_path}/warehouse")
    yield catalog, {f"hoodie.table.format.iceberg.catalog.{key}": one for key, one in given.items()}
    catalog.engine.dispose()
