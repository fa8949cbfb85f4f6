"""Checks of data file paths in plans on disk.

Anybody may have written them.
"""

from __future__ import annotations

from typing import Final

from hudi_core.errors import StorageError
from hudi_core.storage.location import Location, parse_location

_LOCAL_PREFIXES: Final = frozenset({"", "file:", "file://"})
"""What may precede an absolute local path; Hadoop writes the second."""


def relative_path(root: Location, path: str) -> str:
    """Return a path relative to the root; empty for unsafe ones.

    Unsafe is what does not lie below it, or is written in an ambiguous way.
    """
    try:
        place = parse_location(path)
    except StorageError:
        return ""
    folder = f"{root.key.rstrip('/')}/" if root.key else ""
    accounts = {place.account, root.account} - {None}
    if (
        (place.kind, place.bucket) != (root.kind, root.bucket)
        or len(accounts) > 1
        or not place.key.startswith(folder)
        # a path that parsing had to straighten first is none that a writer made
        or not path.endswith(place.key)
        or (place.is_local and path.removesuffix(place.key).lower() not in _LOCAL_PREFIXES)
    ):
        return ""
    return place.key[len(folder) :]


def is_data_path(relative: str) -> bool:
    """Whether a relative path is in the table, outside its metadata."""
    segments = relative.split("/")
    return segments[0] != ".hoodie" and not any(segment in ("", ".", "..") for segment in segments)
