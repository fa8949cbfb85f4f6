"""Numbers of varying length: those of protobuf messages and those of Hadoop's writables.

protobuf: 7 bits a byte, the lowest first; every byte but the last has the highest bit set. Negative
numbers are their 64-bit two's complement. Hadoop ``VInt``: one byte for -112 to 127; otherwise the
first byte says the sign and how many bytes follow, the highest first.
"""

from __future__ import annotations

from typing import Final, NamedTuple

_MASK: Final = (1 << 64) - 1
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class VarintError(ValueError):
    """Bytes that are no such number or message, with the reason."""


class Field(NamedTuple):
    """One field of a protobuf message: a number, or the bytes of a text or an inner message."""

    number: int
    value: int | bytes


def encode_varint(value: int) -> bytes:
    """Return a signed 64-bit number in protobuf's form."""
    value &= _MASK
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode_varint(data: bytes, position: int) -> tuple[int, int]:
    """Return the signed 64-bit number at a position, and the position after it."""
    value = 0
    for shift in range(0, 70, 7):  # 64 bits in groups of 7
        if position >= len(data):
            raise VarintError("a number is cut off")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= _MASK
            return value - (1 << 64) if value >> 63 else value, position
    raise VarintError("a number is longer than 64 bits")


def encode_field(number: int, value: int | bytes) -> bytes:
    """Return one field of a protobuf message."""
    if isinstance(value, int):
        return encode_varint(number << 3 | _VARINT) + encode_varint(value)
    return encode_varint(number << 3 | _BYTES) + encode_varint(len(value)) + value


def encode_delimited(message: bytes) -> bytes:
    """Return a protobuf message behind its length."""
    return encode_varint(len(message)) + message


def decode_delimited(data: bytes, position: int) -> bytes:
    """Return the message that begins with its length at a position."""
    return _take(data, *reversed(decode_varint(data, position)))[0]


def decode_fields(message: bytes) -> list[Field]:
    """Return the fields of a protobuf message; fixed-size ones are left out, as we know none."""
    fields, position = [], 0
    while position < len(message):
        tag, position = decode_varint(message, position)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, position = decode_varint(message, position)
            fields.append(Field(number, value))
        elif kind == _BYTES:
            length, position = decode_varint(message, position)
            content, position = _take(message, position, length)
            fields.append(Field(number, content))
        elif kind in (_FIXED64, _FIXED32):
            _, position = _take(message, position, 8 if kind == _FIXED64 else 4)
        else:
            raise VarintError(f"a field is of the unknown kind {kind}")
    return fields


def encode_vint(value: int) -> bytes:
    """Return a number that is not negative in Hadoop's form."""
    if value <= 127:
        return bytes([value])
    size = (value.bit_length() + 7) // 8
    return bytes([256 - 112 - size]) + value.to_bytes(size, "big")


def decode_vint(data: bytes, position: int) -> tuple[int, int]:
    """Return the number at a position, and the position after it; negative ones are refused."""
    if position >= len(data):
        raise VarintError("a number is cut off")
    first = data[position]
    if first <= 127:
        return first, position + 1
    size = 256 - 112 - first
    if not 1 <= size <= 8:
        raise VarintError("a length is negative")
    content, position = _take(data, position + 1, size)
    return int.from_bytes(content, "big"), position


def _take(data: bytes, position: int, length: int) -> tuple[bytes, int]:
    if not 0 <= length <= len(data) - position:
        raise VarintError(f"{length} bytes are announced and {len(data) - position} are left")
    return data[position : position + length], position + length
