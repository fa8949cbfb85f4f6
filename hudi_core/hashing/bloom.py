"""Hudi's dynamic bloom filter, byte for byte (``hudi-format`` section 4).

The serialized form is base64 of big-endian numbers::

    int -1 | int hashes | byte 1 (murmur) | int bits | int entries | int added | int rows
    and for each row:  int -1 | int hashes | byte 1 | int bits | the bits, lowest first in each byte

A row is made for a number of entries; when they are used up, a further row is begun, up to a bound
beyond which rows are filled in turn and the rate of false positives grows.

rbloom was tried: it has a form and a choice of bits of its own, and takes neither from outside.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_core.errors import CorruptMetadataError

# --- Hadoop's MurmurHash2 ------------------------------------------------------------------------

# Source: ``hudi-format`` section 4. One hash of a string is the seed of its next, so the words of a
# string are mixed once and only folded into the running hash for every further one. The same word
# of many strings is folded in by one call of numpy; where few strings are left, a call for each
# word costs more than Python's own integers.
#
# No package of wheels gives these bits: mmh3, murmurhash and hashcodecs have MurmurHash3 only, and
# mmh2, in Python itself, has Appleby's MurmurHash2, whose last one to three bytes count otherwise.


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


# --- bloom filters -------------------------------------------------------------------------------


TYPE_CODE: Final = "DYNAMIC_V0"
"""What the footer of a data file says of such a filter."""

_ROW_HEADER: Final = struct.Struct(">iibi")
_COUNTS: Final = struct.Struct(">iii")
_VERSION, _MURMUR = -1, 1
_MAX_HASHES: Final = 1024
_LONG_KEY: Final = 4096
"""Mean bytes of keys from which on a filter has :data:`_HASHES_OF_LONG_KEYS` hashes at most."""
_HASHES_OF_LONG_KEYS: Final = 3

Bits = npt.NDArray[np.uint8]
"""The bits of a row, eight to a byte, the lowest first."""


class DynamicBloom:
    """A bloom filter of record keys that grows by rows.

    It may report keys it does not hold, but never denies one that it holds.

    ``hashes`` are the bits set per key, ``size`` the bits of a row, ``entries`` the keys that a row
    is made for, ``added`` the keys in the newest row.
    """

    def __init__(self, hashes: int, size: int, entries: int, added: int, rows: list[Bits]) -> None:
        self.hashes = hashes
        self.size = size
        self.entries = entries
        self.added = added
        self._rows = rows

    @property
    def count(self) -> int:
        """Keys added to all rows.

        Rows that are filled beyond their size count as full.
        """
        return self.entries * (len(self._rows) - 1) + self.added

    @classmethod
    def build(
        cls, keys: pa.Array | pa.ChunkedArray, entries: int, fpp: float, max_entries: int = 0
    ) -> DynamicBloom:
        """Return the filter of some record keys, added in their order.

        ``keys`` are strings without nulls, as in all methods; ``fpp`` is the rate of a full row. No
        row is begun beyond ``max_entries`` (``hoodie.bloom.index.filter.dynamic.max.entries``);
        less than ``entries`` means one row.
        """
        size = math.ceil(entries * -math.log(fpp) / math.log(2) ** 2)
        hashes = math.ceil(math.log(2) * size / entries)
        return cls._filled(_strings(keys), hashes, size, entries, max_entries)

    @classmethod
    def fitted(cls, keys: pa.Array | pa.ChunkedArray, fpp: float) -> DynamicBloom:
        """Return a filter of a file's keys in one fitting row.

        Every hash of a key reads the whole key, and one after the other. Where keys are long the
        filter has few hashes and more bits, which the file does not notice beside the keys; its
        rate of false positives is the same.
        """
        strings, entries = _strings(keys), max(1, len(keys))
        if int(strings.lengths.sum()) < _LONG_KEY * entries:
            return cls.build(keys, entries, fpp)
        hashes = min(_HASHES_OF_LONG_KEYS, math.ceil(-math.log2(fpp)))
        size = math.ceil(entries * -hashes / math.log1p(-(fpp ** (1 / hashes))))
        return cls._filled(strings, hashes, size, entries, 0)

    @classmethod
    def _filled(
        cls, strings: ByteStrings, hashes: int, size: int, entries: int, max_entries: int
    ) -> DynamicBloom:
        rows, added = _rows_of_keys(len(strings), entries, max_entries)
        # one byte a bit: setting bits takes a third of the time
        filled = [np.zeros(size, np.bool_) for _ in range(int(rows.max(initial=0)) + 1)]
        for chunk in chunks(len(strings)):
            chain = HashChain(strings, chunk)
            target = rows[chain.rows]
            for _ in range(hashes):
                bits = positions(chain.next(), size)
                for number, row in enumerate(filled):
                    row[bits if len(filled) == 1 else bits[target == number]] = True
        packed = [np.packbits(row, bitorder="little") for row in filled]
        return cls(hashes, size, entries, added, packed)

    def extended(self, keys: pa.Array | pa.ChunkedArray, slack: float) -> DynamicBloom | None:
        """Return the filter with further keys, for a file's next version.

        What was removed from the file stays a false positive.

        ``slack`` is how far the row may be overfilled: 0.1 for a tenth more keys than it is made
        for. ``None`` when there is more than one row, or too little room: build a new filter then.
        """
        if len(self._rows) != 1 or self.added + len(keys) > self.entries * (1 + slack):
            return None
        row = self._rows[0].copy()
        strings = _strings(keys)
        for chunk in chunks(len(strings)):
            chain = HashChain(strings, chunk)
            for _ in range(self.hashes):
                bits = positions(chain.next(), self.size)
                np.bitwise_or.at(row, bits >> 3, np.left_shift(1, bits & 7).astype(np.uint8))
        # a foreign writer begins a new row by this count; it may not say more than the row is for
        added = min(self.entries, self.added + len(keys))
        return DynamicBloom(self.hashes, self.size, self.entries, added, [row])

    def might_contain(self, keys: pa.Array | pa.ChunkedArray) -> pa.BooleanArray:
        """Return for each key whether the filter may hold it.

        ``False`` is certain.
        """
        strings = _strings(keys)
        found = np.zeros(len(strings), np.bool_)
        for chunk in chunks(len(strings)):
            chain = HashChain(strings, chunk)
            alive = np.ones((len(self._rows), len(chunk)), np.bool_)
            for _ in range(self.hashes):
                bits = positions(chain.next(), self.size)
                for number, row in enumerate(self._rows):
                    alive[number] &= (row[bits >> 3] >> (bits & 7)).astype(np.uint8) & 1 == 1
                kept: npt.NDArray[np.bool_] = np.logical_or.reduce(alive, axis=0)
                # most keys are not there, and two hashes show it
                if np.count_nonzero(kept) * 2 < len(kept):
                    chain.keep(kept)
                    alive = alive[:, kept]
            found[chain.rows] = np.logical_or.reduce(alive, axis=0)
        return pa.array(found)

    def to_base64(self) -> str:
        """Return the serialized form, as a footer holds it."""
        head = _ROW_HEADER.pack(_VERSION, self.hashes, _MURMUR, self.size)
        body = b"".join(head + row.tobytes() for row in self._rows)
        counts = _COUNTS.pack(self.entries, self.added, len(self._rows))
        return base64.b64encode(head + counts + body).decode()

    @classmethod
    def parse(cls, text: str | bytes, path: str) -> DynamicBloom:
        """Return the filter of a serialized form."""
        try:
            data = base64.b64decode(text, validate=True)
            version, hashes, kind, size = _ROW_HEADER.unpack_from(data, 0)
            entries, added, count = _COUNTS.unpack_from(data, _ROW_HEADER.size)
        except (binascii.Error, struct.error) as error:
            raise _damaged(path, str(error)) from error
        if (version, kind) != (_VERSION, _MURMUR) or not 0 < hashes <= _MAX_HASHES:
            raise _damaged(path, f"version {version}, {hashes} hashes of kind {kind}")
        start = _ROW_HEADER.size + _COUNTS.size
        width = (size + 7) // 8
        step = _ROW_HEADER.size + width
        if size < 1 or count < 1 or len(data) != start + count * step:
            raise _damaged(path, f"{len(data)} bytes for {count} rows of {size} bits")
        rows = []
        for number in range(count):
            begin = start + number * step
            if data[begin : begin + _ROW_HEADER.size] != data[: _ROW_HEADER.size]:
                raise _damaged(path, f"row {number} has another shape than the filter")
            rows.append(np.frombuffer(data, np.uint8, width, begin + _ROW_HEADER.size))
        return cls(hashes, size, entries, added, rows)


def _rows_of_keys(count: int, entries: int, max_entries: int) -> tuple[npt.NDArray[np.int64], int]:
    """Return the filter row of each of ``count`` new keys.

    Beside it, the number of keys in the newest row.
    """
    rows = max(1, math.ceil(max_entries / entries))
    order = np.arange(count) // entries
    if count <= rows * entries:
        return order, count - int(order.max(initial=0)) * entries
    # the key that finds every row full goes to the first, those after it to all of them in turn
    beyond = np.maximum(np.arange(count - rows * entries) - 1, 0) % rows
    return np.concatenate([order[: rows * entries], beyond]), count - (rows - 1) * entries


def _strings(keys: pa.Array | pa.ChunkedArray) -> ByteStrings:
    if isinstance(keys, pa.ChunkedArray):
        keys = keys.combine_chunks()
    if not len(keys):
        empty = np.zeros(0, np.int64)
        return ByteStrings(np.zeros(0, np.uint8), empty, empty)
    large = keys.cast(pa.large_string())
    _, offsets, data = large.buffers()
    ends = np.frombuffer(offsets, np.int64, len(large) + 1, large.offset * 8)
    first = int(ends[0])
    count = int(ends[-1]) - first
    content = np.frombuffer(data, np.uint8, count, first) if count else np.zeros(0, np.uint8)
    return ByteStrings(content, ends[:-1] - first, np.diff(ends))


def _damaged(path: str, reason: str) -> CorruptMetadataError:
    return CorruptMetadataError(
        path, f"its bloom filter cannot be read ({reason})", "Rewrite the file, or read without it."
    )
