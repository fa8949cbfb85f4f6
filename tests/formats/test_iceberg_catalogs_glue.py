"""Tables in a Glue catalog, on a disk and on S3."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from botocore.loaders import JSONFileLoader
from hudi_conformance.glue import glue_service
from pyiceberg.catalog.glue import GlueCatalog

from tests.formats.named_catalogs import PREFIX, CatalogSuite, ComparingSuite, Place, stored

NewPlace = Callable[..., Place]


@pytest.fixture(scope="module", autouse=True)
def _descriptions_of_services_stay() -> Iterator[None]:
    """Let botocore read its megabytes of descriptions once, and not for each client again."""
    read = JSONFileLoader().load_file
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(JSONFileLoader, "load_file", staticmethod(cache(read)))
        yield


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with glue_service() as address:
        yield address


@pytest.fixture
def new_place(endpoint: str) -> NewPlace:
    def new(
        path: str,
        files: Callable[[], dict[str, bytes]],
        given: dict[str, str],
        store: dict[str, str],
    ) -> Place:
        properties = {
            "glue.endpoint": endpoint,
            "glue.region": "us-east-1",
            "glue.access-key-id": "test-access-key",
            "glue.secret-access-key": f"glue-secret-{uuid.uuid4().hex}",
        }
        identifier = f"lake_{uuid.uuid4().hex}.trips"
        own = {**properties, "type": "glue", "identifier": identifier, "create-namespace": "true"}
        given = {**given, **{f"{PREFIX}{key}": value for key, value in own.items()}}
        theirs = GlueCatalog("theirs", **properties, **store)
        return Place(path, given, theirs, identifier, files)

    return new


class TestGlueCatalog(CatalogSuite, ComparingSuite):
    @pytest.fixture
    def place(self, new_place: NewPlace, tmp_path: Path) -> Place:
        folder = tmp_path / "t"
        return new_place(str(folder), lambda: stored(folder), {}, {})


class TestGlueCatalogOnS3:
    """The same for a table whose files are reached as they are without a catalog."""

    @pytest.fixture
    def place(self, new_place: NewPlace, s3: Any) -> Place:
        root = s3.new_root("trips")
        store = {
            "s3.endpoint": s3.endpoint,
            "s3.region": "us-east-1",
            "s3.access-key-id": "test-access-key",
            "s3.secret-access-key": "test-secret-key",
        }
        return new_place(root, lambda: s3.objects(root), s3.given, store)

    test_columns_change = CatalogSuite.test_columns_change_in_the_catalog
    test_a_writer_that_dies_before_the_catalog_has_it_is_made_good = (
        CatalogSuite.test_a_writer_that_dies_before_the_catalog_has_it_is_made_good
    )
    test_a_rival_between_the_comparison_and_the_change_loses_nothing = (
        ComparingSuite.test_a_rival_between_the_comparison_and_the_change_loses_nothing
    )
    test_no_secret_is_written = CatalogSuite.test_no_secret_is_written
