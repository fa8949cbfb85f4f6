"""Tables in a REST catalog: the Iceberg project's own server. Run by ``make rest-catalog``, which
brings its jars here; ``make test`` does without, as it needs Maven."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog.rest import RestCatalog

from tests.formats.named_catalogs import PREFIX, CatalogSuite, Place, stored
from tests.rest_catalog.server import rest_catalog


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    jars = Path(os.environ["HUDI_REST_CATALOG_JARS"])
    with rest_catalog(tmp_path_factory.mktemp("rest"), jars) as uri:
        yield uri


class TestRestCatalog(CatalogSuite):
    @pytest.fixture
    def place(self, tmp_path: Path, address: str) -> Place:
        identifier = f"lake_{uuid.uuid4().hex}.trips"
        given = {"type": "rest", "uri": address, "identifier": identifier}
        given["create-namespace"] = "true"
        folder = tmp_path / "t"
        return Place(
            str(folder),
            {f"{PREFIX}{key}": value for key, value in given.items()},
            RestCatalog("theirs", uri=address),
            identifier,
            lambda: stored(folder),
        )
