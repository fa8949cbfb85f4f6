"""As much of protobuf's wire format as reading an expression takes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SIZES: Final = {_FIXED64: 8, _FIXED32: 4}
_MASK: Final = (1 << 64) - 1


class Message:
    """The fields of a message by number; what is not there reads as zero or empty.

    Parameters
    ----------
    data
        The message, made in this process: it is not checked for damage.
    """

    def __init__(self, data: bytes) -> None:
        self._found: dict[int, list[int | bytes]] = defaultdict(list)
        position = 0
        while position < len(data):
            tag, position = _varint(data, position)
            number, kind = tag >> 3, tag & 7
            if kind == _VARINT:
                value, position = _varint(data, position)
                self._found[number].append(value)
            else:
                length = _SIZES.get(kind, 0)
                if kind == _BYTES:
                    length, position = _varint(data, position)
                self._found[number].append(data[position : position + length])
                position += length

    def numbers(self) -> set[int]:
        """Return the numbers of the fields that are there."""
        return set(self._found)

    def only(self) -> int | None:
        """Return the number of the one field that is there; ``None`` for none or several."""
        return next(iter(self._found)) if len(self._found) == 1 else None

    def number(self, field: int) -> int:
        """Return a whole number."""
        value = self._found[field][0] if field in self._found else 0
        return value if isinstance(value, int) else 0

    def content(self, field: int) -> bytes:
        """Return bytes, or those of a number of fixed size."""
        value = self._found[field][0] if field in self._found else b""
        return value if isinstance(value, bytes) else b""

    def text(self, field: int) -> str:
        """Return a text."""
        return self.content(field).decode()

    def messages(self, field: int) -> Sequence[Message]:
        """Return the messages of a repeated field."""
        return [Message(one) for one in self._found.get(field, ()) if isinstance(one, bytes)]


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= _MASK
            return value - (1 << 64) if value >> 63 else value, position
        shift += 7
