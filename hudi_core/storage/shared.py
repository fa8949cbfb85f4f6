"""Tables on disks that not every machine of a cluster has."""

from __future__ import annotations

import os
import platform
from typing import Final

from hudi_core.errors import ConfigError
from hudi_core.storage.location import parse_location

_META_FOLDER: Final = ".hoodie"


def require_shared(root: str) -> None:
    """Refuse work on a table that this machine does not have.

    A task on another machine than the driver's would write to a disk of its own, where nobody looks
    for its files. One look at the disk, and none at object stores.

    Parameters
    ----------
    root
        Base path of the table, which is there.

    Raises
    ------
    ConfigError
        There is no table at the local path.
    """
    if parse_location(root).is_local and not os.path.isdir(os.path.join(root, _META_FOLDER)):
        host = platform.node()
        raise ConfigError(
            f"The table at {root} is not there on {host}, where an executor runs",
            "Put the table where all executors find it under one path: in an object store, or on a "
            "file system that is mounted everywhere.",
            path=root,
            host=host,
        )
