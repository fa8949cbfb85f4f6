"""Tables in a Hive metastore: a real one, see :mod:`hudi_conformance.hive_metastore`."""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa
import pytest
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
from pyiceberg.catalog.hive import HiveCatalog

import hudi_core as hudi
from hudi_core.errors import CommitError, CommitStateUnknownError, InvalidOptionError
from tests.formats.iceberg_tables import bag, rows
from tests.formats.named_catalogs import PREFIX, CatalogSuite, Place, stored


@pytest.fixture
def place(tmp_path: Path, metastore: HiveMetastore) -> Place:
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


class TestHiveCatalog(CatalogSuite):
    @pytest.fixture
    def place(self, place: Place) -> Place:
        return place


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
    place.create().insert(rows(range(3)))
    with metastore.client() as client:
        database, _, name = place.identifier.partition(".")
        mine = ShowLocksRequest(dbname=database, tablename=name)
        assert client.show_locks(mine).locks in (None, [])  # commits give theirs back
        held = client.lock(lock_request(place))
        with pytest.raises(CommitStateUnknownError, match="lock"):
            place.table().upsert(rows([1], 1))
        assert place.operations() == ["INSERT"]
        assert [one.lockid for one in client.show_locks(mine).locks] == [held.lockid]
        client.unlock(UnlockRequest(lockid=held.lockid))
    place.table().upsert(rows([2], 1))
    assert place.operations() == ["INSERT", "UPSERT", "UPSERT"]
    place.agree()


def test_what_the_metastore_refuses_is_taken_back(place: Place) -> None:
    """By default it lets no column take the place of one of another type."""
    table = place.create()
    table.insert(rows(range(3)))
    held = bag(place.agree())
    with pytest.raises(CommitError, match="types incompatible"):
        table.alter(drop="value")
    assert bag(place.agree()) == held
    place.table().upsert(rows([1], 1))
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
        with pytest.raises(InvalidOptionError, match="another kind of table of this name"):
            place.create()
        assert client.get_table(database, name).sd.cols == columns


def test_a_metastore_that_does_not_answer_is_named(place: Place) -> None:
    place.create().insert(rows(range(2)))
    gone = {**place.options, f"{PREFIX}uri": "thrift://127.0.0.1:1"}
    with pytest.raises(hudi.HudiError, match=r"hive catalog .* did not do .*TTransport"):
        hudi.Table.open(place.path, gone).to_arrow()
