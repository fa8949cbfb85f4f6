"""An S3 service of this test run, on the loopback device only."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow.fs as pafs
import pytest
from moto.server import ThreadedMotoServer

from hudi_core.storage.options import StorageOptions


@dataclass(frozen=True)
class S3Service:
    """Where the service is and how to reach it."""

    endpoint: str
    options: StorageOptions
    filesystem: pafs.FileSystem

    def new_root(self, folder: str = "tables/one") -> str:
        """Make a bucket and return the URI of a folder in it."""
        bucket = f"bucket-{uuid.uuid4().hex}"
        self.filesystem.create_dir(bucket)
        return f"s3://{bucket}/{folder}"


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Service]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        endpoint = "http://{}:{}".format(*server.get_host_and_port())
        given = {
            "fs.s3a.access.key": "test-access-key",
            "fs.s3a.secret.key": "test-secret-key",
            "fs.s3a.endpoint": endpoint,
            "fs.s3a.endpoint.region": "us-east-1",
            "fs.s3a.path.style.access": "true",
        }
        options = StorageOptions.from_options(given, {})
        filesystem = pafs.S3FileSystem(
            access_key="test-access-key",
            secret_key="test-secret-key",
            endpoint_override=endpoint,
            region="us-east-1",
            allow_bucket_creation=True,
        )
        yield S3Service(endpoint, options, filesystem)
    finally:
        server.stop()
