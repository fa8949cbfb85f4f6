"""Options of the table lock, and the typed view made from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hudi_core.config.key import ConfigKey, Group
from hudi_core.config.kinds import CONFLICT_CLASSES, LOCK_CLASSES, ConcurrencyMode, LockKind
from hudi_core.config.parsers import integer, text_or_none
from hudi_core.errors import InvalidOptionError
from hudi_core.model.format import Granularity

_RENEWALS: Final = 10
"""Renewals that must fit into a lease, so that some of them may fail; as in Hudi."""


def lock_kind(text: str) -> LockKind | None:
    """Parse a lock provider: one of our words, or the name of Hudi's Java class for it."""
    if not text:
        return None
    known = LOCK_CLASSES | {kind.value: kind for kind in LockKind}
    if text not in known:
        raise ValueError(f"it is none of {', '.join(known)}")
    return known[text]


def conflict_granularity(text: str) -> Granularity | None:
    """Parse a conflict strategy: one of our words, or the name of Hudi's Java class for it."""
    if not text:
        return None
    known = CONFLICT_CLASSES | {kind.value: kind for kind in Granularity}
    if text not in known:
        raise ValueError(f"it is none of {', '.join(known)}")
    return known[text]


CONCURRENCY_MODE: Final = ConfigKey(
    key="hoodie.write.concurrency.mode",
    default=ConcurrencyMode.SINGLE_WRITER,
    parse=ConcurrencyMode,
    choices=tuple(ConcurrencyMode),
    doc="Whether several writers may work on the table at a time. They must share a lock.",
    group=Group.LOCK,
)
PROVIDER: Final = ConfigKey(
    key="hoodie.write.lock.provider",
    default=None,
    default_text="file_system on local paths; in object stores in_process for SINGLE_WRITER and "
    "the native format, else storage; with it the lock that the table's format offers",
    parse=lock_kind,
    doc="The lock: `in_process` (threads of one process), `file_system` (processes of this project "
    "that share a file system), `lock_file` (these and Hudi's own writers) or `storage` (processes "
    "that share an object store with conditional puts). Hudi's writers take the last two by the "
    "names `org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider` and "
    "`...StorageBasedLockProvider`, which are known here too, like `...InProcessLockProvider`.",
    group=Group.LOCK,
    hudi_default="ZookeeperBasedLockProvider",
    reason="A lock that needs no server works without any set-up.",
)
CONFLICT_STRATEGY: Final = ConfigKey(
    key="hoodie.write.lock.conflict.resolution.strategy",
    default=None,
    default_text="what the table's format asks for, else file_group",
    parse=conflict_granularity,
    doc="Which concurrent writes conflict, so that the later one is given up: those that change "
    "one `file_group`, one `partition`, or the `table` at all. Also by the names of Hudi's Java "
    "classes `org.apache.hudi.client.transaction."
    "SimpleConcurrentFileWritesConflictResolutionStrategy` and "
    "`...BucketIndexConcurrentFileWritesConflictResolutionStrategy`, both `file_group`.",
    group=Group.LOCK,
    hudi_default="SimpleConcurrentFileWritesConflictResolutionStrategy",
    reason="A table format may need a coarser one.",
)
WAIT_MS: Final = ConfigKey(
    key="hoodie.write.lock.wait_time_ms",
    default=60_000,
    parse=integer(0),
    doc="Milliseconds one attempt waits for the lock.",
    group=Group.LOCK,
)
RETRIES: Final = ConfigKey(
    key="hoodie.write.lock.client.num_retries",
    default=50,
    parse=integer(0),
    doc="How often a failed attempt is repeated.",
    group=Group.LOCK,
)
RETRY_WAIT_MS: Final = ConfigKey(
    key="hoodie.write.lock.client.wait_time_ms_between_retry",
    default=5_000,
    parse=integer(0),
    doc="Milliseconds between two attempts.",
    group=Group.LOCK,
)
PATH: Final = ConfigKey(
    key="hoodie.write.lock.filesystem.path",
    default=None,
    default_text="folders of the table: `.hoodie/.locks` for `file_system`, `.hoodie` for "
    "`lock_file`",
    parse=text_or_none,
    doc="Local folder that holds the file of `file_system` and `lock_file`. With `lock_file` all "
    "tables that share it share one lock, as in Hudi.",
    group=Group.LOCK,
)
EXPIRE_MINUTES: Final = ConfigKey(
    key="hoodie.write.lock.filesystem.expire",
    default=0,
    parse=integer(0),
    doc="`lock_file`: minutes after which a lock file that nobody renews is deleted; 0 for never. "
    "Hudi's writers do not renew theirs.",
    group=Group.LOCK,
)
LEASE_S: Final = ConfigKey(
    key="hoodie.write.lock.storage.validity.timeout.secs",
    default=300,
    parse=integer(10),
    doc="`storage`: seconds after which a lock that nobody renews may be taken over. At least ten "
    "times the seconds between renewals.",
    group=Group.LOCK,
)
RENEW_S: Final = ConfigKey(
    key="hoodie.write.lock.storage.renew.interval.secs",
    aliases=("hoodie.write.lock.storage.heartbeat.poll.secs",),
    default=30,
    parse=integer(1),
    doc="`storage`: seconds between two renewals of a lock that is held.",
    group=Group.LOCK,
)

KEYS: Final[tuple[ConfigKey[Any], ...]] = (
    CONCURRENCY_MODE,
    PROVIDER,
    CONFLICT_STRATEGY,
    WAIT_MS,
    RETRIES,
    RETRY_WAIT_MS,
    PATH,
    EXPIRE_MINUTES,
    LEASE_S,
    RENEW_S,
)


@dataclass(frozen=True, slots=True)
class LockConfig:
    """How a writer takes the table's lock.

    Attributes
    ----------
    concurrency_mode
        Whether other writers may be at work.
    provider
        The lock to take; ``None`` for the one that suits the table's place.
    wait_ms, retries, retry_wait_ms
        Milliseconds an attempt waits, how often it is repeated, milliseconds in between.
    path
        Folder of the lock file; ``None`` for the table's own.
    expire_s
        Seconds after which a lock file that nobody renews is deleted; 0 for never.
    lease_s, renew_s
        Seconds a lease lasts, and between two renewals, for locks that are leases.
    """

    concurrency_mode: ConcurrencyMode
    provider: LockKind | None
    wait_ms: int
    retries: int
    retry_wait_ms: int
    path: str | None
    expire_s: int
    lease_s: int
    renew_s: int

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> LockConfig:
        """Return the view of a user's options.

        Raises
        ------
        InvalidOptionError
            A value that cannot be used.
        """
        lease_s, renew_s = LEASE_S.read(options), RENEW_S.read(options)
        if lease_s < _RENEWALS * renew_s:
            raise InvalidOptionError(
                LEASE_S.key,
                str(lease_s),
                f"a lease must last for {_RENEWALS} renewals, one every {renew_s} s",
                f"Give at least {_RENEWALS * renew_s}, or renew more often with {RENEW_S.key}.",
            )
        return cls(
            concurrency_mode=CONCURRENCY_MODE.read(options),
            provider=PROVIDER.read(options),
            wait_ms=WAIT_MS.read(options),
            retries=RETRIES.read(options),
            retry_wait_ms=RETRY_WAIT_MS.read(options),
            path=PATH.read(options),
            expire_s=60 * EXPIRE_MINUTES.read(options),
            lease_s=lease_s,
            renew_s=renew_s,
        )
