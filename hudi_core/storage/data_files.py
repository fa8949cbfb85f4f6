"""Data files: where pyarrow finds them."""

from __future__ import annotations

from functools import lru_cache

import pyarrow.fs as pafs

from hudi_core.errors import StorageError
from hudi_core.storage.location import StoreKind, parse_location
from hudi_core.storage.options import StorageOptions


def data_filesystem(uri: str, options: StorageOptions | None = None) -> tuple[pafs.FileSystem, str]:
    """Return the file system of a table's folder and the folder's path in it.

    A data file's path in the file system is ``f"{root}/{path}"``, with the path relative to the
    table. File systems are kept and shared, for they hold connections.

    Raises
    ------
    StorageError
        The scheme is unknown, or the store is one in memory, which pyarrow cannot open.
    """
    location = parse_location(uri)
    filesystem = _open(location.kind, location.account, options or StorageOptions())
    if location.is_local:
        return filesystem, location.key
    return filesystem, f"{location.bucket}/{location.key}".rstrip("/")


@lru_cache(maxsize=64)
def _open(kind: StoreKind, account: str | None, options: StorageOptions) -> pafs.FileSystem:
    arguments = options.for_pyarrow(kind, account)
    match kind:
        case StoreKind.LOCAL:
            return pafs.LocalFileSystem()
        case StoreKind.S3:
            return pafs.S3FileSystem(**arguments)
        case StoreKind.GCS:
            return pafs.GcsFileSystem(**arguments)
        case StoreKind.AZURE:
            return pafs.AzureFileSystem(**arguments)
    raise StorageError(
        "A store in memory cannot hold data files",
        "Use memory:// for metadata in tests only.",
    )
