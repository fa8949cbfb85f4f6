"""Which of several rows with one key wins, stored row included.

Event-time ordering: the greater ordering value wins and a tie goes to the later arrival; of several
ordering values the next decides where those before are equal. A null ordering value is the lowest
within a batch; against a stored row a null on either side lets the incoming row win, as a row that
does not know its time cannot be late. Floats have the one order of Java's
``Double.compare``: NaN is the greatest value, and equal to itself. Commit-time ordering: the later
arrival wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

IntArray = np.ndarray[Any, np.dtype[np.int32]]
Positions = np.ndarray[Any, np.dtype[np.int64]]


_DENSE: Final = 8
"""Up to so many places for each position, marking them is faster than sorting."""


def distinct(positions: Positions) -> Positions:
    """Return positions in ascending order, each once."""
    if (positions[1:] > positions[:-1]).all():
        return positions
    size = _size(positions)
    if size <= _DENSE * len(positions):
        held = np.zeros(size, dtype=bool)
        held[positions] = True
        return np.flatnonzero(held)
    return np.unique(positions)


def ranked(positions: Positions) -> tuple[Positions, Positions]:
    """Return ascending positions, each once, and the place of each given one."""
    ordered = distinct(positions)
    size = _size(positions)
    if size > _DENSE * len(positions):
        return ordered, np.searchsorted(ordered, positions)
    places = np.empty(size, dtype=np.int64)
    places[ordered] = np.arange(len(ordered))
    return ordered, places[positions]


def ascending(numbers: Positions, chosen: Positions) -> Positions:
    """Return ``chosen`` in the stable order of their ``numbers``."""
    wanted = numbers[chosen]
    size = _size(wanted)
    if size <= _DENSE * len(wanted):
        found = np.full(size, -1, dtype=np.int64)
        found[wanted] = chosen
        found = found[found >= 0]
        if len(found) == len(chosen):  # no number is there twice
            return found
    return chosen[np.argsort(wanted, kind="stable")]


def _size(positions: Positions) -> int:
    return int(positions.max(initial=-1)) + 1


def winners(keys: pa.ChunkedArray, ordering: Sequence[pa.ChunkedArray]) -> Positions | None:
    """Return positions of the winning rows in ingest order.

    ``None`` when no key occurs twice.

    ``keys`` are in arrival order, without nulls; ``ordering`` has a column for each field, none for
    commit-time ordering.
    """
    encoded = keys.combine_chunks().dictionary_encode()
    if len(encoded.dictionary) == len(encoded):
        return None
    codes = encoded.indices.to_numpy()
    repeated = np.bincount(codes)[codes] > 1
    rows = np.flatnonzero(repeated)
    columns: dict[str, Any] = {"code": pa.array(codes[rows]), "row": pa.array(rows)}
    for number, column in enumerate(ordering):
        columns[f"ordering{number}"] = _totally_ordered(column.take(pa.array(rows)))
    by = ("code", *(name for name in columns if name not in ("code", "row")), "row")
    sort_keys = [(name, "ascending", "at_start") for name in by]
    order = pc.sort_indices(pa.table(columns), sort_keys=sort_keys).to_numpy()
    sorted_codes = codes[rows][order]
    last = np.append(sorted_codes[1:] != sorted_codes[:-1], True)
    keep = ~repeated
    keep[rows[order[last]]] = True
    return np.flatnonzero(keep)


def existing_is_newer(
    stored: Sequence[pa.Array | pa.ChunkedArray], incoming: Sequence[pa.Array | pa.ChunkedArray]
) -> pa.BooleanArray:
    """Return for each pair whether the stored row stays.

    It does if its ordering value is strictly greater.
    """
    pairs = [
        (_totally_ordered(had), _totally_ordered(given))
        for had, given in zip(stored, incoming, strict=True)
    ]
    had, given = pairs.pop()
    later = pc.fill_null(pc.greater(had, given), False)
    for had, given in reversed(pairs):
        is_same = pc.fill_null(pc.equal(had, given), False)
        later = pc.or_(pc.fill_null(pc.greater(had, given), False), pc.and_(is_same, later))
    return later


def order_ranks(ordering: Sequence[pa.ChunkedArray], count: int) -> Positions:
    """Return each row's rank by its ordering values; ties share one."""
    ranks = np.zeros(count, dtype=np.int64)
    for column in ordering:
        by = [("", "ascending", "at_start")]
        own = pc.rank(_totally_ordered(column), sort_keys=by, tiebreaker="dense").to_numpy()
        _, ranks = np.unique(ranks * (count + 1) + own, return_inverse=True)
    return ranks


def _totally_ordered(
    values: pa.Array | pa.ChunkedArray,
) -> pa.Array | pa.ChunkedArray:
    """Return values that sort and compare alike: floats as integers.

    Arrow sorts NaN behind all numbers, but compares it as greater than none.
    """
    if not pt.is_floating(values.type):
        return values
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    known = pc.fill_null(values, 0.0).cast(pa.float64()).to_numpy()
    bits = np.where(np.isnan(known), np.nan, known).view(np.int64)
    # the bits of a float are its sign and its magnitude
    ordered = np.where(bits < 0, bits ^ np.iinfo(np.int64).max, bits)
    return pa.array(ordered, mask=values.is_null().to_numpy(zero_copy_only=False))
