"""The locks that need no server: what all locks owe, and what each adds."""

from __future__ import annotations

import json
import os
import pickle
import re
import time
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudi_core.config.kinds import LockKind
from hudi_core.config.lock import LockConfig
from hudi_core.errors import CorruptMetadataError, InvalidOptionError, LockError
from hudi_core.storage.object_store import ObjectStorage
from hudi_core.txn.locks import (
    BothLocks,
    FileLock,
    InProcessLock,
    LockPlace,
    StorageLock,
    lock_provider,
    waiting,
)
from hudi_core.txn.locks.storage import LOCK_PATH, LeaseFile
from hudi_core.txn.table_lock import TableLock
from tests.lock_contract import LockProviderContract, NewLock, ProcessLockContract


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


class TestFileLock(ProcessLockContract):
    @pytest.fixture
    def new(self, tmp_path: Path) -> NewLock:
        return lambda: FileLock(str(tmp_path))

    @pytest.fixture
    def code(self, tmp_path: Path) -> str:
        return f"from hudi_core.txn.locks import FileLock; lock = FileLock({str(tmp_path)!r})"

    def test_its_file_is_beside_the_table(self, new: NewLock, tmp_path: Path) -> None:
        lock = new()
        assert lock.try_lock(0)
        assert (tmp_path / ".hoodie/.locks/table.lock").exists()
        lock.unlock()

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
        deadline = time.monotonic() + 60
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


class TestStorageLockInAStore(ProcessLockContract):
    lease_s = 300.0
    rivals, turns, turns_of_threads = 2, 4, 2

    @pytest.fixture
    def path(self, s3: Any) -> str:
        return str(s3.new_root())

    @pytest.fixture
    def new(self, s3: Any, path: str) -> NewLock:
        return lambda: StorageLock(ObjectStorage(path, s3.options))

    @pytest.fixture
    def brief(self, s3: Any, path: str) -> NewLock:
        return lambda: StorageLock(ObjectStorage(path, s3.options), 2, 0.2)

    @pytest.fixture
    def code(self, s3: Any, path: str) -> str:
        return (
            "from hudi_core.storage.object_store import ObjectStorage\n"
            "from hudi_core.storage.options import StorageOptions\n"
            "from hudi_core.txn.locks import StorageLock\n"
            f"options = StorageOptions.from_options({s3.given!r}, {{}})\n"
            f"lock = StorageLock(ObjectStorage({path!r}, options))"
        )

    @pytest.fixture
    def brief_code(self, code: str) -> str:
        return f"{code[:-1]}, 2, 0.2)"


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


def chosen(name: str | None, folder: str | None = None) -> LockConfig:
    given = {"hoodie.write.lock.provider": name, "hoodie.write.lock.filesystem.path": folder}
    return LockConfig.from_options({key: text for key, text in given.items() if text is not None})


def test_who_waits_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    monkeypatch.setattr(waiting, "_FIRST_WORD_S", 0.05)
    holder = FileLock(str(tmp_path))
    assert holder.try_lock(0)
    both = BothLocks(InProcessLock(str(tmp_path / "other")), FileLock(str(tmp_path)))
    with (
        pytest.raises(LockError, match=r"after [0-9.]+ s in all; .* held by the process") as caught,
        TableLock(both, 0.2, 1, 0.05).held(),
    ):
        pass
    # servers of other tests write to the same log
    warned = [one.getMessage() for one in caplog.records if one.name == waiting.__name__]
    assert warned
    assert all(
        re.match(
            r"waiting for the table's lock since \d+ s; held by the process .* has .*table\.lock",
            text,
        )
        for text in warned
    )
    assert caught.value.facts["timeout_s"] == 0.2
    assert "table.lock" in str(caught.value.facts["owner"])
    holder.unlock()
    warned.clear()
    with TableLock(both, 0).held():
        assert not warned


def test_who_holds_a_lock_may_not_write_on_a_terminal() -> None:
    storage = ObjectStorage(f"memory://locks-{uuid.uuid4().hex}/table")
    evil = LeaseFile(False, int(time.time() * 1000) + 60_000, "\x1b[31mme\n" * 100)
    storage.put(LOCK_PATH, evil.encode())
    lock = StorageLock(storage)
    assert not lock.try_lock(0)
    owner = waiting.owner_of(lock)
    assert owner is not None
    assert owner.isprintable()
    assert len(owner) <= 300


class TestRegistry:
    @pytest.mark.parametrize(
        ("name", "kind"),
        [
            (None, FileLock),
            ("", FileLock),
            ("in_process", InProcessLock),
            (LockKind.IN_PROCESS, InProcessLock),
            ("org.apache.hudi.client.transaction.lock.InProcessLockProvider", InProcessLock),
            ("file_system", FileLock),
            (LockKind.FILE_SYSTEM, FileLock),
        ],
    )
    def test_names_of_locks(self, tmp_path: Path, name: str | None, kind: type) -> None:
        assert type(lock_provider(LockPlace(str(tmp_path)), chosen(name))) is kind

    def test_the_folder_is_passed_on(self, tmp_path: Path) -> None:
        lock = lock_provider(LockPlace("/lake/t"), chosen(None, str(tmp_path)))
        assert isinstance(lock, FileLock)
        assert Path(lock.path).parent == tmp_path

    @pytest.mark.parametrize(
        "name", ["org.apache.hudi.client.transaction.lock.NoopLockProvider", "os.system"]
    )
    def test_other_names_are_refused_with_the_supported_ones(self, name: str) -> None:
        with pytest.raises(InvalidOptionError, match=r"file_system") as caught:
            chosen(name)
        assert caught.value.key == "hoodie.write.lock.provider"
        assert caught.value.value == name

    @pytest.mark.parametrize("uri", ["s3://lake/t", "s3a://lake/t", "gs://lake/t", "az://box/t"])
    def test_files_are_not_locked_in_object_stores(self, uri: str, tmp_path: Path) -> None:
        with pytest.raises(InvalidOptionError, match="object stores cannot lock files"):
            lock_provider(LockPlace(uri), chosen("file_system", str(tmp_path)))
        assert type(lock_provider(LockPlace(uri), chosen(None))) is InProcessLock

    @pytest.mark.parametrize(
        "name", ["storage", "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider"]
    )
    def test_the_lock_in_a_store_needs_one(self, name: str, tmp_path: Path) -> None:
        store = ObjectStorage("memory://lake/t")
        assert type(lock_provider(LockPlace("s3://lake/t", store), chosen(name))) is StorageLock
        for place in (LockPlace(str(tmp_path), store), LockPlace("s3://lake/t")):
            with pytest.raises(InvalidOptionError, match="Use file_system"):
                lock_provider(place, chosen(name))
