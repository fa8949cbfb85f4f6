"""The lock file that Hudi's own writers make and delete."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.config.lock import LockConfig
from hudi_core.errors import InvalidOptionError, LockError
from hudi_core.model.protocols import LockProvider
from hudi_core.services.drop import drop_table
from hudi_core.txn.locks import FileLock, HudiFileLock, LockPlace, lock_provider
from hudi_core.txn.table_lock import TableLock
from tests.lock_contract import NewLock, ProcessLockContract
from tests.tables import new_table

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
        return (
            f"from hudi_core.txn.locks import HudiFileLock as Lock; lock = Lock({str(tmp_path)!r})"
        )

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
        self, new: NewLock, lock_file: Path, holder: subprocess.Popen[str]
    ) -> None:
        lock = new()
        assert not lock.try_lock(0.1)
        holder.send_signal(signal.SIGSTOP)
        assert not lock.try_lock(0.1)
        holder.kill()
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


# --- writers -------------------------------------------------------------------------------------


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
