"""Positions of rows in a base file, as a 64-bit roaring bitmap.

The portable form, little-endian: how many 32-bit bitmaps, and each behind its upper 32 bits. The
header of a log block has it in base64, a deletion vector behind a magic number::

    int32 big-endian: bytes from here to the checksum
    D1 D3 39 64
    the bitmap
    int32 big-endian: CRC-32 of the magic number and the bitmap

The frame around magic number and bitmap is only in files.
"""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from hudi_core.errors import CorruptMetadataError

Positions = npt.NDArray[np.int64]

_MAGIC: Final = b"\xd1\xd3\x39\x64"
_FRAME: Final = struct.Struct(">I")
_NO_RUNS: Final = 12346
_RUNS: Final = 12347
_FEWEST_WITH_OFFSETS: Final = 4
"""Containers from which on a bitmap with runs has offsets, too."""
_ARRAY_VALUES: Final = 4096
"""Most values of a container that lists them."""
_BITMAP_BYTES: Final = 8192
_LOW_BITS: Final = 32
_LOW_MASK: Final = (1 << _LOW_BITS) - 1


def decode_positions(text: str, path: str) -> Positions:
    """Return the positions of a header, in ascending order."""
    try:
        content = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise CorruptMetadataError(path, f"its record positions are damaged: {error}") from error
    return decode_bitmap(content, path)


def decode_bitmap(content: bytes, path: str) -> Positions:
    """Return the positions of a 64-bit roaring bitmap, in ascending order."""
    try:
        data = _Bytes(content)
        (count,) = data.numbers("<q", 1)
        if not 0 <= count <= len(data.content):
            raise ValueError(f"{count} bitmaps")
        found = [part for _ in range(count) for part in _bitmap(data)]
    except (ValueError, struct.error) as error:
        raise CorruptMetadataError(path, f"its record positions are damaged: {error}") from error
    positions = np.concatenate(found) if found else np.empty(0, np.int64)
    if (positions < 0).any() or (np.diff(positions) <= 0).any():
        raise CorruptMetadataError(path, "its record positions do not ascend")
    return positions


def encode_positions(positions: Positions) -> str:
    """Return the header for distinct positions in ascending order."""
    return base64.b64encode(encode_bitmap(positions)).decode()


def encode_bitmap(positions: Positions) -> bytes:
    """Return the 64-bit roaring bitmap of distinct, ascending positions."""
    highs, begins = np.unique(positions >> _LOW_BITS, return_index=True)
    parts = [struct.pack("<q", len(highs))]
    for high, own in zip(highs.tolist(), np.split(positions, begins)[1:], strict=True):
        parts += [struct.pack("<I", high), *_encoded(own & _LOW_MASK)]
    return b"".join(parts)


def decode_vector(vector: bytes, path: str) -> Positions:
    """The positions of a deletion vector, in ascending order.

    Parameters
    ----------
    vector
        Magic number and bitmap, without the frame that is around them in a file.
    path
        The file it is from, for errors.

    Raises
    ------
    CorruptMetadataError
        It is damaged, or of an unknown form.
    """
    if not vector.startswith(_MAGIC):
        raise CorruptMetadataError(path, "its deletion vector begins with another magic number")
    return decode_bitmap(vector[len(_MAGIC) :], path)


def encode_vector(positions: Positions) -> bytes:
    """The deletion vector of distinct positions in ascending order, without its frame.

    Parameters
    ----------
    positions
        Of rows in a data file, counted from 0.
    """
    return _MAGIC + encode_bitmap(positions)


def frame_vector(vector: bytes) -> bytes:
    """Put a deletion vector into its frame, of 8 bytes more."""
    return _FRAME.pack(len(vector)) + vector + _FRAME.pack(zlib.crc32(vector))


