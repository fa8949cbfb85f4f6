"""Options of the table lock, and the typed view made from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final, Self

from hudi_core.config.extension_points import CONFLICT_POINT, LOCK_POINT, member_of
from hudi_core.config.kinds import ConcurrencyMode, LockKind
from hudi_core.config.lock_servers import DynamoLockConfig, HiveLockConfig, ZookeeperLockConfig
from hudi_core.config.options import ConfigKey, GivenOptions, Group, Option, Options
from hudi_core.config.parsers import integer
from hudi_core.errors import InvalidOptionError
from hudi_core.model.format import Granularity

_PREFIX: Final = "hoodie.write.lock."
_RENEWALS: Final = 10
"""Renewals that must fit into a lease, so that some of them may fail; as in Hudi."""


SERVER_LOCKS: Final[Mapping[LockKind, type[Options]]] = {
    LockKind.ZOOKEEPER: ZookeeperLockConfig,
    LockKind.DYNAMODB: DynamoLockConfig,
    LockKind.HIVE_METASTORE: HiveLockConfig,
}
"""The options of locks that a server keeps."""


def seconds_of_minutes(text: str) -> int:
    """Parse whole minutes."""
    return 60 * integer(0)(text)


class LockConfig(Options, group=Group.LOCK):
    """How a writer takes the table's lock.

    ``expire_s`` is in seconds, its option in minutes. ``own`` are the options of a lock that
    another distribution provides.
    """

    concurrency_mode: Option[ConcurrencyMode] = Option(
        "hoodie.write.concurrency.mode", default=ConcurrencyMode.SINGLE_WRITER
    )
    """Whether several writers may work on the table at a time. They must share a lock."""
    provider: Option[LockKind | str | None] = Option(
        "hoodie.write.lock.provider",
        parse=member_of(LOCK_POINT, LockKind),
        default_text="file_system on local paths; in object stores in_process for SINGLE_WRITER "
        "and the native format, else storage; with it the lock that the table's format offers",
        hudi_default="ZookeeperBasedLockProvider",
        reason="A lock that needs no server works without any set-up.",
    )
    """The lock: `in_process` (threads of one process), `file_system` (processes of this project
    that share a file system), `lock_file` (these and Hudi's own writers), `storage` (processes that
    share an object store with conditional puts), `zookeeper`, `zookeeper_implicit`, `dynamodb`,
    `dynamodb_implicit` or `hive_metastore` (processes that share such a service). Hudi's writers
    take all but the first two by the names of Java classes, which are known here too:
    `org.apache.hudi.client.transaction.lock.InProcessLockProvider`,
    `org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider`,
    `org.apache.hudi.client.transaction.lock.StorageBasedLockProvider`,
    `org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider`,
    `org.apache.hudi.client.transaction.lock.ZookeeperBasedImplicitBasePathLockProvider`,
    `org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider`,
    `org.apache.hudi.aws.transaction.lock.DynamoDBBasedImplicitPartitionKeyLockProvider`,
    `org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider`. Or the name of one that
    an installed distribution provides (`docs/extension_points.md`), whose own options begin with
    `hoodie.write.lock.<name>.`."""
    conflict_strategy = ConfigKey(
        "hoodie.write.lock.conflict.resolution.strategy",
        parse=member_of(CONFLICT_POINT, Granularity),
        default_text="what the table's format asks for, else file_group",
        hudi_default="SimpleConcurrentFileWritesConflictResolutionStrategy",
        reason="A table format may need a coarser one.",
    )
    """Which concurrent writes conflict, so that the later one is given up: those that change one
    `file_group`, one `partition`, or the `table` at all. Also by the names of Hudi's Java classes
    `org.apache.hudi.client.transaction.SimpleConcurrentFileWritesConflictResolutionStrategy` and
    `...BucketIndexConcurrentFileWritesConflictResolutionStrategy`, both `file_group`. Or the name
    of one that an installed distribution provides (`docs/extension_points.md`): it refuses writes
    besides those that change one file group."""
    wait_ms: Option[int] = Option(
        "hoodie.write.lock.wait_time_ms", default=60_000, parse=integer(0)
    )
    """Milliseconds one attempt waits for the lock."""
    retries: Option[int] = Option(
        "hoodie.write.lock.client.num_retries", default=50, parse=integer(0)
    )
    """How often a failed attempt is repeated."""
    retry_wait_ms: Option[int] = Option(
        "hoodie.write.lock.client.wait_time_ms_between_retry", default=5_000, parse=integer(0)
    )
    """Milliseconds between two attempts."""
    path: Option[str | None] = Option(
        "hoodie.write.lock.filesystem.path",
        default_text="folders of the table: `.hoodie/.locks` for `file_system`, `.hoodie` for "
        "`lock_file`",
    )
    """Local folder that holds the file of `file_system` and `lock_file`. With `lock_file` all
    tables that share it share one lock, as in Hudi."""
    expire_s: Option[int] = Option(
        "hoodie.write.lock.filesystem.expire", default=0, parse=seconds_of_minutes
    )
    """`lock_file`: minutes after which a lock file that is not renewed is deleted; 0 for never.
    Hudi's writers do not renew theirs."""
    lease_s: Option[int] = Option(
        "hoodie.write.lock.storage.validity.timeout.secs", default=300, parse=integer(10)
    )
    """`storage`: seconds after which a lock that is not renewed may be taken over. At least ten
    times the seconds between renewals."""
    renew_s: Option[int] = Option(
        "hoodie.write.lock.storage.renew.interval.secs",
        default=30,
        aliases=("hoodie.write.lock.storage.heartbeat.poll.secs",),
    )
    """`storage`: seconds between two renewals of a lock that is held."""

    zookeeper: ZookeeperLockConfig = ZookeeperLockConfig()
    dynamodb: DynamoLockConfig = DynamoLockConfig()
    hive: HiveLockConfig = HiveLockConfig()
    own: GivenOptions = field(default_factory=GivenOptions)

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """See :meth:`Options.from_options`; a lease has to last for several renewals.

        Options of a server's lock without a chosen lock are refused: the writers that have that
        lock would not be excluded.
        """
        cls.conflict_strategy.read(options)
        provider = cls.provider.read(options)
        config = cls._read(
            options,
            own=GivenOptions(
                LOCK_POINT.options_of(provider, options)
                if provider is not None and not isinstance(provider, LockKind)
                else {}
            ),
        )
        if config.provider is None:
            _require_no_server(options)
        least = _RENEWALS * config.renew_s
        if config.lease_s < least:
            raise cls.lease_s.refused(
                str(config.lease_s),
                f"a lease must last for {_RENEWALS} renewals, one every {config.renew_s} s",
                f"Give at least {least}, or renew more often with {cls.renew_s.key}.",
            )
        return config


_SERVER_OPTIONS: Final = frozenset(
    name for server in SERVER_LOCKS.values() for key in server.keys for name in key.names
)


def _require_no_server(options: Mapping[str, str]) -> None:
    if options.keys().isdisjoint(_SERVER_OPTIONS):
        return
    for kind, server in SERVER_LOCKS.items():
        for key in server.keys:
            found = key.find(options)
            is_lock = key.key.startswith(f"{_PREFIX}{kind.value.replace('_', '')}.")
            if found is not None and is_lock and key.read(options) != key.default:
                raise InvalidOptionError(
                    *found,
                    f"the lock {kind.value} is not chosen, which it belongs to",
                    f"Give {LockConfig.provider.key}={kind.value} as well, or leave it out.",
                )
