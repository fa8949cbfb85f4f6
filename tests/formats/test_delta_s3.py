"""A Delta table on S3: the same log, made by conditional puts."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from deltalake import DeltaTable

import hudi_core as hudi
from hudi_core.errors import CommitConflictError, LockError
from hudi_core.storage.options import StorageOptions
from hudi_core.txn.locks import StorageLock
from hudi_core.txn.locks.storage import LOCK_PATH, LeaseFile
from tests.formats.columns import SCHEMA
from tests.formats.delta_tables import OPTIONS, content, row, rows


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """Serve S3 from another process: deltalake lets no thread of its own run while it waits."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = (sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port))
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(300):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def test_a_table_on_s3_is_read_by_deltalake(endpoint: str) -> None:
    given = {
        "fs.s3a.access.key": "test-access-key",
        "fs.s3a.secret.key": "test-secret-key",
        "fs.s3a.endpoint": endpoint,
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
    }
    bucket = f"bucket-{uuid.uuid4().hex}"
    pafs.S3FileSystem(
        access_key="test-access-key",
        secret_key="test-secret-key",
        endpoint_override=endpoint,
        region="us-east-1",
        allow_bucket_creation=True,
    ).create_dir(bucket)
    root, options = f"s3://{bucket}/tables/one", {**OPTIONS, **given}
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
    lease = table._opened.client.storage.read(LOCK_PATH)
    assert LeaseFile.decode(lease, LOCK_PATH).expired
    rival = StorageLock(table._opened.client.storage)
    assert rival.try_lock(0)
    with pytest.raises(LockError, match="not free"):
        hudi.Table.open(root, {**given, "hoodie.write.lock.wait_time_ms": "10"}).insert(rows(7))
    rival.unlock()

    table.rollback(result.instant)
    handle.update_incremental()
    expected = pa.Table.from_pylist([row(0, 1), row(1), away, row(3, 1)], SCHEMA)
    assert content(handle.to_pyarrow_table()) == content(expected)

    handle.alter.set_table_name("foreign")
    with pytest.raises(CommitConflictError, match="Version 6"):
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
