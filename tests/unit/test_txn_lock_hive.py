"""The lock of a Hive metastore: that of PySpark's jars."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator

import pytest
from hive_metastore import ttypes
from hudi_conformance.hive_metastore import HiveMetastore, hive_metastore

from hudi_core.config.lock import LockConfig
from hudi_core.errors import InvalidOptionError, LockError
from hudi_core.model.protocols import LockProvider
from hudi_core.txn.locks import LockPlace, lock_provider
from hudi_core.txn.locks.hive_metastore import HiveLock, _seconds
from tests.lock_contract import NewLock, ProcessLockContract

LOCK = "hoodie.write.lock."
LEASE_S = 3


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveMetastore]:
    """A metastore that takes locks away soon; the shared one is not to."""
    with hive_metastore(tmp_path_factory.mktemp("metastore"), LEASE_S) as service:
        yield service


@pytest.fixture
def table() -> str:
    return f"trips_{uuid.uuid4().hex}"


class TestHiveLock(ProcessLockContract):
    lease_s = LEASE_S
    rivals, turns, turns_of_threads = 2, 4, 2

    @pytest.fixture
    def new(self, service: HiveMetastore, table: str) -> NewLock:
        return lambda: HiveLock((service.uri,), "default", table)

    @pytest.fixture
    def code(self, service: HiveMetastore, table: str) -> str:
        return (
            "from hudi_core.txn.locks.hive_metastore import HiveLock\n"
            f"lock = HiveLock(({service.uri!r},), 'default', {table!r})"
        )

    def test_it_is_a_lock_of_hives(self, new: NewLock, service: HiveMetastore, table: str) -> None:
        lock = new()
        assert lock.try_lock(0)
        with service.client() as client:
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
        self, service: HiveMetastore, table: str
    ) -> None:
        lock = HiveLock(("thrift://127.0.0.1:9", service.uri), "default", table)
        assert lock.try_lock(0)
        lock.unlock()


@pytest.mark.impure
def test_a_metastore_that_does_not_answer_is_an_error() -> None:
    with pytest.raises(LockError, match=r"thrift://127\.0\.0\.1:9 cannot be reached"):
        HiveLock(("thrift://127.0.0.1:9",), "default", "t").try_lock(0)


def chosen(provider: str, **options: str) -> LockProvider:
    given = {f"{LOCK}hivemetastore.{name}": text for name, text in options.items()}
    place = LockPlace("/lake/t", name="t")
    return lock_provider(place, LockConfig.from_options({f"{LOCK}provider": provider, **given}))


@pytest.mark.impure  # sessions of other locks' tests may end meanwhile
@pytest.mark.parametrize(
    "provider",
    ["hive_metastore", "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider"],
)
def test_options(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"uris": "thrift://h1:9083,thrift://h2:9083", "database": "d", "table": "t"}
    assert isinstance(chosen(provider, **given), HiveLock)
    for name in given:
        with pytest.raises(InvalidOptionError, match=f"hivemetastore.{name}"):
            chosen(provider, **{key: text for key, text in given.items() if key != name})
    with pytest.raises(InvalidOptionError, match="thrift://HOST:PORT"):
        chosen(provider, **{**given, "uris": "h1:9083"})
    monkeypatch.setitem(sys.modules, "thrift", None)
    with pytest.raises(InvalidOptionError, match=r"pip install hudi-core\[hive\]"):
        chosen(provider, **given)


@pytest.mark.parametrize(
    ("text", "seconds"), [("300s", 300), ("5min", 300), ("250ms", 0.25), ("7", 7), ("x", 300)]
)
def test_durations_of_hive(text: str, seconds: float) -> None:
    assert _seconds(text) == seconds
