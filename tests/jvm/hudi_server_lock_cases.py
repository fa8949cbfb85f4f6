"""Hudi's locks in ZooKeeper and in a Hive metastore and ours exclude each other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_core.config.lock import LockConfig
from hudi_core.model.protocols import LockProvider
from hudi_core.txn.locks.place import LockPlace
from hudi_core.txn.locks.registry import lock_provider
from tests.jvm.engines import Engine

LOCK = "hoodie.write.lock."
CLASSES = "org.apache.hudi.client.transaction.lock."
IMPATIENT = {
    LOCK + "wait_time_ms": "500",
    LOCK + "num_retries": "2",
    LOCK + "wait_time_ms_between_retry": "100",
    LOCK + "max_wait_time_ms_between_retry": "200",
}


def explicit(hosts: str) -> dict[str, str]:
    return {
        LOCK + "provider": CLASSES + "ZookeeperBasedLockProvider",
        LOCK + "zookeeper.url": hosts,
        LOCK + "zookeeper.base_path": "/hudi/locks",
        LOCK + "zookeeper.lock_key": "trips",
        LOCK + "zookeeper.session_timeout_ms": "10000",
    }


def implicit(hosts: str) -> dict[str, str]:
    return {
        LOCK + "provider": CLASSES + "ZookeeperBasedImplicitBasePathLockProvider",
        LOCK + "zookeeper.url": hosts,
    }


def hive(uri: str) -> dict[str, str]:
    return {
        LOCK + "provider": "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider",
        LOCK + "hivemetastore.uris": uri,
        LOCK + "hivemetastore.database": "default",
        LOCK + "hivemetastore.table": "trips",
    }


def exclude_each_other(engine: Engine, path: Path, options: dict[str, str]) -> None:
    def ours() -> LockProvider:
        return lock_provider(LockPlace(str(path)), LockConfig.from_options(options))

    lock = ours()
    theirs = {**options, **IMPATIENT}
    assert engine.lock(path, theirs)
    assert not lock.try_lock(0.3)
    engine.unlock(path)
    assert lock.try_lock(10)
    assert not engine.lock(path, theirs)
    assert lock.lease_left() > 0
    lock.unlock()
    assert engine.lock(path, theirs)
    engine.unlock(path)
    assert lock.try_lock(10)
    lock.unlock()


@pytest.mark.parametrize("options", [explicit, implicit])
def test_a_lock_in_zookeeper(
    hudi_spark: Engine, zookeeper: Any, tmp_path: Path, options: Callable[[str], dict[str, str]]
) -> None:
    exclude_each_other(hudi_spark, tmp_path / "table", options(zookeeper.hosts))


def test_a_lock_in_a_hive_metastore(hudi_spark: Engine, metastore: Any, tmp_path: Path) -> None:
    exclude_each_other(hudi_spark, tmp_path / "table", hive(metastore.uri))
