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
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_core.errors import CorruptMetadataError
from hudi_core.hashing.murmur import ByteStrings, HashChain, chunks, positions

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
