"""Options of the table lock, and the typed view made from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hudi_core.config.key import ConfigKey, Group
from hudi_core.config.kinds import LOCK_CLASSES, ConcurrencyMode, LockKind
from hudi_core.config.parsers import integer, text_or_none


def lock_kind(text: str) -> LockKind | None:
    """Parse a lock provider: one of our words, or the name of Hudi's Java class for it."""
    if not text:
        return None
    known = LOCK_CLASSES | {kind.value: kind for kind in LockKind}
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
    default_text="in_process with SINGLE_WRITER, else file_system",
    parse=lock_kind,
    doc="The lock: `in_process` (threads of one process) or `file_system` (processes that share a "
    "file system), also by the names of Hudi's Java classes "
    "`org.apache.hudi.client.transaction.lock.InProcessLockProvider` and "
    "`...FileSystemBasedLockProvider`.",
    group=Group.LOCK,
    hudi_default="ZookeeperBasedLockProvider",
    reason="A lock that needs no server works without any set-up.",
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
    default_text="the table's `.hoodie` folder",
    parse=text_or_none,
    doc="Local folder that holds the lock file of `file_system`.",
    group=Group.LOCK,
)

KEYS: Final[tuple[ConfigKey[Any], ...]] = (
    CONCURRENCY_MODE,
    PROVIDER,
    WAIT_MS,
    RETRIES,
    RETRY_WAIT_MS,
    PATH,
)


@dataclass(frozen=True, slots=True)
class LockConfig:
    """How a writer takes the table's lock.

    Attributes
    ----------
    concurrency_mode
        Whether other writers may be at work.
    provider
        The lock to take; never ``None`` when other writers may be at work.
    wait_ms, retries, retry_wait_ms
        Milliseconds an attempt waits, how often it is repeated, milliseconds in between.
    path
        Folder of the lock file; ``None`` for the table's own.
    """

    concurrency_mode: ConcurrencyMode
    provider: LockKind | None
    wait_ms: int
    retries: int
    retry_wait_ms: int
    path: str | None

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> LockConfig:
        """Return the view of a user's options.

        Raises
        ------
        InvalidOptionError
            A value that cannot be used.
        """
        mode, provider = CONCURRENCY_MODE.read(options), PROVIDER.read(options)
        if provider is None and mode is not ConcurrencyMode.SINGLE_WRITER:
            provider = LockKind.FILE_SYSTEM
        return cls(
            concurrency_mode=mode,
            provider=provider,
            wait_ms=WAIT_MS.read(options),
            retries=RETRIES.read(options),
            retry_wait_ms=RETRY_WAIT_MS.read(options),
            path=PATH.read(options),
        )
