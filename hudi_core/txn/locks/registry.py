"""Locks by name; nothing is imported by a class name.

Locks of other distributions are found by the names of their entry points.

A new lock is a module, its word in :class:`~hudi_core.config.kinds.LockKind`, and one line here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Final

from hudi_core.config.extension_points import LOCK_POINT
from hudi_core.config.kinds import LockKind
from hudi_core.config.lock import LockConfig
from hudi_core.config.optional_libraries import require_library
from hudi_core.errors import InvalidOptionError
from hudi_core.model.protocols import LockProvider
from hudi_core.plugin.guarded_index import GuardedLock
from hudi_core.storage.location import parse_location
from hudi_core.txn.locks.base import BaseLockProvider
from hudi_core.txn.locks.in_process import InProcessLock
from hudi_core.txn.locks.lock_file import FileLock, HudiFileLock
from hudi_core.txn.locks.place import LockPlace
from hudi_core.txn.locks.storage import StorageLock


@dataclass(frozen=True, slots=True)
class _OfExtra:
    """A lock whose library an extra installs.

    It is imported when the lock is chosen.
    """

    module: str
    extra: str
    library: str

    def __call__(self, place: LockPlace, config: LockConfig) -> LockProvider:
        need = f"this lock needs {self.library}"
        chosen = (LockConfig.provider.key, str(config.provider))
        require_library(self.library, self.extra, chosen, need)
        lock: LockProvider = import_module(f"{__package__}.{self.module}").lock_of(place, config)
        return lock


def _file_system(place: LockPlace, config: LockConfig) -> LockProvider:
    _require_local(config, place.base_path)
    return FileLock(place.base_path, config.path)


def _lock_file(place: LockPlace, config: LockConfig) -> LockProvider:
    # Hudi's writers may share a folder for tables in stores; ours alone have the store itself
    _require_local(config, config.path if config.path is not None else place.base_path)
    return HudiFileLock(place.base_path, config.path, config.expire_s)


def _storage(place: LockPlace, config: LockConfig) -> LockProvider:
    if place.storage is None or parse_location(place.base_path).is_local:
        raise InvalidOptionError(
            LockConfig.provider.key,
            str(config.provider),
            f"it locks tables in object stores, and {place.base_path} is not in one",
            f"Use {LockKind.FILE_SYSTEM.value}.",
        )
    return StorageLock(place.storage, config.lease_s, config.renew_s)


_LOCKS: Final[Mapping[LockKind, Callable[[LockPlace, LockConfig], LockProvider]]] = {
    LockKind.IN_PROCESS: lambda place, _: InProcessLock(place.base_path),
    LockKind.FILE_SYSTEM: _file_system,
    LockKind.LOCK_FILE: _lock_file,
    LockKind.STORAGE: _storage,
    LockKind.ZOOKEEPER: _OfExtra("zookeeper", "zookeeper", "kazoo"),
    LockKind.ZOOKEEPER_IMPLICIT: _OfExtra("zookeeper", "zookeeper", "kazoo"),
    LockKind.DYNAMODB: _OfExtra("dynamodb", "dynamodb", "boto3"),
    LockKind.DYNAMODB_IMPLICIT: _OfExtra("dynamodb", "dynamodb", "boto3"),
    LockKind.HIVE_METASTORE: _OfExtra("hive_metastore", "hive", "thrift"),
}


def lock_provider(place: LockPlace, config: LockConfig) -> LockProvider:
    """Return a new lock on a table.

    Where options name none, it is the strongest that needs no set-up: a file lock on local paths,
    elsewhere one between threads.
    """
    kind = config.provider
    if kind is None:
        is_local = parse_location(place.base_path).is_local
        kind = LockKind.FILE_SYSTEM if is_local else LockKind.IN_PROCESS
    if isinstance(kind, LockKind):
        return _LOCKS[kind](place, config)
    lock = LOCK_POINT.make(kind, BaseLockProvider, lambda made: made(place, config.own))
    return GuardedLock(LOCK_POINT.guard(kind), lock)


def _require_local(config: LockConfig, place: str) -> None:
    """Refuse a lock file in an object store, which cannot exclude."""
    given = {LockConfig.provider.key: place, LockConfig.path.key: config.path}
    for key, path in given.items():
        if path is not None and not parse_location(path).is_local:
            raise InvalidOptionError(
                key,
                str(config.provider) if key == LockConfig.provider.key else path,
                f"object stores cannot lock files, and {path} is in one",
                f"Use {LockKind.STORAGE.value}, a lock in the store itself.",
            )
