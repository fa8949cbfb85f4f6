"""The lock in ZooKeeper, beside Curator's."""

from __future__ import annotations

import re
import socket
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from kazoo.client import KazooClient

from hudi_core.config.lock import LockConfig
from hudi_core.errors import InvalidOptionError, LockError
from hudi_core.model.protocols import LockProvider
from hudi_core.services.drop import drop_table
from hudi_core.txn.locks import LockPlace, lock_provider
from hudi_core.txn.locks.zookeeper import ZookeeperLock, with_port
from tests.lock_contract import NewLock, ProcessLockContract
from tests.tables import new_table

LOCK = "hoodie.write.lock."
CLASSES = "org.apache.hudi.client.transaction.lock."
SESSION_S, BRIEF_S = 30, 3
ROWS = pa.table({"id": ["a"], "n": [1]})


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
        return lambda: ZookeeperLock(zookeeper.hosts, path, BRIEF_S)

    @pytest.fixture
    def code(self, zookeeper: Any, path: str) -> str:
        return (
            "from hudi_core.txn.locks.zookeeper import ZookeeperLock\n"
            f"lock = ZookeeperLock({zookeeper.hosts!r}, {path!r}, {SESSION_S})"
        )

    @pytest.fixture
    def brief_code(self, code: str) -> str:
        return code.replace(f", {SESSION_S})", f", {BRIEF_S})")

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


def chosen(place: LockPlace, provider: str, **options: str) -> LockProvider:
    given = {f"{LOCK}zookeeper.{name}": text for name, text in options.items()}
    return lock_provider(place, LockConfig.from_options({f"{LOCK}provider": provider, **given}))


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
    for name in ("zookeeper", CLASSES + "ZookeeperBasedLockProvider"):
        lock = chosen(LockPlace("/lake/t", name="trips"), name, **keys)
        assert isinstance(lock, ZookeeperLock)
        assert lock._path == "/hudi/locks/trips"
        lock = chosen(LockPlace("/lake/t", name="trips"), name, **keys, lock_key="a/b")
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
    lock = chosen(LockPlace(path), CLASSES + name if name[0] == "Z" else name, url="zk")
    assert isinstance(lock, ZookeeperLock)
    assert lock._path == f"/tmp/{node}/lock_key"


@pytest.mark.parametrize(
    ("options", "missing"),
    [
        ({}, "zookeeper.url"),
        ({"url": "zk"}, "zookeeper.base_path"),
        ({"url": "zk", "base_path": "/hudi"}, "zookeeper.lock_key"),
        ({"url": "http://zk:2181"}, "zookeeper.url"),
        ({"url": "zk:two"}, "zookeeper.url"),
        ({"url": "zk", "base_path": "hudi"}, "zookeeper.base_path"),
        ({"url": "zk", "base_path": "/hudi", "lock_key": "a//b"}, "zookeeper.lock_key"),
        ({"url": "zk", "base_path": "/hudi", "session_timeout_ms": "9"}, "zookeeper.session"),
    ],
)
def test_options_that_are_missing_or_wrong(options: dict[str, str], missing: str) -> None:
    with pytest.raises(InvalidOptionError, match=missing.replace(".", r"\.")):
        chosen(LockPlace("/lake/t"), "zookeeper", **options)


def test_a_library_that_is_missing_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kazoo", None)
    with pytest.raises(InvalidOptionError, match=r"pip install hudi-core\[zookeeper\]"):
        chosen(LockPlace("/lake/t", name="t"), "zookeeper", url="zk", base_path="/hudi")


def test_a_table_is_written_under_it(zookeeper: Any, path: str, tmp_path: Path) -> None:
    options = {
        f"{LOCK}provider": CLASSES + "ZookeeperBasedLockProvider",
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
