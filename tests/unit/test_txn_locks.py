"""What every lock owes, asked of each of them, and what each adds."""

from __future__ import annotations

import json
import math
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_core.config.kinds import LockKind
from hudi_core.errors import CorruptMetadataError, InvalidOptionError, LockError
from hudi_core.model.protocols import LockProvider
from hudi_core.storage.object_store import ObjectStorage
from hudi_core.txn.locks import FileLock, InProcessLock, StorageLock, lock_provider
from hudi_core.txn.locks.storage import LOCK_PATH, LeaseFile
from hudi_core.txn.table_lock import TableLock

NewLock = Callable[[], LockProvider]

HOLDER = """
import sys, time
from hudi_core.txn.locks import FileLock
lock = FileLock(sys.argv[1])
assert lock.try_lock(10)
print("held", flush=True)
time.sleep(60)
"""
# one line per critical section: whoever finds the file locked by a rival sees an odd count
RIVAL = """
import sys, time
from pathlib import Path
from hudi_core.txn.locks import FileLock
lock, count = FileLock(sys.argv[1]), Path(sys.argv[2])
for _ in range(int(sys.argv[3])):
    assert lock.try_lock(60)
    seen = int(count.read_text())
    time.sleep(0.0005)
    count.write_text(str(seen + 1))
    lock.unlock()
"""


def in_other_thread(call: Callable[[], object]) -> object:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


class LockProviderContract:
    """Subclasses give the fixture ``new``: a function that makes one more provider of one table."""

    def test_it_is_free_then_taken_then_free(self, new: NewLock) -> None:
        one, other = new(), new()
        assert one.try_lock(0)
        assert in_other_thread(lambda: other.try_lock(0)) is False
        one.unlock()
        assert other.try_lock(0)
        other.unlock()

    def test_two_providers_in_one_thread_exclude_each_other(self, new: NewLock) -> None:
        one, other = new(), new()
        assert one.try_lock(0)
        assert not other.try_lock(0.05)
        one.unlock()

    def test_it_is_not_entered_twice(self, new: NewLock) -> None:
        lock = new()
        assert lock.try_lock(0)
        assert not lock.try_lock(5)
        lock.unlock()
        assert in_other_thread(lambda: new().try_lock(0)) is True

    def test_giving_back_what_is_not_held_changes_nothing(self, new: NewLock) -> None:
        holder, other = new(), new()
        holder.unlock()
        assert holder.try_lock(0)
        other.unlock()
        in_other_thread(other.unlock)
        in_other_thread(holder.unlock)  # the owner is a thread, not whoever has the object
        assert not other.try_lock(0)
        holder.unlock()
        holder.unlock()
        assert other.try_lock(0)
        holder.unlock()
        assert not holder.try_lock(0)
        other.unlock()

    def test_it_waits_as_long_as_told(self, new: NewLock) -> None:
        one, other = new(), new()
        assert one.try_lock(0)
        started = time.monotonic()
        assert not other.try_lock(0.3)
        assert 0.25 < time.monotonic() - started < 5
        timer = threading.Timer(0.2, lambda: None)
        timer.start()

        def wait() -> bool:
            return other.try_lock(10)

        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(wait)
            timer.join()
            assert not waiting.done()
            one.unlock()
            assert waiting.result(5)

    def test_no_increment_is_lost_between_threads(self, new: NewLock) -> None:
        shared = new()
        count = 0

        def work(n: int) -> None:
            nonlocal count
            lock = shared if n % 2 else new()
            for _ in range(15):
                assert lock.try_lock(60)
                seen = count
                time.sleep(0)
                count = seen + 1
                lock.unlock()

        with ThreadPoolExecutor(16) as pool:
            list(pool.map(work, range(16)))
        assert count == 16 * 15

    lease_s = math.inf

    def test_it_tells_what_is_left_of_its_lease(self, new: NewLock) -> None:
        lock = new()
        assert lock.try_lock(0)
        assert self.lease_s * 0.9 <= lock.lease_left() <= self.lease_s
        lock.unlock()

    @pytest.mark.impure
    @pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
    def test_a_forked_child_cannot_give_it_back(self, new: NewLock) -> None:
        lock = new()
        assert lock.try_lock(0)
        child = os.fork()
        if child == 0:
            lock.unlock()
            os._exit(0)
        os.waitpid(child, 0)
        assert not new().try_lock(0)
        lock.unlock()
        assert new().try_lock(0)


