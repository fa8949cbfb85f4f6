"""A Delta table on S3: the same log, made by conditional puts."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import hudi_core as hudi
from hudi_core.errors import ForeignCommitError, LockError
from hudi_core.storage.options import StorageOptions
from hudi_core.txn.locks import StorageLock
from hudi_core.txn.locks.storage import LOCK_PATH, LeaseFile
from tests.formats.columns import SCHEMA
from tests.formats.delta_tables import OPTIONS, content, row, rows
from tests.moto_s3 import S3Service
from tests.s3_process import s3_in_a_process


@pytest.fixture(scope="module")
def s3_process() -> Iterator[S3Service]:
    with s3_in_a_process() as service:
        yield service


def test_a_table_on_s3_is_read_by_deltalake(s3_process: S3Service) -> None:
    given, root = s3_process.given, s3_process.new_root()
    bucket = root.split("/")[2]
    options = {**OPTIONS, **given}
    table = hudi.Table.create(root, SCHEMA, record_key="id", partition_by="city", options=options)
    away = {**row(2), "city": "São Paulo"}
    table.insert(pa.Table.from_pylist([row(0), row(1), away], SCHEMA))
    table.upsert(rows(0, 3, ts=1))
    result = table.delete(rows(1))

    reach = StorageOptions.from_options(given, {}).for_object_store()
    handle = DeltaTable(root, storage_options=reach)
    expected = pa.Table.from_pylist([row(0, 1), away, row(3, 1)], SCHEMA)
    found = handle.to_pyarrow_table()
    assert content(found) == content(expected) == content(table.to_arrow())
    assert result.receipt.version == "3" == str(handle.version())

    # Hadoop's other names of the scheme
    for scheme in ("s3a", "s3n"):
        place = f"tables/{scheme}"
        made = hudi.Table.create(
            f"{scheme}://{bucket}/{place}", SCHEMA, record_key="id", options=options
        )
        made.insert(rows(5))
        other = DeltaTable(f"s3://{bucket}/{place}", storage_options=reach)
        assert content(other.to_pyarrow_table()) == content(made.to_arrow())

    # a single writer, too, is kept apart from other processes: by a lease in the store
    assert not options.keys() & {"hoodie.write.lock.provider", "hoodie.write.concurrency.mode"}
    lease = table._session.opened.client.storage.read(LOCK_PATH)
    assert LeaseFile.decode(lease, LOCK_PATH).expired
    rival = StorageLock(table._session.opened.client.storage)
    assert rival.try_lock(0)
    with pytest.raises(LockError, match="not free"):
        hudi.Table.open(root, {**given, "hoodie.write.lock.wait_time_ms": "10"}).insert(rows(7))
    rival.unlock()

    table.rollback(result.instant)
    handle.update_incremental()
    expected = pa.Table.from_pylist([row(0, 1), row(1), away, row(3, 1)], SCHEMA)
    assert content(handle.to_pyarrow_table()) == content(expected)

    handle.alter.set_table_name("foreign")
    with pytest.raises(ForeignCommitError, match="Version 6"):
        table.insert(rows(4))


def test_each_fact_reaches_deltalake_under_its_name() -> None:
    given = {
        "fs.s3a.access.key": "a",
        "fs.s3a.secret.key": "b",
        "fs.s3a.session.token": "c",
        "fs.s3a.endpoint": "http://127.0.0.1:9000/",
        "fs.s3a.endpoint.region": "eu-west-1",
        "fs.s3a.path.style.access": "false",
    }
    told = StorageOptions.from_options(given, {}).for_object_store()
    assert told == {
        "aws_access_key_id": "a",
        "aws_secret_access_key": "b",
        "aws_session_token": "c",
        "aws_region": "eu-west-1",
        "aws_endpoint": "http://127.0.0.1:9000",
        "aws_virtual_hosted_style_request": "true",
        "aws_allow_http": "true",
    }
    assert StorageOptions().for_object_store() == {}
