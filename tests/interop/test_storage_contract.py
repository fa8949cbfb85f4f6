"""What every storage owes the timeline, asked of each of them."""

from __future__ import annotations

import pickle
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from obstore.store import LocalStore

from hudi_core.errors import (
    AlreadyExistsError,
    CorruptMetadataError,
    PathNotFoundError,
    PreconditionFailedError,
    StorageError,
    UnsafePathError,
)
from hudi_core.model.protocols import Storage
from hudi_core.storage.open import open_storage

STRANGE_NAMES = [
    "a b",
    "é",
    "e\N{COMBINING ACUTE ACCENT}",
    "100%25",
    "a=b",
    "a+b",
    "a:b",
    "[x]{y}",
    "~t",
    "q?#*",
    "..x",
    "back\\slash",
    "😀",
]


@pytest.fixture(params=["posix", "posix without fsync", "memory", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    match request.param:
        case "posix":
            return open_storage(str(tmp_path / "table"))
        case "posix without fsync":
            return open_storage(f"file://{tmp_path}/table", fsync=False)
        case "memory":
            return open_storage(f"memory://store-{uuid.uuid4().hex}/tables/one/")
    service = request.getfixturevalue("s3")
    return open_storage(service.new_root(), service.options)


def paths(storage: Storage, prefix: str = "", recursive: bool = True) -> list[str]:
    return sorted(status.path for status in storage.list(prefix, recursive))


class TestStorageContract:
    def test_an_empty_root_is_no_error(self, storage: Storage) -> None:
        assert paths(storage) == []
        assert storage.list_folders() == []
        assert paths(storage, "no/such/folder") == []
        assert storage.list_folders("no/such/folder") == []
        assert storage.list_names("no/such/folder") == []
        assert storage.head("no/such/file") is None
        assert storage.delete("no/such/file") is False
        assert storage.delete_tree("no/such/folder") == 0

    def test_what_is_put_is_read(self, storage: Storage) -> None:
        storage.put_if_absent("a/b/first", b"1")
        storage.put("a/b/second", b"two")
        storage.put_if_absent("a/b/empty", b"")
        assert storage.read("a/b/first") == b"1"
        assert storage.read("a/b/second", max_bytes=3) == b"two"
        assert storage.read("a/b/empty", max_bytes=0) == b""

    def test_put_replaces(self, storage: Storage) -> None:
        storage.put("a", b"old and longer")
        storage.put("a", b"new")
        assert storage.read("a") == b"new"
        assert paths(storage) == ["a"]

    def test_put_if_absent_leaves_what_is_there(self, storage: Storage) -> None:
        storage.put_if_absent("a/b", b"first")
        with pytest.raises(AlreadyExistsError, match="a/b exists already") as caught:
            storage.put_if_absent("a/b", b"second")
        assert caught.value.path == f"{storage.root}/a/b"
        assert storage.read("a/b") == b"first"
        assert paths(storage) == ["a/b"]

    def test_put_if_absent_refuses_equal_bytes_too(self, storage: Storage) -> None:
        storage.put_if_absent("a", b"")
        with pytest.raises(AlreadyExistsError):
            storage.put_if_absent("a", b"")

    @pytest.mark.parametrize("data", [b"", b"x"])
    def test_one_of_many_puts_if_absent(self, storage: Storage, data: bytes) -> None:
        gate = threading.Barrier(8)

        def put(n: int) -> bool:
            gate.wait()
            try:
                storage.put_if_absent("timeline/one", data and data + bytes([n]))
            except AlreadyExistsError:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            won = [n for n, first in enumerate(pool.map(put, range(8))) if first]
        assert len(won) == 1
        assert storage.read("timeline/one") == (data and data + bytes(won))

    def test_reading_what_is_not_there(self, storage: Storage) -> None:
        storage.put("folder/file", b"")
        for path in ("nothing", "folder", "folder/nothing", "folder/file/below"):
            with pytest.raises(PathNotFoundError) as caught:
                storage.read(path)
            assert caught.value.path == f"{storage.root}/{path}"
            with pytest.raises(PathNotFoundError):
                storage.version(path)
            assert storage.head(path) is None

    def test_a_file_larger_than_accepted_is_not_read(self, storage: Storage) -> None:
        storage.put("large", b"12345")
        with pytest.raises(CorruptMetadataError, match="5 bytes are more than the 4") as caught:
            storage.read("large", max_bytes=4)
        assert caught.value.path == f"{storage.root}/large"

    def test_a_part_of_a_file_ends_where_the_file_does(self, storage: Storage) -> None:
        storage.put("a/b", b"0123456789")
        parts = {(0, 3): b"012", (8, 5): b"89", (3, 0): b"", (10, 2): b"", (12, 3): b""}
        for (offset, length), part in parts.items():
            assert storage.read_range("a/b", offset, length) == part, (offset, length)
        with pytest.raises(StorageError, match="-1 bytes from byte 4"):
            storage.read_range("a/b", 4, -1)
        with pytest.raises(PathNotFoundError, match="a/c"):
            storage.read_range("a/c", 0, 1)

    def test_head_tells_size_and_time(self, storage: Storage) -> None:
        storage.put("a/file", b"12345")
        head = storage.head("a/file")
        assert head is not None
        assert (head.path, head.size) == ("a/file", 5)
        storage.put("a/later", b"")
        later = storage.head("a/later")
        assert later is not None
        assert 0 <= later.modified_ms - head.modified_ms < 60_000
        assert list(storage.list("a")) == [head, later]
        assert storage.list_names("a") == ["file", "later"]

    def test_listing_one_folder_or_all_below(self, storage: Storage) -> None:
        for path in ("top", "a/one", "a/two", "a/b/three", "ab/four", ".hoodie/five"):
            storage.put(path, b"")
        assert paths(storage, recursive=False) == ["top"]
        assert paths(storage, "a", recursive=False) == ["a/one", "a/two"]
        assert paths(storage, "a") == ["a/b/three", "a/one", "a/two"]
        assert len(paths(storage)) == 6
        assert storage.list_folders() == [".hoodie", "a", "ab"]
        assert storage.list_folders("a") == ["a/b"]
        assert storage.list_folders("a/b") == []

    @pytest.mark.parametrize("name", STRANGE_NAMES)
    def test_names_stand_for_themselves(self, storage: Storage, name: str) -> None:
        path = f"{name}/{name}"
        storage.put_if_absent(path, b"x")
        assert storage.read(path) == b"x"
        assert paths(storage) == [path]
        assert storage.list_folders() == [name]
        assert storage.delete(path) is True
        assert paths(storage) == []

    def test_delete(self, storage: Storage) -> None:
        storage.put("a/one", b"")
        storage.put("a/two", b"")
        assert storage.delete("a/one") is True
        assert storage.delete("a/one") is False
        assert paths(storage) == ["a/two"]
        storage.put_if_absent("a/one", b"again")

    def test_delete_tree_counts_and_keeps_the_neighbours(self, storage: Storage) -> None:
        for path in ("a/one", "a/b/c/two", "a/b/three", "ab", "b/four"):
            storage.put(path, b"")
        assert storage.delete_tree("a") == 3
        assert paths(storage) == ["ab", "b/four"]
        assert storage.list_folders() == ["b"]
        assert storage.delete_tree("a") == 0

    def test_compare_and_set_creates_and_replaces(self, storage: Storage) -> None:
        first = storage.compare_and_set("a/file", b"1", None)
        assert storage.version("a/file") == (b"1", first)
        second = storage.compare_and_set("a/file", b"2", first)
        assert storage.version("a/file") == (b"2", second)
        assert first != second

    def test_compare_and_set_refuses_another_version(self, storage: Storage) -> None:
        old = storage.compare_and_set("file", b"1", None)
        storage.put("file", b"changed")
        for expected in (old, None):
            with pytest.raises(PreconditionFailedError) as caught:
                storage.compare_and_set("file", b"2", expected)
            assert caught.value.path == f"{storage.root}/file"
        assert storage.read("file") == b"changed"
        assert paths(storage) == ["file"]

    def test_compare_and_set_refuses_what_is_gone(self, storage: Storage) -> None:
        tag = storage.compare_and_set("a/file", b"1", None)
        storage.delete("a/file")
        with pytest.raises(PreconditionFailedError):
            storage.compare_and_set("a/file", b"2", tag)
        assert paths(storage) == []

    def test_one_of_many_compares_and_sets(self, storage: Storage) -> None:
        tag = storage.compare_and_set("file", b"start", None)
        gate = threading.Barrier(8)

        def change(n: int) -> bool:
            gate.wait()
            try:
                storage.compare_and_set("file", bytes([n]), tag)
            except PreconditionFailedError:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            won = [n for n, first in enumerate(pool.map(change, range(8))) if first]
        assert len(won) == 1
        assert storage.read("file") == bytes(won)

    def test_files_are_discarded_whether_they_are_there_or_not(self, storage: Storage) -> None:
        for path in ("a/1", "a/2", "b"):
            storage.put(path, b"x")
        storage.discard(["a/0", "a/1", "none", "b", "a/1"])
        assert paths(storage) == ["a/2"]
        storage.discard(["a/1"])
        storage.discard([])
        assert paths(storage) == ["a/2"]

    @pytest.mark.parametrize(
        "path", ["", "/a", "a//b", "a/", "../a", "a/../b", "a/..", ".", "./a", "a/.", "a\0b"]
    )
    def test_unsafe_paths_are_refused_everywhere(self, storage: Storage, path: str) -> None:
        calls: list[Callable[[], Any]] = [
            lambda: storage.read(path),
            lambda: storage.read_range(path, 0, 1),
            lambda: storage.put(path, b""),
            lambda: storage.put_if_absent(path, b""),
            lambda: storage.head(path),
            lambda: storage.version(path),
            lambda: storage.compare_and_set(path, b"", None),
            lambda: storage.delete(path),
            lambda: storage.delete_tree(path),
        ]
        if path:
            calls += [lambda: list(storage.list(path)), lambda: storage.list_folders(path)]
            calls += [lambda: storage.list_names(path)]
        for call in calls:
            with pytest.raises(UnsafePathError):
                call()
        assert paths(storage) == []

    def test_a_copy_sent_away_is_the_same_storage(self, storage: Storage) -> None:
        storage.put("a", b"here")
        copy = pickle.loads(pickle.dumps(storage))
        assert copy.root == storage.root
        assert copy.read("a") == b"here"


def test_files_are_discarded_by_a_store_that_gives_up_at_a_missing_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # as GCS's and Azure's do; this one is at hand
    store = LocalStore(tmp_path)
    monkeypatch.setattr("hudi_core.storage.object_store.open_store", lambda *_: store)
    storage = open_storage("memory://bucket/table")
    some = [str(number) for number in range(100)]
    for path in some:
        storage.put(path, b"x")
    storage.discard(["missing", *some])
    assert paths(storage) == []
