"""The order of rows that a clustering writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.base_file.encoded_columns import is_encoded
from hudi_core.config.clustering import ClusteringOrder
from hudi_core.rows.sorting import values_of


def row_order(rows: pa.Table, columns: Sequence[str], layout: ClusteringOrder) -> pa.Array:
    """Positions of rows in the order of a layout, nulls first.

    ``columns`` are dotted paths, at least one; strings may be dictionary encoded.
    """
    keys = [_key(values_of(rows, name)) for name in columns]
    if layout is ClusteringOrder.LINEAR or len(keys) == 1:
        table = pa.table(keys, names=[str(number) for number in range(len(keys))])
        order = [(name, "ascending", "at_start") for name in table.column_names]
        return pc.sort_indices(table, sort_keys=order)
    ranks = [_ranks(key) for key in keys]
    highest = max(int(one.max(initial=np.uint64(0))) for one in ranks)
    bits = bits_per_coordinate(len(keys), highest)
    coordinates = [scaled(one, bits) for one in ranks]
    curve = z_order if layout is ClusteringOrder.ZORDER else hilbert
    return pa.array(np.argsort(curve(coordinates, bits), kind="stable"))


def _key(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array to sort by.

    Encoded strings are replaced by their ranks, which sort faster.
    """
    if not is_encoded(column.type):
        return column.combine_chunks()
    whole = column.unify_dictionaries().combine_chunks()
    ranks = pc.rank(whole.dictionary, tiebreaker="dense")
    return ranks.take(whole.indices)


def _ranks(key: pa.Array) -> Words:
    """Ranks from 1 on, 0 of nulls; equal values have one rank."""
    found: Words = pc.rank(key, tiebreaker="dense").to_numpy(zero_copy_only=False)
    return np.where(pc.is_null(key).to_numpy(zero_copy_only=False), np.uint64(0), found)


# --- space-filling curves -------------------------------------------------------------------------

# Rows that are near each other on a curve are alike in all coordinates at once, so that a file of
# such rows has a short range of values in each. Everything is done column by column.


Words: TypeAlias = npt.NDArray[np.uint64]
"""One unsigned number per row."""
_BITS: Final = 64
_MOST_BITS: Final = 32
"""Bits of a coordinate at most; no group of files has more rows than they can number."""
_BLOCK_ROWS: Final = 1 << 14
_ZERO: Final = np.uint64(0)
_Curve: TypeAlias = Callable[[Sequence["Words"], int], "Words"]


def bits_per_coordinate(number: int, highest: int) -> int:
    """Bits of each coordinate, so that all fit into one word.

    Of more than 64 coordinates, those after the 64th do not count.

    ``highest`` is the greatest coordinate; more bits than it has would be wasted.
    """
    return max(1, min(_MOST_BITS, _BITS // number, highest.bit_length()))


def scaled(ranks: Words, bits: int) -> Words:
    """Ranks spread over all numbers of some bits, in their order."""
    highest = int(ranks.max(initial=np.uint64(0)))
    if not highest:
        return ranks
    # of 32 bits each, so that the product fits into a word
    return ranks * np.uint64((1 << bits) - 1) // np.uint64(highest)


def z_order(coordinates: Sequence[Words], bits: int) -> Words:
    """Places on Morton's curve: the bits of the coordinates in turn.

    Coordinates are below ``2 ** bits``; the first has the greatest weight.
    """
    return _by_blocks(_interleaved, coordinates, bits)


def hilbert(coordinates: Sequence[Words], bits: int) -> Words:
    """Places on Hilbert's curve, on which neighbours are neighbours in space.

    J. Skilling, "Programming the Hilbert curve", AIP Conference Proceedings 707 (2004): the
    coordinates are turned into the transposed index, whose bits in turn are the place.
    """
    return _by_blocks(_hilbert, coordinates, bits)


def _by_blocks(curve: _Curve, coordinates: Sequence[Words], bits: int) -> Words:
    """Places on a curve, one block of rows at a time.

    A block is what a processor keeps close.
    """
    chosen = coordinates[: _BITS // bits]
    places = np.empty(len(chosen[0]), np.uint64)
    for start in range(0, len(places), _BLOCK_ROWS):
        block = slice(start, start + _BLOCK_ROWS)
        places[block] = curve([one[block].copy() for one in chosen], bits)
    return places


def _interleaved(coordinates: Sequence[Words], bits: int) -> Words:
    place = np.zeros(len(coordinates[0]), np.uint64)
    for bit in range(bits - 1, -1, -1):
        for one in coordinates:
            place <<= np.uint64(1)
            place |= _bit(one, bit)
    return place


def _hilbert(coordinates: Sequence[Words], bits: int) -> Words:
    first, last = coordinates[0], coordinates[-1]
    others = range(1, len(coordinates))
    for bit in range(bits - 1, 0, -1):  # undo the excess work of the inverse
        low = np.uint64((1 << bit) - 1)
        first ^= low & _all_bits(first, bit)
        for number in others:
            one = coordinates[number]
            is_set = _all_bits(one, bit)
            swapped = (first ^ one) & (low & ~is_set)
            first ^= (low & is_set) | swapped
            one ^= swapped
    for number in others:  # Gray code
        np.bitwise_xor(coordinates[number], coordinates[number - 1], out=coordinates[number])
    flips = np.zeros(len(first), np.uint64)
    for bit in range(bits - 1, 0, -1):
        flips ^= _all_bits(last, bit) & np.uint64((1 << bit) - 1)
    return _interleaved([one ^ flips for one in coordinates], bits)


def _all_bits(one: Words, bit: int) -> Words:
    """All bits where a bit is set, none elsewhere."""
    return _ZERO - _bit(one, bit)


def _bit(one: Words, bit: int) -> Words:
    return (one >> np.uint64(bit)) & np.uint64(1)
