"""What is read from S3 is whole, also where every answer breaks off once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from hudi_core.errors import StorageError
from hudi_core.storage import object_store
from hudi_core.storage.object_store import ObjectStorage
from hudi_core.storage.options import StorageOptions
from tests.crash.s3_faults import S3Fault
from tests.crash.s3_proxy import S3Proxy

FILES = {f"folder/{number}/{name}": name.encode() * 40 for number in range(4) for name in "abc"}


@pytest.fixture
def proxy(s3: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Proxy]:
    monkeypatch.setattr(object_store, "_FIRST_PAUSE_S", 0.001)
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "5")
    found = S3Proxy(s3.endpoint.removeprefix("http://"))
    thread = threading.Thread(target=found.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield found
    found.shutdown()
    found.server_close()
    thread.join()


@pytest.fixture
def storage(s3: Any, proxy: S3Proxy) -> ObjectStorage:
    root = s3.new_root()
    for path, data in FILES.items():
        ObjectStorage(root, s3.options).put(path, data)
    given = {**s3.given, "fs.s3a.endpoint": proxy.endpoint}
    found = ObjectStorage(root, StorageOptions.from_options(given, {}))
    proxy.faults.arm(S3Fault(1, "shaky"))
    found.put("now it begins", b"")
    return found


def test_a_file_is_read_whole(storage: ObjectStorage) -> None:
    assert storage.read("folder/1/a") == b"a" * 40
    data, tag = storage.version("folder/2/b")
    assert data == b"b" * 40
    assert storage.compare_and_set("folder/2/b", b"new", tag) != tag


def test_a_part_is_read_whole(storage: ObjectStorage) -> None:
    assert storage.read_range("folder/1/c", 10, 20) == b"c" * 20


def test_every_file_is_listed_once(storage: ObjectStorage) -> None:
    assert [status.path for status in storage.list("folder", recursive=True)] == sorted(FILES)
    assert [status.name for status in storage.list("folder/3")] == ["a", "b", "c"]
    assert list(storage.list_folders("folder")) == [f"folder/{number}" for number in range(4)]


def test_a_listing_that_is_never_whole_is_an_error(
    storage: ObjectStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_store, "_LISTINGS", 1)
    with pytest.raises(StorageError, match="folder"):
        list(storage.list("folder", recursive=True))


def test_a_store_that_does_not_answer_is_not_asked_for_long(
    storage: ObjectStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_store, "_LISTING_S", -1.0)
    with pytest.raises(StorageError, match="folder"):
        storage.list_folders("folder")