class TestInProcessLock(LockProviderContract):
    @pytest.fixture
    def new(self, tmp_path: Path) -> NewLock:
        return lambda: InProcessLock(str(tmp_path))

    def test_it_does_not_claim_to_exclude_processes(self, new: NewLock) -> None:
        assert new().excludes_processes is False

    def test_spellings_of_a_path_are_one_lock(self, tmp_path: Path) -> None:
        (tmp_path / "table").mkdir()
        (tmp_path / "alias").symlink_to("table")
        first = InProcessLock(str(tmp_path / "table"))
        assert first.try_lock(0)
        for spelling in ("table/", "x/../table", "alias"):
            assert not InProcessLock(f"{tmp_path}/{spelling}").try_lock(0)
        assert not InProcessLock(f"file://{tmp_path}/table").try_lock(0)
        assert InProcessLock(f"{tmp_path}/other").try_lock(0)
        first.unlock()

    def test_spellings_of_a_uri_are_one_lock(self) -> None:
        first = InProcessLock("s3://lake/t")
        assert first.try_lock(0)
        assert not InProcessLock("s3a://lake/t/").try_lock(0)
        assert InProcessLock("s3://lake/t2").try_lock(0)
        assert InProcessLock("gs://lake/t").try_lock(0)
        first.unlock()

    @pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
    def test_a_forked_child_does_not_inherit_a_lock_nobody_will_give_back(
        self, new: NewLock
    ) -> None:
        lock = new()
        assert lock.try_lock(0)
        child = os.fork()
        if child == 0:
            mine = new()
            os._exit(0 if mine.try_lock(0) and not lock.try_lock(0) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        lock.unlock()


class TestFileLock(LockProviderContract):
    @pytest.fixture
    def new(self, tmp_path: Path) -> NewLock:
        return lambda: FileLock(str(tmp_path))

    @pytest.fixture
    def holder(self, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
        command = [sys.executable, "-c", HOLDER, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
            process.kill()

    def test_it_excludes_processes(
        self, new: NewLock, holder: subprocess.Popen[str], tmp_path: Path
    ) -> None:
        assert new().excludes_processes is True
        assert not new().try_lock(0.2)
        assert (tmp_path / ".hoodie/.locks/table.lock").exists()

    def test_killing_the_holder_frees_it(self, new: NewLock, holder: subprocess.Popen[str]) -> None:
        lock = new()
        assert not lock.try_lock(0)
        holder.kill()
        holder.wait()
        assert lock.try_lock(1)
        lock.unlock()

    def test_a_stopped_holder_keeps_it(self, new: NewLock, holder: subprocess.Popen[str]) -> None:
        holder.send_signal(signal.SIGSTOP)
        assert not new().try_lock(0.2)

    def test_no_increment_is_lost_between_processes(self, tmp_path: Path) -> None:
        count = tmp_path / "count"
        count.write_text("0")
        command = [sys.executable, "-c", RIVAL, str(tmp_path), str(count), "15"]
        rivals = [subprocess.Popen(command) for _ in range(4)]
        assert [rival.wait() for rival in rivals] == [0] * 4
        assert count.read_text() == "60"

    @pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
    def test_a_child_of_the_holder_does_not_keep_it(self, new: NewLock) -> None:
        reader, writer = os.pipe()
        lock = new()
        assert lock.try_lock(0)
        child = os.fork()
        if child == 0:
            os.close(writer)
            os.read(reader, 1)
            os._exit(0)
        lock.unlock()
        assert new().try_lock(0)
        os.close(writer)
        os.close(reader)
        os.waitpid(child, 0)

    def test_the_lock_file_stays(self, new: NewLock, tmp_path: Path) -> None:
        # a waiter has it open: a file of the same name rebuilt would be another lock
        lock = new()
        assert lock.try_lock(0)
        before = (tmp_path / ".hoodie/.locks/table.lock").stat().st_ino
        lock.unlock()
        assert lock.try_lock(0)
        assert (tmp_path / ".hoodie/.locks/table.lock").stat().st_ino == before
        lock.unlock()
        assert (tmp_path / ".hoodie/.locks/table.lock").read_bytes() == b""

    def test_one_folder_serves_many_tables(self, tmp_path: Path) -> None:
        folder = str(tmp_path / "locks")
        one, same = FileLock("/lake/one", folder), FileLock("/lake/x/../one/", folder)
        other = FileLock("/lake/other", folder)
        assert one.try_lock(0)
        assert not same.try_lock(0)
        assert other.try_lock(0)
        one.unlock()
        other.unlock()
        assert len(list((tmp_path / "locks").iterdir())) == 2

    def test_a_place_that_cannot_be_locked_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / ".hoodie").write_bytes(b"")
        lock = FileLock(str(tmp_path))
        with pytest.raises(LockError, match="cannot be locked"):
            lock.try_lock(0)
        (tmp_path / ".hoodie").unlink()
        assert lock.try_lock(0)
        lock.unlock()


class TestStorageLock(LockProviderContract):
    lease_s = 300.0

    @pytest.fixture
    def storage(self) -> ObjectStorage:
        return ObjectStorage(f"memory://locks-{uuid.uuid4().hex}/table")

    @pytest.fixture
    def new(self, storage: ObjectStorage) -> NewLock:
        return lambda: StorageLock(storage)

    def test_it_claims_to_exclude_processes(self, new: NewLock) -> None:
        assert new().excludes_processes is True

    def test_its_file_is_hudis_and_names_nobody(self, new: NewLock, storage: ObjectStorage) -> None:
        lock = new()
        assert lock.try_lock(0)
        held = json.loads(storage.read(".hoodie/.locks/table_lock.json"))
        assert set(held) == {"expired", "validUntil", "owner"}
        assert held["expired"] is False
        assert 290_000 < held["validUntil"] - time.time() * 1000 < 301_000
        assert str(uuid.UUID(held["owner"])) == held["owner"]
        lock.unlock()
        given_back = json.loads(storage.read(".hoodie/.locks/table_lock.json"))
        assert given_back["expired"] is True
        assert lock.lease_left() == 0
        assert [status.path for status in storage.list(recursive=True)] == [
            ".hoodie/.locks/table_lock.json"
        ]

    def test_a_lock_of_hudi_itself_is_respected(self, new: NewLock, storage: ObjectStorage) -> None:
        until = int(time.time() * 1000) + 60_000
        held = {"validUntil": until, "owner": "a JVM", "expired": False, "added": 1}
        storage.put(".hoodie/.locks/table_lock.json", json.dumps(held).encode())
        assert not new().try_lock(0.2)
        storage.put(".hoodie/.locks/table_lock.json", json.dumps(held | {"expired": True}).encode())
        lock = new()
        assert lock.try_lock(0)
        lock.unlock()

    def test_a_lease_that_nobody_renews_is_taken_over(self, storage: ObjectStorage) -> None:
        gone = StorageLock(other_process(storage), 0.4, 1000)
        assert gone.try_lock(0)
        lock = StorageLock(storage, 0.4, 1000)
        assert not lock.try_lock(0.2)
        assert lock.try_lock(5)
        assert gone.lease_left() == 0
        gone.unlock()
        assert not StorageLock(other_process(storage), 0.4, 1000).try_lock(0)
        lock.unlock()

    def test_a_lease_that_is_renewed_stays(self, storage: ObjectStorage) -> None:
        held = StorageLock(other_process(storage), 0.4, 0.05)
        assert held.try_lock(0)
        assert not StorageLock(storage, 0.4, 0.05).try_lock(1.5)
        assert held.lease_left() > 0.1
        held.unlock()

    def test_a_clock_that_is_fast_takes_nothing_over(self, storage: ObjectStorage) -> None:
        held = StorageLock(other_process(storage), 300, 1000)
        assert held.try_lock(0)
        fast = StorageLock(storage, 300, 1000, lambda: time.time() + 3600)
        assert not fast.try_lock(0.3)
        held.unlock()

    def test_a_holder_notices_that_its_lock_was_taken(self, storage: ObjectStorage) -> None:
        held = StorageLock(storage, 300, 0.05)
        assert held.try_lock(0)
        thief = LeaseFile(False, int(time.time() * 1000) + 60_000, "thief").encode()
        storage.put(LOCK_PATH, thief)
        deadline = time.monotonic() + 10
        while held.lease_left() > 0:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        held.unlock()
        assert storage.read(LOCK_PATH) == thief

    @pytest.mark.parametrize(
        "data",
        [b"", b"{}", b"[]", b"\xff", b'{"expired": 0, "validUntil": 1, "owner": "x"}', b"[" * 4000],
    )
    def test_a_damaged_file_is_named(self, storage: ObjectStorage, data: bytes) -> None:
        storage.put(LOCK_PATH, data)
        lock = StorageLock(storage)
        with pytest.raises(CorruptMetadataError, match=r"table_lock\.json is damaged"):
            lock.try_lock(0)
        storage.delete(LOCK_PATH)
        assert lock.try_lock(0)
        lock.unlock()


def other_process(storage: ObjectStorage) -> ObjectStorage:
    """Return the same store under a name that the lock between threads does not know."""
    rival = pickle.loads(pickle.dumps(storage))
    place = rival._location
    rival._location = replace(place, uri=place.uri + "#other")
    return rival  # type: ignore[no-any-return]  # pickle does not say


class TestTableLock:
    def test_a_lease_that_ends_is_no_lock(self) -> None:
        storage = ObjectStorage(f"memory://locks-{uuid.uuid4().hex}/table")
        lock = TableLock(StorageLock(storage, 300, 1000), 0)
        with lock.held():
            lock.require_lease()
        short = TableLock(StorageLock(storage, 3, 1000), 0)
        with short.held(), pytest.raises(LockError, match="was lost"):
            short.require_lease()


class TestRegistry:
    @pytest.mark.parametrize(
        ("name", "kind"),
        [
            (None, FileLock),
            ("in_process", InProcessLock),
            (LockKind.IN_PROCESS, InProcessLock),
            ("org.apache.hudi.client.transaction.lock.InProcessLockProvider", InProcessLock),
            ("file_system", FileLock),
            (LockKind.FILE_SYSTEM, FileLock),
        ],
    )
    def test_names_of_locks(self, tmp_path: Path, name: str | None, kind: type) -> None:
        assert type(lock_provider(name, str(tmp_path))) is kind

    def test_the_folder_is_passed_on(self, tmp_path: Path) -> None:
        lock = lock_provider(None, "/lake/t", str(tmp_path))
        assert isinstance(lock, FileLock)
        assert Path(lock.path).parent == tmp_path

    @pytest.mark.parametrize(
        "name",
        [
            "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider",
            "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider",
            "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider",
            "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider",
            "os.system",
            "",
        ],
    )
    def test_other_names_are_refused_with_the_supported_ones(self, name: str) -> None:
        with pytest.raises(InvalidOptionError, match=r"file_system") as caught:
            lock_provider(name, "/lake/t")
        assert caught.value.key == "hoodie.write.lock.provider"
        assert caught.value.value == name

    @pytest.mark.parametrize("uri", ["s3://lake/t", "s3a://lake/t", "gs://lake/t", "az://box/t"])
    def test_files_are_not_locked_in_object_stores(self, uri: str, tmp_path: Path) -> None:
        with pytest.raises(InvalidOptionError, match="object stores cannot lock files"):
            lock_provider("file_system", uri, str(tmp_path))
        assert type(lock_provider(None, uri)) is InProcessLock

    @pytest.mark.parametrize(
        "name", ["storage", "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider"]
    )
    def test_the_lock_in_a_store_needs_one(self, name: str, tmp_path: Path) -> None:
        lease = StorageLock(ObjectStorage("memory://lake/t"))
        assert lock_provider(name, "s3://lake/t", None, lambda: lease) is lease
        with pytest.raises(InvalidOptionError, match="Use file_system"):
            lock_provider(name, str(tmp_path), None, lambda: lease)
