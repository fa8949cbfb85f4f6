"""Data files: where pyarrow finds them."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Final

import pyarrow as pa
import pyarrow.fs as pafs

from hudi_core.errors import PathNotFoundError, StorageError, UnsafePathError
from hudi_core.storage.links import has_link
from hudi_core.storage.location import StoreKind, parse_location
from hudi_core.storage.open import open_storage
from hudi_core.storage.options import StorageOptions


def data_filesystem(uri: str, options: StorageOptions | None = None) -> tuple[pafs.FileSystem, str]:
    """Return a table's file system and its folder's path there.

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


_WHOLE_BYTES: Final = 2 << 20
"""Files of an object store up to this size are fetched whole: one request takes about as long as
the transfer of so many bytes."""


_KEPT_BYTES: Final = 256 << 20


class FetchedFiles:
    """Small data files of an object store, fetched for a later step."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: dict[str, bytes] = {}
        self._left = _KEPT_BYTES

    def keep(self, path: str, data: bytes) -> None:
        """Keep a file, where there is room."""
        with self._lock:
            if path not in self._files and len(data) <= self._left:
                self._files[path] = data
                self._left -= len(data)

    def take(self, path: str) -> bytes | None:
        """Give a file away; ``None`` where it is not kept."""
        with self._lock:
            data = self._files.pop(path, None)
            self._left += len(data or b"")
            return data


@contextmanager
def open_data_file(
    uri: str,
    options: StorageOptions | None,
    path: str,
    size: int | None = None,
    fetched: FetchedFiles | None = None,
    *,
    is_needed_again: bool = False,
) -> Iterator[pa.NativeFile]:
    """A data file of a table, opened to be read.

    Parameters
    ----------
    uri
        The table's folder.
    path
        Physical path below it.
    size
        Its bytes, where they are known: a small one is fetched with one request.
    fetched
        What earlier steps have fetched.
    is_needed_again
        Whether a later step reads the file, too.

    Raises
    ------
    UnsafePathError
        See :func:`require_no_links`.
    OSError
        The file is missing, or the store does not answer.
    """
    require_no_links(uri, [path])
    if size is not None and size <= _WHOLE_BYTES and not parse_location(uri).is_local:
        data = None if fetched is None else fetched.take(path)
        if data is None:
            data = _whole(uri, options, path)
        if fetched is not None and is_needed_again:
            fetched.keep(path, data)
        with pa.BufferReader(data) as source:
            yield source
        return
    filesystem, root = data_filesystem(uri, options)
    with filesystem.open_input_file(f"{root}/{path}") as source:
        yield source


def _whole(uri: str, options: StorageOptions | None, path: str) -> bytes:
    try:
        return open_storage(uri, options).read(path)
    except PathNotFoundError as error:
        raise FileNotFoundError(path) from error
    except StorageError as error:
        raise OSError(error.what) from error


def require_no_links(uri: str, paths: Iterable[str]) -> None:
    """Refuse data files that a symbolic link leads out of their table.

    To be called where files are opened: metadata that anybody wrote may name them, and whoever can
    write the table's folder could have any file of this machine read, and its rows copied in.
    Object stores have no links.

    Parameters
    ----------
    uri
        The table's folder.
    paths
        Physical paths below it. Costs a look at each file, and at each folder once.

    Raises
    ------
    UnsafePathError
        Names the first of them.
    """
    location = parse_location(uri)
    if not location.is_local:
        return
    linked: dict[str, bool] = {}
    for path in paths:
        full = os.path.join(location.key, path)
        folder = os.path.dirname(path)
        if folder not in linked:
            linked[folder] = has_link(location.key, folder)
        is_linked = linked[folder] or os.path.islink(full)
        if is_linked and not _is_below(full, os.path.realpath(location.key)):
            raise UnsafePathError(
                full,
                f"a symbolic link leads it to {os.path.realpath(full)}, out of the table",
                "Remove the link, or move what it points to into the table.",
            )


def _is_below(path: str, root: str) -> bool:
    return f"{os.path.realpath(path)}/".startswith(f"{root.rstrip('/')}/")


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
