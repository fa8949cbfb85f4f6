"""Local storage: crashes, links, checksums of Java, and files put for a moment."""

from __future__ import annotations

import errno
import os
import stat
import struct
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_core.errors import (
    AlreadyExistsError,
    PathNotFoundError,
    PreconditionFailedError,
    StorageError,
    UnsafePathError,
)
from hudi_core.metadata.index_definitions import DEFAULT_PATH
from hudi_core.model.files import FileStatus
from hudi_core.model.protocols import Storage
from hudi_core.services.mending.differences import Source
from hudi_core.storage.disk import Disk
from hudi_core.storage.flushing import Flushes, flushed_together
from hudi_core.storage.hadoop_checksums import checked_path, checksum_path, stale_checksums
from hudi_core.storage.posix import PosixStorage
from hudi_core.storage.posix_reader import TEMPORARY_PREFIX
from hudi_core.storage.probes import probe, require_conditional_puts, store_now_ms
from hudi_core.storage.properties_file import (
    BACKUP_PATH,
    PROPERTIES_PATH,
    update_properties,
    write_new,
)
from hudi_core.storage.subfolder import SubfolderStorage
from tests.cli_runs import run
from tests.tables import new_table
from tests.unit.mortal_disk import FailingDisk, Killed, MortalDisk


def put_if_absent(storage: PosixStorage) -> None:
    storage.put_if_absent("new/file", b"0123456789")


def put(storage: PosixStorage) -> None:
    storage.put("old", b"0123456789")


def compare_and_set(storage: PosixStorage) -> None:
    storage.compare_and_set("old", b"0123456789", storage.version("old")[1])


def delete(storage: PosixStorage) -> None:
    storage.delete("old")


def delete_tree(storage: PosixStorage) -> None:
    storage.delete_tree("tree")


STEPS: dict[Callable[[PosixStorage], None], list[str]] = {
    put_if_absent: [
        *("write_new", "make_folder", "sync_folder", "write_new", "link", "sync_folder", "remove")
    ],
    put: ["write_new", "replace", "sync_folder"],
    compare_and_set: ["write_new", "replace", "sync_folder"],
    delete: ["remove", "sync_folder"],
    delete_tree: ["remove", "remove", "remove_folder", "remove_folder", "sync_folder"],
}
CRASHES = [
    pytest.param(action, step, mode, id=f"{action.__name__}-{step}-{mode}")
    for action, steps in STEPS.items()
    for step in range(len(steps))
    for mode in ("before", "after", "torn")
]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    base = tmp_path / "table"
    (base / "tree" / "below").mkdir(parents=True)
    (base / "old").write_bytes(b"old")
    (base / "tree" / "one").write_bytes(b"")
    (base / "tree" / "below" / "two").write_bytes(b"")
    return base


@pytest.mark.parametrize("action", STEPS, ids=lambda action: action.__name__)
def test_every_change_goes_through_the_disk_in_known_steps(
    table: Path, action: Callable[[PosixStorage], None]
) -> None:
    disk = MortalDisk()
    action(PosixStorage(str(table), disk=disk))
    assert disk.steps == STEPS[action]


