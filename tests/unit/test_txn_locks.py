"""Locks: what all owe, and what each adds."""

from __future__ import annotations

import json
import os
import pickle
import re
import signal
import socket
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hive_metastore import ttypes
from hudi_conformance.hive_metastore import HiveMetastore, hive_metastore
from kazoo.client import KazooClient

import hudi_core as hudi
from hudi_core.config.kinds import LockKind
from hudi_core.config.lock import LockConfig
from hudi_core.errors import CorruptMetadataError, InvalidOptionError, LockError
from hudi_core.model.protocols import LockProvider
from hudi_core.services.drop import drop_table
from hudi_core.storage.object_store import ObjectStorage
from hudi_core.txn.locks import waiting
from hudi_core.txn.locks.dynamodb import DynamoLock, client_of
from hudi_core.txn.locks.hive_metastore import HiveLock, _seconds
from hudi_core.txn.locks.in_process import InProcessLock
from hudi_core.txn.locks.lock_file import FileLock, HudiFileLock
from hudi_core.txn.locks.place import LockPlace
from hudi_core.txn.locks.registry import lock_provider
from hudi_core.txn.locks.storage import LOCK_PATH, LeaseFile, StorageLock
from hudi_core.txn.locks.waiting import BothLocks
from hudi_core.txn.locks.zookeeper import ZookeeperLock, with_port
from hudi_core.txn.table_lock import TableLock
from tests.lock_contract import Holder, LockProviderContract, NewLock, ProcessLockContract
from tests.tables import new_table


class TestInProcessLock(LockProviderContract):
    @pytest.fixture
    def new(self, tmp_path: Path) -> NewLock:
        return lambda: InProcessLock(str(tmp_path))

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
        assert not first.excludes_processes
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
        made = f"FileLock({str(tmp_path)!r})"
        return f"from hudi_core.txn.locks.lock_file import FileLock; lock = {made}"

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

    def test_its_file_is_hudis_and_names_nobody(self, new: NewLock, storage: ObjectStorage) -> None:
        lock = new()
        assert lock.excludes_processes
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
            "from hudi_core.txn.locks.storage import StorageLock\n"
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


# --- the lock file that Hudi's own writers make and delete
PROVIDER = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
OPTIONS = {"hoodie.write.lock.provider": PROVIDER, "hoodie.write.lock.wait_time_ms": "100"}
ROWS = pa.table({"id": ["a"], "n": [1]})


