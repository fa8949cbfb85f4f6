"""The one place that picks a store by a table's path."""

from __future__ import annotations

from hudi_core.model.protocols import Storage
from hudi_core.storage.location import parse_location
from hudi_core.storage.object_store import ObjectStorage
from hudi_core.storage.options import StorageOptions
from hudi_core.storage.posix import PosixStorage


def open_storage(uri: str, options: StorageOptions | None = None, *, fsync: bool = True) -> Storage:
    """Return the storage of a table's folder, without any request yet.

    ``fsync`` is for local paths: whether what is written survives a power failure.
    """
    location = parse_location(uri)
    if location.is_local:
        return PosixStorage(location.key, fsync)
    return ObjectStorage(location.uri, options)
