"""Whether a store honours conditional puts; some S3-compatible stores do not."""

from __future__ import annotations

from typing import Final

from hudi_core.errors import AlreadyExistsError, PreconditionFailedError, UnsafeStoreError
from hudi_core.model.protocols import Storage
from hudi_core.storage.probes import probe

_proven: Final[set[str]] = set()


def require_conditional_puts(storage: Storage) -> None:
    """Refuse a store that lets two conditional puts both succeed.

    The store is tried with a file of its own, once per table and process.
    """
    if storage.root in _proven:
        return
    with probe(storage, "probe", b"first") as path:
        if not (_creates_once(storage, path) and _compares(storage, path)):
            raise UnsafeStoreError(storage.root)
    _proven.add(storage.root)


def _creates_once(storage: Storage, path: str) -> bool:
    try:
        storage.put_if_absent(path, b"second")
    except AlreadyExistsError:
        return True
    return False


def _compares(storage: Storage, path: str) -> bool:
    stale = storage.version(path)[1]
    storage.put(path, b"changed meanwhile")
    try:
        storage.compare_and_set(path, b"too late", stale)
    except PreconditionFailedError:
        return True
    return False
