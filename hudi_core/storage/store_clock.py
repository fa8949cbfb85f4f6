"""The time on a store's own clock, which dates its files."""

from __future__ import annotations

from hudi_core.errors import StorageError
from hudi_core.model.protocols import Storage
from hudi_core.storage.probes import probe


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
