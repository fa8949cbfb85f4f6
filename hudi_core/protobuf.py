"""Protobuf's wire format: numbered fields, as HFiles and Substrait have them.

Varints have 7 bits a byte, the lowest first; every byte but the last has the highest bit set.
Negative numbers are their 64-bit two's complement.

Google's ``protobuf`` 7 was tried with messages declared at run time. It reads and writes the same
bytes, but its import alone takes 70 ms, and packages beside it, such as Spark Connect's
grpcio-status, bound its version. That of pyarrow is not to be reached from Python.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final, NamedTuple

_MASK: Final = (1 << 64) - 1
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SIZES: Final = {_FIXED64: 8, _FIXED32: 4}


class WireError(ValueError):
    """Bytes that are no such number or message, with the reason."""


class Field(NamedTuple):
    """One field: a number, or bytes.

    Bytes are a string, an inner message or a number of fixed size.
    """

    number: int
    value: int | bytes


class Message:
    """The fields of a message by number; absent ones are zero.

    Or empty, where the field is made of bytes.
    """

    def __init__(self, data: bytes) -> None:
        self._found: dict[int, list[int | bytes]] = defaultdict(list)
        for number, value in decode_fields(data):
            self._found[number].append(value)

    def numbers(self) -> set[int]:
        """The numbers of the fields that are there."""
        return set(self._found)

    def only(self) -> int | None:
        """The number of the single field present; ``None`` for none or several."""
        return next(iter(self._found)) if len(self._found) == 1 else None

    def number(self, field: int) -> int:
        """A whole number."""
        value = self._found[field][0] if field in self._found else 0
        return value if isinstance(value, int) else 0

    def content(self, field: int) -> bytes:
        """Bytes, or those of a number of fixed size."""
        value = self._found[field][0] if field in self._found else b""
        return value if isinstance(value, bytes) else b""

    def text(self, field: int) -> str:
        """A string."""
        return self.content(field).decode()

    def messages(self, field: int) -> Sequence[Message]:
        """The messages of a repeated field."""
        return [Message(one) for one in self._found.get(field, ()) if isinstance(one, bytes)]


def decode_fields(message: bytes) -> list[Field]:
    """The fields of a message, in their order."""
    fields, position, end = [], 0, len(message)
    while position < end:
        tag = message[position]
        if tag < 0x80:  # nearly always: tags and lengths of one byte take no call
            position += 1
        else:
            tag, position = _decode_varint(message, position)
        number, kind = tag >> 3, tag & 7
        value: int | bytes
        if kind == _VARINT:
            if position < end and (value := message[position]) < 0x80:
                position += 1
            else:
                value, position = _decode_varint(message, position)
        elif kind == _BYTES:
            if position < end and (length := message[position]) < 0x80:
                position += 1
            else:
                length, position = _decode_varint(message, position)
            if not 0 <= length <= end - position:
                raise WireError(f"{length} bytes are announced and {end - position} are left")
            value, position = message[position : position + length], position + length
        elif kind in _SIZES:
            value, position = take(message, position, _SIZES[kind])
        else:
            raise WireError(f"a field is of the unknown kind {kind}")
        fields.append(Field(number, value))
    return fields


def decode_delimited(data: bytes, position: int) -> bytes:
    """The message that begins with its length at a position."""
    length, start = _decode_varint(data, position)
    return take(data, start, length)[0]


def encode_message(fields: Sequence[tuple[int, int | bytes]]) -> bytes:
    """A message of numbered fields; their numbers are below 16."""
    out = bytearray()
    for number, value in fields:
        if isinstance(value, int):
            out.append(number << 3 | _VARINT)
            _put_varint(out, value)
            continue
        out.append(number << 3 | _BYTES)
        if len(value) < 0x80:  # nearly always: it takes no call
            out.append(len(value))
        else:
            _put_varint(out, len(value))
        out += value
    return bytes(out)


def encode_delimited(message: bytes) -> bytes:
    """A message behind its length."""
    out = bytearray()
    _put_varint(out, len(message))
    return bytes(out + message)


def take(data: bytes, position: int, length: int) -> tuple[bytes, int]:
    """Some bytes at a position, and the position after them."""
    if not 0 <= length <= len(data) - position:
        raise WireError(f"{length} bytes are announced and {len(data) - position} are left")
    return data[position : position + length], position + length


def _put_varint(out: bytearray, value: int) -> None:
    value &= _MASK
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _decode_varint(data: bytes, position: int) -> tuple[int, int]:
    """The signed number at a position, and the position after it."""
    value = 0
    for shift in range(0, 70, 7):  # 64 bits in groups of 7
        if position >= len(data):
            raise WireError("a number is cut off")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= _MASK
            return value - (1 << 64) if value >> 63 else value, position
    raise WireError("a number is longer than 64 bits")
