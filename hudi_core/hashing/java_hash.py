"""Java's hash codes of strings and lists of strings, over columns.

Source: ``String.hashCode`` (31-polynomial over UTF-16 units) and ``List.hashCode`` (31-polynomial
over the elements, beginning with 1; null counts as 0). jhashcode, of 2016, hashes one string at a
time, and no package of Arrow's or numpy's has Java's polynomial.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

U32 = npt.NDArray[np.uint32]
"""Hash codes: Java's ``int`` with the same bits, unsigned."""

_FACTOR: Final = np.uint32(31)
_ASCII: Final = 0x80
_FEW: Final = 32
"""Strings from which on they are hashed unit by unit, all at once; fewer are hashed one by one."""


def string_hashes(strings: pa.StringArray) -> U32:
    """Return the hash code of every string; 0 for null."""
    if not len(strings):
        return np.zeros(0, np.uint32)
    large = strings.cast(pa.large_string())
    _, offsets, data = large.buffers()
    ends = np.frombuffer(offsets, np.int64, len(large) + 1, large.offset * 8)
    units = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    first, last = int(ends[0]), int(ends[-1])
    hashes = _polynomials(units, ends[:-1], np.diff(ends))
    if int(units[first:last].max(initial=0)) >= _ASCII:
        _replace_others(hashes, large, units, ends)
    if large.null_count:
        hashes[~large.is_valid().to_numpy(zero_copy_only=False)] = 0
    return hashes


def list_hashes(parts: Sequence[U32]) -> U32:
    """Return the hash code of every list, from those of its elements.

    ``parts`` are the hash codes of all first elements, of all second elements, and so on; 0 for
    null.
    """
    total = np.ones(len(parts[0]), np.uint32)
    for part in parts:
        total = total * _FACTOR + part
    return total


def list_hash(strings: Sequence[str | None]) -> int:
    """Return the hash code of one list of strings, without a sign."""
    return int(list_hashes([string_hashes(pa.array([text], pa.string())) for text in strings])[0])


def _polynomials(
    units: npt.NDArray[Any], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> U32:
    # the longest first: strings with a unit of a given number are then a prefix
    order = np.argsort(-lengths, kind="stable")
    starts, lengths = starts[order], lengths[order]
    hashes = np.zeros(len(starts), np.uint32)
    shared = int(lengths[_FEW - 1]) if len(lengths) >= _FEW else 0
    for number in range(shared):
        holders = int(np.searchsorted(-lengths, -number, side="left"))
        prefix = hashes[:holders]
        prefix *= _FACTOR
        prefix += units[starts[:holders] + number]
    # 1, 31, 31 ** 2, ...
    powers = np.full(int(lengths[0]) - shared + 1, _FACTOR, np.uint32)
    powers[0] = 1
    np.multiply.accumulate(powers, out=powers)
    for row in range(int(np.count_nonzero(lengths[: _FEW - 1] > shared))):
        own = units[starts[row] + shared : starts[row] + lengths[row]].astype(np.uint32)
        one = hashes[row : row + 1]
        one *= powers[len(own)]
        one += np.dot(own, powers[len(own) - 1 :: -1])
    result = np.empty_like(hashes)
    result[order] = hashes
    return result


def _replace_others(
    hashes: U32,
    strings: pa.LargeStringArray,
    units: npt.NDArray[np.uint8],
    ends: npt.NDArray[np.int64],
) -> None:
    """Hash the strings beyond ASCII again, by their UTF-16 units."""
    beyond = np.zeros(len(units) + 1, np.int64)
    np.cumsum(units >= _ASCII, out=beyond[1:])
    rows = np.flatnonzero(beyond[ends[1:]] > beyond[ends[:-1]])
    encoded = [text.encode("utf-16-le") for text in strings.take(pa.array(rows)).to_pylist()]
    lengths = np.array([len(text) // 2 for text in encoded], np.int64)
    words = np.frombuffer(b"".join(encoded), "<u2")
    hashes[rows] = _polynomials(words, np.cumsum(lengths) - lengths, lengths)


def shards_of(keys: pa.StringArray, count: int) -> npt.NDArray[np.int64]:
    """Return the shard number of each key.

    ``keys`` is what is hashed: whole keys, but for a secondary index of version 2
    :func:`~hudi_core.metadata.keys.secondary_prefix`.
    """
    # Java takes absolute values before and after the remainder; in 64 bits the first is enough
    hashes = string_hashes(keys).view(np.int32).astype(np.int64)
    return np.abs(hashes) % count
