"""The lock of Hudi's ``DynamoDBBasedLockProvider``: an item in a table of DynamoDB.

Hudi takes the lock client of AWS Labs. The item exists while the lock is held, and changes by
conditional writes only, so that the service lets one of several writers through::

    key                  the lock's name: the partition key of the DynamoDB table
    ownerName            one taking of the lock
    leaseDuration        milliseconds, as text
    recordVersionNumber  a new one with each renewal
    isReleased           "1" where a writer gave the lock back and let the item stay

Clocks are not compared: who waits takes over an item whose version it has itself seen unchanged for
the lease that the item names.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from hudi_core.config.kinds import LockKind
from hudi_core.config.lock import LockConfig
from hudi_core.config.lock_servers import DynamoLockConfig
from hudi_core.errors import LockError, ResourceLimitError
from hudi_core.txn.locks.in_process import HeldLock, InProcessLock
from hudi_core.txn.locks.place import LockPlace, required
from hudi_core.txn.locks.renewal import Renewal

_SHORTEST_LEASE_S: Final = 20
"""A writer needs time for what it does under the lock, however shortly it waits itself."""
_CREATION_PAUSE_S: Final = 1.0
_USABLE: Final = ("ACTIVE", "UPDATING")


def lock_of(place: LockPlace, config: LockConfig) -> DynamoLock:
    """The lock of a table in DynamoDB."""
    options, kind = config.dynamodb, config.provider or LockKind.DYNAMODB
    table = required(DynamoLockConfig.table.key, options.table, kind)
    if kind is LockKind.DYNAMODB_IMPLICIT:
        key = place.hashed_path
    else:
        key = place.name_for(DynamoLockConfig.partition_key.key, options.partition_key)
    # as in Hudi, where who waits for long holds for long
    return DynamoLock(options, table, key, max(_SHORTEST_LEASE_S, config.wait_ms / 1000))


class DynamoLock(HeldLock["HeldItem"]):
    """Excludes all who lock a table through one table of DynamoDB.

    ``table`` is the DynamoDB table, ``key`` the name of the lock in it. The lock of a process that
    gives no sign for ``lease_s`` may be taken over. The time to create the DynamoDB table comes on
    top of that to take the lock. If the service does not answer when the lock is released, it ends
    with its lease.
    """

    def __init__(self, options: DynamoLockConfig, table: str, key: str, lease_s: float) -> None:
        place = options.endpoint_url or options.region_name
        super().__init__(InProcessLock(f"/dynamodb/{place}/{table}/{key}"))
        self._options, self._table, self._key, self._lease_s = options, table, key, lease_s
        self._service: Any = None
        self._watched: tuple[str, float] | None = None

    def _give_back(self, held: HeldItem) -> None:
        with translated(self._table):
            held.end()

    def _left(self, held: HeldItem) -> float:
        return held.renewal.left()

    def _wait(self, deadline: float, timeout_s: float) -> HeldItem | None:
        with translated(self._table):
            self._connect()
            return self._poll(deadline, timeout_s)

    def _poll(self, deadline: float, timeout_s: float) -> HeldItem | None:
        pause = self.first_pause_s
        while True:
            found = self._read()
            hold = self._take_over(found)
            now = time.monotonic()
            if hold is None and self._watched is not None and found is not None:
                # who waits for as long as a lease is to see it end, though it saw it begin later
                ends = self._watched[1] + found.lease_s
                if timeout_s >= found.lease_s and ends - now < self.longest_pause_s:
                    deadline = max(deadline, ends + self.first_pause_s)
            if hold is not None or now >= deadline:
                return hold
            time.sleep(min(pause, deadline - now))
            pause = min(2 * pause, self.longest_pause_s)

    def _read(self) -> Item | None:
        item = self._service.get_item(
            TableName=self._table, Key={"key": {"S": self._key}}, ConsistentRead=True
        ).get("Item")
        return None if item is None else Item.decode(item)

    def _take_over(self, found: Item | None) -> HeldItem | None:
        """Take the lock if it is free now."""
        if found is None:
            return self._put(ConditionExpression="attribute_not_exists(#key)", names=("#key",))
        if not found.is_released:
            self._owner = f"the writer {found.owner}, for {found.lease_s:g} s after it is last seen"
            now = time.monotonic()
            if self._watched is None or self._watched[0] != found.version:
                self._watched = found.version, now
            if now - self._watched[1] <= found.lease_s:
                return None
        return self._put(
            ConditionExpression=UNCHANGED,
            ExpressionAttributeValues={":version": {"S": found.version}},
            names=("#key", "#version"),
        )

    def _put(self, *, names: tuple[str, ...], **condition: Any) -> HeldItem | None:
        hold, since = (
            HeldItem(self._service, self._table, self._key, self._lease_s),
            time.monotonic(),
        )
        used = {name: NAMES[name] for name in names}
        try:
            self._service.put_item(
                TableName=self._table,
                Item=hold.item(),
                ExpressionAttributeNames=used,
                **condition,
            )
        except ClientError as error:
            if not is_condition(error):
                raise
            # a request that was sent again may find what it did itself
            found = self._read()
            if found is None or found.version != hold.version:
                return None
        try:
            hold.renewal.start(since)
        except ResourceLimitError:
            hold.end()  # no thread would renew it
            raise
        self._watched = None
        return hold

    def _connect(self) -> None:
        """Create the DynamoDB table if it is missing.

        Waits until it can be used.
        """
        if self._service is not None:
            return
        service = client_of(self._options, os.getpid())
        deadline = time.monotonic() + self._options.creation_ms / 1000
        while self._status(service) not in _USABLE:
            if time.monotonic() > deadline:
                raise LockError(
                    f"The DynamoDB table {self._table} cannot be used yet",
                    "Create it by hand: its partition key is the string `key`.",
                )
            time.sleep(_CREATION_PAUSE_S)
        self._service = service

    def _status(self, service: Any) -> str | None:
        """State of the DynamoDB table, which is created if there is none."""
        try:
            return str(service.describe_table(TableName=self._table)["Table"]["TableStatus"])
        except service.exceptions.ResourceNotFoundException:
            pass
        options = self._options
        units = {
            "ProvisionedThroughput": {
                "ReadCapacityUnits": options.read_capacity,
                "WriteCapacityUnits": options.write_capacity,
            }
        }
        try:
            made = service.create_table(
                TableName=self._table,
                KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
                AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
                BillingMode=options.billing_mode,
                **(units if options.billing_mode == "PROVISIONED" else {}),
            )
        except service.exceptions.ResourceInUseException:
            return None  # another writer creates it
        return str(made["TableDescription"]["TableStatus"])


# --- the item of a lock ---------------------------------------------------------------------------


_RENEWALS: Final = 6
"""Renewals that fit into a lease, so that some of them may fail."""
_CONFIG: Final = Config(
    connect_timeout=5, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 3}
)
NAMES: Final = {"#key": "key", "#version": "recordVersionNumber"}
UNCHANGED: Final = "attribute_exists(#key) AND #version = :version"
_MINE: Final = f"{UNCHANGED} AND ownerName = :owner"


@dataclass(frozen=True, slots=True)
class Item:
    """The item of a lock that is held.

    ``owner`` is one taking of the lock, ``version`` its last renewal, which holds for ``lease_s``.
    """

    owner: str
    version: str
    lease_s: float
    is_released: bool

    @classmethod
    def decode(cls, item: dict[str, Any]) -> Item:
        """What the service gives."""
        try:
            return cls(
                item["ownerName"]["S"],
                item["recordVersionNumber"]["S"],
                int(item["leaseDuration"]["S"]) / 1000,
                "isReleased" in item,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise LockError(
                "The item of the table's lock in DynamoDB is none of a lock",
                "Make sure that no process writes the table, and delete the item.",
            ) from error


class HeldItem:
    """A lock that is held, and renewed."""

    def __init__(self, service: Any, table: str, key: str, lease_s: float) -> None:
        self._service, self._table, self._key, self._lease_s = service, table, key, lease_s
        self._owner = str(uuid.uuid4())
        self.version = str(uuid.uuid4())
        self.renewal = Renewal(lease_s, lease_s / _RENEWALS, self._renew)

    def item(self) -> dict[str, Any]:
        """The item while the lock is held."""
        return {
            "key": {"S": self._key},
            "ownerName": {"S": self._owner},
            "leaseDuration": {"S": str(int(self._lease_s * 1000))},
            "recordVersionNumber": {"S": self.version},
        }

    def end(self) -> None:
        """Give the lock back, unless another writer has it by now."""
        self.renewal.stop()
        self._change(self._service.delete_item, {})

    def _renew(self) -> bool:
        new = str(uuid.uuid4())
        with translated(self._table):
            is_mine = self._change(
                self._service.update_item, {":new": {"S": new}}, "SET #version = :new"
            )
        if is_mine:
            self.version = new
        return is_mine

    def _change(
        self, change: Callable[..., Any], values: dict[str, Any], expression: str = ""
    ) -> bool:
        """Change the item, if it is still this holder's."""
        request: dict[str, Any] = {
            "TableName": self._table,
            "Key": {"key": {"S": self._key}},
            "ConditionExpression": _MINE,
            "ExpressionAttributeNames": dict(NAMES),
            **({"UpdateExpression": expression} if expression else {}),
        }
        owner = {"S": self._owner}
        for _ in range(2):
            mine = {":version": {"S": self.version}, ":owner": owner}
            try:
                change(**request, ExpressionAttributeValues={**mine, **values})
            except ClientError as error:
                if not is_condition(error):
                    raise
            else:
                return True
            # an earlier change may have been made, and its answer lost
            found = self._service.get_item(
                TableName=self._table, Key=request["Key"], ConsistentRead=True
            ).get("Item", {})
            if found.get("ownerName") != owner:
                return False
            self.version = found["recordVersionNumber"]["S"]
        return False


@lru_cache(maxsize=8)
def client_of(options: DynamoLockConfig, _: int) -> Any:
    """A client of the service for a process.

    It takes long to make. Keys that are not given are what boto3 finds by itself.
    """
    keys = {
        "aws_access_key_id": options.access_key,
        "aws_secret_access_key": options.secret_key,
        "aws_session_token": options.session_token,
    }
    return boto3.session.Session().client(
        "dynamodb",
        region_name=options.region_name,
        endpoint_url=options.endpoint_url,
        config=_CONFIG,
        **{name: (None if key is None else key.reveal()) for name, key in keys.items()},
    )


def is_condition(error: ClientError) -> bool:
    """Whether the item is not as the request supposed."""
    return bool(error.response["Error"]["Code"] == "ConditionalCheckFailedException")


@contextmanager
def translated(table: str) -> Iterator[None]:
    """Errors of the service as :class:`~hudi_core.errors.LockError`."""
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise LockError(
            f"The lock in the DynamoDB table {table} cannot be reached: {error}",
            "Check hoodie.write.lock.dynamodb.* and what the keys may do; then run it again.",
        ) from error
