"""The time on a store's own clock, which dates its files."""

from __future__ import annotations

import uuid
from typing import Final

from hudi_core.errors import StorageError
from hudi_core.model.protocols import Storage

_FOLDER: Final = ".hoodie/.temp"


def store_now_ms(storage: Storage) -> int:
    """Return the time by which the store dates its files, in milliseconds since the epoch.

    A file is written and deleted again: stores tell their time in no other way.

    Raises
    ------
    StorageError
        The store does not answer, or something else deletes files in it.
    """
    probe = f"{_FOLDER}/clock-{uuid.uuid4().hex}"
    storage.put_if_absent(probe, b"")
    try:
        status = storage.head(probe)
    finally:
        storage.delete(probe)
    if status is None:
        raise StorageError(
            f"{storage.root}/{probe} vanished after it was written",
            "Check that no other program deletes files in the table's folder.",
            path=f"{storage.root}/{probe}",
        )
    return status.modified_ms
