"""Which lock a name stands for. Nothing is ever imported by the name of a class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from hudi_core.config.kinds import LOCK_CLASSES, LockKind
from hudi_core.config.lock import PROVIDER
from hudi_core.errors import InvalidOptionError
from hudi_core.model.protocols import LockProvider
from hudi_core.storage.location import parse_location
from hudi_core.txn.locks.file import FileLock
from hudi_core.txn.locks.in_process import InProcessLock

_NAMES: Final[Mapping[str, LockKind]] = LOCK_CLASSES | {kind.value: kind for kind in LockKind}


def lock_provider(
    provider: LockKind | str | None,
    base_path: str,
    folder: str | None = None,
    lease: Callable[[], LockProvider] | None = None,
) -> LockProvider:
    """Return a new lock on a table.

    Parameters
    ----------
    provider
        One of our words or Hudi's class names. ``None`` takes the strongest lock that needs no
        set-up: a file lock on local paths, elsewhere one between threads.
    base_path
        The table.
    folder
        Folder of the lock file, for locks that have one; see
        :class:`~hudi_core.txn.locks.FileLock`.
    lease
        Makes the lock in the table's own store; see :class:`~hudi_core.txn.locks.StorageLock`.

    Raises
    ------
    InvalidOptionError
        The name is unknown, or stands for a lock that does not work here.
    """
    is_local = parse_location(base_path).is_local
    if provider is None:
        provider = LockKind.FILE_SYSTEM if is_local else LockKind.IN_PROCESS
    kind = _NAMES.get(provider)
    if kind is None:
        raise InvalidOptionError(
            PROVIDER.key,
            provider,
            "there is no such lock here",
            f"Supported: {', '.join(_NAMES)}.",
        )
    if kind is LockKind.FILE_SYSTEM and not is_local:
        raise InvalidOptionError(
            PROVIDER.key,
            provider,
            f"object stores cannot lock files, and {base_path} is in one",
            f"Use {LockKind.STORAGE.value}, a lock in the store itself.",
        )
    if kind is LockKind.STORAGE:
        if is_local or lease is None:
            raise InvalidOptionError(
                PROVIDER.key,
                provider,
                f"it locks tables in object stores, and {base_path} is not in one",
                f"Use {LockKind.FILE_SYSTEM.value}.",
            )
        return lease()
    return FileLock(base_path, folder) if kind is LockKind.FILE_SYSTEM else InProcessLock(base_path)