@pytest.mark.parametrize(("action", "step", "mode"), CRASHES)
def test_a_crash_leaves_all_of_a_file_or_nothing(
    table: Path, action: Callable[[PosixStorage], None], step: int, mode: str
) -> None:
    with pytest.raises(Killed):
        action(PosixStorage(str(table), disk=MortalDisk(step, mode)))

    after = PosixStorage(str(table))
    left = {status.path: after.read(status.path) for status in after.list(recursive=True)}
    assert left.get("new/file") in (None, b"0123456789")
    assert left.get("old") in ((None, b"old") if action is delete else (b"old", b"0123456789"))
    assert set(left) <= {"old", "new/file", "tree/one", "tree/below/two"}
    if action is not delete_tree:
        assert {"tree/one", "tree/below/two"} <= set(left)
    # whoever comes next can do it again, and do it whole
    if "old" not in left:
        after.put("old", b"old")
    if "new/file" in left:
        with pytest.raises(AlreadyExistsError):
            action(after) if action is put_if_absent else put_if_absent(after)
    else:
        action(after)


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of what is flushed, in this order."""
    names: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        names.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return names


def test_what_is_synced_and_when(table: Path, synced: list[str]) -> None:
    PosixStorage(str(table)).put_if_absent("a/b/file", b"1")
    assert synced[:2] == ["table", "a"]  # the folders that hold the new folders
    assert synced[2].startswith(TEMPORARY_PREFIX)
    assert synced[3:] == ["b"]
    synced.clear()
    PosixStorage(str(table), fsync=False).put("a/b/file", b"2")
    assert synced == []


def test_files_that_are_flushed_together_are_whole_when_the_block_ends(
    table: Path, synced: list[str]
) -> None:
    below = SubfolderStorage(PosixStorage(str(table)), "tree")
    with flushed_together(below) as storage:
        storage.put_if_absent("one-more", b"1")
        storage.put_if_absent("below/empty", b"")
        assert below.read("one-more") == b"1"
        with pytest.raises(AlreadyExistsError):
            storage.put_if_absent("one", b"2")
        assert synced == []
    assert sorted(synced) == ["below", "one-more", "tree"]
    synced.clear()
    with flushed_together(PosixStorage(str(table), fsync=False)) as storage:
        storage.put_if_absent("two", b"2")
    assert synced == []


def test_a_flush_that_fails_fails_what_waits_for_it(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    (table / "data").write_bytes(b"1")
    monkeypatch.setattr(os, "fsync", broken)
    together = flushed_together(PosixStorage(str(table)))
    with pytest.raises(StorageError, match="error"), together as storage:
        storage.put_if_absent("one", b"1")
    flushes = Flushes()
    flushes.add(str(table / "data"))
    flushes.add(str(table / "gone"))
    with pytest.raises(StorageError, match=r"data: .*error"):
        flushes.wait()


def test_a_file_is_flushed_where_folders_cannot_be(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses_folders(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    (table / "data").write_bytes(b"1")
    monkeypatch.setattr(os, "fsync", refuses_folders)
    flushes = Flushes()
    flushes.add(str(table / "data"))
    flushes.wait()


def test_temporary_files_are_never_listed_but_deleted_with_their_folder(table: Path) -> None:
    (table / "tree" / f"{TEMPORARY_PREFIX}0123").write_bytes(b"half")
    storage = PosixStorage(str(table))
    assert [status.path for status in storage.list("tree", recursive=True)] == [
        "tree/one",
        "tree/below/two",
    ]
    assert storage.delete_tree("tree") == 2
    assert not (table / "tree").exists()


@pytest.mark.parametrize(
    ("number", "hint"),
    [(errno.ENOSPC, "Free space"), (errno.EIO, "failing"), (errno.EACCES, "permissions")],
)
@pytest.mark.parametrize("action", [put_if_absent, put, compare_and_set])
def test_a_disk_that_fails_is_named_and_nothing_stays(
    table: Path, number: int, hint: str, action: Callable[[PosixStorage], None]
) -> None:
    with pytest.raises(StorageError, match=hint) as caught:
        action(PosixStorage(str(table), disk=FailingDisk(number)))
    assert caught.value.facts["errno"] == number
    path = "new/file" if action is put_if_absent else "old"
    assert caught.value.facts["path"] == f"{table}/{path}"
    assert isinstance(caught.value.__cause__, OSError)
    assert sorted(path.name for path in table.iterdir()) == ["old", "tree"]
    assert (table / "old").read_bytes() == b"old"


def test_a_folder_that_cannot_be_synced_fails_the_put_that_has_happened(table: Path) -> None:
    class Unsynced(Disk):
        def sync_folder(self, path: str) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with pytest.raises(StorageError) as caught:
        PosixStorage(str(table), disk=Unsynced()).put_if_absent("new", b"1")
    assert not isinstance(caught.value, AlreadyExistsError)
    assert [path.name for path in table.glob(f"{TEMPORARY_PREFIX}*")] == []
    assert (table / "new").read_bytes() == b"1"


def test_a_link_whose_answer_was_lost_is_ours(table: Path) -> None:
    class Forgetful(Disk):
        def link(self, source: str, target: str) -> None:
            super().link(source, target)
            raise FileExistsError(errno.EEXIST, "the server made the link at the first request")

    PosixStorage(str(table), disk=Forgetful()).put_if_absent("new", b"1")
    assert (table / "new").read_bytes() == b"1"
    with pytest.raises(AlreadyExistsError):
        PosixStorage(str(table)).put_if_absent("new", b"2")


def test_new_files_have_the_permissions_of_the_umask(table: Path) -> None:
    before = os.umask(0o027)
    try:
        PosixStorage(str(table)).put_if_absent("a/new", b"")
    finally:
        os.umask(before)
    assert (table / "a" / "new").stat().st_mode & 0o777 == 0o640
    assert (table / "a").stat().st_mode & 0o777 == 0o750


def test_a_file_where_a_folder_is_needed(table: Path) -> None:
    storage = PosixStorage(str(table))
    with pytest.raises(StorageError, match="move it away") as caught:
        storage.put_if_absent("old/below", b"")
    assert not isinstance(caught.value, PathNotFoundError)
    with pytest.raises(StorageError):
        storage.put("tree", b"")
    assert storage.delete_tree("old") == 0
    assert (table / "old").read_bytes() == b"old"


def test_a_pipe_in_a_table_does_not_hang_its_reader(table: Path) -> None:
    os.mkfifo(table / "pipe")
    storage = PosixStorage(str(table))
    with pytest.raises(PathNotFoundError):
        storage.read("pipe")
    assert storage.head("pipe") is None
    assert [status.path for status in storage.list()] == ["old"]


def test_a_folder_that_is_filled_meanwhile_is_deleted_all_the_same(table: Path) -> None:
    class Filling(Disk):
        def __init__(self, left: int) -> None:
            self.left = left

        def remove_folder(self, path: str) -> None:
            if self.left and path.endswith("tree"):
                self.left -= 1
                Path(path, f"late-{self.left}").write_bytes(b"")
            super().remove_folder(path)

    assert PosixStorage(str(table), disk=Filling(2)).delete_tree("tree") == 4
    assert not (table / "tree").exists()
    (table / "tree").mkdir()
    with pytest.raises(StorageError, match="keep being written"):
        PosixStorage(str(table), disk=Filling(1000)).delete_tree("tree")


def test_bytes_that_come_back_are_another_version(table: Path) -> None:
    storage = PosixStorage(str(table))
    tag = storage.version("old")[1]
    storage.put("old", b"other")
    storage.put("old", b"old")
    with pytest.raises(PreconditionFailedError):
        storage.compare_and_set("old", b"new", tag)


INCREMENTS = """
import sys
from hudi_core.errors import PreconditionFailedError
from hudi_core.storage.posix import PosixStorage
storage = PosixStorage(sys.argv[1], fsync=False)
done = 0
while done < 40:
    data, tag = storage.version("count")
    try:
        storage.compare_and_set("count", str(int(data) + 1).encode(), tag)
        done += 1
    except PreconditionFailedError:
        pass
