"""Reading forward through bytes of a log file."""

from __future__ import annotations

import struct
from typing import Final

from hudi_core.errors import CorruptMetadataError

_INT32: Final = struct.Struct(">i")
_INT64: Final = struct.Struct(">q")


class Cursor:
    """Reads big-endian numbers and bytes.

    ``data`` is a part of the file, which begins at ``base``; errors name ``path`` and the position
    in the file.
    """

    def __init__(self, data: bytes, path: str, base: int = 0) -> None:
        self._data, self._path, self._base = data, path, base
        self.position = 0

    @property
    def left(self) -> int:
        """Bytes that have not been read."""
        return len(self._data) - self.position

    def damage(self, reason: str) -> CorruptMetadataError:
        """Return the error for damaged bytes, with their position."""
        place = self._base + self.position
        return CorruptMetadataError(self._path, f"at byte {place}, {reason}")

    def take(self, count: int) -> bytes:
        """Return the next ``count`` bytes."""
        if not 0 <= count <= len(self._data) - self.position:
            raise self.damage(f"{count} bytes are announced and {self.left} are left")
        taken = self._data[self.position : self.position + count]
        self.position += count
        return taken

    def int32(self) -> int:
        """Return the next 4 bytes as a number."""
        return int(_INT32.unpack(self.take(4))[0])

    def int64(self) -> int:
        """Return the next 8 bytes as a number."""
        return int(_INT64.unpack(self.take(8))[0])
