"""The cells of many data blocks at once, as arrays of places.

A cell says where the next one begins, so they can only be walked along. Many walks are done side by
side, a step of all of them in a few calls of numpy: one from the begin of each block, and from
places within it where a cell seems to begin. A walk has to end where the next one begins, which
shows that it was a cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.metadata.hfile.block import KEY_TAIL, damaged

Ints = npt.NDArray[np.int64]
_HEAD_BYTES: Final = 10
_OVERHEAD: Final = 2 + len(KEY_TAIL)
_WALKS: Final = 512
"""About so many walks are done side by side."""
_MAX_SPLITS: Final = 8
"""Walks in one block."""
_MAX_GUESSED_KEY: Final = 100
"""Bytes of the longest key that a cell within a block is looked for by."""


_Step = tuple[Ints, Ints, npt.NDArray[np.uint64]]
"""The walks that go on, where each of them is, and what is there."""


class KeysOfLength(NamedTuple):
    """Keys of one length, with their ordinals among keys of any."""

    length: int
    ordinals: Ints
    keys: pa.FixedSizeBinaryArray


@dataclass(frozen=True, slots=True)
class CellPlaces:
    """Cells of some blocks, in their order."""

    data: npt.NDArray[np.uint8]
    key_begins: Ints
    key_lengths: Ints
    value_begins: Ints
    value_lengths: Ints

    def __len__(self) -> int:
        return len(self.key_begins)

    def keys(self, length: int) -> tuple[Ints, pa.FixedSizeBinaryArray]:
        """Return cells whose keys have a length, and these keys.

        The cells by their numbers.
        """
        some = np.flatnonzero(self.key_lengths == length)
        return some, parts(self.data, self.key_begins[some], length)

    def values_by_length(self, cells: Ints) -> Iterator[tuple[Ints, pa.FixedSizeBinaryArray]]:
        """Yield places and values of cells with equally long values."""
        begins, lengths = self.value_begins[cells], self.value_lengths[cells]
        for length in np.unique(lengths).tolist():
            some = np.flatnonzero(lengths == length)
            yield some, parts(self.data, begins[some], length)

    def all_keys(self) -> pa.BinaryArray:
        """Return the keys of all cells."""
        return _in_one(self.data, self.key_begins, self.key_lengths)

    def all_values(self) -> pa.BinaryArray:
        """Return the values of all cells."""
        return _in_one(self.data, self.value_begins, self.value_lengths)


def _in_one(data: npt.NDArray[np.uint8], begins: Ints, lengths: Ints) -> pa.BinaryArray:
    """Return parts of the data of any length."""
    rows: list[Ints] = [np.empty(0, np.int64)]
    arrays: list[pa.Array] = [pa.array([], pa.binary())]
    for length in np.unique(lengths).tolist():
        some = np.flatnonzero(lengths == length)
        rows.append(some)
        arrays.append(parts(data, begins[some], length).cast(pa.binary()))
    # back into their order
    return pa.concat_arrays(arrays).take(pa.array(np.argsort(np.concatenate(rows))))


def parts(data: npt.NDArray[np.uint8], begins: Ints, length: int) -> pa.FixedSizeBinaryArray:
    """Return parts of the data that have the same length."""
    if length == 0:
        return pa.array([b""] * len(begins), pa.binary(0))
    if not len(begins):  # they may be longer than all of the data
        return pa.array([], pa.binary(length))
    windows = np.ndarray(len(data) - length + 1, f"V{length}", data, strides=(1,))
    buffers = [None, pa.py_buffer(windows[begins])]
    return pa.Array.from_buffers(pa.binary(length), len(begins), buffers)


def find_keys(
    cells: Sequence[CellPlaces], wanted: Iterable[KeysOfLength]
) -> Iterator[tuple[Ints, pa.FixedSizeBinaryArray]]:
    """Yield ordinals and values of the keys found.

    Those with values of the same length together.
    """
    for length, ordinals, some in wanted:
        held = [one.keys(length) for one in cells]
        stored = pa.chunked_array([keys for _, keys in held], pa.binary(length))
        places = pc.fill_null(pc.index_in(stored, value_set=some), -1).to_numpy()
        begin = 0
        parts_of: dict[int, list[tuple[Ints, pa.FixedSizeBinaryArray]]] = {}
        for one, (numbers, _) in zip(cells, held, strict=True):
            place = places[begin : begin + len(numbers)]
            begin += len(numbers)
            found = np.flatnonzero(place >= 0)
            for these, values in one.values_by_length(numbers[found]):
                pair = ordinals[place[found[these]]], values
                parts_of.setdefault(values.type.byte_width, []).append(pair)
        for pairs in parts_of.values():
            yield (
                np.concatenate([these for these, _ in pairs]),
                pa.concat_arrays([values for _, values in pairs]),
            )


def by_length(keys: pa.BinaryArray) -> Iterator[KeysOfLength]:
    """Yield keys of the same length together."""
    _, offsets, content = keys.buffers()
    ends = np.frombuffer(offsets, np.int32)[keys.offset :][: len(keys) + 1].astype(np.int64)
    data = np.frombuffer(content if content is not None else b"", np.uint8)
    lengths = np.diff(ends)
    for length in np.unique(lengths).tolist():
        some = np.flatnonzero(lengths == length)
        yield KeysOfLength(length, some, parts(data, ends[:-1][some], length))


def first_key(content: bytes) -> bytes:
    """Return the key of the first cell of a block."""
    return content[_HEAD_BYTES : _HEAD_BYTES + int.from_bytes(content[8:_HEAD_BYTES], "big")]


def find_cells(contents: Sequence[bytes], path: str) -> CellPlaces:
    """Return the cells of some data blocks."""
    data = np.frombuffer(b"".join([*contents, bytes(16)]), np.uint8)
    splits = min(_MAX_SPLITS, _WALKS // max(1, len(contents)))
    begins: list[int] = []
    offset = 0
    for content in contents:
        begins.append(offset)
        begins += [offset + place for place in _guessed(content, splits)]
        offset += len(content)
    found = _walk(data, np.array(begins, np.int64), offset)
    if found is None:
        # a guess was wrong, or a block is damaged
        sizes = np.fromiter(map(len, contents), np.int64, len(contents))
        found = _walk(data, np.cumsum(sizes) - sizes, offset)
    if found is None:
        raise damaged(path, "a data block does not hold whole cells")
    return found


def _guessed(content: bytes, splits: int) -> Iterator[int]:
    """Yield places, in order, where a cell seems to begin."""
    step, last = len(content) // max(1, splits), 0
    likely = len(first_key(content))
    for number in range(1, splits):
        tail = content.find(KEY_TAIL, max(last, number * step))
        if tail < 0:
            return
        # what is before the tail is a key if the lengths before it say so; most are as long as the
        # last one was
        for length in (likely, *range(_MAX_GUESSED_KEY)):
            begin = tail - length - _HEAD_BYTES
            is_cell = (
                begin > last
                and content[begin + 9] == length
                and content[begin + 3] == length + _OVERHEAD
            )
            if is_cell:
                last, likely = begin, length
                yield begin
                break


def _walk(data: npt.NDArray[np.uint8], begins: Ints, end: int) -> CellPlaces | None:
    """Return the cells between places and end, or ``None``.

    ``None`` where a walk does not end where the next one begins, or comes upon what is no cell.
    """
    keep = begins < np.append(begins[1:], end)
    place = begins[keep]
    ends = np.append(place[1:], end)
    # the lengths of a cell's row, value and key but for its two high bytes, which are zero
    lengths = np.ndarray(len(data) - 9, ">u8", data, offset=2, strides=(1,))
    walks = np.arange(len(place))
    steps: list[_Step] = []
    low, value_bits, row_bits = np.uint64(0xFFFFFFFF), np.uint64(16), np.uint64(48)
    while len(place):
        head = lengths[place].astype(np.uint64)
        steps.append((walks, place, head))
        step = ((head >> value_bits) & low) + (head >> row_bits) + np.uint64(9)
        place = place + step.astype(np.int64)
        going = place < ends
        if not going.all():
            if (place > ends).any():
                return None
            walks, place, ends = walks[going], place[going], ends[going]
    found, head = _in_order(steps)
    rows = (head & np.uint64(0xFFFF)).astype(np.int64)
    values = ((head >> value_bits) & low).astype(np.int64)
    if ((head >> row_bits).astype(np.int64) - rows != _OVERHEAD).any():
        return None
    key_begins = found + _HEAD_BYTES
    return CellPlaces(data, key_begins, rows, key_begins + rows + len(KEY_TAIL), values)


def _in_order(steps: Sequence[_Step]) -> tuple[Ints, npt.NDArray[np.uint64]]:
    """Return places and heads of cells, in file order.

    Fetched together where they are close together.
    """
    if not steps:
        return np.empty(0, np.int64), np.empty(0, np.uint64)
    shape = len(steps[0][0]), len(steps)
    count = sum(len(which) for which, _, _ in steps)
    if shape[0] * shape[1] > 4 * count:
        places = np.concatenate([where for _, where, _ in steps])
        order = np.argsort(places)
        return places[order], np.concatenate([head for _, _, head in steps])[order]
    by_walk, heads = np.full(shape, -1), np.zeros(shape, np.uint64)
    for number, (which, where, head) in enumerate(steps):
        by_walk[which, number], heads[which, number] = where, head
    is_cell = by_walk >= 0
    return by_walk[is_cell], heads[is_cell]
