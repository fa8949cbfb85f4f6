"""Random access to an HFile, alone or within a log file."""

from __future__ import annotations

from typing import Final, Protocol

from hudi_core.metadata.hfile.layout import damaged
from hudi_core.metadata.hfile.trailer import TRAILER_BYTES

TAIL_BYTES: Final = 4 * TRAILER_BYTES
"""Bytes fetched at once from the end: in most files more than trailer, indexes and file info."""


class ReadRange(Protocol):
    """Reads a part of a file."""

    def __call__(self, offset: int, length: int) -> bytes:
        """Return ``length`` bytes from ``offset`` on; fewer only where the file ends."""
        ...


class Window:
    """The bytes of one HFile, its end held in memory."""

    def __init__(self, read: ReadRange, offset: int, length: int, path: str) -> None:
        self._read, self._offset, self.length, self._path = read, offset, length, path
        if length < TRAILER_BYTES:
            raise damaged(path, f"{length} bytes are too few for an HFile")
        self._tail_begin = max(0, length - TAIL_BYTES)
        self._tail = self._fetch(self._tail_begin, length - self._tail_begin)

    def take(self, begin: int, length: int) -> bytes:
        """Return some bytes, by their place in the HFile."""
        if begin < 0 or length < 0 or begin + length > self.length:
            raise damaged(self._path, f"it has no {length} bytes from byte {begin} on")
        missing = self._tail_begin - begin
        if missing <= 0:
            return self._tail[-missing : length - missing]
        if length <= missing:
            return self._fetch(begin, length)
        return self._fetch(begin, missing) + self._tail[: length - missing]

    def _fetch(self, begin: int, length: int) -> bytes:
        data = self._read(self._offset + begin, length)
        if len(data) != length:
            raise damaged(
                self._path, f"it ends {length - len(data)} bytes before the end it should have"
            )
        return data