def unframe_vector(data: bytes, path: str) -> bytes:
    """The deletion vector at the begin of some bytes of a file.

    Parameters
    ----------
    data
        From the length on. Bytes behind the checksum are passed over.
    path
        The file, for errors.

    Raises
    ------
    CorruptMetadataError
        It is cut off, or its checksum is of other bytes.
    """
    try:
        (size,) = _FRAME.unpack_from(data)
        (checksum,) = _FRAME.unpack_from(data, _FRAME.size + size)
    except struct.error as error:
        raise CorruptMetadataError(path, "its deletion vector is cut off") from error
    vector = bytes(data[_FRAME.size : _FRAME.size + size])
    if zlib.crc32(vector) != checksum:
        raise CorruptMetadataError(path, "its deletion vector has another checksum than it says")
    return vector


def _encoded(values: Positions) -> list[bytes]:
    """One 32-bit bitmap: containers of arrays and bits, which have no runs."""
    keys, begins, counts = np.unique(values >> 16, return_index=True, return_counts=True)
    heads = np.stack([keys, counts - 1], axis=1).astype("<u2")
    is_array = counts <= _ARRAY_VALUES
    sizes = np.where(is_array, 2 * counts, _BITMAP_BYTES)
    head = struct.pack("<II", _NO_RUNS, len(keys))
    # counted from the begin of the bitmap
    offsets = len(head) + 8 * len(keys) + np.cumsum(sizes) - sizes
    containers = (
        own.astype("<u2").tobytes() if lists else _bits(own)
        for own, lists in zip(np.split(values & 0xFFFF, begins)[1:], is_array, strict=True)
    )
    return [head, heads.tobytes(), offsets.astype("<u4").tobytes(), *containers]


def _bits(values: Positions) -> bytes:
    bits = np.zeros(1 << 16, np.uint8)
    bits[values] = 1
    return np.packbits(bits, bitorder="little").tobytes()


class _Bytes:
    """Reads arrays of numbers, one behind the other."""

    def __init__(self, content: bytes) -> None:
        self.content, self._at = content, 0

    def numbers(self, form: str, count: int) -> npt.NDArray[np.int64]:
        """The next numbers."""
        kind = np.dtype(form)
        end = self._at + count * kind.itemsize
        if count < 0 or end > len(self.content):
            raise ValueError("it is cut off")
        found = np.frombuffer(self.content, kind, count, self._at)
        self._at = end
        return found.astype(np.int64)


def _bitmap(data: _Bytes) -> Iterator[Positions]:
    """Yield the positions of one 32-bit bitmap, container by container."""
    (high,) = data.numbers("<u4", 1)
    (cookie,) = data.numbers("<u4", 1)
    if cookie & 0xFFFF == _RUNS:
        count = int(cookie >> 16) + 1
        flags = data.numbers("<u1", (count + 7) // 8).astype(np.uint8)
        has_runs = np.unpackbits(flags, bitorder="little")[:count].astype(bool)
    elif cookie == _NO_RUNS:
        count = int(data.numbers("<u4", 1)[0])
        has_runs = np.zeros(min(count, 1 << 16), bool)
    else:
        raise ValueError(f"the unknown form {cookie}")
    heads = data.numbers("<u2", 2 * count).reshape(count, 2)
    if cookie == _NO_RUNS or count >= _FEWEST_WITH_OFFSETS:
        data.numbers("<u4", count)
    for (key, last), runs in zip(heads.tolist(), has_runs.tolist(), strict=True):
        yield (int(high) << 32) + (key << 16) + _container(data, last + 1, runs)


def _container(data: _Bytes, count: int, is_run: bool) -> Positions:
    if is_run:
        pairs = data.numbers("<u2", 2 * int(data.numbers("<u2", 1)[0])).reshape(-1, 2)
        starts, lengths = pairs[:, 0], pairs[:, 1] + 1
        if (starts + lengths > 1 << 16).any() or lengths.sum() != count:
            raise ValueError("runs of another length than it says")
        return np.repeat(starts - (np.cumsum(lengths) - lengths), lengths) + np.arange(
            lengths.sum()
        )
    if count <= _ARRAY_VALUES:
        return data.numbers("<u2", count)
    bits = data.numbers("<u1", _BITMAP_BYTES).astype(np.uint8)
    found = np.flatnonzero(np.unpackbits(bits, bitorder="little"))
    if len(found) != count:
        raise ValueError("a container of another size than it says")
    return found
