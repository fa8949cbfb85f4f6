"""Paths and URIs of tables, and what they open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest

from hudi_core.errors import InvalidOptionError, StorageError, UnsafePathError
from hudi_core.storage.data_files import data_filesystem
from hudi_core.storage.location import Location, StoreKind, location_of, parse_location
from hudi_core.storage.object_store import ObjectStorage
from hudi_core.storage.open import open_storage
from hudi_core.storage.options import StorageOptions
from hudi_core.storage.posix import PosixStorage


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("/data/t", Location(StoreKind.LOCAL, "/data/t", "", "/data/t")),
        ("/data/../t//x/", Location(StoreKind.LOCAL, "/t/x", "", "/t/x")),
        ("file:///data/a%20b", Location(StoreKind.LOCAL, "/data/a%20b", "", "/data/a%20b")),
        ("file:/data/t", Location(StoreKind.LOCAL, "/data/t", "", "/data/t")),
        ("s3://lake/a/t/", Location(StoreKind.S3, "s3://lake/a/t", "lake", "a/t")),
        ("S3A://lake/t", Location(StoreKind.S3, "S3A://lake/t", "lake", "t")),
        ("s3n://lake", Location(StoreKind.S3, "s3n://lake", "lake", "")),
        ("gs://lake/t?x#y", Location(StoreKind.GCS, "gs://lake/t?x#y", "lake", "t?x#y")),
        ("memory://m/t", Location(StoreKind.MEMORY, "memory://m/t", "m", "t")),
        ("az://box/t", Location(StoreKind.AZURE, "az://box/t", "box", "t")),
        (
            "abfss://box@acme.dfs.core.windows.net/t",
            Location(
                StoreKind.AZURE, "abfss://box@acme.dfs.core.windows.net/t", "box", "t", "acme"
            ),
        ),
    ],
)
def test_where_a_path_leads(uri: str, expected: Location) -> None:
    assert parse_location(uri) == expected


def test_relative_paths_are_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_location("a/t").uri == f"{tmp_path}/a/t"
    assert open_storage("a/t").root == f"{tmp_path}/a/t"


def test_a_tilde_is_the_home_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert location_of("~/lake/t") == f"{tmp_path}/lake/t"
    assert location_of(Path("~/lake/t")) == f"{tmp_path}/lake/t"
    assert location_of("file:~/t") == f"{tmp_path}/t"
    assert location_of("~") == str(tmp_path)
    # inside a path, and in a store, it is a character
    monkeypatch.chdir(tmp_path)
    assert location_of("./~/t") == f"{tmp_path}/~/t"
    assert location_of("a~b") == f"{tmp_path}/a~b"
    assert location_of("s3://lake/~/t") == "s3://lake/~/t"


@pytest.mark.parametrize("wrong", [Path("s3://lake/t"), Path("gs://lake/t"), 5, None])
def test_what_is_no_path_is_refused(wrong: Any) -> None:
    with pytest.raises(UnsafePathError):
        location_of(wrong)


def test_a_folder_may_have_a_colon(tmp_path: Path) -> None:
    assert location_of(Path(f"{tmp_path}/a:/b")) == f"{tmp_path}/a:/b"


def test_an_unknown_scheme_names_the_known_ones() -> None:
    with pytest.raises(StorageError, match=r"hdfs:// are not supported.*s3a://"):
        parse_location("hdfs://host/t")


@pytest.mark.parametrize(
    "uri", ["s3://key:secret-canary@lake/t", "s3:///t", "s3://", "s3://@lake/t", "gs://a b/t"]
)
def test_a_uri_without_a_bucket_is_not_repeated(uri: str) -> None:
    with pytest.raises(StorageError, match="does not name a bucket") as caught:
        parse_location(uri)
    assert "canary" not in str(caught.value) + repr(caught.value.facts)


@pytest.mark.parametrize(
    "uri", ["", "file://host/t", "/a\0b", "s3://lake/a/../b", "s3://lake/a//b"]
)
def test_unsafe_places_are_refused(uri: str) -> None:
    with pytest.raises(UnsafePathError):
        parse_location(uri)


def test_the_scheme_picks_the_storage() -> None:
    assert isinstance(open_storage("/t"), PosixStorage)
    assert isinstance(open_storage("file:///t"), PosixStorage)
    assert open_storage("file:///t/").root == "/t"
    assert isinstance(open_storage("s3a://lake/t"), ObjectStorage)
    assert open_storage("s3a://lake/t/").root == "s3a://lake/t"


def test_data_files_have_a_file_system_and_a_root(tmp_path: Path) -> None:
    filesystem, root = data_filesystem(f"file://{tmp_path}/t/", StorageOptions())
    assert isinstance(filesystem, pafs.LocalFileSystem)
    assert root == f"{tmp_path}/t"

    options = StorageOptions.from_options(
        {"fs.s3a.access.key": "a", "fs.s3a.secret.key": "b", "fs.s3a.endpoint.region": "x-1"}, {}
    )
    filesystem, root = data_filesystem("s3a://lake/a/t/", options)
    assert isinstance(filesystem, pafs.S3FileSystem)
    assert filesystem.region == "x-1"
    assert root == "lake/a/t"
    assert data_filesystem("s3://lake", options) == (filesystem, "lake")
    assert data_filesystem("s3://other/t", options)[0] is filesystem


def test_a_store_in_memory_holds_no_data_files() -> None:
    with pytest.raises(StorageError, match="memory"):
        data_filesystem("memory://m/t")


def test_a_key_file_that_pyarrow_would_not_use_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    options = StorageOptions(gcs_key_file="/keys/one.json")
    with pytest.raises(InvalidOptionError, match="GOOGLE_APPLICATION_CREDENTIALS"):
        data_filesystem("gs://lake/t", options)
