"""Column statistics of base files, decoded, for the next query of this process.

A base file never changes, so what it says of a column is decoded once, sorted by key. Only memory
is used, and the files stay what is true: an entry is found by what makes its file different from
every other.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Final

import pyarrow as pa

MAX_BYTES: Final = 128 * 1024 * 1024
"""What all entries may have together; those that were not used for longest go first."""


class RangeCache:
    """Tables by file and column."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._tables: OrderedDict[Hashable, pa.Table] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def holds(self, key: Hashable) -> bool:
        """Tell whether there is an entry."""
        return key in self._tables

    def get(self, key: Hashable, decode: Callable[[], pa.Table]) -> pa.Table:
        """Return an entry, decoded now where there is none."""
        with self._lock:
            found = self._tables.get(key)
            if found is not None:
                self._tables.move_to_end(key)
                return found
        table = decode()
        size = table.nbytes
        if size <= self._max_bytes:
            with self._lock:
                self._add(key, table, size)
        return table

    def _add(self, key: Hashable, table: pa.Table, size: int) -> None:
        if key in self._tables:
            return
        self._tables[key] = table
        self._bytes += size
        while self._bytes > self._max_bytes:
            _, oldest = self._tables.popitem(last=False)
            self._bytes -= oldest.nbytes


SHARED: Final = RangeCache()
"""The cache of this process."""
