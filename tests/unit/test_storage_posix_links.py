"""Local storage and symbolic links: nothing outside the table is read, changed or listed."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hudi_core.errors import AlreadyExistsError, StorageError, UnsafePathError
from hudi_core.storage.posix import PosixStorage


@pytest.fixture
def table(tmp_path: Path) -> Path:
    base = tmp_path / "table"
    (base / "tree" / "below").mkdir(parents=True)
    for name in ("old", "tree/one", "tree/below/two"):
        (base / name).write_bytes(b"old" if name == "old" else b"")
    return base


class TestSymbolicLinks:
    @pytest.fixture
    def outside(self, tmp_path: Path, table: Path) -> Path:
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "secret").write_bytes(b"secret")
        (table / "folder-link").symlink_to(outside)
        (table / "file-link").symlink_to(outside / "secret")
        (table / "dangling").symlink_to(outside / "nothing")
        return outside

    @pytest.mark.parametrize("path", ["folder-link/secret", "file-link", "dangling"])
    def test_nothing_is_read_through_a_link_that_leaves(
        self, table: Path, outside: Path, path: str
    ) -> None:
        storage = PosixStorage(str(table))
        for call in (storage.read, storage.head, storage.version):
            with pytest.raises(UnsafePathError, match="symbolic link"):
                call(path)

    def test_nothing_is_changed_through_a_link_that_leaves(
        self, table: Path, outside: Path
    ) -> None:
        storage = PosixStorage(str(table))
        path = "folder-link/secret"
        for call in (
            lambda: storage.put(path, b"x"),
            lambda: storage.put_if_absent("folder-link/new", b"x"),
            lambda: storage.compare_and_set(path, b"x", None),
            lambda: storage.delete(path),
            lambda: storage.delete_tree("folder-link/x"),
        ):
            with pytest.raises(UnsafePathError):
                call()
        assert [path.name for path in outside.iterdir()] == ["secret"]
        assert (outside / "secret").read_bytes() == b"secret"

    def test_listings_refuse_links_that_leave(self, table: Path, outside: Path) -> None:
        storage = PosixStorage(str(table))
        for call in (
            lambda: list(storage.list()),
            lambda: list(storage.list("folder-link")),
            lambda: storage.list_names(""),
            lambda: storage.list_names("folder-link"),
            storage.list_folders,
        ):
            with pytest.raises(UnsafePathError):
                call()

    def test_links_themselves_are_replaced_and_deleted(self, table: Path, outside: Path) -> None:
        storage = PosixStorage(str(table))
        storage.put("file-link", b"mine")
        assert storage.read("file-link") == b"mine"
        assert storage.delete("folder-link") is True
        with pytest.raises(AlreadyExistsError):
            storage.put_if_absent("dangling", b"x")
        assert (outside / "secret").read_bytes() == b"secret"
        assert not (outside / "nothing").exists()

    def test_trees_are_deleted_without_following_links(self, table: Path, outside: Path) -> None:
        for name in ("folder-link", "file-link", "dangling"):
            (table / name).rename(table / "tree" / name)
        storage = PosixStorage(str(table))
        storage.delete_tree("tree")
        assert not (table / "tree").exists()
        assert (outside / "secret").exists()
        (table / "link").symlink_to(outside)
        assert storage.delete_tree("link") == 0
        assert (outside / "secret").exists()

    def test_links_inside_are_followed(self, table: Path) -> None:
        (table / "link").symlink_to("tree")
        (table / "tree" / "circle").symlink_to(table)
        storage = PosixStorage(str(table))
        assert [status.path for status in storage.list("link")] == ["link/one"]
        assert storage.read("link/one") == b""
        assert sorted(status.path for status in storage.list(recursive=True)) == [
            "old",
            "tree/below/two",
            "tree/one",
        ]

    def test_the_root_may_be_a_link(self, table: Path, tmp_path: Path) -> None:
        (tmp_path / "alias").symlink_to(table)
        storage = PosixStorage(str(tmp_path / "alias"))
        assert storage.root == str(tmp_path / "alias")
        assert storage.read("old") == b"old"
        storage.put("old", b"new")
        assert (table / "old").read_bytes() == b"new"


def test_a_path_that_cannot_be_looked_at_is_an_error_of_ours(tmp_path: Path) -> None:
    storage = PosixStorage(str(tmp_path))
    for look in (storage.read, storage.head, storage.delete, storage.version):
        with pytest.raises(StorageError, match="File name too long") as caught:
            look(f"{'x' * 300}/y")
        assert caught.value.facts["errno"] == errno.ENAMETOOLONG


def test_a_name_that_the_process_cannot_encode_is_an_error_of_ours(tmp_path: Path) -> None:
    code = "import sys; from hudi_core.storage.posix import PosixStorage as P\nP(sys.argv[1])"
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ended = subprocess.run(
        (sys.executable, "-c", f"{code}.put('\\xe9/x', b'1')", str(tmp_path)),
        env={**os.environ, **ascii_only},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "StorageError" in ended.stderr
    assert "PYTHONUTF8=1" in ended.stderr
    assert list(tmp_path.iterdir()) == []
