"""Where the Iceberg metadata is found: the table's folder, its hint, and catalogs of pyiceberg."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.update import SetPropertiesUpdate

import hudi_core as hudi
from hudi_core.errors import CorruptMetadataError, InvalidOptionError, UnsupportedTableError
from iceberg_format.catalog import FolderCatalog
from iceberg_format.commit import requirements
from iceberg_format.table import IcebergTable
from tests.formats.iceberg_tables import SCHEMA, Iceberg, agree, bag, create, opened, rows

PREFIX = "hoodie.table.format.iceberg.catalog."
SECRET = "sesame-0451"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    where = tmp_path / "t"
    table = create(where)
    table.bulk_insert(rows(range(4)))
    table.upsert(rows([1], 1))
    return where


def folder_catalog(path: Path) -> FolderCatalog:
    catalog = IcebergTable.open(opened(path).client).catalog
    assert isinstance(catalog, FolderCatalog)
    return catalog


FAULTS: dict[str, Callable[[Path], object]] = {
    "missing": lambda hint: hint.unlink(),
    "garbage": lambda hint: hint.write_bytes(b"\xff\x00 3"),
    "empty": lambda hint: hint.write_bytes(b""),
    "too old": lambda hint: hint.write_text("1"),
    "too new": lambda hint: hint.write_text("9000"),
    "endless": lambda hint: hint.write_bytes(b"1" * 100_000),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_bad_hint_is_only_a_hint(fault: str, path: Path) -> None:
    FAULTS[fault](path / "metadata" / "version-hint.text")
    hudi.Table.open(str(path)).upsert(rows([2], 1))
    assert len(Iceberg(path).lineage) == 3
    agree(path)


def test_one_of_two_commits_on_a_version_wins(path: Path) -> None:
    catalog = folder_catalog(path)
    state = catalog.load()
    assert state is not None
    update = SetPropertiesUpdate(updates={"k": "first"})
    made = catalog.commit(state, requirements(state.metadata), (update,))
    other = SetPropertiesUpdate(updates={"k": "second"})
    with pytest.raises(CommitFailedException):
        catalog.commit(state, requirements(state.metadata), (other,))
    found = catalog.load()
    assert found is not None
    assert found == made
    assert found.metadata.properties["k"] == "first"


def test_old_metadata_files_are_deleted_but_the_last_hundred(tmp_path: Path) -> None:
    path = tmp_path / "t"
    create(path)
    catalog = folder_catalog(path)
    for number in range(110):
        state = catalog.load()
        assert state is not None
        update = SetPropertiesUpdate(updates={"n": str(number)})
        catalog.commit(state, requirements(state.metadata), (update,))
    assert len(list((path / "metadata").glob("v*.metadata.json"))) == 101


@pytest.mark.parametrize("location", ["../other", "/etc", "s3://bucket/t", "a/../b", "file:///x"])
def test_metadata_outside_of_the_table_is_refused(location: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="location"):
        create(tmp_path / "t", **{"hoodie.table.format.iceberg.location": location})


@pytest.mark.parametrize(
    "options",
    [
        {"type": "rest", "py-catalog-impl": "os.path"},
        {"type": "rest", "py-io-impl": "os.path"},
        {"type": "rest", "auth.impl": "os.path"},
        {"type": "nobody"},
        {"type": "dynamodb"},  # takes no commits
        {"uri": "http://127.0.0.1"},
        {"type": "sql", "uri": "sqlite://", "identifier": "no_namespace"},
    ],
)
def test_options_of_a_catalog_are_checked(options: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match=PREFIX.replace(".", r"\.")):
        create(tmp_path / "t", **{f"{PREFIX}{key}": value for key, value in options.items()})


def test_a_sql_catalog_holds_the_table_and_the_table_no_secret(tmp_path: Path) -> None:
    path, uri = tmp_path / "t", f"sqlite:///{tmp_path}/catalog.db"
    options = {
        f"{PREFIX}type": "sql",
        f"{PREFIX}name": "theirs",  # catalogs of one database are told apart by it
        f"{PREFIX}uri": uri,
        f"{PREFIX}identifier": "lake.trips",
        f"{PREFIX}create-namespace": "true",
        f"{PREFIX}s3.secret-access-key": SECRET,
    }
    table = create(path, **options)
    table.bulk_insert(rows(range(6)))
    result = table.upsert(rows([1], 1))
    theirs = load_catalog("theirs", type="sql", uri=uri, warehouse=str(tmp_path))
    expected = bag(table.to_arrow().select(SCHEMA.names))
    loaded = theirs.load_table("lake.trips")
    assert bag(loaded.scan().to_arrow().select(SCHEMA.names)) == expected
    assert str(loaded.metadata.current_snapshot_id) == result.receipt.version
    table.rollback(result.instant)
    read = theirs.load_table("lake.trips").scan().to_arrow().select(SCHEMA.names)
    assert bag(read) == bag(rows(range(6)))
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or SECRET.encode() not in file.read_bytes()
    with pytest.raises(CorruptMetadataError, match=r"catalog\.\*"):
        hudi.Table.open(str(path)).to_arrow()


def sql_options(where: Path) -> dict[str, str]:
    given = {
        "type": "sql",
        "name": "theirs",
        "uri": f"sqlite:///{where}/catalog.db",
        "identifier": "lake.trips",
        "create-namespace": "true",
    }
    return {f"{PREFIX}{key}": value for key, value in given.items()}


def test_a_table_of_the_same_name_stays_in_its_catalog(tmp_path: Path) -> None:
    options = sql_options(tmp_path)
    theirs = SqlCatalog(
        "theirs", uri=options[f"{PREFIX}uri"], warehouse=f"file://{tmp_path}/warehouse"
    )
    theirs.create_namespace("lake")
    made = theirs.create_table("lake.trips", SCHEMA)
    made.append(rows(range(3)))
    native = hudi.Table.create(str(tmp_path / "t"), SCHEMA, record_key="id")
    native.insert(rows(range(2)))
    with pytest.raises(InvalidOptionError, match="of this name"):
        hudi.Table.open(native.path, options).convert("iceberg")
    assert hudi.Table.open(native.path).format == "native"
    with pytest.raises(InvalidOptionError, match="of this name"):
        create(tmp_path / "other", **options).insert(rows(range(2)))
    assert theirs.load_table("lake.trips").metadata == made.refresh().metadata


def test_a_table_in_a_catalog_is_not_repaired_beside_it(tmp_path: Path) -> None:
    options = sql_options(tmp_path)
    table = create(tmp_path / "t", **options)
    table.insert(rows(range(3)))
    with pytest.raises(UnsupportedTableError, match="a catalog knows the version"):
        hudi.Table.open(table.path).repair()
    assert not list((tmp_path / "t/metadata").glob("v*.metadata.json"))
    assert hudi.Table.open(table.path, options).repair(force=True).left == ()


def test_a_file_outside_of_the_table_is_not_opened(path: Path) -> None:
    for file in (path / "metadata").glob("v*.metadata.json"):
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace(f"file://{path}/metadata/snap", "file:///etc/snap"))
    with pytest.raises(CorruptMetadataError, match=r"not below"):
        hudi.Table.open(str(path)).to_arrow()
