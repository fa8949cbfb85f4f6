"""The location of a table: kind of store, and path in it."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final, TypeAlias

from hudi_core.errors import ConfigError, StorageError, UnsafePathError
from hudi_core.storage.properties_file import BACKUP_PATH, PROPERTIES_PATH
from hudi_core.storage.safe_path import require_safe_folder


class StoreKind(StrEnum):
    """The kinds of store that can hold a table."""

    LOCAL = "local"
    S3 = "s3"
    GCS = "gcs"
    AZURE = "azure"
    MEMORY = "memory"


_SCHEMES: Final = {
    "file": StoreKind.LOCAL,
    "s3": StoreKind.S3,
    "s3a": StoreKind.S3,
    "s3n": StoreKind.S3,
    "gs": StoreKind.GCS,
    "gcs": StoreKind.GCS,
    "abfs": StoreKind.AZURE,
    "abfss": StoreKind.AZURE,
    "az": StoreKind.AZURE,
    "wasb": StoreKind.AZURE,
    "wasbs": StoreKind.AZURE,
    "memory": StoreKind.MEMORY,
}
_URI: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>.*)", re.DOTALL)
_SHORTENED: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/[^/]")
_BUCKET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a store.

    ``uri`` has no trailing slash, ``key`` none at its ends; for local paths both are the absolute
    path and ``bucket`` is empty. ``account`` is the one of Azure that the URI names.
    """

    kind: StoreKind
    uri: str
    bucket: str
    key: str
    account: str | None = None

    @property
    def is_local(self) -> bool:
        """Whether the location is a local folder, mounted file systems included."""
        return self.kind is StoreKind.LOCAL


PathLike: TypeAlias = str | os.PathLike[str]
"""What users give for a place: a path or URI as text, or a local path as ``pathlib`` has it."""


def location_of(path: PathLike) -> str:
    """Return the location of a path or URI that a user gives.

    As the path or URI that names it for every process.
    """
    try:
        text = os.fspath(path)
    except TypeError as error:
        raise UnsafePathError(repr(path), "it is no path", "Give a string or a Path.") from error
    shortened = _SHORTENED.match(text)
    if not isinstance(path, str) and shortened and shortened[1].lower() in _SCHEMES:
        raise UnsafePathError(text, "pathlib has shortened a URI", "Give URIs as strings.")
    return parse_location(text).uri


def parse_location(uri: str) -> Location:
    """Return the place that a path or URI names.

    A path that begins with ``~`` begins with the user's home folder. Other characters are literal:
    nothing is percent-decoded, because Hadoop does not do it either.

    A URI with credentials is refused, as are empty, ``.`` and ``..`` segments behind the bucket and
    NUL characters.
    """
    # every file that is opened asks; a path that begins otherwise depends on the process
    return _absolute(uri) if uri.startswith("/") else _parsed(uri)


@lru_cache(maxsize=256)
def _absolute(path: str) -> Location:
    return _parsed(path)


def _parsed(uri: str) -> Location:
    if "\0" in uri:
        raise UnsafePathError(uri, "it has a NUL character")
    match = _URI.fullmatch(uri)
    if match is None:
        return _local(uri.removeprefix("file:"))
    scheme, rest = match["scheme"].lower(), match["rest"]
    kind = _SCHEMES.get(scheme)
    if kind is None:
        raise StorageError(
            f"Paths that begin with {scheme}:// are not supported",
            f"Supported: a local path, {', '.join(f'{name}://' for name in _SCHEMES)}.",
            scheme=scheme,
        )
    if kind is StoreKind.LOCAL:
        if not rest.startswith("/"):
            raise UnsafePathError(uri, "it names a host", "Write file:///folder.")
        return _local(rest)
    authority, _, key = rest.partition("/")
    account = None
    if kind is StoreKind.AZURE and "@" in authority:
        # abfss://container@account.dfs.core.windows.net/folder
        authority, _, host = authority.partition("@")
        account = host.split(".", 1)[0]
    if not _BUCKET.fullmatch(authority):
        # the URI is not repeated: what is in place of the bucket may be a password
        raise StorageError(
            f"A path that begins with {scheme}:// does not name a bucket",
            f"Write {scheme}://bucket/folder; credentials go into options or the environment.",
            scheme=scheme,
        )
    key = require_safe_folder(key.rstrip("/"))
    place = uri[: len(scheme) + 3] + rest.rstrip("/")
    return Location(kind, place, authority, key, account)


def stored_uri(root: str, path: str) -> str:
    """The URI by which plans name a data file, as in Hudi.

    Wherever a storage strategy has placed it: the timeline holds logical paths.
    """
    return f"{root}/{path}"


def _local(path: str) -> Location:
    if not path:
        raise UnsafePathError(path, "it is empty", "Name the table's folder.")
    absolute = os.path.abspath(os.path.expanduser(path))
    return Location(StoreKind.LOCAL, absolute, "", absolute)


# --- tables on disks that not every machine of a cluster has --------------------------------------


def require_shared(root: str) -> None:
    """Refuse work on a table that this machine does not have.

    A task on another machine than the driver's would write to a disk of its own, where no reader
    looks for its files. One or two looks at the disk, and none at object stores.
    """
    location = parse_location(root)
    if not location.is_local:
        return
    # the folder alone may be what an earlier task has made here
    paths = (PROPERTIES_PATH, BACKUP_PATH)
    if not any(os.path.isfile(os.path.join(location.key, path)) for path in paths):
        host = platform.node()
        raise ConfigError(
            f"The table at {root} is not there on {host}, where an executor runs",
            "Put the table where all executors find it under one path: in an object store, or on a "
            "file system that is mounted everywhere.",
            path=root,
            host=host,
        )
