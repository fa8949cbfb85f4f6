"""Iceberg tables in their folder, and in catalogs of pyiceberg."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from botocore.loaders import JSONFileLoader
from hive_metastore.ttypes import (
    FieldSchema,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
    SerDeInfo,
    ShowLocksRequest,
    StorageDescriptor,
    Table,
    UnlockRequest,
)
from hudi_conformance.hive_metastore import HiveMetastore
from pyiceberg.catalog.glue import GlueCatalog
from pyiceberg.catalog.hive import HiveCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.update import SetPropertiesUpdate

import hudi_core as hudi
from hudi_core import errors
from hudi_core.services.opening import open_table
from iceberg_format.catalog import FolderCatalog
from iceberg_format.commit import requirements
from iceberg_format.external import ExternalCatalog
from iceberg_format.table import IcebergTable
from tests.formats.iceberg_tables import NOTED, OPTIONS, Iceberg, agree, bag, create, opened, typed
from tests.formats.named_catalogs import PREFIX, CatalogSuite, ComparingSuite, Place, stored


@pytest.fixture
def path(tmp_path: Path) -> Path:
    where = tmp_path / "t"
    table = create(where)
    table.bulk_insert(typed(range(4)))
    table.upsert(typed([1], 1))
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
    hudi.Table.open(path).upsert(typed([2], 1))
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
    with pytest.raises(errors.InvalidOptionError, match="location"):
        create(tmp_path / "t", **{"hoodie.table.format.iceberg.location": location})


def sql_options(where: Path) -> dict[str, str]:
    given = {
        "type": "sql",
        "name": "theirs",
        "uri": f"sqlite:///{where}/catalog.db",
        "identifier": "lake.trips",
        "create-namespace": "true",
    }
    return {f"{PREFIX}{key}": value for key, value in given.items()}


def sql_catalog(where: Path) -> SqlCatalog:
    uri = sql_options(where)[f"{PREFIX}uri"]
    return SqlCatalog("theirs", uri=uri, warehouse=f"file://{where}/warehouse")


def test_a_table_of_the_same_name_stays_in_its_catalog(tmp_path: Path) -> None:
    options, theirs = sql_options(tmp_path), sql_catalog(tmp_path)
    theirs.create_namespace("lake")
    made = theirs.create_table("lake.trips", NOTED)
    made.append(typed(range(3)))
    native = hudi.Table.create(tmp_path / "t", NOTED, record_key="id")
    native.insert(typed(range(2)))
    with pytest.raises(errors.InvalidOptionError, match="of this name"):
        hudi.Table.open(native.path, options).convert("iceberg")
    assert hudi.Table.open(native.path).format == "native"
    with pytest.raises(errors.InvalidOptionError, match="of this name"):
        create(tmp_path / "other", **options).insert(typed(range(2)))
    assert theirs.load_table("lake.trips").metadata == made.refresh().metadata


def test_a_file_outside_of_the_table_is_not_opened(path: Path) -> None:
    for file in (path / "metadata").glob("v*.metadata.json"):
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace(f"file://{path}/metadata/snap", "file:///etc/snap"))
    with pytest.raises(errors.CorruptMetadataError, match=r"not below"):
        hudi.Table.open(path).to_arrow()


NewPlace = Callable[..., Place]


@pytest.fixture(scope="module", autouse=True)
def _descriptions_of_services_stay() -> Iterator[None]:
    """Let botocore read its megabytes of descriptions once, and not for each client again."""
    read = JSONFileLoader().load_file
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(JSONFileLoader, "load_file", staticmethod(cache(read)))
        yield


@pytest.fixture
def new_place(glue: str) -> NewPlace:
    def new(
        path: str,
        files: Callable[[], dict[str, bytes]],
        given: dict[str, str],
        store: dict[str, str],
    ) -> Place:
        properties = {
            "glue.endpoint": glue,
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


@pytest.fixture
def in_glue(new_place: NewPlace, tmp_path: Path) -> Place:
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


@pytest.fixture
def in_hive(tmp_path: Path, metastore: HiveMetastore) -> Place:
    properties = {
        "uri": metastore.uri,
        "hive.hive2-compatible": "true",  # it has no type for times with a zone
        "lock-check-min-wait-time": "0.01",
        "lock-check-max-wait-time": "0.02",
    }
    identifier = f"lake_{uuid.uuid4().hex}.trips"
    given = {f"{PREFIX}{key}": value for key, value in properties.items()}
    given |= {f"{PREFIX}type": "hive", f"{PREFIX}identifier": identifier}
    given[f"{PREFIX}create-namespace"] = "true"
    folder = tmp_path / "t"
    theirs = HiveCatalog("theirs", **properties)
    return Place(str(folder), given, theirs, identifier, lambda: stored(folder))


@pytest.fixture
def in_sql(tmp_path: Path) -> Iterator[Place]:
    theirs, folder = sql_catalog(tmp_path), tmp_path / "t"
    yield Place(str(folder), sql_options(tmp_path), theirs, "lake.trips", lambda: stored(folder))
    theirs.engine.dispose()


@pytest.mark.impure
class TestCatalogs(CatalogSuite):
    @pytest.fixture(params=["in_sql", "in_glue", "in_hive"])
    def place(self, request: pytest.FixtureRequest) -> Any:
        return request.getfixturevalue(request.param)


@pytest.mark.impure
class TestComparingCatalogs(ComparingSuite):
    @pytest.fixture(params=["in_sql", "in_glue"])
    def place(self, request: pytest.FixtureRequest) -> Any:
        return request.getfixturevalue(request.param)


@pytest.fixture
def place(in_hive: Place) -> Place:
    return in_hive


def lock_request(place: Place) -> LockRequest:
    database, _, name = place.identifier.partition(".")
    component = LockComponent(
        level=LockLevel.TABLE,
        type=LockType.EXCLUSIVE,
        dbname=database,
        tablename=name,
        isTransactional=True,
    )
    return LockRequest(component=[component], user="somebody", hostname="elsewhere")


def test_what_another_program_has_locked_is_not_changed(
    place: Place, metastore: HiveMetastore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hudi_core.txn.publication._PAUSE_S", 0)
    place.create().insert(typed(range(3)))
    with metastore.client() as client:
        database, _, name = place.identifier.partition(".")
        mine = ShowLocksRequest(dbname=database, tablename=name)
        assert client.show_locks(mine).locks in (None, [])  # commits give theirs back
        held = client.lock(lock_request(place))
        with pytest.raises(errors.CommitStateUnknownError, match="lock"):
            place.table().upsert(typed([1], 1))
        assert place.operations() == ["INSERT"]
        assert [one.lockid for one in client.show_locks(mine).locks] == [held.lockid]
        client.unlock(UnlockRequest(lockid=held.lockid))
    place.table().upsert(typed([2], 1))
    assert place.operations() == ["INSERT", "UPSERT", "UPSERT"]
    place.agree()


def test_what_the_metastore_refuses_is_taken_back(place: Place) -> None:
    """By default it lets no column take the place of one of another type."""
    table = place.create()
    table.insert(typed(range(3)))
    held = bag(place.agree())
    with pytest.raises(errors.CommitError, match="types incompatible"):
        table.alter(drop="value")
    assert bag(place.agree()) == held
    place.table().upsert(typed([1], 1))
    assert place.operations() == ["INSERT", "UPSERT"]
    assert place.table().validate().is_valid


def test_a_property_that_is_too_long_for_a_metastore_is_in_the_metadata_only(place: Place) -> None:
    wide = [pa.field(f"a_column_with_a_rather_long_name_{n}", pa.int64()) for n in range(500)]
    schema = pa.schema([pa.field("id", pa.string()), *wide])
    batch = pa.Table.from_pylist([{"id": "a"}], schema)
    table = hudi.Table.create(place.path, schema, name="trips", record_key="id")
    table.insert(batch)
    # files that are older than the format are told by the names of their columns
    place.table().convert("iceberg")
    place.table().upsert(batch)
    loaded = place.theirs.load_table(place.identifier)
    assert len(loaded.properties["schema.name-mapping.default"]) > 33_000
    assert loaded.scan().to_arrow().num_rows == 1


def test_a_table_of_hive_keeps_its_name(place: Place, metastore: HiveMetastore) -> None:
    database, _, name = place.identifier.partition(".")
    place.theirs.create_namespace(database)
    serde = SerDeInfo(
        serializationLib="org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
    )
    columns = [FieldSchema("id", "string", "")]
    where = StorageDescriptor(columns, f"file://{metastore.warehouse}/other", serdeInfo=serde)
    theirs = Table(tableName=name, dbName=database, sd=where, parameters={"EXTERNAL": "TRUE"})
    theirs.tableType = "EXTERNAL_TABLE"
    with metastore.client() as client:
        client.create_table(theirs)
        with pytest.raises(errors.InvalidOptionError, match="another kind of table of this name"):
            place.create()
        assert client.get_table(database, name).sd.cols == columns


def test_a_metastore_that_does_not_answer_is_named(place: Place) -> None:
    place.create().insert(typed(range(2)))
    gone = {**place.given, f"{PREFIX}uri": "thrift://127.0.0.1:1"}
    with pytest.raises(hudi.HudiError, match=r"hive catalog .* did not do .*TTransport"):
        hudi.Table.open(place.path, gone).to_arrow()


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


def catalog_of(path: Path, options: dict[str, str]) -> ExternalCatalog:
    catalog = IcebergTable.open(open_table(str(path), options).client).catalog
    assert isinstance(catalog, ExternalCatalog)
    return catalog


@pytest.mark.parametrize("key", KEYS)
def test_an_option_of_the_store_reaches_the_catalog(key: str, path: Path) -> None:
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
    table = hudi.Table.create(root, NOTED, record_key="id", options={**OPTIONS, **given})
    table.insert(typed(range(3)))
    table.upsert(typed([1], 1))
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
def test_options_of_no_catalog_are_named(options: dict[str, str], why: str, path: Path) -> None:
    with pytest.raises(errors.InvalidOptionError, match=why):
        catalog_of(path, {f"{PREFIX}{key}": value for key, value in options.items()})


def test_a_missing_package_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyiceberg.catalog.hive", None)
    given = {f"{PREFIX}type": "hive", f"{PREFIX}uri": "thrift://127.0.0.1:1"}
    with pytest.raises(errors.InvalidOptionError, match=r"pip install 'pyiceberg\[hive\]'"):
        catalog_of(path, given)
