"""Hudi's ``FileSystemBasedLockProvider`` and ours exclude each other."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import LockError
from hudi_core.txn.locks.lock_file import HudiFileLock
from tests.jvm.engines import Engine, EngineError
from tests.tables import new_table

LOCK = "hoodie.write.lock."
SHARED = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    LOCK + "provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
}
HASTY = {
    **SHARED,
    LOCK + "wait_time_ms": "200",
    LOCK + "client.num_retries": "1",
    LOCK + "client.wait_time_ms_between_retry": "100",
}
PATIENT = {
    **SHARED,
    LOCK + "client.num_retries": "600",
    LOCK + "client.wait_time_ms_between_retry": "50",
}
HUDI = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
TURNS = 4


def one_row(key: str, city: str, ts: int) -> pa.Table:
    return pa.table({"id": [key], "city": [city], "ts": pa.array([ts], pa.int64())})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "table"
    start = pa.concat_tables([one_row("a", "Rome", 0), one_row("b", "Oslo", 0)])
    new_table(path, start.schema, name="trips").upsert(start)
    return path


def test_a_lock_of_hudi_keeps_us_out(hudi_spark: Engine, path: Path) -> None:
    table = hudi.Table.open(str(path), HASTY)
    assert hudi_spark.lock(path)
    with pytest.raises(LockError):
        table.upsert(one_row("a", "Rome", 1))
    hudi_spark.unlock(path)
    table.upsert(one_row("a", "Rome", 2))
    assert hudi_spark.values(path, ["id", "ts"]) == [("a", 2), ("b", 0)]
    assert not (path / ".hoodie" / "lock").exists()


def test_our_lock_keeps_hudi_out(hudi_spark: Engine, path: Path) -> None:
    lock = HudiFileLock(str(path))
    assert lock.try_lock(0)
    assert not hudi_spark.lock(path)
    assert lock.lease_left() > 0
    with pytest.raises(EngineError, match="acquire"):
        hudi_spark.save(one_row("a", "Rome", 1), path, {**HUDI, **HASTY})
    lock.unlock()
    hudi_spark.save(one_row("a", "Rome", 2), path, {**HUDI, **HASTY})
    assert hudi_spark.values(path, ["id", "ts"]) == [("a", 2), ("b", 0)]
    assert lock.try_lock(0)
    lock.unlock()


def test_a_folder_of_the_users_is_the_same_for_both(
    hudi_spark: Engine, path: Path, tmp_path: Path
) -> None:
    folder = {LOCK + "filesystem.path": str(tmp_path / "locks")}
    assert hudi_spark.lock(path, folder)
    lock = HudiFileLock(str(path), str(tmp_path / "locks"))
    assert not lock.try_lock(0)
    hudi_spark.unlock(path)
    assert lock.try_lock(0)
    assert not hudi_spark.lock(path, folder)
    lock.unlock()
    assert hudi_spark.lock(path, folder)
    hudi_spark.unlock(path)


def test_an_old_file_expires_for_both(hudi_spark: Engine, path: Path) -> None:
    expire = {LOCK + "filesystem.expire": "1"}
    file = path / ".hoodie" / "lock"
    assert hudi_spark.lock(path, expire)
    os.utime(file, (0, 0))
    lock = HudiFileLock(str(path), expire_s=60)
    assert lock.try_lock(0)
    assert not hudi_spark.lock(path, expire)
    os.utime(file, (0, 0))  # as if it could not be renewed
    assert hudi_spark.lock(path, expire)
    assert lock.lease_left() == 0
    lock.unlock()
    assert file.exists()
    hudi_spark.unlock(path)


def test_both_write_at_a_time_and_nothing_is_lost(hudi_spark: Engine, path: Path) -> None:
    hudi_spark.values(path, ["id"])  # the engine is up

    def theirs() -> None:
        for turn in range(1, TURNS + 1):
            hudi_spark.save(one_row("b", "Oslo", turn), path, {**HUDI, **PATIENT})
            hudi_spark.save(one_row(f"b{turn}", "Oslo", turn), path, {**HUDI, **PATIENT})

    turn = 0
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(theirs)
        while not other.done():
            turn += 1
            batch = pa.concat_tables(
                [one_row("a", "Rome", turn), one_row(f"a{turn}", "Rome", turn)]
            )
            hudi.Table.open(str(path), PATIENT).upsert(batch)
        other.result()
    assert turn > TURNS
    wanted = {"a": turn, "b": TURNS}
    wanted |= {f"a{number}": number for number in range(1, turn + 1)}
    wanted |= {f"b{number}": number for number in range(1, TURNS + 1)}
    assert dict(hudi_spark.values(path, ["id", "ts"])) == wanted
    table = hudi.Table.open(str(path))
    assert dict(zip(*table.to_arrow(["id", "ts"]).to_pydict().values(), strict=True)) == wanted
    assert table.validate().differences == ()
    assert not (path / ".hoodie" / "lock").exists()
