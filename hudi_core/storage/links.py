"""Symbolic links on the way to a file."""

from __future__ import annotations

import os
import stat

from hudi_core.storage.posix_errors import as_storage_error


def has_link(root: str, path: str) -> bool:
    """Whether a path below a folder is absolute or goes through links.

    A segment ``..`` counts as well.

    Only then the path can lead out of the folder, wherever that itself is. What is not there is no
    link.

    Raises
    ------
    StorageError
        A folder on the way cannot be looked into.
    """
    if path.startswith("/"):
        return True
    full = root
    for segment in path.split("/"):
        if segment == "..":
            return True
        full = f"{full}/{segment}"
        try:
            if stat.S_ISLNK(os.lstat(full).st_mode):
                return True
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise as_storage_error(full, error) from error
    return False
