"""Hadoop's variant of MurmurHash2 over many byte strings at once.

Source: ``hudi-format`` section 4. One hash of a string is the seed of its next, so the words of a
string are mixed once and only folded into the running hash for every further one. The same word of
many strings is folded in by one call of numpy; where few strings are left, a call for each word
costs more than Python's own integers.

No package of wheels gives these bits: mmh3, murmurhash and hashcodecs have MurmurHash3 only, and
mmh2, in Python itself, has Appleby's MurmurHash2, whose last one to three bytes count otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

U32 = npt.NDArray[np.uint32]
Bools = npt.NDArray[np.bool_]

_M: Final = np.uint32(0x5BD1E995)
_R: Final = np.uint32(24)
_FEW: Final = 32
"""Strings from which on a call of numpy for each word is the faster way."""


class ByteStrings:
    """Byte strings laid one behind the other.

    ``data`` ends with three bytes that belong to no string, so that four bytes can be read
    anywhere.
    """

    def __init__(
        self,
        data: npt.NDArray[np.uint8],
        starts: npt.NDArray[np.int64],
        lengths: npt.NDArray[np.int64],
    ) -> None:
        self.data = np.concatenate([data, np.zeros(3, np.uint8)])
        self.starts = starts
        self.lengths = lengths

    def __len__(self) -> int:
        return len(self.starts)


class HashChain:
    """Chained hashes of byte strings: each seeds the next, 0 the first."""

    def __init__(self, strings: ByteStrings, rows: npt.NDArray[np.int64]) -> None:
        # the longest first: those with a word of a given number are then a prefix
        self.rows = rows[np.argsort(-strings.lengths[rows], kind="stable")]
        starts, lengths = strings.starts[self.rows], strings.lengths[self.rows]
        data = strings.data
        # little-endian words that begin at every byte, not only at every fourth
        words = np.ndarray(len(data) - 3, "<u4", data, strides=(1,))
        counts = lengths // 4
        shared = int(counts[_FEW - 1]) if len(counts) >= _FEW else 0
        self._words: list[U32] = []
        for number in range(shared):
            holders = int(np.searchsorted(-counts, -number, side="left"))
            self._words.append(_mixed(words[starts[:holders] + 4 * number]))
        self._rests: list[list[int]] = []
        """What the longest strings have beyond the words of :attr:`_words`, mixed."""
        for start, count in zip(starts[: _FEW - 1].tolist(), counts.tolist(), strict=False):
            if count > shared:
                own = words[start + 4 * shared : start + 4 * count : 4]
                self._rests.append(_mixed(own).tolist())
        self._tail, self._has_tail = _tails(data.view(np.int8), starts + lengths, lengths % 4)
        self._length = lengths.astype(np.uint32)
        self._hash = np.zeros(len(self.rows), np.uint32)

    def next(self) -> U32:
        """Return the next hash of each string, in the chain's own array."""
        hashes = self._hash ^ self._length
        for word in self._words:
            prefix = hashes[: len(word)]
            prefix *= _M
            prefix ^= word
        for row, rest in enumerate(self._rests):
            hashes[row] = _folded(int(hashes[row]), rest)
        hashes ^= self._tail
        np.multiply(hashes, _M, out=hashes, where=self._has_tail)
        hashes ^= hashes >> np.uint32(13)
        hashes *= _M
        hashes ^= hashes >> np.uint32(15)
        self._hash = hashes
        return hashes

    def keep(self, kept: Bools) -> None:
        """Go on with some of the strings only."""
        self._words = [word[kept[: len(word)]] for word in self._words]
        self._words = [word for word in self._words if len(word)]
        self._rests = [rest for rest, stays in zip(self._rests, kept, strict=False) if stays]
        self.rows, self._length = self.rows[kept], self._length[kept]
        self._tail, self._has_tail = self._tail[kept], self._has_tail[kept]
        self._hash = self._hash[kept]


def _mixed(words: U32) -> U32:
    mixed = words * _M
    mixed ^= mixed >> _R
    mixed *= _M
    return mixed


def _folded(value: int, words: list[int]) -> int:
    """Return a running hash with further words folded in."""
    factor, mask = int(_M), 0xFFFFFFFF
    for word in words:
        value = (value * factor & mask) ^ word
    return value


def _tails(
    data: npt.NDArray[np.int8], ends: npt.NDArray[np.int64], left: npt.NDArray[np.int64]
) -> tuple[U32, Bools]:
    """Hash words of the last one to three bytes of each string.

    Beside them, whether a string has such bytes.

    Hadoop reads them backwards from the end, and as signed numbers.
    """
    tail = np.zeros(len(ends), np.int32)
    for back, shift in ((1, 0), (2, 8), (3, 16)):
        has = left >= back
        tail[has] ^= data[ends[has] - back].astype(np.int32) << shift
    return tail.view(np.uint32), left > 0


def positions(hashes: U32, size: int) -> npt.NDArray[np.intp]:
    """Return the bit of each hash: ``abs(hash % size)`` with Java's signs."""
    # the least integer has no positive twin, but as an unsigned one it is right
    bits = np.abs(hashes.view(np.int32)).view(np.uint32)
    # numpy divides by a constant fast, and takes remainders slowly
    quotients = bits // np.uint32(size)
    quotients *= np.uint32(size)
    bits -= quotients
    return bits.astype(np.intp)


def chunks(count: int, size: int = 1 << 14) -> Iterator[npt.NDArray[np.int64]]:
    """Yield ranges below ``count`` whose hashes fit into the processor's cache."""
    for start in range(0, count, size):
        yield np.arange(start, min(start + size, count))
