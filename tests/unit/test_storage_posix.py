"""Local storage: what a crash leaves, what the disk refuses, and who comes in between."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.errors import (
    AlreadyExistsError,
    PathNotFoundError,
    PreconditionFailedError,
    StorageError,
)
from hudi_core.storage.disk import Disk
from hudi_core.storage.posix import PosixStorage
from hudi_core.storage.posix_reader import TEMPORARY_PREFIX
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
        "write_new",
        "make_folder",
        "sync_folder",
        "write_new",
        "link",
        "sync_folder",
        "remove",
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


def test_what_is_synced_and_when(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    PosixStorage(str(table)).put_if_absent("a/b/file", b"1")
    assert synced[:2] == ["table", "a"]  # the folders that hold the new folders
    assert synced[2].startswith(TEMPORARY_PREFIX)
    assert synced[3:] == ["b"]
    synced.clear()
    PosixStorage(str(table), fsync=False).put("a/b/file", b"2")
    assert synced == []


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
        left = 2

        def remove_folder(self, path: str) -> None:
            if self.left and path.endswith("tree"):
                self.left -= 1
                Path(path, f"late-{self.left}").write_bytes(b"")
            super().remove_folder(path)

    assert PosixStorage(str(table), disk=Filling()).delete_tree("tree") == 4
    assert not (table / "tree").exists()


def test_a_folder_that_is_filled_for_ever_is_an_error(table: Path) -> None:
    class Filling(Disk):
        def remove_folder(self, path: str) -> None:
            Path(path, "late").write_bytes(b"")
            super().remove_folder(path)

    with pytest.raises(StorageError, match="keep being written"):
        PosixStorage(str(table), disk=Filling()).delete_tree("tree")


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