"""


def test_no_change_is_lost_between_processes_and_threads(tmp_path: Path) -> None:
    storage = PosixStorage(str(tmp_path), fsync=False)
    storage.put("count", b"0")
    command = [sys.executable, "-c", INCREMENTS, str(tmp_path)]
    children = [subprocess.Popen(command) for _ in range(3)]
    threads = [
        threading.Thread(
            target=exec, args=(INCREMENTS.replace("sys.argv[1]", repr(str(tmp_path))),)
        )
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [child.wait() for child in children] == [0, 0, 0]
    assert storage.read("count") == b"200"
    assert [path.name for path in tmp_path.iterdir()] == ["count"]


def test_a_put_or_delete_never_gets_in_between_compare_and_set(table: Path) -> None:
    storage = PosixStorage(str(table))
    checked, go_on = threading.Event(), threading.Event()

    class Slow(Disk):
        def replace(self, source: str, target: str) -> None:
            checked.set()
            go_on.wait(10)
            super().replace(source, target)

    slow = PosixStorage(str(table), disk=Slow())
    tag = slow.version("old")[1]
    setter = threading.Thread(target=slow.compare_and_set, args=("old", b"set", tag))
    setter.start()
    assert checked.wait(10)
    putter = threading.Thread(target=storage.put, args=("old", b"put"))
    putter.start()
    putter.join(0.2)
    assert putter.is_alive()  # it waits, for otherwise its bytes would be lost without a word
    go_on.set()
    setter.join()
    putter.join()
    assert storage.read("old") == b"put"


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # other tests have threads
def test_a_child_forked_in_the_middle_does_not_keep_the_lock(table: Path) -> None:
    reader, writer = os.pipe()

    class Forking(Disk):
        child = 0

        def replace(self, source: str, target: str) -> None:
            self.child = os.fork()
            if self.child == 0:
                os.close(writer)
                os.read(reader, 1)  # until the parent is through
                os._exit(0)
            super().replace(source, target)

    disk = Forking()
    PosixStorage(str(table), disk=disk).put("old", b"1")
    done = threading.Thread(target=PosixStorage(str(table)).put, args=("old", b"2"), daemon=True)
    done.start()
    done.join(5)
    stuck = done.is_alive()
    os.close(writer)
    os.close(reader)
    os.waitpid(disk.child, 0)
    assert not stuck
    assert (table / "old").read_bytes() == b"2"


# --- local storage and symbolic links: nothing outside the table is read, changed or listed
@pytest.fixture
def linked(tmp_path: Path) -> Path:
    base = tmp_path / "table"
    (base / "tree" / "below").mkdir(parents=True)
    for name in ("old", "tree/one", "tree/below/two"):
        (base / name).write_bytes(b"old" if name == "old" else b"")
    return base


class TestSymbolicLinks:
    @pytest.fixture
    def outside(self, tmp_path: Path, linked: Path) -> Path:
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "secret").write_bytes(b"secret")
        (linked / "folder-link").symlink_to(outside)
        (linked / "file-link").symlink_to(outside / "secret")
        (linked / "dangling").symlink_to(outside / "nothing")
        return outside

    @pytest.mark.parametrize("path", ["folder-link/secret", "file-link", "dangling"])
    def test_nothing_is_read_through_a_link_that_leaves(
        self, linked: Path, outside: Path, path: str
    ) -> None:
        storage = PosixStorage(str(linked))
        for call in (storage.read, storage.head, storage.version):
            with pytest.raises(UnsafePathError, match="symbolic link"):
                call(path)

    def test_nothing_is_changed_through_a_link_that_leaves(
        self, linked: Path, outside: Path
    ) -> None:
        storage = PosixStorage(str(linked))
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

    def test_listings_refuse_links_that_leave(self, linked: Path, outside: Path) -> None:
        storage = PosixStorage(str(linked))
        for call in (
            lambda: list(storage.list()),
            lambda: list(storage.list("folder-link")),
            lambda: storage.list_names(""),
            lambda: storage.list_names("folder-link"),
            storage.list_folders,
        ):
            with pytest.raises(UnsafePathError):
                call()

    def test_links_themselves_are_replaced_and_deleted(self, linked: Path, outside: Path) -> None:
        storage = PosixStorage(str(linked))
        storage.put("file-link", b"mine")
        assert storage.read("file-link") == b"mine"
        assert storage.delete("folder-link") is True
        with pytest.raises(AlreadyExistsError):
            storage.put_if_absent("dangling", b"x")
        assert (outside / "secret").read_bytes() == b"secret"
        assert not (outside / "nothing").exists()

    def test_trees_are_deleted_without_following_links(self, linked: Path, outside: Path) -> None:
        for name in ("folder-link", "file-link", "dangling"):
            (linked / name).rename(linked / "tree" / name)
        storage = PosixStorage(str(linked))
        storage.delete_tree("tree")
        assert not (linked / "tree").exists()
        assert (outside / "secret").exists()
        (linked / "link").symlink_to(outside)
        assert storage.delete_tree("link") == 0
        assert (outside / "secret").exists()

    def test_links_inside_are_followed(self, linked: Path) -> None:
        (linked / "link").symlink_to("tree")
        (linked / "tree" / "circle").symlink_to(linked)
        storage = PosixStorage(str(linked))
        assert [status.path for status in storage.list("link")] == ["link/one"]
        assert storage.read("link/one") == b""
        assert sorted(status.path for status in storage.list(recursive=True)) == [
            "old",
            "tree/below/two",
            "tree/one",
        ]

    def test_the_root_may_be_a_link(self, linked: Path, tmp_path: Path) -> None:
        (tmp_path / "alias").symlink_to(linked)
        storage = PosixStorage(str(tmp_path / "alias"))
        assert storage.root == str(tmp_path / "alias")
        assert storage.read("old") == b"old"
        storage.put("old", b"new")
        assert (linked / "old").read_bytes() == b"new"


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


# --- checksum files that Hadoop's local file system leaves beside what Java writes
PART = 512
PROPERTIES = {"hoodie.table.name": "t", "hoodie.table.type": "COPY_ON_WRITE"}


def checksum(data: bytes) -> bytes:
    """Return what Hadoop's ``ChecksumFileSystem`` writes beside a file."""
    parts = [data[place : place + PART] for place in range(0, len(data), PART)]
    return (
        b"crc\0"
        + struct.pack(">i", PART)
        + b"".join(struct.pack(">I", zlib.crc32(part)) for part in parts)
    )


