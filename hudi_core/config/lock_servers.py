"""Options of locks in ZooKeeper, DynamoDB and Hive metastores."""

from __future__ import annotations

import os
import re
from typing import Final

from hudi_core.config.options import Group, Option, Options, Secret
from hudi_core.config.parsers import integer, optional

_SHORTEST_LEASE_MS: Final = 10_000
"""Less leaves a writer no time for what it does under the lock."""
_HOST: Final = r"([\w.\-]+|\[[\da-fA-F:.]+\])(:\d{1,5})?"
_SERVERS: Final = re.compile(rf"{_HOST}(,{_HOST})*(/[^,]*)?")
_ENDPOINT: Final = re.compile(r"(https?://)?[\w.\-]+(:\d+)?/?")
_URIS: Final = re.compile(r"thrift://[^,/]+:\d+(,thrift://[^,/]+:\d+)*")


def servers(text: str) -> str | None:
    """Parse a connect string of ZooKeeper."""
    if text and not _SERVERS.fullmatch(text):
        raise ValueError("it is no list of servers, such as zk1:2181,zk2:2181")
    return text or None


def node_path(text: str) -> str | None:
    """Parse the path of a ZooKeeper node."""
    if text and not (text.startswith("/") and "//" not in text and not text.endswith("/")):
        raise ValueError("it is no path of a node, such as /hudi")
    return text or None


def node_name(text: str) -> str | None:
    """Parse the path of a ZooKeeper node below another."""
    if text:
        node_path(f"/{text}")
    return text or None


def thrift_uris(text: str) -> tuple[str, ...]:
    """Parse addresses of Hive metastores, separated by commas."""
    if text and not _URIS.fullmatch(text):
        raise ValueError("it is not one or several of thrift://HOST:PORT, with commas between")
    return tuple(text.split(",")) if text else ()


def endpoint(text: str) -> str | None:
    """Parse the address of a service, by default of the scheme https."""
    if text and not _ENDPOINT.fullmatch(text):
        raise ValueError("it is no address, such as https://dynamodb.eu-west-1.amazonaws.com")
    return f"https://{text}" if text and "://" not in text else text or None


class ZookeeperLockConfig(Options, group=Group.LOCK):
    """A lock in ZooKeeper."""

    url: Option[str | None] = Option("hoodie.write.lock.zookeeper.url", parse=servers)
    """`zookeeper`: its servers, such as `zk1:2181,zk2:2181`, perhaps with a root path at the end,
    such as `/prod`. Needs kazoo: `pip install hudi-core[zookeeper]`."""
    port: Option[int | None] = Option(
        "hoodie.write.lock.zookeeper.port", parse=optional(integer(1, 65_535)), default_text="2181"
    )
    """`zookeeper`: port of the servers that are given without one."""
    base_path: Option[str | None] = Option("hoodie.write.lock.zookeeper.base_path", parse=node_path)
    """`zookeeper`: the node below which locks are, such as `/hudi/locks`. The same for all writers
    of a table. `zookeeper_implicit` makes one from the table's path, and does not use this."""
    lock_key: Option[str | None] = Option(
        "hoodie.write.lock.zookeeper.lock_key", parse=node_name, default_text="the table's name"
    )
    """`zookeeper`: name of the table's lock below that node. `zookeeper_implicit` does not use
    this."""
    session_ms: Option[int] = Option(
        "hoodie.write.lock.zookeeper.session_timeout_ms",
        default=60_000,
        parse=integer(_SHORTEST_LEASE_MS),
    )
    """`zookeeper`: milliseconds after which the lock of a writer that is not heard of any more is
    given to another."""
    connection_ms: Option[int] = Option(
        "hoodie.write.lock.zookeeper.connection_timeout_ms", default=15_000
    )
    """`zookeeper`: milliseconds to wait for a server to answer."""


class DynamoLockConfig(Options, group=Group.LOCK):
    """A lock in a table of DynamoDB."""

    table: Option[str | None] = Option("hoodie.write.lock.dynamodb.table")
    """`dynamodb`: the DynamoDB table that holds locks; created when missing. Needs boto3: `pip
    install hudi-core[dynamodb]`."""
    partition_key: Option[str | None] = Option(
        "hoodie.write.lock.dynamodb.partition_key", default_text="the table's name"
    )
    """`dynamodb`: key of the item that is the table's lock. `dynamodb_implicit` makes one from the
    table's path, and does not use this."""
    region: Option[str] = Option(
        "hoodie.write.lock.dynamodb.region",
        default="",
        default_text="the environment's AWS_REGION, else us-east-1",
    )
    """`dynamodb`: region of the service."""
    endpoint_url: Option[str | None] = Option(
        "hoodie.write.lock.dynamodb.endpoint_url", parse=endpoint, default_text="that of the region"
    )
    """`dynamodb`: address of the service."""
    billing_mode: Option[str] = Option(
        "hoodie.write.lock.dynamodb.billing_mode",
        default="PAY_PER_REQUEST",
        choices=("PAY_PER_REQUEST", "PROVISIONED"),
    )
    """`dynamodb`: how a table that is created here is paid for."""
    read_capacity: Option[int] = Option("hoodie.write.lock.dynamodb.read_capacity", default=20)
    """`dynamodb`: read units of a table that is created here, with `PROVISIONED`."""
    write_capacity: Option[int] = Option("hoodie.write.lock.dynamodb.write_capacity", default=10)
    """`dynamodb`: write units of a table that is created here, with `PROVISIONED`."""
    creation_ms: Option[int] = Option(
        "hoodie.write.lock.dynamodb.table_creation_timeout", default=600_000
    )
    """`dynamodb`: milliseconds to wait for a table that is created here."""
    access_key: Option[Secret | None] = Option(
        "hoodie.aws.access.key", default_text="what boto3 finds by itself", secret=True
    )
    """`dynamodb`: the access key id."""
    secret_key: Option[Secret | None] = Option(
        "hoodie.aws.secret.key", default_text="what boto3 finds by itself", secret=True
    )
    """`dynamodb`: the secret access key."""
    session_token: Option[Secret | None] = Option("hoodie.aws.session.token", secret=True)
    """`dynamodb`: the token of temporary keys."""

    @property
    def region_name(self) -> str:
        """The region, as Hudi finds it."""
        return self.region or os.environ.get("AWS_REGION") or "us-east-1"


class HiveLockConfig(Options, group=Group.LOCK):
    """A lock in a Hive metastore."""

    uris: Option[tuple[str, ...]] = Option(
        "hoodie.write.lock.hivemetastore.uris", default=(), parse=thrift_uris
    )
    """`hive_metastore`: its addresses, such as `thrift://metastore:9083`; the first that answers is
    used. Needs thrift: `pip install hudi-core[hive]`."""
    database: Option[str | None] = Option("hoodie.write.lock.hivemetastore.database")
    """`hive_metastore`: database of the table that is locked."""
    table: Option[str | None] = Option("hoodie.write.lock.hivemetastore.table")
    """`hive_metastore`: the table that is locked; it need not exist."""
    heartbeat_ms: Option[int] = Option("hoodie.write.lock.heartbeat_interval_ms", default=60_000)
    """`hive_metastore`: milliseconds between two signs of life of a lock that is held."""
