"""Locks by name; nothing is imported by a class name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from hudi_core.config.kinds import LOCK_CLASSES, LockKind
from hudi_core.config.lock import LockConfig
from hudi_core.errors import InvalidOptionError
from hudi_core.model.protocols import LockProvider
from hudi_core.storage.location import parse_location
from hudi_core.txn.locks.file import FileLock
from hudi_core.txn.locks.in_process import InProcessLock
from hudi_core.txn.locks.lock_file import HudiFileLock

_IN_FILES: Final = (LockKind.FILE_SYSTEM, LockKind.LOCK_FILE)
_NAMES: Final[Mapping[str, LockKind]] = LOCK_CLASSES | {kind.value: kind for kind in LockKind}


def lock_provider(
    provider: LockKind | str | None,
    base_path: str,
    folder: str | None = None,
    lease: Callable[[], LockProvider] | None = None,
    expire_s: float = 0,
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
    expire_s
        See :class:`~hudi_core.txn.locks.HudiFileLock`.

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
            LockConfig.provider.key,
            provider,
            "there is no such lock here",
            f"Supported: {', '.join(_NAMES)}.",
        )
    if kind in _IN_FILES:
        # Hudi's writers may share a folder for tables in stores; ours alone have the store itself
        is_elsewhere = kind is LockKind.LOCK_FILE and folder is not None
        _require_local(LockConfig.provider.key, provider, folder if is_elsewhere else base_path)
        _require_local(LockConfig.path.key, folder, folder)
    if kind is LockKind.STORAGE:
        if is_local or lease is None:
            raise InvalidOptionError(
                LockConfig.provider.key,
                provider,
                f"it locks tables in object stores, and {base_path} is not in one",
                f"Use {LockKind.FILE_SYSTEM.value}.",
            )
        return lease()
    if kind is LockKind.LOCK_FILE:
        return HudiFileLock(base_path, folder, expire_s)
    return FileLock(base_path, folder) if kind is LockKind.FILE_SYSTEM else InProcessLock(base_path)


def _require_local(key: str, value: str | None, place: str | None) -> None:
    """Refuse a lock file in an object store, which cannot exclude."""
    if place is not None and not parse_location(place).is_local:
        raise InvalidOptionError(
            key,
            value,
            f"object stores cannot lock files, and {place} is in one",
            f"Use {LockKind.STORAGE.value}, a lock in the store itself.",
        )
