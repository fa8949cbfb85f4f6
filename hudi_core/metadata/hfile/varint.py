"""Hadoop's numbers of varying length.

One byte for -112 to 127; otherwise the first byte says the sign and how many bytes follow, the
highest first. Lengths are never negative.
"""

from __future__ import annotations

from hudi_core.protobuf import WireError, take


def encode_vint(value: int) -> bytes:
    """Return a number that is not negative in Hadoop's form."""
    if value <= 127:
        return bytes([value])
    size = (value.bit_length() + 7) // 8
    return bytes([256 - 112 - size]) + value.to_bytes(size, "big")


def decode_vint(data: bytes, position: int) -> tuple[int, int]:
    """Return a number, and the position after it.

    Negative ones are refused.
    """
    if position >= len(data):
        raise WireError("a number is cut off")
    first = data[position]
    if first <= 127:
        return first, position + 1
    size = 256 - 112 - first
    if not 1 <= size <= 8:
        raise WireError("a length is negative")
    content, position = take(data, position + 1, size)
    return int.from_bytes(content, "big"), position
