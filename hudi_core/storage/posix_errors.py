"""Errors of the operating system as errors of the project."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from hudi_core.errors import PathNotFoundError, StorageError

_HINTS: Final = {
    errno.ENOSPC: "Free space on the disk and try again.",
    errno.EDQUOT: "The quota is used up: free space and try again.",
    errno.EACCES: "Check the permissions of the file and its folders.",
    errno.EPERM: "Check the permissions; a file system without hard links cannot hold a table.",
    errno.EROFS: "The file system is read-only: mount it for writing.",
    errno.ENOTDIR: "There is a file where a folder is needed: move it away.",
    errno.EIO: "The disk may be failing: check the system log.",
    errno.ENAMETOOLONG: "Use a shorter name.",
    errno.EMFILE: "Raise the limit on open files.",
    errno.ENOTSUP: "The file system cannot do this: use another one for tables.",
}
_DEFAULT_HINT: Final = "Check the disk and try again."


@contextmanager
def translated(location: str) -> Iterator[None]:
    """Translate OS errors of the block into the project's, for ``location``."""
    try:
        yield
    except FileNotFoundError as error:
        raise PathNotFoundError(location) from error
    except OSError as error:
        raise as_storage_error(location, error) from error


def as_storage_error(location: str, error: OSError) -> StorageError:
    """An error of the operating system about a file or folder."""
    number = error.errno or 0
    return StorageError(
        f"{location}: {error.strerror or error}",
        _HINTS.get(number, _DEFAULT_HINT),
        path=location,
        errno=number,
    )
