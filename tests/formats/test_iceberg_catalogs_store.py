"""Catalogs that read metadata files by themselves reach them as the table is reached."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog

import hudi_core as hudi
from hudi_core.errors import InvalidOptionError
from hudi_core.services.opening import open_table
from iceberg_format.external import ExternalCatalog
from iceberg_format.table import IcebergTable
from tests.formats.iceberg_tables import OPTIONS, SCHEMA, bag, create, rows
from tests.formats.named_catalogs import PREFIX

KEYS = {
    "fs.s3a.access.key": ("s3.access-key-id", "ours", "ours"),
    "fs.s3a.secret.key": ("s3.secret-access-key", "ours", "ours"),
    "fs.s3a.session.token": ("s3.session-token", "ours", "ours"),
    "fs.s3a.endpoint": ("s3.endpoint", "http://127.0.0.1:1", "http://127.0.0.1:1"),
    "fs.s3a.endpoint.region": ("s3.region", "eu-west-1", "eu-west-1"),
    "fs.s3a.path.style.access": ("s3.force-virtual-addressing", "false", "true"),
    "fs.azure.account.name": ("adls.account-name", "ours", "ours"),
    "fs.azure.account.key": ("adls.account-key", "b3Vycw==", "b3Vycw=="),
    "fs.azure.sas.fixed.token": ("adls.sas-token", "ours", "ours"),
}
"""Options of the store: what pyiceberg calls each, one value, and what pyiceberg is told."""
SQL = {f"{PREFIX}type": "sql", f"{PREFIX}uri": "sqlite://", f"{PREFIX}identifier": "lake.trips"}


@pytest.fixture
def path(tmp_path: Path) -> str:
    return create(tmp_path / "t").path


def catalog_of(path: str, options: dict[str, str]) -> ExternalCatalog:
    catalog = IcebergTable.open(open_table(path, options).client).catalog
    assert isinstance(catalog, ExternalCatalog)
    return catalog


@pytest.mark.parametrize("key", KEYS)
def test_an_option_of_the_store_reaches_the_catalog(key: str, path: str) -> None:
    name, value, told = KEYS[key]
    needs = {
        **dict.fromkeys(("fs.s3a.access.key", "fs.s3a.secret.key"), "ours"),
        "fs.s3a.endpoint": "http://127.0.0.1:1",
    }
    given = {**SQL, **needs, key: value} if key.startswith("fs.s3a") else {**SQL, key: value}
    assert catalog_of(path, given).catalog.properties[name] == told
    own = catalog_of(path, {**given, f"{PREFIX}{name}": "theirs"})
    assert own.catalog.properties[name] == "theirs"


def test_a_sql_catalog_reaches_a_table_on_s3(s3: Any, tmp_path: Path) -> None:
    root, uri = s3.new_root("trips"), f"sqlite:///{tmp_path}/catalog.db"
    given = {**s3.given, **SQL, f"{PREFIX}uri": uri, f"{PREFIX}create-namespace": "true"}
    table = hudi.Table.create(root, SCHEMA, record_key="id", options={**OPTIONS, **given})
    table.insert(rows(range(3)))
    table.upsert(rows([1], 1))
    theirs = SqlCatalog(
        "hudi",
        uri=uri,
        **{
            "s3.endpoint": s3.endpoint,
            "s3.access-key-id": "test-access-key",
            "s3.secret-access-key": "test-secret-key",
            "s3.region": "us-east-1",
        },
    )
    found = theirs.load_table("lake.trips").scan().to_arrow()
    theirs.engine.dispose()
    assert bag(found) == bag(hudi.Table.open(root, given).to_arrow())


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"type": "sql"}, "URI missing"),
        ({"type": "rest", "uri": "nowhere"}, "No scheme supplied"),
        ({"type": "hive", "uri": "thrift://127.0.0.1:1", "lock-check-retries": "x"}, "ValueError"),
    ],
)
def test_options_that_make_no_catalog_are_named(
    options: dict[str, str], why: str, path: str
) -> None:
    with pytest.raises(InvalidOptionError, match=why):
        catalog_of(path, {f"{PREFIX}{key}": value for key, value in options.items()})


def test_a_missing_package_is_named(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyiceberg.catalog.hive", None)
    given = {f"{PREFIX}type": "hive", f"{PREFIX}uri": "thrift://127.0.0.1:1"}
    with pytest.raises(InvalidOptionError, match=r"pip install 'pyiceberg\[hive\]'"):
        catalog_of(path, given)