def hudis(path: Path, age_s: float = 0.0) -> Path:
    """Make the lock file as Hudi does: empty, with Hadoop's checksum."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    (path.parent / ".lock.crc").write_bytes(b"crc\0\0\0\2\0")
    os.utime(path, (time.time() - age_s,) * 2)
    return path


class TestHudiFileLock(ProcessLockContract):
    @pytest.fixture
    def new(self, tmp_path: Path) -> NewLock:
        return lambda: HudiFileLock(str(tmp_path))

    @pytest.fixture
    def lock_file(self, tmp_path: Path) -> Path:
        return tmp_path / ".hoodie" / "lock"

    @pytest.fixture
    def code(self, tmp_path: Path) -> str:
        made = f"HudiFileLock({str(tmp_path)!r})"
        return f"from hudi_core.txn.locks.lock_file import HudiFileLock; lock = {made}"

    def test_its_file_is_hudis_and_names_nobody(self, new: NewLock, lock_file: Path) -> None:
        lock = new()
        assert lock.excludes_processes
        assert lock.try_lock(0)
        fields = json.loads(lock_file.read_text())
        assert fields.keys() == {"lockCreateTime", "lockThreadName", "lockStacksInfo", "owner"}
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}", fields["lockCreateTime"])
        assert socket.gethostname() not in lock_file.read_text()
        lock.unlock()
        assert [path.name for path in lock_file.parent.iterdir()] == [".locks"]
        assert [path.name for path in (lock_file.parent / ".locks").iterdir()] == ["table.lock"]

    def test_a_file_of_hudi_is_waited_for(self, new: NewLock, lock_file: Path) -> None:
        lock = new()
        for content in (b"", b'{"lockThreadName":"main","owner":1}', b"{", b"\xff"):
            hudis(lock_file, age_s=1e6).write_bytes(content)
            assert not lock.try_lock(0.1)
        timer = threading.Timer(0.2, lock_file.unlink)
        timer.start()
        assert lock.try_lock(10)
        lock.unlock()

    def test_a_file_that_expired_is_deleted(self, tmp_path: Path, lock_file: Path) -> None:
        hudis(lock_file, age_s=59)
        lock = HudiFileLock(str(tmp_path), expire_s=60)
        assert not lock.try_lock(0)
        hudis(lock_file, age_s=61)
        assert lock.try_lock(0)
        assert sorted(path.name for path in lock_file.parent.iterdir()) == [".locks", "lock"]
        lock.unlock()

    def test_a_holder_renews_its_file(self, tmp_path: Path, lock_file: Path) -> None:
        lock = HudiFileLock(str(tmp_path), expire_s=0.2)
        assert lock.try_lock(0)
        os.utime(lock_file, (0, 0))
        deadline = time.monotonic() + 60
        while lock_file.stat().st_mtime == 0:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        lock.unlock()
        assert not lock_file.exists()

    def test_a_dead_holder_of_ours_is_known_at_once(
        self, new: NewLock, lock_file: Path, holder: Holder
    ) -> None:
        lock = new()
        assert not lock.try_lock(0.1)
        holder.signal(signal.SIGSTOP)
        assert not lock.try_lock(0.1)
        holder.signal(signal.SIGKILL)
        holder.wait()
        assert lock_file.exists()
        assert lock.try_lock(0)
        lock.unlock()

    def test_a_file_that_hudi_deleted_is_no_lock(self, new: NewLock, lock_file: Path) -> None:
        """Hudi does so when it closes a writer without the lock."""
        lock = new()
        assert lock.try_lock(0)
        lock_file.unlink()
        assert lock.lease_left() == 0
        hudis(lock_file)
        assert lock.lease_left() == 0
        lock.unlock()
        assert lock_file.exists(), "it is Hudi's"

    def test_a_file_that_hudi_took_over_is_no_lock(self, new: NewLock, lock_file: Path) -> None:
        """Hudi looks for the file, then opens it, which empties it."""
        lock = new()
        assert lock.try_lock(0)
        hudis(lock_file).write_bytes(b"")
        assert lock.lease_left() == 0
        lock.unlock()
        assert lock_file.exists(), "it is Hudi's"
        table_lock = TableLock(new(), 0)
        lock_file.unlink()
        with table_lock.held():
            table_lock.require_lease()
            lock_file.write_bytes(b"")
            with pytest.raises(LockError, match="was lost"):
                table_lock.require_lease()

    def test_tables_that_share_a_folder_share_the_lock(self, tmp_path: Path) -> None:
        folder = str(tmp_path / "locks")
        one, other = HudiFileLock("/lake/one", folder), HudiFileLock("s3://lake/other", folder)
        assert one.try_lock(0)
        assert one.path == str(tmp_path / "locks" / "lock")
        assert not other.try_lock(0)
        one.unlock()
        assert other.try_lock(0)
        other.unlock()

    @pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
    def test_a_dead_holder_of_another_table_is_known(self, tmp_path: Path) -> None:
        folder = str(tmp_path / "locks")
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            HudiFileLock("/one", folder).try_lock(0)
            os.write(writer, b"held")
            signal.pause()
        assert os.read(reader, 4) == b"held"
        other = HudiFileLock("/other", folder)
        assert not other.try_lock(0)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert other.try_lock(0)
        other.unlock()
        os.close(reader)
        os.close(writer)

    def test_a_place_that_cannot_have_the_file_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / ".hoodie").write_bytes(b"")
        with pytest.raises(LockError, match=r"cannot be (made|locked)"):
            HudiFileLock(str(tmp_path)).try_lock(0)
        (tmp_path / ".hoodie").unlink()
        (tmp_path / ".hoodie").mkdir()
        (tmp_path / ".hoodie" / "lock").symlink_to("elsewhere")
        with pytest.raises(LockError, match=r"hoodie\.write\.lock\.filesystem\.path"):
            HudiFileLock(str(tmp_path)).try_lock(0)


def test_names_and_places(tmp_path: Path) -> None:
    def chosen(name: str, path: str, folder: str = "") -> LockProvider:
        given = {"hoodie.write.lock.provider": name, "hoodie.write.lock.filesystem.path": folder}
        return lock_provider(LockPlace(path), LockConfig.from_options(given))

    for name in (PROVIDER, "lock_file"):
        assert type(chosen(name, str(tmp_path))) is HudiFileLock
        assert type(chosen(name, "s3://lake/t", str(tmp_path))) is HudiFileLock
        with pytest.raises(InvalidOptionError, match="s3://lake/t is in one"):
            chosen(name, "s3://lake/t")
    assert type(chosen("file_system", str(tmp_path), str(tmp_path))) is FileLock
    for name in (PROVIDER, "file_system"):
        with pytest.raises(InvalidOptionError, match="gs://locks is in one") as caught:
            chosen(name, str(tmp_path), "gs://locks")
        assert caught.value.value in ("lock_file", "gs://locks")


# --- writers
def test_writers_wait_for_the_file(tmp_path: Path) -> None:
    path = tmp_path / "table"
    table = new_table(path, ROWS.schema, OPTIONS)
    first = table.upsert(ROWS)
    lock_file = hudis(path / ".hoodie" / "lock")
    with pytest.raises(LockError, match=rf"was not free .* delete {re.escape(str(lock_file))}"):
        table.upsert(ROWS)
    with pytest.raises(LockError):
        table.rollback(table.timeline.completed_writes()[-1])
    with pytest.raises(LockError):
        drop_table(str(path), OPTIONS)
    assert table.timeline.instants == (first.instant,)
    folder = {"hoodie.write.lock.filesystem.path": str(tmp_path / "locks")}
    table.upsert(ROWS, options=folder)
    hudis(tmp_path / "locks" / "lock")
    with pytest.raises(LockError):
        table.upsert(ROWS, options=folder)
    os.utime(lock_file, (0, 0))
    table.upsert(ROWS, options={"hoodie.write.lock.filesystem.expire": "1"})
    assert len(hudi.Table.open(str(path)).timeline.instants) == 3
    assert not lock_file.exists()


def test_a_table_is_made_and_replaced_under_the_file(tmp_path: Path) -> None:
    options = {**OPTIONS, "hoodie.datasource.write.recordkey.field": "id"}
    hudis(tmp_path / ".hoodie" / "lock", age_s=120)
    with pytest.raises(LockError):
        hudi.write(ROWS, str(tmp_path), options=options)
    expiring = {**options, "hoodie.write.lock.filesystem.expire": "1"}
    hudi.write(ROWS, str(tmp_path), options=expiring)
    hudi.write(ROWS, str(tmp_path), "overwrite", options)
    assert hudi.Table.open(str(tmp_path)).to_arrow().num_rows == 1
    drop_table(str(tmp_path), options)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


# --- the lock in DynamoDB, as Hudi's and the lock client of AWS Labs have it; served by moto
LOCK = "hoodie.write.lock."
CLASSES = "org.apache.hudi.aws.transaction.lock."
LEASE_S, BRIEF_S = 30, 2


def given(endpoint: str) -> dict[str, str]:
    return {
        f"{LOCK}provider": "dynamodb",
        f"{LOCK}dynamodb.endpoint_url": endpoint,
        f"{LOCK}dynamodb.table": "locks",
        "hoodie.aws.access.key": "test-access-key",
        "hoodie.aws.secret.key": "test-secret-key",
    }


def config(endpoint: str, **more: str) -> LockConfig:
    others = {f"{LOCK}dynamodb.{name}": text for name, text in more.items()}
    return LockConfig.from_options({**given(endpoint), **others})


@pytest.fixture
def key() -> str:
    return f"trips-{uuid.uuid4()}"


@pytest.fixture
def service(s3: Any) -> Any:
    """A client of the service, as anybody may have one."""
    return client_of(config(s3.endpoint).dynamodb, 0)


class TestDynamoLock(ProcessLockContract):
    lease_s = LEASE_S
    rivals, turns, turns_of_threads = 2, 4, 2

    @pytest.fixture
    def new(self, s3: Any, key: str) -> NewLock:
        return lambda: DynamoLock(config(s3.endpoint).dynamodb, "locks", key, LEASE_S)

    @pytest.fixture
    def brief(self, s3: Any, key: str) -> NewLock:
        return lambda: DynamoLock(config(s3.endpoint).dynamodb, "locks", key, BRIEF_S)

    @pytest.fixture
    def code(self, s3: Any, key: str) -> str:
        return (
            "from hudi_core.txn.locks.dynamodb import DynamoLock\n"
            "from hudi_core.config.lock_servers import DynamoLockConfig\n"
            f"options = DynamoLockConfig.from_options({given(s3.endpoint)!r})\n"
            f"lock = DynamoLock(options, 'locks', {key!r}, {LEASE_S})"
        )

    @pytest.fixture
    def brief_code(self, code: str) -> str:
        return code.replace(f", {LEASE_S})", f", {BRIEF_S})")

    def test_its_item_is_hudis_and_names_nobody(self, new: NewLock, service: Any, key: str) -> None:
        lock = new()
        assert lock.try_lock(0)
        item = self.item(service, key)
        assert item is not None
        assert set(item) == {"key", "ownerName", "leaseDuration", "recordVersionNumber"}
        assert item["leaseDuration"] == {"S": "30000"}
        assert str(uuid.UUID(item["ownerName"]["S"])) == item["ownerName"]["S"]
        lock.unlock()
        assert self.item(service, key) is None
        made = service.describe_table(TableName="locks")["Table"]
        assert made["KeySchema"] == [{"AttributeName": "key", "KeyType": "HASH"}]
        assert made["AttributeDefinitions"] == [{"AttributeName": "key", "AttributeType": "S"}]
        assert made["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"

    def test_an_item_of_hudi_is_waited_for_until_its_lease_ends(
        self, new: NewLock, service: Any, key: str
    ) -> None:
        lock = new()
        assert lock.try_lock(0)
        lock.unlock()
        self.put(service, key, "1", lease_ms=1500)
        assert not lock.try_lock(0.3)
        self.put(service, key, "2", lease_ms=1500)  # renewed
        started = time.monotonic()
        assert lock.try_lock(1.5), "whoever waits for a whole lease sees it end"
        assert time.monotonic() - started > 1.5
        lock.unlock()

    def test_an_item_that_was_released_is_free(self, new: NewLock, service: Any, key: str) -> None:
        lock = new()
        assert lock.try_lock(0)
        lock.unlock()
        self.put(service, key, "1", lease_ms=60_000, isReleased={"S": "1"})
        assert lock.try_lock(0)
        assert "isReleased" not in (self.item(service, key) or {})
        lock.unlock()

    def test_a_holder_renews_it_and_notices_its_loss(self, s3: Any, service: Any, key: str) -> None:
        lock = DynamoLock(config(s3.endpoint).dynamodb, "locks", key, 1.2)
        assert lock.try_lock(0)
        first = self.item(service, key)
        time.sleep(1.5)
        assert lock.lease_left() > 0
        assert self.item(service, key) != first
        self.put(service, key, "theirs", lease_ms=60_000)
        deadline = time.monotonic() + 60
        while lock.lease_left() > 0:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        lock.unlock()
        assert (self.item(service, key) or {})["recordVersionNumber"] == {"S": "theirs"}

    def test_an_item_that_is_no_lock_is_named(self, new: NewLock, service: Any, key: str) -> None:
        lock = new()
        assert lock.try_lock(0)
        lock.unlock()
        service.put_item(TableName="locks", Item={"key": {"S": key}})
        with pytest.raises(LockError, match="delete the item"):
            lock.try_lock(0)

    def item(self, service: Any, key: str) -> dict[str, Any] | None:
        found: dict[str, Any] | None = service.get_item(
            TableName="locks", Key={"key": {"S": key}}, ConsistentRead=True
        ).get("Item")
        return found

    def put(self, service: Any, key: str, version: str, lease_ms: int, **more: Any) -> None:
        item = {
            "key": {"S": key},
            "ownerName": {"S": "a JVM"},
            "leaseDuration": {"S": str(lease_ms)},
            "recordVersionNumber": {"S": version},
        }
        service.put_item(TableName="locks", Item=item | more)


def test_a_table_of_dynamodb_is_made_as_told(s3: Any, service: Any, key: str) -> None:
    options = config(s3.endpoint, table=key, billing_mode="PROVISIONED", write_capacity="7")
    lock = lock_provider(LockPlace("/lake/t", name="trips"), options)
    assert lock.try_lock(0)
    lock.unlock()
    made = service.describe_table(TableName=key)["Table"]["ProvisionedThroughput"]
    assert (made["ReadCapacityUnits"], made["WriteCapacityUnits"]) == (20, 7)


def of_server(
    kind: str, place: LockPlace, provider: str | None = None, **options: str
) -> LockProvider:
    """Lock of a server, by its options, as `lock_provider` makes it."""
    own = {f"{LOCK}{kind}.{name}": text for name, text in options.items()}
    given = {f"{LOCK}provider": provider or kind, **own}
    return lock_provider(place, LockConfig.from_options(given))


@pytest.mark.parametrize(
    ("provider", "expected"),
    [
        ("dynamodb", "trips"),
        (CLASSES + "DynamoDBBasedLockProvider", "trips"),
        ("dynamodb_implicit", "52B6F91537859B95"),
        (CLASSES + "DynamoDBBasedImplicitPartitionKeyLockProvider", "52B6F91537859B95"),
    ],
)
def test_the_key_is_hudis(provider: str, expected: str) -> None:
    place = LockPlace("s3a://lake/trips", name="trips")
    lock = of_server("dynamodb", place, provider, table="locks")
    assert isinstance(lock, DynamoLock)
    assert (lock._key, lock._lease_s) == (expected, 60)


@pytest.mark.impure
def test_a_service_that_does_not_answer_is_an_error_without_secrets() -> None:
    options = config("http://127.0.0.1:9")
    assert "test-secret-key" not in repr(options)
    lock = lock_provider(LockPlace("/lake/t", name="t"), options)
    with pytest.raises(LockError, match="the DynamoDB table locks cannot be reached") as caught:
        lock.try_lock(0)
    assert "test-secret-key" not in f"{caught.value!r} {caught.value} {caught.value.facts}"


@pytest.mark.parametrize(
    ("kind", "options", "missing"),
    [
        ("dynamodb", {}, "table"),
        ("dynamodb", {"table": "locks"}, "partition_key"),
        (
            "dynamodb",
            {"table": "l", "partition_key": "k", "endpoint_url": "no url"},
            "endpoint_url",
        ),
        ("dynamodb", {"table": "locks", "billing_mode": "FREE"}, "billing_mode"),
        ("zookeeper", {}, "url"),
        ("zookeeper", {"url": "zk"}, "base_path"),
        ("zookeeper", {"url": "zk", "base_path": "/hudi"}, "lock_key"),
        ("zookeeper", {"url": "http://zk:2181"}, "url"),
        ("zookeeper", {"url": "zk:two"}, "url"),
        ("zookeeper", {"url": "zk", "base_path": "hudi"}, "base_path"),
        ("zookeeper", {"url": "zk", "base_path": "/hudi", "lock_key": "a//b"}, "lock_key"),
        ("zookeeper", {"url": "zk", "base_path": "/h", "session_timeout_ms": "9"}, "session"),
    ],
)
def test_options_that_are_missing_or_wrong(
    kind: str, options: dict[str, str], missing: str
) -> None:
    with pytest.raises(InvalidOptionError, match=rf"{kind}\.{missing}"):
        of_server(kind, LockPlace("/lake/t"), **options)


@pytest.mark.parametrize(
    ("library", "kind", "options"),
    [
        ("boto3", "dynamodb", {"table": "locks"}),
        ("kazoo", "zookeeper", {"url": "zk", "base_path": "/hudi"}),
    ],
)
def test_a_library_that_is_missing_names_its_extra(
    library: str, kind: str, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(InvalidOptionError, match=rf"pip install hudi-core\[{kind}\]"):
        of_server(kind, LockPlace("/lake/t", name="t"), **options)


# --- the lock of a Hive metastore: that of PySpark's jars
HIVE_LEASE_S = 3
HERE = LockPlace("/lake/t", name="t")


@pytest.fixture(scope="module")
def own_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveMetastore]:
    """A metastore that takes locks away soon; the shared one is not to."""
    with hive_metastore(tmp_path_factory.mktemp("metastore"), HIVE_LEASE_S) as service:
        yield service


@pytest.fixture
def table() -> str:
    return f"trips_{uuid.uuid4().hex}"


class TestHiveLock(ProcessLockContract):
    lease_s = HIVE_LEASE_S
    rivals, turns, turns_of_threads = 2, 4, 2

    @pytest.fixture
    def new(self, own_service: HiveMetastore, table: str) -> NewLock:
        return lambda: HiveLock((own_service.uri,), "default", table)

    @pytest.fixture
    def code(self, own_service: HiveMetastore, table: str) -> str:
        return (
            "from hudi_core.txn.locks.hive_metastore import HiveLock\n"
            f"lock = HiveLock(({own_service.uri!r},), 'default', {table!r})"
        )

    def test_it_is_a_lock_of_hives(
        self, new: NewLock, own_service: HiveMetastore, table: str
    ) -> None:
        lock = new()
        assert lock.try_lock(0)
        with own_service.client() as client:
            request = ttypes.ShowLocksRequest(dbname="default", tablename=table)
            [held] = client.show_locks(request).locks
            assert (held.type, held.state) == (ttypes.LockType.EXCLUSIVE, ttypes.LockState.ACQUIRED)
            assert held.user == "hudi-core", "it names nobody"
            assert str(uuid.UUID(held.hostname)) == held.hostname
            client.unlock(ttypes.UnlockRequest(lockid=held.lockid))
            assert lock.lease_left() == 0
            lock.unlock()
            component = ttypes.LockComponent(
                ttypes.LockType.EXCLUSIVE, ttypes.LockLevel.TABLE, "default", table
            )
            theirs = client.lock(ttypes.LockRequest([component], user="spark", hostname="h1"))
            assert theirs.state == ttypes.LockState.ACQUIRED
            assert not lock.try_lock(0.2)
            assert lock.owner() == "the user spark at h1"  # type: ignore[attr-defined]
            client.unlock(ttypes.UnlockRequest(lockid=theirs.lockid))
            assert lock.try_lock(0)
            lock.unlock()
            assert client.show_locks(request).locks == []

    def test_addresses_that_do_not_answer_are_passed_over(
        self, own_service: HiveMetastore, table: str
    ) -> None:
        lock = HiveLock(("thrift://127.0.0.1:9", own_service.uri), "default", table)
        assert lock.try_lock(0)
        lock.unlock()


@pytest.mark.impure
def test_a_metastore_that_does_not_answer_is_an_error() -> None:
    with pytest.raises(LockError, match=r"thrift://127\.0\.0\.1:9 cannot be reached"):
        HiveLock(("thrift://127.0.0.1:9",), "default", "t").try_lock(0)


@pytest.mark.impure  # sessions of other locks' tests may end meanwhile
@pytest.mark.parametrize(
    "provider",
    ["hive_metastore", "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider"],
)
def test_options(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"uris": "thrift://h1:9083,thrift://h2:9083", "database": "d", "table": "t"}
    assert isinstance(of_server("hivemetastore", HERE, provider, **given), HiveLock)
    for name in given:
        with pytest.raises(InvalidOptionError, match=f"hivemetastore.{name}"):
            of_server(
                "hivemetastore",
                HERE,
                provider,
                **{key: text for key, text in given.items() if key != name},
            )
    with pytest.raises(InvalidOptionError, match="thrift://HOST:PORT"):
        of_server("hivemetastore", HERE, provider, **{**given, "uris": "h1:9083"})
    monkeypatch.setitem(sys.modules, "thrift", None)
    with pytest.raises(InvalidOptionError, match=r"pip install hudi-core\[hive\]"):
        of_server("hivemetastore", HERE, provider, **given)


@pytest.mark.parametrize(
    ("text", "seconds"), [("300s", 300), ("5min", 300), ("250ms", 0.25), ("7", 7), ("x", 300)]
)
def test_durations_of_hive(text: str, seconds: float) -> None:
    assert _seconds(text) == seconds


# --- the lock in ZooKeeper, beside Curator's
CURATOR = "org.apache.hudi.client.transaction.lock."
SESSION_S, ZOOKEEPER_BRIEF_S = 30, 3


def as_another_process(hosts: str) -> str:
    """The same server by other words: locks of one process meet by the words, before the server."""
    return f"{hosts},{hosts}"


@pytest.fixture
def path() -> str:
    return f"/hudi/{uuid.uuid4()}/trips"


class TestZookeeperLock(ProcessLockContract):
    lease_s = SESSION_S
    rivals, turns_of_threads = 2, 5

    @pytest.fixture
    def new(self, zookeeper: Any, path: str) -> NewLock:
        return lambda: ZookeeperLock(zookeeper.hosts, path, SESSION_S)

    @pytest.fixture
    def brief(self, zookeeper: Any, path: str) -> NewLock:
        return lambda: ZookeeperLock(zookeeper.hosts, path, ZOOKEEPER_BRIEF_S)

    @pytest.fixture
    def code(self, zookeeper: Any, path: str) -> str:
        return (
            "from hudi_core.txn.locks.zookeeper import ZookeeperLock\n"
            f"lock = ZookeeperLock({zookeeper.hosts!r}, {path!r}, {SESSION_S})"
        )

    @pytest.fixture
    def brief_code(self, code: str) -> str:
        return code.replace(f", {SESSION_S})", f", {ZOOKEEPER_BRIEF_S})")

    def test_curator_and_ours_are_one_queue(self, new: NewLock, zookeeper: Any, path: str) -> None:
        milliseconds = zookeeper.gateway.jvm.java.util.concurrent.TimeUnit.MILLISECONDS
        lock = new()
        assert lock.try_lock(0)
        with zookeeper.mutex(path) as mutex:
            assert not mutex.acquire(100, milliseconds)
            [node] = mutex.getParticipantNodes()
            assert re.fullmatch(rf"{path}/_c_[0-9a-f-]{{36}}-lock-\d{{10}}", node)
            # who asked first is next, whatever the names of the nodes
            with ThreadPoolExecutor(1) as pool:
                other = ZookeeperLock(as_another_process(zookeeper.hosts), path)

                def take_and_give_back() -> bool:
                    taken = other.try_lock(60)
                    other.unlock()
                    return taken

                waiting = pool.submit(take_and_give_back)
                while len(mutex.getParticipantNodes()) == 1:
                    assert not waiting.done()
                assert not mutex.acquire(100, milliseconds)
                assert len(mutex.getParticipantNodes()) == 2
                lock.unlock()
                assert waiting.result(60)
            assert mutex.acquire(60_000, milliseconds)
            assert not lock.try_lock(0.2)
            assert "127.0.0.1" in str(lock.owner()), "what Curator writes"  # type: ignore[attr-defined]
            mutex.release()
        assert lock.try_lock(0)
        lock.unlock()

    def test_a_session_that_is_gone_is_no_lock(
        self, new: NewLock, zookeeper: Any, path: str
    ) -> None:
        lock = new()
        assert lock.try_lock(0)
        client = KazooClient(zookeeper.hosts)
        client.start()
        [node] = client.get_children(path)
        client.delete(f"{path}/{node}")
        client.stop()
        client.close()
        assert lock.lease_left() == 0
        other = new()
        lock.unlock()
        assert other.try_lock(0)
        other.unlock()

    def test_nothing_stays_but_the_path(self, new: NewLock, zookeeper: Any, path: str) -> None:
        lock = new()
        assert lock.try_lock(0)
        assert not new().try_lock(0)
        lock.unlock()
        client = KazooClient(zookeeper.hosts)
        client.start()
        assert client.get_children(path) == []
        client.stop()
        client.close()


@pytest.mark.impure
def test_a_server_that_does_not_answer_is_an_error() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        hosts = f"127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(LockError, match=rf"at {hosts} cannot be taken: no server answers"):
            ZookeeperLock(hosts, "/hudi/t", 10, 0.3).try_lock(0)


@pytest.mark.parametrize(
    ("hosts", "port", "expected"),
    [
        ("zk1,zk2:2182/root", 2183, "zk1:2183,zk2:2182/root"),
        ("zk1", None, "zk1"),
        ("[::1],[::1]:7", 9, "[::1]:9,[::1]:7"),
    ],
)
def test_ports(hosts: str, port: int | None, expected: str) -> None:
    assert with_port(hosts, port) == expected


def test_the_path_is_hudis() -> None:
    keys = {"url": "zk", "base_path": "/hudi/locks"}
    for name in ("zookeeper", CURATOR + "ZookeeperBasedLockProvider"):
        lock = of_server("zookeeper", LockPlace("/lake/t", name="trips"), name, **keys)
        assert isinstance(lock, ZookeeperLock)
        assert lock._path == "/hudi/locks/trips"
        lock = of_server(
            "zookeeper", LockPlace("/lake/t", name="trips"), name, **keys, lock_key="a/b"
        )
        assert isinstance(lock, ZookeeperLock)
        assert lock._path == "/hudi/locks/a/b"


@pytest.mark.parametrize(
    "name", ["zookeeper_implicit", "ZookeeperBasedImplicitBasePathLockProvider"]
)
@pytest.mark.parametrize(
    ("path", "node"),
    [  # made by Hudi's class
        ("s3a://lake/trips", "52B6F91537859B95"),
        ("s3://lake/trips", "52B6F91537859B95"),
        ("/tmp/trips", "871488970912AF63"),
        ("file:///tmp/são", "4B36BF0245D01135"),
    ],
)
def test_the_path_that_hudi_makes_of_the_tables(name: str, path: str, node: str) -> None:
    lock = of_server(
        "zookeeper", LockPlace(path), CURATOR + name if name[0] == "Z" else name, url="zk"
    )
    assert isinstance(lock, ZookeeperLock)
    assert lock._path == f"/tmp/{node}/lock_key"


def test_a_table_is_written_under_it(zookeeper: Any, path: str, tmp_path: Path) -> None:
    options = {
        f"{LOCK}provider": CURATOR + "ZookeeperBasedLockProvider",
        f"{LOCK}zookeeper.url": zookeeper.hosts,
        f"{LOCK}zookeeper.base_path": path.rpartition("/")[0],
        f"{LOCK}wait_time_ms": "200",
    }
    table = new_table(tmp_path / "t", ROWS.schema, options, name="trips")
    table.upsert(ROWS)
    holder = ZookeeperLock(as_another_process(zookeeper.hosts), path)
    assert holder.try_lock(0)
    with pytest.raises(LockError, match=r"held by [0-9a-f-]{36}, which queued for it") as caught:
        table.upsert(ROWS)
    assert caught.value.facts["waited_s"] >= 0.2  # type: ignore[operator]
    with pytest.raises(LockError):
        drop_table(str(tmp_path / "t"), options)
    holder.unlock()
    table.upsert(ROWS)
    assert len(table.timeline.completed_writes()) == 2
