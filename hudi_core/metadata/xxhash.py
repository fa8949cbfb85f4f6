"""xxHash with 64 bits, for the few short texts that keys of the metadata table are made of.

Source: the algorithm's public specification (XXH64). All arithmetic is modulo 2**64; words are
little-endian.
"""

from __future__ import annotations

import struct
from typing import Final

_MASK: Final = (1 << 64) - 1
_P1: Final = 0x9E3779B185EBCA87
_P2: Final = 0xC2B2AE3D27D4EB4F
_P3: Final = 0x165667B19E3779F9
_P4: Final = 0x85EBCA77C2B2AE63
_P5: Final = 0x27D4EB2F165667C5
_STRIPE: Final = struct.Struct("<4Q")


def xxhash64(data: bytes, seed: int) -> int:
    """Return the hash of some bytes, without a sign.

    Parameters
    ----------
    data
        The bytes.
    seed
        64 bits, without a sign.
    """
    position = 0
    if len(data) >= _STRIPE.size:
        lanes = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
        while position <= len(data) - _STRIPE.size:
            words = _STRIPE.unpack_from(data, position)
            lanes = [_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
            position += _STRIPE.size
        total = sum(_rotate(lane, turn) for lane, turn in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            total = ((total ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        total = seed + _P5
    return _finish((total + len(data)) & _MASK, data[position:])


def _finish(total: int, rest: bytes) -> int:
    position = 0
    while position + 8 <= len(rest):
        word = int.from_bytes(rest[position : position + 8], "little")
        total = (_rotate(total ^ _round(0, word), 27) * _P1 + _P4) & _MASK
        position += 8
    if position + 4 <= len(rest):
        word = int.from_bytes(rest[position : position + 4], "little")
        total = (_rotate(total ^ (word * _P1 & _MASK), 23) * _P2 + _P3) & _MASK
        position += 4
    for byte in rest[position:]:
        total = _rotate(total ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    total = (total ^ total >> 33) * _P2 & _MASK
    total = (total ^ total >> 29) * _P3 & _MASK
    return total ^ total >> 32


def _round(lane: int, word: int) -> int:
    return _rotate((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _rotate(value: int, turn: int) -> int:
    return (value << turn | value >> 64 - turn) & _MASK
