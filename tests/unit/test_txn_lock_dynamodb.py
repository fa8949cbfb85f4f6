"""The lock in DynamoDB, as Hudi's and the lock client of AWS Labs have it; served by moto."""

from __future__ import annotations

import sys
import time
import uuid
from typing import Any

import pytest

from hudi_core.config.lock import LockConfig
from hudi_core.errors import InvalidOptionError, LockError
from hudi_core.model.protocols import LockProvider
from hudi_core.txn.locks import LockPlace, lock_provider
from hudi_core.txn.locks.dynamodb import DynamoLock, client_of
from tests.lock_contract import NewLock, ProcessLockContract

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


def chosen(place: LockPlace, provider: str, **options: str) -> LockProvider:
    own = {f"{LOCK}dynamodb.{name}": text for name, text in options.items()}
    return lock_provider(place, LockConfig.from_options({f"{LOCK}provider": provider, **own}))


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
    lock = chosen(place, provider, table="locks")
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
    ("options", "missing"),
    [
        ({}, r"dynamodb\.table"),
        ({"table": "locks"}, r"dynamodb\.partition_key"),
        ({"table": "locks", "partition_key": "k", "endpoint_url": "no url"}, "endpoint_url"),
        ({"table": "locks", "billing_mode": "FREE"}, "billing_mode"),
    ],
)
def test_options_that_are_missing_or_wrong(options: dict[str, str], missing: str) -> None:
    with pytest.raises(InvalidOptionError, match=missing):
        chosen(LockPlace("/lake/t"), "dynamodb", **options)


def test_a_library_that_is_missing_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(InvalidOptionError, match=r"pip install hudi-core\[dynamodb\]"):
        chosen(LockPlace("/lake/t", name="t"), "dynamodb", table="locks")
