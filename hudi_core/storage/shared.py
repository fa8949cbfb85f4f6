"""Tables on disks that not every machine of a cluster has."""

from __future__ import annotations

import os
import platform

from hudi_core.errors import ConfigError
from hudi_core.storage.location import parse_location
from hudi_core.storage.properties_file import BACKUP_PATH, PROPERTIES_PATH


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
