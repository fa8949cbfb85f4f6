"""Short-lived files that probe a store's behaviour and clock.

The process that puts one deletes it. Orphans of dead processes are removed once they are old.
"""

from __future__ import annotations

import contextlib
import re
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from hudi_core.errors import (
    AlreadyExistsError,
    PreconditionFailedError,
    StorageError,
    UnsafeStoreError,
)
from hudi_core.model.files import FileStatus
from hudi_core.model.protocols import Storage

_FOLDER: Final = ".hoodie/.temp"
_NAME: Final = re.compile(r"(probe|clock)-[0-9a-f]{32}")
_OLD_MS: Final = 3_600_000
"""Much longer than anybody needs one, in milliseconds."""


@contextmanager
def probe(storage: Storage, kind: str, data: bytes = b"") -> Iterator[str]:
    """Put a new file for the block's duration; yield its path."""
    path = f"{_FOLDER}/{kind}-{uuid.uuid4().hex}"
    storage.put_if_absent(path, data)
    try:
        yield path
    except BaseException as error:
        # a store that is away refuses this too, which says less than what went wrong first
        try:
            storage.delete(path)
        except StorageError as left:
            error.add_note(f"{path} was left behind: {left}")
        raise
    storage.delete(path)


def sweep(storage: Storage, found: Iterable[FileStatus]) -> None:
    """Remove the probes of processes that died over them."""
    # this machine's clock and the store's differ by less than the age that counts as old
    now_ms = time.time() * 1000
    # what cannot be removed now is left for another time
    with contextlib.suppress(StorageError):
        for one in found:
            if _NAME.fullmatch(one.name) and now_ms - one.modified_ms > _OLD_MS:
                storage.delete(one.path)


# --- the time on a store's own clock, which dates its files ---------------------------------------


def store_now_ms(storage: Storage) -> int:
    """Return the store's own time in milliseconds since the epoch.

    A file is written and deleted again: stores show their time in no other way.

    ``StorageError`` also where something else deletes files in the store.
    """
    with probe(storage, "clock") as path:
        status = storage.head(path)
        if status is None:
            raise StorageError(
                f"{storage.root}/{path} vanished after it was written",
                "Check that no other program deletes files in the table's folder.",
                path=f"{storage.root}/{path}",
            )
    return status.modified_ms


# --- whether a store honours conditional puts -----------------------------------------------------


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
