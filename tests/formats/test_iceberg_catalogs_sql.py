"""Tables in a sql catalog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from tests.formats.named_catalogs import PREFIX, CatalogSuite, ComparingSuite, Place, stored


class TestSqlCatalog(CatalogSuite, ComparingSuite):
    @pytest.fixture
    def place(self, tmp_path: Path) -> Iterator[Place]:
        uri = f"sqlite:///{tmp_path}/catalog.db"
        theirs = SqlCatalog("theirs", uri=uri, warehouse=f"file://{tmp_path}/warehouse")
        given = {
            f"{PREFIX}type": "sql",
            f"{PREFIX}name": "theirs",
            f"{PREFIX}uri": uri,
            f"{PREFIX}identifier": "lake.trips",
            f"{PREFIX}create-namespace": "true",
        }
        folder = tmp_path / "t"
        yield Place(str(folder), given, theirs, "lake.trips", lambda: stored(folder))
        theirs.engine.dispose()
