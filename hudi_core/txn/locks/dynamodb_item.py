"""The item of a lock in DynamoDB."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from hudi_core.config.key import Secret
from hudi_core.config.lock_servers import DynamoLockConfig
from hudi_core.errors import LockError
from hudi_core.txn.locks.renewal import Renewal

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
        **{name: _revealed(key) for name, key in keys.items()},
    )


def _revealed(key: Secret | None) -> str | None:
    return None if key is None else key.reveal()


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
