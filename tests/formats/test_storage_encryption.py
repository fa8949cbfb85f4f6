"""Keys by which S3 encrypts the files of a table, of its own for each bucket."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pyarrow.fs as pafs
import pytest

import hudi_core as hudi
from hudi_core.errors import InvalidOptionError
from hudi_core.storage.data_files import data_filesystem
from hudi_core.storage.options import StorageOptions
from tests.federated_tables import Store, is_data, many, ordered, placed_table, states
from tests.moto_s3 import S3Service
from tests.tables import FORMATS

KEY, OTHER = (f"arn:aws:kms:us-east-1:123456789012:key/{name}" for name in ("base", "other"))
ALGORITHM, KEY_NAME = "fs.s3a.encryption.algorithm", "fs.s3a.encryption.key"


@pytest.fixture(scope="module")
def s3(s3_process: S3Service) -> S3Service:
    return s3_process


def of_bucket(root: str, name: str) -> str:
    return name.replace("fs.s3a.", f"fs.s3a.bucket.{root.removeprefix('s3://')}.")


def encryptions(s3: S3Service, root: str) -> set[tuple[str | None, str | None]]:
    """How the objects of a bucket are encrypted, and by which key."""
    client: Any = boto3.client(
        "s3",
        endpoint_url=s3.endpoint,
        aws_access_key_id=s3.given["fs.s3a.access.key"],
        aws_secret_access_key=s3.given["fs.s3a.secret.key"],
        region_name="us-east-1",
    )
    bucket = root.removeprefix("s3://")
    found = set[tuple[str | None, str | None]]()
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        for one in page.get("Contents", ()):
            head = client.head_object(Bucket=bucket, Key=one["Key"])
            found.add((head.get("ServerSideEncryption"), head.get("SSEKMSKeyId")))
    return found


@pytest.mark.parametrize("table_format", FORMATS)
def test_each_root_has_its_key(s3: S3Service, tmp_path: Path, table_format: str) -> None:
    store = Store("s3", tmp_path, s3)
    base, root = store.new(), store.new()
    options = {ALGORITHM: "SSE-KMS", KEY_NAME: KEY, of_bucket(root, KEY_NAME): OTHER}
    made = placed_table(store, table_format, base=base, root=root, options=options)
    for _ in states(made.table, lambda data: data):
        pass
    made.table.cluster(options={"hoodie.clustering.plan.strategy.small.file.limit": "1000000"})
    made.table.clean(options={"hoodie.clean.commits.retained": "1"})
    expected = ordered(made.table.to_arrow())
    assert encryptions(s3, base) == {("aws:kms", KEY)}
    assert encryptions(s3, root) == {("aws:kms", OTHER)}
    assert any(map(is_data, store.files(root)))
    # who reads needs no key
    assert made.foreign_rows() in (None, expected)
    assert ordered(hudi.Table.open(base, store.options).to_arrow()) == expected
    stored = b"".join(
        data for path, data in s3.objects(base).items() if "hoodie.properties" in path
    )
    assert stored
    assert b"arn:aws" not in stored
    assert b"fs.s3a" not in stored


def test_the_table_folder_and_several_roots(s3: S3Service, tmp_path: Path) -> None:
    store = Store("s3", tmp_path, s3)
    plain = placed_table(
        store, plain=True, options={"fs.s3a.server-side-encryption-algorithm": "AES256"}
    )
    plain.table.insert(many(range(6), 1))
    assert encryptions(s3, plain.base) == {("AES256", None)}
    base, near, far = (store.new() for _ in range(3))
    made = placed_table(
        store,
        "iceberg",
        base=base,
        root=f"{near},{far}",
        options={
            "hoodie.storage.path.partitions": f"b -> {far}",
            of_bucket(near, ALGORITHM): "AES256",
            of_bucket(far, ALGORITHM): "DSSE-KMS",
            of_bucket(far, "fs.s3a.server-side-encryption.key"): OTHER,
        },
    )
    made.table.insert(many(range(6), 1))
    assert encryptions(s3, base) == {(None, None)}
    assert encryptions(s3, near) == {("AES256", None)}
    assert encryptions(s3, far) == {("aws:kms:dsse", None)}  # moto tells keys of aws:kms alone
    assert made.foreign_rows() == ordered(many(range(6), 1))


def test_large_files_and_copies(s3: S3Service) -> None:
    root = s3.new_root("").rstrip("/")
    options = StorageOptions.from_options({**s3.given, ALGORITHM: "SSE-KMS", KEY_NAME: KEY}, {})
    filesystem, folder = data_filesystem(root, options)
    filesystem = pickle.loads(pickle.dumps(filesystem))
    assert filesystem == data_filesystem(root, options)[0]
    data = bytes(range(256)) * (90 << 10)  # several parts
    with filesystem.open_output_stream(f"{folder}/large") as stream:
        for start in range(0, len(data), 1 << 20):
            stream.write(pa.py_buffer(data[start : start + (1 << 20)]))
        assert stream.tell() == len(data)
    filesystem.copy_file(f"{folder}/large", f"{folder}/a/copy")
    pafs.copy_files(
        f"{folder}/large",
        f"{folder}/b/copy",
        source_filesystem=filesystem,
        destination_filesystem=filesystem,
    )
    for name in ("large", "a/copy", "b/copy"):
        with filesystem.open_input_file(f"{folder}/{name}") as source:
            assert source.read() == data
    filesystem.delete_file(f"{folder}/a/copy")
    filesystem.create_dir(f"{folder}/c")
    assert encryptions(s3, root) == {("aws:kms", KEY)}
    assert len(s3.paths(root)) == 2
    with pytest.raises(OSError, match="missing"):
        filesystem.open_output_stream("no-such-bucket/missing").close()


CANNOT_READ, NOT_SENT, NO_CLIENT = "customer's key", "before they are sent", "cannot be given it"


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({ALGORITHM: "SSE-C", KEY_NAME: "canary"}, CANNOT_READ),
        ({ALGORITHM: "CSE-KMS", KEY_NAME: "canary"}, NOT_SENT),
        ({ALGORITHM: "cse-custom"}, NOT_SENT),
        ({ALGORITHM: "rot13"}, "supported are AES256"),
        ({KEY_NAME: "canary"}, "not given, which has no key"),
        ({ALGORITHM: "AES256", KEY_NAME: "canary"}, "AES256, which has no key"),
        ({"fs.s3a.encryption.context": "canary"}, NO_CLIENT),
        ({"fs.s3a.encryption.cse.kms.region": "canary"}, NO_CLIENT),
        ({"fs.s3a.server-side-encryption.nonsense": "canary"}, NO_CLIENT),
        ({"fs.s3a.bucket.lake.encryption.context": "canary"}, NO_CLIENT),
        ({"fs.s3a.bucket.lake.encryption.algorithm": "SSE-C"}, CANNOT_READ),
        ({"fs.s3a.bucket.lake.server-side-encryption.key": "canary"}, "which has no key"),
    ],
)
def test_what_no_client_can_ask_is_refused(path: Path, given: dict[str, str], match: str) -> None:
    with pytest.raises(InvalidOptionError, match=match) as refused:
        hudi.Table.create(path, many(range(1), 1), record_key="id", options=given)
    assert "canary" not in str(refused.value) + repr(refused.value.facts)
    assert not path.exists()


def test_options_of_one_bucket() -> None:
    options = StorageOptions.from_options(
        {
            ALGORITHM: "SSE-KMS",
            KEY_NAME: KEY,
            "fs.s3a.bucket.a.encryption.key": OTHER,
            "fs.s3a.bucket.b.encryption.algorithm": "AES256",
            "fs.s3a.bucket.c.encryption.algorithm": "",
            "fs.s3a.bucket.my.encryption.d.endpoint.region": "eu",
        },
        {},
    )
    found = {
        bucket: (own.s3_encryption, own.s3_encryption_key and own.s3_encryption_key.reveal())
        for bucket in ("a", "b", "c", "my.encryption.d", "other")
        for own in (options.at(bucket),)
    }
    assert found == {
        "a": ("aws:kms", OTHER),
        "b": ("AES256", None),
        "c": (None, None),
        "my.encryption.d": ("aws:kms", KEY),
        "other": ("aws:kms", KEY),
    }
    assert KEY not in repr(options)
    assert OTHER not in repr(options)