def beside(file: Path) -> Path:
    return file.with_name(f".{file.name}.crc")


def by_java(file: Path, data: bytes) -> None:
    """Write a file as Java does."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    beside(file).write_bytes(checksum(data))


def is_readable_by_java(file: Path) -> bool:
    return not beside(file).exists() or beside(file).read_bytes() == checksum(file.read_bytes())


def checked_put(storage: PosixStorage) -> None:
    storage.put("f/file", b"new" * 400)


def checked_compare_and_set(storage: PosixStorage) -> None:
    storage.compare_and_set("f/file", b"new" * 400, storage.version("f/file")[1])


def delete_and_put(storage: PosixStorage) -> None:
    storage.delete("f/file")
    storage.put_if_absent("f/file", b"new" * 400)


CHANGES = (checked_put, checked_compare_and_set, delete_and_put)


@pytest.mark.parametrize("change", CHANGES)
def test_no_death_leaves_a_file_that_java_refuses(
    tmp_path: Path, change: Callable[[PosixStorage], None]
) -> None:
    disk = MortalDisk()
    by_java(tmp_path / "whole" / "f" / "file", b"old" * 400)
    change(PosixStorage(str(tmp_path / "whole"), disk=disk))
    assert not beside(tmp_path / "whole" / "f" / "file").exists()
    assert disk.steps.count("remove") >= 1
    for step in range(len(disk.steps)):
        for mode in ("before", "after"):
            file = tmp_path / f"{step}-{mode}" / "f" / "file"
            by_java(file, b"old" * 400)
            with pytest.raises(Killed):
                change(PosixStorage(str(file.parent.parent), disk=MortalDisk(step, mode)))
            if file.exists():
                assert is_readable_by_java(file), (step, mode)
            # and whoever comes next finds a name that may be used
            PosixStorage(str(file.parent.parent)).put("f/file", b"later")
            assert is_readable_by_java(file)


def test_the_checksum_goes_to_the_disk_before_the_file_changes(tmp_path: Path) -> None:
    """A power failure may keep the later of two changes that nothing was flushed between."""
    by_java(tmp_path / "f" / "file", b"old")
    disk = MortalDisk()
    PosixStorage(str(tmp_path), disk=disk).put("f/file", b"new")
    assert disk.steps == ["write_new", "remove", "sync_folder", "replace", "sync_folder"]


def test_what_a_file_that_is_gone_has_left_is_not_taken_for_the_next_one(tmp_path: Path) -> None:
    by_java(tmp_path / "file", b"old")
    storage = PosixStorage(str(tmp_path))
    (tmp_path / "file").unlink()
    storage.put_if_absent("file", b"new")
    assert not beside(tmp_path / "file").exists()
    by_java(tmp_path / "other", b"old")
    with pytest.raises(AlreadyExistsError):
        storage.put_if_absent("other", b"new")
    assert beside(tmp_path / "other").exists()
    (tmp_path / "other").unlink()
    storage.link("file", "other")
    assert not beside(tmp_path / "other").exists()


def test_a_change_of_properties_dies_at_any_step(tmp_path: Path) -> None:
    def prepare(root: Path) -> Path:
        write_new(PosixStorage(str(root)), PROPERTIES)
        file = root / PROPERTIES_PATH
        by_java(file, file.read_bytes())
        # what a change by Java left that died after it had deleted its backup's file
        beside(root / BACKUP_PATH).write_bytes(checksum(b"older"))
        return file

    disk = MortalDisk()
    prepare(tmp_path / "whole")
    update_properties(PosixStorage(str(tmp_path / "whole"), disk=disk), {"a": "b"})
    for step in range(len(disk.steps)):
        root = tmp_path / str(step)
        file = prepare(root)
        with pytest.raises(Killed):
            update_properties(PosixStorage(str(root), disk=MortalDisk(step)), {"a": "b"})
        whole = [path for path in (file, root / BACKUP_PATH) if path.exists()]
        assert whole
        assert all(map(is_readable_by_java, whole)), step


@pytest.mark.parametrize(
    ("path", "checksums"),
    [("a/b", "a/.b.crc"), ("b", ".b.crc"), ("a/.b", "a/..b.crc"), ("a/b.crc", "a/.b.crc.crc")],
)
def test_names(path: str, checksums: str) -> None:
    assert checksum_path(path) == checksums
    assert checked_path(checksums) == path


@pytest.mark.parametrize("path", ["a/b", "a/b.crc", "a/.crc", "a/..crc", "a/.b"])
def test_names_of_other_files(path: str) -> None:
    found = checked_path(path)
    assert found is None or checksum_path(found) == path


@pytest.mark.parametrize(
    ("data", "wrong"),
    [
        (b"", b""),
        (b"x" * PART, b"x" * PART + b"y"),
        (b"x" * (3 * PART + 1), b"x" * (3 * PART) + b"y"),
    ],
)
def test_checksums_that_are_wrong_are_found(tmp_path: Path, data: bytes, wrong: bytes) -> None:
    storage = PosixStorage(str(tmp_path))
    by_java(tmp_path / "deep" / "file", data)
    assert stale_checksums(storage, "") == ()
    (tmp_path / "deep" / "file").write_bytes(wrong)
    assert stale_checksums(storage, "") == (() if data == wrong else ("deep/.file.crc",))
    (tmp_path / "deep" / "file").unlink()
    assert stale_checksums(storage, "deep") == ()


@pytest.mark.parametrize("told", [b"", b"crc", b"crc\0\0\0\0\0", b"other" * 4, b"crc\0\xff\0\0\0"])
def test_what_is_no_checksum_is_wrong(tmp_path: Path, told: bytes) -> None:
    by_java(tmp_path / "file", b"data")
    beside(tmp_path / "file").write_bytes(told)
    assert stale_checksums(PosixStorage(str(tmp_path)), "") == (".file.crc",)


def test_a_table_that_java_and_an_earlier_release_wrote(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("x", pa.int64())])
    rows = pa.table({"id": [1], "x": [1]}, schema)
    path = tmp_path / "t"
    table = new_table(path, schema, {"hoodie.fs.fsync": "false"})
    for name in (PROPERTIES_PATH, DEFAULT_PATH):
        by_java(path / name, (path / name).read_bytes())
    assert table.validate().is_valid
    # this release
    table.alter(add_columns={"y": pa.int64()})
    table.upsert(rows.append_column("y", pa.array([1])))
    assert table.validate().is_valid
    assert is_readable_by_java(path / PROPERTIES_PATH)
    assert is_readable_by_java(path / DEFAULT_PATH)
    # the one before
    beside(path / PROPERTIES_PATH).write_bytes(checksum(b"as it was"))
    [found] = table.validate().differences
    assert (found.source, found.subject) == (Source.CHECKSUM, ".hoodie/.hoodie.properties.crc")
    planned = table.repair(dry_run=True)
    assert (planned.checksums, planned.metadata_table, planned.left) == (True, False, ())
    assert not table.validate().is_valid
    done = run("table", "repair", path)
    assert done.exit_code == 0, done.output
    assert "Removed the checksum files that are wrong." in done.output
    assert table.validate().is_valid
    assert table.to_arrow().num_rows == 1


# --- files put for a moment: what stays behind of them is removed, and nothing else is
TEMP = ".hoodie/.temp"
LEFT = [f"{TEMP}/probe-{'a' * 32}", f"{TEMP}/clock-{'b' * 32}"]
OTHERS = [f"{TEMP}/probe-mine", f"{'clock-' + 'd' * 32}"]
HOUR_S = 3600


def aged(path: Path) -> None:
    found = path.stat().st_mtime - HOUR_S - 60
    os.utime(path, (found, found))


def names(storage: Storage) -> set[str]:
    return {status.path for status in storage.list("", recursive=True)}


def test_the_next_write_removes_what_others_left_once_it_is_old(tmp_path: Path) -> None:
    rows = pa.table({"id": [1]})
    table = new_table(tmp_path, rows.schema)
    storage = PosixStorage(str(tmp_path))
    for path in (*LEFT, *OTHERS):
        storage.put_if_absent(path, b"")
        aged(tmp_path / path)
    young = f"{TEMP}/probe-{'e' * 32}"
    storage.put_if_absent(young, b"")
    table.upsert(rows)
    assert names(storage) & {*LEFT, *OTHERS, young} == {*OTHERS, young}


@pytest.mark.parametrize("ask", [store_now_ms, require_conditional_puts])
def test_who_puts_one_removes_it(tmp_path: Path, ask: Callable[[Storage], object]) -> None:
    storage = PosixStorage(str(tmp_path))
    ask(storage)
    assert names(storage) == set()
    with pytest.raises(KeyboardInterrupt), probe(storage, "clock"):
        raise KeyboardInterrupt
    assert names(storage) == set()


class Away(PosixStorage):
    """Can be written, and nothing else."""

    def stat(self, path: str) -> FileStatus:
        raise StorageError(f"{path} is not there to be seen", "Come again.")

    def delete(self, path: str) -> bool:
        raise StorageError(f"{path} is not deleted", "Come again.")


def test_what_went_wrong_first_is_told(tmp_path: Path) -> None:
    storage = Away(str(tmp_path))
    with (
        pytest.raises(StorageError, match="not there to be seen") as caught,
        probe(storage, "probe") as path,
    ):
        storage.stat(path)
    assert f"{path} was left behind: {path} is not deleted. Come again." in caught.value.__notes__
    with pytest.raises(StorageError, match="is not deleted"), probe(storage, "probe"):
        pass
