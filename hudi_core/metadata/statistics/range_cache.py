"""What base files say, decoded, for the next query of this process.

A base file never changes, so what it says of a column, sorted by key, and its lists of files are
decoded once. Only memory
is used, and the files stay what is true: an entry is found by what makes its file different from
every other.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, Final, Protocol, TypeVar

MAX_BYTES: Final = 128 * 1024 * 1024
"""What all entries may have together; those that were not used for longest go first."""


class Decoded(Protocol):
    """A value that is not changed any more."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory it takes."""
        ...


_D = TypeVar("_D", bound=Decoded)


class RangeCache:
    """Decoded values by file and what of it they are."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._tables: OrderedDict[Hashable, Any] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def holds(self, key: Hashable) -> bool:
        """Whether there is an entry."""
        return key in self._tables

    def get(self, key: Hashable, decode: Callable[[], _D]) -> _D:
        """Return a cached entry, decoded now where missing.

        A key is of values of one type.
        """
        with self._lock:
            found: _D | None = self._tables.get(key)
            if found is not None:
                self._tables.move_to_end(key)
                return found
        decoded = decode()
        size = decoded.nbytes
        if size <= self._max_bytes:
            with self._lock:
                self._add(key, decoded, size)
        return decoded

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._tables.clear()
            self._bytes = 0

    def _add(self, key: Hashable, decoded: Decoded, size: int) -> None:
        if key in self._tables:
            return
        self._tables[key] = decoded
        self._bytes += size
        while self._bytes > self._max_bytes:
            _, oldest = self._tables.popitem(last=False)
            self._bytes -= oldest.nbytes


SHARED: Final = RangeCache()
"""The cache of this process."""
