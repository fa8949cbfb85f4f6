"""Symbolic links on the way to a file."""

from __future__ import annotations

import os
import stat
import sys

from hudi_core.errors import StorageError
from hudi_core.storage.posix_errors import as_storage_error


def has_link(root: str, path: str) -> bool:
    """Whether a path below a folder is absolute or goes through links.

    A segment ``..`` counts as well.

    Only then the path can lead out of the folder, wherever that itself is. What is not there is no
    link.
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
        except UnicodeEncodeError as error:
            raise StorageError(
                f"{full!a} cannot be looked at: this process encodes names of files in "
                f"{sys.getfilesystemencoding()}",
                "Set PYTHONUTF8=1, or a locale with UTF-8, such as LC_ALL=C.UTF-8.",
                path=full,
            ) from error
    return False
