"""Tables in a Glue catalog, on S3."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from pyiceberg.catalog.glue import GlueCatalog

from tests.formats.glue_service import glue_service
from tests.formats.named_catalogs import PREFIX, CatalogSuite, ComparingSuite, Place


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with glue_service() as address:
        yield address


class TestGlueCatalog(CatalogSuite, ComparingSuite):
    @pytest.fixture
    def place(self, s3: Any, endpoint: str) -> Place:
        root = s3.new_root("trips")
        secret = f"glue-secret-{uuid.uuid4().hex}"
        properties = {
            "glue.endpoint": endpoint,
            "glue.region": "us-east-1",
            "glue.access-key-id": "test-access-key",
            "glue.secret-access-key": secret,
        }
        store = {
            "s3.endpoint": s3.endpoint,
            "s3.region": "us-east-1",
            "s3.access-key-id": "test-access-key",
            "s3.secret-access-key": "test-secret-key",
        }
        theirs = GlueCatalog("theirs", **properties, **store)
        identifier = f"lake_{uuid.uuid4().hex}.trips"
        given = {f"{PREFIX}{key}": value for key, value in properties.items()}
        # the files of the table are reached as the table is
        given |= {**s3.given, f"{PREFIX}type": "glue", f"{PREFIX}identifier": identifier}
        return Place(root, given, theirs, identifier, lambda: s3.objects(root))
